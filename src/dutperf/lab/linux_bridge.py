# SPDX-License-Identifier: Apache-2.0
"""The Linux kernel as a learning bridge (IEEE 802.1D) of two to sixteen ports, without spanning tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dutperf.lab import bridge_limit, kernel_router, outage
from dutperf.lab.definition import Cores, Lab, ResetOptions
from dutperf.lab.netns import TESTER_PORTS, Namespace, run, standalone
from dutperf.lab.site import Site
from dutperf.lab.transparent import Ports, TransparentOptions, cables, tester_ports, tester_sides

BRIDGE = "bridge"
_NETFILTER = Path("/proc/sys/net/bridge")


class BridgeOptions(TransparentOptions, ResetOptions):
    """Ports, size of its address table, how long addresses stay there, and the cores."""

    ports: Ports = 2
    addresses: Annotated[
        int,
        Field(ge=0, lt=2**32, description="addresses that it learns at most, of the tester's ports too; 0: no limit"),
    ] = 0

    ageing_s: Annotated[
        float, Field(ge=0.01, le=1_000_000, description="life of a learned address without a frame from it, in s")
    ] = 300
    cores: Cores = 1


def leave_frames_alone(dut: Namespace) -> None:
    """Where the kernel has br_netfilter, a bridge joins IP fragments and hands frames to the packet filters."""
    if _NETFILTER.exists():
        dut.sysctl({f"bridge/bridge-nf-call-{which}": 0 for which in ("iptables", "ip6tables", "arptables")})


def build(site: Site, options: BridgeOptions) -> dict[str, Any]:
    cores, ends = site.dut_cores(options.cores), cables(options.ports)
    site.add_switch(options.mtu, cores, ends)
    site.dut.ip(
        f"link add {BRIDGE} type bridge stp_state 0 mcast_snooping 0",
        f"link set {BRIDGE} mtu {options.mtu} up",
        *(f"link set {port} master {BRIDGE}" for _, port in ends),
    )
    site.dut.write({f"/sys/class/net/{BRIDGE}/bridge/ageing_time": round(100 * options.ageing_s)})
    leave_frames_alone(site.dut)
    if options.addresses:
        run(site.dut.command(standalone(bridge_limit, BRIDGE, str(options.addresses))))
    two = options.ports == 2
    return {
        "engine": {"dut_cores": list(cores)},
        **(tester_sides(*TESTER_PORTS, options.version) if two else tester_ports(ends, options.version)),
        "dut": {
            "name": "Linux bridge",
            **kernel_router.of_this_kernel(cores),
            "ageing_s": options.ageing_s,
            **({"addresses": options.addresses} if options.addresses else {}),
            "commands": {
                "reset": reset(site, options.reset_s),
                "clear_addresses": site.dut.command(["ip", "link", "set", BRIDGE, "type", "bridge", "fdb_flush"]),
            },
        },
    }


def reset(site: Site, reset_s: float) -> list[str]:
    """The command that stops the bridge for ``reset_s`` seconds. It forgets all addresses."""
    script = outage.script(f"ip link set {BRIDGE} down", reset_s, f"ip link set {BRIDGE} up")
    return site.dut.command(["sh", "-ec", script])


LAB = Lab(
    name="linux-bridge",
    summary="the Linux kernel as a learning bridge of two ports or more",
    options=BridgeOptions,
    programs={},
    build=build,
)
