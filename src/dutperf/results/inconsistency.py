# SPDX-License-Identifier: Apache-2.0
"""Inconsistent loads of a DUT: loads that passed although they or a lower load failed, and the
reverse.

RFC 2544 26.1 does not consider such a DUT; RFC 9971 calls it loss inversion. It does not change the
result of a search, which is the highest rate that passed below the lowest that failed. But the
reader has to know that another search might have had another result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from dutperf.model import Load, Sparse
from dutperf.spelling import count_of


class Contradiction(Sparse):
    """A load that contradicts another, and how often it passed and failed."""

    sparse: ClassVar[Sequence[str]] = ("silent",)

    load: Load
    passed: int
    failed: int
    silent: int | None = None
    """Of the trials that failed, those in which nothing came through; None: none."""


def contradictions(loads: Iterable[tuple[Load, str]]) -> tuple[Contradiction, ...]:
    """The ``loads`` that passed at or above one that failed, or failed at or below one that passed.
    All have one unit; their outcomes may be in any order."""
    passed: Counter[Load] = Counter()
    failed: Counter[Load] = Counter()
    silent: Counter[Load] = Counter()
    for load, outcome in loads:
        if outcome != "unmeasurable":
            (passed if outcome == "passed" else failed)[load] += 1
        silent[load] += outcome == "not_forwarding"
    lowest_failed, highest_passed = min(failed, default=None), max(passed, default=None)
    if lowest_failed is None or highest_passed is None:
        return ()
    wrong = {load for load in passed if load >= lowest_failed} | {load for load in failed if load <= highest_passed}
    return tuple(
        Contradiction(load=load, passed=passed[load], failed=failed[load], silent=silent[load] or None)
        for load in sorted(wrong)
    )


def sentence(all_: Sequence[Contradiction]) -> str:
    """A sentence on all contradictions, with their range; empty where there are none."""
    if not all_:
        return ""
    if len(all_) == 1:
        [one] = all_
        told = f"the DUT is inconsistent: {one.load} passed in {one.passed:,} and failed in {one.failed:,} trials"
    else:
        told = (
            f"the DUT is inconsistent from {all_[0].load.value:,} to {all_[-1].load}: {len(all_):,} rates passed above"
            " one that failed, or failed below one that passed"
        )
    silent = sum(one.silent or 0 for one in all_)
    return told + (f"; nothing came through in {count_of(silent, 'trial')}: was it down for a while?" if silent else "")
