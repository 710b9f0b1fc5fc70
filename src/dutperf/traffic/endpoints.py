# SPDX-License-Identifier: Apache-2.0
"""Addresses of test frames, from one side of the DUT to the other."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal

from dutperf.frames import AddressBits, Endpoints, Varying
from dutperf.frames.values import By, number_of
from dutperf.model import FrameSpec, VaryingAddress
from dutperf.model.address_range import NETWORK_BYTE, network_bits
from dutperf.setup.configuration import Side

_PREFIX_BYTES = 12
"""Before an IPv4 address that is embedded in one of IPv6."""


def destination_of(receiver: Side, version: int) -> IPv4Address | IPv6Address | None:
    """Where frames of an IP version are sent to reach a side: its own address, through a DUT that translates
    it its ``seen_as`` address. None: it has none of that version."""
    if receiver.seen_as is not None and receiver.seen_as.version == version:
        return receiver.seen_as
    own = receiver.address(version)
    return None if own is None else own.ip


def endpoints(sender: Side, receiver: Side, networks: int, *, by: By = "frame") -> Endpoints:
    """Of frames to ``networks`` networks at the receiver. ``by``: what has an address of its own, where they vary."""
    fields = {"source": sender.varying_address, "destination": receiver.varying_address}
    return Endpoints(
        ipv4=_pair(sender.address(4), destination_of(receiver, 4)),
        ipv6=_pair(sender.address(6), destination_of(receiver, 6)),
        bits4=_bits(4, fields, networks, by),
        bits6=_bits(6, fields, networks, by),
    )


def native_endpoints(sender: Side, receiver: Side, networks: int, *, by: By = "frame") -> Endpoints:
    """The same of native IPv6 in the background, which nothing translates. Its hosts have one address each."""
    destination = receiver.address(6)
    return Endpoints(
        ipv6=_pair(sender.address(6), None if destination is None else destination.ip),
        bits6=_bits(6, {}, networks, by),
    )


def _pair(source: Any, destination: Any) -> tuple[Any, Any] | None:
    """None if a side has no such address."""
    return None if source is None or destination is None else (source.ip, destination)


def _bits(
    version: Literal[4, 6], fields: Mapping[str, VaryingAddress | None], networks: int, by: By
) -> dict[str, AddressBits]:
    bits = {
        name: AddressBits(8 * (one.offset4 if version == 4 else one.offset6), 16, number_of(one, by))
        for name, one in fields.items()
        if one is not None
    }
    if networks > 1:
        bits["destination"] = AddressBits(8 * NETWORK_BYTE[version], 8, Varying("random", count=networks, by=by))
    return bits


def of_connections(side: Side, address: IPv4Address | IPv6Address, networks: int) -> VaryingAddress | None:
    """The bits of ``address``, one of a side's, in which connections differ; None: in none. Behind a NAT64 the networks
    have their numbers in the IPv4 address that is embedded (RFC 6052 section 2.2)."""
    if networks == 1:
        return side.varying_address
    embeds = address.version == 6 and side.ipv4 is not None and address.packed.endswith(side.ipv4.ip.packed)
    at = NETWORK_BYTE[4] + _PREFIX_BYTES if embeds else NETWORK_BYTE[address.version]
    return network_bits(address, at, networks)


def foreground(sender: Side, receiver: Side, size: int, size_ipv4: int) -> FrameSpec:
    """From the sender's address to the receiver's, as the sender addresses it."""
    version, destination = sender.version, destination_of(receiver, sender.version)
    assert destination is not None, "the configuration is checked"
    return FrameSpec(
        version=version,
        size=size if version == 6 else size_ipv4,
        source=own_address(sender, version),
        destination=destination,
    )


def background(sender: Side, receiver: Side, size: int) -> FrameSpec:
    """Native IPv6, not translated."""
    return FrameSpec(version=6, size=size, source=own_address(sender, 6), destination=own_address(receiver, 6))


def own_address(side: Side, version: int) -> IPv4Address | IPv6Address:
    interface = side.address(version)
    assert interface is not None, "the configuration is checked"
    return interface.ip
