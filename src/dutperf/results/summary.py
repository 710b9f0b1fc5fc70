# SPDX-License-Identifier: Apache-2.0
"""``summary.json`` of a run, made from its journal alone: the members of every procedure's summary,
and the procedure's own points."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SerializeAsAny

from dutperf import journal
from dutperf.journal import DutStateEvent, EnvironmentEvent, Event, JournalError, PlanEvent, ResultEvent, of_kind
from dutperf.model import Case, Value, axes_of_json
from dutperf.results import deviations, environments, remarks, run_trials, streams
from dutperf.results.deviations import Deviation, Rule
from dutperf.results.deviations import rules as general_rules
from dutperf.results.environments import EnvironmentChange
from dutperf.results.points import Point, PointBuilder, Recorded
from dutperf.results.remarks import Remark
from dutperf.results.run_trials import RunTrials
from dutperf.results.streams import StreamResult
from dutperf.setup.conditions import Conditions, Rate
from dutperf.version import __version__

SUMMARY = "summary.json"


class Summary(Value):
    """A run's results, and everything to assess and to repeat it."""

    procedure: str
    dut: dict[str, Any]
    environment: dict[str, Any]
    conditions: dict[str, Any]
    deviations: tuple[Deviation, ...]
    trials: RunTrials
    points: tuple[SerializeAsAny[Point], ...]
    streams: tuple[StreamResult, ...] = ()
    """Results by stream, where a direction has several."""
    remarks: tuple[Remark, ...] = ()
    """What there is to say on the run beside its figures."""
    environment_changes: tuple[EnvironmentChange, ...] = ()
    """Changes of host and tester when the run was resumed; ``environment`` is that of its
    beginning."""

    def without_number(self) -> tuple[Point, ...]:
        """The points without a result: nothing passed, the DUT forwards nothing, or the run ended
        early."""
        return tuple(point for point in self.points if not point.has_number)


@dataclass(frozen=True, kw_only=True)
class Reader:
    """How to read the journal of a procedure's run, or of one whose trials no procedure chose."""

    name: str
    """As the journal's plan, every file and, of a procedure, the command have it."""
    conditions: type[Conditions]
    """Its own model."""
    point: PointBuilder
    delays: streams.Delays = streams.delays
    rules: tuple[Rule, ...] = general_rules()
    """The clauses that it may deviate from; those of every procedure if it has none of its own."""
    of_changes: bool = False
    """Whether its figures are changes of delay from frame to frame, not delays."""


def write_summary(directory: Path, reader: Reader) -> Summary:
    """Make ``directory/summary.json`` from ``directory/journal.jsonl``; ``reader`` is the
    procedure's.

    Raises:
        JournalError: the journal cannot be read.
        WriteError: the summary cannot be written.
    """
    summary = summarise(journal.read(directory), reader)
    journal.write_whole(directory / SUMMARY, json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    return summary


def summarise(events: list[Event], reader: Reader) -> Summary:
    """The summary of a journal's events; for an unfinished run, of those so far.

    Raises:
        JournalError: there is no plan, or it is of another format or version.
    """
    plan = journal.plan_of(events)
    try:
        return _summary(plan, events, reader)
    except (ValueError, LookupError, TypeError) as error:
        if plan.dutperf == __version__:
            raise
        said, _, _ = str(error).partition("\n")
        text = f"the journal of dutperf {plan.dutperf} cannot be read by {__version__}: {said}"
        raise JournalError(text) from error


def _summary(plan: PlanEvent, events: list[Event], reader: Reader) -> Summary:
    conditions, axes = reader.conditions.recorded(plan.conditions), axes_of_json(plan.axes)
    cases = [Recorded(Case.of_json(limits["case"], axes), limits, events, conditions) for limits in plan.cases]
    points = tuple(reader.point(recorded) for recorded in cases)
    finished = min(
        (point.finished for point, recorded in zip(points, cases, strict=True) if recorded.too_long is None), default=0
    )
    return Summary(
        procedure=plan.procedure,
        dut=plan.dut,
        environment=_environment(plan, events),
        conditions=_conditions(plan),
        deviations=deviations.deviations(
            reader.rules,
            conditions,
            frames=[{**limits["case"], **limits} for limits in plan.cases],
            repetitions=finished,
            ptp=any(one.ptp for event in of_kind(events, ResultEvent) for one in event.result.directions().values()),
        ),
        trials=run_trials.of_run(events),
        points=points,
        streams=tuple(
            one
            for recorded, point in zip(cases, points, strict=True)
            for one in streams.of_case(recorded, point, reader.delays)
        ),
        remarks=remarks.of_run(events, conditions, of_changes=reader.of_changes),
        environment_changes=environments.changes(events),
    )


def _environment(plan: PlanEvent, events: list[Event]) -> dict[str, Any]:
    first = next(of_kind(events, EnvironmentEvent), None)
    members = {} if first is None else first.as_json()
    return {
        "started": plan.time,
        **{key: value for key, value in members.items() if key != "event"},
        **_dut_states(events),
    }


def _dut_states(events: list[Event]) -> dict[str, Any]:
    """Digests of the DUT's state, where it was read; they show at once whether it changed."""
    states = [
        {key: getattr(event, key) for key in ("when", "case", "repetition", "sha256")}
        for event in of_kind(events, DutStateEvent)
    ]
    return {"dut_states": states} if states else {}


def _conditions(plan: PlanEvent) -> dict[str, Any]:
    resolution = plan.conditions.get("resolution")
    shown = {} if resolution is None else {"resolution": str(Rate.model_validate(resolution))}
    ranges = [{key: value for key, value in limits.items() if key != "first_trial"} for limits in plan.cases]
    return {**plan.conditions, **shown, "search": plan.search | {"attempts": plan.attempts}, "ranges": ranges}
