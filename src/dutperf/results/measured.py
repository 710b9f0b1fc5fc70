# SPDX-License-Identifier: Apache-2.0
"""A measurement as it is now, whether or not it has come to its end: its summary, its journal, and
a sentence about where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dutperf import journal
from dutperf.journal import Event, PlanEvent, ResultEvent, of_kind
from dutperf.results import tables, trials
from dutperf.results.charts import Chart
from dutperf.results.summary import Summary
from dutperf.results.tables import Record
from dutperf.results.trials import Done
from dutperf.setup.conditions import Conditions


@dataclass(frozen=True, repr=False)
class Measured:
    """One measurement. ``summary`` and ``events`` are of the same moment."""

    name: str
    """Of its directory in a suite; else the procedure's."""
    summary: Summary | None
    """None: there is nothing yet, or it could not be measured; ``note`` says which."""
    events: Sequence[Event] = ()
    note: str | None = None
    under_way: bool = False
    """Whether a process is writing its journal."""

    def __repr__(self) -> str:
        points = 0 if self.summary is None else len(self.summary.points)
        return (
            f"<{self.name}: {points} points, {len(self.events)} events{'' if self.is_complete else ', not complete'}>"
        )

    @property
    def plan(self) -> PlanEvent:
        """What was to be measured; where there is a summary, there is a plan."""
        return journal.plan_of(self.events)

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end."""
        return journal.is_complete(self.events)

    def trials(self) -> list[Done]:
        """Those that have a result, in order."""
        return [] if self.summary is None else trials.trials(self.events, Conditions.recorded(self.plan.conditions))

    def records(self, *, of_trials: bool = False) -> list[Record]:
        """The figures of the results, a record for each; ``of_trials``: those of every trial that
        has a result. All have the same names, which say the unit; none where nothing has been
        measured."""
        if self.summary is None:
            return []
        records = [trial.record() for trial in self.trials()] if of_trials else tables.records(self.summary)
        return tables.uniform([{"measurement": self.name, **record} for record in records])

    def result_charts(self) -> list[Chart]:
        """The plots of the results: those of the summary's points, and the delays of each trial,
        which are in the journal alone."""
        if self.summary is None:
            return []
        points = self.summary.points
        made = type(points[0]).charts(points, self.summary.conditions["ranges"])
        passing = f" Passed: {points[0].pass_criterion}." if points[0].pass_criterion else ""
        stated = [replace(chart, caption=chart.caption + passing) for chart in made]
        return _drawable([*stated, *trials.delay_charts(self.trials(), type(points[0]).marks)])

    def course_charts(self) -> list[Chart]:
        """The plots of how it went, from the journal."""
        return _drawable(trials.course_charts(self.trials()))

    def charts(self) -> dict[str, Chart]:
        """All plots by the name under which ``dutperf plot`` has them."""
        return {self.figure_name(chart): chart for chart in (*self.result_charts(), *self.course_charts())}

    def figure_name(self, chart: Chart) -> str:
        """Of one of its plots."""
        return f"{self.name}-{chart.name}" if chart.name else self.name

    def state(self) -> str | None:
        """What is to be said of a measurement that did not come to its end; None: it did."""
        if not self.events or self.is_complete:
            return None
        done = len(list(of_kind(self.events, ResultEvent)))
        so_far = f"{done} trial{'' if done == 1 else 's'} so far, the last event at {moment(self.events[-1].time)}"
        if self.under_way:
            return f"under way: {so_far}; the figures are those that there are, and can change"
        end = journal.end_of(self.events)
        ways = {} if end is None else {"interrupted": "interrupted", "error": f"ended by an error ({end.message})"}
        how = ways.get("" if end is None else end.outcome, "killed")
        return f"not complete: it was {how} after {so_far}; the figures are those that there were by then"


def _drawable(charts: Iterable[Chart]) -> list[Chart]:
    return [chart for chart in charts if chart.has_points]


def moment(time: str) -> str:
    """A journal's time for a person, to the second: ``2026-03-01 12:00:00 UTC``; as it stands where
    it is no time."""
    try:
        return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S UTC}"
    except ValueError:
        return time
