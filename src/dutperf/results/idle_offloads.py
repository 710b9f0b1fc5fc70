# SPDX-License-Identifier: Apache-2.0
"""Hardware offloads that were asked for and did nothing: who reads a result must not take it for one
that had it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from dutperf.model import DirectionCounts, TrialResult

_IDLE: tuple[tuple[Callable[[DirectionCounts], bool], str], ...] = (
    (
        lambda counts: (told := counts.receive_timestamps) is not None and told.by_nic == 0 < told.by_poll,
        "receive_timestamps: the NIC stamped no frame",
    ),
    (
        lambda counts: (told := counts.send_at) is not None and told.timed == 0 < told.at_once,
        "send_at: every frame left at once",
    ),
    (
        lambda counts: counts.rate_limit_mbps == 0,
        "rate_limit: the queues have no limit, as the rate is near the link's or the pattern has bursts",
    ),
)


def of_trial(result: TrialResult) -> Iterator[str]:
    """``forward: no effect of send_at: every frame left at once``."""
    for direction, counts in result.directions().items():
        yield from (f"{direction}: no effect of {text}" for idle, text in _IDLE if idle(counts))


def of_run(results: Iterable[TrialResult]) -> tuple[str, ...]:
    """The same of many trials: ``…, in 3 of 12 trials``."""
    each = list(results)
    found = Counter(text for result in each for text in of_trial(result))
    return tuple(f"{text}, in {count:,} of {len(each):,} trials" for text, count in found.items())
