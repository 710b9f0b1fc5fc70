# SPDX-License-Identifier: Apache-2.0
"""The streams with rates of their own of a configuration of ours, as flows of the Open Traffic Generator API.

What was made is planned again as ``dutperf otg`` does it: a stream that would not be the same is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise

from dutperf import traffic
from dutperf.frames import Stack, Template
from dutperf.model import Bursts, DescribedFrame, Direction, Poisson, Stream
from dutperf.model.pattern import NS_PER_S, SteadyTimes
from dutperf.otg import coverage, flows, links
from dutperf.otg.flows import LONGEST_NS, as_sent
from dutperf.otg.model import Message, Rejected, exact, messages
from dutperf.otg.to_headers import InexpressibleError, headers_of
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError, Setup, Side
from dutperf.setup.yaml_text import path_of
from dutperf.traffic.other_streams import PlannedOthers

_OF_FLOWS = {"left", "right", "ports", "paths", "streams", "media_mbps"}
"""Keys of a configuration that say something of flows; others are those of a measurement."""
_OF_SERVER = ("answers_for", "receive_ring")
"""Keys of a port that say nothing of flows."""


def config_of(setup: Setup) -> tuple[Message, list[str]]:
    """The configuration of the API, in which the location of a port is its name, and what a user has to know. Raises
    ConfigError: a stream, or something of it, that the API does not have."""
    _check_rates(setup)
    longest = SingleTrial(duration_s=LONGEST_NS / NS_PER_S)
    kind = traffic.of(setup, traffic.of(setup, longest).sized())
    kind.check()
    streams = kind.trial_of_others(kind.cases()[0], 0).streams()
    stacks = PlannedOthers(setup, longest).stacks()
    made, notes = messages.Config(), list(_left_out(setup))
    for name in setup.sides():
        made.ports.add(name=name, location=name)
    for direction, stream in streams.items():
        try:
            repeating = _add_flow(made, setup, direction, stream, stacks[direction])
        except InexpressibleError as error:
            raise _refused(setup, direction, "", str(error)) from None
        if repeating:
            notes.append(f"{direction.stream}: the values at random repeat in the model: {', '.join(repeating)}")
    ends = {end for one in made.flows for end in (*one.tx_rx.device.tx_names, *one.tx_rx.device.rx_names)}
    for name in setup.sides():
        _add_device(made, setup, name, must=_device_at(name) in ends)
    _check_same(made, setup, streams)
    return made, notes


def _check_rates(setup: Setup) -> None:
    """Flows have rates of their own."""
    sharing = next((number for number, one in enumerate(setup.streams) if one.rate is None), None)
    if sharing is not None:
        raise ConfigError(
            "is missing: the stream shares the rate that is measured, and a flow has one of its own",
            path_of(("streams", sharing, "rate")),
        )
    if not setup.streams:
        raise ConfigError("is missing: flows are made of streams with rates of their own", "streams")


def _refused(setup: Setup, direction: Direction, key: str, text: str) -> ConfigError:
    number = setup.streams.index(setup.other_streams()[direction])
    return ConfigError(text, path_of(("streams", number, *([key] if key else []))))


def _left_out(setup: Setup) -> Iterator[str]:
    if others := sorted(setup.model_fields_set - _OF_FLOWS):
        yield f"left out, since no flow has it: {', '.join(others)}"
    for name, side in setup.sides().items():
        for key in _OF_SERVER:
            if key in side.model_fields_set:
                yield f"left out, since no flow has it: {setup.key_of(name)}.{key}"


# --- flows ----------------------------------------------------------------------------------------


def _add_flow(
    made: Message, setup: Setup, direction: Direction, stream: Stream, stack: Stack | Template
) -> Sequence[str]:
    """Returns the fields whose random values repeat."""
    if isinstance(stack, Template):
        raise _refused(setup, direction, "frame", "is bytes, whose tag may be anywhere: the model has headers")
    if any(one.flows > 1 for one in stream.frames):
        raise _refused(setup, direction, "flows", "are not those of the model: there each is a flow of its own")
    tx, rx = direction.ports
    alone = sum(one.stream == direction.stream for one in setup.other_streams()) == 1
    flow = made.flows.add(name=direction.stream if alone else f"{direction.stream}-{tx}-{rx}")
    if {"source", "destination"} <= stack.headers[0].given.keys():
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names[:] = tx, [rx]
    else:
        flow.tx_rx.device.tx_names[:], flow.tx_rx.device.rx_names[:] = [_device_at(tx)], [_device_at(rx)]
    headers = headers_of(stack, stream.frames[0])
    flow.packet.extend(headers.packet)
    _give_sizes(flow.size, stream)
    _give_times(flow, stream)
    flow.metrics.enable = flow.metrics.loss = True
    return headers.repeating


def _give_sizes(size: Message, stream: Stream) -> None:
    sizes = [one.size for one in stream.frames]
    if len(sizes) == 1:
        size.fixed = sizes[0]
    elif stream.shares:
        for one, weight in zip(sizes, stream.shares, strict=True):
            size.weight_pairs.custom.add(size=one, weight=weight)
    elif stream.order == tuple(range(len(sizes))) and len({after - one for one, after in pairwise(sizes)}) == 1:
        size.increment.start, size.increment.end, size.increment.step = sizes[0], sizes[-1], sizes[1] - sizes[0]
    else:
        raise InexpressibleError("the model has mixes of sizes at random only: imix-random:…")


def _give_times(flow: Message, stream: Stream) -> None:
    """Rate and duration."""
    frames = None if stream.sends_ns is None else SteadyTimes(stream.rate_fps).frames_before(stream.sends_ns)
    flow.rate.pps = stream.rate_fps
    if isinstance(stream.pattern, Poisson):
        raise InexpressibleError("the model has no pattern poisson")
    if isinstance(stream.pattern, Bursts):
        _give_bursts(flow, stream, stream.pattern, frames)
        return
    lasts = messages.FlowFixedSeconds(seconds=(stream.sends_ns or 0) / NS_PER_S)
    if frames is None or stream.sends_ns is None:
        given = flow.duration.continuous
        given.SetInParent()
    elif exact(lasts, "seconds") * NS_PER_S == stream.sends_ns:
        given = flow.duration.fixed_seconds
        given.CopyFrom(lasts)
    else:
        given = flow.duration.fixed_packets
        given.packets = frames
    if stream.begin_ns:
        given.delay.nanoseconds = stream.begin_ns


def _give_bursts(flow: Message, stream: Stream, pattern: Bursts, frames: int | None) -> None:
    if pattern.within_fps is None:
        raise InexpressibleError("bursts of the model have a rate: give burst_rate")
    if stream.begin_ns:
        raise InexpressibleError("bursts of the model begin at once: leave out begin_s")
    if (frames or 0) % pattern.frames:
        raise InexpressibleError(f"bursts of the model are whole: {frames:,} frames are none of {pattern.frames:,}")
    flow.rate.pps = pattern.within_fps
    burst = flow.duration.burst
    burst.packets, burst.bursts = pattern.frames, (frames or 0) // pattern.frames
    between_s = pattern.frames / stream.rate_fps - pattern.frames / pattern.within_fps
    burst.inter_burst_gap.nanoseconds = round(between_s * NS_PER_S)


# --- devices --------------------------------------------------------------------------------------


def _device_at(port: str) -> str:
    return f"{port} device"


def _add_device(made: Message, setup: Setup, name: str, *, must: bool) -> None:
    """The host at a port that has a gateway. ``must``: flows leave their MAC addresses to it."""
    side = setup.sides()[name]
    gateways = {version: gateway for version in (4, 6) if (gateway := _gateway(setup, name, version)) is not None}
    if not must and not side.has_gateway:
        return
    if not gateways:
        if must:
            raise ConfigError(
                "is missing: frames to it have no MAC addresses, which a device of the model gets from its gateway",
                f"{setup.key_of(name)}.gateway{side.version}",
            )
        return
    if len(side.vlans or ()) > 1:
        raise ConfigError("are several: a device of the model has one", f"{setup.key_of(name)}.vlans")
    ethernet = made.devices.add(name=_device_at(name)).ethernets.add(name=f"{name} ethernet")
    ethernet.connection.port_name = name
    if side.mac is not None:
        ethernet.mac = side.mac
    for vlan in side.vlans or ():
        ethernet.vlans.add(name=f"{name} vlan", id=vlan)
    for version, gateway in gateways.items():
        _add_address(ethernet, side, version, gateway, name)


def _gateway(setup: Setup, name: str, version: int) -> IPv4Address | IPv6Address | None:
    """The DUT's address; on a cable the other port's."""
    sides = setup.sides()
    side = sides[name]
    if side.address(version) is None:
        return None
    others = [one.address(version) for other, one in sides.items() if other != name]
    if side.has_gateway or len(others) > 1 or others[0] is None:
        return side.gateway(version)
    return others[0].ip


def _add_address(ethernet: Message, side: Side, version: int, gateway: object, name: str) -> None:
    own = side.address(version)
    assert own is not None, "it has a gateway"
    each = ethernet.ipv4_addresses if version == 4 else ethernet.ipv6_addresses
    one = each.add(name=f"{name} ipv{version}", address=str(own.ip), prefix=own.network.prefixlen, gateway=str(gateway))
    if side.gateway_mac is not None:
        one.gateway_mac.value = side.gateway_mac


# --- whether it is the same -----------------------------------------------------------------------


def _check_same(made: Message, setup: Setup, streams: Mapping[Direction, Stream]) -> None:
    """Raises ConfigError where ``dutperf otg`` would not send the same."""
    try:
        coverage.check(made)
        ports = {name: side.port for name, side in setup.sides().items()}
        each = flows.planned(made, links.planned(made, ports))
    except Rejected as error:
        raise ConfigError(f"flows of the model would be refused: {error}", "streams") from None
    for (direction, ours), flow in zip(streams.items(), each, strict=True):
        theirs = replace(flow, shift_ns=0).part(0, 0, goes_on=False)
        assert theirs is not None, "it has frames"
        if text := _difference(ours, theirs):
            raise _refused(setup, direction, "", f"would have {text} as a flow of the model")


def _difference(ours: Stream, theirs: Stream) -> str:
    """In words; empty: there is none."""
    if (ours.rate_fps, ours.pattern) != (theirs.rate_fps, theirs.pattern):
        return f"another rate ({theirs.rate_fps:,} frames/s in the mean)"
    if ours.begin_ns != theirs.begin_ns:
        return f"another beginning ({(theirs.begin_ns or 0) / NS_PER_S} s)"
    if _count(ours) != _count(theirs):
        return f"another end ({_count(theirs) or 'no number of'} frames)"
    if (ours.order, ours.shares) != (theirs.order, theirs.shares):
        return "sizes in another order"
    pairs = zip(ours.frames, theirs.frames, strict=True)
    return "" if all(_fixed_bits(one, other) == _fixed_bits(other, one) for one, other in pairs) else "other frames"


def _count(stream: Stream) -> int | None:
    return None if stream.sends_ns is None else SteadyTimes(stream.rate_fps).frames_before(stream.sends_ns)


def _fixed_bits(frame: DescribedFrame, other: DescribedFrame) -> DescribedFrame:
    """What does not vary in either frame."""
    number = int(frame.bytes, 16)
    for field in (*frame.fields, *other.fields):
        end = 4 * len(frame.bytes) - field.bit
        number &= ~((1 << end) - (1 << end - field.bits))
    return as_sent(frame).model_copy(update={"bytes": f"{number:0{len(frame.bytes)}x}", "fields": ()})
