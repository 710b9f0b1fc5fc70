# SPDX-License-Identifier: Apache-2.0
"""How much of the delays may be the tester's own, and of how many frames or pairs the figures are, in words.

The engine bounds what its own loops may have added to each figure (:class:`dutperf.model.Delays`). A few µs are in
every delay; more is told, because nobody could tell it from the DUT's own delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dutperf.model import DirectionCounts, TrialResult, Verdict

TOLD_FROM_US = 10.0
TOLD_FROM_SHARE = 0.05
"""Smaller shares of a figure are not told."""

MAY_HAVE_ADDED = "the tester itself may have added"
"""In each sentence on a share."""

Figure = tuple[str, float, float]
"""Its name, its value and the tester's share, in µs."""


def of_trial(result: TrialResult) -> Iterator[str]:
    """``forward: up to 1.70 ms of the 99.9th percentile of the delays (1.74 ms) ... may be the tester's own``. Before
    it, why the tester's loops are in them at all, if they need not have been."""
    if result.loop_stamps_because is not None:
        yield f"delays are by the tester's loops: {result.loop_stamps_because}"
    for direction, counts in result.directions().items():
        yield from _shares(direction, [counts], _delays, "the delays")


def of_run(results: Iterable[TrialResult], *, changes: bool = False) -> tuple[str, ...]:
    """The same over all valid trials of a run: of each figure the largest share. ``changes``: of the changes of delay
    instead, and how many pairs of frames have none."""
    valid = [result for result in results if result.verdict is Verdict.VALID]
    by_path = {
        direction: [counts for result in valid if (counts := result.directions().get(direction)) is not None]
        for direction in dict.fromkeys(direction for result in valid for direction in result.directions())
    }
    return tuple(
        text
        for direction, counted in by_path.items()
        for text in (_of_changes(direction, counted) if changes else _shares(direction, counted, _delays, "the delays"))
    )


def _shares(
    direction: str, counted: list[DirectionCounts], figures: Callable[[DirectionCounts], list[Figure]], of: str
) -> Iterator[str]:
    told = _worst(counted, figures)
    if told:
        trials = f" (the worst of {len(counted):,} valid trials)" if len(counted) > 1 else ""
        named = ", ".join(f"{_ms(share)} of {name} ({_ms(value)})" for name, value, share in told)
        yield f"{counted[0].counted.path(direction)}: of {of} {MAY_HAVE_ADDED} up to {named}{trials}"


def _of_changes(direction: str, counted: list[DirectionCounts]) -> Iterator[str]:
    yield from _shares(direction, counted, _changes, "the changes of delay")
    pairs = sum(one.ipdv_us.pairs for one in counted if one.ipdv_us is not None and one.ipdv_us.pairs is not None)
    possible = sum(one.sent - 1 for one in counted if one.ipdv_us is not None and one.ipdv_us.pairs is not None)
    if pairs < possible:
        yield (
            f"{direction}: the changes of delay are those of {pairs:,} of {possible:,} pairs of frames; of the others a"
            " frame was lost or came too late"
        )


def _worst(counted: list[DirectionCounts], figures: Callable[[DirectionCounts], list[Figure]]) -> list[Figure]:
    """Of each figure the largest share, if it is told."""
    of_trials = [figures(counts) for counts in counted]
    worst = [max(of, key=lambda figure: figure[2]) for of in zip(*filter(None, of_trials), strict=True)]
    return [one for one in worst if one[2] > max(TOLD_FROM_US, TOLD_FROM_SHARE * abs(one[1]))]


def _delays(counts: DirectionCounts) -> list[Figure]:
    delay = counts.delay_us
    if delay is None or delay.by_tester is None:
        return []
    return [
        ("the median", delay.p50, delay.by_tester.p50),
        ("the 99th percentile", delay.p99, delay.by_tester.p99),
        ("the 99.9th percentile", delay.p999, delay.by_tester.p999),
        ("the largest", delay.max, delay.by_tester.max),
    ]


def _changes(counts: DirectionCounts) -> list[Figure]:
    change = counts.ipdv_us
    if change is None or change.by_tester is None:
        return []
    return [
        ("the smallest", change.min, change.by_tester.min),
        ("the median", change.p50, change.by_tester.p50),
        ("the largest", change.max, change.by_tester.max),
    ]


def _ms(us: float) -> str:
    return f"{us / 1000:.4g} ms"
