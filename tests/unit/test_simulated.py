# SPDX-License-Identifier: Apache-2.0
"""The simulated tester counts what its DUT's truth says, and real rules judge its own troubles."""

from __future__ import annotations

import pytest

from dutperf.model import LOSS_BINS, Direction, TrialResult, Verdict
from dutperf.tester import Progress
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import frame, stream, trial

SECOND_NS = 10**9


def received(result: TrialResult) -> tuple[int, int]:
    assert result.forward is not None
    assert result.reverse is not None
    return result.forward.received, result.reverse.received


@pytest.mark.parametrize(
    ("dut", "rate_fps", "duration_s", "expected"),
    [
        (SimulatedDut(), 1000, 2, (2000, 2000)),
        (SimulatedDut(capacity_fps=600), 1000, 2, (1200, 1200)),
        (SimulatedDut(capacity_fps=600), 600, 2, (1200, 1200)),
        (SimulatedDut(capacity_fps={Direction.FORWARD: 600}), 1000, 2, (1200, 2000)),
        (SimulatedDut(capacity_fps=600, shared=True), 1000, 2, (600, 600)),
        (SimulatedDut(capacity_fps=600, queue_frames=100), 1000, 2, (1300, 1300)),
        (SimulatedDut(capacity_fps=600, queue_frames=100), 650, 2, (1300, 1300)),
        (SimulatedDut(capacity_fps=600, queue_frames=100), 651, 2, (1300, 1300)),
        (SimulatedDut(capacity_fps=600, queue_frames=5000), 1000, 2, (2000, 2000)),
        (SimulatedDut(dead_directions=frozenset({Direction.REVERSE})), 1000, 2, (2000, 0)),
        (SimulatedDut(loss_ratio=1.0), 1000, 2, (0, 0)),
    ],
)
def test_what_the_dut_forwards(dut: SimulatedDut, rate_fps: int, duration_s: int, expected: tuple[int, int]) -> None:
    result = SimulatedTester(dut).run(trial(rate_fps, duration_ns=duration_s * SECOND_NS))
    assert result.verdict is Verdict.VALID
    assert received(result) == expected


def test_random_loss_is_about_its_ratio_and_differs_from_trial_to_trial() -> None:
    tester = SimulatedTester(SimulatedDut(loss_ratio=0.1))
    lost = [100_000 - sum(received(tester.run(trial(50_000)))) for _ in range(5)]
    assert all(9_000 < count < 11_000 for count in lost)
    assert len(set(lost)) > 1


def test_the_same_seed_gives_the_same_results() -> None:
    def run(seed: int) -> list[TrialResult]:
        tester = SimulatedTester(SimulatedDut(loss_ratio=0.01), SimulatedLimits(disturbed_ratio=0.5), seed)
        return [tester.run(trial(50_000, number=number)) for number in range(5)]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_dut_dies() -> None:
    tester = SimulatedTester(SimulatedDut(dies_after_trials=2))
    assert [received(tester.run(trial())) for _ in range(4)] == [(1000, 1000), (1000, 1000), (0, 0), (0, 0)]


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (SimulatedLimits(send_fps=900), "unsent"),
        (SimulatedLimits(receive_fps=900), "tester_drops"),
        (SimulatedLimits(disturbed_ratio=1.0), "sender_late"),
    ],
)
def test_the_testers_troubles_make_trials_invalid(limits: SimulatedLimits, code: str) -> None:
    result = SimulatedTester(limits=limits).run(trial(1000))
    assert result.verdict is Verdict.INVALID
    assert {cause.code for cause in result.causes} == {code}


def test_a_tester_within_its_limits_is_valid() -> None:
    result = SimulatedTester(limits=SimulatedLimits(send_fps=1000, receive_fps=1000)).run(trial(1000))
    assert result.verdict is Verdict.VALID


def test_a_disturbance_overruns_the_duts_queue() -> None:
    dut = SimulatedDut(capacity_fps=2000, queue_frames=10)
    result = SimulatedTester(dut, SimulatedLimits(disturbed_ratio=1.0)).run(trial(1000))
    assert result.verdict is Verdict.INVALID
    assert sum(received(result)) < 2000


def test_foreground_and_background_are_told_apart() -> None:
    mixed = stream(6, 84, 1000, background=frame(6, 84), n=10, m=3)
    result = SimulatedTester(SimulatedDut(capacity_fps=995)).run(trial(forward=mixed, reverse=None))
    assert result.forward is not None
    assert (result.forward.foreground_sent, result.forward.background_sent) == (300, 700)
    assert (result.forward.foreground_received, result.forward.background_received) == (300, 695)


@pytest.mark.parametrize(
    "dut",
    [
        SimulatedDut(),
        SimulatedDut(capacity_fps=600, queue_frames=37),
        SimulatedDut(capacity_fps=999, recovery_s=0.3),
        SimulatedDut(loss_ratio=0.3),
        SimulatedDut(outage_s=(0.2, 0.4)),
        SimulatedDut(outage_s=(0.0, 0.4), loss_ratio=0.01),
        SimulatedDut(outage_s=(0.9, 7), hiccup_ratio=1),
        SimulatedDut(dead_directions=frozenset({Direction.FORWARD})),
    ],
)
@pytest.mark.parametrize("then", [None, {"rate_fps": 400, "after_ns": SECOND_NS // 2}])
def test_losses_and_arrivals_agree_with_the_counts(dut: SimulatedDut, then: dict[str, int] | None) -> None:
    result = SimulatedTester(dut, SimulatedLimits(receive_fps=900)).run(
        trial(forward=stream(6, 84, 1000, then=then), reverse=None)
    )
    counts = result.forward
    assert counts is not None
    assert sum(counts.losses.bins if counts.losses else ()) == counts.lost
    assert (counts.arrivals is None) == (counts.received == 0)
    if counts.losses is not None:
        filled = [part for part, lost in enumerate(counts.losses.bins) if lost]
        assert (int(counts.losses.first_s * LOSS_BINS), int(counts.losses.last_s * LOSS_BINS)) == (
            filled[0],
            filled[-1],
        )
        assert 1 <= counts.losses.longest_run <= counts.lost
    if counts.arrivals is not None:
        assert (
            counts.arrivals.first_s
            <= counts.arrivals.longest_gap_from_s
            <= counts.arrivals.longest_gap_to_s
            <= counts.arrivals.last_s
        )


def test_progress_is_reported_once_a_second() -> None:
    seen: list[Progress] = []
    SimulatedTester().run(trial(1000, duration_ns=3 * SECOND_NS), seen.append)
    assert seen == [Progress(1.0, 2000, 2000), Progress(2.0, 4000, 4000), Progress(3.0, 6000, 6000)]
