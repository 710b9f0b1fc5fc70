# SPDX-License-Identifier: Apache-2.0
"""One lab instance: its namespaces, its processes, and the record by which it is taken down even
when its owner was killed.

The record (``/run/dutperf/labs/ID.json``) is written before anything is made, and removed after
everything is gone. A record whose owner no longer lives marks leftovers, which the next lab command
removes. Names hold the random ID, so instances never meet.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dutperf.lab.errors import LabError
from dutperf.lab.hosts import host_of
from dutperf.lab.netns import (
    DUT_PORTS,
    Namespace,
    confine,
    connect,
    connect_directly,
    finish_tester,
    hand_to_program,
    prepare_router,
    prepare_silent,
    send_whole_frames,
    start_router,
)

STATE_DIR = Path("/run/dutperf/labs")
START_S = 5.0
"""Seconds that a process of the DUT has to start."""
GRACE_S = 2.0
"""Seconds that processes have to end by themselves when a lab is taken down."""


@dataclass(frozen=True)
class Owner:
    """The process that a lab belongs to. The start time (clock ticks since boot) tells it from a
    later process with the same id."""

    pid: int
    start_time: int

    @classmethod
    def me(cls) -> Owner:
        """This process."""
        start_time = process_start_time(os.getpid())
        assert start_time is not None
        return cls(os.getpid(), start_time)

    def lives(self) -> bool:
        """Whether it still runs."""
        return process_start_time(self.pid) == self.start_time


def process_start_time(pid: int) -> int | None:
    """Start of a process in clock ticks since boot (proc(5), stat, field 22); None where there is
    no such process or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True)
class Record:
    """What is written down of a lab. ``owner`` is None for one that stays until it is taken down by
    name."""

    id: str
    lab: str
    owner: Owner | None

    @property
    def file(self) -> Path:
        """Where the record is kept."""
        return STATE_DIR / f"{self.id}.json"

    @property
    def configuration_file(self) -> Path:
        """Where a lab that stays keeps its configuration for the tester."""
        return STATE_DIR / f"{self.id}.yaml"

    @property
    def directory(self) -> Path:
        """For the files of the DUT's processes."""
        return STATE_DIR / self.id

    @property
    def tester(self) -> Namespace:
        """The tester's namespace, whether it exists or not."""
        return Namespace(f"dutperf-{self.id}-tester")

    @property
    def dut(self) -> Namespace:
        """The DUT's namespace, whether it exists or not."""
        return Namespace(f"dutperf-{self.id}-dut")

    @classmethod
    def read(cls, file: Path) -> Record | None:
        """The record in ``file``; None where it has just been removed or a crash cut it short."""
        try:
            values = json.loads(file.read_text())
            owner = values["owner"]
            return cls(values["id"], values["lab"], None if owner is None else Owner(**owner))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self) -> None:
        """Keep it, in one step."""
        STATE_DIR.mkdir(parents=True, exist_ok=True)
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.rename(self.file)

    def take_down(self) -> None:
        """End every process in the lab's namespaces, remove these and all files. Does nothing about
        what is gone already."""
        for namespace in (self.dut, self.tester, *(host_of(self.tester, side) for side in ("left", "right"))):
            end_processes(namespace)
            namespace.delete()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.configuration_file.unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)


def end_processes(namespace: Namespace) -> None:
    """Ask the processes in ``namespace`` to end; kill those that do not in time (one stopped by a
    signal, say)."""
    signal_all(namespace.processes(), signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while (left := namespace.processes()) and time.monotonic() < deadline:
        time.sleep(0.02)
    signal_all(left, signal.SIGKILL)


def signal_all(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to those of ``pids`` that still exist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def records() -> list[Record]:
    """All labs written down, leftovers included."""
    return [record for file in sorted(STATE_DIR.glob("*.json")) if (record := Record.read(file)) is not None]


def remove_leftovers() -> int:
    """Take down the labs whose owners were killed; returns how many. One process at a time does
    this."""
    with exclusively():
        leftovers = [record for record in records() if record.owner is not None and not record.owner.lives()]
        for record in leftovers:
            record.take_down()
    return len(leftovers)


@contextlib.contextmanager
def exclusively() -> Iterator[None]:
    """Keep other lab commands from removing the same things at the same time. The kernel frees the
    lock of a killed process."""
    STATE_DIR.mkdir(parents=True, exist_ok=True)
    with (STATE_DIR / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class Site:
    """A lab instance while it is being built and used by its owner."""

    record: Record
    stays: bool
    """Whether it is to outlive this process, which owns it while it is being built."""
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @classmethod
    def draft(cls, lab: str, *, stays: bool = False) -> Site:
        """A new instance of which nothing exists yet."""
        return cls(Record(secrets.token_hex(4), lab, Owner.me()), stays)

    @property
    def tester(self) -> Namespace:
        """Where the engine runs."""
        return self.record.tester

    @property
    def dut(self) -> Namespace:
        """Where the DUT runs."""
        return self.record.dut

    @property
    def directory(self) -> Path:
        """For files of the DUT's processes; removed with the lab."""
        return self.record.directory

    @property
    def dut_core(self) -> int:
        """The core that the DUT gets: the last one that this process may use. The tester has the
        others."""
        return max(os.sched_getaffinity(0))

    def engine_settings(self) -> dict[str, str]:
        """Where the engine runs, and where the DUT, if there is one."""
        dut = {"dut_netns": self.dut.name} if self.dut.exists() else {}
        return {"netns": self.tester.name, **dut}

    def prepare(self) -> None:
        """Write the record, make the directory."""
        self.record.write()
        self.directory.mkdir()

    def add_router(self, mtu: int) -> None:
        """Make both namespaces and the cables between them; the DUT forwards, but has no addresses
        yet."""
        prepare_silent(self.tester)
        prepare_router(self.dut)
        connect(self.tester, self.dut, mtu)
        finish_tester(self.tester)
        start_router(self.dut)
        confine(self.dut, self.dut_core)

    def add_program_dut(self, mtu: int) -> None:
        """Make both namespaces and the cables between them, for a DUT that is a program with packet
        sockets on its ports."""
        prepare_silent(self.tester)
        prepare_silent(self.dut)
        connect(self.tester, self.dut, mtu)
        finish_tester(self.tester)
        send_whole_frames(self.dut)
        hand_to_program(self.dut, DUT_PORTS)
        confine(self.dut, self.dut_core)

    def add_memory_dut(self) -> None:
        """Make both namespaces with nothing between them, for a DUT and a tester that share memory."""
        prepare_silent(self.tester)
        prepare_silent(self.dut)

    def add_cable(self, mtu: int) -> None:
        """Make the tester's namespace with its two ports connected to each other."""
        prepare_silent(self.tester)
        connect_directly(self.tester, mtu)
        finish_tester(self.tester)

    def start_daemon(self, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process of the DUT on the DUT's core; its output, line by line, goes to ``log``.

        Unless the lab stays, the kernel kills it when this process dies, however that comes about.
        """
        guard = [] if self.stays else ["setpriv", "--pdeathsig", "KILL", "--"]
        command = self.dut.command([*guard, "taskset", "--cpu-list", str(self.dut_core), "stdbuf", "--output=L", *argv])
        with log.open("wb") as output:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        prefer(daemon.pid)
        self.daemons.append(daemon)
        return daemon

    def disown(self) -> None:
        """Let the lab stay when this process ends."""
        self.record = Record(self.record.id, self.record.lab, None)
        self.record.write()

    def take_down(self) -> None:
        """Remove everything. May be called at any point of the building."""
        for daemon in self.daemons:
            end(daemon)
        self.record.take_down()


def prefer(pid: int) -> None:
    """Put a session before whatever else wants its core: what this machine does besides must not
    look like a weakness of the DUT.

    A core is shared between sessions first (sched(7), autogroup). A kernel without autogroups has
    nothing to write to.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("-20")


def await_start(daemon: subprocess.Popen[bytes], log: Path, name: str, started: Callable[[], bool]) -> None:
    """Return when a process of the DUT, of which a person knows the ``name``, runs and has
    ``started``.

    Raises:
        LabError: it ended, or had not started within START_S seconds; with the last line of its
            log.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and daemon.poll() is None:
        if started():
            return
        time.sleep(0.01)
    last = (log.read_text(errors="replace").strip() or "nothing").splitlines()[-1]
    raise LabError(f"{name} did not start within {START_S:g} s; the last it said: {last}")


def end(daemon: subprocess.Popen[bytes]) -> None:
    """End a child process, which may be on its way into its namespace still."""
    daemon.terminate()
    try:
        daemon.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
