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

from dutperf.model import Direction, shown_directions

COUNTED = "connections"
"""Name that a line of the command ``count_connections`` may give the count itself."""
DELETION = "deletion_s"
"""Name of the line in which ``clear_connections`` may tell its time."""
ByCause = dict[Direction, dict[str, int]]
"""Frames that a DUT has counted as lost, by direction and cause."""

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
    """Lines of a name and a whole number, in their order. Raises ValueError: a name's number is written in another
    way."""
    for line in lines(output):
        found = _NAMED.fullmatch(line)
        if found is not None and _LIKE_A_NUMBER.match(found["value"]):
            yield found["name"], whole(found["value"], line)


def whole(text: str, line: str) -> int:
    """The whole number that a line has, in digits alone: ``2,048`` may be 2048 or 2.048. Raises ValueError: it is
    none."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"'{line}': {text} is not a whole number, 0 or more; print it in digits alone, as in 2048")
    return int(text)


def losses(output: str) -> ByCause:
    """Loss counters, in lines of direction, cause and number. Raises ValueError: a line is not understood, or a counter
    is there twice."""
    found: ByCause = {}
    for line in lines(output):
        match line.split():
            case [direction, cause, number] if _is_direction(direction):
                causes = found.setdefault(Direction(direction), {})
                if cause in causes:
                    raise ValueError(f"printed {direction} {cause} more than once")
                causes[cause] = whole(number, line)
            case _:
                raise ValueError(f"'{line}' is not a direction, a cause and a number")
    return {direction: found[direction] for direction in shown_directions(found) if direction in found}


def passed(output: str) -> dict[Direction, int]:
    """Counters of a link, in lines of direction and number. Raises ValueError: a line is not understood, or a direction
    is there twice."""
    found: dict[Direction, int] = {}
    for line in lines(output):
        match line.split():
            case ["forward" | "reverse" as direction, number]:
                if direction in found:
                    raise ValueError(f"printed {direction} more than once")
                found[Direction(direction)] = whole(number, line)
            case _:
                raise ValueError(f"'{line}' is not forward or reverse and a number")
    return found


def _is_direction(text: str) -> bool:
    try:
        Direction(text)
    except ValueError:
        return False
    return True


def count(output: str) -> int:
    """The number of connections: in the line ``connections N``, else the first number of the output; ``7/100`` is 7.
    Raises ValueError: there is no number, or it is not a whole one."""
    told = [number for one, number in named_numbers(output) if one == COUNTED]
    if told:
        if len(set(told)) > 1:
            raise ValueError(f"printed {COUNTED} more than once: {', '.join(map(str, told))}")
        return told[0]
    for line in lines(output):
        found = _COUNT.search(line)
        if found is not None:
            return whole(re.sub(r"/[0-9]+$", "", found[0].rstrip(".,:'")), line)
    raise ValueError(f"printed no number of {COUNTED}; {last_line(output)}")


def seconds(output: str) -> float | None:
    """How long the deletion of connections took, in the line ``deletion_s N``; None: no line has the name. Raises
    ValueError: a line has the name, and is not understood, or is not the only one."""
    having = [line for line in lines(output) if DELETION in line.lower()]
    if not having:
        return None
    if len(having) > 1:
        raise ValueError(f"printed {DELETION} more than once: {'; '.join(having)}")
    found = _NAMED.fullmatch(having[0])
    if found is None or found["name"] != DELETION or not _SECONDS.fullmatch(found["value"]):
        raise ValueError(f"'{having[0]}' is not {DELETION} and a number of seconds, as in {DELETION} 0.25")
    value = float(found["value"])
    if not math.isfinite(value):
        raise ValueError(f"'{having[0]}': that is no time")
    return value
