# SPDX-License-Identifier: Apache-2.0
"""No DUT: one cable connects the tester's two ports, to measure the tester itself (its self-test)."""

from __future__ import annotations

import platform
from typing import Any

from dutperf.lab.addresses import RIGHT
from dutperf.lab.definition import Lab
from dutperf.lab.netns import TESTER_PORTS
from dutperf.lab.site import Site
from dutperf.lab.transparent import TransparentOptions, tester_sides


def build(site: Site, options: TransparentOptions) -> dict[str, Any]:
    site.add_cable(options.mtu)
    release = platform.release()
    return {
        "engine": {},
        **tester_sides(*TESTER_PORTS, options.version),
        "dns64": {"server": RIGHT.tester6},
        "dut": {"name": "none (loopback)", "version": release, "kernel": release},
    }


LAB = Lab(
    name="loopback",
    summary="no DUT: the tester's two ports connected by one cable, to find the tester's own limit",
    options=TransparentOptions,
    programs={},
    build=build,
)
