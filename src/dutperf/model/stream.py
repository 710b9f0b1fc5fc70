# SPDX-License-Identifier: Apache-2.0
"""The stream of one direction: its frames, their varying fields, and their due times."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dutperf.model.pattern import BurstTimes, PoissonTimes, SteadyTimes, Times
from dutperf.model.value import Fps, Port16, Value

MIN_FRAME_SIZE = 64
"""Smallest Ethernet frame: 42 bytes of Ethernet, IPv4 and UDP headers, 18 bytes of test tag, 4 bytes
of frame check sequence."""
MIN_FRAME_SIZE_IPV6 = 84
"""Smallest test frame with an IPv6 header (RFC 8219 5.1.1): 20 bytes more."""
MAX_FRAME_SIZE = 9216
IPV6_HEADER_EXCESS = 20
"""Difference between an IPv6 frame and its IPv4 translation, in bytes."""


class FieldMode(StrEnum):
    """How a header field changes from frame to frame; see protocol/README.md."""

    FIXED = "fixed"
    INCREASING = "increasing"
    DECREASING = "decreasing"
    RANDOM = "random"


class VaryingField(Value):
    """16 bits of a header: a UDP port. Both ends of the range are included; a fixed field holds
    ``min``."""

    mode: FieldMode
    min: Port16
    max: Port16

    @model_validator(mode="after")
    def _range_not_empty(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is greater than max ({self.max})")
        return self


class VaryingAddress(VaryingField):
    """16 bits of an IP address that vary, at a byte offset for each IP version (RFC 4814 4.4)."""

    offset4: Annotated[int, Field(ge=0, le=2)] = 2
    offset6: Annotated[int, Field(ge=0, le=14)] = 14


class FrameSpec(Value):
    """One kind of test frame: UDP over IPv4 or IPv6.

    ``size`` is this frame's own size in bytes including the FCS, never that of its translation.
    """

    version: Literal[4, 6]
    size: Annotated[int, Field(ge=MIN_FRAME_SIZE, le=MAX_FRAME_SIZE)]
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.version == 6 and self.size < MIN_FRAME_SIZE_IPV6:
            raise ValueError(f"an IPv6 test frame has at least {MIN_FRAME_SIZE_IPV6} bytes, not {self.size}")
        for address in (self.source, self.destination):
            if ip_address(address).version != self.version:
                raise ValueError(f"{address} is not an IPv{self.version} address")
        return self


class RateChange(Value):
    """The rate of a stream ``after_ns`` after the start and later."""

    rate_fps: Fps
    after_ns: Annotated[int, Field(ge=1, le=86_400_000_000_000)]


class Poisson(Value):
    """Frames at independent times, uniform over the sending time: exponential gaps."""

    kind: Literal["poisson"] = "poisson"


class Bursts(Value):
    """Bursts of ``frames`` frames (RFC 2544 section 21) at the intervals of the mean rate."""

    kind: Literal["bursts"] = "bursts"
    frames: Annotated[int, Field(ge=2, le=1_000_000)]
    within_fps: Fps | None = None
    """Rate within a burst; None: all frames are due at once and leave as fast as the sender can send."""


class Stream(Value):
    """The frames of one direction: foreground and background, and how their fields vary.

    Frame ``k`` is foreground if ``k mod n < m``. The background is the native traffic of RFC 8219
    5.3.
    """

    rate_fps: Fps
    then: RateChange | None = None
    """None: the rate does not change."""
    pattern: Annotated[Poisson | Bursts, Field(discriminator="kind")] | None = None
    """Pattern of the frames, with mean rate ``rate_fps``; None: constant rate."""
    foreground: FrameSpec
    background: FrameSpec | None = None
    n: Annotated[int, Field(ge=1, le=1_000_000)] = 2
    m: Annotated[int, Field(ge=0, le=1_000_000)] = 2
    source_port: VaryingField
    destination_port: VaryingField
    networks: Annotated[int, Field(ge=1, le=256)] = 1
    source_address: VaryingAddress | None = None
    destination_address: VaryingAddress | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.m > self.n:
            raise ValueError(f"foreground n:m needs m <= n, not {self.n}:{self.m}")
        if self.m < self.n and self.background is None:
            raise ValueError(f"foreground {self.n}:{self.m} leaves frames for the background, but there is none")
        if self.networks > 1 and self.destination_address is not None:
            raise ValueError("varying destination addresses are possible with one destination network only")
        return self

    @model_validator(mode="after")
    def _pattern_possible(self) -> Self:
        if self.pattern is not None and self.then is not None:
            raise ValueError("a pattern goes with one rate only")
        if (
            isinstance(self.pattern, Bursts)
            and self.pattern.within_fps is not None
            and self.pattern.within_fps < self.rate_fps
        ):
            raise ValueError(
                f"the rate within a burst, {self.pattern.within_fps} frames/s, is lower than the mean rate"
                f" ({self.rate_fps})"
            )
        return self

    def times(self, duration_ns: int, seed: int) -> Times:
        """Due times of the frames of ``duration_ns``; ``seed``: for random patterns."""
        steady = SteadyTimes(self.rate_fps, None if self.then is None else (self.then.rate_fps, self.then.after_ns))
        frames = steady.frames_before(duration_ns)
        match self.pattern:
            case Poisson():
                return PoissonTimes(frames, duration_ns, seed)
            case Bursts():
                return BurstTimes(self.rate_fps, self.pattern.frames, self.pattern.within_fps, frames)
            case _:
                return steady
