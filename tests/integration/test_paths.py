# SPDX-License-Identifier: Apache-2.0
"""DUTs with four ports that none of the project's code made (four_ports.sh): the kernel's router and
bridge. Root only."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.factory import engine_on
from dutperf.model import Direction, TrialResult
from dutperf.results import beside
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from plans import make_trial
from printed import printed
from undisturbed import LOSS_IS_CERTAIN, valid

from .test_commands import dutperf

pytestmark = pytest.mark.root
BY_HAND = Path(__file__).with_name("four_ports.sh")
NAMES = "abcd"


def by_hand(what: str, name: str, *arguments: object) -> None:
    subprocess.run([BY_HAND, what, name, *map(str, arguments)], check=True)


@contextmanager
def made(kind: str) -> Iterator[str]:
    """The tester's namespace beside a DUT."""
    name = f"four-{secrets.token_hex(3)}"
    try:
        by_hand(kind, name)
        yield name
    finally:
        by_hand("down", name)


def mapping(kind: str, name: str, paths: Any, driver: str = "") -> dict[str, Any]:
    """The ports of a router have networks of their own; those of a bridge are all in one."""
    own = {
        "router": lambda number: {"ipv4": f"198.18.{number}.2/24", "gateway4": f"198.18.{number}.1"},
        "bridge": lambda number: {"ipv4": f"198.18.0.{number + 2}/24"},
    }[kind]
    ports = {port: {"port": f"{driver}{port}", "version": 4, **own(number)} for number, port in enumerate(NAMES)}
    return {"engine": {"netns": name}, "ports": ports, "paths": paths}


def run(kind: str, name: str, paths: Any, *, driver: str = "", rate_fps: int = 500, **conditions: Any) -> TrialResult:
    """A trial of which the tester is sure."""
    setup = configuration.parse(mapping(kind, name, paths, driver), "by hand")
    chosen = SingleTrial(**({"duration_s": 1, "drain_s": 0.3} | conditions))
    with engine_on(setup, 1518) as tester:
        return valid(lambda: tester.run(make_trial(setup, chosen, 64, rate_fps, 1)), LOSS_IS_CERTAIN)


def in_dut(name: str, *command: str) -> Any:
    done = subprocess.run(["ip", "netns", "exec", f"{name}-dut", *command], check=True, capture_output=True, text=True)
    return printed(done)


def counted(name: str) -> dict[str, int]:
    """Packets by named counter of the DUT, since the last call."""
    found = in_dut(name, "nft", "-j", "reset", "counters")["nftables"]
    return {one["counter"]["name"]: int(one["counter"]["packets"]) for one in found if "counter" in one}


def dropped(name: str) -> int:
    """Frames that the router says it dropped."""
    found = in_dut(name, "nft", "-j", "list", "counters")
    return int(next(one["counter"]["packets"] for one in found["nftables"] if "counter" in one))


def received_by_dut(name: str) -> dict[str, int]:
    """Frames that each port of the DUT received, by the kernel's count."""
    return {
        link["ifname"].removeprefix("d"): link["stats64"]["rx"]["packets"]
        for link in in_dut(name, "ip", "-json", "-s", "link")
        if link["ifname"] in {f"d{port}" for port in NAMES}
    }


@pytest.mark.parametrize(
    "driver",
    [pytest.param("", id="af_xdp"), pytest.param("af_packet:", id="af_packet", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("kind", ["router", pytest.param("bridge", marks=pytest.mark.long)])
def test_a_mesh_of_four_ports_loses_nothing(kind: str, driver: str) -> None:
    with made(kind) as name:
        result = run(kind, name, "mesh", driver=driver, frame_timeout_ms=300)
        directions = result.directions()
        assert set(directions) == {f"{one}->{other}" for one in NAMES for other in NAMES if one != other}
        assert {(counts.sent, counts.received) for counts in directions.values()} == {(500, 500)}
        assert not any(counts.misdelivered for counts in directions.values()), "the bridge knows where each port is"
        assert all(counts.delay_us is not None and counts.delay_us.max < 300_000 for counts in directions.values())
        # learning frames, ARP and repeated trials come on top
        assert all(frames >= 1500 for frames in received_by_dut(name).values())


def test_pairs_of_ports() -> None:
    with made("router") as name:
        before = received_by_dut(name)
        result = run("router", name, ["a->b", "c<->d"], rate_fps=1000)
        assert [counts.received for counts in result.directions().values()] == [1000] * 3
        after = received_by_dut(name)
        assert after["b"] - before["b"] < 100, "nothing is sent from b but ARP"
        assert after["a"] - before["a"] >= 1000


def test_the_losses_of_a_path_are_those_that_the_router_counts() -> None:
    with made("router") as name:
        by_hand("lose", name, "c", "a", 7)
        setup = configuration.parse(mapping("router", name, "mesh"), "by hand")
        with engine_on(setup, 1518) as tester:

            def one() -> TrialResult:
                before = dropped(name)
                result = tester.run(make_trial(setup, SingleTrial(duration_s=1, drain_s=0.3), 64, 700, 1))
                assert result.directions()[Direction("c->a")].lost == dropped(name) - before
                return result

            lost = {path: counts.lost for path, counts in valid(one, LOSS_IS_CERTAIN).directions().items()}
        assert lost.pop(Direction("c->a")) == 100
        assert set(lost.values()) == {0}


def test_frames_that_leave_by_a_wrong_port_are_found_there() -> None:
    with made("bridge") as name:
        by_hand("astray", name, "d", "b")
        result = run("bridge", name, "mesh")
        for path, counts in result.directions().items():
            assert counts.received == (0 if path.endswith("->d") else 500), path
            # a bridge sends no frame back to where it came from
            assert counts.misdelivered == ({"b": 500} if path in ("a->d", "c->d") else None), path
        assert list(beside.of_trial(result)) == ["a->d: 500 at the b port", "c->d: 500 at the b port"]


ASKED = {"broadcast": 9, "management": 161, "routing-updates": 520}
"""UDP port of the frames of each modifier."""


def test_the_router_gets_the_additional_frames_of_each_port() -> None:
    """Broadcasts with each path, routing updates with the first one from a port, queries with the first of all."""
    rules = {f"{port}_{udp}": f'iifname "d{port}" udp dport {udp}' for port in NAMES for udp in ASKED.values()}
    seen: list[dict[str, int]] = []
    with made("router") as name:
        counters = "\n".join(f"counter {one} {{ }}" for one in rules)
        chain = "\n".join(f"{match} counter name {one}" for one, match in rules.items())
        text = f"table ip asked {{\n{counters}\nchain c {{\ntype filter hook prerouting priority raw\n{chain}\n}}\n}}"
        load = ["ip", "netns", "exec", f"{name}-dut", "nft", "-f", "-"]
        subprocess.run(load, input=text, text=True, check=True, timeout=10)
        setup = configuration.parse(mapping("router", name, "mesh"), "by hand")
        chosen = SingleTrial(duration_s=1, drain_s=0.3, modifiers=tuple(ASKED))
        trial = make_trial(setup, chosen, 64, 500, 1)
        with engine_on(setup, 1518) as tester:

            def one() -> TrialResult:
                counted(name)
                result = tester.run(trial)
                seen.append(counted(name))
                return result

            result = valid(one, LOSS_IS_CERTAIN)
    sent = dict.fromkeys(rules, 0)
    for path, counts in result.directions().items():
        assert counts.received == counts.sent == 495
        for kind, of_kind in zip(trial.streams()[path].additional, counts.additional or (), strict=True):
            sent[f"{path.sending_port}_{ASKED[kind.name]}"] += of_kind.sent
    assert seen[-1] == sent
    assert sent == {one: {"9": 15, "520": 1, "161": int(one[0] == "a")}[one[2:]] for one in rules}


@pytest.mark.long
def test_a_bridge_that_floods_delivers_copies_elsewhere() -> None:
    """Without learning it sends each frame out of all ports: none is lost, and none is well delivered."""
    with made("hub") as name:
        result = run("bridge", name, ["a->b", "c<->d"])
        counts = result.directions()
        assert {one.received for one in counts.values()} == {500}
        assert counts[Direction("a->b")].misdelivered == {"c": 500, "d": 500}
        assert counts[Direction("c->d")].misdelivered == {"a": 500, "b": 500}


@pytest.mark.long
def test_the_commands_show_paths_and_their_sum(tmp_path: Path) -> None:
    with made("router") as name:
        file = tmp_path / "bed.yaml"
        file.write_text(json.dumps(mapping("router", name, "mesh")))
        common = ["--config", str(file), "--frame-size", "64", "--duration", "0.5", "--drain", "0.3"]
        shown = dutperf("trial", *common, "--rate", "500", "--out", str(tmp_path / "trial"))
        assert "12 paths in sum" in shown.stdout, shown.stdout + shown.stderr
        assert "d->c" in shown.stdout
        search = ["--max-rate", "2000", "--min-rate", "500", "--resolution", "500", "--repetitions", "1"]
        done = dutperf("throughput", *common, *search, "--json", "--out", str(tmp_path / "throughput"))
        assert done.returncode == 0, done.stdout + done.stderr
        [point] = printed(done)["points"]
        if point["throughput_fps"]["median"] is not None:
            assert point["in_sum_fps"] == pytest.approx(12 * point["throughput_fps"]["median"])
            assert len(point["paths"]) == 12
        refused = dutperf("trial", *common, "--rate", "500", "--connections", "100")
        assert refused.returncode == 2
        assert (
            "connections and more than two ports (ports) exclude each other: there is one Initiator and one Responder"
            in " ".join(refused.stderr.split())
        )
        done = dutperf(
            "ramp", *common[:4], "--from", "100", "--to", "500", "--over", "1", "--repetitions", "1", "--json"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        [point] = printed(done)["points"]
        assert len(point["parts"][0]["sent"]) == 12
