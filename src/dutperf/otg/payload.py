# SPDX-License-Identifier: Apache-2.0
"""The bytes of a flow behind its headers. The tester's tag is written over the first 18 of them."""

from __future__ import annotations

from dutperf.model import DescribedFrame
from dutperf.model.described_frame import FCS_SIZE
from dutperf.otg.model import Message, Rejected, chosen, value_of
from dutperf.otg.nested import hexadecimal

_SIGNATURE = bytes.fromhex("d75450")
"""First bytes of the tag (protocol/README.md)."""
_ALL_BYTES = bytes(range(256))
_ALL_WORDS = b"".join(word.to_bytes(2, "big") for word in range(1 << 16))


def _backwards(data: bytes) -> bytes:
    """Each bit the other way: FF, FE, … instead of 00, 01, …"""
    return bytes(0xFF - byte for byte in data)


_REPEATED = {
    "decrement_byte": _backwards(_ALL_BYTES),
    "increment_word": _ALL_WORDS,
    "decrement_word": _backwards(_ALL_WORDS),
}


def pattern_of(payload: Message, where: str) -> tuple[bytes, bool]:
    """What is repeated up to the end of the frame, or stands once before zeros. Nothing: the bytes that the engine
    writes anyway, which count up. Raises Rejected: it is no pattern."""
    kind = chosen(payload, "fixed")
    if kind == "increment_byte":
        return b"", True
    if kind != "fixed":
        return _REPEATED[kind], True
    data = hexadecimal(value_of(payload.fixed, "pattern"), f"{where}.fixed.pattern")
    if not data:
        raise Rejected(f"{where}.fixed.pattern: there are no bytes")
    if _SIGNATURE in 3 * data:
        raise Rejected(f"{where}.fixed.pattern: d75450 is not possible: the tester tells its frames by it")
    return data, value_of(payload.fixed, "repeat")


def filled(frame: DescribedFrame, pattern: bytes, *, repeats: bool) -> DescribedFrame:
    """``frame`` with a pattern behind its headers."""
    if not pattern:
        return frame
    room = frame.size - FCS_SIZE - len(frame.bytes) // 2
    data = pattern * (room // len(pattern) + 1) if repeats else pattern.ljust(room, b"\0")
    return frame.model_copy(update={"bytes": frame.bytes + data[:room].hex()})
