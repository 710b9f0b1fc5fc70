# SPDX-License-Identifier: Apache-2.0
"""The tester is harmed while it measures the reference DUT: a trial then says that it is not valid,
and why; or its figures are those of the DUT's counters.

A frame that the tester lost and that a valid trial blames on the DUT is the one thing that may
never happen. Every row of the table is looked at for it, whatever else the row wants to see. `make
faults` runs all rows, `make faults COUNT=10` ten times; `make test` runs the two that are not
marked. Root only.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.client import EngineCommand
from dutperf.lab.refdut import Properties, Truth
from dutperf.model import Direction, TrialResult, Verdict
from integration.measuring import Bench, bench
from integration.test_commands import wait_until

from . import harm
from .harm import Harm, Target, truth_of

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

FPS = 4_000
ATTEMPTS = 8
"""For what this machine may spoil by itself: a busy neighbour of ours cannot be told from one of
others."""


@dataclass(frozen=True)
class Fault:
    """What is done to the tester, and what has to come of it."""

    name: str
    harm: Harm
    causes: frozenset[str]
    """One of them has to be named where the trial is not valid."""
    may_be_valid: bool = False
    """The tester may get over it."""
    kind: str | None = None
    """Of the ports, where the harm needs one."""
    strangers: bool = False
    """Their frames get into the DUT too."""
    after_share: float = 0.3
    """When: as soon as the DUT has that share of the frames of a direction."""
    dut: dict[str, Any] = field(default_factory=dict)
    """Properties of the reference DUT."""
    conditions: dict[str, Any] = field(default_factory=dict)
    rate_fps: int = FPS


LOSSY = {"loss_every": 50}
"""The DUT's own loss, to which nothing of the tester's may be added."""
SENDER = frozenset({"sender_late", "sender_bursts", "sending_time", "unsent"})
RECEIVER = frozenset({"tester_drops", "receiver_stall"})
PORT_DOWN = SENDER | {"tester_drops", "link_down"}
DUT = frozenset({"dut_disturbed"})
LATE_FRAMES: dict[str, Any] = {
    "dut": {"delay_ms": 300},
    "conditions": {"duration_s": 0.4, "drain_s": 0.5},
    "after_share": 1,
}
"""When the sending has ended, the DUT still holds 1,200 frames of each direction."""

LATER_FRAMES: dict[str, Any] = {
    "dut": {"delay_ms": 1_000},
    "conditions": {"duration_s": 0.4, "drain_s": 2},
    "after_share": 1,
}
"""Likewise, with time to make all ready for them."""

LONGER = {"duration_s": 2}
"""Time for a command to start on a busy machine."""

FAULTS = [
    Fault("engine stopped for 50 ms", harm.stop_engine(0.05), SENDER | RECEIVER, dut=LOSSY),
    Fault("engine stopped for 150 ms", harm.stop_engine(0.15), SENDER),
    Fault("engine stopped for 500 ms", harm.stop_engine(0.5), SENDER),
    Fault("engine stopped for 15 ms, five times", harm.stop_engine_often(0.015, 5), SENDER | RECEIVER, dut=LOSSY),
    Fault("engine stopped for 15 ms, no loss", harm.stop_engine_often(0.015, 5), SENDER | RECEIVER, may_be_valid=True),
    Fault(
        "engine stopped for 5 ms, often, DUT with a short queue",
        harm.stop_engine_often(0.005, 10),
        SENDER | RECEIVER | DUT,
        dut={"capacity_fps": 12_000, "queue": 10},
    ),
    Fault(
        "engine stopped for 5 ms, ten times",
        harm.stop_engine_often(0.005, 10),
        SENDER | RECEIVER,
        dut=LOSSY,
        may_be_valid=True,
    ),
    Fault(
        "engine stopped while frames are under way",
        harm.stop_engine(0.2),
        SENDER | RECEIVER,
        may_be_valid=True,
        **LATE_FRAMES,
    ),
    Fault(
        "engine stopped until after the end of receiving",
        harm.stop_engine(0.9),
        SENDER | RECEIVER,
        may_be_valid=True,
        **LATE_FRAMES,
    ),
    Fault("engine killed", harm.kill_engine, frozenset({"engine_died"})),
    Fault(
        "neighbour on the tester's core, 100 ms",
        harm.neighbour_of_tester(0.1),
        SENDER | RECEIVER,
        dut=LOSSY,
        may_be_valid=True,
    ),
    Fault(
        "neighbour on the tester's core, 300 ms, DUT at its limit",
        harm.neighbour_of_tester(0.3),
        SENDER | RECEIVER | DUT,
        may_be_valid=True,
        dut={"capacity_fps": 9_000, "queue": 50},
    ),
    Fault(
        "neighbour on the DUT's core, 300 ms",
        harm.neighbour_of_dut(0.3),
        SENDER | RECEIVER | DUT,
        dut={"capacity_fps": 9_000, "queue": 50},
        may_be_valid=True,
    ),
    Fault("left port down for 300 ms", harm.port_down("tl", 0.3), PORT_DOWN, conditions=LONGER),
    Fault("right port down for 300 ms", harm.port_down("tr", 0.3), PORT_DOWN, conditions=LONGER),
    Fault(
        "right port down for 300 ms, one way",
        harm.port_down("tr", 0.3),
        PORT_DOWN,
        conditions=LONGER | {"directions": "forward"},
    ),
    Fault("right port down until after the end", harm.port_down("tr", 2), PORT_DOWN, conditions=LONGER),
    Fault(
        "receive socket full while frames are under way",
        harm.fill_receive_socket("dr", 1.2),
        frozenset({"tester_drops"}),
        kind="af_packet",
        **LATER_FRAMES,
    ),
    Fault(
        "test frames of another run",
        harm.send_foreign_frames("dr", 200),
        frozenset({"other_run"}),
        dut=LOSSY,
    ),
    Fault(
        "GRO switched on at the receiving port",
        harm.in_tester("ethtool -K tr gro on"),
        frozenset({"switched_on"}),
        kind="af_packet",
        dut=LOSSY,
        conditions=LONGER,
    ),
    Fault(
        "the tester's machine becomes a router",
        harm.in_tester(
            "ip address add 198.18.0.2/24 dev tl",
            "ip address add 198.19.0.2/24 dev tr",
            "sysctl -qw net.ipv4.ip_forward=1",
        ),
        SENDER | RECEIVER | DUT,
        kind="af_packet",
        dut=LOSSY,
        conditions=LONGER,
        may_be_valid=True,
    ),
    Fault(
        "frames that the kernel counts as dropped",
        harm.tagged_strangers("dr", 50),
        SENDER | RECEIVER | DUT,
        kind="af_packet",
        dut=LOSSY,
        conditions=LONGER,
        may_be_valid=True,
    ),
    Fault("strangers' frames", harm.flood("dr", 0.3), SENDER | RECEIVER | DUT, may_be_valid=True, strangers=True),
]
QUICK = {"engine stopped for 150 ms", "engine stopped until after the end of receiving"}


def rows() -> list[Any]:
    """The table, most of it marked."""
    return [
        pytest.param(fault, id=fault.name, marks=() if fault.name in QUICK else pytest.mark.faults) for fault in FAULTS
    ]


@pytest.fixture(scope="module")
def lab() -> Iterator[Bench]:
    """One DUT for all rows: after each, the tester has to work again."""
    with bench("refdut-ipv4") as ready:
        yield ready


def not_the_testers(result: TrialResult, truth: Truth) -> dict[Direction, int]:
    """By direction: frames that the DUT lost by its own count, and those that did not get into it
    because of its own queues."""
    before = {Direction.FORWARD: truth.left.lost_before, Direction.REVERSE: truth.right.lost_before}
    own = {Direction.FORWARD: truth.forward.lost_total, Direction.REVERSE: truth.reverse.lost_total}
    return {
        direction: own[direction] + before[direction] + counts.dut_input_drops
        for direction, counts in result.directions().items()
    }


def assert_no_false_blame(result: TrialResult, truth: Truth, strangers: bool = False) -> None:
    """What a valid trial says that the DUT lost is what it lost. ``strangers``: it got their frames too,
    and may have lost some of these."""
    if result.verdict is Verdict.VALID:
        for direction, its_own in not_the_testers(result, truth).items():
            lost = result.directions()[direction].lost
            assert lost == its_own or (strangers and lost < its_own), (result, truth)


def measure(ready: Bench, fault: Fault, harmed: bool = True) -> TrialResult:
    """A trial with the fault or without, no frame of which is blamed on the wrong side."""
    for _ in range(ATTEMPTS):
        result, struck = attempt(ready, fault, harmed)
        if struck or not harmed:
            return result
        print("the fault came too late: what does it was away itself")
    raise AssertionError("the fault never came in time")


def attempt(ready: Bench, fault: Fault, harmed: bool) -> tuple[TrialResult, bool]:
    """Also whether the fault came while frames were still to be sent, where that is meant."""
    dut = truth_of(ready)
    dut.configure(Properties(**fault.dut))
    conditions: dict[str, Any] = {"duration_s": 0.8, "drain_s": 0.3} | fault.conditions
    ready.tester.environment()  # with an engine, if the last one is gone
    whole = round(fault.rate_fps * conditions["duration_s"])
    arrived: list[int] = []

    def look() -> None:
        arrived.append(dut.counters().forward.received)

    target = Target(ready, ready.engine(), look)

    def interfere() -> None:
        harm.go_first()
        wait_until(lambda: dut.counters().forward.received >= fault.after_share * whole, limit_s=10)
        look()
        fault.harm(target)

    result = (
        ready.run_while(interfere, 0, fault.rate_fps, **conditions)
        if harmed
        else ready.run(fault.rate_fps, **conditions)
    )
    print(fault.name, result.verdict, *(cause.text for cause in result.causes), sep="; ")
    assert_no_false_blame(result, dut.counters(), fault.strangers)
    return result, bool(arrived) and (fault.after_share == 1 or max(arrived) < 0.9 * whole)


@pytest.mark.parametrize("fault", rows())
def test_no_fault_of_the_tester_is_blamed_on_the_dut(request: pytest.FixtureRequest, fault: Fault) -> None:
    if fault.kind is None:
        result = measure(request.getfixturevalue("lab"), fault)
    else:
        with bench("refdut-ipv4", kind=fault.kind) as ready:
            result = measure(ready, fault)
    if result.verdict is Verdict.VALID:
        assert fault.may_be_valid, result
    else:
        assert {cause.code for cause in result.causes} & fault.causes, result.causes


def assert_recovers(ready: Bench) -> None:
    """The tester measures again as before."""
    duts = [{"loss": 0.6}, {}] * (
        ATTEMPTS // 2
    )  # less than half of the frames could be the work of a busy machine's bursts
    assert Verdict.VALID in (
        measure(ready, Fault("nothing", harm.kill_engine, frozenset(), dut=dut), harmed=False).verdict for dut in duts
    )


@pytest.mark.faults
def test_short_turns_of_others_on_the_core_of_a_kernel_that_routes() -> None:
    """They take 3 % of it. But what an interrupt leaves to do waits meanwhile, and a queue of 1,000 frames is full
    after 3 ms: what is lost at a rate that the DUT forwards is not its loss."""
    if not harm.may_be_real_time():
        pytest.skip("no process may take the kernel's core from it here (SCHED_FIFO)")

    def lost(result: TrialResult) -> int:
        return sum(counts.lost for counts in result.directions().values())

    with bench("kernel-ipv4") as ready:
        cores = set(ready.setup.engine.dut_cores)
        rates_fps = (180_000, 120_000, 80_000, 40_000)
        tried = ((rate, lost(ready.run(rate, duration_s=1.5))) for rate in rates_fps for _ in range(3))
        forwarded = next((rate for rate, frames in tried if not frames), None)
        if forwarded is None:
            pytest.skip(f"the kernel here loses frames at {rates_fps[-1]:,} frames/s too")
        for _ in range(3):
            result = ready.run_while(
                lambda: harm.take_turns(cores, 0.015, 3), 0.3, int(0.9 * forwarded), duration_s=1.5
            )
            print(lost(result), result.verdict, *(cause.text for cause in result.causes), sep="; ")
            assert result.verdict is not Verdict.VALID or not lost(result), result


@pytest.mark.faults
def test_after_all_this_the_tester_measures_as_before(lab: Bench) -> None:
    for harmful in (harm.stop_engine(0.2), harm.kill_engine):
        measure(lab, Fault("before", harmful, frozenset()))
        assert_recovers(lab)


@pytest.mark.faults
def test_a_receive_ring_that_is_too_small() -> None:
    fault = Fault(
        "ring of 8 frames",
        harm.stop_engine(0.02),
        RECEIVER | SENDER,
        dut=LOSSY,
        rate_fps=20_000,
        conditions={"directions": "forward"},
    )
    with bench("refdut-ipv4", receive_ring=8) as ready:
        for _ in range(3):
            assert measure(ready, fault).verdict is Verdict.INVALID
            assert_no_false_blame(measure(ready, fault, harmed=False), truth_of(ready).counters())


@pytest.mark.faults
def test_a_time_of_day_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is told another time of day whenever it asks; the machine's clock is not touched,
    others use it."""
    shim = tmp_path / "realtime_jumps.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", str(shim), str(Path(__file__).with_name("realtime_jumps.c"))],
        check=True,
    )
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\nexport LD_PRELOAD={shim}\nexec {EngineCommand.find().program}\n")
    engine.chmod(0o755)
    monkeypatch.setenv("DUTPERF_ENGINE", str(engine))
    with bench("refdut-ipv4") as ready:
        assert str(shim) in Path(f"/proc/{ready.engine()}/maps").read_text()
        assert_recovers(ready)
