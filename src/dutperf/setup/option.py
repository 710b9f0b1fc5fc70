# SPDX-License-Identifier: Apache-2.0
"""How a member of the conditions is offered to a user: declared once, where the member is.

Options of the command line, keys of a plan, parameters of the interface for programs, ``--help``,
the documentation and the report's labels are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Option:
    """One member that a user may choose."""

    help: str
    """What it does, as a sentence without its full stop. A name in backticks is another member; the
    command line shows its option."""
    clause: str = ""
    """Where a standard says what it should be, with the standard's value: ``RFC 2544 section 24: 60``."""
    label: str = ""
    """Its name in reports, with the unit; without one the member's name."""
    flag: str = ""
    """Its option; without one the member's name without the unit of time."""
    alias: str = ""
    """Another spelling of the option."""
    metavar: str | None = None
    """Stands for the value in ``--help``; of times in seconds S."""
    several: bool = False
    """Whether each value of a list is measured."""
    listed: bool = False
    """Whether the option may be repeated."""
    depends: bool = False
    """Whether the default depends on other members, so that there is none to show."""

    def described(self) -> str:
        """The whole help."""
        return f"{self.help} ({self.clause})." if self.clause else f"{self.help}."


class Fixed:
    """Marks a member that a procedure does not offer: it has no meaning there."""


FIXED = Fixed()


@dataclass(frozen=True)
class Offered:
    """A member of a model with its option."""

    name: str
    field: FieldInfo
    option: Option

    @property
    def flag(self) -> str:
        """On the command line: ``--duration``."""
        return self.option.flag or flag_of(self.name)

    @property
    def keys(self) -> tuple[str, ...]:
        """In a plan: ``duration``; the usual spelling first."""
        return tuple(name.removeprefix("--") for name in (self.flag, self.option.alias) if name)

    @property
    def default(self) -> Any:
        """What it is where it is not given, as it would be typed; None where it then has no value."""
        value = self.field.default
        if self.option.depends or value in (None, ()):
            return None
        return value.text() if hasattr(value, "text") else value

    @property
    def metavar(self) -> str | None:
        """What stands for the value."""
        return self.option.metavar or ("S" if self.name.endswith("_s") else None)


def offered(model: type[BaseModel]) -> Iterator[Offered]:
    """The members of ``model`` that a user may choose, in the order of their declaration."""
    for name, field in model.model_fields.items():
        yield from (Offered(name, field, mark) for mark in field.metadata if isinstance(mark, Option))


def is_fixed(field: FieldInfo) -> bool:
    """Whether a procedure does not offer the member."""
    return any(isinstance(mark, Fixed) for mark in field.metadata)


def flag_of(member: str) -> str:
    """The usual option of a member: ``duration_s`` is ``--duration``."""
    return "--" + member.removesuffix("_s").replace("_", "-")


def all_offered(model: type[BaseModel]) -> Iterator[Offered]:
    """The members that ``model`` or a model that is made from it offers, some of them several times."""
    yield from offered(model)
    for derived in model.__subclasses__():
        yield from all_offered(derived)
