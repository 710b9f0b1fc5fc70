# SPDX-License-Identifier: Apache-2.0
"""New notes and trials in a stream of states: observers get the state about once a second, and show
each note and each trial once."""

from __future__ import annotations

from dutperf.model import TrialResult
from dutperf.run.campaign import Status


class News:
    """Of one measurement. Call each method once for every status."""

    def __init__(self) -> None:
        self._last: TrialResult | None = None
        self._note: str | None = None

    def note(self, status: Status) -> str | None:
        """The note, if it has changed."""
        before, self._note = self._note, status.note
        return status.note if status.note and status.note != before else None

    def trial(self, status: Status) -> TrialResult | None:
        """The trial that has ended since the last call."""
        before, self._last = self._last, status.last or self._last
        return None if self._last is before else self._last
