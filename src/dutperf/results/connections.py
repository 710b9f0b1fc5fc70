# SPDX-License-Identifier: Apache-2.0
"""The connections of stateful trials (RFC 9693) from the journal: by their states, and how they grew over the
preliminary phase.

Each frame of that phase opens a connection, so those opened by a time are the frames due by then without
the lost ones: no counter of its own is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from dutperf.model import LOSS_BINS, DirectionCounts, PhaseResult, TrialResult, axes_of
from dutperf.results.charts import Chart, Curve
from dutperf.results.points import Row
from dutperf.results.tables import Table, case_cells
from dutperf.results.trials import FAILED, PASSED, FinishedTrial, by_case
from dutperf.results.untracked import FEWER


def chart(done: Sequence[FinishedTrial]) -> Chart:
    """The last trial of each case that passed, and the last that did not; without points if no trial opened
    connections."""
    several = len(by_case(done)) > 1
    curves = [curve for one in shown(done) for curve in _curves(one, several=several)]
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


def shown(done: Sequence[FinishedTrial]) -> list[FinishedTrial]:
    """Of each case the last trial that passed and the last that failed; where there is none, the last one."""
    found = []
    for each in by_case(done).values():
        opened = [one for one in each if opening(one.result) is not None]
        last = {one.outcome: one for one in opened}
        conclusive = [last[outcome] for outcome in (PASSED, FAILED) if outcome in last]
        found += conclusive or opened[-1:]
    return found


def table(done: Sequence[FinishedTrial]) -> Table | None:
    """The connections of the same trials by their states; None: they have none."""
    trials = shown(done)
    axes = axes_of(one.case for one in trials)
    heads = (
        "trial",
        "load",
        "outcome",
        "opened",
        "of",
        "re-mapped",
        "lost a frame",
        "asked again",
        "gone",
        "DUT counted",
    )
    rows = tuple((*case_cells(one.case, axes), f"{one.number}", *_cells(one)) for one in trials)
    return Table("connections", (*(axis.heading for axis in axes), *heads), rows, len(axes)) if rows else None


def _cells(one: FinishedTrial) -> Row:
    counted = (_states(one.result) or {}).values()
    return (str(one.load), one.outcome, *("-" if count is None else f"{count:,}" for count in counted))


def _states(result: TrialResult) -> dict[str, int | None] | None:
    """How many connections are in each state; None: the trial has none."""
    phase = opening(result)
    if phase is None or phase.connections is None:
        return None
    last = result.connections or phase.connections
    [counts] = phase.directions().values()
    return {
        "opened": phase.connections.learned,
        "of": counts.intended,
        "remapped": last.remapped,
        "lost": last.lost if last is not phase.connections else None,
        "asked": result.connections_probed,
        "gone": result.connections_gone,
        "by_dut": result.dut_connections,
    }


def sentence(result: TrialResult) -> str:
    """The same of one trial; empty if it has none."""
    states = _states(result)
    if states is None:
        return ""
    texts = [
        f"{states['opened']:,} of {states['of']:,} connections opened",
        f"{states['remapped']:,} re-mapped" if states["remapped"] else "",
        f"{states['lost']:,} lost a frame" if states["lost"] else "",
        f"of {states['asked']:,} asked again {states['gone']:,} did not answer" if states["asked"] else "",
        _by_dut(states["by_dut"], states["opened"] or 0),
    ]
    return ", ".join(text for text in texts if text)


def _by_dut(counted: int | None, opened: int) -> str:
    if counted is None:
        return ""
    return f"the DUT counted {counted:,}{f', {FEWER}' if counted < opened else ''}"


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
