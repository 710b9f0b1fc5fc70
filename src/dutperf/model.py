# SPDX-License-Identifier: Apache-2.0
"""The values that the rest of the package passes around: a trial, what came of it, and what it was measured with.

Everything here is immutable and checked when it is made, so nothing further in checks it again. Units stand in the names: ``_s`` seconds,
``_us`` microseconds, ``_ns`` nanoseconds, ``_fps`` frames per second *per direction*. Frame sizes are bytes including the frame check sequence.
The words are those of RFC 2544, RFC 8219 and RFC 9971.
"""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator

from dutperf.pattern import BurstTimes, PoissonTimes, SteadyTimes, Times, random_bits

MIN_FRAME_SIZE = 64
"""Smallest Ethernet frame: 42 bytes of IPv4 and UDP, 18 of the test's own, 4 of frame check sequence."""
MIN_FRAME_SIZE_IPV6 = 84
"""Smallest test frame with an IPv6 header (RFC 8219 5.1.1): 20 bytes more."""
MAX_FRAME_SIZE = 9216
IPV6_HEADER_EXCESS = 20
"""By how much an IPv6 frame is longer than its IPv4 translation, in bytes."""

Count = Annotated[int, Field(ge=0)]
Port16 = Annotated[int, Field(ge=0, le=65535)]
Fps = Annotated[int, Field(ge=1, le=1_000_000_000)]


_DUE_TIMES = 4 * 3
"""Of the generators of a trial, the forward direction's for due times (``Generator`` in ``engine/trial/trial.hpp``)."""


class Value(BaseModel):
    """Base of all values: immutable, unknown members are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Direction(StrEnum):
    """Forward is from the tester's left port to its right one."""

    FORWARD = "forward"
    REVERSE = "reverse"


class FieldMode(StrEnum):
    """How a header field changes from frame to frame; see protocol/README.md."""

    FIXED = "fixed"
    INCREASING = "increasing"
    DECREASING = "decreasing"
    RANDOM = "random"


class VaryingField(Value):
    """16 bits of a header: a UDP port. Both ends of the range are included; a fixed field holds ``min``."""

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
                raise ValueError(f"{address} is no IPv{self.version} address")
        return self


class RateChange(Value):
    """The rate of a stream ``after_ns`` after the start and later."""

    rate_fps: Fps
    after_ns: Annotated[int, Field(ge=1, le=86_400_000_000_000)]


class Poisson(Value):
    """Frames at independent times, uniform over the sending time: exponential gaps."""

    kind: Literal["poisson"] = "poisson"


class Bursts(Value):
    """Bursts of ``frames`` frames (RFC 2544 section 21) at such intervals that the mean rate holds."""

    kind: Literal["bursts"] = "bursts"
    frames: Annotated[int, Field(ge=2, le=1_000_000)]
    within_fps: Fps | None = None
    """Rate of a burst's frames; None: all are due at once, and leave as fast as the sender can."""


class Stream(Value):
    """What one direction sends: foreground and background frames and how their fields vary.

    Frame ``k`` is foreground when ``k mod n < m`` (RFC 8219 5.3's proportions of native traffic are the background's).
    """

    rate_fps: Fps
    then: RateChange | None = None
    """None: the rate does not change."""
    pattern: Annotated[Poisson | Bursts, Field(discriminator="kind")] | None = None
    """How frames come whose mean rate is ``rate_fps``; None: at that rate throughout."""
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
            raise ValueError("varying destination addresses go with one destination network only")
        return self

    @model_validator(mode="after")
    def _pattern_possible(self) -> Self:
        if self.pattern is not None and self.then is not None:
            raise ValueError("a pattern goes with one rate only")
        if isinstance(self.pattern, Bursts) and self.pattern.within_fps is not None and self.pattern.within_fps < self.rate_fps:
            raise ValueError(f"the frames of a burst would come at {self.pattern.within_fps} frames/s, more slowly than on average ({self.rate_fps})")
        return self

    def times(self, duration_ns: int, seed: int) -> Times:
        """When the frames of ``duration_ns`` are due; ``seed``: of what is random in this."""
        steady = SteadyTimes(self.rate_fps, None if self.then is None else (self.then.rate_fps, self.then.after_ns))
        frames = steady.frames_before(duration_ns)
        match self.pattern:
            case Poisson():
                return PoissonTimes(frames, duration_ns, seed)
            case Bursts():
                return BurstTimes(self.rate_fps, self.pattern.frames, self.pattern.within_fps, frames)
            case _:
                return steady


class Stamping(StrEnum):
    """Which frames carry the time of their sending."""

    NONE = "none"
    TAGGED = "tagged"
    EVERY = "every"


class Tagged(Value):
    """Tagged frames: ``count`` of them, one in each equal part of the frames that are due ``after_ns`` after the start or later (RFC 8219 7.2)."""

    count: Annotated[int, Field(ge=1, le=10_000_000)]
    after_ns: Annotated[int, Field(ge=0, le=86_400_000_000_000)]


class DelaysFiles(Value):
    """Where each direction's every delay is written to, on the machine of the tester (protocol/README.md has the form: NumPy's)."""

    forward: Annotated[str, Field(min_length=1)] | None = None
    reverse: Annotated[str, Field(min_length=1)] | None = None


class Question(Value):
    """How well whoever asks wants to know what a trial shows (:mod:`dutperf.validity`)."""

    tolerated_loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of a direction's frames whose loss makes no difference."""
    resolution: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the trial's rate to which the DUT's highest is looked for; 0: nothing is looked for, the trial's own figures count."""


class Trial(Value):
    """One elementary measurement (RFC 2544 section 23): the same trial always sends the same frames."""

    trial: Annotated[int, Field(ge=0, le=65535)]
    seed: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    rest_ns: Annotated[int, Field(ge=1, le=60_000_000_000)] | None = None
    """Between the learning frames and the first test frame (RFC 2544 section 23 (b)); None: no rest."""
    duration_ns: Annotated[int, Field(ge=1, le=86_400_000_000_000)]
    drain_ns: Annotated[int, Field(ge=0, le=3_600_000_000_000)]
    burst: Annotated[int, Field(ge=1, le=512)] = 32
    stamping: Stamping = Stamping.NONE
    tagged: Tagged | None = None
    lost_delay_ns: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    """What a stamped frame that is lost counts as among the delays; None: it is left out."""
    frame_timeout_ns: Annotated[int, Field(ge=1, le=3_600_000_000_000)] | None = None
    """A frame that takes longer does not count as received (Lencse, Kovács, Shima, IJATES2 9(2), 2020)."""
    question: Question = Question()
    """For the judge of the trial: no member of a request."""
    delays_files: DelaysFiles | None = None
    forward: Stream | None = None
    reverse: Stream | None = None

    @model_validator(mode="after")
    def _some_direction(self) -> Self:
        if self.forward is None and self.reverse is None:
            raise ValueError("a trial needs a direction")
        return self

    @model_validator(mode="after")
    def _changes_while_sending(self) -> Self:
        for direction, stream in self.streams().items():
            if stream.then is not None and stream.then.after_ns >= self.duration_ns:
                raise ValueError(f"the rate of {direction} would change after {stream.then.after_ns} ns of a trial of {self.duration_ns} ns")
        return self

    @model_validator(mode="after")
    def _stamps_as_needed(self) -> Self:
        if (self.tagged is not None) != (self.stamping is Stamping.TAGGED):
            raise ValueError("tagged goes with stamping tagged")
        if self.lost_delay_ns is not None and self.stamping is Stamping.NONE:
            raise ValueError("lost_delay_ns needs stamped frames")
        if self.frame_timeout_ns is not None and self.stamping is not Stamping.EVERY:
            raise ValueError("frame_timeout_ns needs stamping every")
        if self.delays_files is not None and self.stamping is Stamping.NONE:
            raise ValueError("delays_files needs stamped frames")
        return self

    @property
    def duration_s(self) -> float:
        """Sending time in seconds."""
        return self.duration_ns / 1e9

    @property
    def whole_s(self) -> float:
        """Rest, sending and draining in seconds."""
        return ((self.rest_ns or 0) + self.duration_ns + self.drain_ns) / 1e9

    def lasting(self, duration_s: float) -> Self:
        """The same trial with another sending time."""
        return self.model_validate({**dict(self), "duration_ns": round(duration_s * 1e9)})

    def request(self) -> dict[str, Any]:
        """The ``params`` of the engine's ``run`` (protocol/request.schema.json)."""
        return {name: value for name, value in to_json(self).items() if name != "question"}

    def streams(self) -> dict[Direction, Stream]:
        """The active directions' streams, forward first."""
        both = {Direction.FORWARD: self.forward, Direction.REVERSE: self.reverse}
        return {direction: stream for direction, stream in both.items() if stream is not None}

    def intended(self, direction: Direction) -> int:
        """Frames that ``direction`` is to send: those due before the end of the sending time."""
        return 0 if direction not in self.streams() else self.times(direction).frames_before(self.duration_ns)

    def times(self, direction: Direction) -> Times:
        """When the frames of an active direction are due (protocol/README.md)."""
        return self.streams()[direction].times(self.duration_ns, random_bits(self.seed, _DUE_TIMES + list(Direction).index(direction)))


class Quantiles(Value):
    """Of a distribution, all in the unit that the owner's name states."""

    p50: float
    p99: float
    p999: float
    max: float


class Delays(Quantiles):
    """One-way delays, in microseconds: from the sending core's stamp to the receiving core's poll."""

    min: float
    buckets: tuple[tuple[float, Annotated[int, Field(ge=1)]], ...] | None = None
    """The distribution: the largest delay of each bucket, and how many delays are in it; a bucket is at most an eighth of its delays wide."""


class DelayChanges(Value):
    """Changes of the one-way delay from each frame to the next, in microseconds (RFC 5481's inter-packet delay variation)."""

    min: float
    p50: float
    max: float


class Away(Value):
    """The longest time that a hot loop was not running, in microseconds."""

    sender: float
    receiver: float


class DelaysWritten(Value):
    """What became of a file of delays."""

    written: Count
    unwritten: Count
    """Delays that are not in the file: the writing did not keep up, or failed. All figures have them."""
    error: str | None = None
    """What the system said where it refused."""


class NicArrivals(Value):
    """How the arrivals of stamped frames were told, where the NIC was to tell them."""

    by_nic: Count
    by_poll: Count
    """The NIC said nothing of these frames."""
    impossible: Count
    """Before they were sent or after they were polled, by more than the clock was uncertain: the nearest possible time counts, and the trial is invalid."""
    uncertainty_us: float
    """Of the NIC's clock against the tester's, at most, as far as was measured during the trial."""

    def said(self) -> str:
        """For a remark."""
        polled = f", {self.by_poll:,} at the poll because it stamped those not" if self.by_poll else ""
        clock = f"its clock was uncertain by {self.uncertainty_us:.2f} us at most"
        return f": {self.by_nic:,} delays end at the NIC's receive time stamps{polled}; {clock}"


class NicDepartures(Value):
    """How frames left, where the NIC was told when."""

    timed: Count
    """Handed over ahead of time, to leave when they are due."""
    at_once: Count
    """Their time had come before they were handed over, or the clock could not be trusted."""
    impossible: Count = 0
    """Stamped frames that were polled before they were to leave: their delay counts as 0, and the trial is invalid."""
    uncertainty_us: float
    """Of the NIC's clock against the tester's, at most, as far as was measured during the trial."""


LOSS_BINS = 100
"""Equal parts of the sending time over which losses are counted."""


class Losses(Value):
    """Frames that never came, by the time at which they were due; those after the last that arrived included, late ones not."""

    first_s: float
    """From the start to when the first of them was due."""
    last_s: float
    longest_run: Annotated[int, Field(ge=1)]
    """Of frames with consecutive numbers."""
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]


PUNCTUAL_US = 1_000.0
"""A frame that leaves later than this after it was due begins a burst."""


class CatchingUp(Value):
    """Frames that left in bursts after a standstill of the sender: from one later than ``PUNCTUAL_US`` until one less than a tenth of that late."""

    frames: Annotated[int, Field(ge=1)]
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]
    """By the time at which they were due, over the same parts of the sending time as losses."""


class Arrivals(Value):
    """When received frames came, in seconds from the start, by the receiving loop's clock: no more exact than that loop's turns."""

    first_s: float
    last_s: float
    silence_from_s: float
    """Beginning and end of the longest time between two arrivals."""
    silence_to_s: float

    @property
    def silence_s(self) -> float:
        """The longest time between two arrivals."""
        return self.silence_to_s - self.silence_from_s


class DirectionCounts(Value):
    """What the tester counted in one direction, and how well it kept its schedule (event.schema.json, ``direction``)."""

    intended: Count
    sent: Count
    received: Count
    foreground_sent: Count
    background_sent: Count
    foreground_received: Count
    background_received: Count
    duplicates: Count
    out_of_order: Count
    stale: Count
    damaged: Count
    send_time_s: float
    lateness_us: Quantiles
    away_us: Away
    refused: Count
    tester_drops: dict[str, Count]
    dut_input_drops: Count
    other_received: dict[str, Count]
    delay_us: Delays | None = None
    """Where frames were stamped; a lost one counts as the trial's ``lost_delay_ns``."""
    ipdv_us: DelayChanges | None = None
    """Where every frame was stamped and two neighbours arrived one after the other."""
    delays_file: DelaysWritten | None = None
    receive_timestamps: NicArrivals | None = None
    """Where frames were stamped and the NIC was to tell when they arrived."""
    send_at: NicDepartures | None = None
    """Where the NIC was told when to send each frame."""
    rate_limit_mbps: Count | None = None
    """Of each transmit queue, where the NIC was to limit them; 0: none was needed."""
    stamped_sent: Count = 0
    stamped_received: Count = 0
    late: Count = 0
    """Arrived after the frame timeout: these are among the lost."""
    losses: Losses | None = None
    """None where no frame is missing."""
    catching_up: CatchingUp | None = None
    """None where no frame left in a burst."""
    arrivals: Arrivals | None = None
    """None where none came."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def lost(self) -> int:
        """Frames sent that did not arrive undamaged; not yet blamed on anyone."""
        return self.sent - self.received

    @property
    def loss_ratio(self) -> float:
        """Lost frames as a share of those sent (0 where nothing was sent)."""
        return self.lost / self.sent if self.sent else 0.0


class Verdict(StrEnum):
    """Whether a trial says anything about the DUT."""

    VALID = "valid"
    INVALID = "invalid"
    ABORTED = "aborted"


class Cause(Value):
    """One reason why a trial is not valid."""

    code: str
    """One of validity.RULES, or ``stopped`` or ``engine_died``."""
    text: str
    """One sentence with the figures."""
    direction: Direction | None = None


class PortState(Value):
    """One figure for each port of the tester."""

    left: int
    right: int


class LinkState(Value):
    left: bool
    right: bool


class TrialResult(Value):
    """What came of a trial. ``forward`` and ``reverse`` are absent where the direction was not active or nothing was counted."""

    trial: Count
    verdict: Verdict
    causes: tuple[Cause, ...] = ()
    forward: DirectionCounts | None = None
    reverse: DirectionCounts | None = None
    link_changes: PortState = PortState(left=0, right=0)
    link_up: LinkState = LinkState(left=True, right=True)
    """At the end of the trial."""
    dut_core_taken: float | None = None
    """Share (0-1) of the core of a DUT on this machine that others took; None: the DUT is elsewhere, or a process of it ended, and its time is not known."""
    dut_answered: LinkState = LinkState(left=True, right=True)
    """Whether the DUT answered ARP and NDP just before the trial."""
    dut_losses: dict[Direction, dict[str, Count]] | None = None
    """Frames that the DUT itself counted as lost during the trial, by cause; None: it does not say."""

    def directions(self) -> dict[Direction, DirectionCounts]:
        """The counted directions, forward first."""
        both = {Direction.FORWARD: self.forward, Direction.REVERSE: self.reverse}
        return {direction: counts for direction, counts in both.items() if counts is not None}

    @property
    def worst_loss_ratio(self) -> float:
        """The loss ratio of the worse direction; a procedure's loss tolerance applies to each direction by itself."""
        return max((counts.loss_ratio for counts in self.directions().values()), default=0.0)


class LimitedBy(StrEnum):
    """What stands directly above the highest load that a search found."""

    DUT = "dut"
    """A load that failed."""
    TESTER = "tester"
    """A load that the tester cannot measure: the DUT may be capable of more."""
    RANGE = "range"
    """The end of the range that the user set (at the lower end: nothing in it passed)."""
    MEDIA = "media"
    """Nothing: the media's maximum frame rate passed."""


def to_json(value: Value) -> dict[str, Any]:
    """``value`` as JSON types, absent members left out (as the protocol has it)."""
    return value.model_dump(mode="json", exclude_none=True)
