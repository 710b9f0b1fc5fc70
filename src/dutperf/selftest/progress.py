# SPDX-License-Identifier: Apache-2.0
"""Runs the checks like any other measurement, on a tester that reads the DUT's counters after each trial."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from dutperf.dut.commands import Running
from dutperf.dut.device import Device
from dutperf.dut.reference import ReferenceDevice
from dutperf.lab.refdut import Properties, RefDutError
from dutperf.model import Load, Verdict
from dutperf.procedures import pdv
from dutperf.procedures.bench import Plan
from dutperf.procedures.known_truth import DELAY_FPS, Evidence
from dutperf.run import campaign
from dutperf.run.campaign import Observer
from dutperf.run.suite import Bench
from dutperf.selftest.checks import Check
from dutperf.selftest.findings import Finding, Judgement
from dutperf.selftest.ground_truth import ObservedTester, ReferenceDut, balance
from dutperf.setup.conditions import Conditions
from dutperf.tester import Tester, TesterError

ATTEMPTS = 3
"""Attempts of a check whose findings are invalid; a check that is off is not repeated."""
FLOOR_TRIALS = 3
FLOOR_ATTEMPTS = 10
"""Maximum number of trials for FLOOR_TRIALS valid ones."""
UNKNOWN_FLOOR_S = 3600.0

Watch = Callable[[str], AbstractContextManager[Observer]]
"""Shows the progress of the measurement of that name."""


@dataclass(frozen=True)
class SelfTest:
    """Runs checks on a bench."""

    bench: Bench
    dut: ReferenceDut
    out: Path
    watch: Watch
    quick: bool = False

    def findings(self, check: Check) -> list[Finding]:
        """Findings of one check: its figures and the balance of its frames. The check is repeated while the
        tester is too disturbed."""
        for attempt in range(1, ATTEMPTS + 1):
            found = self._once(check, self.out / (check.name if attempt == 1 else f"{check.name}-attempt{attempt}"))
            judgements = {one.judgement for one in found}
            if Judgement.INVALID not in judgements or Judgement.OFF in judgements:
                break
        return found

    def _once(self, check: Check, directory: Path) -> list[Finding]:
        conditions = check.definition.conditions(**check.chosen(quick=self.quick))
        plan = self._plan(check, conditions)
        floor_s = path_floor_s(self.bench.tester, self.dut, plan) if check.truth.has_floor else 0.0
        tester = ObservedTester(self.bench.tester, self.dut, check.truth.properties, check.truth.inject_fault)
        with self.watch(check.name) as observer:
            summary = campaign.measure(check.definition, tester, plan, directory, observer)
        evidence = Evidence(summary.points[0], tester.seen, floor_s)
        return [*check.judged(evidence), balance(check.name, tester.seen)]

    def _plan(self, check: Check, conditions: Conditions) -> Plan:
        """The bench's plan, with the DUT's properties, and with resets by its control socket."""
        plan = self.bench.plan(conditions)
        assert isinstance(plan.dut, Device), "the reference DUT is alone"
        return replace(plan, dut=_Checked(plan.dut, self.dut, check))


class _Checked(ReferenceDevice):
    """The reference DUT in one check. Its losses are read by :class:`ObservedTester`."""

    def __init__(self, device: Device, reference: ReferenceDut, check: Check) -> None:
        properties = check.truth.properties.model_dump(exclude_defaults=True)
        described = device.described.model_copy(update={"properties": properties})
        super().__init__(described, has_connections=device.has_connections)
        self._device = device
        self._refdut = reference
        self._check = check

    def can(self, command: str) -> bool:
        return self._check.truth.reset_s is not None if command == "reset" else super().can(command)

    def counts_losses(self) -> bool:
        return False

    def clear_connections(self) -> float:
        return self._device.clear_connections()

    def count_connections(self) -> int | None:
        return self._device.count_connections()

    def reset(self) -> Running:
        """Raises TesterError if it does not answer."""
        assert self._check.truth.reset_s is not None, "it can"
        try:
            self._refdut.reset(self._check.truth.reset_s)
        except RefDutError as error:
            raise TesterError(str(error)) from None
        return _Done()


class _Done:
    """The DUT has the request, and ends its reset by itself."""

    def finish(self) -> None:
        """Nothing to wait for."""

    def kill(self) -> None:
        """Nothing to end."""


def path_floor_s(tester: Tester, dut: ReferenceDut, plan: Plan) -> float:
    """The 99th percentile of the delay through the DUT without a configured delay: the median of
    FLOOR_TRIALS valid trials, of fewer if there are not so many; UNKNOWN_FLOOR_S without any."""
    observed = ObservedTester(tester, dut, Properties())
    floors: list[float] = []
    for number in range(FLOOR_ATTEMPTS):
        trial = plan.traffic.trial(plan.traffic.cases()[0], Load.fps(DELAY_FPS), number)
        result = observed.run(pdv.stamp(trial, plan.conditions))
        p99_us = [counts.delay_us.p99 for counts in result.directions().values() if counts.delay_us is not None]
        if result.verdict is Verdict.VALID and p99_us:
            floors.append(max(p99_us) / 1e6)
        if len(floors) == FLOOR_TRIALS:
            break
    return median(floors) if floors else UNKNOWN_FLOOR_S
