# SPDX-License-Identifier: Apache-2.0
"""Capture files as clients expect them: of one port, each frame with its FCS."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

from dutperf.captures import CapturedFrame, CaptureError, frames_of
from dutperf.captures.reading import ETHERNET, NS_PER_S
from dutperf.model.described_frame import FCS_SIZE
from dutperf.otg.model import Rejected

_NANO = 0xA1B23C4D
_LONGEST = 65_535


def file_of(files: Sequence[Path], port: str, *, snap: int | None, is_new: bool) -> bytes:
    """The frames that arrived at ``port`` in the engine's ``files``, as pcap, or pcapng where ``is_new``; of each at
    most ``snap`` bytes. The tester counts no frame with a wrong FCS, and its ports take it off: it is computed. Raises
    Rejected: a file cannot be read."""
    frames = (one for file in files for one in frames_of(file) if one.interface == port)
    made = BytesIO()  # the frames one by one: there may be a million of them
    try:
        made.writelines((_pcapng if is_new else _pcap)(frames, snap or _LONGEST))
    except CaptureError as error:
        raise Rejected(str(error), code=500, kind="internal") from None
    return made.getvalue()


def _with_fcs(frame: CapturedFrame) -> bytes:
    return frame.data + zlib.crc32(frame.data).to_bytes(FCS_SIZE, "little")


def _pcap(frames: Iterable[CapturedFrame], most: int) -> Iterator[bytes]:
    yield struct.pack("<IHHiIII", _NANO, 2, 4, 0, 0, most, ETHERNET)  # not every reader knows the bits of an FCS
    for frame in frames:
        seconds, fraction = divmod(frame.time_ns, NS_PER_S)
        one = _with_fcs(frame)
        kept = one[:most]
        yield struct.pack("<IIII", seconds & 0xFFFF_FFFF, fraction, len(kept), len(one)) + kept


def _pcapng(frames: Iterable[CapturedFrame], most: int) -> Iterator[bytes]:
    yield _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = struct.pack("<HHB3xHHB3xHH", 9, 1, 9, 13, 1, FCS_SIZE, 0, 0)
    yield _block(1, struct.pack("<HHI", ETHERNET, 0, most) + options)
    for frame in frames:
        one = _with_fcs(frame)
        kept = one[:most]
        header = struct.pack("<IIIII", 0, frame.time_ns >> 32, frame.time_ns & 0xFFFF_FFFF, len(kept), len(one))
        yield _block(6, header + kept + bytes(-len(kept) % 4))


def _block(kind: int, body: bytes) -> bytes:
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)
