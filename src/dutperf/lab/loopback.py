# SPDX-License-Identifier: Apache-2.0
"""No DUT: one cable connects the tester's two ports, to measure the tester itself (its self-test)."""

from __future__ import annotations

import platform
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dutperf.lab.addresses import LEFT, RIGHT, Side
from dutperf.lab.definition import Lab, LabOptions
from dutperf.lab.site import Site

Version = Annotated[Literal[4, 6], BeforeValidator(lambda text: {"4": 4, "6": 6}.get(text, text))]
"""Options are text; pydantic does not convert text to literal numbers."""


class LoopbackOptions(LabOptions):
    """The foreground's IP version."""

    version: Annotated[Version, Field(description="IP version of the foreground, 4 or 6")] = 4


def build(site: Site, options: LoopbackOptions) -> dict[str, Any]:
    """The cable, and the tester's configuration: addresses as with a router, but no gateways."""
    site.add_cable(options.mtu)
    release = platform.release()
    return {
        "engine": {},
        "left": end_of_cable("tl", LEFT, options.version),
        "right": end_of_cable("tr", RIGHT, options.version),
        "dut": {"name": "none (loopback)", "version": release, "kernel": release},
    }


def end_of_cable(port: str, side: Side, version: int) -> dict[str, Any]:
    """Configuration of one port, without a gateway: the other port is the neighbour."""
    return {"port": port, "version": version, "ipv4": f"{side.tester4}/24", "ipv6": f"{side.tester6}/64"}


LAB = Lab(
    name="loopback",
    summary="no DUT: the tester's two ports connected by one cable, to find the tester's own limit",
    options=LoopbackOptions,
    programs={},
    build=build,
)
