# SPDX-License-Identifier: Apache-2.0
"""Address tables of switches (RFC 2889 sections 5.7, 5.8): the traffic, and that simulated tables are measured as
what they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf import procedures, traffic
from dutperf.lab import bridge_limit
from dutperf.model import Direction, LimitedBy, Trial, TrialResult
from dutperf.procedures.bench import PlanError
from dutperf.results import tables
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from dutperf.tester.simulated_switch import AddressTable
from dutperf.traffic import switches
from dutperf.traffic.switches import Aged, Learned, Roles
from plans import NAT44, SWITCH, SimulatedDevice, journal_lines, measure, narrowed, plan

SETUP = configuration.parse(SWITCH, "test")
ROLES = Roles("a", "b", ("c",))
LEARNED, TESTED, CONTROL = Direction("a->b"), Direction("b->a"), Direction("b->c")
OWN = {CONTROL, Direction("c->a"), Direction("c->b")}


FAST = {"learning_rate": "100k", "test_rate": "100k", "repetitions": 1}


def learned(addresses: int = 100, wait_s: float | None = None, learning_fps: int = 1000, test_fps: int = 500) -> Trial:
    conditions = traffic.of(SETUP, SingleTrial(drain_s=0.1)).sized()
    made = Learned(ROLES, addresses, learning_fps, test_fps, wait_s)
    return switches.learned(SETUP, conditions, 64, made, 7)


def measured(name: str, table: AddressTable, tmp_path: Path, **conditions: Any) -> Any:
    tester = SimulatedTester(SimulatedDut(addresses=table))
    return measure(tester, plan(frame_sizes=(64,), **conditions), tmp_path, name).points[0]


def refused(name: str, **conditions: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        procedures.find(name).make(narrowed(plan(**conditions), name))
    return caught.value


# --- the traffic ----------------------------------------------------------------------------------


@given(addresses=st.integers(1, 10**6), learning_fps=st.integers(1, 10**6), test_fps=st.integers(1, 10**6))
@settings(max_examples=50)
def test_each_address_is_learned_once_and_tested_once(addresses: int, learning_fps: int, test_fps: int) -> None:
    if addresses > 86_400 * min(learning_fps, test_fps):
        return
    trial = learned(addresses, None, learning_fps, test_fps)
    [learning] = trial.preliminary
    assert set(learning.streams()) == {LEARNED}
    assert learning.intended(LEARNED) == trial.intended(TESTED) == addresses
    assert set(trial.streams()) == {TESTED, *OWN}
    assert all(trial.intended(path) >= 10 for path in OWN)
    for stream, bit in ((learning.streams()[LEARNED], 48), (trial.streams()[TESTED], 0)):
        [frame] = stream.frames
        [field] = [one for one in frame.fields if one.bits == 48]
        assert (field.bit, field.count, field.first) == (bit, str(addresses), str(0x022889000000))


def test_a_table_is_empty_before_because_of_a_command_or_of_a_wait() -> None:
    by_command, by_waiting = learned(), learned(wait_s=10)
    assert by_command.question.clear_addresses
    assert not by_waiting.question.clear_addresses
    waiting, learning = by_waiting.preliminary
    assert (waiting.rest_ns, learning.rest_ns) == (11_000_000_000, None)
    assert waiting.intended(TESTED) == 1
    assert [one.trial for one in (waiting, learning, by_waiting)] == [7, 8, 9]
    long = learned(wait_s=300).preliminary[0]
    assert long.rest_ns == 315_000_000_000


def test_an_address_is_learned_by_one_frame_before_it_is_tested() -> None:
    conditions = traffic.of(SETUP, SingleTrial(drain_s=0)).sized()
    trial = switches.ageing(SETUP, conditions, 64, Aged(ROLES, 100, 5), 3)
    times = {path: trial.times(path) for path in trial.streams()}
    assert (trial.intended(LEARNED), trial.intended(TESTED)) == (1, 500)
    assert times[LEARNED].frames_before(1) == 1
    assert times[TESTED].frames_before(switches.FORGETTING_FROM_NS) == 0
    assert trial.duration_s == 5.05


def test_ports_are_chosen_or_the_first() -> None:
    assert switches.roles(SETUP, None, None) == ROLES
    assert switches.roles(SETUP, "c", None) == Roles("c", "a", ("b",))
    assert switches.roles(SETUP, None, "a") == Roles("b", "a", ("c",))


@pytest.mark.parametrize(
    ("mapping", "ports", "text"),
    [
        (NAT44, (None, None), "ports: are missing"),
        ({**SWITCH, "paths": ["a<->b", "b->c", "c->a"]}, (None, "c"), "paths: are without a->c, c->b"),
        (SWITCH, ("x", None), "learning_port: there is no port x: the ports are a, b, c"),
        (SWITCH, ("b", "b"), "test_port: is b, the learning port"),
        ({**SWITCH, "streams": [{"name": "one"}]}, (None, None), "which has frames of its own"),
    ],
)
def test_setups_that_are_no_switch_s(mapping: dict[str, Any], ports: tuple[Any, Any], text: str) -> None:
    with pytest.raises((ConfigError, ParameterError), match=text):
        switches.roles(configuration.parse(mapping, "test"), *ports)


# --- the procedures -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 5, 99, 100, 101, 1000, 1003, 4321, 65_536])
def test_a_table_s_size_is_read_exactly(size: int, tmp_path: Path) -> None:
    point = measured(
        "address-capacity", AddressTable(size=size), tmp_path, repetitions=1, learning_rate="100k", test_rate="100k"
    )
    assert (point.addresses.median, point.table_entries, point.limited_by) == (size - 3, size, LimitedBy.DUT)
    assert point.message == f"with {size - 2:,} addresses 1 of {size - 2:,} test frames flooded"


def test_a_table_that_evicts_the_tester_s_own_address_is_full(tmp_path: Path) -> None:
    point = measured("address-capacity", AddressTable(size=60, evicts=True), tmp_path, first_addresses=40, **FAST)
    assert (point.addresses.median, point.table_entries) == (57, 60)
    assert point.message == "with 58 addresses 0 of 58 test frames flooded; frames to the tester's own port a flooded"


def test_an_unlimited_table_is_limited_by_the_range(tmp_path: Path) -> None:
    point = measured("address-capacity", AddressTable(), tmp_path / "a", most_addresses=5000, **FAST)
    assert (point.addresses.median, point.limited_by) == (5000, LimitedBy.RANGE)
    assert point.message == "all 5,000 addresses of the search fit: allow more"
    point = measured("address-capacity", AddressTable(), tmp_path / "b", ageing_s=10, repetitions=1)
    assert point.limited_by is LimitedBy.RANGE
    assert point.message == (
        "all 5,000 addresses fit that can be learned and tested within the ageing time of 10 s: learn and test faster"
    )


def test_a_table_without_room_passes_nothing(tmp_path: Path) -> None:
    point = measured("address-capacity", AddressTable(size=3), tmp_path, repetitions=1)
    assert (point.addresses.median, point.table_entries, point.limited_by) == (None, None, LimitedBy.RANGE)
    assert point.message == "nothing passed: with 1 addresses 1 of 1 test frames flooded"


@pytest.mark.parametrize("rate", [150, 1_000, 7_777])
def test_the_learning_rate_is_found(rate: int, tmp_path: Path) -> None:
    conditions = {"resolution": "1", "max_rate": "10k", "addresses": 1_000_000, "ageing_s": 200_000, "repetitions": 1}
    point = measured("address-learning-rate", AddressTable(learning_aps=rate), tmp_path, **conditions)
    assert abs(point.learning_aps.median - rate) <= 1
    assert point.limited_by is LimitedBy.DUT


@pytest.mark.parametrize("ageing_s", [0.2, 1.0, 2.345])
def test_the_ageing_time_is_read_to_an_interval(ageing_s: float, tmp_path: Path) -> None:
    point = measured("address-ageing", AddressTable(ageing_s=ageing_s), tmp_path, duration_s=3, repetitions=2)
    assert point.ageing_s.median == pytest.approx(ageing_s, abs=0.001)
    assert point.interval_s == 0.001


class Storm(SimulatedTester):
    """Tests a switch that floods no more than half of what it does not know."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        by = switches.roles(SETUP, None, None).tested
        counts = result.directions()[by]
        lost = max((counts.misdelivered or {}).values(), default=0) // 2
        flooded = {port: count - lost for port, count in (counts.misdelivered or {}).items()}
        limited = counts.model_copy(update={"misdelivered": flooded, "received": counts.received - lost})
        return result.model_copy(update={"paths": {**(result.paths or {}), by: limited}})


def test_a_switch_that_loses_what_it_floods_has_no_ageing_time(tmp_path: Path) -> None:
    tester = Storm(SimulatedDut(addresses=AddressTable(ageing_s=1.0)))
    what = narrowed(plan(duration_s=3, repetitions=1), "address-ageing")
    point: Any = measure(tester, what, tmp_path, "address-ageing").points[0]
    assert point.ageing_s.median is None
    assert "test frames were lost, of which it is not known whether they were flooded" in point.message


def test_the_learning_rate_is_found_by_its_own_resolution(tmp_path: Path) -> None:
    """0.5 % of a gigabit's frame rate is seven times what this switch learns in a second."""
    conditions = {"max_rate": "1488095", "addresses": 1_000_000, "ageing_s": 200_000, "repetitions": 1}
    point = measured("address-learning-rate", AddressTable(learning_aps=1_000), tmp_path, **conditions)
    assert point.learning_aps.median == pytest.approx(1_000, rel=0.006)


def test_an_address_that_does_not_age_has_no_ageing_time(tmp_path: Path) -> None:
    point = measured("address-ageing", AddressTable(ageing_s=9), tmp_path / "a", duration_s=3)
    assert point.ageing_s.median is None
    assert point.message == "the address did not age within 3 s: give a longer duration"
    point = measured("address-ageing", AddressTable(size=3), tmp_path / "b", duration_s=3)
    assert point.message == "every test frame was flooded: the address was not learned at all"


@pytest.mark.parametrize(
    ("name", "conditions", "option", "text"),
    [
        ("address-capacity", {"most_addresses": 10}, "most_addresses", "is below 1,000"),
        ("address-capacity", {"learning_rate": "2"}, "learning_rate", "would age before they are tested"),
        ("address-capacity", {"learning_rate": "10%"}, "learning_rate", "no share of a link's speed"),
        ("address-capacity", {"test_rate": "10%"}, "test_rate", "no share of a link's speed"),
        ("address-learning-rate", {"addresses": 10**6}, "addresses", "would age before they are tested"),
        ("address-ageing", {"test_rate": "1%"}, "test_rate", "no share of a link's speed"),
    ],
)
def test_what_cannot_be_measured_is_refused(name: str, conditions: dict[str, Any], option: str, text: str) -> None:
    error = refused(name, **conditions)
    assert error.option == option
    assert text in error.message


def test_the_table_is_emptied_before_each_trial_and_not_when_a_journal_is_replayed(tmp_path: Path) -> None:
    clearing = plan(frame_sizes=(64,), **FAST)
    assert isinstance(clearing.dut, SimulatedDevice)
    tester = SimulatedTester(SimulatedDut(addresses=AddressTable(size=500)))
    summary = measure(tester, clearing, tmp_path, "address-capacity")
    results = [event for event in journal_lines(tmp_path) if event["event"] == "result"]
    assert clearing.dut.emptied == len(results) > 5
    assert tables.results(summary).rows[0][-2:] == ("500", "dut")


def test_the_kernel_is_asked_for_a_limit_as_iproute2_does() -> None:
    """`ip link set dev br0 type bridge fdb_max_learned 5`, of iproute2 6.8, captured for a bridge with index 3."""
    body = bridge_limit.request(3, 5)
    assert body[16:32].hex() == "00000000" + "03000000" + "00000000" + "00000000"
    assert body[32:].hex() == "1c001280" + "0b000100" + b"bridge\0\0".hex() + "0c000280" + "08003100" + "05000000"


def test_the_procedures_are_known() -> None:
    for name in ("address-capacity", "address-learning-rate", "address-ageing"):
        assert "RFC 2889" in procedures.find(name).summary


# --- broadcasts -----------------------------------------------------------------------------------


def test_broadcasts_are_timed_at_one_port_after_the_other() -> None:
    first = switches.audience(SETUP, None)
    assert (first.sender, first.timed, first.others) == ("a", "b", ("c",))
    assert [first.turned(number).timed for number in range(4)] == ["b", "c", "b", "c"]
    conditions = traffic.of(SETUP, SingleTrial(duration_s=2)).sized()
    trial = switches.broadcast(SETUP, conditions, 64, first.turned(1), 5000, 1)
    assert (trial.intended(Direction("a->c")), trial.intended(Direction("a->b"))) == (10_000, 100)
    [frame] = trial.streams()[Direction("a->c")].frames
    assert frame.bytes.startswith("ff" * 6)


class Forgetful(SimulatedTester):
    """Of a switch that does not copy every hundredth broadcast to the other ports above a rate."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        [path, *_] = trial.streams()
        counts = result.directions()[path]
        if trial.streams()[path].rate_fps <= 4_000 or counts.misdelivered is None:
            return result
        fewer = {port: frames - frames // 100 for port, frames in counts.misdelivered.items()}
        paths = {**result.directions(), path: counts.model_copy(update={"misdelivered": fewer})}
        return result.model_copy(update={"paths": paths})


def test_a_warm_up_is_of_the_paths_that_are_measured() -> None:
    conditions = procedures.find("broadcast").conditions(frame_sizes=(64,), warm_up_s=1.0)
    trial = switches.broadcast(SETUP, conditions, 64, switches.audience(SETUP, None), 5000, 1)
    [warm_up] = trial.preliminary
    assert warm_up.streams() == trial.streams()


@pytest.mark.parametrize(
    ("name", "fps"),
    [("broadcast", int(1_488_095 / 1.01)), ("address-learning-rate", 1_488_095)],
    ids=["beside its frames to the third port", "of the learning port alone"],
)
def test_the_media_s_maximum_is_that_of_the_port_that_sends(name: str, fps: int) -> None:
    """In a mesh each port has paths to all others, of which such a trial sends on one."""
    what = plan(frame_sizes=(64,))
    setup = SETUP.model_copy(update={"media_mbps": 1_000})
    conditions = procedures.find(name).conditions(frame_sizes=(64,))
    made = procedures.find(name).make(replace(what, conditions=conditions, traffic=traffic.of(setup, conditions)))
    assert made.maximum_fps(made.cases[0]) == fps


def test_a_copy_that_lacks_at_a_port_that_only_counts_is_a_loss(tmp_path: Path) -> None:
    what = plan(frame_sizes=(64,), max_rate="10k", resolution="10", repetitions=2)
    point: Any = measure(Forgetful(), what, tmp_path, "broadcast").points[0]
    assert point.broadcast_fps.median == pytest.approx(4_000, abs=10)
    assert (point.copies_fps, point.limited_by) == (2 * point.broadcast_fps.median, LimitedBy.DUT)
    assert "did not receive 0.9993% of the broadcasts" in point.message
    assert list(point.delay_us) == ["b", "c"]
    assert point.delay_us["b"]["p50"].median == pytest.approx(10)
