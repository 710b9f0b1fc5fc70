# SPDX-License-Identifier: Apache-2.0
"""Converts a configuration of the Open Traffic Generator API to one of dutperf whose streams are its flows. Comments at
its head say how they are sent, and which names had to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import yaml

from dutperf import installation
from dutperf.model import IPV6_HEADER_EXCESS, MAX_FRAME_SIZE, Bursts
from dutperf.model.pattern import NS_PER_S
from dutperf.otg import coverage, links
from dutperf.otg.flows import LONGEST_NS, MOST_FLOWS, Flow, as_sent
from dutperf.otg.flows import planned as planned_flows
from dutperf.otg.links import NOWHERE, Links
from dutperf.otg.model import Message, Rejected
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import NO_PORT, ConfigError, Setup, SharedPort, Side, is_port
from dutperf.setup.planned_stream import MOST_STREAMS
from dutperf.setup.size_mix import SizeMix
from dutperf.spelling import with_and
from dutperf.traffic.other_streams import PlannedOthers

WIDTH = 140
_MS = NS_PER_S // 1000
_UNKNOWN = "FILL IN"
"""Begins the port in place of a location that is no port of ours; no port is called so."""
_NOBODY = "02:00:00:00:00:00"
"""The MAC address of a gateway that no frame is sent to: flows have addresses of their own there."""


@dataclass
class Converted:
    """The file, and what a user has to know."""

    text: str
    notes: list[str] = field(default_factory=list)
    """One sentence each."""


def convert(wanted: Message, located: Mapping[str, str]) -> Converted:
    """``located``: ports by locations, where they are not what the locations say. Raises Rejected: something cannot be
    sent, or no configuration of dutperf can express it; each is named."""
    warnings = coverage.check(wanted)
    ports = {one.location: located.get(one.location) or _port_of(one.location) for one in wanted.ports}
    # any port, until the user says which: each has another one
    assumed = {at: spec or f"vdev:unknown{number}" for number, (at, spec) in enumerate(ports.items())}
    planned_links = links.planned(wanted, assumed)
    planned = planned_flows(wanted, planned_links)
    if not 1 <= len(planned) <= MOST_STREAMS:
        raise Rejected(
            f"flows: a configuration has 1 to {MOST_STREAMS} streams, not {len(planned)}; dutperf otg has up to"
            f" {MOST_FLOWS:,} flows"
        )
    _check_simple(planned, planned_links)
    whole = _mapping(planned, planned_links)
    notes = [*warnings, *(text for one in planned for text in one.warnings), *_left_out(wanted, planned, planned_links)]
    notes += _unlike(planned)
    _check(whole, planned)
    notes += _translated(whole["ports"], planned)
    for name, ours in planned_links.ours.items():
        location = planned_links.locations[name]
        if ports[location] is None and ours in whole["ports"]:
            whole["ports"][ours]["port"] = f"{_UNKNOWN} ({location})"
            notes.append(f"ports.{ours}.port: enter the port of {location!r}, which is no port of dutperf, or --ports")
    comments = "".join(f"# {line}\n" for line in _comments(planned, planned_links))
    return Converted(comments + _dumped(whole), notes)


def _check_simple(planned: Sequence[Flow], planned_links: Links) -> None:
    """Raises Rejected for what only a server sends."""
    if shared := [
        name for name, ours in planned_links.ours.items() if isinstance(planned_links.sides[ours], SharedPort)
    ]:
        raise Rejected(f"devices: port {shared[0]} has several interfaces or addresses, a port of a configuration one")
    if tagged := [one.of for one in planned if one.tags]:
        raise Rejected(f"{tagged[0]}: egress_packet: no stream of a configuration has metric_tags")
    if several := [one.of for one in planned if one.name != one.of or one.also_rx]:
        raise Rejected(f"{several[0]}: a flow between several ports is no stream of a configuration")


def _dumped(whole: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(whole), sort_keys=False, width=WIDTH)


def _check(whole: Mapping[str, Any], planned: Sequence[Flow]) -> None:
    """Read it as the next command will, and compare the frames; addresses that a translator maps are for the user to
    enter."""
    try:
        configuration.parse_yaml(_dumped(whole), "")
    except ConfigError as error:
        if not error.key.endswith(".seen_as"):
            raise Rejected(f"{error.key}: {error.message}") from None
    others = PlannedOthers(Setup.model_validate(whole), SingleTrial(duration_s=LONGEST_NS / NS_PER_S))
    streams = others.streams(MAX_FRAME_SIZE)
    for one in planned:
        if [*map(as_sent, streams[one.direction].frames)] != [*map(as_sent, one.stream.frames)]:
            raise Rejected(f"{one.name}: no stream of a configuration has such frames")


def _port_of(location: str) -> str | None:
    """The location, if it is a port of ours. An address is that of another tester, not the name of an interface."""
    try:
        ip_address(location)
    except ValueError:
        return location if is_port(location) else None
    return None


def _mapping(planned: Sequence[Flow], planned_links: Links) -> dict[str, Any]:
    paths = list(dict.fromkeys(str(one.direction.path) for one in planned))
    used = {name for one in planned for name in one.direction.ports}
    sides = {name: one for name, one in planned_links.sides.items() if name in used}
    ports = {name: dict(_side(name, sides)) for name in (*sides, *used - sides.keys())}
    # sizes of ours are those of IPv6 frames where any port has IPv6: frames of IPv4 are shorter
    excess = IPV6_HEADER_EXCESS if any(one["version"] == 6 for one in ports.values()) else 0
    streams = [_stream(one, excess if one.headers.ip_version == 4 else 0) for one in planned]
    return {"ports": ports, "paths": paths, "streams": streams}


def _side(name: str, sides: Mapping[str, Side]) -> Iterator[tuple[str, Any]]:
    """A port. One without a device gets what each port of a configuration has; no frame of a flow has it."""
    devices = [one for one in sides.values() if one.has_gateway]
    common = next((version for version in (4, 6) if all(one.gateway(version) for one in devices)), None)
    given = {"port": NO_PORT.port} if name == NOWHERE else sides[name].model_dump(mode="json", exclude_unset=True)
    version = common or (sides[name].version if name in sides else 4)
    yield from (given | {"version": version}).items()
    if f"ipv{version}" not in given:
        number = [*sides, NOWHERE].index(name) + 1
        yield f"ipv{version}", f"198.18.255.{number}/24" if version == 4 else f"2001:2:0:ffff::{number}/64"
        if devices:
            yield "gateway_mac", _NOBODY


def _stream(flow: Flow, excess: int) -> dict[str, Any]:
    sends = flow.stream
    made: dict[str, Any] = {
        "name": flow.direction.stream,
        "paths": str(flow.direction.path),
        "rate": sends.rate_fps,
        "sizes": _sizes(flow.mix, excess),
        "frame": str(flow.headers),
    }
    if isinstance(sends.pattern, Bursts):
        made |= {"pattern": f"bursts:{sends.pattern.frames}", "burst_rate": sends.pattern.within_fps}
    if sends.begin_ns:
        made["begin_s"] = sends.begin_ns / NS_PER_S
    if (sends_ns := _sends_ns(flow)) is not None:
        made["duration_s"] = sends_ns / NS_PER_S
    return made


def _sends_ns(flow: Flow) -> int | None:
    """How long it sends: until the frame behind its last one would be due; None: it has no end."""
    if flow.frames is None:
        return flow.sends_ns
    return flow.frames * NS_PER_S // flow.stream.rate_fps


def _sizes(mix: SizeMix, excess: int) -> int | str:
    weights = [(size + excess, mix.order.count(size)) for size in mix.sizes]
    if len(weights) == 1:
        return weights[0][0]
    return f"imix{'-random' if mix.random else ''}:" + ",".join(f"{size}={weight}" for size, weight in weights)


def _left_out(wanted: Message, planned: Sequence[Flow], planned_links: Links) -> Iterator[str]:
    """What the file has not."""
    used = {name for one in planned for name in one.direction.ports}
    for name, ours in planned_links.ours.items():
        if ours not in used:
            yield f"ports: {name} is left out: no flow has it"
    for one in wanted.captures:
        yield f"captures: {one.name or 'a capture'} is left out: give dutperf trial --capture first"
    if told := [one.name for one in planned if one.with_latency or one.with_times]:
        yield f"metrics: dutperf trial shows delays of {with_and(told)} with --frame-timeout, and no time stamps"


def _unlike(planned: Sequence[Flow]) -> Iterator[str]:
    """What a trial does otherwise than the flows say."""
    if endless := [one.name for one in planned if _sends_ns(one) is None]:
        yield f"{with_and(endless)}: no end is given, so dutperf trial sends for its --duration"
    if tagged := [one.name for one in planned if any(header.name == "vlan" for header in one.headers.headers)]:
        page = installation.page("frames")
        yield f"{with_and(tagged)}: a trial is not valid if the DUT changes the VLAN tags ({page})"


def _translated(ports: Mapping[str, Any], planned: Sequence[Flow]) -> Iterator[str]:
    """Only the user knows how a translator maps addresses."""
    for tx, rx in dict.fromkeys(one.direction.ports for one in planned):
        version = ports[tx]["version"]
        if version != ports[rx]["version"]:
            yield f"ports.{rx}.seen_as: enter its IPv{version} address for {tx}, as the DUT translates it"


def _comments(planned: Sequence[Flow], planned_links: Links) -> Iterator[str]:
    latest_ns = max((one.stream.begin_ns or 0) + (_sends_ns(one) or 1) for one in planned)
    are_endless = any(_sends_ns(one) is None for one in planned)
    least = f"{-(-latest_ns // _MS) / 1000:.3f}".rstrip("0").rstrip(".")
    yield "Converted by dutperf convert from a configuration of the Open Traffic Generator API. To send its flows:"
    yield f"  dutperf trial --config THIS --duration {least}{', or longer' if are_endless else ''}"
    for name, ours in planned_links.ours.items():
        if name != ours:
            yield f"Port {ours} is {name!a}."
    for one in planned:
        if one.name != one.direction.stream:
            yield f"Stream {one.direction.stream} is the flow {one.name!a}."
