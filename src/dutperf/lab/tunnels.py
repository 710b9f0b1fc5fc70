# SPDX-License-Identifier: Apache-2.0
"""Kinds of what two Linux kernels in a row do to packets between them (RFC 8219 section 4.2): a row of :data:`KINDS`
has the tunnel's headers, the commands that make a router an end of it, and how its packets are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dutperf.frames import Stack
from dutperf.lab.addresses import LEFT, RIGHT, Side
from dutperf.lab.definition import ResetOptions
from dutperf.lab.netns import DUT_PORTS, Namespace

TUNNEL = "tunnel"
"""Name of the interface."""
VNI, VXLAN_PORT, MAC = 100, 4789, "02:00:00:00:40:0{}"
INSIDE = ("meta l4proto { tcp, udp }",)
"""Test packets outside of tunnels."""


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
    address: str
    peer: str


ENDS = (
    End(1, LEFT, RIGHT, DUT_PORTS[0], DUT_PORTS[1], "2001:2:0:4000::1", "2001:2:0:4000::2"),
    End(2, RIGHT, LEFT, DUT_PORTS[1], DUT_PORTS[0], "2001:2:0:4000::2", "2001:2:0:4000::1"),
)


@dataclass(frozen=True)
class Encapsulation:
    """A kind of tunnel."""

    program: str
    outside: tuple[str, ...]
    """Match expressions of nftables, each for a part of the test packets on the link with the tunnel: what it carries,
    and native packets beside it."""
    set_up: Callable[[Namespace, End, ResetOptions], dict[str, Any]]
    """... an end of it, whose ports have their addresses; returns what the configuration says of this DUT besides."""
    headers: str
    """Of the tunnel, for packets of IPv4 to the left end."""
    names: tuple[str, str] = ("left end", "right end")

    @property
    def overhead(self) -> int:
        """Bytes by which frames are longer within it."""
        return Stack.parse(self.headers).size_behind_ethernet


def segment(number: int, version: int) -> str:
    """The segment at whose end packets of this IP version are decapsulated."""
    return f"2001:2:0:500{number}::{version}"


def srv6(dut: Namespace, end: End, _options: ResetOptions) -> dict[str, Any]:
    """Encapsulate towards the other end's segments, and decapsulate at the own ones."""
    other = 3 - end.number
    conf = "ipv6/conf"
    dut.sysctl({f"{conf}/{name}/seg6_enabled": 1 for name in ("all", *DUT_PORTS)})
    decapsulated = ((4, "End.DX4 nh4 0.0.0.0"), (6, "End.DX6 nh6 ::"))  # by the route to the inner destination
    encapsulated = ((4, end.other.net4), (6, end.other.net6))
    dut.ip(
        f"sr tunsrc set {end.address}",
        f"route add 2001:2:0:500{other}::/64 via {end.peer} dev {end.outside}",
        *(
            f"route add {segment(end.number, version)}/128 encap seg6local action {action} dev {end.inside}"
            for version, action in decapsulated
        ),
        *(
            f"route add {net} encap seg6 mode encap segs {segment(other, version)} dev {end.outside}"
            for version, net in encapsulated
        ),
    )
    return {}


def vxlan(dut: Namespace, end: End, options: ResetOptions) -> dict[str, Any]:
    """A tunnel without learning: the other end's addresses are fixed."""
    inner, peer = (f"2001:2:0:4001::{number}" for number in (end.number, 3 - end.number))
    ends = f"local {end.address} remote {end.peer} dstport {VXLAN_PORT}"
    dut.ip(
        f"link add {TUNNEL} address {MAC.format(end.number)} mtu {options.mtu} type vxlan id {VNI} {ends}"
        f" dev {end.outside} nolearning",
        f"link set {TUNNEL} addrgenmode none",
        f"link set {TUNNEL} up",
        f"addr add {inner}/64 dev {TUNNEL} nodad",
        f"neigh add {peer} lladdr {MAC.format(3 - end.number)} nud permanent dev {TUNNEL}",
        f"route add {end.other.net4} via inet6 {peer} dev {TUNNEL}",
        f"route add {end.other.net6} via {peer} dev {TUNNEL}",
    )
    return {}


KINDS = {
    "srv6": Encapsulation(
        program="SRv6: H.Encaps, End.DX4, End.DX6",
        outside=("ip6 nexthdr 43", *INSIDE),
        set_up=srv6,
        headers=f"ipv6(destination={segment(1, 4)})/routing(segments=[{segment(1, 4)}])",
    ),
    "vxlan": Encapsulation(
        program="VXLAN over IPv6",
        outside=(
            f"udp dport {VXLAN_PORT} @th,128,40 0x0200000040",
            f"udp dport != {VXLAN_PORT}",
            "meta l4proto tcp",
        ),
        set_up=vxlan,
        headers=f"ipv6(destination={ENDS[0].address})/udp/vxlan(vni={VNI})"
        f"/eth(destination={MAC.format(1)},source={MAC.format(2)})",
    ),
}
