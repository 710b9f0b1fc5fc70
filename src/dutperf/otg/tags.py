# SPDX-License-Identifier: Apache-2.0
"""The fields of arriving frames by whose values a flow is counted: ``metric_tags`` of its ``egress_packet``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dutperf.frames.building import PlacedField, places
from dutperf.model.stream import MOST_TRACKED, TrackedBits
from dutperf.otg.headers import HEADERS, OpenFields, stack_of
from dutperf.otg.model import Message, Rejected, chosen, members_of

_CLASS = ("dscp", "ecn")
_NESTED: Mapping[str, tuple[Sequence[str], int, int]] = {
    "priority.raw": (_CLASS, 0, 8),
    "priority.dscp.phb": (_CLASS, 0, 6),
    "priority.dscp.ecn": (_CLASS, 6, 2),
    "priority.tos.precedence": (_CLASS, 0, 3),
    "priority.tos.delay": (_CLASS, 3, 1),
    "priority.tos.throughput": (_CLASS, 4, 1),
    "priority.tos.reliability": (_CLASS, 5, 1),
    "priority.tos.monetary": (_CLASS, 6, 1),
    "priority.tos.unused": (_CLASS, 7, 1),
}
"""Fields of IPv4 within others: ours that have them, their first bit there, and how many bits they have."""


@dataclass(frozen=True)
class MetricTag:
    """A name for some bits of arriving frames."""

    name: str
    bits: TrackedBits

    @property
    def digits(self) -> int:
        """Of its values in hexadecimal."""
        return -(-self.bits.bits // 4)


def tags_of(flow: Message, where: str) -> tuple[MetricTag, ...]:
    """Those of a flow, in the order of its headers. Raises Rejected: one is not possible; the text names its place."""
    if not flow.egress_packet:
        return ()
    where = f"{where}.egress_packet"
    tags = tuple(_tags(flow.egress_packet, where))
    if len({one.name for one in tags}) < len(tags):
        raise Rejected(f"{where}: two metric_tags have the same name")
    if (bits := sum(one.bits.bits for one in tags)) > MOST_TRACKED:
        raise Rejected(f"{where}: {bits} bits are tracked by metric_tags; {MOST_TRACKED} are possible")
    return tags


def split(tags: Sequence[MetricTag], value: int) -> dict[str, str]:
    """The values of all tags, in hexadecimal, of the one that is counted."""
    found: dict[str, str] = {}
    for one in reversed(tags):
        found[one.name] = f"{value & (1 << one.bits.bits) - 1:0{one.digits}x}"
        value >>= one.bits.bits
    return {one.name: found[one.name] for one in tags}


def _tags(packet: Message, where: str) -> Iterator[MetricTag]:
    fields = places(stack_of(packet, where, OpenFields()))
    number = 0
    for index, header in enumerate(packet):
        name = chosen(header, "custom")
        for path, tag in _tagged(getattr(header, name), ""):
            place = f"{where}[{index}].{name}.{path}.metric_tags"
            found, offset, bits = _place(fields, number, name, path, place)
            yield _tag(tag, found.bit + offset, bits, place)
        number += 1 + (HEADERS[name].then is not None)


def _tagged(message: Message, path: str) -> Iterator[tuple[str, Message]]:
    """Each tag within a header, with the path of its field there."""
    for field, _, one in members_of(message):
        if field == "metric_tags":
            yield path, one
        else:
            yield from _tagged(one, f"{path}.{field}" if path else field)


def _place(
    fields: Sequence[PlacedField], number: int, name: str, path: str, where: str
) -> tuple[PlacedField, int, int]:
    """Our field that has a field of the model, the bit at which it begins there, and its bits."""
    kind = HEADERS[name]
    own = kind.fields.get(path.removeprefix(f"{kind.within}."))
    of_header = {one.name: one for one in fields if one.header == number}
    if own is not None:
        each = [of_header[part.name] for part in own.parts]
        return each[0], 0, sum(one.bits for one in each)
    if name == "ipv4" and path in _NESTED:
        ours, offset, bits = _NESTED[path]
        return of_header[ours[0]], offset, bits
    raise Rejected(f"{where} is not covered", code=501)


def _tag(tag: Message, bit: int, bits: int, where: str) -> MetricTag:
    if not tag.name:
        raise Rejected(f"{where}: the name is missing")
    length = tag.length if tag.HasField("length") else bits - tag.offset
    if not 1 <= length <= bits - tag.offset:
        raise Rejected(f"{where}: {length} bits from bit {tag.offset} on are not within the field, which has {bits}")
    if length > MOST_TRACKED:
        raise Rejected(f"{where}: {length} bits are not possible; {MOST_TRACKED} are")
    return MetricTag(tag.name, TrackedBits(bit=bit + tag.offset, bits=length))
