# SPDX-License-Identifier: Apache-2.0
"""What the engine sends, dissected by scapy: an independent judge of every length, checksum and
field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise, product
from pathlib import Path
from typing import TypeVar

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import RawPcapReader, rdpcap

from dutperf.engine.client import EngineTester
from dutperf.model import FieldMode, Stream, Trial, VaryingAddress

from .streams import frame, ports, stream, trial

Frame = TypeVar("Frame")
OpenCapture = Callable[..., tuple[EngineTester, dict[str, Path]]]
SIGNATURE = bytes.fromhex("d75450")
TAG_SIZE = 18


def captured(open_capture: OpenCapture, trials: Sequence[Trial]) -> list[list[Packet]]:
    """The frames of each trial's forward direction, all sent by one engine."""
    return _captured(open_capture, trials, rdpcap)


def captured_bytes(open_capture: OpenCapture, trials: Sequence[Trial]) -> list[list[bytes]]:
    """The same, as bytes: much faster."""
    return _captured(open_capture, trials, lambda path: (data for data, _ in RawPcapReader(path)))


def _captured(
    open_capture: OpenCapture, trials: Sequence[Trial], read: Callable[[str], Iterable[Frame]]
) -> list[list[Frame]]:
    engine, files = open_capture(max_frame_size=9216)
    results = [engine.run(one) for one in trials]
    engine.close()
    frames = iter(read(str(files["left"])))
    each = []
    for result in results:
        assert result.forward is not None
        assert result.forward.sent == result.forward.intended
        each.append(list(islice(frames, result.forward.sent)))
    assert next(frames, None) is None
    return each


def sent_frames(open_capture: OpenCapture, one: Stream, **members: object) -> list[Packet]:
    """The frames of one trial's forward direction."""
    return captured(open_capture, [trial(one, **members)])[0]


def ip_layer(packet: Packet) -> Packet:
    """Its IPv4 or IPv6 layer."""
    return packet[IP] if IP in packet else packet[IPv6]


def rebuilt(packet: Packet) -> bytes:
    """The frame again with every length and checksum computed by scapy."""
    again = packet.copy()
    for layer, names in ((IP, ("len", "chksum", "ihl")), (IPv6, ("plen",)), (UDP, ("len", "chksum"))):
        if layer in again:
            for name in names:
                delattr(again[layer], name)
    return bytes(again)


def payload(packet: Packet) -> bytes:
    """What stands behind the UDP header, whatever scapy takes it for by its ports."""
    return bytes(packet[UDP])[8:]


def sequence(packet: Packet) -> int:
    """The frame's number by its tag."""
    return int.from_bytes(payload(packet)[8:13], "big")


SIZES = [
    *((4, size) for size in (64, 9216)),
    *((6, size) for size in (84, 1518)),
    *(pytest.param(*row, marks=pytest.mark.long) for row in ((4, 84), (4, 128), (4, 1518), (6, 128), (6, 9216))),
]


@pytest.mark.parametrize(("version", "size"), SIZES)
def test_every_length_and_checksum_is_right(open_capture: OpenCapture, version: int, size: int) -> None:
    for packets in captured(
        open_capture, [trial(stream(version, size, mode=mode, rate_fps=1000)) for mode in FieldMode]
    ):
        for packet in packets:
            assert len(packet) == size - 4
            assert bytes(packet) == rebuilt(packet)


@pytest.mark.parametrize(("foreground", "background"), [(4, 6), pytest.param(6, 6, marks=pytest.mark.long)])
def test_foreground_and_background_are_mixed_as_said(
    open_capture: OpenCapture, foreground: int, background: int
) -> None:
    streams = [
        stream(foreground, 128, mode=mode, background=frame(background, 148), n=10, m=3, networks=networks)
        for mode, networks in product(FieldMode, (1, 256))
    ]
    for packets in captured(open_capture, [trial(one, burst=7) for one in streams]):
        assert [sequence(packet) for packet in packets] == list(range(len(packets)))
        for number, packet in enumerate(packets):
            is_foreground = number % 10 < 3
            assert ip_layer(packet).version == (foreground if is_foreground else background)
            assert len(packet) == (124 if is_foreground else 144)
            assert payload(packet)[6] == (0 if is_foreground else 2)
            assert bytes(packet) == rebuilt(packet)


@pytest.mark.parametrize("mode", [FieldMode.INCREASING, FieldMode.DECREASING])
def test_ports_count(open_capture: OpenCapture, mode: FieldMode) -> None:
    one = stream(6, 84).model_copy(
        update={"source_port": ports(mode, 65000, 65099), "destination_port": ports(mode, 0, 6)}
    )
    packets = sent_frames(open_capture, one)
    step = 1 if mode is FieldMode.INCREASING else -1
    first = (65000, 0) if step > 0 else (65099, 6)
    assert (packets[0][UDP].sport, packets[0][UDP].dport) == first
    for before, after in pairwise(packets):
        assert after[UDP].sport - 65000 == (before[UDP].sport - 65000 + step) % 100
        assert after[UDP].dport == (before[UDP].dport + step) % 7


def test_random_ports_keep_to_rfc4814(open_capture: OpenCapture) -> None:
    packets = sent_frames(open_capture, stream(4, 64, rate_fps=20_000))
    sources, destinations = ({getattr(packet[UDP], name) for packet in packets} for name in ("sport", "dport"))
    assert min(sources) >= 1024
    assert min(destinations) >= 1
    assert max(destinations) <= 49151
    assert len(sources) > 0.9 * len(packets)


@pytest.mark.parametrize(
    ("version", "expected"), [pytest.param(4, "198.19.{}.2", marks=pytest.mark.long), (6, "2001:2:0:10{:02x}::2")]
)
def test_256_networks_are_the_bits_that_rfc8219_names(open_capture: OpenCapture, version: int, expected: str) -> None:
    packets = sent_frames(open_capture, stream(version, 84, rate_fps=20_000, networks=256))
    destinations = {ip_layer(packet).dst for packet in packets}
    assert destinations == {expected.format(network) for network in range(256)}
    assert {ip_layer(packet).src for packet in packets} == {"198.18.0.2" if version == 4 else "2001:2::2"}
    for packet in packets[:500]:
        assert bytes(packet) == rebuilt(packet)


@pytest.mark.parametrize(
    ("version", "offset"),
    [(4, 1), (6, 14), *(pytest.param(*row, marks=pytest.mark.long) for row in ((4, 2), (6, 7)))],
)
def test_sixteen_bits_of_the_addresses_vary(open_capture: OpenCapture, version: int, offset: int) -> None:
    place: dict[str, int] = {f"offset{version}": offset}
    vary = [VaryingAddress(mode=mode, min=300, max=301, **place) for mode in FieldMode]
    streams = [stream(version, 84, source_address=one, destination_address=one) for one in vary]
    at = {4: (26 + offset, 30 + offset), 6: (22 + offset, 38 + offset)}[version]
    for mode, packets in zip(FieldMode, captured(open_capture, [trial(one) for one in streams]), strict=True):
        for number, packet in enumerate(packets):
            values = [int.from_bytes(bytes(packet)[place : place + 2], "big") for place in at]
            expected = {
                FieldMode.FIXED: 300,
                FieldMode.INCREASING: 300 + number % 2,
                FieldMode.DECREASING: 301 - number % 2,
            }.get(mode)
            assert values == [expected] * 2 if expected is not None else set(values) <= {300, 301}
            assert bytes(packet) == rebuilt(packet)


@pytest.mark.parametrize("stamping", ["none", "every"])
def test_tag_and_payload(open_capture: OpenCapture, stamping: str) -> None:
    packets = sent_frames(open_capture, stream(4, 300), trial=0xABCD, stamping=stamping)
    for number, packet in enumerate(packets):
        body = payload(packet)
        assert body[:3] == SIGNATURE
        assert body[3:5] == payload(packets[0])[3:5]  # the run
        assert body[5] == 0xCD  # the trial
        assert body[6:8] == bytes([0, 1])  # forward
        assert sequence(packet) == number
        assert (body[13:18] == bytes(5)) == (stamping == "none")
        assert body[TAG_SIZE:] == bytes(i % 256 for i in range(TAG_SIZE, len(body)))


def test_frames_go_to_the_other_port_where_there_is_no_gateway(open_capture: OpenCapture) -> None:
    packets = sent_frames(open_capture, stream())
    assert {(packet[Ether].src, packet[Ether].dst) for packet in packets} == {
        ("02:00:00:00:00:01", "02:00:00:00:00:02")
    }


def test_ttl_is_that_of_rfc2544(open_capture: OpenCapture) -> None:
    packets = sent_frames(open_capture, stream(4, 64))
    assert {packet[IP].ttl for packet in packets} == {10}


def test_the_same_trial_has_the_same_frames_whatever_the_burst(open_capture: OpenCapture) -> None:
    one = stream(4, 64, networks=256)
    of_bursts = [trial(one, burst=burst) for burst in (32, 1, 3, 512)]
    reference, *others, of_another_seed = captured_bytes(open_capture, [*of_bursts, trial(one, seed=2)])
    assert others == [reference] * 3
    assert of_another_seed != reference
