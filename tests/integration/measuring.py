# SPDX-License-Identifier: Apache-2.0
"""A lab with the real engine on it, as the commands have them, for tests that interfere while a
trial runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf import lab, traffic
from dutperf.engine.client import EngineTester
from dutperf.engine.factory import engine_on
from dutperf.model import TrialResult
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from plans import make_trial

MAX_FRAME_SIZE = 1518


@dataclass(frozen=True)
class Bench:
    """A lab and the engine on it."""

    setup: Setup
    tester: EngineTester

    @property
    def tester_netns(self) -> str:
        """Where the engine runs."""
        assert self.setup.engine.netns is not None
        return self.setup.engine.netns

    @property
    def dut_netns(self) -> str:
        """Where the DUT runs."""
        return self.tester_netns.removesuffix("tester") + "dut"

    def run(self, rate_fps: int, **conditions: Any) -> TrialResult:
        """One trial, half a second unless said otherwise, with the lab's smallest frames."""
        defaults: dict[str, Any] = {"duration_s": 0.5, "drain_s": 0.2}
        chosen = SingleTrial(**(defaults | conditions))
        size = conditions.get("frame_sizes", [traffic.of(self.setup, chosen).smallest_frame_size])[0]
        return self.tester.run(make_trial(self.setup, chosen, size, rate_fps, 1))

    def run_while(self, interfere: Callable[[], None], after_s: float, rate_fps: int, **conditions: Any) -> TrialResult:
        """One trial with ``interfere`` called ``after_s`` seconds after it was asked for."""
        timer = threading.Timer(after_s, interfere)
        timer.start()
        try:
            return self.run(rate_fps, **conditions)
        finally:
            timer.join()

    def in_dut(self, *argv: str) -> str:
        """Output of a command in the DUT's namespace."""
        return subprocess.run(
            ["ip", "netns", "exec", self.dut_netns, *argv], check=True, capture_output=True, text=True
        ).stdout

    def link_counters(self, interface: str) -> dict[str, Any]:
        """The kernel's counters of one of the DUT's interfaces (``rx``, ``tx``)."""
        counters: dict[str, Any] = json.loads(self.in_dut("ip", "-s", "-j", "link", "show", interface))[0]["stats64"]
        return counters

    def tayga(self, netns: str | None = None) -> int:
        """Process id of TAYGA in a namespace, by default the DUT's."""
        listed = subprocess.run(
            ["ip", "netns", "pids", netns or self.dut_netns], check=True, capture_output=True, text=True
        ).stdout.split()
        return next(int(pid) for pid in listed if Path(f"/proc/{pid}/comm").read_text().strip() == "tayga")

    def engine(self) -> int:
        """Process id of the engine."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.tester_netns], check=True, capture_output=True, text=True
        ).stdout.split()
        return next(int(pid) for pid in listed if Path(f"/proc/{pid}/comm").read_text().startswith("dutperf-engine"))

    def pause_engine(self, pause_s: float) -> None:
        """Stop the engine for a while, as a debugger or a hypervisor would."""
        pid = self.engine()
        stop(pid)
        time.sleep(pause_s)
        os.kill(pid, signal.SIGCONT)


def stop(pid: int) -> None:
    """Stop a process. The kernel tells one of its threads to stop the others. Until that one has a core,
    the others go on, and a signal to continue would undo the stop unseen. So this waits for it."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while not all(
        thread.read_text().rpartition(")")[2].split()[0] == "T" for thread in Path(f"/proc/{pid}/task").glob("*/stat")
    ):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGCONT)
            raise AssertionError(f"process {pid} does not stop")
        time.sleep(0.0002)


@contextlib.contextmanager
def bench(name: str, options: dict[str, str] | None = None, kind: str | None = None, **side: Any) -> Iterator[Bench]:
    """The lab ``name`` with the engine, its ports of a ``kind`` instead of the one that is chosen;
    ``side`` changes keys of both ports."""
    with lab.bring_up(name, options or {}) as mapping:
        for port in ("left", "right"):
            mapping[port] |= side | ({} if kind is None else {"port": f"{kind}:{mapping[port]['port']}"})
        with bench_on(mapping) as ready:
            yield ready


@contextlib.contextmanager
def bench_on(mapping: dict[str, Any]) -> Iterator[Bench]:
    """The engine on a lab that is there, by its configuration."""
    setup = configuration.parse(mapping, origin="a lab")
    with engine_on(setup, MAX_FRAME_SIZE + setup.tunnel_overhead) as tester:
        tester.environment()
        yield Bench(setup, tester)
