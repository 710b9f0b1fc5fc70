# SPDX-License-Identifier: Apache-2.0
"""The Linux kernel as a NAT44 (RFC 3022, RFC 4787): nftables with connection tracking, IPv4 from the left
behind outside addresses on the right.

The size of its table, ``nf_conntrack_max``, and of its hash table are those of the whole machine: in a
namespace they can only be read. The lab tells them, and refuses a larger table than there is. In a full
table the kernel evicts connections without a reverse frame, so a capacity shows only in frames back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dutperf.lab import conntrack, kernel_router
from dutperf.lab.addresses import LEFT, POOL_SIZE, RIGHT, outside_pool, routed_sides, tester
from dutperf.lab.definition import Cores, Lab, ResetOptions
from dutperf.lab.errors import LabError
from dutperf.lab.netns import DUT_PORTS, Namespace, has_ipv6, standalone
from dutperf.lab.site import Site


class ConntrackOptions(ResetOptions):
    """Options of the kernel's connection tracking. Its own timeouts are too short for the tests, whose
    connections must outlive a trial (RFC 9693 section 4.4)."""

    udp_timeout_s: Annotated[
        int,
        Field(
            ge=1, le=86_400, description="life of a UDP connection without a reverse frame, in s (kernel's default: 30)"
        ),
    ] = 300
    udp_stream_timeout_s: Annotated[
        int,
        Field(ge=1, le=86_400, description="life of an answered UDP connection, in s (kernel's default: 120)"),
    ] = 300
    table: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000_000,
            description="connections that the table must have room for; its size, nf_conntrack_max, can be set for the"
            " whole machine only",
        ),
    ] = None
    ports: Annotated[
        Literal["preserve", "random"],
        Field(description="outside port of a connection: the inside port while it is free, or a random one"),
    ] = "preserve"
    pool_addresses: Annotated[
        int | None,
        Field(
            ge=1,
            le=POOL_SIZE,
            description="outside addresses, from 198.19.254.129 on; without the option the DUT's own, 198.19.0.1",
        ),
    ] = None

    def outside(self) -> list[str]:
        return [RIGHT.dut4] if self.pool_addresses is None else outside_pool(self.pool_addresses)

    def statement(self) -> str:
        flags = " fully-random" if self.ports == "random" else ""
        if self.pool_addresses is None:
            return f"masquerade{flags}"
        first, last = self.outside()[0], self.outside()[-1]
        return f"snat to {first if first == last else f'{first}-{last}'}{flags}"


class NatOptions(ConntrackOptions):
    """Also the cores."""

    cores: Cores = 1


def build(site: Site, options: NatOptions) -> dict[str, Any]:
    cores = site.dut_cores(options.cores)
    site.add_router(options.mtu, cores)
    for side, port in ((LEFT, "dl"), (RIGHT, "dr")):
        site.dut.ip(*side.ip4(port), *(side.ip6(port) if has_ipv6() else ()))
    start_nat(site.dut, options)
    maximum = table_size(site.record.lab, options.table)
    return {
        **tester(cores, routed_sides(4, ipv6=has_ipv6())),
        "stateful": stateful(options),
        "dut": {
            "name": "Linux NAT44",
            **kernel_router.of_this_kernel(cores),
            **about(options, maximum),
            "commands": {"reset": kernel_router.reset(site.dut, options.reset_s), **connection_commands(site.dut)},
        },
    }


def table_size(lab: str, wanted: int | None) -> int:
    """The kernel's maximum of connections. Raises LabError: it is below ``wanted``, or the kernel tracks none."""
    try:
        maximum = int(conntrack.MAXIMUM.read_text())
    except OSError as error:
        raise LabError(f"lab {lab}: this machine's kernel has no connection tracking: {error}") from None
    if wanted is not None and wanted > maximum:
        raise LabError(
            f"lab {lab}: option table={wanted}: this machine's kernel tracks {maximum} connections at most, and a"
            f" namespace cannot change that; outside of it: sysctl net.netfilter.nf_conntrack_max={wanted}"
        )
    return maximum


def start_nat(dut: Namespace, options: ConntrackOptions) -> None:
    """Load the rules, for which the kernel loads its connection tracking, and set the timeouts."""
    dut.nft(ruleset(options.statement()))
    dut.sysctl(timeouts(options))


def timeouts(options: ConntrackOptions) -> dict[str, int]:
    lives_s = {"udp_timeout": options.udp_timeout_s, "udp_timeout_stream": options.udp_stream_timeout_s}
    return {f"netfilter/nf_conntrack_{name}": life_s for name, life_s in lives_s.items()}


def ruleset(statement: str, right: str = DUT_PORTS[1]) -> str:
    """nftables ruleset that translates what leaves on the ``right`` by ``statement``. Frames from there without a
    connection are dropped and counted: they must neither be routed inside, nor back, nor answered."""
    dropped = f'iifname "{right}" ct state {{ new, invalid }} meta l4proto udp counter name "reverse_no_connection"'
    return f"""table ip nat {{
  counter reverse_no_connection {{ }}
  chain outward {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "{right}" {statement}
  }}
  chain inward {{
    type filter hook forward priority filter; policy accept;
    {dropped} drop
  }}
  chain local {{
    type filter hook input priority filter; policy accept;
    {dropped} drop
  }}
}}
"""


def stateful(options: ConntrackOptions) -> dict[str, Any]:
    """The section of the tester's configuration: a connection without a frame lives as long as the shorter timeout."""
    return {"timeout_s": min(options.udp_timeout_s, options.udp_stream_timeout_s)}


def about(options: ConntrackOptions, maximum: int) -> dict[str, Any]:
    """What the results say of the connection tracking."""
    properties = options.model_dump(
        exclude_none=True, include={"udp_timeout_s", "udp_stream_timeout_s", "ports", "pool_addresses"}
    )
    return {"outside": options.outside(), "conntrack_max": maximum, "rules": [options.statement()], **properties}


def connection_commands(dut: Namespace) -> dict[str, list[str]]:
    def ask(task: str) -> list[str]:
        return standalone(conntrack, task)

    lost = (
        'nft list counter ip nat reverse_no_connection | awk \'$1 == "packets" { print "reverse no_connection", $2 }\''
    )
    return {
        "clear_connections": dut.command(ask("clear")),
        "count_connections": dut.command(ask("count")),
        "losses": dut.command(["sh", "-ec", f'{lost}; "$@"', "sh", *ask("losses")]),
    }


LAB = Lab(
    name="nft-nat44",
    summary="the Linux kernel as a NAT44, by nftables and its connection tracking",
    options=NatOptions,
    programs={},
    build=build,
)
