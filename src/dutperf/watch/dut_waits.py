# SPDX-License-Identifier: Apache-2.0
"""How long the work of a DUT on this machine waits for a core, and when that is more than usual.

A DUT's processes wait while others run on their core. So do soft interrupts, the kernel's part of
forwarding: an interrupt does so much of them, and leaves the rest to a thread of the core,
``ksoftirqd``. While that waits behind another task, nothing is forwarded but at the timer's ticks; since Linux 6.5 also
with every other interrupt, so that it may wait without a pause of the DUT
(:attr:`dutperf.watch.dut_core.Starvation.arrivals_show_pauses`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from dutperf.model import LOSS_BINS

SAMPLE_S = 0.05
"""Between two looks at how long the DUT's processes have waited, at most."""
FINE_SAMPLE_S = 0.02
"""The same if a part of the sending time (``LOSS_BINS``) is shorter than that: a disturbance takes all parts
between two looks, and with fewer looks hardly any part would be clear."""
MIN_SAMPLE_S = 0.01
"""More often they would take too much of the DUT's core themselves."""
SAMPLES = 12
"""At least so many looks in a shorter trial."""
MAX_SAMPLE_S = 0.15
"""A look that comes later than this says nothing of what is usual."""
MIN_SAMPLES = 8
"""Fewer do not show what is usual."""
DISTURBED = 2.0
"""A part with this many times the usual waiting was disturbed."""
MAX_USUAL_SHARE = 0.05
"""A DUT that waits for more of the time even in its quietest quarter is disturbed throughout."""
MAX_THREADS = 256
"""Of the DUT's, that are sampled: each takes an open file."""
SHORT_SOFTIRQ_WAIT_NS = 1_000_000
"""Soft interrupts that wait for less between two looks lose nothing: as with a frame that is less than a
millisecond late, a queue of the kernel (netdev_max_backlog: 1,000 frames) has room for what comes meanwhile."""
TICK_S = 0.01
"""Longest time between two ticks of a kernel (CONFIG_HZ=100)."""
STEAL = 7
"""Field of a core in /proc/stat: stolen time, in ticks."""
STAT_BYTES = 64 * 1024
"""The lines of 500 cores and more."""


@dataclass(frozen=True)
class Disturbance:
    """A part of a trial in which a DUT's work waited for its core longer than usual. Times are
    those of :func:`time.monotonic`."""

    began_s: float
    ended_s: float
    waited_s: float
    """How much longer."""

    def since(self, earliest_s: float, latest_s: float) -> Disturbance:
        """The same, as long as it may have been, in seconds since a time between both."""
        return replace(self, began_s=self.began_s - latest_s, ended_s=self.ended_s - earliest_s)


@dataclass(frozen=True)
class Times:
    """How long threads ran and waited for a core."""

    ran_ns: int = 0
    waited_ns: int = 0

    def __add__(self, other: Times) -> Times:
        return Times(self.ran_ns + other.ran_ns, self.waited_ns + other.waited_ns)

    def __sub__(self, other: Times) -> Times:
        return Times(self.ran_ns - other.ran_ns, self.waited_ns - other.waited_ns)


@dataclass(frozen=True)
class Wait:
    """How long the DUT's work waited for a core in a part of a trial."""

    elapsed_s: float
    waited_s: float
    ended_s: float = 0.0
    """By :func:`time.monotonic`."""
    stolen_s: float = 0.0
    """Time of the DUT's cores that the hypervisor took."""
    ran_s: float = 0.0
    """How long the DUT's processes, and the kernel's threads for soft interrupts, ran."""
    for_each_other_s: float = 0.0
    """How long DUTs that share a core waited while another of them ran; not in ``waited_s``."""

    @property
    def began_s(self) -> float:
        """By :func:`time.monotonic`, at the earliest: a wait is counted when it ends, and stolen time
        later."""
        return self.ended_s - self.elapsed_s - self.waited_s - (SAMPLE_S if self.stolen_s else 0.0)


def without_each_other(waits: Iterable[Wait]) -> Iterator[Wait]:
    """The waits of DUTs that share one core, without those for each other: at most the time for which none of them
    ran.

    How long a thread ran is known up to a tick late. So that time counts where its sum since the first look exceeds
    that of any look before, and a wait may count in the part after its own.
    """
    others_s = most_s = pending_s = 0.0
    for one in waits:
        others_s += one.elapsed_s - one.ran_s
        waited_s = min(one.waited_s + pending_s, max(0.0, others_s - most_s))
        most_s = max(most_s, others_s)
        pending_s = min(TICK_S, one.waited_s + pending_s - waited_s)
        yield replace(one, waited_s=waited_s, for_each_other_s=one.waited_s - waited_s)


def disturbances(waits: Sequence[Wait]) -> tuple[Disturbance, ...]:
    """The parts of a sending time with more waiting than usual, or with stolen time."""
    usual = usual_share(waits)
    return tuple(
        Disturbance(one.began_s, one.ended_s, missing_s)
        for one in waits
        if (missing_s := _unusual_s(one, usual) + one.stolen_s) > 0
    )


def usual_wait_s(waits: Sequence[Wait]) -> float:
    """The part of the waiting that is usual (:func:`usual_share`), in seconds."""
    usual = usual_share(waits)
    return sum(one.waited_s - _unusual_s(one, usual) for one in waits)


def usual_share(waits: Sequence[Wait]) -> float:
    """The share of a sending time for which a DUT's processes usually wait: a process that sleeps and
    wakes waits each time for a microsecond or so until its core has switched to it, which adds up to
    tens of milliseconds a second.

    It goes on evenly. So it is what the quietest quarter of the parts have at most; a part with more
    than ``DISTURBED`` times as much was disturbed and has only so much of it. Parts that were read so
    late that a disturbance could hide in them have none.
    """
    shares = sorted(one.waited_s / one.elapsed_s for one in waits if one.elapsed_s <= MAX_SAMPLE_S)
    if len(shares) < MIN_SAMPLES:
        return 0.0
    usual = shares[len(shares) // 4]
    return 0.0 if usual > MAX_USUAL_SHARE else usual


def _unusual_s(one: Wait, usual: float) -> float:
    """The waiting beyond the ``usual`` share of the time."""
    if one.elapsed_s > MAX_SAMPLE_S or not usual:
        return one.waited_s
    return one.waited_s - usual * one.elapsed_s if one.waited_s > DISTURBED * usual * one.elapsed_s else 0.0


class _Sample(NamedTuple):
    """Contents of the files at a time."""

    at_s: float
    processes: list[bytes]
    softirqs: list[bytes]
    stat: bytes


class WaitSampler:
    """Reads in a thread of its own how long a DUT's work has waited so far, every ``sample_s``.

    It runs on the DUT's core as a rule, where its caches are cold. So it reads open files, and parses
    them after the trial. It does not see threads that start later.
    """

    def __init__(
        self,
        processes: Iterable[Path],
        softirqs: Iterable[Path],
        stat: Path | None,
        cores: Sequence[int],
        sample_s: float,
    ) -> None:
        """``softirqs``: the kernel's threads for soft interrupts on ``cores``. ``stat``: has the ticks of
        ``cores`` that the hypervisor took; None: it never took any."""
        threads = (fd for process in processes for fd in _opened(process.glob("task/*/schedstat")))
        self._processes = list(islice(threads, MAX_THREADS))
        self._softirqs = list(_opened(one / "schedstat" for one in softirqs))
        self._stat = None if stat is None else os.open(stat, os.O_RDONLY | os.O_CLOEXEC)
        self._cores = cores
        self._sample_s = sample_s
        self._samples = [self._sample()]
        self._running = threading.Lock()
        self._running.acquire()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def waits(self) -> list[Wait]:
        """Stop, and return the waits so far."""
        self._running.release()
        self._thread.join()
        self._samples.append(self._sample())  # the thread may have had no core for a while
        for fd in (*self._processes, *self._softirqs, *(() if self._stat is None else (self._stat,))):
            os.close(fd)
        return [self._wait(then, now) for then, now in pairwise(self._samples)]

    def _wait(self, then: _Sample, now: _Sample) -> Wait:
        own, softirqs = _since(then.processes, now.processes), _since(then.softirqs, now.softirqs)
        stolen_s = self._stolen_s(now.stat) - self._stolen_s(then.stat)
        ran_s = (own.ran_ns + softirqs.ran_ns) / 1e9
        return Wait(now.at_s - then.at_s, missing_ns(own, softirqs) / 1e9, now.at_s, stolen_s, ran_s)

    def _run(self) -> None:
        while not self._running.acquire(timeout=self._sample_s):
            self._samples.append(self._sample())

    def _sample(self) -> _Sample:
        processes, softirqs = list(map(_read, self._processes)), list(map(_read, self._softirqs))
        stat = b"" if self._stat is None else os.pread(self._stat, STAT_BYTES, 0)
        return _Sample(time.monotonic(), processes, softirqs, stat)

    def _stolen_s(self, stat: bytes) -> float:
        return ticks(stat.decode(), self._cores, (STEAL,)) / os.sysconf("SC_CLK_TCK")


def sample_s(duration_s: float, *, has_processes: bool = True) -> float:
    """Time between two looks in a trial of this duration; no shorter than necessary for a DUT that is all kernel:
    each look takes up to 0.1 ms of its core, and it rarely waits."""
    of_a_part = min(SAMPLE_S, max(FINE_SAMPLE_S, duration_s / LOSS_BINS)) if has_processes else SAMPLE_S
    return min(of_a_part, max(MIN_SAMPLE_S, duration_s / SAMPLES))


def missing_ns(own: Times, softirqs: Times) -> int:
    """How long a DUT had work to do and no core between two looks, by the times of its processes and of the
    kernel's threads for soft interrupts on its cores. While its own processes run, soft interrupts wait for the
    DUT itself."""
    of_softirqs = softirqs.waited_ns - own.ran_ns
    return own.waited_ns + (of_softirqs if of_softirqs >= SHORT_SOFTIRQ_WAIT_NS else 0)


def waited_ns(process: Path) -> int:
    """Time that the live threads of a process have waited for a core."""
    waited = 0
    for fd in _opened(process.glob("task/*/schedstat")):
        waited += _times(_read(fd)).waited_ns
        os.close(fd)
    return waited


def softirq_threads(proc: Path, cores: Sequence[int]) -> tuple[int, ...]:
    """The kernel's threads for soft interrupts on ``cores``; none where they are not to be seen, as in a
    container."""
    wanted = {f"ksoftirqd/{core}" for core in cores}
    found = []
    for entry in proc.iterdir():
        with suppress(OSError):  # of a process that has ended
            if entry.name.isdigit() and (entry / "comm").read_text().strip() in wanted:
                found.append(int(entry.name))
    return tuple(sorted(found))


def ticks(stat: str, cores: Sequence[int], fields: Sequence[int]) -> int:
    """Sum of ``fields`` over the lines of ``cores`` in /proc/stat (proc(5))."""
    lines = {line.split()[0]: line.split()[1:] for line in stat.splitlines() if line.startswith("cpu")}
    return sum(int(lines[f"cpu{core}"][number]) for core in cores if f"cpu{core}" in lines for number in fields)


def _times(schedstat: bytes) -> Times:
    """The first two of the file's three numbers (Documentation/scheduler/sched-stats); zero of a thread that
    has ended."""
    ran_ns, waited_ns = schedstat.split()[:2] or (0, 0)
    return Times(int(ran_ns), int(waited_ns))


def _since(before: Sequence[bytes], after: Sequence[bytes]) -> Times:
    """The times of threads that have not ended, since ``before``."""
    each = (_times(now) - _times(then) for then, now in zip(before, after, strict=True) if now)
    return sum(each, start=Times())


def _read(schedstat: int) -> bytes:
    """Nothing of a thread that has ended."""
    try:
        return os.pread(schedstat, 128, 0)
    except OSError:
        return b""


def _opened(paths: Iterable[Path]) -> Iterator[int]:
    with suppress(OSError):  # of a process that has ended
        for path in paths:
            with suppress(OSError):
                yield os.open(path, os.O_RDONLY | os.O_CLOEXEC)
