# SPDX-License-Identifier: Apache-2.0
"""The self-test as a user runs it, one procedure of its short form. Root only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dutperf.endings import INVALID

from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

ATTEMPTS = 4


def test_known_loss_is_measured_to_the_frame_and_a_busy_machine_is_no_wrong_number(tmp_path: Path) -> None:
    for attempt in range(ATTEMPTS):
        table = tmp_path / f"{attempt}.md"
        arguments = ["--quick", "--only", "frame-loss", "--json", "--markdown", str(table), "--out", str(tmp_path / f"out{attempt}")]
        done = dutperf("selftest", *arguments)
        assert done.stdout, done.stderr
        findings = {one["figure"]: one for one in json.loads(done.stdout)["findings"]}
        assert done.returncode in (0, INVALID), findings
        if done.returncode == 0:
            break
    assert findings["frame loss"]["measured"] == pytest.approx(10)
    assert findings["frames lost, all trials"]["true"] == findings["frames lost, all trials"]["measured"] > 0
    assert "| frame-loss | frame loss, % | 10 | 10 |" in table.read_text()
