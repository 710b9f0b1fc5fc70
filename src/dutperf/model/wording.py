# SPDX-License-Identifier: Apache-2.0
"""What the counts of a path are of, in words: frames, or queries to a DNS64 server and their answers. All sentences
about counts have their words from here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    one: str
    many: str
    arrival: str
    """What arrives of it."""
    lost: str
    """``12 of 1,000 frames lost``, ``frames were lost``."""
    lost_ones: str
    nothing_lost: str
    timeout: str
    """An arrival after it counts as lost."""
    end: str | None = None
    """The name of a path whose direction says nothing."""

    @property
    def arrivals(self) -> str:
        """More than one."""
        return f"{self.arrival}s"

    @property
    def were_lost(self) -> str:
        """``frames were lost``."""
        return f"{self.many} were {self.lost}"

    def path(self, direction: str) -> str:
        return self.end or str(direction)

    def loss(self, direction: str, lost: int, sent: int) -> str:
        """``forward lost 12 of 1,000``."""
        if self.end is None:
            return f"{direction} lost {lost:,} of {sent:,}"
        return f"{lost:,} of {sent:,} {self.many} {self.lost}"


FRAMES = Wording(
    one="frame",
    many="frames",
    arrival="frame",
    lost="lost",
    lost_ones="lost frames",
    nothing_lost="nothing lost",
    timeout="frame timeout",
)
QUERIES = Wording(
    one="query",
    many="queries",
    arrival="answer",
    lost="not answered in time",
    lost_ones="queries not answered in time",
    nothing_lost="every query answered in time",
    timeout="timeout",
    end="client",
)
