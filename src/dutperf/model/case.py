# SPDX-License-Identifier: Apache-2.0
"""What a point of a result is measured for: a value on each of some named axes.

RFC 2544 section 9 has one axis, the frame size. Others are the number of networks or flows, a mix
of frame sizes, the share of cached answers (RFC 8219 section 9). What a procedure measures is a
list of cases; everything behind it only shows, stores and matches them.
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
    """One thing that differs between the points of a run."""

    name: str
    """In files, and as a label: ``frame_size``."""
    unit: str
    """Follows a value in a text (``84 bytes``); empty: none."""
    heading: str
    """Of the table's column."""
    derived: bool = False
    """Whether the values follow from those of the other axes: they are shown in tables and files,
    and tell no case from another."""

    @property
    def label(self) -> str:
        """Of a plot's axis: ``frame size, bytes``."""
        return self.heading if self.unit in ("", self.heading) else f"{self.heading}, {self.unit}"

    def text(self, value: AxisValue) -> str:
        """``84 bytes``, ``imix``."""
        return f"{value} {self.unit}".rstrip()


FRAME_SIZE: Axis[int] = Axis("frame_size", "bytes", "frame size")
"""Including the FCS; with any IPv6 traffic the size of the IPv6 frame."""
FRAME_SIZE_IPV4: Axis[int] = Axis("frame_size_ipv4", "bytes", "IPv4", derived=True)
"""That of the IPv4 frames: shorter, unless all frames are IPv4 (RFC 8219 5.1.1)."""


class Case:
    """An ordered, immutable mapping of axes to values. Two cases are the same where they have the
    same values on the same axes, but for those that are derived."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Axis[Any], AxisValue]) -> None:
        """In the order of ``values``."""
        self._values = dict(values)

    @classmethod
    def of_json(cls, values: Mapping[str, AxisValue], axes: Iterable[Axis[Any]]) -> Self:
        """From ``values`` by the names of ``axes``.

        Raises:
            KeyError: ``values`` has a name that no axis has.
        """
        known = {axis.name: axis for axis in axes}
        return cls({known[name]: value for name, value in values.items()})

    def __getitem__(self, axis: Axis[T]) -> T:
        return cast("T", self._values[axis])

    def get(self, axis: Axis[T]) -> T | None:
        """The value on ``axis``, None where the case has none."""
        return cast("T | None", self._values.get(axis))

    def __iter__(self) -> Iterator[Axis[Any]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, axis: object) -> bool:
        return axis in self._values

    def items(self) -> Iterable[tuple[Axis[Any], AxisValue]]:
        """Axes and values, the derived ones too."""
        return self._values.items()

    def own(self) -> dict[Axis[Any], AxisValue]:
        """Without what is derived."""
        return {axis: value for axis, value in self._values.items() if not axis.derived}

    def but_for(self, axis: Axis[Any]) -> Case:
        """Its own values without that on ``axis``."""
        return Case({one: value for one, value in self.own().items() if one != axis})

    def with_value(self, axis: Axis[T], value: T) -> Case:
        """With ``value`` on ``axis``, which comes last where it is new."""
        return Case({**self._values, axis: value})

    def key(self) -> dict[str, AxisValue]:
        """What tells it from others, as JSON: ``{"frame_size": 84}``."""
        return {axis.name: value for axis, value in self.own().items()}

    def as_json(self) -> dict[str, AxisValue]:
        """:meth:`key` and what is derived."""
        return {axis.name: value for axis, value in self._values.items()}

    def order(self) -> tuple[tuple[bool, AxisValue], ...]:
        """To sort cases of the same axes by: numbers by their size, before words."""
        return tuple((isinstance(value, str), value) for value in self.own().values())

    @property
    def slug(self) -> str:
        """In a name of a file: ``84``, ``84-16``."""
        return "-".join(str(value) for value in self.own().values())

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


def axes_of(cases: Iterable[Case]) -> tuple[Axis[Any], ...]:
    """All axes of ``cases``, in the order of their first occurrence."""
    return tuple(dict.fromkeys(axis for case in cases for axis in case))


def axes_as_json(axes: Iterable[Axis[Any]]) -> list[dict[str, Any]]:
    """For a journal."""
    return [asdict(axis) for axis in axes]


def axes_of_json(axes: Sequence[Mapping[str, Any]]) -> tuple[Axis[Any], ...]:
    """What :func:`axes_as_json` gave."""
    return tuple(Axis(**axis) for axis in axes)
