# SPDX-License-Identifier: Apache-2.0
"""The grammar of header stacks: text to nodes, without their meaning.

    stack  = header { "/" header }
    header = word [ "(" [ pair { "," pair } ] ")" ]
    pair   = word "=" value
    value  = word [ "(" [ ( pair | value ) { "," ( pair | value ) } ] ")" ] | "[" [ value { "," value } ] "]"
    word   = letters, digits, "_", ".", ":"

Spaces between the parts are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dutperf.frames.errors import FrameError

_PART = re.compile(r"\s*(?:(?P<word>[A-Za-z0-9_.:]+)|(?P<sign>[/()\[\],=])|(?P<end>\Z)|(?P<other>.))", re.DOTALL)
_DEEPEST = 4
"""Values within values: a list of options with arguments that vary needs three."""


@dataclass(frozen=True)
class Node:
    """A value as written. ``word`` is empty for a list in brackets; ``arguments`` is None for a word
    without parentheses. ``named`` are the arguments with a name: name and value."""

    word: str
    position: int
    arguments: tuple[Node, ...] | None = None
    named: tuple[tuple[Node, Node], ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether it is a list in brackets."""
        return not self.word

    def error(self, message: str) -> FrameError:
        """An error at its position."""
        return FrameError(message, position=self.position)


@dataclass(frozen=True)
class _Part:
    text: str
    position: int
    is_word: bool


class _Reader:
    """The parts of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self._parts = [
            _Part(found[found.lastgroup or "end"], found.start(found.lastgroup or "end") + 1, found["word"] is not None)
            for found in _PART.finditer(text)
        ]
        self._next = 0

    @property
    def next(self) -> _Part:
        return self._parts[self._next]

    def take(self) -> _Part:
        part = self.next
        self._next = min(self._next + 1, len(self._parts) - 1)
        return part

    def takes(self, sign: str) -> bool:
        """Skip ``sign`` if it comes next."""
        if self.next.is_word or self.next.text != sign:
            return False
        self.take()
        return True

    def word(self, what: str) -> _Part:
        if not self.next.is_word:
            raise self.unexpected(what)
        return self.take()

    def unexpected(self, expected: str) -> FrameError:
        found = f"'{self.next.text}'" if self.next.text else "the text's end"
        return FrameError(f"expected {expected}, not {found}", position=self.next.position)

    @property
    def is_at_end(self) -> bool:
        return not self.next.text


def headers(text: str) -> list[Node]:
    """The headers of ``text``, whose arguments are all named. Raises FrameError: the text does not follow the grammar;
    with its position."""
    reader = _Reader(text)
    found = [_header(reader)]
    while reader.takes("/"):
        found.append(_header(reader))
    if not reader.is_at_end:
        raise reader.unexpected("'/' or the text's end" if found[-1].arguments is not None else "'/' or '('")
    return found


def _header(reader: _Reader) -> Node:
    header = _call(reader, reader.word("a header"), 0)
    for argument in header.arguments or ():
        raise argument.error(f"a field needs a value: {argument.word or 'FIELD'}=VALUE")
    return header


def _value(reader: _Reader, depth: int) -> Node:
    if depth > _DEEPEST:
        raise FrameError("too many values within values", position=reader.next.position)
    opening = reader.next
    if reader.takes("["):
        items, named = _arguments(reader, opening, "]", depth)
        for name, _ in named:
            raise name.error(f"a list has values without names, not {name.word}=")
        return Node("", opening.position, items)
    return _call(reader, reader.word("a value"), depth)


def _call(reader: _Reader, word: _Part, depth: int) -> Node:
    opening = reader.next
    if not reader.takes("("):
        return Node(word.text, word.position)
    return Node(word.text, word.position, *_arguments(reader, opening, ")", depth))


def _arguments(
    reader: _Reader, opening: _Part, closing: str, depth: int
) -> tuple[tuple[Node, ...], tuple[tuple[Node, Node], ...]]:
    """What stands between ``opening`` and ``closing``: values, and pairs of name and value."""
    values: list[Node] = []
    named: list[tuple[Node, Node]] = []
    if reader.takes(closing):
        return (), ()
    while True:
        node = _value(reader, depth + 1)
        if reader.takes("="):
            named.append((node, _pair(reader, node, depth)))
        else:
            values.append(node)
        if reader.takes(closing):
            return tuple(values), tuple(named)
        if reader.is_at_end:
            raise FrameError(f"'{opening.text}' is not closed", position=opening.position)
        if not reader.takes(","):
            raise reader.unexpected(f"',' or '{closing}'")


def _pair(reader: _Reader, name: Node, depth: int) -> Node:
    if name.is_list or name.arguments is not None:
        raise name.error("a name stands before '='")
    return _value(reader, depth + 1)
