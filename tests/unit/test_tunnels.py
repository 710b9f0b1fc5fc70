# SPDX-License-Identifier: Apache-2.0
"""Kinds of tunnels of the labs: addresses by the rules of their RFCs, overheads, and what goes into a guest."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

import pytest

from dutperf.lab import LabError, check, nptv6
from dutperf.lab.addresses import LEFT, NETWORKS
from dutperf.lab.encapsulation import beside_one, cables
from dutperf.lab.guest.namespace import GuestNamespace
from dutperf.lab.site import Site
from dutperf.lab.tunnels import ENDS, KINDS, SIXRD, SIXRD4, SIXRD_CES, lw4o6_customer, map_e_customer
from dutperf.setup import configuration

OVERHEADS = {
    "srv6": 64,
    "vxlan": 70,
    "ds-lite": 40,
    "lw4o6": 40,
    "map-e": 40,
    "6rd": 20,
    "gre": 24,
    "ipip": 20,
    "wireguard": 80,
    "jool-464xlat": 20,
}


def test_between_the_ends_frames_are_longer_by_the_headers() -> None:
    assert {name: kind.overhead for name, kind in KINDS.items()} == OVERHEADS


@pytest.mark.parametrize("network", [0, 1, 255])
def test_a_ce_of_map_e_has_the_address_that_its_rule_gives(network: int) -> None:
    """RFC 7597 sections 5.2 and 6: rule prefix, EA bits (those of the IPv4 network behind the rule's), subnet; then 16
    bits of 0, the IPv4 network, PSID."""
    inner, outer = map_e_customer(network)
    net = ip_network(inner)
    rule6, rule4, ea_bits = IPv6Network("2001:2:0:2000::/56"), ip_network("198.18.0.0/16"), 8
    assert net.prefixlen == rule4.prefixlen + ea_bits
    ea = int(net.network_address) >> (32 - net.prefixlen) & ((1 << ea_bits) - 1)
    own = int(rule6.network_address) | ea << (128 - rule6.prefixlen - ea_bits)
    assert IPv6Address(outer) == IPv6Address(own | int(net.network_address) << 16)


def test_the_rows_of_the_binding_table_are_those_of_the_tester_s_addresses() -> None:
    rows = dict(map(lw4o6_customer, range(NETWORKS)))
    assert len(set(rows.values())) == NETWORKS
    assert set(rows) == {f"198.18.{network}.2/32" for network in range(NETWORKS)}


@pytest.mark.parametrize("network", [0, 255])
def test_a_network_behind_6rd_gives_the_address_of_its_ce(network: int) -> None:
    """RFC 5969 section 4: the 6rd prefix, then the bits of the CE's IPv4 address behind those that all have."""
    prefix, common = IPv6Network(SIXRD), ip_network(SIXRD4)
    behind = IPv6Address(f"2001:2:0:{network:x}::2")
    assert behind in prefix
    assert IPv6Network(LEFT.net6).subnet_of(prefix)
    suffix = int(behind) >> 64 & ((1 << 32 - common.prefixlen) - 1)
    ce = IPv4Address(int(common.network_address) | suffix)
    assert ce == IPv4Address("198.18.128.0") + network
    assert ce in ip_network(SIXRD_CES)


def test_the_translated_prefix_leaves_checksums_alone() -> None:
    """RFC 6296 section 3.1: the sums of the words of both addresses are equal in ones' complement."""

    def words(address: str) -> int:
        return sum(int.from_bytes(IPv6Address(address).packed[at : at + 2], "big") for at in range(0, 16, 2))

    assert words(nptv6.OUTSIDE) % 0xFFFF == words(LEFT.tester6) % 0xFFFF
    assert IPv6Address(nptv6.OUTSIDE) in IPv6Network(nptv6.OUTSIDE_NET)


ALONE = [
    (name, end.number)
    for name, kind in KINDS.items()
    for end in ENDS
    if (kind.headers_to_right if end.number == 2 else isinstance(kind.headers, str))
]


@pytest.mark.parametrize(("name", "number"), ALONE)
def test_the_tester_can_be_the_other_end(name: str, number: int) -> None:
    kind = KINDS[name]
    sides = zip(("left", "right"), ("tl", "tr"), beside_one(kind, ENDS[number - 1]), strict=True)
    setup = configuration.parse({side: {"port": f"af_packet:{port}", **given} for side, port, given in sides}, "test")
    assert setup.tunnel_overhead == kind.overhead


def test_what_is_done_in_a_guest_s_namespace_is_written_down_for_its_set_up() -> None:
    site, lines = Site.draft("ipip"), list[str]()
    near, far = (GuestNamespace(name, site, lines) for name in ("left", "right"))
    near.create()
    near.ip("addr add 198.18.0.1/24 dev dl")
    far.nft("table ip t { }\n")
    assert lines == [
        "/usr/bin/ip netns add left\n",
        "/usr/bin/ip netns exec left ip -batch - << 'END'\naddr add 198.18.0.1/24 dev dl\nEND\n",
        "/usr/bin/ip netns exec right nft -f - << 'END'\ntable ip t { }\nEND\n",
    ]
    *_, socket, script, _ = far.command(["nft", "list", "counters"])
    assert (socket, script) == (
        str(site.directory / "shell"),
        "set -e\n/usr/bin/ip netns exec right nft list counters",
    )
    assert len(cables([near, far], 1504, 1524)) == 3
    assert len(cables([near], 1524, 1524)) == 2


def test_options_of_the_aftr_need_it() -> None:
    check("ds-lite", {"table": "4096", "ports": "random"})
    check("ds-lite", {"end": "left", "reset_s": "1", "accelerator": "tcg"})
    with pytest.raises(LabError, match="option table is the AFTR's, which end=left leaves out"):
        check("ds-lite", {"end": "left", "table": "4096"})
