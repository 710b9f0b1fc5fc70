# SPDX-License-Identifier: Apache-2.0
"""What a kernel sends by itself, at any time."""

from __future__ import annotations

from dutperf.model import DirectionCounts


def others(counts: DirectionCounts) -> dict[str, int]:
    """Frames that were no test frames, without those of neighbours. A kernel asks for a neighbour that it has used
    for some seconds, answers twice what was asked twice, and reports its multicast groups."""
    return {
        kind: count
        for kind, count in counts.other_received.items()
        if not kind.startswith(("arp_", "ndp_")) and kind != "icmpv6_other"
    }
