# SPDX-License-Identifier: Apache-2.0
"""A stream of the configuration: frames that share what is measured with those of other streams, or have a rate of
their own beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from dutperf.model import MAX_FRAME_SIZE, MIN_FRAME_SIZE, Direction, Flows, Value
from dutperf.model.value import HIGHEST_FPS, STREAM_NAME
from dutperf.setup import frame_file, path_texts, steady_pattern
from dutperf.setup.rate import BitRate, Rate
from dutperf.setup.size_mix import SizeMix
from dutperf.setup.yaml_text import Text, one_or_several

MOST_STREAMS = 32
"""Of a configuration."""
_OF_OWN_RATE = ("pattern", "burst_rate", "begin_s", "duration_s")


def _paths(texts: tuple[str, ...]) -> tuple[Direction, ...]:
    return tuple(path for text in texts for path in path_texts.arrows(text))


def _rate(given: object) -> object:
    """A text in bit/s is of the one kind, any other of the other, which says what is wrong with it."""
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return (
            BitRate.model_validate(given)
            if re.search("b(it|ps|/s)", str(given), re.IGNORECASE)
            else Rate.model_validate(given)
        )
    return given


class PlannedStream(Value):
    """One of several streams that are sent together, in each direction that it names."""

    name: Text
    frame: Annotated[str, Field(min_length=1)] | None = None
    """Headers, as of ``--frame``; None: UDP directly over IP."""
    frame_from: Text | None = None
    """A frame of a capture, as of ``--frame-from``."""
    sizes: Annotated[int, Field(ge=MIN_FRAME_SIZE, le=MAX_FRAME_SIZE)] | str | None = None
    """A frame size in bytes or a mix, as of ``--frame-size``; None: the size that is measured."""
    share: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Its frames in relation to those of the other streams that share what is measured (1)."""
    flows: Flows | None = None
    """None: what varies does so by frame."""
    directions: Literal["both", "forward", "reverse"] = "both"
    paths: (
        Annotated[tuple[str, ...], BeforeValidator(one_or_several), Field(min_length=1), AfterValidator(_paths)] | None
    ) = None
    """Of named ports, instead of directions; None: all."""
    rate: Annotated[Rate | BitRate, BeforeValidator(_rate)] | None = None
    """Its own, on each path: it is load beside what is measured. None: it shares the rate that is measured."""
    pattern: str | None = None
    """Of a stream with a rate of its own: as of ``--pattern`` (constant)."""
    burst_rate: Annotated[int, Field(ge=1, le=HIGHEST_FPS)] | None = None
    """Frames/s within its bursts; None: as fast as the tester can send."""
    begin_s: Annotated[float, Field(ge=0, le=86_400)] | None = None
    """When it begins, after the start of each trial (0)..."""
    duration_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """... and for how long it sends; None: until the end of the sending time."""

    @model_validator(mode="before")
    @classmethod
    def _frame_of_capture(cls, members: Any) -> Any:
        return frame_file.with_frame(members)

    @field_validator("sizes", mode="before")
    @classmethod
    def _are_one_size_or_mix(cls, sizes: object) -> object:
        if isinstance(sizes, list | tuple | Mapping):
            raise ValueError("should be a frame size in bytes or a mix of sizes, as in imix:64=7,594=4,1518=1")
        return sizes

    @field_validator("sizes")
    @classmethod
    def _are_mix(cls, sizes: int | str | None) -> int | str | None:
        return SizeMix.parse(sizes).text if isinstance(sizes, str) else sizes

    @field_validator("pattern")
    @classmethod
    def _is_steady(cls, pattern: str | None) -> str | None:
        return None if pattern is None else steady_pattern.checked(pattern)

    @model_validator(mode="after")
    def _has_its_own_rate(self) -> Self:
        if self.rate is None:
            if given := next((name for name in _OF_OWN_RATE if getattr(self, name) is not None), None):
                raise ValueError(f"{given} is for streams with a rate of their own: give rate too")
        elif self.share is not None:
            raise ValueError("share and rate exclude each other: the stream has a rate of its own")
        elif self.burst_rate is not None and steady_pattern.burst_of(self.pattern or "") is None:
            raise ValueError("burst_rate has no effect without pattern bursts:FRAMES")
        elif not re.fullmatch(STREAM_NAME, self.name):
            raise ValueError(
                f"{self.name!r} is no name for a stream with a rate of its own: up to 32 letters, digits and"
                " . _ -, of which the first is a letter or a digit"
            )
        return self

    def sends_on(self, path: Direction) -> bool:
        if self.paths is not None:
            return path in self.paths
        return self.directions in ("both", path.value)

    def size_mix(self) -> SizeMix:
        """Its sizes, where it has its own."""
        assert self.sizes is not None
        return SizeMix.parse(self.sizes) if isinstance(self.sizes, str) else SizeMix.single(self.sizes)
