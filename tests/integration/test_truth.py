# SPDX-License-Identifier: Apache-2.0
"""Known truth at full length, minutes each: `make truth`. The short forms are in test_commands.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dutperf
from dutperf.lab.refdut import NatProperties, Properties, RefDut
from dutperf.model import FieldMode
from plans import journal_lines
from printed import printed

from .measuring import bench
from .test_commands import dutperf as command
from .test_reference_dut import assert_agree, undisturbed

pytestmark = [pytest.mark.root, pytest.mark.truth]
"""Delays of 1, 10 and 100 ms, and all that is counted to the frame, are in test_reference_dut.py:
they take seconds."""

ROUTER = ["--lab", "kernel-ipv4", "--directions", "forward", "--duration", "5", "--drain", "0.5"]


def point(out: Path, *arguments: str) -> dict[str, Any]:
    """The only point of a throughput run on the kernel router."""
    done = command("throughput", *ROUTER, *arguments, "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = printed(done)["points"][0]
    return found


def test_a_limit_and_its_bucket_three_times_in_a_row(tmp_path: Path) -> None:
    """60,000 frames/s and a bucket of 1,000: 60,200 in 5 s trials."""
    limit = [
        "--lab-option",
        "limit_fps=60000",
        "--lab-option",
        "burst=1000",
        "--resolution",
        "0.2%",
        "--repetitions",
        "1",
    ]
    values = [point(tmp_path / str(run), *limit)["throughput_fps"]["median"] for run in range(3)]
    assert values == pytest.approx([60_200] * 3, rel=0.01)


@pytest.mark.parametrize(
    ("bucket", "directions", "frames"), [(1_000, "forward", 2_000), (1_000, "both", 1_000), (64, "forward", 128)]
)
def test_the_longest_burst_of_a_known_bucket(tmp_path: Path, bucket: int, directions: str, frames: int) -> None:
    """Filled at 20,000/s, emptied at 40,000/s by all directions together: known within the
    resolution and what frames that leave late can make of it."""
    share = 2 if directions == "both" else 1
    rates = [
        "--rate",
        str(20_000 // share),
        "--max-rate",
        str(40_000 // share),
        "--burst-resolution",
        "0.01",
        "--repetitions",
        "5",
        "--drain",
        "0.5",
    ]
    router = [
        "--lab",
        "kernel-ipv4",
        "--lab-option",
        "limit_fps=20000",
        "--lab-option",
        f"burst={bucket}",
        "--directions",
        directions,
    ]
    done = command("back-to-back", *router, *rates, "--json", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    found = printed(done)["points"][0]
    assert found["limited_by"] == "dut"
    assert found["average_frames"] == pytest.approx(frames, abs=2 + 0.01 * frames + 2 * found["timing_frames"])


def test_random_loss_hides_the_routers_limit_without_tolerance_only(tmp_path: Path) -> None:
    """One frame in 10,000 is lost. A tolerance of 0.0005 finds what the router can do without that
    loss, none finds almost nothing."""
    loss = ["--lab-option", "loss=0.0001", "--repetitions", "1", "--resolution", "5%"]
    limit = point(tmp_path / "no loss", "--repetitions", "1", "--resolution", "5%")["throughput_fps"]["median"]
    tolerant = point(tmp_path / "tolerant", *loss, "--loss-tolerance", "0.0005")["throughput_fps"]["median"]
    strict = point(tmp_path / "strict", *loss)["throughput_fps"]["median"]
    assert tolerant > 0.7 * limit  # a disturbance of this machine can only lower what is found without any loss
    assert strict is None or strict < 0.05 * tolerant


CAPACITY_FPS, QUEUE, DURATION_S = 20_000, 1_000, 0.25
"""A trial so short often has no standstill of this machine in it: only then a loss of a few frames
says something. The queue fills by a fifth of the capacity from the beginning on, so that the DUT's
own standstills cost it nothing: it has frames to serve meanwhile, and room for those that come."""
TRUE_FPS = (CAPACITY_FPS + (QUEUE + 1) / DURATION_S) / 2
"""In the time of a trial the DUT takes its capacity, what fits into its queue, and the frame in
service: each direction half of that."""
RESOLUTION = 0.0025
KNOWN = [
    ("refdut-ipv4", "memif", "fixed"),
    ("refdut-siit", "memif", "random"),
    ("refdut-ipv4", "veth", "random"),
    ("refdut-siit", "veth", "fixed"),
]


@pytest.mark.parametrize(("lab", "link", "ports"), KNOWN)
def test_twenty_of_twenty_repetitions_read_the_capacity(tmp_path: Path, lab: str, link: str, ports: str) -> None:
    """Within 0.5 %. Each searches 20 % of the range around the truth, from bounds of its own: so
    each has another grid.

    What says of itself that the tester was the limit is no reading, and may come at most five
    times, on a busy machine.
    """
    places = Random(f"{lab} {link} {ports}")
    dut = {"capacity_fps": CAPACITY_FPS, "queue": QUEUE, "link": link}
    steady = {
        "ports": ports,
        "duration_s": DURATION_S,
        "drain_s": 0.2,
        "repetitions": 1,
        "resolution": f"{TRUE_FPS * RESOLUTION:.0f}",
    }
    points = []
    with dutperf.bench(lab=lab, lab_options=dut) as ready:
        for run in range(25):
            lowest = TRUE_FPS * places.uniform(0.85, 0.95)
            search = {**steady, "min_rate": f"{lowest:.0f}", "max_rate": f"{lowest + 0.2 * TRUE_FPS:.0f}"}
            result = ready.measure(dutperf.Throughput(**search), tmp_path / str(run))
            points.append(result["throughput"].summary.points[0])
            read = [point for point in points if point.limited_by == "dut"]
            if len(read) == 20:
                break
    values = [value for point in read for value in point.throughput_fps.values]
    print(TRUE_FPS, len(points), values)
    assert values == pytest.approx([TRUE_FPS] * 20, rel=0.005)


SETTINGS, MOST_TRIED = 20, 25
CONNECTIONS = 5_000
"""Of an establishment trial: at these rates a quarter of a second."""


def readings(
    place: Path, seed: str, link: str, of_setting: Callable[[Random], tuple[NatProperties, str, dict[str, Any]]]
) -> list[tuple[NatProperties, Any, Path]]:
    """Points of a stateful procedure, each with the properties that the DUT had and the directory of its results.
    Those that the tester limited are no readings."""
    settings, found = Random(seed), []
    with dutperf.bench(lab="refdut-nat44", lab_options={"link": link}) as ready:
        dut = RefDut(Path(str(ready.setup.dut.control)))
        for run in range(MOST_TRIED):
            properties, procedure, conditions = of_setting(settings)
            dut.configure(properties)
            out = place / str(run)
            results = ready.measure(dutperf.conditions_of(procedure)(repetitions=1, drain_s=0.2, **conditions), out)
            point = results[procedure].summary.points[0]
            print(run, properties.model_dump(exclude_defaults=True), point.message)
            if point.limited_by == "dut":
                found.append((properties, point, out))
            if len(found) == SETTINGS:
                break
    return found


def true_rate_cps(properties: NatProperties) -> float:
    """At a rate R the last of n connections finds n - C (n - 1) / R of them unestablished: the one in service
    and the queue."""
    return properties.establishment_cps * (CONNECTIONS - 1) / (CONNECTIONS - properties.establishment_queue - 1)


@pytest.mark.parametrize("link", ["memif", "veth"])
def test_twenty_of_twenty_establishment_rates_are_read_as_set(tmp_path: Path, link: str) -> None:
    """Within 1 %. The queue holds what comes in bunches after the stalls of this machine, and is part of the
    truth."""

    def setting(settings: Random) -> tuple[NatProperties, str, dict[str, Any]]:
        properties = NatProperties(
            establishment_cps=settings.randrange(12_000, 25_000), establishment_queue=settings.randrange(400, 800)
        )
        true, place = true_rate_cps(properties), settings.uniform(0.85, 0.95)
        search = {"min_rate": f"{true * place:.0f}", "max_rate": f"{true * (place + 0.2):.0f}", "resolution": "0.5%"}
        return properties, "establishment-rate", {"connections": CONNECTIONS, **search}

    read = [
        (point.establishment_cps.median / true_rate_cps(properties))
        for properties, point, _ in readings(tmp_path, f"rates {link}", link, setting)
    ]
    print([round(ratio, 4) for ratio in read])
    assert read == pytest.approx([1.0] * SETTINGS, rel=0.01)


def test_twenty_of_twenty_tables_are_read_as_set(tmp_path: Path) -> None:
    """The capacity exactly. The policy by a trial with one connection more: a DUT that refuses it opens all others;
    one that evicts has opened them all, and lacks as many as it evicts at once."""

    def setting(settings: Random) -> tuple[NatProperties, str, dict[str, Any]]:
        policy: dict[str, Any] = settings.choice(
            [{}, {"when_full": "evict"}, {"when_full": "evict", "evict_count": settings.randrange(2, 60)}]
        )
        properties = NatProperties(connections=settings.randrange(100, 400), **policy)
        search = {"first_connections": 80, "most_connections": 2_000, "max_rate": "5k", "resolution": "50%"}
        return properties, "table-capacity", search

    read = readings(tmp_path, "tables", "veth", setting)
    assert len(read) == SETTINGS
    assert [point.capacity.median for _, point, _ in read] == [properties.connections for properties, _, _ in read]
    assert [evicted_at_once(out, properties.connections + 1) for properties, _, out in read] == [
        properties.evict_count if properties.when_full == "evict" else None for properties, _, _ in read
    ]


def evicted_at_once(out: Path, connections: int) -> int | None:
    """Connections that lost their reply after so many had been opened; None: never were so many opened."""
    results = [event["result"] for event in journal_lines(out) if event["event"] == "result"]
    lost = {
        result["connections"]["lost"]
        for result in results
        if result["verdict"] == "valid" and (result.get("connections") or {}).get("learned") == connections
    }
    assert len(lost) <= 1, lost
    return lost.pop() if lost else None


LOSS, LOSS_FPS, LOSS_FRAMES = 0.01, 5_000, 10_000
OF_99_PERCENT = 2.576
"""Standard deviations of a normal distribution to either side, between which 99 % of it lies."""


@pytest.mark.parametrize(("lab", "link", "ports"), KNOWN)
def test_loss_ratios_lie_in_the_99_percent_interval_of_the_truth(lab: str, link: str, ports: str) -> None:
    """Of 40 ratios, each of which may lie outside with a chance of 1 %, at most three do: more
    would come once in 1,000 times."""
    off = OF_99_PERCENT * (LOSS * (1 - LOSS) / LOSS_FRAMES) ** 0.5
    seeds = range(20 * KNOWN.index((lab, link, ports)), 20 * (KNOWN.index((lab, link, ports)) + 1))
    with bench(lab, {"link": link}) as ready:
        results = [
            undisturbed(
                ready,
                Properties(loss=LOSS, seed=seed),
                LOSS_FPS,
                duration_s=LOSS_FRAMES / LOSS_FPS,
                ports=FieldMode(ports),
            )
            for seed in seeds
        ]
    ratios = [counts.loss_ratio for result, _ in results for counts in result.directions().values()]
    print([round(ratio, 5) for ratio in ratios])
    assert len(ratios) == 40
    assert sum(abs(ratio - LOSS) > off for ratio in ratios) <= 3
    for result, truth in results:
        assert_agree(result, truth)
