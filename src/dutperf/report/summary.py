# SPDX-License-Identifier: Apache-2.0
"""``summary.json`` of a throughput run, made from its journal alone.

Repetitions are summarised as RFC 8219 section 12 asks: median, 1st and 99th percentile. Rates are in frames/s per direction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dutperf import journal, stats
from dutperf.conditions import Conditions
from dutperf.journal import Event, JournalError
from dutperf.model import DirectionCounts, LimitedBy, TrialResult, Value, Verdict, to_json
from dutperf.report.deviations import Deviation, deviations

SUMMARY = "summary.json"

SERIOUSNESS = (LimitedBy.TESTER, LimitedBy.DUT, LimitedBy.RANGE, LimitedBy.MEDIA)
"""What a point is limited by where its repetitions differ: the first of these that any has.

``tester`` first: one repetition that only shows what the tester can do puts the median and the percentiles in doubt. Then ``dut``, which is a result.
``range`` before ``media``: of a range that ended too early (or in which nothing passed) a person can do something about it.
"""


class Statistics(Value):
    """Over the repetitions; a missing figure (None) says that nothing passed there."""

    median: float | None
    p1: float | None
    p99: float | None
    dispersion_percent: float | None
    values: tuple[int | None, ...]
    """One for each finished repetition, in order."""


class Loss(Value):
    """What a direction lost in a trial."""

    lost: int
    loss_ratio: float
    dut_input_drops: int
    """Of the lost frames, those that the link could not hand to the DUT."""


class Above(Value):
    """The lowest trial that failed right above a value: what happens when the DUT has too much."""

    rate_fps: int
    forward: Loss | None = None
    reverse: Loss | None = None


class Trials(Value):
    """How many trials had which verdict."""

    valid: int
    invalid: int
    aborted: int


class Point(Value):
    """A frame size (bytes incl. FCS) and its throughput."""

    frame_size: int
    frame_size_ipv4: int
    throughput_fps: Statistics
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    message: str
    """Why the throughput is not higher, or why there is none."""
    above: Above | None
    trials: Trials


class Summary(Value):
    """A run's results, and all that is needed to judge and to repeat it."""

    procedure: str
    dut: dict[str, Any]
    environment: dict[str, Any]
    conditions: dict[str, Any]
    deviations: tuple[Deviation, ...]
    points: tuple[Point, ...]

    def without_number(self) -> tuple[Point, ...]:
        """The points that have no throughput: nothing passed, the DUT forwards nothing, or the run ended before."""
        return tuple(point for point in self.points if point.throughput_fps.median is None)


def write_summary(directory: Path) -> Summary:
    """Make ``directory/summary.json`` from ``directory/journal.jsonl``.

    Raises:
        JournalError: the journal cannot be read, or the summary cannot be written.
    """
    summary = summarise(journal.read(directory))
    path = directory / SUMMARY
    try:
        _replace(path, json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    return summary


def summarise(events: list[Event]) -> Summary:
    """The summary of a journal's events; of an unfinished run, what there is.

    Raises:
        JournalError: there is no plan, or it is of another format.
    """
    plan = _plan(events)
    conditions = Conditions.model_validate(plan["conditions"])
    points = tuple(_point(frame, events, conditions.repetitions) for frame in plan["frames"])
    finished = min(len(point.throughput_fps.values) for point in points)
    with_ipv6 = any(frame["frame_size_ipv4"] != frame["frame_size"] for frame in plan["frames"])
    return Summary(
        procedure=plan["procedure"],
        dut=plan["dut"],
        environment=_environment(plan, events),
        conditions=_conditions(plan, conditions),
        deviations=deviations(conditions, repetitions=finished, with_ipv6=with_ipv6),
        points=points,
    )


def _plan(events: list[Event]) -> Event:
    if not events or events[0]["event"] != "plan":
        raise JournalError("the journal does not begin with a plan")
    if events[0]["format"] != journal.FORMAT:
        raise JournalError(f"the journal has format {events[0]['format']}, this version reads {journal.FORMAT}")
    return events[0]


def _environment(plan: Event, events: list[Event]) -> dict[str, Any]:
    members = next((event for event in _of(events, "environment")), {})
    return {"started": plan["time"], **{key: value for key, value in members.items() if key not in ("event", "time")}}


def _conditions(plan: Event, conditions: Conditions) -> dict[str, Any]:
    ranges = [{key: value for key, value in frame.items() if key != "first_trial"} for frame in plan["frames"]]
    return {**to_json(conditions), "resolution": str(conditions.resolution), "search": plan["search"] | {"attempts": plan["attempts"]}, "ranges": ranges}


def _point(frame: dict[str, Any], events: list[Event], repetitions: int) -> Point:
    size = frame["frame_size"]
    searches = [event for event in _of(events, "search") if event["frame_size"] == size]
    results = [event for event in _of(events, "result") if event["frame_size"] == size]
    decisive = _decisive(searches)
    message = _message(decisive, searches) + _shortfall(events, len(searches), repetitions)
    return Point(
        frame_size=size,
        frame_size_ipv4=frame["frame_size_ipv4"],
        throughput_fps=_statistics(searches),
        limited_by=None if decisive is None else decisive["limited_by"],
        message=message,
        above=_above(searches, results),
        trials=_trials(results),
    )


def _statistics(searches: list[Event]) -> Statistics:
    values = tuple(search["value_fps"] for search in searches)
    if not values or any(search["silent"] for search in searches):  # a DUT that has died has no throughput, whatever it did before
        return Statistics(median=None, p1=None, p99=None, dispersion_percent=None, values=values)
    return Statistics(
        median=stats.median(values),
        p1=stats.percentile(values, 1),
        p99=stats.percentile(values, 99),
        dispersion_percent=stats.dispersion_percent(values),
        values=values,
    )


def _decisive(searches: list[Event]) -> Event | None:
    """The repetition that says what the point is limited by: one that found a dead DUT, else the lowest of the most serious kind."""
    return min(searches, key=lambda search: (not search["silent"], SERIOUSNESS.index(search["limited_by"]), search["above_fps"] or 0), default=None)


def _message(decisive: Event | None, searches: list[Event]) -> str:
    if decisive is None:
        return "not measured"
    alike = sum(search["limited_by"] == decisive["limited_by"] for search in searches)
    share = "" if alike == len(searches) or decisive["silent"] else f"in {alike} of {len(searches)} repetitions "
    return share + str(decisive["message"])


def _shortfall(events: list[Event], finished: int, repetitions: int) -> str:
    """What is to be added where not all repetitions were finished."""
    if finished == repetitions:
        return ""
    end = next(_of(events, "end"), None)
    reason = (
        {"interrupted": "it was interrupted", "error": f"of an error: {end['message']}", "ended": "the DUT forwards nothing"}.get(
            end["outcome"], "it was stopped"
        )
        if end
        else "it was killed"
    )
    return f" ({finished} of {repetitions} repetitions; the run ended early because {reason})"


def _above(searches: list[Event], results: list[Event]) -> Above | None:
    """The lowest of the failed trials that stand right above a repetition's value; of several at that rate, the one that lost most."""
    wanted = {(search["repetition"], search["above_fps"]) for search in searches}
    failed = [
        (event["rate_fps"], result)
        for event in results
        if (event["repetition"], event["rate_fps"]) in wanted and (result := journal.recorded_result(event["result"])).verdict is Verdict.VALID
    ]
    if not failed:
        return None
    rate_fps, result = min(failed, key=lambda trial: (trial[0], -trial[1].worst_loss_ratio))
    return Above(rate_fps=rate_fps, **_losses(result))


def _losses(result: TrialResult) -> dict[str, Loss]:
    return {direction.value: _loss(counts) for direction, counts in result.directions().items()}


def _loss(counts: DirectionCounts) -> Loss:
    return Loss(lost=counts.lost, loss_ratio=counts.loss_ratio, dut_input_drops=counts.dut_input_drops)


def _trials(results: list[Event]) -> Trials:
    verdicts = Counter(event["result"]["verdict"] for event in results)
    return Trials(valid=verdicts["valid"], invalid=verdicts["invalid"], aborted=verdicts["aborted"])


def _of(events: Iterable[Event], kind: str) -> Iterator[Event]:
    return (event for event in events if event["event"] == kind)


def _replace(path: Path, text: str) -> None:
    """Write ``path`` as a whole: a reader never sees half of it."""
    fresh = path.with_suffix(".tmp")
    fresh.write_text(text)
    fresh.replace(path)
