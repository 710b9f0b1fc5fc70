# SPDX-License-Identifier: Apache-2.0
"""Forwarders compared: throughput, longest burst, loss and latency over the load, under constant and Poisson traffic.

Measures labs one after the other, and writes a page (``forwarders.md``) with a table and plots. Root only;
``run.py --help``.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tabulate import tabulate

import dutperf
from dutperf.report import drawing
from dutperf.results.charts import Chart, line

LOADS = (0, 10, 25, 50, 75, 90, 100, 110, 120)
PATTERNS = ("constant", "poisson")
FRAME_SIZE, LARGER = 64, 20
"""A translator's IPv6 frames are larger by the difference of the headers."""


@dataclass(frozen=True)
class Forwarder:
    """A DUT of a lab."""

    name: str
    lab: str
    highest_fps: int
    """Where the search begins: above what such a DUT forwards on one core."""
    options: Mapping[str, str] = field(default_factory=dict)
    frame_size: int = FRAME_SIZE


FORWARDERS = {
    one.name: one
    for one in (
        Forwarder("bridge", "linux-bridge", 400_000),
        Forwarder("router", "kernel-ipv4", 400_000),
        Forwarder("ovs", "ovs", 200_000),
        Forwarder("ovs-vhost", "ovs", 4_000_000, {"link": "vhost"}),
        Forwarder("testpmd", "testpmd", 12_000_000),
        Forwarder("tayga", "tayga-siit", 200_000, frame_size=FRAME_SIZE + LARGER),
    )
}


@dataclass(frozen=True)
class Measured:
    """The points of one DUT; those of the load by traffic pattern."""

    dut: str
    throughput: Any
    burst: Any
    loads: Mapping[str, Any]


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--duts", default=",".join(FORWARDERS), metavar="NAME,…", help=f"of {', '.join(FORWARDERS)} (default: all)"
    )
    parser.add_argument("--duration", type=float, default=1.0, metavar="S", help="of each trial (default: 1)")
    parser.add_argument("--loads", default=",".join(map(str, LOADS)), metavar="PERCENT,…", help="of the throughput")
    parser.add_argument("--out", type=Path, default=Path("results/forwarders"))
    chosen = parser.parse_args()
    names = chosen.duts.split(",")
    if unknown := [name for name in names if name not in FORWARDERS]:
        parser.error(f"no DUT is called {unknown[0]}; there are {', '.join(FORWARDERS)}")
    began_s = time.monotonic()
    found = {}
    for name in names:
        try:
            found[name] = measured(FORWARDERS[name], chosen.out / name, chosen.duration, chosen.loads)
        except dutperf.DutperfError as error:
            print(f"{name}: {error}", file=sys.stderr)
    if not found:
        return 2
    for chart in charts(found):
        (chosen.out / f"{chart.name}.svg").write_bytes(drawing.write(chart, "svg"))
    text = page(found, chosen.duration, time.monotonic() - began_s)
    (chosen.out / "forwarders.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def measured(forwarder: Forwarder, out: Path, duration_s: float, loads: str) -> Measured:
    """Measure one DUT."""

    def run(procedure: Any, what: str, **conditions: Any) -> Any:
        print(f"{forwarder.name}: {what}", file=sys.stderr, flush=True)
        usual: dict[str, Any] = {"duration_s": duration_s} if procedure != "back-to-back" else {}
        usual |= {"frame_sizes": (forwarder.frame_size,), "repetitions": 1, "drain_s": 0.3}
        wanted = dutperf.conditions_of(procedure)(**usual, **conditions)
        results = dutperf.measure(wanted, out / what, lab=forwarder.lab, lab_options=forwarder.options)
        summary = results[procedure].summary
        assert summary is not None
        return summary

    found = run("throughput", "throughput", max_rate=forwarder.highest_fps, resolution="2%")
    throughput = found.points[0]
    dut = " ".join(str(found.dut[key]) for key in ("name", "version") if key in found.dut)
    if throughput.throughput_fps.median is None:
        return Measured(dut, throughput, None, {})
    given = {"rate": round(throughput.throughput_fps.median)}
    burst = run("back-to-back", "back-to-back", **given, max_rate=forwarder.highest_fps, max_burst_s=duration_s)
    over = {one: run("load-latency", one, **given, loads=loads, pattern=one).points[0] for one in PATTERNS}
    return Measured(dut, throughput, burst.points[0], over)


def page(found: Mapping[str, Measured], duration_s: float, took_s: float) -> str:
    """The page, in Markdown."""
    machine = f"{processor()}, Linux {platform.release()}; one core for the DUT"
    what = (
        f"Frames of {FRAME_SIZE} bytes ({FRAME_SIZE + LARGER} with IPv6), trials of {duration_s:g} s, both directions"
    )
    plots = "\n".join(f"![{chart.title}]({chart.name}.svg)\n" for chart in charts(found))
    return (
        f"# Forwarders compared\n\n{what}. {machine}. Measured in {took_s / 60:.0f} minutes.\n\n{table(found)}\n"
        "Latencies in µs: median and 99th percentile of the slower direction; they include the tester's own sending and"
        " receiving. Loads are shares of each DUT's own throughput. Where the tester or the range is the limit, a DUT"
        f" may forward more. A dash: not measured, or the tester's trials were invalid.\n\n{plots}"
    )


def table(found: Mapping[str, Measured]) -> str:
    """A row for each DUT."""
    heads = ["DUT", "throughput, frames/s", "limited by", "longest burst, frames"]
    heads += [f"{pattern}, {share}" for share in ("lone", "50%", "90%", "loss at 100%") for pattern in PATTERNS]
    rows = [
        [
            f"{name}: {one.dut}",
            _number(one.throughput.throughput_fps.median),
            one.throughput.limited_by or "",
            _number(None if one.burst is None else one.burst.average_frames),
            *(_latency(one, pattern, share) for share in (0, 50, 90) for pattern in PATTERNS),
            *(_loss(one, pattern, 100) for pattern in PATTERNS),
        ]
        for name, one in found.items()
    ]
    align = ("left", *("right",) * (len(heads) - 1))
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True, colalign=align)) + "\n"


def _at(one: Measured, pattern: str, share: float) -> Any:
    loads = one.loads[pattern].loads if pattern in one.loads else ()
    return next((at for at in loads if at.share_percent == share), None)


def _latency(one: Measured, pattern: str, share: float) -> str:
    at = _at(one, pattern, share)
    figures = [None, None] if at is None else [at.worst_us("p50"), at.worst_us("p99")]
    return " / ".join(_number(figure) for figure in figures)


def _loss(one: Measured, pattern: str, share: float) -> str:
    at = _at(one, pattern, share)
    return "-" if at is None or at.worst_loss_ratio is None else f"{100 * at.worst_loss_ratio:.2g}%"


def _number(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:,.0f}"


def charts(found: Mapping[str, Measured]) -> Sequence[Chart]:
    """Loss over the offered load, and latency over the load by traffic pattern."""
    return (
        _chart(found, "loss", "constant", "frames lost, %", lambda at: 100 * at.worst_loss_ratio, scale="linear"),
        *(
            _chart(found, f"latency-{pattern}", pattern, "median latency, µs", lambda at: at.worst_us("p50"))
            for pattern in PATTERNS
        ),
        *(
            _chart(found, f"p99-{pattern}", pattern, "99th percentile of latency, µs", lambda at: at.worst_us("p99"))
            for pattern in PATTERNS
        ),
    )


def _chart(
    found: Mapping[str, Measured],
    name: str,
    pattern: str,
    label: str,
    figure: Callable[[Any], float],
    scale: str = "log",
) -> Chart:
    curves = []
    for dut, one in found.items():
        loads = one.loads[pattern].loads if pattern in one.loads else ()
        points = [(at.share_percent, figure(at)) for at in loads if at.delay_us]
        if points:
            curves.append(line(dut, points))
    return Chart(
        name=name,
        title=f"{label.partition(',')[0].capitalize()} over the load, {pattern} traffic",
        x_label="load, % of the DUT's throughput",
        y_label=label,
        curves=tuple(curves),
        x_range=(0, None),
        **({"y_scale": "log"} if scale == "log" else {"y_range": (0, None)}),
    )


def processor() -> str:
    """Its name, as the kernel tells."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    raise SystemExit(main())
