# SPDX-License-Identifier: Apache-2.0
"""The trials of a run from its journal: a record of each, and charts of the search path, of the
sender's lateness and of the delays.

These are the plain events; the summary draws the conclusions about the DUT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from typing import Any

from dutperf import journal
from dutperf.journal import Event, ResultEvent, of_kind
from dutperf.model import (
    Case,
    Delays,
    Direction,
    DirectionCounts,
    Load,
    TrialResult,
    axes_of_json,
    shown_directions,
    whose_rates,
)
from dutperf.model.wording import FRAMES, Wording
from dutperf.results.charts import Chart, Curve, Mark, scale_of
from dutperf.results.run_trials import is_conclusive
from dutperf.setup.conditions import Conditions

MOST_LOADS = 12
"""Of a case whose delays are shown by load; a search has more."""
BINS = 60
"""Of a histogram."""
PASSED, FAILED, INVALID = "passed", "failed", "invalid"
OUTCOMES = (PASSED, FAILED, INVALID)
QUANTILES: tuple[tuple[float, Callable[[Delays], float]], ...] = (
    (0.0, lambda delays: delays.min),
    (0.5, lambda delays: delays.p50),
    (0.99, lambda delays: delays.p99),
    (0.999, lambda delays: delays.p999),
    (1.0, lambda delays: delays.max),
)
"""Quantiles of the delays that every result has, with or without their distribution: share of the
frames, and the delay in µs that they do not exceed."""


@dataclass(frozen=True)
class FinishedTrial:
    number: int
    """In the order of the run, from 1."""
    case: Case
    repetition: int
    attempt: int
    load: Load
    result: TrialResult
    outcome: str
    """One of OUTCOMES: it lost no more than is tolerated, or more; or it is not valid and proves
    nothing about the DUT."""

    def record(self) -> dict[str, Any]:
        """Its figures as a flat record for an export; lateness and delays in µs, with the number of
        delays and how much of each the tester itself may have added, at most (``by_tester``)."""
        where = {
            "number": self.number,
            **self.case.key(),
            "repetition": self.repetition,
            "attempt": self.attempt,
            self.load.unit.column: self.load.value,
        }
        causes = "; ".join(cause.text for cause in self.result.causes)
        counted = {
            f"{direction}.{name}": value
            for direction, counts in self.result.directions().items()
            for name, value in _figures(counts).items()
        }
        return {**where, "verdict": self.result.verdict.value, "causes": causes, **counted}


def trials(events: Sequence[Event], conditions: Conditions) -> list[FinishedTrial]:
    """All finished trials of a journal, in order."""
    axes = axes_of_json(journal.plan_of(events).axes)
    results = enumerate(of_kind(events, ResultEvent), start=1)
    return [_finished_trial(number, event, Case.of_json(event.case, axes), conditions) for number, event in results]


def delay_charts(done: Sequence[FinishedTrial], marks: Sequence[Mark]) -> list[Chart]:
    """The delays of each case, where frames were stamped."""
    return [
        chart
        for case, each in by_case(done).items()
        for chart in (_distribution(case, each, marks), _histogram(case, each))
    ]


def progress_charts(done: Sequence[FinishedTrial]) -> list[Chart]:
    """The run's progress: the search path of each case with more than one offered load, and the
    sender's lateness."""
    searched = {case: each for case, each in by_case(done).items() if len({one.load for one in each}) > 1}
    return [*(_path(case, each) for case, each in searched.items()), _lateness(done)]


def by_case(done: Sequence[FinishedTrial]) -> dict[Case, list[FinishedTrial]]:
    cases: dict[Case, list[FinishedTrial]] = {}
    for one in done:
        cases.setdefault(one.case, []).append(one)
    return cases


def _finished_trial(number: int, event: ResultEvent, case: Case, conditions: Conditions) -> FinishedTrial:
    result = event.result
    passed = result.worst_loss_ratio <= min(conditions.loss_goals())
    outcome = INVALID if not is_conclusive(result) else PASSED if passed else FAILED
    return FinishedTrial(number, case, event.repetition, event.attempt, event.load, result, outcome)


def _figures(counts: DirectionCounts) -> dict[str, Any]:
    plain = {
        name: getattr(counts, name)
        for name in ("intended", "sent", "received", "lost", "loss_ratio", "duplicates", "out_of_order", "send_time_s")
    }
    lateness = {f"lateness_{name}_us": getattr(counts.lateness_us, name) for name in ("p50", "p99", "p999", "max")}
    delay = counts.delay_us
    delays: dict[str, Any] = {}
    if delay is not None:
        delays = {f"delay_{name}_us": getattr(delay, name) for name in ("min", "p50", "p99", "p999", "max")}
        delays["delay_frames"] = delay.frames
        own = delay.by_tester
        for name in ("p50", "p99", "p999", "max"):
            delays[f"delay_{name}_by_tester_us"] = None if own is None else getattr(own, name)
    return {
        **plain,
        "tester_drops": sum(counts.tester_drops.values()),
        "dut_input_drops": counts.dut_input_drops,
        **lateness,
        **delays,
    }


def _path(case: Case, done: Sequence[FinishedTrial]) -> Chart:
    numbered = list(enumerate(done, start=1))
    line = Curve(
        "in this order",
        tuple(float(x) for x, _ in numbered),
        tuple(float(one.load.value) for _, one in numbered),
        kind="path",
    )
    each = [
        _dots(outcome, [(float(x), float(one.load.value)) for x, one in numbered if one.outcome == outcome])
        for outcome in OUTCOMES
    ]
    return Chart(
        name=f"path-{case.slug}",
        title=f"Offered loads, {case}",
        x_label="trial",
        y_label=whose_rates(f"offered load, {done[0].load.unit.label}", [case]),
        curves=(line, *each),
        caption="Passed: a trial lost no more than tolerated. Invalid: it proves nothing about the DUT.",
        x_scale="counts",
        y_scale=scale_of(line.y),
        y_range=(0 if scale_of(line.y) == "linear" else None, None),
    )


def _lateness(done: Sequence[FinishedTrial]) -> Chart:
    quantiles: dict[str, Callable[[DirectionCounts], float]] = {
        "p99.9": lambda one: one.lateness_us.p999,
        "largest": lambda one: one.lateness_us.max,
    }
    counted = _counted(done)
    curves = [
        _over_trials(f"{counted.path(direction)}, {name}", done, direction, of)
        for direction in shown_directions(one for each in done for one in each.result.directions())
        for name, of in quantiles.items()
    ]
    return Chart(
        name="lateness",
        title="Lateness of the sender against its schedule",
        x_label="trial",
        y_label="lateness, µs",
        curves=tuple(curves),
        caption=(
            f"For each trial the 99.9th percentile of its {counted.many} and the latest {counted.one}, whatever the"
            " verdict."
        ),
        x_scale="counts",
        y_scale=scale_of(y for curve in curves for y in curve.y),
    )


def _counted(done: Sequence[FinishedTrial]) -> Wording:
    return next((one.result.counted for one in done if one.result.directions()), FRAMES)


def _over_trials(
    label: str, done: Sequence[FinishedTrial], direction: Direction, of: Callable[[DirectionCounts], float]
) -> Curve:
    points = [
        (float(one.number), of(counts))
        for one in done
        if (counts := one.result.directions().get(direction)) is not None
    ]
    return _dots(label, points)


def _dots(label: str, points: Sequence[tuple[float, float]]) -> Curve:
    return Curve(label, tuple(x for x, _ in points), tuple(y for _, y in points), kind="dots")


def _stamped(done: Sequence[FinishedTrial]) -> list[tuple[str, Delays]]:
    """The delays of each valid trial, with the name of their curve: the direction; where a case has several loads,
    whose delays differ more than the directions', the load."""
    counted = [
        (one.load, direction, counts.delay_us)
        for one in done
        if one.outcome != INVALID
        for direction, counts in one.result.directions().items()
    ]
    stamped = [(load, direction, delays) for load, direction, delays in counted if delays is not None]
    loads = sorted({load for load, _, _ in stamped})
    if not 1 < len(loads) <= MOST_LOADS:
        shown = list(shown_directions(direction for _, direction, _ in stamped))
        ordered = sorted(stamped, key=lambda one: shown.index(one[1]))
        return [(_counted(done).path(direction), delays) for _, direction, delays in ordered]
    return [(str(load), delays) for load, _, delays in sorted(stamped, key=lambda one: one[0])]


def _distribution(case: Case, done: Sequence[FinishedTrial], marks: Sequence[Mark]) -> Chart:
    """Share of the frames with at most a given delay."""
    stamped = _stamped(done)
    curves = [
        _bundled(name, [(share, delay_us) for delay_us, share in _cumulative(delays)]) for name, delays in stamped
    ]
    between = (
        ""
        if all(delays.buckets for _, delays in stamped)
        else " The journal keeps only some quantiles; between them the curve is unknown."
    )
    return _over_delays(
        curves,
        name=f"delays-{case.slug}",
        title=f"Delays, {case}",
        y_label=f"share of the {_counted(done).many}",
        caption=f"Share of the {_counted(done).many} with at most this delay, a line for each valid trial.{between}",
        y_scale="nines",
        marks=tuple(marks),
    )


def _over_delays(curves: Sequence[Curve], **members: Any) -> Chart:
    return Chart(
        curves=tuple(curves),
        x_label="one-way delay, ms",
        x_scale=scale_of(x for curve in curves for x in curve.x),
        **members,
    )


def _bundled(name: str, points: Sequence[tuple[float, float]]) -> Curve:
    return Curve(
        name,
        tuple(delay_us / 1000 for _, delay_us in points),
        tuple(share for share, _ in points),
        kind="bundle",
    )


def _cumulative(delays: Delays) -> list[tuple[float, float]]:
    """Delays in µs, and the share of the frames with at most that delay; in order of both."""
    quantiles = [(of(delays), share) for share, of in QUANTILES]
    counts = [count for _, count in delays.buckets or ()]
    ends = [(end, seen / sum(counts)) for (end, _), seen in zip(delays.buckets or (), accumulate(counts), strict=True)]
    return sorted(quantiles + ends)


def _histogram(case: Case, done: Sequence[FinishedTrial]) -> Chart:
    """Distribution of the delays of all valid trials, in bins of equal width on a logarithmic
    axis."""
    stamped = [(name, delays) for name, delays in _stamped(done) if delays.buckets and delays.min > 0]
    curves = [
        curve
        for one in dict.fromkeys(name for name, _ in stamped)
        if (curve := _binned(one, [delays for name, delays in stamped if name == one])).x
    ]
    return _over_delays(
        curves,
        name=f"histogram-{case.slug}",
        title=f"Histogram of the delays, {case}",
        y_label=f"{_counted(done).many}, %",
        caption=f"All valid trials of a direction or load together, in {BINS} bins.",
        y_range=(0, None),
    )


def _binned(name: str, trials_: Sequence[Delays]) -> Curve:
    """Percentage of the frames in each bin. The recorded distribution is at least as fine as the
    bins; within its steps it counts as uniform."""
    if not trials_:
        return Curve(name, (), (), kind="steps")
    import numpy as np  # imported late: most commands draw nothing, and start fast

    low, high = min(one.min for one in trials_), max(one.max for one in trials_)
    edges = np.geomspace(low, max(high, low * 1.001), BINS + 1)
    weights = [sum(count for _, count in one.buckets or ()) for one in trials_]
    shares = [np.interp(np.log(edges), *_points(one), left=0.0, right=1.0) for one in trials_]
    percent = np.diff(np.average(shares, axis=0, weights=weights), prepend=0.0) * 100
    return Curve(name, tuple(float(edge) / 1000 for edge in edges), tuple(map(float, percent)), kind="steps")


def _points(delays: Delays) -> tuple[list[float], list[float]]:
    cumulative = _cumulative(delays)
    return [log(delay) for delay, _ in cumulative], [share for _, share in cumulative]
