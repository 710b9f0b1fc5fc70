# SPDX-License-Identifier: Apache-2.0
"""Labs with reference DUTs at both ends of the technologies of RFC 8219 that carry one IP version over the other:
double translation (464XLAT, MAP-T) and encapsulation (DS-Lite, MAP-E, lw4o6, 6rd). Both DUTs in a row (the dual DUT
test setup), or one of them, whose other end is the tester (the single DUT test setup).

Between the ends, the left one has addresses from 2001:2:0:3000::/52, the right one 2001:2:0:4000::b. With IPv4 between
them (6rd) they are 198.18.64.128 and 198.18.64.254.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv6Network, ip_interface
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dutperf.frames import Stack
from dutperf.lab.addresses import LEFT, NAT64_PREFIX, NETWORKS, RIGHT, RIGHT_BEHIND_NAT64, Side, routed_sides
from dutperf.lab.definition import EndOption, Lab
from dutperf.lab.memif import Ports
from dutperf.lab.netns import DUT_PORTS, TESTER_PORTS
from dutperf.lab.refdut import NatProperties, Properties
from dutperf.lab.reference import KERNEL_PORTS, NatOptions, ReferenceOptions, connected, dut_side, identity, run
from dutperf.lab.site import Site
from dutperf.model import IPV6_HEADER_EXCESS

IpVersion = Literal[4, 6]
PLACES = ("left", "right")
LINKS: dict[IpVersion, tuple[str, str]] = {
    4: ("198.18.64.252", "198.18.64.253"),
    6: ("2001:2:0:4000::1", "2001:2:0:4000::2"),
}
"""Addresses of the DUTs on the link between both, by its IP version."""
LINK_MACS = ("02:00:00:00:40:01", "02:00:00:00:40:02")
"""Of both DUTs there: if they had to ask for them, the first frame would be lost."""
FAR_END = "2001:2:0:4000::b"
"""Of an AFTR, BR or lwAFTR."""
NEAR_END = "2001:2:0:3000::b4"
"""Of a B4 or lwB4."""
SHARED = IPv4Address("198.18.0.2")
"""The address that CEs share: the tester's left side."""
EVENTS = ("stall_ms", "stall_at_s", "reset_s", "reset_at_s")
OF_CONNECTIONS = NatProperties.model_fields.keys() - Properties.model_fields.keys()
OF_NAT = NatOptions.model_fields.keys() - ReferenceOptions.model_fields.keys()
EVERYTHING = {4: "0.0.0.0/0", 6: "::/0"}


class ReferenceEndOptions(ReferenceOptions):
    """Properties of one DUT or both."""

    end: EndOption = "both"
    properties_of: Annotated[
        Literal["both", "left", "right"],
        Field(description="of both DUTs, the one that has the capacity, losses and so on; the other one has none"),
    ] = "left"

    @model_validator(mode="after")
    def _belongs_to_a_dut(self) -> Self:
        if self.end == "both" and self.link == "memif":
            raise ValueError("option link=memif needs end=left or end=right")
        if self.end != "both" and "properties_of" in self.model_fields_set:
            raise ValueError("option properties_of needs end=both")
        return self

    def places(self) -> tuple[int, ...]:
        """The DUTs that there are: 0 is the left one."""
        return (0, 1) if self.end == "both" else (PLACES.index(self.end),)

    def has_properties(self, place: int) -> bool:
        """Whether a DUT is other than one that forwards everything at once."""
        return self.end != "both" or self.properties_of in ("both", PLACES[place])

    def properties_at(self, place: int) -> Properties | None:
        """The permanent properties of a DUT, if it has any."""
        return self._of(Properties) if self.has_properties(place) else None

    def chosen_at(self, place: int) -> dict[str, Any]:
        """Those that somebody chose for a DUT, for results."""
        without = () if self.has_properties(place) else (*Properties.model_fields, *EVENTS)
        return {name: value for name, value in self.chosen().items() if name not in without}


class SharingOptions(ReferenceEndOptions):
    """How many ports of its IPv4 address the left end has."""

    psid_length: Annotated[
        int,
        Field(
            ge=0,
            le=8,
            description="bits of the port set identifier (PSID) of an IPv4 address that several share; 0: the left end"
            " has whole addresses",
        ),
    ] = 0
    psid: Annotated[int, Field(ge=0, le=255, description="PSID of the left end; needs psid_length")] = 1
    psid_offset: Annotated[
        int, Field(ge=0, le=8, description="bits of a port before its PSID; if not 0, system ports are nobody's")
    ] = 6

    @model_validator(mode="after")
    def _is_a_port_set(self) -> Self:
        if not self.psid_length and self.model_fields_set & {"psid", "psid_offset"}:
            raise ValueError("options psid and psid_offset need psid_length")
        if self.psid_length and self.psid >> self.psid_length:
            raise ValueError(f"option psid={self.psid} has more bits than psid_length={self.psid_length}")
        return self

    def ports(self) -> tuple[int, int] | None:
        """The last range of ports that the left end has; None: all."""
        if not self.psid_length:
            return None
        behind = 16 - self.psid_offset - self.psid_length
        first = ((1 << self.psid_offset) - 1) << (16 - self.psid_offset) | self.psid << behind
        return first, first + (1 << behind) - 1


class ReferenceDsLiteOptions(ReferenceEndOptions, NatOptions):
    """The NAT is the AFTR's."""

    def properties_at(self, place: int) -> Properties | None:
        if place == 0:
            return super().properties_at(place)
        names = NatProperties.model_fields if self.has_properties(place) else OF_CONNECTIONS
        return NatProperties(**{name: getattr(self, name) for name in names})

    def chosen_at(self, place: int) -> dict[str, Any]:
        without = OF_NAT if place == 0 else ()
        return {name: value for name, value in super().chosen_at(place).items() if name not in without}

    def stateful(self) -> dict[str, Any]:
        return super().stateful() if 1 in self.places() else {}


@dataclass(frozen=True)
class Domain:
    """What both ends know of each other."""

    table: dict[str, Any]
    """Which address between the ends stands for which one beyond them: parameters of the translator or tunnel."""
    between: tuple[str, str]
    """Addresses or prefixes between the ends: the left one's, the right one's."""
    hosts: tuple[str, str]
    """The tester between the ends, in the place of what is at the left or the right end, with the length of its
    prefix."""
    ports: tuple[int, int] | None = None
    """Of the left host; None: all."""


@dataclass(frozen=True)
class Technology:
    """How one IP version crosses the other."""

    group: Literal["tunnel", "translator"]
    names: tuple[str, str]
    """Of the left and the right DUT."""
    program: str
    domain: Callable[[Any], Domain]
    options: type[ReferenceEndOptions] = ReferenceEndOptions
    carried: IpVersion = 4

    @property
    def between(self) -> IpVersion:
        """The IP version between the ends."""
        return 6 if self.carried == 4 else 4

    @property
    def overhead(self) -> int:
        """Bytes by which frames are longer between the ends."""
        if self.group == "translator":
            return IPV6_HEADER_EXCESS
        return Stack.parse(f"ipv{self.between}").size_behind_ethernet


# --- domains --------------------------------------------------------------------------------------------


def xlat(_options: ReferenceEndOptions) -> Domain:
    """RFC 6877: networks on the left by one mapping, the right by the prefix of RFC 6052."""
    left_between = "2001:2:0:3000::/112"
    return Domain(
        {"mappings": [{"ipv4": LEFT.net4, "ipv6": left_between}], "prefix": NAT64_PREFIX},
        (left_between, NAT64_PREFIX),
        ("2001:2:0:3000::2/64", f"{RIGHT_BEHIND_NAT64}/64"),
    )


def ds_lite(_options: ReferenceEndOptions) -> Domain:
    """RFC 6333: everything is beyond the AFTR, but what is at the B4."""
    return _tunnel({"mappings": [{"ipv4": LEFT.net4, "ipv6": NEAR_END}, _default(FAR_END)]}, NEAR_END)


def lw4o6(options: SharingOptions) -> Domain:
    """RFC 7596: bindings of 256 whole addresses, or of a part of one."""
    if options.psid_length:
        own = {"psid": options.psid, "psid_length": options.psid_length, "psid_offset": options.psid_offset}
        rules = [{"ipv4": str(SHARED), "ipv6": NEAR_END, **own}]
    else:
        rules = [{"ipv4": f"198.18.{network}.2", "ipv6": NEAR_END} for network in range(NETWORKS)]
    return _tunnel({"rules": rules, "mappings": [_default(FAR_END)]}, NEAR_END, options.ports())


def map_e(options: SharingOptions) -> Domain:
    """RFC 7597: the CE has all addresses on the left, or a part of one."""
    if options.psid_length:
        rule, address = shared_address(options)
    else:
        rule, address = {"ipv4": LEFT.net4, "ipv6": "2001:2:0:3000::/56"}, "2001:2:0:3000:0:c612::"
    return _tunnel({"rules": [rule], "mappings": [_default(FAR_END)]}, address, options.ports())


def map_t(options: SharingOptions) -> Domain:
    """RFC 7599: the left DUT is the CE of part of an address, or of all addresses on the left, each of which has
    an IPv6 address of its own."""
    if options.psid_length:
        rule, address = shared_address(options)
        near = address
    else:
        near, address = "2001:2:0:3000::/56", "2001:2:0:3000:200:c612:2:0"
        rule = {"ipv4": LEFT.net4, "ipv6": near, "ea_length": 16}
    hosts = f"{address}/64", f"{RIGHT_BEHIND_NAT64}/64"
    return Domain({"rules": [rule], "prefix": NAT64_PREFIX}, (near, NAT64_PREFIX), hosts, options.ports())


def six_rd(_options: ReferenceEndOptions) -> Domain:
    border = "198.18.64.254"
    mappings = [{"ipv4": "198.18.64.128/25", "ipv6": "2001:2::/49"}, {"ipv4": border, "ipv6": EVERYTHING[6]}]
    edge = "198.18.64.128"
    return Domain({"mappings": mappings}, (edge, border), (f"{edge}/24", f"{border}/24"))


def shared_address(options: SharingOptions) -> tuple[dict[str, Any], str]:
    """A MAP rule with four bits of the IPv4 address and the PSID in the prefix of a CE, and the CE's address (RFC 7597
    section 6)."""
    prefix = IPv6Network("2001:2:0:3000::/52")
    ea_length = 4 + options.psid_length
    rule = {"ipv4": "198.18.0.0/28", "ipv6": str(prefix), "ea_length": ea_length, "psid_offset": options.psid_offset}
    embedded = (int(SHARED) & 0xF) << options.psid_length | options.psid
    identifier = int(SHARED) << 16 | options.psid
    place = 128 - prefix.prefixlen - ea_length
    return rule, str(prefix[embedded << place | identifier])


def _default(end: str) -> dict[str, str]:
    return {"ipv4": EVERYTHING[4], "ipv6": end}


def _tunnel(table: dict[str, Any], near: str, ports: tuple[int, int] | None = None) -> Domain:
    return Domain(table, (near, FAR_END), (f"{near}/64", f"{FAR_END}/64"), ports)


# --- DUTs and tester ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReferenceEnd:
    """One of the DUTs, between a side of the tester and the link."""

    technology: Technology
    domain: Domain
    place: int
    alone: bool = False

    @property
    def name(self) -> str:
        return self.technology.names[self.place]

    @property
    def other_place(self) -> int:
        """Of the other end, and of the DUT's port to the link."""
        return 1 - self.place

    @property
    def own(self) -> Side:
        return (LEFT, RIGHT)[self.place]

    @property
    def other(self) -> Side:
        return (LEFT, RIGHT)[self.other_place]

    @property
    def own_host(self) -> str:
        return self.domain.hosts[self.place]

    @property
    def other_host(self) -> str:
        """The tester, if it is the other end."""
        return self.domain.hosts[self.other_place]

    @property
    def has_nat(self) -> bool:
        return self.name == "AFTR"

    def link(self) -> tuple[str, str]:
        """The DUT's address on the link, and that of what is there."""
        if not self.alone:
            addresses = LINKS[self.technology.between]
            return addresses[self.place], addresses[self.other_place]
        host = ip_interface(self.other_host)
        return str(host.network[1 if host.version == 6 else -3]), str(host.ip)

    def request(self, ports: Ports, options: ReferenceEndOptions, *, shares_core: bool) -> dict[str, Any]:
        carried, between = self.technology.carried, self.technology.between
        own, gateway = self.link()
        to_tester = {"routes4": [self.own.net4], "routes6": [self.own.net6]}
        to_link = {f"routes{between}": [net(self.other, between), self.domain.between[self.other_place]]}
        both = (ports.left, ports.right)
        sides = (
            dut_side(both[self.place], self.own),
            {
                "port": both[self.other_place],
                f"ipv{between}": own,
                f"gateway{between}": gateway,
                **({} if self.alone else {"gateway_mac": LINK_MACS[self.other_place]}),
            },
        )
        to_own, to_other = PLACES[self.place], PLACES[self.other_place]
        return {
            to_own: sides[0],
            to_other: sides[1],
            f"to_{to_own}": to_tester,
            f"to_{to_other}": to_link,
            self.technology.group: {
                f"routes{carried}": [] if self.has_nat else [net(self.other, carried)],
                f"routes{between}": [self.domain.between[self.place]],
                **({"over": f"ipv{between}"} if self.technology.group == "tunnel" else {}),
                **self.domain.table,
            },
            **({"nat": options.outside()} if self.has_nat and isinstance(options, NatOptions) else {}),
            "max_frame_size": options.max_frame_size + self.technology.overhead,
            "buffers": options.buffers,
            "shares_core": shares_core,
        }

    def start(
        self, site: Site, ports: Ports, options: ReferenceEndOptions, *, shares_core: bool = False
    ) -> dict[str, Any]:
        """Start the DUT; returns what the configuration says of it."""
        request = self.request(ports, options, shares_core=shares_core)
        events = options if options.has_properties(self.place) else None
        run(site, request, options.properties_at(self.place), events)
        outside = {"outside": request["nat"]["pool"]} if self.has_nat else {}
        about = identity(self.name, site, options.chosen_at(self.place))
        return {**about, "program": self.technology.program, **outside}


def net(side: Side, version: IpVersion) -> str:
    return side.net4 if version == 4 else side.net6


def build(technology: Technology, site: Site, options: ReferenceEndOptions) -> dict[str, Any]:
    domain = technology.domain(options)
    ends = [ReferenceEnd(technology, domain, place, options.end != "both") for place in options.places()]
    built = build_two if len(ends) == 2 else build_one
    return {**built(site, ends, options), **options.stateful()}


def build_two(site: Site, ends: list[ReferenceEnd], options: ReferenceEndOptions) -> dict[str, Any]:
    technology, domain = ends[0].technology, ends[0].domain
    longest = options.mtu + technology.overhead
    both = site.add_program_duts(longest, longest)
    for end, one in zip(ends, both, strict=True):
        one.dut.ip(f"link set {DUT_PORTS[end.other_place]} address {LINK_MACS[end.place]}")
    cores = sorted({one.dut_core for one in both})
    duts = [
        end.start(one, KERNEL_PORTS, options, shares_core=len(cores) == 1) for end, one in zip(ends, both, strict=True)
    ]
    left, right = routed_sides(technology.carried)
    return {
        "engine": {"dut_cores": cores},
        "left": {"port": TESTER_PORTS[0], **left, **_within(domain, "source_port")},
        "right": {"port": TESTER_PORTS[1], **right, **_within(domain, "destination_port")},
        "dut": duts,
        "between": {"overhead": technology.overhead},
    }


def build_one(site: Site, ends: list[ReferenceEnd], options: ReferenceEndOptions) -> dict[str, Any]:
    """One DUT, and the tester as the other end of a tunnel, or as a host between translators."""
    (end,) = ends
    technology, domain = end.technology, end.domain
    tester, dut = connected(site, options, technology.overhead)
    duts = end.start(site, dut, options)
    sides = tunnelled(end) if technology.group == "tunnel" else translated(end)
    return {
        "engine": {"dut_cores": [site.dut_core]},
        "left": {"port": tester.left, **sides["left"], **_within(domain, "source_port")},
        "right": {"port": tester.right, **sides["right"], **_within(domain, "destination_port")},
        "dut": duts,
    }


def tunnelled(end: ReferenceEnd) -> dict[str, dict[str, Any]]:
    """The tester's sides, one of which is the other end of the tunnel."""
    carried, between = end.technology.carried, end.technology.between
    sides = dict(zip(PLACES, routed_sides(carried), strict=True))
    inner = sides[PLACES[end.other_place]]
    gateway, _ = end.link()
    sides[PLACES[end.other_place]] = {
        "version": carried,
        f"ipv{carried}": inner[f"ipv{carried}"],
        f"ipv{between}": end.other_host,
        f"gateway{between}": gateway,
        "tunnel": f"ipv{between}(destination={ip_interface(end.own_host).ip})",
    }
    return sides


def translated(end: ReferenceEnd) -> dict[str, dict[str, Any]]:
    """The tester's sides, one of which is an IPv6 host between translators."""
    gateway, _ = end.link()
    return {
        PLACES[end.place]: {
            "version": 4,
            **end.own.ipv4,
            **end.own.ipv6,
            "seen_as": str(ip_interface(end.own_host).ip),
            "networks": 1,
        },
        PLACES[end.other_place]: {
            "version": 6,
            "ipv6": end.other_host,
            "gateway6": gateway,
            "seen_as": end.other.tester4,
            "networks": 1,
        },
    }


def _within(domain: Domain, ports: str) -> dict[str, Any]:
    """What a shared address means for the tester: the ports of the left side are those of the left end."""
    if domain.ports is None:
        return {}
    first, last = domain.ports
    return {ports: {"mode": "random", "min": first, "max": last}, "networks": 1}


TECHNOLOGIES = {
    "464xlat": Technology("translator", ("CLAT", "PLAT"), "464XLAT (RFC 6877), both stateless", xlat),
    "map-t": Technology("translator", ("CE", "BR"), "MAP-T (RFC 7599)", map_t, SharingOptions),
    "ds-lite": Technology("tunnel", ("B4", "AFTR"), "DS-Lite (RFC 6333)", ds_lite, ReferenceDsLiteOptions),
    "map-e": Technology("tunnel", ("CE", "BR"), "MAP-E (RFC 7597)", map_e, SharingOptions),
    "lw4o6": Technology("tunnel", ("lwB4", "lwAFTR"), "lw4o6 (RFC 7596)", lw4o6, SharingOptions),
    "6rd": Technology("tunnel", ("CE", "BR"), "6rd (RFC 5969)", six_rd, carried=6),
}
LABS = tuple(
    Lab(
        name=f"refdut-{name}",
        summary=f"reference DUTs as both ends of {technology.program}, or as one: {' and '.join(technology.names)}",
        options=technology.options,
        programs={},
        build=partial(build, technology),
    )
    for name, technology in TECHNOLOGIES.items()
)
