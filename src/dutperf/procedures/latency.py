# SPDX-License-Identifier: Apache-2.0
"""Latency: typical and worst-case latency of tagged frames at the throughput (RFC 8219 7.2).

The trial lasts 120 s or longer. After 60 s at least 500 frames are tagged, spread evenly over the
rest. The typical latency (TL) of a trial is the median of the tagged frames' latencies, the
worst-case latency (WCL) their 99.9th percentile. A lost tagged frame counts as the largest possible
latency: the time from the first tag to the end of receiving. The trial is repeated 20 times or
more.

On request the latency is that of RFC 2544 26.2: one frame is tagged, after 60 s, and the result is
the mean over the trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from dutperf.lab.refdut import Properties
from dutperf.model import Clocks, DirectionCounts, Stamping, Tagged, Trial
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.delays import (
    AT_THROUGHPUT,
    SUBTRACTED,
    DelayConditions,
    Delays,
    DelaysPoint,
    Kind,
    of_stream,
    point_builder,
)
from dutperf.procedures.known_truth import DELAY_MS, Figure, KnownTruth, delayed, medians_of, of_delays
from dutperf.results import deviations
from dutperf.results.charts import Mark
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row
from dutperf.setup.conditions import Calibrated, Duration, within_the_trial
from dutperf.setup.option import Option

STAMPS = (
    "from before a frame is handed to the sending driver until the receiving core has it: longer than either definition"
    " of RFC 1242 3.8 (store-and-forward, bit-forwarding) by the tester's own sending and receiving and by the frame's"
    " time on the links"
)
"""What the time stamps measure: RFC 2544 26.2 asks for the definition that was used."""
KERNEL_STAMPS = (
    "by the kernel's stamps, from when the sending driver had a frame until the receiving driver handed it up: longer"
    " than either definition of RFC 1242 3.8 (store-and-forward, bit-forwarding) by the drivers' and the links' part"
)
CARD_STAMPS = (
    "by the cards' stamps of sending and receiving: of cards that stamp a frame's beginning, as PTP needs it, the"
    " definition of RFC 1242 3.8 for bit-forwarding devices, with the time on the cables"
)


LATENCY_TRIAL_S = 120.0
TAGS = 500
TAG_AFTER_S = 60.0


LatencyDefinition = Literal["rfc8219", "rfc2544"]


class Latency(DelayConditions, Calibrated):
    """Conditions of a latency measurement."""

    duration_s: Duration = 120.0
    definition: Annotated[
        LatencyDefinition,
        Option(
            "rfc8219: typical and worst case; rfc2544: one frame a trial",
            label="definition of latency",
        ),
    ] = "rfc8219"
    tags: Annotated[
        int,
        Field(ge=1, le=10_000_000),
        Option(
            "Tagged frames in each direction. Default: 50,000, or 1 (rfc2544)",
            label="tagged frames of a trial",
            metavar="COUNT",
            depends=True,
        ),
    ] = 50_000
    tag_after_s: Annotated[
        float,
        Field(ge=0, le=86_400),
        Option(
            "First tagged frame after. Default: 60, or half the trial",
            label="first frame tagged after, s",
            depends=True,
        ),
    ] = TAG_AFTER_S

    @model_validator(mode="before")
    @classmethod
    def _tags_of_the_definition(cls, members: Any) -> Any:
        chosen = isinstance(members, dict) and members.get("definition") == "rfc2544"
        return {"tags": 1, **members} if chosen else members

    @model_validator(mode="before")
    @classmethod
    def _tags_within_the_trial(cls, members: Any) -> Any:
        return within_the_trial(cls, members, "tag_after_s", TAG_AFTER_S)


def figures(counts: DirectionCounts) -> dict[str, float] | None:
    """TL and WCL of a direction, in milliseconds."""
    delay = counts.delay_us
    return None if delay is None else {"TL": delay.p50 / 1000, "WCL": delay.p999 / 1000}


def figure_of_one(counts: DirectionCounts) -> dict[str, float] | None:
    """The latency of the tagged frame of a direction, in milliseconds."""
    delay = counts.delay_us
    return None if delay is None else {"latency": delay.max / 1000}


def stamp(trial: Trial, conditions: Latency) -> Trial:
    """Tag frames: as many as the conditions ask for, at most all, of all flows. Raises PlanError: the trial ends before
    the first tag."""
    after_ns = round((conditions.joining_s + conditions.tag_after_s) * 1e9)
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
        raise PlanError("no frame is sent after the first tag's time: tag earlier", option="tag_after_s")
    lost_ns = trial.duration_ns - after_ns + trial.drain_ns
    return trial.model_copy(
        update={"stamping": Stamping.TAGGED, "tagged": Tagged(count=count, after_ns=after_ns), "lost_delay_ns": lost_ns}
    )


class LatencyPoint(DelaysPoint):
    title: ClassVar[str] = "latency, ms: typical (median) and worst-case (99.9th percentile)"
    in_headline: ClassVar[Mapping[str, str]] = {"TL": "ms typical", "WCL": "ms worst-case latency"}
    what: ClassVar[str] = "Latency"
    plotted: ClassVar[Mapping[str, str]] = {
        "TL": "typical latency, the median of a trial's tagged frames",
        "WCL": "worst-case latency, the 99.9th percentile",
    }
    marks: ClassVar[Sequence[Mark]] = (Mark("TL", 0.5), Mark("WCL", 0.999))


class MeanLatencyPoint(DelaysPoint):
    title: ClassVar[str] = "latency, ms (RFC 2544 26.2)"
    columns: ClassVar[Row] = ("figure", "mean", *DelaysPoint.columns[1:])
    in_headline: ClassVar[Mapping[str, str]] = {"latency": "ms mean latency"}
    what: ClassVar[str] = "Latency"
    plotted: ClassVar[Mapping[str, str]] = {"latency": "latency of the tagged frame of a trial (RFC 2544 26.2)"}

    latency_is: str = STAMPS

    @model_validator(mode="before")
    @classmethod
    def _by_whom(cls, members: dict[str, Any]) -> dict[str, Any]:
        if members.get("stamps") is None or members.get("clocks") is None:
            return members
        at = Clocks.model_validate(members["clocks"]).sending.at
        return {"latency_is": CARD_STAMPS if at == "card" else KERNEL_STAMPS, **members}

    def remarks(self) -> Iterator[str]:
        """Plus the definition that was used."""
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


def latency(plan: Plan[Latency]) -> Delays:
    """The procedure, by the chosen definition. Raises PlanError: see :class:`~dutperf.procedures.delays.Delays`; or
    more than one tagged frame with RFC 2544's definition."""
    conditions = plan.conditions
    if conditions.definition == "rfc2544" and conditions.tags != 1:
        raise PlanError("RFC 2544 26.2 tags one frame of a trial; more need RFC 8219's definition", option="tags")
    return Delays(DEFINITIONS[conditions.definition][0], plan)


def point(recorded: Recorded) -> DelaysPoint:
    return point_builder(*DEFINITIONS[recorded.conditions.definition])(recorded)


def delays_of_stream(recorded: Recorded, counts: DirectionCounts) -> dict[str, float] | None:
    """The latency of a stream, by the chosen definition (:data:`dutperf.results.streams.Delays`)."""
    return of_stream(DEFINITIONS[recorded.conditions.definition][0])(recorded, counts)


def _latency(facts: Facts) -> str | None:
    """Deviations from RFC 8219."""
    if facts.conditions.definition != "rfc8219":
        return (
            "latency as RFC 2544 26.2 defines it: the mean of one tagged frame a trial, no typical and worst-case"
            " latency of many"
        )
    tags = facts.conditions.tags
    return "; ".join([*([f"{tags} tagged frames, fewer than {TAGS}"] if tags < TAGS else []), *_of_both(facts)]) or None


def _mean_latency(facts: Facts) -> str | None:
    """Deviations from RFC 2544, where its definition was chosen."""
    if facts.conditions.definition != "rfc2544":
        return None
    return "; ".join(text for text in (deviations.few_repetitions(facts), *_of_both(facts)) if text) or None


def _of_both(facts: Facts) -> list[str]:
    """Deviations in the times and the tagged frames, which are the same in both RFCs."""
    duration_s, after_s = facts.conditions.duration_s, facts.conditions.tag_after_s
    parts = [f"trials of {duration_s:g} s, shorter than {LATENCY_TRIAL_S:g} s"] if duration_s < LATENCY_TRIAL_S else []
    if after_s < TAG_AFTER_S:
        parts.append(f"frames are tagged from {after_s:g} s, not from {TAG_AFTER_S:g} s")
    if facts.ptp:
        parts.append("tagged frames are messages of PTP between fixed addresses, as a card stamps no others")
    return parts


RULES = deviations.rules(
    Clause("RFC 2544 section 26.2", _mean_latency), Clause("RFC 8219 section 7.2", _latency), *AT_THROUGHPUT, SUBTRACTED
)


# --- a DUT whose truth is known ------------------------------------------------------------------


def _known_truth() -> KnownTruth:
    typical = Figure("typical latency", "ms", DELAY_MS, 0.1 * DELAY_MS, medians_of("TL"), delayed)
    return of_delays(Properties(delay_ms=DELAY_MS), typical, tags=500, tag_after_s=0.1)


PROCEDURE = Definition(
    name=LATENCY.name,
    summary="Measure latency at the throughput (RFC 8219 7.2, 2544 26.2).",
    chapter=Chapter.DELAYS,
    example="--lab kernel-ipv4 --rate 10k --duration 5 --repetitions 3",
    simulated={"tags": 500, "tag_after_s": 0.1},
    known_truth=_known_truth,
    conditions=Latency,
    make=latency,
    point=point,
    delays=delays_of_stream,
    rules=RULES,
)
