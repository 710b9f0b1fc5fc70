# SPDX-License-Identifier: Apache-2.0
"""RFC 2544's figures of a router beside the experience of its users: throughput in four ways, and a
download over HTTP through the same DUT.

After G. Lencse, Á. Kovács, K. Shima, "Gaming with the Throughput and the Latency Benchmarking
Measurement Procedures of RFC 2544", IJATES2 9(2), 2020, scaled down to minutes. The DUT is the
reference DUT between two network namespaces. Root only; ``make example``, or ``run.py --help``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tabulate import tabulate

from dutperf import lab, procedures, traffic
from dutperf.cli.output import live
from dutperf.dut.reference import ReferenceDevice
from dutperf.engine.client import EngineTester
from dutperf.engine.factory import engine_on
from dutperf.lab import hosts, netns
from dutperf.lab.hosts import Hosts
from dutperf.lab.refdut import Properties, RefDut
from dutperf.procedures import throughput
from dutperf.run import campaign
from dutperf.setup import configuration
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import Setup
from dutperf.watch.dut_core import yield_to_the_dut

LAB = "refdut-ipv4"
FRAME_SIZE = 1518
"""Bytes incl. FCS: the frames of a download."""
OFFERED_FPS = 25_000
"""In each direction: stands for the media's maximum rate; about 300 Mbit/s."""
CAPACITY_FPS = 55_000
"""Of the DUT, both directions together: more than the offered load ever is."""
DURATION_S = 0.25
"""Of a trial: a short one often falls between two disturbances of a shared machine."""
FRAME_TIMEOUT_MS = 80
LEAST_FPS = 5_000
"""The search goes no lower: a router that does not pass a fifth of the offered load is bad enough."""
LOSS_TOLERANCE = 0.001
"""Ten times the loss, as a margin for chance: a trial has far fewer frames than the paper's."""
RECEIVE_BUFFER = 2_097_152
"""Bytes for each connection of the downloading host, half of them window: a third of what Linux
allows, as the rate is about a third of the paper's."""
PATIENCE_S = 120
"""For a download."""


@dataclass(frozen=True)
class Scenario:
    """A router with or without an impairment."""

    name: str
    properties: Mapping[str, Any]
    duration_factor: int = 1
    """Its trials last so many times as long: rare events need more frames."""


CLEAN = Scenario("no impairment", {})
LATE = Scenario("every frame 100 ms late", {"delay_ms": 100})
SCENARIOS = (
    CLEAN,
    Scenario("every frame 10 ms late", {"delay_ms": 10}),
    LATE,
    Scenario("0.01 % of the frames lost", {"loss": 0.0001}, duration_factor=4),
    Scenario(
        "every frame 10 ms late, every 10th 110 ms", {"delay_ms": 10, "extra_delay_every": 10, "extra_delay_ms": 100}
    ),
)
WAYS: dict[str, dict[str, Any]] = {
    "RFC 2544": {},
    "frame timeout": {"frame_timeout_ms": FRAME_TIMEOUT_MS},
    "loss tolerance": {"loss_tolerance": LOSS_TOLERANCE},
    "both": {"frame_timeout_ms": FRAME_TIMEOUT_MS, "loss_tolerance": LOSS_TOLERANCE},
}


@dataclass(frozen=True)
class Size:
    """The extent of a run."""

    scenarios: tuple[Scenario, ...]
    download_bytes: int


WHOLE = Size(SCENARIOS, download_bytes=80 * 1024 * 1024)
QUICK = Size((CLEAN, LATE), download_bytes=20 * 1024 * 1024)


@dataclass(frozen=True)
class Download:
    """Time and goodput of a download, as the user sees them."""

    time_s: float
    goodput_mbps: float


@dataclass(frozen=True)
class Throughput:
    """The result of a search, in frames/s per direction; None: nothing passed."""

    median_fps: float | None
    limited_by_tester: bool
    """Whether this machine was too busy to tell if the DUT can do more."""


@dataclass(frozen=True)
class Row:
    """A scenario's figures; ``throughput`` has a key for each of ``WAYS``."""

    scenario: str
    throughput: dict[str, Throughput]
    download: Download


@dataclass(frozen=True)
class Bench:
    """The DUT and the tester connected to it."""

    setup: Setup
    tester: EngineTester
    dut: RefDut

    def throughput(self, scenario: Scenario, way: str, out: Path) -> Throughput:
        """Measure the throughput in that way; journal and report stay in ``out``."""
        self.dut.configure(properties_of(scenario))
        rates = {
            "min_rate": Rate.parse(f"{LEAST_FPS}"),
            "max_rate": Rate.parse(f"{OFFERED_FPS}"),
            "initial_rate": Rate.parse(f"{OFFERED_FPS}"),
        }
        times = {
            "duration_s": DURATION_S * scenario.duration_factor,
            "drain_s": 0.5,
            "repetitions": 1,
            "resolution": Rate.parse("5%"),
        }
        conditions = throughput.Throughput(frame_sizes=(FRAME_SIZE,), **times, **rates, **WAYS[way])

        properties = properties_of(scenario).model_dump(exclude_defaults=True)
        [described] = self.setup.duts()
        plan = campaign.Plan(
            traffic=traffic.of(self.setup, conditions),
            conditions=conditions,
            dut=ReferenceDevice(described.model_copy(update={"properties": properties})),
            config=configuration.as_json(self.setup),
            invocation=sys.argv,
        )
        with live.observer() as observer:
            summary = campaign.measure(procedures.find("throughput"), self.tester, plan, out, observer)
        point = summary.points[0]
        return Throughput(point.throughput_fps.median, point.limited_by_tester)


def properties_of(scenario: Scenario) -> Properties:
    """The DUT's properties in a scenario."""
    return Properties(capacity_fps=CAPACITY_FPS, **scenario.properties)


def measure(mapping: Mapping[str, Any], dut: RefDut, size: Size, out: Path) -> dict[str, dict[str, Throughput]]:
    """Measure the throughput of each scenario in each way."""
    setup = configuration.parse(dict(mapping), origin=f"lab {LAB}")
    with engine_on(setup, FRAME_SIZE) as tester:
        bench = Bench(setup, tester, dut)
        results: dict[str, dict[str, Throughput]] = {}
        for scenario in size.scenarios:
            for way in WAYS:
                say(f"{scenario.name}: {way}")
                directory = out / f"{scenario.name} - {way}".replace(" ", "_").replace("%", "percent")
                results.setdefault(scenario.name, {})[way] = bench.throughput(scenario, way, directory)
        return results


def download(mapping: Mapping[str, Any], dut: RefDut, size: Size) -> dict[str, Download]:
    """Download a file in each scenario: a web server on the right, curl on the left."""
    users = hosts.replace_tester(mapping)
    users.left.sysctl({"ipv4/tcp_rmem": f"4096 131072 {RECEIVE_BUFFER}"})
    for host in (users.left, users.right):
        host.sysctl({"ipv4/tcp_no_metrics_save": 1})  # no download uses metrics of the one before
    dut.configure(properties_of(CLEAN))
    with TemporaryDirectory() as directory:
        Path(directory, "file").write_bytes(os.urandom(size.download_bytes))
        with serving(users, directory) as url:
            return {scenario.name: _download(users, url, scenario, dut) for scenario in size.scenarios}


@contextmanager
def serving(users: Hosts, directory: str) -> Iterator[str]:
    """Run a web server with the files of ``directory``; yield the URL of ``file`` once it answers."""
    command = users.right.command([sys.executable, "-m", "http.server", "80", "--directory", directory])
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        url = f"http://{users.right_address}/file"
        netns.run(
            users.left.command(
                [
                    "curl",
                    "--silent",
                    "--fail",
                    "--head",
                    "--retry",
                    "10",
                    "--retry-connrefused",
                    "--retry-delay",
                    "1",
                    url,
                ]
            )
        )
        yield url
    finally:
        server.kill()
        server.wait()


def _download(users: Hosts, url: str, scenario: Scenario, dut: RefDut) -> Download:
    say(f"{scenario.name}: download")
    dut.configure(properties_of(scenario))
    write_out = '{"time_s": %{time_total}, "bytes_per_s": %{speed_download}}'
    command = users.left.command(
        [
            "curl",
            "--silent",
            "--fail",
            "--max-time",
            str(PATIENCE_S),
            "--output",
            "/dev/null",
            "--write-out",
            write_out,
            url,
        ]
    )
    figures = json.loads(netns.run(command))
    return Download(figures["time_s"], figures["bytes_per_s"] * 8 / 1e6)


def table(rows: list[Row]) -> str:
    """The table in Markdown."""
    heads = ["the router", *(f"throughput: {name}" for name in WAYS), "download, s", "goodput, Mbit/s"]
    cells = [
        [
            row.scenario,
            *map(_share, row.throughput.values()),
            f"{row.download.time_s:.1f}",
            f"{row.download.goodput_mbps:.1f}",
        ]
        for row in rows
    ]
    return tabulate(
        cells, heads, tablefmt="github", colalign=("left", *("right" for _ in heads[1:])), disable_numparse=True
    )


def _share(throughput: Throughput) -> str:
    if throughput.median_fps is None:
        return "tester disturbed" if throughput.limited_by_tester else f"below {LEAST_FPS / OFFERED_FPS:.0%}"
    return f"{throughput.median_fps / OFFERED_FPS:.0%}" + (" or more" if throughput.limited_by_tester else "")


def say(text: str) -> None:
    """Report progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def compare(size: Size, out: Path) -> list[Row]:
    """Measure and download through one DUT; measure first, because the hosts then replace the tester."""
    yield_to_the_dut()
    with lab.bring_up(LAB, {}) as mapping:
        dut = RefDut(Path(mapping["dut"]["control"]))
        throughputs = measure(mapping, dut, size, out)
        downloads = download(mapping, dut, size)
    return [Row(scenario.name, throughputs[scenario.name], downloads[scenario.name]) for scenario in size.scenarios]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/gaming-rfc2544"),
        help="new directory for the table and every journal",
    )
    parser.add_argument("--quick", action="store_true", help="two scenarios, a small file: half a minute")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON instead of the table")
    given = parser.parse_args()
    rows = compare(QUICK if given.quick else WHOLE, given.out)
    (given.out / "table.md").write_text(f"{table(rows)}\n", encoding="utf-8")
    print(json.dumps([asdict(row) for row in rows]) if given.json else table(rows))


if __name__ == "__main__":
    main()
