# SPDX-License-Identifier: Apache-2.0
"""Addresses of test frames, from one side of the DUT to the other."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any

from dutperf.model import FrameSpec
from dutperf.setup.configuration import Side


def destination_of(receiver: Side, version: int) -> IPv4Address | IPv6Address | None:
    """Where frames of an IP version are sent to reach a side: its own address, through a DUT that translates
    it its ``seen_as`` address. None: it has none of that version."""
    if receiver.seen_as is not None and receiver.seen_as.version == version:
        return receiver.seen_as
    own = receiver.address(version)
    return None if own is None else own.ip


def endpoints(sender: Side, receiver: Side, version: int) -> tuple[Any, Any] | None:
    """Source and destination of frames of an IP version. None if a side has no such address."""
    source, destination = sender.address(version), destination_of(receiver, version)
    return None if source is None or destination is None else (source.ip, destination)


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
