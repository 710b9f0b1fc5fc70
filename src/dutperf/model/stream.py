# SPDX-License-Identifier: Apache-2.0
"""The stream of one direction: its frames, their varying fields, and their due times."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address, ip_address
from operator import mul
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from dutperf.model.additional import AdditionalFrames, of_test_frames
from dutperf.model.described_frame import DescribedFrame
from dutperf.model.frame_size import MAX_FRAME_SIZE, MIN_FRAME_SIZE, MIN_FRAME_SIZE_IPV6, PREAMBLE_AND_GAP
from dutperf.model.pattern import (
    BurstTimes,
    JoiningTimes,
    LaterTimes,
    PoissonTimes,
    ProfileTimes,
    RecordedTimes,
    SteadyTimes,
    Times,
)
from dutperf.model.questions import Questions
from dutperf.model.replay import Replay
from dutperf.model.value import MOST_FLOWS, Fps, Networks, Port16, Span, Value, Within
from dutperf.model.vlan_tags import TagChoices
from dutperf.model.wording import FRAMES, QUERIES, Wording


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
    after_ns: Span


class Poisson(Value):
    """Frames at independent times, uniform over the sending time: exponential gaps."""

    kind: Literal["poisson"] = "poisson"


MOST_IN_BURST = 1_000_000
"""Frames."""


class Bursts(Value):
    """Bursts of ``frames`` frames (RFC 2544 section 21) at the intervals of the mean rate."""

    kind: Literal["bursts"] = "bursts"
    frames: Annotated[int, Field(ge=2, le=MOST_IN_BURST)]
    within_fps: Fps | None = None
    """Rate within a burst; None: all frames are due at once and leave as fast as the sender can send."""


class Segment(Value):
    """A part of a profile in which the rate changes linearly, in frames/s; 0: no frames."""

    duration_ns: Span
    from_fps: Annotated[int, Field(ge=0, le=1_000_000_000)]
    to_fps: Annotated[int, Field(ge=0, le=1_000_000_000)]


class Profile(Value):
    """Rates that change. After the last segment the first one follows again."""

    kind: Literal["profile"] = "profile"
    segments: Annotated[tuple[Segment, ...], Field(min_length=1, max_length=1024)]

    @model_validator(mode="after")
    def _sends(self) -> Self:
        if self.highest_fps == 0:
            raise ValueError("some rate of a profile must not be 0")
        return self

    @property
    def highest_fps(self) -> int:
        return max(max(one.from_fps, one.to_fps) for one in self.segments)

    @property
    def mean_fps(self) -> int:
        """Its mean rate, rounded, at least 1."""
        return self.times().mean_fps

    def scaled_to(self, mean_fps: int) -> Self:
        """The same course with another mean rate. Its rates are rounded each by itself; none but 0 becomes 0."""
        share = Fraction(mean_fps, self.mean_fps)

        def scaled(fps: int) -> int:
            return fps and max(1, round(fps * share))

        segments = tuple(
            one.model_copy(update={"from_fps": scaled(one.from_fps), "to_fps": scaled(one.to_fps)})
            for one in self.segments
        )
        return self.model_copy(update={"segments": segments})

    def times(self) -> ProfileTimes:
        return ProfileTimes(tuple((one.duration_ns, one.from_fps, one.to_fps) for one in self.segments))


class Joining(Value):
    """Flows that begin one after the other (RFC 8219 10.2.2), each with an equal part of ``rate_fps``: that is the rate
    when all have begun."""

    kind: Literal["joining"] = "joining"
    flows: Annotated[int, Field(ge=2, le=MOST_FLOWS)]
    apart_ns: Span


class Recorded(Value):
    """The times of the frames of a replay; after ``period_ns`` they begin again."""

    kind: Literal["recorded"] = "recorded"
    period_ns: Span


Pattern = Poisson | Bursts | Profile | Joining | Recorded

MOST_KINDS = 32
"""Kinds of frames of a stream."""
MOST_IN_ORDER = 65536
"""Frames after which the order of the kinds repeats."""
MOST_TRACKED = 64
"""Bits."""


class TrackedBits(Value):
    """``bits`` bits of frames as they arrive, from bit ``bit`` on, by whose value these are counted."""

    bit: Annotated[int, Field(ge=0, lt=8 * MAX_FRAME_SIZE)]
    bits: Annotated[int, Field(ge=1, le=MOST_TRACKED)]


_NETWORKS = frozenset(("networks",))
_ONLY_UDP = frozenset(
    (
        *("background", "n", "m", "source_port", "destination_port"),
        *("source_address", "destination_address", "arrives_with"),
    )
)
_ONLY_DESCRIBED = frozenset(("frames", "order", "shares"))


class Stream(Value):
    """The frames of one direction: foreground and background, and how their fields vary; described
    frames of several kinds; or those of a replay.

    Frame ``k`` is foreground if ``k mod n < m``. The background is the native traffic of RFC 8219
    5.3. Of described frames, frame ``k`` has the kind ``order[k mod n]``, or a random one
    (protocol/README.md).
    """

    rate_fps: Fps
    then: RateChange | None = None
    """None: the rate does not change."""
    pattern: Annotated[Pattern, Field(discriminator="kind")] | None = None
    """Pattern of the frames, with mean rate ``rate_fps``; None: constant rate. A profile has rates of
    its own, whose mean ``rate_fps`` is; of flows that begin one after the other it is the last rate."""
    begin_ns: Span | None = None
    """When it begins, after the start of the trial, from which its due times are counted then; None: with it."""
    sends_ns: Span | None = None
    """How long it sends; None: until the end of the sending time."""
    grace_ns: Within | None = None
    """How long after the sending time frames that were due may still leave; None: for 1 % of it, and at least 50 ms."""
    frames: Annotated[tuple[DescribedFrame, ...], Field(max_length=MOST_KINDS)] = ()
    """The kinds; empty: the frames are foreground and background."""
    order: Annotated[tuple[Annotated[int, Field(ge=0, lt=MOST_KINDS)], ...], Field(max_length=MOST_IN_ORDER)] = ()
    """Kinds of successive frames; empty: each kind in turn, or as ``shares`` say."""
    shares: Annotated[tuple[Annotated[int, Field(ge=1, le=MOST_IN_ORDER)], ...], Field(max_length=MOST_KINDS)] = ()
    """Weights by which kinds are drawn at random; empty: not at random."""
    replay: Replay | None = None
    """Frames of a list, instead of any others."""
    questions: Questions | None = None
    """Queries to a DNS64 server, instead of any others; their answers arrive where they were sent."""
    foreground: FrameSpec | None = None
    background: FrameSpec | None = None
    n: Annotated[int, Field(ge=1, le=1_000_000)] = 2
    m: Annotated[int, Field(ge=0, le=1_000_000)] = 2
    source_port: VaryingField | None = None
    destination_port: VaryingField | None = None
    networks: Networks = 1
    """Destination networks. Fields of described frames, or ``destination_address``, say the same: then the engine does
    not get their number."""
    source_address: VaryingAddress | None = None
    destination_address: VaryingAddress | None = None
    arrives_with: TagChoices | None = None
    """VLAN tags with which foreground and background may arrive; None: without a tag."""
    additional: Annotated[tuple[AdditionalFrames, ...], Field(max_length=8)] = ()
    """Frames beside the test frames."""
    ptp: Annotated[tuple[DescribedFrame, ...], Field(max_length=MOST_KINDS)] = ()
    """Messages of PTP that leave in place of tagged frames where a card stamps no others: one for each kind of frames,
    of which foreground and background are two."""
    tracked: tuple[TrackedBits, ...] = ()
    """At most :data:`MOST_TRACKED` bits in all."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.m > self.n:
            raise ValueError(f"foreground n:m needs m <= n, not {self.n}:{self.m}")
        if self.m < self.n and self.background is None:
            raise ValueError(f"foreground {self.n}:{self.m} leaves frames for the background, but there is none")
        of = self.destination_address
        if self.networks > 1 and of is not None and of.max - of.min + 1 != self.networks:
            raise ValueError(f"{self.networks} networks, but destination_address has another number of them")
        return self

    @model_validator(mode="after")
    def _one_kind_of_description(self) -> Self:
        kinds = [
            name
            for name, one in (
                ("described frames", self.frames),
                ("a foreground", self.foreground),
                ("a replay", self.replay),
                ("questions", self.questions),
            )
            if one
        ]
        if len(kinds) != 1:
            raise ValueError("a stream has either described frames, a foreground, a replay, or questions")
        others = self.model_fields_set & self._of_other_kinds
        if unfit := sorted(name for name in others if getattr(self, name) not in (None, ())):
            raise ValueError(f"{unfit[0]} does not go with {kinds[0]}")
        if isinstance(self.pattern, Recorded) and self.replay is None:
            raise ValueError("the times of a recording go with a replay only")
        if isinstance(self.pattern, Joining) and {frame.flows for frame in self.frames} != {self.pattern.flows}:
            raise ValueError(f"needs described frames, each kind of {self.pattern.flows} flows, which begin in turn")
        if self.foreground is not None and (self.source_port is None or self.destination_port is None):
            raise ValueError("a foreground needs source_port and destination_port")
        return self

    @model_validator(mode="after")
    def _all_or_none_in_a_stream(self) -> Self:
        if len({frame.stream is None for frame in self.frames}) > 1:
            raise ValueError("either all kinds of frames belong to a stream or none does")
        return self

    @model_validator(mode="after")
    def _kinds_in_order(self) -> Self:
        kinds = len(self.frames)
        if self.order and self.shares:
            raise ValueError("order and shares exclude each other")
        if self.order and set(self.order) != set(range(kinds)):
            raise ValueError(f"order needs each of the kinds 0 to {kinds - 1}")
        if self.shares and (len(self.shares) != kinds or sum(self.shares) > MOST_IN_ORDER):
            raise ValueError(f"shares needs a share of each kind, {MOST_IN_ORDER} in sum at most")
        return self

    @model_serializer(mode="wrap")
    def _without_the_other_kind(self, members: SerializerFunctionWrapHandler) -> dict[str, Any]:
        absent = self._of_other_kinds
        if self.frames:
            absent |= {name for name in ("order", "shares") if not getattr(self, name)}
            absent |= _NETWORKS if self.networks == 1 else frozenset()
        absent |= {name for name in ("additional", "tracked", "ptp") if not getattr(self, name)}
        return {name: value for name, value in members(self).items() if name not in absent}

    @property
    def _of_other_kinds(self) -> frozenset[str]:
        if self.frames:
            return _ONLY_UDP
        return _ONLY_DESCRIBED if self.foreground is not None else _ONLY_UDP | _ONLY_DESCRIBED | _NETWORKS

    def of_test_frames(self, fps: int) -> int:
        """How many of ``fps`` frames/s are test frames, beside the additional ones."""
        return of_test_frames(self.additional, fps)

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams that its described frames belong to; empty: there are not several."""
        names = tuple(dict.fromkeys(frame.stream for frame in self.frames if frame.stream is not None))
        return names if len(names) > 1 else ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of each kind of frame, in bytes with FCS; of a replay that of its longest frame."""
        udp = [frame.size for frame in (self.foreground, self.background) if frame is not None]
        replayed = () if self.replay is None else (self.replay.longest,)
        asked = () if self.questions is None else (self.questions.frame_size,)
        return (*(frame.size for frame in self.frames), *udp, *replayed, *asked)

    @property
    def mean_size(self) -> float:
        """Mean size of its frames in bytes with FCS, each kind by its share."""
        if self.frames:
            weights = self.shares or [self.order.count(kind) if self.order else 1 for kind in range(len(self.frames))]
            return float(sum(map(mul, weights, self.sizes))) / sum(weights)
        if self.replay is not None:
            return self.replay.mean_size
        if self.questions is not None:
            return float(self.questions.frame_size)
        kinds = ((self.foreground, self.m), (self.background, self.n - self.m))
        return sum(frame.size * share for frame, share in kinds if frame is not None) / self.n

    @property
    def wire_bits(self) -> float:
        """Mean bits of a frame on Ethernet, with preamble and gap."""
        return 8 * (self.mean_size + PREAMBLE_AND_GAP)

    @model_validator(mode="after")
    def _pattern_possible(self) -> Self:
        if self.pattern is not None and self.then is not None:
            raise ValueError("a pattern goes with one rate only")
        if isinstance(self.pattern, Profile) and self.pattern.mean_fps != self.rate_fps:
            raise ValueError(f"the mean rate of the profile is {self.pattern.mean_fps} frames/s, not {self.rate_fps}")
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

    def with_rate(self, rate_fps: int) -> Self:
        """The same frames with constant gaps at another rate."""
        return self.model_copy(update={"rate_fps": rate_fps, "pattern": None})

    def only_connected(self) -> Self:
        """Its frames that belong to connections, without those beside them."""
        return self.only([kind for kind, frame in enumerate(self.frames) if frame.is_connected])

    def only(self, kept: Sequence[int]) -> Self:
        """Its frames of these kinds, and none beside them; frames that are not described are of one kind."""
        return self.model_copy(
            update={
                "frames": tuple(self.frames[kind] for kind in kept),
                "order": tuple(kept.index(kind) for kind in self.order if kind in kept),
                "shares": tuple(self.shares[kind] for kind in kept) if self.shares else (),
                "additional": (),
            }
        )

    @property
    def highest_fps(self) -> int:
        """Its highest rate, outside of bursts."""
        if isinstance(self.pattern, Profile):
            return self.pattern.highest_fps
        return self.rate_fps if self.then is None else max(self.rate_fps, self.then.rate_fps)

    @property
    def counted(self) -> Wording:
        return FRAMES if self.questions is None else QUERIES

    @property
    def is_steady(self) -> bool:
        """Whether it sends at one rate throughout, with constant gaps."""
        return self.then is None and self.pattern is None and not self.is_partial

    @property
    def is_partial(self) -> bool:
        """Whether it sends in a part of the sending time only."""
        return self.begin_ns is not None or self.sends_ns is not None

    def at(self, share: Fraction) -> Self:
        """The same of a sending time that is changed to this ``share`` of it."""
        if not self.is_partial:
            return self
        begin_ns = int((self.begin_ns or 0) * share)
        sends_ns = None if self.sends_ns is None else max(1, int(self.sends_ns * share))
        return self.model_copy(update={"begin_ns": begin_ns or None, "sends_ns": sends_ns})

    def throughout(self) -> Self:
        """The same for the whole sending time."""
        return self.model_copy(update={"begin_ns": None, "sends_ns": None})

    def ends_ns(self, duration_ns: int) -> int:
        """When it ends, in a trial of this sending time."""
        return duration_ns if self.sends_ns is None else (self.begin_ns or 0) + self.sends_ns

    def times(self, duration_ns: int, seed: int) -> Times:
        """Due times of the frames of ``duration_ns``; ``seed``: for random patterns."""
        if not self.is_partial:
            return self._times(duration_ns, seed)
        begin_ns = self.begin_ns or 0
        sends_ns = self.ends_ns(duration_ns) - begin_ns
        return LaterTimes(self._times(sends_ns, seed), begin_ns, sends_ns)

    def _times(self, duration_ns: int, seed: int) -> Times:
        if isinstance(self.pattern, Profile):
            return self.pattern.times()
        if isinstance(self.pattern, Recorded):
            assert self.replay is not None, "checked"
            if self.replay.recording is None:
                raise ValueError("the frames of the replay are not here: read its capture again")
            return RecordedTimes(self.replay.recording.times_ns, self.pattern.period_ns)
        steady = SteadyTimes(self.rate_fps, None if self.then is None else (self.then.rate_fps, self.then.after_ns))
        frames = steady.frames_before(duration_ns)
        match self.pattern:
            case Poisson():
                return PoissonTimes(frames, duration_ns, seed)
            case Joining():
                return JoiningTimes(self.rate_fps, self.pattern.flows, self.pattern.apart_ns)
            case Bursts():
                return BurstTimes(self.rate_fps, self.pattern.frames, self.pattern.within_fps, frames)
            case _:
                return steady
