# SPDX-License-Identifier: Apache-2.0
"""The example that measures over the number of connections and the DUT's cores, shortened. Root only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dutperf.cli import plan_file

pytestmark = pytest.mark.root

EXAMPLE = Path(__file__).parents[2] / "examples" / "stateful-scalability"
SHORT = """
lab: nft-nat44
all: {connections: [500, 2k], repetitions: 1, drain: 0.2}
procedures:
  establishment-rate: {max-rate: 10k, min-rate: 5k, resolution: 50%}
  throughput: {preliminary-rate: 10k, duration: 0.5, max-rate: 5k, min-rate: 2k, resolution: 50%}
  teardown-rate: {preliminary-rate: 10k}
"""


def measured(plan: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, EXAMPLE / "run.py", "--plan", plan, "--out", out, *options]
    return subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.long
def test_each_number_of_connections_has_a_row_and_a_point(tmp_path: Path) -> None:
    plan, out = tmp_path / "short.yaml", tmp_path / "out"
    plan.write_text(SHORT, encoding="utf-8")
    done = measured(plan, out)
    assert done.returncode == 0, done.stdout + done.stderr
    table = (out / "scalability.md").read_text(encoding="utf-8")
    assert [line.split("|")[2].strip() for line in table.splitlines()[2:]] == ["500", "2,000"]
    assert (out / "teardown-rate.svg").read_bytes().startswith(b"<?xml")


def test_more_cores_than_there_are_are_refused(tmp_path: Path) -> None:
    done = measured(EXAMPLE / "connections.yaml", tmp_path / "out", "--cores", "64")
    assert done.returncode == 2
    assert "option cores=64" in " ".join(done.stderr.split())


def test_the_plan_that_ships_is_one() -> None:
    wanted = [
        (definition.name, one.connections) for definition, one in plan_file.load(EXAMPLE / "connections.yaml").wanted
    ]
    assert wanted == [
        (name, connections)
        for name in ("establishment-rate", "throughput", "teardown-rate")
        for connections in (1_000, 10_000, 100_000)
    ]
