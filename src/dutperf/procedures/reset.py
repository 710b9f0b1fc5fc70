# SPDX-License-Identifier: Apache-2.0
"""Reset: how long a DUT forwards nothing when it is reset (RFC 2544 26.6, RFC 6201 section 4, RFC
8219 7.7).

Frames of the smallest size are offered at the throughput, which is measured before. During the
trial ``dut.commands.reset`` of the configuration resets the DUT. Both methods of RFC 6201 are
reported for each direction:

* ``arrival_gap`` (time stamps): the longest time between two arrivals, from the last frame before
  the outage to the first one after it. The error is a frame's interval plus a turn of the receiving
  loop, which in a valid trial takes at most 10 ms, mostly some microseconds.
* ``loss``: the trial's lost frames divided by the direction's rate. The error is a frame's interval.
  Frames that the DUT held back and forwarded late do not count.

An arrival gap is an outage only if it is longer than the longest permitted stall of a receiving
loop, and than a few frames' intervals. A DUT that does not forward again before the trial ends has
no reset time. The command decides the kind of reset (hardware, software, power).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from dutperf.lab.refdut import Properties
from dutperf.model import Case, DirectionCounts, Trial
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import Evidence, Figure, KnownTruth, fps, medians_of
from dutperf.procedures.rates import rate_of, throughput_given, throughput_otherwise
from dutperf.procedures.times import Kind, Rates, Reading, TimesPoint, TimesProcedure, point_builder
from dutperf.procedures.trial_action import TrialAction
from dutperf.results import deviations
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.setup.conditions import AtThroughput, Steady, WithDuration, WithTolerance, within_the_trial
from dutperf.setup.option import Option

LEAST_OUTAGE_S = 0.01
"""Longest permitted stall of a receiving loop while frames are lost
(docs/decisions/0003-validity.md)."""
LEAST_OUTAGE_FRAMES = 10
"""... and frames that may be late or lost at a low rate."""
REPORT_S = 2.0
"""The command starts at a progress report, about one a second, which has to come before the trial
ends."""


RESET_AFTER_S = 10.0


class Reset(AtThroughput, WithDuration, WithTolerance, Steady):
    """Conditions of a reset measurement."""

    reset_after_s: Annotated[
        float,
        Field(gt=0, le=86_400),
        Option(
            "When the DUT is reset. Default: 10, or half the trial",
            label="the DUT is reset after, s",
            depends=True,
        ),
    ] = RESET_AFTER_S

    @model_validator(mode="before")
    @classmethod
    def _within_the_trial(cls, members: Any) -> Any:
        return within_the_trial(cls, members, "reset_after_s", RESET_AFTER_S)


def rates(plan: Plan[Reset], case: Case) -> dict[str, int]:
    """The throughput, in frames/s per direction."""
    return {"rate_fps": rate_of(plan, case)}


def reset(plan: Plan[Reset]) -> TrialAction:
    """The DUT's reset command, as the trial's action. Raises PlanError: there is no command, or the trial ends too
    early for it."""
    conditions = plan.conditions
    if not plan.dut.can("reset"):
        raise PlanError("nothing resets the DUT: the configuration has no dut.commands.reset", option="reset_after_s")
    if conditions.reset_after_s + REPORT_S > conditions.duration_s:
        text = (
            f"a trial of {conditions.duration_s:g} s ends less than {REPORT_S:g} s after the reset at"
            f" {conditions.reset_after_s:g} s"
        )
        raise PlanError(f"{text}: make the trial longer, or reset the DUT earlier", option="reset_after_s")
    return TrialAction(conditions.reset_after_s, plan.dut.reset)


def allow_link_down(trial: Trial, _conditions: Reset, _rates: Rates) -> Trial:
    """Allow link down: a DUT that restarts may take its links down."""
    return trial.model_copy(update={"question": trial.question.model_copy(update={"links_may_fall": True})})


def read(counts: DirectionCounts, conditions: Reset, _rates: Rates) -> Reading:
    """The reset time of a direction, by both methods, at the direction's own rate of test frames."""
    after_s, end_s, arrivals = conditions.reset_after_s, conditions.duration_s, counts.arrivals
    if arrivals is None or arrivals.first_s > after_s:
        return Reading(
            outcome="not_over", remark="nothing came through before the reset: the DUT was down from the beginning"
        )
    interval_s, gap_s = end_s / counts.sent, arrivals.longest_gap_s
    least_s = max(LEAST_OUTAGE_S, LEAST_OUTAGE_FRAMES * interval_s)
    if end_s - arrivals.last_s > least_s:
        return Reading(
            outcome="not_over",
            remark=(
                f"forwarding had not resumed when the trial ended, {end_s - arrivals.last_s:.3f} s after the last frame"
            ),
        )
    if gap_s <= least_s:
        return Reading(
            outcome="not_caused", remark=f"no arrival gap was longer than {least_s:g} s: the DUT was probably not reset"
        )
    if arrivals.longest_gap_to_s <= after_s:
        return Reading(outcome="not_caused", remark="the longest arrival gap was before the reset")
    return Reading(outcome="measured", times_s={"arrival_gap": gap_s, "loss": counts.lost * interval_s})


def _rates_text(rates: Rates) -> str:
    return f"at {rates['rate_fps']:,} frames/s"


class ResetPoint(TimesPoint):
    title: ClassVar[str] = "reset, s: time without forwarding, by arrival gap (time stamps) and by loss"
    in_headline: ClassVar[Mapping[str, str]] = {
        "arrival_gap": "s without forwarding by arrival gap",
        "loss": "s by loss",
    }


RESET = Kind(name="reset", rates=rates, amend=allow_link_down, read=read, rates_text=_rates_text, action=reset)


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


# --- a DUT whose truth is known ------------------------------------------------------------------

RESET_FPS = 1_000
RESET_S = 3.0
"""Stall and reset lose more than half of a trial's frames: late frames cannot cause so much loss
(validity.py)."""


def _reset(name: str) -> Figure:
    def error(evidence: Evidence) -> float:
        return 2 / RESET_FPS + evidence.typical_disturbance_s()

    return Figure(f"reset time by {name.replace('_', ' ')}", "s", RESET_S, 0.02, medians_of(name), error)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Properties(),
        {"rate": fps(RESET_FPS), "duration_s": 5.5, "reset_after_s": 1.0},
        (_reset("arrival_gap"), _reset("loss")),
        reset_s=RESET_S,
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name=RESET.name,
    summary="Measure how long a reset stops the DUT (RFC 2544 26.6, 6201).",
    chapter=Chapter.TIMES,
    example="--lab kernel-ipv4 --rate 5k --duration 5 --reset-after 2 --repetitions 3",
    simulated={"duration_s": 3, "reset_after_s": 1},
    known_truth=_known_truth,
    conditions=Reset,
    make=partial(TimesProcedure, RESET),
    point=point_builder(RESET, ResetPoint),
    rules=RULES,
)
