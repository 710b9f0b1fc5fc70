# SPDX-License-Identifier: Apache-2.0
"""Destination addresses of test frames that arrived at other addresses than they should have (RFC 2544 section 10)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Annotated

from pydantic import Field

from dutperf.model.value import Value
from dutperf.model.vlan_tags import others_in_words


class OtherDestination(Value):
    """Frames that arrived with the same destination address."""

    address: IPv4Address | IPv6Address
    """Of the innermost IP packet."""
    frames: Annotated[int, Field(ge=1)]


class OtherDestinations(Value):
    """A direction's test frames that arrived with a destination address that is neither the one that they were sent to
    nor one for which the receiving port answers. They count as received."""

    other: Annotated[int, Field(ge=1)]
    seen: tuple[OtherDestination, ...]
    """The first few of these addresses."""

    def words(self) -> str:
        """``500 to 198.19.0.77, 3 to others``."""
        return others_in_words([(one.frames, f"to {one.address}") for one in self.seen], self.other, "to others")
