# SPDX-License-Identifier: Apache-2.0
"""``dutperf plot DIR``: the report's plots as files for a paper or a talk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.api import results
from dutperf.cli import completion
from dutperf.cli.errors import reported
from dutperf.cli.options import Directory, directory_of
from dutperf.report import drawing, export
from dutperf.results.charts import Chart
from dutperf.setup.configuration import ConfigError
from dutperf.spelling import hint

PLOTS = "plots"

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--figure", metavar="NAME", autocompletion=completion.figures, help="Only this plot; repeatable. Default: all."
    ),
]
Form = Annotated[drawing.Format, typer.Option("--format", help="svg and pdf for papers, png for slides.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", parser=directory_of, help="Directory for the files. Default: DIR/plots."),
]
List = Annotated[bool, typer.Option("--list", help="List the plots, draw none.")]


def plot(
    directory: Directory, figure: Names = None, form: Form = "svg", out: Out = None, only_list: List = False
) -> None:
    """Draw the plots of a run or a suite into files: DIR/plots/NAME.FORMAT."""
    with reported():
        charts = {name: chart for one in results.read(directory).measured for name, chart in one.charts().items()}
        if only_list:
            for name, chart in charts.items():
                typer.echo(f"{name}: {chart.title}")
            return
        for name, chart in _chosen(figure, charts).items():
            path = (out or directory / PLOTS) / f"{name}.{form}"
            export.write(path, drawing.write(chart, form))
            typer.echo(str(path))


def _chosen(names: list[str] | None, charts: dict[str, Chart]) -> dict[str, Chart]:
    if not charts:
        raise ConfigError("there is nothing to plot: no trial has a result", "")
    for name in names or ():
        if name not in charts:
            raise ConfigError(f"there is no figure {name}; {hint(name, charts)}", "--figure")
    return {name: charts[name] for name in names or charts}
