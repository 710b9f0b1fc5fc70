# SPDX-License-Identifier: Apache-2.0
"""Labs that keep connections, and a NAT made by hand: what they do to UDP in both directions, byte by byte,
and that the package counts and clears connections as the DUT itself does. Root only."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, UDP, Ether, IPv6, Packet, Raw

from dutperf import dut, lab
from dutperf.dut.device import Device
from dutperf.lab.conntrack import STATISTICS, statistics
from dutperf.lab.refdut import ConnectionsTruth, RefDut
from dutperf.model import LEFT_AND_RIGHT
from dutperf.setup import configuration
from integration.test_by_hand import made

from .stations import Stations, in_namespace, mac_of, stations_of
from .test_labs import wait_for

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

KERNEL_NATS = ["nft-nat44", "tayga-nat64"]
REFERENCE_NATS = ["refdut-nat44", "refdut-nat64"]
LEFT4, RIGHT4, LEFT6, RIGHT6 = "198.18.0.2", "198.19.0.2", "2001:2::2", "2001:2:0:6464::c613:2"
DATA = bytes(range(20))
PORT = 7
"""Of the host on the right."""


def udp(source: str, destination: str, sport: int, dport: int) -> Packet:
    """A UDP packet of the addresses' IP version."""
    header = IPv6(src=source, dst=destination) if ":" in source else IP(src=source, dst=destination)
    return header / UDP(sport=sport, dport=dport) / Raw(DATA)


def flow_of(frame: Packet) -> tuple[str, int, str, int]:
    """Addresses and ports; lengths and checksums are right, and nothing happened to the data."""
    packet = frame[IPv6 if IPv6 in frame else IP]
    assert bytes(frame[UDP].payload)[: len(DATA)] == DATA
    again = packet.copy()
    for layer, computed in ((again, ("chksum", "len", "plen")), (again[UDP], ("chksum", "len"))):
        for name in computed:
            layer.delfieldval(name) if name in layer.fields else None
    assert bytes(again)[: packet.len if IP in frame else packet.plen + 40] == bytes(packet)
    return packet.src, frame[UDP].sport, packet.dst, frame[UDP].dport


@dataclass
class Nat:
    """A NAT with hosts on both sides."""

    configuration: dict[str, Any]
    stations: Stations
    dut: configuration.Dut

    @property
    def connections(self) -> Device:
        """What the package knows of its connections."""
        return dut.of(self.dut)

    @property
    def left(self) -> tuple[str, str]:
        """Addresses of a frame from the left."""
        return (LEFT6, RIGHT6) if self.configuration["left"]["version"] == 6 else (LEFT4, RIGHT4)

    def open(self, ports: range, wait_s: float = 5.0) -> dict[int, tuple[str, int]]:
        """Send a frame from each of these ports on the left; returns the outside endpoints of those that passed,
        in their order of arrival, by port."""
        source, destination = self.left
        received = self.stations.exchange(
            "left", [udp(source, destination, port, PORT) for port in ports], expected=len(ports), wait_s=wait_s
        )
        flows = [flow_of(frame) for frame in received]
        assert all(flow[2:] == (RIGHT4, PORT) for flow in flows)
        return dict(zip(ports, [flow[:2] for flow in flows], strict=False))

    def answer(self, endpoints: list[tuple[str, int]], source: str = RIGHT4, wait_s: float = 5.0) -> list[int]:
        """Send a frame from the right to each of these endpoints; returns the ports on the left that got one."""
        answers = [udp(source, address, PORT, port) for address, port in endpoints]
        received = self.stations.exchange("right", answers, expected=len(answers), wait_s=wait_s)
        flows = [flow_of(frame) for frame in received]
        inside, remote = self.left
        assert all(flow[:3] == (remote, PORT, inside) for flow in flows)
        return [flow[3] for flow in flows]

    def truth(self) -> ConnectionsTruth:
        """The counters of a reference DUT."""
        connections = RefDut(Path(self.dut.control or "")).counters().connections
        assert connections is not None
        return connections

    def lost(self) -> dict[str, int]:
        """What it counts as lost, both directions, by cause."""
        count = dut.of(self.dut).losses
        losses = count()
        assert losses is not None
        return {
            cause: number
            for direction in LEFT_AND_RIGHT
            for cause, number in losses[direction].items()
            if number and cause != "unresolved"
        }

    def own_count(self) -> int:
        """The number of connections, by the DUT itself and none of the package's code."""
        if self.dut.control:
            return self.truth().current
        return int(self.kernel_file(Path("/proc/sys/net/netfilter/nf_conntrack_count")))

    def kernel_file(self, path: Path) -> str:
        """As the DUT's namespace shows it."""
        namespace = self.configuration["engine"]["dut_netns"]
        command = ["ip", "netns", "exec", namespace, "cat", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def nat(name: str, **options: object) -> Iterator[Nat]:
    """A lab whose hosts know each other's MAC addresses, without connections."""
    given = {option: str(value) for option, value in options.items()}
    with lab.bring_up(name, given) as made_up, stations_of(made_up) as both:
        ready = Nat(made_up, both, configuration.parse(made_up, name).dut)
        acquaint(ready)
        yield ready


def acquaint(ready: Nat) -> None:
    """The first frame of each side may be lost while the DUT asks for the next hop."""
    deadline = time.monotonic() + 20
    while True:
        opened = ready.open(range(60_000, 60_001), wait_s=0.5)
        if opened and ready.answer(list(opened.values()), wait_s=0.5):
            break
        assert time.monotonic() < deadline, "the DUT does not forward"
    ready.connections.clear_connections()
    if ready.dut.control:
        RefDut(Path(ready.dut.control)).clear()


COUNT = 40
PORTS = range(30_000, 30_000 + COUNT)


@pytest.mark.parametrize("name", [*KERNEL_NATS, "refdut-nat44", pytest.param("refdut-nat64", marks=pytest.mark.long)])
def test_a_connection_works_both_ways_is_counted_and_cleared(name: str) -> None:
    with nat(name) as ready:
        assert ready.connections.count_connections() == ready.own_count() == 0
        lost_before = ready.lost().get("no_connection", 0)
        outside = ready.open(PORTS)
        assert len(set(outside.values())) == COUNT
        assert {address for address, _ in outside.values()} == set(ready.configuration["dut"]["outside"])
        assert ready.connections.count_connections() == ready.own_count() == COUNT
        assert ready.open(PORTS) == outside, "the same again"
        assert ready.answer(list(outside.values())) == list(PORTS), dut.of(ready.dut).losses()
        assert ready.connections.count_connections() == ready.own_count() == COUNT
        strangers = [(address, port + 1000) for address, port in outside.values()]
        assert ready.answer(strangers, wait_s=0.5) == []
        assert ready.answer(list(outside.values()), source="198.19.0.9", wait_s=0.5) == []
        assert ready.lost() == {"no_connection": lost_before + 2 * COUNT}
        assert ready.connections.clear_connections() < 5
        assert ready.connections.count_connections() == ready.own_count() == 0
        assert ready.answer(list(outside.values()), wait_s=0.5) == []
        assert ready.lost() == {"no_connection": lost_before + 3 * COUNT}


@pytest.mark.parametrize("name", [*KERNEL_NATS, "refdut-nat44", pytest.param("refdut-nat64", marks=pytest.mark.long)])
def test_a_pool_of_addresses_is_outside(name: str) -> None:
    ports = {"last_port": 1027} if name in REFERENCE_NATS else {}
    with nat(name, pool_addresses=4, **ports) as ready:
        outside = ready.open(range(30_000, 30_016))
        assert len(set(outside.values())) == 16
        pool = ready.configuration["dut"]["outside"]
        assert pool == [f"198.19.254.{129 + number}" for number in range(4)]
        assert {address for address, _ in outside.values()} <= set(pool)
        assert ready.answer(list(outside.values())) == list(range(30_000, 30_016))


def test_the_kernel_keeps_a_port_or_takes_a_random_one() -> None:
    with nat("nft-nat44") as ready:
        assert [port for _, port in ready.open(PORTS).values()] == list(PORTS)
    with nat("nft-nat44", ports="random") as ready:
        outside = ready.open(PORTS)
        assert [port for _, port in outside.values()] != list(PORTS)
        assert ready.answer(list(outside.values())) == list(PORTS)


@pytest.mark.parametrize("name", ["nft-nat44", pytest.param("tayga-nat64", marks=pytest.mark.long)])
def test_the_kernels_connections_end_after_their_timeouts(name: str) -> None:
    with nat(name, udp_timeout_s=2, udp_stream_timeout_s=600) as ready:
        unanswered, answered = ready.open(range(30_000, 30_010)), ready.open(range(31_000, 31_010))
        assert len(ready.answer(list(answered.values()))) == 10
        ready.open(range(31_000, 31_010))  # a stream after a frame in each direction and another one
        time.sleep(2.5)
        assert ready.answer(list(unanswered.values()), wait_s=0.5) == []
        assert ready.connections.clear_connections() < 5


def test_the_kernels_statistics_show_what_a_full_table_evicts() -> None:
    """Phase 1 passes beyond the capacity: only statistics and frames back show that connections are missing."""
    with nat("nft-nat44") as ready:
        maximum = ready.configuration["dut"]["conntrack_max"]
        if maximum > 300_000:
            pytest.skip("the table of this machine is too large to fill in a test")
        left = ready.stations.left
        frame = bytearray(bytes(Ether(src=left.mac, dst=left.dut_mac) / udp(LEFT4, RIGHT4, 1, 1)))
        frame[40:42] = bytes(2)  # no checksum
        for number in range(maximum + 60_000):
            frame[34:38] = struct.pack(">HH", 1024 + number % 60_000, 1 + number // 60_000)
            left.socket.send(frame)
        told = statistics(ready.kernel_file(STATISTICS))
        assert ready.connections.count_connections() == pytest.approx(maximum, rel=0.02)
        assert told["early_drop"] + told["drop"] > 10_000
        assert ready.lost().get("conntrack_drop", 0) == told["drop"]
        assert ready.connections.clear_connections() < 30
        assert ready.own_count() == 0


@pytest.mark.parametrize("name", ["refdut-nat44", pytest.param("refdut-nat64", marks=pytest.mark.long)])
def test_capacity_is_exact_and_what_is_beyond_is_refused(name: str) -> None:
    with nat(name, connections=30) as ready:
        outside = ready.open(PORTS, wait_s=1)
        assert len(outside) == 30
        assert ready.answer(list(outside.values())) == list(PORTS[:30])
        assert ready.lost() == {"table_full": COUNT - 30}
        assert (ready.truth().refused, ready.truth().highest) == (COUNT - 30, 30)


def test_the_oldest_are_evicted() -> None:
    with nat("refdut-nat44", connections=30, when_full="evict", evict_count=5) as ready:
        outside = ready.open(PORTS)
        assert len(outside) == COUNT
        assert ready.truth().evicted == 10
        assert ready.answer(list(outside.values()), wait_s=1) == list(PORTS[10:])


def test_what_passes_without_a_connection_is_missing_on_the_way_back() -> None:
    with nat("refdut-nat44", connections=30, when_full="pass") as ready:
        outside = ready.open(PORTS)
        assert len(outside) == COUNT
        assert ready.truth().untracked == 10
        assert ready.answer(list(outside.values()), wait_s=1) == list(PORTS[:30])


def test_connections_time_out() -> None:
    with nat("refdut-nat64", timeout_s=1) as ready:
        outside = ready.open(PORTS)
        assert ready.connections.count_connections() == COUNT
        assert wait_for(lambda: ready.connections.count_connections() == 0)
        assert ready.answer(list(outside.values()), wait_s=0.5) == []
        assert ready.truth().expired == COUNT


def test_connections_are_remapped_on_purpose() -> None:
    with nat("refdut-nat44", remap_every=2) as ready:
        first, second, third = ready.open(PORTS), ready.open(PORTS), ready.open(PORTS)
        assert set(first.values()).isdisjoint(second.values())
        assert second == third
        assert ready.truth().remapped == COUNT
        assert ready.answer(list(first.values()), wait_s=0.5) == []
        assert ready.answer(list(third.values())) == list(PORTS)


def test_only_so_many_connections_are_established() -> None:
    with nat("refdut-nat44", establishment_cps=1, establishment_queue=9) as ready:
        began_s = time.monotonic()
        opened = len(ready.open(PORTS, wait_s=0.5))
        assert 9 <= opened <= 10 + time.monotonic() - began_s, "one may be left of what cleared the table"
        assert ready.lost() == {"establishment": COUNT - opened}


def test_deletion_takes_the_time_that_was_set() -> None:
    with nat("refdut-nat44", deletion_cps=80) as ready:
        ready.open(PORTS)
        assert 0.5 <= ready.connections.clear_connections() < 5
        assert ready.own_count() == 0


def test_a_reset_deletes_the_connections() -> None:
    with nat("refdut-nat44") as ready:
        outside = ready.open(PORTS)
        RefDut(Path(ready.dut.control or "")).reset(0.2)
        assert ready.answer(list(outside.values()), wait_s=1) == []
        assert (ready.own_count(), ready.truth().deleted) == (0, COUNT)


def test_a_nat_that_somebody_made_is_counted_and_cleared_by_its_commands() -> None:
    """By the commands that an administrator knows, where they are installed, and by the kernel's files."""
    conntrack = shutil.which("conntrack")
    with made("nat") as name:
        host = ["ip", "-n", name]
        subprocess.run([*host, "address", "add", "198.18.0.2/24", "dev", "eth1"], check=True)
        subprocess.run([*host, "route", "add", "198.19.0.0/24", "via", "198.18.0.1"], check=True)
        # frames that wait for a MAC address would hold their connections
        known = ["neighbour", "add", "198.19.0.2", "lladdr", mac_of(name, "eth2"), "dev", "east"]
        subprocess.run(["ip", "-n", f"{name}-dut", *known], check=True)
        inside = f"ip netns exec {name}-dut"
        commands = {"count_connections": f"{inside} cat /proc/sys/net/netfilter/nf_conntrack_count"}
        if conntrack:
            commands = {
                "count_connections": f"{inside} conntrack -C",
                "clear_connections": f"{inside} conntrack -F",
            }
        sides = {
            "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"},
            "right": {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
        }
        device = configuration.parse({**sides, "dut": {"commands": commands}}, "by hand").dut
        connections = Device(device)
        assert connections.count_connections() == 0
        for port in PORTS:
            udp_socket = in_namespace(name, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            udp_socket.bind(("198.18.0.2", port))
            udp_socket.sendto(DATA, ("198.19.0.2", PORT))
            udp_socket.close()
        assert wait_for(lambda: connections.count_connections() == COUNT)
        if conntrack:
            connections.clear_connections()
            assert connections.count_connections() == 0


def test_the_kernels_file_of_statistics_is_as_expected() -> None:
    told = statistics(Path("/proc/net/stat/nf_conntrack").read_text())
    assert {"early_drop", "insert_failed", "drop", "chainlength"} <= told.keys()
