# SPDX-License-Identifier: Apache-2.0
"""Numbers in sentences."""

from __future__ import annotations


def two_digits(number: float) -> str:
    """``number`` from 0 to 999 with two significant digits, or as a whole: ``0.12``, ``3.7``, ``100``."""
    return f"{number:.2g}" if number < 99.5 else f"{number:.0f}"


def lost_share(ratio: float | None) -> str:
    """A loss ratio in a table, ``0.0215%``: never 0 where a frame was lost; ``-`` where there is none."""
    if ratio is None:
        return "-"
    return f"{ratio:.4%}" if not 0 < ratio < 1e-5 else f"{100 * ratio:.2g}%"
