# SPDX-License-Identifier: Apache-2.0
"""Loads offered to a DUT in a trial: a number and its unit.

RFC 2544 offers frames/s, RFC 9004 a burst of frames, RFC 2889 addresses and addresses/s, RFC 9411 and
stateful tests connections/s, RFC 8219 section 9 (DNS64) queries/s. A search varies only the number.
Code that shows, stores or compares a load has its unit with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import total_ordering
from typing import Any, Self


class Unit(StrEnum):
    """The unit of a load. Files contain the value; ``suffix`` ends the names of figures in this unit
    (``throughput_fps``)."""

    FRAMES_PER_SECOND = "frames/s", "fps", "{:,} frames/s", True
    """In each active direction."""
    CONNECTIONS_PER_SECOND = "connections/s", "cps", "{:,} connections/s", False
    ADDRESSES_PER_SECOND = "addresses/s", "aps", "{:,} addresses/s", False
    ADDRESSES = "addresses", "addresses", "{:,} addresses", False
    QUERIES_PER_SECOND = "queries/s", "qps", "{:,} queries/s", False
    FRAMES = "frames", "frames", "a burst of {:,} frames", True
    """Frames of a burst, in each active direction."""

    suffix: str
    form: str
    is_per_direction: bool

    def __new__(cls, name: str, suffix: str = "", form: str = "", is_per_direction: bool = False) -> Self:
        """A member; ``form``: format of a load in this unit."""
        unit = str.__new__(cls, name)
        unit._value_ = name
        unit.suffix, unit.form, unit.is_per_direction = suffix, form, is_per_direction
        return unit

    @property
    def is_rate(self) -> bool:
        """Whether a higher load needs a faster tester, not only more time."""
        return self.endswith("/s")

    @property
    def column(self) -> str:
        """Name of a load in flat records: ``rate_fps``; for bursts ``frames``."""
        return f"rate_{self.suffix}" if self.is_rate else self.suffix

    @property
    def label(self) -> str:
        """Unit after the name of a figure: ``frames/s per direction``."""
        return f"{self} per direction" if self.is_per_direction else str(self)

    @property
    def in_words(self) -> str:
        """Unit in the name of a metric: ``frames_per_second``."""
        return self.replace("/s", "_per_second")


@total_ordering
@dataclass(frozen=True)
class Load:
    """A number of a unit. Loads of the same unit can be compared; others raise TypeError."""

    value: int
    unit: Unit

    @classmethod
    def fps(cls, value: int) -> Self:
        """``value`` frames/s in each active direction."""
        return cls(value, Unit.FRAMES_PER_SECOND)

    @classmethod
    def of_json(cls, members: Mapping[str, Any]) -> Self:
        """A load from the output of :meth:`as_json`. Raises KeyError, ValueError: ``members`` are not a load."""
        return cls(members["value"], Unit(members["unit"]))

    def as_json(self) -> dict[str, Any]:
        """``{"value": 15000, "unit": "frames/s"}``."""
        return {"value": self.value, "unit": self.unit.value}

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Load) or other.unit is not self.unit:
            return NotImplemented
        return self.value < other.value

    def __str__(self) -> str:
        return self.unit.form.format(self.value)


def is_load(value: object) -> bool:
    """Whether ``value`` is the JSON form of a load."""
    return isinstance(value, Mapping) and value.keys() == {"value", "unit"} and value["unit"] in list(Unit)
