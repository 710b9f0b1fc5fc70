# SPDX-License-Identifier: Apache-2.0
"""A DUT of encapsulation alone: its tunnel ends at the tester. Frames are read by scapy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet

from dutperf import traffic
from dutperf.model import FRAME_SIZE, Case, DescribedFrame, Direction, Load, Stream
from dutperf.procedures.throughput import Throughput
from dutperf.setup.conditions import Usual
from dutperf.setup.configuration import ConfigError, Setup, parse
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import measure, plan

B4, AFTR = "2001:2:0:4000::2", "2001:2:0:4000::1"
LEFT4 = {"port": "null", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"}
LEFT6 = {"port": "null", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}
OVER6 = {"port": "null", "version": 4, "ipv4": "198.19.0.2/24", "ipv6": f"{B4}/64", "gateway6": AFTR}
RIGHT4 = {"port": "null", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
OVER4 = {"port": "null", "version": 6, "ipv6": "2001:2:0:8000::2/64", "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
TO_AFTR = f"ipv6(destination={AFTR})"
MAC, OTHER_MAC = "02:00:00:00:40:01", "02:00:00:00:40:02"

TUNNELS: list[tuple[str, dict[str, Any], dict[str, Any], str, list[type[Packet]], int]] = [
    # technology, left, right, tunnel, the layers behind Ethernet, overhead
    ("DS-Lite, lw4o6, MAP-E", LEFT4, OVER6, TO_AFTR, [IPv6, IP, UDP], 40),
    ("6rd", LEFT6, OVER4, "ipv4(destination=198.19.0.1)", [IP, IPv6, UDP], 20),
    ("GRE over IPv6", LEFT4, OVER6, f"{TO_AFTR}/gre", [IPv6, GRE, IP, UDP], 44),
    ("GRE over IPv4", LEFT6, OVER4, "ipv4(destination=198.19.0.1)/gre(key=7)", [IP, GRE, IPv6, UDP], 28),
    (
        "SRv6",
        LEFT4,
        OVER6,
        f"{TO_AFTR}/routing(segments=[{AFTR}])",
        [IPv6, IPv6ExtHdrSegmentRouting, IP, UDP],
        64,
    ),
    (
        "VXLAN",
        LEFT4,
        OVER6,
        f"{TO_AFTR}/udp/vxlan(vni=100)/eth(destination={MAC},source={OTHER_MAC})",
        [IPv6, UDP, VXLAN, Ether, IP, UDP],
        70,
    ),
]
IDS = [row[0] for row in TUNNELS]


def setup_of(left: dict[str, Any], right: dict[str, Any], tunnel: str | None, **more: Any) -> Setup:
    ports = {"left": {**left, "port": "af_packet:tl"}, "right": {**right, "port": "af_packet:tr"}}
    if tunnel is not None:
        ports["right"]["tunnel"] = tunnel
    return parse({**ports, **more}, "test")


def streams(setup: Setup, size: int, **conditions: Any) -> dict[Direction, Stream]:
    kind = traffic.of(setup, Throughput(frame_sizes=(size,), **conditions))
    kind.check()
    return kind.trial(Case({FRAME_SIZE: size}), Load.fps(1000), 1).streams()


def layers_of(frame: DescribedFrame) -> list[Packet]:
    """Behind Ethernet, with the checksums that the engine computes, as scapy reads them."""
    head = bytearray.fromhex(frame.bytes)
    head += bytes(frame.size - 4 - len(head))
    for one in frame.checksums:
        summed = bytes(head[first + at] for first, last in one.covers for at in range(last - first))
        words = (summed[at : at + 2].ljust(2, b"\0") for at in range(0, len(summed), 2))
        total = (one.plus or 0) + sum(int.from_bytes(word, "big") for word in words)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        head[one.at : one.at + 2] = ((~total & 0xFFFF) or (0xFFFF if one.zero_as_ones else 0)).to_bytes(2, "big")
    found, packet = [], Ether(bytes(head)).payload
    while packet and type(packet).__name__ not in ("Raw", "Padding", "NoPayload"):
        found.append(packet)
        packet = packet.payload
    return found


@pytest.mark.parametrize("size", [64, 512, 1518])
@pytest.mark.parametrize(("_name", "left", "right", "tunnel", "layers", "overhead"), TUNNELS, ids=IDS)
def test_frames_of_the_tunnel_s_side_are_byte_exact(
    _name: str,
    left: dict[str, Any],
    right: dict[str, Any],
    tunnel: str,
    layers: list[type[Packet]],
    overhead: int,
    size: int,
) -> None:
    size += 20 * (left["version"] == 6)
    both = streams(setup_of(left, right, tunnel), size)
    [native], [tunnelled] = both[Direction.FORWARD].frames, both[Direction.REVERSE].frames
    assert (native.size, tunnelled.size) == (size, size + overhead)
    found = layers_of(tunnelled)
    assert [type(one) for one in found] == layers
    outer, inner = found[0], found[-2]
    own = ("ipv6", "ipv4") if type(outer) is IPv6 else ("ipv4", "ipv6")
    assert (outer.src, outer.dst) == (right[own[0]].partition("/")[0], AFTR if type(outer) is IPv6 else "198.19.0.1")
    assert (inner.src, inner.dst) == tuple(one[own[1]].partition("/")[0] for one in (right, left))
    assert len(bytes(outer)) == tunnelled.size - 18
    again = outer.copy()
    for number in range(len(layers)):
        layer: Any = again.getlayer(number)
        for name in {"len", "plen", "chksum"} & layer.fields.keys():
            layer.delfieldval(name)
    assert bytes(again) == bytes(outer), "lengths and checksums as scapy computes them"
    assert tunnelled.destination_mac == ("next_hop6" if type(outer) is IPv6 else "next_hop4")
    assert native.destination_mac == ("next_hop6" if left["version"] == 6 else "next_hop4")


def test_what_varies_is_within_the_tunnel() -> None:
    both = streams(setup_of(LEFT4, OVER6, TO_AFTR), 128, networks=256)
    [frame] = both[Direction.REVERSE].frames
    network = next(field for field in frame.fields if field.bits == 8)
    assert network.bit == 8 * (14 + 40 + 16 + 2), "third byte of the inner destination"
    assert both[Direction.FORWARD].frames[0].fields[0].bit == 8 * (14 + 16 + 2)


def test_many_ends_of_tunnels_are_flows_of_the_outer_header() -> None:
    ends = f"ipv6(source=increment({B4},count=500,by=flow),destination={AFTR})"
    inside = "ipv4(source=increment(198.19.0.2,count=500,by=flow))/udp"
    setup = setup_of(LEFT4 | {"frame": "ipv4/udp"}, OVER6 | {"frame": inside}, ends)
    [frame] = streams(setup, 128, flows=500)[Direction.REVERSE].frames
    by_flow = {(one.bit // 8, one.count) for one in frame.fields if one.by == "flow"}
    assert {(14 + 8, "500"), (14 + 40 + 12, "500")} <= by_flow


def test_native_ipv6_stays_outside() -> None:
    setup = setup_of(LEFT4 | {"ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}, OVER6, TO_AFTR)
    frames = streams(setup, 128, foreground="2:1")[Direction.REVERSE].frames
    assert [[type(one) for one in layers_of(frame)] for frame in frames] == [[IPv6, IP, UDP], [IPv6, UDP]]


@pytest.mark.parametrize(
    ("tunnel", "conditions", "forward", "reverse"),
    [
        (TO_AFTR, {}, [True], [False]),
        (None, {"frame": "ip/udp"}, [None], [None]),
        (TO_AFTR, {"frame": "ip/gre/ip/udp"}, [True], [None]),
        (TO_AFTR, {"foreground": "2:1"}, [True, None], [False, None]),
    ],
)
def test_frames_arrive_in_the_tunnel_of_the_side_where_they_arrive(
    tunnel: str | None, conditions: dict[str, Any], forward: list[bool | None], reverse: list[bool | None]
) -> None:
    right = OVER6 | {"gateway4": "198.19.0.1"}
    setup = setup_of(LEFT4 | {"ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}, right, tunnel)
    both = streams(setup, 256, **conditions)
    for direction, wanted in ((Direction.FORWARD, forward), (Direction.REVERSE, reverse)):
        assert [frame.arrives_encapsulated for frame in both[direction].frames] == wanted


def test_the_theoretical_maximum_is_that_of_the_longer_frames() -> None:
    """RFC 8219 appendix A."""
    setup = setup_of(LEFT4, OVER6, TO_AFTR, media_mbps=1000)
    kind = traffic.of(setup, Usual(frame_sizes=(64,)))
    case = Case({FRAME_SIZE: 64})
    assert kind.maximum_fps(case) == 1_000_000_000 // (8 * (64 + 40 + 20))
    assert kind.longest_frame(case) == 104


def test_a_dut_that_takes_nothing_out_of_the_tunnel_is_not_blamed_without_a_hint(tmp_path: Path) -> None:
    setup = setup_of(LEFT4, OVER6, TO_AFTR)
    dead = SimulatedTester(SimulatedDut(dead_directions=frozenset({Direction.REVERSE})))
    asked = plan(100_000, repetitions=1)
    tunnelled = replace(asked, traffic=traffic.of(setup, asked.conditions))
    [point] = measure(dead, tunnelled, tmp_path).points
    assert "in the reverse direction" in point.message
    assert "reverse, frames go into right.tunnel: does the DUT's end take them" in point.message


@pytest.mark.parametrize(
    ("right", "tunnel", "words"),
    [
        (OVER6, "ipv6", "right.tunnel: .*needs the address of the tunnel's end at the DUT"),
        (OVER6, "vlan(id=3)/ipv6(destination=2001:2::1)", "right.tunnel: .*should begin with ipv4 or ipv6"),
        (OVER6, f"{TO_AFTR}/udp", "right.tunnel: .*ends with udp, which carries no IP packet"),
        (OVER6, "ipv6(destination=2001:2::1", "right.tunnel: "),
        (OVER4 | {"version": 4}, TO_AFTR, r"right.gateway6: is missing: right has a tunnel over IPv6; give it"),
        (
            {name: value for name, value in OVER6.items() if name != "gateway6"},
            TO_AFTR,
            r"right.gateway6: is missing: left has a gateway",
        ),
        (
            RIGHT4,
            TO_AFTR,
            "right.ipv6: is missing: right has a tunnel and needs an IPv6 address",
        ),
    ],
)
def test_a_tunnel_that_cannot_be_is_refused(right: dict[str, Any], tunnel: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        setup_of(LEFT4, right, tunnel)


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"frame_sizes": (9216,)}, "9256 is not possible: frames have at most 9216"),
        ({"frame": "vlan(id=3)/ip/udp"}, "VLAN tags do not go into a tunnel"),
        ({"frame": f"bytes(data=0x{'00' * 12}88b5{'00' * 50})"}, "a frame in bytes does not go into a tunnel"),
    ],
)
def test_what_does_not_go_into_a_tunnel_is_refused(conditions: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        streams(setup_of(LEFT4, OVER6, TO_AFTR), **{"size": conditions.pop("frame_sizes", (128,))[0], **conditions})


def test_connections_go_through_a_tunnel() -> None:
    """Their fields are those of the inner packets."""
    setup = setup_of(LEFT4, OVER6, TO_AFTR)
    both = streams(setup, 128, connections=10)
    for way, modes in ((Direction.FORWARD, {"connection"}), (Direction.REVERSE, {"learned"})):
        [frame] = both[way].frames
        ports = [one for one in frame.fields if one.part in ("source_port", "destination_port")]
        assert {one.mode for one in frame.fields} == modes
        assert frame.tag_at == (14 + 20 + 8 if way is Direction.FORWARD else 14 + 40 + 20 + 8)
        assert [one.bit // 8 for one in ports] == [frame.tag_at - 8, frame.tag_at - 6]


def test_connections_are_not_told_apart_by_their_tunnel() -> None:
    setup = setup_of(LEFT4, OVER6, f"ipv6(source=increment(2001:2:0:4000::2,count=50,by=flow),destination={AFTR})")
    streams(setup, 128, flows=50)
    with pytest.raises(ConfigError, match=r"right\.tunnel.*cannot vary by flow"):
        streams(setup, 128, connections=10)
