# SPDX-License-Identifier: Apache-2.0
"""Address learning rate of a switch: the highest rate of new MAC addresses at which it learns all of them (RFC 2889
section 5.8; RFC 2285 section 3.8.2).

A search over the rate of the learning frames. The number of addresses is one that surely fits into the table; the
test frames have a rate of their own, at which the switch forwards them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

from dutperf.model import Case, LimitedBy, Load, Trial, Unit
from dutperf.procedures import repeated_searches, searches
from dutperf.procedures.addresses import AddressCount, AddressSearch, OfAddresses
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.repeated_searches import UpperBound
from dutperf.procedures.searches import SearchRange
from dutperf.results import charts, deviations, points
from dutperf.results.charts import Chart
from dutperf.results.points import MainFigure, Recorded, Row, Trials
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import TYPICAL_TRIALS, Search
from dutperf.setup.conditions import Repetitions as Asked
from dutperf.setup.given import default
from dutperf.setup.option import Option


class AddressLearningRate(SearchRange, OfAddresses):
    """Conditions of a measurement of the address learning rate."""

    repetitions: Asked = default(10)
    addresses: Annotated[
        AddressCount,
        Option(
            "Addresses that each trial offers (RFC 2889 section 5.8.2)",
            label="addresses",
            metavar="COUNT",
        ),
    ] = 1_000


class AddressLearningRateProcedure(AddressSearch[AddressLearningRate]):
    """The procedure (:class:`dutperf.procedures.base.Procedure`).

    Raises:
        PlanError: rates that contradict each other.
        ConfigError: the setup is no switch's.
    """

    unit = Unit.ADDRESSES_PER_SECOND
    nothing_passed = "nothing passed, down to the minimum rate"

    def __init__(self, plan: Plan[AddressLearningRate]) -> None:
        super().__init__(plan)
        self._bounds = {
            case: replace(searches.bounds(plan.conditions, plan.traffic.maximum_fps(case)), unit=self.unit)
            for case in self.cases
        }
        for limits in self._bounds.values():
            searches.make(self.conditions, limits)  # raises PlanError before anything is sent
            if not self.fits_in_time(self.conditions.addresses, limits.lowest):
                raise PlanError(
                    f"{self.conditions.addresses:,} addresses at {limits.lowest:,} in a second, the lowest rate, would"
                    " age before they are tested: offer fewer, or raise `min_rate`, `test_rate` or `ageing_s`",
                    option="addresses",
                )

    def first_load(self, case: Case) -> Load:
        return Load(self._bounds[case].first, self.unit)

    def algorithm(self) -> dict[str, Any]:
        return searches.description(self.conditions) | {"start": "none"}

    def limits(self, case: Case) -> dict[str, Any]:
        return super().limits(case) | searches.limits(self._bounds[case], self.unit)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """Addresses and rates set the duration."""
        del duration_s
        return self.of_addresses(case, self.conditions.addresses, load.value, number)

    def trials_of(self, *, first: bool) -> float:
        del first
        return TYPICAL_TRIALS

    def new_search(self, place: Place, prior: Prior) -> Search:
        del prior
        return searches.make(self.conditions, self._bounds[place.case])

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        del limited_by
        return f"the maximum rate of the search, {Load(self._bounds[case].highest, self.unit)}, passed"


class LearningRatePoint(points.Point):
    """A case and its address learning rate."""

    title: ClassVar[str] = "address learning rate, addresses/s"
    columns: ClassVar[Row] = ("addresses", "median", "p1", "p99", "dispersion", "limited by")

    addresses: int
    """That each trial offered."""
    learning_aps: Statistics
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    repetitions: Repetitions
    trials: Trials

    def main_figure(self) -> MainFigure:
        return MainFigure.of(self.learning_aps, Unit.ADDRESSES_PER_SECOND)

    def rows(self) -> list[Row]:
        figures = self.learning_aps
        dispersion = "-" if figures.dispersion_percent is None else f"{figures.dispersion_percent:.2f} %"
        return [(f"{self.addresses:,}", *figures.cells(",.0f"), dispersion, self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        if certainty := self.repetitions.certainty(self.learning_aps):
            yield f": {certainty}"

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        upper = None if self.upper_bound is None else self.upper_bound.load
        return points.resolution_of(self, conditions, "aps", self.learning_aps, upper)

    @classmethod
    def charts(cls, points: Sequence[Self], limits: Sequence[Mapping[str, Any]]) -> Sequence[Chart]:
        """Each repetition's value."""
        del limits
        values = [(point.case, point.learning_aps.values) for point in points]
        return (charts.repetitions("Address learning rate", "learning rate, addresses/s", values),)


def point(recorded: Recorded) -> LearningRatePoint:
    """The point that the journal holds (:data:`dutperf.results.points.PointBuilder`)."""
    learning_aps, members = repeated_searches.found(recorded)
    return LearningRatePoint(**members, addresses=recorded.conditions.addresses, learning_aps=learning_aps)


PROCEDURE = Definition(
    name="address-learning-rate",
    summary="Search for the rate of address learning (RFC 2889 5.8).",
    chapter=Chapter.TABLES,
    example="--lab linux-bridge --lab-option ports=3 --addresses 2000 --max-rate 50k --repetitions 3",
    simulated={"max_rate": "10k", "resolution": "5%", "repetitions": 2},
    conditions=AddressLearningRate,
    make=AddressLearningRateProcedure,
    point=point,
    rules=deviations.OF_ADDRESS_TABLES,
)
