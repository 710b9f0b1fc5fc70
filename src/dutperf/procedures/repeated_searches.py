# SPDX-License-Identifier: Apache-2.0
"""What procedures share that search for the highest load which passes, in repetitions: how a
repetition is searched and told, which of them says what a point is limited by, and what stands
right above its value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dutperf import journal
from dutperf.journal import Event
from dutperf.model import Case, LimitedBy, Load, TrialResult, Unit, Value, Verdict
from dutperf.procedures import evidence, searches
from dutperf.procedures.base import Before, Procedure
from dutperf.procedures.bench import Bench, ConditionsT, Place, Plan
from dutperf.results import points
from dutperf.results.points import Loss
from dutperf.search import Outcome
from dutperf.search.binary import Found, Search
from dutperf.statistics import stopping
from dutperf.statistics.stopping import Stopped

SERIOUSNESS = (LimitedBy.TESTER, LimitedBy.DUT, LimitedBy.RANGE, LimitedBy.MEDIA)
"""What a point is limited by where its repetitions differ: the first of these that any has.

``tester`` first: one repetition that only shows what the tester can do puts the median and the
percentiles in doubt. Then ``dut``, which is a result. ``range`` before ``media``: of a range that
ended too early (or in which nothing passed) a person can do something about it.
"""


@dataclass(frozen=True)
class Offered:
    """A load that was offered in a repetition, and what came of it."""

    value: int
    outcome: Outcome
    result: TrialResult


class RepeatedSearches(Procedure[ConditionsT]):
    """A procedure whose every repetition is a search."""

    event = "search"
    has_single_figure = True
    unit: ClassVar[Unit] = Unit.FRAMES_PER_SECOND
    """Of the loads."""
    failed_at: ClassVar[str] = "at"
    """Before a load that failed, in a sentence."""
    nothing_passed: ClassVar[str] = "nothing passed"

    def __init__(self, plan: Plan[ConditionsT]) -> None:
        super().__init__(plan)
        self._search: Search | None = None
        self._lengths: dict[bool, list[int]] = {True: [], False: []}
        """Trials of the searches so far: of each case's first one (True), and of the others."""

    @abstractmethod
    def begin(self, place: Place, before: Before) -> Search:
        """The search of another repetition."""

    @abstractmethod
    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        """Of the highest load of the search, which passed."""

    def offer(self, bench: Bench, load: Load, place: Place) -> tuple[TrialResult, Outcome]:
        """Offer a load, and say what the search may learn of it."""
        result = self.measure(bench, load, place)
        return result, evidence.outcome_of(result, self.conditions)

    def why_unmeasurable(self, case: Case, result: TrialResult) -> str:  # noqa: ARG002
        """Why nothing can be said of the load of ``result``."""
        return evidence.invalidity(result)

    def beside(self, case: Case, found: Found, offered: Sequence[Offered]) -> dict[str, Any]:  # noqa: ARG002
        """What the event of a search says beyond what every search finds."""
        return {}

    def stopped(self, before: Before) -> Stopped | None:
        """See :class:`~dutperf.procedures.base.Procedure`."""
        return stopping.stopped(self.conditions.repetitions, *self.series(before))

    def series(self, before: Before) -> list[list[int | None]]:
        """The values of the repetitions, for each figure that has to be known well enough."""
        return [[search["value"] for search in before]]

    def repetition(self, bench: Bench, place: Place, before: Before) -> dict[str, Any]:
        """See :class:`~dutperf.procedures.base.Procedure`."""
        self._search = search = self.begin(place, before)
        offered: list[Offered] = []
        while (value := search.next_load()) is not None:
            result, outcome = self.offer(bench, Load(value, self.unit), self._now(search, place))
            offered.append(Offered(value, outcome, result))
            search.tell(outcome, searches.loss_of(result))
        found = search.found()
        self._lengths[not before].append(len(found.loads))
        return {
            "unit": self.unit.value,
            "silent": found.silent,
            **self.finding(place.case, found, offered),
            **self.beside(place.case, found, offered),
        }

    def finding(self, case: Case, found: Found, offered: Sequence[Offered]) -> dict[str, Any]:
        """What a search found for one goal, in the journal's form."""
        return {
            "value": found.value,
            "limited_by": found.limited_by,
            "above": found.above,
            "loads": [[value, outcome] for value, outcome in found.loads],
            "message": self._explanation(case, found, offered),
        }

    def tell(self, bench: Bench, place: Place, done: Before) -> None:
        """See :class:`~dutperf.procedures.base.Procedure`."""
        assert self._search is not None, "a repetition has been searched"
        last, rule, passing = done[-1], self.conditions.repetitions, self.conditions.passing()
        value = "no value" if last["value"] is None else str(Load(last["value"], self.unit))
        stopped = None if isinstance(rule, int) else self.stopped(done)
        note = f"repetition {place.repetition}: {value}{f' ({passing})' if passing else ''}; {last['message']}"
        bench.say(
            note + (f"; no further repetition: {stopped}" if stopped is not None else ""),
            self._now(self._search, place),
        )

    def _now(self, search: Search, place: Place) -> Place:
        lower, upper = (None if one is None else Load(one, self.unit) for one in (search.lower, search.upper))
        now = place.within(search.trials_left(), lower=lower, upper=upper, duration_s=search.next_duration_s())
        return replace(now, trials_left=0) if search.found().silent else now

    def _explanation(self, case: Case, found: Found, offered: Sequence[Offered]) -> str:
        """Why the value is what it is, in a sentence."""
        if found.above is None:
            return self.all_passed(case, found.limited_by)
        above, result = Load(found.above, self.unit), _that_did_not_pass(found.above, offered)
        if found.silent:
            return evidence.silence(result)
        if found.limited_by is LimitedBy.TESTER:
            return f"limited by the tester at {above}: {self.why_unmeasurable(case, result)}"
        failed = f"{self.failed_at} {above} {evidence.losses(result, self.conditions.frame_timeout_ms)}"
        if result.proven_failed is not None:
            failed += f"; the tester was disturbed, and {result.proven_failed}"
        return failed if found.value is not None else f"{self.nothing_passed}: {failed}"


class Above(Value):
    """The lowest load that failed right above a value: what happens when the DUT has too much."""

    load: Load
    forward: Loss | None = None
    reverse: Loss | None = None

    def sentence(self) -> str:
        """When and where frames were lost; empty where none was."""
        told = [
            f"{name} lost {one.sentence()}"
            for name, one in (("forward", self.forward), ("reverse", self.reverse))
            if one is not None and one.sentence()
        ]
        return f"what happened just above it, at {self.load}: {'. '.join(told)}" if told else ""


def decisive(found: Sequence[Event]) -> Event | None:
    """The repetition that says what the point is limited by: one that found a dead DUT, else the
    lowest of the most serious kind; None: there is none."""
    return min(
        found,
        key=lambda search: (not search["silent"], SERIOUSNESS.index(search["limited_by"]), search["above"] or 0),
        default=None,
    )


def message(found: Sequence[Event]) -> str:
    """Why the decisive repetition's value is what it is, and in how many of them it is so."""
    one = decisive(found)
    if one is None:
        return "not measured"
    alike = sum(search["limited_by"] == one["limited_by"] for search in found)
    share = "" if alike == len(found) or one["silent"] else f"in {alike} of {len(found)} repetitions "
    return share + str(one["message"])


def stopped(found: Sequence[Event], rule: stopping.Rule, *series: Sequence[int | None]) -> Stopped | None:
    """Why no further search was needed, by the values of ``series``; None where one was, or the DUT
    had died."""
    return None if any(search["silent"] for search in found) else stopping.stopped(rule, *series)


def above(found: Sequence[Event], results: Sequence[Event]) -> Above | None:
    """The lowest of the failed trials that stand right above a repetition's value; of several of
    that load, the one that lost most."""
    wanted = {(search["repetition"], search["above"]) for search in found if search["limited_by"] != LimitedBy.TESTER}
    failed = [
        (load, result)
        for event in results
        if (event["repetition"], (load := Load.of_json(event["load"])).value) in wanted
        and (result := journal.recorded_result(event["result"])).verdict is Verdict.VALID
    ]
    if not failed:
        return None
    load, result = min(failed, key=lambda trial: (trial[0], -trial[1].worst_loss_ratio))
    return Above(load=load, **points.losses(result))


def without_waits(results: Sequence[Event], waits: Sequence[Event]) -> list[Event]:
    """The ``result`` events without trials that met a DUT which was down and came back: they were
    repeated, and show nothing of a load."""
    met = {(wait["repetition"], wait["trial"]) for wait in waits if wait["answered"]}
    return [event for event in results if (event["repetition"], event.get("trial")) not in met]


def _that_did_not_pass(value: int, offered: Sequence[Offered]) -> TrialResult:
    """The last trial of a load that did not pass; where all passed, the last one."""
    of_load = [one for one in offered if one.value == value]
    return next((one.result for one in reversed(of_load) if one.outcome is not Outcome.PASSED), of_load[-1].result)
