# SPDX-License-Identifier: Apache-2.0
"""How the Responder's state table filled over the preliminary phase (RFC 9693 section 4.2), from the journal.

Each frame of that phase opens a connection, so those opened by a time are the frames due by then without
the lost ones: no counter of its own is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from dutperf.model import LOSS_BINS, DirectionCounts, PhaseResult, TrialResult
from dutperf.results.charts import Chart, Curve
from dutperf.results.trials import FAILED, INVALID, PASSED, FinishedTrial, by_case


def chart(done: Sequence[FinishedTrial]) -> Chart:
    """The last trial of each case that passed, and the last that did not; without points if no trial opened
    connections."""
    several = len(by_case(done)) > 1
    curves: list[Curve] = []
    for each in by_case(done).values():
        for outcome in (PASSED, FAILED, INVALID):
            last = next((one for one in reversed(each) if one.outcome == outcome and opening(one.result)), None)
            if last is not None and not (outcome == INVALID and curves and not several):
                curves += _curves(last, several=several)
    return Chart(
        name="connections",
        title="Connections opened over the preliminary phase",
        x_label="time in the preliminary phase, s",
        y_label="connections",
        curves=tuple(curves),
        caption=(
            "Of each case the last trial that passed, and the last that did not: connections whose frame arrived at the"
            " Responder, by the times at which the frames were due. Dashed: what the DUT counted itself afterwards."
        ),
        x_range=(0, None),
        y_range=(0, None),
    )


def opening(result: TrialResult) -> PhaseResult | None:
    """The phase that opened the connections; None: none did, or nothing was counted in it."""
    phases = (phase for phase in (*result.preliminary, result) if phase.connections is not None)
    return next((phase for phase in phases if len(phase.directions()) == 1), None)


def opened(counts: DirectionCounts) -> tuple[int, ...]:
    """Connections opened by the end of each 250th of the phase, of the counts of the Initiator's direction."""
    lost = (0,) * LOSS_BINS if counts.losses is None else counts.losses.bins
    ends = ((part + 1) * counts.sent // LOSS_BINS for part in range(LOSS_BINS))
    return tuple(due - gone for due, gone in zip(ends, accumulate(lost), strict=True))


def _curves(one: FinishedTrial, *, several: bool) -> list[Curve]:
    phase = opening(one.result)
    assert phase is not None
    [counts] = phase.directions().values()
    label = f"{one.case}, " if several else ""
    label += f"trial {one.number}, {one.load}: {one.outcome}"
    times = tuple(counts.send_time_s * part / LOSS_BINS for part in range(LOSS_BINS + 1))
    curves = [Curve(label, times, (0.0, *map(float, opened(counts))), kind="steps")]
    if (own := one.result.dut_connections) is not None:
        curves.append(Curve(f"trial {one.number}: counted by the DUT", (0.0, times[-1]), (own, own), kind="reference"))
    return curves
