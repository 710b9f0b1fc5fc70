# SPDX-License-Identifier: Apache-2.0
"""DUTs that ask for more addresses than the tester's own, or get another MAC address while it measures: what they lose
for want of an answer is not their loss. Root only."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dutperf.engine.factory import engine_on
from dutperf.model import Direction, TrialResult, Verdict
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from integration.test_by_hand import by_hand, made
from plans import make_trial

pytestmark = pytest.mark.root
ATTEMPTS = 5
"""A busy machine may disturb a trial, too."""
DISTURBED = {"dut_disturbed", "sender_late", "sender_bursts", "sending_time", "receiver_stall", "unsent"}
LEFT = {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/16", "gateway4": "198.18.0.1"}
RIGHT = {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/16", "gateway4": "198.19.0.1"}
LEFT6 = {"port": "eth1", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}
RIGHT6 = {"port": "eth2", "version": 6, "ipv6": "2001:2:0:8000::2/64", "gateway6": "2001:2:0:8000::1"}
STATION = "02:00:00:00:77:03"
NEXT_HOPS = "route replace 198.19.0.0/16 nexthop via 198.19.0.2 nexthop via 198.19.0.3"
ASKS = """
import socket, time
any_host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        any_host.sendto(b"what time is it?", ("198.19.0.77", 123))
    except OSError:
        pass
    time.sleep(0.05)
"""
ANNOUNCES = """
import socket
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("west", 0))
mac, ip = bytes.fromhex("020000007701"), socket.inet_aton("198.18.0.1")
port.send(b"\\xff" * 6 + mac + bytes.fromhex("0806000108000604" "0001") + mac + ip + bytes(6) + ip + bytes(18))
"""
CLAIMS = """
import socket
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("east", 0))
mac, ip = bytes.fromhex("020000007702"), socket.inet_aton("198.19.0.2")
port.send(b"\\xff" * 6 + mac + bytes.fromhex("0806000108000604" "0001") + mac + ip + bytes(6) + ip + bytes(18))
"""


def in_dut(name: str, *command: str) -> str:
    """What the command prints."""
    run = ["ip", "netns", "exec", f"{name}-dut", *command]
    return subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def on(name: str, left: dict[str, Any], right: dict[str, Any]) -> Iterator[Callable[..., TrialResult]]:
    """One trial with forward traffic at a rate."""
    sides = {"left": left, "right": right}
    setup = configuration.parse({"engine": {"netns": name}, **sides}, "by hand")
    size = 84 if setup.sides()["left"].version == 6 else 64
    with engine_on(setup, 1518) as tester:

        def run(rate_fps: int, **conditions: Any) -> TrialResult:
            chosen = SingleTrial(**({"duration_s": 1, "drain_s": 0.3, "directions": "forward"} | conditions))
            return tester.run(make_trial(setup, chosen, size, rate_fps, 1))

        yield run


def codes(result: TrialResult) -> set[str]:
    return {cause.code for cause in result.causes}


def lost(result: TrialResult) -> int:
    return result.directions()[Direction.FORWARD].lost


def undisturbed(run: Callable[[], TrialResult]) -> TrialResult:
    """Of the first trial that nothing else disturbed."""
    for _ in range(ATTEMPTS):
        result = run()
        if not codes(result) & DISTURBED:
            return result
    pytest.skip("the machine disturbs every trial")


@contextmanager
def router_on_wide_networks() -> Iterator[str]:
    """Its networks are on its links: it has no route by way of the tester."""
    with made("router") as name:
        for port, network in (("west", "198.18"), ("east", "198.19")):
            in_dut(name, "ip", "address", "flush", "dev", port)
            in_dut(name, "ip", "address", "add", f"{network}.0.1/16", "dev", port)
        yield name


def test_all_addresses_of_the_frames_are_answered_for() -> None:
    varying = {"varying_address": {"mode": "random", "min": 2, "max": 60}}
    with router_on_wide_networks() as name, on(name, LEFT | varying, RIGHT | varying) as run:
        assert lost(undisturbed(lambda: run(2000))) == 0


@pytest.mark.faults
def test_a_next_hop_that_nobody_is_takes_the_frames() -> None:
    with made("router") as name:
        in_dut(name, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1")
        in_dut(name, "ip", *NEXT_HOPS.split())
        narrow = {"ipv4": "198.19.0.2/24", "networks": 4}
        with on(name, LEFT, RIGHT | narrow) as run:
            result = undisturbed(lambda: run(2000))
            assert lost(result) > 0
            [cause] = result.causes
            assert (result.verdict, cause.code, cause.lasts) == (Verdict.INVALID, "unanswered", True)
            assert "198.19.0.3" in cause.text
        with on(name, LEFT, RIGHT | narrow | {"answers_for": ["198.19.0.3"]}) as run:
            assert lost(undisturbed(lambda: run(2000))) == 0


@pytest.mark.faults
def test_a_dut_that_asks_for_something_else_loses_its_own_frames() -> None:
    with router_on_wide_networks() as name:
        by_hand("limit", name, 1000, 100)
        asking = subprocess.Popen(["ip", "netns", "exec", f"{name}-dut", sys.executable, "-c", ASKS])
        try:
            with on(name, LEFT, RIGHT) as run:
                result = undisturbed(lambda: run(4000, duration_s=2))
        finally:
            asking.kill()
            asking.wait()
    assert (result.neighbours or {})["right"].unanswered[0].target == "198.19.0.77"
    assert result.verdict is Verdict.VALID, result.causes
    assert 8000 - lost(result) == pytest.approx(2100, rel=0.02)


@pytest.mark.faults
def test_a_gateway_that_moves_takes_the_frames() -> None:
    def move(name: str) -> None:
        time.sleep(0.8)
        in_dut(name, "ip", "link", "set", "west", "address", "02:00:00:00:77:01")
        in_dut(name, sys.executable, "-c", ANNOUNCES)

    with router_on_wide_networks() as name, on(name, LEFT, RIGHT) as run:
        assert lost(undisturbed(lambda: run(500))) == 0
        moving = threading.Thread(target=move, args=(name,))
        moving.start()
        result = run(500, duration_s=3)
        moving.join()
        assert lost(result) > 0
        assert result.verdict is Verdict.INVALID
        assert "dut_moved" in codes(result)
        assert lost(undisturbed(lambda: run(500))) == 0  # to the new address


@pytest.mark.faults
def test_a_switch_that_snoops_passes_on_what_the_dut_asks_for() -> None:
    varying = {"varying_address": {"mode": "random", "min": 16, "max": 40}}
    with made("router") as name:
        switch = ["mcast_snooping", "1", "mcast_querier", "1", "mcast_query_response_interval", "10"]
        in_dut(name, "ip", "link", "add", "switch", "type", "bridge", *switch)
        in_dut(name, "ip", "link", "set", "east", "master", "switch")
        in_dut(name, "ip", "link", "set", "switch", "up")
        in_dut(name, "ip", "address", "add", "2001:2::1/64", "dev", "west", "nodad")
        in_dut(name, "ip", "address", "add", "2001:2:0:8000::1/64", "dev", "switch", "nodad")
        time.sleep(1)  # until the switch has asked for listeners, it passes on everything
        with on(name, LEFT6, RIGHT6 | varying) as run:
            assert lost(undisturbed(lambda: run(2000))) == 0
        listed = in_dut(name, "bridge", "mdb", "show")
        assert "ff02::1:ff00:28" in listed


@pytest.mark.faults
def test_a_claim_between_trials_counts_for_the_next_one() -> None:
    with router_on_wide_networks() as name, on(name, LEFT, RIGHT) as run:
        by_hand("limit", name, 1000, 100)
        assert "address_conflict" not in codes(run(4000))
        in_dut(name, sys.executable, "-c", CLAIMS)
        claimed = run(4000)
        assert lost(claimed) > 0
        assert "address_conflict" in codes(claimed)
        assert "address_conflict" not in codes(run(4000))


def test_a_dut_that_has_the_testers_address_is_named() -> None:
    with made("router") as name:
        in_dut(name, "ip", "address", "add", "198.18.0.2/24", "dev", "west")
        mac = in_dut(name, "cat", "/sys/class/net/west/address").strip()
        left = {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/24", "gateway_mac": mac}
        with on(name, left, RIGHT | {"ipv4": "198.19.0.2/24"}) as run:
            result = undisturbed(lambda: run(200, duration_s=0.3))
    [cause] = result.causes
    assert (result.verdict, cause.code) == (Verdict.INVALID, "own_address")
    assert f"the DUT, MAC address {mac}, has 198.18.0.2, the left port's own address" in cause.text


@contextmanager
def station_beside_the_tester(name: str, address: str) -> Iterator[str]:
    """A switch joins the tester's right port, the DUT and a station, which says nothing unless it is asked. Yields
    its namespace."""
    host = f"{name}-host"
    subprocess.run(["ip", "netns", "add", host], check=True)
    try:
        in_dut(name, *["ip", "link", "add", "switch", "type", "bridge", "mcast_snooping", "0"])
        in_dut(name, *f"ip link add beside type veth peer name station address {STATION} netns {host}".split())
        for port in ("east", "beside"):
            in_dut(name, *f"ip address flush dev {port}".split())
            in_dut(name, *f"ip link set {port} master switch up".split())
        for network in ("198.19.0.1/16", "2001:2:0:8000::1/64"):
            in_dut(name, *f"ip address add {network} dev switch".split(), *["nodad"] * (":" in network))
        in_dut(name, *["ip", "link", "set", "switch", "up"])
        subprocess.run(["ip", "-n", host, "link", "set", "station", "up"], check=True)
        nodad = ["nodad"] * (":" in address)
        subprocess.run(["ip", "-n", host, "address", "add", address, "dev", "station", *nodad], check=True)
        yield host
    finally:
        subprocess.run(["ip", "netns", "delete", host], check=True)


@pytest.mark.parametrize(
    ("left", "right", "answers_for", "address"),
    [
        pytest.param(LEFT, RIGHT, "198.19.64.0/24", "198.19.64.77/16", marks=pytest.mark.long),
        (LEFT6, RIGHT6, "2001:2:0:8000::100/120", "2001:2:0:8000::177/64"),
    ],
)
def test_a_station_with_an_address_of_a_range_is_named(
    left: dict[str, Any], right: dict[str, Any], answers_for: str, address: str
) -> None:
    right = right | {"answers_for": [answers_for]}
    single = address.split("/")[0]
    with router_on_wide_networks() as name:
        in_dut(name, *["ip", "address", "add", "2001:2::1/64", "dev", "west", "nodad"])
        with station_beside_the_tester(name, address) as host, on(name, left, right) as run:
            for _ in range(2):  # it is asked for again
                [one] = (run(200, duration_s=0.3).neighbours or {})["right"].conflicts
                assert (one.address, one.mac, one.of_range, one.by_dut) == (single, STATION, True, False)
            assert single[:-2] not in in_dut(name, "ip", "neigh", "show")  # the probes change no table
            subprocess.run(["ip", "-n", host, "address", "delete", address, "dev", "station"], check=True)
            run(200, duration_s=0.3)
            assert "right" not in (run(200, duration_s=0.3).neighbours or {})


@pytest.mark.faults
def test_a_loss_beside_a_station_with_an_address_of_the_flows_is_not_proven_to_be_the_duts() -> None:
    varying = {"varying_address": {"mode": "random", "min": 2, "max": 60}}
    with (
        router_on_wide_networks() as name,
        station_beside_the_tester(name, "198.19.0.31/16"),
        on(name, LEFT, RIGHT | varying) as run,
    ):
        by_hand("limit", name, 1000, 100)
        for _ in range(2):
            result = run(4000)
            assert lost(result) > 0
            assert result.verdict is Verdict.INVALID
            [cause] = [one for one in result.causes if one.code == "address_conflict"]
            assert "claims 198.19.0.31, an address for which the right port answers" in cause.text


@pytest.mark.faults
def test_another_station_claims_the_testers_address() -> None:
    def claim(name: str) -> None:
        time.sleep(0.8)
        in_dut(name, sys.executable, "-c", CLAIMS)

    with router_on_wide_networks() as name, on(name, LEFT, RIGHT) as run:
        by_hand("limit", name, 1000, 100)
        assert "address_conflict" not in codes(run(4000))
        claiming = threading.Thread(target=claim, args=(name,))
        claiming.start()
        result = run(4000, duration_s=3)
        claiming.join()
    assert lost(result) > 0
    [cause] = [one for one in result.causes if one.code == "address_conflict"]
    assert "MAC address 02:00:00:00:77:02, claims 198.19.0.2, the right port's own address" in cause.text
