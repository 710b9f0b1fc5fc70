# SPDX-License-Identifier: Apache-2.0
"""Connection tracking table capacity of a stateful DUT (RFC 9693 section 4.9).

C0 connections surely fit; R0 is the validated establishment rate with them. The exponential search
doubles the connections, CT = 2 CS, and searches for their validated establishment rate RT from 0 to RS; it
ends if the DUT collapses, or if RT is below beta * RS. Otherwise CS = CT and RS = RT. The binary search
then narrows the range between CS and CT to the capacity error E: if the DUT collapses or the rate is below
gamma * RS, the capacity is lower, else it is not.

Whether a rate of at least beta * RS (or gamma * RS) passes decides each step, so the inner searches go no lower.
A connection counts only if its reply passes. Whether the DUT evicts old connections for new ones or refuses new
ones, replies are missing beyond its capacity. A load that the tester cannot measure ends the repetition without a
result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dutperf.journal import RepetitionFinding, ResultEvent
from dutperf.judge.setup_faults import limit_of
from dutperf.lab.refdut import NatProperties
from dutperf.model import Case, LimitedBy, Load, Trial, Unit, Value
from dutperf.procedures import evidence, searches, stateful
from dutperf.procedures.base import Prior, Procedure
from dutperf.procedures.bench import Bench, Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import Figure, KnownTruth, fps, median_of
from dutperf.procedures.repeated_searches import PRECEDENCE, share_of
from dutperf.procedures.stateful import OfConnections, ReplyShare
from dutperf.results import deviations, points
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row, Trials
from dutperf.results.statistics import Statistics
from dutperf.search import Outcome
from dutperf.search.binary import TYPICAL_TRIALS, BinarySearch, Bounds
from dutperf.setup.conditions import ConnectionCount, Rate
from dutperf.setup.configuration import ParameterError
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option
from dutperf.setup.ratio import AnyRatio
from dutperf.traffic import ConnectionTraffic


class TableCapacity(OfConnections):
    """Conditions of a table capacity measurement."""

    first_connections: Annotated[
        Given[ConnectionCount, str],
        Option(
            "Connections that surely fit into the table (RFC 9693: C0)",
            label="connections to begin with (C0)",
            metavar="COUNT",
            text=True,
        ),
    ] = default(1_000)
    most_connections: Annotated[
        Given[ConnectionCount, str],
        Option("Connections up to which the search goes", label="connections at most", metavar="COUNT", text=True),
    ] = default(100_000_000)
    capacity_error: Annotated[
        int,
        Field(ge=1),
        Option(
            "Distance of the bounds at the end (RFC 9693: E), in connections",
            label="capacity error (E), connections",
            metavar="COUNT",
        ),
    ] = 1
    beta: Annotated[
        AnyRatio,
        Field(gt=0, lt=1),
        Option(
            "The exponential search ends below this share of the last rate",
            label="beta of the exponential search",
            metavar="RATIO",
            text=True,
        ),
    ] = default(0.1)
    gamma: Annotated[
        AnyRatio,
        Field(gt=0, lt=1),
        Option(
            "A count fails below this share of the last rate",
            label="gamma of the binary search",
            metavar="RATIO",
            text=True,
        ),
    ] = default(0.5)
    reply_share: ReplyShare = 0.8


COLLAPSED = 2
"""Trials in a row in which nothing comes through. After one alone the DUT may have been down for a while."""


class Step(Value):
    """A number of connections that was tried."""

    connections: int
    rate_cps: int | None
    """Highest validated establishment rate found; None: none down to the lowest rate of interest passed."""
    search: Literal["initial", "exponential", "binary"]
    fits: bool
    collapsed: bool = False
    """The DUT forwarded nothing."""


class CapacityFinding(RepetitionFinding):
    event: Literal["table_capacity"] = "table_capacity"
    capacity: int | None
    """The most connections that fit; None: not even the first ones did, or the tester could not measure."""
    upper_bound: int | None
    """The fewest that did not fit; None: all that were tried fit."""
    limited_by: LimitedBy
    steps: tuple[Step, ...]


class _Unmeasurable(Exception):
    def __init__(self, reason: str, limit: LimitedBy) -> None:
        super().__init__(reason)
        self.reason = reason
        self.limit = limit


class _ForwardsNothing(Exception):
    """Not even a few connections at a low rate."""


class _NotTried(Exception):
    """Trials that might pass cannot be run, or were not to be."""


class TableCapacityProcedure(Procedure[TableCapacity]):
    has_single_figure = False

    def __init__(self, plan: Plan[TableCapacity]) -> None:
        super().__init__(plan)
        conditions = plan.conditions
        if not conditions.reply_share:
            text = "the capacity shows only in connections that are validated: give a share above 0"
            raise PlanError(text, option="reply_share")
        self._first_bounds = self._bounds(conditions.first_connections)
        self.most_connections = self._most()
        if conditions.first_connections >= self.most_connections:
            raise PlanError("leaves no room for a search: give more", option="most_connections")

    def _most(self) -> int:
        """Connections up to which the search goes: by default as many as there are combinations."""
        wanted, room = self.conditions.most_connections, ConnectionTraffic(self.plan.traffic.setup, self._of(1)).room
        if room < wanted != TableCapacity.model_fields["most_connections"].default:
            raise PlanError(
                f"{wanted:,} is more than the {room:,} combinations of ports and addresses (`stateful` of the"
                " configuration)",
                option="most_connections",
            )
        return min(wanted, room)

    def first_load(self, case: Case) -> Load:
        return Load(self._first_bounds.first, Unit.CONNECTIONS_PER_SECOND)

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "exponential, then binary (RFC 9693 section 4.9)"}

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """With the first connections."""
        return self._trial(case, load.value, self.conditions.first_connections, number)

    def trials_of(self, *, first: bool) -> float:
        return 4 * TYPICAL_TRIALS

    def repetition(self, bench: Bench, place: Place, prior: Prior) -> CapacityFinding:
        return _Capacity(self, bench, place).finding()

    def _bounds(self, connections: int, lowest: int | None = None, highest: int | None = None) -> Bounds:
        conditions = self._of(connections)
        return stateful.bounds(self.plan, conditions, conditions.reply_share, lowest, highest)

    def _of(self, connections: int) -> TableCapacity:
        return self.conditions.model_copy(update={"connections": connections})

    def _trial(self, case: Case, rate_cps: int, connections: int, number: int) -> Trial:
        conditions = self._of(connections)
        return stateful.trial(self.plan, conditions, case, rate_cps, number, conditions.reply_share)

    def rate(
        self, bench: Bench, place: Place, connections: int, lowest: int | None, highest: int | None
    ) -> tuple[int | None, bool]:
        """The highest validated establishment rate of so many connections between two rates, and whether the DUT
        collapsed."""
        try:
            return self._searched(bench, place, connections, lowest, highest)
        except (PlanError, ParameterError) as error:
            raise _NotTried(error.message) from None

    def _searched(
        self, bench: Bench, place: Place, connections: int, lowest: int | None, highest: int | None
    ) -> tuple[int | None, bool]:
        limits = self._bounds(connections, lowest, highest)
        search, in_vain, is_first = BinarySearch(limits, None), 0, lowest is None
        while (rate_cps := search.next_load()) is not None:
            load = Load(rate_cps, Unit.CONNECTIONS_PER_SECOND)
            result = self.measure(bench, load, place, partial(self._trial, place.case, rate_cps, connections))
            if self.is_hopeless:
                raise _Unmeasurable(evidence.invalidity(result), limit_of(result))
            outcome = evidence.outcome_of(result, self.conditions)
            in_vain = in_vain + 1 if outcome is Outcome.NOT_FORWARDING else 0
            if in_vain == COLLAPSED and not is_first:
                return search.lower, True
            if is_first or not in_vain:
                search.record_outcome(outcome, searches.loss_of(result))
        found = search.result()
        if found.not_forwarding:
            raise _ForwardsNothing(self.no_forwarding(result))
        if found.lower_bound is None and found.limited_by is LimitedBy.TESTER:
            reason = f"{connections:,} connections could not be measured: {evidence.invalidity(result)}"
            raise _Unmeasurable(reason, limit_of(result))
        if found.limited_by is LimitedBy.RANGE and found.lower_bound is None and limits.lowest > (lowest or 0):
            raise _NotTried(
                f"{connections:,} connections pass at no rate of the search, {limits.lowest:,} connections/s and more:"
                " lower ones are below the minimum rate, or take longer than stateful.timeout_s"
            )
        return found.lower_bound, False


class _Capacity:
    def __init__(self, procedure: TableCapacityProcedure, bench: Bench, place: Place) -> None:
        self._procedure, self._bench, self._place = procedure, bench, place
        self._conditions = procedure.conditions
        self._steps: list[Step] = []
        self._fit: int | None = None
        """The most connections that fit so far."""

    def finding(self) -> CapacityFinding:
        try:
            return self._searched()
        except _Unmeasurable as unmeasurable:
            return self._without(unmeasurable.limit, self._so_far(unmeasurable.reason)).model_copy(
                update={"valid": False}
            )
        except _ForwardsNothing as nothing:
            return self._without(LimitedBy.DUT, str(nothing)).model_copy(update={"not_forwarding": True})
        except _NotTried as reason:
            return self._found(self._fit, None, self._so_far(str(reason)))

    def _without(self, limit: LimitedBy, message: str) -> CapacityFinding:
        steps = tuple(self._steps)
        return CapacityFinding(capacity=None, upper_bound=None, limited_by=limit, steps=steps, message=message)

    def _so_far(self, reason: str) -> str:
        """Why no more is known than which connections fit, with those."""
        return reason if self._fit is None else f"{self._fit:,} connections fit, of more it is not known: {reason}"

    def _searched(self) -> CapacityFinding:
        conditions, most = self._conditions, self._procedure.most_connections
        lower = conditions.first_connections
        rate_cps = self._step(lower, "initial", None, None)
        if rate_cps is None:
            return self._found(None, lower, f"not even the first {lower:,} connections fit")
        upper: int | None = None
        while upper is None:
            if lower >= most:
                return self._found(lower, None, f"all {lower:,} connections of the search fit: allow more")
            tried = min(2 * lower, most)
            found = self._step(tried, "exponential", max(1, round(conditions.beta * rate_cps)), rate_cps)
            if found is None:
                upper = tried
            else:
                lower, rate_cps = tried, found
        while upper - lower > conditions.capacity_error:
            tried = (lower + upper) // 2
            found = self._step(tried, "binary", max(1, round(conditions.gamma * rate_cps)), rate_cps)
            if found is None:
                upper = tried
            else:
                lower, rate_cps = tried, found
        return self._found(lower, upper, f"{lower:,} connections fit, {upper:,} do not")

    def _step(
        self,
        connections: int,
        search: Literal["initial", "exponential", "binary"],
        lowest: int | None,
        highest: int | None,
    ) -> int | None:
        """The rate of so many connections; None: they do not fit."""
        rate_cps, collapsed = self._procedure.rate(self._bench, self._place, connections, lowest, highest)
        step = Step(
            connections=connections,
            rate_cps=rate_cps,
            search=search,
            fits=rate_cps is not None and not collapsed,
            collapsed=collapsed,
        )
        self._steps.append(step)
        rate = "no rate passed" if rate_cps is None else f"{rate_cps:,} connections/s"
        self._bench.say(f"{connections:,} connections: {rate}{', the DUT collapsed' if collapsed else ''}", self._place)
        if not step.fits:
            return None
        self._fit = connections
        return rate_cps

    def _found(self, capacity: int | None, upper: int | None, message: str) -> CapacityFinding:
        return CapacityFinding(
            capacity=capacity,
            upper_bound=upper,
            limited_by=LimitedBy.DUT if upper is not None else LimitedBy.RANGE,
            steps=tuple(self._steps),
            message=message,
        )


class CapacityPoint(points.RepeatedPoint):
    """A case and its table capacity."""

    figure: ClassVar[str] = "capacity"
    in_headline: ClassVar[str] = "connections"
    what: ClassVar[str] = "Table capacity"
    label: ClassVar[str] = "capacity, connections"
    title: ClassVar[str] = "connection tracking table capacity, connections"
    columns: ClassVar[Row] = ("median", "p1", "p99", "limited by")

    capacity: Statistics
    steps: tuple[Step, ...]
    """Of the last repetition."""
    trials: Trials

    def rows(self) -> list[Row]:
        return [(*self.capacity.cells(",.0f"), self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        """The search path of the last repetition."""
        for step in self.steps:
            rate = "no rate passed" if step.rate_cps is None else f"{step.rate_cps:,} connections/s"
            verdict = "fit" if step.fits else "do not fit"
            collapsed = ", the DUT collapsed" if step.collapsed else ""
            yield f", {step.search} search: {step.connections:,} connections {verdict} ({rate}{collapsed})"

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        return float(conditions["capacity_error"])


def point(recorded: Recorded) -> CapacityPoint:
    found = recorded.of(CapacityFinding)
    members = recorded.repeated(CapacityFinding)
    if found:
        one = min(found, key=lambda one: PRECEDENCE.index(one.limited_by))
        members["message"] = f"{share_of(one.limited_by, found)}{one.message}{recorded.shortfall(len(found))}"
        members["limited_by"] = members["limited_by"] or one.limited_by
    return CapacityPoint(
        **members,
        capacity=recorded.statistics(CapacityFinding, "capacity"),
        steps=found[-1].steps if found else (),
        trials=points.trials(recorded.of(ResultEvent)),
    )


RULES = deviations.rules(Clause("RFC 9693 section 6", deviations.single_iteration), any_size=False)


# --- a DUT whose truth is known ------------------------------------------------------------------

TABLE, FIRST_CONNECTIONS, MOST_CONNECTIONS = 777, 300, 2_000
TABLE_CPS = 5_000
"""So slow that no disturbance costs the DUT a connection."""


def _known_truth() -> KnownTruth:
    return KnownTruth(
        NatProperties(connections=TABLE),
        {
            "first_connections": FIRST_CONNECTIONS,
            "most_connections": MOST_CONNECTIONS,
            "max_rate": fps(TABLE_CPS),
            "resolution": Rate(value=50, unit="percent"),
        },
        (Figure("capacity", "connections", TABLE, 1, median_of("capacity"), lambda _: 0.0),),
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name="table-capacity",
    summary="Search for the number of connections held (RFC 9693 4.9).",
    chapter=Chapter.CONNECTIONS,
    example=(
        "--lab refdut-nat44 --lab-option connections=1500 --first-connections 500 --most-connections 4000"
        " --max-rate 20k --resolution 50% --repetitions 1"
    ),
    simulated={"max_rate": "70k", "first_connections": 1_000, "most_connections": 4_000},
    known_truth=_known_truth,
    conditions=TableCapacity,
    make=TableCapacityProcedure,
    point=point,
    rules=RULES,
)
