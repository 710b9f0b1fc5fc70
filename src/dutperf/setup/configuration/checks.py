# SPDX-License-Identifier: Apache-2.0
"""What no key says alone: whether the keys of a configuration go together."""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.model import (
    Direction,
)
from dutperf.setup import host_address, path_texts
from dutperf.setup.configuration.errors import Invalid
from dutperf.setup.configuration.keys import (
    COMMANDS,
    MEMORY_PORTS,
    Address,
    Dut,
    EngineSettings,
    Interface,
    Setup,
    Side,
)
from dutperf.setup.planned_stream import MOST_STREAMS, PlannedStream
from dutperf.setup.yaml_text import Location, path_of
from dutperf.spelling import count_of


def check(setup: Setup) -> None:
    _check_paths(setup)
    within = () if setup.ports is None else ("ports",)
    for name, side in setup.sides().items():
        _check_addresses((*within, name), side)
        _check_gateways((*within, name), side)
    _check_dns64(setup)
    _check_ports(setup, within)
    _check_streams(setup)
    _check_between(setup, within)
    for name, side in setup.sides().items():
        senders = path_texts.senders_to(name, setup.path_ends(), setup.sides())
        if side.seen_as is not None or setup.dns64 is None:  # a DNS64 server translates no packets
            _check_seen_as((*within, name), side, senders)
    _check_initiator(setup)
    _check_duts(setup)
    _check_otg(setup, within)


def _check_initiator(setup: Setup) -> None:
    initiator, senders = setup.stateful.initiator, [sender for sender, _ in setup.path_ends().values()]
    if initiator is not None and initiator not in senders:
        others = ", ".join(dict.fromkeys(senders))
        raise Invalid(("stateful", "initiator"), f"is {initiator}, where no path begins: give one of {others}")


_OF_OTG = frozenset({"otg", "otg_certificate", "link_timeout_s"})
"""Settings that go with an OTG server."""
_ONLY_OF_ENGINE = ("answers_for", "receive_ring", "varying_address")
"""Settings of a port that its devices do not have."""


def _check_otg(setup: Setup, within: Location) -> None:
    """With an OTG server nothing is set that it does not have."""
    if setup.engine.otg is None:
        if setup.engine.otg_certificate is not None:
            raise Invalid(("engine", "otg_certificate"), "has no effect without engine.otg")
        return
    unset = EngineSettings()
    others = [name for name, value in setup.engine if name not in _OF_OTG and value != getattr(unset, name)]
    if others:
        raise Invalid(("engine", others[0]), "has no effect beside engine.otg: the server has its own ports and cores")
    if setup.dns64 is not None:
        raise Invalid(("dns64",), "is not possible with engine.otg: an OTG server asks and answers no DNS queries")
    for name, side in setup.sides().items():
        _check_otg_port((*within, name), side)


def _check_otg_port(location: Location, side: Side) -> None:
    for key in _ONLY_OF_ENGINE:
        if getattr(side, key):
            raise Invalid((*location, key), "is not possible with engine.otg: its devices have one address")
    if len(side.vlans or ()) > 1:
        raise Invalid((*location, "vlans"), "are several; with engine.otg a port has one VLAN")
    if side.gateway_mac is not None and side.gateway(side.link_version) is None:
        raise Invalid(
            (*location, f"gateway{side.link_version}"),
            "is missing: with engine.otg a port needs it beside gateway_mac, to answer for its address",
        )


def _check_dns64(setup: Setup) -> None:
    """The client is at the left port and asks over IPv6 (RFC 8219 section 9)."""
    if setup.dns64 is None:
        return
    if setup.left is None:
        raise Invalid(("dns64",), "does not go with named ports: client and name server are at two without names")
    if setup.other_name_server and setup.engine.offloads:
        raise Invalid(
            ("engine", "offloads"), "do not go with dns64.addresses: the tester has no port for them at right"
        )
    if setup.left.ipv6 is None:
        raise Invalid(("left", "ipv6"), "is missing: a DNS64 server is asked over IPv6")
    if setup.left.gateway6 is None and setup.left.gateway_mac is None and not setup.is_looped_back:
        raise Invalid(
            ("left", "gateway6"),
            "is missing: it is the address of dns64.server if that is on the link, else a router's",
        )
    if setup.dns64.server == setup.left.ipv6.ip:
        raise Invalid(("dns64", "server"), f"{setup.dns64.server} is the tester's own address (left.ipv6)")


def _check_links(setup: Setup, links: int) -> None:
    if setup.between and not links:
        raise Invalid(("between",), "is about links between several DUTs: dut is then a list of them")
    if setup.between and len(setup.between) != links:
        named = count_of(len(setup.between), "link")
        raise Invalid(("between",), f"has {named}; between {links + 1} DUTs are {links}, from left to right")
    if setup.ports and any(link.passed is not None for link in setup.between):
        raise Invalid(("between",), "has passed, which says forward and reverse: it does not go with named ports")


def _check_duts(setup: Setup) -> None:
    _check_links(setup, len(setup.duts()) - 1)
    one_alone = isinstance(setup.dut, Dut)
    seen: set[str] = set()
    for number, dut in enumerate(setup.duts()):
        location: Location = ("dut",) if one_alone else ("dut", number)
        for key in dut.model_extra or ():
            if key in ("command", *COMMANDS) and key != "filters":  # which results name
                meant = ("commands",) if key == "command" else ("commands", key)
                raise Invalid((*location, key), f"unknown key; did you mean {path_of((*location, *meant))}?")
        if dut.commands is not None and not dut.commands.names():
            raise Invalid(
                (*location, "commands"), f"names no command; there are {', '.join(COMMANDS[:-1])} and {COMMANDS[-1]}"
            )
        if one_alone:
            continue
        if not dut.name:
            raise Invalid((*location, "name"), "is missing: each of several DUTs needs a name of its own")
        if dut.name in seen:
            raise Invalid((*location, "name"), f"{dut.name} is already the name of another DUT")
        seen.add(dut.name)


def _check_paths(setup: Setup) -> None:
    """Ports are left and right, or have names and paths."""
    sides = {"left": setup.left, "right": setup.right}
    if setup.ports is not None:
        if given := [name for name, side in sides.items() if side is not None]:
            raise Invalid((given[0],), "does not go with ports, which have names of their own")
        return _check_named(setup, tuple(setup.ports))
    if setup.other_name_server and setup.right is not None:
        raise Invalid(("right",), "has no effect: the DUT asks another name server (dns64.addresses); leave it out")
    missing = [name for name, side in sides.items() if side is None]
    if missing and not (missing == ["right"] and setup.other_name_server):
        raise Invalid((missing[0],), "is missing")
    if setup.paths is not None:
        raise Invalid(("paths",), "is for named ports: left and right have the paths forward and reverse")
    return None


def _check_named(setup: Setup, names: tuple[str, ...]) -> None:
    if setup.paths is None:
        raise Invalid(("paths",), "is missing: say which ports send to which others, as in [a->b, b<->c] or mesh")
    try:
        ends = path_texts.parse(setup.paths, names)
    except ValueError as error:
        raise Invalid(("paths",), str(error)) from None
    used = {name for both in ends.values() for name in both}
    if idle := [name for name in names if name not in used]:
        raise Invalid(("ports", idle[0]), "is on no path: leave it out, or name a path from or to it")


def _check_addresses(location: Location, side: Side) -> None:
    needed = ((side.version, f"has version {side.version}"), (side.link_version, "has a tunnel"))
    for version, because in needed:
        if side.address(version) is None:
            raise Invalid(
                (*location, f"ipv{version}"),
                f"is missing: {location[-1]} {because} and needs an IPv{version} address",
            )
    for version in (4, 6):
        own = side.address(version)
        if own is None:
            continue
        reason = host_address.fault_of(own)
        if reason is None and version == side.version and own.ip.is_link_local and side.has_gateway:
            reason = "is a link-local address, and no router forwards its frames"
        if reason is not None:
            raise Invalid((*location, f"ipv{version}"), f"{own.ip} is not a valid host address: it {reason}")


def _check_gateways(location: Location, side: Side) -> None:
    for version in (4, 6):
        gateway = side.gateway(version)
        if gateway is not None:
            _check_gateway((*location, f"gateway{version}"), gateway, side.address(version))
    if side.has_gateway and side.gateway_mac is None and side.gateway(side.link_version) is None:
        raise Invalid(
            (*location, f"gateway{side.link_version}"),
            f"is missing: {_link_of(location[-1], side)}; give it, or gateway_mac",
        )
    if side.vlans is not None and (side.gateway_mac is not None or not side.has_gateway):
        text = "has no effect: nobody is asked for a MAC address"
        raise Invalid(
            (*location, "vlans"), f"{text} {'beside gateway_mac' if side.gateway_mac else 'without a gateway'}"
        )


def _link_of(name: object, side: Side) -> str:
    if side.tunnel is not None:
        return f"{name} has a tunnel over IPv{side.link_version}"
    return f"the foreground of {name} is IPv{side.version}"


def _check_gateway(location: Location, gateway: Address, own: Interface | None) -> None:
    family = f"ipv{gateway.version}"
    if own is None:
        raise Invalid(location, f"has no effect without {path_of((*location[:-1], family))}")
    if gateway == own.ip:
        raise Invalid(location, f"{gateway} is the tester's own address ({family}); the gateway is the DUT's")
    if gateway not in own.network and not gateway.is_link_local:
        raise Invalid(location, f"{gateway} is not in {own.network}, the network of {family}")
    reason = host_address.fault_in(gateway, own.network) if gateway.version == 4 else host_address.fault(gateway)
    if reason is not None:
        raise Invalid(location, f"{gateway} {reason}; the gateway is the DUT's address")


def _check_ports(setup: Setup, within: Location) -> None:
    sides = setup.sides()
    all_sides = "both sides" if setup.ports is None else "all ports"
    for kind in MEMORY_PORTS:
        others = [name for name, side in sides.items() if side.port != kind]
        if others and len(others) < len(sides):
            raise Invalid(
                (*within, others[0], "port"), f"is {sides[others[0]].port}, but {kind} must be the port of {all_sides}"
            )
    seen: dict[str, str] = {}
    for name, side in sides.items():
        if side.port in MEMORY_PORTS:
            if gateway := side.gateway(4) or side.gateway(6):
                raise Invalid(
                    (*within, name, f"gateway{gateway.version}"),
                    f"has no effect: nothing answers for {gateway} where the port is {side.port}; leave it out",
                )
        elif (other := seen.setdefault(side.port, name)) != name:
            raise Invalid((*within, name, "port"), f"{side.port} is already the port of {other}")


def _check_streams(setup: Setup) -> None:
    paths = setup.path_ends()
    _check_number_of_streams(setup)
    for number, one in enumerate(setup.streams):
        location: Location = ("streams", number)
        if one.paths is not None and setup.ports is None:
            raise Invalid((*location, "paths"), "is for named ports: streams of left and right have directions")
        if setup.ports is not None and one.directions != "both":
            raise Invalid((*location, "directions"), "does not go with named ports: give the stream's paths")
        if unknown := next((path for path in one.paths or () if path not in paths), None):
            raise Invalid((*location, "paths"), f"has {unknown}, but the paths are {', '.join(paths)}")
        if any(one.name == other.name and _name_is_taken(one, other, paths) for other in setup.streams[:number]):
            raise Invalid((*location, "name"), f"{one.name} is the name of another stream too")


def _check_number_of_streams(setup: Setup) -> None:
    if len(setup.streams) > MOST_STREAMS:
        raise Invalid(("streams", MOST_STREAMS), f"is one more than a configuration can have ({MOST_STREAMS})")


def _name_is_taken(one: PlannedStream, other: PlannedStream, paths: Iterable[Direction]) -> bool:
    """Whether two streams of one name are confused: on a path, or because one has a rate of its own."""
    own_rate = one.rate is not None or other.rate is not None
    return own_rate or any(one.sends_on(path) and other.sends_on(path) for path in paths)


def _check_between(setup: Setup, within: Location) -> None:
    sides = setup.sides()
    for version in (4, 6):
        seen: dict[Address, str] = {}
        for name, side in sides.items():
            own = side.address(version)
            if own is not None and (other := seen.setdefault(own.ip, name)) != name:
                raise Invalid((*within, name, f"ipv{version}"), f"{own.ip} is already the address of {other}")
        for name, side in sides.items():
            if (gateway := side.gateway(version)) in seen:
                raise Invalid(
                    (*within, name, f"gateway{version}"),
                    f"{gateway} is the tester's own address ({seen[gateway]}); the gateway is the DUT's",
                )
    with_gateway = [name for name, side in sides.items() if side.has_gateway]
    without = [name for name in sides if name not in with_gateway]
    if with_gateway and without:
        version = sides[without[0]].link_version
        raise Invalid(
            (*within, without[0], f"gateway{version}"),
            f"is missing: {with_gateway[0]} has a gateway, so the sides have a DUT between them, not a cable",
        )


def missing_seen_as(other: Side) -> str:
    """The message for a missing ``seen_as``: ``other`` sends to it through the translator."""
    return (
        f"is missing: the other side needs an IPv{other.version} address for this one, as the translator maps it; for a"
        " DNS64 server give dns64 instead"
    )


def _check_seen_as(port: Location, side: Side, senders: Iterable[Side]) -> None:
    """A translator between IP versions needs such an address on one side at least, NAT within a version may
    have one."""
    location, senders = (*port, "seen_as"), list(senders)
    other = next((one for one in senders if one.version != side.version), None)
    if side.seen_as is None:
        if other is not None and other.seen_as is None:
            raise Invalid(location, missing_seen_as(other))
        return
    sent = side.version if other is None else other.version
    if not senders:
        raise Invalid(location, "has no effect: no path leads to this side; leave it out")
    if side.seen_as.version != sent:
        raise Invalid(location, f"{side.seen_as} is not an IPv{sent} address, but the other side sends IPv{sent}")
    on_links = [own for one in (side, *senders) if one.version == sent and (own := one.address(sent)) is not None]
    if (reason := _no_translation(side.seen_as, on_links, routed=side.has_gateway)) is not None:
        raise Invalid(location, f"{side.seen_as} {reason}")


def _no_translation(address: Address, on_links: Iterable[Interface], *, routed: bool) -> str | None:
    """Why no DUT translates an address for one of the tester's ports; None: it can. ``on_links``: the tester's
    own addresses of the version."""
    if address in [own.ip for own in on_links]:
        return "is the tester's own address: leave it out where nothing is translated"
    if routed and address.is_link_local:
        return "is a link-local address, and no router forwards its frames"
    reasons = (host_address.fault_in(address, own.network) for own in on_links)
    return next((reason for reason in reasons if reason is not None), None)
