# SPDX-License-Identifier: Apache-2.0
"""DNS64 servers compared: queries/s that each answers in time, over the shares of cached names and the DUT's cores.

First the self-test of the tester alone, which RFC 8219 section 9.2.1 requires; then each server on each number of
cores. Writes a page (``dns64.md``) with a table and plots. Root only; ``run.py --help``.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

import dutperf
from dutperf.model import CACHED_NAMES
from dutperf.report import drawing
from dutperf.results import charts
from dutperf.results.charts import Chart

SERVERS = {"unbound": 4_000, "bind9": 2_000, "knot": 4_000, "pdns": 4_000}
"""Where the first search of each begins, in queries/s."""
CACHED = (0, 60, 100)
QUICK: dict[str, Any] = {"drain_s": 1.0, "settle_s": 1.0, "cached_names": 500, "preliminary_rate": "1k"}
SELF_TEST = {"with_aaaa": 100, "timeout_s": 0.25, "initial_rate": "50k", "max_rate": "200k"}
HOW_TO_READ = (
    "In brackets where the DUT was not the limit, so that it may answer more. ms: the median time to an answer at the"
    " highest rate that passed; asked: queries of the DUT for each of the client; both are those of the first share. A"
    " dash: no valid trial passed."
)


@dataclass(frozen=True)
class Asked:
    """What is the same for all servers."""

    duration_s: float
    repetitions: int
    resolution: str
    cached: tuple[int, ...]
    out: Path

    def conditions(self, **more: Any) -> Any:
        """Those of a measurement."""
        usual = {"duration_s": self.duration_s, "repetitions": self.repetitions, "resolution": self.resolution}
        return dutperf.conditions_of("dns64")(**QUICK | usual | more)


Place = tuple[str, int]
"""A server's name and the number of its cores."""
Found = Mapping[Place, Any]
"""The summary of each."""


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default=",".join(SERVERS), metavar="NAME,…", help="(default: all)")
    parser.add_argument("--cores", default="1,2", help="numbers of cores of the DUT, such as 1,2,4 (default: 1,2)")
    parser.add_argument("--cached", default=",".join(map(str, CACHED)), metavar="PERCENT,…", help="of the queries")
    parser.add_argument("--duration", type=float, default=1.0, metavar="S", help="of each trial (default: 1)")
    parser.add_argument("--repetitions", type=int, default=1, help="of each search (default: 1)")
    parser.add_argument("--resolution", default="5%", help="of each search (default: 5%%)")
    parser.add_argument("--out", type=Path, default=Path("results/dns64"))
    chosen = parser.parse_args()
    names = chosen.servers.split(",")
    if unknown := [name for name in names if name not in SERVERS]:
        parser.error(f"no server is called {unknown[0]}; there are {', '.join(SERVERS)}")
    cached = tuple(map(int, chosen.cached.split(",")))
    asked = Asked(chosen.duration, chosen.repetitions, chosen.resolution, cached, chosen.out)
    cores = [int(number) for number in chosen.cores.split(",")]
    left_out = [too_many(number) for number in cores if number > most_cores()]
    return compare(asked, [(name, number) for number in cores if number <= most_cores() for name in names], left_out)


def compare(asked: Asked, places: Sequence[Place], left_out: list[str]) -> int:
    """Measure each, and write the page. What cannot be measured is a sentence of it, as what is ``left_out``."""
    began_s = time.monotonic()
    found: dict[Place, Any] = {}
    try:
        alone = measured(asked.conditions(**SELF_TEST), asked.out / "self-test", "loopback")
    except dutperf.DutperfError as error:
        print(f"the tester alone: {error}", file=sys.stderr)
        return 2
    for name, cores in places:
        try:
            found[name, cores] = of_server(asked, name, cores)
        except dutperf.DutperfError as error:
            left_out.append(f"Not measured: {name}, {in_words(cores)}: {error}")
            print(left_out[-1], file=sys.stderr)
    for chart in plots(found):
        (asked.out / f"{chart.name}.svg").write_bytes(drawing.write(chart, "svg"))
    text = page(asked, found, [*left_out, *proved(alone)], time.monotonic() - began_s)
    (asked.out / "dns64.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if found else 2


def of_server(asked: Asked, name: str, cores: int) -> Any:
    """The summary of one server."""
    wanted = asked.conditions(
        cached=asked.cached, initial_rate=SERVERS[name], self_test_from=str(asked.out / "self-test")
    )
    return measured(wanted, asked.out / f"{name}-{cores}", f"{name}-dns64", cores=cores)


def measured(conditions: Any, out: Path, lab: str, **options: int) -> Any:
    """The summary of one measurement, of which a report is written."""
    print(f"{lab} {options or ''}: into {out}", file=sys.stderr, flush=True)
    results = dutperf.measure(conditions, out, lab=lab, lab_options=options)
    results.write_report()
    return results["dns64"].summary


def most_cores() -> int:
    """That a DUT may have here: the tester needs one."""
    return max(1, len(os.sched_getaffinity(0)) - 1)


def too_many(cores: int) -> str:
    """Why so many are not measured."""
    return (
        f"Not measured: {in_words(cores)} of the DUT. This machine has {len(os.sched_getaffinity(0))}, and the tester"
        " needs one for itself: a server that shares it would be measured with less than its cores, and most trials"
        " would be invalid."
    )


def proved(alone: Any) -> Sequence[str]:
    """What the tester alone reached, and what that proves."""
    point = alone.points[0]
    return [f"{point.dns64_qps.median:,.0f} queries/s{remark}." for remark in point.remarks() if point.has_number]


def page(asked: Asked, found: Found, notes: Sequence[str], took_s: float) -> str:
    """The page, in Markdown."""
    machine = f"{processor()}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}"
    how = f"Trials of {asked.duration_s:g} s, repetitions: {asked.repetitions}, resolution {asked.resolution}"
    images = "\n".join(f"![{chart.title}]({chart.name}.svg)\n" for chart in plots(found))
    return "\n\n".join(
        (
            "# DNS64 servers compared",
            f"{how}. {machine}. Measured in {took_s / 60:.0f} minutes.",
            "Queries/s that are all answered in time, by the share of queries for cached names:",
            table(asked.cached, found).strip(),
            HOW_TO_READ,
            *notes,
            "\n".join(f"* deviates from {one.clause}: {one.text}" for one in deviations(found)),
            images,
        )
    )


def table(cached: Sequence[int], found: Found) -> str:
    """A row for each server and number of cores."""
    heads = ["server", "cores", *(f"{share} %" for share in cached), "ms", "asked"]
    rows = [
        [f"{name}: {dut(one)}", str(cores), *(rate(point) for point in one.points), *details(one.points[0])]
        for (name, cores), one in found.items()
    ]
    align = ("left", *("right",) * (len(heads) - 1))
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True, colalign=align))


def dut(summary: Any) -> str:
    """Its name and version."""
    return " ".join(str(summary.dut[key]) for key in ("name", "version") if key in summary.dut)


def rate(point: Any) -> str:
    """The median, in brackets where something else than the DUT was the limit."""
    median = point.dns64_qps.median
    text = "-" if median is None else f"{median:,.0f}"
    return text if median is None or point.limited_by == "dut" else f"({text})"


def details(point: Any) -> tuple[str, str]:
    """The median time to an answer in ms, and the DUT's own queries for each of the client."""
    if point.answer_us is None or point.upstream is None:
        return "-", "-"
    return f"{point.answer_us.p50 / 1000:.2f}", f"{point.upstream.per_query:.2f}"


def plots(found: Found) -> Sequence[Chart]:
    """The rate over the share of cached names, a curve for each server and number of cores."""
    curves = tuple(
        charts.with_bars(f"{name}, {in_words(cores)}", [(share(point), bars(point)) for point in one.points])
        for (name, cores), one in found.items()
    )
    drawn = Chart(
        name="dns64",
        title="DNS64 performance over the share of cached names",
        x_label="queries for cached names, %",
        y_label="DNS64 performance, queries/s",
        curves=curves,
        caption=charts.bars(),
        y_scale="log",
    )
    return (drawn,) if drawn.has_points else ()


def share(point: Any) -> float:
    """Of queries for cached names, in per cent."""
    return float(point.case.as_json()[CACHED_NAMES.name])


def bars(point: Any) -> charts.Figure:
    """The median, and the ends of its bar."""
    figures = point.dns64_qps
    return figures.median, figures.p1, figures.p99


def deviations(found: Found) -> Sequence[Any]:
    """From the RFC, as the results name them, each once."""
    return list(dict.fromkeys(one for summary in found.values() for one in summary.deviations))


def in_words(cores: int) -> str:
    """Of the DUT."""
    return "1 core" if cores == 1 else f"{cores} cores"


def processor() -> str:
    """Its name, as the kernel tells."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    raise SystemExit(main())
