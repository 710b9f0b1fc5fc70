# SPDX-License-Identifier: Apache-2.0
"""Overload scalability: how far the figures of one flow degrade with many, which begin together or one after the
other (RFC 8219 10.2).

The standard has two formulas, for figures of which more is better and for the others. Both give the share of the
figure of one flow by which that of n flows is worse; a negative share is an improvement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from dutperf.model import Case, LimitedBy, Load, Value, axes_of
from dutperf.results.comparison import Figure, Key, figures_of, load_in_words
from dutperf.results.points import Row, cell
from dutperf.results.summary import Summary
from dutperf.results.tables import Table, case_cells


class Degradation(Value):
    """A figure of one flow and of several."""

    procedure: str
    case: Case
    load: Load | None
    """That of one flow, if loads are shares of the throughput."""
    share_percent: float | None = None
    """Of the throughput with as many flows, where the loads are such shares."""
    figure: str
    flows: int
    apart_s: float = 0.0
    """By which each of them begins later than the one before."""
    of_one: float | None
    """Median with one flow; None: there is no figure."""
    of_all: float | None
    """Median with all flows."""
    percent: float | None
    """By how much it is worse; None where it is not defined: there is no figure, that of one flow is 0, the range of a
    search ended before the DUT did, or losses are those of other rates too."""


def degradations(summaries: Sequence[Summary]) -> tuple[Degradation, ...]:
    """Of every procedure that was measured with one flow and with several, else under the same conditions."""
    return tuple(
        one
        for base in summaries
        if _flows(base) == 1
        for other in summaries
        if _flows(other) > 1 and _apart_from_flows(other) == _apart_from_flows(base)
        for one in _of_pair(base, other)
    )


def table(found: Sequence[Degradation]) -> Table | None:
    """A row for each figure and number of flows; None where there is none."""
    if not found:
        return None
    axes = axes_of(one.case for one in found)
    is_apart = any(one.apart_s for one in found)
    rows = tuple(
        (
            *(one.procedure, *case_cells(one.case, axes), one.figure),
            *(load_in_words(one.load, one.share_percent), f"{one.flows:,}"),
            *((f"{one.apart_s:g}",) if is_apart else ()),
            *_values(one),
        )
        for one in found
    )
    apart = ("T, s",) if is_apart else ()
    heads = ("procedure", *(axis.heading for axis in axes), "figure", "at", "flows", *apart)
    clauses = "10.2.2" if is_apart else "10.2.1"
    return Table(
        f"overload scalability (RFC 8219 {clauses}): medians of one flow and of all",
        (*heads, "of one", "of all", "worse by, %"),
        rows,
        1 + len(axes),
    )


def _values(one: Degradation) -> Row:
    percent = "undefined" if one.percent is None else f"{one.percent:+.2f}"
    return cell(one.of_one, ",g"), cell(one.of_all, ",g"), percent


def _flows(one: Summary) -> int:
    """0: what varies does so by frame."""
    return int(one.conditions.get("flows") or 0)


def _apart_from_flows(one: Summary) -> tuple[str, dict[str, object]]:
    """What two measurements have to have in common. A throughput that was measured is one of the results, and so are
    the loads that follow from it and the frame sizes that have one: cases are paired one by one."""
    ignored = ("flows", "throughput_from", "throughput_deviations", "frame_sizes", "ranges")
    return one.procedure, {name: value for name, value in one.conditions.items() if name not in ignored}


def _of_pair(base: Summary, other: Summary) -> Iterator[Degradation]:
    of_one, of_all = _figures(base), _figures(other)
    for key in (one for one in of_one if one in of_all):
        case, _, name = key
        first, last = of_one[key], of_all[key]
        yield Degradation(
            procedure=base.procedure,
            case=case,
            load=first.load,
            share_percent=first.share_percent,
            figure=name,
            flows=_flows(other),
            apart_s=float(other.conditions.get("flows_apart_s") or 0),
            of_one=_median(first),
            of_all=_median(last),
            percent=None if _are_diluted(other, name) else _percent(first, last, rises=_less_is_better(base, name)),
        )


def _are_diluted(one: Summary, name: str) -> bool:
    """Whether a share of lost frames counts those that were sent at lower rates, while flows still began: such a share
    is smaller than that of one flow even where the DUT is not better."""
    return bool(one.conditions.get("flows_apart_s")) and fnmatchcase(name, "*loss_ratio*")


def _figures(one: Summary) -> dict[Key, Figure]:
    return {(point.case, figure.offered, name): figure for point in one.points for name, figure in figures_of(point)}


def _median(figure: Figure) -> float | None:
    return None if figure.unusable else figure.median


def _less_is_better(one: Summary, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in type(one.points[0]).less_is_better)


def _percent(first: Figure, last: Figure, *, rises: bool) -> float | None:
    """``rises``: whether it does where it is worse."""
    of_one, of_all = _median(first), _median(last)
    if not of_one or of_all is None or LimitedBy.RANGE in (first.limited_by, last.limited_by):
        return None
    if of_one * of_all < 0:  # an IPDV has a sign
        return None
    return (of_all - of_one if rises else of_one - of_all) / of_one * 100
