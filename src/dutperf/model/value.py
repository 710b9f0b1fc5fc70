# SPDX-License-Identifier: Apache-2.0
"""Base class of all values, and the smallest values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

Count = Annotated[int, Field(ge=0)]
Port16 = Annotated[int, Field(ge=0, le=65535)]
HIGHEST_FPS = 1_000_000_000
"""Highest rate of a trial."""
Fps = Annotated[int, Field(ge=1, le=HIGHEST_FPS)]
MOST_FLOWS = 1_000_000
Flows = Annotated[int, Field(ge=1, le=MOST_FLOWS)]
Networks = Annotated[int, Field(ge=1, le=256)]
"""Destination networks (RFC 2544 section 12)."""
_DAY_NS = 86_400_000_000_000
Within = Annotated[int, Field(ge=0, le=_DAY_NS)]
"""A time in a trial, from its start, in ns."""
Span = Annotated[int, Field(ge=1, le=_DAY_NS)]
"""A part of a trial's time, in ns."""


class Value(BaseModel):
    """Base of all values: immutable; unknown members are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Sparse(Value):
    """A value of which ``sparse`` members are absent in JSON where they have their defaults."""

    sparse: ClassVar[Sequence[str]]

    @model_serializer(mode="wrap")
    def _without_defaults(self, members: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        absent = {name for name in self.sparse if getattr(self, name) == fields[name].default}
        return {name: value for name, value in members(self).items() if name not in absent}


PORT_NAME = r"[A-Za-z][A-Za-z0-9_]{0,11}"
"""Of a port of more than two; pools and rings of the engine have it in their names."""


STREAM_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}"
"""Of a stream with a rate of its own."""


class Direction(str):
    """The name of a path from one port to another. Forward is from the tester's left port to its right
    one; paths of named ports are called as ``a->b``. A stream with a rate of its own on a path is ``forward:NAME``."""

    __slots__ = ()
    FORWARD: ClassVar[Direction]
    REVERSE: ClassVar[Direction]
    _known: ClassVar[dict[str, Direction]] = {}
    """Each path is one object, to be compared with ``is``."""

    def __new__(cls, name: str) -> Direction:
        known = cls._known.get(name)
        if known is not None:
            return known
        if not re.fullmatch(f"(forward|reverse|{PORT_NAME}->{PORT_NAME})(:{STREAM_NAME})?", name):
            raise ValueError(f"{name!r} is neither forward, reverse nor a path from a port to another one, as a->b")
        return cls._known.setdefault(name, super().__new__(cls, name))

    @property
    def value(self) -> str:
        return str(self)

    @property
    def path(self) -> Direction:
        """The path itself, of a stream on it."""
        return Direction(self.partition(":")[0])

    @property
    def stream(self) -> str:
        """The name of the stream; empty: it is the path itself."""
        return self.partition(":")[2]

    def with_stream(self, name: str) -> Direction:
        return Direction(f"{self.path}:{name}")

    @property
    def ports(self) -> tuple[str, str]:
        """The names of the ports where it begins and ends."""
        return _ends_of(self)

    @property
    def is_of_two(self) -> bool:
        """Whether it is one of the paths between the ports left and right."""
        return self in LEFT_AND_RIGHT

    def leads_back(self, there: Direction) -> bool:
        """Whether it is the path between the same ports as ``there``, in the other direction."""
        return not self.stream and self.ports == there.ports[::-1]

    @property
    def sending_port(self) -> str:
        return self.ports[0]

    @property
    def receiving_port(self) -> str:
        return self.ports[1]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls, core_schema.str_schema(), serialization=core_schema.to_string_ser_schema()
        )


@cache
def _ends_of(direction: Direction) -> tuple[str, str]:
    """Of 1,000 streams of a trial each may ask which others leave its port."""
    path = direction.path
    if path in LEFT_AND_RIGHT:
        return ("left", "right") if path == "forward" else ("right", "left")
    sender, _, receiver = path.partition("->")
    return sender, receiver


Direction.FORWARD, Direction.REVERSE = LEFT_AND_RIGHT = (Direction("forward"), Direction("reverse"))


def ports_of(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The ports of a tester's environment, by name."""
    named = environment.get("ports")
    return dict(named) if named else {name: environment[name] for name in ("left", "right") if name in environment}


def shown_directions(used: Iterable[Direction]) -> tuple[Direction, ...]:
    """The paths of a table or chart: those ``used``, in order; of left and right always both."""
    several = tuple(dict.fromkeys(used))
    return LEFT_AND_RIGHT if all(one.is_of_two for one in several) else several


def members_of(of_paths: Mapping[Direction, Value]) -> dict[str, Any]:
    """What paths have, streams or counts, as members of a phase or a result."""
    measured = {direction: one for direction, one in of_paths.items() if not direction.stream}
    others = {direction: one for direction, one in of_paths.items() if direction.stream}
    two = all(direction.is_of_two for direction in measured)
    members: dict[str, Any] = {str(way): one for way, one in measured.items()} if two else {"paths": measured}
    return members | ({"other_streams": others} if others else {})


def to_json(value: Value) -> dict[str, Any]:
    """``value`` as JSON types without absent members, as in the protocol."""
    return value.model_dump(mode="json", exclude_none=True)
