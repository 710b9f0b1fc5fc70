# SPDX-License-Identifier: Apache-2.0
"""The self-test as a user runs it, one procedure of its short form. Root only."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.fixture
def calibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[dict[str, float], str]]:
    """Calibrates, and returns the typical delays by time stamps, and why there is none by those of cards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runs = count()

    def measure() -> tuple[dict[str, float], str]:
        out = str(tmp_path / f"out{next(runs)}")
        outcome = printed(dutperf("selftest", "--quick", "--only", "calibration", "--json", "--out", out))
        floors = (outcome["by_stamps"] or {"floors": ()})["floors"]
        return {one["stamps"]: one["typical_us"] for one in floors}, outcome["without_stamps"].get("card", "")

    return measure


Calibrated = Callable[[], tuple[dict[str, float], str]]


def test_the_kernels_stamps_have_a_lower_floor_than_the_loops(calibrated: Calibrated) -> None:
    def is_lower(measured: tuple[dict[str, float], str]) -> bool:
        floors, _ = measured
        return {"kernel", "loop"} <= set(floors) and floors["kernel"] < floors["loop"] / 2

    typical_us, missing = until(calibrated, is_lower, fewest=1)
    assert set(typical_us) == {"loop", "kernel"}
    assert "lets no card stamp" in missing


def test_cards_that_stamp_few_frames_have_a_floor(calibrated: Calibrated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of PTP alone, one after the other."""
    monkeypatch.setenv("DUTPERF_ENGINE", str(engine_with_fake("cards", EngineCommand.find())))
    monkeypatch.setenv("DUTPERF_FAKE_CARDS", "driver=ptp latch_us=150 drift_ppm=60/-40")
    floors, missing = until(calibrated, lambda measured: len(measured[0]) == 3, fewest=1)
    assert 0 < floors["card"] < floors["loop"], missing
