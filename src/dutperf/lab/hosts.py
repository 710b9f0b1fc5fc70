# SPDX-License-Identifier: Apache-2.0
"""Two ordinary hosts on the cables of a lab, in the tester's place: what users of its DUT have of
it, by the kernel's own TCP.

They take the tester's ports, with their MAC and IP addresses, so a DUT that has been measured
notices nothing. There is no way back: the lab's tester has no ports any more. The hosts go when the
lab is taken down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dutperf.lab.netns import TESTER_PORTS, Namespace, prepare_host, run

MTU = 1500
"""In bytes, as every interface has it: what TCP makes of it are frames of 1518 bytes incl. FCS."""


@dataclass(frozen=True)
class Hosts:
    """Where programs of either side run, and by which address the left one finds the right one."""

    left: Namespace
    right: Namespace
    right_address: str


def replace_tester(configuration: Mapping[str, Any]) -> Hosts:
    """Put hosts in the place of the tester of a lab with cables; ``configuration`` is what the lab
    gave. No engine may use its ports any more.

    Raises:
        LabError: the lab has no cables (``link=memif``), or the kernel refuses something.
    """
    tester = Namespace(configuration["engine"]["netns"])
    left, right = host_of(tester, "left"), host_of(tester, "right")
    for host, port, side in zip((left, right), TESTER_PORTS, ("left", "right"), strict=True):
        prepare_host(host)
        tester.ip(f"link set {port} netns {host.name}")
        _settle_in(host, port, configuration[side])
    return Hosts(left, right, _right_address(configuration["left"], configuration["right"]))


def host_of(tester: Namespace, side: str) -> Namespace:
    """The namespace of the host that takes a side of that tester's place, whether it exists or not."""
    return Namespace(f"{tester.name.removesuffix('tester')}{side}")


def _settle_in(host: Namespace, port: str, side: Mapping[str, Any]) -> None:
    """A checksum that the sender leaves to its card would be wrong for a DUT that reads packets
    from a cable without one; so would be segments."""
    run(host.command(["ethtool", "--features", port, "tx", "off", "tso", "off", "gso", "off"]))
    addresses = [f"addr add {side['ipv4']} dev {port}"] if "ipv4" in side else []
    addresses += [f"addr add {side['ipv6']} dev {port} nodad"] if "ipv6" in side else []
    host.ip("link set lo up", f"link set {port} mtu {MTU}", *addresses, f"link set {port} up")
    host.ip(*(f"route add default via {side[key]} dev {port}" for key in ("gateway4", "gateway6") if key in side))


def _right_address(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    address: str = right["seen_as"] if left["version"] != right["version"] else right[f"ipv{right['version']}"]
    return address.partition("/")[0]
