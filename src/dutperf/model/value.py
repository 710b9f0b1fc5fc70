# SPDX-License-Identifier: Apache-2.0
"""Base class of all values, and the smallest values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Port16 = Annotated[int, Field(ge=0, le=65535)]
Fps = Annotated[int, Field(ge=1, le=1_000_000_000)]


class Value(BaseModel):
    """Base of all values: immutable; unknown members are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Direction(StrEnum):
    """Forward is from the tester's left port to its right one."""

    FORWARD = "forward"
    REVERSE = "reverse"


def to_json(value: Value) -> dict[str, Any]:
    """``value`` as JSON types without absent members, as in the protocol."""
    return value.model_dump(mode="json", exclude_none=True)


def without_empty(members: dict[str, Any], name: str) -> dict[str, Any]:
    """``members`` without ``name`` if that is an empty list."""
    return {key: value for key, value in members.items() if key != name or value}
