# SPDX-License-Identifier: Apache-2.0
"""An engine that is interrupted, ended or killed at any moment leaves the ports as they were, or the next
one puts them back. Root only."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dutperf.engine.client import EngineTester
from dutperf.engine.factory import engine_on
from dutperf.setup import configuration
from dutperf.tester import TesterError

from .test_by_hand import SIDES, made
from .test_kernel_ports import PORTS, run_in

pytestmark = pytest.mark.root
PROGRAM_OF_DRIVER = next(Path("/usr/lib").glob("*/bpf/xsk_def_xdp_prog.o"), None)
_BPF_PROG_GET_FD_BY_ID, _BPF = 13, {"x86_64": 321, "aarch64": 280}[os.uname().machine]


def state(name: str) -> list[Any]:
    """What an engine changes on the ports."""
    links = {link["ifname"]: link for link in json.loads(run_in(name, "ip", "-d", "-j", "link"))}
    return [
        (
            [links[port].get(member) for member in ("xdp", "promiscuity", "flags", "mtu", "qdisc")],
            run_in(name, "ethtool", "-k", port),
        )
        for port in PORTS
    ]


def processes(name: str) -> list[int]:
    listed = subprocess.run(["ip", "netns", "pids", name], check=True, capture_output=True, text=True).stdout
    return [int(pid) for pid in listed.split()]


def settled(name: str, before: list[Any]) -> list[Any]:
    """The state once no process is left, and the kernel has closed what it had open."""
    deadline = time.monotonic() + 30
    while (processes(name) or state(name) != before) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes(name) == []
    return state(name)


@contextmanager
def engine(name: str, kind: str) -> Iterator[EngineTester]:
    sides = {side: values | {"port": f"{kind}:{values['port']}"} for side, values in SIDES["router"].items()}
    with engine_on(configuration.parse({"engine": {"netns": name}, **sides}, "by hand"), 1518) as made_one:
        yield made_one


def kill_engine(name: str) -> None:
    for pid in processes(name):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while processes(name) and time.monotonic() < deadline:
        time.sleep(0.01)


@contextmanager
def interrupted_after(delay_s: float) -> Iterator[None]:
    """Ctrl-C so long after the beginning; it may come too late."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay_s)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def open_for(name: str, kind: str, delay_s: float) -> None:
    """Open the ports, with a Ctrl-C meanwhile."""
    with engine(name, kind) as one, interrupted_after(delay_s):
        one.environment()


@contextmanager
def ports(*, promiscuous: bool = False) -> Iterator[str]:
    with made("router") as name:
        for port in PORTS:
            run_in(name, "ethtool", "-K", port, "gro", "on")
            if promiscuous:
                run_in(name, "ip", "link", "set", port, "promisc", "on")
        yield name


@pytest.mark.parametrize(("kind", "promiscuous"), [("af_packet", False), ("af_xdp", True)])
def test_an_engine_that_ends_leaves_the_ports_as_they_were(kind: str, promiscuous: bool) -> None:
    with ports(promiscuous=promiscuous) as name:
        before = state(name)
        with engine(name, kind) as one:
            one.environment()
            assert all(members[1] > 0 for members, _ in state(name))  # promiscuity
        assert settled(name, before) == before


@pytest.mark.parametrize(("kind", "moments"), [pytest.param("af_packet", 2, marks=pytest.mark.long), ("af_xdp", 5)])
def test_an_interruption_while_the_ports_are_opened_leaves_them_as_they_were(kind: str, moments: int) -> None:
    """At moments that cover the opening, however long it takes here."""
    with ports() as name:
        before = state(name)
        with engine(name, kind) as one:
            began = time.monotonic()
            one.environment()
            lasts_s = time.monotonic() - began
        for moment in range(1, moments + 1):
            open_for(name, kind, lasts_s * moment / moments)
            assert settled(name, before) == before, moment
        with engine(name, kind) as one:
            assert one.environment()["left"]["driver"] == f"net_{kind}"


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
def test_an_engine_that_a_signal_ends_takes_its_changes_back(number: signal.Signals) -> None:
    """SIGTERM also comes from the kernel when the package is killed."""
    with ports() as name:
        before = state(name)
        with engine(name, "af_xdp") as one:
            one.environment()
            for pid in processes(name):
                os.kill(pid, number)
            assert settled(name, before) == before


@pytest.mark.parametrize(("kind", "promiscuous"), [("af_packet", False), ("af_xdp", True)])
def test_the_next_engine_puts_back_what_a_killed_one_left(kind: str, promiscuous: bool) -> None:
    with ports(promiscuous=promiscuous) as name:
        before = state(name)
        with engine(name, kind) as one:
            one.environment()
            kill_engine(name)
        if promiscuous:  # as if DPDK had just cleared it
            run_in(name, "ip", "link", "set", "eth1", "promisc", "off")
        with engine(name, kind) as one:
            said = [warning for warning in one.environment()["warnings"] if "was killed left eth" in warning]
            assert said != []
        assert settled(name, before) == before
        with engine(name, kind) as one:
            assert not [warning for warning in one.environment()["warnings"] if "was killed" in warning]


def attach(name: str, port: str) -> None:
    """The program of DPDK's AF_XDP driver, as an engine leaves it that is killed while it opens the port."""
    run_in(name, "ip", "link", "set", "dev", port, "xdp", "object", str(PROGRAM_OF_DRIVER), "program", "xsk_def_prog")


def opened_program(name: str, port: str) -> int:
    """A file descriptor of the port's program, as a living process has it."""
    [link] = json.loads(run_in(name, "ip", "-j", "link", "show", port))
    attribute = struct.pack("III", link["xdp"]["prog"]["id"], 0, 0)
    return int(ctypes.CDLL(None, use_errno=True).syscall(_BPF, _BPF_PROG_GET_FD_BY_ID, attribute, len(attribute)))


@pytest.mark.skipif(PROGRAM_OF_DRIVER is None, reason="libxdp has its program elsewhere")
def test_only_a_program_that_a_killed_engine_left_is_taken_off() -> None:
    def refused(kind: str = "af_xdp") -> bool:
        with engine(name, kind) as one:
            try:
                one.environment()
            except TesterError as error:
                return "XDP program of another program" in str(error)
        return False

    with ports() as name:
        before = state(name)
        attach(name, "eth1")
        assert refused()  # no engine was killed
        assert refused("af_packet")  # of which frames it would drop
        run_in(name, "ip", "link", "set", "dev", "eth1", "xdp", "off")
        with engine(name, "af_xdp") as one:
            one.environment()
            kill_engine(name)
        attach(name, "eth1")
        held = opened_program(name, "eth1")
        assert held >= 0
        assert refused()  # a process has it open
        os.close(held)
        run_in(name, "ip", "link", "set", "dev", "eth1", "xdp", "off")
        with engine(name, "af_xdp") as one:
            one.environment()
            kill_engine(name)
        attach(name, "eth1")
        assert not refused()
        assert settled(name, before) == before
