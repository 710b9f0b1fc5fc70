# SPDX-License-Identifier: Apache-2.0
"""Ways to harm the tester, its machine or its cables while it measures. Each is undone before the
call returns."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from dutperf.lab.refdut import Properties, RefDut
from dutperf.model import Trial, TrialResult
from dutperf.tester import Progress
from integration.measuring import Bench, stop


@dataclass(frozen=True)
class Target:
    """What is harmed. The engine's process id is known beforehand: to look for it takes longer than
    some faults last."""

    bench: Bench
    engine: int
    struck: Callable[[], None]
    """Called as soon as the engine stands still or the port is down, by what makes it so: that may
    have been away just before, or slow to start."""


Harm = Callable[[Target], None]

HARMED_AFTER_S = 0.1
PROGRESS_MS = 20


def truth_of(ready: Bench) -> RefDut:
    """The reference DUT of the lab."""
    return RefDut(Path(str(ready.setup.dut.control)))


def result_of(ready: Bench, dut: Properties, trial: Trial, what: Harm | None) -> TrialResult:
    """The result of a trial that is harmed when frames of a tenth of a second have been sent.

    The engine says when. The reference DUT forwards nothing while it answers, for 2 ms: its counters are read
    after the trial only.
    """
    truth_of(ready).configure(dut)
    ready.tester.environment()
    target, under_way = Target(ready, ready.engine(), lambda: None), threading.Event()

    def note(progress: Progress) -> None:
        if progress.elapsed_s >= HARMED_AFTER_S:
            under_way.set()

    def interfere() -> None:
        go_first()
        assert under_way.wait(timeout=20)
        if what is not None:
            what(target)

    with ThreadPoolExecutor(1) as beside:
        harmed = beside.submit(interfere)
        result = ready.tester.run(trial.model_copy(update={"progress_ms": PROGRESS_MS}), on_progress=note)
    harmed.result()  # or its error
    return result


_SYS_PIDFD_GETFD = 438
"""On every architecture."""

_BUSY = """
import os, sys, time
from contextlib import suppress
os.sched_setaffinity(0, {int(sys.argv[1])})
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
except PermissionError:
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""
"""A neighbour that lets go of the core for nobody, where the machine lets it."""
_NEIGHBOURS = 16
"""So many take a core where it does not: each has it for a turn, and the turns of all are a long stall."""

_SEND_LINES = """
import socket, sys
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind((sys.argv[1], 0))
for line in sys.stdin:
    port.send(bytes.fromhex(line))
"""

_FLOOD = """
import socket, sys, time
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind((sys.argv[1], 0))
frame = b"\\xff" * 6 + b"\\x02" + bytes(5) + b"\\x88\\xb5" + bytes(1000)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        port.send(frame)
    except OSError:
        pass
"""
"""Frames of an EtherType for experiments (IEEE 802), as fast as they go."""


def go_first() -> None:
    """The calling thread gets the priority of the loops of tester and DUT, which keep all cores of a small machine
    busy, where it may have that: where it may not, they have none either."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)


def stop_engine(stop_s: float) -> Harm:
    """All of the engine stands still for a while."""
    return stop_engine_often(stop_s, times=1)


def stop_engine_often(stop_s: float, times: int) -> Harm:
    """It stands still a little, several times, as a hypervisor would have it."""

    def harm(target: Target) -> None:
        for number in range(times):
            stop(target.engine)
            if number == 0:
                target.struck()
            time.sleep(stop_s)
            os.kill(target.engine, signal.SIGCONT)
            time.sleep(stop_s)

    return harm


def kill_engine(target: Target) -> None:
    """It is gone."""
    os.kill(target.engine, signal.SIGKILL)


def neighbour_of_tester(busy_s: float) -> Harm:
    """Another program wants the cores of the engine's loops, and goes first."""
    return lambda target: keep_busy(_tester_cores(target.bench), busy_s)


def neighbour_of_dut(busy_s: float) -> Harm:
    """Another program wants the DUT's core."""
    return lambda target: keep_busy(set(target.bench.setup.engine.dut_cores), busy_s)


def take_turns(cores: set[int], busy_s: float, times: int) -> None:
    """The calling thread wants the cores a few times, and goes first (:func:`may_be_real_time`): a new process would
    take more time to start than a turn lasts."""
    os.sched_setaffinity(0, cores)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    for _ in range(times):
        time.sleep(0.25)
        end = time.monotonic() + busy_s
        while time.monotonic() < end:
            pass


def port_down(port: str, down_s: float) -> Harm:
    """One of the tester's own ports is taken down, and up again."""

    def harm(target: Target) -> None:
        _ip(target.bench.tester_netns, "link", "set", port, "down")
        target.struck()
        time.sleep(down_s)
        _ip(target.bench.tester_netns, "link", "set", port, "up")

    return harm


def flood(port: str, flood_s: float) -> Harm:
    """Strangers' frames fill what the tester receives in; ``port`` is the DUT's end of the cable."""

    def harm(target: Target) -> None:
        subprocess.run(
            ["ip", "netns", "exec", target.bench.dut_netns, sys.executable, "-c", _FLOOD, port, str(flood_s)],
            check=True,
        )

    return harm


def send_foreign_frames(port: str, count: int) -> Harm:
    """Test frames of another run's trial come out of the DUT; ``port`` is its end of the cable."""
    tag = bytes.fromhex("d754500000010001")  # signature, run, trial 1, forward
    frames = [
        bytes(
            Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:09")
            / IP(src="198.18.0.2", dst="198.19.0.2")
            / UDP(sport=49184, dport=7)
            / Raw(tag + number.to_bytes(5, "big") + bytes(5))
        )
        for number in range(count)
    ]

    def harm(target: Target) -> None:
        lines = "\n".join(frame.hex() for frame in frames)
        command = ["ip", "netns", "exec", target.bench.dut_netns, sys.executable, "-c", _SEND_LINES, port]
        subprocess.run(command, input=lines, text=True, check=True)

    return harm


def tagged_strangers(port: str, count: int) -> Harm:
    """A switch's LLDP frames in a VLAN come out of the DUT, whose end of the cable is ``port``: the tester's kernel
    counts them as dropped, though its socket gets them."""
    frame = "0180c200000e0200000000018100006488cc0207" + bytes(60).hex()

    def harm(target: Target) -> None:
        lines = "\n".join([frame] * count)
        command = ["ip", "netns", "exec", target.bench.dut_netns, sys.executable, "-c", _SEND_LINES, port]
        subprocess.run(command, input=lines, text=True, check=True)

    return harm


def in_tester(*commands: str) -> Harm:
    """Somebody configures the tester's machine."""

    def harm(target: Target) -> None:
        for command in commands:
            subprocess.run(["ip", "netns", "exec", target.bench.tester_netns, *command.split()], check=True)

    return harm


def fill_receive_socket(port: str, flood_s: float) -> Harm:
    """The engine stands still, and its packet sockets have the least buffer that the kernel grants,
    until strangers' frames have filled what they hold."""

    def harm(target: Target) -> None:
        stop(target.engine)
        try:
            for one in _packet_sockets(target.engine):
                with one:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            flood(port, flood_s)(target)
        finally:
            os.kill(target.engine, signal.SIGCONT)

    return harm


def _packet_sockets(pid: int) -> list[socket.socket]:
    """Those of another process, as descriptors of this one (pidfd_getfd(2))."""
    inodes = {line.split()[8] for line in Path(f"/proc/{pid}/net/packet").read_text().splitlines()[1:]}
    links = ((int(link.name), str(link.readlink())) for link in Path(f"/proc/{pid}/fd").iterdir())
    numbers = [number for number, to in links if to.removeprefix("socket:[").removesuffix("]") in inodes]
    assert numbers, "the engine has no packet socket"
    process = os.pidfd_open(pid)
    try:
        return [socket.socket(fileno=_pidfd_getfd(process, number)) for number in numbers]
    finally:
        os.close(process)


def _pidfd_getfd(process: int, number: int) -> int:
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(_SYS_PIDFD_GETFD, process, number, 0)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    return descriptor


def _tester_cores(bench: Bench) -> set[int]:
    """Cores of the engine's loops."""
    roles: dict[str, int] = bench.tester.environment()["roles"]
    return set(roles.values())


def keep_busy(cores: set[int], busy_s: float) -> None:
    """A neighbour on each of these cores, or several that have it in turns."""
    assert cores
    each = 1 if may_be_real_time() else _NEIGHBOURS
    commands = [[sys.executable, "-c", _BUSY, str(core), str(busy_s)] for core in cores for _ in range(each)]
    for process in [subprocess.Popen(command) for command in commands]:
        assert process.wait() == 0


def may_be_real_time() -> bool:
    """Whether a process of this machine may go before all others (SCHED_FIFO). In most containers it may not."""
    with ThreadPoolExecutor(1) as one:  # a thread of its own: it keeps what it gets
        return one.submit(_becomes_real_time).result()


def _becomes_real_time() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    return True


def _ip(netns: str, *arguments: str) -> None:
    subprocess.run(["ip", "-n", netns, *arguments], check=True)
