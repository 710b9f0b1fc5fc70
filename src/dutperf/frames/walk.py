# SPDX-License-Identifier: Apache-2.0
"""Walks over the headers of a frame as the engine's receiver does (``engine/frame/dissect.cpp``): where they
end, and whether the receiver would look for a tag behind them. Tags stand where both agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dutperf.frames.headers import ETHERTYPES, ICMP, ICMPV6, PROTOCOLS, TUNNEL_PORTS

ETHERNET_SIZE, VLAN_SIZE = 14, 4
_MPLS_SIZE, _VXLAN_SIZE, _UDP_SIZE, _TCP_SIZE, _ICMP_SIZE = 4, 8, 8, 20, 8
_ESP_SIZE = 8
_VLAN = (0x8100, 0x88A8, 0x9100)
_MPLS_MULTICAST = 0x8848
_EXTENSIONS = {PROTOCOLS[name] for name in ("hop_by_hop", "routing", "fragment", "dest_options", "ah")}
_FRAGMENT, _AH = PROTOCOLS["fragment"], PROTOCOLS["ah"]
_BY_TYPE = {number: name for name, number in ETHERTYPES.items()} | {_MPLS_MULTICAST: "mpls"}
_BY_PROTOCOL = {number: name for name, number in PROTOCOLS.items()} | {ICMP: "icmp", ICMPV6: "icmpv6"}
_BY_PORT = {number: name for name, number in TUNNEL_PORTS.items()}
_ECHO = {"icmp": (0, 8), "icmpv6": (128, 129)}
_MOST_HEADERS = 32


class Step(NamedTuple):
    """What a header leads to."""

    size: int
    then: str | None = None


@dataclass
class Walk:
    """The walk over a frame without FCS; done when it is made."""

    data: bytes
    at: int = 0
    """End of the headers."""
    network_at: int = ETHERNET_SIZE
    version: Literal[4, 6] | None = None
    """Of the packet directly over Ethernet."""
    end: int = 0
    """Of the outermost IP packet; bytes behind it are padding."""
    no_tag: str | None = None
    """Why no receiver looks for a tag behind these headers; None: it does."""

    def __post_init__(self) -> None:
        self.end = self._inner_end = len(self.data)
        self._within_ip = False
        following: str | None = "eth"
        for _ in range(_MOST_HEADERS):
            reader = _READERS.get(following or "")
            if reader is None or self.no_tag is not None:
                break
            step = reader(self)
            if step is None or self.at + step.size > self._inner_end:
                self.at = self._inner_end  # the rest is no whole header
                break
            self.at += step.size
            following = step.then

    def _number(self, offset: int, size: int) -> int:
        return int.from_bytes(self.data[self.at + offset : self.at + offset + size], "big")

    def _has(self, size: int) -> bool:
        return self._inner_end - self.at >= size

    def _ethernet(self) -> Step | None:
        if not self._has(ETHERNET_SIZE):
            return None
        size, type_ = ETHERNET_SIZE, self._number(ETHERNET_SIZE - 2, 2)
        while type_ in _VLAN and self._has(size + VLAN_SIZE):
            size += VLAN_SIZE
            type_ = self._number(size - 2, 2)
        if self.at == 0:
            self.network_at = size
            self.version = 4 if type_ == ETHERTYPES["ipv4"] and self._has(size + 20) else None
            self.version = 6 if type_ == ETHERTYPES["ipv6"] and self._has(size + 40) else self.version
        return Step(size, _BY_TYPE.get(type_))

    def _mpls(self) -> Step | None:
        if not self._has(_MPLS_SIZE):
            return None
        return Step(_MPLS_SIZE, "ip" if self._number(2, 1) & 1 else "mpls")

    def _by_version(self) -> Step | None:
        following = {4: self._ipv4, 6: self._ipv6}.get(self._number(0, 1) >> 4, self._ethernet)
        return following()

    def _ends_at(self, size: int) -> None:
        self._inner_end = min(self._inner_end, self.at + size)
        if not self._within_ip:
            self.end, self._within_ip = self._inner_end, True

    def _ipv4(self) -> Step | None:
        size = 4 * (self._number(0, 1) & 0xF)
        if not self._has(20) or size < 20 or not self._has(size):
            return None
        self._ends_at(max(size, self._number(2, 2)))
        if self._number(6, 2) & 0x3FFF:
            self.no_tag = _IN_FRAGMENT
        return Step(size, _BY_PROTOCOL.get(self._number(9, 1)))

    def _ipv6(self) -> Step | None:
        if not self._has(40):
            return None
        self._ends_at(40 + self._number(4, 2))
        size, protocol = 40, self._number(6, 1)
        while protocol in _EXTENSIONS and self._has(size + 8):
            if protocol == _FRAGMENT and self._number(size + 2, 2) & 0xFFF9:
                self.no_tag = _IN_FRAGMENT
            length = 8 if protocol == _FRAGMENT else self._extension_size(protocol, self._number(size + 1, 1))
            protocol, size = self._number(size, 1), size + length
        return Step(size, None if protocol in _EXTENSIONS else _BY_PROTOCOL.get(protocol))

    @staticmethod
    def _extension_size(protocol: int, length: int) -> int:
        return 4 * (length + 2) if protocol == _AH else 8 * (length + 1)

    def _authentication(self) -> Step | None:
        if not self._has(8):
            return None
        return Step(self._extension_size(_AH, self._number(1, 1)), _BY_PROTOCOL.get(self._number(0, 1)))

    def _mobility(self) -> Step | None:
        if not self._has(8):
            return None
        return Step(8 * (self._number(1, 1) + 1))

    def _udp(self) -> Step:
        return Step(_UDP_SIZE, _BY_PORT.get(self._number(2, 2)))

    def _tcp(self) -> Step:
        return Step(max(_TCP_SIZE, 4 * (self._number(12, 1) >> 4) if self._has(_TCP_SIZE) else 0))

    def _icmp(self, name: str) -> Step:
        if self._has(1) and self._number(0, 1) not in _ECHO[name]:
            self.no_tag = "of ICMP only echo requests and replies can carry the tag"
        return Step(_ICMP_SIZE)

    def _gre(self) -> Step | None:
        if not self._has(4):
            return None
        flags = self._number(0, 2)
        return Step(
            4 + 4 * sum(bool(flags & part) for part in (0x8000, 0x2000, 0x1000)), _BY_TYPE.get(self._number(2, 2))
        )

    def _gtpu(self) -> Step | None:
        if not self._has(8):
            return None
        flags, message = self._number(0, 1), self._number(1, 1)
        size = 12 if flags & 7 else 8
        more = bool(flags & 4) and self._has(size) and self._number(size - 1, 1)
        while more and self._has(size + 4) and (units := self._number(size, 1)):
            size += 4 * units
            more = self._has(size) and self._number(size - 1, 1)
        return Step(size, "ip" if message == 255 and not more else None)


_IN_FRAGMENT = "the frame is a fragment: its tag could not be found"
_READERS: dict[str, Callable[[Walk], Step | None]] = {
    "eth": Walk._ethernet,
    "mpls": Walk._mpls,
    "ip": Walk._by_version,
    "ipv4": Walk._ipv4,
    "ipv6": Walk._ipv6,
    "ah": Walk._authentication,
    "esp": lambda _walk: Step(_ESP_SIZE),
    "mobility": Walk._mobility,
    "udp": Walk._udp,
    "tcp": Walk._tcp,
    "icmp": lambda walk: walk._icmp("icmp"),
    "icmpv6": lambda walk: walk._icmp("icmpv6"),
    "gre": Walk._gre,
    "vxlan": lambda _walk: Step(_VXLAN_SIZE, "eth"),
    "gtpu": Walk._gtpu,
}
