# SPDX-License-Identifier: Apache-2.0
"""Calibrates the tester with its ports connected without a DUT: the highest rate that passes, and the floor
of the delays."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dutperf.errors import DutperfError
from dutperf.model import FRAME_SIZE
from dutperf.procedures import pdv, throughput
from dutperf.procedures.delays import DelaysPoint
from dutperf.procedures.throughput import Throughput, ThroughputPoint
from dutperf.run import campaign
from dutperf.run.suite import Bench
from dutperf.selftest.progress import Watch
from dutperf.setup.conditions import Rate
from dutperf.tester import calibration
from dutperf.tester.calibration import Calibration, Floor

FRAME_SIZES = (84, 1518)
"""The smallest size of both IPv4 and IPv6, and the longest of standard Ethernet."""
DELAYS_FPS = 10_000
"""Rate for delays; half the tester's limit if that is lower."""


class DisturbedError(DutperfError):
    """No valid trial: the machine is too busy to be calibrated; the text is one sentence."""


def frame_sizes(*, quick: bool) -> tuple[int, ...]:
    """Frame sizes to measure, in bytes incl. FCS."""
    return FRAME_SIZES[:1] if quick else FRAME_SIZES


def search_conditions(*, quick: bool) -> Throughput:
    """Conditions of the search for the tester's limit. The search is coarse, because it tries every rate
    above the limit several times."""
    coarse: dict[str, Any] = {
        "initial_rate": Rate.parse("100k"),
        "resolution": Rate.parse("20%" if quick else "10%"),
        "drain_s": 0.1,
        "repetitions": 1,
    }
    return Throughput(frame_sizes=frame_sizes(quick=quick), duration_s=0.2 if quick else 0.5, **coarse)


def calibrate(bench: Bench, out: Path, watch: Watch, *, quick: bool) -> Calibration:
    """Measure the tester on a bench without a DUT.

    Raises:
        PlanError, JournalError, TesterError: see :func:`dutperf.run.campaign.measure`.
        DisturbedError: the floor could not be measured.
    """
    with watch("limit") as observer:
        limits = campaign.measure(
            throughput.PROCEDURE, bench.tester, bench.plan(search_conditions(quick=quick)), out / "limit", observer
        )
    floors = [
        _floor(bench, point, out, watch, quick=quick) for point in limits.points if isinstance(point, ThroughputPoint)
    ]
    return calibration.made(bench.tester.environment(), floors, datetime.now(UTC).isoformat(timespec="seconds"))


def _floor(bench: Bench, limit: ThroughputPoint, out: Path, watch: Watch, *, quick: bool) -> Floor:
    frame_size = limit.case[FRAME_SIZE]
    limit_fps = None if limit.throughput_fps.median is None else int(limit.throughput_fps.median)
    rate_fps = min(DELAYS_FPS, max(1, (limit_fps or 2 * DELAYS_FPS) // 2))
    times: dict[str, Any] = {"duration_s": 0.5 if quick else 2.0, "drain_s": 0.1, "repetitions": 3}
    conditions = pdv.Pdv(frame_sizes=(frame_size,), rate=Rate(value=rate_fps, unit="fps"), **times)
    name = f"floor-{frame_size}"
    with watch(name) as observer:
        [point] = campaign.measure(pdv.PROCEDURE, bench.tester, bench.plan(conditions), out / name, observer).points
    assert isinstance(point, DelaysPoint)
    directions = [figures for figures in (point.forward, point.reverse) if figures]
    if not directions:
        raise DisturbedError(
            f"the machine is too busy to be calibrated: no valid trial of {rate_fps:,} frames/s with connected ports"
            f" ({point.message})"
        )
    faster = min(directions, key=lambda figures: figures["median"].median)
    min_us, typical_us, p999_us = (faster[name].median * 1e3 for name in ("Dmin", "median", "D99.9"))
    delays = {"min_us": min_us, "typical_us": typical_us, "p999_us": p999_us, "stall_us": point.tester_stall_ms * 1e3}
    return Floor(frame_size=frame_size, limit_fps=limit_fps, rate_fps=rate_fps, **delays)
