# SPDX-License-Identifier: Apache-2.0
"""Ageing time of a switch: how long it keeps a MAC address that sends nothing more (RFC 2889 section 5.7.2 demands
that it is known; IEEE 802.1D).

One trial a repetition: the learning port sends one frame from an address, then the test port sends to it until the
end. At first these frames arrive at the learning port alone. When the address has aged, the switch floods them, and
they arrive at the monitoring ports too. The ageing time follows from how many did: frame k is due at a known time.
Its error is an interval between two test frames, besides how late the learning frame may leave in a valid trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.model import FRAME_SIZE, Case, Load, Trial, TrialResult, Verdict
from dutperf.procedures import evidence
from dutperf.procedures.addresses import AtPorts, flooded, frames_per_second
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan
from dutperf.procedures.definition import Chapter, Definition
from dutperf.results import deviations, points
from dutperf.results.points import Recorded, Row, Trials, cell
from dutperf.results.statistics import Missing, Statistics
from dutperf.setup.conditions import Duration, Repetitions, WithDuration
from dutperf.setup.given import default
from dutperf.traffic import switches
from dutperf.traffic.switches import FORGETTING_FROM_NS, Aged


class AddressAgeing(WithDuration, AtPorts):
    """Conditions of a measurement of the ageing time."""

    duration_s: Duration = 330.0
    repetitions: Repetitions = default(1)


class AgeingFinding(RepetitionFinding):
    event: Literal["ageing"] = "ageing"
    ageing_s: float | None
    """When the first frame was flooded, after the learning frame was due; None: none was, or all were."""
    flooded: int


class AddressAgeingProcedure(Procedure[AddressAgeing]):
    def __init__(self, plan: Plan[AddressAgeing]) -> None:
        super().__init__(plan)
        conditions = plan.conditions
        self._roles = switches.roles(plan.traffic.setup, conditions.learning_port, conditions.test_port)
        self._test_fps = frames_per_second("test_rate", conditions.test_rate)

    def first_load(self, case: Case) -> Load:
        return Load.fps(self._test_fps)

    def limits(self, case: Case) -> dict[str, Any]:
        return {
            "learning_port": self._roles.learning,
            "test_port": self._roles.test,
            "monitoring_ports": list(self._roles.monitors),
            "interval_s": 1 / self._test_fps,
        }

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        made = Aged(self._roles, load.value, duration_s or self.conditions.duration_s)
        return switches.ageing(self.plan.traffic.setup, self.conditions, case[FRAME_SIZE], made, number)

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> AgeingFinding:
        result = self.measure(bench, self.first_load(place.case), place)
        if result.verdict is not Verdict.VALID:
            return AgeingFinding(valid=False, message=evidence.invalidity(result), ageing_s=None, flooded=0)
        if evidence.dead_directions(result):
            message = self.no_forwarding(result)
            return AgeingFinding(not_forwarding=True, message=message, ageing_s=None, flooded=0)
        return self._read(result)

    def _read(self, result: TrialResult) -> AgeingFinding:
        counts, count = result.directions()[self._roles.tested], flooded(result, self._roles)
        known = counts.sent - count
        if counts.lost > 0:
            text = f"{counts.lost:,} test frames were lost, of which it is not known whether they were flooded"
        elif not count:
            text = f"the address did not age within {self.conditions.duration_s:g} s: give a longer duration"
        elif not known:
            text = "every test frame was flooded: the address was not learned at all"
        else:
            ageing_s = FORGETTING_FROM_NS / 1e9 + known / self._test_fps
            text = f"the address was known for {known:,} test frames, the other {count:,} were flooded"
            return AgeingFinding(message=text, ageing_s=ageing_s, flooded=count)
        return AgeingFinding(message=text, ageing_s=None, flooded=count)


class AgeingPoint(points.RepeatedPoint):
    """A case and its ageing time."""

    figure: ClassVar[str] = "ageing_s"
    missing: ClassVar[Mapping[str, Missing]] = {figure: Missing.VOID}
    in_headline: ClassVar[str] = "s until an address ages"
    form: ClassVar[str] = ".3f"
    what: ClassVar[str] = "Ageing time"
    label: ClassVar[str] = "ageing time, s"
    title: ClassVar[str] = "ageing time of an address, s"
    columns: ClassVar[Row] = ("median", "p1", "p99", "error", "limited by")

    ageing_s: Statistics
    interval_s: float
    """Between two test frames: the error."""
    trials: Trials

    def rows(self) -> list[Row]:
        return [(*self.ageing_s.cells(".3f"), cell(self.interval_s, ".4f"), self.limited_by or "-")]

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        return self.interval_s


def point(recorded: Recorded) -> AgeingPoint:
    members = recorded.repeated(AgeingFinding)
    reasons = [event.message for event in recorded.of(AgeingFinding) if event.message and event.ageing_s is None]
    if reasons:
        members["message"] = reasons[-1] + recorded.shortfall(members["repetitions"])
    return AgeingPoint(
        **members,
        ageing_s=recorded.statistics(AgeingFinding, "ageing_s"),
        interval_s=recorded.limits["interval_s"],
        trials=points.trials(recorded.of(ResultEvent)),
    )


PROCEDURE = Definition(
    name="address-ageing",
    summary="Measure how long an address is kept (RFC 2889 5.7.2).",
    chapter=Chapter.TABLES,
    example="--lab linux-bridge --lab-option ports=3 --lab-option ageing_s=5 --duration 10",
    simulated={"duration_s": 3},
    conditions=AddressAgeing,
    make=AddressAgeingProcedure,
    point=point,
    rules=deviations.OF_ADDRESS_TABLES,
)
