# SPDX-License-Identifier: Apache-2.0
"""The first lines of everything that shows a measurement: its figures, why they can be believed, and how many clauses
were not followed. Terminal, report, page and notebook take their words from here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.model import whose_rates
from dutperf.results.deviations import TRIAL_S, Deviation
from dutperf.results.points import Point
from dutperf.results.run_trials import RunTrials
from dutperf.results.summary import Summary
from dutperf.spelling import count_of, with_and


@dataclass(frozen=True)
class Headline:
    """A measurement in short, in the order of interest."""

    figures: tuple[tuple[str, bool], ...]
    """Of each case; with whether it needs a warning, as the limit is not the DUT's."""
    believed: str
    """The trials behind them."""
    deviations: str
    """How many there are, and from which RFCs."""

    @property
    def first(self) -> str:
        """The first figure, and how many others there are: for a list of runs."""
        text, others = self.figures[0][0], len(self.figures) - 1
        return f"{text}; {others:,} more" if others else text


def of_summary(summary: Summary) -> Headline:
    """The headline of a measurement, finished or not."""
    return Headline(
        tuple((_figure(point), point.needs_warning) for point in summary.points),
        _believed(summary.trials),
        _deviations(summary.deviations, summary.conditions),
    )


def _figure(point: Point) -> str:
    """``53,113 frames/s per direction (84 bytes), limited by the DUT; 3 repetitions, 46,250–53,788``."""
    case = f" ({point.case})" if point.case else ""
    limit = f", {point.limited_in_words}" if point.limit is not None else ""
    if not point.has_number:
        return f"no figure{case}{limit or f': {point.message}'}"
    figure = point.main_figure()
    spread = f", {figure.spread}" if figure.spread else ""
    repetitions = f"; {count_of(point.repeated, 'repetition')}{spread}" if point.repeated else ""
    return f"{whose_rates(figure.text, [point.case])}{case}{limit}{repetitions}"


def _believed(trials: RunTrials) -> str:
    """``30 trials, 1 invalid and repeated, in the others each frame left at most 310 µs late``."""
    if not trials.done:
        return "no trial has ended"
    return ", ".join(text for text in (count_of(trials.done, "trial"), _invalid(trials), _latest(trials)) if text)


def _invalid(trials: RunTrials) -> str:
    if not trials.invalid:
        return "none invalid"
    if trials.repeated in (0, trials.invalid):
        return f"{trials.invalid:,} invalid{' and repeated' if trials.repeated else ''}"
    return f"{trials.invalid:,} invalid ({trials.repeated:,} repeated, the others left without a verdict)"


def _latest(trials: RunTrials) -> str:
    late_us = trials.max_lateness_us
    where = "in the others " if trials.invalid else ""
    return (
        ""
        if late_us is None
        else f"{where}each {trials.counted} left at most {late_us:,.{0 if late_us >= 10 else 1}f} µs late"
    )


def _deviations(found: Sequence[Deviation], conditions: dict[str, Any]) -> str:
    """``quick run: deviates from RFC 2544 and RFC 8219 in 7 points``. A run is quick whose trials are shorter than the
    RFCs'."""
    if not found:
        return "deviates from no clause that dutperf checks"
    quick = "quick run: " if conditions.get("duration_s", TRIAL_S) < TRIAL_S else ""
    numbers = {int(number) for one in found for number in re.findall(r"RFC (\d+)", one.clause)}
    rfcs = with_and(f"RFC {number}" for number in sorted(numbers))
    return f"{quick}deviates from {rfcs} in {count_of(len(found), 'point')}"
