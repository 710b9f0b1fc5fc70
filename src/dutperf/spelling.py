# SPDX-License-Identifier: Apache-2.0
"""What was perhaps meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def hint(name: str, known: Iterable[str]) -> str:
    """The known name that is most alike, or all of them, as a clause."""
    names = list(known)
    nearest = get_close_matches(name, names, n=1)
    return f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(names)}"
