# SPDX-License-Identifier: Apache-2.0
"""The values of a field of a flow, as text for :mod:`dutperf.frames`, each with its place in the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from math import lcm
from random import Random
from typing import NamedTuple

from dutperf.model import MOST_VALUES
from dutperf.otg.model import Message, Rejected, chosen, name_of, value_of

_PATTERN_DEFAULT = "value"


class FieldText(NamedTuple):
    """What a field of ours is given."""

    text: str
    place: str
    """In the configuration."""


@dataclass(frozen=True)
class Part:
    """A field of ours that has bits of a field of the model, or the other way round."""

    name: str
    shift: int = 0
    bits: int = 0
    """0: all of it."""


@dataclass(frozen=True)
class ModelField:
    parts: tuple[Part, ...]
    default: str | None = None
    """None: computed, or the port's."""
    form: Callable[[object], int] = int  # type: ignore[assignment]
    show: Callable[[int], str] = str


def _mac(text: object) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", str(text)):
        raise ValueError(f"{text!r} is no MAC address")
    return int(str(text).replace(":", ""), 16)


def _shown_mac(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))


def _ipv4(text: object) -> int:
    return int(IPv4Address(str(text)))


def _ipv6(text: object) -> int:
    return int(IPv6Address(str(text)))


def number_field(name: str, default: str | None = None) -> ModelField:
    """A field whose values are numbers in the model and in ours."""
    return ModelField((Part(name),), default)


def mac_field(name: str, default: str | None = None) -> ModelField:
    return ModelField((Part(name),), default, _mac, _shown_mac)


def ipv4_field(name: str, default: str | None = None) -> ModelField:
    return ModelField((Part(name),), default, _ipv4, lambda number: str(IPv4Address(number)))


def ipv6_field(name: str, default: str | None = None) -> ModelField:
    return ModelField((Part(name),), default, _ipv6, lambda number: str(IPv6Address(number)))


def texts(pattern: Message, of_model: ModelField, where: str) -> Mapping[str, FieldText]:
    """The text of each of our fields that has bits of this one; none where the model says that they are computed.
    Raises Rejected: a pattern that is not covered, or has too many values."""
    choice = chosen(pattern, _PATTERN_DEFAULT)
    if choice in ("auto", "generated"):
        if choice == "generated" and pattern.HasField("generated") and name_of(pattern, "generated") == "bad":
            raise Rejected(f"{where}: a bad checksum is not covered; give it as custom")
        return {}
    if choice in ("increment", "decrement") and not of_model.parts[0].bits:
        with_counter = _counter(getattr(pattern, choice), choice, of_model, f"{where}.{choice}")
        return {of_model.parts[0].name: FieldText(with_counter, where)}
    numbers = numbers_of(pattern, of_model, where)
    if of_model.parts[0].bits:
        return parted(numbers, of_model.parts, where)
    return {part.name: FieldText(listed(list(map(of_model.show, numbers))), where) for part in of_model.parts}


def numbers_of(pattern: Message, of_model: ModelField, where: str) -> list[int]:
    """The values of a pattern in their order. Raises Rejected: see :func:`texts`."""
    choice = chosen(pattern, _PATTERN_DEFAULT)
    try:
        numbers = _numbers(pattern, choice, of_model)
    except (ValueError, ArithmeticError) as error:
        raise Rejected(f"{where}.{choice}: {error}") from None
    if not numbers:
        raise Rejected(f"{where}.{choice}: there are no values")
    if len(numbers) > MOST_VALUES:
        raise Rejected(f"{where}.{choice}: {len(numbers):,} values are too many; at most {MOST_VALUES:,} are possible")
    return numbers


def fixed(message: Message, name: str, of_model: ModelField, where: str) -> int:
    """The only value of the field ``name``; its default where it is left out. Raises Rejected: it varies."""
    pattern = getattr(message, name)
    if not message.HasField(name) or chosen(pattern) == "auto":
        return of_model.form(of_model.default or "0")
    numbers = set(numbers_of(pattern, of_model, f"{where}.{name}"))
    if len(numbers) > 1:
        raise Rejected(f"{where}.{name}: it cannot vary: all frames have the same")
    return numbers.pop()


def together(message: Message, parts: Sequence[Part], where: str) -> list[int]:
    """The numbers that several fields of the model make, each with bits of its own; those left out are 0. Raises
    Rejected: a value that has more bits, or too many combinations."""
    each = [
        [_in_place(one, part, where) for one in numbers_of(getattr(message, part.name), number_field(part.name), place)]
        for part in parts
        for place in (f"{where}.{part.name}",)
        if message.HasField(part.name)
    ]
    count = lcm(*(len(one) for one in each))
    if count > MOST_VALUES:
        raise Rejected(f"{where}: {count:,} combinations are too many; at most {MOST_VALUES:,} are possible")
    return [sum(one[number % len(one)] for one in each) for number in range(count)]


def _in_place(number: int, part: Part, where: str) -> int:
    return _fitting(number, part.bits, f"{where}.{part.name}") << part.shift


def _fitting(number: int, bits: int, where: str) -> int:
    if number >> bits:
        raise Rejected(f"{where}: {number} does not fit in {bits} bits (0 to {(1 << bits) - 1})")
    return number


def parted(numbers: Iterable[int], parts: Sequence[Part], where: str) -> Mapping[str, FieldText]:
    """Our fields, which have bits of these numbers. Raises Rejected: one has more bits."""
    bits = max(part.shift + part.bits for part in parts)
    each = [_fitting(one, bits, where) for one in numbers]
    return {
        part.name: FieldText(listed([str(one >> part.shift & (1 << part.bits) - 1) for one in each]), where)
        for part in parts
    }


def listed(each: Sequence[str]) -> str:
    return each[0] if len(set(each)) == 1 else f"list({','.join(each)})"


def _counter(counter: Message, choice: str, of_model: ModelField, where: str) -> str:
    try:
        start, step, count = _counted(counter, of_model)
    except ValueError as error:
        raise Rejected(f"{where}: {error}") from None
    if count == 1 or step == 0:
        return of_model.show(start)
    return f"{choice}({of_model.show(start)},step={step},count={count})"


def _counted(counter: Message, of_model: ModelField) -> tuple[int, int, int]:
    return (
        of_model.form(value_of(counter, "start")),
        of_model.form(value_of(counter, "step")),
        value_of(counter, "count"),
    )


def _numbers(pattern: Message, choice: str, of_model: ModelField) -> list[int]:
    if choice == "values":
        return [of_model.form(one) for one in pattern.values]
    if choice == "random":
        return _random(pattern.random, of_model)
    if choice in ("increment", "decrement"):
        start, step, count = _counted(getattr(pattern, choice), of_model)
        sign = 1 if choice == "increment" else -1
        return [start + sign * step * number for number in range(min(count, MOST_VALUES + 1))]
    if choice == "custom":
        return [int(pattern.custom)]
    return [of_model.form(value_of(pattern, "value"))]


def _random(pattern: Message, of_model: ModelField) -> list[int]:
    """``count`` values of the range, which repeat; the same for the same seed."""
    first, last = of_model.form(value_of(pattern, "min")), of_model.form(value_of(pattern, "max"))
    if last < first:
        raise ValueError(f"min is above max ({of_model.show(first)}, {of_model.show(last)})")
    draw = Random(value_of(pattern, "seed"))
    return [draw.randint(first, last) for _ in range(min(value_of(pattern, "count"), MOST_VALUES + 1))]
