# SPDX-License-Identifier: Apache-2.0
"""The tester is harmed while a search asks whether the reference DUT passes: a DUT that can do the
rate is never shown to fail; and a trial that is ended early leaves nothing to the next one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dutperf.lab.refdut import Properties
from dutperf.model import Direction, Question, TrialResult, Verdict
from dutperf.setup.conditions import Usual
from dutperf.watch.dut_core import UNSEEN_SHARE
from integration.measuring import Bench, bench
from plans import make_trial
from undisturbed import until

from . import harm
from .harm import Harm, truth_of

pytestmark = [pytest.mark.root, pytest.mark.faults, pytest.mark.usefixtures("lab_records")]

FPS = 4_000
SEARCH = Question(resolution=0.001, may_end_early=True)
HIDDEN_S = 0.003
"""Longer pauses of the DUT are in some counter."""
HARMS = {
    "stopped for 4 ms, often": harm.stop_engine_often(0.004, 40),
    "stopped for 9 ms, often": harm.stop_engine_often(0.009, 20),
    "stopped for 25 ms, often": harm.stop_engine_often(0.025, 8),
    "a neighbour on the tester's core": harm.neighbour_of_tester(0.5),
    "a short neighbour on the tester's core": harm.neighbour_of_tester(0.03),
    "a neighbour on the DUT's core": harm.neighbour_of_dut(0.5),
}
SHORT = {name: what for name, what in HARMS.items() if name != "a neighbour on the tester's core"}
"""Without the one that stops the tester for so long that no trial proves anything."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Bench]:
    """One DUT for all."""
    with bench("refdut-ipv4") as ready:
        yield ready


def asked(ready: Bench, dut: Properties, what: Harm | None, duration_s: float, drain_s: float = 0.3) -> TrialResult:
    """What a search is told of a trial during which ``what`` is done."""
    conditions = Usual(duration_s=duration_s, drain_s=drain_s)
    trial = make_trial(ready.setup, conditions, 64, FPS, 1).model_copy(update={"question": SEARCH})
    result = harm.result_of(ready, dut, trial, what)
    print(
        result.verdict, result.proven_failed, result.ended_early_s, *(cause.text for cause in result.causes), sep="; "
    )
    return result


@pytest.mark.parametrize("queue", [3, 10, 40])
@pytest.mark.parametrize("what", HARMS.values(), ids=HARMS)
def test_a_dut_that_can_do_the_rate_is_never_shown_to_fail(lab: Bench, what: Harm, queue: int) -> None:
    """It loses frames to bursts, and while it has no core; not by itself. A valid trial may have few losses of a queue
    that is full after a pause which no counter shows: the DUT's clock does not show it either, as the frames wait
    unread."""
    result = asked(lab, Properties(capacity_fps=10_000, queue=queue), what, 1.0)
    assert result.proven_failed is None
    if result.verdict is Verdict.VALID:
        lost = sum(counts.lost for counts in result.directions().values())
        is_short = queue + 1 < HIDDEN_S * 2 * FPS
        assert lost <= (UNSEEN_SHARE * 2 * FPS if is_short else 0), (result, truth_of(lab).counters())


@pytest.mark.parametrize("what", SHORT.values(), ids=SHORT)
def test_a_dut_that_is_overloaded_is_shown_to_fail_though_the_tester_is_disturbed(lab: Bench, what: Harm) -> None:
    """Where the DUT has its core."""
    overloaded = Properties(capacity_fps=4_000, queue=20)
    result = until(lambda: asked(lab, overloaded, what, 1.0), tells, fewest=3)
    assert result.verdict is Verdict.VALID or result.proven_failed is not None


def tells(result: TrialResult) -> bool:
    """Whether a search learns something."""
    return result.verdict is Verdict.VALID or result.proven_failed is not None


def test_a_trial_that_was_ended_early_leaves_nothing_to_the_next(lab: Bench) -> None:
    """When it is ended the DUT holds what was sent for a second."""
    slow = Properties(delay_ms=1_000)
    result = asked(lab, slow, harm.stop_engine(0.3), 8.0, drain_s=2.0)
    assert result.verdict is Verdict.INVALID
    assert result.ended_early_s is not None
    assert result.ended_early_s < 6
    assert {cause.code for cause in result.causes} >= {"sender_late"}
    assert not {cause.code for cause in result.causes} & {"unsent", "stopped"}
    truth = truth_of(lab).counters()
    at_its_ports = {
        Direction.FORWARD: truth.left.lost_before + truth.right.lost_after,
        Direction.REVERSE: truth.right.lost_before + truth.left.lost_after,
    }  # the engine catches up in one burst, for which its socket may have no room
    for direction, counts in result.directions().items():
        assert counts.sent < counts.intended
        explained = sum(counts.tester_drops.values()) + counts.dut_input_drops + at_its_ports[direction]
        assert counts.received + explained >= counts.sent
    after = asked(lab, slow, None, 1.0, drain_s=2.0)
    assert [counts.stale for counts in after.directions().values()] == [0, 0]
