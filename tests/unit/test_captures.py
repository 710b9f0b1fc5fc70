# SPDX-License-Identifier: Apache-2.0
"""Captures are read as scapy writes them, in every variant; a file that is cut off is an error with its
place."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgWriter, PcapWriter

from dutperf.captures import CaptureError, frames_of
from dutperf.setup.frame_file import frame_text

TIMES_NS = (1_700_000_000_000_000_001, 1_700_000_000_000_001_500, 1_700_000_001_999_999_999)


def packets() -> list[Packet]:
    return [
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src="198.18.0.2", dst="198.19.0.2")
        / UDP()
        / Raw(bytes(index % 256 for index in range(size)))
        for size in (18, 33, 1000)
    ]


def pcap(path: Path, order: str, *, nano: bool) -> Path:
    writer = PcapWriter(str(path), linktype=1, endianness=order, nano=nano)
    writer.write_header(packets()[0])
    for packet, time_ns in zip(packets(), TIMES_NS, strict=True):
        fraction = time_ns % 10**9 if nano else time_ns % 10**9 // 1000
        writer.write_packet(bytes(packet), sec=time_ns // 10**9, usec=fraction)
    writer.close()
    return path


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [True, False])
def test_pcap(tmp_path: Path, order: str, nano: bool) -> None:
    frames = list(frames_of(pcap(tmp_path / "a.pcap", order, nano=nano)))
    assert [frame.data for frame in frames] == [bytes(packet) for packet in packets()]
    assert all(frame.is_whole for frame in frames)
    unit = 1 if nano else 1000
    assert [frame.time_ns for frame in frames] == [time_ns // unit * unit for time_ns in TIMES_NS]


def test_pcapng_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    writer = PcapNgWriter(str(path))
    for packet, time_ns in zip(packets(), TIMES_NS, strict=True):
        packet.time = time_ns / 10**9
        writer.write(packet)
    writer.close()
    frames = list(frames_of(path))
    assert [frame.data for frame in frames] == [bytes(packet) for packet in packets()]
    assert all(abs(frame.time_ns - time_ns) < 2000 for frame, time_ns in zip(frames, TIMES_NS, strict=True))


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def pcapng(order: str, link: int = 1, resolution: int = 0x94) -> bytes:
    """Two interfaces, of which the second counts 2^-20 s; an unknown block; a simple packet."""
    first, second, third = (bytes(packet) for packet in packets())
    option = struct.pack(order + "HHB3x", 9, 1, resolution) + bytes(4)
    ticks = 5 << 20 | 1 << 19
    return b"".join(
        (
            block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
            block(order, 1, struct.pack(order + "HHI", 1, 0, 0)),
            block(order, 1, struct.pack(order + "HHI", link, 0, 0) + option),
            block(order, 0xBAD, b"whatever"),
            block(order, 6, struct.pack(order + "5I", 1, 0, ticks, len(first), len(first)) + first),
            block(order, 6, struct.pack(order + "5I", 0, 0, 7, len(second) - 1, len(second)) + second[:-1]),
            block(order, 3, struct.pack(order + "I", len(third)) + third),
        )
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_by_its_blocks(tmp_path: Path, order: str) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(pcapng(order) * 2)
    frames = list(frames_of(path))
    assert [len(frame.data) for frame in frames[:3]] == [60, 74, 1042]
    assert [frame.is_whole for frame in frames[:3]] == [True, False, True]
    assert [frame.time_ns for frame in frames[:3]] == [5_500_000_000, 7000, 0]
    assert frames[3:] == frames[:3]


SECTION = block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
DATA = bytes(packets()[1])
FCS = b"\xde\xad\xbe\xef"


def interface(link: int = 1, options: bytes = b"") -> bytes:
    return block("<", 1, struct.pack("<HHI", link, 0, 0) + options)


def packet(data: bytes, *, of: int = 0, wire_size: int | None = None, options: bytes = b"") -> bytes:
    head = struct.pack("<5I", of, 0, 0, len(data), len(data) if wire_size is None else wire_size)
    return block("<", 6, head + data + bytes(-len(data) % 4) + options)


def test_an_interface_without_frames_may_be_of_any_link_type(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(SECTION + interface(113) + interface() + packet(DATA, of=1))
    assert [frame.data for frame in frames_of(path)] == [DATA]
    path.write_bytes(SECTION + interface(113) + interface() + packet(DATA, of=1) + packet(DATA, of=0))
    with pytest.raises(CaptureError, match="link type 113 is not Ethernet"):
        list(frames_of(path))


@pytest.mark.parametrize("kind", [10, 0xBAD, 4])
def test_other_blocks_may_be_large(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(SECTION + interface() + block("<", kind, bytes(2 << 20)) + packet(DATA))
    assert [frame.data for frame in frames_of(path)] == [DATA]


FCS_SAID = {
    "if_fcslen in bits": (struct.pack("<HHB3x", 13, 1, 32), b"", True),
    "if_fcslen in bytes": (struct.pack("<HHB3x", 13, 1, 4), b"", True),
    "if_fcslen 0": (struct.pack("<HHB3x", 13, 1, 0), b"", False),
    "flags of the packet": (b"", struct.pack("<HHI", 2, 4, 4 << 5), True),
    "other flags of the packet": (b"", struct.pack("<HHI", 2, 4, 1), False),
    "nothing": (b"", b"", False),
}


@pytest.mark.parametrize(("of_interface", "of_packet", "has_fcs"), FCS_SAID.values(), ids=FCS_SAID)
def test_an_fcs_in_pcapng_is_left_out(tmp_path: Path, of_interface: bytes, of_packet: bytes, has_fcs: bool) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(SECTION + interface(options=of_interface) + packet(DATA + FCS, options=of_packet))
    [frame] = frames_of(path)
    assert (frame.data, frame.is_whole) == (DATA if has_fcs else DATA + FCS, True)


@pytest.mark.parametrize(("bits", "has_fcs"), [(0x24000000, True), (0x44000000, True), (0x04000000, False), (0, False)])
def test_an_fcs_in_pcap_is_left_out(tmp_path: Path, bits: int, has_fcs: bool) -> None:
    path = tmp_path / "a.pcap"
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0, bits | 1)
    path.write_bytes(head + struct.pack("<IIII", 1, 0, len(DATA + FCS), len(DATA + FCS)) + DATA + FCS)
    [frame] = frames_of(path)
    assert (frame.data, frame.is_whole) == (DATA if has_fcs else DATA + FCS, True)


@pytest.mark.parametrize(("cut", "whole"), [(0, True), (2, True), (4, True), (5, False)])
def test_of_a_cut_frame_the_fcs_goes_first(tmp_path: Path, cut: int, whole: bool) -> None:
    path = tmp_path / "a.pcapng"
    data = (DATA + FCS)[: len(DATA + FCS) - cut]
    options = struct.pack("<HHB3x", 13, 1, 32)
    path.write_bytes(SECTION + interface(options=options) + packet(data, wire_size=len(DATA + FCS)))
    [frame] = frames_of(path)
    assert (frame.data, frame.wire_size, frame.is_whole) == (data[: len(DATA)], len(DATA), whole)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_cut_off_or_damaged(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever a file holds: its frames, or one error that names it."""
    path = tmp_path_factory.mktemp("cut") / "a.pcap"
    whole = pcap(path, "<", nano=True).read_bytes() if data.draw(st.booleans()) else pcapng("<")
    changed = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(changed)
    said = str(path)
    try:
        list(frames_of(path))
    except CaptureError as error:
        said = str(error)
    assert str(path) in said
    assert "\n" not in said


def test_cut_off_says_where(tmp_path: Path) -> None:
    path = pcap(tmp_path / "a.pcap", "<", nano=False)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CaptureError, match=rf"a\.pcap is cut off in frame 3, at byte {path.stat().st_size}"):
        list(frames_of(path))
    path.write_bytes(pcapng("<", link=113))
    with pytest.raises(CaptureError, match=r"link type 113 is not Ethernet"):
        list(frames_of(path))
    path.write_bytes(b"GIF89a..")
    with pytest.raises(CaptureError, match=r"neither pcap nor pcapng"):
        list(frames_of(path))
    with pytest.raises(CaptureError, match=r"cannot read .*: No such file"):
        list(frames_of(tmp_path / "none.pcap"))


@pytest.mark.parametrize(
    ("given_as", "reason"),
    [
        ("{}:9", r"a\.pcap has no frame 9"),
        ("{}:1", r"a\.pcap, frame 1: the frame has 18 bytes behind its headers; the tag needs 20"),
        ("{}:3,tag=43", r"tag=43 is not possible: an even byte from 42 to 1022 is"),
        ("{},", "cannot read"),
        ("", "names no frame"),
    ],
)
def test_frames_that_are_not_possible(tmp_path: Path, given_as: str, reason: str) -> None:
    path = pcap(tmp_path / "a.pcap", "<", nano=False)
    with pytest.raises(ValueError, match=reason):
        frame_text(given_as.format(path))


def test_a_frame_of_which_the_capture_has_a_part(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(pcapng("<"))
    with pytest.raises(ValueError, match=r"has only 74 of the 75 bytes of frame 2: capture whole frames"):
        frame_text(f"{path}:2")


def test_text_of_a_frame(tmp_path: Path) -> None:
    path = pcap(tmp_path / "a.pcap", "<", nano=False)
    data = bytes(packets()[1]).hex()
    assert frame_text(f"{path}:2") == f"bytes(data=0x{data},tag=54)"
    assert frame_text(f"{path}:2,tag=42,macs=keep") == f"bytes(data=0x{data},tag=42,macs=keep)"
