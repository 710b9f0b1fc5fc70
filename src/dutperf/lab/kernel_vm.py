# SPDX-License-Identifier: Apache-2.0
"""Another kernel than the host's: Debian's, in an emulated machine, as a router, and as a NAT44 by nftables and its
connection tracking, whose table has the size of an option: there the kernel is the DUT's own."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dutperf.lab import nft_nat44
from dutperf.lab.addresses import LEFT, RIGHT, routed_sides, tester
from dutperf.lab.definition import Lab
from dutperf.lab.guest import machine, packages
from dutperf.lab.guest.machine import PORTS, GuestOptions, Software
from dutperf.lab.guest.packages import Kernel
from dutperf.lab.nft_nat44 import ConntrackOptions
from dutperf.lab.site import Site
from dutperf.lab.transparent import Version

NAT_MODULES = (*machine.NFTABLES, "nft_chain_nat", "nft_ct", "nft_nat", "nft_masq", "nf_conntrack_netlink")
RULES = "root/nat.nft"


class RouterOptions(GuestOptions):
    """The foreground's IP version."""

    version: Annotated[Version, Field(description="IP version of the foreground, 4 or 6")] = 4


class NatOptions(ConntrackOptions, GuestOptions):
    """Connection tracking; its table is as large as the option says."""

    table: Annotated[
        int,
        Field(ge=16, le=1_000_000, description="connections that the table holds (nf_conntrack_max)"),
    ] = 65_536


def router(site: Site, options: RouterOptions) -> dict[str, Any]:
    """Boot the machine as a router; returns the tester's configuration."""
    kernel = packages.kernel()
    machine.start(site, options.mtu, options, kernel, Software(set_up=_routing(options)))
    return _configuration(
        site,
        options,
        kernel,
        options.version,
        f"Linux IPv{options.version} router",
        machine.reset(site, options.reset_s),
    )


def nat(site: Site, options: NatOptions) -> dict[str, Any]:
    """Boot the machine as a NAT44; returns the tester's configuration with IPv4 in the foreground."""
    kernel = packages.kernel()
    tools = packages.conntrack()
    timeouts = "".join(f"echo {value} > /proc/sys/net/{path}\n" for path, value in nft_nat44.timeouts(options).items())
    software = Software(
        set_up=f"{_routing(options)}{table(options)}{timeouts}nft -f /{RULES}\n",
        drivers=NAT_MODULES,
        programs=[tools.program, packages.of_this_machine("nft")],
        places=tools.libraries,
        files={RULES: nft_nat44.ruleset(options.statement(), PORTS[1])},
    )
    machine.start(site, options.mtu, options, kernel, software)
    made = _configuration(site, options, kernel, 4, "Linux NAT44", machine.reset(site, options.reset_s))
    made["dut"] |= nft_nat44.about(options, options.table)
    made["dut"]["commands"] |= {name: machine.ask(site, script) for name, script in CONNECTIONS.items()}
    return {**made, "stateful": nft_nat44.stateful(options)}


def table(options: NatOptions) -> str:
    """Commands for the size of the table, which is of the whole guest."""
    return (
        f"echo {max(1024, options.table // 4)} > /sys/module/nf_conntrack/parameters/hashsize\n"
        f"echo {options.table} > /proc/sys/net/netfilter/nf_conntrack_max\n"
    )


_COUNT = "cat /proc/sys/net/netfilter/nf_conntrack_count"
_STATISTICS = "conntrack -S 2> /dev/null | tr ' ' '\\n' | awk -F = '{ sum[$1] += $2 } END { CODE }'"
_TOLD = "for (name in sum) if (name ~ /early_drop|insert_failed|^drop/) print name, sum[name]"
CONNECTIONS = {
    "count_connections": f"{_COUNT}\n{_STATISTICS.replace('CODE', _TOLD)}",
    "clear_connections": (
        "conntrack -F > /tmp/cleared 2>&1 || { cat /tmp/cleared; exit 1; }\n"
        f"for wait in $(seq 2000); do [ $({_COUNT}) -gt 0 ] || exit 0; usleep 1000; done\n"
        "echo connections are left after all were deleted; exit 1"
    ),
    "losses": (
        _STATISTICS.replace("CODE", 'print "forward conntrack_drop", sum["drop"] + 0')
        + "\nnft list counter ip nat reverse_no_connection"
        + ' | awk \'$1 == "packets" { print "reverse no_connection", $2 }\''
    ),
}
"""Scripts for the guest."""


def _routing(options: GuestOptions) -> str:
    own = (line for side, port in zip((LEFT, RIGHT), PORTS, strict=True) for line in (*side.ip4(port), *side.ip6(port)))
    return machine.routing(own, options.mtu)


def _configuration(
    site: Site, options: GuestOptions, kernel: Kernel, version: int, name: str, reset: list[str]
) -> dict[str, Any]:
    return {
        **tester([site.dut_core], routed_sides(version)),
        "dut": {
            "name": name,
            "version": kernel.release,
            **machine.identity(options, kernel, site),
            "commands": {"reset": reset},
        },
    }


LABS = (
    Lab(
        name="kernel-vm",
        summary="Debian's kernel as a router in an emulated machine",
        options=RouterOptions,
        programs=packages.PROGRAMS,
        build=router,
    ),
    Lab(
        name="kernel-vm-nat44",
        summary="Debian's kernel as a NAT44 in an emulated machine, with a connection table of set size",
        options=NatOptions,
        programs=packages.PROGRAMS,
        build=nat,
    ),
)
