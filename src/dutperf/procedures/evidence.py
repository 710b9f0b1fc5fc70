# SPDX-License-Identifier: Apache-2.0
"""What a trial shows about the DUT: for a search an outcome; for a person sentences on what was lost
in which direction and what arrived instead."""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.judge.setup_faults import OF_NEIGHBOURS, OF_SETUP
from dutperf.model import Direction, DirectionCounts, TrialResult, Verdict
from dutperf.model.digits import two_digits
from dutperf.results import beside
from dutperf.results.loss import asked_in_words
from dutperf.search import Outcome
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import Setup


def outcome_of(result: TrialResult, conditions: Conditions) -> Outcome:
    """Outcome of ``result`` for a search: unmeasurable unless the trial was valid, or proves that
    the DUT fails in spite of the disturbance."""
    if forwards_nothing(result):
        return Outcome.NOT_FORWARDING
    if result.verdict is not Verdict.VALID and result.proven_failed is None:
        return Outcome.UNMEASURABLE
    if result.proven_failed is not None:
        return Outcome.FAILED
    return Outcome.PASSED if result.worst_loss_ratio <= conditions.every.loss_tolerance else Outcome.FAILED


def is_refused(result: TrialResult) -> bool:
    """Whether nothing makes the trial invalid but that DUT and test setup do not fit: another trial shows
    the same."""
    return bool(result.causes) and {cause.code for cause in result.causes} <= OF_SETUP


def lasting(result: TrialResult) -> str:
    """``no trial can be valid with this test setup: ...``, where causes do not depend on the rate; else empty."""
    texts = [cause.text for cause in result.causes if cause.lasts]
    return f"no trial can be valid with this test setup: {'; '.join(texts)}" if texts else ""


def does_not_fit(result: TrialResult) -> bool:
    """Whether DUT and test setup are shown not to fit at any rate. (Addresses that do not fit are those of all cases:
    they end the run.)"""
    return any(cause.lasts and cause.code not in OF_NEIGHBOURS for cause in result.causes)


def forwards_nothing(result: TrialResult) -> bool:
    """Whether it is shown that the DUT forwards nothing in some direction, and not why it cannot."""
    is_shown = result.verdict is Verdict.VALID or (is_refused(result) and not does_not_fit(result))
    return is_shown and bool(dead_directions(result))


def losses(result: TrialResult, frame_timeout_ms: float | None = None) -> str:
    """``forward lost 12 of 30,000 frames (0.04 %), reverse lost none``; with a frame timeout also
    how many of them came later than that."""
    directions = result.directions()
    if result.paths is not None:  # there may be many: those that lost none are counted
        lossless = sum(not counts.lost for counts in directions.values())
        directions = {direction: counts for direction, counts in directions.items() if counts.lost}
        others = [f"{lossless} paths lost none"] if lossless else []
    else:
        others = []
    lossy = [f"{direction} {_loss(counts, frame_timeout_ms)}" for direction, counts in directions.items()]
    return ", ".join(lossy + others)


def dead_directions(result: TrialResult) -> tuple[Direction, ...]:
    """Directions in which frames were sent and none arrived."""
    return tuple(direction for direction, counts in result.directions().items() if counts.sent and not counts.received)


def late_directions(result: TrialResult) -> tuple[Direction, ...]:
    """Directions of which no frame arrived until the DUT began to forward."""
    return tuple(direction for direction, counts in result.directions().items() if beside.began_s(counts) is not None)


def no_forwarding(result: TrialResult, setup: Setup) -> str:
    """Evidence of a DUT that forwards nothing: ``the DUT forwards nothing in the forward direction:
    …``, and what of the test setup may be the reason."""
    directions = dead_directions(result)
    counted = {way: causes for way in directions if (causes := (result.dut_losses or {}).get(way))}
    who = [f"{way}, the DUTs' own counters: {_by_cause(causes)}" for way, causes in counted.items()]
    went_over = counted.keys() == set(directions) and not any(
        cause.startswith(f"{setup.duts()[0 if way is Direction.FORWARD else -1].name}: ")
        for way, causes in counted.items()
        for cause in causes
    )
    guess = [] if went_over else _longer_between(setup)
    where = (
        f"in the {' and the '.join(directions)} direction"
        if result.paths is None
        else f"on {'the path' if len(directions) == 1 else 'the paths'} {', '.join(directions)}"
    )
    if not went_over and not counted:
        guess = [*guess, _forwarding(setup, directions)]
    seen = [*_received(result, directions), *instead(result), *who, *_tunnels(setup, directions), *guess]
    return f"the DUT forwards nothing {where}: " + "; ".join(seen)


def _forwarding(setup: Setup, directions: tuple[Direction, ...]) -> str:
    """A cable or a switch forwards what has the other port's address, a router does not."""
    if not any(setup.ends(way)[0].has_gateway for way in directions):
        return "without a gateway frames go to the other port's MAC address: a router needs gateway4 or gateway6"
    return "does it forward (net.ipv4.ip_forward), has it a route back, and does no firewall drop them?"


def _by_cause(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {cause}" for cause, number in causes.items())


def _tunnels(setup: Setup, directions: tuple[Direction, ...]) -> list[str]:
    return [
        f"{way}, frames go into {setup.key_of(way.ports[0])}.tunnel: does the DUT's end take them (addresses, VNI or"
        " key, the MAC addresses of an inner Ethernet header)?"
        for way in directions
        if setup.ends(way)[0].tunnel is not None
    ]


def _longer_between(setup: Setup) -> list[str]:
    """A DUT drops IPv6 packets that are too long for the next link, and may send no ICMP error."""
    longer = max((link.overhead for link in setup.between), default=0)
    if longer <= 0:
        return []
    return [f"between the DUTs frames are {longer:,} bytes longer (between.overhead): is the MTU there large enough?"]


def instead(result: TrialResult) -> list[str]:
    """What a trial shows beside the frames that were expected: links, what arrived, what the DUT asked for, causes."""
    return [
        *_links(result),
        *_input_drops(result),
        *beside.of_trial(result),
        *_others(result),
        *asked_in_words(result),
        *(cause.text for cause in result.causes),
    ]


def invalidity(result: TrialResult) -> str:
    return lasting(result) or "; ".join(cause.text for cause in result.causes) or f"the trial was {result.verdict}"


def _loss(counts: DirectionCounts, frame_timeout_ms: float | None) -> str:
    also = f" (also arrived: {text})" if (text := beside.of_counts([counts])) else ""
    if not counts.lost:
        return f"lost none{also}"
    late = f", of these {counts.late:,} later than {frame_timeout_ms:g} ms" if frame_timeout_ms is not None else ""
    return f"lost {counts.lost:,} of {counts.sent:,} frames ({two_digits(counts.loss_ratio * 100)} %{late}){also}"


def _received(result: TrialResult, directions: tuple[Direction, ...]) -> list[str]:
    counts = result.directions()
    return [f"{direction} 0 of {counts[direction].sent:,} frames received" for direction in directions]


def _links(result: TrialResult) -> list[str]:
    down = [port for port, up in result.link_up.ports().items() if not up]
    return [f"the link of the {side} port is down" for side in down]


def _input_drops(result: TrialResult) -> list[str]:
    return [
        f"the {counts.counted.path(direction)} link could not hand {counts.dut_input_drops:,} frames to the DUT"
        for direction, counts in result.directions().items()
        if counts.dut_input_drops
    ]


def _arrived_at(direction: Direction, counts: DirectionCounts, receiving: set[str]) -> str:
    """Answers arrive where the questions were sent. A port into which no path leads has its frames counted with one
    that begins there."""
    if counts.answers is not None:
        return direction.sending_port
    sender, receiver = direction.ports
    return receiver if sender in receiving else f"{sender} or the {receiver}"


def _others(result: TrialResult) -> list[str]:
    """Other frames by the port where they arrived. A DUT's ICMP errors return to the sender, which
    is the receiver of the other direction."""
    receiving = {direction.receiving_port for direction in result.all_directions()}
    return [
        f"{count:,} × {kind} arrived at the {_arrived_at(direction, counts, receiving)} port"
        for direction, counts in result.directions().items()
        for kind, count in counts.other_received.items()
        if count
    ]
