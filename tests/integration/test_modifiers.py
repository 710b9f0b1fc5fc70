# SPDX-License-Identifier: Apache-2.0
"""Measurements under modifiers (RFC 2544 section 11, RFC 5180 5.3 and 6) through the kernel's router, whose
own counters say what it got. Root only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dutperf import dut
from dutperf.frames.additional import reply_error
from dutperf.model import AdditionalCounts, Direction, TrialResult
from undisturbed import LOSS_IS_CERTAIN, valid

from .measuring import Bench, bench
from .test_described_frames import all_arrived, by_hand, mac, trial_of

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]
RATE_FPS = 2000


def load(on: Bench, rules: str) -> None:
    """Replace the DUT's table ``seen``."""
    command = ["ip", "netns", "exec", on.dut_netns, "nft", "-f", "-"]
    empty = "table inet seen { }\ndelete table inet seen\n"
    subprocess.run(command, input=f"{empty}table inet seen {{\n{rules}\n}}\n", text=True, check=True, timeout=10)


def packets(on: Bench, chain: str, table: str = "filters") -> list[int]:
    """Packets that each rule of a chain with a counter has counted."""
    listed = json.loads(on.in_dut("nft", "--json", "list", "chain", "inet", table, chain))
    rules = [one["rule"]["expr"] for one in listed["nftables"] if "rule" in one]
    return [part["counter"]["packets"] for rule in rules for part in rule if "counter" in part]


def run_with_filters(filters: int, chain: str, **conditions: Any) -> tuple[TrialResult, list[int]]:
    """A valid trial, and what the filters of the left port have counted in it."""
    version = chain[-1]
    counted: list[tuple[TrialResult, list[int]]] = []
    with bench(f"kernel-ipv{version}") as ready:

        def attempt() -> TrialResult:
            with dut.of_setup(ready.setup).filtered(filters) as device:
                assert len(device.identity()["filters"]) > 4 * filters
                counted.append((ready.run(RATE_FPS, **conditions), packets(ready, chain)))
            return counted[-1][0]

        result = valid(attempt, LOSS_IS_CERTAIN)
        assert "table inet filters" not in ready.in_dut("nft", "list", "ruleset")
    return result, next(found for one, found in counted if one is result)


@pytest.mark.parametrize("filters", [pytest.param(1, marks=pytest.mark.long), 25])
def test_every_frame_meets_all_filters_and_the_last_one_permits_it(filters: int) -> None:
    result, counted = run_with_filters(filters, "from_dl_4")
    assert all(all_arrived(counts) for counts in result.directions().values())
    assert counted == [0] * (filters - 1) + [result.directions()[Direction.FORWARD].sent, 0]


@pytest.mark.long
def test_frames_with_the_addresses_of_a_filter_are_denied_by_it() -> None:
    frame = "ipv4(source=198.18.7.7,destination=198.19.107.7)/udp"
    result, counted = run_with_filters(25, "from_dl_4", frame=frame, directions="forward")
    sent = result.directions()[Direction.FORWARD].sent
    assert result.directions()[Direction.FORWARD].lost == sent > 0
    assert counted == [0] * 6 + [sent] + [0] * 19


@pytest.mark.parametrize(
    "headers",
    [
        "routing+destination+fragment",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("hop-by-hop", "routing", "destination")),
    ],
)
def test_frames_with_extension_headers_pass_the_filters_of_ipv6(headers: str) -> None:
    result, counted = run_with_filters(25, "from_dl_6", modifiers=(f"extension-header:{headers}",))
    assert all(all_arrived(counts) for counts in result.directions().values())
    assert counted == [0] * 24 + [result.directions()[Direction.FORWARD].sent, 0]


@pytest.mark.parametrize(
    ("header", "number"),
    [
        ("hop-by-hop", 0),
        ("fragment", 44),
        ("esp", 50),
        *(
            pytest.param(header, number, marks=pytest.mark.long)
            for header, number in (("destination", 60), ("authentication", 51), ("mobility", 135))
        ),
    ],
)
def test_the_router_sees_the_extension_header_in_as_many_frames_as_asked_for(header: str, number: int) -> None:
    rule = f'iifname "dl" meta protocol ip6 @nh,48,8 {number} counter'
    counted: list[tuple[TrialResult, int]] = []
    with bench("kernel-ipv6") as ready:

        def attempt() -> TrialResult:
            load(ready, f"chain forwarded {{\ntype filter hook forward priority -5\n{rule}\n}}")
            result = ready.run(RATE_FPS, modifiers=(f"extension-header:{header}:10%",))
            counted.append((result, *packets(ready, "forwarded", "seen")))
            return result

        result = valid(attempt)
    seen = next(found for one, found in counted if one is result)
    forward = result.directions()[Direction.FORWARD]
    assert all_arrived(forward)
    assert seen * 10 == forward.sent > 0
    assert forward.kinds is not None
    assert [kind.sent for kind in forward.kinds] == [forward.sent - seen, seen]


# --- frames beside the test frames ----------------------------------------------------------------


def seen(matches: dict[str, str]) -> str:
    """Rules that count what the DUT gets, and what it forwards, by these matches."""
    rules = "\n".join(f"{match} counter" for match in matches.values())
    hooks = {"came": "prerouting", "forwarded": "forward", "sent": "postrouting"}
    return "\n".join(
        f"chain {name} {{\ntype filter hook {hook} priority -5\n{rules}\n}}" for name, hook in hooks.items()
    )


def run_and_count(on: Bench, matches: dict[str, str], **conditions: Any) -> tuple[TrialResult, dict[str, list[int]]]:
    """A valid trial, and what the DUT counted in it by each of the matches, in each chain of :func:`seen`."""
    counted: list[tuple[TrialResult, dict[str, list[int]]]] = []

    def attempt() -> TrialResult:
        load(on, seen(matches))
        result = on.run(RATE_FPS, **conditions)
        counted.append((result, {chain: packets(on, chain, "seen") for chain in ("came", "forwarded", "sent")}))
        return result

    result = valid(attempt)
    return result, next(found for one, found in counted if one is result)


def additional(result: TrialResult, direction: Direction) -> list[AdditionalCounts]:
    return list(result.directions()[direction].additional or ())


def test_broadcasts_reach_the_router_which_does_not_forward_them() -> None:
    matches = {
        name: f'iifname "{port}" meta pkttype broadcast ip daddr 255.255.255.255 udp dport 9'
        for name, port in (("forward", "dl"), ("reverse", "dr"))
    }
    with bench("kernel-ipv4") as ready:
        result, counted = run_and_count(ready, matches, modifiers=("broadcast",), duration_s=1)
    assert counted == {"came": [RATE_FPS // 100] * 2, "forwarded": [0, 0], "sent": [0, 0]}
    for direction, counts in result.directions().items():
        assert all_arrived(counts)
        assert counts.sent + RATE_FPS // 100 == RATE_FPS
        [broadcasts] = additional(result, direction)
        assert broadcasts == AdditionalCounts(intended=RATE_FPS // 100, sent=RATE_FPS // 100, received=0, replies=0)


@pytest.mark.parametrize("headers", [{}, {"frame": "vlan(id=10)/ip/udp"}], ids=["untagged", "VLAN 10"])
def test_a_bridge_floods_broadcasts_which_are_counted_apart(headers: dict[str, Any]) -> None:
    """They are behind the tags of the test frames: the bridge forwards no others."""
    with by_hand("bridge") as name:
        if headers:
            rules = "table bridge vlans { chain c { type filter hook forward priority 0; ether type != 8021q drop; }; }"
            subprocess.run(["ip", "netns", "exec", f"{name}-dut", "nft", rules], check=True)
        sides = {
            "left": {"port": "af_packet:eth1", "version": 4, "ipv4": "198.18.0.2/15"},
            "right": {"port": "af_packet:eth2", "version": 4, "ipv4": "198.19.0.2/15"},
        }
        for side, opposite in (("left", "eth2"), ("right", "eth1")):
            sides[side]["gateway_mac"] = mac(name, opposite)
        result = trial_of({"engine": {"netns": name}, **sides}, modifiers=("broadcast", "routing-updates"), **headers)
    for direction, counts in result.directions().items():
        assert all_arrived(counts)
        broadcasts, updates = additional(result, direction)
        assert broadcasts.received == broadcasts.sent == counts.sent // 99 > 0
        assert (updates.sent, updates.received) == (1, 1)


RESPONDER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as agent:
    agent.bind((sys.argv[1], 161))
    print("ready", flush=True)
    while True:
        request, asking = agent.recvfrom(2000)
        agent.sendto(request.replace(b"public\\xa0", b"public\\xa2", 1), asking)
"""
"""An SNMP agent that answers every GetRequest with a response for the same variables."""


@contextmanager
def agent(on: Bench, address: str) -> Iterator[None]:
    """An SNMP agent in the DUT."""
    command = ["ip", "netns", "exec", on.dut_netns, sys.executable, "-c", RESPONDER, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("version", "address", "match"),
    [
        pytest.param(4, "198.18.0.1", "ip daddr 198.18.0.1 udp dport 161", marks=pytest.mark.long),
        (6, "2001:2::1", "ip6 daddr 2001:2::1 udp dport 161"),
    ],
)
def test_a_query_a_second_is_answered_by_the_dut(version: int, address: str, match: str) -> None:
    with bench(f"kernel-ipv{version}") as ready, agent(ready, address):
        result, counted = run_and_count(ready, {"query": match}, modifiers=("management",), duration_s=2.5)
    assert counted["came"] == [3]
    assert all(all_arrived(counts) for counts in result.directions().values())
    [queries] = additional(result, Direction.FORWARD)
    assert (queries.intended, queries.sent, queries.received, queries.replies) == (3, 3, 0, 3)
    assert queries.last_reply is not None
    assert reply_error(bytes.fromhex(queries.last_reply)) is None
    assert additional(result, Direction.REVERSE) == []


def test_queries_to_a_dut_without_an_agent_are_not_answered() -> None:
    with bench("kernel-ipv4") as ready:
        result, _ = run_and_count(ready, {"query": "udp dport 161"}, modifiers=("management",), directions="reverse")
    [queries] = additional(result, Direction.REVERSE)
    assert (queries.sent, queries.replies, queries.last_reply) == (1, 0, None)
    assert all_arrived(result.directions()[Direction.REVERSE])


@pytest.mark.parametrize(
    ("version", "match"),
    [
        (4, "ip daddr 224.0.0.9 udp dport 520"),
        pytest.param(6, "ip6 daddr ff02::9 udp dport 521", marks=pytest.mark.long),
    ],
)
def test_routing_updates_reach_the_router(version: int, match: str) -> None:
    matches = {port: f'iifname "{port}" {match}' for port in ("dl", "dr")}
    with bench(f"kernel-ipv{version}") as ready:
        result, counted = run_and_count(ready, matches, modifiers=("routing-updates",))
    assert counted == {"came": [1, 1], "forwarded": [0, 0], "sent": [0, 0]}
    for direction, counts in result.directions().items():
        assert all_arrived(counts)
        [updates] = additional(result, direction)
        assert (updates.intended, updates.sent, updates.received) == (1, 1, 0)


def test_beside_a_tunnel_they_are_those_of_the_link() -> None:
    """The right port is an end of VXLAN over IPv6, in which nobody hears a broadcast."""
    matches = {
        "broadcasts": 'iifname "dl" ip daddr 255.255.255.255 udp dport 9',
        "rip": 'iifname "dl" ip daddr 224.0.0.9 udp dport 520',
        "ripng": 'iifname "dr" ip6 daddr ff02::9 udp dport 521',
        "query": 'iifname "dr" ip6 daddr 2001:2:0:4000::1 udp dport 161',
    }
    with bench("vxlan", {"end": "left"}) as ready, agent(ready, "2001:2:0:4000::1"):
        result, counted = run_and_count(ready, matches, modifiers=("broadcast", "routing-updates"), duration_s=1)
        asked, seen_asked = run_and_count(ready, matches, modifiers=("management",), directions="reverse")
    assert counted["came"] == [RATE_FPS // 100, 1, 1, 0]
    assert all(all_arrived(counts) for counts in result.directions().values())
    assert seen_asked["came"] == [0, 0, 0, 1]
    [queries] = additional(asked, Direction.REVERSE)
    assert (queries.sent, queries.replies) == (1, 1)
    assert queries.last_reply is not None
    assert reply_error(bytes.fromhex(queries.last_reply)) is None
