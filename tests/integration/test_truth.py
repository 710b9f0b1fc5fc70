# SPDX-License-Identifier: Apache-2.0
"""Known truth at full length, minutes each: `make truth`. The short forms are in test_commands.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.truth]

ROUTER = ["--lab", "kernel-ipv4", "--directions", "forward", "--duration", "5", "--drain", "0.5"]


def point(out: Path, *arguments: str) -> dict[str, Any]:
    """The only point of a throughput run on the kernel router."""
    done = dutperf("throughput", *ROUTER, *arguments, "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["points"][0]
    return found


def test_a_limit_and_its_bucket_three_times_in_a_row(tmp_path: Path) -> None:
    """60,000 frames/s and a bucket of 1,000: 60,200 in 5 s trials."""
    limit = ["--lab-option", "limit_fps=60000", "--lab-option", "burst=1000", "--resolution", "0.2%", "--repetitions", "1"]
    values = [point(tmp_path / str(run), *limit)["throughput_fps"]["median"] for run in range(3)]
    assert values == pytest.approx([60_200] * 3, rel=0.01)


@pytest.mark.parametrize(("bucket", "directions", "frames"), [(1_000, "forward", 2_000), (1_000, "both", 1_000), (64, "forward", 128)])
def test_the_longest_burst_of_a_known_bucket(tmp_path: Path, bucket: int, directions: str, frames: int) -> None:
    """Filled at 20,000/s, emptied at 40,000/s by all directions together: known within the resolution and what frames that leave late can make of it."""
    share = 2 if directions == "both" else 1
    rates = ["--rate", str(20_000 // share), "--max-rate", str(40_000 // share), "--burst-resolution", "0.01", "--repetitions", "5", "--drain", "0.5"]
    router = ["--lab", "kernel-ipv4", "--lab-option", "limit_fps=20000", "--lab-option", f"burst={bucket}", "--directions", directions]
    done = dutperf("back-to-back", *router, *rates, "--json", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["points"][0]
    assert found["limited_by"] == "dut"
    assert found["average_frames"] == pytest.approx(frames, abs=2 + 0.01 * frames + 2 * found["timing_frames"])


def test_random_loss_hides_the_routers_limit_without_tolerance_only(tmp_path: Path) -> None:
    """One frame in 10,000 is lost. A tolerance of 0.0005 finds what the router can do without that loss, none finds almost nothing."""
    loss = ["--lab-option", "loss=0.0001", "--repetitions", "1", "--resolution", "5%"]
    limit = point(tmp_path / "no loss", "--repetitions", "1", "--resolution", "5%")["throughput_fps"]["median"]
    tolerant = point(tmp_path / "tolerant", *loss, "--loss-tolerance", "0.0005")["throughput_fps"]["median"]
    strict = point(tmp_path / "strict", *loss)["throughput_fps"]["median"]
    assert tolerant > 0.7 * limit  # a disturbance of this machine can only lower what is found without any loss
    assert strict is None or strict < 0.05 * tolerant
