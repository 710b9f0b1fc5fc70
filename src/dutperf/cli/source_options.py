# SPDX-License-Identifier: Apache-2.0
"""The options of commands that send: the test setup, the tester's ports, and where the result goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

import typer

from dutperf.cli import options
from dutperf.run.testbench import Source
from dutperf.setup import configuration
from dutperf.setup.configuration import MAX_QUEUES

Queues = Annotated[
    int | None,
    typer.Option(
        "--queues",
        metavar="COUNT",
        min=1,
        max=MAX_QUEUES,
        help="Receive and transmit queues of each port. Default: the configuration's.",
    ),
]
OffloadsText = Annotated[
    str | None,
    typer.Option(
        "--offloads",
        metavar="NAME,...",
        help=f"Hardware offloads: {', '.join(get_args(configuration.Offload))}. Default: the configuration's.",
    ),
]

SOURCE = {
    "lab": (options.LabName, None),
    "lab_option": (options.LabOptions, None),
    "config_file": (options.ConfigFile, None),
    "queues": (Queues, None),
    "offloads": (OffloadsText, None),
}
RESULT = {"out": (options.Out, None), "as_json": (options.Json, False)}
MEASURED = {**RESULT, "verbose": (options.Verbose, False)}


def offloads(text: str | None) -> configuration.Offloads | None:
    """``"receive_timestamps"`` to ``("receive_timestamps",)``; None where the option was not given. Raises ConfigError:
    an unknown offload."""
    return None if text is None else configuration.offloads((name.strip() for name in text.split(",")), "--offloads")


def split_source(given: Mapping[str, Any]) -> tuple[Source, dict[str, Any]]:
    """The source of the test setup (the options :data:`SOURCE`), and the other options."""
    source = Source.of(
        given["lab"],
        options.lab_options(given["lab_option"]),
        given["config_file"],
        given["queues"],
        offloads(given["offloads"]),
    )
    return source, {name: value for name, value in given.items() if name not in SOURCE}
