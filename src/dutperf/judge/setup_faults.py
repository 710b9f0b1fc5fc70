# SPDX-License-Identifier: Apache-2.0
"""Rules for losses that DUT and test setup explain together: addresses that nobody answers for, a drain that is too
short, errors and fragments, frames that come back; and for frames that arrive with other VLAN tags, at another
address, or in a tunnel. None of that is a limit of the DUT. They are a part of the rules of
:mod:`dutperf.judge.validity`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from dutperf.judge.own_loss import loss_matters
from dutperf.model import (
    Cause,
    Direction,
    DirectionCounts,
    LimitedBy,
    NeighbourEvidence,
    Trial,
    TrialResult,
    tags_in_words,
)
from dutperf.model.address_range import destinations, sources
from dutperf.model.frame_size import ETHERNET_OVERHEAD

OTHER_RUN = "other_run"
"""Test frames of another run, in ``other_received``; also the code of their cause."""
FEW_OWN = 10
"""Redirects, router advertisements, reports of groups, LLDP: frames that a DUT sends by itself, and that may also be
those of a replay."""
EXPLAINED_SHARE = 0.1
"""Fragments, errors or returned frames explain a loss from this share of the lost frames on."""
FEW_ERRORS = 2
"""So many ICMP errors may be about something else. A DUT limits how many it sends, so more of them may stand
for any number of frames."""
LONG_DELAY_SHARE = 0.5
"""A DUT that delays the first frame by more than this share of the drain may delay others beyond its end."""
NO_DELAY_S = 0.001
"""A shorter delay is short against any drain."""
UNTIL_THE_END_SHARE = 0.9
"""Frames may still be on their way if one arrived after this share of the drain."""
VLAN_TAG = 4
"""Bytes of a VLAN tag, for which the kernel has room beside the MTU."""
UNANSWERED, MOVED, CONFLICT = "unanswered", "dut_moved", "address_conflict"
"""Codes of causes that ARP and Neighbour Discovery show."""
OF_NEIGHBOURS = frozenset({UNANSWERED, MOVED, CONFLICT})
HELD_BY_DUT = "own_address"
VLAN_TAGS, DESTINATIONS, ENCAPSULATION = "vlan_tags", "destinations", "encapsulation"
CHANGED = {
    VLAN_TAGS: "frames have other tags",
    DESTINATIONS: "frames go to other addresses",
    ENCAPSULATION: "frames stay in the tunnel",
}
"""What is wrong where the DUT changed what frames must keep, by the codes of the only causes here that need no
loss."""
TAKEN, TOO_LONG, GIVEN_MAC = "taken_address", "dut_mtu", "gateway_mac"
CERTAIN = frozenset({TAKEN, TOO_LONG, GIVEN_MAC})
"""Codes of causes whose evidence needs no further trial: they last until somebody changes the test setup."""
_OF_LOSS = frozenset({"drain", "icmp_errors", "fragments", "returned", "multiplied", HELD_BY_DUT})
OF_SETUP = CERTAIN | _OF_LOSS | CHANGED.keys()
"""Codes of causes that no further trial removes: DUT and test setup do not fit."""
MATCHED = "matched"
"""Code of the cause that arrivals fit no frame without a tag."""


def limit_of(result: TrialResult) -> LimitedBy:
    """What keeps a trial that is not valid from a verdict. Of several causes any other is the tester's, unless the
    test setup's lasts."""
    if result.not_opened:
        return LimitedBy.CONNECTIONS
    causes = result.causes
    is_of_setup = any(one.lasts for one in causes) or (causes and all(_is_of_setup(one, result) for one in causes))
    return LimitedBy.SETUP if is_of_setup else LimitedBy.TESTER


def _is_of_setup(cause: Cause, result: TrialResult) -> bool:
    """Frames whose lengths all differ by the same are those that the DUT changed, and nobody told by how much."""
    if cause.code != MATCHED:
        return cause.code in OF_SETUP | OF_NEIGHBOURS
    counts = None if cause.direction is None else result.directions().get(cause.direction)
    return counts is not None and counts.matched is not None and bool(counts.matched.fitting_change)


def of_neighbours(
    trial: Trial, counts: Mapping[Direction, DirectionCounts], evidence: Mapping[str, NeighbourEvidence]
) -> Iterator[Cause]:
    """The DUT knew where to send the frames that are missing, and had the MAC address that they were sent to."""
    for direction, one in counts.items():
        if not loss_matters(trial, one):
            continue
        (sender, receiver), path = direction.ports, one.counted.path(direction)
        asked = evidence[receiver].asked_in_vain() if receiver in evidence else ""
        if asked:
            advice = _advice(trial, direction, evidence[receiver])
            text = (
                f"{path}: {one.lost:,} {one.counted.were_lost}, and {asked} at the {receiver} port, which does not"
                f" answer for that: what has to go there is dropped. {advice}"
            )
            yield Cause(code=UNANSWERED, text=text, direction=direction)
        moves = evidence[sender].moves() if sender in evidence else ""
        if moves:
            text = (
                f"{path}: {one.lost:,} {one.counted.were_lost}, and at the {sender} port {moves}, not the one to which"
                f" {one.counted.many} were sent"
            )
            yield Cause(code=MOVED, text=text, direction=direction)
        given = evidence[sender].given_macs() if sender in evidence else ""
        if given and not one.received:
            nothing = f"{path}: no {one.counted.arrival} arrived"
            text = f"{nothing}, and {given}: remove {_key(sender)}.gateway_mac, or correct it"
            yield Cause(code=GIVEN_MAC, text=text, direction=direction, lasts=True)
        claims = [
            evidence[port].claims(port, of_gateway=of_gateway)
            for port, of_gateway in ((sender, True), (receiver, False))
            if port in evidence
        ]
        if any(claims):
            text = f"{path}: {one.lost:,} {one.counted.were_lost}, and {', and '.join(filter(None, claims))}"
            yield Cause(code=CONFLICT, text=text, direction=direction)
        held = [evidence[port].held_by_dut(port) for port in direction.ports if port in evidence]
        if any(held) and not one.received:
            text = (
                f"{path}: no {one.counted.arrival} arrived, and {', and '.join(filter(None, held))}: it takes frames"
                " from and to that address for its own"
            )
            yield Cause(code=HELD_BY_DUT, text=text, direction=direction)


def _advice(trial: Trial, direction: Direction, seen: NeighbourEvidence) -> str:
    """What to do about addresses that the DUT asks for in vain where a path ends."""
    sender, receiver = direction.ports
    if _are_exchanged(trial, direction, seen):
        return f"The {sender} port has it: the two ports are exchanged, by their cables or in the configuration"
    if trial.all_streams()[direction].questions is not None:
        return (
            f"If it looks for the name server there, correct its stub or forward zone: the tester's name server has the"
            f" addresses of {_key(receiver)}"
        )
    return (
        "Give the DUT a route by way of the tester's own address, or name the address in"
        f" {_key(receiver)}.answers_for, also if no test frame goes there"
    )


def _are_exchanged(trial: Trial, direction: Direction, seen: NeighbourEvidence) -> bool:
    """Whether the DUT looks for a sender of frames where these should arrive."""
    of_sender = tuple(sources(trial.all_streams()[direction]))
    return any(one.has(ip_address(asked.target)) for asked in seen.unanswered for one in of_sender)


def _key(port: str) -> str:
    return port if port in ("left", "right") else f"ports.{port}"


def _never_came(counts: DirectionCounts) -> int:
    """Lost frames without those that came after the frame timeout or corrupted."""
    return counts.lost - counts.late - counts.corrupted


def _explain(frames: int, counts: DirectionCounts) -> bool:
    """Whether so many fragments, errors or returned frames explain the loss."""
    return frames >= max(1.0, EXPLAINED_SHARE * _never_came(counts))


def _drain(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the lost frames were not merely on their way: the DUT delays frames by less than the tester
    waits for them."""
    arrivals, drain_s = counts.arrivals, trial.drain_ns / 1e9
    if not loss_matters(trial, counts) or arrivals is None or _never_came(counts) <= 0:
        return None
    is_slow = arrivals.first_s > max(LONG_DELAY_SHARE * drain_s, NO_DELAY_S)
    if not is_slow or arrivals.last_s < counts.send_time_s + UNTIL_THE_END_SHARE * drain_s:
        return None
    return (
        f"the first {counts.counted.arrival} arrived after {arrivals.first_s:.3f} s, and others still arrived at the"
        f" end of the drain of {drain_s:g} s: lost ones may have been on their way; give a drain longer than the DUT's"
        " delay (--drain)"
    )


def _stale(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... and no more were lost than frames of an earlier trial may have displaced."""
    if not counts.stale or not loss_matters(trial, counts):
        return None
    if counts.received and counts.lost - trial.question.tolerated_loss * counts.sent > counts.stale:
        return None
    return (
        f"{counts.stale:,} frames of an earlier trial arrived in this one, which lost {counts.lost:,}: the DUT keeps"
        " frames for longer than the drain; give a longer one (--drain)"
    )


def _icmp_errors(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the DUT did not refuse frames because of the test setup: for want of a route, by a filter, by its
    MTU, or because of their hop limit."""
    may_refuse = trial.question.links_may_fall or trial.connections is not None  # as it restarts, or its table is full
    if may_refuse or not loss_matters(trial, counts) or _never_came(counts) <= 0:
        return None
    # a policer that rejects forwards what is within its rate, and no load costs all frames their next hop
    asks = trial.all_streams()[direction].questions is not None
    errors = [
        one
        for one in counts.icmp_errors or ()
        if (asks or one.taken_by is None) and not (counts.received and one.may_be_policer)
    ]
    of_setup = sum(one.frames for one in errors if not (counts.received and one.may_be_overload))
    if not _are_many(of_setup, counts) and not _explain(sum(one.frames for one in errors), counts):
        return None
    said = ", ".join(one.words() for one in errors)
    what, lost = counts.counted.many, counts.counted.lost
    return f"the DUT sent {said}: it refuses {what}, whatever their rate; {counts.lost:,} were {lost}"


def _are_many(errors: int, counts: DirectionCounts) -> bool:
    """Whether so many errors may stand for any number of frames."""
    return errors > (FEW_ERRORS if counts.received else 0)


def _taken(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... and no station took frames for its own, as it has an address to which they go. Where frames to a single
    address arrive, as a translator's, its station forwards them. Questions go to the DUT itself."""
    if (
        trial.connections is not None
        or trial.all_streams()[direction].questions is not None
        or not loss_matters(trial, counts)
        or _never_came(counts) <= 0
    ):
        return None
    to = tuple(destinations(trial.all_streams()[direction]))
    is_single = len({address for one in to for address in (one.first, one.last)}) == 1
    taken = [
        error
        for error in counts.icmp_errors or ()
        if error.taken_by is not None and any(one.has(error.taken_by) for one in to)
    ]
    errors = sum(one.frames for one in taken)
    if (is_single and counts.received) or not (_are_many(errors, counts) or _explain(errors, counts)):
        return None
    addresses = ", ".join(dict.fromkeys(str(one.taken_by) for one in taken))
    return (
        f"{counts.lost:,} frames were lost, and a station, maybe the DUT itself, has an address to which they go, and"
        f" takes them for its own: {addresses} ({errors:,} ICMP errors from there); give frames or the station another"
        " address"
    )


def _too_long(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... and the other end of a virtual link takes frames of their length."""
    mtu, longest = counts.dut_input_mtu, max(trial.all_streams()[direction].sizes)
    if mtu is None or not counts.dut_input_drops or not loss_matters(trial, counts):
        return None
    if longest <= mtu + ETHERNET_OVERHEAD + VLAN_TAG:
        return None
    return (
        f"{counts.dut_input_drops:,} frames were not handed to the DUT: the MTU of its interface, the other end of the"
        f" {direction.sending_port} port, is {mtu:,}, and frames of {longest:,} bytes need"
        f" {longest - ETHERNET_OVERHEAD:,}; raise it, or send shorter frames"
    )


def _fragments(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... nor forwarded them in fragments."""
    fragments = counts.other_received.get("fragment", 0)
    if not loss_matters(trial, counts) or not _explain(fragments, counts):
        return None
    return (
        f"{fragments:,} fragments arrived while {counts.lost:,} frames were lost: the DUT fragments frames, which are"
        " too long for its MTU"
    )


def _returned(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... nor sent them back."""
    returned = (counts.misdelivered or {}).get(direction.sending_port, 0) + _untagged_back(trial, direction, counts)
    if not loss_matters(trial, counts) or not _explain(returned, counts):
        return None
    return (
        f"{returned:,} frames came back to the {direction.sending_port} port, which sent them, while {counts.lost:,}"
        " were lost: a route, a mirror or a loop leads back"
        + ("" if counts.received else ", or the two ports are exchanged")
    )


def _untagged_back(trial: Trial, direction: Direction, counts: DirectionCounts) -> int:
    """Frames without a tag that may be a replay's own and came to the port that sent them: where they are due, every
    one that may be is matched by order and length, so that others came in there. A few may be the DUT's own."""
    replay = trial.all_streams()[direction].replay
    if replay is None or replay.tagged == replay.frames:
        return 0
    other = counts.other_received
    own = sum(other.get(kind, 0) for kind in ("icmp_other", "icmpv6_other", "not_ip"))
    returned = sum(other.get(kind, 0) for kind in ("udp", "tcp", "ipv4_other", "ipv6_other", "fragment"))
    returned += other.get(OTHER_RUN, 0) if replay.of_test_frames else 0
    return returned + (own if own > FEW_OWN else 0)


def _multiplied(trial: Trial, _direction: Direction, counts: DirectionCounts) -> str | None:
    """... nor multiplied them, as a loop does: that is load which no figure states."""
    if counts.answers is not None or not loss_matters(trial, counts) or counts.duplicates < max(1, counts.received):
        return None
    return (
        f"{counts.duplicates:,} duplicates of {counts.received:,} frames arrived while {counts.lost:,} were lost: a"
        " loop or a second path multiplies them"
    )


def _vlan_tags(trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """The DUT delivered the frames with the VLAN tags that the configuration says."""
    if counts.vlan_tags is None or not counts.vlan_tags.other:
        return None
    stream, port = trial.all_streams()[direction], direction.receiving_port
    each = [frame.arrives_with or () for frame in stream.frames] or [stream.arrives_with or ("",)]
    right = " or ".join(dict.fromkeys(tags_in_words(tags) for choices in each for tags in choices))
    by_kind = ", each kind of frames its own" if len(set(each)) > 1 else ""
    return (
        f"{counts.vlan_tags.other:,} frames arrived at the {port} port with other VLAN tags than they should have"
        f" ({counts.vlan_tags.words()}, instead of {right}{by_kind}); if the DUT should deliver them so, say it in"
        f" {_key(port)}.frame, or by streams of one direction"
    )


def _destinations(_trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """RFC 2544 section 10: ... and to the stations that they are for."""
    if counts.destinations is None:
        return None
    port = direction.receiving_port
    return (
        f"{counts.destinations.other:,} frames arrived at the {port} port for other addresses than they were sent to"
        f" ({counts.destinations.words()}): the DUT sends them to the wrong station, or translates; then say so in"
        f" {_key(port)}.answers_for"
    )


def _encapsulation(_trial: Trial, direction: Direction, counts: DirectionCounts) -> str | None:
    """... and ended the tunnel in which they were sent. How it sends frames to a tunnel's other end is its own affair
    (segment routing is often one way): those outside of the tunnel are a remark."""
    if not counts.not_decapsulated:
        return None
    sender, receiver = direction.ports
    return (
        f"{counts.not_decapsulated:,} frames arrived at the {receiver} port still in the tunnel: the DUT forwards it"
        f" and is not its end; correct the destination in {_key(sender)}.tunnel, or give {_key(receiver)}.tunnel if the"
        " tester is its end"
    )


RULES = (
    ("drain", _drain),
    ("stale", _stale),
    ("icmp_errors", _icmp_errors),
    (TAKEN, _taken),
    (TOO_LONG, _too_long),
    ("fragments", _fragments),
    ("returned", _returned),
    ("multiplied", _multiplied),
    (VLAN_TAGS, _vlan_tags),
    (DESTINATIONS, _destinations),
    (ENCAPSULATION, _encapsulation),
)
"""As in :data:`dutperf.judge.rules.RULES`."""
