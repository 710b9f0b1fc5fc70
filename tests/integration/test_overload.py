# SPDX-License-Identifier: Apache-2.0
"""Overload scalability of DUTs that are known to do worse with many flows: the share is told within a point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dutperf import lab
from dutperf.lab.netns import Namespace, run
from printed import printed
from undisturbed import until

from .test_commands import dutperf

pytestmark = pytest.mark.root
EACH = pytest.mark.parametrize("apart", [(), ("--flows-apart", "0.01")], ids=["together", "one after the other"])

MEASURED = ["--directions", "forward", "--duration", "1", "--drain", "0.3", "--resolution", "5", "--repetitions", "1"]
FIRST_PORT = 5000
LIMITS = """
table ip overload {{
  chain forward {{
    type filter hook forward priority 10;
    udp sport {first} limit rate over {of_one}/second burst 20 packets drop
    udp sport != {first} limit rate over {of_others}/second burst 20 packets drop
  }}
}}
"""


def shares(tmp_path: Path, *arguments: str) -> dict[int, float | None]:
    """By how much the throughput of each number of flows is worse, in per cent; measured again where the tester was the
    limit, as on a busy machine."""
    runs: list[Path] = []

    def measure() -> dict[str, Any]:
        runs.append(tmp_path / f"run{len(runs)}")
        done = dutperf("overload", "throughput", *arguments, *MEASURED, "--json", "--out", str(runs[-1]))
        summary: dict[str, Any] = printed(done)
        return summary

    def by_dut(summary: dict[str, Any]) -> bool:
        points = [point for one in summary["measurements"] for point in one["summary"]["points"]]
        return all(point["limited_by"] == "dut" for point in points)

    found = until(measure, by_dut, lambda summary: json.dumps(summary["overload"]))
    assert "Overload scalability" in (runs[-1] / "report.html").read_text()
    return {one["flows"]: one["percent"] for one in found["overload"]}


CACHE = {"flow_cache": 30, "queue": 20}


def refdut(**options: object) -> list[str]:
    given = (f"{key}={value}" for key, value in {**CACHE, **options}.items())
    return ["--lab", "refdut-ipv4", *(word for one in given for word in ("--lab-option", one))]


@EACH
@pytest.mark.long
def test_the_throughput_of_flows_that_do_not_fit_into_a_cache(tmp_path: Path, apart: tuple[str, ...]) -> None:
    """2,000 frames/s of known flows, 1,600 of others; in a second a queue of 20 frames takes 21 more."""
    dut = refdut(capacity_fps=2000, flow_miss_us=125)
    found = shares(tmp_path, *dut, "--flows", "80", "--max-rate", "3k", *apart)
    assert found == {80: pytest.approx(100 * 400 / 2021, abs=1)}


@EACH
@pytest.mark.long
def test_the_latency_of_flows_that_do_not_fit_into_a_cache(tmp_path: Path, apart: tuple[str, ...]) -> None:
    """A frame of a known flow is served in 40 ms, one of another in 48: 10 flows fit, 20 do not."""
    dut = refdut(capacity_fps=25, flow_cache=15, flow_miss_us=8000)
    rate = ["--rate", "20", "--tags", "80", "--tag-after", "0", "--duration", "4", "--drain", "0.3"]
    given = [*dut, *rate, "--directions", "forward", "--repetitions", "1", "--flows", "40", "--intermediate", *apart]
    runs: list[str] = []

    def measure() -> dict[int, float | None]:
        runs.append(str(tmp_path / f"run{len(runs)}"))
        overload = printed(dutperf("overload", "latency", *given, "--json", "--out", runs[-1]))["overload"]
        return {one["flows"]: one["percent"] for one in overload if one["figure"] == "forward.TL"}

    found = until(measure, lambda shares: len(shares) == 4 and None not in shares.values(), fewest=1)
    assert found == {flows: pytest.approx(20 if flows > 15 else 0, abs=1) for flows in (10, 20, 30, 40)}


@pytest.mark.long
def test_a_router_with_a_limit_for_one_flow_and_another_for_many(tmp_path: Path) -> None:
    """The kernel lets 2,000 frames/s of the first flow pass, and of all others together 1,500."""
    with lab.bring_up("kernel-ipv4", {}) as mapping:
        dut = Namespace(mapping["engine"]["netns"].removesuffix("tester") + "dut")
        dut.nft(LIMITS.format(first=FIRST_PORT, of_one=2000, of_others=1500))
        config = tmp_path / "lab.yaml"
        config.write_text(yaml.safe_dump(mapping))
        frame = f"ip/udp(source=increment({FIRST_PORT},by=flow))"
        found = shares(tmp_path, "--config", str(config), "--frame", frame, "--flows", "1000", "--max-rate", "3k")
    of_one, of_all = 2000 + 20, (1500 + 20) * 1000 / 999
    assert found == {1000: pytest.approx(100 * (of_one - of_all) / of_one, abs=1)}


@pytest.mark.parametrize("name", ["srv6-clients", "vxlan-clients"])
def test_many_clients_at_one_server(tmp_path: Path, name: str) -> None:
    """The frames of each client go through a tunnel of its own; the results name every DUT."""
    with lab.bring_up(name, {"clients": "3"}) as mapping:
        names = ["client 1", "client 2", "client 3", "server"]
        assert [one["name"] for one in mapping["dut"]] == names
        server = Namespace(mapping["engine"]["netns"].removesuffix("tester") + "dut4")
        config = tmp_path / "lab.yaml"
        config.write_text(yaml.safe_dump(mapping))
        found = printed(dutperf("trial", "--config", str(config), "--rate", "500", "--duration", "1", "--json"))
        assert [row["name"] for row in found["dut"]["row"]] == names
        for counts in found["paths"].values():
            assert (counts["sent"], counts["lost"]) == (500, 0)
        for link in ("d1", "d2", "d3"):
            [counted] = json.loads(run(server.command(["ip", "-s", "-j", "link", "show", link])))
            assert 500 <= counted["stats64"]["rx"]["packets"] < 520
