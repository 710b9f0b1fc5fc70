# SPDX-License-Identifier: Apache-2.0
"""The headers of a stream of ours as those of the Open Traffic Generator API: the way back of
:mod:`dutperf.otg.headers`, by the same table.

Values are read from the frame that is sent, so that what is left to defaults or to the test setup in ours is given in
the model. Lengths, types and checksums that ours computes are computed there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any

import snappi

from dutperf.frames import Header, PlacedField, Role, Stack, places
from dutperf.frames.values import Computed
from dutperf.model import MOST_VALUES, DescribedField, DescribedFrame
from dutperf.otg.headers import HEADERS
from dutperf.otg.model import Message, as_members, messages
from dutperf.otg.patterns import ModelField

_RANDOM_VALUES = 1000
"""Of a field that varies at random: in the model they repeat. All of them are in the request for a trial."""
_INNER_FCS = 4
_IP = ("ipv4", "ipv6")
_IN_WORDS = {"_bytes": "option", "_key_present": "key", "_sequence_present": "sequence"}
"""Of what stands in a header for fields that are given."""


class InexpressibleError(ValueError):
    """The model has no such header, field or value; the text names it."""


@dataclass(frozen=True)
class _Value:
    """A field in the frame that is sent."""

    place: PlacedField
    is_given: bool
    number: int
    """Of the first frame."""
    varies: DescribedField | None = None

    def at(self, number: int) -> int:
        """In frame ``number``."""
        if self.varies is None:
            return self.number
        shift = self.place.bit + self.place.bits - self.varies.bit - self.varies.bits
        mask = ((1 << self.varies.bits) - 1) << shift
        return self.number & ~mask | self.varies.at(number) << shift

    @property
    def period(self) -> int:
        """Frames after which it repeats. Raises InexpressibleError: it does not."""
        if self.varies is None:
            return 1
        if self.varies.mode == "random":
            raise InexpressibleError("a part of a field cannot vary at random")
        return self.varies.period


@dataclass
class ModelPacket:
    """What was made, and what a user has to know."""

    packet: list[Message] = field(default_factory=list)
    repeating: list[str] = field(default_factory=list)
    """Fields that vary at random, which repeat in the model."""


def headers_of(stack: Stack, frame: DescribedFrame) -> ModelPacket:
    """``frame``: any of the frames of ``stack``. Raises InexpressibleError: the model does not have them."""
    made = ModelPacket()
    values = _values(stack, frame)
    version = 4
    for number, header in enumerate(stack.headers):
        version = int(header.name[-1]) if header.name in _IP else version
        name = _name_of(header, version)
        following = stack.headers[number + 1].name if number + 1 < len(stack.headers) else "payload"
        whole = messages.FlowHeader(choice=messages.FlowHeader.Choice.Enum.Value(name))
        given = getattr(whole, name)
        given.SetInParent()
        kind = HEADERS[name]
        try:
            _fill(getattr(given, kind.within) if kind.within else given, name, header, values[number], made,
                  is_last=following == "payload")  # fmt: skip
        except ValueError as error:  # a number that is too large for its message, too
            raise InexpressibleError(f"{header.name}: {error}") from None
        if kind.within:
            given.choice = type(given).Choice.Enum.Value(kind.within)
        _check_limits(whole, header.name)
        made.packet.append(whole)
    return made


def _check_limits(header: Message, name: str) -> None:
    """Fields of snappi have limits that messages do not have."""
    try:
        snappi.FlowHeader().deserialize(as_members(header))
    except (TypeError, ValueError) as error:
        raise InexpressibleError(f"{name}: {' '.join(str(error).split())}") from None


def _name_of(header: Header, version: int) -> str:
    if header.name == "icmp" and version == 6:
        return "icmpv6"
    name = next((name for name, kind in HEADERS.items() if kind.ours == header.name), None)
    if name is None:
        raise InexpressibleError(f"no header {header.name} is converted")
    return name


# --- values in the frame --------------------------------------------------------------------------


def _values(stack: Stack, frame: DescribedFrame) -> list[dict[str, _Value]]:
    """Of each header its fields. Types of Ethernet and tags are where the model has them: each has that of what
    follows it, ours that of itself."""
    each: list[dict[str, _Value]] = [{} for _ in stack.headers]
    for place in places(stack):
        name = place.name if place.name not in each[place.header] else f"{place.name} {place.bit}"
        given = stack.headers[place.header].given.get(place.name, Computed.YES)
        each[place.header][name] = _value(place, frame, is_given=given is not Computed.YES)
    for first, header in enumerate(stack.headers):
        if header.name == "eth":
            tags = next(
                (number for number, one in enumerate(stack.headers[first + 1 :]) if one.name != "vlan"),
                len(stack.headers) - first - 1,
            )
            chain = each[first : first + tags + 1]
            types = [one["type"] for one in chain]
            for fields, announced in zip(chain, [*types[1:], types[0]], strict=True):
                fields["type"] = announced
    return each


def _value(place: PlacedField, frame: DescribedFrame, *, is_given: bool) -> _Value:
    end = place.bit + place.bits
    number = int(frame.bytes, 16) >> 4 * len(frame.bytes) - end & (1 << place.bits) - 1
    within = [one for one in frame.fields if place.bit <= one.bit and one.bit + one.bits <= end]
    varying = [one for one in within if one.by == "frame"]
    if len(varying) > 1:
        raise InexpressibleError(f"{place.name} varies in several parts")
    if varying and _is_constant(varying[0]):
        varying = []
    return _Value(place, is_given, number, varying[0] if varying else None)


def _is_constant(field: DescribedField) -> bool:
    return field.count == "1" or (field.values is not None and len(set(field.values)) == 1)


# --- fields of the model --------------------------------------------------------------------------


def _fill(
    given: Message, name: str, header: Header, values: Mapping[str, _Value], made: ModelPacket, *, is_last: bool
) -> None:
    kind, used = HEADERS[name], set[str]()
    for key, of_model in kind.fields.items():
        each = [values[part.name] for part in of_model.parts if part.name in values]
        used |= {part.name for part in of_model.parts}
        if len(each) == len(of_model.parts) and _is_needed(each, key, of_model, is_last=is_last):
            _put(getattr(given, key), of_model, each, f"{header.name}.{key}", made)
    if name in _SPECIAL:
        used |= _SPECIAL[name](given, header, values, made)
    for left, value in values.items():
        if left not in used and (value.number or value.varies) and value.place.role is not Role.CHECKSUM:
            raise InexpressibleError(f"no {_IN_WORDS.get(left, left.lstrip('_'))} is converted")


def _is_needed(each: Sequence[_Value], key: str, of_model: ModelField, *, is_last: bool) -> bool:
    """Whether the model would not have the same without it."""
    value = each[0]
    if any(one.varies for one in each):
        return True
    if key in ("src", "dst"):  # those of the cable are the ports' and the DUT's
        return value.is_given or value.place.header > 0
    if of_model.default is not None:
        return value.number != of_model.form(of_model.default)
    if len(each) > 1:
        return any(one.number for one in each)
    announces_nothing = value.place.role is Role.TYPE and is_last and key != "bottom_of_stack"
    return value.is_given or announces_nothing


def _put(pattern: Message, of_model: ModelField, each: Sequence[_Value], where: str, made: ModelPacket) -> None:
    """Give the field of the model the values of those of ours that are its parts."""
    shown = _shown(of_model)
    value = each[0]
    varying = [one for one in each if one.varies is not None]
    names = pattern.DESCRIPTOR.fields_by_name
    if not varying:
        number = sum(one.number << part.shift for one, part in zip(each, of_model.parts, strict=True))
        setattr(pattern, "custom" if value.place.role is Role.CHECKSUM else "value", shown(number))
    elif len(each) == 1 and value.varies is not None and value.varies.mode == "random":
        _put_random(pattern, shown, value, where, made)
    elif len(each) == 1 and value.varies is not None and "increment" in names and value.varies.steady_step:
        _put_counter(pattern, shown, value, value.varies)
    else:
        period = lcm(*(one.period for one in varying))
        if period > MOST_VALUES or "values" not in names:
            raise InexpressibleError(f"{where} has too many values")
        pattern.values.extend(
            shown(sum(one.at(number) << part.shift for one, part in zip(each, of_model.parts, strict=True)))
            for number in range(period)
        )


def _shown(of_model: ModelField) -> Any:
    """A number as the model has it: a number, or the text of an address."""
    return int if of_model.show is str else of_model.show


def _put_counter(pattern: Message, shown: Any, value: _Value, field: DescribedField) -> None:
    shift = value.place.bit + value.place.bits - field.bit - field.bits
    counter = pattern.increment if field.steady_step > 0 else pattern.decrement
    counter.start, counter.count = shown(value.number), field.period
    counter.step = shown(abs(field.steady_step) << shift)


def _put_random(pattern: Message, shown: Any, value: _Value, where: str, made: ModelPacket) -> None:
    field = value.varies
    assert field is not None
    if "random" not in pattern.DESCRIPTOR.fields_by_name or field.bits != value.place.bits:
        raise InexpressibleError(f"{where} varies at random, which the model does not have of it")
    first, count = int(field.first or 0), int(field.count or 1)
    pattern.random.min, pattern.random.max = shown(first), shown(first + count - 1)
    pattern.random.count, pattern.random.seed = min(count, _RANDOM_VALUES), 1 + len(made.repeating)
    made.repeating.append(where)


# --- headers that have more than fields -----------------------------------------------------------


def _of_ipv4(given: Message, header: Header, values: Mapping[str, _Value], made: ModelPacket) -> set[str]:
    """The byte of DSCP and ECN, as IPv6 has it."""
    of_model = HEADERS["ipv6"].fields["traffic_class"]
    each = [values[part.name] for part in of_model.parts]
    if any(one.number or one.varies for one in each):
        _put(given.priority.raw, of_model, each, f"{header.name}.priority", made)
    return {part.name for part in of_model.parts}


def _of_tcp(given: Message, _header: Header, values: Mapping[str, _Value], _made: ModelPacket) -> set[str]:
    if values["flags"].varies:
        raise InexpressibleError("flags vary, which the model does not have")
    names = HEADERS["tcp"].also
    for number, name in enumerate(names):
        if values["flags"].number >> len(names) - 1 - number & 1:
            getattr(given, name).value = 1
    return {"flags"}


def _of_gre(given: Message, header: Header, _values: Mapping[str, _Value], _made: ModelPacket) -> set[str]:
    if "checksum" not in header.given:
        return set()
    given.checksum_present.value = 1
    return {"_checksum_present", "checksum"}


def _of_vxlan(_given: Message, header: Header, _values: Mapping[str, _Value], _made: ModelPacket) -> set[str]:
    if header.given.get("trailer") != _INNER_FCS:
        raise InexpressibleError(f"the model leaves room for an FCS of the inner frame: give trailer={_INNER_FCS}")
    return set()


def _of_custom(given: Message, header: Header, _values: Mapping[str, _Value], _made: ModelPacket) -> set[str]:
    data = header.given["data"]
    assert isinstance(data, bytes)
    given.bytes = data.hex()
    return {"_bytes"}


_SPECIAL = {"ipv4": _of_ipv4, "tcp": _of_tcp, "gre": _of_gre, "vxlan": _of_vxlan, "custom": _of_custom}
