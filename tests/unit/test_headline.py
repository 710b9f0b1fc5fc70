# SPDX-License-Identifier: Apache-2.0
"""The first lines of a measurement: what they say where a figure is missing or is not the DUT's, how the trials are
counted, and that the pages of the server have the same ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import simulated_run
from dutperf.api import results
from dutperf.cli import calling
from dutperf.model import Cause, Load, Trial, TrialResult, Verdict
from dutperf.report import html
from dutperf.results import headline, inconsistency
from dutperf.results.deviations import Deviation
from dutperf.results.inconsistency import contradictions
from dutperf.results.points import spread
from dutperf.results.summary import Summary
from dutperf.results.trials import INVALID
from dutperf.setup.conditions import Rate
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from dutperf.web import app
from dutperf.web.access import Rules
from dutperf.web.forms import Places
from dutperf.web.runs import Runs
from dutperf.web.stored import Stored
from plans import measure, plan
from reports import dutperf

CONTRADICT = "passed above one that failed, or failed below one that passed"
SILENT = "nothing came through in 2 trials: was it down for a while?"


def summary_of(tester: SimulatedTester, directory: Path, name: str = "throughput") -> Summary:
    chosen = {"repetitions": 1, "frame_sizes": (84,), "max_rate": Rate.parse("10k")}
    return measure(tester, plan(**chosen), directory, name)


def test_terminal_report_pages_and_notebook_begin_with_the_same_lines(tmp_path: Path) -> None:
    directory = tmp_path / "results" / "gateway"
    first = headline.of_summary(simulated_run.start(directory))
    lines = [*(text for text, _ in first.figures), first.believed]
    assert len(lines) == 3
    terminal = dutperf("show", directory).stdout.splitlines()
    assert terminal[:3] == lines
    assert terminal[3] == f"{first.deviations}, see the report or --verbose"
    found = results.read(directory)
    runs = Runs((directory.parent,))
    server = app.Server(runs, Places(tmp_path, ()), Stored(tmp_path / "store.sqlite"), Rules("a token", "127.0.0.1"))
    [run] = runs.all()
    with TestClient(app.make(server), "http://127.0.0.1:8219") as client:
        pages = [client.get(f"/runs/{run.id}").text, client.get("/").text]
        assert f"throughput: <b>{first.first}</b>" in unescape(pages[1])
        assert f"<td><p>{first.believed}</p></td>" in unescape(pages[1])
    for shown in (pages[0], found._repr_html_(), html.page(found.measured)):
        places = [unescape(shown).index(text) for text in (*lines, first.deviations)]
        assert places == sorted(places)
        assert not 0 <= shown.find("<table") < places[0] or shown is pages[0]


def test_each_deviation_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    summary = simulated_run.start(tmp_path)
    brief, whole = (dutperf("show", tmp_path, *more).stdout for more in ((), ("--verbose",)))
    for one in summary.deviations:
        text = f"deviates from {one.clause}: {one.text}"
        assert (text in brief, text in whole) == (False, True)
    assert "--verbose" not in whole


def test_a_long_cause_is_whole_when_it_is_asked_for(tmp_path: Path) -> None:
    class Misfit(SimulatedTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            cause = Cause(code="dut_mtu", text=f"forward: {'x ' * 200}raise it", lasts=True)
            changed = {"verdict": Verdict.INVALID, "causes": (cause,)}
            return super().run(trial, on_progress).model_copy(update=changed)

    summary_of(Misfit(), tmp_path)
    brief, whole = (dutperf("show", tmp_path, *more).stdout.split() for more in ((), ("--verbose",)))
    assert "raise it" in " ".join(brief)
    assert (brief.count("…"), whole.count("…"), whole.count("x")) == (1, 0, 200)
    assert 30 < brief.count("x") < 100


def test_invalid_trials_are_counted_as_in_the_report(tmp_path: Path) -> None:
    summary = simulated_run.start(tmp_path)
    done = results.read(tmp_path).measured[0].trials()
    invalid = [one for one in done if one.outcome == INVALID]
    again = [
        one
        for one in invalid
        if any(
            (one.case, one.repetition, one.load) == (each.case, each.repetition, each.load)
            for each in done[one.number :]
        )
    ]
    trials = summary.trials
    assert (trials.done, trials.invalid, trials.repeated) == (len(done), len(invalid), len(again))
    assert invalid
    assert (
        f"{len(done)} trials, {len(invalid)} invalid and repeated, in the others each frame left at most "
        in headline.of_summary(summary).believed
    )


def test_a_limit_of_the_tester_is_a_warning(tmp_path: Path) -> None:
    limited = summary_of(SimulatedTester(limits=SimulatedLimits(send_fps=5_000)), tmp_path / "tester")
    [(text, warns)] = headline.of_summary(limited).figures
    assert warns
    assert "(84 bytes), limited by the tester, not the DUT" in text
    assert '<p class="warning"><b>' in html.paragraphs(headline.of_summary(limited))


def test_a_dut_that_forwards_nothing_has_no_figure(tmp_path: Path) -> None:
    dead = summary_of(SimulatedTester(SimulatedDut(capacity_fps=54_321, loss_ratio=1.0)), tmp_path)
    [(text, _)] = headline.of_summary(dead).figures
    assert text.startswith("no figure (84 bytes)")
    assert "DUT" in text


def test_the_rfcs_that_a_run_deviates_from_are_named_once(tmp_path: Path) -> None:
    summary = summary_of(SimulatedTester(SimulatedDut(capacity_fps=5_000)), tmp_path)
    clauses = ("RFC 8219 section 12", "RFC 2544 section 24", "RFC 8219 section 5.3, RFC 2544 section 14")
    told = {
        number: headline.of_summary(
            summary.model_copy(
                update={
                    "deviations": tuple(Deviation(clause=clause, text="") for clause in clauses[:number]),
                    "conditions": {**summary.conditions, "duration_s": duration_s},
                }
            )
        ).deviations
        for number, duration_s in ((0, 60), (1, 60), (3, 5))
    }
    assert told == {
        0: "deviates from no clause that dutperf checks",
        1: "deviates from RFC 8219 in 1 point",
        3: "quick run: deviates from RFC 2544 and RFC 8219 in 3 points",
    }


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((), ""),
        ((5.0,), ""),
        ((46_250.0, 53_788.0, 50_000.0), "46,250–53,788"),
        ((5.0, 5.0), "each 5"),
        ((5.0, None), "nothing–5"),
        ((None, None), "each nothing"),
        ((-2.0, 3.0), "-2 to 3"),
    ],
)
def test_the_spread_of_the_repetitions(values: Sequence[float | None], text: str) -> None:
    assert spread(values, lambda value: f"{value:,.0f}") == text


@pytest.mark.parametrize(
    ("loads", "text"),
    [
        ([(10, "passed"), (20, "failed")], ""),
        (
            [(20, "passed"), (20, "failed"), (20, "failed")],
            "the DUT is inconsistent: 20 frames/s passed in 1 and failed in 2 trials",
        ),
        (
            [(number * 1000, "failed" if number % 2 else "passed") for number in range(1, 13)],
            f"the DUT is inconsistent from 1,000 to 12,000 frames/s: 12 rates {CONTRADICT}",
        ),
        (
            [(20, "not_forwarding"), (10, "not_forwarding"), (20, "passed")],
            f"the DUT is inconsistent from 10 to 20 frames/s: 2 rates {CONTRADICT}; {SILENT}",
        ),
    ],
)
def test_an_inconsistent_dut_is_told_by_the_range(loads: Sequence[tuple[int, str]], text: str) -> None:
    assert inconsistency.sentence(contradictions((Load.fps(fps), outcome) for fps, outcome in loads)) == text


def test_commands_can_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Path("my results/one")
    quoted = ("show 'my results/one'", "report 'my results/one'", "compare before 'my results/one'")
    program = tmp_path / "bin" / "dutperf"
    program.parent.mkdir()
    program.touch(0o755)
    started = {
        str(program): str(program),
        "/usr/lib/dutperf/__main__.py": f"{sys.executable} -m dutperf",
        "a script": "dutperf",
    }
    for argument, name in started.items():
        monkeypatch.setattr(sys, "argv", [argument])
        printed = calling.after_measuring(directory, Path("before"))
        assert printed == tuple(f"{name} {words}" for words in quoted)
        assert tuple(map(calling.as_called, printed)) == printed
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert calling.after_measuring(directory, Path("before")) == tuple(f"dutperf {words}" for words in quoted)
