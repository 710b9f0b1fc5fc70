# SPDX-License-Identifier: Apache-2.0
"""The options that commands share, each declared once; those for conditions are in
:mod:`dutperf.cli.condition_options`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli import completion
from dutperf.cli.output import log

LabName = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        autocompletion=completion.labs,
        help="Bring this lab up, measure it, take it down (dutperf lab list).",
    ),
]
LabOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-option",
        metavar="KEY=VALUE",
        autocompletion=completion.lab_options,
        help="Option of the lab (dutperf lab show); repeatable.",
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
        help=("The configuration, if its file was moved."),
    ),
]
RateText = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="RATE",
        help="Rate per direction: frames/s (60k, 1.5M), or % of the maximum.",
    ),
]


def directory_of(text: str) -> Path:
    """An empty text, as of a shell variable that is not set, would be the current directory."""
    if not text:
        raise typer.BadParameter("is empty: give a directory, or . for the current one")
    return Path(text)


Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", parser=directory_of, help="Directory for the results.")
]
Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        autocompletion=completion.results_directories,
        help="Directory with the results of a run or a suite.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Show every deviation from the RFCs, and long causes in full."),
]
LogFormat = Annotated[
    log.Format,
    typer.Option(
        "--log-format",
        help="Format of progress on standard error; json: one object a line.",
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
        help="Write the metrics there after each trial, for node_exporter.",
    ),
]

Webhook = Annotated[
    str | None,
    typer.Option(
        "--webhook",
        envvar="DUTPERF_WEBHOOK",
        metavar="URL",
        help="Post the outcome to this URL at the end, as JSON.",
    ),
]
ProgressInterval = Annotated[
    float,
    typer.Option(
        "--progress-interval",
        metavar="S",
        min=0.02,
        max=1.0,
        help="Time between updates of the display and of progress.json.",
    ),
]
Testbed = Annotated[
    str | None,
    typer.Option(
        "--testbed",
        metavar="NAME",
        envvar="DUTPERF_TESTBED",
        help="Lease this testbed: no other command measures on it then.",
    ),
]
WaitForTestbed = Annotated[
    float,
    typer.Option("--wait-for-testbed", metavar="S", min=0, help="Wait so long for the testbed if another one has it."),
]


@dataclass(frozen=True)
class WatchOptions:
    """The options of every command that measures."""

    log_format: LogFormat = "text"
    metrics_port: MetricsPort = None
    metrics_address: MetricsAddress = None
    metrics_file: MetricsFile = None
    webhook: Webhook = None
    progress_interval: ProgressInterval = 1.0
    testbed: Testbed = None
    wait_for_testbed: WaitForTestbed = 0.0


WATCHERS = signature(WatchOptions, eval_str=True).parameters
"""The same as parameters of a command."""


def lab_options(texts: Sequence[str] | None) -> dict[str, str]:
    """``["loss=0.1"]`` to ``{"loss": "0.1"}``. Raises ConfigError: one without a key or a value."""
    pairs = [text.partition("=") for text in texts or ()]
    for text, (key, _, value) in zip(texts or (), pairs, strict=True):
        if not key or not value:
            from dutperf.setup.configuration import ConfigError

            raise ConfigError(f"'{text}' is not of the form KEY=VALUE", "--lab-option")
    return {key: value for key, _, value in pairs}
