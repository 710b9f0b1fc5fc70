# SPDX-License-Identifier: Apache-2.0
"""The program's interface for other programs: measure as the commands do, and have the results as
objects, rows and data frames.

Conditions are given by the names that they have in :class:`~dutperf.setup.conditions.Conditions`
(``duration_s=5``, ``frame_sizes=(84, 1518)``, ``max_rate="10%"``), with the same defaults as on the
command line. Nothing is printed, and no signal is handled but by a lab in the main thread.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from pydantic import ValidationError

from dutperf import procedures
from dutperf.api import parameters, results
from dutperf.api.results import Results
from dutperf.model import TRIAL_NUMBERS, TrialResult
from dutperf.procedures.definition import Definition
from dutperf.run import resume as resumption
from dutperf.run import suite, testbench
from dutperf.run.campaign import Observer, Status
from dutperf.run.suite import Measurement
from dutperf.run.testbench import USUAL_FRAME_SIZE, Source, check_one_size
from dutperf.setup import configuration, traffic
from dutperf.setup.conditions import Conditions, Rate, SingleTrial, invalid_member
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.setup.dut import losses_during, losses_of
from dutperf.setup.option import offered

StrPath = str | os.PathLike[str]
Config = StrPath | Mapping[str, Any] | Setup
"""A configuration file's path, or what would stand in it."""
Callback = Callable[[Status], None]
"""Is told how far a measurement is: before, about once a second during, and after each trial."""
SOURCE = ("lab", "lab_options", "config")


class Bench:
    """A set-up that is in place: the DUT is set up, the engine runs, its ports are open.
    :func:`bench` makes one."""

    def __init__(self, ready: testbench.Bench) -> None:
        self._ready = ready
        self._numbers = itertools.count(1)

    @property
    def setup(self) -> Setup:
        """The configuration, with the speed of the media where the link tells it."""
        return self._ready.setup

    def measure(
        self, procedure: str, out: StrPath | None = None, progress: Callback | None = None, **conditions: Any
    ) -> Results:
        """Measure by a procedure; see :func:`measure`."""
        definition, chosen = _definition(procedure), dict(conditions)
        directory = results.fresh_directory(procedure) if out is None else Path(out)
        measurements = suite.arrange([(definition, self._sized(_conditions_of(definition, chosen)))])
        ready = replace(self._ready, invocation=_invocation(procedure, chosen))
        suite.measure(measurements, ready, directory, _watch(progress))
        return results.read(directory)

    def trial(self, rate: Rate | str | float, **conditions: Any) -> TrialResult:
        """Run one trial; see :func:`trial`."""
        planned = self._ready.trial(
            self._sized(_conditions_of_trial(conditions)), _rate(rate), next(self._numbers) % TRIAL_NUMBERS
        )
        count = losses_of(self._ready.setup.dut)
        return losses_during(count, lambda: self._ready.tester.run(planned))

    def _sized(self, conditions: Conditions) -> Conditions:
        """With frame sizes, and checked against the set-up. Raises ConfigError where it cannot have
        such traffic."""
        sized = self._ready.sized(conditions)
        traffic.check(self.setup, sized)
        if (longest := traffic.longest_frame(sized)) > self._ready.max_frame_size:
            raise ParameterError(
                f"{longest} bytes are longer than max_frame_size={self._ready.max_frame_size} of this bench",
                "frame_sizes",
            )
        return sized


@contextmanager
def bench(
    *,
    lab: str | None = None,
    lab_options: Mapping[str, object] | None = None,
    config: Config | None = None,
    max_frame_size: int = USUAL_FRAME_SIZE,
) -> Iterator[Bench]:
    """Have a set-up in place for several measurements: ``with dutperf.bench(lab="kernel-ipv6") as
    bench: …``.

    Args:
        lab: name of a lab (``dutperf lab list``), which is brought up and taken down again; needs
            root.
        lab_options: its options.
        config: a configuration file, or a mapping of the same form; either this or a lab.
        max_frame_size: the longest frame that will be measured, in bytes incl. FCS.

    Raises:
        ConfigError: both or neither of lab and config; a configuration that cannot be used.
        LabError: there is no such lab or option, no root, or a program is missing.
        TesterError: the engine, a port or the DUT's MAC address cannot be had.
    """
    with testbench.bench(_source(lab, lab_options, config), longest=max_frame_size) as ready:
        yield Bench(ready)


@overload
def measure(
    procedure: Literal["throughput"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfThroughput],
) -> Results: ...
@overload
def measure(
    procedure: Literal["frame-loss"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfFrameLoss],
) -> Results: ...
@overload
def measure(
    procedure: Literal["back-to-back"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfBackToBack],
) -> Results: ...
@overload
def measure(
    procedure: Literal["latency"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfLatency],
) -> Results: ...
@overload
def measure(
    procedure: Literal["pdv"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfPdv],
) -> Results: ...
@overload
def measure(
    procedure: Literal["ipdv"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfIpdv],
) -> Results: ...
@overload
def measure(
    procedure: Literal["recovery"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfRecovery],
) -> Results: ...
@overload
def measure(
    procedure: Literal["reset"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfReset],
) -> Results: ...
def measure(procedure: str, out: StrPath | None = None, progress: Callback | None = None, **given: Any) -> Results:
    """Measure by a procedure, as ``dutperf PROCEDURE`` does: every trial goes to a journal, and
    only valid ones count.

    Where the procedure needs the throughput (latency, delay variation, …) and neither ``rate`` nor
    ``throughput_from`` says it, that is measured first; the result then has both measurements.

    Args:
        procedure: its name: ``throughput``, ``frame-loss``, ``back-to-back``, ``latency``, ``pdv``,
            ``ipdv``, ``recovery`` or ``reset``.
        out: directory for journal and summary, which must not hold another run; without it
            ``results/DATE-TIME-PROCEDURE``.
        progress: is called with a :class:`~dutperf.run.campaign.Status` before, about once a second
            during, and after each trial.
        given: ``lab``, ``lab_options`` and ``config`` as for :func:`bench`; the others are
            :class:`~dutperf.setup.conditions.Conditions` of the procedure. Rates are frames/s per
            direction, or texts as on the command line (``"10k"``, ``"12.5%"``); ``throughput_from`` may be
            the directory or the :class:`Results` of an earlier throughput run.

    Returns:
        What there is in ``out``. A DUT that forwards nothing has points without a number; what the
        tester could not do is ``limited_by`` the tester.

    Raises:
        ConfigError: no such procedure or condition, a value that is not possible, a configuration
            that cannot be used.
        PlanError: conditions that contradict each other, or a rate in % of a maximum that is not
            known.
        LabError, TesterError: see :func:`bench`.
        JournalError: ``out`` holds another run, or cannot be written (WriteError); what was
            measured is kept, and :func:`resume` goes on with it.
    """
    source, conditions = _parted(given)
    definition = _definition(procedure)
    longest = traffic.longest_frame(_conditions_of(definition, conditions))
    with bench(**source, max_frame_size=longest) as ready:
        return ready.measure(procedure, out, progress, **conditions)


def trial(rate: Rate | str | float, **given: Unpack[parameters.OfTrial]) -> TrialResult:
    """Run one trial (RFC 2544 section 23) and have it judged.

    Args:
        rate: per direction: frames/s, or a text as on the command line (``"10k"``, ``"12.5%"``).
        given: ``lab``, ``lab_options`` and ``config`` as for :func:`bench`; the others are
            :class:`~dutperf.setup.conditions.Conditions` of a trial.

    Returns:
        Verdict, causes, and the counts of each direction. Where the verdict is not ``valid`` it
        says nothing about the DUT.

    Raises:
        ConfigError, PlanError, LabError, TesterError: see :func:`measure`.
    """
    source, conditions = _parted(given)
    intended, longest = _rate(rate), traffic.longest_frame(_conditions_of_trial(conditions))
    with bench(**source, max_frame_size=longest) as ready:
        return ready.trial(intended, **conditions)


def open_result(directory: StrPath) -> Results:
    """Read the results of a run or a suite, by whichever interface it was measured; finished, cut
    off, or under way. Nothing is changed.

    Raises:
        JournalError: there are none, or they cannot be read.
    """
    return results.read(Path(directory))


def resume(directory: StrPath, progress: Callback | None = None, *, config: Config | None = None) -> Results:
    """Go on with a run or a suite that was killed or interrupted, from the last trial that it
    finished, as ``dutperf resume`` does.

    ``config``: the configuration, where its file is no longer where it was, or a program made it:
    commands are taken from there, never from a journal.

    Raises:
        JournalError: there is nothing that could go on, or the set-up or this version is another.
        ConfigError, LabError, PlanError, TesterError: see :func:`measure`.
    """
    resumption.go_on(Path(directory), lambda _measurements: nullcontext(_watch(progress)), _current(config))
    return results.read(Path(directory))


def procedure_names() -> tuple[str, ...]:
    """Those that :func:`measure` knows."""
    return tuple(definition.name for definition in procedures.ALL)


def _parted(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the set-up comes from, and the conditions."""
    return {name: value for name, value in given.items() if name in SOURCE}, {
        name: value for name, value in given.items() if name not in SOURCE
    }


def _source(lab: str | None, lab_options: Mapping[str, object] | None, config: Config | None) -> Source:
    texts = {name: str(value) for name, value in (lab_options or {}).items()}
    if config is None or isinstance(config, str | os.PathLike):
        return Source.of(lab, texts, None if config is None else Path(config))
    made = config if isinstance(config, Setup) else configuration.parse(config, origin="the configuration")
    return Source.of(lab, texts, Path()).with_setup(made)


def _current(config: Config | None) -> Path | Setup | None:
    if config is None or isinstance(config, Setup):
        return config
    if isinstance(config, str | os.PathLike):
        return Path(config)
    return configuration.parse(config, origin="the configuration")


def _definition(name: str) -> Definition:
    try:
        return procedures.find(name)
    except KeyError:
        raise ConfigError(f"there is no procedure {name!r}; {_hint(name, procedure_names())}", "") from None


def _conditions_of(definition: Definition, given: Mapping[str, Any]) -> Conditions:
    return _one(definition.conditions, definition.name, given)


def _conditions_of_trial(given: Mapping[str, Any]) -> Conditions:
    made = _one(SingleTrial, "a trial", given)
    check_one_size(made)
    return made


def _one(model: type[Conditions], what: str, given: Mapping[str, Any]) -> Conditions:
    known = sorted(one.name for one in offered(model))
    for name in given:
        if name not in known and not (name == "series" and "frame_sizes" in known):
            raise ParameterError(f"{what} has no such condition; {_hint(name, known)}", name)
    made = results.chosen(model, given)
    if len(made) > 1:
        raise ParameterError("several values: measure them one after the other", "foreground")
    return made[0]


def _rate(given: Rate | str | float) -> Rate:
    try:
        return Rate.model_validate(given)
    except ValidationError as error:
        raise ParameterError(invalid_member(error)[1], "rate") from None


def _hint(name: str, known: tuple[str, ...] | list[str]) -> str:
    nearest = get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}"


def _invocation(procedure: str, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """For the journal: what a program asked for, as far as it decides about the course."""
    return (
        "dutperf.measure",
        procedure,
        *(f"{name}={value}" for name, value in chosen.items() if not isinstance(value, Results)),
    )


class _Observer:
    def __init__(self, progress: Callback) -> None:
        self._progress = progress

    def update(self, status: Status) -> None:
        """See :class:`dutperf.run.campaign.Observer`."""
        self._progress(status)


def _watch(progress: Callback | None) -> suite.Watch:
    observer = _Observer(progress or (lambda _status: None))

    def watch(_measurement: Measurement, _number: int) -> AbstractContextManager[Observer]:
        return nullcontext(observer)

    return watch
