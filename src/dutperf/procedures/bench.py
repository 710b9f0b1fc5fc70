# SPDX-License-Identifier: Apache-2.0
"""What every procedure is given: the plan, a bench that runs valid trials, and the status that a
progress line shows.

A procedure (:mod:`dutperf.procedures.base`) decides which load comes next and what the results
mean. Running a trial, repeating one that is not valid, keeping the journal and telling the observer
is the bench's work, the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from dutperf.errors import DutperfError
from dutperf.model import Case, Load, Trial, TrialResult
from dutperf.procedures.during import During, Running
from dutperf.setup.conditions import Conditions
from dutperf.setup.dut import CountLosses
from dutperf.tester import Progress
from dutperf.tester.calibration import Calibration

TrialFactory = Callable[[Case, Load, int], Trial]
"""Case, load (frames/s) and trial number to a trial."""
MakeTrial = Callable[[int], Trial]
"""Trial number to a trial; the same trial but for its number."""


class PlanError(DutperfError, ValueError):
    """The conditions cannot be measured as they are. ``option`` names the one to change, as in
    ``Conditions`` (``max_rate``)."""

    def __init__(self, message: str, *, option: str) -> None:
        super().__init__(f"{option}: {message}")
        self.message = message
        self.option = option


ConditionsT = TypeVar("ConditionsT", bound=Conditions, default=Conditions, covariant=True)


@dataclass(frozen=True)
class Plan(Generic[ConditionsT]):
    """What is to be measured. ``dut``, ``config`` and ``invocation`` are JSON types and go to the
    journal as they are."""

    conditions: ConditionsT
    cases: Sequence[Case]
    """Those that the set-up and the conditions have."""
    make_trial: TrialFactory
    maximum_fps: Callable[[Case], int | None]
    """The media's maximum frame rate for a case (RFC 8219 appendix A), in frames/s per direction;
    None where it is unknown."""
    dut: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    invocation: Sequence[str] = ()
    source: Mapping[str, Any] = field(default_factory=dict)
    """Where the set-up came from, for a run that goes on later: JSON types."""
    calibration: Calibration | None = None
    """What the tester can do by itself, where it was measured on such ports."""
    dut_state: Callable[[], str] | None = None
    """Asks the DUT for its state, where the set-up says how."""
    dut_reset: Callable[[], Running] | None = None
    """Starts the command that resets the DUT, where the set-up has one."""
    dut_losses: CountLosses | None = None
    """Asks the DUT what it has counted as lost so far, where it can be asked."""


@dataclass(frozen=True)
class Place:
    """Where in its course a procedure is; the procedure's share of a :class:`Status`."""

    case: Case
    repetition: int
    """From 1."""
    repetitions: int
    """As many as there will be at least."""
    trials_left: int
    """Estimate for the whole run, the next trial included; 0 at its end."""
    lower: Load | None = None
    """Highest load that passed in this repetition."""
    upper: Load | None = None
    """Lowest load that did not pass in this repetition."""
    duration_s: float | None = None
    """Sending time of the next trial; None: as the conditions say."""

    def within(self, trials_left: int, **members: Any) -> Place:
        """A place in the repetition at whose beginning this one is, which was taken for a single
        trial: it has ``trials_left`` more of its own."""
        return replace(self, trials_left=self.trials_left - 1 + trials_left, **members)


@dataclass(frozen=True)
class Status:
    """What a progress line shows."""

    procedure: str
    case: Case
    cases: Sequence[Case]
    """All that are measured."""
    repetition: int
    repetitions: int
    trying: Load | None
    """None before the first trial."""
    lower: Load | None
    upper: Load | None
    trials_done: int
    trials_left: int
    remaining_s: float
    """Estimate for the whole run."""
    progress: Progress | None = None
    """Of the running trial."""
    last: TrialResult | None = None
    """The trial that ended last."""
    note: str | None = None
    """A sentence for a person: why a trial is repeated, how a search ended."""


class Observer(Protocol):
    """Is told how far a measurement is: before, about once a second during, and after each trial."""

    def update(self, status: Status) -> None: ...


class Bench(Protocol):
    """Runs a procedure's trials."""

    def measure(self, load: Load, place: Place, make: MakeTrial, during: During | None = None) -> TrialResult:
        """A valid result of ``load``, whose trials ``make`` makes; or, where repeats did not help,
        the last one, whose verdict is not valid. ``during`` is done to the DUT in each of them.

        Raises:
            TesterError: the tester cannot work at all.
        """
        ...

    def record(self, event: str, place: Place, **members: Any) -> None:
        """Write an event of the repetition at ``place`` to the journal; it is on the disk when this
        returns. ``members`` are JSON types."""
        ...

    def say(self, note: str, place: Place) -> None:
        """Show a person one sentence, between trials; ``place`` as it is now."""
        ...


def fixed_repetitions(conditions: Conditions) -> int:
    """For a procedure that has no single figure whose median could decide.

    Raises:
        PlanError: the repetitions are to decide for themselves.
    """
    if not isinstance(conditions.repetitions, int):
        raise PlanError("this procedure has no single figure for auto to look at; give a number", option="repetitions")
    return conditions.repetitions
