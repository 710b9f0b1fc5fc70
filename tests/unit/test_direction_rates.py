# SPDX-License-Identifier: Apache-2.0
"""Rates of the two directions to each other, from the text to the streams, the figures and what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import traffic
from dutperf.api import results
from dutperf.model import LEFT_AND_RIGHT, Direction, Load, Profile, Trial
from dutperf.results import tables
from dutperf.run.campaign import Plan
from dutperf.setup.conditions import Conditions, Rate, SingleTrial, Usual
from dutperf.setup.configuration import ParameterError, parse
from dutperf.setup.direction_rates import DirectionRates
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Everything, measure, plan

IPV4 = parse(
    {
        "left": {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"},
        "right": {"port": "ring", "version": 4, "ipv4": "198.19.0.2/24"},
    },
    "test",
)
PORTS = parse(
    {
        "ports": {
            name: {"port": "ring", "version": 4, "ipv4": f"198.18.{number}.2/24"} for number, name in enumerate("abc")
        },
        "paths": ["a->b", "b->c"],
    },
    "test",
)


RATE = Rate.parse("10k")


def asymmetric(ratio: str, **members: Any) -> Plan[Any]:
    """A plan with the traffic of a real set-up."""
    wanted = Everything(**{"direction_rates": ratio, "repetitions": 1, "duration_s": 1, "drain_s": 0.1} | members)
    chosen = traffic.of(IPV4, wanted).sized()
    return replace(plan(), traffic=traffic.of(IPV4, chosen), conditions=chosen)


def rates(trial: Trial) -> dict[str, int]:
    return {str(way): stream.rate_fps for way, stream in trial.streams().items()}


def made(conditions: Conditions, fps: int, setup: Any = IPV4) -> Trial:
    kind = traffic.of(setup, conditions)
    sized = traffic.of(setup, kind.sized())
    return sized.trial(sized.cases()[0], Load.fps(fps), 1)


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 10**9))
def test_the_faster_one_has_the_rate_and_the_other_its_share(forward: int, reverse: int, fps: int) -> None:
    of = DirectionRates.parse(f"{forward}:{reverse}")
    each = [of.fps(way, fps) for way in (Direction.FORWARD, Direction.REVERSE)]
    assert max(each) == fps
    assert abs(min(each) - fps * min(forward, reverse) / max(forward, reverse)) <= 0.5 or min(each) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10:1", {"forward": 1000, "reverse": 100}),
        ("1:3", {"forward": 333, "reverse": 1000}),
        ("1000:1", {"forward": 1000, "reverse": 1}),
        ("20:20", {"forward": 1000, "reverse": 1000}),
    ],
)
def test_streams_have_their_rates(text: str, expected: dict[str, int]) -> None:
    assert rates(made(SingleTrial(direction_rates=text), 1000)) == expected


@pytest.mark.parametrize(
    ("text", "kept"), [("20:2", "10:1"), ("1:1", None), ("7:7", None), (" 3 : 4 ", "3:4"), (None, None)]
)
def test_the_smallest_numbers_are_kept(text: str | None, kept: str | None) -> None:
    assert Usual(direction_rates=text).direction_rates == kept


@pytest.mark.parametrize("text", ["", "10", "0:1", "1:0", "-1:2", "1.5:1", "10:1:1", "1001:1", "a:b", 10, (10, 1)])
def test_other_texts_are_refused(text: Any) -> None:
    with pytest.raises(ParameterError, match="should be the frames/s of forward to those of reverse") as caught:
        Usual(direction_rates=text)
    assert caught.value.key == "direction_rates"


def test_a_single_direction_has_no_relation() -> None:
    with pytest.raises(ParameterError, match=r"one direction alone \(`directions`\) exclude each other"):
        made(SingleTrial(direction_rates="2:1", directions="forward"), 1000)


def test_paths_of_named_ports_have_none() -> None:
    with pytest.raises(
        ParameterError, match=r"named ports \(ports\) exclude each other: named ports have paths, not directions"
    ):
        made(SingleTrial(direction_rates="2:1"), 1000, PORTS)


def test_rates_that_change_keep_the_relation() -> None:
    streams = made(SingleTrial(direction_rates="1:10", pattern="ramp:0-9999", duration_s=1), 5_000).streams()
    profiles = [stream.pattern for stream in streams.values()]
    assert all(isinstance(one, Profile) for one in profiles)
    assert [one.highest_fps for one in profiles if isinstance(one, Profile)] == [1000, 9999]


@pytest.mark.parametrize(("ratio", "frames"), [("1:1", (5_445, 5_445)), ("10:1", (5_445, 545))])
def test_frames_between_those_of_rates_that_change_belong_to_the_rate(ratio: str, frames: tuple[int, int]) -> None:
    """One in 100 is a broadcast (RFC 2544 11.1); the others of 5,500 or 550 frames/s are test frames."""
    conditions = SingleTrial(direction_rates=ratio, pattern="ramp:1k-10k", modifiers="broadcast", duration_s=1)
    trial = made(conditions, 5_500)
    assert [trial.intended(way) for way in trial.streams()] == pytest.approx(frames, abs=1)


@pytest.mark.parametrize(("ratio", "least"), [("10:1", 10), ("1:3", 3), ("2:5", 3)])
def test_a_rate_at_which_the_slower_one_has_no_frame_in_a_second_is_refused(ratio: str, least: int) -> None:
    conditions = SingleTrial(direction_rates=ratio)
    assert min(rates(made(conditions, least)).values()) == 1
    with pytest.raises(ParameterError, match=f"{ratio} needs {least} frames/s at least") as caught:
        made(conditions, least - 1)
    assert caught.value.key == "direction_rates"


def test_a_search_goes_no_lower_than_the_relation_allows(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=1))
    measure(tester, asymmetric("500:1"), tmp_path)
    assert min(stream["forward"] for stream in map(rates, tester.trials)) == 500


DEAD = SimulatedDut(dead_directions=frozenset(LEFT_AND_RIGHT))
PROBED: list[tuple[str, str, dict[str, Any]]] = [
    ("frame-loss", "1:20", {"max_rate": RATE}),
    ("throughput", "1:200", {"max_rate": RATE, "dut_patience_s": 0.01}),
    ("burst-interval", "1:200", {"max_rate": RATE, "bursts": "16", "duration_s": 10}),
]


@pytest.mark.parametrize(("name", "ratio", "conditions"), PROBED)
def test_probes_go_no_lower_either(name: str, ratio: str, conditions: dict[str, Any], tmp_path: Path) -> None:
    tester = SimulatedTester(DEAD)
    [point] = measure(tester, asymmetric(ratio, **conditions), tmp_path, name).points
    assert point.message.startswith("the DUT forwards nothing in the forward and the reverse direction")
    least_fps = DirectionRates.parse(ratio).least_fps
    assert min(stream["reverse"] for stream in map(rates, tester.trials)) == least_fps


@pytest.mark.parametrize("conditions", [{"max_rate": Rate.parse("190")}, {"rates": (RATE, Rate.parse("19"))}])
def test_a_series_with_lower_rates_is_refused_before_anything_is_sent(
    conditions: dict[str, Any], tmp_path: Path
) -> None:
    tester = SimulatedTester()
    with pytest.raises(ParameterError, match=r"1:20 needs 20 frames/s at least, .* 19 are too few"):
        measure(tester, asymmetric("1:20", **conditions), tmp_path / "run", "frame-loss")
    assert not tester.trials
    assert not (tmp_path / "run").exists()


def test_tables_and_plots_say_whose_rates_they_have(tmp_path: Path) -> None:
    for ratio, whose in (("10:1", "of the faster direction"), ("1:1", "per direction")):
        out = tmp_path / whose
        measure(SimulatedTester(SimulatedDut(capacity_fps=20_000)), asymmetric(ratio, to_rate=RATE), out, "ramp")
        [measured] = results.read(out).measured
        assert measured.summary is not None
        assert whose in tables.results(measured.summary).title
        assert any(whose in chart.x_label for chart in measured.result_charts())
        assert all(":" not in name for name in measured.charts())


def test_what_a_ramp_forwards_is_on_the_scale_of_its_load(tmp_path: Path) -> None:
    summary = measure(SimulatedTester(SimulatedDut()), asymmetric("10:1", to_rate=RATE), tmp_path, "ramp")
    for part in summary.points[0].parts:
        assert part.forwarded_fps == pytest.approx(part.load.value, abs=1)


def test_a_search_varies_both_as_a_whole(tmp_path: Path) -> None:
    """The slower direction is the limit of the DUT, which forwards 5,000 frames/s in each."""
    tester = SimulatedTester(SimulatedDut(capacity_fps=5_000))
    summary = measure(tester, asymmetric("1:4"), tmp_path)
    [point] = summary.points
    assert {stream["forward"] * 4 - stream["reverse"] for stream in map(rates, tester.trials)} <= {-2, -1, 0, 1, 2}
    assert point.case.key() == {"frame_size": 64, "direction_rates": "1:4"}
    assert "1:4 forward:reverse" in str(point.case)
    assert point.throughput_fps.median == pytest.approx(5_000, rel=0.05)
    texts = [one.text for one in summary.deviations if "section 14" in one.clause]
    assert texts == ["rates of forward and reverse are 1:4, not the same; the figure is that of the faster one"]


@pytest.mark.parametrize("ratio", ["10:1", "1:10"])
def test_a_reset_lasts_as_long_in_either_direction(ratio: str, tmp_path: Path) -> None:
    """By loss as well: 6,000 frames of the one, 600 of the other."""
    conditions = asymmetric(ratio, rate=Rate.parse("2k"), duration_s=20, reset_after_s=10)
    tester = SimulatedTester(SimulatedDut(outage_s=(11, 14)))
    [point] = measure(tester, conditions, tmp_path, "reset").points
    for times in (point.forward, point.reverse):
        assert times["arrival_gap"].median == pytest.approx(3, abs=0.011)
        assert times["loss"].median == pytest.approx(3, abs=0.006)


def test_the_interval_of_a_slow_direction_is_no_outage(tmp_path: Path) -> None:
    conditions = asymmetric("1000:1", rate=Rate.parse("1k"), duration_s=20, reset_after_s=10)
    [point] = measure(SimulatedTester(), conditions, tmp_path, "reset").points
    assert {way: found["not_caused"] for way, found in point.outcomes.items()} == {"forward": 1, "reverse": 1}
    assert "reverse: in 1 of 1 repetitions no arrival gap was longer than 10 s" in point.message


@pytest.mark.parametrize("name", ["recovery", "ramp", "burst-interval", "back-to-back", "frame-loss", "pdv"])
def test_every_procedure_keeps_the_relation(name: str, tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(capacity_fps=20_000, queue_frames=100))
    own: dict[str, dict[str, Any]] = {
        "recovery": {"rate": RATE, "overload_s": 1, "duration_s": 3},
        "ramp": {"to_rate": RATE},
        "burst-interval": {"bursts": "16"},
        "back-to-back": {"throughput_from": {64: 5_000}, "max_burst_s": 1},
        "pdv": {"rate": RATE},
    }
    measure(tester, asymmetric("10:1", max_rate=RATE, **own.get(name, {})), tmp_path, name)
    for trial in tester.trials:
        sent = {way: trial.intended(way) for way in trial.streams()}
        assert sent[Direction.FORWARD] == pytest.approx(10 * sent[Direction.REVERSE], abs=20, rel=0.02), (name, trial)
