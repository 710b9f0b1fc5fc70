# SPDX-License-Identifier: Apache-2.0
"""A rate as the user gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dutperf.model import Value
from dutperf.model.value import HIGHEST_FPS
from dutperf.setup.given import Given

_NO_RATE = "is not a rate: give frames per second, at least 1 (60000, 60k, 1.5M), or a share of the maximum (12.5%)"
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_BITS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


class Rate(Value):
    """A rate per direction as the user gave it: frames per second, or a share of the media's
    maximum frame rate."""

    value: Annotated[float, Field(gt=0)]
    unit: Literal["fps", "percent"]

    @model_validator(mode="before")
    @classmethod
    def _of_plain(cls, given: Any) -> Any:
        """A program may give a rate as text, or frames per second as a number."""
        if isinstance(given, str):
            return cls.parse(given).model_dump()
        if isinstance(given, int | float) and not isinstance(given, bool):
            return {"value": _per_second(Decimal(given), str(given)), "unit": "fps"}
        if not isinstance(given, Mapping | Rate):
            raise ValueError(f"{given!r} {_NO_RATE}")
        return given

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"60000"``, ``"60k"``, ``"1.5M"`` (frames/s) or ``"12.5%"`` (of the maximum).

        Raises:
            ValueError: the text is not a rate, or one that no trial can have.
        """
        match = re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kKM%]?)\s*", text)
        if not match or not (number := Decimal(match[1].replace("_", ""))):
            raise ValueError(f"{text!r} {_NO_RATE}")
        if match[2] == "%":
            return cls(value=float(number), unit="percent")
        if not match[2] and re.search(r"\.[0-9]{3}$", match[1]):
            raise ValueError(f"{text!r} may be {number:.0f} or {number * 1000:.0f} frames/s: give it without a point")
        return cls(value=_per_second(number * _UNITS[match[2].lower()], text.strip()), unit="fps")

    def fps(self, maximum_fps: int | None) -> int:
        """In frames per second, at least 1.

        Raises:
            ValueError: a percentage of an unknown maximum, or above the limit of a trial.
        """
        if self.unit == "percent" and maximum_fps is None:
            raise ValueError(
                "a rate in % needs the media's speed, which virtual links do not report: add the line"
                " 'media_mbps: 1000' (Mbit/s of the links) to the configuration, or give frames/s, such as 60000"
            )
        fps = self.value if self.unit == "fps" else self.value / 100 * (maximum_fps or 0)
        if fps > HIGHEST_FPS:
            raise ValueError(f"{fps:,.0f} frames/s are above the limit of {HIGHEST_FPS:,} frames/s")
        return max(1, round(fps))

    def offered_fps(self, maximum_fps: int | None) -> int:
        """In frames per second, for frames to be sent; ``maximum_fps``: of the media (None: unknown).

        Raises:
            ValueError: see :meth:`fps`; or the media cannot carry them.
        """
        fps = self.fps(maximum_fps)
        if maximum_fps is not None and fps > maximum_fps:
            raise ValueError(f"{fps:,} frames/s are above the media's maximum of {maximum_fps:,}")
        return fps

    def text(self) -> str:
        """As :meth:`parse` reads it."""
        return f"{self.value:.12g}" + ("%" if self.unit == "percent" else "")

    def __str__(self) -> str:
        return self.of("frames")

    def of(self, counted: str) -> str:
        """In words, of what is counted: ``2,000 queries/s``."""
        return f"{self.value:g} %" if self.unit == "percent" else f"{self.value:,.0f} {counted}/s"


def _per_second(number: Decimal, text: str) -> float:
    """A number of frames per second that a trial can have; ``text`` is how the user wrote it.

    Raises:
        ValueError: it is above the limit, or not whole.
    """
    if float(number) > HIGHEST_FPS:
        raise ValueError(f"{text!r} is above the limit of {HIGHEST_FPS:,} frames/s")
    if not number.is_finite() or number % 1:
        raise ValueError(f"{text!r} is not a whole number of frames per second")
    return float(number)


class BitRate(Value):
    """A rate in bits of frames with FCS, without preambles and gaps, per second."""

    bits: Annotated[int, Field(ge=1, le=1_000_000_000_000)]

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kMG]?)bit/s\s*", given)
        if match is None:
            raise ValueError(f"{given!r} {_NO_RATE}, or bit/s of frames (8Mbit/s)")
        return {"bits": round(Decimal(match[1]) * _BITS[match[2]])}

    def fps(self, mean_size: float) -> int:
        """Of frames of ``mean_size`` bytes with FCS, rounded, at least 1."""
        return max(1, round(self.bits / (8 * mean_size)))

    def __str__(self) -> str:
        return f"{self.bits / 1e6:g} Mbit/s"


AnyRate = Given[Rate, str | float]
OptionalRate = Given[Rate | None, str | float]
