# SPDX-License-Identifier: Apache-2.0
"""Neighbours of a router: the most addresses on a link to which it forwards at one time (RFC 8161 section 4.3,
NDP-MAX-NEIGHBORS). A link of IPv4 has ARP in place of Neighbour Discovery.

The tester's right port answers for all addresses of a range on its link. A trial begins with an empty neighbour cache
(``dut.commands.clear_addresses``): one frame to each address makes the router ask for it, then come the test frames,
in turn to every address. It passes if none of these is lost. RFC 8161 adds one address a minute to the ones before; a
search over their number, with a new cache for each, has the same result in fewer trials. It doubles, then halves the
range.

The value's error is the search's resolution. A router also has entries that are not the test's: the tester's own
addresses, those of other links.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dutperf.model import (
    ANY_LOSS,
    FRAME_SIZE,
    TRIAL_NUMBERS,
    Case,
    Direction,
    FieldMode,
    LimitedBy,
    Load,
    Phase,
    Question,
    Trial,
    Unit,
    VaryingAddress,
)
from dutperf.procedures import repeated_searches, searches
from dutperf.procedures.addresses import frames_per_second
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Place, Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.one_frame_each import OneFrameEach
from dutperf.procedures.repeated_searches import RepeatedSearches, SearchPoint, UpperBound
from dutperf.results import deviations
from dutperf.results.points import Recorded, Row, Trials
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import Search
from dutperf.setup.conditions import Rate
from dutperf.setup.conditions import Repetitions as Asked
from dutperf.setup.configuration import ConfigError, Side
from dutperf.setup.given import default
from dutperf.setup.option import Option
from dutperf.setup.rate import AnyRate
from dutperf.traffic import PlainTraffic

TEST_FRAMES = 3
"""To each address in a trial."""
LAST = 0xFFFF
"""The last 16 bits of an address vary."""
NeighbourCount = Annotated[int, Field(ge=1, le=LAST)]


class NdpCapacity(OneFrameEach):
    """Conditions of a measurement of a router's neighbour cache."""

    repetitions: Asked = default(1)
    first_neighbours: Annotated[
        NeighbourCount, Option("Neighbours to begin with", label="neighbours to begin with", metavar="COUNT")
    ] = 100
    most_neighbours: Annotated[
        NeighbourCount, Option("Neighbours up to which the search goes", label="neighbours at most", metavar="COUNT")
    ] = 65_000
    neighbour_error: Annotated[
        int,
        Field(ge=1),
        Option(
            "Distance between bounds at which the search ends, in neighbours",
            label="resolution of the search, neighbours",
            metavar="COUNT",
        ),
    ] = 1
    resolution_rate: Annotated[
        AnyRate,
        Option(
            "Rate of the frames that make the DUT resolve, in frames/s",
            label="rate of the frames that make the DUT ask",
            metavar="RATE",
        ),
    ] = default(Rate(value=1_000, unit="fps"))
    test_rate: Annotated[
        AnyRate, Option("Rate of the test frames, in frames/s", label="rate of the test frames", metavar="RATE")
    ] = default(Rate(value=1_000, unit="fps"))


class NdpCapacityProcedure(RepeatedSearches[NdpCapacity]):
    unit = Unit.ADDRESSES
    failed_at = "with"

    def __init__(self, plan: Plan[NdpCapacity]) -> None:
        super().__init__(plan)
        conditions = plan.conditions
        if not plan.dut.can("clear_addresses"):
            raise PlanError(
                "nothing empties the DUT's neighbour cache before a trial: the configuration has no"
                " dut.commands.clear_addresses (of a Linux router: ip -6 neigh flush all)",
                option="first_neighbours",
            )
        if plan.traffic.setup.ports is not None:
            raise ConfigError("are not possible: the neighbours are those of one of two ports without names", "ports")
        _, right = plan.traffic.setup.ends(Direction.FORWARD)
        self._first, room = _hosts(right)
        self._most = min(conditions.most_neighbours, room)
        if conditions.first_neighbours > self._most:
            raise PlanError(
                f"is above {self._most:,}, the most neighbours of the search on this link", option="first_neighbours"
            )
        self._asking_fps = frames_per_second("resolution_rate", conditions.resolution_rate)
        self._test_fps = frames_per_second("test_rate", conditions.test_rate)

    def first_load(self, case: Case) -> Load:
        return Load(self.conditions.first_neighbours, self.unit)

    def algorithm(self) -> dict[str, Any]:
        return {"algorithm": "binary", "start": "none", "most_neighbours": self._most}

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """Neighbours and rates set the duration."""
        setup = self.plan.traffic.setup
        _, right = setup.ends(Direction.FORWARD)
        range_ = VaryingAddress(mode=FieldMode.INCREASING, min=self._first, max=self._first + load.value - 1)
        varied = setup.model_copy(update={"right": right.model_copy(update={"varying_address": range_})})
        kind = PlainTraffic(varied, self.conditions)
        asking = self._phase(kind, case, self._asking_fps, load.value, number)
        asking["rest_ns"] = round(self.conditions.learning_rest_s * 1e9) or None
        test = self._phase(kind, case, self._test_fps, TEST_FRAMES * load.value, number + 1)
        first = Phase(**asking, question=Question(tolerated_loss=ANY_LOSS))
        return Trial(**test, question=Question(clear_addresses=True), preliminary=(first,))

    def _phase(self, kind: PlainTraffic, case: Case, rate_fps: int, frames: int, number: int) -> dict[str, Any]:
        conditions = self.conditions
        return {
            "trial": number % TRIAL_NUMBERS,
            "seed": conditions.seed,
            "duration_ns": max(1, frames * 1_000_000_000 // rate_fps),
            "drain_ns": round(conditions.drain_s * 1e9),
            "burst": conditions.tx_burst,
            "forward": kind.stream(Direction.FORWARD, case[FRAME_SIZE], rate_fps),
        }

    def new_search(self, place: Place, prior: Prior) -> Search:
        conditions = self.conditions
        return searches.of_numbers(conditions.first_neighbours, self._most, conditions.neighbour_error, self.unit)

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        if self._most < self.conditions.most_neighbours:
            return f"the DUT forwards to all {self._most:,} addresses for which the link's network has room"
        return f"the DUT forwards to all {self._most:,} neighbours of the search: allow more"


def _hosts(side: Side) -> tuple[int, int]:
    """The first host number of the most in a row that neither the tester nor the DUT has, and how many they are. Raises
    ConfigError: the side has no router, or none is left."""
    own, gateway = side.address(side.version), side.gateway4 if side.version == 4 else side.gateway6
    if own is None or gateway is None or gateway not in own.network:
        key = f"right.gateway{side.version}"
        raise ConfigError("is needed: a router on the link's network, whose neighbours are counted", key)
    hosts = int(own.network.hostmask) & LAST
    end = hosts if side.version == 4 else hosts + 1  # without the broadcast address
    taken = sorted({0, int(own.ip) & hosts, int(gateway) & hosts, end})
    room, first = max((after - before - 1, before + 1) for before, after in pairwise(taken))
    if room < 1:
        raise ConfigError(
            f"{own} leaves no addresses for neighbours: choose a wider network", f"right.ipv{side.version}"
        )
    return first, room


class NdpCapacityPoint(SearchPoint):
    """A case and the router's neighbours."""

    figure: ClassVar[str] = "neighbours"
    in_headline: ClassVar[str] = "neighbours"
    what: ClassVar[str] = "Neighbours of a router"
    label: ClassVar[str] = "neighbours"
    title: ClassVar[str] = "neighbours to which the router forwards"
    columns: ClassVar[Row] = ("median", "p1", "p99", "limited by")

    neighbours: Statistics
    """Beside the tester's own addresses."""
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    repetitions: Repetitions
    trials: Trials

    def rows(self) -> list[Row]:
        return [(*self.neighbours.cells(",.0f"), self.limited_by or "-")]

    def resolution(self, conditions: Mapping[str, Any]) -> float:
        return float(conditions["neighbour_error"])


def point(recorded: Recorded) -> NdpCapacityPoint:
    neighbours, members = repeated_searches.found(recorded)
    return NdpCapacityPoint(**members, neighbours=neighbours)


PROCEDURE = Definition(
    name="ndp-capacity",
    summary="Search for the number of NDP neighbours (RFC 8161).",
    chapter=Chapter.TABLES,
    example="--config gateway.yaml --first-neighbours 500 --resolution-rate 2k --test-rate 5k",
    simulated={"first_neighbours": 50, "most_neighbours": 200, "test_rate": "10k", "repetitions": 2},
    conditions=NdpCapacity,
    make=NdpCapacityProcedure,
    point=point,
    rules=deviations.OF_ADDRESS_TABLES,
)
