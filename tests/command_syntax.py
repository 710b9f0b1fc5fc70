# SPDX-License-Identifier: Apache-2.0
"""Command lines as they stand in documents: understood by the commands' own parser, without running
anything."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import typer

from dutperf import lab, procedures
from dutperf.cli import app, condition_options, options
from dutperf.lab import LabError
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError
from dutperf.setup.option import offered
from dutperf.traffic.replayed import Replaying

_MODELS = {definition.name: definition.conditions for definition in procedures.every()} | {
    "trial": SingleTrial,
    "replay": Replaying,
}

_AT_ONCE = ("--help", "--version", "--install-completion", "--show-completion")
"""Options that act while they are parsed: completion would be installed into the shell of whoever
runs the tests."""


def arguments(line: str) -> list[str]:
    """Its words after ``dutperf``, without what the shell takes for itself."""
    words = shlex.split(line, comments=True)
    assert words[0] == "dutperf", line
    for redirection in (">", "|", "&&", "||"):
        words = words[: words.index(redirection)] if redirection in words else words
    return words[1:]


def parse(line: str) -> Mapping[str, Any]:
    """What the command is given.

    Raises:
        AssertionError: there is no such command, option, lab, option of a lab, or a value is not
            possible.
    """
    command: Any = typer.main.get_command(app)
    context: Any = None
    words = [word for word in arguments(line) if word not in _AT_ONCE]
    if not words:
        return {}
    name = "dutperf"
    try:
        while True:
            context = command.make_context(name, list(words), parent=context)
            inner = getattr(command, "commands", {})
            if not inner or not context._protected_args:
                break
            name, *words = [*context._protected_args, *context.args]
            assert name in inner, f"{line}: there is no command {name}"
            command = inner[name]
        _check(context.info_name, context.params)
    except (ConfigError, LabError, ValueError) as error:
        raise AssertionError(f"{line}: {error}") from None
    except Exception as error:
        if hasattr(error, "exit_code") and not isinstance(error, AssertionError):
            raise AssertionError(f"{line}: {error!r} {error}") from None
        raise
    return context.params  # type: ignore[no-any-return]


def _check(command: str | None, given: Mapping[str, Any]) -> None:
    """What only a command itself checks: rates, sizes, mixes, and a lab's options."""
    if given.get("lab") is not None:
        lab.check(given["lab"], options.lab_options(given.get("lab_option")))
    if command in _MODELS:
        own = {one.name for one in offered(_MODELS[command])} - {"throughput_from", "delays_to", "self_test_from"}
        condition_options.chosen(_MODELS[command], {name: value for name, value in given.items() if name in own})
    if given.get("rate") is not None:
        condition_options.parse_rate("--rate", given["rate"])
