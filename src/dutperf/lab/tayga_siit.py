# SPDX-License-Identifier: Apache-2.0
"""TAYGA, a stateless NAT64 gateway in user space (RFC 7915 translation, RFC 7757 explicit address
mapping), between an IPv6 and an IPv4 side.

One process, one TUN interface, one core. Its mappings are
:func:`dutperf.lab.addresses.siit_mappings`. The
DUT's kernel forwards native IPv6 between the sides (background traffic) without TAYGA.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from dutperf.lab import outage
from dutperf.lab.addresses import (
    LEFT,
    RIGHT,
    RIGHT_SEEN_FROM_LEFT,
    RIGHT_SEEN_FROM_LEFT_NET,
    siit_mappings,
    tester,
    translated_sides,
)
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.netns import package_version, run
from dutperf.lab.outage import Daemons
from dutperf.lab.site import Site, await_start

TUN = "nat64"
OWN_IPV4, OWN_IPV6 = "198.18.255.254", "2001:2:0:2000::1"
"""TAYGA's own addresses, the sources of its ICMP errors; no test frame has them."""
STARTED = "TAYGA's IPv6 address"
"""TAYGA's message when it has its TUN interface and its addresses."""


def configuration(data_dir: Path) -> str:
    return "\n".join([*head(data_dir), *(f"map {ipv4} {ipv6}" for ipv4, ipv6 in siit_mappings()), ""])


def head(data_dir: Path, own_ipv4: str = OWN_IPV4, own_ipv6: str = OWN_IPV6) -> list[str]:
    """The directives that TAYGA needs in any case."""
    return [f"tun-device {TUN}", f"ipv4-addr {own_ipv4}", f"ipv6-addr {own_ipv6}", f"data-dir {data_dir}"]


def build(site: Site, options: ResetOptions) -> dict[str, Any]:
    site.add_router(options.mtu)
    site.dut.ip(*LEFT.ip6("dl"), *RIGHT.ip4("dr"), *RIGHT.ip6("dr"))
    version = start_tayga(site, options.mtu)
    site.dut.ip(
        f"route add {LEFT.net4} dev {TUN}",
        f"route add {RIGHT_SEEN_FROM_LEFT_NET} dev {TUN}",
        f"route add {OWN_IPV6}/128 dev {TUN}",
    )
    return {
        **tester([site.dut_core], translated_sides(LEFT.tester4, RIGHT_SEEN_FROM_LEFT)),
        "dut": {**identity(site, version), "commands": {"reset": reset(site, options.reset_s)}},
    }


def identity(site: Site, version: str) -> dict[str, Any]:
    return {
        "name": "TAYGA",
        "version": version,
        "kernel": platform.release(),
        "package": package_version("tayga"),
        "cores": [site.dut_core],
    }


def reset(site: Site, reset_s: float) -> list[str]:
    """The command that kills TAYGA and restarts it ``reset_s`` seconds later."""
    argv = ["stdbuf", "--output=L", *command_line(site)]
    has_tun = f'[ "$(cat /sys/class/net/{TUN}/carrier)" = 1 ]'
    return outage.restart(site.dut, Daemons("tayga", argv, [log(site)], [site.dut_core], has_tun), reset_s)


def command_line(site: Site) -> list[str]:
    """TAYGA's command line. -d only moves its messages from syslog to its output; there are none for
    translated packets."""
    return ["tayga", "--config", str(configuration_file(site)), "-d"]


def configuration_file(site: Site) -> Path:
    return site.directory / "tayga.conf"


def log(site: Site) -> Path:
    return site.directory / "tayga.log"


def start_tayga(site: Site, mtu: int, text: str | None = None) -> str:
    """Start TAYGA on a TUN interface with ``mtu``, which it reads once at its start; returns its version when it
    translates. ``text`` is its configuration; None: that of :func:`configuration`. Raises LabError: it did not
    start."""
    file = configuration_file(site)
    file.write_text(configuration(site.directory) if text is None else text)
    run(site.dut.command(["tayga", "--config", str(file), "--mktun"]))
    site.dut.ip(f"link set {TUN} mtu {mtu} up")
    await_start(
        site.start_daemon(command_line(site), log(site)),
        log(site),
        f"lab {site.record.lab}: TAYGA",
        lambda: STARTED in output(site),
    )
    return output(site).split("starting TAYGA ", 1)[-1].split()[0]


def output(site: Site) -> str:
    """TAYGA's messages since its start."""
    return log(site).read_text(errors="replace")


LAB = Lab(
    name="tayga-siit",
    summary="TAYGA, a stateless NAT64 gateway (SIIT): IPv6 on the left, IPv4 on the right",
    options=ResetOptions,
    programs={"tayga": "tayga"},
    build=build,
    needs_ipv6=True,
)
