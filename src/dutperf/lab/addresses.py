# SPDX-License-Identifier: Apache-2.0
"""The addresses that labs use, all from the ranges reserved for benchmarking: 198.18.0.0/15 (RFC
2544 C.2.2) and 2001:2::/48 (RFC 5180 8, RFC 8219 14).

Each side is one IPv4 /16 and one IPv6 /56. Destination network R (0-255) is in bits 16-23 of the IPv4
and 56-63 of the IPv6 address. The tester is ``.2`` and ``::2``, the DUT ``.1`` and
``::1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NETWORKS = 256
"""Destination networks on each side (RFC 2544 section 12)."""


@dataclass(frozen=True)
class Side:
    """Addresses of the tester and the DUT on one of the two cables."""

    tester4: str
    dut4: str
    net4: str
    tester6: str
    dut6: str
    net6: str

    @property
    def ipv4(self) -> dict[str, str]:
        return {"ipv4": f"{self.tester4}/24", "gateway4": self.dut4}

    @property
    def ipv6(self) -> dict[str, str]:
        return {"ipv6": f"{self.tester6}/64", "gateway6": self.dut6}

    def ip4(self, port: str) -> tuple[str, str]:
        """``ip`` commands that give the DUT's ``port`` its IPv4 address and the route to this side's
        networks."""
        return f"addr add {self.dut4}/24 dev {port}", f"route add {self.net4} via {self.tester4} dev {port}"

    def ip6(self, port: str) -> tuple[str, str]:
        return f"addr add {self.dut6}/64 dev {port} nodad", f"route add {self.net6} via {self.tester6} dev {port}"


LEFT = Side("198.18.0.2", "198.18.0.1", "198.18.0.0/16", "2001:2::2", "2001:2::1", "2001:2::/56")
RIGHT = Side("198.19.0.2", "198.19.0.1", "198.19.0.0/16", "2001:2:0:8000::2", "2001:2:0:8000::1", "2001:2:0:8000::/56")

RIGHT_SEEN_FROM_LEFT = "2001:2:0:1000::2"
RIGHT_SEEN_FROM_LEFT_NET = "2001:2:0:1000::/56"


NAT64_PREFIX = "2001:2:0:6464::/96"
"""Prefix of stateful NAT64 (RFC 6052): how the left addresses IPv4 hosts on the right."""
RIGHT_BEHIND_NAT64 = "2001:2:0:6464::c613:2"
"""The tester's right side, 198.19.0.2, as the left addresses it through a NAT64."""
LEFT_BEHIND_CLAT = "2001:2:0:3000::/112"
"""The left's 198.18.0.0/16 as a PLAT sees it: 198.18.R.2 is 2001:2:0:3000::RR02."""
POOL_SIZE = 64


def outside_pool(size: int) -> list[str]:
    """Outside addresses of a NAT that are not the DUT's own: 198.19.254.129 and the following, on the right.

    The tester sends frames to them to the DUT, as all frames.
    """
    return [f"198.19.254.{129 + number}" for number in range(size)]


def siit_mappings() -> list[tuple[str, str]]:
    """IPv4 and IPv6 address of each host in labs with a translator, for each destination network R
    (0-255, RR in hexadecimal)::

    left    2001:2:0:RR::2     appears on the right as   198.18.R.2
    right   198.19.R.2         appears on the left as    2001:2:0:10RR::2
    """
    left = [(f"198.18.{network}.2", f"2001:2:0:{network:x}::2") for network in range(NETWORKS)]
    right = [(f"198.19.{network}.2", f"2001:2:0:10{network:02x}::2") for network in range(NETWORKS)]
    return left + right


def tester(cores: Iterable[int], sides: tuple[Mapping[str, object], Mapping[str, object]]) -> dict[str, Any]:
    """The tester's configuration beside DUTs on these cores, without what it says of the DUTs."""
    left, right = sides
    return {"engine": {"dut_cores": sorted(cores)}, "left": {"port": "tl", **left}, "right": {"port": "tr", **right}}


def routed_sides(version: int, *, ipv6: bool = True) -> tuple[dict[str, object], dict[str, object]]:
    """The tester's configuration of its sides, without the ports, beside a router, with ``version`` in the
    foreground; without ``ipv6`` the router has no addresses of it."""
    left, right = ({"version": version, **side.ipv4, **(side.ipv6 if ipv6 else {})} for side in (LEFT, RIGHT))
    return left, right


def translated_sides(left_seen_as: str, right_seen_as: str) -> tuple[dict[str, object], dict[str, object]]:
    """The tester's configuration of its sides, without the ports, beside a translator: IPv6 on the left,
    IPv4 on the right, and IPv6 on both for the background."""
    return (
        {"version": 6, **LEFT.ipv6, "seen_as": left_seen_as},
        {"version": 4, **RIGHT.ipv4, **RIGHT.ipv6, "seen_as": right_seen_as},
    )
