# SPDX-License-Identifier: Apache-2.0
"""Frames beside the test frames of a stream (RFC 2544 11.1 to 11.3): they have no tag, and nobody expects the
DUT to forward them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from dutperf.model.described_frame import Offset
from dutperf.model.value import Span, Value


class BytesAt(Value):
    """Bytes that a frame has from byte ``at`` on."""

    at: Offset
    bytes: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})+$")]


MOST_FRAMES_IN_TURN = 16
Marks = Annotated[tuple[BytesAt, ...], Field(max_length=16)]


class AdditionalFrames(Value):
    """One kind of additional frames: complete bytes without FCS, sent in turn. The engine writes the
    port's MAC address as their source, and the DUT's as the destination unless that is ``given``."""

    name: Literal["broadcast", "management", "routing-updates"]
    frames: Annotated[
        tuple[Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){60,}$")], ...],
        Field(min_length=1, max_length=MOST_FRAMES_IN_TURN),
    ]
    destination_mac: Literal["next_hop4", "next_hop6", "given"] = "given"
    after_frames: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """One follows every so many test frames."""
    every_ns: Annotated[Span, Field(ge=1_000_000)] | None = None
    """One is due at the start of the trial, and after each such interval."""
    forwarded: Marks = ()
    """A frame with all of these bytes, at the receiving port, is one that the DUT forwarded."""
    replies: Marks = ()
    """A frame with all of these bytes, at the sending port, is a reply."""

    @model_validator(mode="after")
    def _one_rhythm(self) -> Self:
        if (self.after_frames is None) == (self.every_ns is None):
            raise ValueError("additional frames have either after_frames or every_ns")
        return self

    def among(self, test_frames: int, duration_ns: int) -> int:
        """How many belong to a trial with so many test frames."""
        if self.after_frames is not None:
            return test_frames // self.after_frames
        assert self.every_ns is not None
        return -(-duration_ns // self.every_ns)


def of_test_frames(additional: Iterable[AdditionalFrames], fps: int) -> int:
    """How many of ``fps`` frames/s are test frames: one additional frame takes the place of the test frame that
    would follow so many others (RFC 2544 section 11)."""
    for one in additional:
        if one.after_frames is not None:
            fps = max(1, fps * one.after_frames // (one.after_frames + 1))
    return fps
