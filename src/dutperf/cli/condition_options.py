# SPDX-License-Identifier: Apache-2.0
"""The options for conditions: members of the conditions declare them (:mod:`dutperf.setup.option`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from inspect import Parameter, Signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from dutperf.cli import completion
from dutperf.run import earlier_runs
from dutperf.run.campaign import PlanError
from dutperf.setup.conditions import Conditions, EveryTrial, Model, Rate
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.setup.option import Offered, all_offered, flag_of, offered

COMPLETED = {"frame_sizes": completion.frame_sizes, "throughput_from": completion.results_directories}
"""Shell completion by the members of the conditions."""
_SOURCE_OPTIONS = {"lab": "--lab", "lab_options": "--lab-option", "config": "--config"}
"""Options of the parameters of the Python interface that are not conditions."""


def declared(model: type[EveryTrial]) -> dict[str, tuple[Any, Any]]:
    """Each member that ``model`` offers: its option for Typer, and its default as it would be typed
    (None: help shows none)."""
    return {one.name: (_declared(one), _default(one)) for one in offered(model)}


def signature(first: Mapping[str, tuple[Any, Any]], model: type[EveryTrial], last: Mapping[str, Any]) -> Signature:
    return Signature(parameters({**first, **declared(model), **last}))


def parameters(options: Mapping[str, tuple[Any, Any]]) -> list[Parameter]:
    """Of a command with these options: each one's kind for Typer, and its default."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in options.items()
    ]


def chosen(model: type[Model], given: Mapping[str, Any]) -> tuple[Model, ...]:
    """The chosen conditions, one for every combination of values in lists. Raises ConfigError: an option with an
    invalid value, named as on the command line."""
    with named_as_typed(model):
        return earlier_runs.chosen(model, {name: None if value in ((), []) else value for name, value in given.items()})


@contextmanager
def named_as_typed(model: type[EveryTrial]) -> Iterator[None]:
    """Within, errors name options, as ``model`` spells them, instead of parameters."""
    try:
        yield
    except (ParameterError, PlanError) as error:
        raise as_typed(error, model) from None


def as_typed(error: ParameterError | PlanError, model: type[EveryTrial] = Conditions) -> ConfigError:
    """The same error for a user of the command line: with options, as ``model`` spells them, instead of
    parameters."""
    parameter = error.option if isinstance(error, PlanError) else error.key
    return ConfigError(spelled(error.message), option_of(parameter, model))


def spelled(text: str) -> str:
    """``text`` with the option in place of each parameter in backticks: `` `max_rate` `` becomes
    ``--max-rate``."""

    def option(named: re.Match[str]) -> str:
        known = {*_SOURCE_OPTIONS, *(one.name for one in all_offered(EveryTrial))}
        return option_of(named[1]) if named[1] in known else named[0]

    return re.sub(r"`(\w+)`", option, text)


def option_of(parameter: str, model: type[EveryTrial] = Conditions) -> str:
    """The option that sets a parameter of the Python interface, as ``model`` spells it; empty for none."""
    own = next((one.flag for one in (*offered(model), *all_offered(EveryTrial)) if one.name == parameter), None)
    special = {**_SOURCE_OPTIONS, "series": "--frame-size", "": ""}
    return own or special.get(parameter, flag_of(parameter))


def _declared(one: Offered) -> Any:
    flags = tuple(name for name in (one.flag, one.option.alias) if name)
    option = typer.Option(
        *flags, metavar=one.metavar, autocompletion=COMPLETED.get(one.name), help=spelled(one.option.described())
    )
    return Annotated[_typed(one), option]


def _typed(one: Offered) -> Any:
    """The type for Typer: text where the conditions parse it themselves."""
    kind = one.field.annotation
    if one.option.listed:
        return list[str] | None
    if one.metavar == "DIR":
        return Path | None
    optional = NoneType in get_args(kind)
    plain = next((each for each in (get_args(kind) if optional else (kind,)) if each is not NoneType), None)
    while get_origin(plain) is Annotated:
        plain = get_args(plain)[0]
    is_plain = (plain in (bool, int, float) and not one.option.text) or get_origin(plain) is Literal or _is_enum(plain)
    typed: Any = plain if is_plain and not one.option.several else str
    return typed | None if optional or one.option.depends else typed


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _default(one: Offered) -> Any:
    value = one.default
    if value is None or _typed(one) is not str:
        return value
    return ",".join(f"{part:g}" for part in value) if isinstance(value, tuple) else str(value)


def parse_rate(option: str, text: str) -> Rate:
    """The rate in the text of ``option``. Raises ConfigError: it is not a rate."""
    try:
        return Rate.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), option) from None
