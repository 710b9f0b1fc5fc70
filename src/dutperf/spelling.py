# SPDX-License-Identifier: Apache-2.0
"""How a count is written, and what was perhaps meant by a name that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


def count_of(count: int, of: str) -> str:
    """``1 frame``, ``2,000 frames``."""
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def shortened(text: str, most: int = 200) -> str:
    """A sentence for a terminal, in about so many characters: if it is longer, it has no long parentheses, and if it
    still is, its beginning, and its end, which may be advice. No clause is cut that is not long itself: halves of two
    would say something else."""
    if len(text) > most:
        text = re.sub(r" \([^()]{30,}\)", "", text)
    if len(text) <= most:
        return text
    half = most // 2
    first, last = text[:half], text[-half:]
    ends = [one.end() for one in _CLAUSE.finditer(first) if one.end() > half // 2]
    begins = [one.end() + 1 for one in _CLAUSE.finditer(last) if one.end() < half // 2]
    first = first[: ends[-1]] if ends else first.rpartition(" ")[0]
    return f"{first} … {last[begins[0] :] if begins else last.partition(' ')[2]}"


_CLAUSE = re.compile(r"[;,:](?= )")


def with_and(words: Iterable[str]) -> str:
    """``a, b and c``; empty of none."""
    *others, last = list(words) or [""]
    return f"{', '.join(others)} and {last}" if others else last


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most alike; None: none is."""
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """The known name that is most alike, or all of them, as a clause for a message."""
    names = list(known)
    near = nearest(name, names)
    return f"there are {', '.join(names)}" if near is None else f"did you mean {near}?"
