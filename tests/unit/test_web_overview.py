# SPDX-License-Identifier: Apache-2.0
"""What the list of runs shows of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import simulated_run
from dutperf.model import Load
from dutperf.results import headline
from dutperf.web import overview


def test_a_run_has_its_dut_figures_trials_and_search_path(tmp_path: Path) -> None:
    summary = simulated_run.start(tmp_path)
    found = overview.of_run(tmp_path)
    [line] = found.lines
    assert (found.dut, found.started) == (summary.dut["name"], summary.environment["started"])
    assert (line.procedure, line.headline) == (summary.procedure, headline.of_summary(summary))
    assert len(line.path) == min(summary.trials.done, 60)
    assert {step.outcome for step in line.path} <= {"passed", "failed", "invalid"}
    assert min(step.y for step in line.path) == 2, "the highest offered load"
    assert all(0 <= step.x <= overview.WIDTH and 0 <= step.y <= overview.HEIGHT for step in line.path)
    assert [step.x for step in line.path] == sorted({step.x for step in line.path})


PROGRESS = {
    "measurement": "throughput",
    "procedure": "throughput",
    "case": "84 bytes",
    "load": Load.fps(53_000).as_json(),
    "passed": Load.fps(50_000).as_json(),
    "not_passed": None,
    "trials_done": 1,
    "trials_left": 18,
    "note": None,
}


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            PROGRESS,
            "throughput, 84 bytes: trying 53,000 frames/s (passed 50,000 frames/s); 1 trial done, about 18 left",
        ),
        (
            PROGRESS | {"passed": None, "load": None, "trials_done": 0},
            "throughput, 84 bytes; 0 trials done, about 18 left",
        ),
        (
            {**PROGRESS, "measurement": "otg", "procedure": "otg", "note": "2 flows, a trial runs"},
            "otg: 2 flows, a trial runs",
        ),
        ({**PROGRESS, "load": "many"}, ""),
        ({"case": "84 bytes"}, ""),
        (None, ""),
    ],
)
def test_what_a_run_does_is_said_in_a_line(progress: dict[str, Any] | None, text: str) -> None:
    assert overview.now(progress) == text
