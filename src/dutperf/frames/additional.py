# SPDX-License-Identifier: Apache-2.0
"""Frames of the modifiers of RFC 2544 11.1 to 11.3, RFC 5180 6.1: broadcasts, SNMP queries (RFC 3416), RIPv2
(RFC 2453) and RIPng (RFC 2080) updates, as complete bytes without FCS.

The engine writes MAC addresses of unicast frames; they are zero here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from dutperf.model.described_frame import FCS_SIZE
from dutperf.model.frame_size import MIN_FRAME_SIZE
from dutperf.model.vlan_tags import leading

Address = IPv4Address | IPv6Address

BROADCAST_MAC = "ffffffffffff"
NO_MAC = "000000000000"
BROADCAST_MARK = bytes.fromhex("d742545062726f616463617374")
"""Begins the payload of a broadcast; followed by the direction. It is not the signature of test frames."""
DISCARD = 9
"""UDP port of the discard protocol (RFC 863): the router need not process the frame (RFC 2544 11.1)."""
SOURCE_PORT = 0xC021
SNMP, RIP, RIPNG = 161, 520, 521
REQUEST_ID = 0x44555450
VARIABLES = (
    (1, 3, 6, 1, 2, 1, 1, 3, 0),
    (1, 3, 6, 1, 2, 1, 2, 2, 1, 10, 1),
    (1, 3, 6, 1, 2, 1, 2, 2, 1, 16, 1),
    (1, 3, 6, 1, 2, 1, 2, 2, 1, 11, 1),
    (1, 3, 6, 1, 2, 1, 2, 2, 1, 17, 1),
)
"""sysUpTime, and of the first interface ifInOctets, ifOutOctets, ifInUcastPkts and ifOutUcastPkts (RFC 2544
C.2.4.3)."""
TTL = 10
"""RFC 2544 C.2.6.2 and C.2.6.4."""
_UDP, _HEADERS4, _HEADERS6 = 17, 42, 62


def broadcast(source: IPv4Address, direction: int, size: int) -> bytes:
    """A frame of ``size`` bytes with FCS to the hardware broadcast address and 255.255.255.255."""
    room = max(size, MIN_FRAME_SIZE) - FCS_SIZE - _HEADERS4
    payload = BROADCAST_MARK + bytes([direction])
    payload += bytes(number % 256 for number in range(len(payload), room))
    return _udp(BROADCAST_MAC, source, IPv4Address("255.255.255.255"), (SOURCE_PORT, DISCARD), payload[:room])


def broadcast_mark(direction: int) -> tuple[int, bytes]:
    """Place and bytes by which a broadcast is recognised."""
    return _HEADERS4, BROADCAST_MARK + bytes([direction])


def query(source: Address, destination: Address, community: str = "public") -> bytes:
    """An SNMPv2c GetRequest for :data:`VARIABLES`."""
    bindings = _ber(0x30, *(_ber(0x30, _ber(0x06, _object(name)), _ber(0x05)) for name in VARIABLES))
    request = _ber(0xA0, _integer(REQUEST_ID), _integer(0), _integer(0), bindings)
    message = _ber(0x30, _integer(1), _ber(0x04, community.encode()), request)
    return _udp(NO_MAC, source, destination, (SOURCE_PORT, SNMP), message)


def reply_marks(source: Address, destination: Address) -> tuple[tuple[int, bytes], ...]:
    """Places and bytes of a reply to a :func:`query`: addresses and ports."""
    ports = struct.pack(">HH", SNMP, SOURCE_PORT)
    if source.version == 4:
        return (12, b"\x08\x00\x45"), (23, b"\x11"), (26, destination.packed + source.packed + ports)
    return (12, b"\x86\xdd"), (20, b"\x11"), (22, destination.packed + source.packed + ports)


def reply_error(frame: bytes) -> str | None:
    """What is wrong with a reply to a :func:`query`, which may be behind VLAN tags; None: it is the expected response
    (RFC 2544 11.2)."""
    frame = frame[:12] + frame[12 + len(leading(frame[12:].hex())) // 2 :]
    payload = frame[_HEADERS4 if frame[12:14] == b"\x08\x00" else _HEADERS6 :]
    try:
        [(kind, message)] = _elements(payload[: _length_of(payload)])
        (_, version), (_, _community), (response, pdu) = _elements(message)
        (_, identity), (_, status), (_, index), (_, bindings) = _elements(pdu)
        names = [bytes(next(_elements(binding))[1]) for _, binding in _elements(bindings)]
    except (ValueError, IndexError, StopIteration):
        return "it is no SNMP message"
    if (kind, response, version) != (0x30, 0xA2, b"\x01"):
        return "it is no SNMPv2c response"
    if int.from_bytes(identity, "big") != REQUEST_ID:
        return "it answers another request"
    if int.from_bytes(status, "big"):
        return f"its error status is {int.from_bytes(status, 'big')}, at variable {int.from_bytes(index, 'big')}"
    return None if names == [_object(name) for name in VARIABLES] else "it has other variables"


def rip(source: IPv4Address, networks: Iterable[IPv4Network], metric: int) -> bytes:
    """A RIPv2 response to all routers: every network is ``metric`` hops away."""
    entries = b"".join(
        struct.pack(">HH4s4s4sI", 2, 0, one.network_address.packed, one.netmask.packed, bytes(4), metric)
        for one in networks
    )
    group = IPv4Address("224.0.0.9")
    return _udp("01005e000009", source, group, (RIP, RIP), b"\x02\x02\x00\x00" + entries, hops=1)


def ripng(source: IPv6Address, networks: Iterable[IPv6Network], metric: int) -> bytes:
    """A RIPng response to all routers. ``source`` is link-local, or routers ignore it (RFC 2080 2.4.2)."""
    entries = b"".join(struct.pack(">16sHBB", one.network_address.packed, 0, one.prefixlen, metric) for one in networks)
    group = IPv6Address("ff02::9")
    return _udp("333300000009", source, group, (RIPNG, RIPNG), b"\x02\x01\x00\x00" + entries, hops=255)


def routing_mark(frame: bytes) -> tuple[int, bytes]:
    """Place and bytes of a routing update without its last metric, by which it is recognised in all states: the
    first network."""
    return (_HEADERS4, frame[42:54]) if frame[12:14] == b"\x08\x00" else (_HEADERS6, frame[62:82])


def _udp(
    mac: str, source: Address, destination: Address, ports: tuple[int, int], payload: bytes, hops: int = TTL
) -> bytes:
    """A whole frame, padded to the smallest size."""
    length = 8 + len(payload)
    udp = struct.pack(">HHHH", *ports, length, 0) + payload
    pseudo = source.packed + destination.packed + struct.pack(">II", length, _UDP)
    udp = udp[:6] + (_checksum(pseudo + udp) or 0xFFFF).to_bytes(2, "big") + udp[8:]
    if source.version == 4:
        kind, ip = b"\x08\x00", struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, hops, _UDP, 0)
        checksum = _checksum(ip + source.packed + destination.packed)
        ip = ip[:10] + checksum.to_bytes(2, "big")
    else:
        kind, ip = b"\x86\xdd", struct.pack(">IHBB", 6 << 28, length, _UDP, hops)
    frame = bytes.fromhex(mac + NO_MAC) + kind + ip + source.packed + destination.packed + udp
    return frame.ljust(MIN_FRAME_SIZE - FCS_SIZE, b"\0")


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# --- the basic encoding rules (ITU-T X.690), as far as SNMP needs them ------------------------------


def _ber(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    return bytes([tag, size] if size < 128 else [tag, 0x81, size]) + content


def _integer(number: int) -> bytes:
    return _ber(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _object(name: Sequence[int]) -> bytes:
    return bytes([40 * name[0] + name[1], *name[2:]])


def _length_of(data: bytes) -> int:
    """Bytes of the element that ``data`` begins with; a frame may have padding behind it."""
    size, at = _size(data, 1)
    return at + size


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A size, and where its content begins."""
    if data[at] < 128:
        return data[at], at + 1
    digits = data[at] & 0x7F
    return int.from_bytes(data[at + 1 : at + 1 + digits], "big"), at + 1 + digits


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents, one after the other."""
    at = 0
    while at < len(data):
        size, begin = _size(data, at + 1)
        if begin + size > len(data):
            raise ValueError("an element ends behind its frame")
        yield data[at], data[begin : begin + size]
        at = begin + size
