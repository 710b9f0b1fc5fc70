# SPDX-License-Identifier: Apache-2.0
"""What labs have in common whose DUT forwards by MAC address, or by nothing at all: the tester has addresses as
with a router, but no gateways. Its frames go to the MAC address of its other port."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dutperf.lab.addresses import LEFT, RIGHT, Side
from dutperf.lab.definition import LabOptions

Version = Annotated[Literal[4, 6], BeforeValidator(lambda text: {"4": 4, "6": 6}.get(text, text))]
"""Options are text; pydantic does not convert text to literal numbers."""


class TransparentOptions(LabOptions):
    """The foreground's IP version."""

    version: Annotated[Version, Field(description="IP version of the foreground, 4 or 6")] = 4


def tester_sides(left: str, right: str, version: int) -> dict[str, Any]:
    """The tester's configuration of its sides, whose ports are ``left`` and ``right``."""
    return {"left": _side(left, LEFT, version), "right": _side(right, RIGHT, version)}


def _side(port: str, side: Side, version: int) -> dict[str, Any]:
    return {"port": port, "version": version, "ipv4": f"{side.tester4}/24", "ipv6": f"{side.tester6}/64"}
