# SPDX-License-Identifier: Apache-2.0
"""Names the loads at which a DUT contradicted itself: one that passed although it, or a lower one,
had failed, and the other way round.

RFC 2544 26.1 has no such DUT; RFC 9971 calls it loss inversion. The value of a search does not
change by it: it is the highest rate that passed below the lowest that failed, as that search met
them. But who reads the value has to know that another search might have met others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dutperf.model import Load, Value

FEW = 6
"""Loads that are named one by one."""


class Contradiction(Value):
    """A load on the wrong side of another, and how often it passed and failed."""

    load: Load
    passed: int
    failed: int


def contradictions(loads: Iterable[tuple[Load, str]]) -> tuple[Contradiction, ...]:
    """Of ``loads``, all of one unit, with their outcomes in any order, those that passed at or above
    one that failed, or failed at or below one that passed."""
    passed: Counter[Load] = Counter()
    failed: Counter[Load] = Counter()
    for load, outcome in loads:
        if outcome != "unmeasurable":
            (passed if outcome == "passed" else failed)[load] += 1
    lowest_failed, highest_passed = min(failed, default=None), max(passed, default=None)
    if lowest_failed is None or highest_passed is None:
        return ()
    wrong = {load for load in passed if load >= lowest_failed} | {load for load in failed if load <= highest_passed}
    return tuple(Contradiction(load=load, passed=passed[load], failed=failed[load]) for load in sorted(wrong))


def sentence(found: Sequence[Contradiction]) -> str:
    """What a person is told of them; nothing where there are none."""
    each = ", ".join(f"{one.load.value:,} ({one.passed} × passed, {one.failed} × failed)" for one in found)
    loads = each if len(found) <= FEW else f"{len(found)} from {found[0].load.value:,} to {found[-1].load}"
    return (
        f"the DUT contradicts itself: rates that passed above one that failed, or the other way round: {loads}"
        if loads
        else ""
    )
