# SPDX-License-Identifier: Apache-2.0
"""Who else worked on the tester's cores, from a made-up /proc; and waiting until nobody does."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dutperf.judge.validity import judge
from dutperf.model import Direction
from dutperf.watch import neighbours
from dutperf.watch.dut_core import Starvation
from plans import counts, trial

TICKS = os.sysconf("SC_CLK_TCK")


def write(proc: Path, steal: int, threads: dict[int, tuple[int, str, int, int]], of_another_run: int = 0) -> None:
    """``threads``: number to process, name, core and run time in ms. All were started by this process but those of
    ``of_another_run``."""
    proc.mkdir(exist_ok=True)
    (proc / "stat").write_text(f"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 9 0 0\ncpu1 0 0 0 0 0 0 0 {steal} 0 0\n")
    for number, (pid, name, core, run_ms) in threads.items():
        task = proc / str(pid) / "task" / str(number)
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"{run_ms * 1_000_000} 7 3\n")
        parent = 1 if pid in (of_another_run, os.getpid()) else os.getpid()
        (task / "stat").write_text(f"{number} ({name}) R {parent} " + " ".join(["0"] * 34) + f" {core} 0 0\n")


def two_readings(proc: Path) -> tuple[neighbours.Load, neighbours.Load]:
    """A second apart: kdamond took 20 ms, dutperf itself 4 ms, and the hypervisor 30 ms."""
    own = os.getpid()
    calm = {
        5: (5, "kdamond.0", 1, 100),
        6: (6, "dutperf-engine", 1, 0),
        own: (own, "dutperf", 1, 50),
        7: (7, "cc1plus", 0, 0),
    }
    write(proc, 100, calm)
    before = neighbours.reading((1,), proc)
    busy = {5: (5, "kdamond.0", 1, 120), 6: (6, "dutperf-engine", 1, 900), own: (own, "dutperf", 1, 54)}
    write(proc, 100 + 3 * TICKS // 100, {**busy, 7: (7, "cc1plus", 0, 500), 8: (8, "(a) b", 1, 2)})
    after = neighbours.reading((1,), proc)
    return before, neighbours.Load(before.at_s + 1, after.cores, after.threads)


def test_who_took_how_much_of_the_testers_core(tmp_path: Path) -> None:
    before, after = two_readings(tmp_path / "proc")
    told = neighbours.on_testers(before, after, (1,), ("dutperf-engine",))
    assert told == ("on the tester's core 1: 3 % stolen by the hypervisor, 2 % kdamond.0")
    assert neighbours.on_testers(before, neighbours.Load(before.at_s + 1, before.cores, before.threads), (1,)) == ""


def test_the_engine_of_another_run_is_not_ours(tmp_path: Path) -> None:
    write(tmp_path / "proc", 0, {6: (6, "dutperf-engine", 1, 0), 9: (9, "dutperf-engine", 1, 0)}, of_another_run=9)
    before = neighbours.reading((1,), tmp_path / "proc")
    write(tmp_path / "proc", 0, {6: (6, "dutperf-engine", 1, 900), 9: (9, "dutperf-engine", 1, 70)}, of_another_run=9)
    after = neighbours.reading((1,), tmp_path / "proc")
    later = neighbours.Load(before.at_s + 1, after.cores, after.threads)
    told = neighbours.on_testers(before, later, (1,), ("dutperf-engine",))
    assert told == "on the tester's core 1: 7 % dutperf-engine"


def test_numbers_that_were_given_anew_make_no_endless_line() -> None:
    threads = {pid: neighbours.Thread("sh", pid, 1, 0, parent) for pid, parent in ((5, 6), (6, 5), (7, os.getpid()))}
    assert neighbours.Load(0.0, {}, threads).own() == {7}


def test_who_took_how_much_of_the_duts_core(tmp_path: Path) -> None:
    """Neither its own processes nor soft interrupts are others; the tester's loops are."""
    threads = {4: (4, "tayga", 1, 0), 5: (5, "sh", 1, 0), 6: (6, "dutperf-engine", 1, 0), 8: (8, "ksoftirqd/1", 1, 0)}
    write(tmp_path / "proc", 0, threads)
    before = neighbours.reading((1,), tmp_path / "proc")
    ran_ms = {4: 300, 5: 490, 6: 100, 8: 50}
    write(tmp_path / "proc", 0, {number: (*one[:3], ran_ms[number]) for number, one in threads.items()})
    after = neighbours.reading((1,), tmp_path / "proc")
    load = neighbours.Load(before.at_s + 1, after.cores, after.threads)
    told = neighbours.on_duts(before, load, (1,), (4,))
    assert told == "on the DUT's core 1: 49 % sh, 10 % dutperf-engine"


def test_the_shares_sum_up_to_what_others_took(tmp_path: Path) -> None:
    """Of 37 % the two greatest have 5 %, a small one 1.5 %, and programs that have ended since the rest."""
    proc = tmp_path / "proc"
    threads = {4: (4, "tayga", 1, 0), 5: (5, "a-name-of-fifte", 1, 0), 6: (6, "b", 1, 0), 7: (7, "c", 1, 0)}
    write(proc, 0, threads)
    before = neighbours.reading((1,), proc)
    ran_ms = {4: 300, 5: 30, 6: 15, 7: 20}
    write(proc, 0, {number: (*one[:3], ran_ms[number]) for number, one in threads.items()})
    (proc / "stat").write_text(f"cpu1 {TICKS * 60 // 100} 0 {TICKS * 7 // 100} 0 0 0 50 0 0 0\n")
    after = neighbours.reading((1,), proc)
    load = neighbours.Load(before.at_s + 1, after.cores, after.threads)
    said = neighbours.on_duts(before, load, (1,), (4,))
    assert said == "on the DUT's core 1: 3 % a-name-of-fifte, 2 % c, 32 % small, ended or moved programs"
    gone = neighbours.Load(load.at_s, load.cores, {})
    assert neighbours.on_duts(before, gone, (1,), ()) == "on the DUT's core: 67 % small, ended or moved programs"
    _, [cause] = judge(trial(), {Direction.FORWARD: counts(received=400)}, Starvation(share=0.37))
    assert len(f"{cause.text} ({said})") < 2 * 100  # lines of a terminal


@pytest.mark.parametrize(
    ("group", "stat", "line"),
    [
        ("0::/a", "sys/fs/cgroup/a/cpu.stat", "throttled_usec {}000"),
        ("1:cpu:/", "sys/fs/cgroup/cpu/cpu.stat", "throttled_time {}000000"),
    ],
)
def test_what_a_cpu_quota_stopped_is_no_load_of_others(group: str, stat: str, line: str, tmp_path: Path) -> None:
    before, after = two_readings(tmp_path / "proc")
    (tmp_path / "proc" / "self").mkdir()
    (tmp_path / "proc" / "self" / "cgroup").write_text(f"{group}\n")
    (tmp_path / stat).parent.mkdir(parents=True)
    loads = []
    for stopped_ms, load in ((100, before), (350, before)):
        (tmp_path / stat).write_text(f"nr_throttled 7\n{line.format(stopped_ms)}\n")
        loads.append(replace(load, stopped_s=neighbours.reading((1,), tmp_path / "proc").stopped_s))
    told = "the CPU quota of this control group stopped it for 0.25 s"
    assert neighbours.on_testers(*loads, (1,)) == told
    both = neighbours.on_testers(loads[0], replace(after, stopped_s=loads[1].stopped_s), (1,), ("dutperf-engine",))
    assert both.startswith(f"{told}; on the tester's core 1: ")


def test_this_machine_can_be_read() -> None:
    load = neighbours.reading(sorted(os.sched_getaffinity(0)))
    assert load.cores
    assert any(thread.pid == os.getpid() for thread in load.threads.values())


def test_a_busy_machine_is_waited_for_no_longer_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(neighbours, "QUIET_SHARE", -1.0)
    assert 0.3 <= neighbours.wait_until_quiet((core,), 0.3) < 30
    monkeypatch.setattr(neighbours, "QUIET_SHARE", 1e9)
    assert neighbours.wait_until_quiet((core,), 60) < 30


def test_what_spins_on_the_core_is_seen() -> None:
    stop = threading.Event()
    before = neighbours.reading(sorted(os.sched_getaffinity(0)))
    end_s = time.monotonic() + 0.3
    while time.monotonic() < end_s and not stop.is_set():
        pass
    after = neighbours.reading(sorted(os.sched_getaffinity(0)))
    took = neighbours.shares(before, after)
    assert sum(of.get("dutperf itself", 0.0) for of in took.values()) > 0.05
