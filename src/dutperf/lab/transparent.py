# SPDX-License-Identifier: Apache-2.0
"""What labs have in common whose DUT forwards by MAC address, or by nothing at all: the tester has addresses as
with a router, but no gateways. Its frames go to the MAC address of its other port."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dutperf.lab.addresses import LEFT, RIGHT, Side
from dutperf.lab.definition import LabOptions
from dutperf.lab.netns import CABLES

Version = Annotated[Literal[4, 6], BeforeValidator(lambda text: {"4": 4, "6": 6}.get(text, text))]
"""Options are text; pydantic does not convert text to literal numbers."""


class TransparentOptions(LabOptions):
    """The foreground's IP version."""

    version: Annotated[Version, Field(description="IP version of the foreground, 4 or 6")] = 4


Ports = Annotated[int, Field(ge=2, le=16, description="ports; from 3 on all send to each other (paths: mesh)")]
"""Option of switches."""


def tester_sides(left: str, right: str, version: int) -> dict[str, Any]:
    """The tester's configuration of its sides, whose ports are ``left`` and ``right``."""
    return {"left": _side(left, LEFT, version), "right": _side(right, RIGHT, version)}


def cables(ports: int) -> tuple[tuple[str, str], ...]:
    """The ends of the cables of a DUT with so many ports, the tester's first."""
    return CABLES if ports == 2 else tuple((f"p{number}", f"d{number}") for number in range(1, ports + 1))


def tester_ports(ends: Sequence[tuple[str, str]], version: int) -> dict[str, Any]:
    """The tester's configuration of ports at the ends of these cables, more than two, all of which send to each
    other. They are in one network, as hosts at a switch are."""
    return {
        "ports": {
            near: {
                "port": near,
                "version": version,
                "ipv4": f"{ip_address(LEFT.tester4) + number}/24",
                "ipv6": f"{ip_address(LEFT.tester6) + number}/64",
            }
            for number, (near, _) in enumerate(ends)
        },
        "paths": ["mesh"],
    }


def _side(port: str, side: Side, version: int) -> dict[str, Any]:
    return {"port": port, "version": version, "ipv4": f"{side.tester4}/24", "ipv6": f"{side.tester6}/64"}
