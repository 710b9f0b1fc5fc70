# SPDX-License-Identifier: Apache-2.0
"""One lab instance: its namespaces, its processes, and the record by which it is taken down even if its
owner was killed.

The record (``/run/dutperf/labs/ID.json``) is written before anything is created, and removed after
everything else. A record whose owner is dead marks leftovers, which the next lab command removes.
Names include the random ID, so that instances do not collide.
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
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from dutperf.lab.errors import LabError
from dutperf.lab.hosts import host_of
from dutperf.lab.netns import (
    CABLES,
    DUT_PORTS,
    Namespace,
    confine,
    connect,
    connect_directly,
    finish_tester,
    hand_to_program,
    prepare_quiet,
    prepare_router,
    send_whole_frames,
    start_router,
)
from dutperf.machine import child

STATE_DIR = Path("/run/dutperf/labs")
START_S = 30.0
"""Time limit for the start of a process of the DUT, in seconds: what takes a tenth of one takes five where the machine
is busy."""
GRACE_S = 2.0
"""Time in seconds for processes to terminate before they are killed."""


MOST_DUTS = 9


def link_to(client: int) -> str:
    """The port of the DUT behind all others to one of them, from 0."""
    return f"d{client + 1}"


def star_ports(clients: int) -> tuple[str, ...]:
    """The tester's ports to so many DUTs, and the one to the DUT behind them."""
    return *(f"t{client + 1}" for client in range(clients)), CABLES[1][0]


@dataclass(frozen=True)
class Owner:
    """The process that a lab belongs to. The start time (clock ticks since boot) distinguishes it from a
    later process with the same id."""

    pid: int
    start_time: int

    @classmethod
    def me(cls) -> Owner:
        start_time = process_start_time(os.getpid())
        assert start_time is not None
        return cls(os.getpid(), start_time)

    def lives(self) -> bool:
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
    """The record of a lab. ``owner`` is None for a lab that stays until it is taken down by name."""

    id: str
    lab: str
    owner: Owner | None

    @property
    def file(self) -> Path:
        return STATE_DIR / f"{self.id}.json"

    @property
    def configuration_file(self) -> Path:
        """Path of the tester's configuration, for a lab that stays."""
        return STATE_DIR / f"{self.id}.yaml"

    @property
    def directory(self) -> Path:
        """Directory for the files of the DUT's processes."""
        return STATE_DIR / self.id

    @property
    def tester(self) -> Namespace:
        """The tester's namespace, whether it exists or not."""
        return Namespace(f"dutperf-{self.id}-tester")

    @property
    def duts(self) -> tuple[Namespace, ...]:
        """The namespaces of the DUT and of further ones beside it, whether they exist or not."""
        return tuple(Namespace(f"dutperf-{self.id}-dut{number or ''}") for number in (0, *range(2, MOST_DUTS + 1)))

    @classmethod
    def read(cls, file: Path) -> Record | None:
        """The record in ``file``; None if it has just been removed, or was truncated by a crash."""
        try:
            values = json.loads(file.read_text())
            owner = values["owner"]
            return cls(values["id"], values["lab"], None if owner is None else Owner(**owner))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self) -> None:
        """Write it atomically."""
        STATE_DIR.mkdir(parents=True, exist_ok=True)
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.rename(self.file)

    def take_down(self) -> None:
        """End every process in the lab's namespaces; remove the namespaces and all files. Parts that are
        gone already are skipped."""
        for namespace in (*self.duts, self.tester, *(host_of(self.tester, side) for side in ("left", "right"))):
            end_processes(namespace)
            namespace.delete()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.configuration_file.unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)


def end_processes(namespace: Namespace) -> None:
    """Terminate the processes in ``namespace``; kill those that do not end in time (a stopped process,
    for example)."""
    left = namespace.processes()
    signal_all(left, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = namespace.processes()
    signal_all(left, signal.SIGKILL)


def signal_all(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to those of ``pids`` that still exist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def records() -> list[Record]:
    """The records of all labs, leftovers included."""
    return [record for file in sorted(STATE_DIR.glob("*.json")) if (record := Record.read(file)) is not None]


def remove_leftovers() -> int:
    """Take down the labs whose owners were killed; returns how many. Only one process at a time does
    this."""
    with exclusively():
        leftovers = [record for record in records() if record.owner is not None and not record.owner.lives()]
        for record in leftovers:
            record.take_down()
    return len(leftovers)


@contextlib.contextmanager
def exclusively() -> Iterator[None]:
    """Within, no other lab command removes labs. The kernel releases the lock of a killed process."""
    STATE_DIR.mkdir(parents=True, exist_ok=True)
    with (STATE_DIR / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class Site:
    """A lab instance while it is being built and used by its owner."""

    record: Record
    stays: bool
    """Whether the lab outlives this process, which owns it while it is being built."""
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    place: int = 0
    """Of this DUT, where there are several."""
    core: int | None = None
    """Of this DUT; None: the usual one."""

    @classmethod
    def draft(cls, lab: str, *, stays: bool = False) -> Site:
        """A new instance, not built yet."""
        return cls(Record(secrets.token_hex(4), lab, Owner.me()), stays)

    @property
    def tester(self) -> Namespace:
        """Where the engine runs."""
        return self.record.tester

    @property
    def dut(self) -> Namespace:
        """Where the DUT runs."""
        return self.record.duts[self.place]

    @property
    def directory(self) -> Path:
        """For files of the DUT's processes; removed with the lab."""
        return self.record.directory / str(self.place + 1) if self.place else self.record.directory

    @property
    def dut_core(self) -> int:
        """The DUT's core, by default the last one that this process may use. The tester has the others."""
        return max(os.sched_getaffinity(0)) if self.core is None else self.core

    def engine_settings(self) -> dict[str, str | list[str]]:
        names = [dut.name for dut in self.record.duts if dut.exists()]
        dut = {"dut_netns": names if len(names) > 1 else names[0]} if names else {}
        return {"netns": self.tester.name, **dut}

    def prepare(self) -> None:
        """Write the record, make the directory."""
        self.record.write()
        self.directory.mkdir()

    def dut_cores(self, count: int) -> tuple[int, ...]:
        """So many cores for the DUT: the last ones that this process may use. Raises LabError: none would be left for
        the tester."""
        usable = sorted(os.sched_getaffinity(0))
        if count > max(1, len(usable) - 1):
            raise LabError(
                f"lab {self.record.lab}: option cores={count}: this process may use {len(usable)} cores, and the tester"
                " needs one of them"
            )
        return tuple(usable[-count:])

    def add_router(self, mtu: int, cores: Collection[int] = ()) -> None:
        """Create both namespaces and the cables between them; the DUT forwards on ``cores`` (none: on
        :attr:`dut_core`), but has no addresses yet."""
        prepare_quiet(self.tester)
        prepare_router(self.dut)
        connect(self.tester, self.dut, mtu)
        finish_tester(self.tester)
        send_whole_frames(self.dut)
        start_router(self.dut)
        confine(self.dut, cores or [self.dut_core])

    def add_routers(self, mtu: int, mtu_between: int) -> tuple[Site, Site]:
        """Create the tester's namespace and two routers in a row, which have no addresses yet. Each result has one of
        them as its DUT. They share the DUT's core, unless there are more than three cores."""
        both = self._add_row(mtu, mtu_between, prepare_router)
        for one in both:
            start_router(one.dut)
            confine(one.dut, [one.dut_core])
        return both

    def add_program_duts(self, mtu: int, mtu_between: int) -> tuple[Site, Site]:
        """The same for two DUTs that are programs with packet sockets."""
        both = self._add_row(mtu, mtu_between, prepare_quiet)
        for one in both:
            hand_to_program(one.dut, DUT_PORTS)
            confine(one.dut, [one.dut_core])
        return both

    def _add_row(self, mtu: int, mtu_between: int, prepare: Callable[[Namespace], None]) -> tuple[Site, Site]:
        cores = self.dut_cores(2) if len(os.sched_getaffinity(0)) > 3 else (self.dut_core, self.dut_core)
        near, far = (replace(self, place=place, core=core) for place, core in enumerate(cores))
        far.directory.mkdir()
        prepare_quiet(self.tester)
        prepare(near.dut)
        prepare(far.dut)
        connect(self.tester, near.dut, mtu, CABLES[:1])
        connect(near.dut, far.dut, mtu_between, [(DUT_PORTS[1], DUT_PORTS[0])])
        connect(self.tester, far.dut, mtu, CABLES[1:])
        finish_tester(self.tester)
        send_whole_frames(near.dut)
        send_whole_frames(far.dut)
        return near, far

    def add_star(self, mtu: int, mtu_between: int, clients: int) -> tuple[Site, ...]:
        """Create the tester's namespace, so many routers with a cable to it each, and one more behind all of them. They
        have no addresses yet. Each result has one of them as its DUT, the last one behind the others; its links to them
        are :func:`link_to`. All share the DUT's core."""
        *near, far = (replace(self, place=place, core=self.dut_core) for place in range(clients + 1))
        links = [link_to(client) for client in range(clients)]
        prepare_quiet(self.tester)
        for site in (*near, far):
            prepare_router(site.dut)
        for one, port, link in zip(near, star_ports(clients), links, strict=False):
            connect(self.tester, one.dut, mtu, [(port, DUT_PORTS[0])])
            connect(one.dut, far.dut, mtu_between, [(DUT_PORTS[1], link)])
        connect(self.tester, far.dut, mtu, CABLES[1:])
        finish_tester(self.tester, star_ports(clients))
        for one, ports in (*((one, DUT_PORTS) for one in near), (far, (*links, DUT_PORTS[1]))):
            send_whole_frames(one.dut, ports)
            start_router(one.dut, ports)
            confine(one.dut, [one.dut_core], ports)
        return (*near, far)

    def add_switch(self, mtu: int, cores: Collection[int], cables: Sequence[tuple[str, str]] = CABLES) -> None:
        """Create both namespaces and the cables between them; the DUT's ports are up, its kernel sends nothing of
        its own, and what it receives is processed on ``cores``."""
        self._add_quiet(mtu, cables)
        ports = [far for _, far in cables]
        self.dut.ip(*(f"link set {port} up" for port in ports))
        confine(self.dut, cores, ports)

    def add_program_dut(self, mtu: int) -> None:
        """Create both namespaces and the cables between them, for a DUT that is a program with packet
        sockets."""
        self._add_quiet(mtu)
        hand_to_program(self.dut, DUT_PORTS)
        confine(self.dut, [self.dut_core])

    def _add_quiet(self, mtu: int, cables: Sequence[tuple[str, str]] = CABLES) -> None:
        prepare_quiet(self.tester)
        prepare_quiet(self.dut)
        connect(self.tester, self.dut, mtu, cables)
        finish_tester(self.tester, [near for near, _ in cables])
        send_whole_frames(self.dut, [far for _, far in cables])

    def add_memory_dut(self) -> None:
        """Create both namespaces without cables, for a DUT and a tester that share memory."""
        prepare_quiet(self.tester)
        prepare_quiet(self.dut)

    def add_cable(self, mtu: int) -> None:
        """Create the tester's namespace with its two ports connected to each other."""
        prepare_quiet(self.tester)
        connect_directly(self.tester, mtu)
        finish_tester(self.tester)

    def start_daemon(self, argv: Sequence[str], log: Path, cores: Collection[int] = ()) -> subprocess.Popen[bytes]:
        """Start a process of the DUT on ``cores`` (none: on :attr:`dut_core`); its output goes to ``log``,
        line-buffered.

        Unless the lab stays, the kernel kills it when this process dies for any reason.
        """
        start = subprocess.Popen if self.stays else partial(child.start, ends_by=signal.SIGKILL)
        core_list = ",".join(map(str, cores or [self.dut_core]))
        command = self.dut.command(["taskset", "--cpu-list", core_list, "stdbuf", "--output=L", *argv])
        with log.open("wb") as output:
            daemon = start(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        prefer(daemon.pid)
        self.daemons.append(daemon)
        return daemon

    def disown(self) -> None:
        """Let the lab outlive this process."""
        self.record = Record(self.record.id, self.record.lab, None)
        self.record.write()

    def take_down(self) -> None:
        """Remove everything, also of a partly built lab."""
        for daemon in self.daemons:
            end(daemon)
        self.record.take_down()


def prefer(pid: int) -> None:
    """Give a session priority on its core: other work of this machine must not look like a weakness of
    the DUT.

    The kernel first divides a core between sessions (sched(7), autogroup). Kernels without autogroups
    have no such file.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("-20")


def await_start(
    daemon: subprocess.Popen[bytes], log: Path, name: str, started: Callable[[], bool], limit_s: float = START_S
) -> None:
    """Wait until a process of the DUT has ``started``; ``name`` it for messages. Raises LabError: it ended, or did not
    start within ``limit_s`` seconds; with the last line of its log."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and daemon.poll() is None:
        if started():
            return
        time.sleep(0.01)
    last = (log.read_text(errors="replace").strip() or "nothing").splitlines()[-1]
    how = f"did not start within {limit_s:g} s" if daemon.poll() is None else f"ended with status {daemon.returncode}"
    raise LabError(f"{name} {how}; last output: {last}")


def end(daemon: subprocess.Popen[bytes]) -> None:
    """End a child process, which may not have entered its namespace yet."""
    daemon.terminate()
    try:
        daemon.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
