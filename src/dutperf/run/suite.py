# SPDX-License-Identifier: Apache-2.0
"""Several measurements on one set-up: procedures over mixes of native traffic and numbers of
networks, each a run with a journal of its own.

RFC 8219 has latency and its variation measured at the throughput that was found before, with the
same traffic; so has RFC 9004 the bursts. Of each mix the throughput is measured first, then what
needs it; where something needs it that nobody asked for, it is measured all the same.

``DIR/suite.json`` says what is to be measured and is written first; ``DIR/NAME/`` holds each run;
``DIR/summary.json`` the summaries of those that there are. A suite that was cut off goes on with
the run that it was in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import SerializeAsAny, ValidationError

from dutperf import __version__, journal, procedures
from dutperf.journal import JOURNAL, JournalError, ResumedJournal
from dutperf.model import FRAME_SIZE, Case, Value
from dutperf.procedures import throughput
from dutperf.procedures.definition import Definition
from dutperf.results.deviations import OF_A_SEARCH
from dutperf.results.summary import SUMMARY, write_summary
from dutperf.run import campaign
from dutperf.run.campaign import Observer, Plan, PlanError, Summary
from dutperf.setup.conditions import Conditions
from dutperf.statistics.stopping import Rule
from dutperf.tester import Tester

SUITE = "suite.json"
FORMAT = 1
"""Version of its form."""
LONGEST_SEARCH_TRIAL_S = 60.0
"""Sending time of a throughput trial that nobody asked for: as long as the trials that need it, but
no longer than RFC 2544 section 24 asks for."""
SOME_FPS = 1_000_000
"""Stands for a throughput that is not known yet, or more than there can be, while the rest of the
conditions is checked."""


@dataclass(frozen=True)
class Measurement:
    """One procedure under one set of conditions."""

    name: str
    """Of its directory."""
    definition: Definition
    conditions: Conditions
    throughput_of: str | None = None
    """Name of the measurement at whose throughput it measures."""


class Part(Value):
    """One measurement of a suite and what came of it."""

    name: str
    procedure: str
    note: str | None = None
    """Which frame sizes could not be measured, and why."""
    summary: SerializeAsAny[Summary] | None = None
    """None where it could not be measured at all."""


class SuiteSummary(Value):
    """What there is of a suite, in the order of its measurements."""

    measurements: tuple[Part, ...]


class Bench(Protocol):
    """What a suite is measured on."""

    @property
    def tester(self) -> Tester: ...

    def plan(self, conditions: Conditions) -> Plan:
        """To measure under ``conditions``."""
        ...


Watch = Callable[[Measurement, int], AbstractContextManager[Observer]]
"""Shows the course of a measurement, the how many-th (from 1) it is given."""


def arrange(wanted: Sequence[tuple[Definition, Conditions]]) -> tuple[Measurement, ...]:
    """Mix by mix, the throughput first, then the others in the order given. The conditions have
    their frame sizes.

    Raises:
        PlanError: a frame size whose throughput is needed, but is not to be measured.
    """
    labels = dict.fromkeys(conditions.mix for _, conditions in wanted)
    return tuple(one for label in labels for one in _of_mix(label, [each for each in wanted if each[1].mix == label]))


def measure(measurements: Sequence[Measurement], bench: Bench, out: Path, watch: Watch) -> Summary | SuiteSummary:
    """One measurement into ``out`` itself, several as a suite into its folders. Raises as
    :func:`begin` does."""
    if len(measurements) > 1:
        return begin(measurements, bench, out, watch)
    [only] = measurements
    with watch(only, 1) as observer:
        return campaign.measure(only.definition, bench.tester, bench.plan(only.conditions), out, observer)


def begin(measurements: Sequence[Measurement], bench: Bench, out: Path, watch: Watch) -> SuiteSummary:
    """Measure everything into ``out``.

    Raises:
        PlanError: conditions that cannot be measured; nothing has been written then.
        JournalError: ``out`` holds other results, or cannot be written.
        TesterError: the tester cannot work at all.
    """
    for one in measurements:
        one.definition.make(bench.plan(_with_some_throughput(one, bench.plan(one.conditions))))
    journal.claim(
        out, (SUITE, JOURNAL, SUMMARY), "the results of another run", f", or go on with: dutperf resume {out}"
    )
    journal.write_whole(
        out / SUITE, json.dumps(_document(measurements, bench.plan(measurements[0].conditions)), indent=2) + "\n"
    )
    with held(out):
        return go_on(measurements, bench, out, watch)


def held(directory: Path) -> AbstractContextManager[None]:
    """No second process measures the suite in ``directory`` meanwhile. Raises JournalError where
    one does."""
    return journal.held(directory / SUITE)


def go_on(measurements: Sequence[Measurement], bench: Bench, out: Path, watch: Watch) -> SuiteSummary:
    """Measure what is left of the suite in ``out``, which is :func:`held`. Raises as :func:`begin`
    does."""
    parts: dict[str, Part] = {}
    first_trial = 0
    for number, one in enumerate(measurements, start=1):
        parts[one.name] = _part(one, number, parts, bench, _Course(out, watch, first_trial))
        if parts[one.name].summary is not None:
            first_trial = journal.next_trial(journal.read(out / one.name))
        summary = _write(out, parts)
    return summary


def read(directory: Path) -> tuple[dict[str, Any], tuple[Measurement, ...]]:
    """The suite in ``directory``: its document, which has ``source`` and ``config`` as a journal's
    plan, and its measurements.

    Raises:
        JournalError: it cannot be read, or this version does not know its procedures or conditions.
    """
    path = directory / SUITE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise JournalError(f"{path} has format {document['format']}, this version reads {FORMAT}")
        return document, tuple(_measurement(one) for one in document["measurements"])
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path}: this version cannot read it ({str(error).splitlines()[0]})") from None


def is_complete(measurements: Sequence[Measurement], directory: Path) -> bool:
    """Whether every measurement came to its end, or was found to be impossible."""
    parts = _recorded_parts(directory)
    return all(
        one.name in parts and (parts[one.name]["summary"] is None or _ended(directory / one.name))
        for one in measurements
    )


def summarise(measurements: Sequence[Measurement], directory: Path) -> SuiteSummary:
    """The summary of a complete suite, made again from the journals."""
    noted = notes(directory)
    parts = {
        one.name: Part(
            name=one.name,
            procedure=one.definition.name,
            note=noted[one.name],
            summary=write_summary(directory / one.name, one.definition)
            if (directory / one.name / JOURNAL).exists()
            else None,
        )
        for one in measurements
    }
    return _write(directory, parts)


def notes(directory: Path) -> dict[str, str | None]:
    """Which frame sizes could not be measured, and why, by the names of the measurements that the
    suite has come to."""
    return {name: part["note"] for name, part in _recorded_parts(directory).items()}


def throughput_in(directory: Path, conditions: Conditions) -> Path:
    """Where a suite keeps the throughput of the same mix; ``directory`` itself where it holds no
    suite."""
    return directory / (throughput.PROCEDURE.name + conditions.mix) if (directory / SUITE).exists() else directory


# --- arranging ------------------------------------------------------------------------------------


def _of_mix(label: str, wanted: Sequence[tuple[Definition, Conditions]]) -> list[Measurement]:
    first = throughput.PROCEDURE
    needing = [conditions for definition, conditions in wanted if definition.needs_throughput(conditions)]
    searching = next((conditions for definition, conditions in wanted if definition is first), None)
    if needing and searching is None:
        searching = _searching(needing)
    others = [
        _measurement_of(definition, conditions, label) for definition, conditions in wanted if definition is not first
    ]
    if searching is None:
        return others
    lacking = sorted({size for conditions in needing for size in conditions.frame_sizes} - set(searching.frame_sizes))
    if lacking:
        raise PlanError(
            f"with {', '.join(map(str, lacking))} bytes something is to be measured at a throughput that is not",
            option="frame_sizes",
        )
    return [Measurement(first.name + label, first, searching), *others]


def _searching(needing: Sequence[Conditions]) -> throughput.ThroughputConditions:
    """To find the throughput for measurements that need it."""
    sizes = tuple(dict.fromkeys(size for conditions in needing for size in conditions.frame_sizes))
    shortest_s = min(conditions.duration_s for conditions in needing)
    own = {
        "frame_sizes": sizes,
        "duration_s": min(shortest_s, LONGEST_SEARCH_TRIAL_S),
        "repetitions": _search_repetitions(needing[0].repetitions),
    }
    return throughput.ThroughputConditions.recorded(needing[0].stated() | own)


def _search_repetitions(rule: Rule) -> Rule:
    """As many as what needs the throughput has, but no more than a throughput has by itself."""
    usual = throughput.ThroughputConditions().repetitions
    return min(rule, usual) if isinstance(rule, int) and isinstance(usual, int) else rule


def _measurement_of(definition: Definition, conditions: Conditions, label: str) -> Measurement:
    throughput_of = throughput.PROCEDURE.name + label if definition.needs_throughput(conditions) else None
    return Measurement(definition.name + label, definition, conditions, throughput_of)


def _with_some_throughput(one: Measurement, plan: Plan) -> Conditions:
    """One that is possible: not above the media's maximum, nor above the rate of a burst's frames."""
    if one.throughput_of is None:
        return one.conditions

    def some_fps(case: Case) -> int:
        media_fps, within = plan.maximum_fps(case), one.conditions.burst_rate
        known = (
            [media_fps]
            if within is None or (within.unit == "percent" and media_fps is None)
            else [media_fps, within.fps(media_fps)]
        )
        return min([SOME_FPS, *(fps for fps in known if fps is not None)])

    return one.conditions.model_copy(
        update={"throughput_from": {case[FRAME_SIZE]: some_fps(case) for case in plan.cases}}
    )


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Course:
    out: Path
    watch: Watch
    first_trial: int
    """No two trials of a suite have one number, so that late frames of one part are not taken for
    those of the next."""


def _part(one: Measurement, number: int, parts: Mapping[str, Part], bench: Bench, course: _Course) -> Part:
    made = Part(name=one.name, procedure=one.definition.name)
    ready, note = _at_throughput(one, parts)
    if ready is None:
        return made.model_copy(update={"note": note})
    with course.watch(ready, number) as observer:
        summary = _advance(ready, bench, course.out / one.name, observer, course.first_trial)
    return made.model_copy(update={"note": note, "summary": summary})


def _at_throughput(one: Measurement, parts: Mapping[str, Part]) -> tuple[Measurement | None, str | None]:
    """The measurement at the rates that were found, without the sizes that have none; None where no
    size has one. And what is to be said of it."""
    if one.throughput_of is None:
        return one, None
    searched = parts[one.throughput_of].summary
    assert searched is not None, "a search needs nothing before it"
    medians = {
        point.case[FRAME_SIZE]: point.throughput_fps.median
        for point in searched.points
        if isinstance(point, throughput.ThroughputPoint)
    }
    found = {
        size: int(median)
        for size in one.conditions.frame_sizes
        if (median := medians.get(size)) is not None and median >= 1
    }
    lacking = [str(size) for size in one.conditions.frame_sizes if size not in found]
    note = f"not measured with {', '.join(lacking)} bytes: no throughput was found for them" if lacking else None
    if not found:
        return None, note
    otherwise = tuple(one.text for one in searched.deviations if one.clause in OF_A_SEARCH)
    known = {"throughput_from": found, "throughput_deviations": otherwise, "frame_sizes": tuple(found)}
    return replace(one, conditions=one.conditions.model_copy(update=known)), note


def _advance(one: Measurement, bench: Bench, directory: Path, observer: Observer, first_trial: int) -> Summary:
    """Begin a run, or go on with it, or read what it found."""
    plan = bench.plan(one.conditions)
    if not _has_begun(directory):
        return campaign.measure(one.definition, bench.tester, plan, directory, observer, first_trial)
    with ResumedJournal.open(directory) as recorded:
        if recorded.is_complete:
            return write_summary(directory, one.definition)
        return campaign.resume(bench.tester, plan, recorded, observer)


def _has_begun(directory: Path) -> bool:
    """Whether there is a journal with a plan. One that was killed while its plan was being written
    is removed: nothing was measured."""
    path = directory / JOURNAL
    if not path.exists():
        return False
    if journal.read(directory):
        return True
    path.unlink()
    return False


# --- files ----------------------------------------------------------------------------------------


def _document(measurements: Sequence[Measurement], plan: Plan) -> dict[str, Any]:
    listed = [
        {
            "name": one.name,
            "procedure": one.definition.name,
            "conditions": one.conditions.stated(),
            "throughput_of": one.throughput_of,
        }
        for one in measurements
    ]
    members = {
        "invocation": list(plan.invocation),
        "source": dict(plan.source),
        "config": dict(plan.config),
        "measurements": listed,
    }
    return {"format": FORMAT, "dutperf": __version__, **members}


def _measurement(document: Mapping[str, Any]) -> Measurement:
    try:
        definition = procedures.find(document["procedure"])
        conditions = definition.conditions.recorded(document["conditions"])
    except ValidationError as error:
        raise ValueError(str(error)) from None
    return Measurement(document["name"], definition, conditions, document["throughput_of"])


def _write(out: Path, parts: Mapping[str, Part]) -> SuiteSummary:
    summary = SuiteSummary(measurements=tuple(parts.values()))
    journal.write_whole(out / SUMMARY, json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    return summary


def _recorded_parts(directory: Path) -> dict[str, dict[str, Any]]:
    """Those that the suite's summary has, by name."""
    try:
        return {
            one["name"]: one for one in json.loads((directory / SUMMARY).read_text(encoding="utf-8"))["measurements"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _ended(directory: Path) -> bool:
    try:
        return journal.is_complete(journal.read(directory))
    except JournalError:
        return False
