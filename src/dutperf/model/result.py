# SPDX-License-Identifier: Apache-2.0
"""The result of a trial: what was counted and timed, and whether it says anything about the DUT."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, computed_field, model_serializer, model_validator

from dutperf.model.value import Count, Direction, Value, without_empty


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
    """The distribution: the largest delay of each bucket, and how many delays are in it; a bucket
    is at most an eighth of its delays wide."""


class DelayChanges(Value):
    """Changes of the one-way delay from each frame to the next, in microseconds (RFC 5481's
    inter-packet delay variation)."""

    min: float
    p50: float
    max: float


class LoopStall(Value):
    """The longest time that a hot loop was not running, in microseconds."""

    sender: float
    receiver: float


class DelaysWritten(Value):
    """What became of a file of delays."""

    written: Count
    unwritten: Count
    """Delays that are not in the file: the writing did not keep up, or failed. All figures have
    them."""
    error: str | None = None
    """What the system said where it refused."""


class MediaLimit(Value):
    """A direction at the rate of its media, by the clock of the card that sends."""

    line_rate_fps: float
    """Frames/s that the link carries."""
    tolerance_us: float
    """By how much frames may be late, and sending may take longer: what the card's clock may differ
    from the tester's by, over the trial."""


class TransmitWait(Value):
    """What may wait in a card's transmit rings after it was handed over, unseen by ``lateness_us``:
    delays have it."""

    frames: Count
    us: float | None = None
    """How long at the media's rate, at most; None: its speed is not known, or flow control lets the
    other end stop the port."""
    full: bool
    """So many did wait: the driver took no more."""


class Transmitted(Value):
    """What was handed over to the sending port, and what left it."""

    handed_over: Count
    """Frames of the direction, and answers to ARP and NDP."""
    counted: Count
    """... that left, by the count of the kernel or of the driver."""
    by: Literal["kernel", "driver", "nobody"]
    """``nobody``: more frames have arrived than the driver counts."""


class NicArrivals(Value):
    """How the arrivals of stamped frames were told, where the NIC was to tell them."""

    by_nic: Count
    by_poll: Count
    """The NIC said nothing of these frames."""
    impossible: Count
    """Before they were sent or after they were polled, by more than the clock was uncertain: the
    nearest possible time counts, and the trial is invalid."""
    uncertainty_us: float
    """Of the NIC's clock against the tester's, at most, as far as was measured during the trial."""

    def sentence(self) -> str:
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
    """Stamped frames that were polled before they were to leave: their delay counts as 0, and the
    trial is invalid."""
    uncertainty_us: float
    """Of the NIC's clock against the tester's, at most, as far as was measured during the trial."""


LOSS_BINS = 100
"""Equal parts of the sending time over which losses are counted."""


class Losses(Value):
    """Frames that never came, by the time at which they were due; those after the last that arrived
    included, late ones not."""

    first_s: float
    """From the start to when the first of them was due."""
    last_s: float
    longest_run: Annotated[int, Field(ge=1)]
    """Of frames with consecutive numbers."""
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]


PUNCTUAL_US = 1_000.0
"""A frame that leaves later than this after it was due begins a burst."""


class LateBursts(Value):
    """Frames that left in bursts after a standstill of the sender: from one later than
    ``PUNCTUAL_US`` until one less than a tenth of that late."""

    frames: Annotated[int, Field(ge=1)]
    longest: Annotated[int, Field(ge=1)] | None = None
    """Frames of the longest burst; None: an older engine, which did not say."""
    bins: Annotated[tuple[Count, ...], Field(min_length=LOSS_BINS, max_length=LOSS_BINS)]
    """By the time at which they were due, over the same parts of the sending time as losses."""

    @property
    def at_once(self) -> int:
        """Frames that one burst had at most."""
        return self.frames if self.longest is None else self.longest


class Arrivals(Value):
    """When received frames came, in seconds from the start, by the receiving loop's clock: no more
    exact than that loop's turns."""

    first_s: float
    last_s: float
    longest_gap_from_s: float
    """Beginning and end of the longest time between two arrivals."""
    longest_gap_to_s: float

    @property
    def longest_gap_s(self) -> float:
        """The longest time between two arrivals."""
        return self.longest_gap_to_s - self.longest_gap_from_s


class ReceiveBacklog(Value):
    """Of receive queues that the DUT fills itself, or the kernel."""

    frames: Count
    """That waited in one queue at once, at most."""
    ring: Annotated[int, Field(ge=1)]
    """That a queue has room for."""
    counted: bool = False
    """The kernel counts frames that find a queue full; they are among the ``tester_drops``."""


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
    receive_backlog: ReceiveBacklog | None = None
    """None where a card's queues receive."""
    early: Count = 0
    """Stamped frames that arrived before they were sent, by the counters of the tester's cores:
    their delay counts as 0, and the trial is invalid."""
    media: MediaLimit | None = None
    """None where the media's rate is not the limit, or not known."""
    transmit_wait: TransmitWait | None = None
    """None where no card sends."""
    receive_ring_us: float | None = None
    """How long a receiving card's ring takes to fill at the direction's rate."""
    transmitted: Transmitted | None = None
    losses: Losses | None = None
    """None where no frame is missing."""
    late_bursts: LateBursts | None = None
    """None where no frame left in a burst."""
    arrivals: Arrivals | None = None
    """None where none came."""

    @model_validator(mode="before")
    @classmethod
    def _without_lost(cls, members: Any) -> Any:
        """A journal states it for its readers; it follows from the rest."""
        return {name: one for name, one in members.items() if name != "lost"} if isinstance(members, dict) else members

    @computed_field  # type: ignore[prop-decorator]
    @property
    def lost(self) -> int:
        """Frames sent that did not arrive undamaged; not yet blamed on anyone."""
        return self.sent - self.received

    @property
    def tolerance_us(self) -> float:
        """By how much a card's clock excuses lateness."""
        return 0.0 if self.media is None else self.media.tolerance_us

    @property
    def waited_us(self) -> float | None:
        """How long frames waited in a card's transmit rings at most, where those were full; None:
        nobody knows."""
        return 0.0 if self.transmit_wait is None or not self.transmit_wait.full else self.transmit_wait.us

    @property
    def loss_ratio(self) -> float:
        """Lost frames as a share of those sent (0 where nothing was sent)."""
        return self.lost / self.sent if self.sent else 0.0


class SoFar(Value):
    """Of a direction, while its trial runs (event.schema.json, ``so_far``)."""

    sent: Count
    received: Count
    max_lateness_us: float = 0.0
    """The most that a frame left late."""
    tester_drops: Count = 0
    """Frames lost by the tester itself, by counters that only grow."""
    nic_clock_us: float = 0.0
    """By how much a NIC's clock was uncertain, where frames leave or arrive by it."""


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


class PhaseResult(Value):
    """The result of one phase of a trial. ``forward`` and ``reverse`` are absent where the direction
    was not active or nothing was counted."""

    trial: Count
    """The phase's number."""
    verdict: Verdict
    causes: tuple[Cause, ...] = ()
    forward: DirectionCounts | None = None
    reverse: DirectionCounts | None = None
    link_changes: PortState = PortState(left=0, right=0)
    link_up: LinkState = LinkState(left=True, right=True)
    """At the end of the trial."""
    link_down: LinkState = LinkState(left=False, right=False)
    """At any time of the trial, where the link is the tester's own (of a card or a socket; of an
    interface of the kernel the other end is the DUT's)."""
    dut_core_taken: float | None = None
    """Share (0-1) of the core of a DUT on this machine that others took; None: the DUT is
    elsewhere, or a process of it ended, and its time is not known."""
    dut_answered: LinkState = LinkState(left=True, right=True)
    """Whether the DUT answered ARP and NDP just before the trial."""
    proven_failed: str | None = None
    """Why the DUT lost more than was tolerated whatever disturbed the trial, where the trial is not
    valid and a search asked only whether it passes. The
    counts are not the DUT's then, only the answer is."""
    ended_early_s: float | None = None
    """The tester ended the phase so long after its start, because it could no longer become valid;
    None: it ran to its end."""

    def directions(self) -> dict[Direction, DirectionCounts]:
        """The counted directions, forward first."""
        both = {Direction.FORWARD: self.forward, Direction.REVERSE: self.reverse}
        return {direction: counts for direction, counts in both.items() if counts is not None}

    @property
    def worst_loss_ratio(self) -> float:
        """The loss ratio of the worse direction; a procedure's loss tolerance applies to each
        direction by itself."""
        return max((counts.loss_ratio for counts in self.directions().values()), default=0.0)


class TrialResult(PhaseResult):
    """The result of a trial: that of its measuring phase, with a verdict on all of its phases
    (:mod:`dutperf.tester.phases`)."""

    preliminary: tuple[PhaseResult, ...] = ()
    """Those of the preliminary phases that were run."""
    dut_losses: dict[Direction, dict[str, Count]] | None = None
    """Frames that the DUT itself counted as lost during the measuring phase, by cause; None: it does
    not count them."""

    @model_serializer(mode="wrap")
    def _without_empty(self, members: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(members(self), "preliminary")


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
