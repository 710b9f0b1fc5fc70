# SPDX-License-Identifier: Apache-2.0
"""Several measurements on one setup: procedures over mixes of native traffic and numbers of
networks, each a run with a journal of its own.

RFC 8219 measures latency and its variation at the throughput of the same traffic, and so does RFC
9004 with bursts. So for each mix the throughput is measured first, then what needs it, even if the
user did not ask for the throughput itself.

``DIR/suite.json`` lists the measurements and is written first; ``DIR/NAME/`` holds each run;
``DIR/summary.json`` the summaries so far. A suite that was interrupted is resumed with the run that
was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import SerializeAsAny, ValidationError, computed_field

from dutperf import journal, procedures
from dutperf.journal import JOURNAL, JournalError, ResumedJournal
from dutperf.model import FRAME_SIZE, Case, Value
from dutperf.procedures import rates, throughput
from dutperf.procedures.definition import Definition
from dutperf.results.deviations import OF_A_SEARCH
from dutperf.results.overload import Degradation, degradations
from dutperf.results.summary import SUMMARY, write_summary
from dutperf.run import campaign, tester_needs
from dutperf.run.campaign import Observer, Plan, PlanError, Summary
from dutperf.run.earlier_runs import limited_by_tester, other_traffic
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ParameterError
from dutperf.statistics.stopping import Rule
from dutperf.tester import Tester
from dutperf.version import __version__

SUITE = "suite.json"
PLAN = "plan.yaml"
"""The plan, in the directory of its results, if the run may be started again (``--or-resume``)."""
FORMAT = 1
"""Version of the suite's file format."""
_OTHERS, _OR_ELSE = "the results of another run", ", or resume it: dutperf resume"
LONGEST_SEARCH_TRIAL_S = 60.0
"""Longest sending time of a throughput trial that the user did not ask for: else it is that of the
trials that need it. RFC 2544 section 24 asks for no more."""
SOME_FPS = 1_000_000
"""Placeholder for a throughput that is not measured yet, to check the other conditions."""


@dataclass(frozen=True)
class Measurement:
    """One procedure under one set of conditions."""

    name: str
    """Name of its directory."""
    definition: Definition
    conditions: Conditions
    throughput_of: str | None = None
    """Name of the measurement that finds its throughput."""


class Part(Value):
    """One measurement of a suite and its result."""

    name: str
    procedure: str
    note: str | None = None
    """Frame sizes that could not be measured, and why."""
    summary: SerializeAsAny[Summary] | None = None
    """None where it could not be measured at all."""


class SuiteSummary(Value):
    """The results of a suite so far, in the order of its measurements."""

    measurements: tuple[Part, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overload(self) -> tuple[Degradation, ...]:
        """Of the procedures that were measured with one flow and with several (RFC 8219 10.2.1)."""
        return degradations([part.summary for part in self.measurements if part.summary is not None])


class Bench(Protocol):
    """The bench that a suite runs on."""

    @property
    def tester(self) -> Tester: ...

    def plan(self, conditions: Conditions) -> Plan:
        """The plan of a measurement under ``conditions``."""
        ...

    def modified(self, conditions: Conditions) -> AbstractContextManager[Bench]:
        """Within, the DUT has what the modifiers ask for."""
        ...


Watch = Callable[[Measurement, int], AbstractContextManager[Observer]]
"""Shows the progress of a measurement; it is given the measurement's number, from 1."""


def arrange(wanted: Sequence[tuple[Definition, Conditions]]) -> tuple[Measurement, ...]:
    """Order the measurements by mix: the throughput first, then the others in the given order. The conditions have
    their frame sizes. Raises PlanError: a frame size needs the throughput, but its throughput is not measured."""
    labels = dict.fromkeys(conditions.mix for _, conditions in wanted)
    return tuple(one for label in labels for one in _of_mix(label, [each for each in wanted if each[1].mix == label]))


def measure(
    measurements: Sequence[Measurement], bench: Bench, out: Path, watch: Watch, first_trial: int = 0
) -> Summary | SuiteSummary:
    """Measure one measurement into ``out`` itself, several as a suite into its folders; ``first_trial``: number of the
    first trial. Raises as :func:`begin` does."""
    if len(measurements) > 1:
        return begin(measurements, bench, out, watch, first_trial)
    [only] = measurements
    check_free(out)
    with watch(only, 1) as observer, bench.modified(only.conditions) as ready:
        planned = ready.plan(only.conditions)
        return campaign.measure(only.definition, ready.tester, planned, out, observer, first_trial)


def check_free(out: Path) -> None:
    """Raises JournalError if ``out`` has other results than a journal, of which its writer decides."""
    others = (SUITE,) if (out / JOURNAL).exists() else (SUITE, SUMMARY)
    journal.check_free(out, others, _OTHERS, f"{_OR_ELSE} {out}")


def begin(
    measurements: Sequence[Measurement], bench: Bench, out: Path, watch: Watch, first_trial: int = 0
) -> SuiteSummary:
    """Measure everything into ``out``.

    Raises:
        PlanError: conditions that cannot be measured; nothing has been written then.
        JournalError: ``out`` holds other results, or cannot be written.
        TesterError: the tester cannot run at all.
    """
    for one in measurements:
        tester_needs.check(one.definition, bench.plan(one.conditions).config)
        if one.throughput_of is None:
            campaign.check(one.definition, bench.plan(one.conditions))
        else:
            one.definition.make(bench.plan(_with_some_throughput(one, bench.plan(one.conditions))))
    document = _document(measurements, bench.plan(measurements[0].conditions))
    _check_readable(document)
    journal.claim(out, (SUITE, JOURNAL, SUMMARY), _OTHERS, f"{_OR_ELSE} {out}")
    with journal.new_and_held(out / SUITE, json.dumps(document, indent=2) + "\n"):
        return resume(measurements, bench, out, watch, first_trial)


def held(directory: Path) -> AbstractContextManager[None]:
    """Lock the suite in ``directory`` against a second process. Raises JournalError where one
    measures it."""
    return journal.held(directory / SUITE)


def resume(
    measurements: Sequence[Measurement], bench: Bench, out: Path, watch: Watch, first_trial: int = 0
) -> SuiteSummary:
    """Measure the rest of the suite in ``out``, which is :func:`held`. Raises as :func:`begin`
    does."""
    parts: dict[str, Part] = {}
    for number, one in enumerate(measurements, start=1):
        parts[one.name] = _part(one, number, parts, bench, _Context(out, watch, first_trial))
        if parts[one.name].summary is not None:
            first_trial = journal.next_trial(journal.read(out / one.name))
        summary = _write(out, parts)
    return summary


def read(directory: Path) -> tuple[dict[str, Any], tuple[Measurement, ...]]:
    """The suite in ``directory``: its document, with ``source`` and ``config`` as in a journal's plan, and its
    measurements. Raises JournalError: it cannot be read, or has unknown procedures or conditions."""
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
    """Whether every measurement is complete, or could not be measured."""
    parts = _recorded_parts(directory)
    return all(
        one.name in parts and (parts[one.name]["summary"] is None or _ended(directory / one.name))
        for one in measurements
    )


def summarise(measurements: Sequence[Measurement], directory: Path) -> SuiteSummary:
    """The summary of a complete suite, made again from the journals."""
    by_name = notes(directory)
    parts = {
        one.name: Part(
            name=one.name,
            procedure=one.definition.name,
            note=by_name[one.name],
            summary=write_summary(directory / one.name, one.definition)
            if (directory / one.name / JOURNAL).exists()
            else None,
        )
        for one in measurements
    }
    return _write(directory, parts)


def notes(directory: Path) -> dict[str, str | None]:
    """Frame sizes that could not be measured, and why, by the names of the measurements so far."""
    return {name: part["note"] for name, part in _recorded_parts(directory).items()}


def throughput_in(directory: Path, conditions: Conditions) -> Path:
    """Directory of the throughput of the same mix in a suite; ``directory`` itself where it is not a
    suite."""
    return directory / (throughput.PROCEDURE.name + conditions.mix) if (directory / SUITE).exists() else directory


def has_begun(directory: Path) -> bool:
    """Whether there is a journal with a plan."""
    return (directory / JOURNAL).exists() and bool(journal.read(directory))


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
    for conditions in needing:
        if differing := other_traffic(searching.every, conditions.every):
            raise PlanError(
                f"the throughput is that of other traffic ({', '.join(differing)}), and another measurement needs that"
                " of its own: measure them in suites of their own, or give a rate",
                option=differing[0].partition(" ")[0],
            )
    needed = {size for conditions in needing for size in conditions.every.frame_sizes}
    missing = sorted(needed - set(searching.every.frame_sizes))
    if missing:
        raise PlanError(
            f"the throughput of {', '.join(map(str, missing))} bytes is needed, but not measured: add these frame"
            " sizes to the throughput",
            option="frame_sizes",
        )
    return [Measurement(first.name + label, first, searching), *others]


def _searching(needing: Sequence[Conditions]) -> throughput.Throughput:
    """Conditions of a throughput search for the measurements that need it."""
    sizes = tuple(dict.fromkeys(size for conditions in needing for size in conditions.every.frame_sizes))
    shortest_s = min(conditions.every.duration_s for conditions in needing)
    own = {
        "frame_sizes": sizes,
        "duration_s": min(shortest_s, LONGEST_SEARCH_TRIAL_S),
        "repetitions": _search_repetitions(needing[0].every.repetitions),
    }
    return throughput.Throughput.recorded(needing[0].stated() | own)


def _search_repetitions(rule: Rule) -> Rule:
    """The repetitions of what needs the throughput, at most the usual number of a throughput."""
    usual = throughput.Throughput().repetitions
    return min(rule, usual) if isinstance(rule, int) and isinstance(usual, int) else rule


def _measurement_of(definition: Definition, conditions: Conditions, label: str) -> Measurement:
    throughput_of = throughput.PROCEDURE.name + label if definition.needs_throughput(conditions) else None
    return Measurement(definition.name + label, definition, conditions, throughput_of)


def _with_some_throughput(one: Measurement, plan: Plan) -> Conditions:
    """The conditions with a possible throughput, at most the media's maximum and the rate within a
    burst."""
    if one.throughput_of is None:
        return one.conditions

    def some_fps(case: Case) -> int:
        media_fps, within = plan.traffic.maximum_fps(case), one.conditions.every.burst_rate
        limits = (
            [media_fps]
            if within is None or (within.unit == "percent" and media_fps is None)
            else [media_fps, rates.given("burst_rate", within, media_fps, is_bound=True)]
        )
        return min([SOME_FPS, *(fps for fps in limits if fps is not None)])

    return one.conditions.model_copy(
        update={"throughput_from": {case[FRAME_SIZE]: some_fps(case) for case in plan.traffic.cases()}}
    )


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Context:
    out: Path
    watch: Watch
    first_trial: int
    """Trial numbers are unique in a suite, so that late frames of one part are not counted in the
    next."""


def _part(one: Measurement, number: int, parts: Mapping[str, Part], bench: Bench, context: _Context) -> Part:
    made = Part(name=one.name, procedure=one.definition.name)
    ready, note = _at_throughput(one, parts, bench)
    if ready is None:
        return made.model_copy(update={"note": note})
    with context.watch(ready, number) as observer:
        summary = _advance(ready, bench, context.out / one.name, observer, context.first_trial)
    return made.model_copy(update={"note": note, "summary": summary})


def _at_throughput(one: Measurement, parts: Mapping[str, Part], bench: Bench) -> tuple[Measurement | None, str | None]:
    """The measurement at the measured throughputs, without the frame sizes that have none, or one that is not
    possible for it; None where no size is left. And a note on the missing sizes."""
    if one.throughput_of is None:
        return one, None
    searched = parts[one.throughput_of].summary
    assert searched is not None, "a search depends on no other measurement"
    medians = {
        point.case[FRAME_SIZE]: point.throughput_fps.median
        for point in searched.points
        if isinstance(point, throughput.ThroughputPoint)
    }
    deviations = tuple(one.text for one in searched.deviations if one.clause in OF_A_SEARCH)

    def at(throughput_fps: Mapping[int, int]) -> Measurement:
        limits = [
            (size, point.limit) for point in searched.points if (size := point.case[FRAME_SIZE]) in throughput_fps
        ]
        members = {
            "throughput_from": throughput_fps,
            "throughput_deviations": (*deviations, *limited_by_tester(limits)),
            "frame_sizes": tuple(throughput_fps),
        }
        return replace(one, conditions=one.conditions.model_copy(update=members))

    throughput_fps: dict[int, int] = {}
    missing: dict[str, list[str]] = {}
    for size in one.conditions.every.frame_sizes:
        median = int(medians.get(size) or 0)
        why = _why_not_possible(at({size: median}), bench) if median else "no throughput was found for them"
        if why:
            missing.setdefault(why, []).append(str(size))
        else:
            throughput_fps[size] = median
    texts = [f"not measured with {', '.join(sizes)} bytes: {why}" for why, sizes in missing.items()]
    return at(throughput_fps) if throughput_fps else None, "; ".join(texts) or None


def _why_not_possible(one: Measurement, bench: Bench) -> str:
    """Why it cannot be measured at its throughput, of which a share may be too low; empty where it can."""
    try:
        campaign.check(one.definition, bench.plan(one.conditions))
    except (PlanError, ParameterError) as error:
        return str(error)
    return ""


def _advance(one: Measurement, bench: Bench, directory: Path, observer: Observer, first_trial: int) -> Summary:
    """Begin a run, resume it, or read its results."""
    if not has_begun(directory):
        with bench.modified(one.conditions) as ready:
            return campaign.measure(
                one.definition, ready.tester, ready.plan(one.conditions), directory, observer, first_trial
            )
    with ResumedJournal.open(directory) as recorded:
        if recorded.is_complete:
            return write_summary(directory, one.definition)
        with bench.modified(one.conditions) as ready:
            return campaign.resume(ready.tester, ready.plan(one.conditions), recorded, observer)


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


def _check_readable(document: dict[str, Any]) -> None:
    """Raises JournalError where :func:`read` could not read the document."""
    try:
        for one in json.loads(json.dumps(document, allow_nan=False))["measurements"]:
            _measurement(one)
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(f"nothing was sent, because nobody could resume the suite: {error}") from None


def _measurement(document: Mapping[str, Any]) -> Measurement:
    """Raises ValueError: its name leads out of the suite's directory, or unknown conditions."""
    if not _is_folder(name := document["name"]):
        raise ValueError(f"{name!r} is not the name of a folder in it")
    try:
        definition = procedures.find(document["procedure"])
        conditions = definition.conditions.recorded(document["conditions"])
    except ValidationError as error:
        raise ValueError(str(error)) from None
    return Measurement(name, definition, conditions, document["throughput_of"])


def _is_folder(name: object) -> bool:
    """Whether it is one plain component of a path."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {"/", "\0"} & set(name)


def _write(out: Path, parts: Mapping[str, Part]) -> SuiteSummary:
    summary = SuiteSummary(measurements=tuple(parts.values()))
    journal.write_whole(out / SUMMARY, json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    return summary


def _recorded_parts(directory: Path) -> dict[str, dict[str, Any]]:
    """The parts in the suite's summary, by name."""
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
