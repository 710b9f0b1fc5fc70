# SPDX-License-Identifier: Apache-2.0
"""Kinds of what two Linux kernels in a row do to packets between them (RFC 8219 section 4.2): a row of :data:`KINDS`
has the tunnel's headers, the commands that make a router an end of it, and what a guest needs where the kernel of this
machine may not have it.

Of the standards: DS-Lite (RFC 6333) has one B4, and the AFTR's NAT44 is the kernel's. lw4o6 (RFC 7596) and MAP-E (RFC
7597) are without address sharing: a customer has a whole address (lw4o6) or network (MAP-E), so neither needs the
customer's NAT44 and its set of ports. Server devices do not compare the inner and the outer source, but in 6rd (RFC
5969). 464XLAT (RFC 6877) is stateless at both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dutperf.frames import Stack
from dutperf.lab import kernel_vm, nft_nat44
from dutperf.lab.addresses import LEFT, LEFT_BEHIND_CLAT, NAT64_PREFIX, NETWORKS, RIGHT, Side
from dutperf.lab.definition import EndOptions, LabOptions, ResetOptions
from dutperf.lab.guest import packages
from dutperf.lab.guest.machine import GuestOptions, Software
from dutperf.lab.guest.packages import Kernel
from dutperf.lab.netns import DUT_PORTS, Namespace
from dutperf.model import IPV6_HEADER_EXCESS

TUNNEL = "tunnel"
"""Name of the interface."""
VNI, VXLAN_PORT = 100, 4789
SIXRD, SIXRD4 = "2001:2::/49", "198.18.128.0/17"
"""The 6rd prefix, and the IPv4 network whose last 15 bits follow it: the CE of network R is 198.18.128.R."""
SIXRD_CES, SIXRD_CE = "198.18.128.0/24", "198.18.128.0"
WG_PORT, WG_BYTES = 51820, 32
"""WireGuard's UDP port, and the bytes of its header and its tag."""


class LeftEndOptions(ResetOptions):
    """Two DUTs, or the left one alone."""

    end: Annotated[
        Literal["both", "left"],
        Field(description="which DUTs there are: both, or the left one alone, and the tester is the other end"),
    ] = "both"


class GuestTunnelOptions(LeftEndOptions, GuestOptions):
    """Likewise in an emulated machine."""


class DsLiteOptions(LeftEndOptions, kernel_vm.NatOptions):
    """Also those of the AFTR's connection tracking."""

    @model_validator(mode="after")
    def _aftr_is_there(self) -> Self:
        if self.end == "left" and (
            given := self.model_fields_set & set(nft_nat44.ConntrackOptions.model_fields) - _OF_ANY
        ):
            raise ValueError(f"option {min(given)} is the AFTR's, which end=left leaves out")
        return self


_OF_ANY = set(ResetOptions.model_fields)


@dataclass(frozen=True)
class End:
    """One of the two DUTs: its side of the tester, and the tunnel's addresses."""

    number: int
    own: Side
    other: Side
    inside: str
    """Its port to the tester..."""
    outside: str
    """... and to the other DUT."""
    link: int = 0
    """Number of the tunnel, where there are several."""

    @property
    def far(self) -> End:
        """The other end, as far as its addresses on the link go."""
        return replace(self, number=3 - self.number)

    @property
    def address(self) -> str:
        """On the link between the DUTs."""
        return f"2001:2:0:{0x4000 + 2 * self.link:x}::{self.number}"

    @property
    def address4(self) -> str:
        return str(IPv4Address("198.18.254.252") - 4 * self.link + self.number)

    @property
    def inner(self) -> str:
        """Its address in a tunnel that is a link of its own."""
        return f"2001:2:0:{0x4001 + 2 * self.link:x}::{self.number}"

    @property
    def mac(self) -> str:
        """Its MAC address there."""
        return f"02:00:00:00:{0x40 + self.link:02x}:0{self.number}"

    def segment(self, version: int) -> str:
        """The segment at whose end packets of this IP version are decapsulated."""
        return f"2001:2:0:{0x5000 + 2 * self.link + self.number:x}::{version}"


ENDS = (End(1, LEFT, RIGHT, DUT_PORTS[0], DUT_PORTS[1]), End(2, RIGHT, LEFT, DUT_PORTS[1], DUT_PORTS[0]))


@dataclass(frozen=True)
class Encapsulation:
    """A kind of tunnel."""

    program: str
    set_up: Callable[[Namespace, End, Any], dict[str, Any]]
    """... an end of it, whose ports have their addresses, with these options; returns what the configuration says of
    this DUT besides."""
    headers: str | int
    """Of the tunnel, for packets of ``version`` to the left end; only their size in bytes, if the tester cannot be the
    other end."""
    headers_to_right: str = ""
    """Likewise to the right end, which can then be alone too."""
    names: tuple[str, str] = ("left end", "right end")
    version: Literal[4, 6] = 4
    """IP version of both sides."""
    options: type[ResetOptions] = EndOptions
    guest: Callable[[Kernel], Software] | None = None
    """What an emulated machine has for it; None: namespaces of this machine do it."""
    tester: Callable[[Any], dict[str, Any]] | None = None
    """What the tester's configuration says besides, with both ends."""
    left_of_alone: Mapping[str, Any] = field(default_factory=dict)
    """What the tester's left side says besides, with the left end alone."""

    @property
    def overhead(self) -> int:
        """Bytes by which frames are longer within it."""
        headers = self.headers
        return headers if isinstance(headers, int) else Stack.parse(headers).size_behind_ethernet


def srv6(dut: Namespace, end: End, _options: LabOptions) -> dict[str, Any]:
    """Encapsulate towards the other end's segments, and decapsulate at the own ones."""
    conf, far = "ipv6/conf", end.far
    dut.sysctl({f"{conf}/{name}/seg6_enabled": 1 for name in ("all", end.inside, end.outside)})
    decapsulated = ((4, "End.DX4 nh4 0.0.0.0"), (6, "End.DX6 nh6 ::"))  # by the route to the inner destination
    encapsulated = ((4, end.other.net4), (6, end.other.net6))
    dut.ip(
        f"sr tunsrc set {end.address}",
        *(f"route add {far.segment(version)} via {far.address} dev {end.outside}" for version in (4, 6)),
        *(
            f"route add {end.segment(version)} encap seg6local action {action} dev {end.inside}"
            for version, action in decapsulated
        ),
        *(
            f"route add {net} encap seg6 mode encap segs {far.segment(version)} dev {end.outside}"
            for version, net in encapsulated
        ),
    )
    return {}


def vxlan(dut: Namespace, end: End, options: LabOptions) -> dict[str, Any]:
    """A tunnel without learning: the other end's addresses are fixed."""
    name, far = f"{TUNNEL}{end.link}", end.far
    ends = f"local {end.address} remote {far.address} dstport {VXLAN_PORT}"
    dut.ip(
        f"link add {name} address {end.mac} mtu {options.mtu} type vxlan id {VNI + end.link} {ends}"
        f" dev {end.outside} nolearning",
        f"link set {name} addrgenmode none",
        f"link set {name} up",
        f"addr add {end.inner}/64 dev {name} nodad",
        f"neigh add {far.inner} lladdr {far.mac} nud permanent dev {name}",
        f"route add {end.other.net4} via inet6 {far.inner} dev {name}",
        f"route add {end.other.net6} via {far.inner} dev {name}",
    )
    return {}


def interface(dut: Namespace, mtu: int, link: str) -> None:
    """Make and start the tunnel's interface."""
    dut.ip(
        f"link add {TUNNEL} mtu {mtu} type {link}",
        f"link set {TUNNEL} addrgenmode none",
        f"link set {TUNNEL} up",
    )


def native_ipv6(end: End) -> str:
    """The route for what goes beside the tunnel."""
    return f"route add {end.other.net6} via {end.far.address} dev {end.outside}"


def point_to_point(link: str, dut: Namespace, end: End, options: ResetOptions) -> dict[str, Any]:
    """A tunnel between two addresses for IPv4; native IPv6 goes beside it."""
    interface(dut, options.mtu, f"{link.format(end=end)} dev {end.outside}")
    dut.ip(f"route add {end.other.net4} dev {TUNNEL}", native_ipv6(end))
    return {}


def gre(dut: Namespace, end: End, options: ResetOptions) -> dict[str, Any]:
    """A tunnel for both IP versions."""
    interface(dut, options.mtu, f"gre local {end.address4} remote {end.far.address4} ttl 64 dev {end.outside}")
    dut.ip(*(f"route add {net} dev {TUNNEL}" for net in (end.other.net4, end.other.net6)))
    return {}


def ds_lite(dut: Namespace, end: End, options: DsLiteOptions) -> dict[str, Any]:
    """A B4, or an AFTR that translates what it forwards to the right."""
    point_to_point("ip6tnl mode ipip6 local {end.address} remote {end.far.address} encaplimit none", dut, end, options)
    if end.number == 1:
        return {}
    dut.do(["nsenter", "-t", "1", "-n", "sh", "-e"], kernel_vm.table(options))
    nft_nat44.start_nat(dut, options)
    return {
        **nft_nat44.about(options, options.table),
        "commands": {name: dut.command(["sh", "-ec", script]) for name, script in kernel_vm.CONNECTIONS.items()},
    }


def lw4o6_customer(network: int) -> tuple[str, str]:
    """A row of the binding table: a customer's IPv4 address, with all its ports, and the lwB4's address."""
    return f"198.18.{network}.2/32", f"2001:2:0:2100::{network + 1:x}"


def map_e_customer(network: int) -> tuple[str, str]:
    """By the rule 198.18.0.0/16, 2001:2:0:2000::/56, 8 EA bits: a customer's network and the CE's address (RFC 7597
    section 6: the IPv4 network, and no PSID)."""
    return f"198.18.{network}.0/24", f"2001:2:0:20{network:02x}:0:c612:{network << 8:x}:0"


def customers(
    of: Callable[[int], tuple[str, str]], net: str, dut: Namespace, end: End, options: ResetOptions
) -> dict[str, Any]:
    """The left end has the addresses of all customers, the one of network 0 sends; the right one has a route for each,
    and all of them are in ``net``."""
    interface(dut, options.mtu, "ip6tnl mode ipip6 external")
    if end.number == 1:
        to_server = [(end.other.net4, of(0)[1], end.far.address)]
        dut.ip(*(f"addr add {outer}/128 dev lo nodad" for _, outer in map(of, range(NETWORKS))))
    else:
        to_server = [(inner, end.address, outer) for inner, outer in map(of, range(NETWORKS))]
        dut.ip(f"route add {net} via {end.far.address} dev {end.outside}")
    dut.ip(
        native_ipv6(end),
        *(
            f"route add {inner} encap ip6 id 0 src {own} dst {outer} hoplimit 64 dev {TUNNEL}"
            for inner, own, outer in to_server
        ),
    )
    return {}


def sixrd(dut: Namespace, end: End, options: ResetOptions) -> dict[str, Any]:
    """A CE with the addresses of all networks, or a BR."""
    rule = f"6rd-prefix {SIXRD} 6rd-relay_prefix {SIXRD4}"
    if end.number == 1:
        dut.ip(f"route add local {SIXRD_CES} dev lo", f"route add {end.far.address4} dev {end.outside} src {SIXRD_CE}")
        interface(dut, options.mtu, f"sit local any ttl 64 {rule} dev {end.outside}")
        dut.ip(f"route add {end.other.net6} via ::{end.far.address4} dev {TUNNEL}")
    else:
        dut.ip(f"route add {SIXRD_CES} via {end.far.address4} dev {end.outside}")
        interface(dut, options.mtu, f"sit local {end.address4} ttl 64 {rule} dev {end.outside}")
        dut.ip(f"route add {SIXRD} dev {TUNNEL}")
    return {}


def wireguard(dut: Namespace, end: End, options: ResetOptions) -> dict[str, Any]:
    """A peer whose connection is kept alive, so that no test packet waits for a handshake."""
    interface(dut, options.mtu, "wireguard")
    dut.ip(*(f"route add {net} dev {TUNNEL}" for net in (end.other.net4, end.other.net6)))
    key, other = (f"/root/{number}.key" for number in (end.number, end.far.number))
    dut.do(
        ["sh", "-e"],
        f"for key in {key} {other}; do [ -e $key ] || wg genkey > $key; done\n"
        f"wg set {TUNNEL} listen-port {WG_PORT} private-key {key} peer $(wg pubkey < {other})"
        f" endpoint [{end.far.address}]:{WG_PORT} allowed-ips {end.other.net4},{end.other.net6}"
        " persistent-keepalive 20\n",
    )
    return {}


def jool(dut: Namespace, end: End, _options: ResetOptions) -> dict[str, Any]:
    """A CLAT or a PLAT."""
    beyond = NAT64_PREFIX if end.number == 1 else LEFT_BEHIND_CLAT
    dut.ip(native_ipv6(end), f"route add {beyond} via {end.far.address} dev {end.outside}")
    dut.do(["jool_siit", "instance", "add", "--netfilter", "--pool6", NAT64_PREFIX])
    dut.do(["jool_siit", "eamt", "add", LEFT_BEHIND_CLAT, LEFT.net4])
    return {"version": packages.jool(packages.kernel()).version}


def with_modules(*names: str) -> Callable[[Kernel], Software]:
    return lambda _kernel: Software(drivers=names)


def with_wg(_kernel: Kernel) -> Software:
    """A guest with WireGuard and its program."""
    return Software(drivers=("wireguard",), programs=[packages.wireguard().program])


def with_nat(_kernel: Kernel) -> Software:
    """A guest with tunnels and connection tracking."""
    tools = packages.conntrack()
    drivers = ("ip6_tunnel", *kernel_vm.NAT_MODULES)
    return Software(drivers=drivers, programs=[tools.program], places=tools.libraries)


def with_jool(kernel: Kernel) -> Software:
    made = packages.jool(kernel)
    return Software(
        modules=[file for file in made.modules if file.stem in ("jool_common", "jool_siit")],
        programs=[made.program("jool_siit")],
        places=made.libraries,
    )


def srv6_headers(to: End) -> str:
    """Of packets to an end from the other one."""
    return f"ipv6(destination={to.segment(4)})/routing(segments=[{to.segment(4)}])"


def vxlan_headers(to: End) -> str:
    macs = f"destination={to.mac},source={to.far.mac}"
    return f"ipv6(destination={to.address})/udp/vxlan(vni={VNI})/eth({macs})"


FROM_RIGHT4 = f"ipv4(source={ENDS[1].address4},destination={ENDS[0].address4})"
KINDS = {
    "srv6": Encapsulation(
        program="SRv6: H.Encaps, End.DX4, End.DX6",
        set_up=srv6,
        headers=srv6_headers(ENDS[0]),
        headers_to_right=srv6_headers(ENDS[1]),
    ),
    "vxlan": Encapsulation(
        program="VXLAN over IPv6",
        set_up=vxlan,
        headers=vxlan_headers(ENDS[0]),
        headers_to_right=vxlan_headers(ENDS[1]),
    ),
    "ds-lite": Encapsulation(
        program="DS-Lite (a B4, and an AFTR with NAT44)",
        set_up=ds_lite,
        headers=f"ipv6(destination={ENDS[0].address})",
        names=("B4", "AFTR"),
        options=DsLiteOptions,
        guest=with_nat,
        tester=lambda options: {"stateful": nft_nat44.stateful(options)},
    ),
    "lw4o6": Encapsulation(
        program="lw4o6 without address sharing",
        set_up=partial(customers, lw4o6_customer, "2001:2:0:2100::/64"),
        headers=f"ipv6(destination={lw4o6_customer(0)[1]})",
        names=("lwB4", "lwAFTR"),
        options=GuestTunnelOptions,
        guest=with_modules("ip6_tunnel"),
    ),
    "map-e": Encapsulation(
        program="MAP-E without address sharing",
        set_up=partial(customers, map_e_customer, "2001:2:0:2000::/56"),
        headers=f"ipv6(destination={map_e_customer(0)[1]})",
        names=("CE", "BR"),
        options=GuestTunnelOptions,
        guest=with_modules("ip6_tunnel"),
    ),
    "6rd": Encapsulation(
        program="6rd",
        set_up=sixrd,
        headers=f"ipv4(source={ENDS[1].address4},destination={SIXRD_CE})",
        names=("CE", "BR"),
        version=6,
        left_of_alone={"networks": 1},  # the CE drops packets whose outer address is that of another network
        options=GuestTunnelOptions,
        guest=with_modules("sit"),
    ),
    "gre": Encapsulation(
        program="GRE over IPv4",
        set_up=gre,
        headers=f"{FROM_RIGHT4}/gre",
        options=GuestTunnelOptions,
        guest=with_modules("ip_gre"),
    ),
    "ipip": Encapsulation(
        program="IPv4 in IPv4",
        set_up=partial(point_to_point, "ipip local {end.address4} remote {end.far.address4} ttl 64"),
        headers=FROM_RIGHT4,
        options=GuestTunnelOptions,
        guest=with_modules("ipip"),
    ),
    "wireguard": Encapsulation(
        program="WireGuard over IPv6",
        set_up=wireguard,
        headers=Stack.parse("ipv6/udp").size_behind_ethernet + WG_BYTES,
        options=GuestOptions,
        guest=with_wg,
    ),
    "jool-464xlat": Encapsulation(
        program="Jool (464XLAT)",
        set_up=jool,
        headers=IPV6_HEADER_EXCESS,
        names=("CLAT", "PLAT"),
        options=GuestOptions,
        guest=with_jool,
    ),
}
