# SPDX-License-Identifier: Apache-2.0
"""Latency: typical and worst-case latency of tagged frames at the throughput (RFC 8219 7.2).

The trial lasts 120 s or longer; after 60 s at least 500 frames are tagged, spread evenly over the
rest. The typical latency (TL) of a trial is the median, the worst-case latency (WCL) the 99.9th
percentile of the tagged frames' latencies. A tagged frame that is lost counts as the largest
latency it could have had: the time from the first tag to the end of receiving. The trial is
repeated 20 times or more.

On request as RFC 2544 26.2 defines it: one frame is tagged, after 60 s; the result is the mean over
the trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from dutperf.model import DirectionCounts, Stamping, Tagged, Trial
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Definition
from dutperf.procedures.delays import Delays, DelaysPoint, Kind, point_builder
from dutperf.results.charts import Mark
from dutperf.results.points import Recorded, Row
from dutperf.setup.conditions import Conditions, LatencyDefinition

STAMPS = (
    "from before a frame is handed to the sending driver until the receiving core has it: longer than either definition"
    " of RFC 1242 3.8 (store-and-forward, bit-forwarding) by the tester's own sending and receiving and by the frame's"
    " time on the links"
)
"""What the stamps measure: RFC 2544 26.2 asks for the definition that was used."""


def figures(counts: DirectionCounts) -> dict[str, float] | None:
    """TL and WCL of a direction, in milliseconds."""
    delay = counts.delay_us
    return None if delay is None else {"TL": delay.p50 / 1000, "WCL": delay.p999 / 1000}


def figure_of_one(counts: DirectionCounts) -> dict[str, float] | None:
    """The latency of the tagged frame of a direction, in milliseconds."""
    delay = counts.delay_us
    return None if delay is None else {"latency": delay.max / 1000}


def stamp(trial: Trial, conditions: Conditions) -> Trial:
    """With tagged frames, as many as asked for or as there are.

    Raises:
        PlanError: the trial ends before the first tag.
    """
    after_ns = round(conditions.tag_after_s * 1e9)
    if after_ns >= trial.duration_ns:
        raise PlanError(
            f"the first frame would be tagged after {conditions.tag_after_s:g} s of a trial of {trial.duration_s:g} s",
            option="tag_after_s",
        )
    count = min(
        conditions.tags,
        *(trial.intended(direction) - trial.times(direction).frames_before(after_ns) for direction in trial.streams()),
    )
    if count < 1:
        raise PlanError("no frame is sent after the first tag's time", option="tag_after_s")
    lost_ns = trial.duration_ns - after_ns + trial.drain_ns
    return trial.model_copy(
        update={"stamping": Stamping.TAGGED, "tagged": Tagged(count=count, after_ns=after_ns), "lost_delay_ns": lost_ns}
    )


class LatencyPoint(DelaysPoint):
    title: ClassVar[str] = "latency, ms: typical (median) and worst-case (99.9th percentile)"
    what: ClassVar[str] = "Latency"
    plotted: ClassVar[Mapping[str, str]] = {
        "TL": "typical latency, the median of a trial's tagged frames",
        "WCL": "worst-case latency, the 99.9th percentile",
    }
    marks: ClassVar[Sequence[Mark]] = (Mark("TL", 0.5), Mark("WCL", 0.999))


class MeanLatencyPoint(DelaysPoint):
    title: ClassVar[str] = "latency, ms (RFC 2544 26.2)"
    columns: ClassVar[Row] = ("figure", "mean", *DelaysPoint.columns[1:])
    what: ClassVar[str] = "Latency"
    plotted: ClassVar[Mapping[str, str]] = {"latency": "latency of the tagged frame of a trial (RFC 2544 26.2)"}

    latency_is: str = STAMPS

    def remarks(self) -> Iterator[str]:
        """See :class:`dutperf.results.points.Point`; and the definition that was used."""
        yield from super().remarks()
        yield f": latency is taken {self.latency_is}"


LATENCY = Kind(name="latency", headline="TL", figures=figures, stamp=stamp, latencies=frozenset({"TL", "WCL"}))
MEAN_LATENCY = Kind(
    name="latency", headline="latency", figures=figure_of_one, stamp=stamp, mean=True, latencies=frozenset({"latency"})
)
DEFINITIONS: dict[LatencyDefinition, tuple[Kind, type[DelaysPoint]]] = {
    "rfc8219": (LATENCY, LatencyPoint),
    "rfc2544": (MEAN_LATENCY, MeanLatencyPoint),
}


def latency(plan: Plan) -> Delays:
    """The procedure, by the definition that was chosen.

    Raises:
        PlanError: see :class:`~dutperf.procedures.delays.Delays`; or more than one tagged frame
            where there is to be one.
    """
    conditions = plan.conditions
    if conditions.definition == "rfc2544" and conditions.tags != 1:
        raise PlanError(
            "RFC 2544 26.2 tags one frame of a trial; more of them are RFC 8219's definition", option="tags"
        )
    return Delays(DEFINITIONS[conditions.definition][0], plan)


def point(recorded: Recorded) -> DelaysPoint:
    """The point that the journal holds (:data:`dutperf.results.points.PointBuilder`)."""
    return point_builder(*DEFINITIONS[recorded.conditions.definition])(recorded)


PROCEDURE = Definition(
    name=LATENCY.name,
    summary=(
        "Measure the latency of tagged frames at the throughput: typical and worst case (RFC 8219 7.2), or the mean"
        " (RFC 2544 26.2)."
    ),
    options=("repetitions", "rate", "found", "definition", "tags", "tag_after_s", "delays_to", "subtract_calibration"),
    make=latency,
    point=point,
    defaults={"duration_s": 120.0},
)
