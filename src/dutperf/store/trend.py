# SPDX-License-Identifier: Apache-2.0
"""A figure over time: where it changed, and whether the newest measurements are worse than the history before them.

Change points are found by jumpavg (of FD.io CSIT): it divides the medians of the runs into groups such that their
description, a mean and a deviation of each group, takes the fewest bits. It sees jumps, also small ones in a long
history; it has no error rate. The gate has one: the medians of the newest runs are compared by their ranks with those
of all runs of the last group before them. Runs count, not their repetitions: those of one run share its circumstances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, inf
from typing import Literal

import jumpavg

from dutperf.results.gate import Condition
from dutperf.statistics import ranks
from dutperf.store import Entry, Kept, Store

Key = tuple[str, str, str, str]
"""Series, case, load and name of a figure."""


@dataclass(frozen=True)
class Moment:
    """A figure in one measurement."""

    entry: Entry
    figure: Kept


@dataclass(frozen=True)
class Group:
    """Measurements in a row between two change points."""

    moments: tuple[Moment, ...]
    mean: float
    deviation: float


@dataclass(frozen=True)
class Trend:
    """A figure of a series over time."""

    key: Key
    procedure: str
    dut: str
    groups: tuple[Group, ...]
    left_out: int
    """Measurements that have no usable value: not complete, limited by the tester, nothing passed."""

    @property
    def moments(self) -> tuple[Moment, ...]:
        """All, in the order of time."""
        return tuple(moment for group in self.groups for moment in group.moments)

    def where(self) -> str:
        _, at, load, name = self.key
        return ", ".join(part for part in (self.dut, self.procedure, at, load, name) if part)


def trends(store: Store, entries: Iterable[Entry], figure: str | None = None) -> list[Trend]:
    """The trend of each figure of these measurements, or of those of one name."""
    by_key: dict[Key, list[Moment]] = {}
    for entry in entries:
        for kept in store.figures(entry.id):
            if figure is None or kept.name == figure:
                by_key.setdefault((entry.series, kept.at, kept.load, kept.name), []).append(Moment(entry, kept))
    return [_trend(key, moments) for key, moments in by_key.items()]


def _trend(key: Key, moments: Sequence[Moment]) -> Trend:
    usable = [one for one in moments if one.entry.complete and one.figure.median is not None]
    usable = [one for one in usable if not one.figure.unusable]
    first = moments[0].entry
    return Trend(key, first.procedure, first.dut, tuple(groups_of(usable)), len(moments) - len(usable))


def groups_of(moments: Sequence[Moment]) -> list[Group]:
    """The measurements between the change points of their medians."""
    values = [one.figure.median or 0.0 for one in moments]
    if not values:
        return []
    lowest = min(values)
    if lowest == max(values):
        return [Group(tuple(moments), lowest, 0.0)]
    raised_by = max(0.0, -lowest)  # jumpavg's values are not negative
    found, at = [], 0
    for group in jumpavg.classify([value + raised_by for value in values]):
        size = len(group.run_list)
        found.append(Group(tuple(moments[at : at + size]), group.stats.avg - raised_by, group.stats.stdev))
        at += size
    return found


@dataclass(frozen=True)
class Judged:
    """A condition on a trend."""

    trend: Trend
    condition: str
    outcome: Literal["holds", "failed", "not judged"]
    p: float | None
    text: str

    def sentence(self) -> str:
        return f"{self.condition}: {self.outcome}: {self.trend.where()}: {self.text}"


def judge(trend: Trend, condition: Condition, newest: int, alpha: float) -> Judged:
    """Whether the figure's ``newest`` measurements are beyond the condition's limit, against those of the last group
    before them, at the error rate ``alpha``."""

    def judged(outcome: Literal["holds", "failed", "not judged"], p: float | None, text: str) -> Judged:
        return Judged(trend, condition.text, outcome, p, text)

    moments = trend.moments
    if len(moments) <= newest:
        return judged("not judged", None, f"{len(moments)} measurements have no history before the newest {newest}")
    history, now = groups_of(moments[:-newest])[-1].moments, moments[-newest:]
    needed = _history_needed(newest, alpha)
    if len(history) < needed:
        return judged(
            "not judged",
            None,
            f"the history has {len(history)} measurements since its last change; {newest} new ones need {needed} at an"
            f" error rate of {alpha:g}: measure several times, or give a larger rate",
        )
    margin = max(one.figure.resolution for one in (*history, *now))
    towards = -margin if not condition.rises else margin
    base = [condition.moved(one.figure.median or 0.0) + towards for one in history]
    tails = ranks.tails(base, [one.figure.median for one in now])
    p = tails.high if condition.rises else tails.low
    before, after = _median(history), _median(now)
    text = f"{after:,.6g} against {before:,.6g} of {len(history)} measurements before, p = {p:.2g}"
    return judged("failed" if p <= alpha else "holds", p, text)


def _history_needed(newest: int, alpha: float) -> int:
    """The fewest measurements with which a difference can be significant."""
    return next((count for count in range(1, 100_000) if 1 / comb(count + newest, newest) <= alpha), 100_000)


def _median(moments: Sequence[Moment]) -> float:
    ordered = sorted(one.figure.median if one.figure.median is not None else -inf for one in moments)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def as_json(trend: Trend, known_by: Literal["directory", "id"] = "directory") -> dict[str, object]:
    """JSON types. ``known_by``: the member of its entry that names a measurement."""
    series, at, load, name = trend.key
    return {
        "series": series,
        "dut": trend.dut,
        "procedure": trend.procedure,
        "case": at,
        "load": load,
        "figure": name,
        "left_out": trend.left_out,
        "groups": [
            {
                "mean": group.mean,
                "deviation": group.deviation,
                "measurements": [
                    {
                        "started": one.entry.started,
                        "dut_version": one.entry.dut_version,
                        known_by: getattr(one.entry, known_by),
                        "median": one.figure.median,
                    }
                    for one in group.moments
                ],
            }
            for group in trend.groups
        ],
    }
