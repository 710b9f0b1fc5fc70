# SPDX-License-Identifier: Apache-2.0
"""Header stacks: the headers of a test frame, from Ethernet to the last one before the tag, as a user
writes them: ``eth/vlan(id=5)/ipv6(dscp=46)/udp``. docs/frames.md describes the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

from dutperf.frames import text
from dutperf.frames.errors import FrameError
from dutperf.frames.headers import KINDS, MOST_TAGS, Cell, HeaderKind, Role, Value, Values, trailer_of
from dutperf.frames.text import Node
from dutperf.frames.values import Varying
from dutperf.model.described_frame import FCS_SIZE, TAG_SIZE
from dutperf.model.frame_size import MIN_FRAME_SIZE
from dutperf.spelling import hint


@dataclass(frozen=True)
class Header:
    """A header with the fields that were given, in the order of the wire."""

    name: str
    fields: tuple[tuple[str, Value], ...] = ()

    @property
    def kind(self) -> HeaderKind:
        return KINDS[self.name]

    @property
    def given(self) -> Values:
        return dict(self.fields)

    def cells(self) -> list[Cell]:
        """Its bits in the order of the wire."""
        return self.kind.cells(self.given)

    @cached_property
    def size(self) -> int:
        """Bytes on the wire; of ``eth`` with the type behind the tags."""
        return sum(cell.bits for cell in self.cells()) // 8

    def __str__(self) -> str:
        said = (f"{name}={self.kind.field(name).write(value)}" for name, value in self.fields)
        return f"{self.name}({','.join(said)})" if self.fields else self.name


@dataclass(frozen=True)
class Stack:
    """The headers of a frame, beginning with Ethernet. :meth:`parse` makes it from text, ``str`` gives
    the canonical text, which parses to the same stack."""

    headers: tuple[Header, ...]
    tunnel: int = 0
    """How many headers after Ethernet are those of a tunnel around the test frame's own."""

    @classmethod
    def parse(cls, stack: str) -> Self:
        """The stack of a text; ``eth/`` at the beginning may be left out. Raises FrameError: the text, a header, a
        field or a value is not possible; with its place."""
        nodes = text.headers(stack)
        if nodes[0].word != "eth":
            nodes = [Node("eth", nodes[0].position), *nodes]
        unwritten = int(len(nodes) > 1 and nodes[0].position == nodes[1].position)
        headers = [_header(node, number) for number, node in enumerate(nodes, 1 - unwritten)]
        for index, node in enumerate(nodes):
            try:
                _check_next(headers, index)
                _check_values(headers, index)
            except FrameError as error:
                raise error.at(index + 1 - unwritten, node.word).in_text(_position(node, error.field)) from None
        return cls(tuple(headers))

    def __str__(self) -> str:
        return "/".join(str(header) for header in self.headers)

    @property
    def header_size(self) -> int:
        """Bytes of all headers: where the tag begins."""
        return sum(header.size for header in self.headers)

    def within(self, tunnel: Stack) -> Stack:
        """The frame in a tunnel: what follows Ethernet, behind the headers of ``tunnel``. Raises FrameError: the tunnel
        does not carry it."""
        whole = Stack((*tunnel.headers, *self.headers[1:]), len(tunnel.headers) - 1)
        for index in range(len(tunnel.headers), len(whole.headers)):
            _check_next(whole.headers, index)
        return whole

    @property
    def size_behind_ethernet(self) -> int:
        """Bytes of all headers but the first."""
        return sum(header.size for header in self.headers[1:])

    @property
    def overhead(self) -> int:
        """Bytes by which the tunnel makes the frame longer."""
        return self.size_behind_ethernet - self.own.size_behind_ethernet

    @property
    def own(self) -> Stack:
        return Stack((self.headers[0], *self.headers[self.tunnel + 1 :]))

    @property
    def min_size(self) -> int:
        """The smallest frame in bytes including the FCS."""
        trailers = sum(trailer_of(header.given) for header in self.headers)
        return max(MIN_FRAME_SIZE, self.header_size + TAG_SIZE + trailers + FCS_SIZE)

    @property
    def ip_version(self) -> Literal[4, 6] | None:
        """The version of the outermost IP header; None without any."""
        versions: Iterator[Literal[4, 6]] = (
            4 if header.name == "ipv4" else 6 for header in self.headers if header.name in ("ipv4", "ipv6")
        )
        return next(versions, None)

    @property
    def ends_in_udp(self) -> bool:
        """Whether the last header is UDP, and none before it."""
        return [header.name == "udp" for header in self.headers] == [False] * (len(self.headers) - 1) + [True]

    @property
    def varies_by_flow(self) -> bool:
        """Whether frames of different flows differ."""
        return any(
            isinstance(cell.value, Varying) and cell.value.by == "flow"
            for header in self.headers
            for cell in header.cells()
        )


def _header(node: Node, number: int) -> Header:
    """The header of ``node``; its fields are checked alone, not yet with others."""
    if node.word not in KINDS:
        raise FrameError(f"unknown header '{node.word}'; {hint(node.word.lower(), KINDS)}", position=node.position).at(
            number, node.word
        )
    kind = KINDS[node.word]
    given: dict[str, Value] = {}
    seen: set[str] = set()
    for name, value in node.named:
        try:
            if name.word not in kind.known:
                raise name.error(f"unknown field '{name.word}'; {hint(name.word.lower(), kind.known)}")
            if name.word in seen:
                raise name.error(f"{name.word} is given twice")
            seen.add(name.word)
            if (read := _read(kind, name, value)) is not None:
                given[name.word] = read
        except FrameError as error:
            raise error.at(number, node.word, name.word) from None
    return Header(node.word, tuple((name, given[name]) for name in kind.known if name in given))


def _read(kind: HeaderKind, name: Node, value: Node) -> Value | None:
    try:
        return kind.field(name.word).read(value)
    except FrameError as error:
        raise FrameError(f"{name.word}: {error.message}", position=error.position) from None


def _position(header: Node, field: str | None) -> int:
    return next((name.position for name, _ in header.named if name.word == field), header.position)


def _check_next(headers: Sequence[Header], index: int) -> None:
    """What follows what, and how often."""
    header = headers[index]
    if index and header.name not in headers[index - 1].kind.carries:
        before = headers[index - 1]
        carried = f"; it carries {', '.join(before.kind.carries)}" if before.kind.carries else ", which carries none"
        raise FrameError(f"cannot follow {before.name}{carried}")
    tags = headers[index - MOST_TAGS : index + 1] if index >= MOST_TAGS else ()
    if tags and all(one.name == "vlan" for one in tags):
        raise FrameError(f"at most {MOST_TAGS} tags are possible")
    if index == len(headers) - 1 and not header.kind.is_last_possible:
        raise FrameError(f"cannot be the last header; it carries {', '.join(header.kind.carries)}")


def _check_values(headers: Sequence[Header], index: int) -> None:
    """Values that go together, and fields that may vary."""
    header = headers[index]
    try:
        cells = header.cells()
    except ValueError as error:
        raise FrameError(str(error)) from None
    is_last = all(one.name in ("vlan", "payload") for one in headers[index + 1 :])
    for cell in cells:
        if isinstance(cell.value, Varying):
            _check_varying(cell, is_last)


def _check_varying(cell: Cell, is_last: bool) -> None:
    if cell.role is Role.TYPE and not is_last:
        raise FrameError(f"{cell.name} cannot vary here: it says which header follows", field=cell.name)
    if cell.role in (Role.SHAPE, Role.LENGTH):
        raise FrameError(f"{cell.name} cannot vary: the layout of the frame depends on it", field=cell.name)
