# SPDX-License-Identifier: Apache-2.0
"""The interface between procedures and the campaign: the plan, a bench that runs valid trials, and
the status that a progress line shows.

A procedure (:mod:`dutperf.procedures.base`) decides which load comes next and what the results
mean. The bench runs trials, repeats those that are not valid, keeps the journal and updates the
observer, the same for all procedures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from dutperf.dut.row import DeviceOrRow
from dutperf.errors import DutperfError
from dutperf.journal import Finding
from dutperf.model import Case, Load, Trial, TrialResult
from dutperf.procedures.request import Request
from dutperf.procedures.trial_action import TrialAction
from dutperf.setup.conditions import Conditions
from dutperf.tester import Progress
from dutperf.tester.calibration import Calibration
from dutperf.traffic import TrafficKind

MakeTrial = Callable[[int], Trial]
"""Makes the trial with a given number; all else stays the same."""


class PlanError(DutperfError, ValueError):
    """The conditions cannot be measured. ``option`` names the one to change, as in ``Conditions``
    (``max_rate``)."""

    def __init__(self, message: str, *, option: str) -> None:
        super().__init__(f"{option}: {message}")
        self.message = message
        self.option = option


T = TypeVar("T")
FindingT = TypeVar("FindingT", bound=Finding)
ConditionsT = TypeVar("ConditionsT", bound=Conditions, default=Conditions, covariant=True)


@dataclass(frozen=True)
class Plan(Generic[ConditionsT]):
    """What to measure. ``config`` and ``invocation`` are JSON types and go to the journal unchanged."""

    traffic: TrafficKind
    """Of the setup under the conditions: the cases, and their trials."""
    conditions: ConditionsT
    dut: DeviceOrRow
    too_long: Callable[[Case], str | None] = lambda _case: None
    """Why a case cannot be measured whose frames are too long for the tester's own ports; None where they fit."""
    config: Mapping[str, Any] = field(default_factory=dict)
    invocation: Sequence[str] = ()
    source: Mapping[str, Any] = field(default_factory=dict)
    """Where the setup came from, to resume the run later: JSON types."""
    calibration: Calibration | None = None
    """The tester's own limits, where they were measured on such ports."""


@dataclass(frozen=True)
class Place:
    """Progress of a procedure; its part of a :class:`Status`."""

    case: Case
    repetition: int
    """From 1."""
    repetitions: int
    """At least so many."""
    trials_left: int
    """Estimate for the whole run, including the next trial; 0 at its end."""
    lower: Load | None = None
    """Highest load that passed in this repetition."""
    upper: Load | None = None
    """Lowest load that did not pass in this repetition."""
    duration_s: float | None = None
    """Sending time of the next trial; None: as the conditions say."""

    def within(self, trials_left: int, **members: Any) -> Place:
        """A later place in the repetition that begins at this one: the repetition, so far counted
        as a single trial, has ``trials_left`` trials left."""
        return replace(self, trials_left=self.trials_left - 1 + trials_left, **members)


@dataclass(frozen=True)
class Status:
    """Contents of a progress line."""

    procedure: str
    case: Case
    cases: Sequence[Case]
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
    note: str | None = None
    """A sentence for a person: why a trial is repeated, how a search ended."""


class Observer(Protocol):
    """Receives the progress of a measurement: before, about once a second during, and after each
    trial."""

    def update(self, status: Status) -> None: ...


class Bench(Protocol):
    """Runs a procedure's trials."""

    def measure(
        self,
        load: Load,
        place: Place,
        make: MakeTrial,
        action: TrialAction | None = None,
        ended_by: Callable[[], bool] | None = None,
    ) -> TrialResult:
        """Run trials of ``load``, made by ``make``, until one is valid, with ``action`` on the DUT in each. Returns the
        valid result; where repeats did not help, the last one, whose verdict is not valid. A trial ends as soon as
        ``ended_by``, which is called at each report of its progress, is true. Raises TesterError: the tester cannot run
        at all."""
        ...

    def requested(self, accept: Callable[[Request], T]) -> T | None:
        """What ``accept`` makes of what a person or a program asked for since the last call; None: nothing, or
        it raised PlanError or ConfigError. Answers do not follow from trials: look for :meth:`recorded` findings
        first."""
        ...

    def recorded(self, kind: type[FindingT]) -> FindingT | None:
        """In a run that is resumed: the finding that the journal has next; None: a new one is due."""
        ...

    def record(self, finding: Finding, place: Place) -> None:
        """Write a finding of the repetition at ``place`` to the journal, and flush it to the disk."""
        ...

    def say(self, note: str, place: Place) -> None:
        """Show a sentence to a person, between trials; ``place`` is the present one."""
        ...


def fixed_repetitions(conditions: Conditions) -> int:
    """The number of repetitions of a procedure without a single figure. Raises PlanError: the repetitions are
    ``auto``."""
    if not isinstance(conditions.every.repetitions, int):
        raise PlanError("this procedure has no single figure for auto to look at; give a number", option="repetitions")
    return conditions.every.repetitions
