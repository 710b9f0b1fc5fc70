# SPDX-License-Identifier: Apache-2.0
"""Search for the longest burst that passes, by the binary search with loss verification that RFC
9004 6.2 takes from ETSI GS NFV-TST 009, clause 12.3.

The load is the length of a burst: the binary search is the same as for rates, only that its loads
are frames here where they are frames/s there. It begins with a short burst and doubles, because the
DUT's buffer, not the limit of half a minute, is what decides; then it bisects.

Loss verification: one loss may be an accident of anything but the buffer. A burst that failed is
offered again, and counts as failed only when it failed each time; one that passes then has passed.

Lengths are in frames per direction.
"""

from __future__ import annotations

from dataclasses import replace

from dutperf.model import LimitedBy, Unit
from dutperf.search import NO_LOSS, Loss, Outcome
from dutperf.search.binary import BinarySearch, Bounds, Found, Resolution

FIRST_FRAMES = 64
"""The first burst: a receive ring of few descriptors is the smallest buffer that is usual."""
SIGN_OF_LIFE_FRAMES = 10
"""A burst of fewer frames that is lost as a whole has failed, like any other: that raises no
question whether the DUT works at all."""


class BurstSearch:
    """A :class:`dutperf.search.binary.Search` whose loads are frames per direction."""

    def __init__(self, longest: int, resolution_share: float, verifications: int) -> None:
        """``resolution_share``: how far apart the longest burst that passed and the shortest that
        failed may be, as a share of the latter; at least a frame. ``verifications``: how often a
        burst that failed is offered again."""
        first = min(FIRST_FRAMES, longest)
        self._search = BinarySearch(
            Bounds(Resolution(share=resolution_share), minimum=1, maximum=longest, initial=first, unit=Unit.FRAMES)
        )
        self._verifications = verifications
        self._failures = 0
        self._probing = False
        self._loads: list[tuple[int, Outcome]] = []

    @property
    def lower(self) -> int | None:
        """Longest burst that passed so far."""
        return self._search.lower

    @property
    def upper(self) -> int | None:
        """Shortest burst that did not pass, above the longest that did."""
        return self._search.upper

    def next_load(self) -> int | None:
        """The burst to offer next; None where the search has ended."""
        return self._search.next_load()

    def next_duration_s(self) -> None:
        """The burst says how long its trial sends."""

    def tell(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:  # noqa: ARG002
        """What came of the burst that :meth:`next_load` asked for.

        Raises:
            ValueError: the search has ended.
        """
        frames = self.next_load()
        if frames is None:
            raise ValueError("the search has ended")
        if outcome is Outcome.SILENT and frames < SIGN_OF_LIFE_FRAMES and not self._probing:
            outcome = Outcome.FAILED
        self._loads.append((frames, outcome))
        if outcome in (Outcome.FAILED, Outcome.SILENT) and self._failures < self._verifications:
            self._failures += 1
            return
        self._failures = 0
        self._probing = outcome is Outcome.SILENT and not self._probing
        self._search.tell(outcome)

    def found(self) -> Found:
        """What was found so far, every burst with its verifications; final when :meth:`next_load` is
        None."""
        found = replace(self._search.found(), loads=tuple(self._loads))
        nothing_passed = (
            found.value is None and found.limited_by is LimitedBy.RANGE
        )  # down to a single frame: that is no range of the user's
        return replace(found, limited_by=LimitedBy.DUT) if nothing_passed else found

    def trials_left(self) -> int:
        """Estimate of how many bursts are still to be offered."""
        return self._search.trials_left()
