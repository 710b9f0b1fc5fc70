# SPDX-License-Identifier: Apache-2.0
"""``dutperf convert``: converts a siitperf configuration file to one of dutperf."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.errors import reported
from dutperf.setup.configuration import ConfigError
from dutperf.siitperf import configuration
from dutperf.siitperf import convert as conversion
from dutperf.siitperf.configuration import InputError
from dutperf.siitperf.variables import Variables

File = Annotated[Path, typer.Argument(metavar="FILE", help="A siitperf.conf.")]


def convert(file: File = configuration.FILE) -> None:
    """Convert a siitperf configuration file to one of dutperf, on standard output.

    Settings that siitperf does not have come from DUTPERF_PORTS, DUTPERF_NETNS, DUTPERF_CORES and
    DUTPERF_GATEWAYS, as for siitperf-tp.
    """
    with reported():
        try:
            typer.echo(conversion.text(configuration.load(file), Variables.read(os.environ)), nl=False)
        except InputError as error:
            raise ConfigError(error.message, error.name) from None
