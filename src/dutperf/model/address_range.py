# SPDX-License-Identifier: Apache-2.0
"""The IP addresses that frames have, as ranges: those that vary are too many for a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import chain

from dutperf.model.described_frame import DescribedField, DescribedFrame
from dutperf.model.replay import Recording
from dutperf.model.stream import FieldMode, Stream, VaryingAddress

Address = IPv4Address | IPv6Address

NETWORK_BYTE = {4: 2, 6: 7}
"""The byte of an address that is the number of one of several networks (RFC 2544 section 12, RFC 8219 4.1)."""
_VLAN_TYPES = frozenset((b"\x81\x00", b"\x88\xa8", b"\x91\x00"))
_IP = {b"\x08\x00": (12, 4), b"\x86\xdd": (8, 16)}
"""By EtherType: where the source address is in the header, and how many bytes it has; the destination follows."""


@dataclass(frozen=True)
class AddressRange:
    """The addresses whose bits in ``mask`` are a number from that of ``first`` to that of ``last``, and whose
    other bits are those of ``first``."""

    first: Address
    last: Address
    mask: int

    @property
    def version(self) -> int:
        return self.first.version

    @property
    def lowest(self) -> int:
        """The number of ``first``."""
        return self.number(self.first)

    @property
    def highest(self) -> int:
        """The number of ``last``."""
        return self.number(self.last)

    def number(self, address: Address) -> int:
        """The number in the bits of ``mask``, which are in a row."""
        return (int(address) & self.mask) // max(1, self.mask & -self.mask)

    def at(self, number: int) -> Address:
        """The address with a number."""
        return type(self.first)(int(self.first) & ~self.mask | number * (self.mask & -self.mask))

    def has(self, address: Address) -> bool:
        fixed = ~self.mask & ((1 << address.max_prefixlen) - 1)
        return (
            address.version == self.version
            and int(address) & fixed == int(self.first) & fixed
            and self.lowest <= self.number(address) <= self.highest
        )

    def request(self) -> dict[str, str]:
        """As in requests to the engine (protocol/request.schema.json)."""
        if self.first == self.last:
            return {"first": str(self.first)}
        return {"first": str(self.first), "last": str(self.last), "mask": str(type(self.first)(self.mask))}


def one(address: Address) -> AddressRange:
    return AddressRange(address, address, 0)


def of_network(network: IPv4Network | IPv6Network) -> AddressRange:
    return AddressRange(network[0], network[-1], int(network.hostmask))


def varying(address: Address, by: VaryingAddress | None) -> AddressRange:
    """``address`` with 16 bits that vary."""
    if by is None:
        return one(address)
    offset = by.offset4 if address.version == 4 else by.offset6
    return _within(address, address.max_prefixlen - 8 * offset - 16, 16, by.min, by.max)


def in_networks(address: Address, networks: int) -> AddressRange:
    """The host with ``address`` in each of several networks."""
    if networks == 1:
        return one(address)
    return _within(address, address.max_prefixlen - 8 * NETWORK_BYTE[address.version] - 8, 8, 0, networks - 1)


def network_bits(address: Address, at: int, networks: int) -> VaryingAddress:
    """The 16 bits of ``address`` that end with byte ``at``, the number of one of several networks."""
    first, offset = address.packed[at - 1] << 8, {f"offset{address.version}": at - 1}
    return VaryingAddress(mode=FieldMode.RANDOM, min=first, max=first + networks - 1, **offset)


def sources(stream: Stream) -> Iterator[AddressRange]:
    if stream.foreground is not None:
        yield varying(stream.foreground.source, stream.source_address)
    if stream.background is not None:
        yield one(stream.background.source)
    if stream.questions is not None:
        yield one(stream.questions.source)
    yield from _of_described(stream.frames, 0)
    yield from _of_replay(stream, 0)
    yield from _of_bytes((bytes.fromhex(frame) for kind in stream.additional for frame in kind.frames), 0)


def destinations(stream: Stream) -> Iterator[AddressRange]:
    """Destination addresses of the test frames of a path."""
    if stream.foreground is not None and stream.destination_address is not None:
        yield varying(stream.foreground.destination, stream.destination_address)
    elif stream.foreground is not None:
        yield in_networks(stream.foreground.destination, stream.networks)
    if stream.background is not None:
        yield in_networks(stream.background.destination, stream.networks)
    if stream.questions is not None:
        yield one(stream.questions.destination)
    yield from _of_described(stream.frames, 1)
    yield from _of_replay(stream, 1)


def merged(ranges: Iterable[AddressRange]) -> tuple[AddressRange, ...]:
    """The same unicast addresses, each range once, and addresses that follow each other in one range."""
    unicast = {range_ for range_ in ranges if _is_unicast(range_.first)}
    kept = sorted(unicast, key=lambda range_: (range_.version, int(range_.first), int(range_.last)))
    found: list[AddressRange] = []
    for range_ in kept:
        if range_.mask == 0 and found and found[-1].version == range_.version and _ends_before(found[-1], range_.first):
            found[-1] = AddressRange(found[-1].first, range_.first, (1 << range_.first.max_prefixlen) - 1)
        else:
            found.append(range_)
    return tuple(found)


def _ends_before(range_: AddressRange, address: Address) -> bool:
    return range_.mask in (0, (1 << address.max_prefixlen) - 1) and int(range_.last) + 1 == int(address)


def _is_unicast(address: Address) -> bool:
    return not (address.is_multicast or address.is_unspecified or address.is_loopback or int(address) == 2**32 - 1)


def _within(address: Address, shift: int, bits: int, low: int, high: int) -> AddressRange:
    mask = ((1 << bits) - 1) << shift
    rest = int(address) & ~mask
    kind = type(address)
    return AddressRange(kind(rest | low << shift), kind(rest | high << shift), mask)


def _of_replay(stream: Stream, end: int) -> Iterable[AddressRange]:
    if stream.replay is None or stream.replay.recording is None:
        return ()
    return _of_recording(stream.replay.recording)[end]


@lru_cache(maxsize=1)  # of up to a million frames, in every trial
def _of_recording(recording: Recording) -> tuple[frozenset[AddressRange], ...]:
    frames = (recording[number].data for number in range(len(recording)))
    both = [(tuple(_of_bytes([frame], 0)), tuple(_of_bytes([frame], 1))) for frame in frames]
    return tuple(frozenset(chain.from_iterable(one[end] for one in both)) for end in (0, 1))


def _of_bytes(frames: Iterable[bytes], end: int) -> Iterator[AddressRange]:
    for frame in frames:
        if (place := _place(frame, end)) is not None:
            yield one(ip_address(frame[place[0] : sum(place)]))


def _of_described(frames: Iterable[DescribedFrame], end: int) -> Iterator[AddressRange]:
    for frame in frames:
        data = bytes.fromhex(frame.bytes)
        place = _place(data, end)
        if place is None:
            continue
        at, size = place
        address = ip_address(data[at : at + size])
        low, high, mask = int(address), int(address), 0
        within = [field for field in frame.fields if 8 * at < field.bit + field.bits and field.bit < 8 * (at + size)]
        if any(field.mode == "learned" for field in within):  # known to the engine alone
            continue
        for field in within:
            first, last, bits = _numbers(field, 8 * (at + size) - field.bit - field.bits, 8 * size)
            low, high, mask = low & ~bits | first, high & ~bits | last, mask | bits
        yield AddressRange(type(address)(low), type(address)(high), mask)


def _numbers(field: DescribedField, shift: int, size: int) -> tuple[int, int, int]:
    """Smallest and largest number of a field, and its mask, as a part of an address of ``size`` bits that it ends
    ``shift`` bits before the end of. Any, where it is not all in the address."""
    whole = ((1 << field.bits) - 1) << shift if shift >= 0 else (1 << (field.bits + shift)) - 1
    mask = whole & ((1 << size) - 1)
    low, high = _limits(field)
    if mask != ((1 << field.bits) - 1) << max(shift, 0) or shift < 0 or low > high:
        return 0, mask, mask
    return low << shift, high << shift, mask


def _limits(field: DescribedField) -> tuple[int, int]:
    """Smallest and largest value; the first is greater than the last where the values wrap around."""
    if field.values:
        values = [int(value) for value in field.values]
        return min(values), max(values)
    first, most = int(field.first or 0), (1 << field.bits) - 1
    count = int(field.count) if field.count is not None else most + 1
    far = (count - 1) * int(field.step or 1)
    low, high = (first - far, first) if field.mode == "decreasing" else (first, first + far)
    return (low, high) if low >= 0 and high <= most else (1, 0)


def _place(frame: bytes, end: int) -> tuple[int, int] | None:
    """Where the source (0) or destination (1) address of the outermost IP header is, and its size; None: the frame
    has none that a host on the link could have."""
    at = 12
    while frame[at : at + 2] in _VLAN_TYPES:
        at += 4
    found = _IP.get(bytes(frame[at : at + 2]))
    if found is None:
        return None
    place, size = at + 2 + found[0] + end * found[1], found[1]
    return (place, size) if place + size <= len(frame) else None
