# SPDX-License-Identifier: Apache-2.0
"""Rates that change during a trial, from a user's text: ramps, steps and sines.

``ramp:1k-100k`` rises (or falls) evenly, ``steps:1k,10k,50k`` holds each rate for an equal time,
``sine:10k-50k`` swings between two rates. Without a time each takes the whole trial; ``/2s`` is the
length of a ramp, of each step, or of a sine's period, and it then begins again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import pi, sin
from typing import Annotated, Literal, Self

from pydantic import Field

from dutperf.model import Profile, Segment, Value
from dutperf.setup.rate import Rate

SHAPES = ("ramp", "steps", "sine")
FORMS = "ramp:FROM-TO, steps:RATE,RATE,… or sine:LOW-HIGH, each with /2s or without"
SINE_SEGMENTS = 64
"""Straight segments of a sine's period: they are off by at most 0.12 % of its amplitude,
1 - cos(pi / 64)."""
MOST_STEPS = 1000


class ChangingRate(Value):
    """One of the ``SHAPES``. A rate of None is 0: no frames."""

    shape: Literal["ramp", "steps", "sine"]
    rates: tuple[Rate | None, ...]
    every_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """Length of a ramp, of a step or of a sine's period; None: all of it takes the whole trial."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"ramp:1k-100k"``, ``"steps:1k,0,50%/500ms"``, ``"sine:10k-50k/2s"``. Raises ValueError: the text is none of
        them."""
        shape, _, rest = text.partition(":")
        rates, slash, every = rest.partition("/")
        words = rates.split("," if shape == "steps" else "-")
        if shape not in SHAPES or not rates:
            raise ValueError(f"'{text}' is not a rate that changes: give {FORMS}")
        if shape != "steps" and len(words) != 2:
            raise ValueError(f"'{text}' needs two rates, as in {shape}:1k-100k")
        if shape == "steps" and not 2 <= len(words) <= MOST_STEPS:
            raise ValueError(f"'{text}' needs 2 to {MOST_STEPS:,} rates, as in steps:1k,10k,50k")
        read = tuple(None if word.strip() == "0" else Rate.parse(word) for word in words)
        if not any(read):
            raise ValueError(f"'{text}' sends nothing: give a rate above 0")
        every_s = seconds(every, unit=True) if slash else None
        return cls.model_validate({"shape": shape, "rates": read, "every_s": every_s})

    def profile(self, duration_ns: int, maximum_fps: int | None) -> Profile:
        """The profile for a trial of ``duration_ns``; ``maximum_fps`` is the media's maximum. Raises ValueError: a
        percentage of an unknown maximum, a rate that is too high, a sine that swings the wrong way, or a time that is
        too short."""
        rates = [0 if rate is None else rate.offered_fps(maximum_fps) for rate in self.rates]
        if self.shape == "sine" and rates[0] > rates[1]:
            raise ValueError(f"a sine swings from a lower to a higher rate, not from {rates[0]:,} to {rates[1]:,}")
        parts = {"ramp": 1, "steps": len(rates), "sine": SINE_SEGMENTS}[self.shape]
        every_ns = None if self.every_s is None else round(self.every_s * 1e9)
        length_ns = duration_ns if every_ns is None else every_ns * (parts if self.shape == "steps" else 1)
        ends_ns = [length_ns * part // parts for part in range(parts + 1)]
        if ends_ns[1] < 1:
            raise ValueError(f"a time of {length_ns} ns is too short for {parts} parts")
        return Profile(segments=_segments(ends_ns, self._ends_fps(rates)))

    def _ends_fps(self, rates: Sequence[int]) -> list[tuple[int, int]]:
        """The rates at the beginning and the end of each segment."""
        if self.shape == "ramp":
            return [(rates[0], rates[1])]
        if self.shape == "steps":
            return [(rate, rate) for rate in rates]
        mean, amplitude = (rates[0] + rates[1]) / 2, (rates[1] - rates[0]) / 2
        points = (mean + amplitude * sin(2 * pi * part / SINE_SEGMENTS) for part in range(SINE_SEGMENTS + 1))
        return list(pairwise(map(round, points)))


def is_changing(pattern: str) -> bool:
    """Whether a traffic pattern has rates of its own."""
    return pattern.partition(":")[0] in SHAPES


def _segments(ends_ns: Sequence[int], ends_fps: Sequence[tuple[int, int]]) -> tuple[Segment, ...]:
    return tuple(
        Segment(duration_ns=end - begin, from_fps=first, to_fps=last)
        for (begin, end), (first, last) in zip(pairwise(ends_ns), ends_fps, strict=True)
    )


def seconds(text: str, *, unit: bool = False) -> float:
    """``"2s"``, ``"500ms"``, and unless there must be a ``unit`` also ``"2"``, in seconds. Raises ValueError: the text
    is not a time above 0 and up to a day."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|)", text.strip())
    if not match or (unit and not match[2]) or not 0 < (value := float(match[1]) / _UNITS[match[2]]) <= 86_400:
        raise ValueError(f"'{text}' is not a time above 0 and up to a day: give it as in 2s or 500ms")
    return value


_UNITS = {"": 1, "s": 1, "ms": 1000}
