# SPDX-License-Identifier: Apache-2.0
"""What a result says of time stamps by the kernel or by cards, for tests in which there are some."""

from __future__ import annotations

from dutperf.model import Clocks, DirectionCounts, StampCounts


def stamps_of(counts: DirectionCounts) -> StampCounts:
    assert counts.stamps is not None
    return counts.stamps


def clocks_of(counts: DirectionCounts) -> Clocks:
    assert counts.clocks is not None
    return counts.clocks
