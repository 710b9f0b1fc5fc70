# SPDX-License-Identifier: Apache-2.0
"""Connections (RFC 9693) of described frames through the engine: behind a VLAN tag, in two sizes, and with
other frames beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import rdpcap

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.frames import Endpoints, Stack, build
from dutperf.model import (
    Capture,
    ConnectionCounts,
    Connections,
    ConnectionUse,
    DescribedField,
    DescribedFrame,
    Direction,
    Opening,
    ResponderOrder,
    Stream,
    TrialResult,
)
from frame_rows import ENDPOINTS

from .streams import trial

COUNT = 2000
SIZES = (102, 600)
PORTS = {"source_port": (1024, 40), "destination_port": (4780, 10)}
"""First port and number of ports; one is that of VXLAN."""
ADDRESSES = {"source_address": (0x0102, 1), "destination_address": (0x0200, 5)}
"""The last 16 bits."""
ADDRESS_BITS = {4: 32, 6: 128}


@pytest.fixture(scope="module")
def ring(command: EngineCommand) -> Iterator[EngineTester]:
    ports = {name: {"port": "ring"} for name in ("left", "right")}
    with EngineTester(command, {**ports, "memory": "no_huge_pages"}) as engine:
        yield engine


def swapped(ends: Endpoints) -> Endpoints:
    """Those of the other direction."""
    ipv4, ipv6 = ends.ipv4, ends.ipv6
    assert ipv4 is not None
    assert ipv6 is not None
    return Endpoints(ipv4[::-1], ipv6[::-1])


def of_connection(frame: DescribedFrame, part: str, bit: int, **members: Any) -> DescribedFrame:
    field = DescribedField.model_validate({"bit": bit, "bits": 16, "mode": "connection", "part": part} | members)
    return frame.model_copy(update={"fields": (*frame.fields, field)})


def places(version: int) -> dict[str, int]:
    """The first bits of both addresses and ports behind a VLAN tag."""
    source = 18 + (12 if version == 4 else 8)
    bits = ADDRESS_BITS[version]
    udp = 8 * source + 2 * bits
    return {
        "source_address": 8 * source,
        "destination_address": 8 * source + bits,
        "source_port": udp,
        "destination_port": udp + 16,
    }


def opening(version: int, size: int) -> DescribedFrame:
    """A frame of the Initiator."""
    frame, at = build(Stack.parse(f"vlan(id=7)/ipv{version}/udp"), size, ENDPOINTS), places(version)
    for part, (first, count) in (PORTS | ADDRESSES).items():
        within = ADDRESS_BITS[version] - 16 if part in ADDRESSES else 0
        frame = of_connection(frame, part, at[part] + within, first=str(first), count=str(count))
    return frame


def reply(version: int, size: int) -> DescribedFrame:
    """A frame of the Responder."""
    stack = Stack.parse(f"vlan(id=7)/ipv{version}/udp")
    frame, at = build(stack, size, swapped(ENDPOINTS), Direction.REVERSE), places(version)
    bits = ADDRESS_BITS[version]
    first, count = ADDRESSES["destination_address"]
    frame = of_connection(frame, "source_address", at["source_address"] + bits - 16, first=str(first), count=str(count))
    for part, size_bits in (("destination_address", bits), ("source_port", 16), ("destination_port", 16)):
        frame = of_connection(frame, part, at[part], bits=size_bits, mode="learned")
    return frame


def other(version: int, ends: Endpoints = ENDPOINTS) -> DescribedFrame:
    """A frame of no connection."""
    return build(Stack.parse(f"vlan(id=7)/ipv{version}/icmp"), 128, ends)


def stream(frames: tuple[DescribedFrame, ...], rate_fps: int) -> Stream:
    return Stream(rate_fps=rate_fps, frames=frames)


def connections(use: ConnectionUse, version: int, **members: Any) -> Connections:
    return Connections(use=use, initiator=Direction.FORWARD, count=COUNT, version=version, **members)


def opened(engine: EngineTester, version: int, capture: Capture | None = None) -> TrialResult:
    frames = tuple(opening(version, size) for size in SIZES)
    result = engine.run(
        trial(stream(frames, 5 * COUNT), connections=connections(ConnectionUse.OPEN, version), capture=capture)
    )
    assert result.connections == ConnectionCounts(learned=COUNT, remapped=0, lost=0)
    return result


def received(path: Path) -> list[Ether]:
    """The frames of a capture, which are intact. What scapy takes a payload for does not matter: some port is that of a
    protocol that it knows, as soon as any test has imported it."""
    packets = list(rdpcap(str(path)))
    for packet in packets:
        again = packet.copy()
        if UDP in again:
            again[UDP].remove_payload()
            again[UDP].add_payload(Raw(packet[UDP].original[8:]))
        for layer in (IP, UDP):
            if layer in again:
                del again[layer].chksum
        assert bytes(again) == packet.original
    return packets


def tuple_of(packet: Ether, version: int) -> tuple[Any, ...]:
    ip, udp = packet[IP if version == 4 else IPv6], packet[UDP]
    assert packet[Dot1Q].vlan == 7
    return (ip.src, ip.dst, udp.sport, udp.dport)


@pytest.mark.parametrize("version", [4, 6])
def test_each_reply_goes_to_where_its_connection_came_from(ring: EngineTester, tmp_path: Path, version: int) -> None:
    sent, replied = tmp_path / "opening.pcapng", tmp_path / "replies.pcapng"
    opened(ring, version, Capture(path=str(sent), first=2 * COUNT))
    replies = stream(tuple(reply(version, size) for size in SIZES), 5 * COUNT)
    result = ring.run(
        trial(
            None,
            replies,
            trial=2,
            connections=connections(ConnectionUse.EACH, version),
            capture=Capture(path=str(replied), first=2 * COUNT),
        )
    )
    assert result.connections == ConnectionCounts(learned=COUNT, remapped=0, lost=0)
    assert result.reverse is not None
    assert (result.reverse.received, result.reverse.corrupted) == (COUNT, 0)
    tuples = [tuple_of(packet, version) for packet in received(sent) if UDP in packet]
    back = [tuple_of(packet, version) for packet in received(replied) if UDP in packet]
    assert len(set(tuples)) == len(tuples) == COUNT
    assert sorted((b, a, dport, sport) for a, b, sport, dport in back) == sorted(tuples)


@pytest.mark.parametrize("rate_fps", [20_000, 400_000])
def test_traffic_of_both_sides_with_other_frames_beside_it(ring: EngineTester, rate_fps: int) -> None:
    """Frame by frame, and at a rate at which frames are received in bursts."""
    opened(ring, 4)
    initiator = (*(opening(4, size) for size in SIZES), other(4))
    responder = (*(reply(4, size) for size in SIZES), other(4, swapped(ENDPOINTS)))
    result = ring.run(
        trial(
            stream(initiator, rate_fps),
            stream(responder, rate_fps),
            trial=2,
            connections=connections(ConnectionUse.TRAFFIC, 4, responder=ResponderOrder.RANDOM),
        )
    )
    assert result.connections == ConnectionCounts(learned=COUNT, remapped=0, lost=0)
    for counts in (result.forward, result.reverse):
        assert counts is not None
        assert counts.received == counts.sent > 0
        assert counts.corrupted == 0


@pytest.mark.parametrize("beside", [0, 1])
def test_only_frames_of_connections_lose_them(open_capture: Any, beside: int) -> None:
    """On ports into which nothing comes."""
    engine, _ = open_capture()
    frames = (opening(4, SIZES[0]), *(other(4) for _ in range(beside)))
    of_random = connections(ConnectionUse.OPEN, 4, opening=Opening.RANDOM)
    engine.run(trial(stream(frames, 4000), connections=of_random))
    traffic = connections(ConnectionUse.TRAFFIC, 4, entries=1)
    result = engine.run(trial(stream(frames, 4000), trial=2, connections=traffic))
    assert result.connections is not None
    few, most = (620, 700) if beside == 0 else (330, 400)
    assert few < result.connections.lost <= most
