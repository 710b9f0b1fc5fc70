# SPDX-License-Identifier: Apache-2.0
"""Base of all procedures: each case is measured in repetitions, each repetition ends with an event
in the journal, and a DUT that forwards nothing ends its case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Generic

from dutperf.journal import RepetitionFinding
from dutperf.model import (
    Case,
    Direction,
    DirectionCounts,
    Load,
    Trial,
    TrialResult,
    Verdict,
    axes_as_json,
    axes_of,
    to_json,
)
from dutperf.procedures import evidence
from dutperf.procedures.bench import Bench, ConditionsT, MakeTrial, Place, Plan, fixed_repetitions
from dutperf.procedures.trial_action import TrialAction
from dutperf.setup.configuration import ConfigError
from dutperf.statistics import stopping
from dutperf.statistics.stopping import Stopped

Prior = Sequence[Any]
"""The findings of a case's earlier repetitions, of the procedure's own kind."""


class Procedure(ABC, Generic[ConditionsT]):
    """One way to measure, by one clause. It depends on its trials' results alone, not on a clock or on random numbers
    of its own, so a run can be resumed from its journal. Raises PlanError: what the conditions ask for contradicts
    itself, or is not possible. Raises ConfigError: the setup is not one for this procedure."""

    has_single_figure: ClassVar[bool] = False
    """Whether there is a figure by which :meth:`stopped` can end ``auto`` repetitions."""

    def __init__(self, plan: Plan[ConditionsT]) -> None:
        self.plan = plan
        self.conditions = plan.conditions
        self.cases = self.cases_of()
        self._had_valid = set[Case]()
        self.is_hopeless = False
        """Whether the last trial has shown that no other one of its case can be valid with this test setup. Where one
        was valid before, the setup fits, and what the trial has met may pass."""
        if not self.has_single_figure:
            fixed_repetitions(plan.conditions)

    # --- what a procedure is ----------------------------------------------------------------------

    @abstractmethod
    def first_load(self, case: Case) -> Load:
        """The load that is offered first. Raises PlanError: none is known."""

    @abstractmethod
    def repetition(self, bench: Bench, place: Place, prior: Prior) -> RepetitionFinding:
        """Measure once. Returns the members of the repetition's event in the journal, as JSON
        types: ``not_forwarding`` true and a ``message`` where the DUT forwards nothing, which ends
        the case; ``valid`` false where the tester could not measure."""

    # --- what it may override ---------------------------------------------------------------------

    def cases_of(self) -> tuple[Case, ...]:
        """The cases to measure: the plan's."""
        return self.plan.traffic.cases()

    def is_needed(self, case: Case) -> bool:
        """Whether the case has to be measured at all."""
        return True

    def algorithm(self) -> dict[str, Any]:
        """How it finds its loads, for the journal's plan."""
        return {"algorithm": "none"}

    def limits(self, case: Case) -> dict[str, Any]:
        """Further members of the case in the journal's plan, as JSON types."""
        return {}

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """The trial ``number`` that offers ``load``; ``duration_s`` as in a ``Place``."""
        trial = self.plan.traffic.trial(case, load, number)
        return trial if duration_s is None else trial.lasting(duration_s + self.conditions.every.joining_s)

    def maximum_fps(self, case: Case) -> int | None:
        """The media's maximum for the trials of a case, in frames/s per direction; None: it is not known."""
        return self.plan.traffic.maximum_fps(case)

    def action(self) -> TrialAction | None:
        return None

    def stopped(self, prior: Prior) -> Stopped | None:
        """Why no further repetition of a case is needed; None where one is."""
        return Stopped.NUMBER if len(prior) >= fixed_repetitions(self.conditions) else None

    def at_least(self, done: int) -> int:
        """The least number of repetitions of a case in all, where ``done`` were not enough."""
        return stopping.next_look(self.conditions.every.repetitions, done)

    def trials_of(self, *, first: bool) -> float:
        """Estimated trials of a repetition, the ``first`` of its case or a later one."""
        return 1

    def announce(self, bench: Bench, place: Place, done: Prior) -> None:
        """Show the result of the last repetition of ``done`` where it is of interest to a person;
        ``place`` is that repetition's beginning, with the present estimates."""

    # --- common to all ----------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """The procedure's members of the journal's plan, as JSON types: ``search``, how it finds
        its loads; ``axes``; ``cases``, each with its limits."""
        return {
            "search": self.algorithm(),
            "axes": axes_as_json(axes_of(self.cases)),
            "cases": [self._described(case) for case in self.cases],
        }

    def no_forwarding(self, result: TrialResult) -> str:
        """Evidence of a DUT that forwards nothing, and what of the test setup may be the reason."""
        return evidence.no_forwarding(result, self.plan.traffic.setup)

    def read(self, result: TrialResult) -> tuple[dict[str, Any], dict[Direction, DirectionCounts]]:
        """What a repetition of this one trial says: members of its finding, and the counts that show anything."""
        valid = result.verdict is Verdict.VALID
        dead = self.no_forwarding(result) if valid and evidence.dead_directions(result) else None
        message = dead or (evidence.losses(result) if valid else evidence.invalidity(result))
        members = {"valid": valid, "not_forwarding": dead is not None, "message": message}
        return members, result.directions() if valid and dead is None else {}

    def first_trial(self, case: Case) -> Trial:
        """The first trial of a case, without its number."""
        return self.trial(case, self.first_load(case), 0)

    def run(self, bench: Bench) -> str | None:
        """Measure every case. Returns why none could be measured, where the DUT forwards nothing in each, or none
        fits the tester's ports.

        A DUT that forwards nothing in one case may forward the others: frames that are too large for it say
        nothing about smaller ones.
        """
        needed = [case for case in self.cases if self.is_needed(case) and self.plan.too_long(case) is None]
        if self.cases and not needed:
            return self.plan.too_long(self.cases[-1])
        last = [self._measured(bench, case, len(needed) - index - 1) for index, case in enumerate(needed)]
        return last[-1].message if last and all(one.not_forwarding for one in last) else None

    def measure(self, bench: Bench, load: Load, place: Place, make: MakeTrial | None = None) -> TrialResult:
        make = make or partial(self.trial, place.case, load, duration_s=place.duration_s)
        result = bench.measure(load, place, make, self.action())
        if result.verdict is Verdict.VALID:
            self._had_valid.add(place.case)
        self.is_hopeless = place.case not in self._had_valid and evidence.does_not_fit(result)
        return result

    def _measured(self, bench: Bench, case: Case, cases_left: int) -> RepetitionFinding:
        """Measure a case. Returns the finding of its last repetition."""
        done: list[RepetitionFinding] = []
        while self.stopped(done) is None:
            place = self._place(case, len(done), cases_left)
            done.append(self.repetition(bench, place, done))
            bench.record(done[-1], place)
            is_last = done[-1].not_forwarding or self.is_hopeless
            self.announce(bench, self._place(case, len(done) - 1, cases_left, is_last=is_last), done)
            if is_last:
                break
        return done[-1]

    def _described(self, case: Case) -> dict[str, Any]:
        too_long, first = self.plan.too_long(case), self.first_trial(case)
        if first.other_streams is None and self.plan.traffic.setup.other_streams():
            raise ConfigError(
                "the trials of this measurement have no load beside their own: leave out streams with a rate", "streams"
            )
        return {
            "case": case.as_json(),
            "media_maximum_fps": self.maximum_fps(case),
            "first_trial": to_json(first),
            **self.limits(case),
            **({} if too_long is None else {"too_long": too_long}),
        }

    def _place(self, case: Case, done: int, cases_left: int, *, is_last: bool = False) -> Place:
        """The place at the beginning of a repetition, counted as a single trial; ``is_last``: of its case."""
        later, at_least = self.trials_of(first=False), done + 1 if is_last else self.at_least(done)
        of_a_case = self.trials_of(first=True) + (self.at_least(0) - 1) * later
        left = 1 + round((at_least - done - 1) * later + cases_left * of_a_case)
        return Place(case, done + 1, at_least, trials_left=left)
