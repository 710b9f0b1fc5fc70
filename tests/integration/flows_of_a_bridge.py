# SPDX-License-Identifier: Apache-2.0
"""What a kernel bridge counts of each flow that it forwards, by what it sees in the frames themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dutperf.model import DescribedFrame, DirectionCounts, FrameSpec, Stream, Trial

from .test_paths import in_dut

PORTS = "abc"
WAYS = [one + other for one in PORTS for other in PORTS if one != other]
ETHERNET, FCS, VLAN_TAG = 14, 4, 4
VLAN_TYPES = ("8100", "88a8")
TUNNELS = ("04", "29")
_NEXT_HEADER = {"4": 9, "6": 6}
"""Byte of the header, by the IP version."""
NOT_TEST_FRAMES = "icmpv6 type { 133, 134, 135, 136, 137 } accept\nether type arp accept"


@dataclass(frozen=True)
class Look:
    """By which the bridge tells a kind of frames from others: the kernel has taken a VLAN tag off."""

    length: int
    """Bytes from the IP header on, without FCS."""
    begins: str
    """The IP version and the traffic class, in hex."""
    next_header: str
    """Of IPv6; of IPv4 the protocol."""

    @classmethod
    def of(cls, frame: FrameSpec | DescribedFrame) -> Look:
        """That of frames as the trial describes them."""
        length = frame.size - FCS - ETHERNET
        if isinstance(frame, FrameSpec):
            return cls(length, *{4: ("4500", "11"), 6: ("6000", "11")}[frame.version])
        octets = [frame.bytes[at : at + 2] for at in range(0, len(frame.bytes), 2)]
        ip = ETHERNET
        while "".join(octets[ip - 2 : ip]) in VLAN_TYPES:
            ip, length = ip + VLAN_TAG, length - VLAN_TAG
        begins = "".join(octets[ip : ip + 2])
        return cls(length, begins, octets[ip + _NEXT_HEADER[begins[0]]])

    @property
    def has_udp(self) -> bool:
        """Not, for instance, in a tunnel."""
        return self.next_header not in TUNNELS

    @property
    def flow(self) -> str:
        """What its flows differ in, in nft's words."""
        ip = "ip" if self.begins[0] == "4" else "ip6"
        return f"{ip} saddr . {ip} daddr . th sport . th dport"

    @property
    def rule(self) -> str:
        """What it matches, in nft's words."""
        at = 8 * _NEXT_HEADER[self.begins[0]]
        return f"meta length {self.length} @nh,0,16 0x{self.begins} @nh,{at},8 0x{self.next_header}"


def frames_of(stream: Stream) -> tuple[FrameSpec | DescribedFrame, ...]:
    """Its kinds of frames."""
    return stream.frames or tuple(one for one in (stream.foreground, stream.background) if one is not None)


def received_of(stream: Stream, counts: DirectionCounts) -> list[tuple[Look, int]]:
    """How each kind of its frames looks, and how many of it the tester received."""
    if stream.frames:
        kinds = [one.received for one in counts.kinds] if counts.kinds else [counts.received]
    else:
        kinds = [counts.foreground_received, counts.background_received][: len(frames_of(stream))]
    return [(Look.of(frame), count) for frame, count in zip(frames_of(stream), kinds, strict=True)]


class CountingBridge:
    """The bridge of four_ports.sh, with rules that count."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._looks: list[Look] = []

    def begin(self, trials: Iterable[Trial]) -> None:
        """Counts from 0 again, by path, and by kind of the frames of these trials."""
        streams = [stream for trial in trials for stream in trial.all_streams().values()]
        self._looks = list(dict.fromkeys(Look.of(frame) for stream in streams for frame in frames_of(stream)))
        declared, rules = [], []
        for way in WAYS:
            between = f'iifname "d{way[0]}" oifname "d{way[1]}" meta pkttype other'
            declared.append(f"counter {way} {{ }}")
            rules.append(f"{between} counter name {way}")
            for number, look in enumerate(self._looks):
                name, these = f"{way}{number}", f"{between} {look.rule}"
                declared.append(f"counter {name} {{ }}")
                declared.append(f"set flows{name} {{ typeof {look.flow}; flags dynamic; size 65535; counter; }}")
                rules.append(f"{these} counter name {name} meta l4proto udp add @flows{name} {{ {look.flow} }}")
        chain = f"type filter hook forward priority 0; policy accept;\n{NOT_TEST_FRAMES}\n" + "\n".join(rules)
        table = "\n".join((*declared, f"chain f {{\n{chain}\n}}"))
        subprocess.run(
            ["ip", "netns", "exec", f"{self._name}-dut", "nft", "-f", "-"],
            input=f"table bridge counted\ndelete table bridge counted\ntable bridge counted {{\n{table}\n}}",
            text=True,
            check=True,
        )

    def counted(self) -> dict[str, int]:
        """Frames between each two ports, since it began."""
        return {way: frames for way, frames in self._counters().items() if way in WAYS and frames}

    def looked(self) -> dict[tuple[str, Look], int]:
        """The same by their look."""
        found = self._counters()
        return {key: found[name] for name, key in self._named() if found[name]}

    def flows(self) -> dict[tuple[str, Look], list[int]]:
        """The same of each flow, in ascending order: flows differ in addresses and UDP ports."""
        found = {one["set"]["name"]: one["set"].get("elem", ()) for one in self._listed("sets") if "set" in one}
        each = {key: found[f"flows{name}"] for name, key in self._named()}
        return {key: sorted(one["elem"]["counter"]["packets"] for one in flows) for key, flows in each.items() if flows}

    def _named(self) -> list[tuple[str, tuple[str, Look]]]:
        return [(f"{way}{number}", (way, look)) for way in WAYS for number, look in enumerate(self._looks)]

    def _counters(self) -> dict[str, int]:
        each = (one["counter"] for one in self._listed("counters") if "counter" in one)
        return {one["name"]: one["packets"] for one in each}

    def _listed(self, what: str) -> list[dict[str, dict[str, Any]]]:
        return in_dut(self._name, "nft", "-j", "list", what)["nftables"]
