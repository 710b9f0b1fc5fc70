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

from dataclasses import dataclass, replace

from dutperf.model import LimitedBy
from dutperf.search import Outcome
from dutperf.search.binary import BinarySearch, Bounds, Resolution

FIRST_FRAMES = 64
"""The first burst: a receive ring of few descriptors is the smallest buffer that is usual."""
SIGN_OF_LIFE_FRAMES = 10
"""A burst of fewer frames that is lost as a whole has failed, like any other: that raises no
question whether the DUT works at all."""


@dataclass(frozen=True)
class FoundBurst:
    """What a search found. ``value_frames`` is None where no burst passed, or the DUT forwards
    nothing (``silent``)."""

    value_frames: int | None
    limited_by: LimitedBy
    above_frames: int | None
    """The burst directly above the value that did not pass; the shortest one tried where there is
    no value."""
    silent: bool
    loads: tuple[tuple[int, Outcome], ...]
    """Every burst offered, in order, the verifications included."""


class BurstSearch:
    """Ask :meth:`next_frames`, tell :meth:`tell`, until the former is None; then :meth:`found`."""

    def __init__(self, longest_frames: int, resolution_share: float, verifications: int) -> None:
        """``resolution_share``: how far apart the longest burst that passed and the shortest that
        failed may be, as a share of the latter; at least a frame. ``verifications``: how often a
        burst that failed is offered again."""
        first = min(FIRST_FRAMES, longest_frames)
        self._search = BinarySearch(
            Bounds(Resolution(share=resolution_share), minimum_fps=1, maximum_fps=longest_frames, initial_fps=first)
        )
        self._verifications = verifications
        self._failures = 0
        self._probing = False
        self._loads: list[tuple[int, Outcome]] = []

    @property
    def lower_frames(self) -> int | None:
        """Longest burst that passed so far."""
        return self._search.lower_fps

    @property
    def upper_frames(self) -> int | None:
        """Shortest burst that did not pass, above the longest that did."""
        return self._search.upper_fps

    def next_frames(self) -> int | None:
        """The burst to offer next; None where the search has ended."""
        return self._search.next_fps()

    def tell(self, outcome: Outcome) -> None:
        """What came of the burst that :meth:`next_frames` asked for.

        Raises:
            ValueError: the search has ended.
        """
        frames = self.next_frames()
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

    def found(self) -> FoundBurst:
        """What was found so far; final when :meth:`next_frames` is None."""
        found = self._search.found()
        whole = FoundBurst(found.value_fps, found.limited_by, found.above_fps, found.silent, tuple(self._loads))
        nothing_passed = (
            found.value_fps is None and found.limited_by is LimitedBy.RANGE
        )  # down to a single frame: that is no range of the user's
        return replace(whole, limited_by=LimitedBy.DUT) if nothing_passed else whole

    def trials_left(self) -> int:
        """Estimate of how many bursts are still to be offered."""
        return self._search.trials_left()
