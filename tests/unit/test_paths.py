# SPDX-License-Identifier: Apache-2.0
"""More ports than two: the texts of paths, their configuration, and trials, throughput and frame loss by
path and in sum."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import traffic
from dutperf.model import Direction, Trial, TrialResult, Verdict, to_json
from dutperf.procedures import evidence
from dutperf.procedures.bench import Plan
from dutperf.procedures.ndp_capacity import NdpCapacityProcedure
from dutperf.setup import configuration, path_texts, yaml_text
from dutperf.setup.conditions import SingleTrial, Usual
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.setup.ports import open_request
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import make_trial, measure, plan

FOUR = """
ports:
  a: {port: va, version: 4, ipv4: 198.18.0.2/24, gateway4: 198.18.0.1}
  b: {port: vb, version: 4, ipv4: 198.18.1.2/24, gateway4: 198.18.1.1}
  c: {port: vc, version: 4, ipv4: 198.18.2.2/24, gateway4: 198.18.2.1}
  d: {port: vd, version: 4, ipv4: 198.18.3.2/24, gateway4: 198.18.3.1}
paths: [a->b, c<->d]
"""
NAMES = st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,11}", fullmatch=True), min_size=2, max_size=16, unique=True)


# --- texts ----------------------------------------------------------------------------------------


@given(NAMES)
def test_a_mesh_has_a_path_from_each_port_to_each_other_one(ports: list[str]) -> None:
    paths = path_texts.parse(["mesh"], ports)
    assert len(paths) == len(ports) * (len(ports) - 1)
    assert set(paths.values()) == {(one, other) for one in ports for other in ports if one != other}
    assert path_texts.parse([f"mesh({', '.join(ports)})"], ports) == paths


@given(NAMES, st.data())
def test_paths_are_what_their_texts_say_in_their_order(ports: list[str], data: st.DataObject) -> None:
    pairs = [(one, other) for one in ports for other in ports if one < other]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    signs = data.draw(st.lists(st.sampled_from(["->", "<->"]), min_size=len(chosen), max_size=len(chosen)))
    paths = path_texts.parse([f"{one}{sign}{other}" for (one, other), sign in zip(chosen, signs, strict=True)], ports)
    expected = []
    for (one, other), sign in zip(chosen, signs, strict=True):
        expected += [(one, other)] + ([(other, one)] if sign == "<->" else [])
    assert list(paths.values()) == expected
    assert list(paths) == [f"{sender}->{receiver}" for sender, receiver in expected]


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["a-b"], "'a-b', which is no path"),
        (["a<-b"], "which is no path"),
        (["a->x"], "there is no port 'x': the ports are a, b, c"),
        (["a->a"], "two different ports"),
        (["mesh(a)"], "two different ports"),
        (["mesh(a, b, a)"], "two different ports"),
        (["mesh(a, y)"], "there is no port 'y'"),
        (["a->b", "a->b"], "names the path a->b twice"),
        (["mesh", "b<->c"], "names the path b->c twice"),
        ([""], "which is no path"),
    ],
)
def test_wrong_paths_are_named(texts: list[str], error: str) -> None:
    with pytest.raises(ValueError, match=error.replace("(", r"\(")):
        path_texts.parse(texts, ["a", "b", "c"])


@pytest.mark.parametrize("name", ["sideways", "a->", "->b", "a-b", "0a->b", "a->thirteen_chars", ""])
def test_no_other_name_is_a_direction(name: str) -> None:
    with pytest.raises(ValueError, match="neither forward, reverse nor a path"):
        Direction(name)


# --- the configuration ----------------------------------------------------------------------------


def test_ports_have_names_and_paths() -> None:
    setup = configuration.parse_yaml(FOUR, "f.yaml")
    assert list(setup.sides()) == ["a", "b", "c", "d"]
    assert list(setup.path_ends()) == ["a->b", "c->d", "d->c"]
    assert setup.ends(Direction("d->c"))[1].port == "vc"
    again = configuration.parse(configuration.as_json(setup), "journal")
    assert again == setup, "a run can be resumed"
    opened = open_request(setup, 1522)
    assert [port["name"] for port in opened["ports"]] == ["a", "b", "c", "d"]
    assert opened["paths"] == [{"from": "a", "to": "b"}, {"from": "c", "to": "d"}, {"from": "d", "to": "c"}]
    assert "left" not in opened


def test_two_ports_are_as_before() -> None:
    side = {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"}
    setup = configuration.parse({"left": side, "right": {**side, "ipv4": "198.19.0.2/24"}}, "f")
    assert not {"ports", "paths"} & configuration.as_json(setup).keys()
    trial = make_trial(setup, Usual(), 64, 1000, 1)
    assert list(to_json(trial))[-2:] == ["forward", "reverse"]


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    config, _ = yaml_text.read(FOUR)
    made: dict[str, Any] = dict(config)
    made["ports"] = {name: dict(port) for name, port in made["ports"].items()}
    change(made)
    return made


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda one: one.pop("paths"), "paths: is missing: say which ports send"),
        (lambda one: one.update(paths=["a->b"]), "ports.c: is on no path"),
        (lambda one: one.update(paths=["mesh(a, b)", "c->e"]), "paths: has 'c->e', but there is no port 'e'"),
        (lambda one: one.update(left=one["ports"]["a"]), "left: does not go with ports"),
        (lambda one: one["ports"]["b"].update(port="va"), "ports.b.port: va is already the port of a"),
        (lambda one: one["ports"]["b"].update(port="ring"), "ports.a.port: is va, but ring must be the port of all"),
        (lambda one: one["ports"]["b"].update(ipv4="198.18.0.2/24"), "ports.b.gateway4: 198.18.1.1 is not in"),
        (lambda one: one["ports"]["d"].pop("gateway4"), "ports.d.gateway4: is missing: a has a gateway"),
        (lambda one: one["ports"]["a"].pop("ipv4"), "ports.a.ipv4: is missing: a has version 4"),
        (lambda one: one.update(gateway4="198.18.0.1"), "gateway4: unknown key; did you mean ports.a.gateway4?"),
        (lambda one: one["ports"]["a"].update(ipv7=1), "ports.a.ipv7: unknown key; did you mean ipv"),
        (lambda one: one["ports"].update({"0": one["ports"]["a"]}), "ports.0"),
        (lambda one: one["ports"]["a"].update(seen_as="198.18.9.9"), "ports.a.seen_as: has no effect"),
        (lambda one: one.pop("ports"), "left: is missing"),
    ],
)
def test_errors_name_the_port(change: Callable[[dict[str, Any]], Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error.replace("[", r"\[")):
        configuration.parse(changed(change), "")


def test_left_and_right_have_no_paths() -> None:
    side = {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"}
    with pytest.raises(ConfigError, match="paths: is for named ports"):
        configuration.parse({"left": side, "right": {**side, "ipv4": "198.19.0.2/24"}, "paths": "mesh"}, "")


# --- trials ---------------------------------------------------------------------------------------


def trial_of_four(rate_fps: int = 1000, **conditions: Any) -> Trial:
    return make_trial(configuration.parse_yaml(FOUR, ""), SingleTrial(**conditions), 64, rate_fps, 1)


def test_each_path_has_its_addresses_and_times() -> None:
    trial = trial_of_four(pattern="poisson", duration_s=1)
    streams = trial.streams()
    assert list(streams) == ["a->b", "c->d", "d->c"]
    frame = streams[Direction("d->c")].foreground
    assert frame is not None
    assert (str(frame.source), str(frame.destination)) == ("198.18.3.2", "198.18.2.2")
    due = {tuple(trial.times(path).due_ns(k) for k in range(10)) for path in streams}
    assert len(due) == 3, "each path has generators of its own"
    assert trial.request()["paths"].keys() == set(streams)
    assert Trial.model_validate(to_json(trial)) == trial


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        (
            {"directions": "forward"},
            "named ports have paths, not directions: name those that send in the configuration",
        ),
    ],
)
def test_what_is_of_two_ports_is_refused(conditions: dict[str, Any], error: str) -> None:
    with pytest.raises(ParameterError, match=error):
        trial_of_four(**conditions)


def test_a_trial_fails_if_one_path_does() -> None:
    weak = SimulatedDut(capacity_fps={Direction("d->c"): 500})
    result = SimulatedTester(weak).run(trial_of_four(duration_s=1))
    assert result.verdict is Verdict.VALID
    assert result.worst_loss_ratio == pytest.approx(0.5)
    assert result.loss_ratio_in_sum == pytest.approx(0.5 / 3, abs=1e-3)
    assert result.forward is None
    assert TrialResult.model_validate(to_json(result)) == result


# --- procedures -----------------------------------------------------------------------------------


SEARCH = {"max_rate": "60k", "resolution": "20"}


def plan_of_four(**conditions: Any) -> Plan[Any]:
    """As :func:`plans.plan`, of the configuration above."""
    setup, made = configuration.parse_yaml(FOUR, ""), plan(**conditions)
    return replace(made, traffic=traffic.of(setup, made.conditions), config=configuration.as_json(setup))


WEAK = SimulatedDut(capacity_fps={Direction("a->b"): 50_000, Direction("c->d"): 9_000, Direction("d->c"): 30_000})


def test_the_weakest_path_decides_the_throughput(tmp_path: Path) -> None:
    [point] = measure(SimulatedTester(WEAK), plan_of_four(repetitions=3, **SEARCH), tmp_path).points
    assert point.throughput_fps.median is not None
    assert 8_980 <= point.throughput_fps.median <= 9_000
    assert list(point.paths) == ["a->b", "c->d", "d->c"]
    assert all(rate.loss_ratio == 0 for rate in point.paths.values())
    assert point.in_sum_fps == pytest.approx(3 * point.throughput_fps.median)
    assert point.upper_bound.paths["c->d"].lost > 0
    assert point.upper_bound.paths["a->b"].lost == 0
    assert "c->d lost" in point.message
    assert "2 paths lost none" in point.message
    assert any("in sum of 3 paths" in text for text in point.remarks())


def test_frame_loss_is_by_path_and_in_sum(tmp_path: Path) -> None:
    what = plan_of_four(rates="40k,10k,5k", repetitions=1)
    summary = measure(SimulatedTester(WEAK), what, tmp_path, "frame-loss")
    [point] = summary.points
    highest = point.rates[0].loss_ratio
    assert highest.paths["a->b"].median == 0
    assert highest.paths["c->d"].median == pytest.approx(31 / 40, abs=1e-3)
    assert highest.paths["d->c"].median == pytest.approx(10 / 40, abs=1e-3)
    assert highest.worst == highest.paths["c->d"]
    assert highest.in_sum.median == pytest.approx(41 / 120, abs=1e-3)
    assert point.first_lossless_fps == 5_000
    assert any("lost in sum of 3 paths; c->d 77." in text for text in point.remarks())
    document = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    recorded = document["points"][0]["rates"][0]["loss_ratio"]
    assert recorded["in_sum"]["median"] == highest.in_sum.median
    assert set(recorded["paths"]) == {"a->b", "c->d", "d->c"}


@pytest.mark.parametrize("name", ["latency", "pdv", "ipdv"])
def test_delays_are_by_path_and_in_sum(name: str, tmp_path: Path) -> None:
    dut = SimulatedDut(capacity_fps=50_000, delay_us=100, jitter_us=20)
    [point] = measure(
        SimulatedTester(dut), plan_of_four(rate="1k", repetitions=2, tag_after_s=0.1), tmp_path, name
    ).points
    assert list(point.directions()) == ["a->b", "c->d", "d->c"]
    assert (point.forward, point.reverse) == (None, None)
    shown = [row[0] for row in point.rows()]
    assert any(one.startswith("d->c ") for one in shown)
    if name == "ipdv":
        assert point.in_sum is None, "there is no order between paths"
        return
    for figure, of in point.in_sum.items():
        each = [figures[figure].values for figures in point.directions().values()]
        for repetition, value in enumerate(of.values):
            low, high = min(one[repetition] for one in each), max(one[repetition] for one in each)
            assert low <= value <= high
    assert any(one.startswith("3 paths in sum") for one in shown)
    document = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["points"][0]
    assert set(document["paths"]) == {"a->b", "c->d", "d->c"}
    assert document["in_sum"].keys() == point.in_sum.keys()


def test_results_of_two_ports_have_no_members_of_paths(tmp_path: Path) -> None:
    each: dict[str, dict[str, Any]] = {
        "throughput": {},
        "frame-loss": {"rates": "40k,10k"},
        "latency": {"rate": "1k", "tag_after_s": 0.1},
        "ipdv": {"rate": "1k"},
        "recovery": {"rate": "20k", "overload_s": 1, "duration_s": 4},
    }
    for name, conditions in each.items():
        measure(
            SimulatedTester(SimulatedDut(capacity_fps=20_000)), plan(repetitions=1, **conditions), tmp_path / name, name
        )
        for file in ("summary.json", "journal.jsonl"):
            text = (tmp_path / name / file).read_text(encoding="utf-8")
            assert not {"paths", "in_sum", "in_sum_ms", "in_sum_fps", "misdelivered"} & set(
                re.findall(r'"(\w+)":', text)
            )


def test_the_weakest_path_decides_the_longest_burst(tmp_path: Path) -> None:
    alone = SimulatedDut(capacity_fps={Direction("c->d"): 9_000}, queue_frames=50)
    what = plan_of_four(rate="9k", max_rate="20k", max_burst_s=1, repetitions=3)
    [point] = measure(SimulatedTester(alone), what, tmp_path, "back-to-back").points
    assert point.average_frames == pytest.approx(50 / (1 - 9 / 20), rel=0.05)
    assert "c->d lost" in point.message
    assert "2 paths lost none" in point.message


def test_recovery_and_reset_are_by_path(tmp_path: Path) -> None:
    overloaded = SimulatedDut(capacity_fps={Direction("c->d"): 10_000}, recovery_s=0.5)
    what = plan_of_four(rate="10k", overload_s=1, duration_s=4, repetitions=2)
    [point] = measure(SimulatedTester(overloaded), what, tmp_path / "recovery", "recovery").points
    assert point.directions()[Direction("c->d")]["recovery"].median == pytest.approx(0.5, abs=0.01)
    assert set(point.directions()) == {"c->d"}
    assert point.outcomes["a->b"] == {"measured": 0, "not_caused": 2, "not_over": 0}
    assert (point.forward, point.reverse) == (None, None)
    what = plan_of_four(rate="1k", duration_s=6, reset_after_s=1, repetitions=2)
    [point] = measure(SimulatedTester(SimulatedDut(outage_s=(1.5, 2))), what, tmp_path / "reset", "reset").points
    assert list(point.directions()) == ["a->b", "c->d", "d->c"]
    assert next(row[0] for row in point.rows()) == "a->b arrival gap"
    document = json.loads((tmp_path / "reset" / "summary.json").read_text(encoding="utf-8"))["points"][0]
    assert document["paths"]["d->c"]["loss"]["median"] == pytest.approx(0.5, abs=0.002)


def test_a_ramp_is_by_path(tmp_path: Path) -> None:
    what = plan_of_four(from_rate="1k", to_rate="20k", duration_s=4, repetitions=1)
    [point] = measure(SimulatedTester(WEAK), what, tmp_path, "ramp").points
    assert {*point.parts[0].sent} == {"a->b", "c->d", "d->c"}
    assert point.parts[-1].lost["c->d"] > 0
    assert point.parts[-1].lost["a->b"] == 0
    assert point.first_loss_fps.median == pytest.approx(9_000, rel=0.02)


def test_connections_are_those_of_the_first_path_and_its_way_back() -> None:
    trial = trial_of_four(connections=100)
    [opening], (first, *_) = trial.preliminary, trial.streams()
    assert trial.connections is not None
    assert trial.connections.initiator is first
    assert set(opening.streams()) == {first}
    assert trial.streams().keys() == trial_of_four().streams().keys()


def test_neighbours_are_those_of_one_of_two_ports() -> None:
    with pytest.raises(ConfigError, match="ports: are not possible: the neighbours are those of one of two ports"):
        NdpCapacityProcedure(plan_of_four())


def test_a_frame_at_a_wrong_port_is_told() -> None:
    tester = SimulatedTester(SimulatedDut(dead_directions=frozenset({Direction("c->d")})))
    result = tester.run(trial_of_four(duration_s=1))
    paths = dict(result.paths or {})
    path = Direction("c->d")
    paths[path] = paths[path].model_copy(update={"misdelivered": {"b": 1000}})
    told = evidence.no_forwarding(result.model_copy(update={"paths": paths}), configuration.parse_yaml(FOUR, ""))
    assert told.startswith("the DUT forwards nothing on the path c->d: ")
    assert "c->d: 1,000 at the b port" in told
