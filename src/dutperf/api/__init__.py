# SPDX-License-Identifier: Apache-2.0
"""The Python interface: measure as the commands do, with results as objects, rows and data frames.

Each procedure has a class of conditions (``dutperf.Throughput(duration_s=5, frame_sizes=(84, 1518),
max_rate="10%")``), with the names and defaults of the command line. Nothing is printed. Signals are
handled only by a lab in the main thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dutperf import journal, procedures, traffic
from dutperf.api import results
from dutperf.api.results import Results
from dutperf.api.running import RunningTraffic, TrafficPart
from dutperf.captures import CaptureError
from dutperf.journal import JournalError
from dutperf.model import MAX_FRAME_SIZE, MIN_FRAME_SIZE, TRIAL_NUMBERS, Stamping, Trial, TrialResult, to_json
from dutperf.procedures.definition import Definition
from dutperf.run import earlier_runs, suite, testbench
from dutperf.run import resume as resumption
from dutperf.run.campaign import Observer, Status
from dutperf.run.suite import Measurement
from dutperf.run.testbench import USUAL_FRAME_SIZE, Source, check_one_size
from dutperf.setup import arguments, configuration
from dutperf.setup.conditions import Conditions, Rate, SingleTrial, invalid_member
from dutperf.setup.configuration import ParameterError, Setup
from dutperf.spelling import hint
from dutperf.tester import TesterError
from dutperf.traffic import replayed
from dutperf.traffic.replayed import Replaying
from dutperf.traffic.sizes import longest_frame

StrPath = str | os.PathLike[str]
Config = StrPath | Mapping[str, Any] | Setup
"""Path of a configuration file, or its content."""
Callback = Callable[[Status], None]
"""Receives a measurement's progress: before, about once a second during, and after each trial."""
LONGEST_TRAFFIC_S = 3600.0


class Bench:
    """A test setup, ready to measure: the DUT is set up, the engine runs, its ports are open. Made by
    :func:`bench`."""

    def __init__(self, ready: testbench.Bench) -> None:
        self._ready = ready
        self._next = 1
        """Number of the next trial: two trials of one number would count each other's late frames."""
        self._traffic: list[RunningTraffic] = []

    @property
    def setup(self) -> Setup:
        """The configuration, with the speed of the media if the links report it."""
        return self._ready.setup

    def measure(
        self,
        conditions: Conditions,
        out: StrPath | None = None,
        progress: Callback | None = None,
        *,
        throughput_from: Results | StrPath | None = None,
    ) -> Results:
        """Measure by a procedure; see :func:`measure`."""
        return self._measure(conditions, _planned(conditions, throughput_from), out, progress)

    def _measure(
        self,
        conditions: Conditions,
        planned: tuple[Definition, Conditions],
        out: StrPath | None,
        progress: Callback | None,
    ) -> Results:
        self._check_idle()
        (definition, wanted), watch = planned, _watch(progress)
        directory = earlier_runs.fresh_directory(definition.name) if out is None else arguments.path_of(out, "out")
        measurements = suite.arrange([(definition, self._sized(wanted))])
        ready = replace(self._ready, invocation=_invocation(definition, conditions))
        try:
            suite.measure(measurements, ready, directory, watch, self._next)
        except BaseException:
            with suppress(JournalError):
                self._count(results.read(directory))
            raise
        return self._count(results.read(directory))

    def trial(self, rate: Rate | str | float | None = None, conditions: SingleTrial | None = None) -> TrialResult:
        """Run one trial; see :func:`trial`. Raises TesterError as well while traffic runs on this bench."""
        self._check_idle()
        sized = self._sized(_of_trial(conditions))
        planned = self._ready.trial(sized, _rate(rate), self._number())
        self._next += planned.numbers - 1
        with self._ready.modified(sized) as ready:
            return ready.run(planned)

    def replay(self, file: StrPath, conditions: Replaying | None = None) -> TrialResult:
        """Send the frames of a capture, as ``dutperf replay`` does, in one trial.

        Args:
            file: a capture, pcap or pcapng, of Ethernet frames.
            conditions: ``dutperf.Replaying(speed="2")``.

        Raises:
            ConfigError: the capture cannot be read or sent, or its frames are longer than those of this bench.
            TesterError: see :func:`trial`.
        """
        if not isinstance(conditions, Replaying | None):
            raise ParameterError("should be those of a replay: dutperf.Replaying(…)", "conditions")
        self._check_idle()
        wanted, path = conditions or Replaying(), arguments.path_of(file, "file")
        try:
            recording = replayed.recording_of(path, wanted)
        except (CaptureError, replayed.ReplayError) as error:
            raise ParameterError(str(error), "file") from None
        self._check_length(recording.longest, "file")
        return self._ready.run(self._ready.replay(recording, wanted, self._number()))

    def start(
        self,
        rate: Rate | str | float,
        conditions: SingleTrial | None = None,
        *,
        streams: Sequence[Mapping[str, Any]] = (),
        stamps: bool = True,
        progress_ms: int = 50,
    ) -> RunningTraffic:
        """Start traffic that runs until it is stopped or changed, or for the conditions' ``duration_s``
        (default: an hour).

        Args:
            rate: see :meth:`trial`.
            conditions: of a trial, without a warm-up, connections and filters: such traffic begins at once. The
                receiving time after sending is 0.1 s by default.
            streams: streams of each direction, with the members of ``streams`` in a configuration
                (docs/frames.md), instead of its own.
            stamps: every frame carries its send time, so that results have delays.
            progress_ms: age of :meth:`RunningTraffic.counters` at most, 20 to 1000.

        Raises:
            ConfigError, PlanError, TesterError: see :func:`trial`.
        """
        every = Stamping.EVERY if arguments.truth_value(stamps, "stamps") else None
        counted_ms = arguments.whole_number(progress_ms, "progress_ms", least=20, most=1000)

        def plan(part: TrafficPart) -> Trial:
            self._check_idle()
            longest = {"duration_s": LONGEST_TRAFFIC_S, "drain_s": 0.1}
            wanted = _of_trial(part.conditions)
            wanted = wanted.model_copy(
                update={name: value for name, value in longest.items() if name not in wanted.model_fields_set}
            )
            described = arguments.sequence(part.streams, "streams")
            with_streams = (
                replace(self._ready, setup=_with_streams(self.setup, described)) if described else self._ready
            )
            _check_begins_at_once(wanted)
            planned = with_streams.trial(Bench(with_streams)._sized(wanted), _rate(part.rate), self._number())
            self._next += planned.numbers - 1
            planned = planned.alone()
            by_flow = any(stream.frames for stream in planned.streams().values())
            return planned.model_copy(
                update={"progress_ms": counted_ms}
                | ({"stamping": every} if every else {})
                | ({"by_flow": True} if by_flow else {})
            )

        started = RunningTraffic(self._ready.tester, plan, TrafficPart(rate, conditions, streams))
        self._traffic.append(started)
        started.begin()
        return started

    def close(self) -> None:
        """Stop all traffic."""
        for started in self._traffic:
            with suppress(TesterError):
                started.end()

    def _count(self, measured: Results) -> Results:
        """Count the trials of a measurement as this bench's."""
        if begun := [one.events for one in measured if one.events]:
            self._next = journal.next_trial(begun[-1])
        return measured

    def _check_idle(self) -> None:
        """Raises TesterError: the engine runs one trial at a time, and two would end each other."""
        if any(started.is_running for started in self._traffic):
            raise TesterError("traffic runs on this bench: stop it first")

    def _number(self) -> int:
        """Of another trial."""
        self._next += 1
        return (self._next - 1) % TRIAL_NUMBERS

    def _sized(self, conditions: Conditions) -> Conditions:
        """``conditions`` with frame sizes, checked against the test setup. Raises ConfigError if such
        traffic is impossible there."""
        sized = self._ready.sized(conditions)
        traffic.of(self.setup, sized).check()
        if not self._ready.limited:
            self._check_length(longest_frame(sized) + self.setup.tunnel_overhead, "frame_sizes")
        return sized

    def _check_length(self, longest: int, parameter: str) -> None:
        """Raises ParameterError for frames that the ports were not opened for."""
        most = self._ready.max_frame_size
        if longest > most:
            raise ParameterError(f"{longest} bytes are longer than max_frame_size={most} of this bench", parameter)


@contextmanager
def bench(
    *,
    lab: str | None = None,
    lab_options: Mapping[str, object] | None = None,
    config: Config | None = None,
    max_frame_size: int = USUAL_FRAME_SIZE,
) -> Iterator[Bench]:
    """Keep a test setup ready for several measurements: ``with dutperf.bench(lab="kernel-ipv6") as
    bench: …``.

    Args:
        lab: name of a lab (``dutperf lab list``), which is brought up and taken down again; needs
            root.
        lab_options: its options.
        config: a configuration file, or a mapping of the same form; either this or a lab.
        max_frame_size: the longest frame to measure, in bytes incl. FCS.

    Raises:
        ConfigError: both or neither of lab and config; an invalid configuration.
        LabError: unknown lab or option, no root, or a missing program.
        TesterError: the engine does not start, a port does not open, or the DUT's MAC address is
            not resolved.
    """
    longest = arguments.whole_number(max_frame_size, "max_frame_size", least=MIN_FRAME_SIZE, most=MAX_FRAME_SIZE)
    with (
        testbench.bench(_source(lab, lab_options, config), longest=longest) as ready,
        closing(Bench(ready)) as made,
    ):
        yield made


def measure(
    conditions: Conditions,
    out: StrPath | None = None,
    progress: Callback | None = None,
    *,
    throughput_from: Results | StrPath | None = None,
    lab: str | None = None,
    lab_options: Mapping[str, object] | None = None,
    config: Config | None = None,
) -> Results:
    """Measure by a procedure, as ``dutperf PROCEDURE`` does: every trial goes to a journal, and only
    valid trials count.

    A procedure at the throughput (latency, delay variation, …) whose conditions have neither ``rate`` nor
    ``throughput_from`` measures the throughput first; the result then has both measurements.

    Args:
        conditions: those of the procedure: ``dutperf.Throughput(duration_s=5)``, ``dutperf.FrameLoss()``, …
        out: directory for journal and summary, which must not hold another run; default:
            ``results/DATE-TIME-PROCEDURE``.
        progress: called with a :class:`~dutperf.run.campaign.Status` before, about once a second
            during, and after each trial.
        throughput_from: measure at the median throughput of this earlier run: its results or their directory.
        lab: as for :func:`bench`.
        lab_options: as for :func:`bench`.
        config: as for :func:`bench`.

    Returns:
        The results in ``out``. Points of a DUT that forwards nothing have no number; points that the
        tester could not measure are ``limited_by`` the tester.

    Raises:
        ConfigError: no conditions of a procedure, an invalid configuration, or traffic that it cannot have.
        PlanError: contradicting conditions, or a rate in % of an unknown maximum.
        LabError, TesterError: see :func:`bench`.
        JournalError: ``out`` holds another run, or cannot be written (WriteError). Finished trials
            are kept; :func:`resume` continues.
    """
    planned = _planned(conditions, throughput_from)
    arguments.callback(progress, "progress")
    if out is not None:
        arguments.path_of(out, "out")
    with testbench.bench(_source(lab, lab_options, config), planned[1]) as ready, closing(Bench(ready)) as made:
        return made._measure(conditions, planned, out, progress)


def trial(
    rate: Rate | str | float | None = None,
    conditions: SingleTrial | None = None,
    *,
    lab: str | None = None,
    lab_options: Mapping[str, object] | None = None,
    config: Config | None = None,
) -> TrialResult:
    """Run one trial (RFC 2544 section 23) and judge it.

    Args:
        rate: per direction: frames/s, or a text as on the command line (``"10k"``, ``"12.5%"``);
            None: ``pattern`` has rates of its own (``"ramp:1k-100k"``).
        conditions: ``dutperf.SingleTrial(duration_s=5)``.
        lab: as for :func:`bench`.
        lab_options: as for :func:`bench`.
        config: as for :func:`bench`.

    Returns:
        Verdict, causes, and the counts of each direction. If the verdict is not ``valid``, the trial
        says nothing about the DUT.

    Raises:
        ConfigError, PlanError, LabError, TesterError: see :func:`measure`.
    """
    intended, longest = _rate(rate), longest_frame(_of_trial(conditions))
    with bench(lab=lab, lab_options=lab_options, config=config, max_frame_size=longest) as ready:
        return ready.trial(intended, conditions)


def open_result(directory: StrPath) -> Results:
    """Read the results of a run or a suite, measured by any interface; finished, interrupted, or under
    way. Nothing is changed.

    Raises:
        JournalError: there are no results, or they cannot be read.
    """
    return results.read(arguments.path_of(directory, "directory"))


def resume(directory: StrPath, progress: Callback | None = None, *, config: Config | None = None) -> Results:
    """Resume a run or a suite that was killed or interrupted, after its last finished trial, as
    ``dutperf resume`` does.

    ``config``: the configuration, if its file was moved or a program made it. Commands are taken from
    it, never from a journal.

    Raises:
        JournalError: there is nothing to resume, or the test setup or this version differs.
        ConfigError, LabError, PlanError, TesterError: see :func:`measure`.
    """
    begun, watch = arguments.path_of(directory, "directory"), _watch(progress)
    resumption.resume(begun, lambda _measurements: nullcontext(watch), _current(config))
    return results.read(begun)


def procedure_names() -> tuple[str, ...]:
    """The names of the procedures, as on the command line."""
    return procedures.NAMES


def conditions_of(procedure: str) -> type[Conditions]:
    """The conditions of the procedure of that name: ``dutperf.FrameLoss`` of ``frame-loss``.

    Raises:
        ConfigError: there is no such procedure.
    """
    if procedure not in procedures.NAMES:
        raise ParameterError(f"there is no {procedure!r}; {hint(str(procedure), procedures.NAMES)}", "procedure")
    return procedures.find(procedure).conditions


def _source(
    lab: str | None = None, lab_options: Mapping[str, object] | None = None, config: Config | None = None
) -> Source:
    name = arguments.name(lab, "lab")
    texts = {str(key): _lab_option(key, value) for key, value in arguments.mapping(lab_options, "lab_options").items()}
    if config is None or isinstance(config, str | os.PathLike):
        return Source.of(name, texts, None if config is None else arguments.path_of(config, "config"))
    made = config if isinstance(config, Setup) else configuration.parse(config, origin="the configuration")
    return replace(Source.of(name, texts, Path()), recorded=made)  # no file is read


def _lab_option(key: object, value: object) -> str:
    try:
        return testbench.lab_option(value)
    except ValueError as error:
        raise ParameterError(f"{key}: {error}", "lab_options") from None


def _current(config: Config | None) -> Path | Setup | None:
    if config is None or isinstance(config, Setup):
        return config
    if isinstance(config, str | os.PathLike):
        return arguments.path_of(config, "config")
    return configuration.parse(config, origin="the configuration")


def _with_streams(setup: Setup, streams: Sequence[Mapping[str, Any]]) -> Setup:
    """``setup`` with other streams.

    Raises:
        ConfigError: a stream is not possible.
    """
    made = configuration.parse({**configuration.as_json(setup), "streams": list(streams)}, origin="the streams")
    return made.model_copy(update={"engine": setup.engine})  # whose JSON has no token


def _planned(conditions: Conditions, throughput_from: Results | StrPath | None) -> tuple[Definition, Conditions]:
    """The procedure, and its conditions with what is read for them."""
    definition = _procedure(conditions)
    if throughput_from is not None:
        earlier = throughput_from.directory if isinstance(throughput_from, Results) else throughput_from
        conditions = earlier_runs.at_throughput_of(earlier, conditions)
    return definition, earlier_runs.with_fresh_files(conditions)


def _procedure(conditions: object) -> Definition:
    if isinstance(conditions, Conditions) and (definition := procedures.of(conditions)) is not None:
        return definition
    given = str(conditions) if isinstance(conditions, str) else getattr(conditions, "__name__", repr(conditions))
    models = {name: procedures.model_of(name) for name in procedures.NAMES}
    near = models.get(given, given)
    meant = f"did you mean dutperf.{near}(…)?" if near in models.values() else f"there are {', '.join(models.values())}"
    raise ParameterError(f"should be the conditions of a procedure; {meant}", "conditions")


def _of_trial(conditions: SingleTrial | None) -> SingleTrial:
    if not isinstance(conditions, SingleTrial | None):
        raise ParameterError("should be those of a trial: dutperf.SingleTrial(…)", "conditions")
    made = SingleTrial() if conditions is None else conditions
    check_one_size(made)
    return made


def _check_begins_at_once(conditions: SingleTrial) -> None:
    """Raises ParameterError for what a trial does before it measures."""
    before = {
        "warm_up_s": conditions.warm_up_s,
        "connections": conditions.connections,
        "modifiers": conditions.modified_by.filters,
    }
    for name, value in before.items():
        if value:
            raise ParameterError("is of a trial, not of traffic that is started", name)


def _rate(given: Rate | str | float | None) -> Rate | None:
    try:
        return None if given is None else Rate.model_validate(given)
    except ValidationError as error:
        raise ParameterError(invalid_member(error)[1], "rate") from None


def _invocation(definition: Definition, conditions: Conditions) -> tuple[str, ...]:
    """For the journal: the call."""
    given = to_json(conditions)
    chosen = [name for name in type(conditions).model_fields if name in conditions.model_fields_set and name in given]
    return ("dutperf.measure", definition.name, *(f"{name}={_text(getattr(conditions, name))}" for name in chosen))


def _text(value: Any) -> str:
    return value.text() if hasattr(value, "text") else str(value)


class _Observer:
    def __init__(self, progress: Callback) -> None:
        self._progress = progress

    def update(self, status: Status) -> None:
        self._progress(status)


def _watch(progress: Callback | None) -> suite.Watch:
    observer = _Observer(arguments.callback(progress, "progress") or (lambda _status: None))

    def watch(_measurement: Measurement, _number: int) -> AbstractContextManager[Observer]:
        return nullcontext(observer)

    return watch
