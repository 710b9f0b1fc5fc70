# SPDX-License-Identifier: Apache-2.0
"""ICMP and ICMPv6 errors (RFC 792, RFC 4443): by them a DUT says why it did not forward frames."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dutperf.model.value import Count, Sparse

_UNREACHABLE, _TIME_EXCEEDED, _PARAMETER_PROBLEM = 3, 11, 12
_UNREACHABLE6, _TOO_BIG6, _TIME_EXCEEDED6, _PARAMETER_PROBLEM6 = 1, 2, 3, 4
_HOST_UNREACHABLE, _FRAGMENTATION_NEEDED, _ADDRESS_UNREACHABLE6, _REASSEMBLY = 1, 4, 3, 1

_NAMES = {
    ("icmp", _UNREACHABLE): "destination unreachable",
    ("icmp", 4): "source quench",
    ("icmp", _TIME_EXCEEDED): "time exceeded",
    ("icmp", _PARAMETER_PROBLEM): "parameter problem",
    ("icmpv6", _UNREACHABLE6): "destination unreachable",
    ("icmpv6", _TOO_BIG6): "packet too big",
    ("icmpv6", _TIME_EXCEEDED6): "time exceeded",
    ("icmpv6", _PARAMETER_PROBLEM6): "parameter problem",
}
_CODES = {
    ("icmp", _UNREACHABLE): {
        0: "net unreachable",
        _HOST_UNREACHABLE: "host unreachable",
        2: "protocol unreachable",
        3: "port unreachable",
        _FRAGMENTATION_NEEDED: "fragmentation needed",
        5: "source route failed",
        9: "net prohibited",
        10: "host prohibited",
        13: "communication prohibited",
    },
    ("icmp", _TIME_EXCEEDED): {0: "time to live exceeded", _REASSEMBLY: "reassembly time exceeded"},
    ("icmpv6", _UNREACHABLE6): {
        0: "no route",
        1: "communication prohibited",
        2: "beyond the scope of the source address",
        _ADDRESS_UNREACHABLE6: "address unreachable",
        4: "port unreachable",
        5: "source address failed a policy",
        6: "route rejected",
    },
    ("icmpv6", _TOO_BIG6): {0: "packet too big"},
    ("icmpv6", _TIME_EXCEEDED6): {0: "hop limit exceeded", _REASSEMBLY: "reassembly time exceeded"},
}
_OF_OVERLOAD = frozenset(
    {("icmp", _UNREACHABLE, _HOST_UNREACHABLE), ("icmp", 4, 0), ("icmpv6", _UNREACHABLE6, _ADDRESS_UNREACHABLE6)}
)
_OF_FILTERS = frozenset(
    {("icmp", _UNREACHABLE, code) for code in (2, 3, 9, 10, 13)}
    | {("icmpv6", _UNREACHABLE6, code) for code in (1, 4, 5, 6)}
)
_OF_HOSTS = frozenset({("icmp", _UNREACHABLE, 2), ("icmp", _UNREACHABLE, 3), ("icmpv6", _UNREACHABLE6, 4)})


class IcmpError(Sparse):
    """Errors that say the same."""

    sparse: ClassVar[Sequence[str]] = ("holder",)

    protocol: Literal["icmp", "icmpv6"]
    type: Annotated[int, Field(ge=0, le=255)]
    code: Annotated[int, Field(ge=0, le=255)]
    mtu: Annotated[int, Field(ge=1)] | None = None
    """That the packet did not fit; None: the message does not name any."""
    holder: IPv4Address | IPv6Address | None = None
    """Destination of the packet that the error is about, if it was sent from there: by the station that has the address
    (RFC 1122 section 3.2.2, RFC 4443 section 2.2). A router that refuses a packet names itself."""
    frames: Count
    """Messages."""

    @property
    def may_be_overload(self) -> bool:
        """Whether a DUT that is set up right may send it under load: to ask for less, or because it did not
        get its neighbour's answer."""
        return (self.protocol, self.type, self.code) in _OF_OVERLOAD

    @property
    def may_be_policer(self) -> bool:
        """Whether a filter may send it: one that refuses what exceeds a rate, or that refuses all."""
        return (self.protocol, self.type, self.code) in _OF_FILTERS

    @property
    def taken_by(self) -> IPv4Address | IPv6Address | None:
        """The address whose station took the packet for its own, and had no use for it; None: it was refused on its
        way."""
        return self.holder if (self.protocol, self.type, self.code) in _OF_HOSTS else None

    def words(self) -> str:
        """``600 ICMPv6 packet too big (MTU 1280)``."""
        kind = (self.protocol, self.type)
        name = _CODES.get(kind, {}).get(self.code)
        if name is None:
            name = f"{_NAMES.get(kind, f'type {self.type}')} (code {self.code})"
        mtu = "" if self.mtu is None else f" (MTU {self.mtu:,})"
        return f"{self.frames:,} {'ICMP' if self.protocol == 'icmp' else 'ICMPv6'} {name}{mtu}"
