# SPDX-License-Identifier: Apache-2.0
"""``dutperf serve``: a page to start, watch and stop runs, and to look through the store."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dutperf import store as stores
from dutperf.cli import completion
from dutperf.cli.commands.store import StoreFile
from dutperf.cli.errors import reported, say
from dutperf.cli.listening import LOOPBACK, ListenAddress, TcpPort, check_token, listen, shown
from dutperf.cli.output import terminal
from dutperf.errors import require
from dutperf.setup.configuration import ConfigError

Directories = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DIR…]",
        autocompletion=completion.results_directories,
        help="Directories with results; new runs go into the first. Default: results.",
    ),
]
Setups = Annotated[
    Path,
    typer.Option("--setups", metavar="DIR", help="Directory of the configurations that the page offers."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        envvar="DUTPERF_TOKEN",
        help="Needed to start and stop runs. Default: a new one.",
    ),
]


def serve(
    directories: Directories = None,
    port: TcpPort = 8219,
    address: ListenAddress = LOOPBACK,
    setups: Setups = Path(),
    store: StoreFile = None,
    token: Token = None,
) -> None:
    """Serve a page to start, watch, stop and resume runs.

    It also looks through the store.
    """
    with reported():
        for library in ("starlette", "uvicorn"):
            require(library, "serve", "dutperf serve")
        import uvicorn

        from dutperf.web import app
        from dutperf.web.access import Rules
        from dutperf.web.forms import Places
        from dutperf.web.runs import Runs
        from dutperf.web.stored import Stored

        check_token(token)
        roots = tuple(one.resolve() for one in directories or [Path("results")])
        if missing := next((one for one in roots if directories and not one.is_dir()), None):
            raise ConfigError(f"there is no directory {missing}", "")
        rules = Rules(token or secrets.token_urlsafe(24), address)
        made = app.Server(Runs(roots), Places(setups, roots), Stored(store or stores.usual_file()), rules)
        listening = listen(address, port)
        server = uvicorn.Server(uvicorn.Config(app.make(made), log_level="warning", lifespan="off"))
        made.is_ending = lambda: bool(server.should_exit)
        terminal.line(f"http://{shown(address)}:{listening.getsockname()[1]}/?token={rules.token}")
        say("Ctrl-C ends the server; runs go on")
        _give_way()
        with listening:
            server.run(sockets=[listening])


def _give_way() -> None:
    """The server does not preempt what measures on this machine; the runs that it starts are not affected."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH | os.SCHED_RESET_ON_FORK, os.sched_param(0))
