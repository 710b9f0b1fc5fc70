# SPDX-License-Identifier: Apache-2.0
"""Inter-packet delay variation: how the one-way delay changes from each frame to the next, at the
throughput (RFC 8219 7.3.2, RFC 5481).

The figures are minimum, median and maximum of the differences between two successive frames that
both arrived, one directly after the other. The trial lasts 60 s or longer, every frame is stamped,
and it is repeated 20 times or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dutperf.lab.refdut import Properties
from dutperf.model import DirectionCounts, Stamping, Trial
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.delays import AT_THROUGHPUT, DelayConditions, Delays, DelaysPoint, Kind, point_builder
from dutperf.procedures.known_truth import DELAY_MS, Evidence, Figure, KnownTruth, delayed, fps, medians_of, of_delays
from dutperf.results import deviations
from dutperf.setup.conditions import Conditions


def figures(counts: DirectionCounts) -> dict[str, float] | None:
    """Smallest, median and largest change of delay of a direction, in milliseconds."""
    change = counts.ipdv_us
    return None if change is None else {"min": change.min / 1000, "median": change.p50 / 1000, "max": change.max / 1000}


def stamp(trial: Trial, _conditions: Conditions) -> Trial:
    return trial.model_copy(update={"stamping": Stamping.EVERY})


def make(plan: Plan) -> Delays:
    """The procedure. Raises PlanError where a frame and its predecessor may be at different
    receivers."""
    if plan.config.get("engine", {}).get("queues", 1) > 1:
        raise PlanError(
            "a frame and the one before it may arrive on different queues: measure this with one queue", option="queues"
        )
    return Delays(IPDV, plan)


class IpdvPoint(DelaysPoint):
    title: ClassVar[str] = "inter-packet delay variation, ms"
    in_headline: ClassVar[Mapping[str, str]] = {"median": "ms median", "max": "ms largest change of delay"}
    lost_are: ClassVar[str] = "they have no change of delay"
    what: ClassVar[str] = "Inter-packet delay variation"
    plotted: ClassVar[Mapping[str, str]] = {
        "min": "smallest change of delay from a frame to the next",
        "median": "median of the changes",
        "max": "largest change",
    }


IPDV = Kind(name="ipdv", headline="median", figures=figures, stamp=stamp)


class Ipdv(DelayConditions):
    """Conditions of an inter-packet delay variation measurement."""


RULES = deviations.rules(*AT_THROUGHPUT)


# --- a DUT whose truth is known ------------------------------------------------------------------

CHANGED_EVERY = 3
CHANGE_FPS = 200
"""Four frames arrive while one is delayed: two of them overtake it, and no change depends on their order."""


def _change(name: str, member: str, sign: int) -> Figure:
    """Into a delayed frame and out of it. A maximum over few changes is sensitive to disturbances."""

    def error(evidence: Evidence) -> float:
        return delayed(evidence) + evidence.typical_disturbance_s() * 1e3

    return Figure(name, "ms", sign * DELAY_MS, 0.25 * DELAY_MS, medians_of(member), error)


def _known_truth() -> KnownTruth:
    return of_delays(
        Properties(extra_delay_every=CHANGED_EVERY, extra_delay_ms=DELAY_MS),
        _change("largest change", "max", 1),
        _change("smallest change", "min", -1),
        rate=fps(CHANGE_FPS),
    )


PROCEDURE = Definition(
    name=IPDV.name,
    summary="Measure delay changes from frame to frame (RFC 8219 7.3.2).",
    chapter=Chapter.DELAYS,
    example="--lab kernel-ipv4 --rate 10k --duration 5 --repetitions 3",
    known_truth=_known_truth,
    conditions=Ipdv,
    make=make,
    point=point_builder(IPDV, IpdvPoint),
    rules=RULES,
    of_changes=True,
)
