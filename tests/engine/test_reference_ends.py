# SPDX-License-Identifier: Apache-2.0
"""The reference DUT as each end of the technologies of RFC 8219 between two capture files: inner and outer headers byte
by byte, as scapy builds them. The requests are those of the labs; the addresses that are expected stand here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, UDP, IPv6, Packet, Raw, rdpcap

from dutperf.lab.memif import Ports
from dutperf.lab.reference_ends import TECHNOLOGIES, ReferenceEnd

from .test_reference_dut import MACS, TESTERS, ip_bytes, running, until_all_were_received, write

SIZES = (1, 18, 101, 1200, 1230, 1400)
LEFT, RIGHT = 0, 1
POOL, FIRST_PORT = "198.19.254.129", 1024
B4, FAR = "2001:2:0:3000::b4", "2001:2:0:4000::b"


@dataclass(frozen=True)
class Hosts:
    """Inner source and destination of what comes from the left, with the ports."""

    left: str = "198.18.0.2"
    right: str = "198.19.0.2"
    left_port: int = 49184
    right_port: int = 7

    def packet(self, direction: int, ttl: int, data: bytes, **fields: Any) -> Packet:
        """A packet from the left or the right."""
        source, destination = (self.left, self.right)[:: 1 if direction == LEFT else -1]
        ports = (self.left_port, self.right_port)[:: 1 if direction == LEFT else -1]
        header = (
            IPv6(src=source, dst=destination, hlim=ttl, **fields)
            if ":" in source
            else IP(src=source, dst=destination, ttl=ttl, **fields)
        )
        return header / UDP(sport=ports[0], dport=ports[1]) / Raw(data)


@dataclass(frozen=True)
class Row:
    """A technology, and what is between its ends."""

    lab: str
    near: str
    """Address of the left end, or of the left host between translators."""
    far: str
    hosts: Hosts = Hosts()
    options: tuple[tuple[str, str], ...] = ()

    @property
    def translates(self) -> bool:
        return TECHNOLOGIES[self.lab].group == "translator"

    def between(self, direction: int, inner: Packet, hops: int) -> Packet:
        """The packet between the ends: ``inner`` within another one, or its translation with so many hops left."""
        source, destination = (self.near, self.far)[:: 1 if direction == LEFT else -1]
        if self.translates:
            return IPv6(src=source, dst=destination, hlim=hops, tc=inner.tos, fl=0) / inner[UDP].copy()
        if ":" in source:
            return IPv6(src=source, dst=destination, hlim=64, tc=inner.tos, fl=0) / inner
        return IP(src=source, dst=destination, ttl=64, tos=inner.tc, flags="DF", id=0) / inner


PART = (("psid_length", "8"), ("psid", "52"))
SHARED = Hosts(left_port=64722)
"""The last ports of PSID 0x34 are 64720 to 64723 (RFC 7597 5.1, example)."""
ROWS = [
    Row("464xlat", "2001:2:0:3000::2", "2001:2:0:6464::c613:2"),
    Row("464xlat", "2001:2:0:3000::702", "2001:2:0:6464::c613:ff02", Hosts("198.18.7.2", "198.19.255.2")),
    Row("map-t", "2001:2:0:3000:200:c612:2:0", "2001:2:0:6464::c613:2"),
    Row("map-t", "2001:2:0:3007:200:c612:702:0", "2001:2:0:6464::c613:ff02", Hosts("198.18.7.2", "198.19.255.2")),
    Row("map-t", "2001:2:0:3234:0:c612:2:34", "2001:2:0:6464::c613:2", SHARED, PART),
    Row("ds-lite", B4, FAR),
    Row("map-e", "2001:2:0:3000:0:c612::", FAR),
    Row("map-e", "2001:2:0:3000:0:c612::", FAR, Hosts("198.18.255.2", "198.19.7.2")),
    Row("map-e", "2001:2:0:3234:0:c612:2:34", FAR, SHARED, PART),
    Row("lw4o6", B4, FAR),
    Row("lw4o6", B4, FAR, Hosts("198.18.255.2", "198.19.7.2")),
    Row("lw4o6", B4, FAR, Hosts(left_port=52 << 8), (*PART, ("psid_offset", "0"))),
    Row("6rd", "198.18.64.128", "198.18.64.254", Hosts("2001:2::2", "2001:2:0:8000::2")),
    Row("6rd", "198.18.64.128", "198.18.64.254", Hosts("2001:2:0:ff::2", "2001:2:0:80ff::2")),
]


def request(row: Row, place: int, tmp_path: Path) -> dict[str, Any]:
    """The lab's request, for ports that are files."""
    technology = TECHNOLOGIES[row.lab]
    options = technology.options.model_validate(dict(row.options))
    ports = Ports(
        *(f"vdev:net_pcap_{side},rx_pcap={tmp_path / side}-in.pcap,tx_pcap={tmp_path / side}-out.pcap" for side in MACS)
    )
    asked = ReferenceEnd(technology, technology.domain(options), place).request(ports, options, shares_core=False)
    for side in MACS:
        asked[side] |= {"mac": MACS[side], "gateway_mac": TESTERS[side]}
    return asked | {"memory": "no_huge_pages"}


def passed(row: Row, place: int, packets: dict[str, list[Packet]], tmp_path: Path) -> dict[str, Any]:
    """The counters after ``packets`` came in."""
    for side, arriving in packets.items():
        write(tmp_path, side, arriving)
    with running() as process:
        process.send({"id": 1, "method": "open", "params": request(row, place, tmp_path)})
        assert process.receive(20)["event"] == "opened"
        expected = {"forward": len(packets["left"]), "reverse": len(packets["right"])}
        return until_all_were_received(process, expected)


def left(tmp_path: Path, side: str) -> list[bytes]:
    """The IP packets that left by one side."""
    return [ip_bytes(frame) for frame in rdpcap(str(tmp_path / f"{side}-out.pcap"))]


def native(row: Row, direction: int, ttl: int, data: bytes, number: int, *, was_translated: bool) -> Packet:
    """A packet outside of the ends; one that was translated back has another identification."""
    if ":" in row.hosts.left:
        return row.hosts.packet(direction, ttl, data, tc=5)
    if was_translated:
        is_long = len(data) + 28 > 1260
        flags = {"flags": "DF", "id": 0} if is_long else {"flags": 0, "id": number}
        return row.hosts.packet(direction, ttl, data, tos=5, **flags)
    return row.hosts.packet(direction, ttl, data, tos=5, flags="DF", id=number)


@pytest.mark.parametrize("place", [LEFT, RIGHT], ids=["left end", "right end"])
@pytest.mark.parametrize("row", [row for row in ROWS if row.lab != "ds-lite"], ids=lambda row: f"{row.lab} {row.near}")
def test_each_end_makes_what_scapy_builds(row: Row, place: int, tmp_path: Path) -> None:
    outward, inward = place, 1 - place  # from the tester at this end, and to it
    arriving: dict[int, list[Packet]] = {outward: [], inward: []}
    expected: dict[int, list[bytes]] = {outward: [], inward: []}
    for number, size in enumerate(SIZES):
        data = bytes(number + at % 7 for at in range(size))
        sent = native(row, outward, 64, data, number, was_translated=False)
        arriving[outward].append(sent)
        inner = native(row, outward, 63, data, number, was_translated=False)
        expected[outward].append(bytes(row.between(outward, inner, 63)))
        inner = native(row, inward, 63, data, number, was_translated=False)
        arriving[inward].append(row.between(inward, inner, 63))
        translated = len([one for one in SIZES[:number] if one + 28 <= 1260])
        received = native(
            row, inward, 62, data, translated if row.translates else number, was_translated=row.translates
        )
        expected[inward].append(bytes(received))
    counters = passed(row, place, {"left": arriving[LEFT], "right": arriving[RIGHT]}, tmp_path)
    assert (left(tmp_path, "right"), left(tmp_path, "left")) == (expected[LEFT], expected[RIGHT])
    kind = "translated" if row.translates else "tunnelled"
    assert [counters[way][kind] for way in ("forward", "reverse")] == [len(SIZES), len(SIZES)]


def test_a_b4_and_an_aftr_make_what_scapy_builds(tmp_path: Path) -> None:
    """On the left of the B4, between both, and on the right of the AFTR."""
    (row,) = [row for row in ROWS if row.lab == "ds-lite"]
    to_right: list[list[Packet]] = []
    to_left: list[list[Packet]] = []
    for number, size in enumerate(SIZES):
        inside, outside = Hosts(left_port=10_000 + number), Hosts(left=POOL, left_port=FIRST_PORT + number)
        fields = {"data": bytes(size), "tos": 3, "flags": "DF", "id": number}
        out, back = inside.packet(LEFT, 63, **fields), inside.packet(RIGHT, 63, **fields)
        to_right.append(
            [inside.packet(LEFT, 64, **fields), row.between(LEFT, out, 63), outside.packet(LEFT, 62, **fields)]
        )
        to_left.append(
            [inside.packet(RIGHT, 62, **fields), row.between(RIGHT, back, 63), outside.packet(RIGHT, 64, **fields)]
        )
    for place in (LEFT, RIGHT):
        here = tmp_path / str(place)
        here.mkdir()
        came = {"left": [one[place] for one in to_right], "right": [one[place + 1] for one in to_left]}
        counters = passed(row, place, came, here)
        assert left(here, "right") == [bytes(one[place + 1]) for one in to_right]
        assert left(here, "left") == [bytes(one[place]) for one in to_left]
        assert counters["forward"]["tunnelled"] == counters["reverse"]["tunnelled"] == len(SIZES)
    assert counters["connections"]["created"] == counters["forward"]["translated"] == len(SIZES)


MAP_E = next(row for row in ROWS if row.lab == "map-e" and row.options)
LOST: list[tuple[str, int, int, Callable[[Packet], Packet]]] = [
    # cause, place, direction, what is wrong with a packet of the native side or of the link
    ("wrong_source", LEFT, LEFT, lambda _: Hosts(left_port=64724).packet(LEFT, 64, b"data")),
    ("wrong_source", LEFT, LEFT, lambda _: Hosts("198.18.0.3", left_port=64722).packet(LEFT, 64, b"data")),
    ("wrong_destination", LEFT, RIGHT, lambda _: IPv6(src=FAR, dst=MAP_E.near) / Hosts().packet(RIGHT, 64, b"data")),
    ("wrong_source", LEFT, RIGHT, lambda link: IPv6(src=B4, dst=MAP_E.near) / link[IP]),
    ("wrong_source", RIGHT, LEFT, lambda _: IPv6(src=MAP_E.near, dst=FAR) / Hosts().packet(LEFT, 64, b"data")),
    ("unsupported", RIGHT, LEFT, lambda link: IPv6(src=MAP_E.near, dst=FAR, nh=47) / Raw(bytes(link[IP]))),
    ("not_routable", RIGHT, RIGHT, lambda _: Hosts(left_port=80).packet(RIGHT, 64, b"data")),
    ("too_long", RIGHT, RIGHT, lambda _: SHARED.packet(RIGHT, 64, bytes(1480))),
]


@pytest.mark.parametrize(("cause", "place", "direction", "spoil"), LOST)
def test_what_an_end_drops_is_counted_by_cause(
    cause: str, place: int, direction: int, spoil: Callable[[Packet], Packet], tmp_path: Path
) -> None:
    link = MAP_E.between(direction, native(MAP_E, direction, 63, b"data", 1, was_translated=False), 63)
    packet = spoil(link)
    packets = {"left": [packet], "right": []} if direction == LEFT else {"left": [], "right": [packet]}
    counters = passed(MAP_E, place, packets, tmp_path)
    lost = counters[("forward", "reverse")[direction]]["lost"]
    assert {name: count for name, count in lost.items() if count} == {cause: 1}


def refused(**changed: Any) -> dict[str, Any]:
    """A tunnel that is not possible."""
    tunnel = {"routes4": ["198.19.0.0/16"], "routes6": [B4], "mappings": [{"ipv4": "0.0.0.0/0", "ipv6": FAR}]}
    sides = {"left": {"port": "null"}, "right": {"port": "null", "ipv6": "2001:2:0:4000::1"}}
    return {**sides, "to_left": {}, "to_right": {}, "tunnel": tunnel | changed}


RULE = {"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/48"}
BINDING = {"ipv4": "198.18.0.2", "ipv6": B4, "psid": 1, "psid_length": 4}
BAD_REQUESTS = [
    pytest.param({"routes6": ["2001:2:0:4000::1"]}, "params.tunnel", id="an end that is a port's address"),
    pytest.param({"over": "ipv4", "rules": [RULE]}, "params.tunnel.rules", id="6rd has no MAP rules"),
    pytest.param({"over": "gre"}, "params.tunnel.over", id="no such tunnel"),
    pytest.param({"rules": [RULE | {"ea_length": 25}]}, "params.tunnel.rules.0.ea_length", id="a PSID of 17 bits"),
    pytest.param(
        {"rules": [RULE | {"ea_length": 20, "psid_offset": 13}]},
        "params.tunnel.rules.0.ea_length",
        id="20 bits of a port",
    ),
    pytest.param({"rules": [BINDING | {"psid": 16}]}, "params.tunnel.rules.0.psid", id="a PSID of 5 bits"),
    pytest.param(
        {"rules": [BINDING, BINDING | {"psid": 2, "psid_length": 5}]},
        "params.tunnel.rules.1.ipv4",
        id="an address shared in two ways",
    ),
    pytest.param({"local": B4}, "params.tunnel.local", id="an unknown key"),
]


@pytest.mark.parametrize(("changed", "field"), BAD_REQUESTS)
def test_a_tunnel_that_cannot_be_is_named(changed: dict[str, Any], field: str) -> None:
    with running() as process:
        process.send({"id": 7, "method": "open", "params": refused(**changed)})
        answer = process.receive(20)
    assert (answer["event"], answer["field"]) == ("error", field)
