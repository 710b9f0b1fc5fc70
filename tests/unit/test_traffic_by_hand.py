# SPDX-License-Identifier: Apache-2.0
"""Traffic by hand: parts, requests from another process, refusals, and runs that were killed at any place."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dutperf.errors import DutperfError
from dutperf.journal import ResumedJournal
from dutperf.model import Cause, Trial, TrialResult, Verdict
from dutperf.procedures.bench import PlanError
from dutperf.procedures.request import Request
from dutperf.run import requests
from dutperf.run.requests import REQUEST, RequestError, Requests, ask
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import ParameterError
from dutperf.tester import EndTrial, Progress, ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Log, journal_lines, measure, plan, resume

PART_S = 100.0
"""Longest time of a part."""
REPORT_S = 1.0


class Asked:
    """A tester whose trials report their progress each second of a virtual time; ``requests`` are asked for at those
    times of the whole traffic, by the way that other processes take."""

    def __init__(self, directory: Path, requests: dict[float, Request | None]) -> None:
        self.tester = SimulatedTester(SimulatedDut(capacity_fps=54_321))
        self.directory, self.requests = directory, dict(requests)
        self.now_s = 0.0
        self.rates: list[int] = []
        self.refused: list[str] = []
        self._answers: list[threading.Thread] = []

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self.rates.append(next(iter(trial.streams().values())).rate_fps)
        begun_s = self.now_s
        while self.now_s < begun_s + trial.duration_s:
            self.now_s += REPORT_S
            self._ask()
            try:
                if on_progress is not None:
                    on_progress(Progress(self.now_s - begun_s, 0, 0))
            except EndTrial:
                trial = trial.lasting(self.now_s - begun_s)
                break
        return self.tester.run(trial)

    def _ask(self) -> None:
        for at_s in [at_s for at_s in self.requests if at_s <= self.now_s]:
            asked = self.requests.pop(at_s)
            if asked is None:
                raise KeyboardInterrupt
            thread = threading.Thread(target=self._ask_and_note, args=(asked,))
            thread.start()
            self._answers.append(thread)
            until_s = time.monotonic() + 10
            while not (self.directory / REQUEST).exists() and thread.is_alive() and time.monotonic() < until_s:
                time.sleep(0.001)

    def _ask_and_note(self, asked: Request) -> None:
        try:
            ask(self.directory, asked)
        except RequestError as error:
            self.refused.append(str(error))

    def wait_until_quiet(self, limit_s: float) -> float:
        return self.tester.wait_until_quiet(limit_s)

    def environment(self) -> dict[str, Any]:
        return self.tester.environment()

    def close(self) -> None:
        for thread in self._answers:
            thread.join()


@pytest.fixture
def traffic(tmp_path: Path) -> Iterator[Callable[..., tuple[Any, Asked]]]:
    made: list[Asked] = []

    def run(asked: dict[float, Request | None], **conditions: Any) -> tuple[Any, Asked]:
        tester = Asked(tmp_path, asked)
        made.append(tester)
        usual = {"rate": to("10k").rate, "duration_s": PART_S, "frame_sizes": (84,)}
        summary = measure(tester, plan(**{**usual, **conditions}), tmp_path, "traffic")
        tester.close()
        return summary.points[0], tester

    yield run
    for one in made:
        one.close()


def to(rate: str) -> Request:
    return Request(rate=Rate.parse(rate))


END = Request(end=True)


def parts(directory: Path) -> list[dict[str, Any]]:
    return [line for line in journal_lines(directory) if line["event"] == "part"]


# --- what is sent ---------------------------------------------------------------------------------


def test_without_a_request_it_is_one_trial(traffic: Any, tmp_path: Path) -> None:
    point, tester = traffic({})
    assert tester.rates == [10_000]
    assert [(at.load.value, at.parts, at.sending_s) for at in point.rates] == [(10_000, 1, PART_S)]
    assert [one["next_fps"] for one in parts(tmp_path)] == [None]


def test_each_request_ends_a_part_and_begins_the_next(traffic: Any, tmp_path: Path) -> None:
    point, tester = traffic({3: to("20k"), 8: to("60k"), 10: to("20k"), 17: END})
    assert tester.rates == [10_000, 20_000, 60_000, 20_000]
    assert [one["sending_s"] for one in parts(tmp_path)] == [3, 5, 2, 7]
    assert [(at.load.value, at.parts, at.sending_s) for at in point.rates] == [
        (10_000, 1, 3),
        (20_000, 2, 12),
        (60_000, 1, 2),
    ]
    assert tester.refused == []
    lossless, _, lossy = point.rates
    assert lossless.lost == 0
    assert lossy.worst_loss_ratio == pytest.approx(1 - 54_321 / 60_000, abs=0.01)


def test_each_case_has_its_own_traffic(traffic: Any, tmp_path: Path) -> None:
    _, tester = traffic({3: to("20k"), 5: END, 7: to("30k"), 9: END}, frame_sizes=(84, 512))
    assert tester.rates == [10_000, 20_000, 10_000, 30_000]
    assert [one["case"]["frame_size"] for one in parts(tmp_path)] == [84, 84, 512, 512]


def test_a_part_that_is_not_valid_is_not_repeated_and_says_why(tmp_path: Path) -> None:
    class Disturbed(Asked):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            result = super().run(trial, on_progress)
            cause = Cause(code="sender_late", text="frames left late")
            return result.model_copy(update={"verdict": Verdict.INVALID, "causes": (cause,)})

    tester = Disturbed(tmp_path, {4: to("20k"), 6: END})
    usual = plan(rate=to("10k").rate, duration_s=PART_S, frame_sizes=(84,))
    [point] = measure(tester, usual, tmp_path, "traffic").points
    tester.close()
    assert tester.rates == [10_000, 20_000]
    assert point.limited_by_tester
    assert not point.has_number
    assert "frames left late" in point.message


# --- requests -------------------------------------------------------------------------------------


def test_what_cannot_be_sent_is_refused_and_the_part_goes_on(traffic: Any, tmp_path: Path) -> None:
    _, tester = traffic({2: to("10%"), 4: Request(rate=Rate(value=2e9, unit="fps")), 6: END})
    assert tester.rates == [10_000]
    [in_percent, too_high] = sorted(tester.refused, key=lambda text: "above" in text)  # each in a thread of its own
    assert "needs the media's speed" in in_percent
    assert "above" in too_high
    assert [one["sending_s"] for one in parts(tmp_path)] == [6]


@pytest.mark.parametrize("error", [PlanError("too few", option="rate"), ParameterError("too few", "direction_rates")])
def test_a_rate_of_which_no_trial_can_be_made_is_refused(error: DutperfError, tmp_path: Path) -> None:
    def refuse(_: Request) -> None:
        raise error

    (tmp_path / REQUEST).write_text(json.dumps({"id": "0" * 32, **to("50").model_dump(mode="json")}))
    assert Requests(tmp_path).take(refuse) is None
    assert json.loads((tmp_path / f"answer-{'0' * 32}.json").read_text()) == {"error": "too few"}


@pytest.mark.parametrize("members", [{}, {"rate": "10k", "end": True}, {"rate": "many"}, {"rate": "0"}, {"more": 1}])
def test_what_is_no_request(members: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Request.model_validate(members)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": 1, "rate": {"value": 1, "unit": "fps"}}', "[" * 100_000])
def test_a_broken_file_is_no_request(text: str, tmp_path: Path) -> None:
    (tmp_path / REQUEST).write_text(text)
    assert Requests(tmp_path).take(lambda _: pytest.fail("accepted")) is None
    assert not (tmp_path / REQUEST).exists()


@pytest.mark.parametrize("members", [{"rate": {"value": -1, "unit": "fps"}}, {"rate": None, "end": False}, {"x": 1}])
def test_what_this_version_does_not_know_is_refused(members: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / REQUEST).write_text(json.dumps({"id": "0" * 32, **members}))
    assert Requests(tmp_path).take(lambda _: pytest.fail("accepted")) is None
    assert "this version" in (tmp_path / f"answer-{'0' * 32}.json").read_text()


def test_a_request_of_an_earlier_process_is_forgotten(traffic: Any, tmp_path: Path) -> None:
    (tmp_path / REQUEST).write_text(json.dumps({"id": "0" * 32, **END.model_dump(mode="json")}))
    _, tester = traffic({50: to("20k"), 60: END})
    assert tester.rates == [10_000, 20_000]


def test_nothing_takes_a_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="nothing is being measured"):
        ask(tmp_path, END)
    measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(), tmp_path, "throughput")
    with pytest.raises(RequestError, match="nothing is being measured"):
        ask(tmp_path, END)
    with ResumedJournal.open(tmp_path), pytest.raises(RequestError, match="finds its rates itself"):
        ask(tmp_path, END)


def test_no_answer_in_time(traffic: Any, tmp_path: Path) -> None:
    traffic({})
    with ResumedJournal.open(tmp_path), pytest.raises(RequestError, match="did not answer"):
        ask(tmp_path, END, patience_s=0.1)
    assert not (tmp_path / REQUEST).exists()


def test_the_first_rate_is_needed(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="is missing"):
        measure(SimulatedTester(SimulatedDut(capacity_fps=1)), plan(rate=None), tmp_path, "traffic")


# --- interrupted and killed -----------------------------------------------------------------------


def test_an_interrupted_run_goes_on_at_its_last_rate(tmp_path: Path) -> None:
    usual = plan(rate=to("10k").rate, duration_s=PART_S, frame_sizes=(84,))
    first = Asked(tmp_path, {3: to("20k"), 9: None})
    with pytest.raises(KeyboardInterrupt):
        measure(first, usual, tmp_path, "traffic")
    first.close()
    second = Asked(tmp_path, {4: to("40k"), 6: END})
    with ResumedJournal.open(tmp_path) as recorded:
        [point] = resume(second, usual, recorded, Log()).points
    second.close()
    assert second.rates == [20_000, 40_000]
    assert [at.load.value for at in point.rates] == [10_000, 20_000, 40_000]


def test_a_run_goes_on_from_wherever_it_was_killed(traffic: Any, tmp_path: Path) -> None:
    traffic({3: to("20k"), 8: to("60k"), 10: END})
    whole = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event"] for line in whole]
    usual = plan(rate=to("10k").rate, duration_s=PART_S, frame_sizes=(84,))
    for kept in range(2, len(whole)):
        directory = tmp_path / str(kept)
        directory.mkdir()
        (directory / "journal.jsonl").write_bytes(b"".join(whole[:kept]))
        tester = Asked(directory, {1: END})
        with ResumedJournal.open(directory) as recorded:
            resume(tester, usual, recorded, Log())
        tester.close()
        done = kinds[:kept].count("part")
        expected = [10_000, 20_000, 60_000]
        if done == len(expected):
            assert tester.rates == []
            continue
        # What was asked for is lost where the part's result is there, but not its finding: its rate goes on.
        rate = expected[done]
        assert tester.rates == [rate], f"killed after {kinds[kept - 1]}"
        assert [one["rate_fps"] for one in parts(directory)][:done] == expected[:done]


# --- the command ----------------------------------------------------------------------------------


def set_rate(*arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "dutperf", "set-rate", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "give either a rate or --end"), (("1k", "--end"), "give either"), (("4x",), "is not a rate")],
)
def test_wrong_use_of_the_command(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = set_rate(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_where_nothing_runs(tmp_path: Path) -> None:
    done = set_rate(tmp_path, "10k")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is being measured" in done.stderr


def test_patience_is_longer_than_between_two_parts() -> None:
    assert requests.PATIENCE_S > 10
