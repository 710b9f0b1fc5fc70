# SPDX-License-Identifier: Apache-2.0
"""The tester is harmed while it measures delays, or while a switch learns addresses: nothing is lost, and still no
figure of a valid trial may be the tester's. The delays of the reference DUT are those that it recorded itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dutperf import lab, traffic
from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.engine.factory import engine_on
from dutperf.lab.refdut import Properties, Truth
from dutperf.model import Direction, Stamping, Trial, TrialResult, Verdict
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.tester import Progress, phases
from dutperf.traffic import switches
from dutperf.traffic.switches import Learned, Roles
from engine.streams import stream, trial
from integration.measuring import MAX_FRAME_SIZE, Bench, bench
from integration.test_switches import limits_bridges
from plans import make_trial

from . import harm
from .harm import Harm, Target, truth_of

pytestmark = [pytest.mark.root, pytest.mark.faults, pytest.mark.usefixtures("lab_records")]

FPS = 4_000
SLOW_EVERY, SLOW_US = 67, 20_000
"""Each such frame is delayed by this, and the next ones overtake it. Every hundredth would put the step of the
distribution exactly at the 99th percentile, where one frame more or less decides."""
BESIDE_US = 1_000
"""The kernel's time between both, which neither records."""
HARMS: dict[str, Harm | None] = {
    "nothing": None,
    "stopped for 4 ms, often": harm.stop_engine_often(0.004, 60),
    "stopped for 15 ms, ten times": harm.stop_engine_often(0.015, 10),
    "stopped for 45 ms": harm.stop_engine(0.045),
    "stopped for 300 ms": harm.stop_engine(0.3),
    "a neighbour on the tester's core": harm.neighbour_of_tester(0.1),
}


@pytest.fixture(scope="module")
def lab_of_refdut() -> Iterator[Bench]:
    """One DUT for all."""
    with bench("refdut-ipv4") as ready:
        yield ready


def stamped(ready: Bench, what: Harm | None) -> TrialResult:
    """A trial in which every frame is stamped, during which ``what`` is done."""
    plain = make_trial(ready.setup, SingleTrial(duration_s=1.5, drain_s=0.3), 84, FPS, 1)
    slow = Properties(extra_delay_every=SLOW_EVERY, extra_delay_ms=SLOW_US / 1000)
    return harm.result_of(ready, slow, plain.model_copy(update={"stamping": Stamping.EVERY}), what)


def assert_the_duts(result: TrialResult, truth: Truth) -> None:
    """Each figure, less what the tester says that it may have added, is no larger than what the DUT did."""
    for direction, counts in result.directions().items():
        of_dut = truth.forward if direction is Direction.FORWARD else truth.reverse
        beside_us = BESIDE_US + of_dut.lateness_us.max
        delay, change = counts.delay_us, counts.ipdv_us
        assert delay is not None
        assert delay.by_tester is not None
        assert change is not None
        assert change.by_tester is not None
        for name in ("p50", "p99", "p999", "max"):
            least_us = getattr(delay, name) - getattr(delay.by_tester, name)
            assert least_us <= getattr(of_dut.delay_us, name) * 1.001 + beside_us, (direction, name, delay, of_dut)
        assert change.max - change.by_tester.max <= SLOW_US + beside_us
        assert change.min + change.by_tester.min >= -SLOW_US - beside_us
        assert change.pairs == counts.sent - 1 - 2 * counts.lost or counts.lost
        assert counts.lost or change.max >= SLOW_US - beside_us
        assert counts.lost or change.min <= -SLOW_US + beside_us


@pytest.mark.parametrize("what", HARMS.values(), ids=HARMS)
def test_no_delay_of_a_valid_trial_is_the_testers(lab_of_refdut: Bench, what: Harm | None) -> None:
    result = stamped(lab_of_refdut, what)
    print(result.verdict, *(cause.text for cause in result.causes), sep="; ")
    if result.verdict is Verdict.VALID:
        assert what is not HARMS["stopped for 300 ms"]
        assert_the_duts(result, truth_of(lab_of_refdut).counters())


@pytest.mark.parametrize("busy_s", [0.02, 0.3])
def test_a_receiving_core_that_is_taken_delays_nothing_in_a_valid_trial(busy_s: float) -> None:
    """Without a DUT, and without a late frame: only the receiver has the core."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("sender and receiver need a core each")
    sides: dict[str, Any] = {"left": {"port": "ring"}, "right": {"port": "ring"}, "memory": "no_huge_pages"}
    sides["cores"] = cores
    with EngineTester(EngineCommand.find(), sides) as tester:
        roles = tester.environment()["roles"]
        assert roles["forward_send"] != roles["forward_receive"]
        taken = threading.Timer(0.3, harm.keep_busy, ({roles["forward_receive"]}, busy_s))
        taken.start()
        result = tester.run(trial(stream(rate_fps=FPS), duration_ns=1_500_000_000, stamping="every"))
        taken.join()
    print(result.verdict, *(cause.text for cause in result.causes), sep="; ")
    assert result.forward is not None
    delay = result.forward.delay_us
    assert delay is not None
    assert delay.by_tester is not None
    if busy_s == 0.3:  # a fifth of the trial
        assert "tester_delay" in {cause.code for cause in result.causes}
    assert delay.p999 - delay.by_tester.p999 < BESIDE_US
    assert delay.max - delay.by_tester.max < BESIDE_US


def test_a_burst_of_the_tester_is_no_failure_to_learn() -> None:
    """The bridge has room for a few addresses less than it should learn, so a few are flooded: as many as the burst
    may have cost."""
    if not limits_bridges():
        pytest.skip("this kernel does not limit the addresses of a bridge")
    addresses, short = 4_000, 20
    with lab.bring_up("linux-bridge", {"ports": "3", "addresses": str(addresses - short)}) as mapping:
        setup = configuration.parse(mapping, origin="lab linux-bridge")
        first, second, *monitors = setup.ports or ()
        conditions = traffic.of(setup, SingleTrial(drain_s=0.2)).sized()
        made = Learned(Roles(first, second, tuple(monitors)), addresses, 4_000, 4_000, None)
        with engine_on(setup, MAX_FRAME_SIZE) as tester:
            tester.environment()
            ready = Bench(setup, tester)
            calm = learned(ready, switches.learned(setup, conditions, 64, made, 1), None)
            harmed = learned(ready, switches.learned(setup, conditions, 64, made, 5), harm.stop_engine(0.045))
    assert flooded(harmed) > 0
    assert harmed.verdict is Verdict.INVALID
    assert any("preliminary phase" in cause.text for cause in harmed.causes)
    assert flooded(calm) >= short


def learned(ready: Bench, planned: Trial, what: Harm | None) -> TrialResult:
    """The trial, with ``what`` done in its learning phase."""
    target, done = Target(ready, ready.engine(), lambda: None), threading.Event()

    def interfere(progress: Progress) -> None:
        if what is not None and progress.elapsed_s > 0.2 and not done.is_set():
            done.set()
            what(target)

    learning = planned.preliminary[0].model_copy(update={"progress_ms": 20})
    result = phases.run(ready.tester, planned.model_copy(update={"preliminary": (learning,)}), on_preliminary=interfere)
    print(result.verdict, flooded(result), *(cause.text for cause in result.causes), sep="; ")
    assert what is None or done.is_set()
    return result


def flooded(result: TrialResult) -> int:
    """Frames that arrived where their path does not end."""
    return sum(max((counts.misdelivered or {}).values(), default=0) for counts in result.directions().values())
