# SPDX-License-Identifier: Apache-2.0
"""Numbers in sentences."""

from __future__ import annotations


def two_digits(number: float) -> str:
    """``number`` from 0 to 999 with two significant digits, or as a whole: ``0.12``, ``3.7``, ``100``."""
    return f"{number:.2g}" if number < 99.5 else f"{number:.0f}"
