# SPDX-License-Identifier: Apache-2.0
"""Hardware offloads that were enabled and had no effect, so that a reader does not assume that a
result had them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from dutperf.model import DirectionCounts, TrialResult

_IDLE: tuple[tuple[Callable[[DirectionCounts], bool], str], ...] = (
    (
        lambda counts: (arrivals := counts.receive_timestamps) is not None and arrivals.by_nic == 0 < arrivals.by_poll,
        "receive_timestamps: the NIC stamped no frame",
    ),
    (
        lambda counts: (departures := counts.send_at) is not None and departures.timed == 0 < departures.at_once,
        "send_at: every frame left at once",
    ),
    (
        lambda counts: counts.rate_limit_mbps == 0,
        "rate_limit: the queues have no limit, because the rate is near the link's or the pattern has bursts",
    ),
)


def of_trial(result: TrialResult) -> Iterator[str]:
    """``forward: no effect of send_at: every frame left at once``."""
    for direction, counts in result.directions().items():
        yield from (f"{direction}: no effect of {text}" for idle, text in _IDLE if idle(counts))


def of_run(results: Iterable[TrialResult]) -> tuple[str, ...]:
    """The same for many trials: ``…, in 3 of 12 trials``."""
    each = list(results)
    counted = Counter(text for result in each for text in of_trial(result))
    return tuple(f"{text}, in {count:,} of {len(each):,} trials" for text, count in counted.items())
