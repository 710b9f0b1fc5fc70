# SPDX-License-Identifier: Apache-2.0
"""Each number in a document that is made of results is the summary's."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulated_run
from dutperf import procedures
from dutperf.api import results
from dutperf.journal import ResultEvent
from dutperf.report import export, html
from dutperf.report.html import REPORT
from dutperf.results import environments, headline, tables
from dutperf.results.measured import Measured
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import measure
from reports import NAMES, STRICT, cells, dutperf, numbers, tables_of

pytestmark = STRICT


def recorded(directory: Path, name: str) -> list[dict[str, Any]]:
    """The points of a measurement as its own summary.json has them."""
    points: list[dict[str, Any]] = json.loads((directory / name / "summary.json").read_text())["points"]
    return points


@pytest.mark.parametrize("name", NAMES)
def test_every_table_of_results_has_the_same_cells(
    name: str, suite_directory: Path, measured: dict[str, Measured], page: str
) -> None:
    summary = measured[name].summary
    assert summary is not None
    shown = tables.results(summary)
    assert [row[2:] for row in shown.rows] == [row for point in summary.points for row in point.rows()]
    assert tables_of(page)[f"Results of {name}"] == cells(shown)
    terminal = re.sub(r"[┃│]", "|", dutperf("show", suite_directory / name).stdout)
    markdown = export.TABLES[export.Format.MARKDOWN](shown).decode()
    latex = export.TABLES[export.Format.LATEX](shown).decode().replace("\\%", "%").replace(r"\\", "")
    for row in shown.rows:
        assert (
            list(row) in [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown.splitlines()]
            or "" in row
        )
        assert list(row) in [[cell.strip() for cell in line.split("&")] for line in latex.splitlines()]
        assert all(cell in terminal for cell in row)


@pytest.mark.parametrize("name", NAMES)
def test_exports_have_every_number_of_the_summary_and_no_other(
    name: str, suite_directory: Path, measured: dict[str, Measured]
) -> None:
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
    drawn = {
        value
        for chart in charts
        for curve in chart.curves
        for value in (*curve.y, *(end for bar in curve.bars for end in bar))
    }
    assert drawn
    assert drawn <= known | {value * 100 for value in known}
    medians = {
        point[1]
        for point in environments.flat(points)
        if point[0].endswith(".median") and "conditional" not in point[0]
    }
    if name in ("throughput", "latency", "ipdv"):
        assert medians <= drawn


@pytest.mark.parametrize("name", procedures.NAMES)
def test_every_procedure_says_the_same_everywhere(name: str, tmp_path: Path) -> None:
    """Page, tables, terminal, exports, JSON and objects of one directory; also where it stands
    alone."""
    dut = SimulatedDut(
        capacity_fps=54_321,
        addresses=simulated_run.TABLE,
        jitter_us=30,
        outage_s=(1.2, 1.6) if name == "reset" else None,
    )
    summary = measure(SimulatedTester(dut), simulated_run.a_plan(name), tmp_path, name)
    [one] = results.read(tmp_path).measured
    assert one.summary == summary
    assert all(point.has_number for point in summary.points)
    known = set(numbers([point.model_dump(mode="json") for point in summary.points]))
    assert (
        json.loads((tmp_path / "summary.json").read_text())
        == json.loads(dutperf("show", tmp_path, "--json").stdout)
        == summary.model_dump(mode="json")
    )
    assert dutperf("report", tmp_path).exit_code == 0
    shown = tables.results(summary)
    assert tables_of((tmp_path / REPORT).read_text())[f"Results of {name}"] == cells(shown)
    terminal = dutperf("show", tmp_path).stdout
    assert all(cell in terminal for row in shown.rows for cell in row)
    first = headline.of_summary(summary)
    for place in (terminal, unescape((tmp_path / REPORT).read_text()), unescape(html.table_of(one))):
        assert [place.count(text) for text in (*(text for text, _ in first.figures), first.believed)] == [
            *(1 for _ in summary.points),
            1,
        ]
    evidence = " ".join(
        (*(cell for row in shown.rows for cell in row), *(text for text, _ in tables.messages(summary)))
    )
    for text, _ in first.figures:
        number = re.match(r"[\d.,]*\d", text)
        assert number is not None, text
        assert number[0] in evidence
    records = one.records(of_trials=False)
    assert set(numbers(records)) == known
    words = {column for record in records for column, value in record.items() if isinstance(value, str)}
    for form in ("csv", "parquet"):
        assert dutperf("export", tmp_path, "--format", form).exit_code == 0
    assert set(read_csv((tmp_path / "export" / f"{name}.csv").read_text(), words)) == known
    assert pyarrow.parquet.read_table(tmp_path / "export" / f"{name}.parquet").to_pylist() == records
    drawn = {y for chart in one.result_charts()[:1] for curve in chart.curves for y in curve.y}
    assert drawn
    assert drawn <= known | {value * 100 for value in known}


def test_the_report_and_the_summary_know_the_same_deviations(page: str, measured: dict[str, Measured]) -> None:
    rows = tables_of(page)["Deviations"]
    for one in measured.values():
        assert one.summary is not None
        for deviation in one.summary.deviations:
            assert any(row[0] == deviation.clause and row[1].startswith(deviation.text) for row in rows)


def test_show_says_what_the_summaries_say(suite_directory: Path) -> None:
    assert json.loads(dutperf("show", suite_directory, "--json").stdout) == json.loads(
        (suite_directory / "summary.json").read_text()
    )
    one = dutperf("show", suite_directory / "pdv", "--json").stdout
    assert json.loads(one) == json.loads((suite_directory / "pdv" / "summary.json").read_text())


def test_every_trial_stands_in_the_report_and_in_the_export(
    suite_directory: Path, measured: dict[str, Measured], page: str
) -> None:
    in_page = tables_of(page)
    dutperf("export", suite_directory, "--trials")
    for name, one in measured.items():
        done = one.trials()
        in_journal = [event.result for event in one.events if isinstance(event, ResultEvent)]
        assert [trial.result.verdict for trial in done] == [result.verdict for result in in_journal]
        assert len(in_page[f"Trials of {name}"]) == len(done) + 1
        exported = list(csv.DictReader((suite_directory / "export" / f"{name}-trials.csv").open()))
        assert [int(row["forward.lost"]) for row in exported] == [
            result.forward.lost for result in in_journal if result.forward is not None
        ]
        assert [row["verdict"] for row in exported] == [result.verdict for result in in_journal]
    assert any(trial.outcome == "invalid" for one in measured.values() for trial in one.trials())


flat_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(flat_json)
def test_nothing_gets_lost_when_figures_are_laid_flat(value: Any) -> None:
    assert sum((numbers(leaf) for _, leaf in environments.flat(value)), Counter()) == numbers(value)
