# SPDX-License-Identifier: Apache-2.0
"""What the traffic of a trial can have at once. Every feature goes with every other one, but for :data:`REFUSALS`:
each has its reason, and docs/combinations.md is made from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations as pairs

from dutperf.model import FieldMode
from dutperf.setup.changing_rate import is_changing
from dutperf.setup.conditions import AllConditions
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.setup.pacing import fill_of
from dutperf.setup.steady_pattern import burst_of
from dutperf.setup.yaml_text import path_of


class Because(StrEnum):
    """Why two features exclude each other."""

    DEFINITION = "by definition"
    """Of one of the two, or of a standard."""
    PORT = "by the port"


@dataclass(frozen=True)
class Where:
    """Where a feature was chosen: a parameter, or a key of the configuration."""

    key: str
    is_condition: bool = True

    @property
    def shown(self) -> str:
        """For a person; a parameter in backticks, for which the command line shows its option."""
        return f"`{self.key}`" if self.is_condition else self.key

    def refused(self, text: str) -> ConfigError:
        """The error that names it."""
        return ParameterError(text, self.key) if self.is_condition else ConfigError(text, self.key)


Chosen = Callable[[Setup, AllConditions], Where | None]
"""Where it was chosen; None: it was not."""


@dataclass(frozen=True)
class Feature:
    """Something that traffic can have."""

    name: str
    """In a sentence, plural or not."""
    written: str
    """How it is chosen, for a person."""
    chosen: Chosen


def _condition(key: str, chosen: Callable[[AllConditions], object]) -> Chosen:
    return lambda _, conditions: Where(key) if chosen(conditions) else None


def _of_side(*members: str) -> Chosen:
    def where(setup: Setup, _: AllConditions) -> Where | None:
        for name, side in setup.sides().items():
            for member in members:
                if getattr(side, member) not in (None, 1):
                    return Where(f"{setup.key_of(name)}.{member}", is_condition=False)
        return None

    return where


def _of_setup(key: str, chosen: Callable[[Setup], object]) -> Chosen:
    return lambda setup, _: Where(key, is_condition=False) if chosen(setup) else None


def _either(*of: Chosen) -> Chosen:
    return lambda setup, conditions: next(filter(None, (one(setup, conditions) for one in of)), None)


def _modifier(chosen: Callable[[AllConditions], object]) -> Chosen:
    return _condition("modifiers", chosen)


def _begin_together(setup: Setup) -> bool:
    senders = [sender for sender, _ in setup.path_ends().values()]
    return len(set(senders)) < len(senders)


def _offload(name: str) -> Feature:
    chosen = _of_setup("engine.offloads", lambda setup: name in setup.engine.offloads)
    return Feature(f"the offload {name}", f"`engine.offloads: [{name}]`", chosen)


HEADERS = Feature(
    "headers of your choice",
    "`--frame`",
    _either(_condition("frame", lambda conditions: conditions.frame), _of_side("frame")),
)
MIX = Feature("a mix of frame sizes", "`--frame-size imix`", _condition("frame_sizes", lambda c: c.size_mix))
FLOWS = Feature("flows", "`--flows`", _condition("flows", lambda c: c.flows is not None))
JOINING = Feature(
    "flows that begin one after the other", "`--flows-apart`", _condition("flows_apart_s", lambda c: c.flows_apart_s)
)
STREAMS = Feature("streams", "`streams`", _of_setup("streams", lambda setup: setup.has_sharing))
OTHER_STREAMS = Feature(
    "streams with rates of their own",
    "`streams` with `rate`",
    _of_setup("streams", lambda setup: setup.other_streams()),
)
EXTENSION = Feature(
    "IPv6 extension headers",
    "`--modifier extension-header:NAME`",
    _modifier(lambda c: c.modified_by.extension_headers),
)
NATIVE = Feature(
    "native IPv6 in the background",
    "`--foreground N:M`",
    _condition("foreground", lambda c: c.foreground.native_percent > 0),
)
NETWORKS = Feature(
    "several networks",
    "`--networks`",
    _either(_condition("networks", lambda c: c.networks > 1), _of_side("networks")),
)
ADDRESSES = Feature("addresses that vary", "`varying_address`", _of_side("varying_address"))
PORTS = Feature(
    "UDP ports of your choice",
    "`--ports`, `source_port`",
    _either(
        _condition("ports", lambda c: c.ports is not FieldMode.RANDOM), _of_side("source_port", "destination_port")
    ),
)
TUNNEL = Feature("a tunnel to the DUT", "`tunnel`", _of_side("tunnel"))
POISSON = Feature("Poisson traffic", "`--pattern poisson`", _condition("pattern", lambda c: c.pattern == "poisson"))
BURSTS = Feature("bursts", "`--pattern bursts:N`", _condition("pattern", lambda c: burst_of(c.pattern) is not None))
CHANGING = Feature(
    "a rate that changes", "`--pattern ramp:…`, `steps:…`", _condition("pattern", lambda c: is_changing(c.pattern))
)
DIRECTION_RATES = Feature(
    "a rate of its own for each direction",
    "`--direction-rates`",
    _condition("direction_rates", lambda c: c.direction_rates is not None),
)
ONE_DIRECTION = Feature(
    "one direction alone", "`--directions forward`", _condition("directions", lambda c: c.directions != "both")
)
WARM_UP = Feature("a warm-up", "`--warm-up`", _condition("warm_up_s", lambda c: c.warm_up_s > 0))
BROADCAST = Feature("broadcasts", "`--modifier broadcast`", _modifier(lambda c: c.modified_by.broadcast))
MANAGEMENT = Feature("management queries", "`--modifier management`", _modifier(lambda c: c.modified_by.management))
ROUTING = Feature("routing updates", "`--modifier routing-updates`", _modifier(lambda c: c.modified_by.routing_updates))
NAMED_PORTS = Feature("named ports", "`ports`, `paths`", _of_setup("ports", lambda setup: setup.ports is not None))
MORE_PORTS = Feature(
    "more than two ports", "`ports`", _of_setup("ports", lambda setup: setup.ports is not None and len(setup.ports) > 2)
)
SHARED_PORT = Feature(
    "several paths from one port",
    "`paths`",
    _of_setup("paths", lambda setup: setup.ports and _begin_together(setup)),
)
CONNECTIONS = Feature("connections", "`--connections`", _condition("connections", lambda c: c.connections is not None))
FILL = Feature("a filled line", "`--pacing fill`", _condition("pacing", lambda c: fill_of(c.pacing) is not None))
TIMEOUT = Feature(
    "a frame timeout", "`--frame-timeout`", _condition("frame_timeout_ms", lambda c: c.frame_timeout_ms is not None)
)
QUEUES = Feature("several queues", "`engine.queues`", _of_setup("engine.queues", lambda setup: setup.engine.queues > 1))
SEND_AT, RATE_LIMIT = (_offload(name) for name in ("send_at", "rate_limit"))

FEATURES = (
    *(HEADERS, MIX, FLOWS, JOINING, STREAMS, OTHER_STREAMS, EXTENSION, NATIVE, NETWORKS, ADDRESSES, PORTS, TUNNEL),
    *(POISSON, BURSTS, CHANGING, DIRECTION_RATES, ONE_DIRECTION, WARM_UP, BROADCAST, MANAGEMENT, ROUTING),
    *(NAMED_PORTS, MORE_PORTS, SHARED_PORT, CONNECTIONS, FILL, TIMEOUT, QUEUES, SEND_AT, RATE_LIMIT),
)
KINDS = (STREAMS, NATIVE, EXTENSION, MIX)
"""What makes kinds of frames, the likeliest to make many first."""
ONE_OPTION = frozenset((POISSON, BURSTS, CHANGING))
"""Values of one option, of which a trial has one."""
PAIRS = tuple(pair for pair in pairs(FEATURES, 2) if not set(pair) <= ONE_OPTION)


@dataclass(frozen=True)
class Refusal:
    """Two features that exclude each other."""

    feature: Feature
    """The one to leave out; an error names it."""
    beside: Feature
    because: Because
    reason: str

    def sentence(self, beside: Where) -> str:
        return f"{self.feature.name} and {self.beside.name} ({beside.shown}) exclude each other: {self.reason}"


def _beside(feature: Feature, others: tuple[Feature, ...], because: Because, reason: str) -> tuple[Refusal, ...]:
    return tuple(Refusal(feature, one, because, reason) for one in others)


def _each(features: tuple[Feature, ...], beside: Feature, because: Because, reason: str) -> tuple[Refusal, ...]:
    return tuple(Refusal(one, beside, because, reason) for one in features)


REFUSALS = (
    *_each((JOINING, HEADERS, FLOWS), STREAMS, Because.DEFINITION, "each stream has its own"),
    Refusal(NETWORKS, ADDRESSES, Because.DEFINITION, "both say which destination addresses there are"),
    Refusal(DIRECTION_RATES, ONE_DIRECTION, Because.DEFINITION, "the other direction has no frames"),
    *_each(
        (DIRECTION_RATES, ONE_DIRECTION),
        NAMED_PORTS,
        Because.DEFINITION,
        "named ports have paths, not directions: name those that send in the configuration",
    ),
    *_beside(JOINING, (POISSON, BURSTS, CHANGING), Because.DEFINITION, "both say when frames are due"),
    *_each(
        (JOINING, FLOWS, PORTS), CONNECTIONS, Because.DEFINITION, "each connection has ports of its own (`stateful`)"
    ),
    Refusal(FILL, QUEUES, Because.PORT, "the card decides in which order the frames of several queues leave"),
    *_beside(FILL, (SEND_AT, RATE_LIMIT), Because.PORT, "with it the card paces"),
    Refusal(FILL, SHARED_PORT, Because.PORT, "the fillers of one path take all of a port's line"),
    Refusal(
        FILL,
        TIMEOUT,
        Because.PORT,
        "frames wait in the tester's own transmit ring, which must not count as lateness of the DUT's",
    ),
    Refusal(
        RATE_LIMIT,
        TIMEOUT,
        Because.PORT,
        "frames wait in the tester's own port, which must not count as lateness of the DUT's",
    ),
    *_beside(SEND_AT, (SHARED_PORT, OTHER_STREAMS), Because.PORT, "a NIC sends the frames of a queue in their order"),
    Refusal(FILL, OTHER_STREAMS, Because.PORT, "the fillers of one stream take all of a port's line"),
)


OF_MEASURED = (
    *(HEADERS, FLOWS, JOINING, EXTENSION, NATIVE, POISSON, BURSTS, DIRECTION_RATES, ONE_DIRECTION),
    *(BROADCAST, MANAGEMENT, ROUTING, CONNECTIONS),
)
"""Conditions of the frames that are measured: streams with rates of their own have none of them."""


def of_stream(number: int, key: str) -> Where:
    """A key of a stream of the configuration."""
    return Where(path_of(("streams", number, key)), is_condition=False)


def headers_of(setup: Setup, name: str) -> Where:
    """Where the headers of the frames of a side were chosen."""
    if setup.has_sharing:
        return Where("streams", is_condition=False)
    if setup.sides()[name].frame is not None:
        return Where(f"{setup.key_of(name)}.frame", is_condition=False)
    return Where("frame")


def refusal(one: Feature, other: Feature) -> Refusal | None:
    """Why two features exclude each other; None: they do not."""
    return next((each for each in REFUSALS if {each.feature, each.beside} == {one, other}), None)


def table() -> str:
    """All features and refusals, in Markdown."""
    lines = ["| traffic can have | by | but not with |\n", "| --- | --- | --- |\n"]
    for one in FEATURES:
        without = [other.name for other in FEATURES if refusal(one, other) is not None]
        lines.append(f"| {one.name} | {one.written} | {', '.join(without) or '–'} |\n")
    lines += ["\n", "| these exclude each other | | because |\n", "| --- | --- | --- |\n"]
    lines += [f"| {one.feature.name}, {one.beside.name} | {one.because} | {one.reason} |\n" for one in REFUSALS]
    return "".join(lines)


def check(setup: Setup, conditions: AllConditions) -> None:
    """Check that what was chosen goes together. Raises ConfigError: two features exclude each other. It is a
    ParameterError if the feature to leave out is a condition."""
    for one in REFUSALS:
        where, beside = one.feature.chosen(setup, conditions), one.beside.chosen(setup, conditions)
        if where is not None and beside is not None:
            raise where.refused(one.sentence(beside))


def check_alone(setup: Setup, conditions: AllConditions) -> None:
    """Check that no condition is about frames beside the streams with rates of their own, where these are sent alone.
    Raises ParameterError: one is."""
    for one in OF_MEASURED:
        where = one.chosen(setup, conditions)
        if where is not None and where.is_condition:
            raise where.refused("has no effect without a rate: nothing but the streams of the configuration is sent")
