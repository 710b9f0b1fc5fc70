# SPDX-License-Identifier: Apache-2.0
"""Throughput of simulated DUTs whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dutperf import journal
from dutperf.model import LEFT_AND_RIGHT, Direction, LimitedBy, LinkState, Trial, TrialResult, Verdict
from dutperf.procedures import evidence
from dutperf.procedures.evidence import outcome_of
from dutperf.procedures.searches import bounds
from dutperf.run.campaign import PlanError
from dutperf.search import MAX_RETRIES, Outcome
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import Dut, LinkBetween
from dutperf.tester import ProgressCallback, truth
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from dutperf.tester.truth import Lost
from plans import counts, journal_lines, measure, plan

FINE = Rate.parse("20")


def fps(rate: float) -> Rate:
    return Rate(value=rate, unit="fps")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("disturbed_ratio", [0.0, 0.3])
def test_the_truth_is_found_within_the_resolution(tmp_path: Path, seed: int, disturbed_ratio: float) -> None:
    truth_fps = 10_000 + 3_571 * seed
    tester = SimulatedTester(
        SimulatedDut(capacity_fps=truth_fps), SimulatedLimits(disturbed_ratio=disturbed_ratio), seed
    )
    [point] = measure(tester, plan(resolution=FINE), tmp_path).points
    assert point.limited_by is LimitedBy.DUT
    assert all(value is not None and 0 <= truth_fps - value < 20 for value in point.throughput_fps.values)
    assert (point.trials.invalid > 0) == (disturbed_ratio > 0)


def test_a_queue_adds_what_it_holds_to_a_trial(tmp_path: Path) -> None:
    """As a router with a token bucket of 60,000 frames/s and 1,000 frames: 60,200 in a trial of 5
    s."""
    tester = SimulatedTester(SimulatedDut(capacity_fps=60_000, queue_frames=1_000))
    [point] = measure(tester, plan(resolution=FINE), tmp_path).points
    assert all(value is not None and 60_180 < value <= 60_200 for value in point.throughput_fps.values)


def test_the_weaker_direction_decides(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps={Direction.FORWARD: 50_000, Direction.REVERSE: 20_000}))
    [point] = measure(tester, plan(resolution=FINE), tmp_path).points
    assert point.throughput_fps.median is not None
    assert 19_980 < point.throughput_fps.median <= 20_000
    assert point.upper_bound is not None
    assert point.upper_bound.forward is not None
    assert point.upper_bound.reverse is not None
    assert point.upper_bound.forward.lost == 0
    assert point.upper_bound.reverse.lost > 0
    assert "forward lost none" in point.message


def test_one_direction_alone(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps={Direction.FORWARD: 50_000, Direction.REVERSE: 20_000}))
    [point] = measure(tester, plan(resolution=FINE, directions="forward"), tmp_path).points
    assert point.throughput_fps.median is not None
    assert 49_980 < point.throughput_fps.median <= 50_000
    assert all(one.reverse is None for one in tester.trials)


@pytest.mark.parametrize("seed", range(5))
def test_random_loss_needs_a_tolerance(tmp_path: Path, seed: int) -> None:
    """0.01 % of random loss: with none allowed almost nothing is found, with 0.05 % allowed what
    the DUT can do."""
    dut = SimulatedDut(capacity_fps=100_000, loss_ratio=0.0001)
    [strict] = measure(SimulatedTester(dut, seed=seed), plan(), tmp_path / "strict").points
    [tolerant] = measure(SimulatedTester(dut, seed=seed), plan(loss_tolerance=0.0005), tmp_path / "tolerant").points
    assert all(value is None or value < 10_000 for value in strict.throughput_fps.values)
    assert all(value is not None and 99_000 < value < 100_100 for value in tolerant.throughput_fps.values)


def test_the_testers_limit_is_not_booked_as_the_duts(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=50_000), SimulatedLimits(receive_fps=30_000))
    [point] = measure(tester, plan(resolution=FINE), tmp_path).points
    assert point.limited_by is LimitedBy.TESTER
    assert point.throughput_fps.median is not None
    assert 29_980 < point.throughput_fps.median <= 30_000
    assert point.upper_bound is None
    assert "limited by the tester at 30," in point.message
    assert "nic_missed" in point.message


def test_a_tester_that_never_makes_a_valid_trial(tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(disturbed_ratio=1.0))
    summary = measure(tester, plan(repetitions=1), tmp_path)
    [point] = summary.points
    assert (point.limited_by, point.throughput_fps.values) == (LimitedBy.TESTER, (None,))
    assert summary.without_number() == (point,)
    assert point.trials.valid == 0


@pytest.mark.parametrize(
    ("media_fps", "max_rate", "limited_by", "value"),
    [
        (20_000, None, LimitedBy.MEDIA, 20_000),
        (20_000, fps(5_000), LimitedBy.RANGE, 5_000),
        (20_000, fps(30_000), LimitedBy.MEDIA, 20_000),
        (None, fps(5_000), LimitedBy.RANGE, 5_000),
    ],
)
def test_a_maximum_that_passes_takes_one_trial(
    tmp_path: Path, media_fps: int | None, max_rate: Rate | None, limited_by: LimitedBy, value: int
) -> None:
    tester = SimulatedTester()
    [point] = measure(tester, plan(media_fps, max_rate=max_rate), tmp_path).points
    assert (point.limited_by, point.throughput_fps.values) == (limited_by, (value,) * 3)
    assert len(tester.trials) == 3


def test_below_the_minimum_rate(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=500))
    summary = measure(tester, plan(min_rate=fps(2_000)), tmp_path)
    [point] = summary.points
    assert (point.limited_by, point.throughput_fps.values) == (LimitedBy.RANGE, (None,) * 3)
    assert "nothing passed" in point.message
    assert "2,000" in point.message
    assert summary.without_number()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dies_after=st.integers(0, 40), silent=st.sets(st.sampled_from(LEFT_AND_RIGHT)))
def test_a_dut_that_forwards_nothing_ends_each_case_after_a_probe(
    tmp_path_factory: pytest.TempPathFactory, dies_after: int, silent: set[Direction]
) -> None:
    tester = SimulatedTester(
        SimulatedDut(capacity_fps=30_000, dies_after_trials=dies_after, dead_directions=frozenset(silent))
    )
    out = tmp_path_factory.mktemp("run")
    summary = measure(tester, plan(frame_sizes=(84, 1518), repetitions=20), out)
    dead = summary.without_number()
    assert dead
    assert "the DUT forwards nothing" in dead[0].message
    assert dead[0].limited_by is LimitedBy.DUT
    assert dead[0].throughput_fps.values[-1] is None
    assert len(tester.trials) <= 2 * 2 + (0 if silent else dies_after + MAX_RETRIES)
    assert journal_lines(out)[-1]["outcome"] == "ended"


def searches_of(directory: Path) -> list[journal.Event]:
    return [event for event in journal_lines(directory) if event["event"] == "search"]


def test_later_repetitions_are_shorter_and_show_their_own_pass_and_fail(tmp_path: Path) -> None:
    measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(repetitions=12), tmp_path)
    first, *later = searches_of(tmp_path)
    assert len(first["loads"]) > 10
    for search in later:
        assert [search["lower_bound"], "passed"] in search["loads"]
        assert [search["upper_bound"], "failed"] in search["loads"]
        assert len(search["loads"]) <= 7
    assert sum(len(search["loads"]) for search in later[-6:]) <= 6 * 3


def test_each_repetition_has_its_own_grid_by_the_seed(tmp_path: Path) -> None:
    """Of a DUT that is always the same, the values are spread over the resolution, and their median
    is half of it below the truth."""
    for name, seed in (("a", 1), ("again", 1), ("other", 2)):
        chosen = plan(repetitions=40, seed=seed, resolution=fps(400), directions="forward")
        [point] = measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), chosen, tmp_path / name).points
        below = sorted(54_321 - value for value in point.throughput_fps.values)
        assert below[0] >= 0
        assert below[-1] < 400
        assert (
            max(abs(fps_below / 400 - index / 40) for index, fps_below in enumerate(below)) < 1.63 / 40**0.5
        )  # Kolmogorov, 1 %
    loads = {name: [search["loads"] for search in searches_of(tmp_path / name)] for name in ("a", "again", "other")}
    assert loads["a"] == loads["again"]
    assert loads["a"][0] == loads["other"][0]
    assert loads["a"][1] != loads["other"][1]


@pytest.mark.parametrize(
    ("conditions", "option", "words"),
    [
        ({"max_rate": "50%"}, "max_rate", "media_mbps"),
        ({"min_rate": "50%"}, "min_rate", "media_mbps"),
        ({"initial_rate": "50%"}, "initial_rate", "media_mbps"),
        ({"min_rate": "2000", "max_rate": "1000"}, "min_rate", "above the maximum"),
        ({"initial_rate": "2000", "max_rate": "1000"}, "initial_rate", "not within"),
        ({"max_rate": Rate(value=2e9, unit="fps")}, "max_rate", "1,000,000,000"),
    ],
)
def test_rates_that_cannot_be(tmp_path: Path, conditions: dict[str, str | Rate], option: str, words: str) -> None:
    rates: dict[str, Any] = {name: Rate.parse(one) if isinstance(one, str) else one for name, one in conditions.items()}
    tester, out = SimulatedTester(), tmp_path / "run"
    with pytest.raises(PlanError, match=words) as caught:
        measure(tester, plan(**rates), out)
    assert caught.value.option == option
    assert not out.exists()
    assert not tester.trials


def test_percentages_are_of_the_media() -> None:
    what = plan(
        min_rate=Rate.parse("1%"),
        max_rate=Rate.parse("50%"),
        initial_rate=Rate.parse("10%"),
        resolution=Rate.parse("0.5%"),
    ).conditions
    limits = bounds(what, 100_000)
    assert (limits.minimum, limits.maximum, limits.initial, limits.resolution.step) == (
        1_000,
        50_000,
        10_000,
        500,
    )
    assert not limits.maximum_is_media


@pytest.mark.parametrize(
    ("result", "tolerance", "outcome"),
    [
        ({"forward": counts(), "reverse": counts()}, 0.0, Outcome.PASSED),
        ({"forward": counts(1000, 999), "reverse": counts()}, 0.0, Outcome.FAILED),
        ({"forward": counts(1000, 999), "reverse": counts()}, 0.001, Outcome.PASSED),
        ({"forward": counts(1000, 998), "reverse": counts()}, 0.001, Outcome.FAILED),
        ({"forward": counts(), "reverse": counts(1000, 0)}, 0.001, Outcome.NOT_FORWARDING),
        ({"forward": counts(), "reverse": counts(1000, 0)}, 0.999, Outcome.NOT_FORWARDING),
        ({"forward": counts(1000, 0), "verdict": Verdict.INVALID}, 0.0, Outcome.UNMEASURABLE),
        ({"forward": counts(), "verdict": Verdict.INVALID}, 0.0, Outcome.UNMEASURABLE),
        ({"verdict": Verdict.ABORTED}, 0.0, Outcome.UNMEASURABLE),
    ],
)
def test_what_a_trial_says(result: dict[str, Any], tolerance: float, outcome: Outcome) -> None:
    made = TrialResult(**{"trial": 0, "verdict": Verdict.VALID, **result})
    assert outcome_of(made, plan(loss_tolerance=tolerance).conditions) is outcome


class Deaf(SimulatedTester):
    """Tests a DUT that forwards nothing in those trials, by their number, that ``deaf`` names."""

    def __init__(self, deaf: Callable[[int], bool]) -> None:
        super().__init__()
        self._deaf = deaf

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self.dut = SimulatedDut(dies_after_trials=0 if self._deaf(len(self.trials)) else None)
        return super().run(trial, on_progress)


def test_a_dut_that_is_silent_in_the_first_trial_is_measured(tmp_path: Path) -> None:
    """As one that still starts."""
    tester = Deaf(lambda number: number == 0)
    [point] = measure(tester, plan(repetitions=1, min_rate=fps(1_000), max_rate=fps(50_000)), tmp_path).points
    assert (point.limited_by, point.throughput_fps.median) == (LimitedBy.RANGE, 50_000)


def test_a_rate_that_failed_each_time_stays_failed_and_the_failure_is_shown(tmp_path: Path) -> None:
    """Silent at the minimum rate, alive in each probe: no throughput, and not called dead."""
    tester = Deaf(lambda number: number % 2 == 0)
    [point] = measure(tester, plan(repetitions=1, min_rate=fps(1_000)), tmp_path).points
    assert (point.limited_by, point.throughput_fps.values, point.trials.valid) == (LimitedBy.RANGE, (None,), 8)
    assert "forward lost 5,000 of 5,000 frames" in point.message
    assert point.upper_bound is not None
    assert point.upper_bound.forward is not None
    assert point.upper_bound.forward.lost == 5_000


def test_silence_of_duts_in_a_row_may_be_the_mtu_between_them() -> None:
    result = TrialResult(
        trial=0, verdict=Verdict.VALID, forward=counts(50, 0), link_up=LinkState(left=True, right=True)
    )
    setup = plan().traffic.setup
    row = setup.model_copy(update={"dut": (Dut(name="B4"), Dut(name="AFTR")), "between": (LinkBetween(overhead=40),)})
    hint = "between the DUTs frames are 40 bytes longer (between.overhead): is the MTU there large enough?"
    assert hint in evidence.no_forwarding(result, row)
    assert "between the DUTs" not in evidence.no_forwarding(result, setup)


def test_a_router_forwards_nothing_without_gateways() -> None:
    result = TrialResult(
        trial=0, verdict=Verdict.VALID, forward=counts(50, 0), link_up=LinkState(left=True, right=True)
    )
    router = plan().traffic.setup
    none = {"gateway4": None, "gateway6": None}
    cable = router.model_copy(update={name: side.model_copy(update=none) for name, side in router.sides().items()})
    hint = "without a gateway frames go to the other port's MAC address: a router needs gateway4 or gateway6"
    assert evidence.no_forwarding(result, cable).endswith(hint)
    assert "gateway" not in evidence.no_forwarding(result, router)


@pytest.mark.parametrize(("cause", "asks"), [("AFTR: not_forwarded", False), ("B4: not_forwarded", True)])
def test_who_forwards_nothing_is_said_where_the_link_tells_it(cause: str, asks: bool) -> None:
    """What went over the link between them was not too long for it."""
    result = TrialResult(
        trial=0,
        verdict=Verdict.VALID,
        forward=counts(50, 0),
        link_up=LinkState(left=True, right=True),
        dut_losses={Direction.FORWARD: {cause: 50}},
    )
    setup = plan().traffic.setup
    row = setup.model_copy(update={"dut": (Dut(name="B4"), Dut(name="AFTR")), "between": (LinkBetween(overhead=40),)})
    text = evidence.no_forwarding(result, row)
    assert f"forward, the DUTs' own counters: 50 {cause}" in text
    assert ("is the MTU there large enough" in text) == asks


def test_the_evidence_of_silence() -> None:
    result = TrialResult(
        trial=0,
        verdict=Verdict.VALID,
        forward=counts(5000, 0, dut_input_drops=5000),
        reverse=counts(5000, 5000, other_received={"icmp6_unreachable": 12}),
        link_up=LinkState(left=True, right=False),
    )
    text = evidence.no_forwarding(result, plan().traffic.setup)
    for words in (
        "forwards nothing in the forward direction",
        "0 of 5,000",
        "right port is down",
        "5,000 frames to the DUT",
        "left port",
        "12 × icmp6_unreachable",
    ):
        assert words in text
    assert "reverse direction" not in text


def test_what_happened_just_above_is_told(tmp_path: Path) -> None:
    """A DUT with a queue: it is full after a while, and from then on to the end frames are lost."""
    summary = measure(
        SimulatedTester(SimulatedDut(capacity_fps=54_321, queue_frames=500)),
        plan(frame_sizes=(84,), repetitions=1),
        tmp_path,
    )
    [remark, *_] = summary.points[0].remarks()
    above = summary.points[0].upper_bound
    assert remark.startswith(f": at the upper bound, {above.load.value:,} frames/s: forward lost from ")
    assert " s to the end, one by one. reverse lost from " in remark
    assert above.forward.where == {"elsewhere": above.forward.lost}


class WithEpisodes(SimulatedTester):
    """Tests a DUT that pauses for ``pause_s`` in those trials, by their number, that ``pauses`` names."""

    def __init__(self, dut: SimulatedDut, pauses: Callable[[int], bool], pause_s: float = 0.004) -> None:
        super().__init__(dut)
        self._pauses, self._pause_s = pauses, pause_s

    def _losses(self, trial: Trial, direction: Direction, sent: int, stall_s: float) -> list[Lost]:
        lost = super()._losses(trial, direction, sent, stall_s)
        pauses = not lost and self._pauses(len(self.trials))
        return truth.out_of_service(trial.times(direction), (0.4, 0.4 + self._pause_s), sent) if pauses else lost


@pytest.mark.parametrize("pause_s", [0.004, 2.0, 4.6], ids=["short", "restart", "restart until the end"])
@pytest.mark.parametrize("search", ["binary", "mlr"])
def test_one_episode_does_not_decide_the_figure(
    tmp_path: Path, search: Literal["binary", "mlr"], pause_s: float
) -> None:
    """In each trial that passes without it."""
    for number in range(12):
        dut = SimulatedDut(capacity_fps=60_000)
        tester = WithEpisodes(dut, lambda trials, number=number: trials == number, pause_s)
        conditions = plan(100_000, resolution=fps(200), repetitions=1, duration_s=5.0, search=search)
        [point] = measure(tester, conditions, tmp_path / str(number)).points
        assert point.throughput_fps.median is not None
        assert 59_800 <= point.throughput_fps.median <= 60_000


def test_a_dut_that_pauses_in_every_trial_is_said_to_in_the_headline(tmp_path: Path) -> None:
    tester = WithEpisodes(SimulatedDut(), lambda _: True)
    [point] = measure(tester, plan(20_000, min_rate=fps(10_000), resolution=FINE, repetitions=1), tmp_path).points
    assert point.throughput_fps.values == (None,)
    assert "one short episode, all within 3.9 ms; each of 2 trials at this rate failed" in point.message
    short = WithEpisodes(SimulatedDut(capacity_fps=60_000), lambda _: False)
    [calm] = measure(short, plan(resolution=FINE, repetitions=1), tmp_path / "calm").points
    assert "episode" not in calm.message


class WithMtu(SimulatedTester):
    """Tests a DUT that forwards no frames of more than 1,518 bytes."""

    def _losses(self, trial: Trial, direction: Direction, sent: int, stall_s: float) -> list[Lost]:
        if trial.streams()[direction].foreground.size > 1518:
            return [Lost(0, sent, sent)]
        return super()._losses(trial, direction, sent, stall_s)


def test_a_size_that_is_not_forwarded_takes_no_other_along(tmp_path: Path) -> None:
    tester = WithMtu(SimulatedDut(capacity_fps=60_000))
    summary = measure(tester, plan(frame_sizes=(1560, 84, 2000, 128), resolution=fps(100), repetitions=2), tmp_path)
    values = [point.throughput_fps.median for point in summary.points]
    assert values[0] is None
    assert values[2] is None
    assert all(median is not None and 59_900 <= median <= 60_000 for median in (values[1], values[3]))
    said = [point.message for point in summary.points]
    assert all("the DUT forwards nothing" in said[number] for number in (0, 2))
    assert said[0].endswith("(1 of 2 repetitions; it ended early because the DUT forwards nothing)")
    assert not any("early" in said[number] for number in (1, 3))
    assert journal_lines(tmp_path)[-1]["outcome"] == "completed"
