# SPDX-License-Identifier: Apache-2.0
"""``dutperf testbeds``: who has the testbeds of this host."""

from __future__ import annotations

import json

import typer

from dutperf.cli import options
from dutperf.cli.errors import reported
from dutperf.cli.output import console, terminal
from dutperf.results.tables import Table
from dutperf.run import lease


def testbeds(as_json: options.Json = False) -> None:  # noqa: PT028
    """List the testbeds that are leased on this host, and who has them.

    Leases (--testbed) that ended are listed too, since the host booted.
    """
    with reported():
        found = lease.all_leases()
        if as_json:
            typer.echo(json.dumps(found))
            return
        heads = ("testbed", "user", "process", "since", "last heartbeat", "command")
        terminal.output().print(console.table(Table("testbeds of this host", heads, tuple(map(_row, found.items())))))


def _row(one: tuple[str, dict[str, object] | None]) -> tuple[str, ...]:
    name, owner = one
    if owner is None:
        return name, "free", "-", "-", "-", "-"
    shown = (str(owner.get(member, "-")) for member in ("user", "pid", "since"))
    return name, *shown, f"{owner.get('heartbeat_s', '-')} s ago", str(owner.get("command", "-"))
