# SPDX-License-Identifier: Apache-2.0
"""A router with another kernel than the host's: Debian's, in an emulated machine."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dutperf.lab.addresses import LEFT, RIGHT, routed_sides
from dutperf.lab.definition import Lab
from dutperf.lab.guest import machine, packages
from dutperf.lab.guest.machine import PORTS, GuestOptions, Software
from dutperf.lab.site import Site
from dutperf.lab.transparent import Version


class KernelOptions(GuestOptions):
    """The foreground's IP version."""

    version: Annotated[Version, Field(description="IP version of the foreground, 4 or 6")] = 4


def build(site: Site, options: KernelOptions) -> dict[str, Any]:
    """Boot the machine; returns the tester's configuration."""
    kernel = packages.kernel()
    own = (line for side, port in zip((LEFT, RIGHT), PORTS, strict=True) for line in (*side.ip4(port), *side.ip6(port)))
    machine.start(site, options, kernel, Software(set_up=machine.routing(own, options.mtu)))
    left, right = routed_sides(options.version)
    return {
        "engine": {"dut_cores": [site.dut_core]},
        "left": {"port": "tl", **left},
        "right": {"port": "tr", **right},
        "dut": {
            "name": f"Linux IPv{options.version} router",
            "version": kernel.release,
            **machine.identity(options, kernel, site),
            "commands": {"reset": machine.reset(site, options.reset_s)},
        },
    }


LAB = Lab(
    name="kernel-vm",
    summary="Debian's kernel as a router in an emulated machine",
    options=KernelOptions,
    programs=packages.PROGRAMS,
    build=build,
)
