# SPDX-License-Identifier: Apache-2.0
"""Lists each clause of the RFCs that a run did not follow, so that no quick run passes for a
conforming one.

A rule is a clause and a sentence for runs that deviate from it. The rules for every procedure are
here, a procedure's own are in its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.model import MIN_FRAME_SIZE, MIN_FRAME_SIZE_IPV6, FieldMode, Stream, Trial, Value
from dutperf.setup.conditions import (
    FRAME_SIZE_SERIES,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    Conditions,
)
from dutperf.setup.pacing import SOFTWARE
from dutperf.setup.steady_pattern import burst_of
from dutperf.spelling import count_of, with_and

TRIAL_S = 60.0
DRAIN_S = 2.0
LEARNING_REST_S = 2.0
SETTLE_S = 5.0
REPETITIONS = 20
FRAME_SIZES = FRAME_SIZE_SERIES["rfc8219"][1:]
"""The sizes that every Ethernet carries, without the smallest, which depends on the traffic."""
LARGER_FRAME_SIZES = set(FRAME_SIZE_SERIES["rfc8219-jumbo"]) - set(FRAME_SIZE_SERIES["rfc8219"])
NETWORKS = 256


class Deviation(Value):
    """A clause that was not followed."""

    clause: str
    text: str


@dataclass(frozen=True)
class Facts:
    """Input of the rules."""

    conditions: Any
    """Of the procedure's own model."""
    repetitions: int
    """Repetitions finished for every frame size."""
    frames: Sequence[dict[str, Any]]
    """Each frame size's limits, from the plan."""
    ptp: bool = False
    """Whether messages of PTP left in place of tagged frames."""

    def streams(self) -> Iterator[Stream]:
        """The streams of the directions, with the same ports and networks in all trials. The setup
        may fix what the conditions leave open."""
        yield from self.first_trial().streams().values()

    def first_trial(self) -> Trial:
        """What all trials have in common."""
        return Trial.model_validate(self.frames[0]["first_trial"])

    @property
    def smallest_size(self) -> int:
        """Smallest frame size that the traffic allows, in bytes: 64, with IPv6 84."""
        with_ipv6 = any(frame.get("frame_size_ipv4") != frame.get("frame_size") for frame in self.frames)
        return MIN_FRAME_SIZE_IPV6 if with_ipv6 else MIN_FRAME_SIZE


@dataclass(frozen=True)
class Rule:
    """A clause, and the sentence about a run that deviates from it (None: it does not)."""

    clause: str
    sentence: Callable[[Facts], str | None]


def deviations(
    rules: Iterable[Rule],
    conditions: Conditions,
    *,
    frames: Sequence[dict[str, Any]],
    repetitions: int,
    ptp: bool = False,
) -> tuple[Deviation, ...]:
    """Every deviation of a run that finished ``repetitions`` for each frame size of ``frames``, the
    plan's. ``ptp``: see :class:`Facts`."""
    facts = Facts(conditions, repetitions, frames, ptp)
    texts = ((rule.clause, rule.sentence(facts)) for rule in rules)
    return tuple(Deviation(clause=clause, text=text) for clause, text in texts if text is not None)


def rules(*own: Rule, any_size: bool = True) -> tuple[Rule, ...]:
    """The general rules and a procedure's ``own``. ``any_size``: whether its clause asks for the
    series of frame sizes."""
    return (TRIAL_LENGTH, *own, *(rule for rule in GENERAL if any_size or rule is not FRAME_SIZES_RULE))


def trial_length(facts: Facts) -> str | None:
    duration_s = facts.conditions.every.duration_s
    return f"trials of {duration_s:g} s, shorter than {TRIAL_S:g} s" if duration_s < TRIAL_S else None


def loss(facts: Facts) -> str | None:
    tolerated = " or ".join(f"{goal * 100:g} %" for goal in facts.conditions.loss_goals() if goal)
    return (
        f"a trial passes with up to {tolerated} of a direction's frames lost, not only with none" if tolerated else None
    )


def exceed_ratio(facts: Facts) -> str | None:
    """RFC 9971 has the ratio, RFC 2544 none."""
    ratio = facts.conditions.every.exceed_ratio
    return f"a rate passes although up to {ratio * 100:g} % of its trials fail (RFC 9971)" if ratio else None


def frame_timeout(facts: Facts) -> str | None:
    """The frame timeout is Lencse's, Kovács' and Shima's (IJATES2 9(2), 2020)."""
    timeout_ms = facts.conditions.every.frame_timeout_ms
    return (
        f"a frame that takes longer than {timeout_ms:g} ms counts as lost; no clause has this"
        if timeout_ms is not None
        else None
    )


def single_iteration(facts: Facts) -> str | None:
    return "a single iteration; the median of several is recommended" if facts.repetitions < 2 else None


def few_repetitions(facts: Facts) -> str | None:
    return f"{facts.repetitions} repetitions, fewer than {REPETITIONS}" if facts.repetitions < REPETITIONS else None


def _drain(facts: Facts) -> str | None:
    drain_s = facts.conditions.drain_s
    return f"receiving ends {drain_s:g} s after sending, not {DRAIN_S:g} s" if drain_s < DRAIN_S else None


def _preparation(facts: Facts) -> str | None:
    when = "between the learning frames before each trial (ARP, NDP) and its first test frame"
    return _too_short(facts.conditions.learning_rest_s, LEARNING_REST_S, when)


def _warm_up(facts: Facts) -> str | None:
    """Section 23 sends learning frames before a trial, no test traffic."""
    warm_up_s = facts.conditions.every.warm_up_s
    return f"{warm_up_s:g} s of uncounted test traffic directly before each trial (warm-up)" if warm_up_s else None


def _rest(facts: Facts) -> str | None:
    return _too_short(facts.conditions.every.settle_s, SETTLE_S, "between trials for the DUT to restabilise")


def _too_short(rest_s: float, standard_s: float, when: str) -> str | None:
    if rest_s >= standard_s:
        return None
    return f"a rest of {rest_s:g} s, not {standard_s:g} s, {when}" if rest_s else f"no rest of {standard_s:g} s {when}"


def _direction(facts: Facts) -> str | None:
    every = facts.conditions.every
    if every.directions != "both":
        return f"unidirectional traffic ({every.directions}) instead of bidirectional"
    if every.direction_rates is not None:
        ratio = every.direction_rates
        return f"rates of forward and reverse are {ratio}, not the same; the figure is that of the faster one"
    return None


def _pattern(facts: Facts) -> str | None:
    """Section 21 asks for bursts in addition to steady state; no clause has Poisson arrivals."""
    pattern, within = facts.conditions.every.pattern, facts.conditions.every.burst_rate
    if pattern == "constant":
        return None
    burst = burst_of(pattern)
    if burst is None:
        return "frames come as Poisson arrivals, not at a constant rate; no clause has this"
    gap = "as fast as the tester sends" if within is None else f"at {within}"
    return f"traffic in bursts of {burst:,} frames, {gap} within a burst, not also at a constant rate"


def _pacing(facts: Facts) -> str | None:
    """Section 21 has gaps between frames, not other frames in them."""
    if facts.conditions.every.pacing == SOFTWARE:
        return None
    return (
        "the line into the DUT is always full: between the test frames come frames to an address that nobody has, which"
        " its NIC drops; no clause has this"
    )


def _ports(facts: Facts) -> str | None:
    if facts.first_trial().connections is not None:
        return None  # RFC 9693 section 4.1 chooses the ports
    recommended = {
        RFC4814_SOURCE_PORTS: [one.source_port for one in facts.streams() if one.source_port is not None],
        RFC4814_DESTINATION_PORTS: [
            one.destination_port for one in facts.streams() if one.destination_port is not None
        ],
    }
    modes = sorted({port.mode for ports in recommended.values() for port in ports if port.mode is not FieldMode.RANDOM})
    if modes:
        return f"{with_and(modes)} UDP ports instead of random ones over the recommended ranges"
    elsewhere = any((port.min, port.max) != range_ for range_, ports in recommended.items() for port in ports)
    return "random UDP ports over ranges other than the recommended ones" if elsewhere else None


def _other_streams(facts: Facts) -> str | None:
    """Section 21: the test frames are the DUT's only load."""
    others = facts.first_trial().other_streams
    if not others:
        return None
    rates = {name.stream: stream.rate_fps for name, stream in others.items()}
    told = with_and(f"{name} ({fps:,} frames/s)" for name, fps in rates.items())
    return f"the DUT has other load beside what is measured: {told}"


def _frame_sizes(facts: Facts) -> str | None:
    if any("frame_size" not in frame for frame in facts.frames) or facts.conditions.size_mix is not None:
        return None
    standard, chosen = {facts.smallest_size, *FRAME_SIZES}, set(facts.conditions.frame_sizes)
    parts = {"not measured": standard - chosen, "not of the series": chosen - standard - LARGER_FRAME_SIZES}
    texts = [f"{meaning}: {', '.join(map(str, sorted(sizes)))}" for meaning, sizes in parts.items() if sizes]
    return f"frame sizes of the standard's series {'; '.join(texts)} bytes" if texts else None


def _headers(facts: Facts) -> str | None:
    """Appendix C.2.6.4: UDP directly over IP; here with headers, sizes or flows of the user's choice."""
    if not any(stream.frames for stream in facts.streams()):
        return None
    conditions = facts.conditions.every
    extension = conditions.modified_by.extension_headers
    parts = [
        f"frames with the headers {conditions.frame}" if conditions.frame else "",
        f"frames of several sizes ({conditions.size_mix}) at once" if conditions.size_mix else "",
        f"{count_of(conditions.flows, 'flow')} in each direction" if conditions.flows is not None else "",
        f"frames with IPv6 extension headers ({extension.text})" if extension is not None else "",
    ]
    texts = [part for part in parts if part] or ["frames with headers of the configuration's own"]
    return f"{with_and(texts)}, not UDP directly over IP, of one size, with ports that vary by frame"


def _networks(facts: Facts) -> str | None:
    several = sorted({stream.networks for stream in facts.streams() if stream.networks > 1})
    if not several:
        return f"measured with a single pair of addresses, not also with random destinations over {NETWORKS} networks"
    return (
        f"measured with random destinations over {with_and(map(str, several))} networks, not also with a single"
        " pair of addresses"
    )


def _modifiers(facts: Facts) -> str | None:
    """Section 11: first without any, then under each of them separately. RFC 5180 6.2.1 has frames with
    extension headers meet filters."""
    chosen = facts.conditions.every.modified_by
    together = chosen.filters is not None and chosen.extension_headers is not None
    separate = len(facts.conditions.every.modifiers) - together <= 1
    names = ", ".join(facts.conditions.every.modifiers)
    return None if separate else f"under several modifiers at once ({names}), not under each separately"


TRIAL_LENGTH = Rule("RFC 2544 section 24", trial_length)
FRAME_SIZES_RULE = Rule("RFC 8219 section 5.1.1", _frame_sizes)
HEADERS_RULE = Rule("RFC 2544 appendix C.2.6.4", _headers)
NETWORKS_RULE = Rule("RFC 2544 section 12", _networks)
OF_A_SEARCH = ("RFC 2544 section 24", "RFC 2544 section 26.1")
"""Clauses whose deviations a measurement at a throughput inherits from the search."""
GENERAL = (
    Rule("RFC 2544 section 23 (d)", _drain),
    Rule("RFC 2544 section 23 (b)", _preparation),
    Rule("RFC 2544 section 23", _warm_up),
    Rule("RFC 2544 section 23 (e)", _rest),
    Rule("RFC 8219 section 5.3, RFC 2544 section 14", _direction),
    Rule("RFC 2544 section 21", _pattern),
    Rule("RFC 2544 section 21", _pacing),
    Rule("RFC 2544 section 21", _other_streams),
    Rule("RFC 4814 section 4.5", _ports),
    FRAME_SIZES_RULE,
    HEADERS_RULE,
    Rule("RFC 2544 section 11", _modifiers),
    NETWORKS_RULE,
)
OF_ADDRESS_TABLES = tuple(rule for rule in GENERAL if rule not in (FRAME_SIZES_RULE, HEADERS_RULE, NETWORKS_RULE))
"""Of procedures that choose the frames and their addresses themselves (RFC 2889 sections 5.7, 5.8)."""
