# SPDX-License-Identifier: Apache-2.0
"""The tester's ends of a lab, played by packet sockets and scapy: an independent judge of what a
DUT forwards."""

from __future__ import annotations

import ctypes
import json
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scapy.all import ARP, UDP, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, IPv6, Packet

ETH_P_ALL = 3
PACKET_OUTGOING = 4
CLONE_NEWNET = 0x40000000


def in_namespace(name: str, act: Callable[[], Any]) -> Any:
    """What ``act`` returns when it runs inside a network namespace: in a thread of its own, which
    alone moves there."""
    outcome: list[Any] = []

    def inside() -> None:
        with Path("/run/netns", name).open("rb") as file:
            assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) == 0
        outcome.append(act())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    return outcome[0]


def mac_of(namespace: str, port: str) -> str:
    """The MAC address of an interface."""
    shown = subprocess.run(
        ["ip", "-n", namespace, "-json", "link", "show", port], capture_output=True, text=True, check=True
    )
    return str(json.loads(shown.stdout)[0]["address"])


@dataclass
class Station:
    """The tester's end on one side: a packet socket that answers ARP and NDP for the side's
    addresses."""

    socket: socket.socket
    mac: str
    dut_mac: str
    addresses: tuple[str, ...]

    def send(self, packet: Packet) -> None:
        """Send to the DUT."""
        self.socket.send(bytes(Ether(src=self.mac, dst=self.dut_mac) / packet))

    def receive(self) -> Packet | None:
        """The next frame with UDP in it, after answering what asks for the station's MAC address;
        None for all else."""
        data, address = self.socket.recvfrom(65535)
        if address[2] == PACKET_OUTGOING:
            return None
        frame = Ether(data)
        if (answer := self._answer(frame)) is not None:
            self.socket.send(bytes(answer))
        return frame if UDP in frame and frame[UDP].dport != 5353 else None

    def _answer(self, frame: Packet) -> Packet | None:
        if ARP in frame and frame[ARP].op == 1 and frame[ARP].pdst in self.addresses:
            asked = frame[ARP]
            return Ether(src=self.mac, dst=frame.src) / ARP(
                op=2, hwsrc=self.mac, psrc=asked.pdst, hwdst=asked.hwsrc, pdst=asked.psrc
            )
        if ICMPv6ND_NS in frame and frame[ICMPv6ND_NS].tgt in self.addresses:
            target = frame[ICMPv6ND_NS].tgt
            advertisement = ICMPv6ND_NA(tgt=target, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=self.mac)
            return Ether(src=self.mac, dst=frame.src) / IPv6(src=target, dst=frame[IPv6].src, hlim=255) / advertisement
        return None


@dataclass
class Stations:
    """Both sides of a lab."""

    left: Station
    right: Station

    def exchange(self, sender: str, packets: list[Packet], expected: int, wait_s: float = 5.0) -> list[Packet]:
        """Send from one side; returns what the other received by the time that ``expected`` UDP
        frames are in or ``wait_s`` seconds are over."""
        source, sink = (self.left, self.right) if sender == "left" else (self.right, self.left)
        received: list[Packet] = []
        for packet in packets:
            source.send(packet)
            self._listen(sink, received, until=0.0, enough=len(packets) + 1)
        self._listen(sink, received, until=time.monotonic() + wait_s, enough=expected)
        return received

    def _listen(self, sink: Station, received: list[Packet], until: float, enough: int) -> None:
        stations = {station.socket: station for station in (self.left, self.right)}
        while len(received) < enough:
            ready = select.select(list(stations), [], [], max(0.0, until - time.monotonic()))[0]
            if not ready:
                return
            for station in (stations[one] for one in ready):
                packet = station.receive()
                if packet is not None and station is sink:
                    received.append(packet)


@contextmanager
def stations_of(configuration: dict[str, Any], dut_macs: tuple[str, str] | None = None) -> Iterator[Stations]:
    """Both stations for a lab's configuration; they send to the DUT, or to each other where it is no
    gateway. ``dut_macs``: the DUT's, left and right, where its ports are not the cables' ends."""
    tester = configuration["engine"]["netns"]
    dut = tester.removesuffix("tester") + "dut"
    gateways = any(key.startswith("gateway") for side in ("left", "right") for key in configuration[side])
    second = f"{dut}2" if Path(f"/run/netns/{dut}2").exists() else dut  # of two in a row
    others = ((dut, "dl"), (second, "dr")) if gateways else ((tester, "tr"), (tester, "tl"))
    left_to, right_to = dut_macs or (mac_of(*others[0]), mac_of(*others[1]))
    with ExitStack() as stack:

        def station(side: str, port: str, to: str) -> Station:
            packet_socket = stack.enter_context(
                in_namespace(tester, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
            )
            packet_socket.bind((port, ETH_P_ALL))
            addresses = tuple(
                configuration[side][key].partition("/")[0] for key in ("ipv4", "ipv6") if key in configuration[side]
            )
            addresses += tuple(configuration[side].get("answers_for", ()))
            return Station(packet_socket, mac_of(tester, port), to, addresses)

        yield Stations(station("left", "tl", left_to), station("right", "tr", right_to))
