# SPDX-License-Identifier: Apache-2.0
"""What the plots of results show."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import documented
from dutperf.api import results
from dutperf.journal import ResultEvent
from dutperf.model import FRAME_SIZE, Case, Delays, Load, TrialResult, Verdict
from dutperf.report import drawing, html
from dutperf.results import trials
from dutperf.results.charts import Chart, Curve, Mark
from dutperf.results.measured import Measured
from dutperf.setup.conditions import Rate
from dutperf.tester.simulated import SimulatedLimits, SimulatedTester
from plans import counts, measure, plan
from reports import STRICT

pytestmark = STRICT


def chart_of(one: Measured, name: str = "") -> Chart:
    return next(chart for chart in one.result_charts() + one.progress_charts() if chart.name == name)


def test_throughput_is_plotted_with_the_media_s_line(measured: dict[str, Measured]) -> None:
    *goals, theory = chart_of(measured["throughput"]).curves
    assert [goal.label for goal in goals] == ["at most 0 % lost", "at most 0.5 % lost"]
    assert (theory.kind, theory.x, theory.y) == ("reference", (84, 1518), (documented.MEDIA_FPS,) * 2)


def test_a_point_that_the_tester_limits_is_marked_as_such(tmp_path: Path) -> None:
    tester = SimulatedTester(limits=SimulatedLimits(send_fps=20_000))
    measure(tester, plan(documented.MEDIA_FPS, max_rate=Rate.parse("50k")), tmp_path)
    [one] = results.read(tmp_path).measured
    rings = next(curve for curve in chart_of(one).curves if curve.kind == "rings")
    assert rings.label == "not limited by the DUT"
    assert rings.x == (84,)
    assert 'class="warning">84 bytes: limited by the tester, not the DUT: ' in html.page([one])


def test_frame_loss_is_plotted_over_the_share_of_the_media_s_maximum(
    measured: dict[str, Measured], tmp_path: Path
) -> None:
    chart = chart_of(measured["frame-loss"])
    assert (chart.x_range, chart.y_range) == ((0, 100), (0, 100))
    assert chart.curves[0].x[0] == pytest.approx(100)
    measure(SimulatedTester(), plan(rates=(Rate.parse("5k"),), repetitions=1), tmp_path, "frame-loss")
    [unknown] = results.read(tmp_path).measured
    assert (chart_of(unknown).x_range, chart_of(unknown).curves[0].x) == ((0, None), (5000,))
    assert "frames/s" in chart_of(unknown).x_label


def test_the_path_of_a_search_says_how_each_trial_ended(measured: dict[str, Measured]) -> None:
    one = measured["throughput"]
    line, *dots = chart_of(one, "path-84").curves
    trials = [trial for trial in one.trials() if trial.case[FRAME_SIZE] == 84]
    assert line.y == tuple(trial.load.value for trial in trials)
    assert {curve.label: len(curve.x) for curve in dots} == {
        name: sum(trial.outcome == name for trial in trials) for name in ("passed", "failed", "invalid")
    }
    for trial in trials:
        lost = trial.result.worst_loss_ratio
        assert trial.outcome == ("invalid" if trial.result.causes else "failed" if lost else "passed")


def test_delays_are_drawn_as_far_as_they_are_known(measured: dict[str, Measured]) -> None:
    chart = chart_of(measured["latency"], "delays-84")
    assert [mark.label for mark in chart.marks] == ["TL", "WCL"]
    first = next(
        event
        for event in measured["latency"].events
        if isinstance(event, ResultEvent) and event.result.verdict is Verdict.VALID
    )
    assert first.result.forward is not None
    assert first.result.forward.delay_us is not None
    delays = first.result.forward.delay_us.model_dump()
    drawn = set(zip(chart.curves[0].x, chart.curves[0].y, strict=True))
    quantiles = {"min": 0.0, "p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
    assert drawn > {(delays[name] / 1000, share) for name, share in quantiles.items()}
    assert chart.curves[0].y == tuple(sorted(chart.curves[0].y))


def test_a_histogram_has_every_frame_once(measured: dict[str, Measured]) -> None:
    chart = chart_of(measured["pdv"], "histogram-84")
    assert [curve.label for curve in chart.curves] == ["forward", "reverse"]
    for curve in chart.curves:
        assert sum(curve.y) == pytest.approx(100)
    points = measured["pdv"].summary.points  # type: ignore[union-attr]
    middle = sum(
        share
        for end, share in zip(chart.curves[0].x, chart.curves[0].y, strict=True)
        if end <= points[0].forward["median"].median
    )  # type: ignore[attr-defined]
    assert middle == pytest.approx(50, abs=5)


def test_a_distribution_that_is_not_known_is_not_made_up() -> None:
    delays = Delays(min=1, p50=2, p99=3, p999=4, max=5)
    result = TrialResult(trial=0, verdict=Verdict.VALID, forward=counts(delay_us=delays))
    done = [trials.FinishedTrial(1, Case({FRAME_SIZE: 84}), 1, 1, Load.fps(1000), result, trials.PASSED)]
    distribution, histogram = trials.delay_charts(done, ())
    assert distribution.curves[0].x == (0.001, 0.002, 0.003, 0.004, 0.005)
    assert "the curve is unknown" in distribution.caption
    assert not histogram.has_points


MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.mark.parametrize("form", MAGIC)
def test_a_plot_is_a_file_of_its_format_and_the_same_each_time(
    form: drawing.Format, measured: dict[str, Measured]
) -> None:
    chart = chart_of(measured["pdv"])
    drawn = drawing.write(chart, form)
    assert drawn.startswith(MAGIC[form])
    assert drawn == drawing.write(chart, form)


def test_what_is_drawn_is_where_the_numbers_are(measured: dict[str, Measured]) -> None:
    for chart in (
        chart_of(measured["frame-loss"]),
        chart_of(measured["latency"]),
        chart_of(measured["throughput"], "path-84"),
    ):
        [axes] = drawing.draw(chart).axes
        drawn = {line.get_label(): line for line in axes.get_lines()} | {
            bars.get_label(): bars.lines[0] for bars in axes.containers
        }
        low, high = axes.get_ylim()
        for curve in chart.curves:
            if curve.x:
                assert tuple(drawn[curve.label].get_xdata()) == curve.x
                assert tuple(drawn[curve.label].get_ydata()) == curve.y
            assert all(low <= y <= high for y in curve.y)


EXTREME = [
    pytest.param(
        Chart("", "one point", "x", "y", (Curve("a", (84.0,), (1.0,), ((1.0, 1.0),)),), x_scale="octaves"),
        id="one point",
    ),
    pytest.param(Chart("", "nothing", "x", "y", (Curve("a", (1.0, 2.0), (0.0, 0.0)),), x_scale="counts"), id="zeros"),
    pytest.param(
        Chart("", "below zero", "x", "y", (Curve("a", (1.0, 2.0), (-1e-9, 1e9)),), x_scale="counts"), id="below zero"
    ),
    pytest.param(
        Chart("", "decades", "x", "y", (Curve("a", (1e-6, 1e6), (1e-6, 1e9)),), x_scale="log", y_scale="log"),
        id="decades",
    ),
    pytest.param(
        Chart(
            "",
            "all sizes",
            "x",
            "y",
            tuple(Curve(f"{size} bytes", (84.0, 9216.0), (1.0, size)) for size in range(13)),
            x_scale="octaves",
        ),
        id="13 sizes",
    ),
    pytest.param(
        Chart(
            "",
            "quantiles",
            "x",
            "y",
            (Curve("a", (1.0, 2.0), (0.0, 1.0), kind="bundle"),),
            y_scale="nines",
            marks=(Mark("TL", 0.5),),
        ),
        id="nines",
    ),
]


@pytest.mark.parametrize("chart", EXTREME)
@pytest.mark.filterwarnings("error")
def test_charts_that_could_go_wrong_are_drawn(chart: Chart) -> None:
    figure = drawing.draw(chart)
    figure.draw_without_rendering()
    [axes] = figure.axes
    assert all(math.isfinite(end) for end in (*axes.get_xlim(), *axes.get_ylim()))
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert box.y1 < axes.get_tightbbox().y0
    assert drawing.embedded(chart, "p").startswith("<svg")


def test_delays_at_several_loads_are_shown_by_load() -> None:
    def at(rate_fps: int, middle_us: float) -> trials.FinishedTrial:
        delays = Delays(min=1, p50=middle_us, p99=900, p999=950, max=999, buckets=((middle_us, 60), (999.0, 40)))
        result = TrialResult(
            trial=0, verdict=Verdict.VALID, forward=counts(delay_us=delays), reverse=counts(delay_us=delays)
        )
        return trials.FinishedTrial(1, Case({FRAME_SIZE: 84}), 1, 1, Load.fps(rate_fps), result, trials.PASSED)

    several = trials.delay_charts([at(9000, 500), at(100, 10), at(9000, 500)], ())
    for chart in several:
        assert list(dict.fromkeys(curve.label for curve in chart.curves)) == ["100 frames/s", "9,000 frames/s"]
    assert all(sum(curve.y) == pytest.approx(100) for curve in several[1].curves)
    _, histogram = trials.delay_charts([at(100, 10)], ())
    assert [curve.label for curve in histogram.curves] == ["forward", "reverse"]
    many = trials.delay_charts([at(rate, 10) for rate in range(100, 2000, 100)], ())
    assert [curve.label for curve in many[1].curves] == ["forward", "reverse"], "the loads of a search"
