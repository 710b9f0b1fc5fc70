# SPDX-License-Identifier: Apache-2.0
"""Two ordinary hosts on the cables of a lab, in the tester's place: they show what users of the DUT
get, with the kernel's own TCP.

They take over the tester's ports with their MAC and IP addresses, so nothing changes for the DUT. This
cannot be undone: the lab's tester has no ports any more. The hosts are removed with the lab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dutperf.lab.netns import TESTER_PORTS, Namespace, has_ipv6, prepare_host, run

MTU = 1500
"""In bytes, the usual MTU: TCP then sends frames of 1518 bytes incl. FCS."""


@dataclass(frozen=True)
class Hosts:
    """The namespaces of both hosts, and the right one's address as seen from the left."""

    left: Namespace
    right: Namespace
    right_address: str


def replace_tester(configuration: Mapping[str, Any]) -> Hosts:
    """Replace the tester of a lab with hosts; ``configuration`` is the lab's. No engine may use its ports any more.
    Raises LabError: the lab has no cables (``link=memif``), or an error of the kernel."""
    left, right = (replace_side(configuration, side) for side in ("left", "right"))
    return Hosts(left, right, _right_address(configuration["left"], configuration["right"]))


def replace_side(configuration: Mapping[str, Any], side: Literal["left", "right"]) -> Namespace:
    """Replace one side of a lab's tester with a host; returns its namespace."""
    tester = Namespace(configuration["engine"]["netns"])
    host, port = host_of(tester, side), TESTER_PORTS[("left", "right").index(side)]
    prepare_host(host)
    tester.ip(f"link set {port} netns {host.name}")
    _configure(host, port, configuration[side])
    return host


def host_of(tester: Namespace, side: str) -> Namespace:
    """The namespace of the host on one side of a tester, whether it exists or not."""
    return Namespace(f"{tester.name.removesuffix('tester')}{side}")


def _configure(host: Namespace, port: str, side: Mapping[str, Any]) -> None:
    """Give the host its port and addresses. Checksum and segmentation offloads are off: a virtual cable
    would pass wrong checksums and whole segments to the DUT."""
    run(host.command(["ethtool", "--features", port, "tx", "off", "tso", "off", "gso", "off"]))
    addresses = [f"addr add {side['ipv4']} dev {port}"] if "ipv4" in side else []
    gateways = ("gateway4", "gateway6") if has_ipv6() else ("gateway4",)
    addresses += [f"addr add {side['ipv6']} dev {port} nodad"] if "ipv6" in side and has_ipv6() else []
    host.ip("link set lo up", f"link set {port} mtu {MTU}", *addresses, f"link set {port} up")
    host.ip(*(f"route add default via {side[key]} dev {port}" for key in gateways if key in side))


def _right_address(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    address: str = right["seen_as"] if left["version"] != right["version"] else right[f"ipv{right['version']}"]
    return address.partition("/")[0]
