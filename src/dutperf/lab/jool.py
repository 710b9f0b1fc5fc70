# SPDX-License-Identifier: Apache-2.0
"""Jool, a NAT64 in the Linux kernel (RFC 7915, 7757, 6146), in an emulated machine: its modules are not the host
kernel's. Stateless (SIIT, with explicit address mappings) or stateful.

Debian's package is built once for Debian's kernel. Jool translates in the hook ``prerouting`` of netfilter. The
guest's kernel forwards native IPv6 (background traffic) without it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from dutperf.lab.addresses import (
    LEFT,
    NAT64_PREFIX,
    RIGHT,
    RIGHT_BEHIND_NAT64,
    RIGHT_SEEN_FROM_LEFT,
    outside_pool,
    siit_mappings,
    tester,
    translated_sides,
)
from dutperf.lab.definition import Lab
from dutperf.lab.guest import machine, packages
from dutperf.lab.guest.machine import PORTS, GuestOptions, Software
from dutperf.lab.site import Site

INSTANCE = "dutperf"
CONFIGURATION = "root/jool.json"


class StatefulOptions(GuestOptions):
    """Timeouts of the stateful translator."""

    udp_timeout_s: Annotated[
        int,
        Field(ge=120, le=86_400, description="life of a UDP connection without a frame, in s (Jool's default: 300)"),
    ] = 300


def stateless(site: Site, options: GuestOptions) -> dict[str, Any]:
    """Boot the machine with ``jool_siit``; returns the tester's configuration."""
    mappings = [{"ipv6 prefix": f"{ipv6}/128", "ipv4 prefix": f"{ipv4}/32"} for ipv4, ipv6 in siit_mappings()]
    return boot(site, options, "jool_siit", {"eamt": mappings}, translated_sides(LEFT.tester4, RIGHT_SEEN_FROM_LEFT))


def stateful(site: Site, options: StatefulOptions) -> dict[str, Any]:
    """Boot the machine with ``jool``; returns the tester's configuration."""
    (outside,), life_s = outside_pool(1), options.udp_timeout_s
    pool = [
        {"protocol": protocol, "prefix": f"{outside}/32", "port range": "1024-65535"}
        for protocol in ("TCP", "UDP", "ICMP")
    ]
    settings = {
        "global": {
            "pool6": NAT64_PREFIX,
            "udp-timeout": f"{life_s // 3600}:{life_s // 60 % 60:02}:{life_s % 60:02}",
        },
        "pool4": pool,
    }
    made = boot(site, options, "jool", settings, translated_sides(outside, RIGHT_BEHIND_NAT64))
    count = f"jool -i {INSTANCE} stats display --all | sed -n 's/^JSTAT_SESSIONS: //p'"
    clear = f"jool instance remove {INSTANCE} && jool file handle /{CONFIGURATION}"
    made["dut"]["commands"] |= {
        "count_connections": machine.ask(site, count),
        "clear_connections": machine.ask(site, clear),
    }
    return {**made, "stateful": {"timeout_s": options.udp_timeout_s}, "dut": made["dut"] | {"outside": [outside]}}


def boot(
    site: Site,
    options: GuestOptions,
    program: str,
    settings: dict[str, Any],
    sides: tuple[dict[str, object], dict[str, object]],
) -> dict[str, Any]:
    """Boot the machine with Jool's ``program`` and its module; returns the tester's configuration."""
    kernel = packages.kernel()
    jool = packages.jool(kernel)
    own = (*LEFT.ip6(PORTS[0]), *RIGHT.ip4(PORTS[1]), *RIGHT.ip6(PORTS[1]))
    text = {"instance": INSTANCE, "framework": "netfilter", **settings}
    software = Software(
        set_up=f"{machine.routing(own, options.mtu)}{program} file handle /{CONFIGURATION}\n",
        modules=[file for file in jool.modules if file.stem in ("jool_common", program)],
        programs=[jool.program(program)],
        places=jool.libraries,
        files={CONFIGURATION: json.dumps(text)},
    )
    machine.start(site, options.mtu, options, kernel, software)
    switch = f"{program} -i {INSTANCE} global update manually-enabled"
    return {
        **tester([site.dut_core], sides),
        "dut": {
            "name": f"Jool {'SIIT' if program == 'jool_siit' else 'NAT64'}",
            "version": jool.version,
            **machine.identity(options, kernel, site),
            "commands": {"reset": machine.reset(site, options.reset_s, stop=f"{switch} false", start=f"{switch} true")},
        },
    }


LABS = (
    Lab(
        name="jool-siit",
        summary="Jool, a stateless NAT64 (SIIT) in the kernel of an emulated machine",
        options=GuestOptions,
        programs=packages.PROGRAMS,
        build=stateless,
    ),
    Lab(
        name="jool-nat64",
        summary="Jool, a stateful NAT64 in the kernel of an emulated machine",
        options=StatefulOptions,
        programs=packages.PROGRAMS,
        build=stateful,
    ),
)
