# SPDX-License-Identifier: Apache-2.0
"""The example beside real downloads: a delay that RFC 2544's throughput does not see, the users do,
and so does a frame timeout. Root only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from printed import printed

pytestmark = [pytest.mark.root, pytest.mark.long]

EXAMPLE = Path(__file__).parents[2] / "examples" / "gaming-rfc2544" / "run.py"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Without an impairment, and with a delay of 100 ms."""
    out = tmp_path_factory.mktemp("gaming") / "out"
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--quick", "--json", "--out", out], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout, done.stderr)
    assert "every frame 100 ms late" in (out / "table.md").read_text()
    return list(printed(done))


def test_rfc2544_sees_no_delay(rows: list[dict[str, Any]]) -> None:
    clean, late = (row["throughput"]["RFC 2544"]["median_fps"] for row in rows)
    assert late == pytest.approx(clean, rel=0.05)


def test_users_do(rows: list[dict[str, Any]]) -> None:
    clean, late = (row["download"]["time_s"] for row in rows)
    assert late >= 3 * clean


@pytest.mark.parametrize("way", ["frame timeout", "both"])
def test_and_so_does_a_frame_timeout(rows: list[dict[str, Any]], way: str) -> None:
    clean, late = (row["throughput"][way]["median_fps"] for row in rows)
    assert (late or 0) < 0.1 * clean
