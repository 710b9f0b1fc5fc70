# SPDX-License-Identifier: Apache-2.0
"""Measures how much time of a DUT's cores on this machine other processes took during a trial.

A DUT in a namespace has a core, but is not isolated on it. When a compiler or the hypervisor takes
that core, the DUT loses frames that it would have forwarded, and the result would depend on this
machine's other work. Soft interrupt time is kernel forwarding and counts as the DUT's, as does the
time of the processes in its namespace. The rest of a core's busy time, and the time that the
hypervisor stole, was taken from the DUT.

These are shares of a trial. A turn of a few milliseconds is less than they show, and loses frames all
the same: it shows in how long the DUT's work waited (:mod:`dutperf.watch.dut_waits`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dutperf.watch import neighbours
from dutperf.watch.dut_waits import (
    MAX_USUAL_SHARE,
    SAMPLE_S,
    STEAL,
    Disturbance,
    Wait,
    WaitSampler,
    disturbances,
    sample_s,
    softirq_threads,
    ticks,
    usual_wait_s,
    waited_ns,
    without_each_other,
)

PROC = Path("/proc")
NETNS = Path("/run/netns")
COARSE_SHARE = 0.05
"""Smallest share that the tick counters show reliably, in a trial of a second."""
UNSEEN_SHARE = max(COARSE_SHARE, MAX_USUAL_SHARE)
"""Share of its cores' time that others may take without a counter that shows it: interrupts and other machines' turns
are in no run delay, and the tick counters are coarse. A short pause may also hide in the usual waiting."""
_USER, _NICE, _SYSTEM = 0, 1, 2
"""Fields of /proc/stat's lines (proc(5)), in ticks."""


@dataclass(frozen=True)
class DutCores:
    """The DUT's cores, and the namespaces of its processes (none: it runs in the kernel only)."""

    cores: tuple[int, ...]
    netns: tuple[str, ...] = ()
    """By their names."""
    namespaces: tuple[int, ...] = ()
    """Further namespaces, by the inodes of their files."""
    pids: tuple[int, ...] = ()
    """The DUT's processes in other namespaces, and kernel threads that work for it alone."""
    may_be_idle: bool = False
    """Whether only processes speak for these cores, and no kernel work: they may be a shell or a daemon that forwards
    nothing. Then others take nothing from the DUT but what its processes waited for."""

    share_one: bool = False
    """Whether several DUTs in a row share one core: then they wait for each other."""
    by_tester: bool = False
    """Whether the tester's own loops have one of the cores too."""

    def reading(self, proc: Path = PROC) -> Reading:
        own = {
            pid: _own_ticks(proc / str(pid))
            for pid in (*self._processes(proc), *self.pids)
            if (proc / str(pid)).exists()
        }
        stat = (proc / "stat").read_text()
        return Reading(
            busy_ticks=ticks(stat, self.cores, (_USER, _NICE, _SYSTEM, STEAL)),
            own_ticks=own,
            waited_ns={pid: waited_ns(proc / str(pid)) for pid in own},
            stolen_ticks=ticks(stat, self.cores, (STEAL,)),
        )

    def _processes(self, proc: Path) -> Iterator[int]:
        wanted = {*self.namespaces, *(_inode(NETNS / name) for name in self.netns)} - {None}
        for entry in proc.iterdir() if wanted else ():
            if entry.name.isdigit() and _inode(entry / "ns" / "net") in wanted:
                yield int(entry.name)


@dataclass(frozen=True)
class Starvation:
    """CPU time that a DUT did not get during a trial."""

    share: float | None = None
    """Share (0-1) of its cores' time that others took; None: unknown, or it is not on this
    machine."""
    waited_s: float = 0.0
    """Time for which it was ready to run and had no core."""
    at_most_s: float = 0.0
    """Upper limit of the missing time, by the larger of both figures."""
    unseen_s: float = 0.0
    """Further time that it may have missed while no counter shows it: a share of ``UNSEEN_SHARE``. The usual waiting
    of a process that sleeps and wakes is less."""
    disturbances: tuple[Disturbance, ...] = ()
    """When it was without its core, as far as known, in seconds since sending began."""
    by_tester: bool = False
    """Whether the tester's own loops are among those others."""
    arrivals_show_pauses: bool = False
    """Whether it is all kernel, on one core: then it pauses only where nothing arrives. Its soft interrupts are done
    with any interrupt as well while their thread waits (Linux 6.5)."""


@dataclass(frozen=True)
class Reading:
    """Sums over the DUT's cores, in clock ticks: time without soft interrupts, and the part of the
    DUT's processes."""

    busy_ticks: int
    own_ticks: Mapping[int, int]
    """By process."""
    waited_ns: Mapping[int, int] = field(default_factory=dict)
    """By process: how long its threads were ready to run and had no core, in ns."""
    stolen_ticks: int = 0
    """Time of the cores that the hypervisor took."""

    def starvation_since(self, before: Reading, elapsed_s: float, cores: int, usual_s: float = 0.0) -> Starvation:
        """The CPU time that the DUT did not get since ``before``. Ticks are coarse: a small share of
        them counts as none. ``usual_s`` of the missing time does not count. ``cores``: how many are the DUT's; 0: none
        is known to be, so only its processes' waiting counts."""
        share = self.taken_since(before, elapsed_s, cores) if cores else None
        waited_s = self.waited_since(before, usual_s)
        taken_s = (share or 0.0) * elapsed_s * cores
        return Starvation(share, waited_s, max(waited_s, taken_s if (share or 0.0) > COARSE_SHARE else 0.0))

    def waited_since(self, before: Reading, usual_s: float = 0.0) -> float:
        """Seconds for which the DUT's processes were ready to run and had no core, summed over all
        cores, and stolen time, beyond ``usual_s``; of what it does in soft interrupts only the stolen time."""
        waited_ns = sum(waited - before.waited_ns.get(pid, 0) for pid, waited in self.waited_ns.items())
        stolen_s = max(0, self.stolen_ticks - before.stolen_ticks) / os.sysconf("SC_CLK_TCK")
        return max(0.0, max(0.0, waited_ns / 1e9) + stolen_s - usual_s)

    def taken_since(self, before: Reading, elapsed_s: float, cores: int) -> float | None:
        """Share (0-1) of the cores' time since ``before`` that others took; None where a process of
        the DUT has ended: its time is unknown."""
        if before.own_ticks.keys() - self.own_ticks.keys():
            return None
        others = (self.busy_ticks - before.busy_ticks) - (sum(self.own_ticks.values()) - sum(before.own_ticks.values()))
        return min(1.0, max(0.0, others / (os.sysconf("SC_CLK_TCK") * elapsed_s * cores))) if elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class Sending:
    """The sending time of a trial, by :func:`time.monotonic`."""

    earliest_s: float
    """It began between this..."""
    latest_s: float
    """... and this: the tester's messages arrive with a delay, and a long one on a busy machine."""
    duration_s: float


class DutWatch:
    """Reads a DUT's cores before and after each trial, and how long its work waits during it."""

    def __init__(self, cores: DutCores, proc: Path = PROC) -> None:
        self._cores = cores
        self._proc = proc
        self._before: Reading | None = None
        self._began_s = 0.0
        self._had_processes = False
        self._sampler: WaitSampler | None = None
        self._load: neighbours.Load | None = None
        self.pids: frozenset[int] = frozenset()
        """The DUT's processes in the last trial."""
        self._softirqs = [proc / str(pid) for pid in softirq_threads(proc, cores.cores)]  # as long as the machine runs

    def begin(self, duration_s: float = math.inf) -> None:
        """Call this before a trial that sends for ``duration_s``."""
        self._before = self._cores.reading(self._proc)
        self._had_processes |= bool(self._before.own_ticks)
        self._began_s = time.monotonic()
        self._waits()  # of a trial that raised
        self._load = neighbours.reading(self._cores.cores, self._proc) if self._cores.share_one else None
        if self._before.own_ticks or self._softirqs:
            self._sampler = WaitSampler(
                [self._proc / str(pid) for pid in self._before.own_ticks],
                self._softirqs,
                self._proc / "stat" if self._before.stolen_ticks else None,
                self._cores.cores,
                sample_s(duration_s, has_processes=bool(self._before.own_ticks)),
            )

    def starvation(self, sending: Sending | None = None) -> Starvation:
        """The CPU time that the DUT did not get since :meth:`begin`; zero if all its processes have
        ended, because a dead DUT needs no core.

        Waiting before and after ``sending`` does not count: it loses no frames, and shows nothing of
        what is usual. None: unknown.
        """
        waits = self._waits()
        elapsed_s, now = time.monotonic() - self._began_s, self._cores.reading(self._proc)
        if self._before is None or (self._had_processes and not now.own_ticks):
            return Starvation()
        time_s = sending or Sending(-math.inf, math.inf, math.inf)
        during = [
            one
            for one in waits
            if one.ended_s > time_s.earliest_s - SAMPLE_S and one.began_s < time_s.latest_s + time_s.duration_s
        ]
        idle_s = sum(one.waited_s + one.stolen_s for one in waits) - sum(one.waited_s + one.stolen_s for one in during)
        usual_s = usual_wait_s(during) + sum(one.for_each_other_s for one in waits)
        cores = 0 if self._cores.may_be_idle else len(self._cores.cores)
        missed = now.starvation_since(self._before, elapsed_s, cores, idle_s + usual_s)
        known = disturbances(during)
        known_s = sum(one.waited_s for one in known)  # also of soft interrupts, and threads that have ended since
        waited_s, at_most_s = max(missed.waited_s, known_s), max(missed.at_most_s, known_s)
        self.pids = frozenset(now.own_ticks)
        waited_s = min(waited_s, self._taken_s(now, elapsed_s))
        return replace(
            missed,
            waited_s=waited_s,
            at_most_s=at_most_s,
            unseen_s=UNSEEN_SHARE * min(time_s.duration_s, elapsed_s),
            by_tester=self._cores.by_tester,
            arrivals_show_pauses=not self._had_processes and len(self._cores.cores) == 1,
            disturbances=()
            if sending is None
            else tuple(one.since(time_s.earliest_s, time_s.latest_s) for one in known),
        )

    def _taken_s(self, now: Reading, elapsed_s: float) -> float:
        """For how long others had the core of DUTs that share one, which wait mostly for each other. Threads that have
        ended are in the ticks of the core alone, which are coarse."""
        if self._load is None or self._before is None:
            return math.inf
        share = now.taken_since(self._before, elapsed_s, len(self._cores.cores))
        if share is None:
            return math.inf
        by_threads = neighbours.taken_s(
            self._load, neighbours.reading(self._cores.cores, self._proc), now.own_ticks.keys()
        )
        return max(by_threads, share * elapsed_s * len(self._cores.cores) if share > COARSE_SHARE else 0.0)

    def _waits(self) -> list[Wait]:
        """The waits since :meth:`begin`; ends the sampling."""
        sampler, self._sampler = self._sampler, None
        waits = [] if sampler is None else sampler.waits()
        return list(without_each_other(waits)) if self._cores.share_one else waits


def yield_to_the_dut() -> None:
    """Give this process the lowest priority, so that a DUT on its core does not lose frames to a
    progress line.

    The engine's hot loops raise their own priority again.
    """
    os.setpriority(os.PRIO_PROCESS, 0, 19)


@contextmanager
def yielding_to_the_dut() -> Iterator[None]:
    """The same within a context; afterwards the old priority is restored, if the kernel permits."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    yield_to_the_dut()
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


@contextmanager
def keeping_off(cores: Collection[int]) -> Iterator[None]:
    """Within, the calling thread and those that it starts keep off ``cores``, if others are left. The scheduler would
    often choose the DUT's core: a core that does soft interrupts looks idle to it."""
    before = os.sched_getaffinity(0)
    left = before - set(cores)
    if not left or left == before:
        yield
        return
    os.sched_setaffinity(0, left)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _inode(link: Path) -> int | None:
    try:
        return link.stat().st_ino
    except OSError:
        return None


def _own_ticks(process: Path) -> int:
    """User and system time of a process; 0 where it has ended."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
