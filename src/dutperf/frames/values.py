# SPDX-License-Identifier: Apache-2.0
"""Values of header fields: how they are written, and how they vary.

A value is a number of up to 128 bits, whatever its form: an address, flags, hexadecimal. It is fixed, or
varies from frame to frame or from flow to flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

from dutperf.frames.text import Node
from dutperf.model import MOST_VALUES, FieldMode, VaryingField
from dutperf.spelling import hint

Mode = Literal["increasing", "decreasing", "random", "list"]
By = Literal["frame", "flow"]
TCP_FLAGS = "NCEUAPRSF"
"""A letter for each, from the most significant: NS, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN (RFC 9293 3.1,
RFC 3540)."""
_TCP_FLAGS_WRITTEN = "FSRPAUECN"
"""The order in which they are mostly written: SA, PA, FA."""


class Computed(Enum):
    """A checksum that the engine computes."""

    YES = "yes"


@dataclass(frozen=True)
class Varying:
    """The numbers of a field: as in :class:`dutperf.model.DescribedField`. ``values`` are those of a list
    only."""

    mode: Mode
    first: int = 0
    step: int = 1
    count: int = 1
    values: tuple[int, ...] = ()
    by: By = "frame"

    @property
    def last(self) -> int:
        """The last number before the first comes again; of ``random``: the largest."""
        return self.first + (self.count - 1) * (-self.step if self.mode == "decreasing" else self.step)


Number = int | Varying


def number_of(field: VaryingField, by: By) -> Number:
    """The numbers of ``field``, which frames or flows have; fixed where it has one only."""
    count = field.max - field.min + 1
    match field.mode:
        case FieldMode.INCREASING if count > 1:
            return Varying("increasing", field.min, count=count, by=by)
        case FieldMode.DECREASING if count > 1:
            return Varying("decreasing", field.max, count=count, by=by)
        case FieldMode.RANDOM if count > 1:
            return Varying("random", field.min, count=count, by=by)
        case _:
            return field.min


@dataclass(frozen=True)
class Form:
    """How numbers are written. ``read`` raises ValueError, ``write`` gets the number and its bits."""

    expected: str
    read: Callable[[str], int]
    write: Callable[[int, int], str]


def _number(word: str) -> int:
    if not word.isascii() or not word.isalnum():
        raise ValueError(word)
    return int(word, 16) if word[:2] in ("0x", "0X") else int(word, 10)


def _mac(word: str) -> int:
    parts = word.split(":")
    if len(parts) != 6 or not all(len(part) == 2 for part in parts):
        raise ValueError(word)
    return int.from_bytes(bytes.fromhex("".join(parts)), "big")


def _flags(word: str) -> int:
    """Letters, or a number."""
    if word[0].isdigit():
        return _number(word)
    bits = [1 << (len(TCP_FLAGS) - 1 - TCP_FLAGS.index(letter)) for letter in word.upper()]
    if len(set(bits)) < len(bits):
        raise ValueError(word)
    return sum(bits)


def _write_flags(number: int, bits: int) -> str:
    if number >> len(TCP_FLAGS) or bits != len(TCP_FLAGS):
        return str(number)
    said = (letter for letter in _TCP_FLAGS_WRITTEN if number >> (len(TCP_FLAGS) - 1 - TCP_FLAGS.index(letter)) & 1)
    return "".join(said) or "0"


DECIMAL = Form("a number", _number, lambda number, _: str(number))
HEX = Form("a number", _number, lambda number, bits: f"0x{number:0{(bits + 3) // 4}x}")
IPV4 = Form("an IPv4 address", lambda word: int(IPv4Address(word)), lambda number, _: str(IPv4Address(number)))
IPV6 = Form("an IPv6 address", lambda word: int(IPv6Address(word)), lambda number, _: str(IPv6Address(number)))
MAC = Form("a MAC address", _mac, lambda number, _: number.to_bytes(6, "big").hex(":"))
FLAGS = Form(f"letters of {_TCP_FLAGS_WRITTEN} or a number", _flags, _write_flags)


def read_fixed(node: Node, form: Form, bits: int) -> int:
    """A number that does not vary. Raises FrameError: not of this form, or outside its bits."""
    if node.is_list or node.arguments is not None:
        raise node.error(f"expected {form.expected}, which does not vary here")
    try:
        number = form.read(node.word)
    except ValueError:
        raise node.error(f"expected {form.expected}, not '{node.word}'") from None
    if number >> bits:
        raise node.error(f"{node.word} does not fit in {bits} bits (0 to {(1 << bits) - 1})")
    return number


def read(node: Node, form: Form, bits: int) -> Number:
    """A number, or how it varies. Raises FrameError: as in :func:`read_fixed`; or numbers that leave the range of the
    field."""
    if node.is_list:
        raise node.error(f"expected {form.expected}, not a list in brackets; it varies with list(…)")
    if node.arguments is None:
        return read_fixed(node, form, bits)
    if node.word not in _READERS:
        raise node.error(f"unknown way to vary '{node.word}'; {hint(node.word.lower(), _READERS)}")
    return _READERS[node.word](node, form, bits)


def write(value: Number, form: Form, bits: int) -> str:
    """Text that :func:`read` reads as ``value``."""
    if isinstance(value, int):
        return form.write(value, bits)
    by = ("by=flow",) if value.by == "flow" else ()
    if value.mode == "list":
        return f"list({','.join((*(form.write(number, bits) for number in value.values), *by))})"
    name = {"random": "random", "increasing": "increment", "decreasing": "decrement"}[value.mode]
    step = (f"step={value.step}",) if value.step != 1 else ()
    return f"{name}({','.join((form.write(value.first, bits), form.write(value.last, bits), *step, *by))})"


def _random(node: Node, form: Form, bits: int) -> Varying:
    by = _by(_named(node, ("by",)))
    numbers = _numbers(node, form, bits, 2, 2)
    if numbers[0] > numbers[1]:
        raise node.error("the first number is greater than the last one")
    return Varying("random", numbers[0], count=numbers[1] - numbers[0] + 1, by=by)


def _list(node: Node, form: Form, bits: int) -> Varying:
    by = _by(_named(node, ("by",)))
    return Varying("list", values=_numbers(node, form, bits, 1, MOST_VALUES), by=by)


def _counting(mode: Mode, node: Node, form: Form, bits: int) -> Varying:
    named = _named(node, ("step", "count", "by"))
    numbers = _numbers(node, form, bits, 1, 2)
    step = _positive(named["step"], bits) if "step" in named else 1
    count = _count(mode, node, numbers, step, bits)
    if "count" in named:
        if len(numbers) == 2:
            raise named["count"].error("either the last number or count, not both")
        if (asked := _positive(named["count"], bits + 1)) > count:
            raise named["count"].error(f"{asked} values do not fit in {bits} bits; at most {count} do")
        count = asked
    return Varying(mode, numbers[0], step if count > 1 else 1, count, by=_by(named))


def _count(mode: Mode, node: Node, numbers: tuple[int, ...], step: int, bits: int) -> int:
    """How many numbers there are up to the last one, or to the end of the field's range."""
    end = numbers[1] if len(numbers) == 2 else (1 << bits) - 1 if mode == "increasing" else 0
    distance = end - numbers[0] if mode == "increasing" else numbers[0] - end
    if distance < 0:
        raise node.error(f"the first number is {'greater' if mode == 'increasing' else 'less'} than the last one")
    return distance // step + 1


def _numbers(node: Node, form: Form, bits: int, fewest: int, most: int) -> tuple[int, ...]:
    arguments = node.arguments or ()
    if not fewest <= len(arguments) <= most:
        span = f"{fewest}" if most == fewest else f"{fewest} to {most:,}"
        raise node.error(f"{node.word} has {span} values, not {len(arguments):,}")
    return tuple(read_fixed(argument, form, bits) for argument in arguments)


def _named(node: Node, known: tuple[str, ...]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for name, value in node.named:
        if name.word not in known:
            raise name.error(
                f"{node.word} has no {name.word}=" + (f"; {hint(name.word.lower(), known)}" if known else "")
            )
        if name.word in found:
            raise name.error(f"{name.word} is given twice")
        found[name.word] = value
    return found


def _positive(node: Node, bits: int) -> int:
    number = read_fixed(node, DECIMAL, bits)
    if number == 0:
        raise node.error("expected a number from 1 on")
    return number


def _by(named: dict[str, Node]) -> By:
    if "by" not in named or named["by"].word == "frame":
        return "frame"
    if named["by"].word != "flow":
        raise named["by"].error(f"by is frame or flow, not '{named['by'].word}'")
    return "flow"


_READERS: dict[str, Callable[[Node, Form, int], Varying]] = {
    "random": _random,
    "increment": lambda node, form, bits: _counting("increasing", node, form, bits),
    "decrement": lambda node, form, bits: _counting("decreasing", node, form, bits),
    "list": _list,
}
