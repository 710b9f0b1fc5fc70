# SPDX-License-Identifier: Apache-2.0
"""A tester and a DUT with known truth, in virtual time: what a procedure finds can be compared with
what it should have found.

The DUT is a server of constant capacity with a queue that drops at its tail, and may lose frames at
random besides. The tester has limits and troubles of its own. Its counts are judged by the same
rules as a real tester's (:mod:`dutperf.tester.validity`); nothing here knows which verdict comes
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from dutperf.model import (
    DelayChanges,
    Delays,
    DelaysWritten,
    Direction,
    DirectionCounts,
    LoopStall,
    Quantiles,
    Stamping,
    Stream,
    Trial,
    TrialResult,
)
from dutperf.tester import Progress, ProgressCallback, truth, validity
from dutperf.tester.truth import NO_LIMIT, Lost

Numbers = np.ndarray[Any, np.dtype[np.int64]]
BUCKETS_OF_OCTAVE = 8
SMALLEST_US = 1e-3
"""What is smaller counts as that, among the buckets."""
DISTURBANCE_S = (0.06, 0.2)
"""How long a disturbed tester is away: enough to be noticed."""


@dataclass(frozen=True)
class SimulatedDut:
    """What is true of the DUT."""

    capacity_fps: float | Mapping[Direction, float] = NO_LIMIT
    """Frames/s that it forwards in each direction; ``shared``: in both together."""
    shared: bool = False
    queue_frames: int = 0
    """Frames that wait for their turn, in each direction; those beyond are lost."""
    loss_ratio: float = 0.0
    """Share of the forwarded frames that is lost at random."""
    delay_us: float = 10.0
    """One-way delay of every frame."""
    jitter_us: float = 0.0
    """Mean of what is added to it, exponentially distributed."""
    slow_every: int | None = None
    """Every so many frames one is delayed by ``slow_us`` more; at which of them it begins differs
    from trial to trial, by the tester's seed."""
    slow_us: float = 0.0
    dip_fps: tuple[float, float] | None = None
    """Offered rates, from the first to below the second, of which it loses every hundredth frame,
    though it may manage higher ones."""
    hiccup_ratio: float = 0.0
    """Share of the trials in which a frame is lost, whatever the rate."""
    dies_after_trials: int | None = None
    """From then on nothing comes through."""
    dead_directions: frozenset[Direction] = frozenset()
    """Directions in which nothing comes through at all."""
    recovery_s: float = 0.0
    """After an overload, when the rate has changed, it still loses frames for so long."""
    outage_s: tuple[float, float] | None = None
    """In every trial nothing comes through of what is sent between these two times after the start;
    its capacity is not looked at then."""

    def alive(self, direction: Direction, trials_before: int) -> bool:
        """Whether anything comes through in ``direction``."""
        return direction not in self.dead_directions and (
            self.dies_after_trials is None or trials_before < self.dies_after_trials
        )

    def lapses(self, offered_fps: int, sent: int, random: np.random.Generator) -> int:
        """Frames that an inconsistent DUT loses of ``sent`` for reasons other than its capacity."""
        dips = self.dip_fps is not None and self.dip_fps[0] <= offered_fps < self.dip_fps[1]
        hiccups = self.hiccup_ratio > 0 and random.random() < self.hiccup_ratio
        return (-(-sent // 100) if dips else 0) + (1 if hiccups else 0)

    def capacity(self, direction: Direction, offered_fps: Mapping[Direction, int]) -> float:
        """Frames/s for ``direction`` where ``offered_fps`` is offered: of a shared capacity, a part
        in proportion."""
        capacity_fps = (
            self.capacity_fps
            if not isinstance(self.capacity_fps, Mapping)
            else self.capacity_fps.get(direction, NO_LIMIT)
        )
        return capacity_fps * offered_fps[direction] / sum(offered_fps.values()) if self.shared else capacity_fps


@dataclass(frozen=True)
class SimulatedLimits:
    """What is wrong with the tester."""

    send_fps: float = NO_LIMIT
    """Highest rate per direction at which it can send."""
    receive_fps: float = NO_LIMIT
    """Highest rate per direction at which it can receive; frames beyond are dropped, and counted."""
    disturbed_ratio: float = 0.0
    """Share of trials in which something else on the machine takes the sender's core for a while."""


@dataclass
class SimulatedTester:
    """A :class:`dutperf.tester.Tester`. With the same ``seed``, the same trials in the same order
    have the same results."""

    dut: SimulatedDut = field(default_factory=SimulatedDut)
    limits: SimulatedLimits = field(default_factory=SimulatedLimits)
    seed: int = 0
    trials: list[Trial] = field(default_factory=list)
    """Those run so far."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """See :meth:`dutperf.tester.Tester.run`."""
        random = np.random.default_rng([self.seed, len(self.trials)])
        away_s = random.uniform(*DISTURBANCE_S) if random.random() < self.limits.disturbed_ratio else 0.0
        counts = {direction: self._count(trial, direction, away_s, random) for direction in trial.streams()}
        self.trials.append(trial)
        if on_progress is not None:
            _report(trial, counts, on_progress)
        verdict, causes = validity.judge(trial, counts)
        return TrialResult(
            trial=trial.trial,
            verdict=verdict,
            causes=causes,
            proven_failed=validity.proven_failed(trial, counts, causes),
            forward=counts.get(Direction.FORWARD),
            reverse=counts.get(Direction.REVERSE),
        )

    def wait_until_quiet(self, limit_s: float) -> float:
        """Nothing disturbs virtual time."""
        del limit_s
        return 0.0

    def environment(self) -> dict[str, Any]:
        """See :meth:`dutperf.tester.Tester.environment`."""
        return {"tester": "simulated", "seed": self.seed, "dut": repr(self.dut), "limits": repr(self.limits)}

    def close(self) -> None:
        """Nothing to release."""

    def _count(self, trial: Trial, direction: Direction, away_s: float, random: np.random.Generator) -> DirectionCounts:
        intended = trial.intended(direction)
        sent = min(
            intended, int(self.limits.send_fps * trial.duration_s) if self.limits.send_fps < NO_LIMIT else intended
        )
        losses = self._losses(trial, direction, sent, away_s)
        passing = sent - sum(one.count for one in losses)
        lapsed = self._lapses(trial.streams()[direction].rate_fps, sent, passing, random) if passing else 0
        missed = passing - lapsed - truth.room_for(self.limits.receive_fps, trial.duration_s, passing - lapsed)
        losses += [Lost(0, sent, count) for count in (lapsed, missed) if count]
        counts = _counts(trial, direction, _Tally(sent, missed, tuple(losses), self.dut.delay_us), away_s)
        return counts if trial.stamping is Stamping.NONE else self._stamped(trial, direction, counts, random)

    def _stamped(
        self, trial: Trial, direction: Direction, counts: DirectionCounts, random: np.random.Generator
    ) -> DirectionCounts:
        """``counts`` with the delays of the stamped frames, of which as large a share is lost as of
        all."""
        stamped = counts.sent if trial.tagged is None else min(trial.tagged.count, counts.sent)
        arrived = round(stamped * counts.received / counts.sent) if counts.sent else 0
        numbers = _stamped_numbers(trial, direction, stamped)[:arrived]
        delays_us = self._delays_us(numbers, random)
        late = 0 if trial.frame_timeout_ns is None else int((delays_us > trial.frame_timeout_ns / 1000).sum())
        with_lost = (
            delays_us
            if trial.lost_delay_ns is None
            else np.append(delays_us, np.full(stamped - arrived, trial.lost_delay_ns / 1000))
        )
        neighbours = trial.stamping is Stamping.EVERY and arrived > 1
        received = counts.received - late
        foreground = min(counts.foreground_received, received)
        update = {
            "received": received,
            "foreground_received": foreground,
            "background_received": received - foreground,
            "late": late,
        }
        stamps = {
            "stamped_sent": stamped,
            "stamped_received": arrived,
            "delay_us": _delays(with_lost),
            "ipdv_us": _changes(delays_us) if neighbours else None,
        }
        return counts.model_copy(update=update | stamps | {"delays_file": _write(trial, direction, numbers, delays_us)})

    def _delays_us(self, numbers: Numbers, random: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Of the frames with these ``numbers``."""
        frames = len(numbers)
        delays_us = self.dut.delay_us + (
            random.exponential(self.dut.jitter_us, frames) if self.dut.jitter_us else np.zeros(frames)
        )
        if self.dut.slow_every is not None:
            delays_us[(numbers + random.integers(self.dut.slow_every)) % self.dut.slow_every == 0] += self.dut.slow_us
        return delays_us

    def _losses(self, trial: Trial, direction: Direction, sent: int, away_s: float) -> list[Lost]:
        """What of the ``sent`` frames the DUT has no room for, or no service."""
        if not self.dut.alive(direction, len(self.trials)):
            return [Lost(0, sent, sent)] if sent else []
        if self.dut.outage_s is not None:
            return truth.out_of_service(trial.times(direction), self.dut.outage_s, sent)
        offered_fps = {one: stream.rate_fps for one, stream in trial.streams().items()}
        capacity_fps, queue = self.dut.capacity(direction, offered_fps), self.dut.queue_frames
        losses = truth.overloaded(trial, direction, sent, (capacity_fps, queue))
        burst = ceil(offered_fps[direction] * away_s)  # what follows the silence of a sender that was away, all at once
        overrun = min(sent, max(0, burst - queue - 1)) if capacity_fps < NO_LIMIT else 0
        if overrun > sum(one.count for one in losses):
            return [Lost(0, min(sent, burst), overrun)]
        return losses + truth.recovering(trial, direction, self.dut.recovery_s, sent) if losses else []

    def _lapses(self, offered_fps: int, sent: int, passing: int, random: np.random.Generator) -> int:
        """Of ``passing`` frames, how many are lost for no reason of capacity."""
        lapsed = min(passing, self.dut.lapses(offered_fps, sent, random))
        return lapsed + int(random.binomial(passing - lapsed, self.dut.loss_ratio))


@dataclass(frozen=True)
class _Tally:
    sent: int
    missed: int
    losses: tuple[Lost, ...]
    delay_us: float

    @property
    def received(self) -> int:
        return self.sent - sum(one.count for one in self.losses)


def _counts(trial: Trial, direction: Direction, tally: _Tally, away_s: float) -> DirectionCounts:
    intended, sent, received, stream = trial.intended(direction), tally.sent, tally.received, trial.streams()[direction]
    foreground_sent, foreground_received = (_foreground(stream, frames) for frames in (sent, received))
    stall_us = away_s * 1e6
    return DirectionCounts(
        intended=intended,
        sent=sent,
        received=received,
        foreground_sent=foreground_sent,
        background_sent=sent - foreground_sent,
        foreground_received=foreground_received,
        background_received=received - foreground_received,
        duplicates=0,
        out_of_order=0,
        stale=0,
        corrupted=0,
        send_time_s=trial.duration_s,
        lateness_us=Quantiles(p50=0.5, p99=1.0, p999=2.0, max=max(2.0, stall_us)),
        stall_us=LoopStall(sender=stall_us, receiver=0.0),
        not_accepted=intended - sent,
        tester_drops={"nic_missed": tally.missed} if tally.missed else {},
        dut_input_drops=0,
        other_received={},
        late_bursts=truth.late_bursts(trial, direction, away_s),
        losses=truth.losses_of(trial, direction, tally.losses),
        arrivals=truth.arrivals_of(trial.times(direction), sent, tally.losses, tally.delay_us / 1e6),
    )


def _write(
    trial: Trial, direction: Direction, numbers: Numbers, delays_us: np.ndarray[Any, np.dtype[np.float64]]
) -> DelaysWritten | None:
    """The delays to the file that ``trial`` names, as the engine does (protocol/README.md)."""
    path = None if trial.delays_files is None else getattr(trial.delays_files, direction)
    if path is None:
        return None
    records = np.zeros(len(numbers), dtype=[("sequence", "<u8"), ("delay_ns", "<f8")])
    records["sequence"], records["delay_ns"] = numbers, delays_us * 1000
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    np.save(path, records)
    return DelaysWritten(written=len(records), unwritten=0)


def _delays(delays_us: np.ndarray[Any, np.dtype[np.float64]]) -> Delays | None:
    """Quantiles by RFC 2330 11.3; None without delays."""
    if not len(delays_us):
        return None
    ordered = np.sort(delays_us)
    p50, p99, p999 = (float(ordered[ceil(share * len(ordered)) - 1]) for share in (0.5, 0.99, 0.999))
    return Delays(min=float(ordered[0]), p50=p50, p99=p99, p999=p999, max=float(ordered[-1]), buckets=_buckets(ordered))


def _buckets(ordered: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[tuple[float, int], ...]:
    """As the engine has them, with its precision; the last one ends with the largest delay."""
    lead, exponent = np.frexp(np.maximum(ordered, SMALLEST_US))
    part = np.floor(lead * 2 * BUCKETS_OF_OCTAVE)
    ends, counts = np.unique(np.ldexp((part + 1) / BUCKETS_OF_OCTAVE, exponent - 1), return_counts=True)
    return tuple(zip([*map(float, ends[:-1]), float(ordered[-1])], map(int, counts), strict=True))


def _changes(delays_us: np.ndarray[Any, np.dtype[np.float64]]) -> DelayChanges:
    ordered = np.sort(np.diff(delays_us))
    return DelayChanges(min=float(ordered[0]), p50=float(ordered[ceil(0.5 * len(ordered)) - 1]), max=float(ordered[-1]))


def _stamped_numbers(trial: Trial, direction: Direction, stamped: int) -> Numbers:
    """Numbers of the stamped frames: all, or one in each of as many parts as there are tags
    (protocol/README.md)."""
    index = np.arange(stamped)
    if trial.tagged is None:
        return index
    first = trial.times(direction).frames_before(trial.tagged.after_ns)
    begin, end = ((index + one) * (trial.intended(direction) - first) // trial.tagged.count for one in (0, 1))
    random = np.random.default_rng([trial.seed, list(Direction).index(direction)])
    return first + np.where(index == 0, 0, random.integers(begin, end))


def _foreground(stream: Stream, frames: int) -> int:
    """How many of the first ``frames`` are foreground: frame k with k mod n < m."""
    return frames // stream.n * stream.m + min(frames % stream.n, stream.m)


def _report(trial: Trial, counts: Mapping[Direction, DirectionCounts], on_progress: ProgressCallback) -> None:
    """Progress at each full second of the sending time."""
    sent, received = (sum(getattr(one, name) for one in counts.values()) for name in ("sent", "received"))
    for second in range(1, int(trial.duration_s) + 1):
        share = second / trial.duration_s
        on_progress(Progress(elapsed_s=float(second), sent=int(sent * share), received=int(received * share)))
