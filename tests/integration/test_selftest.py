# SPDX-License-Identifier: Apache-2.0
"""The self-test as a user runs it, one procedure of its short form. Root only."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.client import EngineCommand
from dutperf.exit_status import INVALID
from fake_engines import engine_with_fake
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


def test_each_kind_of_stamps_has_a_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of cards that stamp messages of PTP alone, one after the other."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DUTPERF_ENGINE", str(engine_with_fake("cards", EngineCommand.find())))
    monkeypatch.setenv("DUTPERF_FAKE_CARDS", "driver=ptp latch_us=150 drift_ppm=60/-40")
    runs = count()

    def measure() -> dict[str, float]:
        out = str(tmp_path / f"out{next(runs)}")
        outcome = printed(dutperf("selftest", "--quick", "--only", "calibration", "--json", "--out", out))
        floors = (outcome["by_stamps"] or {"floors": ()})["floors"]
        return {one["stamps"]: one["typical_us"] for one in floors}

    def is_right(floors: dict[str, float]) -> bool:
        return (
            set(floors) == {"loop", "kernel", "card"} and 0 < max(floors["kernel"], floors["card"]) < floors["loop"] / 2
        )

    until(measure, is_right, fewest=1)
