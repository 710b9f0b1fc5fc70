# SPDX-License-Identifier: Apache-2.0
"""What a test does that needs a quiet machine: it tries for a bounded time, and measures meanwhile
whether it has one.

Where no try shows what it should, a busy machine is a reason to skip the test, which says what was
not shown; on a quiet one the test fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pytest

from dutperf.judge.validity import DUT_DISTURBED
from dutperf.model import TrialResult, Verdict

Shown = TypeVar("Shown")

PATIENCE_S = 40
"""Longest time for tries of one test, but for ``FEWEST`` of each thing that it shows: others may take one
of two cores for half a minute."""
FEWEST = 4
FEWEST_IF_BUSY = 2
"""Tries until the first that is enough on a busy machine is taken."""
NOT_SHOWN = "not shown on this machine: "
"""Begins the reason of such a skip (:mod:`conftest` counts them)."""
LOSS_IS_CERTAIN = frozenset({DUT_DISTURBED})
"""For losses that the set-up makes certain: whether others had the DUT's core does not matter to
them."""

_began_s: dict[str, float] = {}
"""When each test began its tries."""
_PROBE_S = 1.0
_PAUSE_NS = 100_000
"""Shorter ones are interrupts."""
_SHARE = 0.02
_LONGEST_S = 0.002


@dataclass(frozen=True)
class Pauses:
    """Of a loop in the tests' session, at its normal priority, that does nothing but read the clock."""

    share: float
    """Of its time in which it did not run (0-1)."""
    longest_s: float

    @property
    def busy(self) -> bool:
        """Whether the machine has other work, or its hypervisor has."""
        return self.share > _SHARE or self.longest_s > _LONGEST_S


def valid(run: Callable[[], TrialResult], in_spite_of: Collection[str] = ()) -> TrialResult:
    """The first valid result. On a busy machine also one against which nothing speaks but causes
    ``in_spite_of``, where there is no other."""

    def in_spite(result: TrialResult) -> bool:
        return result.verdict is Verdict.INVALID and {cause.code for cause in result.causes} <= set(in_spite_of)

    return until(
        run,
        lambda result: result.verdict is Verdict.VALID,
        lambda result: str([cause.text for cause in result.causes]),
        if_busy=in_spite,
    )


def until(
    run: Callable[[], Shown],
    shows: Callable[[Shown], bool],
    describe: Callable[[Shown], str] = str,
    fewest: int = FEWEST,
    if_busy: Callable[[Shown], bool] = lambda _: False,
) -> Shown:
    """The first of ``run``'s results that ``shows`` what a test is about. Without one the test
    fails on a quiet machine, and is skipped on a busy one.

    ``fewest``: tries at least, however long they take. ``if_busy``: what is enough on a machine
    that is shown to be busy; waiting for better there would take a test's whole time.
    """
    began_s = _began_s.setdefault(os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0], time.monotonic())
    pauses, results = list[Pauses](), list[Shown]()
    while len(results) < fewest or time.monotonic() - began_s < PATIENCE_S:
        results.append(run())
        if shows(results[-1]):
            return results[-1]
        pauses += machine_pauses()
        if len(results) >= FEWEST_IF_BUSY and any(one.busy for one in pauses):
            for result in filter(if_busy, results):
                return result
    tries = f"{len(results)} tries, the last: {describe(results[-1]):.500}"
    if not any(one.busy for one in pauses):
        pytest.fail(f"the machine is quiet, and yet: {tries}")
    share, longest_s = max(one.share for one in pauses), max(one.longest_s for one in pauses)
    pytest.skip(f"{NOT_SHOWN}others took up to {share:.0%} of a core, {longest_s * 1000:.1f} ms at a time; {tries}")


def machine_pauses() -> list[Pauses]:
    """Of every core that this process may use, one after the other."""
    with ThreadPoolExecutor(1) as loop:  # a thread of its own: a core is chosen for it alone
        return [loop.submit(_pauses, core).result() for core in sorted(os.sched_getaffinity(0))]


def _pauses(core: int) -> Pauses:
    os.sched_setaffinity(0, {core})
    began = last = time.perf_counter_ns()
    total = longest = 0
    while last - began < _PROBE_S * 1e9:
        now = time.perf_counter_ns()
        if now - last > _PAUSE_NS:
            total, longest = total + now - last, max(longest, now - last)
        last = now
    return Pauses(total / (last - began), longest / 1e9)
