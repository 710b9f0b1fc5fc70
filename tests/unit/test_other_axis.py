# SPDX-License-Identifier: Apache-2.0
"""A procedure of another unit and another axis: nothing between journal and metrics knows which
there are.

It is made up. It searches for the most queries/s that a DNS64 server answers in whole, for some
shares of cached answers: no frame size anywhere.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse
from rich.console import Console

from dutperf import journal, procedures
from dutperf.api import results
from dutperf.cli.output import console, json_lines, live, metrics
from dutperf.journal import JournalError, ResultEvent, ResumedJournal
from dutperf.model import FRAME_SIZE, Axis, Case, LimitedBy, Load, Trial, Unit
from dutperf.procedures import repeated_searches
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Place
from dutperf.procedures.definition import Definition
from dutperf.procedures.repeated_searches import RepeatedSearches, SearchFinding, UpperBound
from dutperf.report import export, html
from dutperf.results import charts, comparison, deviations, gate, points, tables
from dutperf.results.charts import Chart
from dutperf.results.statistics import Statistics
from dutperf.run import campaign, suite
from dutperf.search.binary import BinarySearch, Bounds, Resolution, Search
from dutperf.setup.conditions import Usual
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Log, journal_lines, plan

CACHED: Axis[int] = Axis("cached_percent", "% cached", "cached answers")
RESOLUTION, CAPACITY, SHARES = 100, 20_000, (0, 50, 90)
COSTS = {0: 4, 50: 2, 90: 1}
"""Frames of a query, so that a cached answer is the cheaper one."""


class Queries(RepeatedSearches[Usual]):
    unit = Unit.QUERIES_PER_SECOND

    def cases_of(self) -> tuple[Case, ...]:
        return tuple(Case({CACHED: share}) for share in SHARES)

    def first_load(self, case: Case) -> Load:
        del case
        return Load(1_000, self.unit)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        assert load.unit is Unit.QUERIES_PER_SECOND
        [of_small_frames] = self.plan.traffic.cases()
        return super().trial(of_small_frames, Load.fps(load.value * COSTS[case[CACHED]]), number, duration_s)

    def new_search(self, place: Place, prior: Prior) -> Search:
        del place, prior
        return BinarySearch(Bounds(Resolution(step=RESOLUTION), initial=1_000, unit=self.unit))

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        return f"everything was answered with {case}, {limited_by}"


class QueriesPoint(points.Point):
    title: ClassVar[str] = "answered queries/s"
    columns: ClassVar[points.Row] = ("median", "p1", "p99", "limited by")

    answered_qps: Statistics
    limited_by: LimitedBy | None
    upper_bound: UpperBound | None
    repetitions: int

    def main_figure(self) -> points.MainFigure:
        return points.MainFigure.of(self.answered_qps, "answered queries/s")

    def rows(self) -> list[points.Row]:
        return [(*self.answered_qps.cells(",.0f"), self.limited_by or "-")]

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        assert [one["case"] for one in limits] == [point.case.as_json() for point in points]
        figures = [
            ("measured", point.case, (of.median, of.p1, of.p99)) for point in points for of in (point.answered_qps,)
        ]
        return charts.over_cases("Answered queries", Unit.QUERIES_PER_SECOND.label, figures, caption=charts.bars())


def point(recorded: points.Recorded) -> QueriesPoint:
    found = recorded.of(SearchFinding)
    decisive = repeated_searches.decisive(found)
    return QueriesPoint(
        case=recorded.case,
        message=repeated_searches.message(found),
        answered_qps=recorded.statistics(SearchFinding, "lower_bound"),
        limited_by=None if decisive is None else decisive.limited_by,
        upper_bound=repeated_searches.upper_bound(found, recorded.of(ResultEvent)),
        repetitions=len(found),
    )


QUERIES = Definition(
    name="queries", summary="Made up.", conditions=Usual, make=Queries, point=point, rules=deviations.rules()
)
MEASUREMENT = "queries"


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedures, "NAMES", (*procedures.NAMES, QUERIES.name))
    monkeypatch.setitem(sys.modules, procedures.module_of(QUERIES.name), SimpleNamespace(PROCEDURE=QUERIES))


def run(directory: Path, capacity: int = CAPACITY, log: Log | None = None) -> campaign.Summary:
    tester = SimulatedTester(SimulatedDut(capacity_fps=capacity))
    return campaign.measure(QUERIES, tester, plan(repetitions=3, duration_s=1), directory, log or Log())


def truth(case: Case, capacity: int = CAPACITY) -> int:
    return capacity // COSTS[case[CACHED]]


def test_it_finds_the_truth_from_the_journal_alone(tmp_path: Path) -> None:
    summary = run(tmp_path)
    assert [str(point.case) for point in summary.points] == ["0 % cached", "50 % cached", "90 % cached"]
    for one in summary.points:
        assert isinstance(one, QueriesPoint)
        assert one.answered_qps.median is not None
        assert 0 <= truth(one.case) - one.answered_qps.median <= RESOLUTION
        assert one.upper_bound is not None
        assert (one.upper_bound.load.unit, one.finished, one.has_number) == (Unit.QUERIES_PER_SECOND, 3, True)
        assert one.message.startswith(f"at {one.upper_bound.load.value:,} queries/s ")
    assert results.read(tmp_path).summary == summary


def test_the_journal_says_what_there_is(tmp_path: Path) -> None:
    run(tmp_path)
    begin, *events = journal_lines(tmp_path)
    assert begin["axes"] == [{"name": CACHED.name, "unit": "% cached", "heading": "cached answers", "derived": False}]
    assert [one["case"] for one in begin["cases"]] == [{"cached_percent": share} for share in SHARES]
    measured = [event for event in events if event["event"] in ("trial", "result", "search")]
    assert {event["case"]["cached_percent"] for event in measured} == set(SHARES)
    loads = [event["load"] for event in measured if event["event"] == "trial"]
    assert loads[0] == {"value": 1_000, "unit": "queries/s"}
    assert {load["unit"] for load in loads} == {"queries/s"}
    assert {event["unit"] for event in measured if event["event"] == "search"} == {"queries/s"}
    assert "frame_size" not in "".join(json.dumps(event) for event in measured)


def test_it_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    lines = (tmp_path / "whole" / journal.JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / journal.JOURNAL).write_bytes(b"".join(lines[: len(lines) // 2]))
    with ResumedJournal.open(tmp_path / "cut") as recorded:
        tester = SimulatedTester(SimulatedDut(capacity_fps=CAPACITY))
        resumed = campaign.resume(tester, plan(repetitions=3, duration_s=1), recorded, Log())
    assert resumed.points == whole.points


def test_tables_and_exports_have_its_axis_and_its_unit(tmp_path: Path) -> None:
    summary = run(tmp_path)
    shown = tables.results(summary)
    assert shown.heads == ("cached answers", "median", "p1", "p99", "limited by")
    assert [row[0] for row in shown.rows] == ["0", "50", "90"]
    [measured] = results.read(tmp_path).measured
    [first, *_] = csv.DictReader(io.StringIO(export.RECORDS[export.Format.CSV](measured.records()).decode()))
    assert {"cached_percent", "answered_qps.median", "upper_bound.rate_qps"} <= first.keys()
    assert not [name for name in first if "frame_size" in name or "load" in name]
    [trial, *_] = measured.records(of_trials=True)
    assert (trial["cached_percent"], trial["rate_qps"]) == (0, 1_000)
    assert "frame_size" not in trial


def test_the_report_and_its_plots_are_over_its_axis(tmp_path: Path) -> None:
    run(tmp_path)
    [measured] = results.read(tmp_path).measured
    known = measured.charts()
    over = known[MEASUREMENT]
    assert (over.title, over.x_label) == ("Answered queries over cached answers", "cached answers, % cached")
    assert (over.curves[0].x, over.x_scale) == ((0, 50, 90), "linear")
    path = known[f"{MEASUREMENT}-path-50"]
    assert (path.title, path.y_label) == ("Offered loads, 50 % cached", "offered load, queries/s")
    page = html.page([measured])
    assert "queries/s" in page
    assert "cached answers" in page


def test_two_runs_are_compared_case_by_case(tmp_path: Path) -> None:
    for name, capacity in (("base", CAPACITY), ("other", CAPACITY // 2)):
        run(tmp_path / name, capacity)
    base, other = (comparison.Results(name, results.read(tmp_path / name).measured) for name in ("base", "other"))
    found = comparison.compare(base, [other])
    [one] = found.compared
    assert [row.case for row in one.rows] == [Case({CACHED: share}) for share in SHARES]
    assert all(row.margin == 0 and row.difference is not None and row.difference < 0 for row in one.rows)
    assert one.rows[1].where == "queries, 50 % cached, answered_qps"
    [table] = comparison.tables_of(one, found.alpha)
    assert table.heads[:2] == ("cached answers", "figure")
    checked = gate.check([gate.Condition.parse("answered_qps < -3%")], found, by_median=True)
    assert {one.outcome for one in checked} == {gate.Outcome.FAILED}


def test_a_run_of_another_axis_has_no_figure_in_common(tmp_path: Path) -> None:
    run(tmp_path)
    [measured] = results.read(tmp_path).measured
    assert measured.summary is not None
    sized = [one.model_copy(update={"case": Case({FRAME_SIZE: 84})}) for one in measured.summary.points]
    other = replace(measured, summary=measured.summary.model_copy(update={"points": tuple(sized)}))
    with pytest.raises(comparison.Incomparable, match="no figure in common: their cases or offered loads differ"):
        comparison.compare(comparison.Results("a", [measured]), [comparison.Results("b", [other])])


def test_a_person_a_program_and_prometheus_are_told_its_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Log()
    run(tmp_path / "run", log=seen)
    shown = Console(file=io.StringIO(), width=200)
    plain, structured = live.PlainObserver(shown), json_lines.JsonObserver(MEASUREMENT)
    told, place = metrics.Metrics(1), metrics.Place(None, None, tmp_path / "dutperf.prom")
    observer = metrics._MetricsObserver(MEASUREMENT, told, place)
    for status in seen.statuses:
        for one in (plain, structured, observer):
            one.update(status)
    told.ended(MEASUREMENT, tmp_path / "run")
    metrics._write(told, place)

    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert "0 % cached, repetition 1 of 3, trial 1: 1,000 queries/s: nothing lost" in text
    running = next(status for status in seen.statuses if status.lower and status.upper)
    assert "queries/s (passed " in live._running(running)

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    [first, *_] = [line for line in lines if line["event"] == "trial"]
    assert (first["case"], first["load"]) == ({"cached_percent": 0}, {"value": 1_000, "unit": "queries/s"})

    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse((tmp_path / "dutperf.prom").read_text())
        for sample in family.samples
    }
    assert samples["dutperf_cached_percent_cached", ()] == 90
    assert samples["dutperf_intended_queries_per_second", ()] == seen.statuses[-1].trying.value  # type: ignore[union-attr]
    assert not [name for name, _ in samples if "frame_size" in name or name.startswith("dutperf_intended_frames")]
    [median] = [
        value
        for (name, labels), value in samples.items()
        if name == "dutperf_result_queries_per_second" and ("cached_percent", "50") in labels
    ]
    assert 0 <= CAPACITY // 2 - median <= RESOLUTION


def test_an_agenda_shows_its_cases(tmp_path: Path) -> None:
    seen = Log()
    run(tmp_path, log=seen)
    agenda = live.Agenda([MEASUREMENT])
    agenda.begin(MEASUREMENT)
    status = next(status for status in seen.statuses if status.case == Case({CACHED: 50}))
    assert agenda.lines(status) == [
        "queries  0 % cached done, 50 % cached: repetition 1 of 3, 90 % cached left",
    ]


def test_a_summary_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    console.result(run(tmp_path))
    out = capsys.readouterr().out
    assert "answered queries/s" in out
    assert "50 % cached: at " in out


def test_a_journal_of_before_is_refused_with_a_sentence(tmp_path: Path) -> None:
    run(tmp_path)
    text = (tmp_path / journal.JOURNAL).read_text()
    (tmp_path / journal.JOURNAL).write_text(text.replace(f'"format": {journal.FORMAT}', '"format": 1', 1))
    for ask in (results.read, ResumedJournal.open):
        with pytest.raises(JournalError, match=f"has format 1, this version reads format {journal.FORMAT}"):
            ask(tmp_path)
    assert suite.SUITE not in [one.name for one in tmp_path.iterdir()]
