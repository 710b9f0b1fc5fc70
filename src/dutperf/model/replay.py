# SPDX-License-Identifier: Apache-2.0
"""A list of frames that are sent one after the other, as those of a capture, each as it is.

The list itself, a :class:`Recording`, is in memory once. A trial's JSON has its digest only. The engine
gets it by requests of its own (``load``, protocol/README.md), before the first trial that needs it.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field

from dutperf.model.described_frame import FCS_SIZE
from dutperf.model.frame_size import MAX_FRAME_SIZE
from dutperf.model.value import Count, Value

MOST_FRAMES = 1_000_000
MOST_BYTES = 256 << 20
"""The longest list (``FrameList`` in ``engine/flow/frame_list.hpp``)."""
_CHUNK_BYTES = 256 << 10
"""Bytes of frames in one request: twice as many digits are well below the engine's longest line."""

Destination = Literal["given", "next_hop4", "next_hop6"]
_DESTINATIONS: tuple[Destination, ...] = ("given", "next_hop4", "next_hop6")
_NO_TAG = 0xFFFF


class RecordedFrame(NamedTuple):
    """One frame of a list."""

    at_ns: int
    """When it is due, after the first."""
    data: bytes
    """Without FCS."""
    destination_mac: Destination
    """The DUT's MAC address of which next hop; ``given``: that of the frame."""
    source_mac: Literal["port", "given"] = "port"
    tag_at: int | None = None
    """Where a tag replaces 18 bytes, and two more the sum over both; None: the frame has no tag."""


class Recording:
    """Frames with their due times, in columns: a frame costs about 24 bytes beside its own."""

    def __init__(self) -> None:
        self.times_ns: array[int] = array("Q")
        self.longest = 0
        """Bytes of the longest frame with FCS."""
        self.longest_number = 0
        """Which one it is, from 1 on."""
        self.tagged = 0
        self.of_test_frames = False
        self.ends_before = False
        """Whether the capture has more frames, which are due after the sending time."""
        self._data = bytearray()
        self._ends: array[int] = array("Q")
        self._tags_at: array[int] = array("H")
        self._macs = bytearray()
        self._digest = hashlib.sha256()

    def append(self, frame: RecordedFrame) -> None:
        """Add a frame, which is not due before the last one."""
        self.times_ns.append(frame.at_ns)
        self._data += frame.data
        self._ends.append(len(self._data))
        self._tags_at.append(_NO_TAG if frame.tag_at is None else frame.tag_at)
        self._macs.append(_DESTINATIONS.index(frame.destination_mac) << 1 | (frame.source_mac == "given"))
        self._digest.update(f"{frame[0]} {frame[2:]} {len(frame.data)} ".encode() + frame.data)
        self.tagged += frame.tag_at is not None
        if len(frame.data) + FCS_SIZE > self.longest:
            self.longest, self.longest_number = len(frame.data) + FCS_SIZE, len(self)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> RecordedFrame:
        begin = self._ends[place - 1] if place else 0
        macs, tag_at = self._macs[place], self._tags_at[place]
        return RecordedFrame(
            self.times_ns[place],
            bytes(self._data[begin : self._ends[place]]),
            _DESTINATIONS[macs >> 1],
            "given" if macs & 1 else "port",
            None if tag_at == _NO_TAG else tag_at,
        )

    @property
    def size(self) -> int:
        return len(self._data)

    @property
    def sha256(self) -> str:
        """Of frames and times."""
        return self._digest.hexdigest()

    def loads(self) -> Iterator[dict[str, Any]]:
        """The ``params`` of the requests ``load`` that give the engine the whole list."""
        place = 0
        while place < len(self):
            first, size, frames = place, 0, []
            while place < len(self) and size < _CHUNK_BYTES:
                frame = self[place]
                frames.append(_members(frame))
                size += len(frame.data) + 64
                place += 1
            yield {"frames": frames} | ({"append": True} if first else {})


def _members(frame: RecordedFrame) -> dict[str, Any]:
    members = {
        "at_ns": frame.at_ns,
        "bytes": frame.data.hex(),
        "source_mac": frame.source_mac,
        "destination_mac": frame.destination_mac,
    }
    return members if frame.tag_at is None else members | {"tag_at": frame.tag_at}


class LengthChanges(Value):
    """Bytes by which the DUT changes the packets that it forwards, as a tunnel does: of IPv4, of IPv6,
    of other frames. What a translator or a VLAN changes does not count (docs/replay.md)."""

    ipv4: Annotated[int, Field(ge=-MAX_FRAME_SIZE, le=MAX_FRAME_SIZE)] = 0
    ipv6: Annotated[int, Field(ge=-MAX_FRAME_SIZE, le=MAX_FRAME_SIZE)] = 0
    other: Annotated[int, Field(ge=-MAX_FRAME_SIZE, le=MAX_FRAME_SIZE)] = 0


class Replay(Value):
    """What a stream sends of a :class:`Recording`."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)]
    tagged: Count
    """Frames with a tag; the others are counted by order and length."""
    longest: Annotated[int, Field(ge=1, le=MAX_FRAME_SIZE)]
    """Bytes with FCS."""
    mean_size: float
    """Bytes with FCS."""
    sha256: str
    of_test_frames: bool = False
    """Whether it has test frames of a run of dutperf, with the tags of that run."""
    length_changes: LengthChanges = LengthChanges()
    recording: Annotated[Recording | None, Field(exclude=True, repr=False)] = None
    """None: the trial was read from a file, and cannot be run again."""

    @classmethod
    def of(cls, recording: Recording, length_changes: LengthChanges | None = None) -> Replay:
        """The whole recording."""
        return cls(
            frames=len(recording),
            tagged=recording.tagged,
            longest=recording.longest,
            mean_size=recording.size / len(recording) + FCS_SIZE,
            sha256=recording.sha256,
            of_test_frames=recording.of_test_frames,
            length_changes=length_changes or LengthChanges(),
            recording=recording,
        )

    def request(self) -> dict[str, Any]:
        """As the engine gets it (protocol/request.schema.json)."""
        return {"frames": self.frames, "length_changes": self.length_changes.model_dump()}
