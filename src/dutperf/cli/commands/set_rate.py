# SPDX-License-Identifier: Apache-2.0
"""``dutperf set-rate``: another rate for traffic that runs."""

from __future__ import annotations

from typing import Annotated

import typer

from dutperf.cli import condition_options, options
from dutperf.cli.errors import reported, say
from dutperf.procedures.request import Request
from dutperf.run import requests
from dutperf.setup.configuration import ConfigError


def set_rate(
    directory: options.Directory,
    rate: Annotated[
        str | None,
        typer.Argument(metavar="RATE", help="New rate per direction: frames/s, or % of the media's maximum."),
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End the traffic instead.")] = False,
) -> None:
    """Change the rate of `dutperf traffic` while it runs, or end it.

    Waits until that has happened.
    """
    with reported():
        if end == (rate is not None):
            raise ConfigError("give either a rate or --end", "RATE")
        asked = Request(end=True) if rate is None else Request(rate=condition_options.parse_rate("RATE", rate))
        requests.ask(directory, asked)
        say("the traffic ends" if asked.rate is None else f"the traffic goes on at {asked.rate}")
