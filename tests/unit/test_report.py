# SPDX-License-Identifier: Apache-2.0
"""The page that is made of results, of whole ones and of what was cut off; and the commands that
make documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dutperf import file_lock
from dutperf.api import results
from dutperf.api.results import Results
from dutperf.journal import JOURNAL
from dutperf.report import export, html
from dutperf.report.html import REPORT
from dutperf.results.tables import Table
from dutperf.run.suite import SuiteSummary
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import NAT44, SWITCH, measure, plan
from reports import NAMES, STRICT, dutperf, tables_of

pytestmark = STRICT


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed while it wrote its journal."""
    whole = tmp_path / "whole"
    measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(repetitions=2), whole)
    (tmp_path / "killed").mkdir()
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / "killed" / JOURNAL).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    return tmp_path / "killed"


def test_a_bar_in_a_cell_divides_no_cells() -> None:
    text = export.TABLES[export.Format.MARKDOWN](Table("t", ("a|b", "c"), (("x|y", "z"),))).decode()
    assert [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if "z" in line or "a" in line] == [
        [" a\\|b   ", " c   "],
        [" x\\|y   ", " z   "],
    ]


@pytest.mark.parametrize(
    ("config", "texts"),
    [
        (SWITCH, ("ports of the tester; paths: mesh", "<td>eth1</td>", "198.18.0.4/24")),
        ({"left": NAT44["left"]}, ("ports of the tester", "<td>eth1</td>", "198.18.0.2/24")),
    ],
)
def test_other_setups_than_two_ports_are_a_table(killed: Path, config: dict[str, Any], texts: tuple[str, ...]) -> None:
    first, *rest = (killed / JOURNAL).read_bytes().splitlines(keepends=True)
    (killed / JOURNAL).write_bytes(
        b"".join([json.dumps(json.loads(first) | {"config": config}).encode() + b"\n", *rest])
    )
    page = re.sub(r' class="\w+"', "", html.page(results.read(killed).measured))
    assert "The journal has no setup" not in page
    assert all(text in page for text in texts)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_opens_offline_and_runs_nothing(page: str) -> None:
    assert "<script" not in page
    assert set(re.findall(r'https?://[^"\'\s<]+', page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
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
    assert conditions["receiving time after sending, s"] == "0.0"
    assert conditions["frame sizes, bytes with FCS"] == "84, 1518"
    assert conditions["foreground traffic n:m, the rest is native IPv6"] == "2:2"
    found = recorded_throughput(page)
    assert (
        conditions["rate measured at by frame size, frames/s per direction: 84"]
        == f"latency, pdv, ipdv, back-to-back: {found}"
    )


def recorded_throughput(page: str) -> str:
    """Of the smallest frames, as the table has it."""
    heads, first, *_ = tables_of(page)["Results of throughput"]
    return first[heads.index("median")]


def test_each_plot_of_the_page_can_be_drawn_by_its_name(page: str, suite_directory: Path) -> None:
    listed = [line.partition(":")[0] for line in dutperf("plot", suite_directory, "--list").stdout.splitlines()]
    assert set(re.findall(r"Figure <code>([^<]+)</code>", page)) == set(listed)


# --- what is not whole ----------------------------------------------------------------------------


def test_a_killed_run_has_a_report_that_says_so(killed: Path) -> None:
    assert dutperf("report", killed).exit_code == 0
    page = (killed / REPORT).read_text()
    assert re.search(r"<b>throughput:</b> not complete: it was killed or could not write after \d+ trials so far", page)
    shown = dutperf("show", killed)
    assert "throughput is not complete: it was killed or could not write after" in shown.stdout
    assert f"resume with: dutperf resume {killed}" in shown.stdout.replace("\n", "")
    assert sorted(path.name for path in killed.iterdir()) == [JOURNAL, REPORT]


def test_a_run_under_way_can_be_looked_at(killed: Path) -> None:
    with (killed / JOURNAL).open("ab") as journal:
        assert file_lock.take(journal.fileno())
        shown = dutperf("show", killed)
    assert "throughput is running: " in shown.stdout
    assert "dutperf resume" not in shown.stdout


def test_a_run_of_which_only_the_plan_is_there(killed: Path) -> None:
    (killed / JOURNAL).write_bytes((killed / JOURNAL).read_bytes().splitlines(keepends=True)[0])
    assert dutperf("report", killed).exit_code == 0
    assert "No plots: no measurement has a figure" in (killed / REPORT).read_text()
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
    assert "<b>throughput:</b> not complete: it was killed or could not write" in page
    assert "<b>latency:</b> not measured yet" in page
    assert f"resume with: dutperf resume {part}" in dutperf("show", part).stdout.replace("\n", "")


def test_a_whole_suite_is_complete(suite_directory: Path) -> None:
    found = results.read(suite_directory)
    assert isinstance(found, Results)
    assert isinstance(found.summary, SuiteSummary)
    assert found.is_complete
    assert not found.is_under_way
    assert "resume" not in dutperf("show", suite_directory).stdout


# --- commands -------------------------------------------------------------------------------------


def test_plots_and_tables_go_where_they_are_told_to(suite_directory: Path, tmp_path: Path) -> None:
    plotted = dutperf(
        "plot",
        suite_directory,
        "--figure",
        "throughput",
        "--figure",
        "pdv-lateness",
        "--format",
        "pdf",
        "--out",
        tmp_path,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pdv-lateness.pdf", "throughput.pdf"]
    assert plotted.stdout.splitlines() == [str(tmp_path / "throughput.pdf"), str(tmp_path / "pdv-lateness.pdf")]
    for form, ending in (("csv", "csv"), ("parquet", "parquet"), ("latex", "tex"), ("markdown", "md")):
        assert dutperf("export", suite_directory, "--format", form).exit_code == 0
        assert {path.name for path in (suite_directory / "export").glob(f"*.{ending}")} >= {
            f"{name}.{ending}" for name in NAMES
        }


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
    assert f"there is no run in {tmp_path}: it has no {JOURNAL}" in result.stderr


def test_measuring_does_not_wait_for_what_draws() -> None:
    heavy = ("matplotlib", "jinja2", "pyarrow", "tabulate", "prometheus_client")
    program = f"import sys, dutperf.cli; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "[]\n"
