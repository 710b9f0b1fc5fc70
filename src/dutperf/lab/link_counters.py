# SPDX-License-Identifier: Apache-2.0
"""What two DUTs in namespaces have sent on the link between them, by the kernel's own counters: they cost the DUTs
nothing, whereas a chain of nftables at each port takes some 15 % of a router's speed."""

from __future__ import annotations

import shlex

from dutperf.lab.netns import DUT_PORTS, Namespace

_SCRIPT = """
cd /sys/class/net/{port}/statistics
own=$(find /proc/net/dev_snmp6 -name {port} -o -name '{tunnels}' | xargs cat |
  awk '$1 == "Icmp6OutMsgs" {{ sum += $2 }} END {{ print sum + 0 }}')
echo {way} $(($(cat tx_packets) + $(cat tx_dropped) - own))
"""
"""Frames that a port has sent, and those for which the other end had no room, without Neighbour Discovery and other
ICMPv6 of its own."""


def passed(near: Namespace, far: Namespace, tunnels: str = "") -> str:
    """The command that prints what the left DUT has sent to the right one (forward), and that one (reverse).
    ``tunnels``: pattern of the names of interfaces whose packets go through this link."""
    ports = (("forward", near, DUT_PORTS[1]), ("reverse", far, DUT_PORTS[0]))
    return " && ".join(
        shlex.join(dut.command(["sh", "-ec", _SCRIPT.format(way=way, port=port, tunnels=tunnels)]))
        for way, dut, port in ports
    )
