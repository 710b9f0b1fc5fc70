# SPDX-License-Identifier: Apache-2.0
"""A tester that reads the reference DUT's counters after each trial, so that every trial has its own ground
truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dutperf.lab.refdut import Properties, RefDutError, Truth
from dutperf.model import ConnectionUse, Trial, TrialResult, Verdict
from dutperf.selftest.findings import Finding, Judgement
from dutperf.tester import ProgressCallback, Tester, TesterError

FRAMES = "frames lost, all trials"


class ReferenceDut(Protocol):
    """Interface of a reference DUT (:class:`dutperf.lab.refdut.RefDut`)."""

    def configure(self, properties: Properties) -> None:
        """Set its properties; its counters restart at 0."""
        ...

    def counters(self) -> Truth: ...

    def clear(self) -> None:
        """Restart its counters at 0; it keeps its connections."""
        ...

    def stall(self, duration_s: float, after_s: float = 0.0) -> None:
        """Serve nothing for a while."""
        ...

    def reset(self, duration_s: float, after_s: float = 0.0) -> None:
        """Lose all frames for a while."""
        ...


FaultInjection = Callable[[ReferenceDut], None]


@dataclass(frozen=True)
class ObservedTrial:
    """A trial, the tester's result, and the DUT's counters."""

    trial: Trial
    result: TrialResult
    truth: Truth

    @property
    def is_valid(self) -> bool:
        return self.result.verdict is Verdict.VALID

    @property
    def lost(self) -> int:
        """Frames that the tester missed, in both directions."""
        return sum(counts.lost for counts in self.result.directions().values())

    @property
    def truly_lost(self) -> int:
        """Frames that the DUT lost or corrupted, in both directions."""
        return sum(one.lost_total + one.corrupted for one in (self.truth.forward, self.truth.reverse))

    @property
    def disturbance_s(self) -> float:
        """The longest lateness or loop stall of the tester or the DUT: events may have shifted by that
        much."""
        counts = self.result.directions().values()
        tester_us = [max(one.lateness_us.max, one.stall_us.sender, one.stall_us.receiver) for one in counts]
        return max(*tester_us, self.truth.forward.lateness_us.max, self.truth.reverse.lateness_us.max, 0.0) / 1e6

    @property
    def is_balanced(self) -> bool:
        """Whether both can be compared frame by frame: no frame was lost between them, and none could
        arrive after receiving had ended."""
        counts = self.result.directions().values()
        between = sum(one.dut_input_drops + sum(one.tester_drops.values()) for one in counts)
        between += sum(port.lost_before + port.lost_after for port in (self.truth.left, self.truth.right))
        return (
            self.result.verdict is not Verdict.ABORTED
            and bool(counts)
            and not between
            and self.disturbance_s < self.trial.drain_ns / 2e9
        )


@dataclass
class ObservedTester:
    """A :class:`dutperf.tester.Tester` with a reference DUT that is configured again before each trial; in the
    later phases of a trial with connections it must keep them, so only its counters restart."""

    tester: Tester
    dut: ReferenceDut
    properties: Properties
    inject_fault: FaultInjection | None = None
    seen: list[ObservedTrial] = field(default_factory=list)

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """See :meth:`dutperf.tester.Tester.run`. Raises TesterError: also if the DUT does not answer."""
        try:
            self._prepare(trial)
            result = self.tester.run(trial, on_progress)
            self.seen.append(ObservedTrial(trial, result, self.dut.counters()))
        except RefDutError as error:
            raise TesterError(str(error)) from None
        return result

    def _prepare(self, trial: Trial) -> None:
        if trial.connections is not None and trial.connections.use is not ConnectionUse.OPEN:
            self.dut.clear()
            return
        self.dut.configure(self.properties)
        if self.inject_fault is not None:
            self.inject_fault(self.dut)

    def wait_until_quiet(self, limit_s: float) -> float:
        return self.tester.wait_until_quiet(limit_s)

    def environment(self) -> dict[str, Any]:
        return self.tester.environment()

    def close(self) -> None:
        """Does nothing: the caller closes the tester."""


def balance(procedure: str, seen: Sequence[ObservedTrial]) -> Finding:
    """Whether the tester's losses equal the DUT's, frame by frame in each trial."""
    compared = [one for one in seen if one.is_balanced]
    differing = [one for one in compared if one.lost != one.truly_lost]
    judgement = Judgement.OFF if differing else Judgement.OK if compared else Judgement.INVALID
    note = f"{len(compared)} of {len(seen)} trials could be compared" + (
        f"; {len(differing)} of them differ" if differing else ""
    )
    return Finding(
        procedure=procedure,
        figure=FRAMES,
        unit="frames",
        measured=sum(one.lost for one in compared) if compared else None,
        true=sum(one.truly_lost for one in compared),
        stated_error=0,
        judgement=judgement,
        note="" if judgement is Judgement.OK and len(compared) == len(seen) else note,
    )
