# SPDX-License-Identifier: Apache-2.0
"""Labs whose DUT is an emulated machine: what Jool and another kernel forward, byte by byte; resets; that nothing
stays. They download packages and build Jool once, so they run with the emulated cards (make cards). Root only."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from scapy.all import UDP, IPv6

from dutperf import lab
from dutperf.dut import printed
from dutperf.dut.device import Device
from dutperf.lab.guest import packages
from dutperf.lab.guest.machine import MACS
from dutperf.model import Direction
from dutperf.setup import configuration
from labs.stations import Stations, stations_of
from labs.test_labs import (
    ROUTED,
    TRANSLATED,
    assert_carries,
    dut_pids,
    left_over,
    namespaces_of,
    start_owner,
    udp,
    wait_for,
)

pytestmark = [
    pytest.mark.root,
    pytest.mark.cards,
    pytest.mark.xdist_group("guests"),
    pytest.mark.usefixtures("lab_records"),
]

START_S = 60
FIRST = {
    "kernel-vm": ("198.18.0.2", "198.19.0.2"),
    "kernel-vm-nat44": ("198.18.0.2", "198.19.0.2"),
    "jool-siit": ("2001:2::2", "2001:2:0:1000::2"),
    "jool-nat64": ("2001:2::2", "2001:2:0:6464::c613:2"),
}
"""Addresses of a frame from the left that passes."""


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """What is downloaded and built once."""
    packages.jool(packages.kernel())


def passes(both: Stations, name: str) -> bool:
    """Whether a frame gets through now."""
    return len(both.exchange("left", [udp(*FIRST[name])], expected=1, wait_s=1)) == 1


def test_jool_translates_the_foreground_and_the_background_passes_it_by() -> None:
    began_s = time.monotonic()
    with lab.bring_up("jool-siit", {}) as made, stations_of(made, MACS) as both:
        assert time.monotonic() - began_s < START_S
        assert made["dut"]["name"] == "Jool SIIT"
        assert made["dut"]["version"][0].isdigit()
        for description, side, sent, expected in TRANSLATED:
            assert wait_for(lambda: passes(both, "jool-siit"))
            received = both.exchange(side, [udp(*sent)], expected=1)
            assert len(received) == 1, description
            assert_carries(received[0], *expected)


def test_the_other_kernel_routes_both_versions() -> None:
    with lab.bring_up("kernel-vm", {"version": "6"}) as made, stations_of(made, MACS) as both:
        assert made["dut"]["version"] != made["dut"]["kernel"].partition(" ")[2]
        assert "QEMU" in made["dut"]["machine"]
        for source, destination, side in ROUTED:
            received = both.exchange(side, [udp(source, destination)], expected=1)
            assert len(received) == 1, (source, destination)
            assert_carries(received[0], source, destination)
            limit = received[0].hlim if IPv6 in received[0] else received[0].ttl
            assert limit == 63


def test_the_longest_frames_pass() -> None:
    payload = bytes(9216 - 18 - 40 - 8)
    with lab.bring_up("kernel-vm", {"max_frame_size": "9216"}) as made, stations_of(made, MACS) as both:
        assert wait_for(lambda: passes(both, "kernel-vm"))
        received = both.exchange("left", [udp("2001:2::2", "2001:2:0:8000::2", payload)], expected=1)
    assert [len(frame) for frame in received] == [9216 - 4]


def test_connections_of_the_stateful_translator_are_counted_and_cleared() -> None:
    with lab.bring_up("jool-nat64", {}) as made, stations_of(made, MACS) as both:
        assert wait_for(lambda: passes(both, "jool-nat64"))
        connections = Device(configuration.parse(made, "jool-nat64").dut)
        connections.clear_connections()
        assert connections.count_connections() == 0
        packets = [udp(*FIRST["jool-nat64"]) for _ in range(20)]
        for port, packet in enumerate(packets, 20_000):
            packet[UDP].sport = port
        forward = both.exchange("left", packets, expected=20)
        assert connections.count_connections() == len(forward) == 20
        answers = [udp("198.19.0.2", frame.src) for frame in (one.getlayer("IP") for one in forward)]
        for answer, asked in zip(answers, forward, strict=True):
            answer[UDP].sport, answer[UDP].dport = asked[UDP].dport, asked[UDP].sport
        back = both.exchange("right", answers, expected=20)
        assert [frame[UDP].dport for frame in back] == list(range(20_000, 20_020))
        connections.clear_connections()
        assert both.exchange("right", answers, expected=1, wait_s=1) == []


def test_the_other_kernel_s_nat_has_a_table_of_the_size_that_was_asked_for() -> None:
    with lab.bring_up("kernel-vm-nat44", {"table": "40"}) as made, stations_of(made, MACS) as both:
        assert wait_for(lambda: passes(both, "kernel-vm-nat44"))
        connections = Device(configuration.parse(made, "kernel-vm-nat44").dut)
        connections.clear_connections()
        assert connections.count_connections() == 0
        packets = [udp(*FIRST["kernel-vm-nat44"]) for _ in range(20)]
        for port, packet in enumerate(packets, 20_000):
            packet[UDP].sport = port
        forward = both.exchange("left", packets, expected=20)
        assert {frame.src for frame in (one.getlayer("IP") for one in forward)} == {"198.19.0.1"}
        assert connections.count_connections() == 20
        for port, packet in enumerate(packets, 30_000):
            packet[UDP].sport = port
        both.exchange("left", [*packets, *packets], expected=40)
        for port, packet in enumerate(packets, 40_000):
            packet[UDP].sport = port
        both.exchange("left", packets, expected=20)
        assert (connections.count_connections() or 0) <= 40
        assert dict(printed.named_numbers(connections._output("count_connections")))["early_drop"] > 0
        connections.clear_connections()
        stray = udp("198.19.0.2", "198.19.0.1")
        assert both.exchange("right", [stray], expected=1, wait_s=1) == []
        counted = Device(configuration.parse(made, "kernel-vm-nat44").dut).losses
        losses = counted()
        assert losses is not None
        assert losses[Direction.REVERSE] == {"no_connection": 1}
        assert losses[Direction.FORWARD]["conntrack_drop"] >= 0


@pytest.mark.parametrize("name", FIRST)
def test_a_reset_stops_it_for_its_time(name: str) -> None:
    with lab.bring_up(name, {"reset_s": "3"}) as made, stations_of(made, MACS) as both:
        assert wait_for(lambda: passes(both, name))
        with subprocess.Popen(made["dut"]["commands"]["reset"]) as reset:
            assert wait_for(lambda: not passes(both, name), 3)
            assert wait_for(lambda: passes(both, name), 20)
        assert reset.returncode == 0


def test_what_a_killed_owner_leaves_the_next_lab_command_removes(lab_records: Path) -> None:
    owner, made = start_owner(lab_records, "kernel-vm")
    pids: set[int] = dut_pids(made)
    assert len(pids) == 1
    owner.kill()
    owner.wait()
    assert wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))
    with lab.bring_up("loopback", {}):
        assert not namespaces_of(made)
    assert not left_over(lab_records)


def test_a_machine_that_is_not_set_up_is_one_sentence(lab_records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> str:
        return "echo no such thing\nfalse\n"

    monkeypatch.setattr("dutperf.lab.guest.machine.routing", broken)
    with (
        pytest.raises(lab.LabError, match="the emulated machine did not start; last output: no such thing"),
        lab.bring_up("kernel-vm", {}),
    ):
        pass
    assert not left_over(lab_records)
