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

from dutperf.frames import text
from dutperf.frames.errors import FrameError
from dutperf.frames.walk import ETHERNET_SIZE, Walk
from dutperf.model.described_frame import FCS_SIZE, TAG_SIZE, Checksum, DescribedFrame
from dutperf.model.frame_size import MAX_FRAME_SIZE, MIN_FRAME_SIZE
from dutperf.spelling import hint

_BALANCE = 2
"""Bytes behind the tag that make up for it in checksums."""
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
    ends_in_udp: ClassVar[bool] = False
    overhead: ClassVar[int] = 0

    @property
    def own(self) -> Self:
        """Itself: it has no tunnel but in its bytes."""
        return self

    @classmethod
    def of(cls, data: bytes, tag_at: int | None = None, *, keeps_macs: bool = False) -> Self:
        """The frame ``data``, without FCS; ``tag_at``: where the tag begins, from 0 on (default: at the end of the
        packet). Bytes behind the IP packet (padding, an FCS) are left out. Raises FrameError: the frame has no room for
        the tag, or is too long."""
        if len(data) < ETHERNET_SIZE:
            raise FrameError(f"{len(data)} bytes are no Ethernet frame, which has 14 at least")
        walk = Walk(data)
        if walk.no_tag is not None:
            raise FrameError(walk.no_tag)
        data, first = data[: walk.end], walk.at
        if len(data) + FCS_SIZE > MAX_FRAME_SIZE:
            raise FrameError(f"{len(data)} bytes are too many: frames have at most {MAX_FRAME_SIZE - FCS_SIZE}")
        needed = TAG_SIZE + _BALANCE
        last = (len(data) - needed) // 2 * 2
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
        return cls(data, at, keeps_macs, walk.version)

    @classmethod
    def parse(cls, given: str) -> Self:
        """The frame of a text: ``bytes(data=0x…)``, with ``tag=BYTE`` and ``macs=keep`` where wanted. Raises
        FrameError: the text or the frame is not possible."""
        node, *others = text.headers(given)
        if node.word != "bytes" or others:
            raise FrameError("a frame in bytes stands alone, without headers around it", position=node.position)
        named = {name.word: (name, value) for name, value in node.named}
        for word, (name, value) in named.items():
            if word not in _FORMS:
                raise name.error(f"unknown field '{word}'; {hint(word.lower(), _FORMS)}")
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
        """The frame for the engine. Raises FrameError: another size than its own, or several flows."""
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
