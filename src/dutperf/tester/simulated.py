# SPDX-License-Identifier: Apache-2.0
"""A simulated tester and DUT in virtual time. The DUT's properties are known, so a procedure's result
can be checked against them.

The DUT is a server of constant capacity with a tail-drop queue; it may also lose frames at random.
The tester has limits and disturbances of its own. Its counts are judged by the same rules as a real
tester's (:mod:`dutperf.judge.validity`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from dutperf.judge import validity
from dutperf.model import (
    AdditionalCounts,
    Clocks,
    ConnectionCounts,
    ConnectionUse,
    DelayChanges,
    Delays,
    Direction,
    DirectionCounts,
    IdleTimes,
    InSum,
    LineCounts,
    LoopStall,
    OfChanges,
    Quantiles,
    RecordsWritten,
    StampClock,
    StampCounts,
    Stamping,
    Stream,
    Trial,
    TrialResult,
    members_of,
)
from dutperf.tester import EndTrial, Progress, ProgressCallback, truth
from dutperf.tester.simulated_switch import AddressTable, SimulatedSwitch
from dutperf.tester.truth import NO_LIMIT, Lost

Numbers = np.ndarray[Any, np.dtype[np.int64]]
BUCKETS_OF_OCTAVE = 8
SMALLEST_US = 1e-3
"""Smaller delays count as this in the buckets."""
DISTURBANCE_S = (0.06, 0.2)
"""Range of a disturbed tester's stall: long enough to be detected."""
TSC = StampClock(name="TSC", at="loop")
KERNEL_CLOCK = StampClock(name="CLOCK_REALTIME", at="kernel")
LOOP_CLOCKS = Clocks(sending=TSC, receiving=TSC, error_us=0.02)
KERNEL_CLOCKS = Clocks(sending=KERNEL_CLOCK, receiving=KERNEL_CLOCK, error_us=0.0, step_us=0.0)
CARD_CLOCKS = Clocks(
    sending=StampClock(name="ptp0", at="card"),
    receiving=StampClock(name="ptp1", at="card"),
    error_us=0.5,
    step_us=0.0,
    offset_us=1e6,
    drift_ppm=-2.0,
    unread_us=20_000.0,
)
CLOCKS = {None: LOOP_CLOCKS, "kernel": KERNEL_CLOCKS, "auto": KERNEL_CLOCKS, "card": CARD_CLOCKS}
"""By who stamps the frames of a trial."""
ALL_STAMPED = StampCounts(both=0, no_transmit=0, no_receive=0, impossible=0)
FILLED = LineCounts(
    mbps=10_000,
    fillers=0,
    shortest_filler=64,
    forwarded=0,
    returned=0,
    idle=IdleTimes(times=0, longest_us=0.0),
    early_us=0.0,
    error_us=Quantiles(p50=0.0, p99=0.0, p999=0.0, max=0.0),
)
"""A filled line without error: nothing is on it in virtual time."""


@dataclass(frozen=True)
class SimulatedDut:
    """The ground truth of the DUT."""

    capacity_fps: float | Mapping[Direction, float] = NO_LIMIT
    """Frames/s that it can forward in each direction; ``shared``: in both together."""
    shared: bool = False
    queue_frames: int = 0
    """Size of the queue of each direction; further frames are lost."""
    loss_ratio: float = 0.0
    """Share of the forwarded frames that is lost at random."""
    delay_us: float = 10.0
    """One-way delay of every frame."""
    jitter_us: float = 0.0
    """Mean of the additional delay, which is exponentially distributed."""
    slow_every: int | None = None
    """One of this many frames is delayed by ``slow_us`` more. The first of them differs from trial to
    trial, by the tester's seed."""
    slow_us: float = 0.0
    dip_fps: tuple[float, float] | None = None
    """Range of offered rates (without the upper end) at which it loses every hundredth frame, even if
    it can forward higher ones."""
    hiccup_ratio: float = 0.0
    """Share of the trials in which one frame is lost, at any rate."""
    dies_after_trials: int | None = None
    """After this many trials it forwards nothing."""
    dead_directions: frozenset[Direction] = frozenset()
    """Directions in which it forwards nothing."""
    recovery_s: float = 0.0
    """For how long after an overload, when the rate has changed, it still loses frames."""
    outage_s: tuple[float, float] | None = None
    """In every trial it loses the frames that are sent between these two times after the start; its
    capacity then plays no role."""

    addresses: AddressTable = field(default_factory=AddressTable)
    """Its address table, where it is a switch."""

    def alive(self, direction: Direction, trials_before: int) -> bool:
        """Whether the DUT forwards frames in ``direction``."""
        return direction not in self.dead_directions and (
            self.dies_after_trials is None or trials_before < self.dies_after_trials
        )

    def lapses(self, offered_fps: int, sent: int, random: np.random.Generator) -> int:
        """Frames of ``sent`` that an inconsistent DUT loses for reasons other than its capacity."""
        dips = self.dip_fps is not None and self.dip_fps[0] <= offered_fps < self.dip_fps[1]
        hiccups = self.hiccup_ratio > 0 and random.random() < self.hiccup_ratio
        return (-(-sent // 100) if dips else 0) + (1 if hiccups else 0)

    def capacity(self, direction: Direction, offered_fps: Mapping[Direction, int]) -> float:
        """Frames/s for ``direction`` at the offered load ``offered_fps``. Directions get a shared
        capacity in proportion to their loads."""
        capacity_fps = (
            self.capacity_fps
            if not isinstance(self.capacity_fps, Mapping)
            else self.capacity_fps.get(direction, NO_LIMIT)
        )
        return capacity_fps * offered_fps[direction] / sum(offered_fps.values()) if self.shared else capacity_fps


@dataclass(frozen=True)
class SimulatedLimits:
    """Limits and disturbances of the tester."""

    send_fps: float = NO_LIMIT
    """Highest rate per direction at which it can send."""
    receive_fps: float = NO_LIMIT
    """Highest rate per direction at which it can receive; it drops and counts further frames."""
    disturbed_ratio: float = 0.0
    """Share of the trials in which another process takes the sender's core for a while."""


@dataclass
class SimulatedTester:
    """A :class:`dutperf.tester.Tester`. With the same ``seed``, the same trials in the same order
    have the same results."""

    dut: SimulatedDut = field(default_factory=SimulatedDut)
    limits: SimulatedLimits = field(default_factory=SimulatedLimits)
    seed: int = 0
    trials: list[Trial] = field(default_factory=list)
    """The trials so far."""
    _delays: list[np.ndarray[Any, np.dtype[np.float64]]] = field(default_factory=list, repr=False)
    """Of the last trial's paths, in microseconds."""
    _own_switch: SimulatedSwitch | None = field(default=None, repr=False)

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        random = np.random.default_rng([self.seed, len(self.trials)])
        stall_s = random.uniform(*DISTURBANCE_S) if random.random() < self.limits.disturbed_ratio else 0.0
        self._delays.clear()
        counts = {direction: self._count(trial, direction, stall_s, random) for direction in trial.all_streams()}
        counts = self._switch().flood(trial, counts)
        self.trials.append(trial)
        if on_progress is not None:
            with suppress(EndTrial):  # its result comes all at once
                _report(trial, counts, on_progress)
        verdict, causes = validity.judge(trial, counts)
        return TrialResult(
            trial=trial.trial,
            verdict=verdict,
            causes=causes,
            proven_failed=validity.proven_failed(trial, counts, causes),
            **members_of(counts),
            in_sum=None if trial.paths is None else self._in_sum(),
            connections=_connections(trial, counts),
            doubts=validity.doubts(trial, counts),
        )

    def _switch(self) -> SimulatedSwitch:
        if self._own_switch is None:
            self._own_switch = SimulatedSwitch(self.dut.addresses)
        return self._own_switch

    def wait_until_quiet(self, limit_s: float) -> float:
        """Nothing disturbs virtual time."""
        return 0.0

    def environment(self) -> dict[str, Any]:
        return {"tester": "simulated", "seed": self.seed, "dut": repr(self.dut), "limits": repr(self.limits)}

    def close(self) -> None:
        """Nothing to release."""

    def _count(
        self, trial: Trial, direction: Direction, stall_s: float, random: np.random.Generator
    ) -> DirectionCounts:
        intended = trial.intended(direction)
        sent = min(
            intended, int(self.limits.send_fps * trial.duration_s) if self.limits.send_fps < NO_LIMIT else intended
        )
        losses = self._losses(trial, direction, sent, stall_s)
        passing = sent - sum(one.count for one in losses)
        lapsed = self._lapses(trial.all_streams()[direction].rate_fps, sent, passing, random) if passing else 0
        missed = passing - lapsed - truth.room_for(self.limits.receive_fps, trial.duration_s, passing - lapsed)
        losses += [Lost(0, sent, count) for count in (lapsed, missed) if count]
        counts = _counts(trial, direction, _Tally(sent, missed, tuple(losses), self.dut.delay_us), stall_s)
        return counts if trial.stamping is Stamping.NONE else self._stamped(trial, direction, counts, random)

    def _stamped(
        self, trial: Trial, direction: Direction, counts: DirectionCounts, random: np.random.Generator
    ) -> DirectionCounts:
        """``counts`` with the delays of the stamped frames; their loss ratio is that of all frames."""
        stamped = min(counts.sent, _tags(trial, direction))
        arrived = round(stamped * counts.received / counts.sent) if counts.sent else 0
        numbers = _stamped_numbers(trial, direction, stamped)[:arrived]
        delays_us = self._delays_us(numbers, random)
        late = 0 if trial.frame_timeout_ns is None else int((delays_us > trial.frame_timeout_ns / 1000).sum())
        with_lost = (
            delays_us
            if trial.lost_delay_ns is None
            else np.append(delays_us, np.full(stamped - arrived, trial.lost_delay_ns / 1000))
        )
        if not direction.stream:
            self._delays.append(with_lost)
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
        others = {
            "stamps": None if trial.stamps is None else ALL_STAMPED.model_copy(update={"both": arrived}),
            "clocks": CLOCKS[trial.stamps],
            "delay_parts_us": self._of_parts(trial, direction, stamped, random),
        }
        files = {"delays_file": _write(trial, direction, numbers, delays_us)}
        return counts.model_copy(update=update | stamps | others | files)

    def _in_sum(self) -> InSum | None:
        delays = _delays(np.concatenate(self._delays)) if self._delays else None
        return None if delays is None else InSum(delay_us=delays)

    def _of_parts(
        self, trial: Trial, direction: Direction, stamped: int, random: np.random.Generator
    ) -> tuple[tuple[float, float, float] | None, ...] | None:
        """Delays of each part of the sending time, with those of lost frames; None: not asked for."""
        if trial.delay_parts is None:
            return None
        times, numbers = trial.times(direction), _stamped_numbers(trial, direction, stamped)
        ends = [trial.duration_ns * part // trial.delay_parts for part in range(1, trial.delay_parts)]
        parts = np.split(numbers, np.searchsorted(numbers, [times.frames_before(end_ns) for end_ns in ends]))
        told = (_delays(self._delays_us(part, random)) if len(part) else None for part in parts)
        return tuple(None if one is None else (one.p50, one.p99, one.max) for one in told)

    def _delays_us(self, numbers: Numbers, random: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Delays of the frames with these ``numbers``."""
        frames = len(numbers)
        delays_us = self.dut.delay_us + (
            random.exponential(self.dut.jitter_us, frames) if self.dut.jitter_us else np.zeros(frames)
        )
        if self.dut.slow_every is not None:
            delays_us[(numbers + random.integers(self.dut.slow_every)) % self.dut.slow_every == 0] += self.dut.slow_us
        return delays_us

    def _losses(self, trial: Trial, direction: Direction, sent: int, stall_s: float) -> list[Lost]:
        """The ``sent`` frames that the DUT loses by overload or outage."""
        if not self.dut.alive(direction, len(self.trials)):
            return [Lost(0, sent, sent)] if sent else []
        if self.dut.outage_s is not None:
            return truth.out_of_service(trial.times(direction), self.dut.outage_s, sent)
        offered_fps = {one: stream.rate_fps for one, stream in trial.all_streams().items()}
        of_paths = {path: _on(path, offered_fps) for path in dict.fromkeys(one.path for one in offered_fps)}
        share = offered_fps[direction] / of_paths[direction.path]
        capacity_fps, queue = share * self.dut.capacity(direction.path, of_paths), self.dut.queue_frames
        losses = truth.overloaded(trial, direction, sent, (capacity_fps, queue))
        burst = ceil(offered_fps[direction] * stall_s)  # sent at once after the sender's stall
        overrun = min(sent, max(0, burst - queue - 1)) if capacity_fps < NO_LIMIT else 0
        if overrun > sum(one.count for one in losses):
            return [Lost(0, min(sent, burst), overrun)]
        return losses + truth.recovering(trial, direction, self.dut.recovery_s, sent) if losses else []

    def _lapses(self, offered_fps: int, sent: int, passing: int, random: np.random.Generator) -> int:
        """How many of ``passing`` frames are lost for reasons other than capacity."""
        lapsed = min(passing, self.dut.lapses(offered_fps, sent, random))
        return lapsed + int(random.binomial(passing - lapsed, self.dut.loss_ratio))


def _on(path: Direction, offered_fps: Mapping[Direction, int]) -> int:
    """Of all streams of a path."""
    return sum(fps for one, fps in offered_fps.items() if one.path is path)


def _connections(trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> ConnectionCounts | None:
    """Of a DUT that keeps every connection whose frame it forwards."""
    if trial.connections is None:
        return None
    opens, initiator = trial.connections.use is ConnectionUse.OPEN, trial.connections.initiator
    learned = counts[initiator].received if opens else trial.connections.count
    of_connections = (one for way, one in counts.items() if way is initiator or way.leads_back(initiator))
    lost = 0 if opens else min(trial.connections.count, sum(one.lost for one in of_connections))
    return ConnectionCounts(learned=learned, remapped=0, lost=lost)


@dataclass(frozen=True)
class _Tally:
    sent: int
    missed: int
    losses: tuple[Lost, ...]
    delay_us: float

    @property
    def received(self) -> int:
        return self.sent - sum(one.count for one in self.losses)


def _counts(trial: Trial, direction: Direction, tally: _Tally, stall_s: float) -> DirectionCounts:
    intended, sent, received, stream = (
        trial.intended(direction),
        tally.sent,
        tally.received,
        trial.all_streams()[direction],
    )
    foreground_sent, foreground_received = (_foreground(stream, frames) for frames in (sent, received))
    stall_us = stall_s * 1e6
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
        additional=_additional(trial, direction),
        line=None if trial.pacing is None else FILLED,
        late_bursts=truth.late_bursts(trial, direction, stall_s),
        losses=truth.losses_of(trial, direction, tally.losses),
        arrivals=truth.arrivals_of(trial.times(direction), sent, tally.losses, tally.delay_us / 1e6),
    )


def _additional(trial: Trial, direction: Direction) -> tuple[AdditionalCounts, ...] | None:
    """The DUT answers management queries, and forwards no additional frames."""
    kinds = zip(trial.all_streams()[direction].additional, trial.additional(direction), strict=True)
    counts = (
        AdditionalCounts(intended=frames, sent=frames, received=0, replies=frames if kind.replies else 0)
        for kind, frames in kinds
    )
    return tuple(counts) or None


def _write(
    trial: Trial, direction: Direction, numbers: Numbers, delays_us: np.ndarray[Any, np.dtype[np.float64]]
) -> RecordsWritten | None:
    """Write the delays to the file that ``trial`` names, as the engine does (protocol/README.md)."""
    path = None if trial.delays_files is None else getattr(trial.delays_files, direction)
    if path is None:
        return None
    records = np.zeros(len(numbers), dtype=[("sequence", "<u8"), ("delay_ns", "<f8")])
    records["sequence"], records["delay_ns"] = numbers, delays_us * 1000
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    np.save(path, records)
    return RecordsWritten(written=len(records), unwritten=0)


def _delays(delays_us: np.ndarray[Any, np.dtype[np.float64]]) -> Delays | None:
    """Quantiles by RFC 2330 11.3; None without delays."""
    if not len(delays_us):
        return None
    ordered = np.sort(delays_us)
    p50, p99, p999 = (float(ordered[ceil(share * len(ordered)) - 1]) for share in (0.5, 0.99, 0.999))
    return Delays(
        min=float(ordered[0]),
        p50=p50,
        p99=p99,
        p999=p999,
        max=float(ordered[-1]),
        frames=len(ordered),
        by_tester=Quantiles(p50=0, p99=0, p999=0, max=0),
        buckets=_buckets(ordered),
    )


def _buckets(ordered: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[tuple[float, int], ...]:
    """The same buckets as the engine's; the last one ends at the largest delay."""
    lead, exponent = np.frexp(np.maximum(ordered, SMALLEST_US))
    part = np.floor(lead * 2 * BUCKETS_OF_OCTAVE)
    ends, counts = np.unique(np.ldexp((part + 1) / BUCKETS_OF_OCTAVE, exponent - 1), return_counts=True)
    return tuple(zip([*map(float, ends[:-1]), float(ordered[-1])], map(int, counts), strict=True))


def _changes(delays_us: np.ndarray[Any, np.dtype[np.float64]]) -> DelayChanges:
    ordered = np.sort(np.diff(delays_us))
    middle = float(ordered[ceil(0.5 * len(ordered)) - 1])
    return DelayChanges(
        min=float(ordered[0]),
        p50=middle,
        max=float(ordered[-1]),
        pairs=len(ordered),
        by_tester=OfChanges(min=0, p50=0, max=0),
    )


def _tags(trial: Trial, direction: Direction) -> int:
    """Frames of a direction that are to be stamped: of a stream beside the paths that has fewer than tags, all."""
    if trial.tagged is None:
        return trial.intended(direction)
    after = trial.intended(direction) - trial.times(direction).frames_before(trial.tagged.after_ns)
    return min(trial.tagged.count, after)


def _stamped_numbers(trial: Trial, direction: Direction, stamped: int) -> Numbers:
    """Numbers of the stamped frames: all, or one in each of as many parts as there are tags
    (protocol/README.md)."""
    index = np.arange(stamped)
    if trial.tagged is None:
        return index
    first, tags = trial.times(direction).frames_before(trial.tagged.after_ns), _tags(trial, direction)
    begin, end = ((index + one) * (trial.intended(direction) - first) // max(1, tags) for one in (0, 1))
    random = np.random.default_rng([trial.seed, trial.number_of(direction)])
    return first + np.where(index == 0, 0, random.integers(begin, end))


def _foreground(stream: Stream, frames: int) -> int:
    """How many of the first ``frames`` frames are foreground (frame k: k mod n < m)."""
    return frames // stream.n * stream.m + min(frames % stream.n, stream.m)


def _report(trial: Trial, counts: Mapping[Direction, DirectionCounts], on_progress: ProgressCallback) -> None:
    """Progress at each full second of the sending time."""
    sent, received = (sum(getattr(one, name) for one in counts.values()) for name in ("sent", "received"))
    for second in range(1, int(trial.duration_s) + 1):
        share = second / trial.duration_s
        on_progress(Progress(elapsed_s=float(second), sent=int(sent * share), received=int(received * share)))
