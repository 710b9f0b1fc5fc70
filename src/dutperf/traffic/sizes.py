# SPDX-License-Identifier: Apache-2.0
"""Frame sizes of conditions alone, before a setup is known. In bytes including the FCS."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.model import MIN_FRAME_SIZE_IPV6
from dutperf.setup.conditions import FRAME_SIZE_SERIES, Conditions
from dutperf.setup.size_mix import SizeMix


def longest_frame(conditions: Conditions) -> int:
    """The largest frame size that :meth:`dutperf.traffic.TrafficKind.sized` gives for any test setup."""
    return max(longest_of(conditions, size) for size in _sizes(conditions))


def shortest_case(conditions: Conditions) -> int:
    """The longest frame of the case that has the shortest ones."""
    return min(longest_of(conditions, size) for size in _sizes(conditions))


def longest_of(conditions: Conditions, frame_size: int) -> int:
    """The longest frame of the case with this frame size."""
    size_mix = conditions.every.size_mix
    if size_mix is None:
        return frame_size
    return max(SizeMix.parse(size_mix).at_least(MIN_FRAME_SIZE_IPV6).sizes)


def _sizes(conditions: Conditions) -> Sequence[int]:
    every = conditions.every
    named = () if every.sizes_are_given or every.series is None else FRAME_SIZE_SERIES[every.series]
    return named or every.frame_sizes
