# SPDX-License-Identifier: Apache-2.0
"""Rates that passed into the DUT's buffers."""

from __future__ import annotations

from dutperf.model import Arrivals, DirectionCounts, TrialResult, Verdict
from dutperf.results import buffered
from plans import counts


def arrived(first_s: float, last_s: float, received: int = 1000, verdict: Verdict = Verdict.VALID) -> TrialResult:
    """A trial of 1,000 frames in a second."""
    arrivals = Arrivals(first_s=first_s, last_s=last_s, longest_gap_from_s=first_s, longest_gap_to_s=last_s)
    forward: DirectionCounts = counts(1000, received, arrivals=arrivals)
    return TrialResult(trial=1, verdict=verdict, forward=forward)


def test_a_buffer_that_fills_in_trials_that_pass() -> None:
    [said] = buffered.of_run([arrived(0.1, 1.1), arrived(0.1, 1.35), arrived(0.0, 1.3)])
    assert "forward: in 2 trials without loss the last frames took up to 0.300 s more than the first (30%" in said


def test_nothing_is_said_without_a_buffer_that_raised_the_rate() -> None:
    late = arrived(0.5, 1.5)
    lossy = arrived(0.0, 1.5, received=900)
    stalled = arrived(0.0, 1.04)
    invalid = arrived(0.0, 1.5, verdict=Verdict.INVALID)
    assert not list(buffered.of_run([late, lossy, stalled, invalid]))
