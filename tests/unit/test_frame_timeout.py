# SPDX-License-Identifier: Apache-2.0
"""A DUT that delays every tenth frame by a second: throughput and frame loss do not see it, unless
a late frame counts as lost.

The case of Lencse, Kovács and Shima ("Gaming with the Throughput and the Latency Benchmarking
Measurement Procedures of RFC 2544", IJATES2 9(2), 2020).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dutperf.model import LimitedBy, Stamping
from dutperf.run.campaign import Summary
from dutperf.setup.conditions import Rate
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Log, measure, plan

GAMING = SimulatedDut(delay_us=100, slow_every=10, slow_us=1e6)
MEDIA_FPS = 100_000


def measured(name: str, out: Path, log: Log | None = None, **conditions: Any) -> tuple[SimulatedTester, Summary]:
    tester = SimulatedTester(GAMING)
    return tester, measure(tester, plan(MEDIA_FPS, **{"drain_s": 2, "repetitions": 2} | conditions), out, name, log)


def test_without_a_frame_timeout_the_throughput_is_full(tmp_path: Path) -> None:
    tester, summary = measured("throughput", tmp_path)
    [point] = summary.points
    assert (point.throughput_fps.median, point.limited_by, point.pass_criterion) == (MEDIA_FPS, LimitedBy.MEDIA, "")
    assert {(trial.stamping, trial.question.tolerated_loss) for trial in tester.trials} == {(Stamping.NONE, 0)}


def test_with_it_the_throughput_collapses(tmp_path: Path) -> None:
    log = Log()
    tester, summary = measured("throughput", tmp_path, log, frame_timeout_ms=10, min_rate=Rate.parse("1k"))
    [point] = summary.points
    assert point.throughput_fps.median is None
    assert point.limited_by is LimitedBy.RANGE
    assert point.upper_bound.load.value == 1000
    assert point.upper_bound.forward.late == point.upper_bound.forward.lost == 500
    assert "forward lost 500 of 5,000 frames (10 %, of these 500 later than 10 ms)" in point.message
    assert {trial.frame_timeout_ns for trial in tester.trials} == {10_000_000}
    said = "frames later than 10 ms counted as lost"
    assert point.pass_criterion == said
    assert any(status.note and f"no lower bound ({said})" in status.note for status in log.statuses)


def test_with_a_tolerance_of_a_tenth_as_well_it_is_full_again_and_says_so(tmp_path: Path) -> None:
    tester, summary = measured("throughput", tmp_path, frame_timeout_ms=10, loss_tolerance=0.1)
    [point] = summary.points
    assert {trial.question.tolerated_loss for trial in tester.trials} == {0.1}
    assert point.throughput_fps.median == MEDIA_FPS
    assert point.pass_criterion == "up to 10 % of a direction's frames lost and frames later than 10 ms counted as lost"
    said = [deviation.text for deviation in summary.deviations if deviation.clause == "RFC 2544 section 26.1"]
    assert len(said) == 2
    assert any("longer than 10 ms" in text for text in said)


@pytest.mark.parametrize(("timeout_ms", "ratio"), [(None, 0.0), (10, 0.1), (1500, 0.0)])
def test_frame_loss_sees_it_with_a_frame_timeout(timeout_ms: float | None, ratio: float, tmp_path: Path) -> None:
    _, summary = measured(
        "frame-loss", tmp_path, frame_timeout_ms=timeout_ms, rates=(Rate.parse("10k"), Rate.parse("100%"))
    )
    [point] = summary.points
    for rate in point.rates:
        assert rate.loss_ratio.worst.values == (ratio, ratio)
    said = [deviation.text for deviation in summary.deviations if "counts as lost" in deviation.text]
    assert (len(said), bool(point.pass_criterion)) == ((0, False) if timeout_ms is None else (1, True))
