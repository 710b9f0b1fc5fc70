# SPDX-License-Identifier: Apache-2.0
"""Measures how much time of a DUT's cores on this machine other processes took during a trial.

A DUT in a namespace has a core, but is not isolated on it. When a compiler or the hypervisor takes
that core, the DUT loses frames that it would have forwarded, and the result would depend on this
machine's other work. Soft interrupt time is kernel forwarding and counts as the DUT's, as does the
time of the processes in its namespace. The rest of a core's busy time, and the time that the
hypervisor stole, was taken from the DUT.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

PROC = Path("/proc")
NETNS = Path("/run/netns")
COARSE_SHARE = 0.05
"""Smallest share that the tick counters show reliably, in a trial of a second."""
SAMPLE_S = 0.05
"""Between two looks at how long the DUT's processes have waited."""
MAX_SAMPLE_S = 0.15
"""A look that comes later than this says nothing of what is usual."""
MIN_SAMPLES = 8
DISTURBED = 2.0
MAX_USUAL_SHARE = 0.05
"""A DUT that waits for more of the time even then is disturbed throughout."""
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7
"""Fields of /proc/stat's lines (proc(5)), in ticks."""


@dataclass(frozen=True)
class DutCores:
    """The DUT's cores, and the namespaces of its processes (none: it runs in the kernel only)."""

    cores: tuple[int, ...]
    netns: str | None
    namespaces: tuple[int, ...] = ()
    """Further namespaces, by the inodes of their files."""
    pids: tuple[int, ...] = ()
    """The DUT's processes in other namespaces, and kernel threads that work for it alone."""

    def reading(self, proc: Path = PROC) -> Reading:
        """Read the counters now."""
        own = {
            pid: _own_ticks(proc / str(pid))
            for pid in (*self._processes(proc), *self.pids)
            if (proc / str(pid)).exists()
        }
        return Reading(
            busy_ticks=_ticks(proc / "stat", self.cores, (_USER, _NICE, _SYSTEM, _STEAL)),
            own_ticks=own,
            waited_ns={pid: _waited_ns(proc / str(pid)) for pid in own},
            stolen_ticks=_ticks(proc / "stat", self.cores, (_STEAL,)),
        )

    def _processes(self, proc: Path) -> Iterator[int]:
        named = None if self.netns is None else _inode(NETNS / self.netns)
        wanted = {*self.namespaces, named} - {None}
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
        them counts as none. ``usual_s`` of waiting is nobody's doing (:func:`usual_wait_s`)."""
        share, waited_s = self.taken_since(before, elapsed_s, cores), self.waited_since(before, usual_s)
        taken_s = (share or 0.0) * elapsed_s * cores
        return Starvation(share, waited_s, max(waited_s, taken_s if (share or 0.0) > COARSE_SHARE else 0.0))

    def waited_since(self, before: Reading, usual_s: float = 0.0) -> float:
        """Seconds for which the DUT's processes were ready to run and had no core, summed over all
        cores, beyond ``usual_s``; for a DUT in the kernel alone only the stolen time."""
        waited_ns = sum(waited - before.waited_ns.get(pid, 0) for pid, waited in self.waited_ns.items())
        return max(0.0, waited_ns / 1e9 - usual_s) + max(0, self.stolen_ticks - before.stolen_ticks) / os.sysconf(
            "SC_CLK_TCK"
        )

    def taken_since(self, before: Reading, elapsed_s: float, cores: int) -> float | None:
        """Share (0-1) of the cores' time since ``before`` that others took; None where a process of
        the DUT has ended: its time is unknown."""
        if before.own_ticks.keys() - self.own_ticks.keys():
            return None
        others = (self.busy_ticks - before.busy_ticks) - (sum(self.own_ticks.values()) - sum(before.own_ticks.values()))
        return min(1.0, max(0.0, others / (os.sysconf("SC_CLK_TCK") * elapsed_s * cores))) if elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class Wait:
    """How long the DUT's processes waited for a core in a part of a trial."""

    elapsed_s: float
    waited_s: float


def usual_wait_s(waits: Sequence[Wait], drain_s: float = 0.0) -> float:
    """The part of the waiting that comes with a process which sleeps and wakes: each time it waits
    for a microsecond or so until its core has switched to it, which adds up to tens of milliseconds
    a second.

    It goes on evenly. So it is what the quietest quarter of a trial's parts have at most; a part
    with more than ``DISTURBED`` times as much was disturbed and has only so much of it. Parts that
    were read so late that a disturbance could hide in them have none. ``drain_s``: the last seconds,
    in which the DUT has too little to do to show what is usual.
    """
    regular = [one for one in waits if one.elapsed_s <= MAX_SAMPLE_S]
    ends_s = accumulate(one.elapsed_s for one in waits)
    sent_s = sum(one.elapsed_s for one in waits) - drain_s
    shares = sorted(
        one.waited_s / one.elapsed_s
        for one, end_s in zip(waits, ends_s, strict=True)
        if one.elapsed_s <= MAX_SAMPLE_S and end_s <= sent_s
    )
    if len(shares) < MIN_SAMPLES:
        return 0.0
    usual = shares[len(shares) // 4]
    if usual > MAX_USUAL_SHARE:
        return 0.0
    return sum(
        usual * one.elapsed_s if one.waited_s > DISTURBED * usual * one.elapsed_s else one.waited_s for one in regular
    )


class _WaitSampler:
    """Reads in a thread of its own how long processes have waited so far, every ``SAMPLE_S``.

    It runs on the DUT's core as a rule, so it reads open files: looking for them takes longer than a
    frame may wait. It does not see threads that start later.
    """

    def __init__(self, processes: Iterable[Path]) -> None:
        self._files = [fd for process in processes for fd in _opened(process.glob("task/*/schedstat"))]
        self._samples = [self._sample()]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def waits(self) -> list[Wait]:
        """Stop, and return the waits so far."""
        self._stopped.set()
        self._thread.join()
        while self._files:
            os.close(self._files.pop())
        return [Wait(now[0] - then[0], (now[1] - then[1]) / 1e9) for then, now in pairwise(self._samples)]

    def _run(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            self._samples.append(self._sample())

    def _sample(self) -> tuple[float, int]:
        waited_ns = 0
        for fd in self._files:
            with suppress(OSError):  # of a thread that has ended
                waited_ns += _wait_of(os.pread(fd, 128, 0))
        return time.monotonic(), waited_ns


class DutWatch:
    """Reads a DUT's cores before and after each trial, and how long its processes wait during it."""

    def __init__(self, cores: DutCores, proc: Path = PROC) -> None:
        self._cores = cores
        self._proc = proc
        self._before: Reading | None = None
        self._began_s = 0.0
        self._had_processes = False
        self._sampler: _WaitSampler | None = None

    def begin(self) -> None:
        """Call this before a trial."""
        self._before = self._cores.reading(self._proc)
        self._had_processes |= bool(self._before.own_ticks)
        self._began_s = time.monotonic()
        if self._sampler is not None:  # of a trial that raised
            self._sampler.waits()
        pids = self._before.own_ticks
        self._sampler = _WaitSampler(self._proc / str(pid) for pid in pids) if pids else None

    def starvation(self, drain_s: float = 0.0) -> Starvation:
        """The CPU time that the DUT did not get since :meth:`begin`; zero if all its processes have
        ended, because a dead DUT needs no core. ``drain_s``: time since the last frame was sent."""
        sampler, self._sampler = self._sampler, None
        usual_s = 0.0 if sampler is None else usual_wait_s(sampler.waits(), drain_s)
        elapsed_s, now = time.monotonic() - self._began_s, self._cores.reading(self._proc)
        if self._before is None or (self._had_processes and not now.own_ticks):
            return Starvation()
        return now.starvation_since(self._before, elapsed_s, len(self._cores.cores), usual_s)


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


def _ticks(stat: Path, cores: Sequence[int], fields: Sequence[int]) -> int:
    lines = {line.split()[0]: line.split()[1:] for line in stat.read_text().splitlines() if line.startswith("cpu")}
    return sum(int(lines[f"cpu{core}"][number]) for core in cores if f"cpu{core}" in lines for number in fields)


def _waited_ns(process: Path) -> int:
    """Time that the live threads of a process waited for a core."""
    waited = 0
    with suppress(OSError):
        for task in (process / "task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                waited += _wait_of((task / "schedstat").read_bytes())
    return waited


def _wait_of(schedstat: bytes) -> int:
    """The second of the file's three numbers (Documentation/scheduler/sched-stats), in ns."""
    return int(schedstat.split()[1])


def _opened(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        with suppress(OSError):
            yield os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _own_ticks(process: Path) -> int:
    """User and system time of a process; 0 where it has ended."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _inode(link: Path) -> int | None:
    try:
        return link.stat().st_ino
    except OSError:
        return None
