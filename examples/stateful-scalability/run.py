# SPDX-License-Identifier: Apache-2.0
"""How a stateful gateway scales with the number of connections and with the DUT's cores (RFC 9693 section 5).

Runs the plan ``connections.yaml`` once for each number of cores, and writes a table and a plot of each quantity
over the connections. Root only; ``run.py --help``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tabulate import tabulate

import dutperf
from dutperf.report import drawing
from dutperf.results.charts import Chart, Curve

PLAN = Path(__file__).with_name("connections.yaml")
FIGURES = {
    "establishment-rate": ("establishment_cps", "connection establishment rate, connections/s"),
    "throughput": ("throughput_fps", "throughput, frames/s per direction"),
    "teardown-rate": ("teardown_cps", "connection tear-down rate, connections/s"),
}
"""Of each procedure: the member of its points, and what it is."""

Medians = dict[tuple[int, int], float]
"""By cores and connections."""


def main() -> int:
    """Measure, and write ``scalability.md`` and the plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="1", help="numbers of cores of the DUT, such as 1,2,4 (default: 1)")
    parser.add_argument("--plan", type=Path, default=PLAN, help="default: connections.yaml beside this file")
    parser.add_argument("--out", type=Path, default=Path("results/stateful-scalability"))
    chosen = parser.parse_args()
    runs = {int(cores): chosen.out / f"cores-{cores}" for cores in chosen.cores.split(",")}
    command = str(Path(sys.executable).with_name("dutperf"))
    for cores, out in runs.items():
        asked = [command, "run", str(chosen.plan), "--lab-option", f"cores={cores}", "--out", str(out)]
        status = subprocess.run(asked, check=False).returncode
        if status not in (0, 1):  # 1: the DUT yields no figure for something, and the table says so
            return status
    found = {name: medians(name, runs) for name in FIGURES}
    (chosen.out / "scalability.md").write_text(table(found), encoding="utf-8")
    for name, values in found.items():
        if values:
            (chosen.out / f"{name}.svg").write_bytes(drawing.write(chart(name, values), "svg"))
    print(table(found))
    return 0


def medians(procedure: str, runs: Mapping[int, Path]) -> Medians:
    """The medians of a procedure over the runs; those without a figure are missing."""
    member, _ = FIGURES[procedure]
    found: Medians = {}
    for cores, directory in runs.items():
        for one in dutperf.open_result(directory):
            if one.summary is not None and one.summary.procedure == procedure:
                connections = int(one.summary.conditions["connections"])
                median = getattr(one.summary.points[0], member).median
                found |= {} if median is None else {(cores, connections): median}
    return found


def table(found: Mapping[str, Medians]) -> str:
    """A row for each number of cores and connections."""
    keys = sorted({key for values in found.values() for key in values})
    rows = [
        (cores, f"{connections:,}", *(_cell(values.get((cores, connections))) for values in found.values()))
        for cores, connections in keys
    ]
    heads = ("cores of the DUT", "connections", *(FIGURES[name][1] for name in found))
    align = ("right",) * len(heads)
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True, colalign=align)) + "\n"


def _cell(median: float | None) -> str:
    return "-" if median is None else f"{median:,.0f}"


def chart(procedure: str, values: Medians) -> Chart:
    """The quantity over the connections, a curve for each number of cores."""
    label = FIGURES[procedure][1]
    return Chart(
        name=procedure,
        title=f"{label.partition(',')[0].capitalize()} over the number of connections",
        x_label="connections",
        y_label=label,
        curves=tuple(_curve(cores, values) for cores in sorted({cores for cores, _ in values})),
        x_scale="log",
        y_range=(0, None),
    )


def _curve(cores: int, values: Medians) -> Curve:
    points = sorted((count, median) for (of, count), median in values.items() if of == cores)
    label = f"{cores} core{'' if cores == 1 else 's'} of the DUT"
    return Curve(label, tuple(float(x) for x, _ in points), tuple(y for _, y in points))


if __name__ == "__main__":
    raise SystemExit(main())
