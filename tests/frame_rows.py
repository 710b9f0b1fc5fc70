# SPDX-License-Identifier: Apache-2.0
"""Rows of header stacks for tests: what carries a header, what it carries, and every field with its
smallest and largest value and a pattern of bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

import frame_bytes
from dutperf.frames import KINDS, Endpoints, Stack, build
from dutperf.frames.headers import Role
from dutperf.model import DescribedFrame

ENDPOINTS = Endpoints(
    (IPv4Address("198.18.0.2"), IPv4Address("198.19.0.2")),
    (IPv6Address("2001:2::2"), IPv6Address("2001:2:0:8000::2")),
)
ROUTED = "ipv6/routing(segments=[2001:2::5,2001:2::6,2001:2::7])"
CARRIERS = (
    "ipv4",
    "ipv6",
    "vlan(id=100,pcp=3)/ipv4",
    "vlan(id=100,type=0x88a8)/vlan(id=5)/ipv6",
    "vlan(id=1,type=0x88a8)/vlan(id=2)/vlan(id=3)/ipv4",
    "mpls/ipv4",
    "mpls(label=1048575)/mpls(label=17,tc=5)/ipv6",
    "vlan/mpls/ipv4",
    "ipv4(options=rr(3))",
    "ipv4(options=[router_alert,nop,timestamp(2)])",
    "ipv4(options=lsrr(198.18.1.1,198.18.2.1))",
    "ipv4(options=[nop,ssrr(198.18.1.1)])",
    "ipv4(options=raw(0x830b04c6120101c6120201))",
    "ipv4(options=raw(0x8804abcd01))",
    "ipv6/hop_by_hop",
    "ipv6/hop_by_hop(options=router_alert)/dest_options(size=16)",
    "ipv6/dest_options(size=536)",
    "ipv6/fragment(id=77)",
    f"{ROUTED}",
    f"{ROUTED}/fragment",
    "ipv6(destination=2001:2::5)/routing(segments=[2001:2::5,2001:2::6])",
    "ipv6/routing(segments=[2001:2::5,2001:2::6],segments_left=0)",
    "ipv6/hop_by_hop/dest_options/routing(segments=[2001:2::9])/dest_options",
    "ipv4/ipv4",
    "ipv4/ipv6",
    "ipv6/ipv4",
    f"{ROUTED}/ipv6",
    "ipv4/gre/ipv4",
    "ipv4/gre(key=5,checksum=yes)/ipv6",
    "ipv6/gre(sequence=9)/ipv4",
    "ipv6/gre(checksum=yes,key=1,sequence=2)/eth/vlan/ipv4",
    "ipv4/gre/mpls/ipv6",
    "ipv4/udp/vxlan(vni=7)/eth/ipv4",
    "ipv4/udp(checksum=yes)/vxlan/eth/vlan(id=9)/ipv6",
    "ipv6/udp/vxlan/eth/ipv6",
    "ipv4/udp/gtpu(teid=1)/ipv4",
    "ipv6/udp/gtpu(teid=4294967295,sequence=6)/ipv6",
    "ipv6/routing(segments=[2001:2::5,2001:2::6],tlvs=0x0406000000000000)",
    "ipv4/udp/mpls/ipv4",
    "ipv4/udp/gre/ipv4",
    "ipv4/mpls/ipv6",
    "ipv4/udp/vxlan/eth/ipv6/udp/gtpu/ipv4",
    "vlan/ipv6/hop_by_hop/udp/vxlan/eth/mpls/ipv4(options=rr(1))/gre(checksum=yes)/ipv6/fragment",
)
LEAVES = (
    "udp",
    "tcp",
    "tcp(flags=SA,options=[mss(1460),nop,window_scale(7)])",
    "icmp",
    "icmp(code=0,id=7,sequence=65535)",
)
PROTECTED = (
    "ipv4/ah/udp",
    "ipv4/ah(icv=0x01020304)/ah/ipv6/tcp",
    "ipv6/hop_by_hop/ah(sequence=9)/dest_options/udp",
    f"{ROUTED}/ah/tcp",
    "ipv4/ah/icmp",
    "ipv4/esp",
    "ipv6/dest_options/esp(spi=2882343476,sequence=7)",
    "ipv6/ah/esp(sequence=2)",
    "ipv6/mobility",
    "ipv6/ah/mobility",
    f"{ROUTED}/mobility(type=7)",
    "ipv4/ipv6/mobility",
)
"""Authentication, ESP and mobility headers."""
EXTENDED = (
    "ipv4/udp/gtpu(next_extension=0x85,extensions=0x01100900)/ipv4/udp",
    "ipv6/udp/gtpu(sequence=7,next_extension=0xc0,extensions=0x0112348501100900)/ipv6/tcp",
    "ipv4/gre/ppp/ipv4/udp",
)
"""Extension headers of GTP-U, PPP."""
OF_A_FIELD = {
    "eth": "{}/ipv4/udp",
    "vlan": "{}/ipv6/udp",
    "arp": "{}",
    "mpls": "{}/mpls/ipv4/udp",
    "ipv4": "{}/udp",
    "ipv6": "{}/udp",
    "routing": "ipv6/{}/udp",
    "fragment": "ipv6/{}/udp",
    "ah": "ipv6/{}/udp",
    "esp": "ipv4/{}",
    "pause": "{}",
    "pfc": "{}",
    "mobility": "ipv6/{}",
    "udp": "ipv4/{}",
    "tcp": "ipv6/{}",
    "icmp": "ipv4/{}",
    "gre": "ipv4/{}/ipv4/udp",
    "vxlan": "ipv4/udp/{}/eth/ipv4/udp",
    "gtpu": "ipv4/udp/{}/ipv4/udp",
}
"""A stack for each header with fields of its own."""
LARGEST = {"vxlan.flags": 0xFB}
"""Without the bit by which a next protocol field follows (VXLAN-GPE)."""


@dataclass(frozen=True)
class Row:
    """A stack, its size, and the number that a field of one of its headers has."""

    text: str
    size: int
    header: str = ""
    field: str = ""
    number: int = 0
    at: int = 0
    """Number of the frame and of its flow."""

    def __str__(self) -> str:
        return f"{self.text}-{self.size}"

    @property
    def frame(self) -> DescribedFrame:
        return build(Stack.parse(self.text), self.size, ENDPOINTS, flows=1000)

    @property
    def data(self) -> bytes:
        """The frame as it is sent, without FCS."""
        return frame_bytes.written(self.frame, self.at, self.at)


def _sized(text: str, index: int) -> int:
    """From the smallest on, of odd and of even lengths."""
    return Stack.parse(text).min_size + (index * 37) % 101


def combined() -> Iterator[Row]:
    """Every carrier with every leaf, and those that scapy does not read."""
    texts = [*(f"{carrier}/{leaf}" for carrier in CARRIERS for leaf in LEAVES), *PROTECTED, *EXTENDED]
    return (Row(text, _sized(text, index)) for index, text in enumerate(texts))


def of_fields() -> Iterator[Row]:
    """Every field that does not follow from others."""
    index = 0
    for header, stack in OF_A_FIELD.items():
        needed = "segments=[2001:2::5]," if header == "routing" else ""
        for field in KINDS[header].fields:
            if field.name.startswith("_") or field.role is not Role.PLAIN or not field.bits:
                continue
            largest = LARGEST.get(f"{header}.{field.name}", (1 << field.bits) - 1)
            for number in dict.fromkeys((0, largest, int("10" * field.bits, 2) & (1 << field.bits) - 1)):
                text = stack.format(f"{header}({needed}{field.name}={written(header, field.name, number)})")
                index += 1
                yield Row(text, _sized(text, index), header, field.name, number)


def written(header: str, field: str, number: int) -> str:
    """A number in the form that the field has."""
    if field in ("source", "destination") and header in ("ipv4", "ipv6"):
        kind = IPv4Address if header == "ipv4" else IPv6Address
        return str(ip_address(kind(number)))
    if header == "arp" and field.endswith("_ip"):
        return str(IPv4Address(number))
    if (field in ("source", "destination") and header == "eth") or field.endswith("_mac"):
        return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))
    return str(number)


def of_varying() -> Iterator[Row]:
    """Frame 3 of stacks with fields that vary."""
    for text, header, field, number in (
        ("vlan(id=increment(10,20,step=5))/ipv4/udp", "vlan", "id", 10),
        ("vlan(pcp=decrement(7))/ipv4/udp", "vlan", "pcp", 4),
        ("mpls(label=increment(100,count=1000,by=flow))/ipv6/udp", "mpls", "label", 103),
        ("ipv4(dscp=list(1,2,3,46),source=random(198.18.0.0,198.18.255.255))/udp", "ipv4", "dscp", 46),
        ("ipv4(destination=increment(198.19.0.2,count=1000,by=flow))/udp", "ipv4", "destination", 0xC6130005),
        ("ipv4(ecn=increment(0))/udp(source=random(1024,65535))", "ipv4", "ecn", 3),
        ("ipv6(flow_label=random(1,0xfffff),source=increment(2001:2::2))/tcp", "ipv6", "flow_label", 0xFFFFF),
        ("ipv6/routing(segments=[2001:2::5,increment(2001:2::6)],tag=increment(5))/udp", "routing", "tag", 8),
        ("ipv6/fragment(id=random(0,0xffffffff))/icmp(sequence=increment(0))", "fragment", "id", 0xFFFFFFFF),
        ("ipv4/tcp(flags=list(S,SA,PA,FA),seq=increment(4294967290))", "tcp", "flags", 0x11),
        ("ipv4/udp(source=random(49152,65535))/vxlan(vni=increment(1,by=flow))/eth/ipv4/udp", "vxlan", "vni", 4),
        ("ipv6/udp/gtpu(teid=increment(1,by=flow))/ipv4(source=increment(198.18.0.2))/udp", "gtpu", "teid", 4),
        ("ipv4/gre(key=increment(1,by=flow),checksum=yes)/ipv6(dscp=increment(3))/tcp", "gre", "key", 4),
        ("eth(source=increment(02:00:00:00:00:01))/ipv4/icmp(id=decrement(9))", "eth", "source", 0x020000000004),
    ):
        yield Row(text, Stack.parse(text).min_size + 31, header, field, number, at=3)


ROWS = (*combined(), *of_fields(), *of_varying())
