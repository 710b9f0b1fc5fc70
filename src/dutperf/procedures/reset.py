# SPDX-License-Identifier: Apache-2.0
"""Reset: how long a DUT forwards nothing when it is reset (RFC 2544 26.6, RFC 6201 section 4, RFC
8219 7.7).

Frames of the smallest size are offered at the throughput, which is known before. During the trial
the DUT is reset, by ``dut.commands.reset`` of the configuration. Both methods of RFC 6201 are
reported, for each direction:

* ``silence`` (time stamps): from the last frame that arrived before the outage to the first one
  after it, the longest time between two arrivals. Exact to a frame's interval and to a turn of the
  receiving loop, which in a valid trial is at most 10 ms, mostly some microseconds.
* ``loss``: the trial's lost frames divided by the rate. Exact to a frame's interval, and blind to
  what a DUT held back and forwarded late.

A silence that is no longer than a receiving loop may be away, or than a few frames' interval, is no
outage. A DUT that does not forward again before the trial ends has no reset time. Which kind of
reset it is (hardware, software, power) the command decides.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from dutperf.model import Case, DirectionCounts, Trial
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Definition
from dutperf.procedures.during import During
from dutperf.procedures.rates import rate_of, throughput_given, throughput_otherwise
from dutperf.procedures.times import Kind, Rates, Reading, TimesPoint, TimesProcedure, point_builder
from dutperf.results import deviations
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.setup.conditions import AtThroughput, Rate, within_the_trial
from dutperf.setup.option import FIXED, Option

LEAST_OUTAGE_S = 0.01
"""What a receiving loop may be away while frames are lost (docs/decisions/0003-validity.md)."""
LEAST_OUTAGE_FRAMES = 10
"""... and as many frames may be late or lost at a low rate."""
REPORT_S = 2.0
"""The command is started at a report of progress, about one a second; it needs to come before the
trial ends."""


RESET_AFTER_S = 10.0


class ResetConditions(AtThroughput):
    """What a reset is measured for."""

    pattern: Annotated[str, FIXED] = "constant"
    burst_rate: Annotated[Rate | None, FIXED] = None
    warm_up_s: Annotated[float, FIXED] = 0.0
    reset_after_s: Annotated[
        float,
        Field(gt=0, le=86_400),
        Option(
            "When dut.commands.reset is started, to about a second, from the start of the trial. Without it 10, or half"
            " of a trial shorter than 20",
            label="the DUT is reset after, s",
            depends=True,
        ),
    ] = RESET_AFTER_S

    @model_validator(mode="before")
    @classmethod
    def _within_the_trial(cls, members: Any) -> Any:
        return within_the_trial(cls, members, "reset_after_s", RESET_AFTER_S)


def rates(plan: Plan[ResetConditions], case: Case) -> dict[str, int]:
    """The throughput, in frames/s per direction."""
    return {"rate_fps": rate_of(plan, case)}


def reset(plan: Plan[ResetConditions]) -> During:
    """The DUT's command, at its time.

    Raises:
        PlanError: there is none, or the trial ends too early for it.
    """
    conditions = plan.conditions
    if plan.dut_reset is None:
        raise PlanError("nothing resets the DUT: the configuration has no dut.commands.reset", option="reset_after_s")
    if conditions.reset_after_s + REPORT_S > conditions.duration_s:
        text = (
            f"a trial of {conditions.duration_s:g} s ends less than {REPORT_S:g} s after the DUT would be reset, at"
            f" {conditions.reset_after_s:g} s"
        )
        raise PlanError(f"{text}: make the trial longer, or reset the DUT earlier", option="reset_after_s")
    return During(conditions.reset_after_s, plan.dut_reset)


def with_links_that_fall(trial: Trial, _conditions: ResetConditions, _rates: Rates) -> Trial:
    """A trial at the throughput, in which a DUT that restarts may take its links down."""
    return trial.model_copy(update={"question": trial.question.model_copy(update={"links_may_fall": True})})


def read(counts: DirectionCounts, conditions: ResetConditions, rates: Rates) -> Reading:
    """The reset time of a direction, by both methods."""
    after_s, end_s, came = conditions.reset_after_s, conditions.duration_s, counts.arrivals
    least_s = max(LEAST_OUTAGE_S, LEAST_OUTAGE_FRAMES / rates["rate_fps"])
    if came is None or came.first_s > after_s:
        return Reading(
            outcome="not_over", remark="nothing came through before the reset: the DUT was away from the beginning"
        )
    if end_s - came.last_s > max(least_s, came.silence_s):
        return Reading(
            outcome="not_over",
            remark=f"forwarding had not resumed when the trial ended, {end_s - came.last_s:.3f} s after the last frame",
        )
    if came.silence_s <= least_s:
        return Reading(
            outcome="not_caused", remark=f"no silence was longer than {least_s:g} s: nothing seems to have happened"
        )
    if came.longest_gap_to_s <= after_s:
        return Reading(outcome="not_caused", remark="the longest silence was before the reset")
    return Reading(outcome="measured", times_s={"silence": came.silence_s, "loss": counts.lost / rates["rate_fps"]})


def _said(rates: Rates) -> str:
    return f"at {rates['rate_fps']:,} frames/s"


class ResetPoint(TimesPoint):
    title: ClassVar[str] = "reset, s: time without forwarding, by silence (time stamps) and by loss"


RESET = Kind(name="reset", rates=rates, amend=with_links_that_fall, read=read, said=_said, during=reset)


def _smallest(facts: Facts) -> str | None:
    other = sorted(set(facts.conditions.frame_sizes) - {facts.smallest_size})
    return (
        f"measured with frames of {', '.join(map(str, other))} bytes, not of the smallest size, {facts.smallest_size}"
        if other
        else None
    )


RULES = deviations.rules(
    Clause("RFC 2544 section 26.6", _smallest),
    Clause("RFC 2544 sections 26.5, 26.6", throughput_given),
    Clause("RFC 2544 sections 26.5, 26.6", throughput_otherwise),
    Clause("RFC 8219 section 12", deviations.single_iteration),
    any_size=False,
)


PROCEDURE = Definition(
    name=RESET.name,
    summary="Measure how long a DUT forwards nothing when it is reset (RFC 2544 26.6, RFC 6201).",
    conditions=ResetConditions,
    make=partial(TimesProcedure, RESET),
    point=point_builder(RESET, ResetPoint),
    rules=RULES,
)
