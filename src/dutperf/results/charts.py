# SPDX-License-Identifier: Apache-2.0
"""Plots as plain values: procedures make charts of their points, :mod:`dutperf.report.drawing` draws
them.

So the report, a paper and a test use the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dutperf.model import Axis, Case

WIDE = 10.0
"""Above this ratio of the largest to the smallest value, the axis is logarithmic."""


Kind = Literal["line", "dots", "rings", "path", "bundle", "steps", "reference"]


@dataclass(frozen=True)
class Curve:
    """Points of one curve, in the units of the chart's axes."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    bars: tuple[tuple[float, float], ...] = ()
    """For each point the ends of its bar; empty: none."""
    kind: Kind = "line"
    """``dots`` are not connected; a ``path`` is a line without markers; ``rings`` mark points of
    another curve; a ``bundle`` is all curves with the same label; each point of ``steps`` ends the
    step to its y; a ``reference`` was not measured."""


@dataclass(frozen=True)
class Mark:
    """A named value on the y axis."""

    label: str
    y: float


@dataclass(frozen=True)
class Chart:
    """One plot. ``name`` is unique among the plots of its measurement; empty for the main one."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    caption: str = ""
    """How to read the plot, and what is missing in it."""
    x_scale: Literal["linear", "log", "octaves", "counts"] = "linear"
    """``octaves``: logarithmic, with a tick at the x of each point; ``counts``: integers."""
    y_scale: Literal["linear", "log", "nines"] = "linear"
    """``nines``: shares of a whole, stretched towards 1 (0.9, 0.99, 0.999)."""
    x_range: tuple[float | None, float | None] = (None, None)
    """Ends of the axis; None: from the points."""
    y_range: tuple[float | None, float | None] = (None, None)
    marks: tuple[Mark, ...] = ()

    @property
    def has_points(self) -> bool:
        return any(curve.x and curve.kind != "reference" for curve in self.curves)


Figure = tuple[float | None, float | None, float | None]
"""The value of a point and the ends of its bar: median, 1st and 99th percentile; the first is None
where there is no figure."""


def bars(middle: str = "median") -> str:
    """Caption of a curve through such figures (``middle``: median or mean) with bars."""
    return f"{middle.capitalize()} of the repetitions; the bars reach from the 1st to the 99th percentile."


def with_bars(label: str, figures: Iterable[tuple[float, Figure]]) -> Curve:
    """A curve through the medians of ``figures`` (x, figure), with bars from the 1st to the 99th
    percentile. Points without a median are left out."""
    points = [(x, median, low, high) for x, (median, low, high) in figures if median is not None]
    bars = tuple((median if low is None else low, median if high is None else high) for _, median, low, high in points)
    return Curve(label, tuple(x for x, *_ in points), tuple(median for _, median, *_ in points), bars)


def line(label: str, points: Sequence[tuple[float, float]]) -> Curve:
    return Curve(label, tuple(float(x) for x, _ in points), tuple(y for _, y in points))


def of_case(case: Case, label: str, *, several: bool) -> str:
    """The label of a case's curve, which names the case where the chart has ``several``."""
    return f"{case}, {label}" if several else label


def repetitions(
    what: str, y_label: str, by_case: Iterable[tuple[Case, Sequence[float | None]]], name: str = "repetitions"
) -> Chart:
    """The values of all repetitions, a curve for each case. It shows drift and scatter."""
    curves = [
        line(str(case), [(number, value) for number, value in enumerate(values, start=1) if value is not None])
        for case, values in by_case
    ]
    return Chart(
        name=name,
        title=f"{what} of each repetition",
        x_label="repetition",
        y_label=y_label,
        curves=tuple(curves),
        x_scale="counts",
        y_scale=scale_of(y for curve in curves for y in curve.y),
    )


Values = Iterable[tuple[Case, float | None]]


def over_cases(
    what: str,
    y_label: str,
    figures: Sequence[tuple[str, Case, Figure]],
    *,
    caption: str,
    rings: tuple[str, Values] = ("", ()),
    reference: tuple[str, Values] = ("", ()),
) -> tuple[Chart, ...]:
    """Figures over the axis on which the cases differ (of several, the first numeric one): a curve
    for each label and each combination of values on the other axes.

    Args:
        what: the quantity, at the beginning of the title.
        y_label: its name and unit.
        figures: label of a curve, case, and figure.
        caption: how to read the chart.
        rings: a label, and values to mark.
        reference: a label, and values that were not measured.

    Returns:
        One chart; none where no axis is numeric.
    """
    axis = _drawn_axis([case for _, case, _ in figures])
    if axis is None:
        return ()
    by_label: dict[str, list[tuple[float, Figure]]] = {}
    for label, case, figure in figures:
        by_label.setdefault(_label(label, case, axis), []).append((float(case[axis]), figure))
    curves = [
        *(with_bars(label, each) for label, each in by_label.items()),
        *_unconnected(rings, axis, "rings"),
        *_unconnected(reference, axis, "reference"),
    ]
    values = [y for curve in curves for y in curve.y]
    scale = scale_of(values)
    chart = Chart(
        name="",
        title=f"{what} over {axis.heading}",
        x_label=axis.label,
        y_label=y_label,
        curves=tuple(curves),
        caption=caption,
        x_scale="octaves" if all(x > 0 for curve in curves for x in curve.x) else "linear",
        y_scale=scale,
        y_range=(0 if scale == "linear" and min(values, default=0) >= 0 else None, None),
    )
    return (chart,)


def _drawn_axis(cases: Sequence[Case]) -> Axis[Any] | None:
    own = [case.own() for case in cases]
    axes = dict.fromkeys(axis for case in own for axis in case)
    drawable = [axis for axis in axes if all(not isinstance(case.get(axis, ""), str) for case in own)]
    differing = (axis for axis in drawable if len({case[axis] for case in own}) > 1)
    return next(differing, drawable[0] if drawable else None)


def _label(label: str, case: Case, axis: Axis[Any]) -> str:
    """The label with the values on the other axes."""
    rest = str(case.but_for(axis))
    return f"{label}, {rest}" if rest else label


def _unconnected(named: tuple[str, Values], axis: Axis[Any], kind: Kind) -> list[Curve]:
    label, values = named
    points = [(float(case[axis]), float(value)) for case, value in values if value is not None]
    return [Curve(label, tuple(x for x, _ in points), tuple(y for _, y in points), kind=kind)] if points else []


def scale_of(values: Iterable[float]) -> Literal["linear", "log"]:
    """The axis' scale for these values: logarithmic where all are positive and their ratio is above
    ``WIDE``."""
    all_ = list(values)
    return "log" if all_ and min(all_) > 0 and max(all_) / min(all_) > WIDE else "linear"
