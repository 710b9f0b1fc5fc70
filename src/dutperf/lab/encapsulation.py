# SPDX-License-Identifier: Apache-2.0
"""Two Linux kernels in a row that carry IPv4 and IPv6 over IPv6 between them (encapsulation; the dual DUT test setup of
RFC 8219 section 4.2): each encapsulates what comes from the tester, the other one decapsulates it. Or the left one
alone, and the tester is the tunnel's other end (the single DUT test setup).

``srv6``: segment routing, H.Encaps to one segment, End.DX4 or End.DX6 at its end (RFC 8986). ``vxlan``: routed into a
VXLAN tunnel (RFC 7348) over IPv6.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from dutperf.frames import Stack
from dutperf.lab import kernel_router
from dutperf.lab.addresses import LEFT, RIGHT, Side, routed_sides
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.netns import DUT_PORTS
from dutperf.lab.site import Site

TUNNEL, VNI, VXLAN_PORT, MAC = "vx", 100, 4789, "02:00:00:00:40:0{}"
COUNTERS = """
table netdev forwarded {{
  counter forward_in {{ }}
  counter forward_out {{ }}
  counter reverse_in {{ }}
  counter reverse_out {{ }}
  chain from_left {{
    type filter hook ingress device "{left}" priority 0;
    {forward_in}
  }}
  chain to_right {{
    type filter hook egress device "{right}" priority 0;
    {forward_out}
  }}
  chain from_right {{
    type filter hook ingress device "{right}" priority 0;
    {reverse_in}
  }}
  chain to_left {{
    type filter hook egress device "{left}" priority 0;
    {reverse_out}
  }}
}}
"""
"""Test packets at both ports of a DUT, in their inner form on one side and in their outer one on the other."""
INSIDE = ("meta l4proto { tcp, udp }",)


class TunnelOptions(ResetOptions):
    """One DUT or two."""

    single: Annotated[bool, Field(description="the left end alone, the tester's right port is the other end")] = False


@dataclass(frozen=True)
class End:
    """One of the two DUTs: its side of the tester, and the tunnel's addresses."""

    name: str
    own: Side
    other: Side
    inside: str
    """Its port to the tester..."""
    outside: str
    """... and to the other DUT."""
    address: str
    peer: str
    number: int


ENDS = (
    End("left end", LEFT, RIGHT, DUT_PORTS[0], DUT_PORTS[1], "2001:2:0:4000::1", "2001:2:0:4000::2", 1),
    End("right end", RIGHT, LEFT, DUT_PORTS[1], DUT_PORTS[0], "2001:2:0:4000::2", "2001:2:0:4000::1", 2),
)


@dataclass(frozen=True)
class Encapsulation:
    """A kind of tunnel."""

    outside: tuple[str, ...]
    """Match expressions of nftables, each for a part of the test packets on the link with the tunnel: what it carries,
    and native packets beside it."""
    program: str
    set_up: Callable[[Site, End, int], None]
    """... an end of it, for packets of this MTU, whose ports have their addresses."""
    headers: str
    """Of the tunnel, for packets of IPv4 to the left end."""

    @property
    def overhead(self) -> int:
        """Bytes by which frames are longer within it."""
        return Stack.parse(self.headers).size_behind_ethernet


def segment(number: int, version: int) -> str:
    """The segment at whose end packets of this IP version are decapsulated."""
    return f"2001:2:0:500{number}::{version}"


def srv6(site: Site, end: End, _mtu: int) -> None:
    """Encapsulate towards the other end's segments, and decapsulate at the own ones."""
    other = 3 - end.number
    conf = "ipv6/conf"
    site.dut.sysctl({f"{conf}/{name}/seg6_enabled": 1 for name in ("all", *DUT_PORTS)})
    decapsulated = ((4, "End.DX4 nh4 0.0.0.0"), (6, "End.DX6 nh6 ::"))  # by the route to the inner destination
    encapsulated = ((4, end.other.net4), (6, end.other.net6))
    site.dut.ip(
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


def vxlan(site: Site, end: End, mtu: int) -> None:
    """A tunnel without learning: the other end's addresses are fixed."""
    inner, peer = (f"2001:2:0:4001::{number}" for number in (end.number, 3 - end.number))
    ends = f"local {end.address} remote {end.peer} dstport {VXLAN_PORT}"
    site.dut.ip(
        f"link add {TUNNEL} address {MAC.format(end.number)} mtu {mtu} type vxlan id {VNI} {ends} dev {end.outside}"
        " nolearning",
        f"link set {TUNNEL} addrgenmode none",
        f"link set {TUNNEL} up",
        f"addr add {inner}/64 dev {TUNNEL} nodad",
        f"neigh add {peer} lladdr {MAC.format(3 - end.number)} nud permanent dev {TUNNEL}",
        f"route add {end.other.net4} via inet6 {peer} dev {TUNNEL}",
        f"route add {end.other.net6} via {peer} dev {TUNNEL}",
    )


def build(kind: Encapsulation, site: Site, options: TunnelOptions) -> dict[str, Any]:
    """Build the DUTs; returns the tester's configuration."""
    return build_one(kind, site, options) if options.single else build_two(kind, site, options)


def build_one(kind: Encapsulation, site: Site, options: TunnelOptions) -> dict[str, Any]:
    """The left end alone."""
    near, far = ENDS
    site.add_router(options.mtu + kind.overhead)
    dut = set_up(kind, site, near, options)
    left, right = routed_sides(4)
    link = {"ipv6": f"{far.address}/64", "gateway6": near.address, "tunnel": kind.headers}
    return {
        "engine": {"dut_cores": [site.dut_core]},
        "left": {"port": "tl", **left},
        "right": {"port": "tr", "version": 4, "ipv4": right["ipv4"], **link},
        "dut": dut,
    }


def build_two(kind: Encapsulation, site: Site, options: TunnelOptions) -> dict[str, Any]:
    """Both ends, with frames of their own between them."""
    both = site.add_routers(options.mtu, options.mtu + kind.overhead)
    left, right = routed_sides(4)
    return {
        "engine": {"dut_cores": sorted({one.dut_core for one in both})},
        "left": {"port": "tl", **left},
        "right": {"port": "tr", **right},
        "dut": [set_up(kind, one, end, options) for one, end in zip(both, ENDS, strict=True)],
        "between": {"overhead": kind.overhead},
    }


def _counters(kind: Encapsulation, end: End) -> str:
    matches = {end.inside: INSIDE, end.outside: kind.outside}
    left, right = DUT_PORTS
    ports = {"forward_in": left, "forward_out": right, "reverse_in": right, "reverse_out": left}
    rules = {
        counter: "\n    ".join(f"{match} counter name {counter}" for match in matches[port])
        for counter, port in ports.items()
    }
    return COUNTERS.format(left=left, right=right, **rules)


def set_up(kind: Encapsulation, site: Site, end: End, options: TunnelOptions) -> dict[str, Any]:
    """Make a router an end of the tunnel; returns what the configuration says of it."""
    site.dut.ip(
        *end.own.ip4(end.inside), *end.own.ip6(end.inside), f"addr add {end.address}/64 dev {end.outside} nodad"
    )
    kind.set_up(site, end, options.mtu)
    site.dut.nft(_counters(kind, end))
    release = platform.release()
    commands: Mapping[str, list[str]] = {
        "reset": kernel_router.reset(site, options.reset_s),
        "losses": kernel_router.in_without_out(site, "netdev forwarded", "not_forwarded"),
    }
    return {
        "name": end.name,
        "version": release,
        "kernel": release,
        "program": kind.program,
        "cores": [site.dut_core],
        "commands": commands,
    }


KINDS = {
    "srv6": Encapsulation(
        ("ip6 nexthdr 43", *INSIDE),
        "SRv6: H.Encaps, End.DX4, End.DX6",
        srv6,
        f"ipv6(destination={segment(1, 4)})/routing(segments=[{segment(1, 4)}])",
    ),
    "vxlan": Encapsulation(
        (
            f"udp dport {VXLAN_PORT} @th,128,40 0x0200000040",
            f"udp dport != {VXLAN_PORT}",
            "meta l4proto tcp",
        ),
        "VXLAN over IPv6",
        vxlan,
        f"ipv6(destination={ENDS[0].address})/udp/vxlan(vni={VNI})"
        f"/eth(destination={MAC.format(1)},source={MAC.format(2)})",
    ),
}
LABS = tuple(
    Lab(
        name=name,
        summary=f"two Linux routers in a row with {kind.program} between them: IPv4 on both sides",
        options=TunnelOptions,
        programs={},
        build=partial(build, kind),
        needs_ipv6=True,
    )
    for name, kind in KINDS.items()
)
