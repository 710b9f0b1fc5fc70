# SPDX-License-Identifier: Apache-2.0
"""What the counts of one direction say of the tester: each rule returns a sentence where the trial breaks it.
docs/decisions/0003-validity.md explains the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import add

from dutperf.judge import setup_faults
from dutperf.judge.own_loss import (
    clear_parts,
    late_frames,
    loss_matters,
)
from dutperf.model import (
    LOSS_BINS,
    Cause,
    Direction,
    DirectionCounts,
    LateBursts,
    LateFrames,
    ReceiveBacklog,
    StampCounts,
    Trial,
)
from dutperf.model.wording import Wording
from dutperf.spelling import with_and

SENDING_TIME_TOLERANCE = 1.00001
"""Sending may take this many times the trial's duration (siitperf's rule; Lencse, IJATES2 9(3),
2020)."""
SENDING_TIME_SLACK_S = 600e-6
"""... but at least this much longer: the tolerance that the rule gives the 60 s trial of RFC 2544
section 24."""
IN_TURN_S = 10e-6
"""And so much for each further stream from the same port: frames that are due at once leave one after the other, 4 us
apart where it was seen. Lateness has limits of its own."""
STAMP_CLOCK_LIMIT_US = 10.0
"""By which the clock of the kernel's stamps may seem to be set: both clocks that are compared are read within less."""
CARD_CLOCK_UNREAD_S = 1.0
"""A card's clock that was not read for longer may have run otherwise meanwhile."""
MISSING_STAMPS = 0.01
"""Share of the stamped frames that arrived of which a stamp may be missing."""
LATENESS_LIMIT_US = 50_000.0
"""No frame may be later than this: after a longer stall comes a burst, not the intended load."""
LATENESS_LIMIT_WITH_LOSS_US = 10_000.0
"""The limit if frames were lost: the late burst after the stall may have caused the loss."""
FORWARDING_SHARE = 0.02
"""Share of the sending time that a DUT gets after a late burst before losses are its own."""
BURSTS_WORK_SHARE = 0.5
"""Bursts count as the cause of the loss only if they may have caused this share of it."""
FEW_IN_BURSTS = 0.001
"""If no larger share of the frames left in bursts, losses far from the bursts count as the DUT's: the
bursts change its throughput by no larger share."""
FEW_OF_RESOLUTION = 0.2
"""The same limit as a share of the search's resolution; the larger limit applies."""
TIMEOUT_SLACK = 0.1
"""If frames are late, the tester may have added this share of the frame timeout to a delay."""
NIC_CLOCK_LIMIT_US = 100.0
"""Largest valid uncertainty of a NIC's clock for time stamps or send times. If readings 20 ms apart
disagree by more, the clock was set."""
QUEUE_CERTAINLY_NOT_FULL = 0.5
"""A receive queue was certainly not full if no more than this share of it was occupied: a frame may
take two places, and a driver frees them with a delay."""
ONE_BURST = 56
"""So many frames of a queue of unknown size may have been all that fit into it: the receiving loop takes a burst of
fewer as a queue that it emptied."""
REMEDIES = {
    "kernel_backlog": "the card's ring or a queue of the kernel was full: a larger ring (ethtool -G) or"
    " net.core.netdev_max_backlog, or a core for the port's interrupts may help",
    "receive_errors": "their FCS or length was wrong: look at the cable",
    "neighbour_replies": "replies to ARP and Neighbour Discovery, until which the DUT drops frames",
}
"""Of frames that the tester dropped: what was the matter, and what helps."""
TRANSMIT_WAIT_LIMIT_US = 2_000.0
"""Delays may include this much waiting in a full transmit ring: the time of the smallest ring that
any driver accepts, with frames of 1,518 bytes at 1 Gbit/s."""
TESTER_DELAY_LIMIT_US = 10_000.0
"""The tester's own loops may have added this much to the median and the 99.9th percentile of the delays: the
limit of lateness where it matters..."""
TESTER_DELAY_SHARE = 0.1
"""... or this share of the figure; the larger limit applies. Whatever they may have added is told with the
figure (:mod:`dutperf.results.tester_delay`)."""
LINE_RATE_SLACK_US = 5_000.0
"""A line is faster than it is said to be if a frame left this much earlier than clocks may differ by. A
card's own memory may hold frames in addition to the ring: 625 kB at 1 Gbit/s in this time."""
UNEXPLAINED_SHARE = 0.1
"""Of frames that are counted by order and length, so many arrivals may fit no frame, as a share of the
lost ones."""


def sending_time_limit_s(duration_s: float) -> float:
    return max(duration_s * SENDING_TIME_TOLERANCE, duration_s + SENDING_TIME_SLACK_S)


@dataclass(frozen=True)
class LateOfStreams:
    """Frames of several streams that left late, in each part of the sending time."""

    in_bursts: tuple[int, ...] = (0,) * LOSS_BINS
    frames: tuple[int, ...] = (0,) * LOSS_BINS
    """In bursts or not."""
    latest_us: float = 0.0

    def with_those_of(self, counts: DirectionCounts) -> LateOfStreams:
        """With those of one more stream."""
        bursts = None if counts.late_bursts is None else counts.late_bursts.bins
        return LateOfStreams(
            self.in_bursts if bursts is None else tuple(map(add, self.in_bursts, bursts)),
            tuple(map(add, self.frames, late_frames(counts))),
            max(self.latest_us, counts.lateness_us.max),
        )

    def put_into(self, counts: DirectionCounts) -> DirectionCounts:
        """The counts as if these were their own."""
        if self.frames == late_frames(counts):
            return counts
        late = {
            name: kind(frames=sum(bins), bins=bins)
            for name, kind, bins in (
                ("late_bursts", LateBursts, self.in_bursts),
                ("late_frames", LateFrames, self.frames),
            )
            if any(bins)
        }
        lateness = counts.lateness_us.model_copy(update={"max": self.latest_us})
        return counts.model_copy(update={**late, "lateness_us": lateness})


def causes_by_rules(
    trial: Trial, direction: Direction, counts: DirectionCounts, late: LateOfStreams, *, lossy: bool
) -> Iterator[Cause]:
    """``late``: of this direction and the streams beside, whose bursts fill the DUT's queues as well. ``lossy``: a loss
    of any direction matters: they may share the DUT's capacity."""
    for code, rule in RULES:
        text = _cause(code, rule, trial, direction, late.put_into(counts) if code == BURSTS else counts, lossy=lossy)
        if text is not None:
            lasts = code in setup_faults.CERTAIN
            yield Cause(code=code, text=f"{counts.counted.path(direction)}: {text}", direction=direction, lasts=lasts)


def causes_of_other_streams(
    trial: Trial, beside: Mapping[Direction, DirectionCounts], known: set[str], *, lossy: bool
) -> Iterator[Cause]:
    """The streams ``beside`` those that are measured were the load that was meant. What is lost of them says nothing,
    but where what is measured is ``lossy`` they may not have been late. ``known``: texts about ports that were told
    already."""
    load = trial.model_copy(update={"question": trial.question.model_copy(update={"tolerated_loss": 1.0})})
    for direction, one in beside.items():
        for code, rule in RULES:
            text = _cause(code, rule, load, direction, one, lossy=lossy)
            if text is not None and text not in known:
                yield Cause(code=code, text=f"{direction}: {text}", direction=direction)


def _cause(
    code: str, rule: Rule, trial: Trial, direction: Direction, counts: DirectionCounts, *, lossy: bool
) -> str | None:
    """How late a frame may be depends on the loss of all directions, all else on the counts of its own."""
    return _late(counts, matters=lossy) if code == LATE else rule(trial, direction, counts)


def _miscounted(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """Engine and client agree on the trial, and the engine's counts agree with each other."""
    meant = trial.intended(direction)
    if counts.intended != meant:
        return f"the engine intended to send {counts.intended:,} {counts.counted.many}, but the trial has {meant:,}"
    lost = counts.lost - counts.late
    missing = lost if counts.losses is None else sum(counts.losses.bins)
    return (
        f"{missing:,} {counts.counted.many} are missing by their sequence numbers, but {lost:,} by the counts"
        if missing != lost
        else None
    )


def _unsent(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """The DUT got the intended number of frames."""
    if counts.sent >= counts.intended:
        return None
    return f"only {counts.sent:,} of {counts.intended:,} {counts.counted.many} were sent in {counts.send_time_s:.6f} s"


def _unsent_additional(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the additional frames of the modifiers."""
    meant = trial.additional(direction)
    sent = tuple(one.sent for one in counts.additional or ())
    if sent == meant:
        return None
    names = [one.name for one in trial.all_streams()[direction].additional]
    if len(sent) != len(meant):
        return f"the engine counted {len(sent)} kinds of additional frames, but the trial has {len(meant)}"
    missing = [
        f"{is_sent:,} of {is_meant:,} frames of the modifier {name}"
        for name, is_sent, is_meant in zip(names, sent, meant, strict=True)
        if is_sent != is_meant
    ]
    return f"the tester sent {with_and(missing)}"


def _line_idle(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """With a filled line, places are times only if the line was never idle."""
    if trial.pacing is None:
        return None
    if counts.line is None:
        return "the engine did not fill the line"
    idle = counts.line.idle
    if not idle.times:
        return None
    return (
        f"the line may have been idle {_times(idle.times)}, for up to {idle.longest_us:,.1f} us, so that later frames"
        " left late by that: the sender stalled for longer than its transmit ring lasted"
    )


def _line_rate(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and if it has the rate that the card says. Frames on a slower one are late."""
    if counts.line is None or counts.line.early_us <= counts.tolerance_us + LINE_RATE_SLACK_US:
        return None
    return (
        f"a frame left {counts.line.early_us / 1000:.3f} ms early, more than clocks may differ: the line is faster than"
        f" the {counts.line.mbps:,} Mbit/s that the card reports"
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _fillers_forwarded(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and if the DUT drops the fillers: those that it forwards are load that no figure states."""
    if counts.line is None or not counts.line.forwarded + counts.line.returned:
        return None
    back = counts.line.forwarded + counts.line.returned
    return (
        f"{back:,} of {counts.line.fillers:,} fillers came back: the DUT forwards frames to an address that nobody has,"
        " as a bridge does, or the ports are joined by a cable; take pacing software"
    )


def _sending_time(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... in the intended time. :func:`_unsent` reports frames that were not sent."""
    ends_s = trial.all_streams()[direction].ends_ns(trial.duration_ns) / 1e9
    limit_s = sending_time_limit_s(ends_s) + counts.tolerance_us / 1e6
    if counts.sent < counts.intended or counts.send_time_s <= limit_s:
        return None
    streams = [one for one in trial.all_streams() if one.sending_port == direction.sending_port]
    limit_s += (len(streams) - 1) * IN_TURN_S
    if counts.send_time_s <= limit_s:
        return None
    return f"sending took {counts.send_time_s:.6f} s, more than the {limit_s:.6f} s allowed"


def _switched_on(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """Frames arrived as the DUT sent them: nobody has the kernel merge, change or answer them."""
    if not counts.switched_on:
        return None
    return (
        f"another program switched on {with_and(counts.switched_on)}, at the port that receives: the counts may not"
        " be the DUT's"
    )


def _sender_late(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and at the intended rate throughout: after a stall the DUT got a burst. It may pass in
    spite of a burst, but the burst may have caused a loss."""
    return _late(counts, matters=loss_matters(trial, counts))


def _late(counts: DirectionCounts, *, matters: bool) -> str | None:
    late_us = latest_us(counts)
    allowed = too_late(counts.counted, late_us, counts.tolerance_us, matters=matters)
    if allowed is None:
        return None
    waited = (
        f", of which it waited {counts.waited_us / 1000:.3f} ms in the port's transmit ring" if counts.waited_us else ""
    )
    return f"a {counts.counted.one} left {late_us / 1000:.3f} ms late{waited}, {allowed}"


def too_late(counted: Wording, late_us: float, tolerance_us: float, *, matters: bool) -> str | None:
    """The limit that this lateness exceeds, as a clause; None: it is within the limit. ``matters``:
    whether frames are lost."""
    limit_us = (LATENESS_LIMIT_WITH_LOSS_US if matters else LATENESS_LIMIT_US) + tolerance_us
    if late_us <= limit_us:
        return None
    where = f" where {counted.many} are {counted.lost}" if matters else ""
    return f"more than the {limit_us / 1000:g} ms allowed{where}"


def latest_us(counts: DirectionCounts) -> float:
    return counts.lateness_us.max + (counts.waited_us or 0.0)


def _bursts(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the loss is larger than bursts alone could have caused, or is not near the bursts."""
    if not loss_matters(trial, counts) or counts.late_bursts is None or _sender_late(trial, _direction, counts):
        return None
    burst, tolerated = sum(late_frames(counts)), trial.question.tolerated_loss * counts.sent
    in_spite = _lost_in_spite_of_bursts(trial, counts, counts.late_bursts)
    if counts.lost - tolerated > burst or in_spite > max(tolerated, (1 - BURSTS_WORK_SHARE) * counts.lost):
        return None
    return (
        f"{burst:,} {counts.counted.many} left late, by up to {counts.lateness_us.max / 1000:.3f} ms; they may have"
        f" caused the loss of {counts.lost:,}"
    )


def _lost_in_spite_of_bursts(trial: Trial, counts: DirectionCounts, late_bursts: LateBursts) -> int:
    """Frames lost before the first one that was late. If few frames left in bursts, also those lost in parts
    of the sending time without a burst in them or just before, less the late frames there.

    Just before: the DUT gets ``FORWARDING_SHARE`` of the sending time to forward the frames that a
    burst left in its queue.
    """
    if counts.losses is None:
        return 0
    forwarding_s = FORWARDING_SHARE * trial.duration_s
    clear = clear_parts(late_bursts.bins, counts.lateness_us.max, trial.duration_s, forwarding_s)
    late = late_frames(counts)
    first = next(part for part, frames in enumerate(late) if frames)
    few = max(FEW_IN_BURSTS, FEW_OF_RESOLUTION * trial.question.resolution) * counts.sent
    end = LOSS_BINS if late_bursts.frames <= few else first
    return sum(max(0, counts.losses.bins[part] - late[part]) for part in clear if part < end)


def _tester_drops(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """The tester counted every frame that came back."""
    dropped = [f"{count:,} frames ({name})" for name, count in counts.tester_drops.items() if count]
    remedies = [REMEDIES[name] for name, count in counts.tester_drops.items() if count and name in REMEDIES]
    return ": ".join(("the tester itself dropped " + ", ".join(dropped), *remedies)) if dropped else None


def _receiver_stall(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... also if a ring may have overrun without a counter for it.

    After an overrun the loop finds the ring full. If it found far fewer frames, the ring lost none.
    """
    stall_us, ring_us, backlog = counts.stall_us.receiver, counts.receive_ring_us, counts.receive_backlog
    if backlog is not None and backlog.counted and not _may_be_full(backlog):
        return None
    if not loss_matters(trial, counts) or stall_us <= min(
        LATENESS_LIMIT_WITH_LOSS_US, ring_us or LATENESS_LIMIT_WITH_LOSS_US
    ):
        return None
    overrun = (
        f"; the port's receive ring is full after {ring_us / 1000:.3f} ms"
        if ring_us and ring_us < LATENESS_LIMIT_WITH_LOSS_US
        else ""
    )
    return f"the receiving loop stalled for {stall_us / 1000:.3f} ms while {counts.counted.were_lost}{overrun}"


def _receive_queue(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... also if the DUT itself puts frames into the tester's receive queue, and drops them when it is
    full."""
    backlog = counts.receive_backlog
    if backlog is None or backlog.counted or not loss_matters(trial, counts) or not _may_be_full(backlog):
        return None
    size = f"of {backlog.ring:,}" if backlog.ring else "of unknown size"
    remedy = "" if backlog.ring else ": state its size, 2^N frames, as rsize=N in the port"
    return (
        f"{backlog.frames:,} frames waited in a receive queue {size}, which may have been full while"
        f" {counts.counted.were_lost}{remedy}"
    )


def _may_be_full(backlog: ReceiveBacklog) -> bool:
    """Whether a queue may have been full at its largest backlog."""
    if backlog.ring is None:
        return backlog.frames >= ONE_BURST
    return backlog.frames > backlog.ring * QUEUE_CERTAINLY_NOT_FULL


def _late_in_tester(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and a late frame spent its time in the DUT, not in the tester before sending or after
    arrival."""
    if trial.frame_timeout_ns is None or counts.late == 0 or not loss_matters(trial, counts):
        return None
    stall_ms, timeout_ms = max(counts.stall_us.sender, counts.stall_us.receiver) / 1000, trial.frame_timeout_ns / 1e6
    allowed = f"more than {TIMEOUT_SLACK:.0%} of the {counts.counted.timeout} of {timeout_ms:g} ms"
    if counts.waited_us is None or counts.waited_us / 1000 > timeout_ms * TIMEOUT_SLACK:
        return (
            f"frames waited {_waited(counts)} in the port's full transmit ring, {allowed}, while {counts.late:,}"
            f" {counts.counted.arrivals} arrived after it"
        )
    if stall_ms <= timeout_ms * TIMEOUT_SLACK:
        return None
    what = counts.counted.arrivals
    return f"a loop stalled for {stall_ms:.3f} ms, {allowed}, while {counts.late:,} {what} arrived after it"


def _transmit_wait(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the delays that count include no long wait in the tester."""
    if counts.delay_us is None or trial.frame_timeout_ns is not None:
        return None
    if counts.waited_us is not None and counts.waited_us <= TRANSMIT_WAIT_LIMIT_US:
        return None
    return (
        f"frames waited {_waited(counts)} in the port's full transmit ring, more than the"
        f" {TRANSMIT_WAIT_LIMIT_US / 1000:g} ms that a delay may include"
    )


def _queue_discipline(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and none waited where a longer queue than the DUT's own keeps them for it."""
    held = counts.queue_discipline
    if held is None:
        return None
    left = f", and {held.waiting:,} were left there by this trial or the one before" if held.waiting else ""
    return (
        f"frames waited in the sending port's queue discipline: the other end had no room {held.times:,} times{left};"
        " name the port by its interface alone (AF_XDP), or take NAPI (XDP, GRO) from the other end"
    )


def is_testers(figure_us: float, by_tester_us: float) -> bool:
    """Whether more of a quantile of delays may be the tester's own than is allowed."""
    return by_tester_us > max(TESTER_DELAY_LIMIT_US, TESTER_DELAY_SHARE * figure_us)


def _tester_delay(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... nor much time that a loop of the tester let pass before sending or after arrival: a stall counts where it
    reaches a figure. Of the largest delay as much is allowed as a frame may be late."""
    delay = counts.delay_us
    if delay is None or delay.by_tester is None or trial.frame_timeout_ns is not None:
        return None
    for name, figure_us, own_us in (
        ("median", delay.p50, delay.by_tester.p50),
        ("99.9th percentile", delay.p999, delay.by_tester.p999),
    ):
        if is_testers(figure_us, own_us):
            return _of_its_own(f"the {name} of the delays", figure_us, own_us, TESTER_DELAY_LIMIT_US)
    if delay.by_tester.max > LATENESS_LIMIT_US:
        return _of_its_own("the largest delay", delay.max, delay.by_tester.max, LATENESS_LIMIT_US)
    return None


def _of_its_own(figure: str, figure_us: float, own_us: float, limit_us: float) -> str:
    return (
        f"the tester's own loops may have added {own_us / 1000:.3f} ms to {figure}, {figure_us / 1000:.3f} ms: more"
        f" than the {limit_us / 1000:g} ms allowed"
    )


def _waited(counts: DirectionCounts) -> str:
    return "for an unknown time" if counts.waited_us is None else f"up to {counts.waited_us / 1000:.3f} ms"


def _nic_clock(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the NIC's clock was known throughout, if it timed sending or arrivals."""
    uncertain_us = max(
        (stamps.uncertainty_us for stamps in (counts.send_at, counts.receive_timestamps) if stamps is not None),
        default=0.0,
    )
    if uncertain_us <= NIC_CLOCK_LIMIT_US:
        return None
    return (
        f"a NIC's clock, which times sending or arrivals, was uncertain by {uncertain_us:,.1f} us, more than the"
        f" {NIC_CLOCK_LIMIT_US:g} us allowed"
    )


def _stamp_clock(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and nobody set the kernel's, if that stamped the frames."""
    step_us = counts.clocks.step_us if counts.clocks is not None and counts.clocks.sending.at == "kernel" else None
    if step_us is None or abs(step_us) <= STAMP_CLOCK_LIMIT_US:
        return None
    return (
        f"this machine's clock, by which the kernel stamps frames, was set by {step_us:,.1f} us: let no program set it"
        " during a measurement"
    )


def _card_clock(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... nor those of the cards, which could be compared throughout."""
    clocks = counts.clocks
    if clocks is None or clocks.unread_us is None:
        return None
    names = " or ".join(dict.fromkeys((clocks.sending.name, clocks.receiving.name)))
    if clocks.step_us:
        return (
            f"a card's clock, {names}, was set by {clocks.step_us:,.1f} us: end what sets it (ptp4l, phc2sys) during a"
            " measurement"
        )
    if clocks.unread_us > CARD_CLOCK_UNREAD_S * 1e6:
        return (
            f"a card's clock, {names}, was not read for {clocks.unread_us / 1e6:,.1f} s: its driver did not answer, or"
            " the tester had no core for it"
        )
    return None


def _missing_stamps(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and nearly all frames have stamps."""
    stamps = counts.stamps
    if stamps is None or stamps.missing <= MISSING_STAMPS * counts.stamped_received:
        return None
    by = _stamped_by(counts)
    return (
        f"of {counts.stamped_received:,} stamped {counts.counted.arrivals} the {by}'s stamp of sending is missing for"
        f" {stamps.no_transmit:,} and that of receiving for {stamps.no_receive:,}, more than {MISSING_STAMPS:.0%}:"
        f" {_missing_because(stamps, by)}"
    )


def _stamped_by(counts: DirectionCounts) -> str:
    return "kernel" if counts.clocks is None else counts.clocks.sending.at


def _missing_because(stamps: StampCounts, by: str) -> str:
    if not stamps.both:
        return "no frame has both, so leave stamps at loop"
    if by == "card":
        return "many cards stamp one frame at a time, so take fewer tags, or leave stamps at loop"
    return "the tester did not read them fast enough, so lower the rate, or leave stamps at loop"


def _nic_stamps(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and its time stamps are possible."""
    by = (counts.send_at, counts.receive_timestamps, counts.stamps)
    impossible = sum(stamps.impossible for stamps in by if stamps is not None)
    clock = "a NIC's clock" if counts.stamps is None else f"the {_stamped_by(counts)}'s stamps"
    return (
        f"{impossible:,} {counts.counted.arrivals} arrived before they left or after they were polled, by {clock}"
        if impossible
        else None
    )


def _core_clocks(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and so are the times by the counters of the tester's own cores."""
    what = counts.counted.arrivals
    return (
        f"{counts.early:,} {what} arrived before they were sent, by the counters of the tester's own cores"
        if counts.early
        else None
    )


def _received_too_many(_trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """No more frames arrived than were sent."""
    if counts.lost >= 0:
        return None
    what = counts.counted
    return f"{counts.received:,} {what.arrivals} arrived, but only {counts.sent:,} {what.many} were sent"


def _matched(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """Of frames without a tag: what arrived cannot be the frames that are missing, with other lengths."""
    matched = counts.matched
    if matched is None:
        return None
    if matched.not_noted:
        return f"{matched.not_noted:,} more frames without a tag arrived than could be noted"
    if not loss_matters(trial, counts) or matched.extra <= UNEXPLAINED_SHARE * matched.lost:
        return None
    differ = (
        f"; most lengths differ by {matched.fitting_change:+} bytes (--length-change)" if matched.fitting_change else ""
    )
    return (
        f"{matched.lost:,} frames without a tag are missing, but {matched.extra:,} arrivals fit no frame by order and"
        f" length: they may be the same, changed by the DUT{differ}"
    )


BURSTS, LATE, DROPS, NIC_CLOCK = "sender_bursts", "sender_late", "tester_drops", "nic_clock"
Rule = Callable[[Trial, Direction, DirectionCounts], str | None]
RULES: tuple[tuple[str, Rule], ...] = (
    ("miscounted", _miscounted),
    ("unsent", _unsent),
    ("unsent_additional", _unsent_additional),
    ("sending_time", _sending_time),
    ("received_too_many", _received_too_many),
    ("line_idle", _line_idle),
    ("line_rate", _line_rate),
    ("fillers_forwarded", _fillers_forwarded),
    (DROPS, _tester_drops),
    ("switched_on", _switched_on),
    (LATE, _sender_late),
    (BURSTS, _bursts),
    ("receiver_stall", _receiver_stall),
    ("receive_queue", _receive_queue),
    ("late_in_tester", _late_in_tester),
    ("transmit_wait", _transmit_wait),
    ("queue_discipline", _queue_discipline),
    ("tester_delay", _tester_delay),
    (NIC_CLOCK, _nic_clock),
    ("nic_stamps", _nic_stamps),
    ("stamp_clock", _stamp_clock),
    ("card_clock", _card_clock),
    ("missing_stamps", _missing_stamps),
    ("core_clocks", _core_clocks),
    (setup_faults.MATCHED, _matched),
    *setup_faults.RULES,
)
"""Codes of causes, each with its rule: it returns a sentence if the trial breaks it, else None.
Aborted trials have the codes ``stopped`` and ``engine_died``."""
