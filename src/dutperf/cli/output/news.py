# SPDX-License-Identifier: Apache-2.0
"""What is new in a course: observers are told of its state about once a second, and tell of each
trial and each note once."""

from __future__ import annotations

from dutperf.model import TrialResult
from dutperf.run.campaign import Status


class News:
    """Of one measurement. Each question is to be asked once for every status."""

    def __init__(self) -> None:
        self._last: TrialResult | None = None
        self._note: str | None = None

    def note(self, status: Status) -> str | None:
        """The note, where it is another than before."""
        told, self._note = self._note, status.note
        return status.note if status.note and status.note != told else None

    def trial(self, status: Status) -> TrialResult | None:
        """The trial that has ended since."""
        told, self._last = self._last, status.last or self._last
        return None if self._last is told else self._last
