# SPDX-License-Identifier: Apache-2.0
"""The example that compares transition technologies, shortened. Root only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

EXAMPLE = Path(__file__).parents[2] / "examples" / "transition" / "run.py"


def compared(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The example with these arguments."""
    asked = [sys.executable, EXAMPLE, *map(str, arguments)]
    return subprocess.run(asked, capture_output=True, text=True, timeout=400, check=False)


@pytest.mark.long
def test_each_form_has_a_row_and_its_chain_is_drawn(tmp_path: Path) -> None:
    done = compared("--labs", "vxlan", "--duration", "0.3", "--resolution", "50%", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "transition.md").read_text(encoding="utf-8")
    assert "`tester ─ IPv4 ─ [VTEP] ─ VXLAN ─ [VTEP] ─ IPv4 ─ tester`" in text
    assert "`tester ─ IPv4 ─ [VTEP] ─ VXLAN ─ tester`" in text
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| VXLAN")
    ]
    assert [(row[1], row[2].partition(" 6")[0].partition(" 5")[0]) for row in rows] == [
        ("two", "left end and right end"),
        ("one", "left end"),
    ]
    assert all(int(row[3].strip("()").replace(",", "")) > 0 for row in rows)
    for name in ("vxlan", "vxlan-alone"):
        assert (tmp_path / name / "throughput" / "report.html").exists()


def test_a_lab_that_there_is_not_is_named() -> None:
    done = compared("--labs", "srv6,map-x")
    assert done.returncode == 2
    assert "no lab here is called map-x; there are kernel-ipv4, tayga-siit," in done.stderr
