# SPDX-License-Identifier: Apache-2.0
"""Compares the results of runs figure by figure: the difference of the medians, its confidence
interval, and whether it is significant at a stated error rate.

The repetitions of both runs are compared by their ranks (:mod:`dutperf.statistics.ranks`), all rows
together with Holm's correction. Figures that the tester limited or that are not complete are shown,
but not judged.

Ranks presume values that are independent, which repetitions are (:mod:`dutperf.search.restart`), and
exact. A search's values are not exact: it ends on a grid that may have another offset in each run.
So a difference has to be wider than ``margin``, the resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from dutperf.model import Case, LimitedBy, Load, Value, axes_of, is_load
from dutperf.results.comparability import Mismatch, Weight, mismatches
from dutperf.results.measured import Measured
from dutperf.results.points import Point
from dutperf.results.statistics import Missing
from dutperf.results.tables import Table, case_cells
from dutperf.setup.conditions import Conditions
from dutperf.statistics import ranks
from dutperf.statistics.ranks import Tails

ALPHA = 0.05


class Verdict(StrEnum):
    """Result of the comparison of a figure."""

    LOWER = "lower"
    HIGHER = "higher"
    NO_DIFFERENCE = "no difference shown"
    TOO_FEW = "too few repetitions"
    NOT_JUDGED = "not judged"


class Figure(Value):
    """One figure of one run."""

    median: float | None
    """None: see ``missing``."""
    values: tuple[float | None, ...]
    """Of the repetitions."""
    missing: Missing = Missing.LOWEST
    """What a missing value says."""
    limited_by: LimitedBy | None = None
    unusable: str = ""
    """Why the figure cannot be judged."""
    resolution: float = 0.0
    """Largest difference of two equal results, because a search ends on a grid."""
    load: Load | None = None
    """Where a case has the figure for several loads."""
    share_percent: float | None = None
    """Of the throughput, where the loads are such shares."""

    @property
    def offered(self) -> Load | float | None:
        """The load that two runs have in common where both offered it: a share of each one's throughput, or a rate."""
        return self.load if self.share_percent is None else self.share_percent

    @property
    def at(self) -> str:
        """The load in words; empty where there is only one."""
        return load_in_words(self.load, self.share_percent)

    def number(self, value: float | None) -> float:
        """One of the values, or the median, for a comparison; infinite where it is missing."""
        return self.missing.number if value is None else value

    def in_words(self) -> str:
        """The median for a person."""
        beyond = "beyond what was tried" if self.missing is Missing.HIGHEST else "nothing passed"
        return beyond if self.median is None else digits(self.median)


class Row(Value):
    """One figure of both runs; the difference is the other's median minus the base's, in the
    figure's unit, with an interval of confidence 1 - ``alpha``."""

    measurement: str
    """In a suite the name of its directory."""
    case: Case
    load: Load | None
    """Where a case has the figure for several loads; the base's, if loads are shares of the throughput."""
    figure: str
    """As exports and JSON name it, without ``.median``."""
    base: Figure | None
    other: Figure | None
    difference: float | None = None
    difference_percent: float | None = None
    """Of the base's median."""
    interval: tuple[float, float] | None = None
    """Of this row alone, with the margin at both ends; None where there are too few repetitions."""
    margin: float = 0.0
    """Difference that the searches' resolution alone may cause, in the figure's unit."""
    p: float | None = None
    """Probability of ranks at least this far apart without a difference beyond the margin;
    two-sided, with Holm's correction for all judged rows."""
    verdict: Verdict = Verdict.NOT_JUDGED
    why: str = ""
    """Why it is not judged."""

    def tails(self, moved: Callable[[float], float] = lambda value: value) -> Tails:
        """Probabilities of the other's ranks against the base's values, which ``moved`` and the
        margin shift towards them."""
        assert self.base is not None
        assert self.other is not None
        base = [self.base.number(None if value is None else moved(value)) for value in self.base.values]
        low, high = ([value + shift for value in base] for shift in (-self.margin, self.margin))
        other = [self.other.number(value) for value in self.other.values]
        return Tails(low=ranks.tails(low, other).low, high=ranks.tails(high, other).high)

    @property
    def at(self) -> str:
        """The load in words; empty where there is only one."""
        figure = self.base or self.other
        return "" if figure is None else figure.at

    @property
    def where(self) -> str:
        """Measurement, case, load and figure, for a message."""
        return ", ".join(filter(None, (self.measurement, str(self.case), self.at, self.figure)))


class Compared(Value):
    """Two runs, or suites."""

    base: str
    other: str
    mismatches: dict[str, tuple[Mismatch, ...]]
    """By measurement."""
    states: tuple[str, ...]
    """Measurements that are not complete, and those that only one of them has."""
    rows: tuple[Row, ...]


class Comparison(Value):
    """Comparison of all runs with the first."""

    alpha: float
    correction: str = "Holm, over all rows that are judged"
    compared: tuple[Compared, ...]


class Incomparable(Exception):
    """The figures have different meanings; the message names each condition."""


@dataclass(frozen=True)
class Results:
    """One side of a comparison: its directory and its measurements."""

    name: str
    measured: Sequence[Measured]


def compare(base: Results, others: Sequence[Results], alpha: float = ALPHA, strict: bool = False) -> Comparison:
    """Compare every figure that they have in common. Raises Incomparable: there is none, the figures have different
    meanings, or (``strict``) any condition differs."""
    pairs = [_pairwise(base, other, alpha, strict) for other in others]
    tested = [row.p for one in pairs for row in one.rows if row.p is not None]
    adjusted = iter(ranks.holm(tested))
    judged = tuple(
        one.model_copy(update={"rows": tuple(_judged(row, adjusted, alpha, len(tested)) for row in one.rows)})
        for one in pairs
    )
    return Comparison(alpha=alpha, compared=judged)


def tables_of(one: Compared, alpha: float) -> list[Table]:
    """Tables for a person, one for each measurement."""
    axes = [axis for axis in axes_of(row.case for row in one.rows) if not axis.derived]
    heads = (
        *(axis.heading for axis in axes),
        "figure",
        "base",
        "other",
        "difference",
        "%",
        f"{100 * (1 - alpha):g} % interval",
        "p",
        "verdict",
    )
    names = dict.fromkeys(row.measurement for row in one.rows)
    return [
        Table(
            f"{name}: {one.other} against {one.base}",
            heads,
            tuple((*case_cells(row.case, axes), *_cells(row)) for row in one.rows if row.measurement == name),
        )
        for name in names
    ]


def unjudged(one: Compared) -> Iterator[str]:
    """Why rows are not judged, each reason once."""
    for why in dict.fromkeys(row.why for row in one.rows if row.why):
        yield f"not judged: {'; '.join(row.where for row in one.rows if row.why == why)}: {why}"
    if any(_UNUSABLE[LimitedBy.TESTER.value] in row.why for row in one.rows if row.why):
        yield "what the tester limited may be the DUT's with longer trials or a coarser resolution, on a calmer machine"


def bounds(one: Compared) -> Iterator[str]:
    """Sentences on figures limited by media or range, where a difference of the DUTs may be hidden."""
    for row in one.rows:
        for name, figure in ((one.base, row.base), (one.other, row.other)):
            if (
                figure is not None
                and figure.median is not None
                and figure.limited_by in (LimitedBy.MEDIA, LimitedBy.RANGE)
            ):
                what = "media" if figure.limited_by is LimitedBy.MEDIA else "search range"
                yield f"{row.where} of {name} is limited by the {what}, not by the DUT, which may do more"


_OF_THROUGHPUT = " % of the throughput"


def load_in_words(load: Load | None, share_percent: float | None) -> str:
    """``20,000 frames/s``, ``50 % of the throughput``; empty without a load."""
    if share_percent is not None:
        return f"{share_percent:g}{_OF_THROUGHPUT}"
    return "" if load is None else str(load)


def is_share(words: str) -> bool:
    """Whether :func:`load_in_words` had a share."""
    return words.endswith(_OF_THROUGHPUT)


def digits(figure: float | None, sign: str = "") -> str:
    """A figure of any size, for a table."""
    if figure is None:
        return "-"
    return f"{figure:{sign},.0f}" if abs(figure) >= 1000 else f"{figure:{sign}.5g}"


# --- pairs of measurements ------------------------------------------------------------------------


def _pairwise(base: Results, other: Results, alpha: float, strict: bool) -> Compared:
    pairs, states = _pairs(base, other)
    differing = {name: mismatches(there, here) for name, (there, here) in pairs.items()}
    _refuse(differing, base, other, strict)
    rows = tuple(row for name, (there, here) in pairs.items() for row in _rows(name, there, here, alpha))
    if not any(row.base and row.other for row in rows):
        raise Incomparable(
            f"{base.name} and {other.name} have no figure in common:"
            f" {'; '.join(states) or 'their cases or offered loads differ'}"
        )
    return Compared(base=base.name, other=other.name, mismatches=differing, states=tuple(states), rows=rows)


def _pairs(base: Results, other: Results) -> tuple[dict[str, tuple[Measured, Measured]], list[str]]:
    """Measurements of the same procedure and mix, or the only two of the same procedure; with
    sentences on the state of these and of the others."""
    there, here = ({_kind(one): one for one in each.measured} for each in (base, other))
    pairs = {
        kind: (there[kind], here[kind]) for kind in there if kind in here and there[kind].summary and here[kind].summary
    }
    if not pairs and len(there) == len(here) == 1:
        [first], [second] = there.values(), here.values()
        if first.summary and second.summary and first.summary.procedure == second.summary.procedure:
            return {first.name: (first, second)}, _states(base, other, pairs)
    return pairs, _states(base, other, pairs)


def _kind(one: Measured) -> str:
    """Procedure and mix, by which a suite names its measurements."""
    return one.name if one.summary is None else one.summary.procedure + Conditions.recorded(one.plan.conditions).mix


def _states(base: Results, other: Results, pairs: Mapping[str, Any]) -> list[str]:
    texts = []
    for each, rest in ((base, other), (other, base)):
        for one in each.measured:
            state = one.state() or (one.note if one.summary is None else None)
            texts += [f"{one.name} of {each.name}: {state}"] if state else []
            if _kind(one) not in pairs and _kind(one) not in {_kind(those) for those in rest.measured}:
                texts.append(f"only {each.name} has {_kind(one)}")
    return texts


def _refuse(differing: Mapping[str, Sequence[Mismatch]], base: Results, other: Results, strict: bool) -> None:
    refused = [Weight.REFUSED, Weight.WARNED] if strict else [Weight.REFUSED]
    texts = [f"{name}: {one.sentence()}" for name, each in differing.items() for one in each if one.weight in refused]
    if texts:
        raise Incomparable(f"{base.name} and {other.name} were measured under other conditions: {'; '.join(texts)}")


# --- figures --------------------------------------------------------------------------------------

Key = tuple[Case, Load | float | None, str]
"""Case, :attr:`Figure.offered`, and name of the figure."""


def _rows(name: str, base: Measured, other: Measured, alpha: float) -> Iterator[Row]:
    there, here = _figures(base), _figures(other)
    assert base.summary is not None
    assert other.summary is not None
    is_open = ends_by_itself(base.summary.conditions) or ends_by_itself(other.summary.conditions)
    for key in sorted({**there, **here}, key=lambda key: key[0].order()):
        case, _, figure = key
        first, second = there.get(key), here.get(key)
        load, share = (one := first or here[key]).load, one.share_percent
        if is_open and load is not None and share is None and (first is None or second is None):
            continue
        row = Row(measurement=name, case=case, load=load, figure=figure, base=first, other=second)
        why = _why_not(base, first, case, "base") or _why_not(other, second, case, "other")
        margined = row.model_copy(update={"why": why, "margin": _margin(row)})
        yield margined.model_copy(update=_difference(margined, alpha))


def ends_by_itself(conditions: Mapping[str, Any]) -> bool:
    """Whether the loads are a series of rates, which ends where the DUT loses no more frames: those of a better one
    are fewer."""
    return not conditions.get("rates")


def _figures(one: Measured) -> dict[Key, Figure]:
    assert one.summary is not None
    unfinished = "" if one.is_complete else "not complete"
    conditions = one.summary.conditions
    figures = {}
    for point in one.summary.points:
        resolution = point.resolution(conditions)
        for name, figure in figures_of(point):
            figures[point.case, figure.offered, name] = figure.model_copy(
                update={"unusable": figure.unusable or unfinished, "resolution": resolution}
            )
    return figures


def figures_of(point: Point) -> Iterator[tuple[str, Figure]]:
    """Every figure over repetitions, with its name in exports."""
    members = {name: value for name, value in point.model_dump(mode="json").items() if name != "case"}
    for name, figure in _collect(members, "", {}, None, point.series):
        if any(fnmatchcase(name, pattern) for pattern in point.implied):
            continue
        missing = next((what for pattern, what in point.missing.items() if fnmatchcase(name, pattern)), Missing.LOWEST)
        unknown = f"a repetition has none: {point.message}" if missing is Missing.VOID and None in figure.values else ""
        yield name, figure.model_copy(update={"missing": missing, "unusable": figure.unusable or unknown})


_UNUSABLE = {
    LimitedBy.TESTER.value: "limited by the tester",
    LimitedBy.SETUP.value: "the test setup did not fit",
    LimitedBy.CONNECTIONS.value: "the connections were not opened",
}


def _collect(
    value: Any, name: str, offered: Mapping[str, Any], limit: str | None, series: str | None
) -> Iterator[tuple[str, Figure]]:
    if isinstance(value, list):
        for number, entry in enumerate(value):
            if name == series and isinstance(entry, dict):
                yield from _collect(entry, name, _offered(entry), limit, series)
            elif isinstance(entry, dict):
                yield from _collect(entry, f"{name}.{number}", offered, limit, series)
    elif isinstance(value, dict):
        limit = value.get("limited_by", limit)
        if "values" in value and "median" in value:
            unusable = _UNUSABLE.get(limit, "") if limit else ""
            figure = {
                "median": value["median"],
                "values": tuple(value["values"]),
                "limited_by": limit,
                "unusable": unusable,
                **offered,
            }
            yield name, Figure.model_validate(figure)
            return
        for member, inner in value.items():
            yield from _collect(inner, f"{name}.{member}" if name else member, offered, limit, series)


def _offered(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The load of an entry of a series, and its share of the throughput where it has one."""
    load = next((Load.of_json(member) for member in entry.values() if is_load(member)), None)
    return {"load": load, "share_percent": entry.get("share_percent")}


def _why_not(one: Measured, figure: Figure | None, case: Case, side: str) -> str:
    if figure is not None and figure.values:
        return f"{side}: {figure.unusable}" if figure.unusable else ""
    assert one.summary is not None
    message = next((point.message for point in one.summary.points if point.case == case), f"{case}: not measured")
    return f"{side} has no figure: {message}"


def _of_both(row: Row) -> tuple[Figure, Figure] | None:
    return (row.base, row.other) if row.base and row.other and row.base.values and row.other.values else None


def _margin(row: Row) -> float:
    figures = _of_both(row)
    return 0.0 if figures is None else max(figure.resolution for figure in figures)


def _difference(row: Row, alpha: float) -> dict[str, Any]:
    if _of_both(row) is None or row.base is None or row.other is None:
        return {}
    there, here = row.base.median, row.other.median
    difference = None if there is None or here is None else here - there
    members: dict[str, Any] = {"difference": difference, "difference_percent": percent_of(difference, there)}
    if not row.why:
        ends = ranks.shift_interval(row.base.values, row.other.values, alpha)
        members["interval"] = ends and (ends[0] - row.margin, ends[1] + row.margin)
        members["p"] = row.tails().two_sided
    return members


def percent_of(difference: float | None, base: float | None) -> float | None:
    """A difference as a percentage of the base, with the sign of the difference; None without
    either, or with a base of 0."""
    return None if difference is None or not base else 100 * difference / abs(base)


def _judged(row: Row, adjusted: Iterator[float], alpha: float, tested: int) -> Row:
    """``tested``: the number of rows that are judged, by which Holm's correction multiplies the smallest p."""
    if row.p is None or row.base is None or row.other is None:
        return row
    tails, p = row.tails(), next(adjusted)
    verdict = Verdict.LOWER if tails.low < tails.high else Verdict.HIGHER
    if p > alpha:
        verdict = Verdict.TOO_FEW if _least_p(row.base, row.other) * tested > alpha else Verdict.NO_DIFFERENCE
    return row.model_copy(update={"p": p, "verdict": verdict})


def _least_p(base: Figure, other: Figure) -> float:
    """That of samples of these sizes of which one is wholly above the other."""
    return 2 * ranks.smallest_p(len(base.values), len(other.values))


def _cells(row: Row) -> tuple[str, ...]:
    medians = (digits(figure.median if figure else None) for figure in (row.base, row.other))
    interval = "-" if row.interval is None else " to ".join(digits(end, "+") for end in row.interval)
    share = "-" if row.difference_percent is None else f"{row.difference_percent:+.2f}"
    p = "-" if row.p is None else f"{row.p:.2g}"
    figure = f"{row.figure} at {row.at}" if row.at else row.figure
    return (figure, *medians, digits(row.difference, "+"), share, interval, p, row.verdict)
