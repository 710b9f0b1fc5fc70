# SPDX-License-Identifier: Apache-2.0
"""A tester with a witness: after each trial the reference DUT is asked what it did, so that every
trial has its own truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dutperf.lab.refdut import Properties, RefDutError, Truth
from dutperf.model import Trial, TrialResult, Verdict
from dutperf.selftest.findings import Finding, Judgement
from dutperf.tester import ProgressCallback, Tester, TesterError

FRAMES = "frames lost, all trials"


class ReferenceDut(Protocol):
    """What is asked of a reference DUT (:class:`dutperf.lab.refdut.RefDut`)."""

    def configure(self, properties: Properties) -> None:
        """Make it what ``properties`` say; its counters begin anew."""
        ...

    def counters(self) -> Truth:
        """What it did since."""
        ...

    def stall(self, duration_s: float, after_s: float = 0.0) -> None:
        """Let it serve nothing for a while."""
        ...

    def reset(self, duration_s: float, after_s: float = 0.0) -> None:
        """Let it lose everything for a while."""
        ...


Befall = Callable[[ReferenceDut], None]


@dataclass(frozen=True)
class Witnessed:
    """A trial, what the tester says of it, and what the DUT says."""

    trial: Trial
    result: TrialResult
    truth: Truth

    @property
    def is_valid(self) -> bool:
        """Whether a procedure learns from it."""
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
        """How long the tester was late or away, or the DUT's loop, at most: by so much what
        happened may have shifted."""
        counts = self.result.directions().values()
        tester_us = [max(one.lateness_us.max, one.stall_us.sender, one.stall_us.receiver) for one in counts]
        return max(*tester_us, self.truth.forward.lateness_us.max, self.truth.reverse.lateness_us.max, 0.0) / 1e6

    @property
    def is_balanced(self) -> bool:
        """Whether both can be compared to the frame: nothing was lost between them, and nothing
        could come after receiving had ended."""
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
class WitnessedTester:
    """A :class:`dutperf.tester.Tester` before a reference DUT that is set anew before each trial."""

    tester: Tester
    dut: ReferenceDut
    properties: Properties
    befall: Befall | None = None
    seen: list[Witnessed] = field(default_factory=list)

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """See :meth:`dutperf.tester.Tester.run`.

        Raises:
            TesterError: also where the DUT cannot be asked.
        """
        try:
            self.dut.configure(self.properties)
            if self.befall is not None:
                self.befall(self.dut)
            result = self.tester.run(trial, on_progress)
            self.seen.append(Witnessed(trial, result, self.dut.counters()))
        except RefDutError as error:
            raise TesterError(str(error)) from None
        return result

    def wait_until_quiet(self, limit_s: float) -> float:
        """See :meth:`dutperf.tester.Tester.wait_until_quiet`."""
        return self.tester.wait_until_quiet(limit_s)

    def environment(self) -> dict[str, Any]:
        """See :meth:`dutperf.tester.Tester.environment`."""
        return self.tester.environment()

    def close(self) -> None:
        """The tester is another's to close."""


def balance(procedure: str, seen: Sequence[Witnessed]) -> Finding:
    """Whether what the tester missed is what the DUT lost: in all trials, to the frame, in each of
    them."""
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
