# SPDX-License-Identifier: Apache-2.0
"""The test bench: the setup (a file, or a lab that exists during the measurement) and the engine on
it."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dutperf import dut, traffic
from dutperf.dut.row import DeviceOrRow
from dutperf.engine.factory import tester_on
from dutperf.invocation import command_line
from dutperf.journal import JournalError
from dutperf.machine.access import Machine, run
from dutperf.machine.timestamping import stamps_of
from dutperf.model import Load, Recording, Trial, TrialResult
from dutperf.run.campaign import Plan, PlanError
from dutperf.run.waiting import POLL_S
from dutperf.setup import configuration, ports
from dutperf.setup.changing_rate import is_changing
from dutperf.setup.conditions import Conditions, Rate, SingleTrial
from dutperf.setup.configuration import MEMORY_PORTS, NO_PORT, ConfigError, Offloads, ParameterError, Setup
from dutperf.tester import ProgressCallback, Tester, TesterError, calibration, phases
from dutperf.traffic import replayed, sizes
from dutperf.traffic.replayed import Replaying
from dutperf.watch.dut_core import yielding_to_the_dut

NOT_THERE = frozenset({"no_answer", "link_down"})
"""Codes of errors that a DUT which starts later explains."""
USUAL_FRAME_SIZE = 1518
"""Frame size that ports and cables support unless longer frames are asked for: an MTU of 1500,
which every interface has."""


def lab_option(value: object) -> str:
    """The text of a lab's option, of which none is a truth value. Raises ValueError: neither a number nor a text: what
    Python prints of it is no value of an option."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"should be a number or a text (it is {value!r})")
    return str(value)


@dataclass(frozen=True)
class Source:
    """Where the setup comes from: exactly one of a lab's name and a file."""

    lab: str | None
    lab_options: dict[str, str]
    file: Path | None
    recorded: Setup | None = None
    """The setup of a resumed run, or a program's own. It replaces the file, which may have changed
    or be missing, and has the media's speed."""
    queues: int | None = None
    """Of the engine's ports, instead of the setup's."""
    offloads: Offloads | None = None
    """Hardware offloads, instead of the setup's."""

    @classmethod
    def of(
        cls,
        name: str | None,
        lab_options: Mapping[str, str],
        file: Path | None,
        queues: int | None = None,
        offloads: Offloads | None = None,
    ) -> Source:
        """The source from the user's options. Raises ParameterError: both, neither, or options without a lab."""
        if (name is None) == (file is None):
            raise ParameterError("give either `lab` or `config`" + (", not both" if name else ""), "")
        if file is not None and lab_options:
            raise ParameterError("has no effect with `config`: leave it out, or give a lab", "lab_options")
        return cls(name, dict(lab_options), file, queues=queues, offloads=offloads)

    def sends_by_itself(self) -> bool:
        """Whether a trial needs no rate (:attr:`Setup.sends_by_itself`). No lab has streams. Raises ConfigError."""
        setup = self.recorded or (None if self.file is None else configuration.load(self.file))
        return setup is not None and setup.sends_by_itself

    def check(self) -> None:
        """Raises ConfigError or LabError where the file or the lab cannot be used, as far as that is known before."""
        if self.file is not None and self.recorded is None:
            configuration.load(self.file)
        if self.lab is not None:
            from dutperf import lab  # imported late: a configuration needs none of them

            lab.check(self.lab, self.lab_options)

    def with_lab_options(self, lab_options: Mapping[str, str]) -> Source:
        """The same lab with these options in place of, or beside, its own. Raises ParameterError: there is no lab."""
        if self.lab is None and lab_options:
            raise ParameterError("has no effect with `config`: leave it out, or give a lab", "lab_options")
        return replace(self, lab_options={**self.lab_options, **lab_options})

    @classmethod
    def of_plan(
        cls, source: Mapping[str, Any], config: Mapping[str, Any], current: Path | Setup | None = None
    ) -> Source:
        """The source of a run to resume, from the members of its plan. The commands that start the engine and set up
        the DUT, and the ports, are those of the present configuration: ``current``, or the file that the run began
        with. Raises ConfigError: that configuration cannot be used. Raises JournalError: the plan has no source, or one
        that this version cannot read; there is no such configuration, or it has other commands."""
        try:
            recorded = configuration.parse(dict(config), origin="the journal's configuration")
        except ConfigError as error:
            raise JournalError(f"the run cannot be resumed: its setup cannot be restored ({error})") from None
        if isinstance(source.get("lab"), str):
            return cls(
                source["lab"], source["lab_options"], None, recorded, recorded.engine.queues, recorded.engine.offloads
            )
        if isinstance(source.get("config"), str):
            path = current if isinstance(current, Path) else Path(source["config"])
            return cls(None, {}, path, _as_now(recorded, source.get("commands", []), path, current))
        raise JournalError("the run cannot be resumed: its journal does not say where its setup came from")

    def as_json(self, setup: Setup) -> dict[str, Any]:
        """The source for the journal; :meth:`of_plan` reads it."""
        if self.lab is not None:
            return {"lab": self.lab, "lab_options": self.lab_options}
        names = configuration.commands_of(setup)
        return {"config": str(self.file and self.file.absolute())} | ({"commands": names} if names else {})

    @contextmanager
    def setup(self, max_frame_size: int) -> Iterator[Setup]:
        """The setup, with its lab brought up, whose cables carry frames of ``max_frame_size``
        bytes."""
        if self.lab is None:
            yield self._with_engine(self.recorded or configuration.load(self._file()))
            return
        longer = {"max_frame_size": str(max_frame_size)} if max_frame_size > USUAL_FRAME_SIZE else {}
        from dutperf import lab  # imported late: a configuration needs none of them

        with lab.bring_up(self.lab, longer | self.lab_options) as mapping:
            setup = self._with_engine(configuration.parse(mapping, origin=f"lab {self.lab}"))
            yield setup if self.recorded is None else setup.model_copy(update={"media_mbps": self.recorded.media_mbps})

    @contextmanager
    def placing_errors(self) -> Iterator[None]:
        """Within, an error of a key of the configuration file names the file and the line, as one does that shows while
        it is read. One that may be gone later is the DUT's or the machine's."""
        try:
            yield
        except ConfigError as error:
            if type(error) is not ConfigError or error.origin or (place := self._place_of(error.key)) is None:
                raise
            raise ConfigError(error.message, error.key, origin=place[0], line=place[1]) from None
        except TesterError as error:
            if error.field and not error.is_temporary and (place := self._place_of(error.field)) is not None:
                error.place = f"{place[0]}, line {place[1]}" if place[1] else place[0]
            raise

    def _place_of(self, key: str) -> tuple[str, int | None] | None:
        """None: no file, or the key was given beside it."""
        beside = {"engine.queues": self.queues, "engine.offloads": self.offloads}
        if self.file is None or self.recorded is not None or beside.get(key) is not None:
            return None
        return configuration.place_of(key, self.file)

    def _with_engine(self, setup: Setup) -> Setup:
        given = {
            name: value for name, value in (("queues", self.queues), ("offloads", self.offloads)) if value is not None
        }
        return setup.model_copy(update={"engine": setup.engine.model_copy(update=given)}) if given else setup

    def _file(self) -> Path:
        assert self.file is not None, "without a lab there is a file or a setup"
        return self.file


_AS_NOW = ("command", "otg", "otg_certificate")
"""Settings of the engine that journals are not believed, or do not have."""


def _as_now(recorded: Setup, names: list[str], path: Path, current: Path | Setup | None) -> Setup:
    """The recorded setup with what starts programs and opens devices by the present configuration: a journal may come
    from anybody, and resume runs as root. Raises JournalError: there is no such configuration, anybody may have written
    it, or it differs."""
    starts_nothing = not recorded.engine.command and recorded.engine.otg is None
    if not names and starts_nothing and all(port in MEMORY_PORTS for port in _ports(recorded)):
        return recorded
    if not isinstance(current, Setup):
        _check_trusted(path, is_named=current is not None)
        current = configuration.load(path)
    if configuration.commands_of(current) != names:
        raise JournalError(
            f"the run cannot be resumed: {path} has other commands for the DUT than the run had"
            f" ({', '.join(names) or 'none'})"
        )
    if _ports(recorded) not in (_ports(current), _ports(ports.by_packet_sockets(current))):
        raise JournalError(
            f"the run cannot be resumed: {path} has other ports than the run had ({', '.join(_ports(recorded))})"
        )
    engine = recorded.engine.model_copy(update={name: getattr(current.engine, name) for name in _AS_NOW})
    if len(recorded.duts()) != len(current.duts()):
        raise JournalError(f"the run cannot be resumed: {path} has another number of DUTs than the run had")
    duts = tuple(
        was.model_copy(update={"commands": now.commands})
        for was, now in zip(recorded.duts(), current.duts(), strict=True)
    )
    return recorded.model_copy(update={"engine": engine, "dut": duts if len(duts) > 1 else duts[0]})


def _ports(setup: Setup) -> list[str]:
    return [side.port for side in setup.sides().values()]


def _check_trusted(path: Path, *, is_named: bool) -> None:
    """Raises JournalError unless the configuration is there, and is this user's or root's, or was named by the user."""
    try:
        about = path.stat()
    except OSError:
        about = None
    if about is None or not path.is_file():
        raise JournalError(
            f"the run cannot be resumed: journals do not keep its commands, nor are their ports believed, and {path} is"
            " not a file: give the configuration (`config`)"
        )
    users = (0, os.geteuid(), int(os.environ.get("SUDO_UID", "0")))
    if not is_named and (about.st_uid not in users or about.st_mode & stat.S_IWOTH):
        raise JournalError(
            f"the run cannot be resumed: its journal names {path}, which another user may have written: if it is yours,"
            " give it (`config`)"
        )


@dataclass(frozen=True)
class Bench:
    """A bench that is ready to measure: the DUT is set up and has answered, the engine runs, its
    ports are open."""

    setup: Setup
    tester: Tester
    source: Source
    invocation: Sequence[str] = ("dutperf", *command_line(sys.argv[1:]))
    """The user's command line, for the journal."""
    max_frame_size: int = USUAL_FRAME_SIZE
    """The longest frame that its ports and cables support, in bytes incl. FCS."""
    limited: str = ""
    """Why it is not the longest one of the conditions."""

    @property
    def dut(self) -> DeviceOrRow:
        """What can be asked of the DUT."""
        return dut.of_setup(self.setup)

    def run(self, planned: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        return phases.run(self.tester, planned, on_progress, dut=self.dut, timeout_s=self.setup.stateful.timeout_s)

    def plan(self, conditions: Conditions) -> Plan:
        """The plan of a measurement under ``conditions``, which have their frame sizes."""
        kind = traffic.of(self.setup, conditions)
        return Plan(
            traffic=kind,
            conditions=conditions,
            too_long=lambda case: self._too_long(kind.longest_frame(case)),
            dut=self.dut,
            config=configuration.as_json(self.setup),
            invocation=self.invocation,
            source=self.source.as_json(self.setup),
            calibration=calibration.find(self.tester.environment()),
        )

    def _too_long(self, size: int) -> str | None:
        if size <= self.max_frame_size:
            return None
        return f"the tester's ports take frames of up to {self.max_frame_size:,} bytes ({self.limited})"

    @contextmanager
    def modified(self, conditions: Conditions) -> Iterator[Bench]:
        """Within, the DUT has the filters of the modifiers. Raises ConfigError: the DUT's command failed, or this lab's
        DUT has none."""
        filters, device = conditions.every.modified_by.filters, self.dut
        if filters is not None and self.source.lab is not None and not device.can("filters"):
            raise ParameterError(f"lab {self.source.lab} has no filters", "modifiers")
        with device.filtered(filters) as described:
            yield replace(self, setup=self.setup.model_copy(update={"dut": described}))

    def sized(self, conditions: Conditions) -> Conditions:
        return traffic.of(self.setup, conditions).sized()

    def replay(self, recording: Recording, conditions: Replaying, number: int) -> Trial:
        """The trial that sends the frames of a capture."""
        replayed.check_direction(conditions.directions, self.setup)
        replayed.check_streams(recording, conditions, self.setup)
        made = replayed.trial_of(recording, conditions, number, self.setup.media_mbps)
        if not self.setup.other_streams():
            return made
        as_long = SingleTrial().model_copy(update={"duration_s": made.duration_s})
        beside = traffic.of(self.setup, self.sized(as_long))
        return made.model_copy(update={"other_streams": beside.others.streams(beside.conditions.frame_sizes[0])})

    def trial(self, conditions: Conditions, rate: Rate | None, number: int) -> Trial:
        """A single trial at ``rate`` under ``conditions``, which have one frame size; None: the traffic pattern, or
        each stream of the configuration, has rates of its own. Raises PlanError: several frame sizes, no rate or two,
        one that the media cannot carry, or a rate in % of an unknown maximum."""
        check_one_size(conditions)
        check_one_rate(conditions, rate, sends_by_itself=self.setup.sends_by_itself)
        kind = traffic.of(self.setup, self.sized(conditions))
        [case] = kind.cases()
        own_rates = kind.own_rates(case)
        if own_rates is not None:
            return kind.trial(case, Load.fps(own_rates.mean_fps), number)
        if rate is None:
            return kind.trial_of_others(case, number)
        try:
            load = Load.fps(rate.offered_fps(kind.maximum_fps(case)))
        except ValueError as error:
            raise PlanError(str(error), option="rate") from None
        return kind.trial(case, load, number)


def check_one_rate(conditions: Conditions, rate: Rate | None, *, sends_by_itself: bool) -> None:
    """Raises PlanError unless the trial has a rate, its traffic pattern has rates of its own, or its streams have."""
    if rate is None and sends_by_itself:
        return
    if (rate is None) != is_changing(conditions.every.pattern):
        text = (
            "is missing: give the rate per direction"
            if rate is None
            else f"does not go with the pattern {conditions.every.pattern}, which has rates of its own: leave it out"
        )
        raise PlanError(text, option="rate")


def check_one_size(conditions: Conditions) -> None:
    """Raises PlanError where ``conditions`` have several frame sizes."""
    if len(conditions.every.frame_sizes) > 1:
        raise PlanError("a trial has one frame size: give one", option="frame_sizes")
    if conditions.every.series is not None:
        raise PlanError("a trial has one frame size, not a series: give one", option="frame_sizes")


Say = Callable[[str], None]
"""Tells a person what a command waits for."""


def opened(tester: Tester, patience_s: float, say: Say | None = None) -> dict[str, Any]:
    """The tester's environment, with its ports open. Within ``patience_s`` they are opened again if the DUT does not
    answer, or a link is down; ``say`` is told of that once. Raises TesterError: they cannot be opened."""
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            return tester.environment()
        except TesterError as error:
            if error.code not in NOT_THERE or time.monotonic() >= deadline_s:
                raise
            if say is not None:
                say(f"{f'{error.field}: ' if error.field else ''}{error}: waiting, {patience_s:g} s at most")
                say = None
            time.sleep(min(POLL_S, max(0.0, deadline_s - time.monotonic())))


@contextmanager
def in_place(source: Source, max_frame_size: int = USUAL_FRAME_SIZE) -> Iterator[Setup]:
    """The setup of ``source``, with its lab and its DUT brought up, for others than measurements. Raises ConfigError,
    LabError: it cannot be brought up; nothing is left behind."""
    with (
        source.placing_errors(),
        source.setup(max_frame_size) as setup,
        dut.of_setup(setup).in_place(),
        yielding_to_the_dut(),
    ):
        yield setup


@contextmanager
def bench(source: Source, *conditions: Conditions, longest: int = 0, say: Say | None = None) -> Iterator[Bench]:
    """A bench on which each of ``conditions`` can be measured, and any with frames of up to ``longest`` bytes incl.
    FCS. Cases with frames that are too long for the tester's own ports are left out, unless that leaves none. Raises
    ConfigError, LabError, TesterError: it cannot be brought up; nothing is left behind."""
    asked = max(0, longest, *map(sizes.longest_frame, conditions))
    needed = max(longest, min(map(sizes.shortest_case, conditions), default=0))
    with in_place(source, max(USUAL_FRAME_SIZE, asked)) as setup:
        for one in conditions:
            traffic.of(setup, traffic.of(setup, one).sized()).check()
        setup = _as_stamped(setup, {one.every.stamped_by for one in conditions})
        of_streams, longer = setup.longest_of_streams, setup.tunnel_overhead
        asked, needed = max(asked, of_streams) + longer, max(needed, of_streams) + longer
        patience_s = max((one.every.dut_patience_s for one in conditions), default=0.0)
        with _engine_for(setup, asked, needed, lambda tester: opened(tester, patience_s, say)) as (
            tester,
            size,
            limited,
        ):
            yield Bench(
                ports.with_media(setup, tester.environment()), tester, source, max_frame_size=size, limited=limited
            )


def _as_stamped(setup: Setup, stamps: Collection[str | None]) -> Setup:
    """``setup`` with ports on which kernel or cards can time frames, if they are to."""
    chosen = "auto" in stamps and _kernel_times_all(setup)
    return ports.by_packet_sockets(setup) if chosen or {"kernel", "card"}.intersection(stamps) else setup


def _kernel_times_all(setup: Setup) -> bool:
    """Whether all ports can be packet sockets, and their drivers let the kernel time frames, or it is not known."""
    namespace = [] if setup.engine.netns is None else ["ip", "netns", "exec", setup.engine.netns]
    machine = Machine(run=lambda argv: run([*namespace, *argv]))
    sockets = [side.port for side in ports.by_packet_sockets(setup).sides().values() if side is not NO_PORT]
    names = [port.removeprefix(ports.PACKET_SOCKET) for port in sockets if port.startswith(ports.PACKET_SOCKET)]
    return len(names) == len(sockets) and all(
        offered is None or offered.by_kernel for name in names for offered in (stamps_of(machine, name),)
    )


@contextmanager
def _engine_for(
    setup: Setup, asked: int, needed: int, open_ports: Callable[[Tester], Any]
) -> Iterator[tuple[Tester, int, str]]:
    """The engine with its ports open for usual frames and for those of ``asked`` bytes, or for the longest that they
    take, but at least ``needed`` bytes; that length, and what limits it.

    Ports that do not take the frames that were asked for are opened for just those once, so that the message names
    them.
    """
    wanted, limited = max(USUAL_FRAME_SIZE, asked), ""
    while True:
        with tester_on(setup, wanted) as tester:
            try:
                open_ports(tester)
            except TesterError as error:
                longest = error.max_frame_size
                if longest is None or longest >= wanted or (wanted <= asked and longest < needed):
                    raise _of_tunnel(error, setup.tunnel_overhead) from None
                if longest < asked < wanted:
                    wanted = asked
                else:
                    wanted, limited = longest, f"{error.field}: {error}"
                continue
            yield tester, wanted, limited
            return


def _of_tunnel(error: TesterError, overhead: int) -> TesterError:
    """The error of a port that does not take such long frames, with what the user gives: sizes without the tunnel."""
    if not overhead or error.max_frame_size is None:
        return error
    fit = error.max_frame_size - overhead
    text = f"{error} (with the {overhead} bytes of the tunnel: frame sizes of up to {fit})"
    return TesterError(text, code=error.code, field=error.field, max_frame_size=error.max_frame_size)
