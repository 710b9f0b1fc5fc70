# SPDX-License-Identifier: Apache-2.0
"""``dutperf ports``: the machine's network cards and interfaces, and their drivers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dutperf import installation
from dutperf.cli import options
from dutperf.cli.errors import reported, say
from dutperf.cli.help_screen import command_of, group
from dutperf.cli.output import terminal
from dutperf.cli.output.steps import Yes, carry_out
from dutperf.machine import binding
from dutperf.machine.access import Machine
from dutperf.machine.binding import Consent
from dutperf.machine.ports import Inventory, Port, inventory, ports
from dutperf.machine.timestamping import UNKNOWN

app = group("ports", invoke_without_command=True)
Addresses = Annotated[
    list[str],
    typer.Argument(metavar="ADDRESS", help="PCI addresses (0000:01:00.0 or 01:00.0), or interfaces of cards."),
]
COLUMNS = ("PCI address", "interface", "driver", "NUMA", "link", "stamps", "use", "port")


def machine() -> Machine:
    """This machine; tests replace it."""
    return Machine()


@app.callback()
def list_ports(context: typer.Context, as_json: options.Json = False) -> None:
    """List this machine's cards and interfaces, and their port names.

    It shows their use, and how a configuration names them as ports. dutperf ports bind gives cards to DPDK; dutperf
    ports unbind gives them back to the kernel.
    """
    if context.invoked_subcommand is not None:
        return
    with reported():
        found = ports(inventory(machine()))
        if as_json:
            typer.echo(json.dumps({"ports": [asdict(port) for port in found]}))
        else:
            terminal.output().print(as_table(found))
            for text in remarks(found):
                terminal.line(text)


@command_of(app, "bind")
def bind(
    addresses: Addresses,
    yes: Yes = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also bind cards in use; never that of the default route."),
    ] = False,
    no_iommu: Annotated[
        bool,
        typer.Option("--no-iommu", help="Also bind without an IOMMU: the card can access all memory."),
    ] = False,
) -> None:
    """Give network cards to DPDK until the next reboot; shows how to undo it.

    The command checks everything and shows the steps. Then it moves the cards from the kernel's
    driver to vfio-pci. It never touches a card with the default route. A card that is up with
    addresses, or is part of a bond or bridge, needs --force.
    """
    with reported():
        before = inventory(machine())
        planned = binding.bind(before, addresses, Consent(force=force, no_iommu=no_iommu))
        _carry_out(before, planned, yes)


@command_of(app, "unbind")
def unbind(addresses: Addresses, yes: Yes = False) -> None:
    """Give network cards back to the kernel, unless a program has them open."""
    with reported():
        before = inventory(machine())
        planned = binding.unbind(before, addresses)
        _carry_out(before, planned, yes)


def as_table(found: Sequence[Port]) -> Table:
    """One row for each; ``port`` is the name in a configuration."""
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, no_wrap=column in ("PCI address", "port"))
    for port in found:
        table.add_row(*(escape(cell) if cell else "-" for cell in _cells(port)))
    return table


def _cells(port: Port) -> tuple[str | None, ...]:
    name = f"{port.interface} ({port.kind})" if port.kind else port.interface
    numa_node = None if port.numa_node is None else str(port.numa_node)
    use = "default route" if port.default_route else "in use" if port.use else None
    return port.address, name, port.driver, numa_node, _link(port), port.stamps, use, port.port


def remarks(found: Sequence[Port]) -> list[str]:
    """A line for each card: what DPDK needs to use it; and for each clock of a card: whether it can be used."""
    texts = {port.address: port.dpdk for port in found if port.address is not None}
    clocks = {port.interface: port for port in found if port.clock is not None}
    unknown = (
        [f"stamps are {UNKNOWN}: {installation.package('ethtool')}"] if UNKNOWN in (one.stamps for one in found) else []
    )
    return [
        *(f"{address}: {text}" for address, text in texts.items()),
        *(f"{name}: its card's time stamps are by {port.clock_text}" for name, port in clocks.items()),
        *unknown,
    ]


def _link(port: Port) -> str | None:
    if port.link is None:
        return None
    return f"up, {port.speed_mbps:,} Mbit/s" if port.link and port.speed_mbps else "up" if port.link else "down"


def _carry_out(before: Inventory, planned: binding.Planned, yes: bool) -> None:
    for remark in planned.remarks:
        say(remark)
    carry_out(before.machine, planned.steps, yes=yes)
