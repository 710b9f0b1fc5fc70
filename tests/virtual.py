# SPDX-License-Identifier: Apache-2.0
"""Commands and programs on a simulated tester: what stands in the documentation can be run as it
stands there, in virtual time and without root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from documented import CONFIG
from dutperf import lab
from dutperf.lab import transparent
from dutperf.run import campaign, testbench
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from dutperf.tester.simulated_switch import AddressTable
from plans import DNS64, LOOPED_BACK

DUT = SimulatedDut(
    capacity_fps=40_000, queue_frames=100, delay_us=80, jitter_us=5, addresses=AddressTable(size=5000, ageing_s=5)
)

SIDES: dict[str, dict[str, Any]] = {
    "siit": {
        "left": CONFIG["left"],
        "right": {**CONFIG["right"], "ipv6": "2001:2:0:8000::2/64", "gateway6": "2001:2:0:8000::1"},
    },
    "ipv4": {
        "left": {"port": "af_packet:left", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"},
        "right": {"port": "af_packet:right", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
    },
    "dns64": DNS64,
    "loopback": LOOPED_BACK,
    "ipv6": {
        "left": {"port": "af_packet:left", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"},
        "right": {
            "port": "af_packet:right",
            "version": 6,
            "ipv6": "2001:2:0:8000::2/64",
            "gateway6": "2001:2:0:8000::1",
        },
    },
}


class Labs:
    """Stands in for all labs that there are, and knows which one was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.up = 0

    @contextmanager
    def bring_up(self, name: str, options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """A gateway, or a router where the lab is one; as with virtual cables, the media has no
        maximum rate."""
        lab._lab(name).parse(options)
        self.asked.append((name, dict(options)))
        self.up += 1
        stateful = {"clear_connections": "true"} if "nat" in name or name == "ds-lite" else {}
        filters = {"filters": "echo permit all"} if name.startswith("kernel") else {}
        sides = SIDES.get(name.rpartition("-")[2].replace("nat44", "ipv4"), SIDES["siit"])
        if (ports := int(options.get("ports", 2))) > 2:
            sides = transparent.tester_ports(transparent.cables(ports), 4)
        try:
            yield {
                **sides,
                "dut": {"name": name, "commands": {"reset": "true", **filters, **stateful}},
            }
        finally:
            self.up -= 1


def install(monkeypatch: pytest.MonkeyPatch) -> Labs:
    """From now on every lab and every configuration is measured by a simulated tester, and no DUT has to settle."""
    made = Labs()
    monkeypatch.setattr(campaign, "rest", lambda _: None)
    monkeypatch.setattr(lab, "bring_up", made.bring_up)
    monkeypatch.setattr(testbench, "tester_on", lambda *_: nullcontext(SimulatedTester(DUT, seed=5)))
    return made
