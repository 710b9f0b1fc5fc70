# SPDX-License-Identifier: Apache-2.0
"""A summary's statistics of the repetitions: median with its confidence interval, 1st and 99th
percentile (RFC 8219 section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import inf
from typing import Any

from dutperf.model import Value
from dutperf.spelling import count_of
from dutperf.statistics import intervals, stopping


class Missing(StrEnum):
    """What a repetition without a value says of a figure."""

    LOWEST = "lowest"
    """Nothing passed."""
    HIGHEST = "highest"
    """It is beyond what was tried."""
    VOID = "void"
    """The figure is not known."""

    @property
    def number(self) -> float:
        """For statistics."""
        return inf if self is Missing.HIGHEST else -inf


class MedianInterval(Value):
    """Covers the true median with ``confidence``; a missing end (None): nothing passed there, or it is beyond what was
    tried."""

    low: float | None
    high: float | None
    confidence: float


class Statistics(Value):
    """Statistics over the repetitions; a missing figure (None): nothing passed, or it is beyond what was tried."""

    median: float | None
    median_interval: MedianInterval | None
    """None also with too few repetitions: 95 % need six."""
    p1: float | None
    p99: float | None
    dispersion_percent: float | None
    values: tuple[int | float | None, ...]
    """One for each finished repetition, in order."""

    def cells(self, form: str) -> tuple[str, str, str]:
        """Median, 1st and 99th percentile for a table, in the format ``form``; ``-`` where there is
        none."""
        median, low, high = ("-" if one is None else format(one, form) for one in (self.median, self.p1, self.p99))
        return median, low, high

    def within(self, form: str = ",.0f") -> str:
        """The median's interval as the end of a sentence, in the format ``form``; empty where there is none."""
        interval = self.median_interval
        if interval is None:
            return ""
        low, high = ("nothing" if end is None else format(end, form) for end in (interval.low, interval.high))
        return f" within {low} to {high} ({interval.confidence * 100:g} % confidence)"


class Repetitions(Value):
    """Number of finished repetitions, and why there were no more."""

    finished: int
    stopped: stopping.Stopped | None
    """None: the run ended early."""

    def after(self) -> str:
        """``after 12 repetitions (narrow enough)``: the beginning of a sentence; without a reason
        where the number was given."""
        reason = f" ({self.stopped})" if self.stopped not in (None, stopping.Stopped.NUMBER) else ""
        return f"after {count_of(self.finished, 'repetition')}{reason}"

    def certainty(self, figures: Statistics, form: str = ",.0f") -> str:
        """Number of repetitions and the median's interval, in a sentence; empty without an
        interval."""
        within = figures.within(form)
        return f"{self.after()} the median lies{within}" if within else ""


def statistics(values: Sequence[int | float | None], rule: stopping.Rule, missing: float = -inf) -> Statistics:
    """Statistics of at least one finished repetition; ``missing``: see :mod:`dutperf.statistics.intervals`."""
    return Statistics(
        **percentiles(values, missing),
        median_interval=median_interval(values, rule, missing),
        dispersion_percent=intervals.dispersion_percent(values, missing),
        values=tuple(values),
    )


def percentiles(values: Sequence[int | float | None], missing: float = -inf) -> dict[str, Any]:
    """``median``, ``p1`` and ``p99`` of at least one value (RFC 8219 section 12); each a float, or
    None as in :mod:`dutperf.statistics.intervals`."""
    return {
        "median": intervals.median(values, missing),
        "p1": intervals.percentile(values, 1, missing),
        "p99": intervals.percentile(values, 99, missing),
    }


def without_number(values: Sequence[int | float | None]) -> Statistics:
    return Statistics(
        median=None, median_interval=None, p1=None, p99=None, dispersion_percent=None, values=tuple(values)
    )


def median_interval(
    values: Sequence[int | float | None], rule: stopping.Rule, missing: float = -inf
) -> MedianInterval | None:
    """The interval that the rule computed last; None with too few values."""
    ends = stopping.interval(rule, values, missing)
    return None if ends is None else MedianInterval(low=ends[0], high=ends[1], confidence=stopping.confidence(rule))
