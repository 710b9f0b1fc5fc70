# SPDX-License-Identifier: Apache-2.0
"""Summarises the values of repetitions: median, 1st and 99th percentile, dispersion (RFC 8219 section 12, RFC 2330 11.3).

A repetition in which nothing passed has no value (None). It is lower than any value, and it stays in the sample: leaving it out would flatter the DUT.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf


def median(values: Sequence[float | None]) -> float | None:
    """The middle value, of an even number the mean of the two in the middle (RFC 2330 11.3). None where that is or involves a missing value.

    Raises:
        ValueError: no values.
    """
    ordered = _ordered(values)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return None if middle == -inf else middle


def percentile(values: Sequence[float | None], percent: int) -> float | None:
    """The smallest value that at least ``percent`` % of the values do not exceed (RFC 2330 11.3); always one of the values.

    With less than 100 values, the 1st percentile is the smallest and the 99th the greatest.

    Raises:
        ValueError: no values, or ``percent`` is not within 1 to 100.
    """
    ordered = _ordered(values)
    if not 1 <= percent <= 100:
        raise ValueError(f"no percentile: {percent}")
    value = ordered[-(-percent * len(ordered) // 100) - 1]
    return None if value == -inf else value


def dispersion_percent(values: Sequence[float | None]) -> float | None:
    """(p99 − p1) / median × 100 (Lencse, Infocommunications Journal XIII(2), 2021). None where one of them is missing or the median is 0."""
    low, middle, high = percentile(values, 1), median(values), percentile(values, 99)
    if low is None or high is None or not middle:
        return None
    return (high - low) / middle * 100


def _ordered(values: Sequence[float | None]) -> list[float]:
    if not values:
        raise ValueError("no values")
    return sorted(-inf if value is None else value for value in values)
