# SPDX-License-Identifier: Apache-2.0
"""Messages of PTP in place of tagged frames, as scapy reads them."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.contrib.ptp_v2 import PTP
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from dutperf.frames import Stack, build
from dutperf.model import Direction, Stamping, Stream, Tagged
from dutperf.model.described_frame import FCS_SIZE, TAG_SIZE
from dutperf.traffic.ptp_messages import messages_of, with_ptp
from frame_bytes import written
from frame_rows import ENDPOINTS
from plans import frame, stream, trial

SYNC = 44
"""Bytes of the message (IEEE 1588-2008 13.6)."""
IPV6_MIN, IPV4_MIN = 128, 108
"""Sizes that a message with its tag needs, in bytes with FCS."""


def described(headers: str, size: int = 200) -> Stream:
    return Stream(rate_fps=100, frames=(build(Stack.parse(headers), size, ENDPOINTS),))


def dissected(of: Stream) -> tuple[Packet, int]:
    """The message, and its size with FCS."""
    [message] = messages_of(of)
    assert message.fields == ()
    return Ether(written(message)), message.size


@pytest.mark.parametrize(
    ("of", "layers"),
    [
        (stream(4, 128, 100), (Ether, IP, UDP)),
        (stream(6, 200, 100), (Ether, IPv6, UDP)),
        (described("ipv4/udp"), (Ether, IP, UDP)),
        (described("vlan(id=5,pcp=3)/ipv6/hop_by_hop/udp"), (Ether, Dot1Q, IPv6, UDP)),
        (described("ipv4/gre/ipv6/udp"), (Ether, IP, UDP)),
    ],
)
def test_a_message_goes_where_the_frames_go(of: Stream, layers: tuple[type[Packet], ...]) -> None:
    packet, size = dissected(of)
    found = tuple(type(layer) for layer in (packet.getlayer(n) for n in range(len(layers))))
    assert found == layers
    assert (packet[UDP].sport, packet[UDP].dport) == (319, 319)
    sync = PTP(bytes(packet[UDP].payload))
    assert (sync.version, sync.messageType, sync.messageLength) == (2, 0, SYNC)
    assert len(bytes(packet[UDP].payload)) == packet[UDP].len - 8
    assert size == of.sizes[0]


def test_addresses_and_the_class_of_service_are_those_of_the_frames() -> None:
    ipv4, _ = dissected(described("vlan(id=9,pcp=6)/ipv4(dscp=46,ttl=3,destination=198.19.7.7)/udp"))
    assert (ipv4[Dot1Q].vlan, ipv4[Dot1Q].prio) == (9, 6)
    assert (ipv4[IP].src, ipv4[IP].dst, ipv4[IP].tos, ipv4[IP].ttl) == ("198.18.0.2", "198.19.7.7", 46 << 2, 3)
    ipv6, _ = dissected(described("ipv6(dscp=46,hop_limit=3)/udp"))
    assert (ipv6[IPv6].tc, ipv6[IPv6].hlim, ipv6[IPv6].dst) == (46 << 2, 3, "2001:2:0:8000::2")
    macs, _ = dissected(described("eth(destination=02:00:00:00:00:09,source=02:00:00:00:00:08)/ipv4/udp"))
    assert (macs.dst, macs.src) == ("02:00:00:00:00:09", "02:00:00:00:00:08")


@pytest.mark.parametrize("headers", ["eth", "vlan(id=5)", "mpls/ipv4/udp"])
def test_frames_without_an_ip_header_have_messages_in_ethernet(headers: str) -> None:
    packet, size = dissected(described(headers))
    link = packet.getlayer(Dot1Q) or packet
    assert link.type == 0x88F7
    assert PTP(bytes(link.payload)).messageLength == SYNC
    assert size == 200


def test_each_kind_of_frames_has_a_message_of_its_own() -> None:
    kinds = tuple(
        build(Stack.parse(f"ipv4(dscp={dscp})/udp"), size, ENDPOINTS) for dscp, size in ((0, 1518), (46, 128))
    )
    each = messages_of(Stream(rate_fps=100, frames=kinds))
    assert [(one.size, Ether(written(one))[IP].tos >> 2) for one in each] == [(1518, 0), (128, 46)]
    mixed = messages_of(stream(4, 128, 100, background=frame(6, 148), n=2, m=1))
    assert [Ether(written(one)).payload.version for one in mixed] == [4, 6]


@pytest.mark.parametrize(("version", "size"), [(4, IPV4_MIN), (6, IPV6_MIN)])
def test_short_frames_have_messages_as_long_as_they_need(version: int, size: int) -> None:
    assert dissected(stream(version, 84, 100))[1] == size == SYNC + TAG_SIZE + FCS_SIZE + 14 + 8 + (20, 40)[version > 4]


@pytest.mark.parametrize(
    ("members", "has_messages"),
    [({"stamps": "card"}, True), ({"stamps": "kernel"}, False), ({"stamps": "auto"}, False), ({}, False)],
)
def test_only_cards_need_messages(members: dict[str, Any], has_messages: bool) -> None:
    tagged = Tagged(count=10, after_ns=0)
    planned = with_ptp(trial().model_copy(update={"stamping": Stamping.TAGGED, "tagged": tagged, **members}))
    assert [bool(one.ptp) for one in planned.all_streams().values()] == 2 * [has_messages]
    assert [("ptp" in planned.request()[way.value]) for way in (Direction.FORWARD, Direction.REVERSE)] == 2 * [
        has_messages
    ]


def test_streams_with_rates_of_their_own_have_messages_too() -> None:
    others = {Direction("forward:voice"): described("ipv4(dscp=46)/udp")}
    planned = with_ptp(trial().model_copy(update={"stamps": "card", "other_streams": others}))
    assert all(bool(one.ptp) for one in planned.all_streams().values())
    alone = with_ptp(planned.model_copy(update={"forward": None, "reverse": None}))
    assert all(bool(one.ptp) for one in alone.all_streams().values())
    assert set(alone.all_streams()) == set(others)
