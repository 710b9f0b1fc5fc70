# SPDX-License-Identifier: Apache-2.0
"""The tester against the reference DUT: what the one measures is what the other did, to the frame;
its time within what veth and scheduler allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dutperf.lab.refdut import DirectionTruth, Properties, RefDut, Truth
from dutperf.model import DirectionCounts, FieldMode, Stamping, TrialResult, Verdict
from dutperf.setup.conditions import Usual
from kernel_frames import others
from plans import make_trial
from undisturbed import until

from .measuring import Bench, bench
from .test_commands import measured

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

FPS = 2_000
FRAMES = 1_000
"""Of each direction, in half a second."""


def truth_of(ready: Bench) -> RefDut:
    """The reference DUT of a lab."""
    return RefDut(Path(str(ready.setup.dut.control)))


@pytest.mark.long
def test_throughput_is_the_capacity_and_the_queues_share(tmp_path: Path) -> None:
    """In 1 s a queue of 500 frames takes up what exceeds the capacity by 501 frames/s."""
    options = [text for pair in ("capacity_fps=20000", "queue=500") for text in ("--lab-option", pair)]
    search = ["--directions", "forward", "--duration", "1", "--drain", "0.2"]
    range_ = ["--min-rate", "20000", "--max-rate", "21000", "--resolution", "60"]
    truth = pytest.approx(20_501, rel=0.005)
    [point] = measured(tmp_path, lambda fps: fps == truth, "--lab", "refdut-ipv4", *options, *search, *range_)["points"]
    assert point["throughput_fps"]["median"] == truth


@pytest.fixture(scope="module", params=["refdut-ipv4", "refdut-siit", "refdut-siit link=memif"])
def lab(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A router, or a translator, for many trials. One at a time: each takes the DUT's core for
    itself."""
    name, *options = request.param.split()
    with bench(name, dict(option.split("=") for option in options)) as ready:
        yield ready


IPV6 = pytest.mark.parametrize("lab", ["refdut-ipv6"], indirect=True)


def undisturbed(
    ready: Bench,
    properties: Properties,
    rate_fps: int = FPS,
    inject_fault: Callable[[RefDut], None] | None = None,
    **conditions: Any,
) -> tuple[TrialResult, Truth]:
    """The first trial in which neither the tester nor a queue between it and the DUT lost a frame
    (a busy machine's do), and the DUT's counters of it.

    Whether it kept its schedule does not matter here: what was sent late must be accounted for as
    well.
    """
    dut = truth_of(ready)

    def measure() -> tuple[TrialResult, Truth]:
        dut.configure(properties)
        if inject_fault is not None:
            inject_fault(dut)
        return ready.run(rate_fps, **conditions), dut.counters()

    def nothing_between(measured: tuple[TrialResult, Truth]) -> bool:
        result, truth = measured
        between = [port.lost_before + port.lost_after for port in (truth.left, truth.right)]
        between += [
            counts.dut_input_drops + sum(counts.tester_drops.values()) for counts in result.directions().values()
        ]
        return result.verdict is not Verdict.ABORTED and not any(between)

    return until(measure, nothing_between)


def seen(counts: DirectionCounts) -> dict[str, int]:
    """What the tester says."""
    names = ("sent", "lost", "corrupted", "duplicates", "out_of_order", "stale")
    return {name: getattr(counts, name) for name in names} | {"other": sum(others(counts).values())}


def done(truth: DirectionTruth) -> dict[str, int]:
    """What the DUT did, in the tester's terms: a corrupted frame is lost too. No frame that is
    corrupted is also duplicated in these tests."""
    lost = truth.lost_total + truth.corrupted
    named = {
        "sent": truth.received,
        "lost": lost,
        "corrupted": truth.corrupted,
        "duplicates": truth.duplicated,
        "out_of_order": truth.reordered,
    }
    return named | {"stale": 0, "other": 0}


def assert_agree(result: TrialResult, truth: Truth) -> None:
    """Both tell the same of every direction that was measured."""
    for direction, counts in result.directions().items():
        one: DirectionTruth = getattr(truth, direction)
        assert one.received == one.forwarded + one.lost_total
        assert seen(counts) == done(one)


EXACT = [
    pytest.param({}, {}, id="nothing"),
    pytest.param({"loss_every": 7}, {"lost": FRAMES // 7}, id="loss"),
    pytest.param({"duplicate_every": 11}, {"duplicates": FRAMES // 11}, id="duplicates"),
    pytest.param({"reorder_every": 13}, {"out_of_order": FRAMES // 13}, id="reordering"),
    pytest.param({"bit_error_every": 17}, {"corrupted": FRAMES // 17, "lost": FRAMES // 17}, id="bit errors"),
    pytest.param(
        {"extra_delay_every": 100, "extra_delay_ms": 5.25},
        {"out_of_order": FRAMES // 100 - 1},
        id="late frames but the last are overtaken",
    ),
]


@pytest.mark.parametrize(("properties", "expected"), EXACT)
def test_what_happens_to_every_nth_frame_is_measured_to_the_frame(
    lab: Bench, properties: dict[str, Any], expected: dict[str, int]
) -> None:
    result, truth = undisturbed(lab, Properties(**properties))
    assert_agree(result, truth)
    nothing = dict.fromkeys(("lost", "corrupted", "duplicates", "out_of_order", "stale", "other"), 0)
    for counts in result.directions().values():
        assert seen(counts) == nothing | {"sent": FRAMES} | expected


def test_chance_is_measured_to_the_frame(lab: Bench) -> None:
    result, truth = undisturbed(
        lab,
        Properties(loss=0.02, duplicate=0.03, reorder=0.04, jitter="exponential", jitter_ms=0.5),
        5_000,
        networks=256,
    )
    assert_agree(result, truth)
    for one in (truth.forward, truth.reverse):
        assert min(one.lost["random"], one.duplicated, one.reordered) > 0


@IPV6
def test_overload_loses_what_the_dut_dropped(lab: Bench) -> None:
    capacity_fps, queue, duration_s = 4_000, 50, 0.5
    result, truth = undisturbed(
        lab, Properties(capacity_fps=capacity_fps, queue=queue), 8_000, directions="forward", duration_s=duration_s
    )
    assert_agree(result, truth)
    assert truth.forward.lost["queue"] == truth.forward.lost_total
    assert truth.forward.forwarded == pytest.approx(capacity_fps * duration_s + queue + 1, rel=0.05)


@IPV6
def test_fixed_ports_find_one_core_and_random_ports_all(lab: Bench) -> None:
    """Why RFC 4814 wants random ports: with fixed ones, a DUT that spreads flows over its cores
    shows one core's capacity."""
    forwarded = {}
    for mode in (FieldMode.FIXED, FieldMode.RANDOM):
        properties = Properties(capacity_fps=1_500, cores=4, queue=20)
        result, truth = undisturbed(lab, properties, 10_000, directions="forward", ports=mode)
        assert_agree(result, truth)
        forwarded[mode] = truth.forward.forwarded
    assert forwarded[FieldMode.RANDOM] / forwarded[FieldMode.FIXED] == pytest.approx(4, rel=0.15)


@IPV6
@pytest.mark.parametrize(("what", "cause"), [("stall", "queue"), ("reset", "reset")])
def test_an_interruption_costs_its_length(lab: Bench, what: str, cause: str) -> None:
    result, truth = undisturbed(lab, Properties(queue=0), inject_fault=lambda dut: getattr(dut, what)(0.1, after_s=0.2))
    assert_agree(result, truth)
    for one in (truth.forward, truth.reverse):
        assert one.lost[cause] == one.lost_total == pytest.approx(FPS * 0.1, rel=0.25)


def stamped(ready: Bench, delay_ms: float) -> tuple[DirectionCounts, DirectionTruth]:
    """A trial in which every frame carries a time stamp, through a DUT with that delay."""
    dut = truth_of(ready)
    dut.configure(Properties(delay_ms=delay_ms))
    trial = make_trial(ready.setup, Usual(duration_s=0.5, drain_s=0.3, directions="forward"), 84, FPS, 1)
    result = ready.tester.run(trial.model_copy(update={"stamping": Stamping.EVERY}))
    assert result.forward is not None
    return result.forward, dut.counters().forward


def best_typical_us(ready: Bench, delay_ms: float, attempts: int = 3) -> float:
    """The lowest median of several trials, in microseconds: what a busy machine adds is not the
    DUT's. Nothing may be below the truth."""
    medians = []
    for _ in range(attempts):
        counts, truth = stamped(ready, delay_ms)
        assert counts.delay_us is not None
        assert counts.delay_us.min >= delay_ms * 1000 * 0.9999  # two programs took the clock's rate by themselves
        assert counts.delay_us.p50 >= truth.delay_us.p50 * 0.99975  # both are known within 0.0125 %
        medians.append(counts.delay_us.p50)
    return min(medians)


@pytest.mark.long
@IPV6
@pytest.mark.parametrize("delay_ms", [1, 10, 100])
def test_delay_is_what_was_set_and_the_floor(lab: Bench, delay_ms: float) -> None:
    floor_us = best_typical_us(lab, 0)
    excess_us = best_typical_us(lab, delay_ms) - delay_ms * 1000
    print(f"delay {delay_ms} ms: floor {floor_us:.1f} us, excess {excess_us:.1f} us")
    assert -0.125 * delay_ms <= excess_us <= floor_us + 50  # the median is known within 0.0125 %
