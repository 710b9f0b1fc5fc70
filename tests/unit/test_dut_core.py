# SPDX-License-Identifier: Apache-2.0
"""How much of its core a DUT on this machine did without, from a made-up /proc; and that a loss is
then not the DUT's."""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.judge import validity
from dutperf.model import LOSS_BINS, Direction, Losses, Verdict
from dutperf.watch import dut_core, dut_waits
from dutperf.watch.dut_core import DutCores, DutWatch, Reading, Sending, Starvation
from dutperf.watch.dut_waits import Wait
from plans import counts, trial

TICKS = os.sysconf("SC_CLK_TCK")


def write_stat(proc: Path, user: int, softirq: int, steal: int = 0) -> None:
    """/proc/stat of two cores, of which the second is the DUT's."""
    fields = {0: "9 9 9 9 9 9 9 9 0 0", 1: f"{user} 0 0 1000 0 0 {softirq} {steal} 0 0"}
    proc.mkdir(exist_ok=True)
    (proc / "stat").write_text(
        "cpu  1 1 1 1 1 1 1 1 0 0\n" + "".join(f"cpu{core} {line}\n" for core, line in fields.items())
    )


@pytest.mark.parametrize(
    ("user", "softirq", "steal", "taken"),
    [(0, 0, 0, 0.0), (0, 2 * TICKS, 0, 0.0), (TICKS, 0, 0, 0.5), (0, 0, TICKS // 2, 0.25), (4 * TICKS, 0, 0, 1.0)],
)
def test_what_is_not_soft_interrupts_was_taken_by_others(
    tmp_path: Path, user: int, softirq: int, steal: int, taken: float
) -> None:
    proc, watched = tmp_path / "proc", DutCores((1,))
    write_stat(proc, 100, 100, 100)
    before = watched.reading(proc)
    write_stat(proc, 100 + user, 100 + softirq, 100 + steal)
    assert watched.reading(proc).taken_since(before, 2.0, 1) == pytest.approx(taken, abs=0.01)


def test_the_duts_own_processes_are_not_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc, netns = tmp_path / "proc", tmp_path / "netns"
    netns.mkdir()
    for name in ("clat", "plat", "other"):
        (netns / name).write_text("")
    monkeypatch.setattr(dut_core, "NETNS", netns)
    write_stat(proc, TICKS, 0)
    for pid, where in (("17", "clat"), ("18", "other"), ("19", "plat")):
        (proc / pid / "ns").mkdir(parents=True)
        (proc / pid / "stat").write_text(f"{pid} (a b) S " + " ".join(["0"] * 10) + f" {TICKS // 2} {TICKS // 4} 0")
        (proc / pid / "ns" / "net").symlink_to(netns / where)
    own = TICKS // 2 + TICKS // 4
    assert DutCores((1,), ("clat", "plat")).reading(proc).own_ticks == {17: own, 19: own}
    reading = DutCores((1,), ("clat",)).reading(proc)
    assert (reading.busy_ticks, reading.own_ticks) == (TICKS, {17: own})
    assert Reading(2 * TICKS, {17: TICKS, 19: TICKS}).taken_since(reading, 1.0, 1) == 0.0


def test_a_process_of_the_dut_that_ended_takes_its_account_with_it() -> None:
    """A DUT that is killed and started anew is not to look like others on its core."""
    before, after = Reading(TICKS, {17: TICKS // 2}), Reading(3 * TICKS, {18: 1})
    assert after.taken_since(before, 2.0, 1) is None
    assert after.taken_since(Reading(TICKS, {}), 2.0, 1) == pytest.approx(1.0, abs=0.01)


def test_this_machine_can_be_read() -> None:
    core = max(os.sched_getaffinity(0))
    assert DutCores((core,)).reading().busy_ticks > 0


@pytest.mark.parametrize(
    ("lost", "taken", "verdict"),
    [(10, 0.0, Verdict.VALID), (10, 0.05, Verdict.VALID), (10, 0.06, Verdict.INVALID), (0, 1.0, Verdict.VALID)],
)
def test_a_loss_while_others_had_the_core_says_nothing_about_the_dut(lost: int, taken: float, verdict: Verdict) -> None:
    found, causes = validity.judge(trial(1000), {Direction.FORWARD: counts(received=1000 - lost)}, Starvation(taken))
    assert found is verdict
    assert [cause.code for cause in causes] == ([validity.DUT_DISTURBED] if verdict is Verdict.INVALID else [])


def test_how_long_the_duts_threads_waited_for_a_core(tmp_path: Path) -> None:
    proc, watched = tmp_path / "proc", DutCores((1,), pids=(17,))
    threads = {"17": 1_000_000, "18": 2_000_000}

    def write(more_ns: int, steal: int) -> None:
        write_stat(proc, 0, 0, steal)
        (proc / "17").mkdir(exist_ok=True)
        (proc / "17" / "stat").write_text("17 (dut) R " + " ".join(["0"] * 20))
        for thread, waited_ns in threads.items():
            (proc / "17" / "task" / thread).mkdir(parents=True, exist_ok=True)
            (proc / "17" / "task" / thread / "schedstat").write_text(f"5 {waited_ns + more_ns} 1\n")

    write(0, 100)
    before = watched.reading(proc)
    write(3_000_000, 100 + TICKS)
    assert watched.reading(proc).waited_since(before) == pytest.approx(1.006)
    assert watched.reading(proc).waited_since(watched.reading(proc)) == 0


@pytest.mark.parametrize(("waited_ns", "missed_s"), [(0, 0.0), (3_000_000_000, 3.0)])
def test_a_process_misses_what_it_waits_for_and_no_more(tmp_path: Path, waited_ns: int, missed_s: float) -> None:
    """Others have all of the core. A shell in the DUT's namespace did not want it; a gateway did."""
    proc, schedstat = tmp_path / "proc", tmp_path / "proc" / "17" / "task" / "17" / "schedstat"
    write_stat(proc, 0, 0)
    schedstat.parent.mkdir(parents=True)
    (proc / "17" / "stat").write_text("17 (sleep) S " + " ".join(["0"] * 20))
    schedstat.write_text("5 0 1\n")
    for may_be_idle in (False, True):
        watch = DutWatch(DutCores((1,), pids=(17,), may_be_idle=may_be_idle), proc)
        watch.begin()
        write_stat(proc, 1000 * TICKS, 0)
        schedstat.write_text(f"5 {waited_ns} 1\n")
        missed = watch.starvation()
        assert missed.share == (None if may_be_idle else 1.0)
        assert missed.at_most_s >= missed_s
        if may_be_idle:
            assert missed.at_most_s == pytest.approx(missed_s)
        write_stat(proc, 0, 0)
        schedstat.write_text("5 0 1\n")


def test_a_dut_whose_processes_have_ended_lacks_no_core(tmp_path: Path) -> None:
    """A gateway that died forwards nothing: that is its own doing, however busy its core is."""
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    (proc / "17").mkdir()
    watch = DutWatch(DutCores((1,), pids=(17,)), proc)
    for alive in (True, False, False):
        watch.begin()
        if not alive and (proc / "17").exists():
            (proc / "17").rmdir()
        write_stat(proc, 1000 * TICKS, 0)
        missed = watch.starvation()
        assert (missed == Starvation()) is not alive
        write_stat(proc, 0, 0)


def test_a_dut_that_is_all_kernel_is_not_taken_for_dead(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    watch = DutWatch(DutCores((1,)), proc)
    watch.begin()
    write_stat(proc, 1000 * TICKS, 0)
    assert watch.starvation().share == 1.0


def waits(usual_ms: float, disturbed: dict[int, float], parts: int = 100) -> list[Wait]:
    """Parts of 50 ms; in each the processes wait ``usual_ms``, and what ``disturbed`` says besides."""
    return [Wait(0.05, (usual_ms + disturbed.get(part, 0.0)) / 1000) for part in range(parts)]


@pytest.mark.parametrize(
    ("usual_ms", "disturbed_ms"),
    [(0.0, {}), (1.4, {}), (0.0, {7: 4.0}), (1.4, {7: 4.0, 50: 30.0}), (0.3, {0: 1.0})],
)
def test_waking_up_is_nobodys_disturbance(usual_ms: float, disturbed_ms: dict[int, float]) -> None:
    parts = waits(usual_ms, disturbed_ms)
    beyond_s = sum(part.waited_s for part in parts) - dut_waits.usual_wait_s(parts)
    assert beyond_s == pytest.approx(sum(disturbed_ms.values()) / 1000, abs=1e-6)


def test_what_is_read_late_or_seldom_counts_in_full() -> None:
    late = [*waits(1.0, {}), Wait(0.5, 0.012)]
    assert sum(one.waited_s for one in late) - dut_waits.usual_wait_s(late) == pytest.approx(0.012)
    few = waits(1.0, {}, parts=dut_waits.MIN_SAMPLES - 1)
    assert dut_waits.usual_wait_s(few) == 0.0


def count_up(schedstat: Path, waited_ns: int) -> None:
    """Change the file as the kernel does: a reader never finds it empty."""
    with schedstat.open("r+") as file:
        file.write(f"5 {waited_ns:015} 3")


def test_a_short_trial_is_looked_at_more_often(tmp_path: Path) -> None:
    """Else nothing would show what is usual for a DUT that sleeps and wakes, and all of it would count."""
    durations_s = (60.0, 10.0, 5.0, 0.9, 0.18, 0.01)
    assert [dut_waits.sample_s(one) for one in durations_s] == pytest.approx([0.05, 0.04, 0.02, 0.02, 0.015, 0.01])
    of_kernel_s = [dut_waits.sample_s(one, has_processes=False) for one in (60.0, 3.0, 0.18)]
    assert of_kernel_s == pytest.approx([0.05, 0.05, 0.015])
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    schedstat = proc / "17" / "task" / "17" / "schedstat"
    schedstat.parent.mkdir(parents=True)
    watch = DutWatch(DutCores((1,), pids=(17,)), proc)
    schedstat.write_text("5 0 3")
    watch.begin(0.25)
    began_s = time.monotonic()
    while (elapsed_s := time.monotonic() - began_s) < 1.0:  # it waits for a fiftieth of the time
        count_up(schedstat, round(elapsed_s * 2e7))
        time.sleep(0.0005)
    missed = watch.starvation(Sending(began_s + 0.1, began_s + 0.1, 0.8))
    assert missed.waited_s == pytest.approx(0, abs=0.005)
    assert missed.unseen_s == pytest.approx(0.04)  # more than that


def test_a_dut_that_is_always_disturbed_is_not_called_usual() -> None:
    """In half of the parts others have its core for a tick."""
    parts = waits(0.0, dict.fromkeys(range(0, 100, 2), 4.0))
    assert sum(one.waited_s for one in parts) - dut_waits.usual_wait_s(parts) == pytest.approx(0.2)


def test_a_trial_that_raised_leaves_no_thread(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    (proc / "17" / "task" / "17").mkdir(parents=True)
    (proc / "17" / "task" / "17" / "schedstat").write_text("5 1000000 3")
    watch = DutWatch(DutCores((1,), pids=(17,)), proc)
    before = threading.active_count()
    watch.begin()
    watch.begin()
    assert threading.active_count() == before + 1
    count_up(proc / "17" / "task" / "17" / "schedstat", 31_000_000)
    assert watch.starvation().waited_s == pytest.approx(0.03)
    assert threading.active_count() == before


def test_only_waiting_while_frames_are_sent_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A DUT that wakes more often while frames come: before and after, it shows nothing of what is usual."""
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    schedstat = proc / "17" / "task" / "17" / "schedstat"
    schedstat.parent.mkdir(parents=True)
    schedstat.write_text("5 0 3")
    of = [*waits(0.1, {3: 20.0}, parts=40), *waits(1.2, {7: 4.0}), *waits(0.1, {9: 30.0}, parts=60)]
    timed = [replace(one, ended_s=1000.0 + 0.05 * number) for number, one in enumerate(of, 1)]
    ended = dut_core.WaitSampler.waits
    monkeypatch.setattr(dut_core.WaitSampler, "waits", lambda one: timed if ended(one) is not None else [])
    watch = DutWatch(DutCores((1,), pids=(17,)), proc)
    watch.begin()
    count_up(schedstat, round(sum(one.waited_s for one in of) * 1e9))
    missed = watch.starvation(Sending(1002.0, 1002.02, 4.98))
    assert missed.waited_s == pytest.approx(0.004, abs=2e-4)
    [known] = missed.disturbances
    # counted when it ended, it may have begun in the sample before
    assert (known.began_s, known.ended_s, known.waited_s) == pytest.approx((0.33 - 0.0052, 0.4, 0.004))
    watch.begin()
    count_up(schedstat, 0)
    rest = watch.starvation(Sending(1002.0, 1002.02, 4.98))
    assert rest.waited_s == pytest.approx(0.004, abs=2e-4), "also where a thread that has ended had waited"
    assert rest.at_most_s == rest.waited_s
    watch.begin()
    assert watch.starvation().disturbances == (), "it is not known when frames were sent"


def test_time_stolen_at_the_end_of_sending_counts_though_it_is_accounted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    (proc / "17" / "task" / "17").mkdir(parents=True)
    (proc / "17" / "task" / "17" / "schedstat").write_text("5 0 3")
    timed = [Wait(0.05, 0.0, ended_s=1000.0 + 0.05 * number) for number in range(1, 41)]
    timed[20] = replace(timed[20], stolen_s=0.01)  # from 1001.00 to 1001.05
    ended = dut_core.WaitSampler.waits
    monkeypatch.setattr(dut_core.WaitSampler, "waits", lambda one: timed if ended(one) is not None else [])
    watch = DutWatch(DutCores((1,), pids=(17,)), proc)
    watch.begin()
    assert watch.starvation(Sending(1000.0, 1000.0, 0.98)).waited_s == pytest.approx(0.01)
    watch.begin()
    assert watch.starvation(Sending(1000.0, 1000.0, 0.94)).waited_s == 0.0


def test_a_watch_is_ended_once(tmp_path: Path) -> None:
    """The trial raised, and the DUT has ended before the next one."""
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    process = proc / "17"
    (process / "task" / "17").mkdir(parents=True)
    (process / "task" / "17" / "schedstat").write_text("5 1000000 3")
    watch = DutWatch(DutCores((1,), pids=(17,)), proc)
    watch.begin()
    shutil.rmtree(process)
    watch.begin()
    assert watch.starvation() == Starvation()


def softirq_thread(proc: Path, pid: int, core: int) -> Path:
    """A kernel thread for soft interrupts; returns its schedstat."""
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "comm").write_text(f"ksoftirqd/{core}\n")
    count_up_both(proc / str(pid) / "schedstat", 0, 0)
    return proc / str(pid) / "schedstat"


def count_up_both(schedstat: Path, ran_ns: int, waited_ns: int) -> None:
    """As :func:`count_up`, with the time for which it ran."""
    schedstat.touch()
    with schedstat.open("r+") as file:
        file.write(f"{ran_ns:015} {waited_ns:015} 3")


@pytest.mark.parametrize(
    ("waited_ms", "own_ran_ms", "missing_ms"),
    [
        pytest.param(6.5, 0.0, 6.5, id="others had the core of a kernel that routes"),
        pytest.param(0.9, 0.0, 0.0, id="a queue of the kernel lasts longer"),
        pytest.param(6.5, 6.5, 0.0, id="the DUT's own process had it"),
        pytest.param(6.5, 2.0, 4.5, id="it had it for a part"),
    ],
)
def test_soft_interrupts_that_waited_for_others_lacked_their_core(
    tmp_path: Path, waited_ms: float, own_ran_ms: float, missing_ms: float
) -> None:
    """A turn of a few milliseconds is a small share of a trial, and a kernel that routes has no process that
    waits."""
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    of_dut, of_tester = softirq_thread(proc, 22, 1), softirq_thread(proc, 14, 0)
    own = proc / "17" / "task" / "17" / "schedstat"
    own.parent.mkdir(parents=True)
    (proc / "17" / "comm").write_text("dut\n")
    count_up_both(own, 0, 0)
    watch = DutWatch(DutCores((1,), pids=(17,) if own_ran_ms else ()), proc)
    watch.begin()
    began_s = time.monotonic()
    count_up_both(own, round(own_ran_ms * 1e6), 0)
    count_up_both(of_dut, 10**9, round(waited_ms * 1e6))
    count_up_both(of_tester, 10**9, 10**9)
    missed = watch.starvation(Sending(began_s, began_s, 1.0))
    assert missed.waited_s == pytest.approx(missing_ms / 1000)
    assert len(missed.disturbances) == (1 if missing_ms else 0)
    assert missed.arrivals_show_pauses is not bool(own_ran_ms)


@pytest.mark.parametrize(("others_ms", "waited_ms"), [(0, 0), (20, 20), (2000, 700)])
def test_duts_that_share_a_core_waited_no_longer_than_others_ran(
    tmp_path: Path, others_ms: int, waited_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for each other, 350 ms each here, and the core is idle at times all the same."""

    def write(number: int, ran_ms: int, waited_ms: int) -> None:
        task = tmp_path / "proc" / str(number) / "task" / str(number)
        task.mkdir(parents=True, exist_ok=True)
        name = "other" if number == 30 else "dut"
        (task / "stat").write_text(f"{number} ({name}) R " + " ".join(["0"] * 35) + " 1 0 0\n")
        count_up_both(task / "schedstat", ran_ms * 10**6, waited_ms * 10**6)

    write_stat(tmp_path / "proc", 0, 0)
    for number in (17, 18, 30):
        write(number, 100, 0)
    timed, ended = [Wait(0.05, 0.035, ended_s=1000 + 0.05 * part) for part in range(1, 21)], dut_core.WaitSampler.waits
    monkeypatch.setattr(dut_core.WaitSampler, "waits", lambda one: timed if ended(one) is not None else [])
    watch = DutWatch(DutCores((1,), pids=(17, 18), share_one=True), tmp_path / "proc")
    watch.begin()
    for number in (17, 18):
        write(number, 100, 350)
    write(30, 100 + others_ms, 0)
    missed = watch.starvation(Sending(1000.0, 1000.0, 1.0))
    assert missed.waited_s == pytest.approx(waited_ms / 1000)


def test_duts_that_share_a_core_waited_for_others_that_have_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No thread of theirs is left to be read; the ticks of the core are."""
    proc = tmp_path / "proc"
    write_stat(proc, 0, 0)
    task = proc / "17" / "task" / "17"
    task.mkdir(parents=True)
    (task / "stat").write_text("17 (dut) R " + " ".join(["0"] * 35) + " 1 0 0\n")
    count_up_both(task / "schedstat", 0, 0)
    timed, ended = [Wait(0.05, 0.035, ended_s=1000 + 0.05 * part) for part in range(1, 21)], dut_core.WaitSampler.waits
    monkeypatch.setattr(dut_core.WaitSampler, "waits", lambda one: timed if ended(one) is not None else [])
    watch = DutWatch(DutCores((1,), pids=(17,), share_one=True), proc)
    watch.begin()
    watch._began_s -= 1.0
    count_up_both(task / "schedstat", 0, 700 * 10**6)
    write_stat(proc, TICKS // 2, 0)
    assert watch.starvation(Sending(1000.0, 1000.0, 1.0)).waited_s == pytest.approx(0.5, rel=0.1)


def test_the_testers_own_loops_on_the_duts_core_are_named() -> None:
    lossy = {Direction.FORWARD: counts(received=400)}
    _, [cause] = validity.judge(trial(), lossy, Starvation(share=0.9, by_tester=True))
    assert cause.text == (
        "the tester's own loops (engine.cores), which have a core of the DUT, and others took"
        " 90% of the core of the DUT while frames were lost"
    )


def test_a_short_episode_that_others_turn_explains_is_not_the_duts() -> None:
    """784 of 630,000 frames each way within 3.7 ms, after others had the core for 6.5 ms."""
    bins = tuple(784 * (part == 173) for part in range(LOSS_BINS))
    lost = Losses(first_s=2.0769, last_s=2.0806, longest_run=784, bins=bins)
    both = {
        direction: counts(630_000, 629_216, losses=lost, send_time_s=3.0)
        for direction in (Direction.FORWARD, Direction.REVERSE)
    }
    made = trial(210_000, duration_ns=3 * 10**9)
    assert validity.judge(made, both)[0] is Verdict.VALID
    verdict, causes = validity.judge(made, both, Starvation(waited_s=0.0065))
    assert (verdict, [cause.code for cause in causes]) == (Verdict.INVALID, [validity.DUT_DISTURBED])


@pytest.mark.parametrize(
    ("allowed", "busy", "within"),
    [
        pytest.param({0, 1, 2, 3}, (0, 3), {1, 2}, id="two are left"),
        pytest.param({0, 1}, (0, 1), {0, 1}, id="none is left"),
        pytest.param({0, 1}, (), {0, 1}, id="nothing is busy"),
    ],
)
def test_a_thread_that_waits_keeps_off_the_duts_core(
    allowed: set[int], busy: tuple[int, ...], within: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [allowed]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: now[0])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: now.__setitem__(0, cores))
    with dut_core.keeping_off(busy):
        assert now == [within]
    assert now == [allowed]


def test_half_of_a_core_is_never_usual() -> None:
    assert dut_waits.usual_wait_s(waits(25.0, {})) == 0.0


PARTS = st.lists(st.tuples(*[st.floats(0, 1)] * 3, st.floats(-0.01, 0)), max_size=60)


@given(PARTS)
def test_duts_that_share_a_core_waited_for_others_at_least_as_long_as_these_ran(
    parts: list[tuple[float, float, float, float]],
) -> None:
    """Each part: the share of its time in which others ran, of the rest in which a DUT ran, of that in which another
    DUT waited, and by how much too little is read of how long the DUTs ran so far."""
    told, others_s, before_s = [], 0.0, 0.0
    for others, of_rest, of_ran, late_s in parts:
        ran_s = 0.05 * (1 - others) * of_rest
        others_s += 0.05 * others
        told.append(Wait(0.05, 0.05 * others + ran_s * of_ran, ran_s=ran_s + late_s - before_s))
        before_s = late_s
    kept = list(dut_waits.without_each_other(told))
    assert [one.waited_s + one.for_each_other_s for one in kept] == pytest.approx([one.waited_s for one in told])
    waited_s = sum(one.waited_s for one in kept)
    assert waited_s >= others_s - 0.02
    if all(of_rest == 1 for _, of_rest, *_ in parts):
        assert waited_s <= others_s + 0.01 + 1e-9, "they leave nothing idle, and wait for each other all the time"
