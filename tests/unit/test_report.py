# SPDX-License-Identifier: Apache-2.0
"""The documents that are made of results: each number in them is the summary's, and each can be made of what was cut off."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import documented
import simulated_run
from dutperf import procedure
from dutperf.cli import app, results
from dutperf.cli.results import Results
from dutperf.conditions import Rate
from dutperf.journal import JOURNAL
from dutperf.model import Delays, TrialResult, Verdict
from dutperf.report import export, figures, html, tables, trials
from dutperf.report.charts import Chart, Curve, Mark
from dutperf.report.html import REPORT
from dutperf.report.measured import Measured
from dutperf.suite import SuiteSummary
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import counts, measure, plan

NAMES = tuple(documented.MEASURED)
pytestmark = pytest.mark.filterwarnings("error:constrained_layout not applied", "error::pytest.PytestUnraisableExceptionWarning")


def dutperf(*arguments: str | Path) -> Result:
    """On a terminal that is wide enough."""
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def suite_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = documented.measure(tmp_path_factory.mktemp("report") / "suite")
    results.write_report(directory)
    return directory


@pytest.fixture(scope="module")
def page(suite_directory: Path) -> str:
    return (suite_directory / REPORT).read_text()


@pytest.fixture(scope="module")
def measured(suite_directory: Path) -> dict[str, Measured]:
    return {one.name: one for one in results.read(suite_directory).measured}


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed while it wrote its journal."""
    whole = tmp_path / "whole"
    measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(repetitions=2), whole)
    (tmp_path / "killed").mkdir()
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / "killed" / JOURNAL).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    return tmp_path / "killed"


# --- one set of numbers ----------------------------------------------------------------------------------------------------------------------


class Tables(HTMLParser):
    """The cells of a page's tables, by the label of the region that they are in."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self._label = ""
        self._cell: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("role") == "region":
            self._label = str(given["aria-label"])
            self.rows[self._label] = []
        elif tag == "tr":
            self.rows[self._label].append([])
        elif tag in ("th", "td"):
            self._cell = ""

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td") and self._cell is not None:
            self.rows[self._label][-1].append(self._cell)
            self._cell = None


def tables_of(page: str) -> dict[str, list[list[str]]]:
    parser = Tables()
    parser.feed(page)
    return parser.rows


def recorded(directory: Path, name: str) -> list[dict[str, Any]]:
    """The points of a measurement as its own summary.json has them."""
    points: list[dict[str, Any]] = json.loads((directory / name / "summary.json").read_text())["points"]
    return points


def numbers(value: Any) -> Counter[float]:
    """Every number in it, how often."""
    if isinstance(value, dict | list):
        return sum((numbers(inner) for inner in (value.values() if isinstance(value, dict) else value)), Counter())
    return Counter([float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else [])


def cells(of: tables.Table) -> list[list[str]]:
    return [list(of.heads), *map(list, of.rows)]


@pytest.mark.parametrize("name", NAMES)
def test_every_table_of_results_has_the_same_cells(name: str, suite_directory: Path, measured: dict[str, Measured], page: str) -> None:
    summary = measured[name].summary
    assert summary is not None
    shown = tables.results(summary)
    assert [row[2:] for row in shown.rows] == [row for point in summary.points for row in point.rows()]
    assert tables_of(page)[f"Results of {name}"] == cells(shown)
    terminal = re.sub(r"[┃│]", "|", dutperf("show", suite_directory / name).stdout)
    markdown = export.TABLES[export.Format.MARKDOWN](shown).decode()
    latex = export.TABLES[export.Format.LATEX](shown).decode().replace("\\%", "%").replace(r"\\", "")
    for row in shown.rows:
        assert list(row) in [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown.splitlines()] or "" in row
        assert list(row) in [[cell.strip() for cell in line.split("&")] for line in latex.splitlines()]
        assert all(cell in terminal for cell in row)


@pytest.mark.parametrize("name", NAMES)
def test_exports_have_every_number_of_the_summary_and_no_other(name: str, suite_directory: Path, measured: dict[str, Measured]) -> None:
    points = recorded(suite_directory, name)
    summary = measured[name].summary
    assert summary is not None
    assert [point.model_dump(mode="json") for point in summary.points] == points
    records = tables.records(summary)
    once = set(numbers(points))
    assert set(numbers(records)) == once
    if type(summary.points[0]).series is None:
        assert numbers(records) == numbers(points)
    words = {name for record in records for name, value in record.items() if isinstance(value, str)}
    assert set(read_csv(export.RECORDS[export.Format.CSV](records).decode(), words)) == once
    parquet = pyarrow.parquet.read_table(io.BytesIO(export.RECORDS[export.Format.PARQUET](records))).to_pylist()
    assert parquet == records


def read_csv(text: str, words: set[str]) -> Iterator[float]:
    """The numbers of all columns but those of ``words``."""
    for row in csv.DictReader(io.StringIO(text)):
        for name, cell in row.items():
            if name not in words:
                yield from (float(part) for part in cell.split(";") if part not in ("", "True", "False"))


@pytest.mark.parametrize("name", NAMES)
def test_plots_of_results_have_the_summary_s_numbers(name: str, measured: dict[str, Measured]) -> None:
    one = measured[name]
    assert one.summary is not None
    points = [point.model_dump(mode="json") for point in one.summary.points]
    known = set(numbers([points, one.summary.conditions["ranges"]]))
    charts = type(one.summary.points[0]).charts(one.summary.points, one.summary.conditions["ranges"])
    drawn = {value for chart in charts for curve in chart.curves for value in (*curve.y, *(end for bar in curve.bars for end in bar))}
    assert drawn
    assert drawn <= known | {value * 100 for value in known}
    medians = {point[1] for point in tables.flat(points) if point[0].endswith(".median") and "conditional" not in point[0]}
    if name in ("throughput", "latency", "ipdv"):
        assert medians <= drawn


@pytest.mark.parametrize("name", [definition.name for definition in procedure.ALL if definition.name not in NAMES])
def test_every_other_procedure_has_its_page_too(name: str, tmp_path: Path) -> None:
    summary = simulated_run.start(tmp_path, name)
    [one] = results.read(tmp_path).measured
    assert one.summary == summary
    page = html.page([one])
    assert tables_of(page)[f"Results of {name}"] == cells(tables.results(summary))
    known = set(numbers([point.model_dump(mode="json") for point in summary.points]))
    assert set(numbers(tables.records(summary))) == known
    drawn = {y for chart in one.result_charts()[:1] for curve in chart.curves for y in curve.y}
    assert drawn <= known
    assert bool(drawn) == any(point.has_number for point in summary.points)


def test_the_report_and_the_summary_know_the_same_deviations(page: str, measured: dict[str, Measured]) -> None:
    rows = tables_of(page)["Deviations"]
    for one in measured.values():
        assert one.summary is not None
        for deviation in one.summary.deviations:
            assert any(row[0] == deviation.clause and row[1].startswith(deviation.text) for row in rows)


def test_show_says_what_the_summaries_say(suite_directory: Path) -> None:
    assert json.loads(dutperf("show", suite_directory, "--json").stdout) == json.loads((suite_directory / "summary.json").read_text())
    one = dutperf("show", suite_directory / "pdv", "--json").stdout
    assert json.loads(one) == json.loads((suite_directory / "pdv" / "summary.json").read_text())


def test_every_trial_stands_in_the_report_and_in_the_export(suite_directory: Path, measured: dict[str, Measured], page: str) -> None:
    in_page = tables_of(page)
    dutperf("export", suite_directory, "--trials")
    for name, one in measured.items():
        done = one.trials()
        in_journal = [event for event in one.events if event["event"] == "result"]
        assert [trial.result.verdict for trial in done] == [event["result"]["verdict"] for event in in_journal]
        assert len(in_page[f"Trials of {name}"]) == len(done) + 1
        exported = list(csv.DictReader((suite_directory / "export" / f"{name}-trials.csv").open()))
        assert [int(row["forward.lost"]) for row in exported] == [event["result"]["forward"]["lost"] for event in in_journal]
        assert [row["verdict"] for row in exported] == [event["result"]["verdict"] for event in in_journal]
    assert any(trial.outcome == "invalid" for one in measured.values() for trial in one.trials())


flat_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(flat_json)
def test_nothing_gets_lost_when_figures_are_laid_flat(value: Any) -> None:
    assert sum((numbers(leaf) for _, leaf in tables.flat(value)), Counter()) == numbers(value)


# --- what is drawn ---------------------------------------------------------------------------------------------------------------------------


def chart_of(one: Measured, name: str = "") -> Chart:
    return next(chart for chart in one.result_charts() + one.course_charts() if chart.name == name)


def test_throughput_is_plotted_with_the_media_s_line(measured: dict[str, Measured]) -> None:
    *goals, theory = chart_of(measured["throughput"]).curves
    assert [goal.label for goal in goals] == ["at most 0 % lost", "at most 0.5 % lost"]
    assert (theory.kind, theory.x, theory.y) == ("reference", (84, 1518), (documented.MEDIA_FPS,) * 2)


def test_a_point_that_the_tester_limits_is_marked_as_such(tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(send_fps=20_000))
    measure(tester, plan(documented.MEDIA_FPS, max_rate=Rate.parse("50k")), tmp_path)
    [one] = results.read(tmp_path).measured
    rings = next(curve for curve in chart_of(one).curves if curve.kind == "rings")
    assert rings.label == "limited by the tester, not the DUT"
    assert rings.x == (84,)
    assert 'class="warning">84 bytes: limited by the tester, not the DUT: ' in html.page([one])


def test_frame_loss_is_plotted_over_the_share_of_the_media_s_maximum(measured: dict[str, Measured], tmp_path: Path) -> None:
    chart = chart_of(measured["frame-loss"])
    assert (chart.x_range, chart.y_range) == ((0, 100), (0, 100))
    assert chart.curves[0].x[0] == pytest.approx(100)
    measure(SimulatedTester(), plan(rates=(Rate.parse("5k"),), repetitions=1), tmp_path, "frame-loss")
    [unknown] = results.read(tmp_path).measured
    assert (chart_of(unknown).x_range, chart_of(unknown).curves[0].x) == ((0, None), (5000,))
    assert "frames/s" in chart_of(unknown).x_label


def test_the_path_of_a_search_says_how_each_trial_ended(measured: dict[str, Measured]) -> None:
    one = measured["throughput"]
    line, *dots = chart_of(one, "path-84").curves
    trials = [trial for trial in one.trials() if trial.frame_size == 84]
    assert line.y == tuple(trial.rate_fps for trial in trials)
    assert {curve.label: len(curve.x) for curve in dots} == {name: sum(trial.outcome == name for trial in trials) for name in ("passed", "failed", "invalid")}
    for trial in trials:
        lost = trial.result.worst_loss_ratio
        assert trial.outcome == ("invalid" if trial.result.causes else "failed" if lost else "passed")


def test_delays_are_drawn_as_far_as_they_are_known(measured: dict[str, Measured]) -> None:
    chart = chart_of(measured["latency"], "delays-84")
    assert [mark.label for mark in chart.marks] == ["TL", "WCL"]
    first = next(event for event in measured["latency"].events if event["event"] == "result" and event["result"]["verdict"] == "valid")
    delays = first["result"]["forward"]["delay_us"]
    drawn = set(zip(chart.curves[0].x, chart.curves[0].y, strict=True))
    quantiles = {"min": 0.0, "p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
    assert drawn > {(delays[name] / 1000, share) for name, share in quantiles.items()}
    assert chart.curves[0].y == tuple(sorted(chart.curves[0].y))


def test_a_histogram_has_every_frame_once(measured: dict[str, Measured]) -> None:
    chart = chart_of(measured["pdv"], "histogram-84")
    assert [curve.label for curve in chart.curves] == ["forward", "reverse"]
    for curve in chart.curves:
        assert sum(curve.y) == pytest.approx(100)
    points = measured["pdv"].summary.points  # type: ignore[union-attr]
    middle = sum(share for end, share in zip(chart.curves[0].x, chart.curves[0].y, strict=True) if end <= points[0].forward["median"].median)  # type: ignore[attr-defined]
    assert middle == pytest.approx(50, abs=5)


def test_a_distribution_that_is_not_known_is_not_made_up() -> None:
    delays = Delays(min=1, p50=2, p99=3, p999=4, max=5)
    result = TrialResult(trial=0, verdict=Verdict.VALID, forward=counts(delay_us=delays))
    done = [trials.Done(1, 84, 1, 1, 1000, result, trials.PASSED)]
    distribution, histogram = trials.delay_charts(done, ())
    assert distribution.curves[0].x == (0.001, 0.002, 0.003, 0.004, 0.005)
    assert "nothing is known" in distribution.caption
    assert not histogram.has_points


MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.mark.parametrize("form", MAGIC)
def test_a_plot_is_a_file_of_its_format_and_the_same_each_time(form: figures.Format, measured: dict[str, Measured]) -> None:
    chart = chart_of(measured["pdv"])
    drawn = figures.write(chart, form)
    assert drawn.startswith(MAGIC[form])
    assert drawn == figures.write(chart, form)


def test_what_is_drawn_is_where_the_numbers_are(measured: dict[str, Measured]) -> None:
    for chart in chart_of(measured["frame-loss"]), chart_of(measured["latency"]), chart_of(measured["throughput"], "path-84"):
        [axes] = figures.draw(chart).axes
        drawn = {line.get_label(): line for line in axes.get_lines()} | {bars.get_label(): bars.lines[0] for bars in axes.containers}
        low, high = axes.get_ylim()
        for curve in chart.curves:
            if curve.x:
                assert tuple(drawn[curve.label].get_xdata()) == curve.x
                assert tuple(drawn[curve.label].get_ydata()) == curve.y
            assert all(low <= y <= high for y in curve.y)


EXTREME = [
    pytest.param(Chart("", "one point", "x", "y", (Curve("a", (84.0,), (1.0,), ((1.0, 1.0),)),), x_scale="octaves"), id="one point"),
    pytest.param(Chart("", "nothing", "x", "y", (Curve("a", (1.0, 2.0), (0.0, 0.0)),), x_scale="counts"), id="zeros"),
    pytest.param(Chart("", "below zero", "x", "y", (Curve("a", (1.0, 2.0), (-1e-9, 1e9)),), x_scale="counts"), id="below zero"),
    pytest.param(Chart("", "decades", "x", "y", (Curve("a", (1e-6, 1e6), (1e-6, 1e9)),), x_scale="log", y_scale="log"), id="decades"),
    pytest.param(
        Chart("", "all sizes", "x", "y", tuple(Curve(f"{size} bytes", (84.0, 9216.0), (1.0, size)) for size in range(13)), x_scale="octaves"), id="13 sizes"
    ),
    pytest.param(Chart("", "quantiles", "x", "y", (Curve("a", (1.0, 2.0), (0.0, 1.0), kind="bundle"),), y_scale="nines", marks=(Mark("TL", 0.5),)), id="nines"),
]


@pytest.mark.parametrize("chart", EXTREME)
@pytest.mark.filterwarnings("error")
def test_charts_that_could_go_wrong_are_drawn(chart: Chart) -> None:
    figure = figures.draw(chart)
    figure.draw_without_rendering()
    [axes] = figure.axes
    assert all(math.isfinite(end) for end in (*axes.get_xlim(), *axes.get_ylim()))
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert box.y1 < axes.get_tightbbox().y0
    assert figures.embedded(chart, "p").startswith("<svg")


# --- the page --------------------------------------------------------------------------------------------------------------------------------


def test_the_page_opens_offline_and_runs_nothing(page: str) -> None:
    assert "<script" not in page
    assert set(re.findall(r'https?://[^"\'\s<]+', page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"(src|@import|url\((?!#))", re.sub(r"&[a-z#0-9]+;", "", page.split("<main>")[0]))
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    references = set(re.findall(r'(?:url\(#|href="#)([^")]+)', page))
    assert references <= set(identifiers)


def test_the_page_follows_the_reader_s_colours(page: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) > 20
    for drawing in drawings:
        assert "currentColor" in drawing
        assert not re.search(r"#[0-9a-f]{6}\b", drawing)
    used = set(re.findall(r"var\((--[a-z]+(?:-\d)?)\)", "".join(drawings)))
    light, dark = page.split("prefers-color-scheme: dark", 1)
    assert used
    assert all(f"{name}:" in light and f"{name}:" in dark for name in used)


def test_the_page_says_what_was_measured_and_how(page: str) -> None:
    assert "<script" not in page
    assert "DUT: gateway &lt;&amp;&gt; of a test 1.2" in page
    for address in ("2001:2::2/64", "198.19.0.2/24", "2001:2::1", "198.19.0.1", "2001:2:0:1000::2"):
        assert address in page
    conditions = {row[0]: row[1] for row in tables_of(page)["Conditions"]}
    assert conditions["sending time of a trial, s"] == "throughput, latency, pdv, ipdv, frame-loss: 0.5"
    assert conditions["receiving goes on after sending, s"] == "0.0"
    assert conditions["frame sizes, bytes with FCS"] == "84, 1518"
    assert conditions["foreground traffic: of n frames …"] == "2"
    found = recorded_throughput(page)
    assert conditions["rate measured at by frame size, frames/s per direction: 84"] == f"latency, pdv, ipdv, back-to-back: {found}"


def recorded_throughput(page: str) -> str:
    """Of the smallest frames, as the table has it."""
    heads, first, *_ = tables_of(page)["Results of throughput"]
    return first[heads.index("median")]


def test_each_plot_of_the_page_can_be_drawn_by_its_name(page: str, suite_directory: Path) -> None:
    listed = [line.partition(":")[0] for line in dutperf("plot", suite_directory, "--list").stdout.splitlines()]
    assert set(re.findall(r"Figure <code>([^<]+)</code>", page)) == set(listed)


# --- what is not whole -----------------------------------------------------------------------------------------------------------------------


def test_a_killed_run_has_a_report_that_says_so(killed: Path) -> None:
    assert dutperf("report", killed).exit_code == 0
    page = (killed / REPORT).read_text()
    assert re.search(r"<b>throughput:</b> not complete: it was killed after \d+ trials so far", page)
    shown = dutperf("show", killed)
    assert "throughput is not complete: it was killed after" in shown.stdout
    assert f"go on with: dutperf resume {killed}" in shown.stdout.replace("\n", "")
    assert sorted(path.name for path in killed.iterdir()) == [JOURNAL, REPORT]


def test_a_run_under_way_can_be_looked_at(killed: Path) -> None:
    with (killed / JOURNAL).open("ab") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        shown = dutperf("show", killed)
    assert "throughput is under way: " in shown.stdout
    assert "dutperf resume" not in shown.stdout


def test_a_run_of_which_only_the_plan_is_there(killed: Path) -> None:
    (killed / JOURNAL).write_bytes((killed / JOURNAL).read_bytes().splitlines(keepends=True)[0])
    assert dutperf("report", killed).exit_code == 0
    assert "There is nothing to plot" in (killed / REPORT).read_text()
    assert "not measured" in dutperf("show", killed).stdout
    result = dutperf("plot", killed)
    assert (result.exit_code, result.stderr) == (2, "dutperf: there is nothing to plot: no trial has a result\n")
    assert dutperf("export", killed).exit_code == 0


def test_a_suite_that_was_cut_off(suite_directory: Path, tmp_path: Path) -> None:
    part = tmp_path / "suite"
    (part / "throughput").mkdir(parents=True)
    (part / "suite.json").write_bytes((suite_directory / "suite.json").read_bytes())
    lines = (suite_directory / "throughput" / JOURNAL).read_bytes().splitlines(keepends=True)
    (part / "throughput" / JOURNAL).write_bytes(b"".join(lines[:-1]))
    found = results.read(part)
    assert [one.note for one in found.measured] == [None] + [results.NOT_YET] * 5
    assert not found.is_complete
    page = html.page(found.measured)
    assert "<b>throughput:</b> not complete: it was killed" in page
    assert "<b>latency:</b> not measured yet" in page
    assert f"go on with: dutperf resume {part}" in dutperf("show", part).stdout.replace("\n", "")


def test_a_whole_suite_is_complete(suite_directory: Path) -> None:
    found = results.read(suite_directory)
    assert isinstance(found, Results)
    assert isinstance(found.summary, SuiteSummary)
    assert found.is_complete
    assert not found.is_under_way
    assert "resume" not in dutperf("show", suite_directory).stdout


# --- commands --------------------------------------------------------------------------------------------------------------------------------


def test_plots_and_tables_go_where_they_are_told_to(suite_directory: Path, tmp_path: Path) -> None:
    plotted = dutperf("plot", suite_directory, "--figure", "throughput", "--figure", "pdv-lateness", "--format", "pdf", "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pdv-lateness.pdf", "throughput.pdf"]
    assert plotted.stdout.splitlines() == [str(tmp_path / "throughput.pdf"), str(tmp_path / "pdv-lateness.pdf")]
    for form, ending in (("csv", "csv"), ("parquet", "parquet"), ("latex", "tex"), ("markdown", "md")):
        assert dutperf("export", suite_directory, "--format", form).exit_code == 0
        assert {path.name for path in (suite_directory / "export").glob(f"*.{ending}")} >= {f"{name}.{ending}" for name in NAMES}


WRONG = [
    (("plot", "--figure", "througput"), "--figure: there is no figure througput; did you mean throughput?"),
    (("plot", "--figure", "x"), "--figure: there is no figure x; there are throughput, "),
    (("export", "--trials", "--format", "latex"), "--format: trials are exported as csv or parquet, not as latex"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_what_cannot_be_is_said_in_a_sentence(arguments: tuple[str, ...], said: str, suite_directory: Path) -> None:
    result = dutperf(*arguments, suite_directory)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"dutperf: {said}")


@pytest.mark.parametrize("command", ["show", "report", "plot", "export"])
def test_a_directory_without_results(command: str, tmp_path: Path) -> None:
    result = dutperf(command, tmp_path)
    assert result.exit_code == 2
    assert f"cannot read {tmp_path / JOURNAL}" in result.stderr


def test_measuring_does_not_wait_for_what_draws() -> None:
    heavy = ("matplotlib", "jinja2", "pyarrow", "tabulate")
    program = f"import sys, dutperf.cli; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "[]\n"
