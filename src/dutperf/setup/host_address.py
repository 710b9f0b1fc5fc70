# SPDX-License-Identifier: Apache-2.0
"""Which addresses a host on a link, or behind a router, can have. Frames to or from another one are lost
wherever they go, and no DUT is to blame."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

Address = IPv4Address | IPv6Address

_THIS_NETWORK = IPv4Network("0.0.0.0/8")


def fault(address: Address) -> str | None:
    """Why no host has the address (RFC 1122 3.2.1.3, RFC 4291 2.5); None: one may."""
    if address.is_unspecified or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "means no host"
    if address.is_loopback:
        return "is a loopback address, which never leaves a host"
    if address.is_multicast:
        return "is a multicast address"
    if address == IPv4Address("255.255.255.255"):
        return "is the broadcast address"
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return "is an IPv4-mapped address, which is not for frames"
    return None


def fault_in(address: Address, network: IPv4Network | IPv6Network) -> str | None:
    """Why no host of ``network`` has the address; None: one may. Addresses outside it are not judged by it.

    The first address of an IPv6 network is every router's there (RFC 4291 2.6.1), except on a link between
    two routers (RFC 6164)."""
    if (found := fault(address)) is not None:
        return found
    if network.max_prefixlen - network.prefixlen < 2 or address.version != network.version:
        return None
    if address == network.network_address:
        whose = "is the address of the network" if network.version == 4 else "is the address of all routers in"
        return f"{whose} {network}"
    if network.version == 4 and address == network.broadcast_address:
        return f"is the broadcast address of {network}"
    return None


def fault_of(own: IPv4Interface | IPv6Interface) -> str | None:
    """The same of an interface's address in its network."""
    return fault_in(own.ip, own.network)
