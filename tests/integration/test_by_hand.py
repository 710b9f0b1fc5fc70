# SPDX-License-Identifier: Apache-2.0
"""Somebody's own namespaces, which none of this project's code made (by_hand.sh), measured with as
little said as can be: where the ports are. Root only.

The long forms, on a machine that is left alone for some minutes, are in ``make truth``.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.factory import engine_on
from dutperf.exit_status import NO_NUMBER
from dutperf.model import Direction, TrialResult
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.tester import TesterError
from plans import make_trial
from printed import printed
from siitperf_files import ROUTER, TRANSLATOR, link_commands, with_lines
from undisturbed import LOSS_IS_CERTAIN, until, valid

from .test_commands import dutperf

pytestmark = pytest.mark.root
BY_HAND = Path(__file__).with_name("by_hand.sh")
DUT_CORE = max(os.sched_getaffinity(0))
SIDES: dict[str, dict[str, Any]] = {
    "router": {
        "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"},
        "right": {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
    },
    "tayga": {
        "left": {
            "port": "eth1",
            "version": 6,
            "ipv6": "2001:2::2/64",
            "gateway6": "2001:2::1",
            "seen_as": "198.18.0.2",
        },
        "right": {
            "port": "eth2",
            "version": 4,
            "ipv4": "198.19.0.2/24",
            "gateway4": "198.19.0.1",
            "seen_as": "2001:2:0:1000::2",
        },
    },
}
SMALLEST = {"router": 64, "tayga": 84}


def by_hand(what: str, name: str, *arguments: object) -> None:
    subprocess.run([BY_HAND, what, name, *map(str, arguments)], check=True)


@contextmanager
def made(kind: str, *core: int) -> Iterator[str]:
    """The tester's namespace beside a DUT."""
    name = f"hand-{secrets.token_hex(3)}"
    try:
        by_hand(kind, name, *core)
        yield name
    finally:
        by_hand("down", name)


def mapping(kind: str, name: str) -> dict[str, Any]:
    """A configuration that says nothing that need not be said."""
    return {"engine": {"netns": name}, **SIDES[kind]}


@contextmanager
def bench(kind: str, name: str, max_frame_size: int = 1518, **engine: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """The engine's environment, and one trial with forward traffic at a rate."""
    setup = configuration.parse(mapping(kind, name) | {"engine": {"netns": name, **engine}}, "by hand")
    with engine_on(setup, max_frame_size) as tester:

        def run(rate_fps: int, **conditions: Any) -> TrialResult:
            chosen = SingleTrial(**({"duration_s": 1, "drain_s": 0.3, "directions": "forward"} | conditions))
            return tester.run(make_trial(setup, chosen, SMALLEST[kind], rate_fps, 1))

        yield tester.environment(), run


def received(run: Callable[[], TrialResult]) -> int:
    """Of the first trial of which the tester is sure. Others' work on the DUT's core is nothing to
    a limit that is far below what the core can do."""
    return valid(run, LOSS_IS_CERTAIN).directions()[Direction.FORWARD].received


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core there is nothing to choose")
def test_a_router_whose_work_is_steered_is_kept_off_its_core() -> None:
    """Its limit and the bucket are known truth."""
    with made("router", DUT_CORE) as name:
        by_hand("limit", name, 5000, 100)
        with bench("router", name) as (environment, run):
            choice = environment["core_choice"]
            assert choice["dut"] == [DUT_CORE]
            assert len(choice["tester"]) == 1
            assert DUT_CORE not in choice["tester"]
            assert f"receive packet steering of west and east on core {DUT_CORE}" in choice["why"]
            assert [environment[side]["port"] for side in ("left", "right")] == ["af_xdp:eth1", "af_xdp:eth2"]
            assert received(lambda: run(20_000)) == pytest.approx(5100, rel=0.005)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core there is nothing to choose")
def test_a_router_that_works_where_frames_are_sent_gets_a_core_beside_it() -> None:
    with made("router") as name:
        by_hand("limit", name, 5000, 100)
        with bench("router", name) as (environment, run):
            assert environment["core_choice"]["dut"] == []
            assert len(environment["core_choice"]["tester"]) == 1
            assert "its kernel's work runs on the core of the sender" in environment["core_choice"]["why"]
            assert received(lambda: run(20_000)) == pytest.approx(5100, rel=0.005)


@pytest.mark.parametrize("core", [(), pytest.param((DUT_CORE,), marks=pytest.mark.long)], ids=["anywhere", "on a core"])
def test_tayga_is_found_and_loses_nothing_at_a_slow_rate(core: tuple[int, ...]) -> None:
    with made("tayga", *core) as name, bench("tayga", name) as (environment, run):
        why = environment["core_choice"]["why"]
        assert re.search(r"tayga \(\d+\) on " + (f"core {DUT_CORE}" if core else "any core"), why)
        assert environment["core_choice"]["dut"] == list(core)
        assert valid(lambda: run(2000, directions="both")).worst_loss_ratio == 0


def tp(directory: Path, name: str, text: str, arguments: str) -> subprocess.CompletedProcess[str]:
    """``siitperf-tp`` with DUTPERF_CORES=auto, on whatever cores this process may use."""
    (directory / "siitperf.conf").write_text(text)
    if not (directory / "build").exists():
        link_commands(directory)
    ours = {
        "DUTPERF_PORTS": "eth1,eth2",
        "DUTPERF_NETNS": name,
        "DUTPERF_CORES": "auto",
        "DUTPERF_LEARNING_REST": "0.1",
    }
    command = [str(directory / "build/siitperf-tp"), *arguments.split()]
    return subprocess.run(
        command, cwd=directory, env=os.environ | ours, capture_output=True, text=True, timeout=120, check=False
    )


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Sent and received frames by what the command calls them."""
    return {name: int(count) for name, count in re.findall(r"^(\w+ frames \w+): (\d+)", done.stdout, re.MULTILINE)}


def test_a_siitperf_command_reads_the_same_limit(tmp_path: Path) -> None:
    text = with_lines(ROUTER, "Reverse 0")
    with made("router", DUT_CORE) as name:
        by_hand("limit", name, 5000, 100)
        for _ in range(20):
            done = tp(tmp_path, name, text, "84 20000 1 300 2 2")
            assert done.returncode in (0, 3), done.stdout + done.stderr
            if of_tester := [
                line for line in done.stderr.splitlines() if "invalid" in line and "others took" not in line
            ]:
                continue
            break
        assert not of_tester
        assert lines(done)["Forward frames received"] == pytest.approx(5100, rel=0.005)


def arrived_at(namespace: str, interface: str) -> int:
    """Frames so far."""
    shown = ["ip", "-n", namespace, "-json", "-stats", "link", "show", interface]
    [link] = json.loads(subprocess.run(shown, check=True, capture_output=True).stdout)
    return int(link["stats64"]["rx"]["packets"])


@pytest.mark.parametrize("patience_s", ["60", "1"])
def test_a_trial_waits_for_a_router_that_forwards_late(tmp_path: Path, patience_s: str) -> None:
    config = tmp_path / "hand.yaml"
    with made("router") as name:
        config.write_text(json.dumps(mapping("router", name)), encoding="utf-8")
        forwarding = ["ip", "netns", "exec", f"{name}-dut", "sysctl", "-qw"]
        subprocess.run([*forwarding, "net.ipv4.ip_forward=0"], check=True)
        chosen = ["--rate", "500", "--duration", "0.3", "--drain", "0.1", "--dut-patience", patience_s]
        is_over = threading.Event()

        def begin_late() -> None:
            """Two seconds after the first trial."""
            while not is_over.wait(0.1) and arrived_at(f"{name}-dut", "west") < 100:
                pass
            if not is_over.wait(2):
                subprocess.run([*forwarding, "net.ipv4.ip_forward=1"], check=True)

        late = threading.Thread(target=begin_late)
        late.start()
        try:
            done = dutperf("trial", "--config", str(config), *chosen, "--json")
        finally:
            is_over.set()
            late.join()
    assert f"waiting for the DUT, {patience_s} s at most" in done.stderr
    if patience_s == "1":
        assert (done.returncode, "still forwards nothing after 1 s" in done.stderr) == (NO_NUMBER, True), done.stderr
    else:
        assert "forwards now after" in done.stderr
        assert all(printed(done)[way]["received"] for way in ("forward", "reverse"))


def xdp_programs(name: str) -> str:
    shown = subprocess.run(["ip", "-n", name, "link"], check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in shown.splitlines() if "xdp" in line)


def test_an_engine_that_is_killed_leaves_no_program_on_the_ports() -> None:
    with made("router") as name:
        with bench("router", name):
            assert xdp_programs(name).count("prog/xdp") == 2
            [engine] = [
                int(pid)
                for pid in subprocess.run(
                    ["ip", "netns", "pids", name], check=True, capture_output=True, text=True
                ).stdout.split()
            ]
            os.kill(engine, signal.SIGKILL)
            deadline = time.monotonic() + 30
            while xdp_programs(name) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert xdp_programs(name) == ""
        with bench("router", name) as (environment, _):
            assert environment["left"]["driver"] == "net_af_xdp"


def set_mtu(name: str, mtu: int) -> None:
    for namespace, ports in ((name, ("eth1", "eth2")), (f"{name}-dut", ("west", "east"))):
        for port in ports:
            subprocess.run(["ip", "-n", namespace, "link", "set", port, "mtu", str(mtu)], check=True)


@pytest.mark.parametrize(
    ("size", "driver"),
    [(1796, "net_af_xdp"), (1797, "net_af_packet"), pytest.param(9018, "net_af_packet", marks=pytest.mark.long)],
)
def test_frames_that_are_too_long_for_af_xdp_go_by_af_packet(size: int, driver: str) -> None:
    with made("router") as name:
        set_mtu(name, size - 18)
        with bench("router", name, size) as (environment, run):
            assert [environment[side]["driver"] for side in ("left", "right")] == [driver] * 2
            said = [warning for warning in environment["warnings"] if "opened by AF_PACKET" in warning]
            assert bool(said) is (driver == "net_af_packet")
            result = valid(lambda: run(1000, frame_sizes=[size], directions="both"))
            assert result.worst_loss_ratio == 0


def test_a_size_that_does_not_fit_the_testers_port_ends_alone(tmp_path: Path) -> None:
    def at_rate(*command: str, sizes: str, size: int) -> subprocess.CompletedProcess[str]:
        with made("router") as name:
            set_mtu(name, size - 18)
            file = tmp_path / "bed.yaml"
            file.write_text(json.dumps(mapping("router", name)))
            times = ["--frame-size", sizes, "--duration", "0.2", "--drain", "0.2"]
            return dutperf(*command, "--config", str(file), *times)

    rates = ["--rates", "200", "--repetitions", "1"]
    done = at_rate("frame-loss", *rates, "--out", str(tmp_path / "run"), "--json", sizes="1518,64", size=1400)
    assert done.returncode == 1, done.stderr
    too_long, short = json.loads(done.stdout)["points"]
    assert "frames of up to 1,400 bytes (left.port: the MTU of eth1 is 1382" in too_long["message"]
    assert (too_long["rates"], bool(short["rates"])) == ([], True)
    done = at_rate("trial", "--rate", "200", sizes="1519", size=1518)
    assert done.returncode == 2
    told = (
        r"of eth1 is 1500, frames of 1519 bytes need 1501: raise it \(ip -n hand-\w+ link set eth1 mtu 1501\), or use"
    )
    assert re.search(told, done.stderr)


def test_somebody_elses_program_is_named_and_left_where_it_is() -> None:
    """Two engines on one port: the lock of ports answers first, and the program stays."""
    with made("router") as name, bench("router", name):
        before = xdp_programs(name)
        with pytest.raises(TesterError, match="in use by another run of dutperf") as caught, bench("router", name):
            pass
        assert caught.value.field == "left.port"
        assert xdp_programs(name) == before


# --- at full length -------------------------------------------------------------------------------


def throughput(tmp_path: Path, kind: str, name: str, *arguments: str) -> dict[str, Any]:
    """The only point of ``dutperf throughput`` with a file that names the namespace alone."""
    file = tmp_path / "bed.yaml"
    file.write_text(json.dumps(mapping(kind, name)))
    size = ["--frame-size", str(SMALLEST[kind]), "--repetitions", "1", "--drain", "0.5"]
    done = dutperf(
        "throughput", "--config", str(file), *size, *arguments, "--json", "--out", str(tmp_path / secrets.token_hex(3))
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = printed(done)["points"][0]
    return found


@pytest.mark.truth
@pytest.mark.parametrize("core", [(DUT_CORE,), ()], ids=["on a core", "where frames are sent"])
def test_the_limited_routers_throughput(core: tuple[int, ...], tmp_path: Path) -> None:
    """60,000 frames/s and a bucket of 1,000: 60,500 in 2 s trials."""
    with made("router", *core) as name:
        by_hand("limit", name, 60_000, 1000)
        found = throughput(
            tmp_path, "router", name, "--directions", "forward", "--duration", "2", "--resolution", "0.2%"
        )
    print(found)
    assert found["throughput_fps"]["median"] == pytest.approx(60_500, rel=0.005)


@pytest.mark.parametrize(
    ("limits_fps", "relation"),
    [
        pytest.param((50_000, 5_000), "10:1", marks=pytest.mark.long),
        pytest.param((50_000, 4_000), "10:1", marks=pytest.mark.truth),
        pytest.param((5_000, 20_000), "1:4", marks=pytest.mark.truth),
    ],
)
def test_the_limits_of_both_directions_of_an_access_line(
    limits_fps: tuple[int, int], relation: str, tmp_path: Path
) -> None:
    """Each has a bucket of a hundredth of a second, so a trial of 2 s passes with half a per cent more. Where their
    relation is not that of the rates, one alone limits both."""
    with made("router", DUT_CORE) as name:
        for side, fps in zip(("west", "east"), limits_fps, strict=True):
            by_hand("limit", name, fps, fps // 100, side)
        found = throughput(
            tmp_path, "router", name, "--direction-rates", relation, "--duration", "2", "--resolution", "0.2%"
        )
    print(found)
    assert found["case"]["direction_rates"] == relation
    parts = tuple(map(int, relation.split(":")))
    limit_fps = max(parts) * min(fps / part for fps, part in zip(limits_fps, parts, strict=True))
    assert found["throughput_fps"]["median"] == pytest.approx(limit_fps * 1.005, rel=0.005)


SEARCH = ["--duration", "1", "--resolution", "2%"]


@pytest.mark.truth
def test_tayga_reads_as_in_the_lab(tmp_path: Path) -> None:
    """In turns. What TAYGA can do differs from minute to minute, by a tenth and more."""
    by_own, in_lab = [], []
    for _ in range(3):
        with made("tayga", DUT_CORE) as name:
            by_own.append(throughput(tmp_path, "tayga", name, *SEARCH)["throughput_fps"]["median"])
        done = dutperf("throughput", "--lab", "tayga-siit", "--frame-size", "84", "--repetitions", "1",
                       "--drain", "0.5", *SEARCH, "--json",
                       "--out", str(tmp_path / secrets.token_hex(3)))  # fmt: skip
        in_lab.append(printed(done)["points"][0]["throughput_fps"]["median"])
    print(by_own, in_lab)
    assert sorted(by_own)[1] == pytest.approx(sorted(in_lab)[1], rel=0.2)


@pytest.mark.truth
@pytest.mark.parametrize(
    ("kind", "text", "truth_fps"), [("router", with_lines(ROUTER, "Reverse 0"), 61_000), ("tayga", TRANSLATOR, None)]
)
def test_siitperfs_binary_search(kind: str, text: str, truth_fps: int | None, tmp_path: Path) -> None:
    """A search by the command that scripts use, repeating what is not valid. TAYGA is compared with
    what the search of our own reads beside it."""
    low, high = (55_000, 65_000) if truth_fps else (1000, 64_000)
    with made(kind, DUT_CORE) as name:
        if truth_fps:
            by_hand("limit", name, 60_000, 1000)
        else:
            truth_fps = throughput(tmp_path, kind, name, *SEARCH)["throughput_fps"]["median"]
        while high - low > 0.002 * truth_fps:
            rate = (low + high) // 2
            counts = lines(
                until(
                    partial(tp, tmp_path, name, text, f"84 {rate} 1 500 2 2"),
                    lambda done: done.returncode == 0,
                    fewest=12,
                )
            )
            passes = all(counts.get(f"{way} frames received", count) == count for way, count in sent(counts))
            low, high = (rate, high) if passes else (low, rate)
    print(kind, low, truth_fps)
    assert low == pytest.approx(truth_fps, rel=0.005 if kind == "router" else 0.2)


def sent(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(name.split()[0], count) for name, count in counts.items() if name.endswith("sent")]
