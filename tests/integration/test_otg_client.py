# SPDX-License-Identifier: Apache-2.0
"""``dutperf otg`` as the tester of ``dutperf``: its metrics and verdicts, over the reference DUT. Root only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from undisturbed import NOT_SHOWN

from .test_otg import serving

pytestmark = pytest.mark.root
CAPACITY_FPS, QUEUE = 2000, 10
LAB = ("--lab", "refdut-ipv4", "--lab-option", f"capacity_fps={CAPACITY_FPS}", "--lab-option", f"queue={QUEUE}")
TIMES = ("--drain", "0.5", "--directions", "forward")


def written(file: Path, address: str) -> Path:
    sides = {
        name: {"port": name, "version": 4, "ipv4": f"198.{net}.0.2/24", "gateway4": f"198.{net}.0.1"}
        for name, net in (("left", 18), ("right", 19))
    }
    file.write_text(json.dumps({"engine": {"otg": address}, **sides}))
    return file


@contextmanager
def configured(directory: Path, *options: str) -> Iterator[Sequence[str]]:
    """Options of a command that measures the reference DUT by a server."""
    with serving(None, *LAB, *options) as address:
        yield ("--config", str(written(directory / "setup.yaml", address)))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dutperf", *arguments]


def test_a_search_by_a_server_reads_the_capacity_of_the_reference_dut(tmp_path: Path) -> None:
    """Within 0.5 % of what a trial of a second shows of it, over TLS."""
    truth_fps = CAPACITY_FPS + QUEUE + 1
    with configured(tmp_path) as source:
        range_ = ["--min-rate", "1900", "--max-rate", "2150", "--resolution", "0.2%", "--repetitions", "1"]
        arguments = ["throughput", *source, *TIMES, *range_, "--duration", "1", "--out", str(tmp_path / "out")]
        done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=500)
        assert done.returncode in (0, 3), done.stderr
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    [point] = summary["points"]
    if done.returncode == 3 or point["limited_by"] != "dut":
        pytest.skip(f"{NOT_SHOWN}{point}")
    assert point["throughput_fps"]["median"] == pytest.approx(truth_fps, rel=0.005)
    assert not [one for one in summary["remarks"] if one["about"] == "by_metrics"]  # all counts of the engine are known


def test_a_trial_has_all_counts_of_the_servers_engine(tmp_path: Path) -> None:
    with configured(tmp_path, "--plain") as source:
        arguments = ["trial", *source, *TIMES, "--rate", "1000", "--duration", "1", "--ports", "increasing", "--json"]
        done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=60)
        result: dict[str, Any] = json.loads(done.stdout)
        counts = result["forward"]
        assert (counts["intended"], counts["sent"]) == (1000, 1000)
        assert "by_metrics" not in counts
        assert counts["lateness_us"]["max"] > 0
        assert done.returncode == (0 if result["verdict"] == "valid" else 3)
