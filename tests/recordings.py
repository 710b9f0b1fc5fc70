# SPDX-License-Identifier: Apache-2.0
"""Captures for tests of replays, written by scapy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapWriter

BEGAN_NS = 1_700_000_000_000_000_000
MACS = {"src": "02:aa:00:00:00:01", "dst": "02:aa:00:00:00:02"}
V4 = IP(src="198.18.0.2", dst="198.19.0.2")
V6 = IPv6(src="2001:2::2", dst="2001:2:0:1::2")


def udp(size: int = 100, network: Packet = V4, **macs: str) -> Packet:
    return Ether(**(MACS | macs)) / network / UDP(sport=1, dport=7) / Raw(bytes(size))


def capture(
    path: Path, packets: Sequence[Packet | bytes], times_ns: Sequence[int] | None = None, link: int = 1
) -> Path:
    writer = PcapWriter(str(path), linktype=link, nano=True)
    writer.write_header(None)
    for packet, at_ns in zip(packets, times_ns or range(len(packets)), strict=True):
        writer.write_packet(bytes(packet), sec=(BEGAN_NS + at_ns) // 10**9, usec=(BEGAN_NS + at_ns) % 10**9)
    writer.close()
    return path
