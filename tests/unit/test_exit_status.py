# SPDX-License-Identifier: Apache-2.0
"""Exit statuses: what each error ends a command with, and what Slurm's script and Buildbot's master do at each."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from command_line import dutperf, trial, write
from dutperf import cli, exit_status, fleet
from dutperf.cli import EXIT_STATUS
from dutperf.cli.errors import reported
from dutperf.cli.sentences import status_of
from dutperf.errors import DutperfError, StoreBusy, StoreError
from dutperf.exit_status import (
    ABORTED,
    DONE,
    FAULT,
    GIVEN_UP,
    INTERRUPTED,
    INVALID,
    NO_NUMBER,
    NOT_NOW,
    READER_GONE,
    VALID,
    WRONG_USAGE,
)
from dutperf.fleet import Fleet, buildbot_files, slurm_file
from dutperf.journal import JournalError, JournalWriter, ResumedJournal, WriteError
from dutperf.run.lease import LeaseError, LeaseTaken
from dutperf.tester import TesterError

# --- errors ---------------------------------------------------------------------------------------

ERRORS = [
    (LeaseTaken("testbed a is in use"), NOT_NOW),
    (LeaseError("a testbed cannot be called 'a b'"), WRONG_USAGE),
    (StoreBusy("store.sqlite: database is locked"), NOT_NOW),
    (StoreError("there are no results"), WRONG_USAGE),
    (WriteError("cannot write: the disk is full"), ABORTED),
    (TesterError("there is no interface nosuch0", code="port_away", field="left.port"), NOT_NOW),
    (TesterError("the MTU of eth1 is 1500", code="port_unavailable", field="left.port"), WRONG_USAGE),
    (TesterError("198.18.0.1 does not answer ARP", code="no_answer", field="left.gateway4"), NOT_NOW),
    (TesterError("the link is down", code="link_down", field="left.port"), NOT_NOW),
    (TesterError("there is no network namespace x", code="netns"), NOT_NOW),
    (TesterError("must be an object", code="bad_request"), WRONG_USAGE),
    (TesterError("a defect", code="internal"), FAULT),
]


@pytest.mark.parametrize(("error", "status"), ERRORS, ids=[str(error) for error, _ in ERRORS])
def test_an_error_says_whether_the_same_may_succeed_later(error: DutperfError, status: int) -> None:
    assert status_of(error) == status


def test_a_port_that_is_away_is_not_a_wrong_plan(tmp_path: Path) -> None:
    assert trial(write(tmp_path, "NoAnswer")).exit_code == NOT_NOW


def test_a_journal_that_another_process_holds_is_not_a_wrong_plan(tmp_path: Path) -> None:
    with JournalWriter.create(tmp_path), pytest.raises(JournalError) as caught:
        ResumedJournal.open(tmp_path)
    assert status_of(caught.value) == NOT_NOW


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, ABORTED), (errno.EDQUOT, ABORTED), (errno.EACCES, 2)])
@pytest.mark.parametrize("call", ["open", "mkdir"])
def test_a_disk_without_room_for_a_file_is_not_a_wrong_command(
    number: int, status: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may have no room for files while it has some for data."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(JournalError, match="cannot write") as caught:
        JournalWriter.create(tmp_path / "new")
    monkeypatch.undo()
    assert status_of(caught.value) == status


SYSTEM = [
    (PermissionError(errno.EACCES, "Permission denied", "/x"), WRONG_USAGE),
    (OSError(errno.ENOSPC, "No space left on device"), ABORTED),
    (OSError(errno.EMFILE, "Too many open files", "/x"), NOT_NOW),
    (BrokenPipeError(errno.EPIPE, "Broken pipe"), READER_GONE),
    (KeyboardInterrupt(), INTERRUPTED),
    (cli.typer.Abort(), INTERRUPTED),
]


@pytest.mark.parametrize(("error", "status"), SYSTEM, ids=[repr(error) for error, _ in SYSTEM])
def test_errors_of_the_system(
    error: BaseException, status: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dutperf.cli.errors.let_go_of_output", lambda: None)
    with pytest.raises(cli.typer.Exit) as ended, reported():
        raise error
    assert ended.value.exit_code == status
    assert "Traceback" not in capsys.readouterr().err


def test_a_defect_has_a_status_of_its_own_and_says_where_its_traceback_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fails(**_: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(cli, "app", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == FAULT
    [kept] = tmp_path.iterdir()
    told = capsys.readouterr().err
    assert str(kept) in told
    assert "not a result of the DUT" in told
    assert len(told.splitlines()) == 1
    assert "in fails" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_reader_that_has_gone_says_nothing_about_the_dut(stream: str, more: tuple[str, ...], tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    search = ["--rates", "1000", "--duration", "0.01", "--drain", "0", "--repetitions", "1", "--frame-size", "84"]
    argv = ["frame-loss", "--config", str(write(tmp_path, "Engine")), *search, "--out", str(tmp_path / "out"), *more]
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: writes}
    done = subprocess.run([sys.executable, "-m", "dutperf", *argv], **streams, check=False, timeout=60)
    os.close(writes)
    assert done.returncode == READER_GONE


@pytest.mark.parametrize("more", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}], ids=str)
def test_a_terminal_without_a_character_loses_no_result(more: dict[str, str], tmp_path: Path) -> None:
    words = ["trial", "--config", write(tmp_path, "Engine"), "--rate", "1000", "--duration", "0.01", "--drain", "0"]
    environment = os.environ | {"PYTHONUTF8": "0"} | more
    command = [sys.executable, "-m", "dutperf", *words, "--out", "r\u00e9sultat"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == VALID, done.stderr
    assert b"lateness, ?s: median" in done.stdout
    assert (tmp_path / "r\u00e9sultat" / "trial.json").exists()


WITHOUT_HOME = """
import os, pwd, sys
os.environ = {"PATH": os.environ["PATH"]}
def nobody(_): raise KeyError
pwd.getpwuid = nobody
sys.argv = ["dutperf", *sys.argv[1:]]
from dutperf.cli import main
main()
"""


def test_a_user_without_a_home_measures_and_is_told_what_needs_one(tmp_path: Path) -> None:
    config = write(tmp_path, "Engine")
    words = ["trial", "--config", str(config), "--rate", "1000", "--duration", "0.01", "--drain", "0"]
    search = ["frame-loss", "--config", str(config), "--rates", "1000", "--duration", "0.01", "--drain", "0"]
    for argv, status in (
        (words, VALID),
        ([*search, "--repetitions", "1", "--frame-size", "84", "--out", str(tmp_path / "out")], VALID),
        (["store", "list"], WRONG_USAGE),
    ):
        argv = [sys.executable, "-c", WITHOUT_HOME, *argv]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == status, done.stderr
    assert "has no home directory: set XDG_DATA_HOME or HOME" in done.stderr


@pytest.mark.parametrize("command", ["show", "report", "export", "plot", "resume"])
def test_a_directory_that_may_not_be_read_is_a_sentence(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden_in(tmp_path: Path, known: Callable[..., Any]) -> Callable[..., Any]:
        def forbidden(path: Path, **how: Any) -> Any:
            if not path.is_relative_to(tmp_path):
                return known(path, **how)
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        return forbidden

    for name in ("stat", "exists"):
        monkeypatch.setattr(Path, name, forbidden_in(tmp_path, getattr(Path, name)))  # root may read everything
    done = dutperf(command, tmp_path)
    assert done.exit_code == WRONG_USAGE
    assert "Permission denied" in done.stderr
    assert isinstance(done.exception, SystemExit)


# --- signals --------------------------------------------------------------------------------------

MEASURES = """
import sys, time
from pathlib import Path
from dutperf.exit_status import signals_interrupt
with signals_interrupt():
    try:
        Path(sys.argv[-1]).touch()
        time.sleep(60)
    except KeyboardInterrupt:
        Path(sys.argv[-1]).write_text("torn down")
        sys.exit(130)
"""


def begun(argv: list[Any], file: Path, **more: Any) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(list(map(str, argv)), **more)
    until_s = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_was_started_with_signals_ignored_is_interrupted_all_the_same(number: int, tmp_path: Path) -> None:
    def ignoring() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = begun([sys.executable, "-c", MEASURES, tmp_path / "f"], tmp_path / "f", preexec_fn=ignoring)
    process.send_signal(number)
    assert process.wait(30) == INTERRUPTED
    assert (tmp_path / "f").read_text() == "torn down"


def test_nohup_is_obeyed(tmp_path: Path) -> None:
    process = begun(
        ["nohup", sys.executable, "-c", MEASURES, tmp_path / "f"], tmp_path / "f", stdout=subprocess.DEVNULL
    )
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.kill()
    process.wait()


# --- schedulers -----------------------------------------------------------------------------------

ALL = sorted({value for name, value in vars(exit_status).items() if name.isupper() and isinstance(value, int)})


def test_help_and_documents_have_every_status() -> None:
    page = (Path(__file__).parents[2] / "docs/getting-started.md").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == ALL
    assert [int(number) for number in re.findall(r"[:,] (\d+) [a-z]", EXIT_STATUS)] == ALL


BY_SIGNAL = [128 + signal.SIGKILL, 128 + signal.SIGTERM, 1 + max(ALL)]


def test_what_is_decided_at_each_status() -> None:
    assert set(DONE) == {VALID, NO_NUMBER, INVALID}
    assert set(GIVEN_UP) == {WRONG_USAGE, FAULT}
    assert {ABORTED, NOT_NOW, INTERRUPTED} <= set(ALL) - {*DONE, *GIVEN_UP}, "these are started again"


def script(folder: Path, ended: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A job's script, without pauses, whose command ends with these statuses in turn, and the last one from then on."""
    for name in ("pause_s", "short_pause_s"):
        monkeypatch.setitem(fleet.DECISIONS, name, 0)
    calls, command = folder / "calls", folder / "dutperf"
    statuses = " ".join(map(str, ended))
    command.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\n[ "$1" = run ] || exit 0\nset -- {statuses}\n'
        f"number=$(grep -c '^run' {calls})\n[ $number -le $# ] || number=$#\nshift $((number - 1))\nexit $1\n"
    )
    command.chmod(0o755)
    job = folder / "job.sbatch"
    job.write_text(slurm_file(Fleet(("a",), "127.0.0.1", str(command))))
    return job, calls


def run_script(job: Path, store: Path) -> int:
    environment = os.environ | {"SLURMD_NODENAME": "a", "DUTPERF_STORE": str(store)}
    return subprocess.run(["sh", job, "p.yaml", "out"], env=environment, check=False, timeout=120).returncode


@pytest.mark.parametrize("status", [*ALL, *BY_SIGNAL])
def test_slurm(status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, calls = script(tmp_path, [status, VALID], monkeypatch)
    ended = run_script(job, tmp_path / "s")
    words = [line.split()[0] for line in calls.read_text().splitlines()]
    if status in DONE:
        assert (ended, words) == (0, ["run", "store"])
    elif status in GIVEN_UP:
        assert (ended, words) == (status, ["run"])
    else:
        assert (ended, words) == (0, ["run", "run", "store"])


def test_slurm_does_not_try_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, calls = script(tmp_path, [NOT_NOW], monkeypatch)
    assert run_script(job, tmp_path / "s") == NOT_NOW
    assert len(calls.read_text().splitlines()) == fleet.RETRIES


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_slurms_script_has_the_run_torn_down(number: int, tmp_path: Path) -> None:
    command = tmp_path / "dutperf"
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{MEASURES}' {tmp_path}/f\n")
    command.chmod(0o755)
    (tmp_path / "job").write_text(slurm_file(Fleet(("a",), "127.0.0.1", str(command))))
    process = begun(["sh", tmp_path / "job", "p.yaml", "out"], tmp_path / "f")
    process.send_signal(number)
    assert process.wait(30) == INTERRUPTED
    assert (tmp_path / "f").read_text() == "torn down"


class FakeStep:
    """Buildbot's ShellCommand: runs a command on the worker."""

    ended: list[int]

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.build = SimpleNamespace(stopped=False, stopped_reason=None)
        self.stopped = False
        self.started = 0

    def makeRemoteShellCommand(self) -> Any:  # noqa: N802
        command = SimpleNamespace(rc=None)
        command.results = lambda: self.given["decodeRC"].get(command.rc, "FAILURE")
        return command

    def runCommand(self, command: Any) -> None:  # noqa: N802
        command.rc = self.ended[min(self.started, len(self.ended) - 1)]
        self.started += 1


def at_once(work: Any) -> Any:
    """Twisted's inlineCallbacks, where everything is ready when it is asked for."""

    def run(*given: Any) -> Any:
        steps = work(*given)
        try:
            value = next(steps)
            while True:
                value = steps.send(value)
        except StopIteration as ended:
            return ended.value

    return run


@pytest.fixture
def measure_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Any, list[float]]:
    """The step of the master's configuration that measures, and the pauses that it made."""
    pauses: list[float] = []

    def anything(*_: Any, **__: Any) -> Any:
        return SimpleNamespace()

    names = ("FileDownload", "DirectoryUpload", "MasterShellCommand")
    stubs = {
        "buildbot": {},
        "buildbot.plugins": {
            "changes": SimpleNamespace(PBChangeSource=anything),
            "schedulers": SimpleNamespace(AnyBranchScheduler=anything),
            "steps": SimpleNamespace(ShellCommand=FakeStep, **dict.fromkeys(names, anything)),
            "util": SimpleNamespace(
                **dict.fromkeys(("Interpolate", "Property", "BuilderConfig", "ChangeFilter"), anything),
                **{name: name for name in ("SUCCESS", "WARNINGS", "FAILURE")},
                BuildFactory=list,
                renderer=lambda one: one,
            ),
            "worker": SimpleNamespace(Worker=anything),
        },
        "buildbot.process": {},
        "buildbot.process.results": {"CANCELLED": "CANCELLED", "RETRY": "RETRY"},
        "twisted": {},
        "twisted.internet": {
            "defer": SimpleNamespace(inlineCallbacks=at_once),
            "reactor": None,
            "task": SimpleNamespace(deferLater=lambda _reactor, pause_s, _work: pauses.append(pause_s)),
        },
    }
    for name, members in stubs.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    made = Fleet(("a",), "127.0.0.1", "dutperf")
    text = buildbot_files(made, fleet.fresh_passwords(made.testbeds))
    (tmp_path / "passwords.json").write_text(text["master/passwords.json"])
    names_of: dict[str, Any] = {"__file__": str(tmp_path / "master.cfg")}
    exec(compile(text["master/master.cfg"], "master.cfg", "exec"), names_of)
    return next(step for step in names_of["measure"]("a") if isinstance(step, FakeStep)), pauses


@pytest.mark.parametrize("status", [*ALL, *BY_SIGNAL])
def test_buildbot(status: int, measure_step: tuple[Any, list[float]]) -> None:
    step, pauses = measure_step
    step.ended = [status, VALID]
    result = step.run()
    if status in DONE:
        assert (result, step.started) == ("WARNINGS" if status else "SUCCESS", 1)
    elif status in GIVEN_UP:
        assert (result, step.started) == ("FAILURE", 1)
    else:
        assert (result, step.started) == ("SUCCESS", 2)
        assert pauses == [fleet.PAUSE_S if status == NOT_NOW else fleet.SHORT_PAUSE_S]


def test_buildbot_does_not_try_for_ever(measure_step: tuple[Any, list[float]]) -> None:
    step, _ = measure_step
    step.ended = [NOT_NOW]
    assert (step.run(), step.started) == ("FAILURE", fleet.RETRIES)


@pytest.mark.parametrize(
    ("stopped", "reason", "lost", "result"),
    [
        (True, "Master Shutdown", True, "RETRY"),
        (True, "a person", True, "CANCELLED"),
        (False, None, True, "RETRY"),
    ],
)
def test_buildbot_when_the_job_is_stopped(
    measure_step: tuple[Any, list[float]], stopped: bool, reason: str | None, lost: bool, result: str
) -> None:
    step, _ = measure_step
    step.ended = [INTERRUPTED]
    step.build.stopped, step.build.stopped_reason, step.stopped = stopped, reason, lost
    assert (step.run(), step.started) == (result, 1)


SCRIPTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
INTERRUPTED_WHILE_IT_STARTS = """
import importlib, os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupts(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "dutperf.tester":
            os.kill(os.getpid(), getattr(signal, number))

sys.meta_path.insert(0, Interrupts())
_, number, entry = sys.argv
module, _, name = entry.partition(":")
sys.argv[1:] = ["trial"]
getattr(importlib.import_module(module), name)()
"""


@pytest.mark.parametrize("entry", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interruption_while_a_command_starts_is_no_traceback(number: str, entry: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_WHILE_IT_STARTS, number, entry]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "dutperf: interrupted\n")


INTERRUPTED_AT_ITS_END = """
import atexit, os, signal, sys
from dutperf.start import dutperf
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv[1:] = ["lab", "list"]
dutperf()
"""


def test_an_interruption_at_the_end_is_no_traceback_and_loses_no_output() -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT_ITS_END]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (INTERRUPTED, "dutperf: interrupted")
    assert "tayga-siit" in ended.stdout


def test_little_is_imported_before_signals_are_heeded() -> None:
    """An interpreter without site, which imports what it likes."""
    source = Path(exit_status.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(source)!r}); import dutperf.start; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"pathlib", "typing", "typer", "importlib.metadata"} & set(told.stdout.split())


def test_a_module_that_cannot_be_imported_says_nothing_about_the_dut() -> None:
    code = "import sys; sys.modules['typer'] = None; from dutperf.start import dutperf; dutperf()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 70
    assert "a fault of dutperf or of this machine, not a result of the DUT" in ended.stderr
