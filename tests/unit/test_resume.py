# SPDX-License-Identifier: Apache-2.0
"""A run that was cut off at any moment goes on, measures nothing twice, and ends as it would have
ended."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import simulated_run
from dutperf import journal, procedures
from dutperf.journal import JOURNAL, EndEvent, JournalError, JournalWriter, ResumedJournal, WriteError
from dutperf.machine import host
from dutperf.model import Trial, TrialResult
from dutperf.results import summary as report
from dutperf.results import tables
from dutperf.results.summary import SUMMARY
from dutperf.run import campaign
from dutperf.run.campaign import Summary
from dutperf.setup.conditions import Rate
from dutperf.statistics.stopping import Auto
from dutperf.tester import ProgressCallback, TesterError
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Counting, CountingDevice, Log, journal_lines, measure, plan, plan_event, resume
from simulated_run import a_plan, a_tester, go_on, start

KILLS = [
    ("throughput", 1),
    ("frame-loss", 1),
    *(pytest.param(name, 60, marks=pytest.mark.long) for name in ("throughput", "frame-loss", "latency")),
]
SERVER = multiprocessing.get_context("forkserver")
"""Starts processes that have the package loaded already."""
SERVER.set_forkserver_preload(["simulated_run"])


def timeless(summary: Summary) -> dict[str, Any]:
    """A summary without what differs from run to run."""
    told = summary.model_dump(mode="json")
    del told["environment"]["started"]
    return told


def write_summary(directory: Path) -> Summary:
    """From the journal, as its procedure has it."""
    name = journal.plan_of(journal.read(directory)).procedure
    return report.write_summary(directory, procedures.find(name))


def kinds(directory: Path) -> list[str]:
    return [event["event"] for event in journal_lines(directory)]


def course(directory: Path) -> list[dict[str, Any]]:
    """The events that a procedure comes past, without their times."""
    events = [{name: value for name, value in event.items() if name != "time"} for event in journal_lines(directory)]
    return [event for event in events if event["event"] in ("result", "search", "rate", "series", "delays", "times")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run, uninterrupted."""
    return uninterrupted(tmp_path_factory.mktemp("whole"))


def uninterrupted(directory: Path, name: str = "throughput") -> Path:
    start(directory, name)
    return directory


def cut(whole: Path, directory: Path, length: int) -> Path:
    """``whole`` as it would be if it had been killed when its journal had ``length`` bytes."""
    directory.mkdir(exist_ok=True)
    (directory / JOURNAL).write_bytes((whole / JOURNAL).read_bytes()[:length])
    return directory


def command(directory: Path) -> list[str]:
    return [sys.executable, simulated_run.__file__, str(directory)]


def journal_size(directory: Path) -> int:
    return (directory / JOURNAL).stat().st_size if (directory / JOURNAL).exists() else -1


def killed_at(directory: Path, size: int, name: str) -> bool:
    """Start or go on, kill it when its journal has ``size`` bytes; whether that was before its end."""
    process = SERVER.Process(target=simulated_run.advance, args=(directory, name))
    process.start()
    while process.is_alive() and journal_size(directory) < size:
        time.sleep(0)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@pytest.mark.parametrize(("name", "most"), KILLS)
def test_killed_at_any_moment_it_ends_with_the_same_summary(name: str, most: int, tmp_path: Path) -> None:
    """A run is killed, and while it goes on killed again, until it is complete; then the next."""
    whole = uninterrupted(tmp_path / "whole", name)
    moments, full = random.Random(5), journal_size(whole)
    kills = runs = 0
    while kills < most:
        runs += 1
        directory = tmp_path / str(runs)
        while killed_at(directory, max(0, journal_size(directory)) + moments.randrange(full // 3), name):
            kills += 1
            if (directory / JOURNAL).exists() and b"\n" not in (directory / JOURNAL).read_bytes():
                (directory / JOURNAL).unlink()  # killed before it began: there is nothing to go on with
        assert course(directory) == course(whole)
        assert timeless(write_summary(directory)) == timeless(write_summary(whole))
        assert (
            json.loads((directory / SUMMARY).read_text())["points"]
            == json.loads((whole / SUMMARY).read_text())["points"]
        )


@pytest.mark.parametrize("places", [2, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", procedures.NAMES)
def test_every_procedure_goes_on_from_any_event_with_the_conditions_in_its_journal(
    name: str, places: int, tmp_path: Path
) -> None:
    whole = uninterrupted(tmp_path / "whole", name)
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    expected = course(whole)
    for length in random.Random(f"{name} {places}").sample(range(1, len(lines)), min(places, len(lines) - 1)):
        directory = cut(whole, tmp_path / str(length), sum(map(len, lines[:length])))
        assert timeless(go_on(directory)) == timeless(write_summary(whole)), length
        assert course(directory) == expected, length


DECIDING = [
    {"search": "mlr", "goals": (0.0, 0.005), "max_rate": Rate.parse("70k"), "repetitions": 2},
    {"repetitions": Auto(minimum=6, maximum=8)},
]


@pytest.mark.parametrize("conditions", DECIDING, ids=["MLRsearch", "auto"])
def test_what_decides_by_results_decides_the_same_again(conditions: dict[str, Any], tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    measure(a_tester([]), plan(duration_s=0.5, seed=3, **conditions), whole)
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    for length in range(1, len(lines), 1 + len(lines) // 12):
        directory = cut(whole, tmp_path / str(length), sum(map(len, lines[:length])))
        assert timeless(go_on(directory)) == timeless(write_summary(whole))
        assert course(directory) == course(whole)


def test_what_the_dut_counted_stays_with_its_trial(tmp_path: Path) -> None:
    """Also where the DUT was set up anew meanwhile and counts from 0."""

    def counting() -> tuple[SimulatedTester, campaign.Plan]:
        tester = Counting(SimulatedDut(capacity_fps=54_321))
        return tester, replace(plan(duration_s=0.5), dut=CountingDevice(tester.dut_losses))

    whole = tmp_path / "whole"
    measure(*counting(), whole)
    counted = [event["result"]["dut_losses"] for event in course(whole) if event["event"] == "result"]
    assert any(one["forward"] for one in counted)
    directory = cut(whole, tmp_path / "cut", journal_size(whole) // 2)
    with ResumedJournal.open(directory) as recorded:
        resume(*counting(), recorded, Log())
    assert [event["result"]["dut_losses"] for event in course(directory) if event["event"] == "result"] == counted


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1), again=st.floats(0, 1))
def test_a_journal_that_ends_at_any_byte_goes_on(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, share: float, again: float
) -> None:
    first = (whole / JOURNAL).read_bytes().index(b"\n") + 1
    once = cut(whole, tmp_path_factory.mktemp("cut"), first + round(share * (journal_size(whole) - first)))
    finished = kinds(once).count("result")
    assume(not journal.end_of(journal.read(once)))
    go_on(once)
    assert timeless(write_summary(once)) == timeless(write_summary(whole))
    twice = cut(once, tmp_path_factory.mktemp("again"), first + round(again * (journal_size(once) - first)))
    if not journal.end_of(journal.read(twice)):
        go_on(twice)
    assert course(twice) == course(whole)
    assert kinds(once).count("result") == kinds(whole).count("result")
    assert kinds(once)[: kinds(once).index("resumed")].count("result") == finished


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_last_line_that_is_torn_at_any_byte_is_cut(step: int, tmp_path: Path) -> None:
    """Short lines: the end of a small run."""
    small, few = tmp_path / "small", plan(max_rate=Rate.parse("1000"), repetitions=2)
    measure(SimulatedTester(), few, small)
    lines = (small / JOURNAL).read_bytes().splitlines(keepends=True)
    kept = sum(map(len, lines[:-2]))
    for length in range(kept, kept + len(lines[-2]), step):
        torn = cut(small, tmp_path / "torn", length)
        with ResumedJournal.open(torn) as recorded:
            resume(SimulatedTester(trials=[]), few, recorded, Log())
        assert kinds(torn)[-3:] == ["resumed", "search", "end"]
        assert timeless(write_summary(torn)) == timeless(write_summary(small))


def test_what_was_finished_is_neither_run_nor_shown_nor_written_again(whole: Path, tmp_path: Path) -> None:
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    directory = cut(whole, tmp_path, sum(map(len, lines[:41])))
    finished = kinds(directory).count("result")
    log = Log()
    with ResumedJournal.open(directory) as recorded:
        tester = a_tester(recorded.events)
        resume(tester, a_plan(), recorded, log)
    assert len(tester.trials) == kinds(whole).count("result")
    assert min(status.trials_done for status in log.statuses) >= finished - 1
    assert (directory / JOURNAL).read_bytes().startswith(b"".join(lines[:41]))
    assert kinds(directory).count("resumed") == 1


def test_a_trial_that_was_cut_off_is_run_again_after_the_run_went_on(whole: Path, tmp_path: Path) -> None:
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines[:50]) if json.loads(line)["event"] == "trial")
    directory = cut(whole, tmp_path, sum(map(len, lines[: last + 1])))
    go_on(directory)
    assert kinds(directory)[last : last + 4] == ["trial", "resumed", "trial", "result"]


class Failing(SimulatedTester):
    """Cannot work any more after some trials, or is interrupted."""

    fails: BaseException = TesterError("the DUT does not answer ARP", code="no_answer")
    after = 7

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        if len(self.trials) >= self.after:
            raise self.fails
        return super().run(trial, on_progress)


@pytest.mark.parametrize("error", [TesterError("no answer", code="no_answer"), KeyboardInterrupt()])
def test_a_run_that_ended_by_an_error_or_an_interruption_goes_on(error: BaseException, tmp_path: Path) -> None:
    dut = SimulatedDut(capacity_fps=54_321)
    expected = measure(SimulatedTester(dut), plan(), tmp_path / "whole")
    broken = Failing(dut)
    broken.fails = error
    with pytest.raises(type(error)):
        measure(broken, plan(), tmp_path / "broken")
    assert kinds(tmp_path / "broken")[-1] == "end"
    with ResumedJournal.open(tmp_path / "broken") as recorded:
        assert not recorded.is_complete
        summary = resume(SimulatedTester(dut), plan(), recorded, Log())
    assert timeless(summary) == timeless(expected)
    assert "ended early" not in json.dumps(timeless(summary))


def test_a_run_that_goes_on_elsewhere_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Failing(SimulatedDut(capacity_fps=54_321))
    broken.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measure(broken, plan(), tmp_path)
    here = host.environment()
    monkeypatch.setattr(host, "environment", lambda: here | {"kernel": "9.9.9", "uptime_s": 1})
    with ResumedJournal.open(tmp_path) as recorded:
        summary = resume(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(), recorded, Log())
    [change] = summary.environment_changes
    assert (change.name, change.before, change.now) == ("host.kernel", here["kernel"], "9.9.9")
    [said] = [text for text, warns in tables.messages(summary) if warns]
    assert re.search(r"resumed at \S+ with another host kernel: \S+ before, 9\.9\.9 after", said)


# --- what is refused ------------------------------------------------------------------------------


def refusal(directory: Path, **conditions: Any) -> str:
    """Why going on is refused; the journal stays as it is."""
    before = (directory / JOURNAL).read_bytes() if (directory / JOURNAL).exists() else None
    with pytest.raises(JournalError) as caught, ResumedJournal.open(directory) as recorded:
        resume(SimulatedTester(), plan(**conditions), recorded, Log())
    assert before == ((directory / JOURNAL).read_bytes() if before is not None else None)
    return str(caught.value)


def rewritten(whole: Path, directory: Path, **changes: Any) -> Path:
    """The beginning of a run, with another plan."""
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    (directory / JOURNAL).write_bytes(
        json.dumps(json.loads(lines[0]) | changes).encode() + b"\n" + b"".join(lines[1:21])
    )
    return directory


def test_a_directory_without_a_journal(tmp_path: Path) -> None:
    assert "holds no journal" in refusal(tmp_path)


def test_a_run_that_was_killed_before_it_began(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_bytes(b'{"event": "pl')
    assert "has no first line, the plan" in refusal(tmp_path)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"format": 99}, "has format 99"),
    ({"procedure": "alchemy"}, "no procedure alchemy"),
    ({"dut": {"name": "another"}}, "other values of dut"),
    ({"attempts": {}}, "other values of attempts"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_another_set_up_or_version(changes: dict[str, Any], words: str, whole: Path, tmp_path: Path) -> None:
    assert words in refusal(
        rewritten(whole, tmp_path, **changes), frame_sizes=(84, 128), repetitions=5, duration_s=0.5, seed=3
    )


def test_other_conditions(whole: Path, tmp_path: Path) -> None:
    assert "other values of conditions" in refusal(
        rewritten(whole, tmp_path), frame_sizes=(84, 128), repetitions=5, duration_s=0.5, seed=4
    )


def test_a_procedure_that_takes_another_course(whole: Path, tmp_path: Path) -> None:
    directory = rewritten(whole, tmp_path)
    text = (directory / JOURNAL).read_text()
    (directory / JOURNAL).write_text(text.replace('"attempt": 1', '"attempt": 2'))
    assert "came to another trial" in refusal(directory, frame_sizes=(84, 128), repetitions=5, duration_s=0.5, seed=3)


def test_a_run_that_goes_on_in_another_process(tmp_path: Path) -> None:
    with JournalWriter.create(tmp_path) as running:
        running.write(plan_event())
        assert "in another process" in refusal(tmp_path)
        with pytest.raises(JournalError, match="in another process"):
            JournalWriter.create(tmp_path)


def test_a_complete_run_is_known(whole: Path) -> None:
    with ResumedJournal.open(whole) as recorded:
        assert recorded.is_complete


# --- a full disk ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "room", [5_000, *(pytest.param(one, marks=pytest.mark.long) for one in (17_000, 30_123)), 17_001, 52_345]
)
def test_a_disk_that_fills_up_leaves_a_journal_that_goes_on(room: int, whole: Path, tmp_path: Path) -> None:
    """No file of the process may grow beyond ``room`` bytes."""
    limited = (
        f"import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); sys.argv ="
        " sys.argv[1:]; "
    )
    limited += "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", limited, *command(tmp_path / "run")[1:]], capture_output=True, text=True, check=False
    )
    assert "WriteError: cannot write" in done.stderr.splitlines()[-1]
    written = (tmp_path / "run" / JOURNAL).read_bytes()
    assert written.endswith(b"\n")
    assert not list((tmp_path / "run").glob("*.tmp"))
    go_on(tmp_path / "run")
    assert (tmp_path / "run" / JOURNAL).read_bytes().startswith(written)
    assert timeless(write_summary(tmp_path / "run")) == timeless(write_summary(whole))


def test_after_a_failed_write_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    full = [False, True, False, False]

    def write(descriptor: int, data: bytes) -> int:
        if full.pop(0):
            real(descriptor, data[:10])
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    with JournalWriter.create(tmp_path) as writer:
        writer.write(plan_event())
        for _ in range(2):
            with pytest.raises(WriteError, match="No space left"):
                writer.write(EndEvent(outcome="completed", message=None))
    assert kinds(tmp_path) == ["plan"]
    assert (tmp_path / JOURNAL).read_bytes().count(b"\n") == 1
