# SPDX-License-Identifier: Apache-2.0
"""Waiting: for a DUT that is away, and between trials. In virtual time; a run that goes on does not
wait again for what was waited for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dutperf import journal
from dutperf.journal import JOURNAL, ResumedJournal
from dutperf.judge.validity import LINK_DOWN
from dutperf.model import (
    LOSS_BINS,
    Arrivals,
    Cause,
    Direction,
    LimitedBy,
    LinkState,
    Losses,
    Trial,
    TrialResult,
    Verdict,
    to_json,
)
from dutperf.results import beside
from dutperf.run import campaign, testbench, waiting
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import Dut
from dutperf.tester import ProgressCallback, TesterError
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Log, SimulatedDevice, journal_lines, measure, plan, resume, trial

TRUTH_FPS = 54_321
NOWHERE = LinkState(left=False, right=True)


class Clock:
    """Stands in for the module ``time``: sleeping is what makes time pass."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept_s.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (campaign, waiting):
        monkeypatch.setattr(module, "time", clock)
    return clock


@dataclass
class Restarting(SimulatedTester):
    """Its DUT is away in some spans of time; trials take the time that they should."""

    clock: Clock = field(default_factory=Clock)
    away_s: tuple[tuple[float, float], ...] = ()
    answers_arp: bool = False
    begun_s: list[float] = field(default_factory=list)
    capable: SimulatedDut = field(default_factory=lambda: SimulatedDut(capacity_fps=TRUTH_FPS))

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self.begun_s.append(self.clock.now_s)
        away = any(start <= self.clock.now_s - 1000 < end for start, end in self.away_s)
        self.dut = SimulatedDut(dead_directions=frozenset(trial.streams())) if away else self.capable
        result = super().run(trial, on_progress)
        self.clock.now_s += trial.whole_s
        return result.model_copy(update={"dut_answered": NOWHERE}) if away and not self.answers_arp else result


def waits(directory: Path) -> list[journal.Event]:
    return [event for event in journal_lines(directory) if event["event"] == "wait"]


def test_a_dut_that_comes_back_is_measured_as_if_nothing_had_been(clock: Clock, tmp_path: Path) -> None:
    expected = measure(Restarting(clock=clock), plan(), tmp_path / "calm").points[0]
    clock.now_s = 1000.0
    log = Log()
    tester = Restarting(clock=clock, away_s=((12, 40),))
    summary = measure(tester, plan(dut_patience_s=60), tmp_path / "run", log=log)
    [point] = summary.points
    [remark] = [one.text for one in summary.remarks if one.about == "waits"]
    assert remark.startswith("the DUT forwarded nothing once, and was waited for 2")
    assert (point.throughput_fps, point.limited_by, point.upper_bound) == (
        expected.throughput_fps,
        expected.limited_by,
        expected.upper_bound,
    )
    [wait] = waits(tmp_path / "run")
    assert wait["answered"]
    assert 20 < wait["waited_s"] < 30
    assert wait["probes"] == sum(one.whole_s < 5 for one in tester.trials)
    assert point.trials.valid == expected.trials.valid + 1
    assert any("waiting for the DUT, 60 s at most" in (status.note or "") for status in log.statuses)
    assert any("forwards again" in (status.note or "") for status in log.statuses)


def test_trials_after_a_wait_have_what_the_procedure_adds_to_them(clock: Clock, tmp_path: Path) -> None:
    what = plan(dut_patience_s=60, rate=Rate.parse("1000"), tags=500, tag_after_s=1)
    expected = measure(Restarting(clock=clock), what, tmp_path / "calm", "latency").points[0]
    clock.now_s = 1000.0
    tester = Restarting(clock=clock, away_s=((4, 40),))
    [point] = measure(tester, what, tmp_path / "run", "latency").points
    assert [event["answered"] for event in waits(tmp_path / "run")] == [True]
    assert point.model_dump(exclude={"trials"}) == expected.model_dump(exclude={"trials"})
    assert {one.tagged is None for one in tester.trials if one.whole_s >= 5} == {False}


def test_trials_and_probes_have_numbers_of_their_own(clock: Clock, tmp_path: Path) -> None:
    tester = Restarting(clock=clock, away_s=((12, 40),))
    measure(tester, plan(dut_patience_s=60), tmp_path)
    assert [one.trial for one in tester.trials] == list(range(len(tester.trials)))


def test_a_burst_that_met_a_dut_which_was_down_is_not_what_happened_above_the_longest_one(
    clock: Clock, tmp_path: Path
) -> None:
    """It was offered again, and lost less then."""

    @dataclass
    class DownOnce(Restarting):
        down_at: int = 0

        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            down = trial.intended(Direction.FORWARD) == self.down_at
            self.down_at = 0 if down else self.down_at
            self.capable = SimulatedDut(capacity_fps=TRUTH_FPS, queue_frames=100)
            self.away_s = ((0, 10**6),) if down else ()
            return super().run(trial, on_progress)

    what = plan(
        dut_patience_s=60, rate=Rate.parse(f"{TRUTH_FPS}"), max_rate=Rate.parse("100k"), max_burst_s=5.0, repetitions=1
    )
    [calm] = measure(DownOnce(clock=clock), what, tmp_path / "calm", "back-to-back").points
    clock.now_s = 1000.0
    [point] = measure(
        DownOnce(clock=clock, down_at=calm.upper_bound.load.value), what, tmp_path / "run", "back-to-back"
    ).points
    assert [event["answered"] for event in waits(tmp_path / "run")] == [True]
    assert point.upper_bound == calm.upper_bound
    assert point.upper_bound.forward.lost < point.upper_bound.load.value


SILENT: list[tuple[dict[str, Any], bool, int]] = [
    ({}, False, 0),
    ({"dut_patience_s": 10}, False, 1),
    ({"dut_patience_s": 10}, True, 1),
]


@pytest.mark.parametrize(("conditions", "answers_arp", "waited"), SILENT)
def test_a_dut_that_stays_away_is_silent(
    conditions: dict[str, Any], answers_arp: bool, waited: int, clock: Clock, tmp_path: Path
) -> None:
    tester = Restarting(clock=clock, away_s=((0, 10**6),), answers_arp=answers_arp)
    [point] = measure(tester, plan(**conditions), tmp_path).points
    assert point.throughput_fps.median is None
    assert point.limited_by is LimitedBy.DUT
    assert [event["answered"] for event in waits(tmp_path)] == [False] * waited
    assert sum(clock.slept_s) <= conditions.get("dut_patience_s", 0)


def test_a_dut_that_goes_away_at_every_trial_of_a_load_is_not_waited_for_without_end(
    clock: Clock, tmp_path: Path
) -> None:
    class Crashing(Restarting):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            probing = trial.duration_s < 1
            self.away_s = () if probing else ((0, 10**6),)
            return super().run(trial, on_progress)

    tester = Crashing(clock=clock)
    [point] = measure(tester, plan(dut_patience_s=10), tmp_path).points
    assert point.throughput_fps.median is None
    loads = {one.forward.rate_fps for one in tester.trials if one.forward and one.duration_s >= 1}
    assert len(waits(tmp_path)) == campaign.WAITS * len(loads)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_run_that_goes_on_does_not_wait_again(step: int, clock: Clock, tmp_path: Path) -> None:
    what = plan(dut_patience_s=60)
    expected = measure(Restarting(clock=clock, away_s=((12, 40),)), what, tmp_path)
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    for length in range(2, len(lines) - 1, step):
        (tmp_path / JOURNAL).write_bytes(b"".join(lines[:length]))
        waited = bool(waits(tmp_path))
        clock.now_s = 1050.0  # the DUT is back in any case
        with ResumedJournal.open(tmp_path) as recorded:
            tester = Restarting(clock=clock)
            summary = resume(tester, what, recorded, Log())
        assert summary.points[0].throughput_fps == expected.points[0].throughput_fps
        if waited:
            assert len(waits(tmp_path)) == 1
            assert all(one.whole_s >= 5 for one in tester.trials)


def test_a_run_that_goes_on_waits_where_it_would_have_without_the_break(clock: Clock, tmp_path: Path) -> None:
    """After a wait in vain, an attempt that the tester spoilt does not show that the DUT is down: the next one can."""

    class Spoilt(Restarting):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            result = super().run(trial, on_progress)
            if [one.whole_s >= 5 for one in self.trials].count(True) != 2:
                return result
            cause = Cause(code="stalled", text="the tester stalled")
            return result.model_copy(update={"verdict": Verdict.INVALID, "causes": (cause,)})

    what = plan(dut_patience_s=5, rates=(Rate.parse("1000"),), repetitions=1)
    whole = tmp_path / "whole"
    expected = measure(Spoilt(clock=clock, away_s=((0, 10**6),)), what, whole, "frame-loss")
    assert [event["answered"] for event in waits(whole)] == [False, False]
    lines = (whole / JOURNAL).read_bytes().splitlines(keepends=True)
    for length in range(2, len(lines) - 1):
        cut = tmp_path / str(length)
        cut.mkdir()
        (cut / JOURNAL).write_bytes(b"".join(lines[:length]))
        results = sum(event["event"] == "result" for event in journal_lines(cut))
        tester = Spoilt(clock=clock, away_s=((0, 10**6),), trials=[trial(duration_ns=6 * 10**9)] * results)
        with ResumedJournal.open(cut) as recorded:
            summary = resume(tester, what, recorded, Log())
        assert [event["answered"] for event in waits(cut)] == [False, False]
        assert summary.points == expected.points


@pytest.mark.parametrize("settle_s", [0, 2.5, 5])
def test_trials_keep_their_distance(settle_s: float, clock: Clock, tmp_path: Path) -> None:
    tester = Restarting(clock=clock)
    log = Log()
    measure(tester, plan(settle_s=settle_s, duration_s=2), tmp_path, log=log)
    distances = [later - earlier - 2 for earlier, later in zip(tester.begun_s, tester.begun_s[1:], strict=False)]
    assert distances == pytest.approx([settle_s] * len(distances))
    assert clock.slept_s == pytest.approx([settle_s] * len(distances) if settle_s else [])
    assert log.statuses[0].remaining_s == pytest.approx(log.statuses[0].trials_left * (2 + settle_s))


def test_probes_are_short_whatever_the_trials_are() -> None:
    tagged = {"stamping": "tagged", "tagged": {"count": 500, "after_ns": 10**9}, "lost_delay_ns": 1}
    long = trial(duration_ns=60 * 10**9, drain_ns=2 * 10**9, rest_ns=2 * 10**9, **tagged)
    short = waiting.probe(long)
    assert short.whole_s == pytest.approx(0.2)
    assert Trial.model_validate(to_json(short)) == short
    assert waiting.probe(trial(drain_ns=0)).drain_ns == 0


# --- the DUT's state ------------------------------------------------------------------------------


def with_state(said: list[str]) -> Any:
    class Telling(SimulatedDevice):
        can_do = frozenset({"state"})

        def state(self) -> str:
            return said.pop(0)

    what = plan(frame_sizes=(84, 128), repetitions=2, max_rate=Rate.parse("1000"))
    return replace(what, dut=Telling(Dut()))


def test_the_state_is_asked_for_before_and_after_each_search(tmp_path: Path) -> None:
    said = [f"sessions: {number}" for number in range(8)]
    summary = measure(SimulatedTester(), with_state(said), tmp_path)
    kinds = [event["event"] for event in journal_lines(tmp_path)][2:-1]
    assert kinds == ["dut_state", "trial", "result", "search", "dut_state"] * 4
    states = [event for event in journal_lines(tmp_path) if event["event"] == "dut_state"]
    assert [(event["when"], event["case"]["frame_size"], event["repetition"]) for event in states] == [
        (when, size, repetition) for size in (84, 128) for repetition in (1, 2) for when in ("before", "after")
    ]
    assert [event["output"] for event in states] == [f"sessions: {number}" for number in range(8)]
    told = summary.environment["dut_states"]
    assert [one["sha256"] for one in told] == [event["sha256"] for event in states]
    assert len({one["sha256"] for one in told}) == 8
    assert "output" not in told[0]


def test_a_run_that_goes_on_asks_only_for_what_it_has_not(tmp_path: Path) -> None:
    words = [f"sessions: {number}" for number in range(8)]
    expected = measure(SimulatedTester(), with_state(list(words)), tmp_path)
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    for length in range(2, len(lines) - 1):
        (tmp_path / JOURNAL).write_bytes(b"".join(lines[:length]))
        asked = sum(json_line["event"] == "dut_state" for json_line in journal_lines(tmp_path))
        left = list(words[asked:])
        with ResumedJournal.open(tmp_path) as recorded:
            summary = resume(SimulatedTester(), with_state(left), recorded, Log())
        assert left == []
        assert summary == expected


def test_a_dut_that_takes_the_link_down_with_it_is_waited_for_as_well(clock: Clock, tmp_path: Path) -> None:
    class WithLink(Restarting):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            result = super().run(trial, on_progress)
            if result.dut_answered.left:
                return result
            cause = Cause(code=LINK_DOWN, text="the link of the left port was down during the trial")
            return result.model_copy(
                update={"verdict": Verdict.INVALID, "causes": (cause,), "link_down": LinkState(left=True, right=False)}
            )

    expected = measure(Restarting(clock=clock), plan(), tmp_path / "calm").points[0]
    clock.now_s = 1000.0
    [point] = measure(WithLink(clock=clock, away_s=((12, 40),)), plan(dut_patience_s=60), tmp_path / "run").points
    assert point.throughput_fps == expected.throughput_fps
    assert [event["answered"] for event in waits(tmp_path / "run")] == [True]


# --- a DUT that begins to forward -------------------------------------------------------------------


def test_a_switch_that_listens_first_is_waited_for_although_nobody_needs_to_ask_for_it(
    clock: Clock, tmp_path: Path
) -> None:
    """Spanning tree: for 30 s it forwards nothing, and there is no gateway that could not answer."""
    what = plan(dut_patience_s=60, rates=(Rate.parse("1000"), Rate.parse("500")), repetitions=1)
    tester = Restarting(clock=clock, away_s=((0, 30),), answers_arp=True)
    log = Log()
    [point] = measure(tester, what, tmp_path, "frame-loss", log).points
    assert [one.loss_ratio.worst.values for one in point.rates] == [(0.0,), (0.0,)]
    assert [event["answered"] for event in waits(tmp_path)] == [True]
    notes = [status.note or "" for status in log.statuses]
    assert any("the DUT forwards now after" in note for note in notes)
    assert not any("forwards again" in note for note in notes)


def test_a_probe_has_no_streams_beside_it() -> None:
    """One that begins after two seconds has no place in a tenth of one."""
    made = trial(1_000)
    late = Direction("forward:web")
    beside = made.model_copy(
        update={"other_streams": {late: made.streams()[Direction.FORWARD].model_copy(update={"begin_ns": 2 * 10**9})}}
    )
    assert waiting.probe(beside).all_streams() == made.streams()


def test_without_patience_the_run_says_that_the_dut_began_to_forward(clock: Clock, tmp_path: Path) -> None:
    what = plan(rates=(Rate.parse("1000"), Rate.parse("500")), repetitions=1, loss_tolerance=0)
    tester = Restarting(clock=clock, away_s=((0, 3),), answers_arp=True)
    summary = measure(tester, what, tmp_path, "frame-loss")
    assert any(
        "forward: nothing arrived in the first of 3 trials that count, but later frames did" in one.text
        for one in summary.remarks
    )


def test_trials_that_prove_that_the_dut_failed_count_for_when_it_began_to_forward(clock: Clock) -> None:
    """On a busy machine they are invalid, and bound the result all the same."""
    tester = Restarting(clock=clock, away_s=((0, 3),), answers_arp=True)
    dead = tester.run(trial())
    clock.now_s += 10
    alive = tester.run(trial())
    disturbed = dead.model_copy(update={"verdict": Verdict.INVALID, "proven_failed": "at least so many"})
    said, *_ = beside.of_run([disturbed, alive])
    assert "nothing arrived in the first of 2" in said
    assert said.endswith("only then (--dut-patience waits for it, and repeats such trials)")
    assert beside.of_run([disturbed, alive], is_patient=True)[0] == said.partition(" (--dut")[0]


def test_a_trial_in_which_the_dut_begins_to_forward_is_repeated(clock: Clock, tmp_path: Path) -> None:
    class Beginning(Restarting):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            result = super().run(trial, on_progress)
            if len(self.trials) > 1:
                return result
            sent = result.directions()[Direction.FORWARD].sent
            bins = (sent // LOSS_BINS,) * (LOSS_BINS // 2) + (0,) * (LOSS_BINS // 2)
            late = {
                "received": sent - sum(bins),
                "losses": Losses(first_s=0, last_s=2.5, longest_run=sum(bins), bins=bins),
                "arrivals": Arrivals(first_s=2.5, last_s=5, longest_gap_from_s=2.5, longest_gap_to_s=2.6),
            }
            assert result.forward is not None
            return result.model_copy(update={"forward": result.forward.model_copy(update=late)})

    conditions: dict[str, Any] = {"rates": (Rate.parse("1000"),), "repetitions": 1}
    [patient] = measure(
        Beginning(clock=clock), plan(dut_patience_s=60, **conditions), tmp_path / "a", "frame-loss"
    ).points
    assert patient.rates[0].loss_ratio.worst.values == (0.0,)
    summary = measure(Beginning(clock=clock), plan(**conditions), tmp_path / "b", "frame-loss")
    assert summary.points[0].rates[0].loss_ratio.worst.values == (0.5,)
    assert any("nothing arrived in the first part of 1 trial, but" in one.text for one in summary.remarks)


@pytest.mark.parametrize(("patience_s", "opens"), [(30, True), (5, False), (0, False)])
def test_patience_covers_the_opening_of_the_ports(
    patience_s: float, opens: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The DUT gets its address after 8 s."""
    monkeypatch.setattr(testbench, "time", clock)

    class Opening(SimulatedTester):
        def environment(self) -> dict[str, Any]:
            clock.now_s += 3
            if clock.now_s < 1008:
                raise TesterError("the DUT did not answer ARP", code="no_answer", field="left.gateway4")
            return super().environment()

    said: list[str] = []
    if opens:
        testbench.opened(Opening(), patience_s, said.append)
        assert said == ["left.gateway4: the DUT did not answer ARP: waiting, 30 s at most"]
        return
    with pytest.raises(TesterError, match="did not answer"):
        testbench.opened(Opening(), patience_s)
    assert clock.now_s < 1008


def test_an_error_that_no_time_mends_is_not_waited_for(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbench, "time", clock)

    class Wrong(SimulatedTester):
        def environment(self) -> dict[str, Any]:
            raise TesterError("no such port", code="port_unavailable")

    with pytest.raises(TesterError, match="no such port"):
        testbench.opened(Wrong(), 60)
    assert clock.slept_s == []
