# SPDX-License-Identifier: Apache-2.0
"""The options that commands share, each declared once.

Options for conditions are declared by the members of the conditions (:mod:`dutperf.setup.option`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer

from dutperf.api import results
from dutperf.cli import completion
from dutperf.cli.output import log
from dutperf.run.campaign import PlanError
from dutperf.setup import configuration
from dutperf.setup.conditions import Conditions, Model, Rate
from dutperf.setup.configuration import MAX_QUEUES, ConfigError, ParameterError
from dutperf.setup.option import Offered, all_offered, flag_of, offered

Parsed = TypeVar("Parsed")

LabName = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        autocompletion=completion.labs,
        help="Bring this lab up, measure it, take it down (see dutperf lab list).",
    ),
]
LabOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-option",
        metavar="KEY=VALUE",
        autocompletion=completion.lab_options,
        help="Option of the lab; repeatable (see dutperf lab show).",
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Measure the test setup of this configuration.")
]
ConfigNow = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=(
            "The configuration, if its file was moved. Commands are taken from the configuration, never from a journal."
        ),
    ),
]
Queues = Annotated[
    int | None,
    typer.Option(
        "--queues",
        metavar="COUNT",
        min=1,
        max=MAX_QUEUES,
        help=(
            "Receive and transmit queues of each port: a direction has as many senders and receivers, on several cores."
            " Default: engine.queues of the configuration, else 1."
        ),
    ),
]
OffloadsText = Annotated[
    str | None,
    typer.Option(
        "--offloads",
        metavar="NAME,...",
        help=(
            f"Hardware offloads to use: {', '.join(get_args(configuration.Offload))}. It is an error if a port"
            " does not support one. No offload has been tested on a NIC yet (docs/performance.md). Default:"
            " engine.offloads of the configuration, else none."
        ),
    ),
]
RateText = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="RATE",
        help=(
            "Rate per direction: frames/s (60000, 60k, 1.5M) or % of the media's maximum. Not with a pattern that has"
            " rates of its own."
        ),
    ),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Directory for the results.")]
Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        autocompletion=completion.results_directories,
        help="Directory with the results of a run or a suite.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")]
LogFormat = Annotated[
    log.Format,
    typer.Option(
        "--log-format",
        help="Format of the progress on standard error; json: one object per line, for programs.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Serve Prometheus metrics during the run, on 127.0.0.1 or --metrics-address.",
    ),
]
MetricsAddress = Annotated[
    str | None,
    typer.Option(
        "--metrics-address",
        metavar="ADDRESS",
        help="Address for --metrics-port, readable by anybody. Default: 127.0.0.1.",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE.prom",
        help="Write the metrics to this file after each trial, for node_exporter's textfile collector.",
    ),
]

Webhook = Annotated[
    str | None,
    typer.Option(
        "--webhook",
        envvar="DUTPERF_WEBHOOK",
        metavar="URL",
        help="Post to this URL, as JSON, when the run has ended: outcome, directory, measurements.",
    ),
]
ProgressInterval = Annotated[
    float,
    typer.Option(
        "--progress-interval",
        metavar="S",
        min=0.02,
        max=1.0,
        help="How often the counts of the running trial are read: for the display, and for progress.json.",
    ),
]
Testbed = Annotated[
    str | None,
    typer.Option(
        "--testbed",
        metavar="NAME",
        envvar="DUTPERF_TESTBED",
        help="Lease this testbed: one command at a time measures on it, others are refused or wait (dutperf testbeds).",
    ),
]
WaitForTestbed = Annotated[
    float,
    typer.Option("--wait-for-testbed", metavar="S", min=0, help="Wait so long for the testbed if another one has it."),
]
WATCHERS: dict[str, Any] = {
    "log_format": (LogFormat, "text"),
    "metrics_port": (MetricsPort, None),
    "metrics_address": (MetricsAddress, None),
    "metrics_file": (MetricsFile, None),
    "webhook": (Webhook, None),
    "progress_interval": (ProgressInterval, 1.0),
    "testbed": (Testbed, None),
    "wait_for_testbed": (WaitForTestbed, 0.0),
}
"""Options of every command that measures, with their defaults, by the members of
:class:`dutperf.cli.output.watch.Watchers`."""
COMPLETED = {"frame_sizes": completion.frame_sizes, "throughput_from": completion.results_directories}
"""Shell completion by the members of the conditions."""
_SOURCE_OPTIONS = {"lab": "--lab", "lab_options": "--lab-option", "config": "--config"}
"""Options of the parameters of the Python interface that are not conditions."""


def declared(model: type[Conditions]) -> dict[str, tuple[Any, Any]]:
    """Each member that ``model`` offers: its option for Typer, and its default as it would be typed
    (None: help shows none)."""
    return {one.name: (_declared(one), _default(one)) for one in offered(model)}


def chosen(model: type[Model], given: Mapping[str, Any]) -> tuple[Model, ...]:
    """The chosen conditions, one for every combination of values in lists.

    Raises:
        ConfigError: an option with an invalid value, named as on the command line.
    """
    try:
        return results.chosen(model, {name: None if value in ((), []) else value for name, value in given.items()})
    except (ParameterError, PlanError) as error:
        raise as_typed(error, model) from None


def as_typed(error: ParameterError | PlanError, model: type[Conditions] = Conditions) -> ConfigError:
    """The same error for a user of the command line: with options, as ``model`` spells them, instead of
    parameters."""
    parameter = error.option if isinstance(error, PlanError) else error.key
    return ConfigError(spelled(error.message), option_of(parameter, model))


def spelled(text: str) -> str:
    """``text`` with the option in place of each parameter in backticks: `` `max_rate` `` becomes
    ``--max-rate``."""
    known = {*_SOURCE_OPTIONS, *(one.name for one in all_offered(Conditions))}
    return re.sub(r"`(\w+)`", lambda named: option_of(named[1]) if named[1] in known else named[0], text)


def option_of(parameter: str, model: type[Conditions] = Conditions) -> str:
    """The option that sets a parameter of the Python interface, as ``model`` spells it; empty for none."""
    own = next((one.flag for one in (*offered(model), *all_offered(Conditions)) if one.name == parameter), None)
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
    """The rate in the text of ``option``.

    Raises:
        ConfigError: it is not a rate.
    """
    return _read(Rate.parse, option, text)


def offloads(text: str | None) -> configuration.Offloads | None:
    """``"receive_timestamps"`` to ``("receive_timestamps",)``; None where the option was not given.

    Raises:
        ConfigError: an unknown offload.
    """
    return None if text is None else configuration.offloads((name.strip() for name in text.split(",")), "--offloads")


def lab_options(texts: Sequence[str] | None) -> dict[str, str]:
    """``["loss=0.1"]`` to ``{"loss": "0.1"}``.

    Raises:
        ConfigError: one without a key or a value.
    """
    pairs = [text.partition("=") for text in texts or ()]
    for text, (key, _, value) in zip(texts or (), pairs, strict=True):
        if not key or not value:
            raise ConfigError(f"'{text}' is not of the form KEY=VALUE", "--lab-option")
    return {key: value for key, _, value in pairs}


def _read(parse: Callable[[str], Parsed], option: str, text: str) -> Parsed:
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(str(error), option) from None
