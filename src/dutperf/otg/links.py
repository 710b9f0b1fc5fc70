# SPDX-License-Identifier: Apache-2.0
"""The ports of a configuration, and the devices behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface
from typing import Any

from pydantic import ValidationError

from dutperf.errors import first
from dutperf.model import Direction
from dutperf.model.value import PORT_NAME, STREAM_NAME
from dutperf.otg.model import Message, Rejected, chosen, name_of
from dutperf.setup.configuration import SharedPort, Side

NOWHERE = "nowhere"
"""The receiving port of flows that have none: a device of DPDK on which nothing arrives."""
_ETHERNET = 18
"""Bytes of an Ethernet frame beside its packet."""
_USUAL_MTU = 1500
"""Of a device; snappi writes it where the script gives none, so it limits nothing."""
MOST_PORTS = 15
MOST_HOSTS = 256
"""On a port."""
_SPEEDS = {
    "speed_10_fd_mbps": 10,
    "speed_10_hd_mbps": 10,
    "speed_100_fd_mbps": 100,
    "speed_100_hd_mbps": 100,
    "speed_1_gbps": 1_000,
    "speed_10_gbps": 10_000,
    "speed_25_gbps": 25_000,
    "speed_40_gbps": 40_000,
    "speed_50_gbps": 50_000,
    "speed_100_gbps": 100_000,
    "speed_200_gbps": 200_000,
    "speed_400_gbps": 400_000,
    "speed_800_gbps": 800_000,
}


@dataclass(frozen=True)
class DeviceEnd:
    """Where a flow between devices begins or ends."""

    port: str
    host: int
    """Its number on the port."""
    addresses: Mapping[str, str]
    """``ipv4`` and ``ipv6``."""


@dataclass(frozen=True)
class Neighbour:
    """A gateway of a device."""

    ethernet: str
    port: str
    """Its name of ours."""
    host: int
    """Number of the host there that asks for it."""
    version: int
    address: str


@dataclass
class Links:
    """The ports, by their names in the configuration."""

    sides: dict[str, Side] = field(default_factory=dict)
    """The ports as the engine opens them, by names of ours."""
    locations: dict[str, str] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)
    speeds: dict[str, int] = field(default_factory=dict)
    """In Mbit/s, of those that have one."""
    longest: dict[str, int] = field(default_factory=dict)
    """Bytes of a frame, of those that have an MTU."""
    longest_of_hosts: dict[tuple[str, int], int] = field(default_factory=dict)
    """Likewise, of those whose interfaces have one; by the port's name and their number there."""
    places: dict[str, str] = field(default_factory=dict)
    """Where the configuration has a setting of the engine's, such as ``left.port`` or ``left.gateway4``."""
    ends: dict[str, list[DeviceEnd]] = field(default_factory=dict)
    """By the names of devices, their interfaces and addresses."""
    interfaces: dict[str, list[DeviceEnd]] = field(default_factory=dict)
    """Those of interfaces alone."""
    neighbours: list[Neighbour] = field(default_factory=list)

    def port(self, name: str, where: str) -> str:
        """``name``, if it is that of a port. Raises Rejected where it is not."""
        if name not in self.locations:
            raise Rejected(f"{where}: there is no port {name!r}")
        return name

    def ends_of(self, name: str, where: str) -> Sequence[DeviceEnd]:
        """Those with this name. Raises Rejected where there is none."""
        if name not in self.ends:
            raise Rejected(f"{where}: there is no device, interface or address {name!r}")
        return self.ends[name]

    def other(self, name: str) -> str:
        """The only other port; empty: there is none, or there are several."""
        others = [one for one in self.locations if one != name]
        return others[0] if len(others) == 1 else ""

    def direction(self, tx: str, rx: str) -> Direction:
        return Direction(f"{self.ours[tx]}->{self.ours[rx] if rx else NOWHERE}")

    def host(self, end: DeviceEnd) -> Side:
        """The host of an end, alone on its port."""
        port = self.sides[self.ours[end.port]]
        if not isinstance(port, SharedPort):
            return port
        return port.hosts[end.host - 1] if end.host else Side.model_construct(**port.model_dump(exclude={"hosts"}))

    @staticmethod
    def stream_names(given: Sequence[str]) -> list[str]:
        """Names of ours for flows."""
        return _names(given, STREAM_NAME, "flow-")


def _names(given: Sequence[str], form: str, prefix: str) -> list[str]:
    """``given``, where all are possible names of ours; else numbers behind ``prefix``."""
    if all(re.fullmatch(form, one) and one != NOWHERE for one in given):
        return list(given)
    return [f"{prefix}{number + 1}" for number in range(len(given))]


def planned(configuration: Message, located: Mapping[str, str]) -> Links:
    """``located``: the port (as ``left.port`` of a setup) of each location. Raises Rejected: they are not possible."""
    errors = list(_twice(configuration))
    if not 1 <= len(configuration.ports) <= MOST_PORTS:
        errors.append(f"ports: {len(configuration.ports)} ports are not possible: 1 to {MOST_PORTS} are")
    if errors:
        raise Rejected(*errors)
    links = Links()
    given = [one.name for one in configuration.ports]
    links.ours = dict(zip(given, _names(given, PORT_NAME, "port"), strict=True))
    for number, port in enumerate(configuration.ports):
        links.locations[port.name] = port.location
        links.places[f"{links.ours[port.name]}.port"] = f"ports[{number}].location"
        if port.location not in located:
            raise Rejected(
                f"ports[{number}].location: there is no port {port.location!r} here; there are {', '.join(located)}"
            )
    _layers(configuration, links)
    hosts = _devices(configuration, links)
    for name, location in links.locations.items():
        port = {"port": located[location], "version": 4}
        each = [_side(port | one, name, number, links) for number, one in enumerate(hosts[name] or [{}])]
        links.sides[links.ours[name]] = _shared(each, name) if len(each) > 1 else each[0]
    return links


def _twice(configuration: Message) -> Iterator[str]:
    """Names are unique over the whole configuration; interfaces and addresses that nothing names may have none."""
    seen: set[str] = set()
    objects = [
        *((f"ports[{number}]", one) for number, one in enumerate(configuration.ports)),
        *((f"flows[{number}]", one) for number, one in enumerate(configuration.flows)),
        *_of_devices(configuration),
    ]
    for where, one in objects:
        if one.name and one.name in seen:
            yield f"{where}.name: {one.name!r} is there twice"
        elif not one.name and "." not in where:
            yield f"{where}.name is missing"
        seen.add(one.name)
    locations = [one.location for one in configuration.ports]
    yield from (
        f"ports[{number}].location: {one!r} is that of another port too"
        for number, one in enumerate(locations)
        if one in locations[:number]
    )


def _of_devices(configuration: Message) -> Iterator[tuple[str, Message]]:
    """Devices, their interfaces and addresses: flows, pings and loopbacks name any of them."""
    for number, device in enumerate(configuration.devices):
        yield f"devices[{number}]", device
        for index, ethernet in enumerate(device.ethernets):
            yield f"devices[{number}].ethernets[{index}]", ethernet
            yield from _each(ethernet, f"devices[{number}].ethernets[{index}]", "addresses")
        yield from _each(device, f"devices[{number}]", "loopbacks")


def _each(within: Message, where: str, kind: str) -> Iterator[tuple[str, Message]]:
    """Those of both IP versions."""
    for name in (f"ipv4_{kind}", f"ipv6_{kind}"):
        yield from ((f"{where}.{name}[{number}]", one) for number, one in enumerate(getattr(within, name)))


def _layers(configuration: Message, links: Links) -> None:
    for number, layer in enumerate(configuration.layer1):
        for name in layer.port_names:
            links.port(name, f"layer1[{number}].port_names")
            if layer.HasField("speed"):
                links.speeds[name] = _SPEEDS[name_of(layer, "speed")]
            if layer.HasField("mtu"):
                links.longest[name] = layer.mtu + _ETHERNET


def _devices(configuration: Message, links: Links) -> dict[str, list[dict[str, Any]]]:
    """Of each port the members of its hosts."""
    hosts: dict[str, list[dict[str, Any]]] = {name: [] for name in links.locations}
    for number, device in enumerate(configuration.devices):
        for index, ethernet in enumerate(device.ethernets):
            where = f"devices[{number}].ethernets[{index}]"
            port = links.port(ethernet.connection.port_name, f"{where}.connection.port_name")
            ends = list(_interface(ethernet, where, port, links, hosts[port]))
            links.interfaces[ethernet.name] = ends
            for name in {device.name, ethernet.name}:
                links.ends.setdefault(name, []).extend(ends)
    for number, device in enumerate(configuration.devices):
        for version, each in ((4, device.ipv4_loopbacks), (6, device.ipv6_loopbacks)):
            for index, one in enumerate(each):
                _loopback(one, version, f"devices[{number}].ipv{version}_loopbacks[{index}]", links, hosts)
    return hosts


def _loopback(one: Message, version: int, where: str, links: Links, hosts: Mapping[str, list[dict[str, Any]]]) -> None:
    """An address behind an interface, for which this answers as well."""
    if one.eth_name not in links.interfaces:
        raise Rejected(f"{where}.eth_name: there is no interface {one.eth_name!r}")
    behind = links.interfaces[one.eth_name]
    address = address_text(one.address, version, f"{where}.address")
    end = next((end for end in behind if f"ipv{version}" in end.addresses), behind[0])
    members = hosts[end.port][end.host]
    members["answers_for"] = (*members.get("answers_for", ()), address)
    links.ends.setdefault(one.name, []).append(DeviceEnd(end.port, end.host, {f"ipv{version}": address}))


def _interface(
    ethernet: Message, where: str, port: str, links: Links, hosts: list[dict[str, Any]]
) -> Iterator[DeviceEnd]:
    """Its hosts: addresses of both IP versions share one, where their gateways' MAC addresses are given alike."""
    of_link = {"mac": ethernet.mac or None, "vlans": _vlans(ethernet.vlans, f"{where}.vlans")}
    each: dict[tuple[int, str | None], dict[int, tuple[Message, str]]] = {}
    for version, given in ((4, ethernet.ipv4_addresses), (6, ethernet.ipv6_addresses)):
        for number, one in enumerate(given):
            mac = one.gateway_mac.value if chosen(one.gateway_mac, "auto") == "value" else None
            each.setdefault((number, mac), {})[version] = one, f"{where}.ipv{version}_addresses[{number}]"
    for (_, mac), addresses in (each or {(0, None): {}}).items():
        members = of_link | {"gateway_mac": mac, "version": min(addresses, default=6)}
        for version, (one, place) in addresses.items():
            members |= _addressed(one, version, place)
            _check_free(members, version, hosts, f"{place}.address")
        if ethernet.HasField("mtu") and ethernet.mtu != _USUAL_MTU:
            links.longest_of_hosts[port, len(hosts)] = ethernet.mtu + _ETHERNET
        yield _host_of(members, addresses, ethernet.name, port, len(hosts), links)
        hosts.append(members)


def _host_of(
    members: Mapping[str, Any],
    addresses: Mapping[int, tuple[Message, str]],
    ethernet: str,
    port: str,
    number: int,
    links: Links,
) -> DeviceEnd:
    ours = links.ours[port]
    own: dict[str, str] = {}
    for version, (one, place) in addresses.items():
        own[f"ipv{version}"] = str(ip_address(one.address))
        links.neighbours.append(Neighbour(ethernet, ours, number, version, members[f"gateway{version}"]))
        links.places[f"{_of_host(ours, number)}.gateway{version}"] = f"{place}.gateway"
        alone = {f"ipv{version}": own[f"ipv{version}"]}
        links.ends.setdefault(one.name, []).append(DeviceEnd(port, number, alone))
    return DeviceEnd(port, number, own)


def _of_host(port: str, number: int) -> str:
    """How the engine names a host on a port."""
    return f"{port}.hosts.{number - 1}" if number else port


def _check_free(members: Mapping[str, Any], version: int, hosts: Sequence[Mapping[str, Any]], where: str) -> None:
    """Raises Rejected where another host on the port has the address, in the same VLAN."""
    own = ip_interface(members[f"ipv{version}"]).ip
    for one in hosts:
        other = one.get(f"ipv{version}")
        if other is not None and ip_interface(other).ip == own and one["vlans"] == members["vlans"]:
            raise Rejected(f"{where}: {own} is that of another interface too")


def _vlans(given: Sequence[Message], where: str) -> list[int] | None:
    if len(given) > 1:
        raise Rejected(f"{where}: several tags are not covered")
    if any(one.priority or (one.HasField("tpid") and name_of(one, "tpid") != "x8100") for one in given):
        raise Rejected(f"{where}[0]: a priority, or another tpid than x8100, is not covered")
    return [one.id or 1 for one in given] or None


def _addressed(given: Message, version: int, where: str) -> dict[str, str]:
    address = address_text(given.address, version, f"{where}.address")
    prefix = given.prefix or {4: 24, 6: 64}[version]
    try:
        own = str(ip_interface(f"{address}/{prefix}"))
    except ValueError as error:
        raise Rejected(f"{where}.prefix: {error}") from None
    return {f"ipv{version}": own, f"gateway{version}": address_text(given.gateway, version, f"{where}.gateway")}


def address_text(text: str, version: int, where: str) -> str:
    """An address as it is usually written. Raises Rejected: it is none of this IP version."""
    try:
        found = ip_address(text)
        if found.version != version:
            raise ValueError
    except ValueError:
        raise Rejected(f"{where}: {text!r} is no IPv{version} address") from None
    return str(found)


def _side(members: Mapping[str, Any], name: str, number: int, links: Links) -> Side:
    """A host on the port; without a device it has no addresses."""
    try:
        given = {key: value for key, value in members.items() if value is not None}
        return Side.model_validate(given)
    except ValidationError as error:
        wrong = first(error)
        setting = ".".join(map(str, wrong["loc"]))
        place = links.places.get(f"{_of_host(links.ours[name], number)}.{setting}", f"port {name}: {setting}")
        raise Rejected(f"{place}: {wrong['msg']}") from None


def _shared(hosts: Sequence[Side], name: str) -> SharedPort:
    if len(hosts) > MOST_HOSTS:
        raise Rejected(f"devices: port {name} has {len(hosts)} addresses; at most {MOST_HOSTS} are possible")
    return SharedPort.model_construct(**dict(hosts[0]), hosts=tuple(hosts[1:]))
