# SPDX-License-Identifier: Apache-2.0
"""Address caching capacity of a switch: the most MAC addresses that it learns and keeps (RFC 2889 section 5.7;
RFC 2285 section 3.8.1).

A search over the number of addresses: it doubles, then halves the range. A switch also learns the addresses of the
tester's own ports, which announce themselves before; a table of N entries has room for N less these. A load whose
first address would age before its test frame is not offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dutperf.model import Case, LimitedBy, Load, Trial, Unit
from dutperf.procedures import repeated_searches, searches
from dutperf.procedures.addresses import AddressCount, AddressSearch, OfAddresses, frames_per_second
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.repeated_searches import SearchPoint, UpperBound
from dutperf.results import deviations
from dutperf.results.points import Recorded, Row, Trials, cell
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import Search
from dutperf.setup.conditions import Rate
from dutperf.setup.conditions import Repetitions as Asked
from dutperf.setup.given import default
from dutperf.setup.option import Option
from dutperf.setup.rate import AnyRate


class AddressCapacity(OfAddresses):
    """Conditions of a measurement of the address caching capacity."""

    repetitions: Asked = default(1)
    first_addresses: Annotated[
        AddressCount,
        Option(
            "Addresses to begin with (RFC 2889 section 5.7.2: initial addresses)",
            label="addresses to begin with",
            metavar="COUNT",
        ),
    ] = 1_000
    most_addresses: Annotated[
        AddressCount,
        Option("Addresses up to which the search goes", label="addresses at most", metavar="COUNT"),
    ] = 1_000_000
    address_error: Annotated[
        int,
        Field(ge=1),
        Option(
            "Distance between bounds at which the search ends, in addresses",
            label="resolution of the search, addresses",
            metavar="COUNT",
        ),
    ] = 1
    learning_rate: Annotated[
        AnyRate,
        Option(
            "Rate of the learning frames, in frames/s (RFC 2889 section 5.7.2)",
            label="rate of the learning frames",
            metavar="RATE",
        ),
    ] = default(Rate(value=1_000, unit="fps"))


class AddressCapacityProcedure(AddressSearch[AddressCapacity]):
    unit = Unit.ADDRESSES
    failed_at = "with"

    def __init__(self, plan: Plan[AddressCapacity]) -> None:
        super().__init__(plan)
        conditions = plan.conditions
        self._learning_fps = frames_per_second("learning_rate", conditions.learning_rate)
        if conditions.first_addresses > conditions.most_addresses:
            raise PlanError(f"is below {conditions.first_addresses:,}, with which it begins", option="most_addresses")
        if not self.fits_in_time(conditions.first_addresses, self._learning_fps):
            raise PlanError(
                f"{conditions.first_addresses:,} addresses at {self._learning_fps:,} in a second would age before they"
                f" are tested: raise it, `test_rate` or `ageing_s`",
                option="learning_rate",
            )
        self._most = self._most_in_time(conditions.most_addresses)

    def _most_in_time(self, wanted: int) -> int:
        if self.fits_in_time(wanted, self._learning_fps):
            return wanted
        each_s = 1 / self._learning_fps + 1 / self._test_fps
        return max(self.conditions.first_addresses, int((self.conditions.ageing_s - self.conditions.drain_s) / each_s))

    def first_load(self, case: Case) -> Load:
        return Load(self.conditions.first_addresses, self.unit)

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "binary", "start": "none", "most_addresses": self._most}

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """Addresses and rates set the duration."""
        return self.of_addresses(case, load.value, self._learning_fps, number)

    def new_search(self, place: Place, prior: Prior) -> Search:
        conditions = self.conditions
        return searches.of_numbers(conditions.first_addresses, self._most, conditions.address_error, self.unit)

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        if self._most < self.conditions.most_addresses:
            return (
                f"all {self._most:,} addresses fit that can be learned and tested within the ageing time of"
                f" {self.conditions.ageing_s:g} s: learn and test faster"
            )
        return f"all {self._most:,} addresses of the search fit: allow more"


class AddressCapacityPoint(SearchPoint):
    """A case and its address caching capacity."""

    figure: ClassVar[str] = "addresses"
    in_headline: ClassVar[str] = Unit.ADDRESSES
    what: ClassVar[str] = "Address caching capacity"
    label: ClassVar[str] = "capacity, addresses"
    title: ClassVar[str] = "address caching capacity, addresses"
    columns: ClassVar[Row] = ("median", "p1", "p99", "table", "limited by")
    implied: ClassVar[Sequence[str]] = ("table_entries",)

    addresses: Statistics
    """Learned beside the addresses of the tester's own ports."""
    table_entries: float | None
    """The median with these."""
    own_addresses: int
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    repetitions: Repetitions
    trials: Trials

    def rows(self) -> list[Row]:
        return [(*self.addresses.cells(",.0f"), cell(self.table_entries, ",.0f"), self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        yield f": the table also held the addresses of the tester's {self.own_addresses} ports"
        yield from super().remarks()

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        return float(conditions["address_error"])


def point(recorded: Recorded) -> AddressCapacityPoint:
    addresses, members = repeated_searches.found(recorded)
    own = recorded.limits["own_addresses"]
    return AddressCapacityPoint(
        **members,
        addresses=addresses,
        table_entries=None if addresses.median is None else addresses.median + own,
        own_addresses=own,
    )


PROCEDURE = Definition(
    name="address-capacity",
    summary="Search for the number of addresses kept (RFC 2889 5.7).",
    chapter=Chapter.TABLES,
    example="--lab linux-bridge --lab-option ports=3 --lab-option addresses=1000 --learning-rate 5k",
    simulated={"first_addresses": 100, "most_addresses": 2_000, "address_error": 50, "repetitions": 2},
    conditions=AddressCapacity,
    make=AddressCapacityProcedure,
    point=point,
    rules=deviations.OF_ADDRESS_TABLES,
)
