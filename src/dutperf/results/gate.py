# SPDX-License-Identifier: Apache-2.0
"""Conditions on which a comparison fails: ``throughput_fps < -3%`` fails where the repetitions show
that the figure fell by more than 3 %.

A condition in a pipeline must not fail at random. So the test is not whether there is a difference,
but whether it is beyond the condition's limit: the base's values are shifted by the limit, and the
other's have to lie beyond them by their ranks. Where the true difference is at the limit or short
of it, a condition fails by chance in at most a share alpha of all comparisons, whatever the number
of rows (Holm). The uncertainty of the searches (the margin of the row) counts in the DUT's favour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Self

from dutperf.errors import DutperfError
from dutperf.model import Value
from dutperf.results.comparison import Comparison, Row
from dutperf.spelling import count_of
from dutperf.statistics import ranks


class GateError(DutperfError):
    """An invalid condition, one without a figure of that name, or one that could never fail."""


class Outcome(StrEnum):
    """Outcome of a condition in a row."""

    HOLDS = "holds"
    FAILED = "failed"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Condition:
    """A difference that fails a comparison."""

    text: str
    figure: str
    rises: bool
    """Whether it fails above the limit; else below."""
    limit: float
    is_percent: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """``FIGURE < -3%``, ``FIGURE > +0.5``: a difference from the base, in percent of it or in the figure's unit,
        always with its sign. Raises GateError: the text is not a condition."""
        match = re.fullmatch(r"\s*([\w.\- ]*[\w\-])\s*([<>])\s*([+-](?:\d+(?:\.\d*)?|\.\d+))\s*(%?)\s*", text)
        if match is None:
            raise GateError(
                f"'{text}' is not a condition: give FIGURE < or > and a difference with its sign, as in 'throughput_fps"
                " < -3%'"
            )
        return cls(text.strip(), match[1].removesuffix(".median"), match[2] == ">", float(match[3]), bool(match[4]))

    def moved(self, value: float) -> float:
        """A value of the base, shifted by the limit."""
        return value + (self.limit / 100 * abs(value) if self.is_percent else self.limit)

    def is_beyond(self, row: Row) -> bool:
        """Whether the medians differ by more than the limit; a missing one is below or above any number."""
        assert row.base is not None
        assert row.other is not None
        limit = row.base.number(None if row.base.median is None else self.moved(row.base.median))
        other = row.other.number(row.other.median)
        return other > limit if self.rises else other < limit

    def p(self, row: Row) -> float:
        """Probability of such ranks where the difference is at the limit, or short of it."""
        tails = row.tails(self.moved)
        return tails.high if self.rises else tails.low


class Checked(Value):
    """A condition in a row."""

    condition: str
    other: str
    where: str
    outcome: Outcome
    p: float | None = None
    """With Holm's correction for all conditions in all rows; None where it was not needed."""
    text: str

    def sentence(self) -> str:
        return f"{self.condition}: {self.outcome}: {self.where} of {self.other}: {self.text}"


def check(conditions: Sequence[Condition], comparison: Comparison, by_median: bool = False) -> tuple[Checked, ...]:
    """Check every condition in every row that has its figure; ``by_median``: a difference of the medians is enough,
    significant or not. Raises GateError: a condition on an unknown figure, or one that could never fail with so few
    repetitions."""
    pairs = [
        (condition, one.other, row)
        for condition in conditions
        for one in comparison.compared
        for row in _rows(condition, one.rows)
    ]
    _check_names(conditions, comparison)
    tested = [(condition, row) for condition, _, row in pairs if _needs_ranks(row)]
    if not by_median:
        _check_possible([row for _, row in tested], comparison.alpha)
    adjusted = iter([None] * len(tested) if by_median else ranks.holm([condition.p(row) for condition, row in tested]))
    return tuple(
        _checked(condition, other, row, next(adjusted) if _needs_ranks(row) else None, comparison.alpha)
        for condition, other, row in pairs
    )


def _rows(condition: Condition, rows: Sequence[Row]) -> list[Row]:
    """The rows of the condition's figure, without those that only the other run has."""
    return [row for row in rows if row.figure == condition.figure and row.base is not None]


def _needs_ranks(row: Row) -> bool:
    """Whether the ranks have to decide. A DUT through which nothing passes is below every limit."""
    return (
        not row.why
        and row.base is not None
        and row.base.median is not None
        and row.other is not None
        and row.other.median is not None
    )


def _check_names(conditions: Sequence[Condition], comparison: Comparison) -> None:
    names = list(dict.fromkeys(row.figure for one in comparison.compared for row in one.rows if row.base is not None))
    for condition in conditions:
        if condition.figure not in names:
            raise GateError(f"there is no figure {condition.figure}; there are {', '.join(names)}")


def _check_possible(rows: Sequence[Row], alpha: float) -> None:
    counts = [
        (len(row.base.values), len(row.other.values)) for row in rows if row.base is not None and row.other is not None
    ]
    fewest = max(counts, key=lambda sizes: ranks.smallest_p(*sizes), default=None)
    if fewest is None or ranks.smallest_p(*fewest) * len(rows) <= alpha:
        return
    enough = next(count for count in range(1, 1000) if ranks.smallest_p(count, count) * len(rows) <= alpha)
    raise GateError(
        f"{fewest[0]} and {fewest[1]} repetitions in {count_of(len(rows), 'row')} cannot show a"
        f" difference at an error rate of {alpha:g}, so the condition could never fail: measure {enough} repetitions"
        " each, or let the medians alone decide (--by-median)"
    )


def _checked(condition: Condition, other: str, row: Row, p: float | None, alpha: float) -> Checked:
    outcome = _outcome(condition, row, p, alpha)
    return Checked(condition=condition.text, other=other, where=row.where, outcome=outcome, p=p, text=_text(row, p))


def _outcome(condition: Condition, row: Row, p: float | None, alpha: float) -> Outcome:
    if row.why or row.base is None or row.base.number(row.base.median) == -inf:
        return Outcome.NOT_JUDGED
    return Outcome.FAILED if condition.is_beyond(row) and (p is None or p <= alpha) else Outcome.HOLDS


def _text(row: Row, p: float | None) -> str:
    if row.why:
        return row.why
    medians = [figure.in_words() if figure else "nothing passed" for figure in (row.base, row.other)]
    share = "" if row.difference_percent is None else f" ({row.difference_percent:+.2f} %)"
    return f"{medians[0]} to {medians[1]}{share}" + ("" if p is None else f", p {p:.2g} (one-sided)")
