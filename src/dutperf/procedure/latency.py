# SPDX-License-Identifier: Apache-2.0
"""Latency: typical and worst-case latency of tagged frames at the throughput (RFC 8219 7.2).

The trial lasts 120 s or longer; after 60 s at least 500 frames are tagged, spread evenly over the rest. The typical latency (TL) of a trial is the
median, the worst-case latency (WCL) the 99.9th percentile of the tagged frames' latencies. A tagged frame that is lost counts as the largest latency
it could have had: the time from the first tag to the end of receiving. The trial is repeated 20 times or more.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from dutperf.conditions import Conditions
from dutperf.model import DirectionCounts, Stamping, Tagged, Trial
from dutperf.procedure.bench import PlanError
from dutperf.procedure.definition import Definition
from dutperf.procedure.delays import Delays, DelaysPoint, Kind, point_builder


def figures(counts: DirectionCounts) -> dict[str, float] | None:
    """TL and WCL of a direction, in milliseconds."""
    delay = counts.delay_us
    return None if delay is None else {"TL": delay.p50 / 1000, "WCL": delay.p999 / 1000}


def stamp(trial: Trial, conditions: Conditions) -> Trial:
    """With tagged frames, as many as asked for or as there are.

    Raises:
        PlanError: the trial ends before the first tag.
    """
    after_ns = round(conditions.tag_after_s * 1e9)
    if after_ns >= trial.duration_ns:
        raise PlanError(f"the first frame would be tagged after {conditions.tag_after_s:g} s of a trial of {trial.duration_s:g} s", option="tag_after_s")
    count = min(conditions.tags, *(trial.intended(direction) - frames_before(after_ns, stream.rate_fps) for direction, stream in trial.streams().items()))
    if count < 1:
        raise PlanError("no frame is sent after the first tag's time", option="tag_after_s")
    lost_ns = trial.duration_ns - after_ns + trial.drain_ns
    return trial.model_copy(update={"stamping": Stamping.TAGGED, "tagged": Tagged(count=count, after_ns=after_ns), "lost_delay_ns": lost_ns})


def frames_before(after_ns: int, rate_fps: int) -> int:
    """Frames of a direction that are due before ``after_ns``."""
    return -(-rate_fps * after_ns // 1_000_000_000)


class LatencyPoint(DelaysPoint):
    title: ClassVar[str] = "latency, ms: typical (median) and worst-case (99.9th percentile)"


LATENCY = Kind(name="latency", headline="TL", figures=figures, stamp=stamp)

PROCEDURE = Definition(
    name=LATENCY.name,
    summary="Measure typical and worst-case latency of tagged frames at the throughput (RFC 8219 7.2).",
    options=("repetitions", "rate", "found", "tags", "tag_after_s"),
    make=partial(Delays, LATENCY),
    point=point_builder(LATENCY, LatencyPoint),
    defaults={"duration_s": 120.0},
)
