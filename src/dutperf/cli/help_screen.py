# SPDX-License-Identifier: Apache-2.0
"""``--help``: options and commands in groups and two columns, as wide as the terminal; at the end an example, and the
page of the documents. The reference and the manual pages list the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from dutperf.cli.calling import as_called
from dutperf.cli.examples import epilog

WIDEST = 120
"""Columns: longer lines are hard to read."""
NAMES = 30
"""Columns at most of the names of options; a longer name has a line of its own."""
ARGUMENTS, OPTIONS, COMMANDS = "Arguments", "Options", "Commands"
"""Titles where there are no groups."""
_SAID = re.compile(r"(.*?)(?:(?:^|  )\\?\[(.*)\])?", re.DOTALL)
"""Help and extras in what Typer says."""
_Function = TypeVar("_Function", bound=Callable[..., None])


@dataclass(frozen=True)
class Listed:
    """An argument, an option, or a command of a group."""

    kind: str
    """One of the titles above."""
    panel: str
    """What it is listed under."""
    name: str
    """With the placeholder of a value."""
    help: str
    """What it is, in a sentence."""
    extras: tuple[str, ...] = ()
    """As Typer words them: ``env var: X``, ``default: 1``, ``x>=0``, ``required``."""

    @property
    def complete(self) -> str:
        """The help with all extras."""
        return _with(self.help, self.extras)

    @property
    def short(self) -> str:
        """The help with the default; an error names the range, and the usage what is required."""
        defaults = (one for one in self.extras if one.startswith("default: "))
        return _with(self.help, [re.sub(r"(: -?\d+)\.0$", r"\1", one) for one in defaults])


class _Shown:
    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        formatter.width = min(shutil.get_terminal_size().columns, WIDEST)
        self.format_usage(ctx, formatter)
        for paragraph in (self.help or "").strip().split("\n\n"):
            formatter.write_paragraph()
            formatter.write_text(" ".join(paragraph.split()))
        for panel, entries in groupby(listed(self, ctx), lambda one: one.panel):
            with formatter.section(typer.style(panel, bold=True)):
                formatter.write_dl([(one.name, one.short) for one in entries], NAMES)
        if self.epilog:
            formatter.write_paragraph()
            formatter.write_text(as_called(self.epilog))


class ShownCommand(_Shown, TyperCommand):
    """A command with this help."""


class ShownGroup(_Shown, TyperGroup):
    """A group of commands with this help."""


def group(name: str, **more: Any) -> typer.Typer:
    """A group for :func:`command_of`."""
    return typer.Typer(name=name, cls=ShownGroup, epilog=epilog(name), **more)


def command_of(app: typer.Typer, name: str) -> Callable[[_Function], _Function]:
    return app.command(name, cls=ShownCommand, epilog=epilog(f"{app.info.name} {name}"))


def summary(command: Any) -> str:
    """What a command does, in a sentence: the first paragraph of its help."""
    return " ".join((command.help or "").strip().split("\n\n")[0].split())


def listed(command: Any, context: Any) -> tuple[Listed, ...]:
    """Arguments, options and commands; ``--help`` is the last option of the last group."""
    return (*_parameters(command, context), *_commands(command, context))


def _parameters(command: Any, context: Any) -> Iterator[Listed]:
    panel = OPTIONS
    for one in command.get_params(context):
        record = one.get_help_record(context)
        if record is not None:
            name, said = " ".join(record[0].split()), _SAID.fullmatch(record[1])
            assert said is not None
            extras = tuple(said[2].split("; ")) if said[2] else ()
            if one.param_type_name == "argument":
                yield Listed(ARGUMENTS, ARGUMENTS, name.partition(" <")[0], " ".join(said[1].split()), extras)
            else:
                panel = getattr(one, "rich_help_panel", None) or panel  # --help is last, and has none
                yield Listed(OPTIONS, panel, name, " ".join(said[1].split()), extras)


def _commands(command: Any, context: Any) -> Iterator[Listed]:
    for name in command.list_commands(context) if isinstance(command, TyperGroup) else ():
        one: Any = command.get_command(context, name)
        yield Listed(COMMANDS, one.rich_help_panel or COMMANDS, name, summary(one))


def _with(text: str, extras: Iterable[str]) -> str:
    said = "; ".join(extras)
    return f"{text} [{said}]".lstrip() if said else text
