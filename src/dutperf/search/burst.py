# SPDX-License-Identifier: Apache-2.0
"""Search for the longest burst that passes, by the binary search with loss verification that RFC
9004 6.2 takes from ETSI GS NFV-TST 009, clause 12.3.

The load is the length of a burst. The binary search is the one for rates; only the unit differs. It
begins with a short burst and doubles, because the DUT's buffer limits the burst long before the
limit of half a minute; then it bisects.

Loss verification: a single loss may have another cause than the buffer. A burst that failed is
offered again and counts as failed only when it failed each time. Once it passes, it has passed.

Lengths are in frames per direction.
"""

from __future__ import annotations

from dataclasses import replace

from dutperf.model import LimitedBy, Unit
from dutperf.search import NO_LOSS, Loss, Outcome
from dutperf.search.binary import BinarySearch, Bounds, Resolution, SearchResult

FIRST_FRAMES = 64
"""The first burst. The smallest usual buffer is a receive ring of few descriptors."""
PROBE_FRAMES = 10
"""A shorter burst that is lost as a whole has failed like any other; it raises no doubt that the
DUT forwards."""


class BurstSearch(BinarySearch):
    """Its loads are frames per direction."""

    def __init__(self, longest: int, resolution_share: float, verifications: int) -> None:
        """``resolution_share``: largest distance between the longest burst that passed and the
        shortest that failed, as a share of the latter; at least a frame. ``verifications``: how
        often a burst that failed is offered again."""
        first = min(FIRST_FRAMES, longest)
        super().__init__(
            Bounds(Resolution(share=resolution_share), minimum=1, maximum=longest, initial=first, unit=Unit.FRAMES)
        )
        self._verifications = verifications
        self._failures = 0
        self._offered: list[tuple[int, Outcome]] = []
        """With all verifications."""

    def record_outcome(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        frames = self.next_load()
        if frames is None:
            raise ValueError("the search has ended")
        if outcome is Outcome.NOT_FORWARDING and frames < PROBE_FRAMES and self._probed_for is None:
            outcome = Outcome.FAILED
        self._offered.append((frames, outcome))
        if outcome in (Outcome.FAILED, Outcome.NOT_FORWARDING) and self._failures < self._verifications:
            self._failures += 1
            return
        self._failures = 0
        # A short episode is no other failure: the burst was offered again. An outage lasts longer than both.
        super().record_outcome(outcome, loss if outcome is Outcome.NOT_FORWARDING else NO_LOSS)

    def result(self) -> SearchResult:
        result = replace(super().result(), loads=tuple(self._offered))
        # The range ends at a single frame, which is not a limit that the user set.
        nothing_passed = result.lower_bound is None and result.limited_by is LimitedBy.RANGE
        return replace(result, limited_by=LimitedBy.DUT) if nothing_passed else result
