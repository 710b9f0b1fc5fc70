# SPDX-License-Identifier: Apache-2.0
"""The Linux kernel as a learning bridge of two ports (IEEE 802.1D), without spanning tree."""

from __future__ import annotations

import platform
from typing import Annotated, Any

from pydantic import Field

from dutperf.lab.definition import Cores, Lab, ResetOptions
from dutperf.lab.netns import DUT_PORTS, TESTER_PORTS
from dutperf.lab.site import Site
from dutperf.lab.transparent import TransparentOptions, tester_sides

BRIDGE = "bridge"


class BridgeOptions(TransparentOptions, ResetOptions):
    """How long addresses stay in its table, and the cores."""

    ageing_s: Annotated[
        float, Field(ge=0.01, le=1_000_000, description="life of a learned address without a frame from it, in s")
    ] = 300
    cores: Cores = 1


def build(site: Site, options: BridgeOptions) -> dict[str, Any]:
    """The DUT as a bridge, and the tester's configuration."""
    cores = site.dut_cores(options.cores)
    site.add_switch(options.mtu, cores)
    site.dut.ip(
        f"link add {BRIDGE} type bridge stp_state 0 mcast_snooping 0",
        f"link set {BRIDGE} mtu {options.mtu} up",
        *(f"link set {port} master {BRIDGE}" for port in DUT_PORTS),
    )
    site.dut.write({f"/sys/class/net/{BRIDGE}/bridge/ageing_time": round(100 * options.ageing_s)})
    release = platform.release()
    return {
        "engine": {"dut_cores": list(cores)},
        **tester_sides(*TESTER_PORTS, options.version),
        "dut": {
            "name": "Linux bridge",
            "version": release,
            "kernel": release,
            "cores": list(cores),
            "ageing_s": options.ageing_s,
            "commands": {"reset": reset(site, options.reset_s)},
        },
    }


def reset(site: Site, reset_s: float) -> list[str]:
    """The command that stops the bridge for ``reset_s`` seconds. It forgets all addresses."""
    script = f"ip link set {BRIDGE} down; sleep {reset_s:g}; ip link set {BRIDGE} up"
    return site.dut.command(["sh", "-ec", script])


LAB = Lab(
    name="linux-bridge",
    summary="the Linux kernel as a learning bridge of two ports",
    options=BridgeOptions,
    programs={},
    build=build,
)
