# SPDX-License-Identifier: Apache-2.0
"""How a count is written, and what was perhaps meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def count_of(count: int, of: str) -> str:
    """``1 frame``, ``2,000 frames``."""
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most alike; None: none is."""
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """The known name that is most alike, or all of them, as a clause for a message."""
    names = list(known)
    near = nearest(name, names)
    return f"there are {', '.join(names)}" if near is None else f"did you mean {near}?"
