# SPDX-License-Identifier: Apache-2.0
"""Rates that a DUT passed only because its buffers held what it could not forward yet. RFC 2544 section 26.1 has no
word for it: a DUT with a buffer of B frames passes up to its capacity + B/T in trials of T seconds."""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.model import DirectionCounts, TrialResult, Verdict

LEAST_S, LEAST_SHARE = 0.05, 0.01
"""So much longer, in seconds and of the sending time, the last frame takes where a buffer raised the rate: stalls of a
shared machine are shorter."""


def growth_s(counts: DirectionCounts) -> float:
    """How much longer the last frame that arrived may have taken than the first one, in seconds."""
    if counts.arrivals is None:
        return 0.0
    return counts.arrivals.last_s - counts.send_time_s - max(0.0, counts.arrivals.first_s)


def of_run(results: Iterable[TrialResult]) -> Iterable[str]:
    """``forward: in 3 trials without loss frames arrived up to 0.412 s longer ...``, of each direction."""
    passed = [
        (direction, counts)
        for result in results
        if result.verdict is Verdict.VALID
        for direction, counts in result.directions().items()
        if counts.received and not counts.lost and counts.send_time_s
    ]
    for direction in dict.fromkeys(direction for direction, _ in passed):
        grown = [
            (longer_s, counts)
            for of, counts in passed
            if of == direction and (longer_s := growth_s(counts)) > max(LEAST_S, LEAST_SHARE * counts.send_time_s)
        ]
        if grown:
            longest_s, counts = max(grown, key=lambda one: one[0] / one[1].send_time_s)
            share = longest_s / counts.send_time_s
            yield (
                f"{direction}: in {len(grown):,} trials without loss the last frames took up to {longest_s:.3f} s more"
                f" than the first ({share:.0%} of the sending time): a buffer of the DUT was filling, and longer trials"
                " (--duration) may read less"
            )
