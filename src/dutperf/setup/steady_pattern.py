# SPDX-License-Identifier: Apache-2.0
"""Traffic patterns at a mean rate, as the user gives them: ``constant``, ``poisson`` or ``bursts:FRAMES``."""

from __future__ import annotations

import re

from dutperf.model import Bursts, Poisson

FORMS = "constant, poisson or bursts:FRAMES"
LONGEST_BURST = 1_000_000
"""Frames."""


def checked(pattern: str, others: str = "") -> str:
    """The text itself. ``others``: patterns that are possible too, for the message. Raises ValueError: it is none of
    them."""
    if pattern not in ("constant", "poisson") and not re.fullmatch(r"bursts:[1-9][0-9]*", pattern):
        raise ValueError(f"should be {FORMS}{others}")
    if (burst := burst_of(pattern)) is not None and not 2 <= burst <= LONGEST_BURST:
        raise ValueError(f"a burst has 2 to {LONGEST_BURST:,} frames")
    return pattern


def parsed(pattern: str) -> Poisson | Bursts | None:
    """The pattern of a :func:`checked` text, with bursts as fast as the tester can send; None: constant gaps."""
    if (burst := burst_of(pattern)) is not None:
        return Bursts(frames=burst)
    return Poisson() if pattern == "poisson" else None


def burst_of(pattern: str) -> int | None:
    """Frames per burst of ``pattern``; None where it has no bursts."""
    kind, _, frames = pattern.partition(":")
    return int(frames) if kind == "bursts" else None
