# SPDX-License-Identifier: Apache-2.0
"""The phases of stateful tests (RFC 9693 sections 4.1 to 4.7): which ports the connections have, the
phase that opens them, and what a later phase does with them."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from dutperf.model import Connections, ConnectionUse, Direction, FieldMode, Phase, Stream, VaryingField
from dutperf.setup.conditions import AllConditions
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.setup.described_traffic import is_described

MOST_SOURCES = 40_000
"""Source ports, if the number of connections chooses: RFC 9693 recommends a few ten thousand of them, and as many
destination ports as are needed."""
FIRST_SOURCE_PORT, FIRST_DESTINATION_PORT = 1024, 1
"""RFC 4814 4.5."""
LAST_PORT = 65_535
_NS = 1_000_000_000
_LONGEST_NS = 86_400 * _NS


def ports(setup: Setup, connections: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The ranges of source and destination ports of so many connections: first and last port each.

    Raises:
        ParameterError: the ranges of the configuration have fewer combinations.
    """
    chosen, addresses = setup.stateful, _addresses(setup)
    sources = None if chosen.source_ports is None else _count(chosen.source_ports)
    destinations = None if chosen.destination_ports is None else _count(chosen.destination_ports)
    if destinations is None:
        destinations = max(1, ceil(connections / (addresses * (sources or MOST_SOURCES))))
    if sources is None:
        sources = max(1, ceil(connections / (addresses * destinations)))
    source = chosen.source_ports or (FIRST_SOURCE_PORT, FIRST_SOURCE_PORT + sources - 1)
    destination = chosen.destination_ports or (FIRST_DESTINATION_PORT, FIRST_DESTINATION_PORT + destinations - 1)
    if max(source[1], destination[1]) > LAST_PORT or sources * destinations * addresses < connections:
        times = f" × {addresses:,} pairs of addresses" if addresses > 1 else ""
        raise ParameterError(
            f"{connections:,} connections are more than the ranges have: {sources:,} source ports ×"
            f" {destinations:,} destination ports{times} (`stateful` of the configuration)",
            "connections",
        )
    return source, destination


def fields(setup: Setup, connections: int) -> dict[str, Any]:
    """The varying ports of the Initiator's stream."""
    source, destination = ports(setup, connections)
    return {"source_port": _field(source), "destination_port": _field(destination)}


def of_phase(setup: Setup, conditions: AllConditions, use: ConnectionUse) -> Connections:
    """What a phase does with the connections of ``conditions``."""
    assert conditions.connections is not None
    responder = setup.sides()[setup.stateful.responder_side]
    return Connections(
        use=use,
        initiator=setup.stateful.direction,
        count=conditions.connections,
        order=setup.stateful.order,
        seed=conditions.seed,
        responder=setup.stateful.responder,
        version=responder.version,
    )


def duration_ns(connections: int, rate_fps: int) -> int:
    """Sending time of a phase with one frame in each connection.

    Raises:
        ParameterError: it is longer than a day.
    """
    time_ns = max(1, connections * _NS // rate_fps)
    if time_ns > _LONGEST_NS:
        raise ParameterError(
            f"{connections:,} connections take {time_ns / 1e9:,.0f} s at {rate_fps:,} in a second: more than a day",
            "connections",
        )
    return time_ns


def opening(
    setup: Setup, conditions: AllConditions, stream: Stream, rate_fps: int, number: int, rest_ns: int | None
) -> Phase:
    """The phase that opens the connections at ``rate_fps``, one by each frame of ``stream``."""
    assert conditions.connections is not None
    sending: dict[str, Any] = {str(setup.stateful.direction): stream.with_rate(rate_fps)}
    return Phase(
        trial=number,
        seed=conditions.seed,
        rest_ns=rest_ns,
        duration_ns=duration_ns(conditions.connections, rate_fps),
        drain_ns=round(conditions.drain_s * _NS),
        burst=conditions.tx_burst,
        connections=of_phase(setup, conditions, ConnectionUse.OPEN),
        **sending,
    )


def check(setup: Setup, conditions: AllConditions) -> None:
    """Check that stateful traffic is possible.

    Raises:
        ConfigError: what does not go with connections, or ranges with too few combinations.
    """
    if conditions.connections is None:
        return
    if setup.ports is not None:
        raise ParameterError("need left and right, not ports", "connections")
    ports(setup, conditions.connections)
    if is_described(conditions, setup):
        raise ParameterError("go with UDP directly over IP in frames of one size", "connections")
    for member, (text, chosen) in _UNFIT.items():
        if chosen(conditions):
            raise ParameterError(text, member)
    _check_sides(setup)


_UNFIT: dict[str, tuple[str, Callable[[AllConditions], bool]]] = {
    "foreground": (
        "native IPv6 in the background does not go with connections",
        lambda conditions: conditions.foreground.native_percent > 0,
    ),
    "networks": ("several networks do not go with connections", lambda conditions: conditions.networks > 1),
    "ports": (
        "has no effect with connections: their ports are combined",
        lambda conditions: conditions.ports is not FieldMode.RANDOM,
    ),
    "warm_up_s": (
        "does not go with connections, which have a preliminary phase already",
        lambda conditions: conditions.warm_up_s > 0,
    ),
    "modifiers": ("modifiers do not go with connections", lambda conditions: bool(conditions.modifiers)),
}
"""Members of the conditions that do not go with connections: why, and whether they are chosen."""


def _check_sides(setup: Setup) -> None:
    for name, side in setup.sides().items():
        for member in ("source_port", "destination_port", "networks", "frame"):
            if getattr(side, member) is not None:
                raise ConfigError("does not go with connections: see stateful", f"{name}.{member}")
    if "checksums" in setup.engine.offloads:
        raise ConfigError("the offload checksums does not go with connections", "engine.offloads")


def lowest_rate(setup: Setup, conditions: AllConditions, frames_each: float) -> int:
    """The lowest rate, in connections/s, at which ``frames_each`` frames in each connection, and what is waited
    before and after them, end before the DUT's timeout (RFC 9693 section 4.4); without a timeout 1.

    Raises:
        ParameterError: the waits alone take longer.
    """
    timeout_s, connections = setup.stateful.timeout_s, conditions.connections
    if timeout_s is None or connections is None:
        return 1
    phases = 2 if frames_each > 1 else 1
    waits_s = conditions.learning_rest_s + phases * conditions.drain_s + (phases - 1) * conditions.phase_gap_s
    if waits_s >= timeout_s:
        raise ParameterError(
            f"the DUT deletes a connection after {timeout_s:g} s without a frame (stateful.timeout_s), but the waits of"
            f" a trial alone take {waits_s:g} s: raise the DUT's timeout, or choose shorter waits",
            "drain_s",
        )
    return int(connections * frames_each / (timeout_s - waits_s)) + 1


def check_timeout(setup: Setup, phases: tuple[Phase, ...]) -> None:
    """Check that the DUT keeps connections without a frame through all phases (RFC 9693 section 4.4).

    Raises:
        ParameterError: its timeout is shorter.
    """
    timeout_s, needed_s = setup.stateful.timeout_s, sum(phase.whole_s for phase in phases)
    if timeout_s is not None and timeout_s <= needed_s:
        raise ParameterError(
            f"the DUT deletes a connection after {timeout_s:g} s without a frame (stateful.timeout_s), but the phases"
            f" of a trial take {needed_s:,.1f} s: raise the DUT's timeout, or choose shorter trials, fewer connections"
            " or a higher `preliminary_rate`",
            "connections",
        )


def _addresses(setup: Setup) -> int:
    """Pairs of addresses."""
    ranges = [side.varying_address for side in setup.sides().values()]
    pairs = 1
    for one in ranges:
        pairs *= 1 if one is None or one.mode is FieldMode.FIXED else one.max - one.min + 1
    return pairs


def _count(ports: tuple[int, int]) -> int:
    return ports[1] - ports[0] + 1


def _field(ports: tuple[int, int]) -> VaryingField:
    mode = FieldMode.FIXED if ports[0] == ports[1] else FieldMode.RANDOM
    return VaryingField(mode=mode, min=ports[0], max=ports[1])


def replies(direction: Direction, setup: Setup) -> bool:
    """Whether the frames of ``direction`` are the Responder's."""
    return direction is not setup.stateful.direction
