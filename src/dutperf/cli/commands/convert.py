# SPDX-License-Identifier: Apache-2.0
"""``dutperf convert``: converts configurations of other testers to those of dutperf, and one of dutperf to a script."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dutperf.cli.commands.otg import Ports, located_ports
from dutperf.cli.errors import reported, say
from dutperf.errors import DutperfError, require
from dutperf.otg import file as files
from dutperf.otg.file import Kind
from dutperf.setup.configuration import ConfigError, load, place_of
from dutperf.siitperf import configuration
from dutperf.siitperf import convert as conversion
from dutperf.siitperf.configuration import InputError
from dutperf.siitperf.variables import Variables

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The file: siitperf.conf or an OTG configuration; with --to dutperf's.",
    ),
]


To = Annotated[
    Literal["snappi"] | None,
    typer.Option("--to", help="Make a script for snappi; the streams need rates."),
]


def convert(file: File = configuration.FILE, to: To = None, ports: Ports = None) -> None:
    """Convert another tester's configuration, or one to a script.

    The result is on standard output. Settings that siitperf does not have come from DUTPERF_PORTS, DUTPERF_NETNS,
    DUTPERF_CORES and DUTPERF_GATEWAYS, as for siitperf-tp.
    """
    with reported():
        located = located_ports(ports or [])
        kind, members = files.read(file)
        if located and (to is not None or kind is not Kind.OTG):
            raise ConfigError("is for a configuration of the Open Traffic Generator API", "--ports")
        if to is not None:
            _to_snappi(file)
        elif kind is Kind.OTG:
            _from_otg(file, members, located)
        elif kind is Kind.OURS:
            raise ConfigError("is a configuration of dutperf: give --to snappi for a script of its streams", str(file))
        else:
            _from_siitperf(file)


def _from_siitperf(file: Path) -> None:
    try:
        typer.echo(conversion.text(configuration.load(file), Variables.read(os.environ)), nl=False)
    except InputError as error:
        raise ConfigError(error.message, error.name) from None


def _from_otg(file: Path, members: Mapping[str, Any], located: Mapping[str, str]) -> None:
    require("snappi", "otg", "dutperf convert")
    from dutperf.otg import to_configuration
    from dutperf.otg.model import messages, of_members

    try:
        made = to_configuration.convert(of_members(members, messages.Config), located)
    except DutperfError as error:
        raise ConfigError(error.sentence, str(file)) from None
    for text in made.notes:
        say(f"{file}: {text}")
    typer.echo(made.text, nl=False)


def _to_snappi(file: Path) -> None:
    require("snappi", "otg", "dutperf convert --to snappi")
    from dutperf.otg import script, to_message

    setup = load(file)
    try:
        made, notes = to_message.config_of(setup)
    except ConfigError as error:
        place = place_of(error.key, file) or (str(file), None)
        raise ConfigError(error.message, error.key, origin=place[0], line=place[1]) from None
    for text in notes:
        say(f"{file}: {text}")
    typer.echo(script.script_of(made, file.name), nl=False)
