# SPDX-License-Identifier: Apache-2.0
"""Labs with tunnels in an emulated machine: what both ends, or the left one alone, make of packets, that their
counters agree with the tester's to the frame, and that a loss is its DUT's. They boot machines, so they run with the
emulated cards (make cards). Root only."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

import pytest
from scapy.all import GRE, IP, UDP, IPv6, Packet

from dutperf import dut, lab
from dutperf.dut import printed
from dutperf.lab.encapsulation import NAMESPACES
from dutperf.lab.guest.machine import MACS
from dutperf.lab.guest.namespace import IP as IP_PROGRAM
from dutperf.lab.tunnels import KINDS
from dutperf.model import LEFT_AND_RIGHT, Direction, TrialResult
from labs.stations import Stations, stations_of
from labs.test_labs import ROUTED, assert_carries, udp
from undisturbed import LOSS_IS_CERTAIN, valid

from .measuring import bench_on

pytestmark = [
    pytest.mark.root,
    pytest.mark.cards,
    pytest.mark.xdist_group("guests"),
    pytest.mark.usefixtures("lab_records"),
]

RATE_FPS = 200
STATELESS = [name for name, kind in KINDS.items() if kind.guest and name != "ds-lite"]
ROUTED6 = [one for one in ROUTED if ":" in one[0]]
NATIVE6 = ("2001:2::2", "2001:2:0:8000::2")
LINK4 = ("198.18.254.253", "198.18.254.254")
SINGLE: dict[str, tuple[Packet, list[type[Packet]]]] = {
    # what the tester puts before inner packets, and the layers of packets from the DUT
    "ds-lite": (IPv6(src="2001:2:0:4000::2", dst="2001:2:0:4000::1"), [IPv6, IP, UDP]),
    "lw4o6": (IPv6(src="2001:2:0:4000::2", dst="2001:2:0:2100::1"), [IPv6, IP, UDP]),
    "map-e": (IPv6(src="2001:2:0:4000::2", dst="2001:2:0:2000:0:c612::"), [IPv6, IP, UDP]),
    "6rd": (IP(src=LINK4[1], dst="198.18.128.0"), [IP, IPv6, UDP]),
    "gre": (IP(src=LINK4[1], dst=LINK4[0]) / GRE(), [IP, GRE, IP, UDP]),
    "ipip": (IP(src=LINK4[1], dst=LINK4[0]), [IP, IP, UDP]),
}


def in_guest(made: dict[str, Any], place: int, *argv: str) -> str:
    """Output of a command in the namespace of a guest's DUT."""
    device = made["dut"][0] if isinstance(made["dut"], list) else made["dut"]
    *ask, _, limit_s = device["commands"]["reset"]
    command = f"{IP_PROGRAM} netns exec {NAMESPACES[place]} {shlex.join(argv)}"
    return subprocess.run([*ask, command, limit_s], check=True, capture_output=True, text=True).stdout


def passed(made: dict[str, Any]) -> dict[Direction, int]:
    """Packets on the link between both ends so far."""
    shown = subprocess.run(made["between"]["passed"], shell=True, check=True, capture_output=True, text=True)
    return printed.passed(shown.stdout)


def layers_of(packet: Packet) -> list[type[Packet]]:
    """Behind Ethernet, without the payload."""
    found = [type(packet.getlayer(number)) for number in range(1, len(packet.layers()))]
    return found[: found.index(UDP) + 1]


def assert_nothing_is_lost(made: dict[str, Any], **chosen: Any) -> int:
    """In trials of short and full-size frames; returns how many there were."""
    trials = 0
    with bench_on(made) as ready:
        row = dut.of_setup(ready.setup)

        def run(conditions: dict[str, Any]) -> TrialResult:
            nonlocal trials
            trials += 1
            return row.losses_during(lambda: ready.run(RATE_FPS, **conditions, **chosen))

        for conditions in ({}, {"frame_sizes": (1518,)}):
            result = valid(lambda given=conditions: run(given))
            assert not any((result.dut_losses or {}).values())
            for counts in result.directions().values():
                assert counts.sent == counts.received == counts.intended == RATE_FPS // 2
                assert (counts.duplicates, counts.corrupted, counts.stale) == (0, 0, 0)
    return trials


@pytest.mark.parametrize("name", STATELESS)
def test_two_ends_pass_both_versions_and_all_networks_and_count_to_the_frame(name: str) -> None:
    packets = ROUTED6 if KINDS[name].version == 6 else ROUTED
    with lab.bring_up(name, {}) as made:
        with stations_of(made, MACS) as both:
            for source, destination, side in packets:
                received = both.exchange(side, [udp(source, destination)], expected=1, wait_s=30)
                assert len(received) == 1, (source, destination, passed(made))
                assert_carries(received[0], source, destination)
        before = passed(made)
        trials = assert_nothing_is_lost(made, networks=256)
        after = passed(made)
        for way in LEFT_AND_RIGHT:
            more = after[way] - before[way] - trials * RATE_FPS // 2
            assert more in (range(5) if name == "wireguard" else (0,)), "to the frame, but for its own messages"
        if name == "ipip":
            assert_a_loss_is_its_dut_s(made)


def assert_a_loss_is_its_dut_s(made: dict[str, Any]) -> None:
    rules = 'table inet lossy { chain lossy { type filter hook forward priority 0; oifname "dr" drop; }; }'
    in_guest(made, 1, "nft", rules)
    with bench_on(made) as ready:
        row = dut.of_setup(ready.setup)
        result = valid(lambda: row.losses_during(lambda: ready.run(RATE_FPS)), LOSS_IS_CERTAIN)
    lost = {"right end: not_forwarded": RATE_FPS // 2}
    assert result.dut_losses == {Direction.FORWARD: lost, Direction.REVERSE: {}}


@pytest.mark.parametrize("name", SINGLE)
def test_the_left_end_alone_and_the_tester_understand_each_other(name: str) -> None:
    outer, layers = SINGLE[name]
    source, destination = NATIVE6 if KINDS[name].version == 6 else ("198.18.0.2", "198.19.0.2")
    with lab.bring_up(name, {"end": "left"}) as made:
        with stations_of(made, MACS) as both:
            [received] = both.exchange("left", [udp(source, destination)], expected=1, wait_s=30)
            assert layers_of(received) == layers
            assert (received[1].src, received[1].dst) == (outer.dst, outer.src)
            assert_carries(received[1].payload if name != "gre" else received[GRE].payload, source, destination)
            [received] = both.exchange("right", [outer / udp(destination, source)], expected=1, wait_s=30)
            assert_carries(received, destination, source)
        assert_nothing_is_lost(made)


def passes(both: Stations, side: str, packet: Packet) -> list[Packet]:
    """What arrives of it."""
    return both.exchange(side, [packet], expected=1, wait_s=30)


def test_the_aftr_translates_and_counts_connections() -> None:
    with lab.bring_up("ds-lite", {"table": "4096", "udp_timeout_s": "90"}) as made:
        with stations_of(made, MACS) as both:
            [forward] = passes(both, "left", udp("198.18.0.2", "198.19.0.2"))
            assert_carries(forward, made["dut"][1]["outside"][0], "198.19.0.2")
            answer = udp("198.19.0.2", forward[IP].src)
            answer[UDP].sport, answer[UDP].dport = forward[UDP].dport, forward[UDP].sport
            [back] = passes(both, "right", answer)
            assert (back[IP].dst, back[UDP].dport) == ("198.18.0.2", 49184)
            stray = udp("198.19.0.2", made["dut"][1]["outside"][0])
            stray[UDP].dport = 9
            assert both.exchange("right", [stray], expected=1, wait_s=1) == []
        assert made["dut"][1]["conntrack_max"] == 4096
        assert in_guest(made, 1, "cat", "/proc/sys/net/netfilter/nf_conntrack_max").split() == ["4096"]
        assert made["stateful"] == {"timeout_s": 90}
        with bench_on(made) as ready:
            row = dut.of_setup(ready.setup)
            assert row.losses_during(lambda: ready.run(RATE_FPS, directions="forward")).worst_loss_ratio == 0
            assert (row.count_connections() or 0) > 1
            row.clear_connections()
            assert row.count_connections() == 0
        lost = subprocess.run(made["dut"][1]["commands"]["losses"], capture_output=True, text=True, check=True)
    assert sorted(lost.stdout.splitlines()) == ["forward conntrack_drop 0", "reverse no_connection 1"]


def test_a_reset_of_the_guest_stops_both_ends_for_its_time() -> None:
    packet = udp("198.18.0.2", "198.19.0.2")
    with lab.bring_up("ipip", {"reset_s": "3"}) as made, stations_of(made, MACS) as both:
        assert passes(both, "left", packet)
        assert ["commands" in one for one in made["dut"]] == [True, False]
        with subprocess.Popen(made["dut"][0]["commands"]["reset"]) as reset:
            while both.exchange("left", [packet], expected=1, wait_s=0.5):
                assert reset.poll() is None, "nothing stopped"
        assert reset.returncode == 0
        before = passed(made)
        assert passes(both, "left", packet)
        assert passed(made) == {**before, Direction.FORWARD: before[Direction.FORWARD] + 1}
