# SPDX-License-Identifier: Apache-2.0
"""The accuracy study, shortened. Root only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dutperf.cli import plan_file

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "accuracy-study"


def study(*options: object) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, EXAMPLE / "run.py", *map(str, options)]
    return subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.long
def test_each_set_of_conditions_has_a_row_beside_that_of_another_run(tmp_path: Path) -> None:
    short = ("--repetitions", 1, "--duration", 0.2, "--rates", "10000,30000,20000")
    done = study(*short, "--out", tmp_path / "own")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "own" / "study.json").read_text())
    conditions = [(row["ports"], row["networks"], row["flow_control"], row["in_use"]) for row in rows]
    assert conditions == [(ports, networks, "off", "none") for ports in ("fixed", "random") for networks in (1, 256)]
    assert all(10_000 <= (row["median"] or 10_000) <= 20_000 for row in rows), "the DUT forwards 40,000 frames/s in all"
    other = [{**row, "median": 12_345} for row in rows[:2]]
    (tmp_path / "other.json").write_text(json.dumps(other))
    done = study(*short, "--out", tmp_path / "again", "--beside", tmp_path / "other.json")
    lines = (tmp_path / "again" / "study.md").read_text().splitlines()
    assert lines[0].split("|")[-3].strip() == "median beside"
    assert [line.split("|")[-3].strip() for line in lines[2:]] == ["12,345", "12,345", "-", "-"]
    assert done.stdout.endswith("\n".join(lines) + "\n\n")


def test_labs_have_no_flow_control(tmp_path: Path) -> None:
    done = study("--flow-control", "--out", tmp_path)
    assert done.returncode == 2
    assert "--flow-control needs --config" in done.stderr


def test_the_plan_that_ships_is_one() -> None:
    wanted = plan_file.load(EXAMPLE / "study.yaml").wanted
    assert [(definition.name, one.networks, one.repetitions) for definition, one in wanted] == [
        ("throughput", networks, 20) for networks in (1, 256)
    ]
