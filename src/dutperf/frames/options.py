# SPDX-License-Identifier: Apache-2.0
"""Options of IPv4 (RFC 791 3.1, RFC 2113), TCP (RFC 9293 3.2, RFC 7323) and of IPv6's options headers
(RFC 8200 4.2, RFC 2711): their text and their bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dutperf.frames.text import Node
from dutperf.frames.values import DECIMAL, IPV4, Form, read_fixed
from dutperf.spelling import hint

_SOURCE_ROUTES = (131, 137)
"""Loose and strict (RFC 791)."""
_END, _NOTHING, _SHORTEST_ROUTE = 0, 1, 7


@dataclass(frozen=True)
class Option:
    """An option and its arguments; ``data`` are the bytes of ``raw``."""

    name: str
    arguments: tuple[int, ...] = ()
    data: bytes = b""


@dataclass(frozen=True)
class OptionKind:
    """An option: how many arguments of ``bits`` bits it has, their form, and its bytes."""

    encode: Callable[[tuple[int, ...]], bytes]
    fewest: int = 0
    most: int = 0
    bits: int = 0
    form: Form = DECIMAL
    smallest: int = 0

    @property
    def usage(self) -> str:
        """The arguments for a message."""
        span = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
        return f"{span} arguments"


Kinds = Mapping[str, OptionKind]


def _route(code: int) -> OptionKind:
    def encode(addresses: tuple[int, ...]) -> bytes:
        return bytes((code, 3 + 4 * len(addresses), 4)) + b"".join(one.to_bytes(4, "big") for one in addresses)

    return OptionKind(encode, fewest=1, most=9, bits=32, form=IPV4)


def _words(head: bytes, *sizes: int) -> Callable[[tuple[int, ...]], bytes]:
    """``head``, then each argument in so many bytes; absent ones are 0."""

    def encode(arguments: tuple[int, ...]) -> bytes:
        padded = (*arguments, *(0 for _ in sizes))
        return head + b"".join(number.to_bytes(size, "big") for number, size in zip(padded, sizes, strict=False))

    return encode


IPV4_OPTIONS: Kinds = {
    "nop": OptionKind(_words(b"\x01")),
    "router_alert": OptionKind(_words(b"\x94\x04", 2), most=1, bits=16),
    "rr": OptionKind(lambda n: bytes((7, 3 + 4 * n[0], 4)) + bytes(4 * n[0]), 1, 1, bits=4, smallest=1),
    "timestamp": OptionKind(lambda n: bytes((68, 4 + 4 * n[0], 5, 0)) + bytes(4 * n[0]), 1, 1, bits=4, smallest=1),
    "lsrr": _route(131),
    "ssrr": _route(137),
}
TCP_OPTIONS: Kinds = {
    "nop": OptionKind(_words(b"\x01")),
    "mss": OptionKind(_words(b"\x02\x04", 2), 1, 1, bits=16),
    "window_scale": OptionKind(_words(b"\x03\x03", 1), 1, 1, bits=8),
    "sack_permitted": OptionKind(_words(b"\x04\x02")),
    "timestamps": OptionKind(_words(b"\x08\x0a", 4, 4), 2, 2, bits=32),
}
IPV6_OPTIONS: Kinds = {
    "pad1": OptionKind(_words(b"\x00")),
    "router_alert": OptionKind(_words(b"\x05\x02", 2), most=1, bits=16),
}


def read_bytes(node: Node) -> bytes:
    """Bytes in hexadecimal, with or without 0x before them. Raises FrameError: not hexadecimal, or no whole bytes."""
    digits = node.word.removeprefix("0x")
    try:
        if node.arguments is not None or not digits:
            raise ValueError
        return bytes.fromhex(digits)
    except ValueError:
        raise node.error(f"expected bytes in hexadecimal (0x0101…), not '{node.word}'") from None


def write_bytes(data: bytes) -> str:
    """Text that :func:`read_bytes` reads as ``data``."""
    return f"0x{data.hex()}"


def read(node: Node, kinds: Kinds) -> tuple[Option, ...]:
    """One option, or several in brackets. Raises FrameError: unknown options, wrong arguments."""
    return tuple(_read_one(one, kinds) for one in (node.arguments or () if node.is_list else (node,)))


def _read_one(node: Node, kinds: Kinds) -> Option:
    if node.word not in (*kinds, "raw"):
        raise node.error(f"unknown option '{node.word}'; {hint(node.word.lower(), (*kinds, 'raw'))}")
    for name, _ in node.named:
        raise name.error(f"the option {node.word} has no {name.word}=")
    arguments = node.arguments or ()
    if node.word == "raw":
        if len(arguments) != 1:
            raise node.error("the option raw has one argument: raw(0x…)")
        return Option("raw", data=read_bytes(arguments[0]))
    kind = kinds[node.word]
    if not kind.fewest <= len(arguments) <= kind.most:
        raise node.error(f"the option {node.word} has {kind.usage}, not {len(arguments)}")
    numbers = tuple(read_fixed(argument, kind.form, kind.bits) for argument in arguments)
    if any(number < kind.smallest for number in numbers):
        raise node.error(f"the option {node.word} has at least {kind.smallest} entry")
    return Option(node.word, numbers)


def write(options: tuple[Option, ...], kinds: Kinds) -> str:
    """Text that :func:`read` reads as ``options``."""
    said = [_write_one(one, kinds) for one in options]
    return said[0] if len(said) == 1 else f"[{','.join(said)}]"


def _write_one(option: Option, kinds: Kinds) -> str:
    if option.name == "raw":
        return f"raw({write_bytes(option.data)})"
    kind = kinds[option.name]
    arguments = ",".join(kind.form.write(number, kind.bits) for number in option.arguments)
    return f"{option.name}({arguments})" if arguments else option.name


def encode(options: tuple[Option, ...], kinds: Kinds) -> bytes:
    """Their bytes, one after the other, without padding."""
    return b"".join(one.data if one.name == "raw" else kinds[one.name].encode(one.arguments) for one in options)


def end_of_route(options: tuple[Option, ...]) -> int | None:
    """Where the last address of a source route begins, in bytes from the first option on: the final
    destination. None without a source route."""
    data, at = encode(options, IPV4_OPTIONS), 0
    while at + 3 <= len(data) and data[at] != _END:
        size = 1 if data[at] == _NOTHING else data[at + 1]
        if size == 0 or at + size > len(data):
            break
        if data[at] in _SOURCE_ROUTES and data[at + 2] <= size >= _SHORTEST_ROUTE:
            return at + size - 4
        at += size
    return None


def padded_to_4(data: bytes) -> bytes:
    """``data`` with End of Option List up to a multiple of 4 bytes (RFC 791, RFC 9293)."""
    return data + bytes(-len(data) % 4)


def ipv6_padding(size: int) -> bytes:
    """Pad1 and PadN options of ``size`` bytes (RFC 8200 4.2)."""
    data = b""
    while (left := size - len(data)) > 1:
        data += bytes((1, min(left - 2, 255))) + bytes(min(left - 2, 255))
    return data + bytes(size - len(data))
