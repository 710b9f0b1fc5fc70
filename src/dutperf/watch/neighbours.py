# SPDX-License-Identifier: Apache-2.0
"""Other load on the tester's cores: time that the hypervisor stole, interrupts, and every thread that
ran there last.

It is read before and after a trial, never during it. A trial that is not valid reports with it which
programs held up the loops. A run that waits until the machine is quiet uses the same figures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dutperf.machine import cpu_quota
from dutperf.machine.access import Machine
from dutperf.model.digits import two_digits

PROC = Path("/proc")
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL = 0, 1, 2, 5, 6, 7
"""Fields of /proc/stat's lines (proc(5)), in ticks."""
MOST_NAMED = 2
"""For each core, those that took most: the message has two lines on a terminal."""
LEAST_SHARE = 0.001
LEAST_REST = 0.01
"""Ticks are too coarse for a smaller share."""
QUIET_SHARE = 0.02
"""Largest share of a core that others may take on a quiet machine."""
LOOK_S = 0.25
"""Length of a look at the machine before it counts as quiet."""


@dataclass(frozen=True)
class Thread:
    """A thread, the ``core`` on which it ran last, and its run time so far."""

    name: str
    pid: int
    core: int
    run_ns: int
    parent: int = 0
    """The process that started its own."""


@dataclass(frozen=True)
class Load:
    """A reading: the counters of each core in ticks, and all threads by their number."""

    at_s: float
    cores: Mapping[int, tuple[int, ...]]
    threads: Mapping[int, Thread]
    stopped_s: float = 0.0
    """For how long CPU quotas have stopped this process's control groups so far."""

    def own(self) -> frozenset[int]:
        """This process and those that it started: another run has programs of the same names."""
        parents = {thread.pid: thread.parent for thread in self.threads.values()}
        return frozenset(pid for pid in parents if os.getpid() in _line_of(pid, parents))


def reading(cores: Sequence[int], proc: Path = PROC) -> Load:
    lines = {
        line.split()[0]: line.split()[1:] for line in (proc / "stat").read_text().splitlines() if line.startswith("cpu")
    }
    counters = {core: tuple(map(int, lines[f"cpu{core}"])) for core in cores if f"cpu{core}" in lines}
    return Load(time.monotonic(), counters, dict(_threads(proc)), cpu_quota.stopped_s(Machine(root=proc.parent)))


def _line_of(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    """The process, what started it, and so on. A number that was given anew meanwhile may close a circle."""
    seen: set[int] = set()
    while pid and pid not in seen:
        seen.add(pid)
        yield pid
        pid = parents.get(pid, 0)


def shares(
    before: Load, after: Load, ours: Sequence[str] = (), pids: Collection[int] = ()
) -> dict[int, dict[str, float]]:
    """By core: the shares (0-1) of the time between two readings that others took, the largest first.

    ``ours``: prefixes of the names of this process's programs that should have the cores; ``pids``: processes that
    should, as should soft interrupts with them. A thread counts for the core on which it ran last.
    """
    elapsed_s = max(after.at_s - before.at_s, 1e-9)
    names, own = tuple(ours), after.own()
    by_core = _times(
        before,
        after,
        lambda one: (
            (one.pid in own and one.name.startswith(names)) or one.pid in pids or (bool(pids) and _is_softirq(one))
        ),
    )
    shown: dict[int, dict[str, float]] = {}
    for core, took in by_core.items():
        greatest = sorted(took.items(), key=lambda one: -one[1])
        shown[core] = {name: seconds / elapsed_s for name, seconds in greatest if seconds > 0}
    return shown


def taken_s(before: Load, after: Load, pids: Collection[int]) -> float:
    """For how long others than the processes ``pids`` and soft interrupts had the cores, summed over these. A thread
    counts in full for the core on which it ran last."""
    by_core = _times(before, after, lambda one: one.pid in pids or _is_softirq(one))
    return sum(max(0.0, seconds) for took in by_core.values() for seconds in took.values())


def _is_softirq(thread: Thread) -> bool:
    return thread.name.startswith("ksoftirqd/")


def _times(before: Load, after: Load, is_ours: Callable[[Thread], bool]) -> dict[int, dict[str, float]]:
    """By core and name: how long others ran between two readings, in seconds."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    by_core: dict[int, dict[str, float]] = {}
    for core, counters in after.cores.items():
        since = [now - then for now, then in zip(counters, before.cores.get(core, counters), strict=False)]
        took = by_core[core] = {"stolen by the hypervisor": since[_STEAL] * tick_s, "interrupts": since[_IRQ] * tick_s}
        for number, thread in after.threads.items():
            if thread.core != core or is_ours(thread):
                continue
            name = "dutperf itself" if thread.pid == os.getpid() else thread.name
            began = before.threads.get(number)
            took[name] = took.get(name, 0.0) + (thread.run_ns - (0 if began is None else began.run_ns)) / 1e9
    return by_core


def on_testers(before: Load, after: Load, cores: Collection[int], ours: Sequence[str] = ()) -> str:
    """``on the tester's core 1: 3.1 % stolen by the hypervisor, 2 % kdamond, 23 % small, ended or moved programs``, and
    what a CPU quota did; empty where there was little."""
    stopped_s = after.stopped_s - before.stopped_s
    by_quota = f"the CPU quota of this control group stopped it for {stopped_s:.2g} s" if stopped_s > 0 else ""
    took = {core: took for core, took in shares(before, after, ours).items() if core in cores}
    return "; ".join(filter(None, (by_quota, _sentence("tester's", took, gone_share(before, after, took.keys())))))


def on_duts(before: Load, after: Load, cores: Collection[int], pids: Collection[int]) -> str:
    """The same of a DUT's cores, whose processes are ``pids``."""
    took = {core: took for core, took in shares(before, after, (), pids).items() if core in cores}
    return _sentence("DUT's", took, gone_share(before, after, took.keys(), pids))


def _sentence(whose: str, took: Mapping[int, Mapping[str, float]], gone: float) -> str:
    said = _in_words(took, gone)
    return f"on the {whose} {said}" if said else ""


def gone_share(before: Load, after: Load, cores: Collection[int], pids: Collection[int] = ()) -> float:
    """Of the time of one core: for how long ``cores``, taken together, ran what has ended since or runs elsewhere, but
    for the processes ``pids``."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    busy_s = sum(
        (after.cores[core][field] - before.cores.get(core, after.cores[core])[field]) * tick_s
        for core in cores
        for field in (_USER, _NICE, _SYSTEM)
    )
    ran_ns = sum(
        thread.run_ns - (before.threads[number].run_ns if number in before.threads else 0)
        for number, thread in after.threads.items()
        if (thread.core in cores or thread.pid in pids) and not _is_softirq(thread)
    )
    return max(0.0, (busy_s - ran_ns / 1e9) / max(after.at_s - before.at_s, 1e-9))


def _in_words(by_core: Mapping[int, Mapping[str, float]], gone: float) -> str:
    """The greatest of each core, then what is missing in their sum."""
    texts, rest = [], gone
    for core, took in by_core.items():
        named = {name: share for name, share in list(took.items())[:MOST_NAMED] if share >= LEAST_SHARE}
        rest += sum(took.values()) - sum(named.values())
        each = (f"{two_digits(share * 100)} % {name}" for name, share in named.items())
        texts += [f"core {core}: {', '.join(each)}"] if named else []
    if rest < LEAST_REST:
        return "; ".join(texts)
    said = f"{two_digits(rest * 100)} % small, ended or moved programs"
    return f"{'; '.join(texts)}, {said}" if texts else f"core{'s' if len(by_core) > 1 else ''}: {said}"


def wait_until_quiet(cores: Sequence[int], limit_s: float, ours: Sequence[str] = ()) -> float:
    """Wait until others take next to nothing of ``cores``, ``limit_s`` seconds at most. Returns the
    time waited. None of our loops may spin meanwhile."""
    began_s = time.monotonic()
    before = reading(cores)
    while (waited_s := time.monotonic() - began_s) < limit_s:
        time.sleep(min(LOOK_S, limit_s - waited_s))
        after = reading(cores)
        busiest = max((sum(took.values()) for took in shares(before, after, (*ours, "dutperf")).values()), default=0.0)
        if busiest <= QUIET_SHARE:
            break
        before = after
    return time.monotonic() - began_s


def _threads(proc: Path) -> Iterator[tuple[int, Thread]]:
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            for task in (process / "task").iterdir():
                with suppress(OSError, ValueError, IndexError):
                    run_ns = int((task / "schedstat").read_text().split()[0])
                    head, _, tail = (task / "stat").read_text().rpartition(")")
                    fields = tail.split()
                    name = head.partition("(")[2]
                    yield int(task.name), Thread(name, int(process.name), int(fields[36]), run_ns, int(fields[1]))
