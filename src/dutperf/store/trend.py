# SPDX-License-Identifier: Apache-2.0
"""A figure over time: where it changed, and whether the newest measurements are worse than the history before them.

Change points are found by jumpavg (of FD.io CSIT): it divides the medians of the runs into groups such that their
description, a mean and a deviation of each group, takes the fewest bits. It sees jumps, also small ones in a long
history; it has no error rate. The gate has one: the medians of the newest runs are compared by their ranks with those
of all runs of the last group before them. Runs count, not their repetitions: those of one run share its circumstances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Literal

import jumpavg

from dutperf.results import comparison
from dutperf.results.comparison import digits
from dutperf.results.gate import Condition
from dutperf.spelling import count_of
from dutperf.statistics import intervals, ranks
from dutperf.store import Entry, Kept, Store

Key = tuple[str, str, str, str]
"""Series, case, load and name of a figure."""


@dataclass(frozen=True)
class Moment:
    """A figure in one measurement."""

    entry: Entry
    figure: Kept
    """Without values where the measurement lacks it."""
    has_ended: bool = False
    """Whether it lacks the figure because its series of loads ended before this one."""

    @property
    def is_usable(self) -> bool:
        """Whether it can be judged: the measurement is complete, and neither the tester limited it nor is the figure
        unknown."""
        return self.entry.complete and not self.figure.unusable and bool(self.figure.values)

    @property
    def median(self) -> float:
        """Infinite where it is missing."""
        return self.figure.missing.number if self.figure.median is None else self.figure.median


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
    moments: tuple[Moment, ...]
    """One for each measurement of the series, in the order of time."""

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Of those that have a value."""
        return tuple(groups_of(_with_values(self.moments)))

    @property
    def left_out(self) -> int:
        """Measurements that have no usable value: not complete, limited by the tester, nothing passed."""
        return sum(not one.has_ended for one in self.moments) - len(_with_values(self.moments))

    def has_ended(self, newest: int) -> bool:
        """Whether a series of loads ended before this one in any of the ``newest`` measurements."""
        return any(one.has_ended for one in self.moments[-newest:])

    def where(self) -> str:
        _, at, load, name = self.key
        return ", ".join(part for part in (self.dut, self.procedure, at, load, name) if part)


def trends(store: Store, entries: Iterable[Entry], figure: str | None = None) -> list[Trend]:
    """The trend of each figure of these measurements, or of those of one name."""
    by_series: dict[str, list[tuple[Entry, dict[Key, Kept]]]] = {}
    for entry in entries:
        kept = {
            (entry.series, one.at, one.load, one.name): one
            for one in store.figures(entry.id)
            if figure is None or one.name == figure
        }
        by_series.setdefault(entry.series, []).append((entry, kept))
    return [one for measured in by_series.values() for one in _of_series(measured)]


def _of_series(measured: Sequence[tuple[Entry, Mapping[Key, Kept]]]) -> Iterator[Trend]:
    first = measured[0][0]
    for key in dict.fromkeys(key for _, kept in measured for key in kept):
        yield Trend(key, first.procedure, first.dut, tuple(_moment(entry, kept, key) for entry, kept in measured))


def _moment(entry: Entry, kept: Mapping[Key, Kept], key: Key) -> Moment:
    """Also of a measurement that lacks the figure: no older one must take its place among the newest."""
    if key in kept:
        return Moment(entry, kept[key])
    _, at, load, name = key
    return Moment(entry, Kept(at, load, name, None, (), None, "not measured", 0.0), _has_ended(entry, kept, key))


def _has_ended(entry: Entry, kept: Iterable[Key], key: Key) -> bool:
    """Whether the measurement's loads end by themselves, and did so before this one. A comparison leaves out such a
    load as well."""
    _, at, load, name = key
    others = any((case, figure) == (at, name) for _, case, _, figure in kept)
    is_of_series = load and not comparison.is_share(load) and comparison.ends_by_itself(entry.conditions)
    return bool(is_of_series) and entry.complete and others


def _with_values(moments: Iterable[Moment]) -> list[Moment]:
    return [one for one in moments if one.is_usable and one.figure.median is not None]


def groups_of(moments: Sequence[Moment]) -> list[Group]:
    """The measurements between the change points of their medians, which each of them has."""
    values = [one.median for one in moments]
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


def check(found: Sequence[Trend], conditions: Iterable[Condition], newest: int, alpha: float) -> list[Judged]:
    """Every condition on the trends of its figure, see :func:`judge`. Loads before which a series has ended are left
    out, unless there are no others."""
    judged = list[Judged]()
    for condition in conditions:
        each = [judge(one, condition, newest, alpha) for one in found if one.key[3] == condition.figure]
        judged += [one for one in each if not one.trend.has_ended(newest)] or each
    return judged


def judge(trend: Trend, condition: Condition, newest: int, alpha: float) -> Judged:
    """Whether the figure's ``newest`` measurements are beyond the condition's limit, against those of the last group
    before them, at the error rate ``alpha``. A newest measurement in which nothing passed is worse than any."""

    def judged(outcome: Literal["holds", "failed", "not judged"], p: float | None, text: str) -> Judged:
        return Judged(trend, condition.text, outcome, p, text)

    now, groups = trend.moments[-newest:], groups_of(_with_values(trend.moments[:-newest]))
    if not groups:
        have = count_of(sum(bool(one.figure.values) for one in trend.moments), "measurement")
        return judged("not judged", None, f"{have}: no history before the newest {newest}")
    if unusable := sum(not one.is_usable for one in now):
        text = f"{unusable} of the newest {newest} measurements: not complete, or no usable value"
        return judged("not judged", None, text)
    history = groups[-1].moments
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
    base = [condition.moved(one.median) + towards for one in history]
    tails = ranks.tails(base, [one.median for one in now])
    p = tails.high if condition.rises else tails.low
    before, after = (
        intervals.median([one.figure.median for one in each], now[0].figure.missing.number) for each in (history, now)
    )
    text = f"{digits(after)} against {digits(before)} of {len(history)} measurements before, p = {p:.2g}"
    return judged("failed" if p <= alpha else "holds", p, text)


def _history_needed(newest: int, alpha: float) -> int:
    """The fewest measurements with which a difference can be significant."""
    return next((count for count in range(1, 100_000) if 1 / comb(count + newest, newest) <= alpha), 100_000)


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
