# SPDX-License-Identifier: Apache-2.0
"""Frames that are given as bytes: where the tag goes, what is refused; scapy finds every checksum as it was."""

from __future__ import annotations

import pytest
from scapy.contrib.gtp import GTP_U_Header
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

import frame_bytes
from dutperf.errors import DutperfError
from dutperf.frames import FrameError, Template, build
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ParameterError

OUTER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
V4, V6 = IP(src="198.18.0.2", dst="198.19.0.2"), IPv6(src="2001:2::2", dst="2001:2:0:8000::2")
LOAD = Raw(bytes(range(7, 68)))
PACKETS: list[Packet] = [
    OUTER / V4 / UDP(sport=5, dport=6) / LOAD,
    OUTER / V4 / UDP(sport=5, dport=6) / Raw(bytes(20)),
    OUTER / V6 / UDP(sport=5, dport=6) / Raw(b"\xff" * 51),
    OUTER / Dot1Q(vlan=5) / V4 / TCP(flags="PA") / LOAD,
    OUTER / V6 / IPv6ExtHdrDestOpt() / TCP(flags="S") / LOAD,
    OUTER / V4 / ICMP() / LOAD,
    OUTER / V6 / ICMPv6EchoRequest(data=LOAD.load),
    OUTER / V4 / UDP(dport=4789) / VXLAN(vni=5) / OUTER / V4 / UDP() / LOAD,
    OUTER / V4 / UDP(dport=2152) / GTP_U_Header(teid=1) / V4 / UDP() / LOAD,
    OUTER / V4 / GRE(chksum_present=1) / V6 / UDP() / LOAD,
    OUTER / V4 / GRE(chksum_present=1) / V6 / UDP() / LOAD / Raw(b"!"),
]


def checksums(packet: Packet) -> list[int]:
    """Each checksum field of a packet, from the outermost header on."""
    return [
        getattr(layer, name)
        for layer in packet.layers()
        for layer in [packet[layer]]
        for name in ("chksum", "cksum")
        if getattr(layer, name, None) is not None
    ]


@pytest.mark.parametrize("packet", PACKETS, ids=lambda packet: packet.summary())
@pytest.mark.parametrize("number", [0, 1, 12345])
def test_all_checksums_are_right_around_the_tag(packet: Packet, number: int) -> None:
    data = bytes(packet)
    frame = build(Template.of(data), len(data) + 4)
    written = frame_bytes.written(frame, number, 0)
    assert len(written) == len(data)
    assert written[12 : frame.tag_at] == data[12 : frame.tag_at]
    assert written[frame.tag_at : frame.tag_at + 18] != data[frame.tag_at : frame.tag_at + 18]
    fresh = Ether(written)
    before = checksums(fresh)
    assert before == checksums(Ether(data))
    for layer in fresh.layers():
        for name in ("chksum", "cksum"):
            if getattr(fresh[layer], name, None) is not None:
                delattr(fresh[layer], name)
    assert checksums(Ether(bytes(fresh))) == before  # as scapy computes them


def test_the_tag_stands_at_the_end_of_the_packet() -> None:
    data = bytes(PACKETS[0])
    assert Template.of(data).tag_at == len(data) - 21  # from an even byte on
    padded = Template.of(data + bytes(9))
    assert padded.data == data
    assert Template.of(data, 44).tag_at == 44
    assert Template.parse(str(padded)) == padded


def test_an_unknown_protocol_ends_the_walk() -> None:
    for protocol in range(256):
        if protocol not in (1, 4, 6, 17, 41, 47, 50, 51, 58, 135, 137, 143):
            assert Template.of(bytes(OUTER / IP(proto=protocol) / LOAD)).tag_at == 74


def test_macs() -> None:
    data = bytes(PACKETS[2])
    frame = build(Template.of(data), len(data) + 4)
    assert (frame.source_mac, frame.destination_mac) == ("port", "next_hop6")
    frame = build(Template.of(data, keeps_macs=True), len(data) + 4)
    assert (frame.source_mac, frame.destination_mac) == ("given", "given")


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (OUTER / V4 / UDP() / Raw(bytes(19)), "has 19 bytes behind its headers; the tag needs 20"),
        (OUTER / V4 / TCP(options=[("MSS", 1)]) / Raw(bytes(18)), "has 18 bytes"),
        (OUTER / IP(flags="MF") / UDP() / LOAD, "is a fragment"),
        (OUTER / IP(frag=3) / LOAD, "is a fragment"),
        (OUTER / V4 / ICMP(type=3) / V4 / UDP() / LOAD, "only echo requests and replies"),
        (OUTER / V6 / IPv6ExtHdrFragment(m=1) / UDP() / LOAD, "is a fragment"),
        (OUTER / V6 / IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment(offset=3) / LOAD, "is a fragment"),
        (OUTER / V4 / GRE() / IP(flags="MF") / UDP() / LOAD, "is a fragment"),
        (OUTER / V4 / UDP(dport=4789) / VXLAN() / OUTER / V4 / ICMP(type=3) / V4 / LOAD, "only echo"),
        (OUTER / V4 / GRE() / V4 / UDP() / Raw(bytes(19)), "has 19 bytes behind its headers"),
        (OUTER / V4 / UDP() / Raw(bytes(10_000)), "bytes are too many"),
    ],
)
def test_frames_without_a_place(packet: Packet, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        Template.of(bytes(packet))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bytes", "character 1: bytes needs data=0x"),
        ("bytes(data=12)", r"character 12: data: '12' is not bytes in hexadecimal"),
        ("bytes(date=0x12)", r"character 7: unknown field 'date'; did you mean data\?"),
        ("bytes(data=0x12)/udp", "stands alone"),
        ("bytes(data=0x12)", "1 bytes are no Ethernet frame"),
        ("bytes(data=0x12,macs=yes)", "macs: 'yes' is not possible; keep is"),
    ],
)
def test_texts_that_are_not_possible(text: str, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        Template.parse(text)


def test_one_size_one_flow() -> None:
    data = bytes(PACKETS[0])
    with pytest.raises(DutperfError, match="size 300 is not possible: the frame that is given as bytes has 107"):
        build(Template.of(data), 300)
    with pytest.raises(DutperfError, match="2 flows are not possible"):
        build(Template.of(data), 107, flows=2)


def test_the_option_and_headers_exclude_each_other() -> None:
    with pytest.raises(ParameterError) as caught:
        SingleTrial(frame="ip/udp", frame_from="a.pcap")
    assert (caught.value.key, caught.value.message) == (
        "frame_from",
        "goes without `frame`: the capture has the headers",
    )
    with pytest.raises(ParameterError) as caught:
        SingleTrial(frame_from="a.pcap")
    assert (caught.value.key, caught.value.message) == ("frame_from", "cannot read a.pcap: No such file or directory")


def test_a_recorded_frame_is_not_read_again() -> None:
    text = str(Template.of(bytes(ARP_LIKE)))
    assert SingleTrial(frame=text, frame_from="gone.pcap").frame == text


ARP_LIKE = OUTER / ARP() / Raw(bytes(40))
