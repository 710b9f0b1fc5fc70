# SPDX-License-Identifier: Apache-2.0
"""The result of a trial: counts, times, and the verdict whether it says anything about the DUT."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Field,
    ValidationInfo,
    computed_field,
    field_validator,
    model_validator,
)

from dutperf.model.capture import CaptureWritten
from dutperf.model.connections import ConnectionCounts
from dutperf.model.destinations import OtherDestinations
from dutperf.model.icmp import IcmpError
from dutperf.model.questions import Answers, ServerCounts
from dutperf.model.value import Count, Direction, Sparse, Value
from dutperf.model.vlan_tags import ArrivedTags
from dutperf.model.wording import FRAMES, QUERIES, Wording
from dutperf.spelling import count_of


class Quantiles(Value):
    """Quantiles of a distribution, in the unit of the owner's name."""

    p50: float
    p99: float
    p999: float
    max: float


class Delays(Quantiles):
    """One-way delays, in microseconds: from the sending core's stamp to the receiving core's poll."""

    min: float
    frames: Count | None = None
    """How many delays these are, with those of lost frames that count as one; None: an older engine."""
    by_tester: Quantiles | None = None
    """How much of each the tester's own loops may have added, at most: a frame leaves after its stamp and is
    polled after its arrival. None: unknown, of an older engine."""
    buckets: tuple[tuple[float, Annotated[int, Field(ge=1)]], ...] | None = None
    """The distribution: the largest delay of each bucket and its number of delays. A bucket is at most
    as wide as an eighth of its delays."""


class OfChanges(Value):
    """Figures of changes of the one-way delay, in microseconds."""

    min: float
    p50: float
    max: float


class DelayChanges(OfChanges):
    """Changes of the one-way delay from each frame to the next that was sent, in microseconds (RFC 5481's
    inter-packet delay variation)."""

    pairs: Count | None = None
    """Pairs of frames that both arrived; the sent frames have one pair less than they are. None: an older
    engine, which left out every reordered frame."""
    by_tester: OfChanges | None = None
    """By how much the tester's own loops may have moved each, at most; None: unknown, of an older engine."""


class LoopStall(Value):
    """The longest time that a hot loop was not running, in microseconds."""

    sender: float
    receiver: float


class RecordsWritten(Value):
    written: Count
    unwritten: Count
    """Records that are not in the file: writing was too slow, or failed. All figures include them."""
    error: str | None = None
    """The operating system's error; None: no error."""


class MediaLimit(Value):
    """Limit of a direction at the rate of its media, which follows the clock of the sending card."""

    line_rate_fps: float
    """Frames/s that the link carries."""
    tolerance_us: float
    """By how much frames may be late and sending may take longer: the largest drift of the card's clock
    against the tester's over the trial."""


class TransmitWait(Value):
    """Frames that may wait in a card's transmit rings after they were handed over. ``lateness_us`` does
    not include the wait; delays do."""

    frames: Count
    us: float | None = None
    """Longest wait at the media's rate; None: its speed is unknown, or the other end may stop the port
    by flow control."""
    full: bool
    """Whether this many waited: the driver did not accept more."""


class HeldFrames(Value):
    """Frames that waited in the queue discipline of a veth on which packet sockets send, and counted as sent."""

    times: Count
    """How often the other end had no room for a frame."""
    waiting: Count
    """Most that waited there before the trial, or at its end."""


class Transmitted(Value):
    """Frames handed over to the sending port, and frames that left it."""

    handed_over: Count
    """Frames of all paths from the port, and answers to ARP and NDP."""
    counted: Count
    """Frames that left, as counted by the kernel or the driver."""
    by: Literal["kernel", "driver", "nobody"]
    """``nobody``: more frames have arrived than the driver counts."""


class NicArrivals(Value):
    """Sources of the arrival times of stamped frames, if the NIC was to stamp them."""

    by_nic: Count
    by_poll: Count
    """Frames without a time stamp of the NIC."""
    impossible: Count
    """Frames stamped before they were sent or after they were polled, by more than the clock's
    uncertainty. The nearest possible time counts, and the trial is invalid."""
    uncertainty_us: float
    """Of the NIC's clock against the tester's, at most, as far as was measured during the trial."""

    def sentence(self) -> str:
        polled = f", {self.by_poll:,} at the poll because the NIC did not stamp them" if self.by_poll else ""
        return f": {self.by_nic:,} delays end at the NIC's receive time stamps{polled}"


def _time_of(us: float) -> str:
    return f"{us:,.3f} µs" if us < 1_000 else f"{us / 1e6:,.6f} s"


class StampClock(Value):
    """Whose clock stamps the frames at one end of a path."""

    name: str
    """``TSC``, ``CLOCK_REALTIME``, a PTP hardware clock (``ptp0``) or that of a DPDK port. Ports of one card may have
    the same."""
    at: Literal["loop", "kernel", "card"]
    """Where it stamps them."""
    only_ptp: Literal[True] | None = None
    """A card that stamps no frames that it receives but messages of PTP."""

    def __str__(self) -> str:
        return f"{self.name} ({self.at}{', PTP only' if self.only_ptp else ''})"


class Clocks(Value):
    """The two clocks that a path's delays are between."""

    sending: StampClock
    receiving: StampClock
    error_us: Annotated[float, Field(ge=0)]
    """Of a delay, by how the clocks were compared; of one clock, by what its rate may be wrong, or by which it was set.
    What the tester's loops add is not in it."""
    step_us: float | None = None
    """The largest by which somebody set one of them during the trial; of the kernel's with the error of its readings.
    None: loops and DPDK cards, whose clocks are only compared."""
    offset_us: float | None = None
    """Of the receiving PTP hardware clock against the sending one when the trial began; None: others."""
    drift_ppm: float | None = None
    """By which it ran faster."""
    unread_us: Annotated[float, Field(ge=0)] | None = None
    """The longest time in which one of these was not read."""

    def __str__(self) -> str:
        names = f"{self.sending} " + ("at both ends" if self.sending == self.receiving else f"to {self.receiving}")
        return f"{names}, ±{self.error_us:,.3f} µs" if self.error_us else names

    def sentence(self) -> str:
        if self.sending == self.receiving:
            return f": clocks of the delays: {self}"
        apart = f"; they were {_time_of(abs(self.offset_us))} apart" if self.offset_us else ""
        drift = f"; they ran {abs(self.drift_ppm):,.1f} ppm apart" if self.drift_ppm else ""
        return f": clocks of the delays: {self}{apart}{drift}"


class StampCounts(Value):
    """Stamped frames whose delay is by the stamps of the kernel, or of the cards, at both ends."""

    both: Count
    """With a stamp of their leaving and one of their arrival: these have a delay."""
    no_transmit: Count
    """Arrived, but nobody stamped their leaving."""
    no_receive: Count
    """Arrived, but nobody stamped their arrival."""
    impossible: Count
    """Of those with both: stamped as arrived before they left. Their delay counts as 0, and the trial is invalid."""

    @property
    def missing(self) -> int:
        """Frames that arrived and have no delay."""
        return self.no_transmit + self.no_receive

    def sentence(self) -> str:
        missing = f"; {self.missing:,} frames without one of them are not in the figures" if self.missing else ""
        return f": {self.both:,} frames have time stamps of sending and receiving{missing}"

    @classmethod
    def of(cls, all_: Sequence[StampCounts]) -> StampCounts | None:
        """Those of several trials; None of none."""
        if not all_:
            return None
        return cls(**{name: sum(getattr(one, name) for one in all_) for name in cls.model_fields})


class NicDepartures(Value):
    """How frames left, if the NIC got their send times."""

    timed: Count
    """Frames handed over ahead of time, to leave when due."""
    at_once: Count
    """Frames that were due before they were handed over, or the clock was not reliable."""
    impossible: Count = 0
    """Stamped frames that were polled before their send time: their delay counts as 0, and the trial is
    invalid."""
    uncertainty_us: float
    """Of the NIC's clock against the tester's, at most, as far as was measured during the trial."""


LOSS_BINS = 250
"""Equal parts of the sending time over which losses are counted."""


class Losses(Value):
    """Frames that never arrived, by their due times. Frames after the last arrival are included, late
    ones are not."""

    first_s: float
    """Due time of the first lost frame, from the start."""
    last_s: float
    longest_run: Annotated[int, Field(ge=1)]
    """Lost frames with consecutive numbers."""
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]


PUNCTUAL_US = 1_000.0
"""A frame that leaves later than this after its due time starts a late burst."""


class LateBursts(Value):
    """Frames that left in bursts after a stall of the sender. A burst starts with a frame later than
    ``PUNCTUAL_US`` and ends with one less than a tenth of that late."""

    frames: Annotated[int, Field(ge=1)]
    longest: Annotated[int, Field(ge=1)] | None = None
    """Frames of the longest burst; None: an older engine, which did not report it."""
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]
    """By due time, over the same parts of the sending time as losses."""

    @property
    def at_once(self) -> int:
        """Upper limit of the frames of one burst."""
        return self.frames if self.longest is None else self.longest


class LateFrames(Value):
    """All frames that left late, in a late burst or not: from one more than 0.2 ms late, or than half the time
    between two frames, until one less than half as late. Those of a short stall fill a short queue as well."""

    frames: Annotated[int, Field(ge=1)]
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]
    """By due time, over the same parts of the sending time as losses."""


class Arrivals(Value):
    """Arrival times of received frames, in seconds from the start, by the receiving loop's clock. They
    are as exact as that loop's turns."""

    first_s: float
    last_s: float
    longest_gap_from_s: float
    """Start and end of the longest gap between two arrivals."""
    longest_gap_to_s: float
    in_long_gaps_s: Annotated[float, Field(ge=0)] | None = None
    """Time in all gaps of more than 1 ms; None: not known."""

    @property
    def longest_gap_s(self) -> float:
        return self.longest_gap_to_s - self.longest_gap_from_s


class ReceiveBacklog(Value):
    """Backlog of receive queues that the DUT or the kernel fills."""

    frames: Count
    """Most frames that waited in one queue at once."""
    ring: Annotated[int, Field(ge=1)] | None = None
    """Capacity of a queue, in frames; None: it is not known."""
    counted: bool = False
    """Whether the kernel counts frames dropped at a full queue; ``tester_drops`` includes them."""


GroupDelay = tuple[float, float, float]
"""Smallest, mean and largest delay, in µs."""


PartDelay = tuple[float, float, float]
"""Median, 99th percentile and largest delay of a part of the sending time, in µs."""


class FlowCounts(Value):
    """Frames of each flow of a kind, in the order of the flows."""

    sent: tuple[Count, ...]
    received: tuple[Count, ...]
    delay_us: tuple[GroupDelay | None, ...] | None = None
    """If frames were stamped; None for a flow of which none arrived."""

    def lost(self) -> tuple[int, ...]:
        """Frames of each flow that did not arrive intact and in time."""
        return tuple(sent - received for sent, received in zip(self.sent, self.received, strict=True))


class KindCounts(Value):
    """Frames of one kind, of those that the trial describes."""

    name: str | None = None
    """Of its stream and size."""
    stream: str | None = None
    """Name of its stream, if the direction has several."""
    sent: Count
    received: Count
    delay_us: GroupDelay | None = None
    """If frames were stamped and any of them arrived."""
    flows: FlowCounts | None = None
    """With statistics by flow."""

    @property
    def lost(self) -> int:
        return self.sent - self.received


class StreamCounts(Value):
    """Frames of one of several streams of a direction: of all its kinds."""

    sent: Count
    received: Count
    delay_us: Delays | None = None
    """If frames were stamped; a lost frame counts as the trial's ``lost_delay_ns``."""

    @property
    def lost(self) -> int:
        return self.sent - self.received


class AdditionalCounts(Value):
    """One kind of frames beside the test frames: broadcasts, management queries, routing updates. They
    are no test frames: none of them counts as lost."""

    intended: Count
    sent: Count
    received: Count
    """Frames that the DUT forwarded."""
    replies: Count
    """Frames that the sending port received as replies."""
    last_reply: str | None = None
    """The first bytes of the last reply, in hexadecimal."""


class MatchedByLength(Value):
    """Frames without a tag, which arrivals were matched with by their order and length."""

    sent: Count
    in_order: Count
    """Arrivals that fit in the order of the frames, as many as possible."""
    reordered: Count
    """Others with the length of a frame that is missing nearby."""
    extra: Count
    """Others: of the DUT itself, duplicates, or frames whose length changed."""
    not_noted: Count = 0
    """Arrivals beyond those that the engine could note."""
    fitting_change: int = 0
    """Bytes by which lengths would have to differ so that most arrivals were frames; 0: no such number."""

    @property
    def lost(self) -> int:
        """Frames without an arrival."""
        return self.sent - self.in_order - self.reordered


class IdleTimes(Value):
    """Times in which a line may have been idle."""

    times: Count
    longest_us: float


class LineCounts(Value):
    """How a line was filled."""

    mbps: Count
    """Its rate."""
    fillers: Count
    """Fillers that the driver took."""
    shortest_filler: Count
    """In bytes with FCS."""
    forwarded: Count
    """Fillers that came out of the DUT at the direction's receiving port."""
    returned: Count
    """... and at its sending port."""
    idle: IdleTimes
    """Between the first and the last test frame."""
    early_us: float
    """By how much a test frame left early at least, by the tester's clock: the line is faster than the
    card says, or its clock is."""
    error_us: Quantiles
    """By how much test frames left after their place on the line; none left before."""

    @property
    def byte_ns(self) -> float:
        """The time of a byte: the granularity of the places."""
        return 8000 / self.mbps


class MetricsOnly(Value):
    """The metrics of an OTG server, where nothing else is known of a direction: the largest lateness, the sending time
    and the counts are as far as they show, and there may have been duplicates, reordered or corrupted frames."""

    blind_s: Annotated[float, Field(ge=0)]
    """A frame may have left so late without a trace in the metrics."""
    port_sent: Count | None = None
    """Frames that the sending port itself counted; None: it does not say."""
    port_received: Count | None = None
    """... and the receiving port."""


class Tracked(Value):
    """Intact frames that arrived, with duplicates, by the value of some of their bits."""

    values: dict[int, Count]
    others: Count
    """Too short, or with further values than the first 4,096."""


class DirectionCounts(Value):
    """What the tester counted in one direction, and how well it kept its schedule
    (event.schema.json, ``direction``)."""

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
    corrupted: Count
    send_time_s: float
    lateness_us: Quantiles
    stall_us: LoopStall
    not_accepted: Count
    tester_drops: dict[str, Count]
    other_received: dict[str, Count]
    """Other frames than test frames of the trial. With several paths into a port, the first one has them."""
    tracked: Tracked | None = None
    """Of a stream with tracked bits."""
    received_at: dict[str, Count] | None = None
    """Of a stream to several ports what arrived at each, with duplicates."""
    misdelivered: dict[str, Count] | None = None
    """Test frames of this path that arrived at other ports than its last one, by port."""
    icmp_errors: tuple[IcmpError, ...] | None = None
    """That arrived at the path's sending port, by what they say; None: none. Several paths from a port each have
    all of them."""
    delay_us: Delays | None = None
    """If any of the stamped frames arrived; a lost one counts as the trial's ``lost_delay_ns``."""
    delay_parts_us: tuple[PartDelay | None, ...] | None = None
    """Of each part of the sending time (``delay_parts`` of the trial); None for one of which no frame
    arrived."""
    delay_parts_by_tester_us: tuple[PartDelay | None, ...] | None = None
    """How much of each of these the tester's own loops may have added, at most."""
    ipdv_us: DelayChanges | None = None
    """If every frame was stamped and two consecutive frames arrived."""
    delays_file: RecordsWritten | None = None
    queries_file: RecordsWritten | None = None
    receive_timestamps: NicArrivals | None = None
    """If frames were stamped and the NIC was to time their arrival."""
    stamps: StampCounts | None = None
    """If the kernel or the cards timed the delays."""
    ptp: Literal[True] | None = None
    """Whether messages of PTP left in place of the tagged frames (:attr:`dutperf.model.Stream.ptp`)."""
    clocks: Clocks | None = None
    """If frames were stamped."""
    send_at: NicDepartures | None = None
    """If the NIC got the send time of each frame."""
    rate_limit_mbps: Count | None = None
    """Limit of each transmit queue, if the NIC was to limit them; 0: no limit was needed."""
    stamped_sent: Count = 0
    stamped_received: Count = 0
    late: Count = 0
    """Frames that arrived after the frame timeout; ``lost`` includes them."""
    dut_input_drops: Count
    """Of the lost frames, those that the link could not hand to the DUT, at most. The interface counts frames of
    anybody, so no more than were lost are taken from its count."""
    dut_input_mtu: Count | None = None
    """If there are such frames: the MTU of the other end; None: it is not known."""
    receive_backlog: ReceiveBacklog | None = None
    """None if a card's queues receive."""
    early: Count = 0
    """Stamped frames that arrived before they were sent, by the counters of the tester's cores:
    their delay counts as 0, and the trial is invalid."""
    unfinished_checksums: Count = 0
    """Arrivals whose checksums the DUT's kernel left to a card, which a virtual link does not have; they count as
    received."""
    zero_checksums: Count = 0
    """Arrivals whose UDP checksum over IPv6 is 0 instead of all ones, which hosts discard (RFC 8200 8.1); they count
    as received."""
    vlan_tags: ArrivedTags | None = None
    """None: no test frame arrived with other VLAN tags than it should have, or none were compared."""
    corrupted_by: dict[Literal["length", "no_udp_checksum"], Count] | None = None
    """Of the corrupted frames: those that were not as long as they were sent, and those without a UDP checksum over
    IPv6, which hosts discard (RFC 8200 8.1). None: there are neither."""
    destinations: OtherDestinations | None = None
    """None: no test frame arrived with another destination address than it should have."""
    not_decapsulated: Count = 0
    """Test frames that arrived still in the sending side's tunnel; they count as received."""
    not_encapsulated: Count = 0
    """Test frames that arrived outside of the receiving side's tunnel; they count as received."""
    media: MediaLimit | None = None
    """None if the media's rate is not the limit, or is unknown."""
    transmit_wait: TransmitWait | None = None
    """None if no card sends."""
    queue_discipline: HeldFrames | None = None
    """None if no frame waited in one, or none is known."""
    receive_ring_us: float | None = None
    """How long a receiving card's ring takes to fill at the direction's rate."""
    transmitted: Transmitted | None = None
    losses: Losses | None = None
    """None if no frame is missing."""
    late_bursts: LateBursts | None = None
    """None if no frame left in a late burst."""
    late_frames: LateFrames | None = None
    """None if no frame left late, or if the engine is an older one, which did not report it."""
    switched_on: tuple[str, ...] = ()
    """What others have switched on at the receiving port that changes frames, or answers them: clauses."""
    arrivals: Arrivals | None = None
    """None if no frame arrived."""
    kinds: tuple[KindCounts, ...] | None = None
    """Of each kind of described frames, in their order; None: the frames are not described."""
    stream_delay_us: tuple[Delays | None, ...] | None = None
    """Of each stream, if there are several and frames were stamped; None for one without delays."""
    additional: tuple[AdditionalCounts, ...] | None = None
    """Of each kind of additional frames, in their order; None: there are none."""
    matched: MatchedByLength | None = None
    """If frames had no tag; the other counts include them. None: all were counted by their tags."""
    line: LineCounts | None = None
    """If the line was filled."""
    by_metrics: MetricsOnly | None = None
    """If an OTG server sent and counted, and its metrics are all that is known."""
    answers: Answers | None = None
    """Of questions. ``received`` are the right answers that came in time."""

    @model_validator(mode="before")
    @classmethod
    def _without_lost(cls, members: Any) -> Any:
        """A journal contains ``lost`` for its readers; it follows from the other counts."""
        return {name: one for name, one in members.items() if name != "lost"} if isinstance(members, dict) else members

    @field_validator("dut_input_drops")
    @classmethod
    def _of_lost_frames(cls, counted: int, info: ValidationInfo) -> int:
        sent, came = info.data.get("sent", 0), info.data.get("received", 0) + info.data.get("late", 0)
        return min(counted, max(0, int(sent - came)))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def lost(self) -> int:
        """Sent frames that did not arrive intact, whatever the cause."""
        return self.sent - self.received

    @property
    def tolerance_us(self) -> float:
        """Lateness that a card's clock excuses."""
        return 0.0 if self.media is None else self.media.tolerance_us

    @property
    def waited_us(self) -> float | None:
        """Longest wait of frames in a card's full transmit rings; 0: they were not full; None: unknown."""
        return 0.0 if self.transmit_wait is None or not self.transmit_wait.full else self.transmit_wait.us

    def by_stream(self) -> dict[str, StreamCounts]:
        """The counts of each stream; empty: there are not several."""
        kinds = self.kinds or ()
        names = tuple(dict.fromkeys(kind.stream for kind in kinds if kind.stream is not None))
        if len(names) < 2:
            return {}
        delays = self.stream_delay_us or (None,) * len(names)
        return {
            name: StreamCounts(
                sent=sum(kind.sent for kind in kinds if kind.stream == name),
                received=sum(kind.received for kind in kinds if kind.stream == name),
                delay_us=delay,
            )
            for name, delay in zip(names, delays, strict=True)
        }

    @property
    def counted(self) -> Wording:
        return FRAMES if self.answers is None else QUERIES

    @property
    def loss_ratio(self) -> float:
        """Lost frames as a share of those sent (0 where nothing was sent)."""
        return self.lost / self.sent if self.sent else 0.0


class InSum(Value):
    """What the paths of named ports have together, beside sums of their counts."""

    delay_us: Delays
    """Over the delays of all frames."""


class SoFar(Value):
    """Counts of a direction while its trial runs (event.schema.json, ``so_far``)."""

    sent: Count
    received: Count
    max_lateness_us: float = 0.0
    """Largest lateness of a frame."""
    tester_drops: Count = 0
    """Frames that the tester itself lost, by counters that only grow."""
    nic_clock_us: float = 0.0
    """Uncertainty of a NIC's clock, if it times sending or arrivals."""
    received_at: dict[str, Count] | None = None
    """Of a stream to several ports what arrived at each."""


class Verdict(StrEnum):
    """Whether a trial says anything about the DUT."""

    VALID = "valid"
    INVALID = "invalid"
    ABORTED = "aborted"


class Cause(Sparse):
    """One reason why a trial is not valid."""

    sparse: ClassVar[Sequence[str]] = ("lasts", "frames")

    code: str
    """One of rules.RULES, ``stopped``, ``engine_died``, ``action_missed``, ``connections_expired``, or of an OTG server
    ``otg_metrics``, ``otg_verdict``."""
    text: str
    """A sentence with the figures."""
    direction: Direction | None = None
    lasts: bool = False
    """Whether each further trial would have the cause too, as long as nobody changes the test setup."""
    frames: Count | None = None
    """Of a doubt: so many frames it explains at most; None: any number."""


class PortState(Value):
    """One figure for each port of the tester: ``left`` and ``right``, or ports by their names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int] = Field(init=False)

    left: int | None = None
    right: int | None = None


class LinkState(Value):
    """Whether something is so at each port: ``left`` and ``right``, or ports by their names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, bool] = Field(init=False)

    left: bool | None = None
    right: bool | None = None

    def ports(self) -> dict[str, bool]:
        return {name: bool(state) for name, state in self.model_dump(exclude_none=True).items()}


class UnansweredAddress(Value):
    """An address that the DUT asked for by ARP or Neighbour Discovery during the trial, and that no port has."""

    target: str
    asker: str
    requests: Annotated[int, Field(ge=1)]


class MovedGateway(Value):
    """Messages in which a gateway has another MAC address than the one to which the trial's frames were sent."""

    gateway: str
    mac: str
    given: str | None = None
    """That MAC address, if it is the configuration's ``gateway_mac``, which may be right all the same."""
    messages: Annotated[int, Field(ge=1)]


class AddressConflict(Value):
    """Messages in which another station claims an address of the tester's port or of the gateway, in a trial or before
    it."""

    address: str
    of_gateway: bool
    by_dut: bool = False
    """Whether the station is the DUT's end of the link, which has an address of the tester's port itself."""
    of_range: bool = False
    """Whether the port only answers for the address, as for all that its flows use on the link."""
    holder: str
    """The port's MAC address, or the one to which the trial's frames were sent."""
    mac: str
    messages: Annotated[int, Field(ge=1)]


class NeighbourEvidence(Value):
    """What ARP and Neighbour Discovery at a port say about lost frames."""

    requests: Count = 0
    """For addresses that no port has, named or not."""
    unanswered: tuple[UnansweredAddress, ...] = ()
    """The first few of these addresses."""
    moved: tuple[MovedGateway, ...] = ()
    conflicts: tuple[AddressConflict, ...] = ()

    def asked_in_vain(self) -> str:
        """``the DUT asked for 198.19.0.3 (12 requests by 198.19.0.1)``; empty if it did not."""
        named = [f"{one.target} ({count_of(one.requests, 'request')} by {one.asker})" for one in self.unanswered]
        others = self.requests - sum(one.requests for one in self.unanswered)
        named += [f"others ({count_of(others, 'request')})"] if others else []
        return f"the DUT asked for {', '.join(named)}" if named else ""

    def moves(self) -> str:
        """``198.18.0.1 has the MAC address 02:00:00:00:00:03 by 2 messages of the DUT``; empty if none moved."""
        return ", ".join(
            f"{one.gateway} has the MAC address {one.mac} by {count_of(one.messages, 'message')} of the DUT"
            for one in self.moved
            if one.given is None
        )

    def given_macs(self) -> str:
        """``frames go to 02:12:34:56:78:9a, but 198.18.0.1 has the MAC address 02:00:00:00:00:03``; empty if no
        gateway has another one than the configuration gives."""
        return ", ".join(
            f"frames go to {one.given}, but {one.gateway} has the MAC address {one.mac}"
            for one in self.moved
            if one.given is not None
        )

    def claims(self, port: str, *, of_gateway: bool) -> str:
        """``another station, MAC address 02:00:00:00:00:03, claims 198.19.0.2, the right port's own address
        (02:00:00:00:00:02)``; empty if none does."""

        def whose(one: AddressConflict) -> str:
            if one.of_gateway:
                return f"the gateway of the {port} port"
            return f"an address for which the {port} port answers" if one.of_range else f"the {port} port's own address"

        return ", ".join(
            f"another station, MAC address {one.mac}, claims {one.address}, {whose(one)} ({one.holder})"
            for one in self.conflicts
            if one.of_gateway is of_gateway and not one.by_dut
        )

    def held_by_dut(self, port: str) -> str:
        """``the DUT, MAC address 02:00:00:00:00:01, has 198.18.0.2, the left port's own address``; empty if it has
        none."""
        return ", ".join(
            f"the DUT, MAC address {one.mac}, has {one.address}, the {port} port's own address"
            for one in self.conflicts
            if one.by_dut
        )


class PhaseResult(Sparse):
    """The result of one phase of a trial. ``forward`` and ``reverse`` are absent if the direction
    was not active or nothing was counted; of named ports, ``paths`` has the counts instead."""

    sparse: ClassVar[Sequence[str]] = ("doubts",)

    trial: Count
    """The phase's number."""
    verdict: Verdict
    causes: tuple[Cause, ...] = ()
    forward: DirectionCounts | None = None
    reverse: DirectionCounts | None = None
    paths: dict[Direction, DirectionCounts] | None = None
    other_streams: dict[Direction, DirectionCounts] | None = None
    """Of the streams beside them; None: there are none."""
    in_sum: InSum | None = None
    """None also of left and right, and without stamped frames."""
    link_changes: PortState = PortState(left=0, right=0)
    link_up: LinkState = LinkState(left=True, right=True)
    """At the end of the trial."""
    link_down: LinkState = LinkState(left=False, right=False)
    """At any time of the trial, if the link is the tester's own, as a card's or a socket's. The other end
    of a kernel interface is the DUT's."""
    dut_core_taken: float | None = None
    """Share (0-1) of the core of a DUT on this machine that others took; None: the DUT is elsewhere, or
    the time is unknown because one of its processes ended."""
    dut_answered: LinkState = LinkState(left=True, right=True)
    """Whether the DUT answered ARP and NDP just before the trial."""
    port_changes: dict[str, str] | None = None
    """By port, why it was no longer the one that was opened: clauses. None: all ports were."""
    neighbours: dict[str, NeighbourEvidence] | None = None
    """By port; None: no port saw any."""
    proven_failed: str | None = None
    """Proof that the DUT lost more than was tolerated although the trial is not valid; only for a search,
    which needs pass or fail alone. Only the failure is the DUT's then, the counts are not."""
    ended_early_s: float | None = None
    """Time after which the tester ended the phase because it could no longer become valid; None: the
    phase ran to its end."""
    capture: CaptureWritten | None = None
    connections: ConnectionCounts | None = None
    """None: no stateful test."""
    server: ServerCounts | None = None
    """Of the tester's own name server; None: there was none."""
    loop_stamps_because: str | None = None
    """Why the tester's loops timed the delays though the kernel was to where it can; None: it did, or was not to."""
    doubts: tuple[Cause, ...] = ()
    """Causes that hold if the trial shows that they matter: of a phase that tolerates loss, or opens connections."""

    def directions(self) -> dict[Direction, DirectionCounts]:
        """The counted paths: forward first, or in the order of the configuration. Where nothing else was sent, the
        streams with rates of their own."""
        if self.paths is not None:
            return dict(self.paths)
        both = {Direction.FORWARD: self.forward, Direction.REVERSE: self.reverse}
        active = {direction: counts for direction, counts in both.items() if counts is not None}
        return active or dict(self.other_streams or {})

    def all_directions(self) -> dict[Direction, DirectionCounts]:
        """The same, and behind them the streams beside them."""
        return self.directions() | (self.other_streams or {})

    @property
    def counted(self) -> Wording:
        return next((one.counted for one in self.directions().values()), FRAMES)

    @property
    def worst_loss_ratio(self) -> float:
        """The loss ratio of the worst path; a procedure's loss tolerance applies to each path by
        itself."""
        return max((counts.loss_ratio for counts in self.directions().values()), default=0.0)

    @property
    def loss_ratio_in_sum(self) -> float:
        """The lost frames of all paths as a share of those sent."""
        sent = sum(counts.sent for counts in self.directions().values())
        return sum(counts.lost for counts in self.directions().values()) / sent if sent else 0.0


NOT_OPENED = "not_opened"
"""Code of the cause of a trial whose connections could not all be opened."""


class TrialResult(PhaseResult):
    """The result of a trial: that of its measuring phase, with a verdict on all of its phases
    (:mod:`dutperf.tester.phases`)."""

    sparse: ClassVar[Sequence[str]] = ("preliminary", "doubts")

    preliminary: tuple[PhaseResult, ...] = ()
    """Results of the preliminary phases that were run."""
    connections_probed: Count | None = None
    """Connections that lost a frame and were asked afterwards, by one more reply each, whether they are left;
    None: none was asked."""
    connections_gone: Count | None = None
    """Connections among these whose reply was lost again: the DUT had deleted them. In the others frames were
    lost."""
    dut_connections: Count | None = None
    """Connections that the DUT itself counted after the preliminary phase; None: it does not count them."""
    ended_in: Count | None = None
    """The number of the preliminary phase with which the trial ended: the counts are that phase's; None: all phases
    were run."""
    deletion_s: Annotated[float, Field(ge=0)] | None = None
    """How long the DUT took to delete its connections after the trial; None: it was not measured."""
    deletion_empty_s: Annotated[float, Field(ge=0)] | None = None
    """The same with an empty table."""
    dut_losses: dict[Direction, dict[str, Count]] | None = None
    """Frames that the DUT itself counted as lost during the measuring phase, by cause; None: it does not
    count them, or not for this trial."""
    dut_losses_unknown: str | None = None
    """Why these are not known though the DUT has loss counters, or which of several DUTs in a row has none; None: they
    are, or it has none."""

    @property
    def not_opened(self) -> bool:
        """Whether nothing but connections that were not opened makes it invalid."""
        return bool(self.causes) and all(cause.code == NOT_OPENED for cause in self.causes)


class LimitedBy(StrEnum):
    """The limit directly above the highest load that a search found."""

    DUT = "dut"
    """A load that failed."""
    TESTER = "tester"
    """A load that the tester cannot measure; the DUT may be capable of more."""
    SETUP = "setup"
    """A load at which DUT and test setup do not fit: frames arrive changed, in pieces or not at all for reasons that
    are not the rate."""
    CONNECTIONS = "connections"
    """The DUT did not open the connections of a trial (RFC 9693), at any repeat: there is neither a loss nor
    a limit of the tester."""
    RANGE = "range"
    """The end of the range that the user set (at the lower end: nothing in it passed)."""
    MEDIA = "media"
    """The media: their maximum frame rate passed."""
