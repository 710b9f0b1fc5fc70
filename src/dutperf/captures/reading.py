# SPDX-License-Identifier: Apache-2.0
"""Reads captures of Ethernet frames: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).

Of pcapng these blocks count: section header, interface description, enhanced, simple and obsolete packet.
Others are skipped, whatever their size. Every length is checked, so that a file which is cut off is an error
with its place instead of a short frame.

An FCS that the file says is there is left out. Ethernet's has four bytes, in whichever unit the file gives
its length: 16-bit words in pcap, bits or bytes in pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dutperf.errors import DutperfError

ETHERNET = 1
"""LINKTYPE_ETHERNET."""
LONGEST = 1 << 20
"""Bytes of a record; a longer one is damage."""
_FCS_SIZE = 4
_FCS_IS_KNOWN, _FCS_LENGTH = 0x0400_0000, 0xF000_0000
"""Of pcap's link type."""
_SKIPPED_AT_ONCE = 1 << 20
_MICRO, _NANO = 0xA1B2C3D4, 0xA1B23C4D
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_PACKETS = (_ENHANCED, _SIMPLE, _OLD_PACKET)
_BYTE_ORDER = 0x1A2B3C4D
_NAME, _RESOLUTION, _FCS_OF_INTERFACE, _OFFSET, _END = 2, 9, 13, 14, 0
_FLAGS = 2
"""Option of an enhanced packet; its bits 5 to 8 are the length of the FCS in bytes."""
NS_PER_S = 1_000_000_000


class CaptureError(DutperfError):
    """A capture cannot be read; the text names the file and the byte."""


@dataclass(frozen=True)
class CapturedFrame:
    data: bytes
    """From the destination MAC address on, without the FCS if the file says that there is one."""
    time_ns: int
    """Since 1970; 0 where the file has no times."""
    wire_size: int
    """Bytes that the frame had, without that FCS; more than ``data`` has if the capture cut it."""
    interface: str = ""
    """Where it was captured, as far as a pcapng file says."""

    @property
    def is_whole(self) -> bool:
        """Whether the capture has all of it."""
        return len(self.data) == self.wire_size


def frames_of(path: Path) -> Iterator[CapturedFrame]:
    """The frames of a capture in its order. Raises CaptureError: the file cannot be read, is not a capture of Ethernet
    frames, or is cut off."""
    try:
        with path.open("rb") as file:
            source = _Source(file, path)
            magic = source.take(4, "the header")
            if magic == _SECTION.to_bytes(4, "big"):
                yield from _pcapng(source)
            else:
                yield from _pcap(source, magic)
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from None


class _Source:
    """The bytes of a file, and the place."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self.at = 0

    def take(self, size: int, what: str) -> bytes:
        """``size`` bytes; an error if the file ends before."""
        found = self._file.read(size)
        if len(found) < size:
            raise CaptureError(f"{self._path} is cut off in {what}, at byte {self.at + len(found)}")
        self.at += size
        return found

    def skip(self, size: int, what: str) -> None:
        """Read ``size`` bytes and forget them."""
        while size > 0:
            size -= len(self.take(min(size, _SKIPPED_AT_ONCE), what))

    def more(self, size: int, what: str) -> bytes | None:
        """``size`` bytes; None at the end of the file."""
        found = self._file.read(size)
        if not found:
            return None
        if len(found) < size:
            raise CaptureError(f"{self._path} is cut off in {what}, at byte {self.at + len(found)}")
        self.at += size
        return found

    def wrong(self, why: str) -> CaptureError:
        return CaptureError(f"{self._path}, byte {self.at}: {why}")


def _pcap(source: _Source, magic: bytes) -> Iterator[CapturedFrame]:
    for order in "<>":
        [kind] = struct.unpack(order + "I", magic)
        if kind in (_MICRO, _NANO):
            break
    else:
        raise source.wrong("this is neither pcap nor pcapng")
    *_, link = struct.unpack(order + "HHiIII", source.take(20, "the header"))
    _check_link(source, link & 0xFFFF)
    has_fcs = bool(link & _FCS_IS_KNOWN and link & _FCS_LENGTH)
    fraction_ns = 1 if kind == _NANO else 1000
    number = 0
    while (header := source.more(16, f"the record after frame {number}")) is not None:
        number += 1
        seconds, fraction, size, wire_size = struct.unpack(order + "IIII", header)
        _check_size(source, size, number)
        data = source.take(size, f"frame {number}")
        yield _frame(data, seconds * NS_PER_S + fraction * fraction_ns, wire_size, has_fcs=has_fcs)


def _frame(data: bytes, time_ns: int, wire_size: int, *, has_fcs: bool, interface: str = "") -> CapturedFrame:
    if has_fcs:
        wire_size = max(0, wire_size - _FCS_SIZE)
        data = data[:wire_size]
    return CapturedFrame(data, time_ns, wire_size, interface)


@dataclass(frozen=True)
class _Interface:
    link: int = ETHERNET
    ticks_per_s: int = 1_000_000
    offset_s: int = 0
    snap: int = 0
    has_fcs: bool = False
    name: str = ""

    def time_ns(self, high: int, low: int) -> int:
        return self.offset_s * NS_PER_S + (high << 32 | low) * NS_PER_S // self.ticks_per_s


def _pcapng(source: _Source) -> Iterator[CapturedFrame]:
    kind_bytes: bytes | None = _SECTION.to_bytes(4, "big")
    order = "<"
    interfaces: list[_Interface] = []
    number = 0
    while kind_bytes is not None:
        size_bytes = source.take(4, "a block")
        body = b""
        if kind_bytes == _SECTION.to_bytes(4, "big"):
            body = source.take(4, "a section header")
            order = "<" if struct.unpack("<I", body)[0] == _BYTE_ORDER else ">"
            if struct.unpack(order + "I", body)[0] != _BYTE_ORDER:
                raise source.wrong("the section has no byte order")
            interfaces = []
        [kind] = struct.unpack(order + "I", kind_bytes)
        [size] = struct.unpack(order + "I", size_bytes)
        body = _body(source, kind, size, len(body))
        if source.take(4, "a block") != size_bytes:
            raise source.wrong("the two lengths of a block differ")
        if kind == _INTERFACE:
            interfaces.append(_interface(source, body, order))
        elif kind in _PACKETS:
            number += 1
            yield _packet(source, kind, body, order, interfaces, number)
        kind_bytes = source.more(4, "a block")


def _body(source: _Source, kind: int, size: int, taken: int) -> bytes:
    """The rest of a block of which ``taken`` bytes were read; empty if nothing in it counts."""
    is_read = kind == _INTERFACE or kind in _PACKETS
    if size % 4 or size < 12 + taken or (is_read and size > LONGEST):
        raise source.wrong(f"a block of {size} bytes is not possible")
    if is_read:
        return source.take(size - 12, "a block")
    source.skip(size - 12 - taken, "a block")
    return b""


def _interface(source: _Source, body: bytes, order: str) -> _Interface:
    if len(body) < 8:
        raise source.wrong("an interface has no link type")
    link, _, snap = struct.unpack_from(order + "HHI", body)
    options = dict(_options(body[8:], order))
    resolution = options.get(_RESOLUTION, b"\x06")
    value = resolution[0] if resolution else 6
    ticks: int = 2 ** (value & 0x7F) if value & 0x80 else 10**value
    offset = options.get(_OFFSET, b"")
    offset_s = struct.unpack(order + "q", offset)[0] if len(offset) == 8 else 0
    name = options.get(_NAME, b"").decode("utf-8", "replace")
    return _Interface(link, ticks, offset_s, snap, any(options.get(_FCS_OF_INTERFACE, b"")), name)


def _options(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    while len(body) >= 4:
        code, size = struct.unpack_from(order + "HH", body)
        if code == _END:
            return
        yield code, body[4 : 4 + size]
        body = body[4 + (size + 3) // 4 * 4 :]


def _packet(
    source: _Source, kind: int, body: bytes, order: str, interfaces: list[_Interface], number: int
) -> CapturedFrame:
    form = {_ENHANCED: "IIIII", _OLD_PACKET: "HHIIII", _SIMPLE: "I"}[kind]
    begin = struct.calcsize(order + form)
    if len(body) < begin:
        raise source.wrong(f"frame {number} has no lengths")
    members = struct.unpack_from(order + form, body)
    index = 0 if kind == _SIMPLE else members[0]
    if index >= len(interfaces):
        raise source.wrong(f"frame {number} is of an interface that the file does not describe")
    interface = interfaces[index]
    _check_link(source, interface.link)
    if kind == _SIMPLE:
        size = min(members[0], interface.snap or members[0])
        time_ns, wire_size = 0, members[0]
    else:
        high, low, size, wire_size = members[-4:]
        time_ns = interface.time_ns(high, low)
    if begin + size > len(body):
        raise source.wrong(f"frame {number} is longer than its block")
    options = dict(_options(body[begin + (size + 3) // 4 * 4 :], order)) if kind == _ENHANCED else {}
    flags = int.from_bytes(options.get(_FLAGS, b""), "little" if order == "<" else "big")
    has_fcs = interface.has_fcs or bool(flags >> 5 & 0xF)
    return _frame(body[begin : begin + size], time_ns, wire_size, has_fcs=has_fcs, interface=interface.name)


def _check_link(source: _Source, link: int) -> None:
    if link != ETHERNET:
        raise source.wrong(f"link type {link} is not Ethernet (1)")


def _check_size(source: _Source, size: int, number: int) -> None:
    if size > LONGEST:
        raise source.wrong(f"frame {number} of {size} bytes is not possible")
