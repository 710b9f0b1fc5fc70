# SPDX-License-Identifier: Apache-2.0
"""The runs in the served directories, by whomever they were started: what state they are in, their start, stop and
resumption by processes of the command line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import ValidationError

from dutperf.errors import first
from dutperf.journal import JOURNAL, is_being_written, journals_of
from dutperf.procedures.request import Request
from dutperf.results import by_clients
from dutperf.results.summary import SUMMARY
from dutperf.run import requests, resume
from dutperf.run.progress import PROGRESS
from dutperf.run.requests import RequestError
from dutperf.run.suite import PLAN, SUITE
from dutperf.setup import configuration
from dutperf.setup.configuration import MEMORY_PORTS, ConfigError
from dutperf.store import result_directories
from dutperf.web import forms, overview, own_files
from dutperf.web.errors import Refused, without_directories
from dutperf.web.overview import Overview

LOG = "log.txt"
PROGRESS_S = 0.1
"""Interval between the reports of a run that was started here."""
MOST_AT_ONCE = 4
CHECK_S = 60
_SEEN_FOR_S = 60.0
_WITH_FILES = ("conditions", "config", "measurements")
"""Members of a suite's file, and of the first event of a journal."""
_NAME = re.compile(r"[^A-Za-z0-9._-]+")

_Port = tuple[tuple[str, ...], str | None, str]
"""The command by which the engine is started, maybe on another host; its network namespace; a port."""
T = TypeVar("T")
State = Literal["starting", "running", "stopped", "complete", "failed"]
UNDER_WAY: tuple[State, ...] = ("starting", "running")


@dataclass(frozen=True)
class Run:
    """A run or a suite in a served directory."""

    id: str
    directory: Path
    changed: float
    """When, in seconds since 1970."""

    @property
    def name(self) -> str:
        """For a person."""
        return self.directory.name


@dataclass
class Runs:
    roots: Sequence[Path]
    """The first takes those that are started here."""
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _ports: dict[str, frozenset[_Port]] = field(default_factory=dict)
    """Of the runs that were started here."""
    _directories: set[Path] = field(default_factory=set)
    """Of the runs that were started here."""
    _complete: dict[Path, tuple[tuple[Any, ...], bool]] = field(default_factory=dict)
    """By directory: its files as they were when they were read, and whether they were complete."""
    _overviews: dict[Path, tuple[tuple[Any, ...], Overview]] = field(default_factory=dict)
    """The same, with what the list shows."""
    _found: tuple[float, dict[str, Run]] = (0.0, {})
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def all(self) -> list[Run]:
        places = [place for root in self.roots for place in result_directories(root)]
        found = {run.id: run for run in map(run_in, places) if os.access(run.directory, os.R_OK | os.X_OK)}
        with self._lock:
            found |= {run.id: run for run in map(run_in, self._directories) if run.id not in found}
            self._found = (time.monotonic(), found)
        return sorted(found.values(), key=lambda run: run.changed, reverse=True)

    def find(self, identifier: str) -> Run:
        """The run. Raises Refused: there is none."""
        seen_s, found = self._found
        if identifier not in found or time.monotonic() - seen_s > _SEEN_FOR_S:
            self.all()
        if identifier not in self._found[1]:
            raise Refused("there is no such run", 404)
        return run_in(self._found[1][identifier].directory)

    def state(self, run: Run) -> State:
        """What the run is doing: a process writes it, it is complete, or neither."""
        process = self._processes.get(run.id)
        ended = None if process is None else process.poll()
        if _is_under_way(run.directory):
            return "running"
        if process is not None and ended is None:
            return "starting" if not _has_begun(run.directory) else "running"
        if not _has_begun(run.directory):
            return "failed"
        if self._is_complete(run.directory):
            return "complete"
        return "failed" if ended not in (None, 0, 1, 3, 130, -signal.SIGINT, -signal.SIGKILL) else "stopped"

    def overview(self, run: Run) -> Overview:
        """What the list shows of a run that is not under way."""
        return _once(self._overviews, run.directory, overview.of_run, Overview())

    def start(self, plan: dict[str, Any], name: str) -> Run:
        """Start a plan. Raises Refused: it is no plan, its ports are in use by another run, or there are too many
        runs."""
        text = yaml.safe_dump(plan, sort_keys=False)
        check(text)
        ports = _ports_of([plan["config"]] if "config" in plan else [])
        with self._lock:
            self._require_room(ports)
            directory = self._directory(name)
            (directory / PLAN).write_text(text, encoding="utf-8")
            return self._launch(ports, directory, "run", str(directory / PLAN), "--or-resume", "--out")

    def _require_room(self, ports: frozenset[_Port]) -> None:
        """For one more run. The engine locks its ports as well, and so tells this run from those that were started
        elsewhere. Raises Refused: the ports are in use, or there are too many runs."""
        for identifier, process in self._processes.items():
            if process.poll() is None and ports & self._ports[identifier]:
                raise Refused(
                    f"the ports of this configuration are in use by the run {self._found_name(identifier)}: wait until"
                    " it ends, or stop it",
                    409,
                )
        if sum(process.poll() is None for process in self._processes.values()) >= MOST_AT_ONCE:
            raise Refused(f"{MOST_AT_ONCE} runs that were started here are under way", 409)

    def _found_name(self, identifier: str) -> str:
        names = (run.name for run in map(run_in, self._directories) if run.id == identifier)
        return next(names, identifier)

    def resume(self, run: Run, check_plan: Callable[[str], object], check_config: Callable[[str], object]) -> Run:
        """Resume it. A directory of results may come from anybody: ``check_plan`` raises Refused where its plan points
        to what may not be started here, ``check_config`` where the configuration that it names does. Raises Refused: it
        is under way, or complete, its ports are in use by another run, there are too many runs, or see above."""
        self._require_stopped(run)
        _check_origin(run.directory, check_plan, check_config)
        ports = _ports_of(_configs_of(run.directory))
        with self._lock:
            self._require_stopped(run)  # again: another request may have resumed it meanwhile
            self._require_room(ports)
            if (run.directory / PLAN).exists():
                return self._launch(ports, run.directory, "run", str(run.directory / PLAN), "--or-resume", "--out")
            return self._launch(ports, run.directory, "resume")

    def _require_stopped(self, run: Run) -> None:
        if (state := self.state(run)) not in ("stopped", "failed"):
            raise Refused(f"the run is {state}", 409)

    def stop(self, run: Run) -> None:
        """Interrupt it, as Ctrl-C does: its finished trials stay. Raises Refused: nothing is under way, or the process
        is not to be found."""
        if self.state(run) not in UNDER_WAY:
            raise Refused("nothing is under way there", 409)
        process = self._processes.get(run.id)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            return
        pid = (progress(run.directory) or {}).get("pid")
        if not isinstance(pid, int) or not _is_ours(pid, run.directory):
            raise Refused("its process is not known here: stop it where it was started", 409)
        os.kill(pid, signal.SIGINT)

    def _is_complete(self, directory: Path) -> bool:
        """A directory that this version cannot read is not complete."""
        return _once(self._complete, directory, resume.is_complete, False)

    def ask(self, run: Run, asked: Mapping[str, Any]) -> None:
        """Ask it for another rate, or the end. Raises Refused: it is no request, nothing takes it, or it was refused
        there."""
        try:
            request = Request.model_validate(asked)
        except ValidationError as error:
            details = first(error)
            raise Refused(": ".join([*map(str, details["loc"][:1]), details["msg"]])) from None
        try:
            requests.ask(run.directory, request)
        except RequestError as error:
            raise Refused(without_directories(error), 409) from None

    def _directory(self, name: str) -> Path:
        stem = _NAME.sub("-", name).strip(".-")[:60] or "run"
        for number in range(1, 1000):
            more = "" if number == 1 else f"-{number}"
            path = self.roots[0] / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{stem}{more}"
            with suppress(FileExistsError):
                path.mkdir(parents=True)
                return path.resolve()
        raise Refused("there is no name for its directory", 500)

    def _launch(self, ports: frozenset[_Port], directory: Path, *command: str) -> Run:
        argv = [*program(), command[0], "--progress-interval", str(PROGRESS_S), *command[1:], str(directory)]
        with (directory / LOG).open("ab") as log:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
            )
        run = run_in(directory)
        self._processes[run.id], self._ports[run.id] = process, ports
        self._directories.add(directory)
        return run


def _once(read: dict[Path, tuple[tuple[Any, ...], T]], directory: Path, make: Callable[[Path], T], without: T) -> T:
    """What ``make`` reads in the directory; ``without`` where it fails. Journals are long: each is read once as it
    stands."""
    files = sorted((directory / SUITE, directory / SUMMARY, *journals(directory)))
    stamp = tuple((str(path), *stat) for path in files if (stat := _stat(path)) is not None)
    known, made = read.get(directory, (None, without))
    if known != stamp:
        made = without
        with suppress(Exception):
            made = make(directory)
        read[directory] = (stamp, made)
    return made


def run_in(directory: Path) -> Run:
    path = directory.resolve()
    changed = 0.0
    for name in (PROGRESS, JOURNAL, SUITE, PLAN):
        with suppress(OSError):
            changed = max(changed, (path / name).stat().st_mtime)
    return Run(hashlib.sha256(os.fsencode(path)).hexdigest()[:12], path, changed)


def program() -> list[str]:
    """The command line, of this very version."""
    return [sys.executable, "-m", "dutperf"]


def _check_origin(directory: Path, check_plan: Callable[[str], object], check_config: Callable[[str], object]) -> None:
    try:
        if (directory / PLAN).exists():
            check_plan((directory / PLAN).read_text(encoding="utf-8"))
        configs = _configs_of(directory)
        begun = list(_beginnings(directory))
        by_others = any(one.get("procedure") == by_clients.READER.name for one in begun)
        files = sorted({name for one in begun for part in _WITH_FILES for name in forms.files_of(one.get(part))})
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise Refused("its files cannot be read", 409) from None
    if own_files.has_links(directory):
        raise Refused("it cannot be resumed here: its directory has links, to which would be written", 409)
    if by_others:
        raise Refused("it cannot be resumed: clients of dutperf otg chose its trials", 409)
    if files:
        raise Refused(
            f"it cannot be resumed here: it names files ({', '.join(files)}), which are for dutperf resume", 403
        )
    for config in configs:
        check_config(config)


def _configs_of(directory: Path) -> set[str]:
    """The configurations that a run or a suite was begun with."""
    return {str(one["source"]["config"]) for one in _beginnings(directory) if "config" in one.get("source", {})}


def _beginnings(directory: Path) -> Iterator[dict[str, Any]]:
    """The suite's file, and the first event of each journal."""
    if (directory / SUITE).exists():
        yield json.loads((directory / SUITE).read_text(encoding="utf-8"))
    for path in journals(directory):
        with path.open(encoding="utf-8") as file:
            yield json.loads(file.readline() or "{}")


def _ports_of(configs: Iterable[str]) -> frozenset[_Port]:
    """The ports that cannot be in two runs. One that cannot be read is refused by the run itself."""
    ports: set[_Port] = set()
    for config in configs:
        with suppress(ConfigError):
            setup = configuration.load(Path(config))
            ports |= {
                (setup.engine.command, setup.engine.netns, side.port.removeprefix("af_packet:").removeprefix("af_xdp:"))
                for side in setup.sides().values()
                if side.port not in MEMORY_PORTS
            }
    return frozenset(ports)


def check(text: str) -> None:
    """Check a plan. Raises Refused: what ``dutperf plan check`` says, without the line: nobody has the text that it is
    in."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            done = subprocess.run(
                [*program(), "plan", "check", file.name], capture_output=True, text=True, timeout=CHECK_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise Refused("the plan takes too long to check") from None
        if done.returncode:
            said = re.sub(
                rf"{re.escape(file.name)}(, line \d+)?", "plan", done.stderr.strip().removeprefix("dutperf: ")
            )
            sentence = without_directories(said)
            raise Refused(sentence.splitlines()[-1] if sentence else "it is no plan")


def progress(directory: Path) -> dict[str, Any] | None:
    """What a run does now; None: nothing, or it does not tell."""
    try:
        members = json.loads((directory / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return members if isinstance(members, dict) else None


def journals(directory: Path) -> list[Path]:
    """The journals of the run or the suite, the latest last."""
    found = {path: stat for path in journals_of(directory) if (stat := _stat(path)) is not None}
    return sorted(found, key=lambda path: found[path][0])


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _has_begun(directory: Path) -> bool:
    return (directory / JOURNAL).exists() or (directory / SUITE).exists()


def _is_under_way(directory: Path) -> bool:
    return any(is_being_written(path.parent) for path in journals(directory))


def _is_ours(pid: int, directory: Path) -> bool:
    """Whether the process is a dutperf that writes there: numbers of processes are used again."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return _is_under_way(directory) and any(b"dutperf" in word for word in words)
