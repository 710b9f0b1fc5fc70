# SPDX-License-Identifier: Apache-2.0
"""Connections behind a VLAN tag, in a mix of sizes, with pings beside them: through a kernel NAT that a person made
(by_hand.sh), whose connection tracking and counters agree with the tester. Root only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dutperf import dut, traffic
from dutperf.engine.factory import engine_on
from dutperf.lab import conntrack
from dutperf.model import Load, Trial, TrialResult, Verdict
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from dutperf.tester import phases
from switches import VlanBridges, has_open_vswitch
from undisturbed import LOSS_IS_CERTAIN, until, valid

from . import vlan_programs
from .test_described_frames import by_hand
from .test_paths import counted

pytestmark = pytest.mark.root
COUNTERS = """table ip counted {{
  counter udp_out {{ }}
  counter icmp_out {{ }}
  counter back {{ }}
  chain forwarded {{
    type filter hook forward priority 10; policy accept;
    oifname "{east}" meta l4proto udp counter name udp_out
    oifname "{east}" meta l4proto icmp counter name icmp_out
    oifname "{west}" counter name back
  }}
}}"""
MASQUERADE = """
table ip bridged {{
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "{east}" masquerade
  }}
}}"""
VLAN = 10
ADDRESSES = {"west": "198.18.0.1/24", "east": "198.19.0.1/24"}
STREAMS = [
    {"name": "inside", "directions": "forward", "frame": "vlan(id=10)/ip/udp", "sizes": "imix", "share": 99},
    {"name": "ping", "directions": "forward", "frame": "vlan(id=10)/ip/icmp"},
    {"name": "outside", "directions": "reverse", "frame": "vlan(id=10)/ip(dscp=46)/udp", "sizes": "imix", "share": 9},
    {"name": "log", "directions": "reverse", "frame": "vlan(id=10)/ip/udp(source=9,destination=514)"},
]
EVERY_97TH = "numgen inc mod 97 0"
OF_A_SIZE = "ip length 500-700"
SIDES: dict[str, dict[str, Any]] = {
    "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1", "vlans": [10]},
    "right": {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1", "vlans": [10]},
}


def in_dut(name: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", f"{name}-dut", *command]


def setup_of(name: str) -> Setup:
    tracking = [sys.executable, "-I", "-S", conntrack.__file__]
    commands = {
        "clear_connections": in_dut(name, *tracking, "clear"),
        "count_connections": in_dut(name, *tracking, "count"),
    }
    config = {"engine": {"netns": name}, **SIDES, "streams": STREAMS, "dut": {"commands": commands}}
    return configuration.parse(config, "by hand")


def trial_of(setup: Setup, connections: int, opened_at: str = "20k") -> Trial:
    given = SingleTrial(connections=connections, preliminary_rate=opened_at, duration_s=1, drain_s=0.3)
    kind = traffic.of(setup, traffic.of(setup, given).sized())
    kind.check()
    return kind.trial(kind.cases()[0], Load.fps(5_000), 1)


@pytest.fixture
def nat(tmp_path: Path) -> Iterator[str]:
    with by_hand("nat") as name:
        vlan_programs.attach(f"{name}-dut", ("west", "east"), tmp_path, only=VLAN)
        load(name, COUNTERS.format(west="west", east="east"))
        yield name


@pytest.fixture
def nat_in_tunnel() -> Iterator[str]:
    """The NAT is at the end of a VXLAN tunnel, as a carrier's is of a B4's (RFC 6333). The tester is the other end, and
    is asked there for its address (ARP)."""
    with by_hand("nat") as name:
        for command in (
            "address flush dev west",
            "address add 2001:2::1/64 dev west nodad",
            "link add inside type vxlan id 100 local 2001:2::1 remote 2001:2::2 dstport 4789 dev west",
            "link set inside address 02:00:00:00:40:01 up",
            "address add 198.18.0.1/24 dev inside",
        ):
            subprocess.run(["ip", "-n", f"{name}-dut", *command.split()], check=True, timeout=10)
        load(name, COUNTERS.format(west="inside", east="east"))
        yield name


@pytest.fixture
def bridged_nat() -> Iterator[str]:
    """The NAT behind VLAN-aware bridges: its addresses are those of their access ports."""
    with by_hand("nat") as name, TemporaryDirectory(prefix="dutperf-") as folder:
        bridges = VlanBridges(Path(folder), f"{name}-dut", tuple(ADDRESSES), VLAN)
        try:
            for port, address in ADDRESSES.items():
                for words in (["flush", "dev", port], ["add", address, "dev", f"{port}{VLAN}"]):
                    subprocess.run(["ip", "-n", f"{name}-dut", "address", *words], check=True, timeout=10)
            load(name, (COUNTERS + MASQUERADE).format(west=f"west{VLAN}", east=f"east{VLAN}"))
            yield name
        finally:
            bridges.end()


def load(name: str, rules: str) -> None:
    subprocess.run(in_dut(name, "nft", "-f", "-"), input=rules, text=True, check=True, timeout=10)


@pytest.mark.parametrize("connections", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_nat_behind_a_vlan_tag_counts_what_the_tester_does(nat: str, connections: int) -> None:
    assert_counts_agree(nat, connections)


@pytest.mark.long
@pytest.mark.skipif(not has_open_vswitch(), reason="scripts/setup dev installs Open vSwitch")
def test_a_nat_behind_vlan_aware_bridges_counts_what_the_tester_does(bridged_nat: str) -> None:
    assert_counts_agree(bridged_nat, 100_000, opened_at="10k")


def setup_in_tunnel(name: str) -> Setup:
    inner = "eth(destination=02:00:00:00:40:01,source=02:00:00:00:40:02)"
    tunnel = {
        "ipv6": "2001:2::2/64",
        "gateway6": "2001:2::1",
        "tunnel": f"ipv6(destination=2001:2::1)/udp/vxlan(vni=100)/{inner}",
    }
    sides = {side: {key: value for key, value in members.items() if key != "vlans"} for side, members in SIDES.items()}
    config = setup_of(name).model_dump(mode="json", include={"dut"}, exclude_none=True)
    config |= {"engine": {"netns": name}, **sides, "left": sides["left"] | tunnel}
    return configuration.parse(config, "by hand")


def test_errors_in_a_tunnel_say_that_the_dut_refuses_frames(nat_in_tunnel: str) -> None:
    setup = setup_in_tunnel(nat_in_tunnel)
    given = SingleTrial(duration_s=0.3, drain_s=0.2, frame_sizes=(256,), directions="forward", frame="ip(ttl=1)/udp")
    kind = traffic.of(setup, traffic.of(setup, given).sized())
    kind.check()
    with engine_on(setup, 1518) as tester:
        result = tester.run(kind.trial(kind.cases()[0], Load.fps(500), 1))
    assert result.forward is not None
    assert result.forward.received == 0
    assert result.forward.icmp_errors is not None
    assert "time to live exceeded" in result.forward.icmp_errors[0].words()
    assert "icmp_errors" in {cause.code for cause in result.causes}


def test_a_nat_at_the_end_of_a_tunnel_counts_what_the_tester_does(nat_in_tunnel: str) -> None:
    setup = setup_in_tunnel(nat_in_tunnel)
    trial = trial_of(setup, 2_000)
    result, counters = run_and_count(nat_in_tunnel, setup, trial)
    [opening] = result.preliminary
    assert opening.forward is not None
    assert result.forward is not None
    assert result.reverse is not None
    assert result.connections is not None
    assert (result.connections.learned, result.connections.remapped, result.connections.lost) == (2_000, 0, 0)
    assert result.dut_connections == opening.forward.received == 2_000
    assert result.forward.lost == result.reverse.lost == 0
    assert counters == {"udp_out": 2_000 + result.forward.sent, "icmp_out": 0, "back": result.reverse.sent}


def run_and_count(name: str, setup: Setup, trial: Trial) -> tuple[TrialResult, dict[str, int]]:
    """A valid trial, and what the DUT's rules counted in it."""
    seen: list[dict[str, int]] = []
    with engine_on(setup, 1518) as tester:

        def run() -> TrialResult:
            counted(name)
            result = phases.run(tester, trial, dut=dut.of_setup(setup))
            seen.append(counted(name))
            return result

        return valid(run, LOSS_IS_CERTAIN), seen[-1]


def assert_counts_agree(nat: str, connections: int, **opened: Any) -> None:
    """Those of the kernel's connection tracking, of nftables and of the tester, of connections with other frames beside
    them."""
    setup = setup_of(nat)
    result, counters = run_and_count(nat, setup, trial_of(setup, connections, **opened))
    [opening] = result.preliminary
    assert opening.forward is not None
    assert result.forward is not None
    assert result.reverse is not None
    assert result.connections is not None
    assert (result.connections.learned, result.connections.remapped, result.connections.lost) == (connections, 0, 0)
    assert result.dut_connections == opening.forward.sent == connections
    inside, ping = (result.forward.by_stream()[one] for one in ("inside", "ping"))
    assert (ping.sent, inside.sent) == (50, 4_950)
    assert all(one.lost == 0 for one in (inside, ping, result.forward, result.reverse, opening.forward))
    assert counters == {
        "udp_out": connections + inside.sent,
        "icmp_out": ping.sent,
        "back": result.reverse.sent,
    }


@pytest.mark.long
@pytest.mark.parametrize(("dropped", "gone"), [(EVERY_97TH, 1), (OF_A_SIZE, 0)])
def test_connections_whose_replies_are_lost_are_asked_again(nat: str, dropped: str, gone: int) -> None:
    """By frames of connections alone, whatever is beside them, and not by what the DUT drops for its size."""
    setup = setup_of(nat)
    trial = trial_of(setup, 1_000)
    rule = f"insert rule ip counted forwarded oifname west {dropped} drop"
    subprocess.run(in_dut(nat, "nft", *rule.split()), check=True, timeout=10)
    with engine_on(setup, 1518) as tester:
        result = until(
            lambda: phases.run(tester, trial, dut=dut.of_setup(setup)),
            lambda result: result.verdict is Verdict.VALID and result.connections_probed is not None,
            lambda result: str([cause.text for cause in result.causes]),
        )
    assert result.reverse is not None
    replies = result.reverse.by_stream()["outside"]
    assert result.connections is not None
    assert 0 < result.connections.lost <= replies.lost <= result.reverse.lost
    assert result.connections_probed == result.connections.lost
    assert result.connections_gone is not None
    assert result.connections_gone <= gone, "a hundredth of what asks them may be lost as well"
