# SPDX-License-Identifier: Apache-2.0
"""The real tester: drives ``dutperf-engine``, a separate process (protocol/README.md). It is started
once and runs many trials.

If the engine dies or hangs, the trial is aborted; no frames count as lost. The next trial starts a
new engine.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from dutperf import installation, invocation
from dutperf.engine.process import EngineDied, EngineProcess, EngineTimeout
from dutperf.judge.answered import with_answers
from dutperf.judge.own_loss import measured
from dutperf.judge.rules import BURSTS, LATE
from dutperf.judge.setup_faults import CHANGED
from dutperf.judge.unanswered import Finding, Unrelated, asked_for, finding_of, lasting, probe_of
from dutperf.judge.unasked import with_unasked
from dutperf.judge.validity import DUT_DISTURBED, OF_A_WHOLE_TRIAL, doubts, hopeless, judge, proven_failed
from dutperf.machine.programs import find_program
from dutperf.model import (
    LEFT_AND_RIGHT,
    CaptureWritten,
    Cause,
    ConnectionCounts,
    Direction,
    DirectionCounts,
    InSum,
    LinkState,
    NeighbourEvidence,
    PortState,
    ServerCounts,
    SoFar,
    Stream,
    Trial,
    TrialResult,
    Verdict,
    members_of,
)
from dutperf.model.wording import Wording
from dutperf.setup.configuration import LINK_TIMEOUT_S, EngineSettings
from dutperf.setup.ports import other_streams
from dutperf.spelling import with_and
from dutperf.tester import EndTrial, Progress, ProgressCallback, TesterError
from dutperf.tester.ended import until_its_end
from dutperf.watch import neighbours
from dutperf.watch.core_choice import CoreChoice
from dutperf.watch.dut_core import UNSEEN_SHARE, DutWatch, Sending, Starvation, keeping_off

PROTOCOL = 1
PROGRAM = "dutperf-engine"
VARIABLE = "DUTPERF_ENGINE"
"""Environment variable with the path of another engine than the one built or installed here."""
_LONGEST_NAME = 40
CLOCKS_DRIFT = 500e-6
"""The kernel corrects its clock by no more than this, and the engine's is the processor's."""
NETNS_DIRECTORY = Path("/run/netns")
_CAP_SYS_ADMIN = 21
_REASON = TypeAdapter[str | None](str | None)
_PORT_CHANGES = TypeAdapter(dict[str, str])
LOOPS = ("dutperf-engine",)
"""Names of the threads that the tester's cores are for."""
HELD_UP = frozenset({BURSTS, LATE, "receiver_stall", "sending_time", "unsent"}), frozenset({DUT_DISTURBED})
"""Codes of causes that other processes on the tester's cores may explain, and on the DUT's."""
_report_ms: ContextVar[int | None] = ContextVar("report_ms", default=None)


@dataclass(frozen=True)
class Patience:
    """How long the engine may take, in seconds."""

    start_s: float = 20.0
    """To answer ``hello``."""
    open_s: float = 60.0
    """To open the ports, ARP and NDP included: huge pages are cleared first."""
    answer_s: float = 20.0
    """To send the next event of a trial; events come about once a second."""
    trial_s: float = 60.0
    """For a trial, in addition to its sending and draining."""
    stop_s: float = 2.0
    """To end a trial after ``stop``."""


@dataclass
class _Watch:
    """Watches whether a running trial can still become valid, if it may be ended early."""

    trial: Trial
    progress: list[Progress] = field(default_factory=list)
    causes: tuple[Cause, ...] = ()
    ended_s: float | None = None
    """When the trial was ended early, in seconds after the start of sending."""
    wanted_s: float | None = None
    """When the user ended the trial, likewise."""
    earliest_s: float = -math.inf
    """When sending began, at the earliest, by :func:`time.monotonic`: when the engine was asked for it..."""
    latest_s: float = math.inf
    """... and at the latest: progress arrives with a delay, and a long one on a busy machine."""

    def ask(self) -> None:
        """Call this just before the engine is asked for the trial."""
        self.earliest_s = time.monotonic() + (self.trial.rest_ns or 0) / 1e9

    def note_time(self, elapsed_s: float) -> None:
        """An event has just arrived that says for how long frames had been sent."""
        self.latest_s = min(self.latest_s, time.monotonic() - (1 - CLOCKS_DRIFT) * elapsed_s)

    def note_began(self, began_s: float) -> None:
        """The engine says when sending began. Another clock than this one cannot be right."""
        if self.earliest_s <= began_s <= self.latest_s:
            self.earliest_s = self.latest_s = began_s

    def sending(self) -> Sending | None:
        """When frames were sent; None where no progress came."""
        if not math.isfinite(self.latest_s):
            return None
        sent_s = next((one for one in (self.ended_s, self.wanted_s) if one is not None), self.trial.duration_s)
        return Sending(min(self.earliest_s, self.latest_s), self.latest_s, sent_s)

    def is_hopeless(self, progress: Progress) -> bool:
        """Whether this ``progress`` shows for the first time that the trial cannot become valid."""
        if (
            not self.trial.question.may_end_early
            or self.ended_s is not None
            or progress.elapsed_s >= self.trial.duration_s
        ):
            return False
        self.progress.append(progress)
        self.causes = hopeless(
            self.trial, progress.directions, progress.link_down, self._lost(progress), progress.port_changes
        )
        self.ended_s = progress.elapsed_s if self.causes else None
        return bool(self.causes)

    def _lost(self, now: Progress) -> dict[Direction, int]:
        """Frames that were sent longer ago than the drain lasts and have not arrived."""
        old = [one for one in self.progress if now.elapsed_s - one.elapsed_s >= self.trial.drain_ns / 1e9]
        if not old:
            return {}
        return {
            direction: old[-1].directions[direction].sent - one.received for direction, one in now.directions.items()
        }


@dataclass(frozen=True)
class _Facts:
    """What a result is made of."""

    watch: _Watch
    event: dict[str, Any]
    starvation: Starvation
    others: tuple[str, ...]


@dataclass(frozen=True)
class _Judged:
    """A result; without ``facts`` the engine ended in the trial."""

    result: TrialResult
    facts: _Facts | None = None

    def without(self, unrelated: Unrelated) -> TrialResult:
        """The result if the DUT had not asked for these addresses."""
        assert self.facts is not None
        facts = self.facts
        return _with_others(_result(facts.watch, facts.event, facts.starvation, unrelated), facts.others)


def check_namespace(netns: str, key: str) -> None:
    """Raises TesterError, for the key of the configuration that names it, where this machine has no such network
    namespace."""
    if not (NETNS_DIRECTORY / netns).exists():
        raise TesterError(f"there is no network namespace {netns}", code="netns", field=key)


@dataclass(frozen=True)
class EngineCommand:
    """How the engine is started: ``[*prefix, ip netns exec NETNS, PROGRAM]``."""

    program: str
    prefix: tuple[str, ...] = ()
    netns: str | None = None

    @classmethod
    def find(cls, prefix: Sequence[str] = (), netns: str | None = None) -> Self:
        """The command with the engine that was built here: $DUTPERF_ENGINE, else that of this source tree, else the one
        on the PATH (with a prefix: on the PATH of that host). Raises TesterError: there is no engine, or the network
        namespace does not exist or may not be entered."""
        if not prefix and netns is not None:
            check_namespace(netns, "engine.netns")
        if not prefix and netns is not None and not may_enter_namespaces():
            text = f"only root may enter the network namespace {netns} (CAP_SYS_ADMIN): {invocation.as_root()}"
            raise TesterError(text, code="no_privilege", field="engine.netns")
        return cls(_program(bool(prefix)), tuple(prefix), netns)

    def argv(self) -> list[str]:
        namespace = [] if self.netns is None else ["ip", "netns", "exec", self.netns]
        return [*self.prefix, *namespace, self.program]


def _program(elsewhere: bool) -> str:
    """Path of the engine. ``elsewhere``: another command runs it, so the name alone will do."""
    found = find_program(PROGRAM, VARIABLE)
    if elsewhere:
        return found or PROGRAM
    if found is None:
        raise TesterError(f"there is no {PROGRAM}: {installation.engine()}", code="no_engine")
    if shutil.which(found) is None:
        raise _no_engine(f"{found} is not an executable program")
    return found


def _no_engine(text: str) -> TesterError:
    return TesterError(text, code="no_engine", field=VARIABLE if VARIABLE in os.environ else None)


def engine_version(program: str) -> str:
    """What the engine says of itself: its version, DPDK's, and the instructions that it is built for. Raises
    TesterError: it does not start here."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _no_engine(f"{program} does not start: {error}") from error
    if done.returncode != 0:
        raise _no_engine(f"{program} does not start: {' '.join(done.stderr.split())}")
    name, _, version = done.stdout.strip().partition(" ")
    if name != PROGRAM:
        said = name[:_LONGEST_NAME] or "nothing"
        raise _no_engine(f"{program} is no {PROGRAM}: as its version it says {said!r}")
    return version


class EngineTester:
    """A :class:`dutperf.tester.Tester`. The engine starts when it is first needed. It ends
    with the ``with`` block or :meth:`close`.

    ``open_parameters``: the parameters of the request ``open``.
    """

    def __init__(
        self,
        command: EngineCommand,
        open_parameters: dict[str, Any],
        patience: Patience | None = None,
        *,
        choice: CoreChoice | None = None,
    ) -> None:
        self._choice = choice
        self._dut_watch: DutWatch | None = None
        self._command = command
        self._open_parameters = open_parameters
        self._patience = patience or Patience()
        self._link_s = open_parameters.get("link_timeout_ms", LINK_TIMEOUT_S * 1000) / 1000
        self._process: EngineProcess | None = None
        self._environment: dict[str, Any] = {}
        self._last_id = 0
        self._unrelated = Unrelated()
        self._loaded: str | None = None
        """Digest of the list of frames that the engine has."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def environment(self) -> dict[str, Any]:
        """The engine, its ports and its cores: the members of ``hello`` and ``opened`` together."""
        self._running()
        return dict(self._environment)

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """On KeyboardInterrupt the trial is stopped, then
        the exception is raised again."""
        judged = self._run(trial, on_progress)
        result = with_unasked(self._explained(trial, judged), trial, self._open_parameters)
        self._unrelated.note(result)
        return result

    def _explained(self, trial: Trial, judged: _Judged) -> TrialResult:
        """The result, after a few more frames if the test setup may be why frames were lost."""
        probe = probe_of(trial, judged.result)
        if probe is None:
            return judged.result
        probed = self._run(probe, None).result
        self._unrelated.note(probed)
        result = judged.result
        if finding_of(result, probed) is Finding.UNRELATED:
            result = judged.without(Unrelated(self._unrelated.known | asked_for(result)))
        return _lasting(result, probe, lasting(trial, result, probed))

    def _run(self, trial: Trial, on_progress: ProgressCallback | None) -> _Judged:
        process = self._running_with(other_streams(trial.other_streams or ()))
        watch = _Watch(trial)
        try:
            if self._dut_watch is not None:
                with keeping_off(self._busy_cores()):
                    self._dut_watch.begin(trial.duration_s)
            self._give_frames(process, trial)
            around = self._load()
            watch.ask()
            params = with_answers(_reported(trial).request(), trial, self._open_parameters)
            request = self._send(process, "run", params=params)
            event = self._until_result(process, request, watch, on_progress)
            if self._is_here():
                watch.note_began(_began_s(event))
        except EngineDied as death:
            self._abandon()
            return _Judged(_aborted(trial, str(death)))
        except EngineTimeout as timeout:
            last = process.errors()[-1:]
            self._abandon()
            text = f"{timeout} and was killed" + (f"; its last output: {last[0]}" if last else "")
            return _Judged(_aborted(trial, text))
        finally:  # also ends the watch of a trial that failed
            starvation = self._starvation(watch)
        result = _result(watch, event, starvation, self._unrelated)
        others = () if around is None or result.verdict is Verdict.VALID else self._load_of_others(around)
        return _Judged(_with_others(result, others), _Facts(watch, event, starvation, others))

    def _give_frames(self, process: EngineProcess, trial: Trial) -> None:
        """Give the engine the list of frames that the trial replays, unless it has it."""
        for stream in trial.all_streams().values():
            if stream.replay is None or stream.replay.sha256 == self._loaded:
                continue
            if stream.replay.recording is None:
                raise TesterError("the frames of the replay are not here: read its capture again", code="bad_request")
            self._loaded = None
            for params in stream.replay.recording.loads():
                self._answer(process, self._send(process, "load", params=params), self._patience.answer_s)
            self._loaded = stream.replay.sha256

    def wait_until_quiet(self, limit_s: float) -> float:
        self._running()
        if not self._own_cores():
            return 0.0
        return neighbours.wait_until_quiet(self._own_cores(), limit_s, LOOPS)

    def _own_cores(self) -> tuple[int, ...]:
        """The cores of the loops; none if the engine is on another machine."""
        return tuple(sorted(set(self._environment.get("roles", {}).values()))) if self._is_here() else ()

    def _busy_cores(self) -> tuple[int, ...]:
        """The cores of the loops and of a DUT on this machine."""
        return (*self._own_cores(), *self._choice.dut_cores) if self._choice and self._is_here() else ()

    def _is_here(self) -> bool:
        """Whether the engine is certainly on this machine."""
        return self._choice is not None and self._choice.is_here

    def _load(self) -> neighbours.Load | None:
        return neighbours.reading(self._busy_cores()) if self._own_cores() else None

    def _load_of_others(self, around: neighbours.Load) -> tuple[str, ...]:
        """Of those who had the cores of the tester since ``around``, and those of the DUT."""
        dut = () if self._choice is None or self._dut_watch is None else self._choice.dut_cores
        pids = () if self._dut_watch is None else self._dut_watch.pids
        busy = self._busy_cores()
        own, now = set(busy) - set(dut) or set(busy), neighbours.reading(busy)
        return neighbours.on_testers(around, now, own, LOOPS), neighbours.on_duts(around, now, dut, pids)

    def _starvation(self, watch: _Watch) -> Starvation:
        """CPU time that a DUT on this machine did not get during the trial."""
        if self._dut_watch is not None:
            return self._dut_watch.starvation(watch.sending())
        is_here = self._choice is not None and bool(self._choice.why)
        return Starvation(unseen_s=UNSEEN_SHARE * watch.trial.duration_s) if is_here else Starvation()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            try:
                process.close()
            except EngineTimeout as alive:
                raise TesterError(str(alive), code="no_engine") from None
            except BaseException:
                process.stop()
                raise

    def _running_with(self, others: list[dict[str, Any]]) -> EngineProcess:
        """The engine, opened again if it does not know these streams: those of a script may change."""
        known = [{**one, "also_to": None} for one in self._open_parameters.get("other_streams", [])]
        if any({**one, "also_to": None} not in known for one in others):
            self.close()
            self._open_parameters = self._open_parameters | {"other_streams": others}
        return self._running()

    def _running(self) -> EngineProcess:
        """The engine with its ports open; starts it if necessary."""
        if self._process is None:
            self._process, self._loaded = self._start(), None
            try:
                self._environment = self._open(self._process)
                if self._choice is not None:
                    cores = self._choice.watched(self._environment)
                    self._dut_watch = None if cores is None else DutWatch(cores)
                    self._environment |= self._choice.stated(self._environment)
            except (EngineDied, EngineTimeout) as failure:
                self._abandon()
                raise TesterError(f"the engine did not start: {failure}", code="no_engine") from None
            except BaseException:
                self._abandon()
                raise
        return self._process

    def _start(self) -> EngineProcess:
        argv = self._command.argv()
        try:
            return EngineProcess(argv)
        except OSError as error:
            raise TesterError(
                f"cannot start {argv[0]}: {error.strerror}",
                code="no_engine",
                field="engine.command" if self._command.prefix else None,
            ) from None

    def _open(self, process: EngineProcess) -> dict[str, Any]:
        hello = self._answer(process, self._send(process, "hello"), self._patience.start_s)
        if hello.get("protocol") != PROTOCOL:
            raise TesterError(
                f"{self._command.program} speaks protocol {hello.get('protocol')}, this version needs {PROTOCOL}: build"
                " both again",
                code="no_engine",
            )
        request = self._send(process, "open", params=self._open_parameters)
        try:
            opened = self._answer(process, request, self._patience.open_s + self._link_s)
        except TesterError as error:
            raise _without_gateway(error, self._open_parameters) from None
        return _members(hello) | _members(opened)

    def _send(self, process: EngineProcess, method: str, **members: Any) -> int:
        self._last_id += 1
        process.send({"id": self._last_id, "method": method, **members})
        return self._last_id

    def _answer(self, process: EngineProcess, request: int, timeout_s: float) -> dict[str, Any]:
        """The event that answers ``request``. Answers to older requests (of an abandoned trial) are
        skipped."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            event = process.receive(deadline_s - time.monotonic())
            if event.get("event") == "error" and event.get("id") in (request, None):
                raise _tester_error(event, self._command.netns)
            if event.get("id") == request:
                return event

    def _until_result(
        self, process: EngineProcess, request: int, watch: _Watch, on_progress: ProgressCallback | None
    ) -> dict[str, Any]:
        trial = watch.trial
        grace_s = max((one.grace_ns or 0 for one in trial.all_streams().values()), default=0) / 1e9
        limit_s = time.monotonic() + trial.whole_s + grace_s + self._patience.trial_s + self._link_s
        answer_s = (
            self._patience.answer_s + self._link_s + (trial.rest_ns or 0) / 1e9
        )  # the engine reports nothing before the first frame is due
        try:
            while True:
                with keeping_off(self._busy_cores()):  # not the commands that ``on_progress`` starts
                    event = self._answer(process, request, min(answer_s, limit_s - time.monotonic()))
                if event["event"] != "progress":
                    return event
                progress = _progress(event)
                watch.note_time(progress.elapsed_s)
                if watch.is_hopeless(progress):
                    self._send(process, "stop", params={"drain": True})
                if on_progress is not None and watch.wanted_s is None:
                    try:
                        on_progress(progress)
                    except EndTrial:
                        watch.wanted_s = progress.elapsed_s
                        self._send(process, "stop", params={"drain": True})
        except (EngineDied, EngineTimeout, TesterError):
            raise
        except BaseException:  # an interruption, or an error in ``on_progress``
            self._stop(process, request)
            raise

    def _stop(self, process: EngineProcess, request: int) -> None:
        """Stop the running trial and wait briefly for its end: the engine is closed next anyway."""
        try:
            self._send(process, "stop")
            while self._answer(process, request, self._patience.stop_s)["event"] == "progress":
                pass
        except (EngineDied, EngineTimeout, TesterError):
            self._abandon()

    def _abandon(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(EngineTimeout):  # the user needs the first error, not this one
                process.stop()


def _members(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("id", "event")}


def may_enter_namespaces(status: Path = Path("/proc/self/status")) -> bool:
    """Whether this process may enter a network namespace (setns(2))."""
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return bool(int(lines.get("CapEff", "0"), 16) >> _CAP_SYS_ADMIN & 1)


def _tester_error(event: dict[str, Any], netns: str | None) -> TesterError:
    """``netns``: the network namespace where the engine runs; None: that of whoever started it."""
    field, text = event.get("field"), str(event.get("message"))
    if netns is not None:
        text = text.replace("ip link set", f"ip -n {netns} link set")  # to be typed where dutperf was
    if event.get("code") == "port_away" and netns is not None:
        text = f"{text} (engine.netns: {netns})"
    elif netns is None and text.endswith("in this network namespace"):
        text = f"{text}; engine.netns: NAME names another one"
    name = field and str(field).removeprefix("params.")
    if name and name.partition(".")[0] in EngineSettings.model_fields:
        name = f"engine.{name}"
    return TesterError(
        text,
        code=str(event.get("code")),
        field=name,
        max_frame_size=event.get("max_frame_size"),
    )


def _without_gateway(error: TesterError, opened: Mapping[str, Any]) -> TesterError:
    """The error, with the gateway that did not answer and what to check, if it is about one; ``opened``: what the
    engine was asked to open."""
    side, _, key = (error.field or "").partition(".")
    members = opened.get(side)
    address = members.get(key) if isinstance(members, Mapping) else None
    if error.code != "no_answer" or address is None:
        return error
    text = (
        f"{error}. Nobody has {address} at the {side} port ({opened[side]['port']}): check {error.field}, the DUT's own"
        " address there, and that the ports and their cables are not exchanged"
    )
    return TesterError(text, code=error.code, field=error.field)


@contextmanager
def reporting_every(milliseconds: int | None) -> Iterator[None]:
    """Within, trials report their counts so often, if they do not say how often; None: as without this."""
    former = _report_ms.set(milliseconds)
    try:
        yield
    finally:
        _report_ms.reset(former)


def _reported(trial: Trial) -> Trial:
    every_ms = _report_ms.get()
    return trial if trial.progress_ms or not every_ms else trial.model_copy(update={"progress_ms": every_ms})


def _progress(event: dict[str, Any]) -> Progress:
    try:
        directions = {direction: SoFar.model_validate(one) for direction, one in _by_path(event).items()}
        down = LinkState.model_validate(event.get("link_down", {"left": False, "right": False}))
        port_changes = _PORT_CHANGES.validate_python(event.get("port_changes", {}))
    except ValidationError as error:
        raise TesterError(f"the engine's progress event violates the protocol: {error}") from None
    own = measured(directions).values()
    sent, received = (sum(getattr(one, name) for one in own) for name in ("sent", "received"))
    return Progress(event["elapsed_s"], sent, received, directions, down, port_changes)


def _by_path(event: dict[str, Any]) -> dict[Direction, Any]:
    """The members of an event that are of paths: those of left and right, or in ``paths``; and of streams beside
    them."""
    members = event.get("paths", {name: event[name] for name in LEFT_AND_RIGHT if name in event})
    return {Direction(name): one for name, one in (members | event.get("other_streams", {})).items()}


def _began_s(event: dict[str, Any]) -> float:
    """When sending began, by the clock of the engine's machine."""
    began_s = event.get("began_s")
    if not isinstance(began_s, int | float):
        raise TesterError(f"the engine's result event violates the protocol: its began_s is {began_s!r}")
    return began_s


def _result(watch: _Watch, event: dict[str, Any], missed: Starvation, unrelated: Unrelated) -> TrialResult:
    """The result with its verdict. Raises TesterError: the engine's event violates the protocol, or is of another
    trial."""
    trial = watch.trial
    try:
        by_path = _by_path(event)
        if set(by_path) != set(trial.all_streams()):
            raise ValueError("it is of another trial")
        counts = {
            direction: _with_names(DirectionCounts.model_validate(by_path[direction]), stream)
            for direction, stream in trial.all_streams().items()
        }
        changes = PortState.model_validate(event["link_changes"])
        links: dict[str, Any] = {
            name: LinkState.model_validate(event[name]) for name in ("link_up", "link_down", "dut_answered")
        }
        completed = {"completed": True, "stopped": False}[event["outcome"]]
        if watch.wanted_s is not None and not completed:
            (trial, counts), completed = until_its_end(trial, counts), True
        seen = {
            port: NeighbourEvidence.model_validate(one) for port, one in event.get("neighbours", {}).items()
        } or None
        port_changes = _PORT_CHANGES.validate_python(event.get("port_changes", {})) or None
        loop_stamps_because = _REASON.validate_python(event.get("loop_stamps_because"))
        in_sum = None if "in_sum" not in event else InSum.model_validate(event["in_sum"])
        capture = None if "capture" not in event else CaptureWritten.model_validate(event["capture"])
        connections = None if "connections" not in event else ConnectionCounts.model_validate(event["connections"])
        server = None if "server" not in event else ServerCounts.model_validate(event["server"])
        if event["trial"] != trial.trial:
            raise ValueError("it is of another trial")
    except (KeyError, ValueError, ValidationError) as error:
        raise TesterError(f"the engine's result event violates the protocol: {error}") from None
    verdict, causes = judge(trial, counts, missed, links["link_down"], unrelated.without(seen), port_changes, server)
    ended_s = None if completed else watch.ended_s
    if ended_s is not None:
        verdict, causes = _ended_early(watch.causes, causes)
    elif not completed:
        verdict, causes = _stopped()
    return TrialResult(
        trial=trial.trial,
        verdict=verdict,
        causes=causes,
        **members_of(counts),
        link_changes=changes,
        **links,
        port_changes=port_changes,
        dut_core_taken=missed.share,
        neighbours=seen,
        proven_failed=proven_failed(trial, counts, causes, missed) if completed else None,
        ended_early_s=ended_s,
        capture=capture,
        connections=connections,
        server=server,
        in_sum=in_sum,
        loop_stamps_because=loop_stamps_because,
        doubts=doubts(trial, counts, missed),
    )


def _with_names(counts: DirectionCounts, stream: Stream) -> DirectionCounts:
    """The counts of each kind of frames with its name and that of its stream, and those of the background."""
    if counts.kinds is None:
        return counts
    kinds = tuple(
        kind.model_copy(update={"name": frame.name, "stream": frame.stream})
        for kind, frame in zip(counts.kinds, stream.frames, strict=True)
    )
    native = [kind for kind, frame in zip(kinds, stream.frames, strict=True) if frame.native]
    sent, received = sum(kind.sent for kind in native), sum(kind.received for kind in native)
    background = {
        "background_sent": sent,
        "background_received": received,
        "foreground_sent": counts.sent - sent,
        "foreground_received": counts.received - received,
    }
    return counts.model_copy(update={"kinds": kinds, **background})


def _ended_early(ended_by: tuple[Cause, ...], found: tuple[Cause, ...]) -> tuple[Verdict, tuple[Cause, ...]]:
    """The causes that ended the trial, then further causes from the final counts; without causes that
    only follow from the early end."""
    known = {(cause.code, cause.direction) for cause in ended_by}
    more = tuple(
        cause for cause in found if (cause.code, cause.direction) not in known and cause.code not in OF_A_WHOLE_TRIAL
    )
    return Verdict.INVALID, ended_by + more


def _with_others(result: TrialResult, others: Sequence[str]) -> TrialResult:
    """The result with ``others`` (by the cores on which they ran, as in ``HELD_UP``) added to the first cause that
    they may explain."""
    causes = list(result.causes)
    for codes, said in zip(HELD_UP, others, strict=False):
        first = next((place for place, cause in enumerate(causes) if cause.code in codes), None)
        if first is not None and said:
            causes[first] = causes[first].model_copy(update={"text": f"{causes[first].text} ({said})"})
    return result.model_copy(update={"causes": tuple(causes)})


def _also(cause: Cause, counted: Wording) -> str:
    return CHANGED.get(cause.code, f"{counted.many} are {counted.lost}")


def _lasting(result: TrialResult, probe: Trial, lasting: Sequence[Cause]) -> TrialResult:
    rates = dict.fromkeys(f"{stream.rate_fps:,}" for stream in probe.streams().values())
    at = f"at {with_and(rates)} {probe.counted.many}/s"
    causes = tuple(
        cause.model_copy(update={"lasts": True, "text": f"{cause.text} ({at} {_also(cause, probe.counted)} too)"})
        if cause in lasting
        else cause
        for cause in result.causes
    )
    return result.model_copy(update={"causes": causes})


def _stopped() -> tuple[Verdict, tuple[Cause, ...]]:
    return Verdict.ABORTED, (Cause(code="stopped", text="the trial was stopped before its end"),)


def _aborted(trial: Trial, text: str) -> TrialResult:
    return TrialResult(trial=trial.trial, verdict=Verdict.ABORTED, causes=(Cause(code="engine_died", text=text),))
