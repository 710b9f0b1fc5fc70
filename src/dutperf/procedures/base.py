# SPDX-License-Identifier: Apache-2.0
"""What all procedures share: each case is measured in repetitions, each repetition ends with an
event in the journal, and a DUT that forwards nothing ends the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic

from dutperf.model import Case, Load, Trial, TrialResult, axes_as_json, axes_of, to_json
from dutperf.procedures.bench import Bench, ConditionsT, Place, Plan, fixed_repetitions
from dutperf.procedures.during import During
from dutperf.statistics import stopping
from dutperf.statistics.stopping import Stopped

Before = Sequence[Mapping[str, Any]]
"""The members of the events of a case's repetitions so far."""


class Procedure(ABC, Generic[ConditionsT]):
    """One way to measure, by one clause. It is a function of its trials' results alone: no clock,
    no chance of its own, so a run can go on from its journal.

    Raises:
        PlanError: the repetitions are to decide for themselves, and there is no single figure.
    """

    event: str
    """The journal's event of a repetition."""
    has_single_figure: ClassVar[bool] = False
    """Whether :meth:`stopped` has a figure that can say when there are enough repetitions."""

    def __init__(self, plan: Plan[ConditionsT]) -> None:
        self.plan = plan
        self.conditions = plan.conditions
        self.cases = self.cases_of()
        if not self.has_single_figure:
            fixed_repetitions(plan.conditions)

    # --- what a procedure is ----------------------------------------------------------------------

    @abstractmethod
    def first_load(self, case: Case) -> Load:
        """The load that is offered first.

        Raises:
            PlanError: none is known.
        """

    @abstractmethod
    def repetition(self, bench: Bench, place: Place, before: Before) -> dict[str, Any]:
        """Measure once. Returns what the repetition's event in the journal says, as JSON types:
        with ``silent`` true and a ``message`` where the DUT forwards nothing, which ends the run;
        with ``valid`` false where the tester could not measure."""

    # --- what it may have otherwise ---------------------------------------------------------------

    def cases_of(self) -> tuple[Case, ...]:
        """What is measured: the plan's cases."""
        return tuple(self.plan.cases)

    def is_needed(self, case: Case) -> bool:  # noqa: ARG002
        """Whether the case has to be measured at all."""
        return True

    def algorithm(self) -> dict[str, Any]:
        """How it finds its loads, for the plan."""
        return {"algorithm": "none"}

    def limits(self, case: Case) -> dict[str, Any]:  # noqa: ARG002
        """What the plan says of the case beyond what it says of every procedure's, as JSON types."""
        return {}

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """The trial ``number`` that offers ``load``; ``duration_s`` as in a ``Place``."""
        trial = self.plan.make_trial(case, load, number)
        return trial if duration_s is None else trial.lasting(duration_s)

    def during(self) -> During | None:
        """What is done to the DUT in each trial."""
        return None

    def stopped(self, before: Before) -> Stopped | None:
        """Why no further repetition of a case is needed; None where one is."""
        return Stopped.NUMBER if len(before) >= fixed_repetitions(self.conditions) else None

    def trials_of(self, *, first: bool) -> float:  # noqa: ARG002
        """Estimate of the trials of a repetition, the ``first`` of its case or a later one."""
        return 1

    def tell(self, bench: Bench, place: Place, done: Before) -> None:
        """Say what the last repetition of ``done`` found, where a person is to hear of it;
        ``place`` is that repetition's beginning, by what is known now."""

    # --- the same for all -------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """What the journal's plan states about this procedure, as JSON types: ``search``, how it
        finds its loads; ``axes`` and ``cases``, each with its limits."""
        return {
            "search": self.algorithm(),
            "axes": axes_as_json(axes_of(self.cases)),
            "cases": [self._described(case) for case in self.cases],
        }

    def first_trial(self, case: Case) -> Trial:
        """What is sent first, but for its number."""
        return self.trial(case, self.first_load(case), 0)

    def run(self, bench: Bench) -> str | None:
        """Measure every case. Returns why the run ended before its time, None where it did not."""
        needed = [case for case in self.cases if self.is_needed(case)]
        for index, case in enumerate(needed):
            done: list[dict[str, Any]] = []
            cases_left = len(needed) - index - 1
            while self.stopped(done) is None:
                place = self._place(case, len(done), cases_left)
                done.append(self.repetition(bench, place, done))
                bench.record(self.event, place, **done[-1])
                self.tell(bench, self._place(case, len(done) - 1, cases_left), done)
                if done[-1].get("silent"):
                    return str(done[-1]["message"])
        return None

    def measure(self, bench: Bench, load: Load, place: Place) -> TrialResult:
        """See :meth:`dutperf.procedures.bench.Bench.measure`."""
        make = partial(self.trial, place.case, load, duration_s=place.duration_s)
        return bench.measure(load, place, make, self.during())

    def _described(self, case: Case) -> dict[str, Any]:
        return {
            "case": case.as_json(),
            "media_maximum_fps": self.plan.maximum_fps(case),
            "first_trial": to_json(self.first_trial(case)),
            **self.limits(case),
        }

    def _place(self, case: Case, done: int, cases_left: int) -> Place:
        """The beginning of a repetition, as if it had a single trial."""
        rule, later = self.conditions.repetitions, self.trials_of(first=False)
        at_least = stopping.next_look(rule, done)
        of_a_case = self.trials_of(first=True) + (stopping.next_look(rule, 0) - 1) * later
        left = 1 + round((at_least - done - 1) * later + cases_left * of_a_case)
        return Place(case, done + 1, at_least, trials_left=left)
