# SPDX-License-Identifier: Apache-2.0
"""The connections of trials by their states, and how they grew over the preliminary phase, which is read from the
loss of its frames."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import (
    FRAME_SIZE,
    LOSS_BINS,
    Case,
    ConnectionCounts,
    Direction,
    DirectionCounts,
    Load,
    Losses,
    PhaseResult,
    TrialResult,
    Unit,
    Verdict,
)
from dutperf.results import connections
from dutperf.results.trials import FAILED, INVALID, PASSED, FinishedTrial
from plans import counts


def opened_with(sent: int, lost: tuple[int, ...]) -> DirectionCounts:
    losses = Losses(first_s=0.0, last_s=1.0, longest_run=1, bins=lost) if any(lost) else None
    return counts(sent, sent - sum(lost)).model_copy(update={"losses": losses, "send_time_s": 2.0})


def phase(of: DirectionCounts, number: int = 1) -> PhaseResult:
    learned = ConnectionCounts(learned=of.received, remapped=0, lost=0)
    return PhaseResult(trial=number, verdict=Verdict.VALID, forward=of, connections=learned)


def trial(number: int, of: DirectionCounts, outcome: str, dut: int | None = None) -> FinishedTrial:
    both = counts(100, 100)
    result = TrialResult(
        trial=number, verdict=Verdict.VALID, forward=both, reverse=both, preliminary=(phase(of),), dut_connections=dut
    )
    return FinishedTrial(number, Case({FRAME_SIZE: 64}), 1, 1, Load(1_000, Unit.FRAMES_PER_SECOND), result, outcome)


@given(st.lists(st.integers(0, 4), min_size=LOSS_BINS, max_size=LOSS_BINS))
def test_the_last_value_is_what_the_responder_learned(lost: list[int]) -> None:
    of = opened_with(10_000, tuple(lost))
    opened = connections.opened(of)
    assert len(opened) == LOSS_BINS
    assert opened[-1] == of.received
    assert opened[0] == 40 - lost[0]


def test_a_full_table_shows_when_it_filled() -> None:
    """Of 1,000 connections the DUT has room for 600: from then on every frame is lost."""
    full = opened_with(1_000, (0,) * 150 + (4,) * 100)
    chart = connections.chart([trial(1, opened_with(1_000, (0,) * LOSS_BINS), PASSED), trial(2, full, FAILED, dut=600)])
    passed, failed, own = chart.curves
    assert passed.y[-1] == 1_000
    assert (failed.x[150], failed.y[150]) == (1.2, 600.0)
    assert set(failed.y[150:]) == {600.0}
    assert (own.kind, own.y) == ("reference", (600, 600))
    assert "trial 2" in failed.label


def test_the_last_trial_that_passed_stands_for_those_before() -> None:
    done = [trial(n, opened_with(1_000, (0,) * LOSS_BINS), PASSED) for n in (1, 2, 3)]
    [curve] = connections.chart(done).curves
    assert curve.label.startswith("trial 3,")


def test_an_invalid_trial_is_shown_where_there_is_no_other() -> None:
    full = opened_with(1_000, (0,) * 150 + (4,) * 100)
    [curve] = connections.chart([trial(1, full, INVALID)]).curves
    assert curve.y[-1] == 600


def test_a_trial_that_only_opens_counts_too() -> None:
    alone = TrialResult(**dict(phase(opened_with(1_000, (0,) * LOSS_BINS))))
    found = connections.opening(alone)
    assert found is not None
    assert list(found.directions()) == [Direction.FORWARD]


def test_stateless_trials_have_no_such_plot() -> None:
    result = TrialResult(trial=1, verdict=Verdict.VALID, forward=counts(9, 9))
    one = FinishedTrial(1, Case({FRAME_SIZE: 64}), 1, 1, Load(1_000, Unit.FRAMES_PER_SECOND), result, PASSED)
    assert not connections.chart([one]).has_points


def test_the_states_of_connections_in_a_table_and_a_sentence() -> None:
    full = opened_with(1_000, (0,) * 150 + (4,) * 100)
    one = trial(7, full, FAILED, dut=600)
    states = ConnectionCounts(learned=600, remapped=3, lost=20)
    result = one.result.model_copy(update={"connections": states, "connections_probed": 20, "connections_gone": 5})
    table = connections.table([trial(6, opened_with(1_000, (0,) * LOSS_BINS), PASSED), replace(one, result=result)])
    assert table is not None
    assert table.rows == (
        ("64", "6", "1,000 frames/s", "passed", "1,000", "1,000", "0", "-", "-", "-", "-"),
        ("64", "7", "1,000 frames/s", "failed", "600", "1,000", "3", "20", "20", "5", "600"),
    )
    assert len(table.heads) == len(table.rows[0])
    assert connections.sentence(result) == (
        "600 of 1,000 connections opened, 3 re-mapped, 20 lost a frame, of 20 asked again 5 did not answer, the DUT"
        " counted 600"
    )


def test_stateless_trials_have_no_connections_to_show() -> None:
    result = TrialResult(trial=1, verdict=Verdict.VALID, forward=counts(9, 9))
    assert not connections.sentence(result)
    one = FinishedTrial(1, Case({FRAME_SIZE: 64}), 1, 1, Load(1_000, Unit.FRAMES_PER_SECOND), result, PASSED)
    assert connections.table([one]) is None
