# SPDX-License-Identifier: Apache-2.0
"""System recovery: how long a DUT that was overloaded goes on losing frames (RFC 2544 26.5, RFC
8219 7.6).

The throughput is measured before. The DUT is offered 110 % of it, or the media's maximum where that
is lower, for 60 s or longer; then half of that rate. The recovery time is the time from the change
of the rate to the last lost frame, both by the schedule: a lost frame's number says when it was
due. The error is a frame's interval plus the sender's lateness (in a valid trial at most 10 ms,
mostly far less).

A DUT that loses nothing under the overload was not overloaded and has no recovery time. A DUT that
still loses frames in the last tenth of the reduced rate's time has not recovered.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from dutperf.lab.refdut import Properties
from dutperf.model import Case, DirectionCounts, RateChange, Trial
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import ONE_WAY, Evidence, Figure, KnownTruth, fps, medians_of
from dutperf.procedures.rates import rate_of, throughput_given, throughput_otherwise
from dutperf.procedures.times import Kind, Rates, Reading, TimesPoint, TimesProcedure, point_builder
from dutperf.results import deviations
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.setup.conditions import (
    AtThroughput,
    Duration,
    Steady,
    WithDuration,
    WithPacing,
    WithTolerance,
    within_the_trial,
)
from dutperf.setup.option import Option

OVERLOAD_PERCENT = 110
REDUCED_PERCENT = 50
"""Of the overload."""
STILL_LOSING_SHARE = 0.1
"""A loss in this last share of the reduced rate's time means that the DUT did not recover."""


OVERLOAD_S = 60.0


class Recovery(AtThroughput, WithDuration, WithTolerance, WithPacing, Steady):
    """Conditions of a recovery measurement."""

    duration_s: Duration = 120.0
    overload_s: Annotated[
        float,
        Field(gt=0, le=86_400),
        Option(
            "How long the DUT is overloaded. Default: 60, or half the trial",
            label="overload at the beginning of a trial, s",
            depends=True,
        ),
    ] = OVERLOAD_S

    @model_validator(mode="before")
    @classmethod
    def _within_the_trial(cls, members: Any) -> Any:
        return within_the_trial(cls, members, "overload_s", OVERLOAD_S)


def rates(plan: Plan[Recovery], case: Case) -> dict[str, int]:
    """The overload (``rate_fps``), the reduced rate, and the throughput behind both, in frames/s per
    direction."""
    media_fps = plan.traffic.maximum_fps(case)
    throughput_fps = rate_of(plan, case)
    overload_fps = max(throughput_fps * OVERLOAD_PERCENT // 100, throughput_fps + 1)
    if media_fps is not None:
        overload_fps = min(overload_fps, media_fps)
    return {
        "rate_fps": overload_fps,
        "reduced_fps": max(1, overload_fps * REDUCED_PERCENT // 100),
        "throughput_fps": throughput_fps,
    }


def change_rate(trial: Trial, conditions: Recovery, rates: Rates) -> Trial:
    """Change to the reduced rate after the overload. Raises PlanError: the trial ends before the change."""
    if conditions.overload_s >= conditions.duration_s:
        raise PlanError(
            f"the overload of {conditions.overload_s:g} s leaves no time in a trial of {conditions.duration_s:g} s:"
            " make the trial longer, or the overload shorter",
            option="overload_s",
        )
    after_ns, of_directions = round(conditions.overload_s * 1e9), conditions.of_directions
    reduced_fps = {way: of_directions.fps(way, rates["reduced_fps"]) for way in trial.streams()}
    streams = {
        way: stream.model_copy(
            update={"then": RateChange(rate_fps=stream.of_test_frames(reduced_fps[way]), after_ns=after_ns)}
        )
        for way, stream in trial.streams().items()
    }
    return trial.with_streams(streams)


def read(counts: DirectionCounts, conditions: Recovery, _rates: Rates) -> Reading:
    change_s, end_s, losses = conditions.overload_s, conditions.duration_s, counts.losses
    if losses is None or losses.first_s >= change_s:
        return Reading(outcome="not_caused", remark="the overload lost no frame: the DUT was not overloaded")
    if losses.last_s >= end_s - STILL_LOSING_SHARE * (end_s - change_s):
        return Reading(
            outcome="not_over",
            remark=f"frames were still lost {end_s - losses.last_s:.3f} s before the end: the DUT did not recover",
        )
    return Reading(outcome="measured", times_s={"recovery": max(0.0, losses.last_s - change_s)})


def _rates_text(rates: Rates) -> str:
    return (
        f"from {rates['rate_fps']:,} to {rates['reduced_fps']:,} frames/s, with a throughput of"
        f" {rates['throughput_fps']:,}"
    )


class RecoveryPoint(TimesPoint):
    title: ClassVar[str] = "system recovery, s: from the end of the overload to the last lost frame"
    in_headline: ClassVar[Mapping[str, str]] = {"recovery": "s system recovery"}


RECOVERY = Kind(name="recovery", rates=rates, amend=change_rate, read=read, rates_text=_rates_text)


def _overload(facts: Facts) -> str | None:
    overload_s = facts.conditions.overload_s
    return f"an overload of {overload_s:g} s, shorter than {OVERLOAD_S:g} s" if overload_s < OVERLOAD_S else None


RULES = deviations.rules(
    Clause("RFC 2544 section 26.5", _overload),
    Clause("RFC 2544 sections 26.5, 26.6", throughput_given),
    Clause("RFC 2544 sections 26.5, 26.6", throughput_otherwise),
    Clause("RFC 8219 section 12", deviations.single_iteration),
)


# --- a DUT whose truth is known ------------------------------------------------------------------

RECOVERY_FPS = 2_000
RECOVERY_S = 0.4
SHORT_OVERLOAD_S = 0.5
STALL_AT_S = 0.05


def _recovery() -> Figure:
    """The stall ends this long after the rate change; the queue has room as soon as a frame was served."""

    def error(evidence: Evidence) -> float:
        reduced_fps = RECOVERY_FPS * OVERLOAD_PERCENT // 100 * REDUCED_PERCENT // 100
        return 2 / reduced_fps + 2 / RECOVERY_FPS + evidence.floor_s + evidence.typical_disturbance_s()

    return Figure("recovery time", "s", RECOVERY_S, 0.02, medians_of("recovery"), error)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(capacity_fps=RECOVERY_FPS, queue=20),
        {**ONE_WAY, "rate": fps(RECOVERY_FPS), "overload_s": SHORT_OVERLOAD_S, "duration_s": 1.5, "repetitions": 3},
        (_recovery(),),
        inject_fault=lambda dut: dut.stall(SHORT_OVERLOAD_S + RECOVERY_S - STALL_AT_S, after_s=STALL_AT_S),
        more={"repetitions": 5},
    )


PROCEDURE = Definition(
    name=RECOVERY.name,
    summary="Measure how long loss lasts after an overload (RFC 2544 26.5).",
    chapter=Chapter.TIMES,
    example="--lab kernel-ipv4 --lab-option limit_fps=20000 --rate 10k --overload 3 --duration 6 --repetitions 3",
    simulated={"overload_s": 0.25},
    known_truth=_known_truth,
    conditions=Recovery,
    make=partial(TimesProcedure, RECOVERY),
    point=point_builder(RECOVERY, RecoveryPoint),
    rules=RULES,
)
