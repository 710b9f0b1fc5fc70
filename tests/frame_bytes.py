# SPDX-License-Identifier: Apache-2.0
"""A described frame as bytes, as the protocol says it: what the engine sends, written down a second time
and slowly."""

from __future__ import annotations

import struct

from dutperf.model import DescribedField, DescribedFrame

PORT_MAC = bytes.fromhex("020000000a01")
NEXT_HOP_MAC = {"next_hop4": bytes.fromhex("020000000b04"), "next_hop6": bytes.fromhex("020000000b06")}
TAG = bytes.fromhex("d7545046000100010000000000000000ffff")


def internet_checksum(data: bytes) -> int:
    """RFC 1071 section 1, word by word."""
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def value(field: DescribedField, number: int) -> int:
    """The value of a field in frame or flow ``number``; of a random one the last possible."""
    if field.values is not None:
        return int(field.values[number % len(field.values)])
    assert field.first is not None
    assert field.count is not None
    if field.mode == "random":
        return int(field.first) + int(field.count) - 1
    step = int(field.step or 0) * (number % int(field.count))
    return (int(field.first) + (step if field.mode == "increasing" else -step)) % (1 << field.bits)


def written(frame: DescribedFrame, number: int = 0, flow: int = 0, sent: bytes | None = None) -> bytes:
    """Frame ``number`` of flow ``flow``, without FCS; with the tag of ``sent``, and the addresses that are
    left to the engine, if that is given."""
    head = bytes.fromhex(frame.bytes)
    size = frame.size - 4
    data = bytearray(head + bytes(index & 0xFF for index in range(size - len(head))))
    data[frame.tag_at : frame.tag_at + len(TAG)] = TAG
    if frame.source_mac == "port":
        data[6:12] = PORT_MAC
    if frame.destination_mac != "given":
        data[:6] = NEXT_HOP_MAC[frame.destination_mac]
    if sent is not None:
        data[frame.tag_at : frame.tag_at + len(TAG)] = sent[frame.tag_at : frame.tag_at + len(TAG)]
        data[6:12] = sent[6:12] if frame.source_mac == "port" else data[6:12]
        data[:6] = sent[:6] if frame.destination_mac != "given" else data[:6]
    for field in frame.fields:
        put(data, field.bit, field.bits, value(field, flow if field.by == "flow" else number))
    for checksum in frame.checksums:
        assert data[checksum.at : checksum.at + 2] == b"\0\0"
        covered = b"".join(bytes(data[first:last]) for first, last in checksum.covers)
        result = internet_checksum(checksum.plus.to_bytes(2, "big") + covered)
        if result == 0 and checksum.zero_as_ones:
            result = 0xFFFF
        data[checksum.at : checksum.at + 2] = result.to_bytes(2, "big")
    return bytes(data)


def put(data: bytearray, bit: int, bits: int, number: int) -> None:
    """Write ``bits`` bits of ``number`` from bit ``bit`` on."""
    shift = 8 * len(data) - bit - bits
    mask = ((1 << bits) - 1) << shift
    whole = int.from_bytes(data, "big") & ~mask | number << shift
    data[:] = whole.to_bytes(len(data), "big")
