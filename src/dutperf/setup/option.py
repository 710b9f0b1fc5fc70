# SPDX-License-Identifier: Apache-2.0
"""The option of a member of the conditions: declared once, with the member.

Options of the command line, keys of a plan, parameters of the Python interface, ``--help``, the
documentation and the report's labels are generated from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

TRAFFIC, TRIAL, SEARCH, OUTPUT = "Traffic", "Trial", "Search and repetitions", "Output"
"""What options are about, as help and manual group them."""


@dataclass(frozen=True)
class Option:
    help: str
    """What it does, as a sentence without its full stop. A name in backticks is another member; the
    command line shows its option."""
    clause: str = ""
    """The standard's clause and value: ``RFC 2544 section 24: 60``."""
    label: str = ""
    """Name in reports, with the unit; default: the member's name."""
    flag: str = ""
    """Spelling of the option; default: the member's name without ``_s``."""
    alias: str = ""
    """Another spelling of the option."""
    metavar: str | None = None
    """Placeholder of the value in ``--help``; default for times in seconds: S."""
    several: bool = False
    """Whether a list may be given, of which each value is measured."""
    listed: bool = False
    """Whether the option may be repeated."""
    text: bool = False
    """Whether the conditions read it from text, although it is a number."""
    depends: bool = False
    """Whether the default depends on other members, so that help shows none."""
    panel: str = ""
    """What it is about; empty: a procedure's own."""
    needs: str = ""
    """Another member, without which (None, 0) this one has no effect."""

    def described(self) -> str:
        return f"{self.help} ({self.clause})." if self.clause else f"{self.help}."


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
        """In a plan: ``duration``; the alias last."""
        return tuple(name.removeprefix("--") for name in (self.flag, self.option.alias) if name)

    @property
    def default(self) -> Any:
        """The default as it would be typed; None where help shows none."""
        value = self.field.default
        if self.option.depends or value in (None, ()):
            return None
        return value.text() if hasattr(value, "text") else value

    @property
    def is_path(self) -> bool:
        """Whether its value is of this machine's file system, which a plan names from its own directory."""
        return self.name == "frame_from" or self.metavar == "DIR"

    @property
    def metavar(self) -> str | None:
        """Placeholder of the value in ``--help``."""
        return self.option.metavar or ("S" if self.name.endswith("_s") else None)


@cache  # the command line asks four hundred thousand times as it starts
def offered(model: type[BaseModel]) -> tuple[Offered, ...]:
    """The members of ``model`` that a user may choose, in the order of their declaration."""
    return tuple(
        Offered(name, field, mark)
        for name, field in model.model_fields.items()
        for mark in field.metadata  # a type may bring an option along
        if isinstance(mark, Option)
    )


def flag_of(member: str) -> str:
    """The default spelling of a member's option: ``duration_s`` is ``--duration``."""
    return "--" + member.removesuffix("_s").replace("_", "-")


def all_offered(model: type[BaseModel]) -> Iterator[Offered]:
    """The members that ``model`` and its subclasses offer; some occur several times."""
    yield from offered(model)
    for derived in model.__subclasses__():
        yield from all_offered(derived)
