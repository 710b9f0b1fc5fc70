# SPDX-License-Identifier: Apache-2.0
"""What a kernel sends by itself to its neighbours, at any time."""

from __future__ import annotations

from dutperf.model import DirectionCounts


def others(counts: DirectionCounts) -> dict[str, int]:
    """Frames that were no test frames, without those of neighbours: a kernel asks for one that it has used for some
    seconds, and answers twice what was asked twice."""
    return {kind: count for kind, count in counts.other_received.items() if not kind.startswith(("arp_", "ndp_"))}
