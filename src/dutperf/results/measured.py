# SPDX-License-Identifier: Apache-2.0
"""A measurement in its present state, complete or not: its summary, its journal, and a sentence on
its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dutperf import journal
from dutperf.journal import Event, PlanEvent, ResultEvent, of_kind
from dutperf.model import whose_rates
from dutperf.results import connections, tables, trials
from dutperf.results.charts import Chart
from dutperf.results.summary import Summary
from dutperf.results.tables import Record
from dutperf.results.trials import FinishedTrial
from dutperf.setup.conditions import Conditions
from dutperf.spelling import count_of


@dataclass(frozen=True, repr=False)
class Measured:
    """One measurement. ``summary`` and ``events`` are from the same moment."""

    name: str
    """Name of its directory in a suite; else the procedure's."""
    summary: Summary | None
    """None: it has no results yet, or could not be measured; ``note`` says which."""
    events: Sequence[Event] = ()
    note: str | None = None
    under_way: bool = False
    """Whether a process is writing its journal."""
    unreadable: bool = False
    """Whether its journal cannot be read; ``note`` says why."""

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
        return journal.is_complete(self.events)

    def trials(self) -> list[FinishedTrial]:
        """The finished trials, in order."""
        return [] if self.summary is None else trials.trials(self.events, Conditions.recorded(self.plan.conditions))

    def records(self, *, of_trials: bool = False) -> list[Record]:
        """The figures of the results, as records; ``of_trials``: those of every finished trial. All
        records have the same names, which include the unit; none where nothing was measured."""
        if self.summary is None:
            return []
        records = [trial.record() for trial in self.trials()] if of_trials else tables.records(self.summary)
        return tables.uniform([{"measurement": self.name, **record} for record in records])

    def stream_records(self) -> list[Record]:
        """The results by stream, as records; none where no direction has several streams."""
        if self.summary is None:
            return []
        return [{"measurement": self.name, **record} for record in tables.stream_records(self.summary)]

    def result_charts(self) -> list[Chart]:
        """The plots of the results: those of the summary's points, and the delays of each trial from
        the journal."""
        if self.summary is None:
            return []
        points = self.summary.points
        made = type(points[0]).charts(points, self.summary.conditions["ranges"])
        criterion = f" Passed: {points[0].pass_criterion}." if points[0].pass_criterion else ""
        cases = [point.case for point in points]
        captioned = [
            replace(
                chart,
                caption=chart.caption + criterion,
                x_label=whose_rates(chart.x_label, cases),
                y_label=whose_rates(chart.y_label, cases),
            )
            for chart in made
        ]
        return _drawable([*captioned, *trials.delay_charts(self.trials(), type(points[0]).marks)])

    def progress_charts(self) -> list[Chart]:
        """The plots of the run's progress, from the journal."""
        done = self.trials()
        return _drawable([*trials.progress_charts(done), connections.chart(done)])

    def charts(self) -> dict[str, Chart]:
        """All plots by their names in ``dutperf plot``."""
        return {self.figure_name(chart): chart for chart in (*self.result_charts(), *self.progress_charts())}

    def figure_name(self, chart: Chart) -> str:
        return f"{self.name}-{chart.name}" if chart.name else self.name

    def state(self) -> str | None:
        """The state of a measurement that is not complete; None: it is."""
        if not self.events or self.is_complete:
            return None
        done = len(list(of_kind(self.events, ResultEvent)))
        so_far = f"{count_of(done, 'trial')} so far, the last event at {moment(self.events[-1].time)}"
        if self.under_way:
            return f"running: {so_far}; the figures are preliminary"
        end = journal.end_of(self.events)
        ways = {} if end is None else {"interrupted": "interrupted", "error": f"ended by an error ({end.message})"}
        how = ways.get("" if end is None else end.outcome, "killed or could not write")
        return f"not complete: it was {how} after {so_far}; the figures are those up to then"


def _drawable(charts: Iterable[Chart]) -> list[Chart]:
    return [chart for chart in charts if chart.has_points]


def moment(time: str) -> str:
    """A journal's time for a person, to the second: ``2026-03-01 12:00:00 UTC``; other text is
    returned unchanged."""
    try:
        return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S UTC}"
    except ValueError:
        return time
