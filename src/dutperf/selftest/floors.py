# SPDX-License-Identifier: Apache-2.0
"""Calibrates the tester with its ports connected without a DUT: the highest rate that passes, and the floor
of the delays."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from dutperf import journal
from dutperf.errors import DutperfError
from dutperf.journal import ResultEvent, of_kind
from dutperf.model import FRAME_SIZE, Verdict
from dutperf.procedures import latency, pdv, throughput
from dutperf.procedures.delays import DelaysPoint
from dutperf.procedures.latency import Latency
from dutperf.procedures.throughput import Throughput, ThroughputPoint
from dutperf.run import campaign
from dutperf.run.suite import Bench
from dutperf.selftest.progress import Watch
from dutperf.setup.conditions import Rate
from dutperf.tester import TesterError, calibration
from dutperf.tester.calibration import Calibration, Floor, Stamps

FRAME_SIZES = (84, 1518)
"""The smallest size of both IPv4 and IPv6, and the longest of standard Ethernet."""
DELAYS_FPS = 10_000
"""Rate for delays; half the tester's limit if that is lower."""
CARD_TAGS_FPS = 100
"""Of frames that cards stamp."""
STAMPS = get_args(Stamps)
NO_STAMPS = "port_unavailable"
"""Code of the engine's refusal to stamp."""


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
    """Measure the tester on a bench without a DUT. Raises PlanError, JournalError, TesterError: see
    :func:`dutperf.run.campaign.measure`. Raises DisturbedError: the floor could not be measured."""
    with watch("limit") as observer:
        limits = campaign.measure(
            throughput.PROCEDURE, bench.tester, bench.plan(search_conditions(quick=quick)), out / "limit", observer
        )
    floors = [
        _floor(bench, point, out, watch, quick=quick) for point in limits.points if isinstance(point, ThroughputPoint)
    ]
    return calibration.made(bench.tester.environment(), floors, datetime.now(UTC).isoformat(timespec="seconds"))


def stamped_conditions(*, quick: bool) -> pdv.Pdv | Latency:
    """Conditions under which ports are opened as kernel and cards can stamp their frames."""
    return _conditions(FRAME_SIZES[0], DELAYS_FPS, "kernel", quick=quick)


def by_stamps(
    bench: Bench, loops: Calibration, out: Path, watch: Watch, *, quick: bool
) -> tuple[Calibration, dict[str, str]]:
    """The floors of the delays of the smallest frames by each kind of time stamps, on a bench that is open for
    :func:`stamped_conditions`; and why there is none of the other kinds. ``loops``: the same tester's calibration,
    whose floors stay if these are its ports. Raises DisturbedError: none could be measured."""
    environment, frame_size, rate_fps = bench.tester.environment(), loops.floors[0].frame_size, loops.floors[0].rate_fps
    floors = list(loops.floors) if calibration.key_of(environment) == loops.key else []
    missing: dict[str, str] = {}
    for stamps in STAMPS[1:] if floors else STAMPS:
        conditions = _conditions(frame_size, rate_fps, stamps, quick=quick)
        try:
            delays = _delays(bench, conditions, out / f"floor-{frame_size}-{stamps}", watch)
        except (DisturbedError, TesterError) as error:
            if isinstance(error, TesterError) and error.code != NO_STAMPS:
                raise
            missing[stamps] = str(error)
        else:
            floors.append(Floor(frame_size=frame_size, limit_fps=None, rate_fps=rate_fps, stamps=stamps, **delays))
    if not floors:
        raise DisturbedError("; ".join(missing.values()))
    return calibration.made(environment, floors, loops.date), missing


def _floor(bench: Bench, limit: ThroughputPoint, out: Path, watch: Watch, *, quick: bool) -> Floor:
    frame_size = limit.case[FRAME_SIZE]
    limit_fps = None if limit.throughput_fps.median is None else int(limit.throughput_fps.median)
    rate_fps = min(DELAYS_FPS, max(1, (limit_fps or 2 * DELAYS_FPS) // 2))
    conditions = _conditions(frame_size, rate_fps, "loop", quick=quick)
    delays = _delays(bench, conditions, out / f"floor-{frame_size}", watch)
    return Floor(frame_size=frame_size, limit_fps=limit_fps, rate_fps=rate_fps, **delays)


def _conditions(frame_size: int, rate_fps: int, stamps: Stamps, *, quick: bool) -> pdv.Pdv | Latency:
    """Many cards stamp one frame at a time, or messages of PTP alone, which only tagged frames may be."""
    chosen: dict[str, Any] = {
        "frame_sizes": (frame_size,),
        "rate": Rate(value=rate_fps, unit="fps"),
        "stamps": stamps,
        "duration_s": 0.5 if quick else 2.0,
        "drain_s": 0.1,
        "repetitions": 3,
    }
    if stamps != "card":
        return pdv.Pdv(**chosen)
    return Latency(tags=round(chosen["duration_s"] * CARD_TAGS_FPS), tag_after_s=0, **chosen)


def _delays(bench: Bench, conditions: pdv.Pdv | Latency, directory: Path, watch: Watch) -> dict[str, Any]:
    """Of the faster direction, as members of a floor."""
    procedure: Any = latency.PROCEDURE if isinstance(conditions, Latency) else pdv.PROCEDURE
    with watch(directory.name) as observer:
        [point] = campaign.measure(procedure, bench.tester, bench.plan(conditions), directory, observer).points
    assert isinstance(point, DelaysPoint)
    directions = [figures for figures in (point.forward, point.reverse) if figures]
    if not directions:
        raise DisturbedError(
            f"the machine is too busy to be calibrated: no valid trial of {conditions.rate} with connected ports"
            f" ({point.message})"
        )
    typical, worst = ("TL", "WCL") if isinstance(conditions, Latency) else ("median", "D99.9")
    faster = min(directions, key=lambda figures: figures[typical].median)
    typical_us, p999_us = (faster[name].median * 1e3 for name in (typical, worst))
    return {
        "min_us": _least_us(directory),
        "typical_us": typical_us,
        "p999_us": p999_us,
        "stall_us": point.tester_stall_ms * 1e3,
    }


def _least_us(directory: Path) -> float:
    """The least delay of all valid trials of a measurement."""
    results = (event.result for event in of_kind(journal.read(directory), ResultEvent))
    valid = (one for result in results if result.verdict is Verdict.VALID for one in result.directions().values())
    return min(one.delay_us.min for one in valid if one.delay_us is not None and one.delay_us.frames)
