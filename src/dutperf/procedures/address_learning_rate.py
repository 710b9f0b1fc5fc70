# SPDX-License-Identifier: Apache-2.0
"""Address learning rate of a switch: the highest rate of new MAC addresses at which it learns all of them (RFC 2889
section 5.8; RFC 2285 section 3.8.2).

A search over the rate of the learning frames. The number of addresses is one that surely fits into the table; the
test frames have a rate of their own, at which the switch forwards them all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from dutperf.model import Case, LimitedBy, Load, Trial, Unit
from dutperf.procedures import repeated_searches
from dutperf.procedures.addresses import AddressCount, AddressSearch, OfAddresses
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.repeated_searches import RateSearches, SearchPoint, UpperBound
from dutperf.procedures.searches import SearchRange
from dutperf.results import deviations
from dutperf.results.points import Recorded, Row, Trials
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import Bounds, Resolution
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


class AddressLearningRateProcedure(RateSearches[AddressLearningRate], AddressSearch[AddressLearningRate]):
    unit = Unit.ADDRESSES_PER_SECOND
    begins_near_the_last = False

    def __init__(self, plan: Plan[AddressLearningRate]) -> None:
        super().__init__(plan)
        for limits in self._bounds.values():
            if not self.fits_in_time(self.conditions.addresses, limits.lowest):
                raise PlanError(
                    f"{self.conditions.addresses:,} addresses at {limits.lowest:,} in a second, the lowest rate, would"
                    " age before they are tested: offer fewer, or raise `min_rate`, `test_rate` or `ageing_s`",
                    option="addresses",
                )

    def bounds_of(self, case: Case) -> Bounds:
        """A resolution in percent is that of the rate, which is far below what the media carries."""
        found, rate = super().bounds_of(case), self.conditions.resolution
        share = Resolution(share=rate.value / 100)
        return replace(found, resolution=share) if rate.unit == "percent" else found

    def maximum_fps(self, case: Case) -> int | None:
        """Of the learning port, which alone sends at the rate of the search."""
        return self.plan.traffic.path_maximum_fps(case)

    def limits(self, case: Case) -> dict[str, Any]:
        return AddressSearch.limits(self, case) | super().limits(case)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """Addresses and rates set the duration."""
        return self.of_addresses(case, self.conditions.addresses, load.value, number)


class LearningRatePoint(SearchPoint):
    """A case and its address learning rate."""

    figure: ClassVar[str] = "learning_aps"
    in_headline: ClassVar[str] = Unit.ADDRESSES_PER_SECOND
    what: ClassVar[str] = "Address learning rate"
    label: ClassVar[str] = "learning rate, addresses/s"
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

    def rows(self) -> list[Row]:
        figures = self.learning_aps
        dispersion = "-" if figures.dispersion_percent is None else f"{figures.dispersion_percent:.2f} %"
        return [(f"{self.addresses:,}", *figures.cells(",.0f"), dispersion, self.limited_by or "-")]


def point(recorded: Recorded) -> LearningRatePoint:
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
