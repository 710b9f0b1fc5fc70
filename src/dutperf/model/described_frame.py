# SPDX-License-Identifier: Apache-2.0
"""A frame as the engine gets it: the bytes of its headers, and marks for the tag, the checksums and the
fields that vary (protocol/README.md).

All offsets are in bytes from the first byte of the destination MAC address, bits from its most
significant bit; neither counts the FCS. The package computes no checksum: the engine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm, prod
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_serializer, model_validator

from dutperf.model.frame_size import MAX_FRAME_SIZE, MIN_FRAME_SIZE
from dutperf.model.value import Flows, Value
from dutperf.model.vlan_tags import TagChoices

FCS_SIZE = 4
"""Bytes of the frame check sequence."""
TAG_SIZE = 18
"""Bytes of the test tag (docs/decisions/0001-tag.md)."""
MAX_FIELD_BITS = 128
MOST_CHECKSUMS = 16
MOST_FIELDS = 64
MOST_VALUES = 65536
"""Of a list."""

Offset = Annotated[int, Field(ge=0, lt=MAX_FRAME_SIZE)]
Decimal = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,38})$")]
"""A number of up to 128 bits: JSON's numbers are not exact."""
FlowOrder = Literal["in_turn", "random"]
"""How the flow of a frame is chosen."""
ConnectionPart = Literal["source_port", "destination_port", "source_address", "destination_address"]
"""A part of the combination that is a connection, as its frame has it."""
_MEMBERS = {
    "random": {"first", "count"},
    "list": {"values"},
    "connection": {"part", "first", "count"},
    "learned": {"part"},
}
"""Members of modes other than the counting ones."""


class Checksum(Value):
    """An Internet checksum (RFC 1071) of two bytes at ``at``, which are zero in the frame's bytes. It
    covers the ranges [from, to) and the number ``plus``: length and protocol of a pseudo-header."""

    at: Offset
    covers: Annotated[tuple[tuple[int, int], ...], Field(min_length=1)]
    plus: Annotated[int, Field(ge=0, le=0xFFFF)] = 0
    zero_as_ones: bool = False
    """UDP: a computed 0 is sent as 0xFFFF (RFC 768)."""


class DescribedField(Value):
    """``bits`` bits from bit ``bit`` on, which vary from frame to frame or from flow to flow.

    With i the number of the frame or flow: ``increasing`` and ``decreasing`` are ``first`` ± (i mod
    ``count``) * ``step``, modulo 2^bits. ``random`` is uniform over ``count`` numbers from ``first`` on.
    ``list`` is ``values``[i mod their number].

    In trials with connections (:class:`dutperf.model.Connections`) a field may hold a ``part`` of the
    frame's connection: ``connection`` that of its combination, one of ``count`` numbers from ``first``
    on; ``learned`` what a reply in it goes to.
    """

    bit: Annotated[int, Field(ge=0, lt=8 * MAX_FRAME_SIZE)]
    bits: Annotated[int, Field(ge=1, le=MAX_FIELD_BITS)]
    by: Literal["frame", "flow"] = "frame"
    mode: Literal["increasing", "decreasing", "random", "list", "connection", "learned"]
    part: ConnectionPart | None = None
    first: Decimal | None = None
    step: Decimal | None = None
    count: Decimal | None = None
    values: Annotated[tuple[Decimal, ...], Field(min_length=1, max_length=MOST_VALUES)] | None = None

    @model_validator(mode="after")
    def _members_of_its_mode(self) -> Self:
        needed = _MEMBERS.get(self.mode, {"first", "step", "count"})
        given = {name for name in ("part", "first", "step", "count", "values") if getattr(self, name) is not None}
        if given != needed:
            raise ValueError(f"mode {self.mode} has the members {', '.join(sorted(needed))}")
        if self.count == "0":
            raise ValueError("a field needs at least one value")
        if any(int(number) >> self.bits for number in self._numbers()):
            raise ValueError(f"a value does not fit in {self.bits} bits")
        return self

    @model_validator(mode="after")
    def _part_of_a_connection(self) -> Self:
        if self.part is None:
            return self
        if self.by == "flow":
            raise ValueError("a flow has no connection")
        if self.mode == "learned" and self.part == "source_address":
            raise ValueError("no source address is learned: that of a reply is the tester's own")
        is_whole_address = self.mode == "learned" and self.part == "destination_address"
        if self.bits not in ((32, 128) if is_whole_address else (16,)):
            raise ValueError(f"{self.part} of mode {self.mode} does not have {self.bits} bits")
        if self.mode == "connection" and (int(self.first or 0) + int(self.count or 0) - 1) >> self.bits:
            raise ValueError(f"the last number does not fit in {self.bits} bits")
        return self

    @property
    def period(self) -> int:
        """Frames or flows after which its values repeat, unless they are random."""
        return len(self.values or ()) or int(self.count or 1)

    @property
    def steady_step(self) -> int:
        """By how much it grows each time, without turning over; 0: it does not."""
        step = int(self.step or 0) * {"increasing": 1, "decreasing": -1}.get(self.mode, 0)
        last = int(self.first or 0) + step * (self.period - 1)
        return step if 0 <= last < 1 << self.bits else 0

    @property
    def values_by_turns(self) -> int:
        """How many values it takes one after the other before it takes the first one again; 1 of a random one."""
        if self.mode not in ("increasing", "decreasing"):
            return self.period if self.mode == "list" else 1
        return min(self.period, (1 << self.bits) // gcd(int(self.step or 0), 1 << self.bits))

    def at(self, number: int) -> int:
        """Its value in frame or flow ``number``, where the mode and the number say it: neither at random nor of a
        connection."""
        if self.values is not None:
            return int(self.values[number % self.period])
        steps = number % self.period * int(self.step or 0)
        return (int(self.first or 0) + (steps if self.mode == "increasing" else -steps)) % (1 << self.bits)

    def _numbers(self) -> Iterator[str]:
        """Every value that stands in the member as it is."""
        if self.first is not None:
            yield self.first
        yield from self.values or ()

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: Any) -> dict[str, Any]:
        """Members that the mode does not have are absent."""
        return {name: value for name, value in dump(self).items() if value is not None}


class DescribedFrame(Value):
    """One kind of test frame: FRAME of the protocol. ``size`` is in bytes including the FCS; from the
    end of ``bytes`` on, the engine writes the counting pattern 00 01 02 …, and the tag over it."""

    name: str | None = None
    """Of its stream and size, for a person; the engine does not get it."""
    stream: str | None = None
    """Name of its stream, if the direction has several; the engine gets their numbers."""
    native: Literal[True] | None = None
    """It is native IPv6 in the background (RFC 8219 5.3); the engine does not get it."""
    size: Annotated[int, Field(ge=MIN_FRAME_SIZE, le=MAX_FRAME_SIZE)]
    bytes: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){14,}$")]
    tag_at: Offset
    source_mac: Literal["port", "given"] = "port"
    destination_mac: Literal["next_hop4", "next_hop6", "given"]
    host: Annotated[int, Field(ge=1, le=255)] | None = None
    """Number of the host on the sending port whose MAC address and gateways it has; None: the port's own."""
    checksums: Annotated[tuple[Checksum, ...], Field(max_length=MOST_CHECKSUMS)] = ()
    """In the order in which the engine computes them: one may cover those before it."""
    fields: Annotated[tuple[DescribedField, ...], Field(max_length=MOST_FIELDS)] = ()
    flows: Flows = 1
    flow_order: FlowOrder = "in_turn"
    checked: bool | None = True
    """False: a checksum or a length is wrong on purpose, and the receiver does not check it. None: the
    engine finds out whether all are right."""
    arrives_with: TagChoices | None = None
    """VLAN tags with which it may arrive; None: those of arriving frames are not compared."""
    arrives_encapsulated: bool | None = None
    """Whether it must arrive with an IP packet around the innermost one, as in a tunnel; None: that is not compared."""

    @property
    def most_flows(self) -> int:
        """How many flows the fields that vary by flow tell apart at most."""
        by_flow = [one for one in self.fields if one.by == "flow"]
        random = prod(int(one.count or 1) for one in by_flow if one.mode == "random")
        return random * lcm(*(one.values_by_turns for one in by_flow))

    @property
    def is_connected(self) -> bool:
        return any(field.part is not None for field in self.fields)

    @model_validator(mode="after")
    def _within_the_frame(self) -> Self:
        end = self.size - FCS_SIZE
        if len(self.bytes) // 2 > end or self.tag_at + TAG_SIZE > end:
            raise ValueError(f"headers and tag do not fit into {self.size} bytes")
        for checksum in self.checksums:
            if checksum.at + 2 > end or not all(0 <= first < last <= end for first, last in checksum.covers):
                raise ValueError(f"the checksum at {checksum.at} is not within the frame")
        for field in self.fields:
            if field.bit + field.bits > 8 * end:
                raise ValueError(f"the field at bit {field.bit} is not within the frame")
        return self
