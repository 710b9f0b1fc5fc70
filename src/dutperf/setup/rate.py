# SPDX-License-Identifier: Apache-2.0
"""A rate as the user gives it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dutperf.model import Value


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
        return (
            {"value": given, "unit": "fps"} if isinstance(given, int | float) and not isinstance(given, bool) else given
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"60000"``, ``"60k"``, ``"1.5M"`` (frames/s) or ``"12.5%"`` (of the maximum).

        Raises:
            ValueError: the text is not a rate.
        """
        match = re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kM%]?)\s*", text)
        if not match or not (value := float(match[1].replace("_", ""))):
            raise ValueError(
                f"'{text}' is not a rate: give frames per second (60000, 60k, 1.5M) or a share of the maximum (12.5%)"
            )
        if match[2] == "%":
            return cls(value=value, unit="percent")
        return cls(value=value * {"": 1, "k": 1_000, "M": 1_000_000}[match[2]], unit="fps")

    def fps(self, maximum_fps: int | None) -> int:
        """In frames per second, at least 1.

        Raises:
            ValueError: a percentage of an unknown maximum.
        """
        if self.unit == "fps":
            return max(1, round(self.value))
        if maximum_fps is None:
            raise ValueError("a rate in % needs the media's speed: set media_mbps in the configuration")
        return max(1, round(self.value / 100 * maximum_fps))

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
        return f"{self.value:g} %" if self.unit == "percent" else f"{self.value:,.0f} frames/s"
