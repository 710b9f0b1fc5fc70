# SPDX-License-Identifier: Apache-2.0
"""Commands that are imported when they are called: help and completion need their names and sentences alone, and each
command only what it needs itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer

from dutperf.cli.examples import epilog
from dutperf.cli.help_screen import ShownCommand, ShownGroup
from dutperf.cli.index import COMMANDS


class Commands(Mapping[str, Any]):
    """The commands by their names, each imported when it is first asked for."""

    def __getitem__(self, name: str) -> Any:
        return load(name)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Group(ShownGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        commands: Any = Commands()  # nobody adds any
        self.commands = commands

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """The name and the sentence: what lists show."""
        if cmd_name not in COMMANDS:
            return None
        panel, text = COMMANDS[cmd_name]
        return ShownCommand(cmd_name, help=text, rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, to be called."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None or name is None else self.commands[name], rest


@cache
def load(name: str) -> Any:
    """The command of a module: a group ``app``, a function of the command's name, or made of a ``PROCEDURE``. Raises
    ModuleNotFoundError: there is no such command."""
    file = name.replace("-", "_")
    own = f"dutperf.cli.commands.{file}"
    members = vars(import_module(own if find_spec(own) is not None else f"dutperf.procedures.{file}"))
    command: Any
    if "app" in members:
        command = typer.main.get_group(members["app"])
    else:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        procedure = members.get("PROCEDURE")
        function = members[file] if procedure is None else _of_procedure(procedure)
        alone.command(name, cls=ShownCommand, epilog=epilog(name))(function)
        command = typer.main.get_command(alone)
        import_module("dutperf.cli.panels").arrange(command)
    command.name = name
    return command


def _of_procedure(definition: Any) -> Any:
    return import_module("dutperf.cli.commands.measure").command(definition)
