# SPDX-License-Identifier: Apache-2.0
"""Names each clause of the RFCs that a run did not follow, so that no quick run can pass for a
conforming one.

One table, :data:`RULES`: clause, what is to be said where it was not followed, and which procedures
it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.model import MIN_FRAME_SIZE, MIN_FRAME_SIZE_IPV6, FieldMode, Stream, Trial, Value
from dutperf.setup.conditions import (
    FRAME_SIZE_SERIES,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    Conditions,
    burst_of,
)

TRIAL_S = 60.0
DRAIN_S = 2.0
LEARNING_REST_S = 2.0
SETTLE_S = 5.0
LATENCY_TRIAL_S = 120.0
TAGS = 500
TAG_AFTER_S = 60.0
OVERLOAD_S = 60.0
REPETITIONS = 20
BURST_REPETITIONS = 50
FRAME_SIZES = FRAME_SIZE_SERIES["rfc8219"][1:]
"""What every Ethernet carries, but for the smallest, which depends on the traffic."""
LARGER_FRAME_SIZES = set(FRAME_SIZE_SERIES["rfc8219-jumbo"]) - set(FRAME_SIZE_SERIES["rfc8219"])
NETWORKS = 256


class Deviation(Value):
    """A clause that was not followed."""

    clause: str
    text: str


@dataclass(frozen=True)
class Facts:
    """What the rules look at."""

    conditions: Conditions
    repetitions: int
    """Repetitions that every frame size has."""
    frames: Sequence[dict[str, Any]]
    """Each frame size's limits, as the plan has them."""

    def streams(self) -> Iterator[Stream]:
        """What the directions send: the same ports and networks in all trials. The set-up may lay
        down what the conditions leave open."""
        yield from Trial.model_validate(self.frames[0]["first_trial"]).streams().values()

    @property
    def smallest_size(self) -> int:
        """Smallest frame size that the traffic allows, in bytes: 64, with IPv6 84."""
        with_ipv6 = any(frame["frame_size_ipv4"] != frame["frame_size"] for frame in self.frames)
        return MIN_FRAME_SIZE_IPV6 if with_ipv6 else MIN_FRAME_SIZE


@dataclass(frozen=True)
class Rule:
    """A clause, and the sentence about a run that does not follow it (None: it does)."""

    clause: str
    say: Callable[[Facts], str | None]
    procedures: frozenset[str] | None = None
    """Those that the clause is about; None: all."""
    without: frozenset[str] = frozenset()
    """Those that it is not about, where it is about all others."""


def deviations(
    conditions: Conditions, *, procedure: str, frames: Sequence[dict[str, Any]], repetitions: int
) -> tuple[Deviation, ...]:
    """Every deviation of a run: ``repetitions`` were finished for each frame size of ``frames``,
    which are those of the plan."""
    facts = Facts(conditions, repetitions, frames)
    said = (
        (rule.clause, rule.say(facts))
        for rule in RULES
        if procedure not in rule.without and (rule.procedures is None or procedure in rule.procedures)
    )
    return tuple(Deviation(clause=clause, text=text) for clause, text in said if text is not None)


def _trial_length(facts: Facts) -> str | None:
    duration_s = facts.conditions.duration_s
    return f"trials of {duration_s:g} s, shorter than {TRIAL_S:g} s" if duration_s < TRIAL_S else None


def _loss(facts: Facts) -> str | None:
    tolerated = " or ".join(f"{goal * 100:g} %" for goal in facts.conditions.loss_goals() if goal)
    return (
        f"a trial passes with up to {tolerated} of a direction's frames lost, not only with none" if tolerated else None
    )


def _lossless(facts: Facts) -> str | None:
    tolerance = facts.conditions.loss_tolerance
    return (
        f"a rate counts as one without loss with up to {tolerance * 100:g} % of a direction's frames lost"
        if tolerance
        else None
    )


def _frame_timeout(facts: Facts) -> str | None:
    """The frame timeout is Lencse's, Kovács' and Shima's (IJATES2 9(2), 2020)."""
    timeout_ms = facts.conditions.frame_timeout_ms
    return (
        f"a frame that takes longer than {timeout_ms:g} ms counts as lost, which no clause has"
        if timeout_ms is not None
        else None
    )


def _series(facts: Facts) -> str | None:
    if facts.conditions.rates is not None:
        return (
            "the rates are a given list, not a series from the media's maximum down that ends with two rates in a row"
            " without loss"
        )
    if any(frame["media_maximum_fps"] is None for frame in facts.frames):
        return "the series begins at a given rate; the media's maximum is not known"
    below = any(frame["maximum_fps"] < frame["media_maximum_fps"] for frame in facts.frames)
    return "the series begins at a given rate below the media's maximum" if below else None


def _iterations(facts: Facts) -> str | None:
    return "a single iteration; several are recommended, and a median of them" if facts.repetitions < 2 else None


def _repetitions(facts: Facts) -> str | None:
    return f"{facts.repetitions} repetitions, fewer than {REPETITIONS}" if facts.repetitions < REPETITIONS else None


def _usual_repetitions(facts: Facts) -> str | None:
    """RFC 2544 26.1 asks for none, RFC 8219 for several; who publishes throughput takes as many as
    for the delays."""
    few = _repetitions(facts)
    return few and f"{few}, which are usual; several are recommended"


def _drain(facts: Facts) -> str | None:
    drain_s = facts.conditions.drain_s
    return f"receiving ends {drain_s:g} s after sending, not {DRAIN_S:g} s" if drain_s < DRAIN_S else None


def _preparation(facts: Facts) -> str | None:
    said = "between the learning frames before each trial (ARP, NDP) and its first test frame"
    return _too_short(facts.conditions.learning_rest_s, LEARNING_REST_S, said)


def _rest(facts: Facts) -> str | None:
    return _too_short(facts.conditions.settle_s, SETTLE_S, "between trials for the DUT to restabilise")


def _too_short(rest_s: float, standard_s: float, when: str) -> str | None:
    if rest_s >= standard_s:
        return None
    return f"a rest of {rest_s:g} s, not {standard_s:g} s, {when}" if rest_s else f"no rest of {standard_s:g} s {when}"


def _direction(facts: Facts) -> str | None:
    return (
        f"unidirectional traffic ({facts.conditions.directions}) instead of bidirectional"
        if facts.conditions.directions != "both"
        else None
    )


def _pattern(facts: Facts) -> str | None:
    """Section 21 has bursts beside steady state, not in its place; Poisson arrivals are in no
    clause."""
    pattern, within = facts.conditions.pattern, facts.conditions.burst_rate
    if pattern == "constant":
        return None
    burst = burst_of(pattern)
    if burst is None:
        return "frames come as Poisson arrivals, which no clause has, not at a constant rate"
    gap = "as fast as the tester sends" if within is None else f"at {within}"
    return f"traffic in bursts of {burst:,} frames, {gap} within a burst, not also at a constant rate"


def _ports(facts: Facts) -> str | None:
    recommended = {
        RFC4814_SOURCE_PORTS: [one.source_port for one in facts.streams()],
        RFC4814_DESTINATION_PORTS: [one.destination_port for one in facts.streams()],
    }
    modes = sorted({port.mode for ports in recommended.values() for port in ports if port.mode is not FieldMode.RANDOM})
    if modes:
        return f"{' and '.join(modes)} UDP ports instead of random ones over the recommended ranges"
    elsewhere = any((port.min, port.max) != range_ for range_, ports in recommended.items() for port in ports)
    return "random UDP ports over other ranges than the recommended ones" if elsewhere else None


def _frame_sizes(facts: Facts) -> str | None:
    standard, chosen = {facts.smallest_size, *FRAME_SIZES}, set(facts.conditions.frame_sizes)
    parts = {"not measured": standard - chosen, "not of the series": chosen - standard - LARGER_FRAME_SIZES}
    said = [f"{meaning}: {', '.join(map(str, sorted(sizes)))}" for meaning, sizes in parts.items() if sizes]
    return f"frame sizes of the standard's series {'; '.join(said)} bytes" if said else None


def _networks(facts: Facts) -> str | None:
    several = sorted({stream.networks for stream in facts.streams() if stream.networks > 1})
    if not several:
        return f"measured with a single pair of addresses, not also with random destinations over {NETWORKS} networks"
    return (
        f"measured with random destinations over {' and '.join(map(str, several))} networks, not also with a single"
        " pair of addresses"
    )


def _latency(facts: Facts) -> str | None:
    """Of RFC 8219."""
    if facts.conditions.definition != "rfc8219":
        return (
            "latency as RFC 2544 26.2 defines it: the mean of one tagged frame a trial, no typical and worst-case"
            " latency of many"
        )
    tags = facts.conditions.tags
    return (
        "; ".join([*([f"{tags} tagged frames, fewer than {TAGS}"] if tags < TAGS else []), *_latency_times(facts)])
        or None
    )


def _mean_latency(facts: Facts) -> str | None:
    """Of RFC 2544, where its definition was chosen."""
    if facts.conditions.definition != "rfc2544":
        return None
    return "; ".join(text for text in (_repetitions(facts), *_latency_times(facts)) if text) or None


def _latency_times(facts: Facts) -> list[str]:
    """Both RFCs have the same."""
    duration_s, after_s = facts.conditions.duration_s, facts.conditions.tag_after_s
    parts = [f"trials of {duration_s:g} s, shorter than {LATENCY_TRIAL_S:g} s"] if duration_s < LATENCY_TRIAL_S else []
    return parts + (
        [f"frames are tagged from {after_s:g} s on, not from {TAG_AFTER_S:g} s"] if after_s < TAG_AFTER_S else []
    )


def _at_given_rate(facts: Facts) -> str | None:
    return "measured at a given rate, not at the throughput found before" if facts.conditions.rate is not None else None


def _throughput_given(facts: Facts) -> str | None:
    return (
        "the throughput is given, not found by a test of its own before" if facts.conditions.rate is not None else None
    )


def _subtracted(facts: Facts) -> str | None:
    if not facts.conditions.subtract_calibration:
        return None
    own_ms = sorted({frame["subtracted"]["delay_ms"] for frame in facts.frames})
    return (
        f"the tester's own typical delay ({', '.join(f'{one:.4f}' for one in own_ms)} ms) is subtracted from latencies,"
        " which no clause has"
    )


def _burst_rate(facts: Facts) -> str | None:
    below = [frame for frame in facts.frames if not frame["rate_is_media"]]
    return "the bursts are sent at a given rate, not at the media's maximum" if below else None


def _burst_repetitions(facts: Facts) -> str | None:
    return (
        f"{facts.repetitions} repetitions, fewer than {BURST_REPETITIONS}"
        if facts.repetitions < BURST_REPETITIONS
        else None
    )


def _overload(facts: Facts) -> str | None:
    overload_s = facts.conditions.overload_s
    return f"an overload of {overload_s:g} s, shorter than {OVERLOAD_S:g} s" if overload_s < OVERLOAD_S else None


def _smallest(facts: Facts) -> str | None:
    other = sorted(set(facts.conditions.frame_sizes) - {facts.smallest_size})
    return (
        f"measured with frames of {', '.join(map(str, other))} bytes, not of the smallest size, {facts.smallest_size}"
        if other
        else None
    )


_THROUGHPUT = frozenset({"throughput"})
_LATENCY = frozenset({"latency"})
_DELAYS = frozenset({"latency", "pdv", "ipdv"})
_FRAME_LOSS = frozenset({"frame-loss"})
_BACK_TO_BACK = frozenset({"back-to-back"})
_RECOVERY = frozenset({"recovery"})
_RESET = frozenset({"reset"})

RULES: tuple[Rule, ...] = (
    Rule("RFC 2544 section 24", _trial_length),
    Rule("RFC 2544 section 26.1", _loss, _THROUGHPUT),
    Rule("RFC 2544 section 26.1", _frame_timeout, _THROUGHPUT),
    Rule("RFC 2544 section 26.3", _series, _FRAME_LOSS),
    Rule("RFC 2544 section 26.3", _lossless, _FRAME_LOSS),
    Rule("RFC 2544 section 26.3", _frame_timeout, _FRAME_LOSS),
    Rule("RFC 2544 section 26.2", _mean_latency, _LATENCY),
    Rule("RFC 8219 section 7.2", _latency, _LATENCY),
    Rule("RFC 9004 section 5", _throughput_given, _BACK_TO_BACK),
    Rule("RFC 9004 section 6.2", _burst_rate, _BACK_TO_BACK),
    Rule("RFC 9004 section 6.2", _loss, _BACK_TO_BACK),
    Rule("RFC 2544 section 26.4", _burst_repetitions, _BACK_TO_BACK),
    Rule("RFC 8219 sections 7.2, 7.3", _at_given_rate, _DELAYS),
    Rule("RFC 8219 sections 7.2, 7.3", _repetitions, _DELAYS),
    Rule("RFC 8219 sections 7.2, 7.3", _subtracted, frozenset({"latency", "pdv"})),
    Rule("RFC 8219 section 12", _usual_repetitions, _THROUGHPUT),
    Rule("RFC 2544 section 26.5", _overload, _RECOVERY),
    Rule("RFC 2544 section 26.6", _smallest, _RESET),
    Rule("RFC 2544 sections 26.5, 26.6", _throughput_given, _RECOVERY | _RESET),
    Rule("RFC 8219 section 12", _iterations, _FRAME_LOSS | _RECOVERY | _RESET),
    Rule("RFC 2544 section 23 (d)", _drain),
    Rule("RFC 2544 section 23 (b)", _preparation),
    Rule("RFC 2544 section 23 (e)", _rest),
    Rule("RFC 8219 section 5.3, RFC 2544 section 14", _direction),
    Rule("RFC 2544 section 21", _pattern),
    Rule("RFC 4814 section 4.5", _ports),
    Rule("RFC 8219 section 5.1.1", _frame_sizes, without=_RESET),
    Rule("RFC 2544 section 12", _networks),
)
