# SPDX-License-Identifier: Apache-2.0
"""Reads what the DUT's commands print: lines, names and numbers. A number that is not understood is an
error that quotes its line, never one that is absent or another one of the output.

A line ends with LF, CR LF or CR. ``str.splitlines`` also ends one at a vertical tab, a form feed, NEL or
U+2028, which people's tools show within the line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

_LINE_END = re.compile(r"\r\n?|\n")
_NAMED = re.compile(r"(?=\S*[^\W\d])(?P<name>[^\s{}\"'<>]+?)(?:\s*[:=]\s*|\s+)(?P<value>\S+)")
_LIKE_A_NUMBER = re.compile(r"[-+]?[.,]?\d")
_COUNT = re.compile(
    r"(?:^|(?<=[\s:=(\[{<\"'|]))[-+]?[.,]?\d[^\s;|(){}\[\]<>\"]*(?:[ \u00a0\u202f]\d{3}(?!\w))?", re.MULTILINE
)
"""Where a number begins: not within a word (``table-2``, ``v1.4.7``). Three digits behind a blank may belong
to it."""
_WHOLE = re.compile(r"[0-9]+")
_SECONDS = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def lines(output: str) -> list[str]:
    """The lines that are not blank, without blanks at their ends."""
    return [line.strip() for line in _LINE_END.split(output) if line.strip()]


def last_line(output: str) -> str:
    """The last line, as errors quote it."""
    found = lines(output)
    return f"last output: {found[-1]}" if found else "no output"


def named_numbers(output: str) -> Iterator[tuple[str, int]]:
    """Lines of a name and a whole number, in their order.

    Raises:
        ValueError: a name's number is written in another way.
    """
    for line in lines(output):
        found = _NAMED.fullmatch(line)
        if found is not None and _LIKE_A_NUMBER.match(found["value"]):
            yield found["name"], whole(found["value"], line)


def whole(text: str, line: str) -> int:
    """The whole number that a line has, in digits alone: ``2,048`` may be 2048 or 2.048.

    Raises:
        ValueError: it is none.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"'{line}': {text} is not a whole number; print it in digits alone, as in 2048")
    return int(text)


def count(output: str, name: str) -> int:
    """The number in the line ``name N``, else the first number of the output; ``7/100`` is 7.

    Raises:
        ValueError: there is no number, or it is not a whole one.
    """
    told = [number for one, number in named_numbers(output) if one == name]
    if told:
        if len(set(told)) > 1:
            raise ValueError(f"printed {name} more than once: {', '.join(map(str, told))}")
        return told[0]
    for line in lines(output):
        found = _COUNT.search(line)
        if found is not None:
            return whole(re.sub(r"/[0-9]+$", "", found[0].rstrip(".,:'")), line)
    raise ValueError(f"printed no number of {name}; {last_line(output)}")


def seconds(output: str, name: str) -> float | None:
    """The number in the line ``name N``; None: no line has the name.

    Raises:
        ValueError: a line has the name, and is not understood, or is not the only one.
    """
    having = [line for line in lines(output) if name in line.lower()]
    if not having:
        return None
    if len(having) > 1:
        raise ValueError(f"printed {name} more than once: {'; '.join(having)}")
    found = _NAMED.fullmatch(having[0])
    if found is None or found["name"] != name or not _SECONDS.fullmatch(found["value"]):
        raise ValueError(f"'{having[0]}' is not {name} and a number of seconds, as in {name} 0.25")
    value = float(found["value"])
    if not math.isfinite(value):
        raise ValueError(f"'{having[0]}': that is no time")
    return value
