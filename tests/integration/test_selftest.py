# SPDX-License-Identifier: Apache-2.0
"""The self-test as a user runs it, one procedure of its short form. Root only."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dutperf.exit_status import INVALID
from printed import printed
from undisturbed import until

from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]


def test_known_loss_is_measured_to_the_frame_and_a_busy_machine_is_no_wrong_number(tmp_path: Path) -> None:
    runs, table = count(), tmp_path / "table.md"

    def measure() -> tuple[int, dict[str, Any]]:
        arguments = [
            "--quick",
            "--only",
            "frame-loss",
            "--json",
            "--markdown",
            str(table),
            "--out",
            str(tmp_path / f"out{next(runs)}"),
        ]
        done = dutperf("selftest", *arguments)
        assert done.stdout, done.stderr
        findings = {one["figure"]: one for one in printed(done)["findings"]}
        assert done.returncode in (0, INVALID), findings
        return done.returncode, findings

    _, findings = until(measure, lambda measured: measured[0] == 0, fewest=1)
    assert findings["frame loss"]["measured"] == pytest.approx(10)
    assert findings["frames lost, all trials"]["true"] == findings["frames lost, all trials"]["measured"] > 0
    assert "| frame-loss | frame loss, % | 10 | 10 |" in table.read_text()


def test_the_kernels_stamps_have_a_lower_floor_than_the_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runs = count()

    def measure() -> dict[str, Any]:
        out = str(tmp_path / f"out{next(runs)}")
        outcome = printed(dutperf("selftest", "--quick", "--only", "calibration", "--json", "--out", out))
        assert ("lets no card stamp" in outcome["without_stamps"].get("card", "")) == (outcome["by_stamps"] is not None)
        return {one["stamps"]: one["typical_us"] for one in (outcome["by_stamps"] or {"floors": ()})["floors"]}

    typical_us = until(measure, lambda floors: bool(floors) and floors["kernel"] < floors["loop"] / 2, fewest=1)
    assert set(typical_us) == {"loop", "kernel"}
