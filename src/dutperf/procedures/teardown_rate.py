# SPDX-License-Identifier: Apache-2.0
"""Connection tear-down rate of a stateful DUT (RFC 9693 section 4.8).

N connections are opened, then the DUT deletes all of them at once, by ``dut.commands.clear_connections`` of the
configuration or by the lab. The tear-down rate is N divided by the time of the deletion. That is the time that
the command prints, else the time that it takes; then the time of the same command with an empty table is
reported beside it, because some of the time is the command's own. Entries that a DUT deletes one by one may
take another time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.lab.refdut import NatProperties
from dutperf.model import FRAME_SIZE, Case, Load, Trial, Unit, Verdict
from dutperf.procedures import evidence, stateful
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import Evidence, Figure, KnownTruth, fps, median_of
from dutperf.procedures.one_frame_each import OneFrameEach
from dutperf.procedures.stateful import CONNECTIONS
from dutperf.results import deviations, points
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row, Trials, cell
from dutperf.results.statistics import Missing, Statistics
from dutperf.setup.conditions import (
    PRELIMINARY_RATE,
    ConnectionCount,
    PreliminaryRate,
)
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option
from dutperf.traffic import ConnectionTraffic


class TeardownRate(OneFrameEach):
    """Conditions of a tear-down measurement."""

    connections: Annotated[
        Given[ConnectionCount, str],
        Option(
            "Connections that are opened and deleted (RFC 9693 section 4.8: several)",
            label="connections",
            metavar="COUNT,…",
            several=True,
        ),
    ] = default(CONNECTIONS)
    preliminary_rate: PreliminaryRate = default(PRELIMINARY_RATE)


class TeardownFinding(RepetitionFinding):
    event: Literal["teardown"] = "teardown"
    deletion_s: float | None
    empty_s: float | None
    """The same command's time with an empty table."""
    rate_cps: float | None


class TeardownRateProcedure(Procedure[TeardownRate]):
    def __init__(self, plan: Plan[TeardownRate]) -> None:
        super().__init__(plan)
        if not plan.dut.has_connections:
            raise PlanError("a cable has no connections to delete", option="connections")
        self._rate_cps = stateful.preliminary_cps(plan, plan.conditions, plan.conditions.preliminary_rate)

    def first_load(self, case: Case) -> Load:
        return Load(self._rate_cps, Unit.CONNECTIONS_PER_SECOND)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        opening = ConnectionTraffic(self.plan.traffic.setup, self.conditions).opening(
            case[FRAME_SIZE], load.value, number
        )
        question = opening.question.model_copy(update={"delete_connections": True})
        return Trial(**{**dict(opening), "question": question})

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> TeardownFinding:
        result = self.measure(bench, self.first_load(place.case), place)
        if result.verdict is not Verdict.VALID:
            return self._without(evidence.invalidity(result), valid=False)
        if result.deletion_s is None:
            return self._without("the deletion of the connections was not timed")
        return TeardownFinding(
            deletion_s=result.deletion_s,
            empty_s=result.deletion_empty_s,
            rate_cps=None if not result.deletion_s else self.conditions.connections / result.deletion_s,
        )

    def _without(self, message: str, *, valid: bool = True) -> TeardownFinding:
        return TeardownFinding(valid=valid, message=message, deletion_s=None, empty_s=None, rate_cps=None)


class TeardownPoint(points.RepeatedPoint):
    """A case and its tear-down rate."""

    less_is_better: ClassVar[Sequence[str]] = ("*_s",)
    missing: ClassVar[Mapping[str, Missing]] = {"*": Missing.VOID}
    figure: ClassVar[str] = "teardown_cps"
    in_headline: ClassVar[str] = Unit.CONNECTIONS_PER_SECOND
    what: ClassVar[str] = "Tear-down rate"
    label: ClassVar[str] = f"tear-down rate, {Unit.CONNECTIONS_PER_SECOND.label}"
    title: ClassVar[str] = "connection tear-down rate, connections/s"
    columns: ClassVar[Row] = ("connections", "median", "p1", "p99", "deletion s", "empty table s", "limited by")

    connections: int
    teardown_cps: Statistics
    deletion_s: Statistics
    empty_s: Statistics
    trials: Trials

    def rows(self) -> list[Row]:
        times = (cell(self.deletion_s.median, ".4f"), cell(self.empty_s.median, ".4f"))
        return [(f"{self.connections:,}", *self.teardown_cps.cells(",.0f"), *times, self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        if self.message not in ("measured", "not measured"):
            yield f": {self.message}"


def point(recorded: Recorded) -> TeardownPoint:
    members = recorded.repeated(TeardownFinding)
    reasons = [event.message for event in recorded.of(TeardownFinding) if event.message]
    if reasons:
        members["message"] = reasons[-1] + recorded.shortfall(members["repetitions"])
    return TeardownPoint(
        **members,
        connections=recorded.conditions.connections,
        teardown_cps=recorded.statistics(TeardownFinding, "rate_cps"),
        deletion_s=recorded.statistics(TeardownFinding, "deletion_s"),
        empty_s=recorded.statistics(TeardownFinding, "empty_s"),
        trials=points.trials(recorded.of(ResultEvent)),
    )


RULES = deviations.rules(Clause("RFC 9693 section 6", deviations.single_iteration), any_size=False)


# --- a DUT whose truth is known ------------------------------------------------------------------

DELETED, DELETED_CPS = 10_000, 10_000
DELETION_SLACK_S = 0.01
"""By which this process may notice the end of a deletion too late."""


def _teardown() -> Figure:
    """The DUT deletes at a fixed rate; the request and its answer take a part of the measured time."""

    def error(evidence: Evidence) -> float:
        own_s = (evidence.point.empty_s.median or 0.0) + DELETION_SLACK_S
        return DELETED_CPS * own_s * DELETED_CPS / DELETED

    return Figure("tear-down rate", "connections/s", DELETED_CPS, 0.03 * DELETED_CPS, median_of("teardown_cps"), error)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        NatProperties(deletion_cps=DELETED_CPS),
        {"connections": DELETED, "preliminary_rate": fps(10_000), "repetitions": 3},
        (_teardown(),),
    )


PROCEDURE = Definition(
    name="teardown-rate",
    summary="Measure how fast connections are deleted (RFC 9693 4.8).",
    chapter=Chapter.CONNECTIONS,
    example="--lab nft-nat44 --connections 2000,4000 --repetitions 3",
    known_truth=_known_truth,
    conditions=TeardownRate,
    make=TeardownRateProcedure,
    point=point,
    rules=RULES,
)
