# SPDX-License-Identifier: Apache-2.0
"""Known truth at full length, minutes each: `make truth`. The short forms are in test_commands.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dutperf.lab.refdut import Properties
from dutperf.model import FieldMode

from .measuring import bench
from .test_commands import dutperf
from .test_reference_dut import assert_agree, undisturbed

pytestmark = [pytest.mark.root, pytest.mark.truth]
"""Delays of 1, 10 and 100 ms, and all that is counted to the frame, are in test_reference_dut.py: they take seconds."""

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


CAPACITY_FPS, QUEUE, DURATION_S = 20_000, 200, 2
TRUE_FPS = (CAPACITY_FPS + (QUEUE + 1) / DURATION_S) / 2
"""In the time of a trial the DUT takes its capacity, what fits into its queue, and the frame in service: each direction half of that."""
KNOWN = [("refdut-ipv4", "memif", "fixed"), ("refdut-siit", "memif", "random"), ("refdut-ipv4", "veth", "random"), ("refdut-siit", "veth", "fixed")]


@pytest.mark.parametrize(("lab", "link", "ports"), KNOWN)
def test_twenty_of_twenty_repetitions_read_the_capacity(tmp_path: Path, lab: str, link: str, ports: str) -> None:
    """Within 0.5 %. No rate is tried that exceeds the truth by less than 0.4 %: the little that it loses could be the work of frames that left late."""
    dut = [text for option in (f"capacity_fps={CAPACITY_FPS}", f"queue={QUEUE}", f"link={link}") for text in ("--lab-option", option)]
    range_ = ["--min-rate", f"{TRUE_FPS * 0.9962:.0f}", "--max-rate", f"{TRUE_FPS * 1.03:.0f}", "--resolution", f"{TRUE_FPS * 0.0085:.0f}"]
    search = ["--ports", ports, "--duration", f"{DURATION_S}", "--drain", "0.2", "--repetitions", "10", *range_]
    values: list[float | None] = []
    for run in ("first ten", "second ten"):
        done = dutperf("throughput", "--lab", lab, *dut, *search, "--json", "--out", str(tmp_path / run))
        assert done.returncode == 0, done.stderr
        values += json.loads(done.stdout)["points"][0]["throughput_fps"]["values"]
    print(TRUE_FPS, values)
    assert values == pytest.approx([TRUE_FPS] * 20, rel=0.005)


LOSS, LOSS_FPS, LOSS_FRAMES = 0.01, 5_000, 10_000
OF_99_PERCENT = 2.576
"""Standard deviations of a normal distribution to either side, between which 99 % of it lies."""


@pytest.mark.parametrize(("lab", "link", "ports"), KNOWN)
def test_loss_ratios_lie_in_the_99_percent_interval_of_the_truth(lab: str, link: str, ports: str) -> None:
    """Of 40 ratios, each of which may lie outside with a chance of 1 %, at most three do: more would come once in 1,000 times."""
    off = OF_99_PERCENT * (LOSS * (1 - LOSS) / LOSS_FRAMES) ** 0.5
    seeds = range(20 * KNOWN.index((lab, link, ports)), 20 * (KNOWN.index((lab, link, ports)) + 1))
    with bench(lab, {"link": link}) as ready:
        results = [undisturbed(ready, Properties(loss=LOSS, seed=seed), LOSS_FPS, duration_s=LOSS_FRAMES / LOSS_FPS, ports=FieldMode(ports)) for seed in seeds]
    ratios = [counts.loss_ratio for result, _ in results for counts in result.directions().values()]
    print([round(ratio, 5) for ratio in ratios])
    assert len(ratios) == 40
    assert sum(abs(ratio - LOSS) > off for ratio in ratios) <= 3
    for result, truth in results:
        assert_agree(result, truth)
