# SPDX-License-Identifier: Apache-2.0
"""Builds a frame from a header stack: addresses, types and lengths are filled in, checksums and varying
fields are marked for the engine.

The payload reaches to the end of the frame, so every length counts up to the FCS. The tag is the first 18
bytes after the last header.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from dutperf.frames import options
from dutperf.frames.errors import FrameError
from dutperf.frames.headers import (
    PROTOCOLS,
    TUNNEL_PORTS,
    ZERO_CHECKSUM_TUNNELS,
    Cell,
    Place,
    Role,
    options_of,
    trailer_of,
)
from dutperf.frames.stack import Header, Stack
from dutperf.frames.template import Template
from dutperf.frames.values import Number, Varying
from dutperf.model.described_frame import (
    FCS_SIZE,
    MAX_FIELD_BITS,
    MOST_CHECKSUMS,
    MOST_FIELDS,
    Checksum,
    DescribedField,
    DescribedFrame,
    FlowOrder,
)
from dutperf.model.frame_size import MAX_FRAME_SIZE
from dutperf.model.value import Direction
from dutperf.spelling import with_and

_TUNNELLED: dict[str, tuple[int, int]] = {
    "eth": (0x020000000001, 0x020000000002),
    "ipv4": (int(IPv4Address("198.18.0.2")), int(IPv4Address("198.19.0.2"))),
    "ipv6": (int(IPv6Address("2001:2::2")), int(IPv6Address("2001:2:0:1::2"))),
}
"""Source and destination inside tunnels, forward."""
_IP = ("ipv4", "ipv6")
_IPV6_PROTOCOLS = PROTOCOLS | {"icmp": 58}


@dataclass(frozen=True)
class AddressBits:
    """Bits of an address that have values of their own, which may vary."""

    first: int
    """From the most significant bit of the address, which is 0."""
    bits: int
    values: Number


@dataclass(frozen=True)
class Endpoints:
    """Source and destination addresses of the outermost IP header, behind those of a tunnel, for each version that the
    test setup has, in the direction of the frame."""

    ipv4: tuple[IPv4Address, IPv4Address] | None = None
    ipv6: tuple[IPv6Address, IPv6Address] | None = None
    bits4: Mapping[str, AddressBits] = field(default_factory=dict)
    """Of ``source`` and ``destination``, where not all frames have the same."""
    bits6: Mapping[str, AddressBits] = field(default_factory=dict)


NO_ENDPOINTS = Endpoints()


@dataclass(frozen=True)
class _Placed:
    """A header in its frame."""

    header: Header
    number: int
    """From 0 on."""
    at: int
    """First byte."""
    cells: tuple[tuple[int, Cell], ...]
    """Each with its first bit in the frame."""
    place: Place
    computed: Mapping[str, Number]
    """Right values of the fields without a default."""
    bits: Mapping[str, AddressBits]
    """Of computed addresses."""

    @property
    def end(self) -> int:
        """End of the frame without FCS, in bytes."""
        return self.at + self.place.rest

    def byte_of(self, name: str) -> int:
        """First byte of a cell; of several of that name the first."""
        return next(bit for bit, cell in self.cells if cell.name == name) // 8

    @property
    def sums(self) -> bool:
        """Whether the engine computes its checksum."""
        checksum = next((cell for _, cell in self.cells if cell.role is Role.CHECKSUM), None)
        if checksum is None or isinstance(checksum.value, Number):
            return False
        return checksum.value is not None or not self._has_zero_checksum

    @property
    def _has_zero_checksum(self) -> bool:
        return self.header.name == "udp" and self.place.version == 4 and self.place.next in ZERO_CHECKSUM_TUNNELS

    @property
    def may_be_zero(self) -> bool:
        """Whether UDP has no checksum legally: over IPv4, and in tunnels over IPv6 (RFC 6935)."""
        return self.header.name == "udp" and (self.place.version == 4 or self.place.next in TUNNEL_PORTS)


@dataclass
class _Sheet:
    """What is written so far."""

    size: int
    number: int = 0
    fields: list[DescribedField] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    checked: bool = True

    def put(self, bit: int, bits: int, value: Number) -> None:
        if isinstance(value, Varying):
            self.fields.append(_described(bit, bits, value))
            value = value.values[0] if value.mode == "list" else value.first
        self.number |= value << (8 * self.size - bit - bits)

    def put_again(self, bit: int, bits: int, value: Number) -> None:
        """Other values for bits that are written already."""
        self.number &= ~(((1 << bits) - 1) << (8 * self.size - bit - bits))
        self.put(bit, bits, value)


def build(
    stack: Stack | Template,
    size: int,
    endpoints: Endpoints = NO_ENDPOINTS,
    direction: Direction = Direction.FORWARD,
    *,
    flows: int = 1,
    flow_order: FlowOrder = "in_turn",
) -> DescribedFrame:
    """The frame of ``stack`` with ``size`` bytes including the FCS; one that is given as bytes has its
    own size and addresses.

    ``direction`` swaps the default addresses inside tunnels in the reverse one; ``endpoints`` are those of the
    direction already. Fields that vary hold their first value in the frame's bytes. Raises FrameError: a size out of
    range, more to compute or to vary than the engine can, or endpoints that are needed but missing."""
    if isinstance(stack, Template):
        return stack.build(size, flows)
    if size < stack.min_size:
        raise FrameError(f"size {size} is not possible: {stack} needs at least {stack.min_size} bytes")
    if size > MAX_FRAME_SIZE:
        raise FrameError(f"size {size} is not possible: frames have at most {MAX_FRAME_SIZE} bytes")
    if flows < 1:
        raise FrameError(f"{flows} flows are not possible; at least one is")
    placed = list(_placed(stack, size - FCS_SIZE, endpoints, direction))
    sheet = _Sheet(stack.header_size)
    for one in placed:
        _write(sheet, one)
    for one in reversed(placed):  # an outer checksum covers the inner ones
        if one.sums:
            sheet.checksums.append(_checksum(placed[: one.number], one))
    _check(sheet)
    outer = placed[0].header.given
    return DescribedFrame(
        size=size,
        bytes=sheet.number.to_bytes(sheet.size, "big").hex(),
        tag_at=sheet.size,
        source_mac="given" if "source" in outer else "port",
        destination_mac="given" if "destination" in outer else "next_hop6" if stack.ip_version == 6 else "next_hop4",
        checksums=tuple(sheet.checksums),
        fields=tuple(sheet.fields),
        flows=flows,
        flow_order=flow_order,
        checked=sheet.checked,
    )


def _check(sheet: _Sheet) -> None:
    for given, most, what in (
        (sheet.checksums, MOST_CHECKSUMS, "checksums"),
        (sheet.fields, MOST_FIELDS, "fields that vary"),
    ):
        if len(given) > most:
            raise FrameError(f"{len(given)} {what} are too many: a frame can have {most}")


@dataclass(frozen=True)
class PlacedField:
    """Where a field of a stack is in its frames."""

    header: int
    """Number of its header, from 0 on."""
    name: str
    bit: int
    bits: int
    role: Role


def places(stack: Stack) -> list[PlacedField]:
    """All fields of a stack, in the order of its headers."""
    nobody = Endpoints(ipv4=(IPv4Address(0), IPv4Address(0)), ipv6=(IPv6Address(0), IPv6Address(0)))
    return [
        PlacedField(one.number, cell.name, bit, cell.bits, cell.role)
        for one in _placed(stack, stack.min_size - FCS_SIZE, nobody, Direction.FORWARD)
        for bit, cell in one.cells
    ]


def _placed(stack: Stack, end: int, endpoints: Endpoints, direction: Direction) -> Iterator[_Placed]:
    """Every header in its place, in a frame that ends at byte ``end``. Tags stand between the addresses
    of Ethernet and its type (IEEE 802.1Q 9.3)."""
    headers = stack.headers
    version: int | None = None
    destination: Number | None = None
    at = 0
    for number, header in enumerate(headers):
        addresses = _addresses(stack, number, endpoints, direction)
        if header.name in _IP:
            version, destination = int(header.name[-1]), _address(header, "destination", addresses)
        tags = _tags(headers, number + 1)
        after = number + 1 + (tags if header.name in ("eth", "vlan") else 0)
        following = headers[after].name if after < len(headers) else None
        place = Place(following, header.size, end - at, version, destination)
        computed = {**addresses, **header.kind.computed(place, header.given)}
        bits = _bits(stack, number, endpoints)
        yield _Placed(header, number, at, tuple(_spread(header, 8 * at, tags)), place, computed, bits)
        at += header.size
        end -= trailer_of(header.given)
        if header.name == "eth" and tags:
            at -= 2
        elif header.name == "vlan" and not tags:
            at += 2


def _tags(headers: Sequence[Header], first: int) -> int:
    """How many tags follow each other from ``first`` on."""
    return next(
        (number for number, header in enumerate(headers[first:]) if header.name != "vlan"), len(headers) - first
    )


def _spread(header: Header, bit: int, tags: int) -> Iterator[tuple[int, Cell]]:
    for cell in header.cells():
        if header.name == "eth" and cell.name == "type":
            bit += 32 * tags
        yield bit, cell
        bit += cell.bits


def _address(header: Header, name: str, addresses: Mapping[str, Number]) -> Number:
    given = header.given.get(name, addresses.get(name))
    assert isinstance(given, Number)
    return given


def _addresses(stack: Stack, number: int, endpoints: Endpoints, direction: Direction) -> dict[str, Number]:
    """Source and destination of a header with addresses, as far as they are not given."""
    header = stack.headers[number]
    if header.name not in _TUNNELLED:
        return {}
    if number == 0:
        return {"source": 0, "destination": 0}  # the engine writes these
    if not _has_endpoints(stack, number):
        source, destination = _TUNNELLED[header.name]
        if direction is Direction.REVERSE:
            source, destination = destination, source
        return {"source": source, "destination": destination}
    pair = endpoints.ipv4 if header.name == "ipv4" else endpoints.ipv6
    if pair is not None:
        return {"source": int(pair[0]), "destination": int(pair[1])}
    missing = [name for name in ("source", "destination") if name not in header.given]
    if missing:
        version = header.name.replace("ip", "IP")
        message = f"{header.name} needs {with_and(missing)}: the test setup has no {version} addresses"
        raise FrameError(message, name=header.name)
    return {}


def _has_endpoints(stack: Stack, number: int) -> bool:
    """Whether a header is the outermost IP header of the test frame itself."""
    before = stack.headers[stack.tunnel + 1 : number]
    return number > stack.tunnel and stack.headers[number].name in _IP and not any(one.name in _IP for one in before)


def _bits(stack: Stack, number: int, endpoints: Endpoints) -> Mapping[str, AddressBits]:
    """Bits of the addresses of a header that are the endpoints'."""
    if not _has_endpoints(stack, number):
        return {}
    header = stack.headers[number]
    bits = endpoints.bits4 if header.name == "ipv4" else endpoints.bits6
    return {name: one for name, one in bits.items() if name not in header.given}


def _write(sheet: _Sheet, placed: _Placed) -> None:
    """The bits of one header. Checksums that the engine computes are zero."""
    for bit, cell in placed.cells:
        right = placed.computed.get(cell.name, 0)
        value = cell.value if isinstance(cell.value, Number) else right
        sheet.put(bit, cell.bits, value)
        if (varied := placed.bits.get(cell.name)) is not None:
            sheet.put_again(bit + varied.first, varied.bits, varied.values)
        sheet.checked &= not _is_wrong(placed, cell, right)


def _is_wrong(placed: _Placed, cell: Cell, right: Number) -> bool:
    """Whether a length or checksum was given that the receiver could not confirm."""
    if not isinstance(cell.value, Number):
        return False
    if cell.role is Role.CHECKSUM:
        return cell.value != 0 or not placed.may_be_zero
    return cell.role is Role.LENGTH and cell.value != right


def _described(bit: int, bits: int, value: Varying) -> DescribedField:
    """The field for the engine, whose numbers are decimal text."""
    if value.mode == "list":
        return DescribedField(bit=bit, bits=bits, by=value.by, mode="list", values=tuple(map(str, value.values)))
    step = None if value.mode == "random" else str(value.step)
    count = str(min(value.count, (1 << MAX_FIELD_BITS) - 1))  # no more fit: no trial is so long
    return DescribedField(
        bit=bit, bits=bits, by=value.by, mode=value.mode, first=str(value.first), step=step, count=count
    )


def _checksum(before: Sequence[_Placed], placed: _Placed) -> Checksum:
    """The mark of a header's checksum; ``before``: the headers before it."""
    at = placed.byte_of("checksum")
    name, covered = placed.header.name, placed.header.kind.covered
    size = placed.place.size if covered.endswith("header") else placed.place.rest
    own = (placed.at, placed.at + size)
    if not covered.startswith("pseudo") or (name == "icmp" and placed.place.version == 4):
        return Checksum(at=at, covers=(own,))
    return Checksum(
        at=at,
        covers=(*_pseudo_header(before), own),
        plus=size + _IPV6_PROTOCOLS[name],
        zero_as_ones=name == "udp",
    )


def _pseudo_header(before: Sequence[_Placed]) -> tuple[tuple[int, int], ...]:
    """The ranges of the addresses (RFC 768, RFC 8200 8.1): source, and final destination."""
    ip = next(one for one in reversed(before) if one.header.name in _IP)
    size = 4 if ip.header.name == "ipv4" else 16
    source, destination = ip.byte_of("source"), _final_destination(before, ip)
    if destination == source + size:
        return ((source, source + 2 * size),)
    return ((source, source + size), (destination, destination + size))


def _final_destination(before: Sequence[_Placed], ip: _Placed) -> int:
    """Where the address of the last node of the path is: behind segments left, or a source route of
    IPv4, it is not the destination of the header."""
    if ip.header.name == "ipv4":
        route = options.end_of_route(options_of(ip.header.given))
        return ip.byte_of("destination") if route is None else ip.byte_of("_bytes") + route
    for one in reversed(before[ip.number + 1 :]):
        left = one.header.given.get("segments_left", one.computed.get("segments_left", 0))
        if left and "segments" in one.header.given:
            return one.byte_of("segments")
    return ip.byte_of("destination")
