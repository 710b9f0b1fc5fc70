# SPDX-License-Identifier: Apache-2.0
"""Stateful NAT64 (RFC 6146) of two parts, as TAYGA's documentation proposes: TAYGA translates the left's IPv6
to private IPv4 addresses (RFC 7915), and the kernel translates these to the outside address on the right
(:mod:`dutperf.lab.nft_nat44`), whose connection tracking holds the state.

The private addresses, 198.18.0.0/16, are not on any cable. TAYGA gives each inside host one of them for
good; that is no connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dutperf.lab.addresses import LEFT, NAT64_PREFIX, RIGHT, RIGHT_BEHIND_NAT64, tester, translated_sides
from dutperf.lab.definition import Lab
from dutperf.lab.nft_nat44 import ConntrackOptions, about, connection_commands, start_nat, stateful, table_size
from dutperf.lab.site import Site
from dutperf.lab.tayga_siit import OWN_IPV6, TUN, head, identity, reset, start_tayga


def configuration(data_dir: Path) -> str:
    return "\n".join([*head(data_dir), f"prefix {NAT64_PREFIX}", f"dynamic-pool {LEFT.net4}", ""])


def build(site: Site, options: ConntrackOptions) -> dict[str, Any]:
    site.add_router(options.mtu)
    site.dut.ip(*LEFT.ip6("dl"), *RIGHT.ip4("dr"), *RIGHT.ip6("dr"))
    version = start_tayga(site, options.mtu, configuration(site.directory))
    site.dut.ip(
        f"route add {LEFT.net4} dev {TUN}",
        f"route add {NAT64_PREFIX} dev {TUN}",
        f"route add {OWN_IPV6}/128 dev {TUN}",
    )
    start_nat(site.dut, options)
    maximum = table_size(site.record.lab, options.table)
    return {
        **tester([site.dut_core], translated_sides(options.outside()[0], RIGHT_BEHIND_NAT64)),
        "stateful": stateful(options),
        "dut": {
            **identity(site, version),
            "name": "TAYGA and Linux NAT44",
            **about(options, maximum),
            "commands": {"reset": reset(site, options.reset_s), **connection_commands(site.dut)},
        },
    }


LAB = Lab(
    name="tayga-nat64",
    summary="a stateful NAT64: TAYGA, and the Linux kernel's NAT44 behind it",
    options=ConntrackOptions,
    programs={"tayga": "tayga"},
    build=build,
    needs_ipv6=True,
)
