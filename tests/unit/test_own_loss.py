# SPDX-License-Identifier: Apache-2.0
"""What a trial proves in spite of late bursts is never more than the same DUT loses when no frame is late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from random import Random
from typing import Any

import pytest

from dutperf.judge import own_loss, validity
from dutperf.model import LOSS_BINS, Direction, LateBursts, Poisson, Question, RateChange, Trial, Verdict
from dutperf.watch.dut_core import Starvation
from dutperf.watch.dut_waits import SAMPLE_S, Disturbance, Wait
from plans import counts
from queueing import Frame, Server, Stall, a_trial, counted, lost, sent

TICKS = [Stall(at / 10, at / 10 + 0.004) for at in range(10)]
"""A neighbour takes the sender's core for a tick of the scheduler, ten times a second."""
SHORT = [Stall(at / 125, at / 125 + 0.0009) for at in range(125)]
"""Others take it for less than a millisecond, which is no late burst."""
SEARCH = Question(resolution=0.001)


def measured(of: Trial, dut: Server, stalls: list[Stall], seed: int = 0) -> tuple[int, int, Verdict, str | None]:
    """What is proven of the DUT, what it loses undisturbed, the verdict on the trial, and the proof that it failed."""
    frames = sent(of, stalls, seed)
    shown = counted(of, frames, lost(frames, dut, seed))
    verdict, causes = validity.judge(of, shown)
    return (
        own_loss.own_loss(of, shown),
        len(lost(sent(of, [], seed), dut, seed)),
        verdict,
        validity.proven_failed(of, shown, causes),
    )


def some(seed: int) -> tuple[Trial, Server, list[Stall]]:
    """A DUT near its limit, or not, before a sender that is held up by whatever comes."""
    random = Random(seed)
    rate_fps, duration_s, cores = (
        random.randrange(1_500, 4_000),
        random.choice([0.5, 1.0]),
        random.choice([1, 1, 2, 4, 8]),
    )
    capacity_fps = 2 * rate_fps * random.choice([random.uniform(0.9, 1.1), random.uniform(0.99, 1.02)])
    dut = Server(
        capacity_fps, max(1, random.choice([0, 5, 30, 100, 300]) // cores), cores, random.choice([0, 0, 0.001, 0.01])
    )
    begins_s = [random.uniform(0, duration_s) for _ in range(random.randrange(1, 20))]
    stalls = [
        Stall(at_s, at_s + random.choice([random.uniform(0.0005, 0.005), 0.004, random.uniform(0.004, 0.04)]))
        for at_s in begins_s
    ] + random.choice([[], [], SHORT])
    return a_trial(rate_fps, duration_s), dut, stalls


@pytest.mark.parametrize("batch", range(6))
def test_no_more_is_proven_than_an_undisturbed_dut_loses(batch: int) -> None:
    proven = 0
    for seed in range(12 * batch, 12 * batch + 12):
        own, truth, *_ = measured(*some(seed), seed)
        assert own <= truth, (seed, some(seed)[1:])
        proven += own > 0
    assert proven > 0


@pytest.mark.parametrize("capacity", [1.001, 1.01, 1.1, 2.0])
@pytest.mark.parametrize("queue", [1, 3, 10, 20])
@pytest.mark.parametrize("short", [[], SHORT, SHORT[30:]], ids=["bursts", "short stalls", "later short stalls"])
def test_a_dut_that_can_do_the_rate_is_never_shown_to_fail_however_short_its_queue(
    capacity: float, queue: int, short: list[Stall]
) -> None:
    """All that it loses is the work of bursts, or of the time in which it got nothing."""
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    dut = Server(6_000 * capacity, queue)
    own, truth, verdict, proof = measured(asked, dut, [*TICKS, *short])
    assert truth <= 1  # two streams, whose frames are due at the same times
    assert own <= truth
    assert (verdict, proof) == (Verdict.INVALID, None)


def test_a_dut_whose_queue_bursts_filled_before_its_time_is_not_shown_to_fail() -> None:
    """A little beyond its capacity, but its queue takes what is too much for a whole trial."""
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    own, truth, verdict, proof = measured(asked, Server(5_985, 20), TICKS)
    assert truth == 0
    assert (own, verdict, proof) == (0, Verdict.INVALID, None)


def test_a_dut_that_is_overloaded_throughout_fails_whatever_the_bursts_did() -> None:
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    frames = sent(asked, TICKS, 0)
    late = sum(one.late_bursts.frames for one in counted(asked, frames, []).values() if one.late_bursts)
    own, truth, verdict, proof = measured(asked, Server(5_800, 20), TICKS)
    assert truth < late  # fewer than the bursts might have cost in the worst case
    assert 0.5 * truth < own <= truth
    assert verdict is Verdict.VALID or proof is not None


def test_losses_at_random_are_the_duts_though_they_lie_in_bursts_as_well() -> None:
    asked = a_trial(4_000, 1.0)
    own, truth, verdict, _ = measured(asked, Server(1e9, 1_000, random_loss=0.05), TICKS)
    assert 0.5 * truth < own <= truth
    assert verdict is Verdict.VALID


def test_losses_at_random_before_waits_fill_the_queue_do_not_show_that_it_was_full() -> None:
    """A DUT with a long queue, which loses a frame in a thousand anyway, and lacks its core later."""
    of, dut = a_trial(3_000, 2.0), Server(5_880, 300, random_loss=0.001)
    away = [Stall(0.4 + at / 20, 0.408 + at / 20) for at in range(32)]
    frames = sent(of, [], 0)
    shown = counted(of, frames, lost(frames, dut, 0, away))
    assert own_loss.steady_loss(of, shown, exactly(away, 2.0)) <= len(lost(frames, dut))


def test_what_was_lost_before_the_first_burst_was_not_its_work() -> None:
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    own, truth, verdict, proof = measured(
        asked, Server(5_500, 5), [Stall(0.5 + at / 100, 0.504 + at / 100) for at in range(40)]
    )
    assert 0 < own <= truth
    assert verdict is Verdict.VALID or proof is not None


EVERYWHERE = [Stall(at / 250, at / 250 + 0.003) for at in range(250)]
"""A busy machine: most frames leave in bursts, throughout."""


@pytest.mark.parametrize(("passes", "proven"), [(0, True), (20, False)], ids=["none", "one of twenty"])
def test_where_nothing_comes_through_for_long_no_burst_did_it(passes: int, proven: bool) -> None:
    """As while a DUT restarts. A queue that bursts keep full still lets frames through."""
    asked = a_trial(3_000)
    frames = sent(asked, EVERYWHERE, 0)
    gone = [one for one in frames if 0.3 < one.due_s < 0.7 and not (passes and one.number % passes == 0)]
    shown = counted(asked, frames, gone)
    late = sum(one.late_frames.frames for one in shown.values() if one.late_frames)
    assert late > len(gone)  # so that none of the other bounds tells
    own = own_loss.own_loss(asked, shown)
    assert (0.9 * len(gone) < own <= len(gone)) == proven
    assert (validity.judge(asked, shown)[0] is Verdict.VALID) == proven


def test_an_outage_no_longer_than_frames_are_late_may_be_their_work() -> None:
    asked = a_trial(3_000)
    frames = sent(asked, [*EVERYWHERE, Stall(0.4, 0.49)], 0)
    shown = counted(asked, frames, [one for one in frames if 0.3 < one.due_s < 0.48])
    assert own_loss.own_loss(asked, shown) == 0


def test_a_dut_that_loses_frames_once_is_not_overloaded_all_the_time() -> None:
    """What happened once, in parts without bursts, is not taken for what is usual."""
    once = {
        "losses": {
            "first_s": 0.05,
            "last_s": 0.9,
            "longest_run": 1,
            "bins": tuple(30 if part in (12, 117) else 0 for part in range(LOSS_BINS)),
        }
    }
    burst = LateBursts(frames=100, longest=20, bins=tuple(20 if part % 50 == 25 else 0 for part in range(LOSS_BINS)))
    shown = counts(sent=3_000, intended=3_000, received=2_940, late_bursts=burst, losses=once["losses"])
    assert own_loss.own_loss(a_trial(3_000), {Direction.FORWARD: shown}) == 30  # before the first burst


@pytest.mark.parametrize(
    "stream",
    [{"pattern": Poisson()}, {"then": RateChange(rate_fps=100, after_ns=500_000_000)}],
    ids=["poisson", "another rate"],
)
def test_what_is_usual_is_known_at_a_steady_rate_only(stream: dict[str, Any]) -> None:
    steady = a_trial(3_000)
    assert steady.forward is not None
    changed = steady.model_copy(update={"forward": steady.forward.model_copy(update=stream)})
    shown = counted(steady, frames := sent(steady, TICKS, 0), lost(frames, Server(5_800, 20)))
    assert own_loss.steady_loss(steady, shown) > 0
    assert own_loss.steady_loss(changed, shown) == 0


OVERLOAD = Server(5_600, 20)


def exactly(away: Sequence[Stall], _duration_s: float) -> list[Disturbance]:
    return [Disturbance(one.start_s, one.end_s, one.end_s - one.start_s) for one in away]


def by_samples(away: Sequence[Stall], duration_s: float) -> list[Disturbance]:
    """As known from what the kernel has counted so far, which counts a wait when it ends."""
    disturbances = []
    for number in range(1, ceil(duration_s / SAMPLE_S) + 1):
        began_s, ended_s = (number - 1) * SAMPLE_S, number * SAMPLE_S
        waited_s = sum(one.end_s - one.start_s for one in away if began_s < one.end_s <= ended_s)
        sample = Wait(SAMPLE_S, waited_s, ended_s)
        if waited_s:
            disturbances.append(Disturbance(sample.began_s, sample.ended_s, waited_s))
    return disturbances


@pytest.mark.parametrize(
    ("known", "seeds"),
    [
        (exactly, range(30)),
        (by_samples, range(40)),  # which prove less
        *(pytest.param(exactly, range(first, first + 30), marks=pytest.mark.long) for first in range(30, 120, 30)),
        *(pytest.param(by_samples, range(first, first + 40), marks=pytest.mark.long) for first in range(40, 120, 40)),
    ],
)
def test_no_more_is_proven_than_an_undisturbed_dut_loses_where_the_dut_lacks_its_core(
    known: Callable[[Sequence[Stall], float], list[Disturbance]], seeds: range
) -> None:
    proven, steadily = 0, 0
    for seed in seeds:
        of, dut, stalls = some(seed)
        random = Random(seed)
        begins_s = sorted(random.uniform(0, of.duration_s) for _ in range(random.randrange(1, 25)))
        away = [
            Stall(at_s, min(at_s + random.choice([0.001, 0.004, 0.02]), after_s))
            for at_s, after_s in pairwise([*begins_s, of.duration_s])
        ]
        frames = sent(of, stalls, seed)
        shown = counted(of, frames, lost(frames, dut, seed, away))
        disturbances = known(away, of.duration_s)
        own = own_loss.steady_loss(of, shown, disturbances)
        loses = own_loss.loses_steadily(of, shown, disturbances)
        truth = len(lost(sent(of, [], seed), dut, seed))
        assert own <= truth, (seed, dut)
        assert truth > 0 or not loses, (seed, dut)
        proven, steadily = proven + (own > 0), steadily + loses
    assert 0 < proven <= steadily


LONG = a_trial(5_000, 5.0)


@lru_cache(10)
def sent_evenly(seed: int) -> list[Frame]:
    """Of a long trial before a sender that nothing holds up."""
    return sent(LONG, [], seed)


@dataclass(frozen=True)
class Neighbour:
    """Has the DUT's core for 2 to 8 ms, ten times a second, in a trial of 5 s."""

    seed: int

    def waits(self) -> list[Stall]:
        random, waits, ended_s = Random(self.seed), [], 0.0
        while (began_s := ended_s + random.expovariate(10)) < 4.99:
            ended_s = began_s + random.uniform(0.002, 0.008)
            waits.append(Stall(began_s, ended_s))
        return waits

    def proves(self, dut: Server, catches_up_s: float) -> bool:
        """Whether the DUT is shown to fail, if waits of up to ``catches_up_s`` cost it nothing."""
        frames, waits = sent_evenly(self.seed), self.waits()
        costly = [Stall(one.start_s + catches_up_s, one.end_s) for one in waits]
        gone = lost(frames, dut, self.seed, [one for one in costly if one.end_s > one.start_s])
        return own_loss.loses_steadily(LONG, counted(LONG, frames, gone), by_samples(waits, LONG.duration_s))


@pytest.mark.parametrize("capacity_fps", [9_950, 9_900])
def test_a_dut_that_catches_up_with_its_waits_is_shown_to_fail(capacity_fps: int) -> None:
    """They would fill its queue of 50 a hundred times, but they do not: so its loss is its own."""
    assert all(Neighbour(seed).proves(Server(capacity_fps, 50), 1.0) for seed in range(10))


@pytest.mark.parametrize(
    "catches_up_s", [0.0, *(pytest.param(one, marks=pytest.mark.long) for one in (0.003, 0.006)), 1.0]
)
@pytest.mark.parametrize(("capacity_fps", "queue", "cores"), [(9_970, 200, 1), (9_970, 500, 2), (10_010, 20, 1)])
def test_a_dut_whose_queue_suffices_is_not_shown_to_fail_however_well_it_catches_up(
    capacity_fps: int, queue: int, cores: int, catches_up_s: float
) -> None:
    dut = Server(capacity_fps, queue, cores)
    assert len(lost(sent_evenly(0), dut)) == 0
    assert not any(Neighbour(seed).proves(dut, catches_up_s) for seed in range(5))


@pytest.mark.parametrize(("share", "seed"), [(0.9965, 45), (0.999, 74), (0.9965, 170), (0.998, 199)])
def test_queues_that_flows_fill_unevenly_are_not_overloaded(share: float, seed: int) -> None:
    """A DUT whose two queues suffice for flows spread at random, but waits fill them time and again."""
    of, dut, waits = a_trial(5_000, 5.0), Server(10_000 * share, 200, 2), Neighbour(seed).waits()
    frames = sent(of, [], seed)
    assert not lost(frames, dut, seed)
    shown = counted(of, frames, lost(frames, dut, seed, waits))
    assert not own_loss.loses_steadily(of, shown, by_samples(waits, 5.0))


@pytest.mark.parametrize(
    ("unknown_s", "times", "proven"),
    [(0.0, 1, True), (0.0, 2, True), (0.0, 5, False), (0.2, 1, True), (0.3, 1, False)],
    ids=["a neighbour", "two", "five", "and little else", "and others at unknown times"],
)
def test_a_core_taken_at_known_times_does_not_hide_what_the_dut_does_between(
    unknown_s: float, times: int, proven: bool
) -> None:
    """Each neighbour takes 5 % of the core, and the limit for unknown times is 5 %."""
    asked = a_trial(5_000, 5.0).model_copy(update={"question": SEARCH})
    waits = [Stall(one.start_s, one.start_s + times * (one.end_s - one.start_s)) for one in Neighbour(1).waits()]
    frames = sent(asked, [], 1)
    shown = counted(asked, frames, lost(frames, Server(9_900, 50)))
    _, causes = validity.judge(asked, shown, Starvation(0.06))
    waited_s = sum(one.end_s - one.start_s for one in waits)
    missed = Starvation(at_most_s=waited_s + unknown_s, disturbances=tuple(exactly(waits, 5.0)))
    found = validity.proven_failed(asked, shown, causes, missed)
    assert (found is not None) == proven


@pytest.mark.parametrize(
    ("members", "taken", "proven"),
    [
        ({}, 0.0, True),
        ({"tester_drops": {"kernel_socket": 1}}, 0.0, False),
        ({"early": 1}, 0.0, False),
        ({"received": 1}, 0.0, False),
        ({}, 0.06, False),
    ],
    ids=[
        "bursts",
        "and drops of its own",
        "and clocks that differ",
        "and a count that is not its own",
        "and a DUT that had no core meanwhile",
    ],
)
def test_only_what_bursts_may_have_done_is_bounded(members: dict[str, Any], taken: float, proven: bool) -> None:
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    stalls = [*TICKS, Stall(0.55, 0.562)]  # too late for a valid trial
    frames = sent(asked, stalls, 0)
    shown = counted(asked, frames, lost(frames, OVERLOAD))
    shown[Direction.FORWARD] = shown[Direction.FORWARD].model_copy(update=members)
    verdict, causes = validity.judge(asked, shown, Starvation(taken))
    assert verdict is Verdict.INVALID
    assert (validity.proven_failed(asked, shown, causes, Starvation(at_most_s=taken)) is not None) == proven
    at_its_end = (Disturbance(0.97, 0.98, 0.001),)  # explains nothing of what was taken
    missed = Starvation(at_most_s=taken, disturbances=at_its_end)
    assert (validity.proven_failed(asked, shown, causes, missed) is not None) == proven
    counting = asked.model_copy(update={"question": Question()})
    assert validity.proven_failed(counting, shown, causes, missed) is None  # who asks for figures cannot have those


def test_a_core_that_was_taken_explains_no_more_than_the_dut_does_in_that_time() -> None:
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    frames = sent(asked, [], 0)
    shown = counted(asked, frames, lost(frames, Server(3_000, 20)))  # half of the frames
    _, causes = validity.judge(asked, shown, Starvation(0.2))
    assert {cause.code for cause in causes} == {validity.DUT_DISTURBED}
    assert validity.proven_failed(asked, shown, causes, Starvation(at_most_s=0.2)) is not None
    assert validity.proven_failed(asked, shown, causes, Starvation(at_most_s=0.5)) is None


def test_a_dut_may_pause_without_a_counter_that_shows_it() -> None:
    """It loses the frames of 6 ms, long before the first late burst."""
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    stalls = [Stall(0.55, 0.57)]
    frames = sent(asked, stalls, 0)
    gone = [frame for frame in frames if 0.2 <= frame.due_s < 0.206]
    shown = counted(asked, frames, gone)
    _, causes = validity.judge(asked, shown)
    assert causes
    assert validity.proven_failed(asked, shown, causes) is not None
    assert validity.proven_failed(asked, shown, causes, Starvation(unseen_s=0.005)) is not None
    assert validity.proven_failed(asked, shown, causes, Starvation(unseen_s=0.007)) is None


def test_no_more_is_proven_than_was_lost() -> None:
    """A DUT that has no core for 4 ms in 5, but for the times when the sender is held up: what it loses usually, in
    all of the time, would be more than it lost. It had no core for as long as sending that takes."""
    asked = a_trial(3_000).model_copy(update={"question": SEARCH})
    stalls = [Stall(at / 10, at / 10 + 0.018) for at in range(1, 10)]
    frames = sent(asked, stalls, 0)
    held_up = [(one.start_s, one.end_s + 0.01) for one in stalls]
    gone = [
        frame
        for frame in frames
        if frame.due_s % 0.005 < 0.004 and not any(begin <= frame.due_s < end for begin, end in held_up)
    ]
    shown = counted(asked, frames, gone)
    _, causes = validity.judge(asked, shown)
    assert causes
    assert own_loss.own_loss(asked, shown) <= len(gone)
    without_core_s = len(gone) / len(frames)
    for missed_s, proven in ((without_core_s, False), (without_core_s / 2, True)):
        assert (validity.proven_failed(asked, shown, causes, Starvation(at_most_s=missed_s)) is not None) == proven
