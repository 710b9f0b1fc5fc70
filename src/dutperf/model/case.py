# SPDX-License-Identifier: Apache-2.0
"""Cases: the conditions of each point of a result, as values on named axes.

RFC 2544 section 9 has one axis, the frame size. Other axes are the number of networks or flows, a
mix of frame sizes, the share of cached answers (RFC 8219 section 9). A procedure measures a list of
cases; all other code only shows, stores and matches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Self, TypeVar, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T", int, float, str)
AxisValue = int | float | str


@dataclass(frozen=True)
class Axis(Generic[T]):
    """One parameter that varies between the points of a run."""

    name: str
    """Name in files and labels: ``frame_size``."""
    unit: str
    """Unit after a value in texts (``84 bytes``); empty: none."""
    heading: str
    """Heading of the table column."""
    derived: bool = False
    """Whether the values follow from those of the other axes. Tables and files show them, but they do
    not distinguish cases."""

    @property
    def label(self) -> str:
        """Label of a plot's axis: ``frame size, bytes``."""
        return self.heading if self.unit in ("", self.heading) else f"{self.heading}, {self.unit}"

    def text(self, value: AxisValue) -> str:
        """A value with its unit: ``84 bytes``, ``imix``."""
        return f"{value} {self.unit}".rstrip()


FRAME_SIZE: Axis[int] = Axis("frame_size", "bytes", "frame size")
"""Includes the FCS; with any IPv6 traffic it is the size of the IPv6 frame."""
SIZE_MIX: Axis[str] = Axis("size_mix", "", "sizes")
"""A mix of frame sizes (RFC 6985); the frame size is then its mean."""
DIRECTION_RATES: Axis[str] = Axis("direction_rates", "forward:reverse", "fwd:rev")
"""Rates of the directions to each other, where they differ; the load is then that of the faster one."""
CACHED_NAMES: Axis[int] = Axis("cached", "% cached", "% cached")
AAAA_NAMES: Axis[int] = Axis("with_aaaa", "% AAAA", "% AAAA")
"""Shares of names that a DNS64 server has in its cache, and that have an AAAA record (RFC 8219 section 9.2)."""
FRAME_SIZE_IPV4: Axis[int] = Axis("frame_size_ipv4", "bytes", "IPv4 size", derived=True)
"""Size of the IPv4 frames: smaller, unless all frames are IPv4 (RFC 8219 5.1.1)."""


class Case:
    """An ordered, immutable mapping of axes to values. Two cases are equal if they have the same
    values on the same axes; derived axes do not count."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Axis[Any], AxisValue]) -> None:
        """The axes keep the order of ``values``."""
        self._values = dict(values)

    @classmethod
    def of_json(cls, values: Mapping[str, AxisValue], axes: Iterable[Axis[Any]]) -> Self:
        """From ``values`` by the names of ``axes``. Raises KeyError: ``values`` has a name without an axis."""
        by_name = {axis.name: axis for axis in axes}
        return cls({by_name[name]: value for name, value in values.items()})

    def __getitem__(self, axis: Axis[T]) -> T:
        return cast("T", self._values[axis])

    def get(self, axis: Axis[T]) -> T | None:
        """The value on ``axis``; None: the case has none."""
        return cast("T | None", self._values.get(axis))

    def __iter__(self) -> Iterator[Axis[Any]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, axis: object) -> bool:
        return axis in self._values

    def items(self) -> Iterable[tuple[Axis[Any], AxisValue]]:
        """Axes and values, including derived ones."""
        return self._values.items()

    def own(self) -> dict[Axis[Any], AxisValue]:
        """Axes and values without derived ones."""
        return {axis: value for axis, value in self._values.items() if not axis.derived}

    def but_for(self, axis: Axis[Any]) -> Case:
        """The case without ``axis`` and without derived axes."""
        return Case({one: value for one, value in self.own().items() if one != axis})

    def key(self) -> dict[str, AxisValue]:
        """Key that distinguishes cases, as JSON: ``{"frame_size": 84}``."""
        return {axis.name: value for axis, value in self.own().items()}

    def as_json(self) -> dict[str, AxisValue]:
        """The values of all axes, as JSON: :meth:`key` and derived ones."""
        return {axis.name: value for axis, value in self._values.items()}

    def order(self) -> tuple[tuple[bool, AxisValue], ...]:
        """Sort key of cases with the same axes: numbers by size, then words."""
        return tuple((isinstance(value, str), value) for value in self.own().values())

    @property
    def slug(self) -> str:
        """The values for a file name: ``84``, ``84-16``."""
        return "-".join(str(value).replace(":", "-") for value in self.own().values())

    def __eq__(self, other: object) -> bool:
        return self.key() == other.key() if isinstance(other, Case) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.key().items()))

    def __str__(self) -> str:
        return ", ".join(axis.text(value) for axis, value in self.own().items())

    def __repr__(self) -> str:
        return f"Case({self.as_json()})"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        as_json = core_schema.plain_serializer_function_ser_schema(cls.as_json)
        return core_schema.is_instance_schema(cls, serialization=as_json)


def whose_rates(text: str, cases: Iterable[Case]) -> str:
    """``text`` for figures of ``cases``, in which a rate per direction is that of the faster one where they differ."""
    differ = any(DIRECTION_RATES in case for case in cases)
    return text.replace("per direction", "of the faster direction") if differ else text


def axes_of(cases: Iterable[Case]) -> tuple[Axis[Any], ...]:
    """All axes of ``cases``, in the order of their first occurrence."""
    return tuple(dict.fromkeys(axis for case in cases for axis in case))


def axes_as_json(axes: Iterable[Axis[Any]]) -> list[dict[str, Any]]:
    """``axes`` as JSON for a journal."""
    return [asdict(axis) for axis in axes]


def axes_of_json(axes: Sequence[Mapping[str, Any]]) -> tuple[Axis[Any], ...]:
    """The axes from the output of :func:`axes_as_json`."""
    return tuple(Axis(**axis) for axis in axes)
