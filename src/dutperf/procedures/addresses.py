# SPDX-License-Identifier: Apache-2.0
"""Common to the procedures of a switch's address table (RFC 2889 sections 5.7, 5.8): their conditions, and what a
trial shows.

The learning port sends one frame from each address, then the test port one to each. A switch floods frames to
addresses that it does not know, so these arrive at the monitoring ports too. A trial passes if none does, and if
every test frame arrives at the learning port; nor may frames to the tester's own ports be flooded, whose addresses are
in the table as well. Before each trial the table is empty: a command of the configuration (``clear_addresses``)
empties it, or the trial waits until the addresses have aged.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dutperf.model import FRAME_SIZE, Case, Trial, TrialResult
from dutperf.procedures import evidence
from dutperf.procedures.bench import ConditionsT, Plan, PlanError
from dutperf.procedures.one_frame_each import OneFrameEach
from dutperf.procedures.repeated_searches import RepeatedSearches
from dutperf.search import Outcome
from dutperf.setup.conditions import Rate
from dutperf.setup.given import default
from dutperf.setup.option import Option
from dutperf.setup.rate import AnyRate
from dutperf.spelling import with_and
from dutperf.traffic import switches
from dutperf.traffic.switches import MOST_ADDRESSES, Learned, Roles

AddressCount = Annotated[int, Field(ge=1, le=MOST_ADDRESSES)]
TEST_RATE = Rate(value=1_000, unit="fps")


class AtPorts(OneFrameEach):
    """Conditions of every procedure of a switch's address table."""

    learning_port: Annotated[
        str | None,
        Option(
            "Port whose addresses the DUT learns. Default: the first",
            label="learning port",
            metavar="PORT",
        ),
    ] = None
    test_port: Annotated[
        str | None,
        Option(
            "Port that sends to these addresses. Default: the second",
            label="test port",
            metavar="PORT",
        ),
    ] = None
    test_rate: Annotated[
        AnyRate,
        Option("Rate of the test frames, in frames/s", label="rate of the test frames", metavar="RATE"),
    ] = default(TEST_RATE)


class OfAddresses(AtPorts):
    """Conditions of a search with addresses that are learned and tested."""

    ageing_s: Annotated[
        float,
        Field(gt=0, le=1_000_000),
        Option(
            "Ageing time of the DUT",
            clause="RFC 2889 section 5.7.2; IEEE 802.1D: 300",
            label="ageing time of the DUT, s",
        ),
    ] = 300.0


def frames_per_second(option: str, rate: Rate) -> int:
    """A rate in frames/s. Raises PlanError: a percentage of a link's speed."""
    if rate.unit == "percent":
        raise PlanError("addresses/s have no share of a link's speed: give a number", option=option)
    return max(1, round(rate.value))


def flooded(result: TrialResult, roles: Roles) -> int:
    """Test frames that arrived at a monitoring port; of several ports the most."""
    tested = result.directions().get(roles.tested)
    astray = {} if tested is None else tested.misdelivered or {}
    return max((astray.get(monitor, 0) for monitor in roles.monitors), default=0)


def forgotten(result: TrialResult, roles: Roles) -> list[str]:
    """The tester's ports whose own addresses are not in the table: frames to them were flooded. A table that evicts
    has given their places to other addresses."""
    counts = result.directions()
    return [path.receiving_port for path in roles.own() if path in counts and counts[path].misdelivered]


class AddressSearch(RepeatedSearches[ConditionsT]):
    """A search whose trials learn and test addresses. Raises PlanError: rates or ports that are not possible. Raises
    ConfigError: the setup is no switch's."""

    def __init__(self, plan: Plan[ConditionsT]) -> None:
        super().__init__(plan)
        conditions: Any = plan.conditions
        self._roles = switches.roles(plan.traffic.setup, conditions.learning_port, conditions.test_port)
        self._test_fps = frames_per_second("test_rate", conditions.test_rate)

    def limits(self, case: Case) -> dict[str, Any]:
        return {
            "learning_port": self._roles.learning,
            "test_port": self._roles.test,
            "monitoring_ports": list(self._roles.monitors),
            "own_addresses": self._roles.own_addresses,
            "emptied_by": "clear_addresses" if self.plan.dut.can("clear_addresses") else "waiting",
        }

    def of_addresses(self, case: Case, addresses: int, learning_fps: int, number: int) -> Trial:
        """The trial in which so many addresses are learned and tested."""
        conditions: Any = self.conditions
        wait_s = None if self.plan.dut.can("clear_addresses") else conditions.ageing_s
        made = Learned(self._roles, addresses, learning_fps, self._test_fps, wait_s)
        return switches.learned(self.plan.traffic.setup, conditions, case[FRAME_SIZE], made, number)

    def fits_in_time(self, addresses: int, learning_fps: int) -> bool:
        """Whether all addresses are tested before the first of them ages."""
        conditions: Any = self.conditions
        return bool(addresses / learning_fps + addresses / self._test_fps + conditions.drain_s < conditions.ageing_s)

    def outcome(self, result: TrialResult) -> Outcome:
        found = evidence.outcome_of(result, self.conditions)
        if found is Outcome.PASSED and (flooded(result, self._roles) or forgotten(result, self._roles)):
            return Outcome.FAILED
        return found

    def shortcoming(self, result: TrialResult) -> str:
        count, tested = flooded(result, self._roles), result.directions().get(self._roles.tested)
        sent = 0 if tested is None else tested.sent
        lost = f"; {super().shortcoming(result)}" if result.worst_loss_ratio else ""
        own = forgotten(result, self._roles)
        evicted = f"; frames to the tester's own port {with_and(own)} flooded" if own else ""
        return f"{count:,} of {sent:,} test frames flooded{evicted}{lost}"
