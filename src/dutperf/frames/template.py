# SPDX-License-Identifier: Apache-2.0
"""Frames that are given as bytes: from a capture, or from a program such as scapy.

They are sent as they are, but for the MAC addresses and the last 20 bytes of the packet: the tag, and two
bytes that keep the Internet checksums (RFC 1071) of everything around them as they were. So no header
above the network layer need be known.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from dutperf.frames import text, values
from dutperf.frames.errors import FrameError
from dutperf.model.described_frame import FCS_SIZE, TAG_SIZE, Checksum, DescribedFrame
from dutperf.model.frame_size import MAX_FRAME_SIZE, MIN_FRAME_SIZE

_BALANCE = 2
"""Bytes behind the tag that make up for it in checksums."""
_VLAN = (0x8100, 0x88A8, 0x9100)
_IPV4, _IPV6 = 0x0800, 0x86DD
_ETHERNET_SIZE, _TAGS_SIZE = 14, 4
_FORMS = {
    "data": (r"0x([0-9A-Fa-f]{2})+", "bytes in hexadecimal, as 0x0200ab"),
    "tag": (r"[0-9]{1,5}", "the number of a byte"),
    "macs": ("keep", "possible; keep is"),
}
"""Fields of the text: what they hold."""


@dataclass(frozen=True)
class Template:
    """A whole frame. :meth:`parse` makes it from text, ``str`` gives the canonical text."""

    data: bytes
    """Without FCS, from the destination MAC address to the end of the packet."""
    tag_at: int
    """An even byte: 18 bytes of tag and 2 more begin here."""
    keeps_macs: bool = False
    """Whether the MAC addresses are sent as they are."""
    ip_version: Literal[4, 6] | None = None

    varies_by_flow: ClassVar[bool] = False

    @classmethod
    def of(cls, data: bytes, tag_at: int | None = None, *, keeps_macs: bool = False) -> Self:
        """The frame ``data``, without FCS; ``tag_at``: where the tag begins, from 0 on (default: at the
        end of the packet). Bytes behind the IP packet (padding, an FCS) are left out.

        Raises:
            FrameError: the frame has no room for the tag, or is too long.
        """
        if len(data) < _ETHERNET_SIZE:
            raise FrameError(f"{len(data)} bytes are no Ethernet frame, which has 14 at least")
        begin, type_ = _network(data)
        version, size = _packet(data[begin:], type_)
        _check_kind(data[begin:], version)
        data = data[: begin + size]
        if len(data) + FCS_SIZE > MAX_FRAME_SIZE:
            raise FrameError(f"{len(data)} bytes are too many: frames have at most {MAX_FRAME_SIZE - FCS_SIZE}")
        needed = TAG_SIZE + _BALANCE
        last = (len(data) - needed) // 2 * 2
        first = begin + _headers(data[begin:], version)
        at = last if tag_at is None else tag_at
        if last < first:
            raise FrameError(
                f"the frame has {max(len(data) - first, 0)} bytes behind its headers; the tag needs {needed}, from an"
                " even byte on"
            )
        if at % 2 or not first <= at <= last:
            raise FrameError(f"tag={at} is not possible: an even byte from {first + first % 2} to {last} is")
        if len(data) + FCS_SIZE < MIN_FRAME_SIZE:
            data += bytes(MIN_FRAME_SIZE - FCS_SIZE - len(data))
        return cls(data, at, keeps_macs, version)

    @classmethod
    def parse(cls, given: str) -> Self:
        """The frame of a text: ``bytes(data=0x…)``, with ``tag=BYTE`` and ``macs=keep`` where wanted.

        Raises:
            FrameError: the text or the frame is not possible.
        """
        node, *others = text.headers(given)
        if node.word != "bytes" or others:
            raise FrameError("a frame in bytes stands alone, without headers around it", position=node.position)
        named = {name.word: (name, value) for name, value in node.named}
        for word, (name, value) in named.items():
            if word not in _FORMS:
                raise name.error(f"unknown field '{word}': {values.nearest(word, _FORMS)}")
            form, expected = _FORMS[word]
            if not re.fullmatch(form, value.word):
                raise value.error(f"{word}: '{value.word[:20]}' is not {expected}")
        if "data" not in named:
            raise node.error("bytes needs data=0x…, the frame in hexadecimal")
        tag_at = int(named["tag"][1].word) if "tag" in named else None
        return cls.of(bytes.fromhex(named["data"][1].word[2:]), tag_at, keeps_macs="macs" in named)

    def __str__(self) -> str:
        macs = ",macs=keep" if self.keeps_macs else ""
        return f"bytes(data=0x{self.data.hex()},tag={self.tag_at}{macs})"

    @property
    def min_size(self) -> int:
        """Its size in bytes including the FCS."""
        return len(self.data) + FCS_SIZE

    def build(self, size: int, flows: int = 1) -> DescribedFrame:
        """The frame for the engine.

        Raises:
            FrameError: another size than its own, or several flows.
        """
        if size != self.min_size:
            raise FrameError(f"size {size} is not possible: the frame that is given as bytes has {self.min_size}")
        if flows > 1:
            raise FrameError(f"{flows} flows are not possible: nothing varies in a frame that is given as bytes")
        tag_end = self.tag_at + TAG_SIZE
        end = tag_end + _BALANCE
        return DescribedFrame(
            size=size,
            bytes=(self.data[:tag_end] + bytes(_BALANCE) + self.data[end:]).hex(),
            tag_at=self.tag_at,
            source_mac="given" if self.keeps_macs else "port",
            destination_mac="given" if self.keeps_macs else "next_hop6" if self.ip_version == 6 else "next_hop4",
            checksums=(
                Checksum(
                    at=tag_end,
                    covers=((self.tag_at, tag_end),),
                    plus=_plus(self.data[self.tag_at : end]),
                ),
            ),
            checked=None,
        )


def is_template(given: str) -> bool:
    """Whether a text is meant as a frame in bytes."""
    return re.match(r"\s*bytes\b", given) is not None


def _plus(replaced: bytes) -> int:
    """The number that makes an Internet checksum over the tag sum up to ``replaced`` together with the
    tag: the checksum is the complement of what it covers."""
    words: int = sum(struct.unpack(f">{len(replaced) // 2}H", replaced))
    return -words % 0xFFFF


def _network(data: bytes) -> tuple[int, int]:
    """Where the network layer begins, and its EtherType."""
    at = _ETHERNET_SIZE
    type_ = int.from_bytes(data[at - 2 : at], "big")
    while type_ in _VLAN and len(data) >= at + _TAGS_SIZE:
        at += _TAGS_SIZE
        type_ = int.from_bytes(data[at - 2 : at], "big")
    return at, type_


def _packet(packet: bytes, type_: int) -> tuple[Literal[4, 6] | None, int]:
    """IP version and size of a packet; without IP all bytes belong to it."""
    if type_ == _IPV4 and len(packet) >= 20:
        return 4, min(len(packet), int.from_bytes(packet[2:4], "big"))
    if type_ == _IPV6 and len(packet) >= 40:
        return 6, min(len(packet), 40 + int.from_bytes(packet[4:6], "big"))
    return None, len(packet)


def _check_kind(packet: bytes, version: int | None) -> None:
    """The receiver must tell the frame from one that quotes a test frame, or is part of one."""
    if version == 4 and int.from_bytes(packet[6:8], "big") & 0x3FFF:
        raise FrameError("the frame is a fragment: its tag could not be found")
    protocol, at = (packet[9], 4 * (packet[0] & 0xF)) if version == 4 else (packet[6], 40) if version else (0, 0)
    is_icmp = (version, protocol) in ((4, 1), (6, 58))
    if is_icmp and packet[at : at + 1] not in ((b"\0", b"\x08") if version == 4 else (b"\x80", b"\x81")):
        raise FrameError("of ICMP only echo requests and replies can carry the tag")


def _headers(packet: bytes, version: int | None) -> int:
    """Bytes of the headers that a tag would destroy: IP, and UDP, TCP or ICMP directly behind it."""
    if version == 4:
        size, protocol = 4 * (packet[0] & 0xF), packet[9]
    elif version == 6:
        size, protocol = 40, packet[6]
    else:
        return 0
    if protocol == 6 and len(packet) > size + 12:
        return size + 4 * (packet[size + 12] >> 4)
    return size + {17: 8, 6: 20, 1: 8, 58: 8}.get(protocol, 0)
