# SPDX-License-Identifier: Apache-2.0
"""The Python interface: measure as the commands do, with results as objects, rows and data frames.

Conditions have the names of :class:`~dutperf.setup.conditions.Conditions` (``duration_s=5``,
``frame_sizes=(84, 1518)``, ``max_rate="10%"``) and the defaults of the command line. Nothing is
printed. Signals are handled only by a lab in the main thread.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from pydantic import ValidationError

from dutperf import procedures
from dutperf.api import parameters, results
from dutperf.api.results import Results
from dutperf.api.running import Traffic
from dutperf.model import TRIAL_NUMBERS, Stamping, Trial, TrialResult
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
from dutperf.tester import TesterError, phases

StrPath = str | os.PathLike[str]
Config = StrPath | Mapping[str, Any] | Setup
"""Path of a configuration file, or its content."""
Callback = Callable[[Status], None]
"""Receives a measurement's progress: before, about once a second during, and after each trial."""
SOURCE = ("lab", "lab_options", "config")
LONGEST_TRAFFIC_S = 3600.0


class Bench:
    """A test setup, ready to measure: the DUT is set up, the engine runs, its ports are open. Made by
    :func:`bench`."""

    def __init__(self, ready: testbench.Bench) -> None:
        self._ready = ready
        self._numbers = itertools.count(1)
        self._traffic: list[Traffic] = []

    @property
    def setup(self) -> Setup:
        """The configuration, with the speed of the media if the links report it."""
        return self._ready.setup

    @overload
    def measure(
        self,
        procedure: Literal["throughput"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.ThroughputConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["frame-loss"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.FrameLossConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["back-to-back"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.BackToBackConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["latency"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.LatencyConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["pdv"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.PdvConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["ipdv"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.IpdvConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["recovery"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.RecoveryConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["reset"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.ResetConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["ramp"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.RampConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["load-latency"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.LoadLatencyConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["soak"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.SoakConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["traffic"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.TrafficConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["establishment-rate"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.EstablishmentRateConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["table-capacity"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.TableCapacityConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["teardown-rate"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.TeardownRateConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["address-capacity"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.AddressCapacityConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["address-learning-rate"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.AddressLearningRateConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["address-ageing"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.AddressAgeingConditions],
    ) -> Results: ...
    @overload
    def measure(
        self,
        procedure: Literal["broadcast"],
        out: StrPath | None = None,
        progress: Callback | None = None,
        **conditions: Unpack[parameters.BroadcastConditions],
    ) -> Results: ...
    def measure(
        self, procedure: str, out: StrPath | None = None, progress: Callback | None = None, **conditions: Any
    ) -> Results:
        """Measure by a procedure; see :func:`measure`."""
        return self._measure(procedure, out, progress, conditions)

    def _measure(
        self, procedure: str, out: StrPath | None, progress: Callback | None, conditions: Mapping[str, Any]
    ) -> Results:
        definition, chosen = _definition(procedure), dict(conditions)
        directory = results.fresh_directory(procedure) if out is None else results.path_of(out, "out")
        measurements = suite.arrange([(definition, self._sized(_conditions_of(definition, chosen)))])
        ready = replace(self._ready, invocation=_invocation(procedure, chosen))
        suite.measure(measurements, ready, directory, _watch(progress))
        return results.read(directory)

    def trial(
        self, rate: Rate | str | float | None = None, **conditions: Unpack[parameters.TrialConditions]
    ) -> TrialResult:
        """Run one trial; see :func:`trial`."""
        sized = self._sized(_conditions_of_trial(conditions))
        planned = self._ready.trial(sized, _rate(rate), next(self._numbers) % TRIAL_NUMBERS)
        for _ in range(planned.numbers - 1):
            next(self._numbers)
        count = losses_of(self._ready.setup.dut)
        with self._ready.modified(sized) as ready:
            return phases.run(ready.tester, planned, around=partial(losses_during, count), dut=ready.dut_connections())

    def start(
        self,
        rate: Rate | str | float,
        *,
        streams: Sequence[Mapping[str, Any]] = (),
        stamps: bool = True,
        progress_ms: int = 50,
        **conditions: Unpack[parameters.TrialConditions],
    ) -> Traffic:
        """Start traffic that runs until it is stopped or changed, or for ``duration_s`` (default: an hour).

        Args:
            rate: see :meth:`trial`.
            streams: streams of each direction, with the members of ``streams`` in a configuration
                (docs/frames.md), instead of its own.
            stamps: every frame carries its send time, so that results have delays.
            progress_ms: age of :meth:`Traffic.counters` at most, 20 to 1000.
            conditions: of a trial. Those that change from part to part go to :meth:`Traffic.change`.

        Raises:
            ConfigError, PlanError, TesterError: see :func:`trial`.
        """
        given: dict[str, Any] = {
            "rate": rate,
            "streams": streams,
            "duration_s": LONGEST_TRAFFIC_S,
            "drain_s": 0.1,
            **conditions,
        }

        def plan(**changed: Any) -> Trial:
            given.update(changed)
            members = dict(given)
            intended, chosen = _rate(members.pop("rate")), members.pop("streams")
            with_streams = replace(self._ready, setup=_with_streams(self.setup, chosen)) if chosen else self._ready
            sized = Bench(with_streams)._sized(_conditions_of_trial(members))
            planned = with_streams.trial(sized, intended, next(self._numbers) % TRIAL_NUMBERS).alone()
            described = any(stream.frames for stream in planned.streams().values())
            return planned.model_copy(
                update={"progress_ms": progress_ms}
                | ({"stamping": Stamping.EVERY} if stamps else {})
                | ({"by_flow": True} if described else {})
            )

        started = Traffic(self._ready.tester, plan)
        self._traffic.append(started)
        started.begin()
        return started

    def close(self) -> None:
        """Stop all traffic."""
        for started in self._traffic:
            with suppress(TesterError):
                started.end()

    def _sized(self, conditions: Conditions) -> Conditions:
        """``conditions`` with frame sizes, checked against the test setup. Raises ConfigError if such
        traffic is impossible there."""
        sized = self._ready.sized(conditions)
        traffic.check(self.setup, sized)
        if (longest := traffic.longest_frame(sized)) > self._ready.max_frame_size and not self._ready.limited:
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
    with (
        testbench.bench(_source(lab, lab_options, config), longest=max_frame_size) as ready,
        closing(Bench(ready)) as made,
    ):
        yield made


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


@overload
def measure(
    procedure: Literal["ramp"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfRamp],
) -> Results: ...
@overload
def measure(
    procedure: Literal["load-latency"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfLoadLatency],
) -> Results: ...
@overload
def measure(
    procedure: Literal["soak"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfSoak],
) -> Results: ...
@overload
def measure(
    procedure: Literal["traffic"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfTraffic],
) -> Results: ...
@overload
def measure(
    procedure: Literal["establishment-rate"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfEstablishmentRate],
) -> Results: ...
@overload
def measure(
    procedure: Literal["table-capacity"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfTableCapacity],
) -> Results: ...
@overload
def measure(
    procedure: Literal["teardown-rate"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfTeardownRate],
) -> Results: ...
@overload
def measure(
    procedure: Literal["address-capacity"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfAddressCapacity],
) -> Results: ...
@overload
def measure(
    procedure: Literal["address-learning-rate"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfAddressLearningRate],
) -> Results: ...
@overload
def measure(
    procedure: Literal["address-ageing"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfAddressAgeing],
) -> Results: ...
@overload
def measure(
    procedure: Literal["broadcast"],
    out: StrPath | None = None,
    progress: Callback | None = None,
    **given: Unpack[parameters.OfBroadcast],
) -> Results: ...
def measure(procedure: str, out: StrPath | None = None, progress: Callback | None = None, **given: Any) -> Results:
    """Measure by a procedure, as ``dutperf PROCEDURE`` does: every trial goes to a journal, and only
    valid trials count.

    A procedure at the throughput (latency, delay variation, …) without ``rate`` and
    ``throughput_from`` measures the throughput first; the result then has both measurements.

    Args:
        procedure: its name: ``throughput``, ``frame-loss``, ``back-to-back``, ``latency``, ``pdv``,
            ``ipdv``, ``recovery``, ``reset``, ``ramp``, ``load-latency``, ``soak``, ``traffic``, those of
            connections (``establishment-rate``, …) and of switches (``address-capacity``, …).
        out: directory for journal and summary, which must not hold another run; default:
            ``results/DATE-TIME-PROCEDURE``.
        progress: called with a :class:`~dutperf.run.campaign.Status` before, about once a second
            during, and after each trial.
        given: ``lab``, ``lab_options`` and ``config`` as for :func:`bench`; the others are
            :class:`~dutperf.setup.conditions.Conditions` of the procedure. Rates are frames/s per
            direction, or texts as on the command line (``"10k"``, ``"12.5%"``); ``throughput_from`` may be
            the directory or the :class:`Results` of an earlier throughput run.

    Returns:
        The results in ``out``. Points of a DUT that forwards nothing have no number; points that the
        tester could not measure are ``limited_by`` the tester.

    Raises:
        ConfigError: unknown procedure or condition, invalid value, invalid configuration.
        PlanError: contradicting conditions, or a rate in % of an unknown maximum.
        LabError, TesterError: see :func:`bench`.
        JournalError: ``out`` holds another run, or cannot be written (WriteError). Finished trials
            are kept; :func:`resume` continues.
    """
    source, conditions = _split_source(given)
    definition = _definition(procedure)
    wanted = _conditions_of(definition, conditions)
    with testbench.bench(_source(**source), wanted) as ready, closing(Bench(ready)) as made:
        return made._measure(procedure, out, progress, conditions)


def trial(rate: Rate | str | float | None = None, **given: Unpack[parameters.OfTrial]) -> TrialResult:
    """Run one trial (RFC 2544 section 23) and judge it.

    Args:
        rate: per direction: frames/s, or a text as on the command line (``"10k"``, ``"12.5%"``);
            None: ``pattern`` has rates of its own (``"ramp:1k-100k"``).
        given: ``lab``, ``lab_options`` and ``config`` as for :func:`bench`; the others are
            :class:`~dutperf.setup.conditions.Conditions` of a trial.

    Returns:
        Verdict, causes, and the counts of each direction. If the verdict is not ``valid``, the trial
        says nothing about the DUT.

    Raises:
        ConfigError, PlanError, LabError, TesterError: see :func:`measure`.
    """
    source, conditions = _split_source(given)
    intended, longest = _rate(rate), traffic.longest_frame(_conditions_of_trial(conditions))
    with bench(**source, max_frame_size=longest) as ready:
        return ready.trial(intended, **conditions)


def open_result(directory: StrPath) -> Results:
    """Read the results of a run or a suite, measured by any interface; finished, interrupted, or under
    way. Nothing is changed.

    Raises:
        JournalError: there are no results, or they cannot be read.
    """
    return results.read(results.path_of(directory, "directory"))


def resume(directory: StrPath, progress: Callback | None = None, *, config: Config | None = None) -> Results:
    """Resume a run or a suite that was killed or interrupted, after its last finished trial, as
    ``dutperf resume`` does.

    ``config``: the configuration, if its file was moved or a program made it. Commands are taken from
    it, never from a journal.

    Raises:
        JournalError: there is nothing to resume, or the test setup or this version differs.
        ConfigError, LabError, PlanError, TesterError: see :func:`measure`.
    """
    begun = results.path_of(directory, "directory")
    resumption.resume(begun, lambda _measurements: nullcontext(_watch(progress)), _current(config))
    return results.read(begun)


def procedure_names() -> tuple[str, ...]:
    """The procedures of :func:`measure`."""
    return procedures.NAMES


def _split_source(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The source of the test setup, and the conditions."""
    return {name: value for name, value in given.items() if name in SOURCE}, {
        name: value for name, value in given.items() if name not in SOURCE
    }


def _source(
    lab: str | None = None, lab_options: Mapping[str, object] | None = None, config: Config | None = None
) -> Source:
    if not isinstance(lab, str | None):
        raise ParameterError(f"should be a name (it is {lab!r})", "lab")
    if not isinstance(lab_options, Mapping | None):
        raise ParameterError(f"should be a mapping of names to values (it is {lab_options!r})", "lab_options")
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


def _with_streams(setup: Setup, streams: Sequence[Mapping[str, Any]]) -> Setup:
    """``setup`` with other streams.

    Raises:
        ConfigError: a stream is not possible.
    """
    return configuration.parse({**configuration.as_json(setup), "streams": list(streams)}, origin="the streams")


def _definition(name: str) -> Definition:
    if name not in procedure_names():
        raise ConfigError(f"there is no procedure {name!r}; {_hint(str(name), procedure_names())}", "")
    return procedures.find(name)


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


def _rate(given: Rate | str | float | None) -> Rate | None:
    try:
        return None if given is None else Rate.model_validate(given)
    except ValidationError as error:
        raise ParameterError(invalid_member(error)[1], "rate") from None


def _hint(name: str, known: tuple[str, ...] | list[str]) -> str:
    nearest = get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(known)}"


def _invocation(procedure: str, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """For the journal: the call, without results of earlier runs."""
    return (
        "dutperf.measure",
        procedure,
        *(f"{name}={value}" for name, value in chosen.items() if not isinstance(value, Results)),
    )


class _Observer:
    def __init__(self, progress: Callback) -> None:
        self._progress = progress

    def update(self, status: Status) -> None:
        self._progress(status)


def _watch(progress: Callback | None) -> suite.Watch:
    observer = _Observer(progress or (lambda _status: None))

    def watch(_measurement: Measurement, _number: int) -> AbstractContextManager[Observer]:
        return nullcontext(observer)

    return watch
