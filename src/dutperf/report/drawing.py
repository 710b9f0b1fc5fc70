# SPDX-License-Identifier: Apache-2.0
"""Draws charts with matplotlib: one code path for the report's SVG, and for SVG, PDF and PNG in
papers and talks.

Curves differ in colour (Okabe and Ito's palette for colour-blind readers), in marker and in dashes,
so a grey copy is readable too. matplotlib is imported only when something is drawn, so a measurement
does not wait for it.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from dutperf.errors import require
from dutperf.results.charts import Chart, Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Format = Literal["svg", "pdf", "png"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#606468")
INK = "#1b1d1f"
GRID = "#cfd2d6"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 2, 1, 2)), (0, (3, 1)))
WIDTH_IN, HEIGHT_IN, LEGEND_LINE_IN, LEGEND_PADDING_IN = 5.0, 3.1, 0.21, 0.17
NINES = ((0.0, "smallest"), (0.5, "50 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "largest"))
"""Quantiles that are evenly spaced on the axis."""
CROWDED, TOO_CROWDED = 0.1, 0.04
"""Ticks closer than these shares of the axis have rotated labels, or none."""
MANY = 1000.0
LARGE = 10_000.0

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "font.family": "sans-serif",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
}


def write(chart: Chart, form: Format) -> bytes:
    """The chart as a file for a paper: with embedded fonts and a white background, without a
    title."""
    return _save(chart, form, {"svg.fonttype": "path"}, {"facecolor": "white", "dpi": 200})


def embedded(chart: Chart, prefix: str) -> str:
    """The chart as an SVG element of a page. The page sets the colours: ``currentColor`` and the
    properties ``--grid`` and ``--series-N`` (from 0).

    ``prefix``, with which its identifiers begin, has to be unique in the page.
    """
    drawn = _save(chart, "svg", {"svg.fonttype": "none"}, {"transparent": True}).decode()
    element = drawn[drawn.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", element)
    element = re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
        r'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" \1>',
        element,
    )
    themed = {INK: "currentColor", GRID: "var(--grid)"} | {
        colour: f"var(--series-{number})" for number, colour in enumerate(COLOURS)
    }
    for colour, name in themed.items():
        element = element.replace(colour, name)
    return element


def draw(chart: Chart) -> Figure:
    """The chart as a matplotlib figure; the caller sets the style."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows = -(-_legend_entries(chart) // _legend_columns(chart))
    legend_in = rows * LEGEND_LINE_IN + LEGEND_PADDING_IN if rows else 0.0
    engine = ConstrainedLayoutEngine()
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN + legend_in), layout=engine)
    axes = figure.add_subplot()
    _scale(axes, chart)
    numbers: dict[str, int] = {}
    for curve in chart.curves:
        if curve.kind in _NUMBERED:
            numbers.setdefault(curve.label, len(numbers))
        _PLOT[curve.kind](axes, curve, numbers.get(curve.label, 0))
    for mark in chart.marks:
        axes.axhline(mark.y, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.annotate(mark.label, (1.01, mark.y), xycoords=("axes fraction", "data"), va="center")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.set_xlim(*_ends(axes.get_xlim(), (0.5, None) if chart.x_scale == "counts" else chart.x_range))
    axes.set_ylim(*_ends(axes.get_ylim(), chart.y_range))
    if rows:  # below the axes; "outside lower center" would do the same, but not in matplotlib 3.6 (Debian 12)
        below = legend_in / (HEIGHT_IN + legend_in)
        engine.set(rect=(0, below, 1, 1 - below))
        figure.legend(loc="lower center", ncols=_legend_columns(chart))
    return figure


def _save(chart: Chart, form: Format, style: dict[Any, Any], how: dict[str, Any]) -> bytes:
    """Raises MissingLibrary where matplotlib is not installed."""
    require("matplotlib", "plots", "a plot")
    import matplotlib

    file = io.BytesIO()
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
    title = {"Title": chart.title}
    with matplotlib.rc_context({**_STYLE, **style, "svg.hashsalt": chart.name or chart.title}):
        draw(chart).savefig(file, format=form, metadata={**undated, **title}, **how)
    return file.getvalue()


def _legend_entries(chart: Chart) -> int:
    named = {curve.label for curve in chart.curves if curve.x}
    return len(named) if len(named) > 1 else 0


def _legend_columns(chart: Chart) -> int:
    longest = max((len(curve.label) for curve in chart.curves), default=0)
    return next(columns for columns, most in ((4, 9), (3, 14), (2, 30), (1, longest)) if longest <= most)


def _ends(automatic: tuple[float, float], given: tuple[float | None, float | None]) -> tuple[float, float]:
    low, high = given
    return automatic[0] if low is None else low, automatic[1] if high is None else high


# --- curves ---------------------------------------------------------------------------------------


def _line(axes: Axes, curve: Curve, number: int) -> None:
    if not curve.x:
        return
    below = [y - low for y, (low, _) in zip(curve.y, curve.bars, strict=False)]
    above = [high - y for y, (_, high) in zip(curve.y, curve.bars, strict=False)]
    bars = [below, above] if curve.bars else None
    colour, marker, dashes = (
        COLOURS[number % len(COLOURS)],
        MARKERS[number % len(MARKERS)],
        DASHES[number % len(DASHES)],
    )
    axes.errorbar(
        curve.x,
        curve.y,
        yerr=bars,
        capsize=3,
        elinewidth=1,
        color=colour,
        marker=marker,
        linestyle=dashes,
        label=curve.label,
        clip_on=False,
    )


def _dots(axes: Axes, curve: Curve, number: int) -> None:
    if curve.x:
        marker = ("o", "x", "^", "D")[number % 4]
        axes.plot(
            curve.x,
            curve.y,
            linestyle="none",
            marker=marker,
            color=COLOURS[number % len(COLOURS)],
            label=curve.label,
            markersize=4,
        )


def _rings(axes: Axes, curve: Curve, _number: int) -> None:
    axes.plot(
        curve.x,
        curve.y,
        linestyle="none",
        marker="o",
        markersize=12,
        markerfacecolor="none",
        markeredgecolor=INK,
        label=curve.label,
    )


def _path(axes: Axes, curve: Curve, _number: int) -> None:
    axes.plot(curve.x, curve.y, color=COLOURS[-1], linewidth=0.8, label=curve.label)


def _bundle(axes: Axes, curve: Curve, number: int) -> None:
    named = curve.label in axes.get_legend_handles_labels()[1]
    style = {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }
    axes.plot(
        curve.x,
        curve.y,
        linewidth=0.9,
        markersize=2.5,
        markevery=max(1, len(curve.x) // 6),
        label=None if named else curve.label,
        **style,
    )


def _steps(axes: Axes, curve: Curve, number: int) -> None:
    axes.step(
        curve.x,
        curve.y,
        where="pre",
        linewidth=1.2,
        color=COLOURS[number % len(COLOURS)],
        linestyle=DASHES[number % len(DASHES)],
        label=curve.label,
    )


def _reference(axes: Axes, curve: Curve, _number: int) -> None:
    axes.plot(curve.x, curve.y, color=INK, linewidth=1, linestyle=(0, (6, 3)), label=curve.label)


_NUMBERED = ("line", "dots", "bundle", "steps")
"""Kinds that differ in colour, marker and dashes."""
_PLOT: dict[str, Callable[[Axes, Curve, int], None]] = {
    "line": _line,
    "dots": _dots,
    "rings": _rings,
    "path": _path,
    "bundle": _bundle,
    "steps": _steps,
    "reference": _reference,
}

# --- axes -----------------------------------------------------------------------------------------


def _scale(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    if chart.x_scale == "octaves":
        _octaves(axes, sorted({x for curve in chart.curves for x in curve.x}))
    elif chart.x_scale == "counts":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    elif chart.x_scale == "log":
        axes.set_xscale("log")
    if chart.y_scale == "nines":
        _nines(axes)
    elif chart.y_scale == "log":
        axes.set_yscale("log")
    _numbers(axes.xaxis, chart.x_scale, [x for curve in chart.curves for x in curve.x])
    _numbers(axes.yaxis, chart.y_scale, [y for curve in chart.curves for y in curve.y])


def _numbers(axis: Axis, scale: str, values: list[float]) -> None:
    """Label the ticks with plain numbers, large ones with k and M. A logarithmic axis has ticks at
    1, 2, 5, 10; over many decades only at powers of 10."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullLocator

    if scale == "log":
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(values) / min(values) < MANY else (1.0,)))
        axis.set_minor_locator(NullLocator())
    if scale in ("log", "linear"):
        axis.set_major_formatter(
            EngFormatter() if max(values, default=0) >= LARGE else FuncFormatter(lambda value, _: f"{value:,.10g}")
        )


def _octaves(axes: Axes, values: list[float]) -> None:
    """A logarithmic axis with a labelled tick at each value, except right behind another one."""
    from math import log2

    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    low, high = values[0] / 1.15, values[-1] * 1.15
    axes.set_xlim(low, high)
    place = {value: log2(value / low) / log2(high / low) for value in values}
    gaps = {value: place[value] - place[before] for before, value in itertools.pairwise(values)}
    named = [f"{value:g}" if gaps.get(value, 1) >= TOO_CROWDED else "" for value in values]
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FixedFormatter(named))
    axes.xaxis.set_minor_locator(NullLocator())
    if min(gaps.values(), default=1) < CROWDED:
        axes.tick_params(axis="x", labelrotation=60)


def _nines(axes: Axes) -> None:
    import numpy as np
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    shares, places = [share for share, _ in NINES], list(range(len(NINES)))
    axes.set_yscale(
        "function", functions=(lambda y: np.interp(y, shares, places), lambda place: np.interp(place, places, shares))
    )
    axes.yaxis.set_major_locator(FixedLocator(shares))
    axes.yaxis.set_major_formatter(FixedFormatter([name for _, name in NINES]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 1)
