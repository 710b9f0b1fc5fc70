# SPDX-License-Identifier: Apache-2.0
"""Streams with rates of their own beside what is measured, through a router that a person made (by_hand.sh): each
agrees with the DUT's own counters to the frame, and what the DUT does to them alone is told of them alone. Root
only."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.factory import engine_on
from dutperf.model import Direction, Trial, TrialResult
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from plans import make_trial
from printed import printed
from recordings import capture, udp
from undisturbed import LOSS_IS_CERTAIN, until, valid

from .test_by_hand import DUT_CORE, SIDES, by_hand, made
from .test_commands import dutperf as command
from .test_commands import measured
from .test_paths import counted

pytestmark = pytest.mark.root
CALL: dict[str, Any] = {"name": "call", "rate": 200, "sizes": 218, "frame": "ip(dscp=46)/udp", "pattern": "poisson"}
BACKUP: dict[str, Any] = {
    "name": "backup",
    "rate": 500,
    "sizes": 1024,
    "frame": "ip(dscp=8)/udp",
    "directions": "reverse",
    "begin_s": 0.3,
    "duration_s": 0.4,
}
DSCP = {"measured": 0, "call": 46, "backup": 8}


@pytest.fixture
def router() -> Iterator[str]:
    with made("router", DUT_CORE) as name:
        yield name


def setup_of(name: str, *streams: dict[str, Any]) -> Setup:
    return configuration.parse({"engine": {"netns": name}, **SIDES["router"], "streams": list(streams)}, "by hand")


def configured(tmp_path: Path, name: str, *streams: dict[str, Any]) -> str:
    """A configuration file."""
    path = tmp_path / "setup.yaml"
    path.write_text(json.dumps({"engine": {"netns": name}, **SIDES["router"], "streams": list(streams)}))
    return str(path)


def rules(name: str, text: str) -> None:
    subprocess.run(["ip", "netns", "exec", f"{name}-dut", "nft", "-f", "-"], input=text, text=True, check=True)


def count(name: str) -> None:
    """What it forwards, by the port that it came from and the DSCP."""
    named = [(port, stream) for port in ("west", "east") for stream in DSCP]
    counters = "\n".join(f"counter {port}_{stream} {{ }}" for port, stream in named)
    each = "\n".join(
        f'iifname "{port}" meta l4proto udp ip dscp {DSCP[stream]} counter name {port}_{stream}'
        for port, stream in named
    )
    chain = f"chain f {{\ntype filter hook forward priority 0; policy accept;\n{each}\n}}"
    rules(name, f"table ip counted {{\n{counters}\n{chain}\n}}")


def trial_of(setup: Setup, rate_fps: int, **conditions: Any) -> Trial:
    return make_trial(setup, SingleTrial(**({"duration_s": 1, "drain_s": 0.3} | conditions)), 64, rate_fps, 1)


def test_each_stream_agrees_with_the_duts_counters(router: str) -> None:
    count(router)
    setup = setup_of(router, CALL, BACKUP)
    trial = trial_of(setup, 3000, direction_rates="3:1")
    seen: list[dict[str, int]] = []
    with engine_on(setup, 1518) as tester:

        def run() -> TrialResult:
            counted(router)
            result = tester.run(trial)
            seen.append(counted(router))
            return result

        result = valid(run, LOSS_IS_CERTAIN)
    sent = {str(way): counts.sent for way, counts in result.all_directions().items()}
    assert sent == {
        "forward": 3000,
        "reverse": 1000,
        "forward:call": 200,
        "reverse:call": 200,
        "reverse:backup": 200,
    }
    assert {str(way): counts.received for way, counts in result.all_directions().items()} == sent
    assert seen[-1] == {
        "west_measured": 3000,
        "east_measured": 1000,
        "west_call": 200,
        "east_call": 200,
        "west_backup": 0,
        "east_backup": 200,
    }
    backup = result.all_directions()[Direction("reverse:backup")].arrivals
    assert backup is not None
    assert 0.3 <= backup.first_s < 0.35
    assert 0.65 < backup.last_s < 0.75


def test_a_dut_that_drops_a_stream_loses_nothing_of_what_is_measured(router: str) -> None:
    rules(
        router,
        "table ip truth {\nchain f {\ntype filter hook forward priority 0\nip dscp 46 numgen inc mod 4 == 0 drop\n}\n}",
    )
    setup = setup_of(router, CALL)
    with engine_on(setup, 1518) as tester:
        result = valid(lambda: tester.run(trial_of(setup, 2000)), LOSS_IS_CERTAIN)
    assert result.worst_loss_ratio == 0
    lost = {str(way): counts.lost for way, counts in (result.other_streams or {}).items()}
    assert sum(lost.values()) == 100, "a fourth of both"


@pytest.mark.long
def test_a_search_finds_what_they_leave(router: str, tmp_path: Path) -> None:
    """The DUT forwards 5,000 frames/s from the left and a bucket of 100 in 2 s; the call takes 1,000 a second of them,
    whatever is measured."""
    by_hand("limit", router, 5000, 100, "west")
    call = {"name": "call", "rate": 1000, "directions": "forward", "sizes": 128}
    path = configured(tmp_path, router, call)

    def is_left(median: float) -> bool:
        return median == pytest.approx(4050, rel=0.01)

    found = measured(
        tmp_path,
        is_left,
        *("--config", path, "--directions", "forward", "--max-rate", "8k", "--resolution", "0.5%"),
        *("--duration", "2", "--drain", "0.3", "--settle", "0"),
    )
    assert is_left(found["points"][0]["throughput_fps"]["median"])
    assert {(one["direction"], one["stream"]) for one in found["streams"]} == {("forward", "call")}
    assert any("call (1,000 frames/s)" in one["text"] for one in found["deviations"])


def test_a_trial_shows_them(router: str, tmp_path: Path) -> None:
    path = configured(tmp_path, router, CALL)
    done = until(
        lambda: command("trial", "--config", path, "--rate", "1k", "--duration", "0.5", "--drain", "0.3"),
        lambda one: one.returncode == 0,
        lambda one: one.stdout + one.stderr,
    )
    assert "forward:call" in done.stdout
    assert "reverse:call" in done.stdout


def test_a_replay_goes_beside_them(router: str, tmp_path: Path) -> None:
    """With tags, on their path too."""
    config, file = configured(tmp_path, router, CALL), tmp_path / "some.pcap"
    capture(file, [udp(100) for _ in range(200)], [number * 2_000_000 for number in range(200)])
    done = until(
        lambda: command("replay", str(file), "--config", config, "--tag", "--drain", "0.3", "--json"),
        lambda one: one.returncode == 0,
        lambda one: one.stdout[-500:] + one.stderr,
    )
    result = printed(done)
    assert (result["forward"]["sent"], result["forward"]["received"]) == (200, 200)
    sent = {name: (one["sent"], one["received"]) for name, one in result["other_streams"].items()}
    assert sent == dict.fromkeys(("forward:call", "reverse:call"), (80, 80)), "0.4 s at 200 a second"
    refused = command("replay", str(file), "--config", config)
    assert refused.returncode == 2
    assert "nothing tells them from those of the stream call on the same ports: give --tag" in refused.stderr
