# SPDX-License-Identifier: Apache-2.0
"""The example that compares forwarders, shortened. Root only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

EXAMPLE = Path(__file__).parents[2] / "examples" / "forwarders" / "run.py"


@pytest.mark.long
def test_each_forwarder_has_a_row_and_curves(tmp_path: Path) -> None:
    asked = [sys.executable, EXAMPLE, "--duts", "bridge", "--duration", "0.2", "--loads", "0,50,100", "--out", tmp_path]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "forwarders.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| bridge: Linux bridge")]
    assert len(rows) == 1
    for name in ("loss", "latency-constant", "latency-poisson", "p99-constant", "p99-poisson"):
        assert f"({name}.svg)" in text
        assert (tmp_path / f"{name}.svg").read_bytes().startswith(b"<?xml")


def test_a_dut_that_there_is_not_is_named() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--duts", "router,cisco"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "no DUT is called cisco; there are bridge, router" in done.stderr
