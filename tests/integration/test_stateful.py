# SPDX-License-Identifier: Apache-2.0
"""Stateful measurements through the kernel's NAT and the reference DUT: the counts agree with the DUT's own,
a table that is too small is found by validation, and a reference DUT is read as it is set. Root only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dutperf
from dutperf.lab import conntrack
from dutperf.model import TrialResult, Verdict
from dutperf.setup.conditions import SingleTrial
from kernel_frames import others
from undisturbed import LOSS_IS_CERTAIN, until, valid

from .test_by_hand import SIDES, made
from .test_paths import counted

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

NATS = [
    "nft-nat44",
    "refdut-nat64",
    *(pytest.param(name, marks=pytest.mark.long) for name in ("refdut-nat44", "tayga-nat64")),
]


def with_connections(connections: int, **members: Any) -> SingleTrial:
    """Conditions of a short trial."""
    times: dict[str, Any] = {"duration_s": 0.5, "drain_s": 0.3} | members
    return SingleTrial(connections=connections, preliminary_rate="10k", **times)


def traffic(name: str, connections: int, **members: Any) -> TrialResult:
    """Stateful traffic through a lab."""
    with dutperf.bench(lab=name) as bench:
        return valid(
            lambda: bench.trial("4k", with_connections(connections, **members)),
            LOSS_IS_CERTAIN,
        )


@pytest.mark.parametrize("name", NATS)
def test_every_connection_of_a_nat_carries_frames_in_both_directions(name: str) -> None:
    result = traffic(name, 2_000)
    assert result.verdict is Verdict.VALID
    assert result.connections is not None
    assert (result.connections.learned, result.connections.remapped, result.connections.lost) == (2_000, 0, 0)
    assert result.dut_connections == 2_000
    for counts in result.directions().values():
        assert (counts.sent, counts.received, counts.corrupted) == (2_000, 2_000, 0)
        assert others(counts).keys() <= {"icmpv6_other"}  # reports of multicast groups, at any time


SEEN = """table ip seen {
  set networks { type ipv4_addr; flags dynamic; size 1024; }
  chain outward {
    type filter hook forward priority 5; policy accept;
    iifname "dl" meta l4proto udp add @networks { ip daddr }
  }
}"""


@pytest.mark.parametrize("frame", [None, pytest.param("ip(dscp=46)/udp", marks=pytest.mark.long)])
def test_connections_through_a_nat_lead_to_several_networks(frame: str | None) -> None:
    with dutperf.bench(lab="nft-nat44") as bench:
        netns = str(bench.setup.engine.netns).removesuffix("tester") + "dut"
        nft = ["ip", "netns", "exec", netns, "nft"]
        subprocess.run([*nft, "-f", "-"], input=SEEN, text=True, check=True, timeout=10)
        result = valid(
            lambda: bench.trial("4k", with_connections(2_000, networks=16, frame=frame)),
            LOSS_IS_CERTAIN,
        )
        listed = subprocess.run(
            [*nft, "-j", "list", "set", "ip", "seen", "networks"], check=True, capture_output=True, text=True
        )
    [found] = [one["set"]["elem"] for one in json.loads(listed.stdout)["nftables"] if "set" in one]
    assert set(found) == {f"198.19.{number}.2" for number in range(16)}
    assert result.connections is not None
    assert (result.connections.learned, result.connections.remapped, result.connections.lost) == (2_000, 0, 0)
    assert result.dut_connections == 2_000
    assert {(counts.sent, counts.received) for counts in result.directions().values()} == {(2_000, 2_000)}


FORWARDED = """table inet forwarded {
  counter outward { }
  counter inward { }
  chain seen {
    type filter hook forward priority 0; policy accept;
    meta l4proto != udp accept
    iifname "west" oifname "east" counter name outward
    iifname "east" oifname "west" counter name inward
  }
}"""


@pytest.mark.parametrize("initiator", [None, pytest.param("outside", marks=pytest.mark.long)])
def test_named_ports_open_the_connections_that_a_nat_made_by_hand_counts(initiator: str | None) -> None:
    with made("nat") as name:
        in_dut = ["ip", "netns", "exec", f"{name}-dut"]
        subprocess.run([*in_dut, "nft", "-f", "-"], input=FORWARDED, text=True, check=True, timeout=10)
        config = {
            "engine": {"netns": name},
            "ports": {"inside": SIDES["router"]["left"], "outside": SIDES["router"]["right"]},
            "paths": ["inside->outside", "outside->inside"],
            "stateful": {"initiator": initiator},
            "dut": {
                "commands": {
                    "clear_connections": [*in_dut, sys.executable, "-I", "-S", conntrack.__file__, "clear"],
                    "count_connections": [*in_dut, "cat", str(conntrack.COUNT)],
                }
            },
        }
        seen: list[dict[str, int]] = []
        with dutperf.bench(config=config) as bench:

            def run() -> TrialResult:
                counted(name)
                result = bench.trial("4k", with_connections(2_000))
                seen.append(counted(name))
                return result

            result = valid(run, LOSS_IS_CERTAIN)
    assert result.connections is not None
    assert (result.connections.learned, result.connections.remapped, result.connections.lost) == (2_000, 0, 0)
    assert {path: (one.sent, one.received) for path, one in result.directions().items()} == {
        "inside->outside": (2_000, 2_000),
        "outside->inside": (2_000, 2_000),
    }
    both_phases = "inward" if initiator else "outward"
    assert seen[-1] == {"outward": 2_000, "inward": 2_000} | {both_phases: 4_000}
    assert result.dut_connections == 2_000


def test_a_dut_that_maps_connections_anew_is_found_out() -> None:
    """Whether the trial is valid does not matter here: frames that are lost as well change little."""
    with dutperf.bench(lab="refdut-nat44", lab_options={"remap_every": "5"}) as bench:
        result = until(
            lambda: bench.trial("4k", with_connections(200)),
            lambda result: result.connections is not None and result.connections.remapped > 100,
            lambda result: str([cause.text for cause in result.causes]),
        )
    assert result.connections is not None
    assert result.connections.remapped <= 200


def test_a_table_that_is_too_small_is_no_loss() -> None:
    with dutperf.bench(lab="refdut-nat44", lab_options={"connections": "1500"}) as bench:
        result = until(
            lambda: bench.trial("4k", with_connections(2_000)),
            lambda result: {cause.code for cause in result.causes} == {"not_opened"},
            lambda result: str(result.causes),
        )
    assert result.dut_connections == 1_500
    assert "learned 1,500 of 2,000" in result.causes[0].text


def test_evicted_connections_are_told_apart_from_lost_frames() -> None:
    with dutperf.bench(lab="refdut-nat44", lab_options={"connections": "1500", "when_full": "evict"}) as bench:
        result = until(
            lambda: bench.trial("4k", with_connections(2_000, directions="reverse")),
            lambda result: result.verdict is Verdict.VALID and result.connections_probed is not None,
            lambda result: str([cause.text for cause in result.causes]),
        )
    assert result.reverse is not None
    assert result.connections is not None
    assert result.reverse.lost > 0
    assert result.connections_probed is not None
    assert result.connections_gone is not None
    assert 0 < result.connections_gone == result.connections_probed == result.connections.lost <= 500


@pytest.mark.long
@pytest.mark.parametrize(("capacity", "when_full"), [(1_234, "refuse"), (700, "evict")])
def test_the_capacity_of_the_reference_dut_is_read_exactly(tmp_path: Path, capacity: int, when_full: str) -> None:
    def measured() -> Any:
        options = {"connections": str(capacity), "when_full": when_full}
        with dutperf.bench(lab="refdut-nat44", lab_options=options) as bench:
            out = tmp_path / str(len(list(tmp_path.iterdir())))
            search = dutperf.TableCapacity(
                first_connections=500,
                capacity_error=1,
                max_rate="20k",
                resolution="50%",
                repetitions=1,
                drain_s=0.1,
            )
            results = bench.measure(search, out)
            return results["table-capacity"].summary.points[0]

    point = until(measured, lambda point: point.limited_by == "dut", lambda point: point.message, fewest=2)
    assert point.capacity.median == capacity
