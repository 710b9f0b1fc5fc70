# SPDX-License-Identifier: Apache-2.0
"""What of a trial is written to a capture file, and what was (protocol/README.md)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from dutperf.model.value import Count, Value

MOST_CAPTURED = 1_000_000
USUAL_CAPTURED = 1000
"""Frames of a kind for which no number is given."""
Most = Annotated[int, Field(ge=0, le=MOST_CAPTURED)]


class Capture(Value):
    """The most frames of each kind, at each port."""

    path: Annotated[str, Field(min_length=1)]
    """On the engine's machine; pcapng."""
    first: Most = 0
    """The first that arrive, whatever they are."""
    damaged: Most = 0
    """Test frames with a wrong length or checksum."""
    unexpected: Most = 0
    """Others that are no test frames of the trial in this direction."""
    lost: Most = 0
    """Test frames that never came, as they were sent, without their time stamp."""

    @classmethod
    def parse(cls, text: str, path: str) -> Self:
        """From ``lost,damaged:50``; a kind without a number has :data:`USUAL_CAPTURED`. Raises ValueError: an unknown
        kind, the same twice, or a number out of range."""
        most: dict[str, int] = {}
        for part in text.split(","):
            kind, _, number = part.strip().partition(":")
            if kind not in KINDS:
                raise ValueError(f"'{kind}' is not captured: {', '.join(KINDS)} are, each with :FRAMES where wanted")
            if kind in most:
                raise ValueError(f"{kind} is given twice")
            if number and not (number.isdecimal() and 1 <= int(number) <= MOST_CAPTURED):
                raise ValueError(f"{kind}:{number} is not possible: 1 to {MOST_CAPTURED:,} frames are")
            most[kind] = int(number) if number else USUAL_CAPTURED
        return cls(path=path, **most)


KINDS = tuple(name for name in Capture.model_fields if name != "path")
"""In the order in which they are told."""


class CapturedFrames(Value):
    first: Count = 0
    damaged: Count = 0
    unexpected: Count = 0
    lost: Count = 0


class CaptureWritten(Value):
    written: CapturedFrames
    left_out: CapturedFrames
    """Frames beyond the most that were asked for, or for which there was no room; of ``first`` none."""
    error: str | None = None
    """Why the file could not be written; None: it was."""
