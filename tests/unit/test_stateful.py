# SPDX-License-Identifier: Apache-2.0
"""Stateful measurements (RFC 9693): which connections a trial has, how its phases follow each other, and that
simulated NATs are measured as what they are."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from dutperf import procedures, traffic
from dutperf.dut.device import Device
from dutperf.judge import validity
from dutperf.judge.validity import HAD_ITS_CORES
from dutperf.model import (
    LEFT_AND_RIGHT,
    LOSS_BINS,
    MOST_CONNECTIONS,
    Case,
    Cause,
    ConnectionCounts,
    Connections,
    ConnectionUse,
    Direction,
    LateBursts,
    Load,
    Quantiles,
    Trial,
    TrialResult,
    Verdict,
    address_range,
    members_of,
    to_json,
)
from dutperf.procedures import stateful, table_capacity
from dutperf.procedures.bench import PlanError
from dutperf.results import tables
from dutperf.results.summary import Summary
from dutperf.run import campaign
from dutperf.run.campaign import Plan
from dutperf.run.waiting import PROBE_NS, probe, probe_fps
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial, each, make
from dutperf.setup.configuration import ConfigError, Dut, ParameterError, Setup
from dutperf.tester import ProgressCallback, phases
from dutperf.tester.simulated import SimulatedTester
from dutperf.traffic.connections import ports
from dutperf.watch.dut_core import Starvation
from plans import NAT44, NAT64, Log, SimulatedDevice, counts, journal_lines, make_trial

NAMED = {
    "ports": {"inside": NAT44["left"], "outside": NAT44["right"]},
    "paths": ["inside->outside", "outside->inside"],
}


def setup_of(mapping: dict[str, Any] | None = None, **stateful: Any) -> Setup:
    chosen = mapping or NAT44
    return configuration.parse({**chosen, "stateful": {**chosen.get("stateful", {}), **stateful}}, "test")


def trial_of(connections: int, setup: Setup | None = None, rate_fps: int = 1000, **conditions: Any) -> Trial:
    chosen = SingleTrial(duration_s=1, drain_s=0.1, connections=connections, **conditions)
    return make_trial(setup or setup_of(), traffic.of(setup or setup_of(), chosen).sized(), 84, rate_fps, 5)


# --- the connections of a trial -------------------------------------------------------------------


def test_a_trial_opens_all_connections_and_then_uses_them() -> None:
    trial = trial_of(5000, preliminary_rate="20k")
    [opening] = trial.preliminary
    assert opening.connections == Connections(use=ConnectionUse.OPEN, initiator=Direction.FORWARD, count=5000)
    assert opening.intended(Direction.FORWARD) == 5000
    assert opening.duration_s == 0.25
    assert opening.reverse is None
    assert (opening.trial, trial.trial, trial.numbers) == (5, 6, 3)
    assert trial.connections == Connections(use=ConnectionUse.TRAFFIC, initiator=Direction.FORWARD, count=5000)
    assert tuple(trial.streams()) == LEFT_AND_RIGHT


LARGEST = 64_512
"""Ports from 1024 on."""


@given(connections=st.integers(1, 10**7), rate_fps=st.integers(1, 10**9))
def test_every_connection_is_opened_by_one_frame_at_any_rate(connections: int, rate_fps: int) -> None:
    setup = setup_of()
    assume(connections <= 86_400 * rate_fps)
    chosen = traffic.of(setup, SingleTrial(connections=connections)).sized()
    opening = traffic.ConnectionTraffic(setup, chosen).opening(84, rate_fps, 0)
    assert opening.intended(Direction.FORWARD) == connections
    replies = traffic.ConnectionTraffic(setup, chosen).replies(84, rate_fps, 1)
    assert replies.intended(Direction.REVERSE) == connections


@given(
    connections=st.integers(1, 10**6),
    source=st.none() | st.tuples(st.integers(1, 2000), st.integers(0, 60_000)),
    destination=st.none() | st.tuples(st.integers(1, 2000), st.integers(0, 60_000)),
)
def test_the_ranges_have_room_for_the_connections_or_are_refused(
    connections: int, source: tuple[int, int] | None, destination: tuple[int, int] | None
) -> None:
    ranges = {
        name: [one[0], min(65_535, one[0] + one[1])]
        for name, one in (("source_ports", source), ("destination_ports", destination))
        if one is not None
    }
    setup = setup_of(**ranges)
    most = [
        LARGEST if one is None else one[1] - one[0] + 1
        for one in map(ranges.get, ("source_ports", "destination_ports"))
    ]
    if None not in (source, destination) and most[0] * most[1] > MOST_CONNECTIONS:
        with pytest.raises(ConfigError, match=r"^stateful: .* more combinations than can be put in an order"):
            ports(setup, connections, networks=1)
        return
    if most[0] * most[1] < connections:
        with pytest.raises(ConfigError, match=f"{connections:,} connections are more than the ranges have"):
            ports(setup, connections, networks=1)
        return
    chosen = ports(setup, connections, networks=1)
    sizes = [last - first + 1 for first, last in chosen]
    assert sizes[0] * sizes[1] >= connections
    assert all(0 <= first <= last <= 65_535 for first, last in chosen)
    for given_range, own in zip((ranges.get("source_ports"), ranges.get("destination_ports")), chosen, strict=True):
        assert given_range is None or tuple(given_range) == own


def test_the_responder_of_a_nat64_needs_no_address_of_the_initiator() -> None:
    trial = trial_of(100, setup_of(NAT64))
    assert trial.forward is not None
    assert trial.reverse is not None
    assert trial.forward.foreground is not None
    assert trial.reverse.foreground is not None
    assert (trial.forward.foreground.version, trial.reverse.foreground.version) == (6, 4)
    assert str(trial.forward.foreground.destination) == "64:ff9b::c613:2"
    assert trial.connections is not None
    assert trial.connections.version == 4


def test_the_initiator_may_be_on_the_right() -> None:
    trial = trial_of(100, setup_of(initiator="right"))
    [opening] = trial.preliminary
    assert set(opening.streams()) == {Direction.REVERSE}
    assert trial.connections is not None
    assert trial.connections.initiator is Direction.REVERSE


@pytest.mark.parametrize("frame", [None, "vlan(id=7)/ip/udp"])
@pytest.mark.parametrize(
    ("initiator", "of_two", "paths"),
    [(None, "left", NAMED["paths"]), ("outside", "right", NAMED["paths"]), (None, "right", NAMED["paths"][::-1])],
)
def test_named_ports_send_what_left_and_right_do(
    initiator: str | None, of_two: str, paths: list[str], frame: str | None
) -> None:
    named = {"inside->outside": Direction.FORWARD, "outside->inside": Direction.REVERSE}
    conditions: dict[str, Any] = {"warm_up_s": 0.5, "networks": 16, "frame": frame}
    trial = trial_of(100, setup_of({**NAMED, "paths": paths}, initiator=initiator), **conditions)
    same = trial_of(100, setup_of(initiator=of_two), **conditions)
    for phase, other in zip((*trial.preliminary, trial), (*same.preliminary, same), strict=True):
        assert {named[path]: stream for path, stream in phase.streams().items()} == other.streams()
        assert phase.connections is not None
        opens = {"initiator": named[phase.connections.initiator]}
        assert phase.connections.model_copy(update=opens) == other.connections


def test_one_path_opens_connections_and_has_no_replies() -> None:
    setup = setup_of({**NAMED, "paths": "outside->inside"})
    assert set(trial_of(100, setup).streams()) == {"outside->inside"}
    with pytest.raises(ConfigError, match="paths: is missing inside->outside: the Responder replies in each"):
        traffic.ConnectionTraffic(setup, SingleTrial(connections=100)).replies(84, 1000, 0)
    with pytest.raises(ConfigError, match="initiator: is inside, where no path begins: give one of outside"):
        setup_of({**NAMED, "paths": "outside->inside"}, initiator="inside")


@pytest.mark.parametrize(
    ("stateful", "conditions", "message"),
    [
        ({"source_ports": [1024, 1033]}, {"connections": 700_000}, "700,000 connections are more than the ranges"),
        ({"timeout_s": 30}, {"connections": 400_000}, "deletes a connection after 30 s .* take 41.2 s"),
        (
            {"source_ports": [1024, 65_535], "destination_ports": [1, 49_151]},
            {"connections": 1_000},
            "stateful: 64,512 source ports × 49,151 .* choose smaller ranges",
        ),
        ({}, {"connections": 10, "flows": 2}, "flows and connections .* each connection has ports of its own"),
        ({}, {"connections": 10, "foreground": "2:1"}, "native IPv6"),
        ({}, {"connections": 10, "ports": "fixed"}, "each connection has ports of its own"),
        ({}, {"connections": 100_000, "preliminary_rate": 1}, "100,000 s at 1 in a second: more than a day"),
        ({}, {"connections": 10, "preliminary_rate": "10%"}, "needs the media's speed"),
    ],
)
def test_what_is_not_possible_is_one_sentence(
    stateful: dict[str, Any], conditions: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        trial_of(setup=setup_of(**stateful), **conditions)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("source_ports", [2000, 1024], "first port above its last"),
        ("source_ports", [1024], "not a range of ports"),
        ("destination_ports", "7-9", "not a range of ports"),
        ("destination_ports", [1, 70_000], "65535"),
        ("initiator", "top", "left"),
        ("timeout_s", 0, "greater than 0"),
        ("timeouts", 5, "did you mean timeout_s"),
    ],
)
def test_invalid_keys_of_the_configuration(key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        setup_of(**{key: value})
    assert raised.value.key.startswith(f"stateful.{key}")


@pytest.mark.parametrize("side", ["left", "right"])
def test_keys_of_stateless_traffic_are_refused(side: str) -> None:
    mapping = {**NAT44, side: {**NAT44[side], "source_port": {"mode": "random", "min": 1, "max": 9}}}
    with pytest.raises(ConfigError, match=r"and connections .* exclude each other"):
        trial_of(10, setup_of(mapping))


def test_phases_that_contradict_their_connections_are_no_trials() -> None:
    trial = trial_of(100)
    [opening] = trial.preliminary
    for contradiction in ({"reverse": trial.reverse}, {"duration_ns": 2 * opening.duration_ns}):
        with pytest.raises(ValidationError):
            type(opening).model_validate({**dict(opening), **contradiction})
    assert trial.connections is not None
    each = trial.connections.model_copy(update={"use": ConnectionUse.EACH})
    with pytest.raises(ValidationError):
        Trial.model_validate({**dict(trial), "connections": each})


def test_a_warm_up_follows_the_opening_in_the_same_connections() -> None:
    trial = trial_of(100, warm_up_s=0.5, phase_gap_s=0.25)
    opening, warm_up = trial.preliminary
    assert opening.intended(Direction.FORWARD) == 100
    assert warm_up.connections is not None
    assert (warm_up.connections.use, warm_up.rest_ns) == (ConnectionUse.TRAFFIC, 250_000_000)
    assert warm_up.streams() == trial.streams()
    assert (trial.rest_ns, trial.connections) == (None, warm_up.connections)
    assert [one.trial for one in (opening, warm_up)] == [(trial.trial - 2) % 65536, (trial.trial - 1) % 65536]


@pytest.mark.parametrize(
    ("mapping", "destinations", "sources"),
    [
        (NAT44, ("198.19.0.2", "198.19.15.2"), ("198.19.0.2", "198.19.15.2")),
        (NAT64, ("64:ff9b::c613:2", "64:ff9b::c613:f02"), ("198.19.0.2", "198.19.15.2")),
    ],
)
@pytest.mark.parametrize("frame", [None, "ip(dscp=46)/udp"])
def test_connections_lead_to_all_networks_and_their_replies_come_from_there(
    mapping: dict[str, Any], frame: str | None, destinations: tuple[str, str], sources: tuple[str, str]
) -> None:
    trial = trial_of(1_600, setup_of(mapping, source_ports=[1024, 1123]), networks=16, frame=frame)
    forward, reverse = trial.streams().values()
    assert forward.networks == 16
    ends = {str(address) for one in address_range.destinations(forward) for address in (one.first, one.last)}
    assert ends == set(destinations)
    assert {str(own) for one in address_range.sources(reverse) for own in (one.first, one.last)} == set(sources)
    assert all("networks" not in one or one["networks"] == 1 for one in map(trial.request().get, LEFT_AND_RIGHT))
    with pytest.raises(ConfigError, match=r"1,601 connections are more .* 100 source ports × 1 .* × 16 pairs"):
        trial_of(1_601, setup_of(mapping, source_ports=[1024, 1123], destination_ports=1), networks=16)


def test_only_traffic_has_the_frames_of_modifiers_not_the_opening() -> None:
    trial = trial_of(100, modifiers=["broadcast"])
    [opening] = trial.preliminary
    assert [one.name for one in trial.streams()[Direction.FORWARD].additional] == ["broadcast"]
    assert opening.streams()[Direction.FORWARD].additional == ()
    assert opening.intended(Direction.FORWARD) == 100


# --- a simulated NAT ------------------------------------------------------------------------------


@dataclass
class Nat(SimulatedDevice):
    """A NAT44 with a table of ``capacity`` connections that opens at most ``rate_cps`` in a second."""

    capacity: int = 10**9
    rate_cps: float = 1e12
    evicts: bool = False
    """Whether a full table evicts its oldest connection; else it refuses the new one."""
    lost_replies: frozenset[int] = frozenset()
    """Connections whose first reply is lost, although they are in the table."""
    table: OrderedDict[int, None] = field(default_factory=OrderedDict)
    cannot_clear: bool = False
    keeps: int = 0
    """Connections that a deletion leaves."""
    cleared: int = 0
    deletion_cps: float = 20_000

    def __post_init__(self) -> None:
        super().__init__(Dut(name="NAT44"), has_connections=True)

    def clear_connections(self) -> float:
        """Delete all."""
        self.cleared += 1
        deleted = len(self.table)
        while not self.cannot_clear and len(self.table) > self.keeps:
            self.table.popitem()
        return 0.05 + deleted / self.deletion_cps

    def count_connections(self) -> int:
        """Those in the table."""
        return len(self.table)


@dataclass(frozen=True)
class Opened:
    """What differs in each phase that opens connections: members of its result and of its path's counts, and what the
    DUT did not get of its core."""

    result: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    missed: Starvation = HAD_ITS_CORES


class NatTester(SimulatedTester):
    """Of a :class:`Nat`, in no time."""

    def __init__(self, nat: Nat, opened: Opened | None = None) -> None:
        super().__init__()
        self.nat = nat
        self.opened = opened or Opened()
        self.learned: set[int] = set()
        self.lost: list[int] = []
        self.uses: list[ConnectionUse] = []

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        del on_progress
        assert trial.connections is not None
        self.trials.append(trial)
        self.uses.append(trial.connections.use)
        opens = trial.connections.use is ConnectionUse.OPEN
        passed = self._open(trial) if opens else self._reply(trial)
        differs = self.opened if opens else Opened()
        of_path = {"send_time_s": trial.duration_s, **differs.counts}
        by_path = {path: counts(trial.intended(path), passed, **of_path) for path in trial.streams()}
        members: dict[str, Any] = {
            "verdict": Verdict.VALID,
            "connections": ConnectionCounts(learned=len(self.learned), remapped=0, lost=len(self.lost)),
            "doubts": validity.doubts(trial, by_path, differs.missed),
            **({"paths": by_path} if trial.paths is not None else members_of(by_path)),
        }
        return TrialResult(trial=trial.trial, **{**members, **differs.result})

    def _open(self, trial: Trial) -> int:
        [stream] = trial.streams().values()
        assert trial.connections is not None
        wanted = trial.connections.count
        opened = min(wanted, int(wanted * self.nat.rate_cps / stream.rate_fps))
        self.learned = set()
        for connection in range(opened):
            if len(self.nat.table) >= self.nat.capacity:
                if not self.nat.evicts:
                    continue
                self.nat.table.popitem(last=False)
            self.nat.table[connection] = None
            self.learned.add(connection)
        return len(self.learned)

    def _reply(self, trial: Trial) -> int:
        assert trial.connections is not None
        probes = trial.connections.use is ConnectionUse.LOST
        asked = self.lost[: trial.intended([*trial.streams()][-1])] if probes else sorted(self.learned)
        broken = frozenset() if probes else self.nat.lost_replies
        self.lost = [one for one in asked if one not in self.nat.table or one in broken]
        return len(asked) - len(self.lost)


def plan_of(
    name: str, nat: Nat, timeout_s: float | None = None, mapping: dict[str, Any] | None = None, **conditions: Any
) -> Plan[Any]:
    definition, setup = procedures.find(name), setup_of(mapping, timeout_s=timeout_s)
    chosen = traffic.of(setup, definition.conditions(drain_s=0.1, **conditions)).sized()
    return Plan(
        traffic=traffic.of(setup, chosen),
        conditions=chosen,
        dut=nat,
    )


def measured(name: str, nat: Nat, out: Path, opened: Opened | None = None, **conditions: Any) -> Any:
    [point] = summary_of(name, nat, out, opened, **conditions).points
    return point


def summary_of(name: str, nat: Nat, out: Path, opened: Opened | None = None, **conditions: Any) -> Summary:
    plan = plan_of(name, nat, **conditions)
    return campaign.measure(procedures.find(name), NatTester(nat, opened), plan, out, Log())


def test_twenty_capacities_are_read_exactly(tmp_path: Path) -> None:
    generator = random.Random(9693)
    for number in range(20):
        nat = Nat(capacity=generator.randrange(1_000, 20_000), evicts=bool(number % 2))
        point = measured("table-capacity", nat, tmp_path / str(number), repetitions=1, max_rate="50k", resolution="50%")
        assert point.capacity.median == nat.capacity, (number, nat.evicts)
        assert point.limited_by == "dut"


def test_twenty_establishment_rates_are_read_within_a_percent(tmp_path: Path) -> None:
    generator = random.Random(4)
    for number in range(20):
        nat = Nat(rate_cps=generator.uniform(500, 200_000))
        point = measured("establishment-rate", nat, tmp_path / str(number), repetitions=1, resolution="0.5%")
        assert point.establishment_cps.median == pytest.approx(nat.rate_cps, rel=0.01)
        assert point.limited_by == "dut"


def test_no_rate_is_tried_at_which_connections_expire_in_the_trial(tmp_path: Path) -> None:
    """10,000 connections and their replies at alpha 0.8 take 22,500 / R seconds, beside twice the time that is
    received for; the DUT keeps them for 10.2 s."""
    conditions = {"repetitions": 1, "timeout_s": 10.2, "max_rate": "50k"}
    point = measured("establishment-rate", Nat(rate_cps=500), tmp_path / "slow", **conditions)
    assert point.establishment_cps.median is None
    assert point.upper_bound.load.value == 2_251
    point = measured("establishment-rate", Nat(rate_cps=3_000), tmp_path / "fast", **conditions)
    assert point.establishment_cps.median == pytest.approx(3_000, rel=0.02)


@pytest.mark.parametrize(
    ("name", "conditions", "option", "needed"),
    [
        ("establishment-rate", {"max_rate": "2k"}, "max_rate", "2,251"),
        ("establishment-rate", {"min_rate": "2k"}, "min_rate", "2,251"),
        ("establishment-rate", {"initial_rate": "2k"}, "initial_rate", "2,251"),
        ("establishment-rate", {"initial_rate": "900", "reply_share": 0}, "initial_rate", "991"),
        ("table-capacity", {"max_rate": "200"}, "max_rate", "226"),
        ("teardown-rate", {"preliminary_rate": "900"}, "preliminary_rate", "991"),
    ],
)
def test_rates_at_which_connections_expire_in_the_trial(
    name: str, conditions: dict[str, Any], option: str, needed: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError, match=f"at least {needed} in a second are needed") as raised:
        measured(name, Nat(), tmp_path, timeout_s=10.2, **conditions)
    assert raised.value.option == option


@pytest.mark.parametrize(
    ("name", "option"), [("establishment-rate", "max_rate"), ("teardown-rate", "preliminary_rate")]
)
def test_connections_have_no_share_of_a_links_speed(name: str, option: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no share of a link's speed") as raised:
        measured(name, Nat(), tmp_path, **{option: "10%"})
    assert raised.value.option == option


def test_no_trial_of_a_minute_is_asked_of_connections_that_have_none() -> None:
    """The timeout of 30 s is shorter than the default duration, which this procedure has not."""
    plan = plan_of("establishment-rate", Nat(), timeout_s=30, max_rate="50k", connections=1_000)
    plan.traffic.trial(plan.traffic.cases()[0], Load.fps(1_000), 1)


def test_waits_longer_than_the_timeout(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"after 5 s .* the waits of a trial alone take 6.2 s"):
        measured("establishment-rate", Nat(), tmp_path, timeout_s=5, phase_gap_s=6)


def test_a_capacity_that_the_timeout_hides_is_no_capacity(tmp_path: Path) -> None:
    point = measured("table-capacity", Nat(), tmp_path, timeout_s=10.2, max_rate="5k", repetitions=1)
    assert point.capacity.median == 16_000
    assert point.limited_by == "range"
    assert "of more it is not known: 32,000 connections at 5,000 in a second take longer" in point.message


FEW_PORTS = {**NAT44, "stateful": {"source_ports": [1024, 1123], "destination_ports": [1, 40]}}


def test_a_capacity_search_ends_with_the_combinations(tmp_path: Path) -> None:
    conditions = {"mapping": FEW_PORTS, "max_rate": "50k", "repetitions": 1}
    point = measured("table-capacity", Nat(), tmp_path / "all", **conditions)
    assert (point.capacity.median, point.limited_by) == (4_000, "range")
    with pytest.raises(PlanError, match="5,000 is more than the 4,000 combinations") as raised:
        measured("table-capacity", Nat(), tmp_path, most_connections=5_000, **conditions)
    assert raised.value.option == "most_connections"


def test_a_step_that_cannot_be_run_ends_a_capacity_search_with_what_fits(tmp_path: Path) -> None:
    point = measured("table-capacity", Nat(), tmp_path, max_rate="1", repetitions=1)
    assert (point.capacity.median, point.limited_by) == (64_000, "range")
    assert "of more it is not known: 128,000 connections take 128,000 s at 1 in a second: more than" in point.message


@pytest.mark.parametrize("conditions", [{"timeout_s": 10.2}, {"min_rate": "1k"}])
def test_a_search_of_rates_that_are_all_too_high_finds_no_capacity(conditions: dict[str, Any], tmp_path: Path) -> None:
    point = measured("table-capacity", Nat(rate_cps=200), tmp_path, max_rate="5k", repetitions=1, **conditions)
    assert (point.capacity.median, point.limited_by) == (None, "range")
    assert "1,000 connections pass at no rate of the search" in point.message
    slow = Nat(rate_cps=200, capacity=2_000)
    point = measured("table-capacity", slow, tmp_path / "lower", max_rate="5k", repetitions=1, resolution="50%")
    assert (point.capacity.median, point.limited_by) == (2_000, "dut")


def test_a_dut_with_connections_is_probed_by_opening_some() -> None:
    """A NAT forwards no replies before, however long one waits."""
    plan = plan_of("throughput", Nat(), connections=10_000)
    made = plan.traffic.trial(plan.traffic.cases()[0], Load.fps(probe_fps(plan.conditions)), 0)
    short = probe(made)
    assert (short.preliminary, short.duration_ns) == ((), PROBE_NS)
    assert short.connections is not None
    assert short.connections.use is ConnectionUse.OPEN
    assert short.streams().keys() == {Direction.FORWARD}


def test_a_dut_that_forwards_nothing_has_no_table(tmp_path: Path) -> None:
    point = measured("table-capacity", Nat(rate_cps=0), tmp_path, max_rate="5k", repetitions=2)
    assert (point.steps, point.limited_by, point.capacity.median) == ((), "dut", None)
    assert point.message.startswith("the DUT forwards nothing in the forward direction")
    assert len([line for line in journal_lines(tmp_path) if line["event"] == "result"]) == 2, "a rate, and the probe"


def test_a_collapse_ends_the_search_for_a_rate(tmp_path: Path) -> None:
    """With 1,500 connections or more."""

    class Collapses(NatTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            assert trial.connections is not None
            self.nat = Nat(rate_cps=0) if trial.connections.count >= 1_500 else nat
            return super().run(trial, on_progress)

    nat = Nat()
    plan = plan_of("table-capacity", nat, max_rate="5k", repetitions=1, capacity_error=500)
    [point] = campaign.measure(procedures.find("table-capacity"), Collapses(nat), plan, tmp_path, Log()).points
    assert isinstance(point, table_capacity.CapacityPoint)
    assert [(step.connections, step.collapsed, step.fits) for step in point.steps] == [
        (1_000, False, True),
        (2_000, True, False),
        (1_500, True, False),
    ]
    assert (point.capacity.median, point.limited_by) == (1_000, "dut")


def test_what_fits_is_told_if_more_cannot_be_measured(tmp_path: Path) -> None:
    nat = Nat()
    late = Opened(result={"verdict": Verdict.INVALID, "causes": (Cause(code="sender_late", text="a frame left late"),)})

    class Late(NatTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            assert trial.connections is not None
            self.opened = late if trial.connections.count > 4_000 else Opened()
            return super().run(trial, on_progress)

    plan = plan_of("table-capacity", nat, max_rate="50k", repetitions=1)
    [point] = campaign.measure(procedures.find("table-capacity"), Late(nat), plan, tmp_path, Log()).points
    assert isinstance(point, table_capacity.CapacityPoint)
    assert (point.capacity.median, point.limited_by) == (None, "tester")
    assert point.message.startswith("4,000 connections fit, of more it is not known: 8,000 connections could not be")


def test_the_limit_of_a_capacity_is_not_that_of_the_last_repetition(tmp_path: Path) -> None:
    """The DUT's table grows after the first one."""
    nat = Nat(capacity=1_500)

    class Growing(NatTester):
        def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
            begun = [one for one in (*self.trials, trial) if one.connections and one.connections.count == 1_000]
            nat.capacity = 1_500 if len(begun) <= 2 else 10**6  # two phases each
            return super().run(trial, on_progress)

    plan = plan_of("table-capacity", nat, max_rate="50k", repetitions=2, most_connections=2_000, capacity_error=100)
    [point] = campaign.measure(procedures.find("table-capacity"), Growing(nat), plan, tmp_path, Log()).points
    assert isinstance(point, table_capacity.CapacityPoint)
    assert point.limited_by == "dut"
    assert point.message.startswith("in 1 of 2 repetitions 1,500 connections fit")


@pytest.mark.parametrize(
    ("text", "connections"), [("10k", 10_000), ("1.5M", 1_500_000), (" 0.5k ", 500), ("12_000", 12_000), (7, 7)]
)
def test_numbers_of_connections(text: str | int, connections: int) -> None:
    assert make(SingleTrial, {"connections": text}).connections == connections


@pytest.mark.parametrize("text", ["k", "10K", "1.5", "0.0001k", "-3", "1e3", ""])
def test_texts_that_are_no_number_of_connections(text: str) -> None:
    with pytest.raises(ParameterError, match="is not a number of connections: give a whole number"):
        make(SingleTrial, {"connections": text})


def test_each_of_several_numbers_of_connections_is_measured() -> None:
    chosen = each(procedures.find("establishment-rate").conditions, {"connections": "1k,10k,100k"})
    assert [one.connections for one in chosen] == [1_000, 10_000, 100_000]
    with pytest.raises(ParameterError, match="the same value twice"):
        each(procedures.find("throughput").conditions, {"connections": "1k,1000"})


@pytest.mark.parametrize(
    ("name", "conditions"),
    [
        ("throughput", {"max_rate": "10k", "resolution": "50%"}),
        ("throughput", {"max_rate": "10k", "resolution": "50%", "search": "mlr"}),
        ("frame-loss", {"rates": "10k,5k"}),
        ("latency", {"rate": "10k", "tag_after_s": 0.1}),
        ("pdv", {"rate": "10k"}),
        ("teardown-rate", {}),
    ],
)
def test_a_table_that_stays_unfilled_is_a_finding_of_its_own(
    name: str, conditions: dict[str, Any], tmp_path: Path
) -> None:
    nat = Nat(capacity=4_000)
    chosen = {"connections": 10_000, "repetitions": 1, **conditions}
    chosen |= {} if name == "teardown-rate" else {"duration_s": 1}
    summary = summary_of(name, nat, tmp_path, **chosen)
    point: Any = summary.points[0]
    limits = {rate.limited_by for rate in point.rates} if name == "frame-loss" else {point.limited_by}
    assert limits == {"connections"}
    assert point.without_connections
    assert not point.limited_by_tester
    assert not point.has_number
    if name != "frame-loss":
        assert "the Responder learned 4,000 of 10,000 connections" in point.message
        assert "which counted 4,000 connections itself" in point.message
        tried = [line for line in journal_lines(tmp_path) if line["event"] == "result"]
        assert len(tried) == 4, "no other rate is tried: the rate has no part in it"
    [shown] = [text for text, warns in tables.messages(summary) if warns]
    assert "limited by connections that the DUT did not open" in shown


@pytest.mark.parametrize(
    ("name", "conditions"),
    [
        ("establishment-rate", {"max_rate": "50k", "resolution": "5%", "connections": 3_000}),
        ("table-capacity", {"max_rate": "5k", "resolution": "50%"}),
        ("teardown-rate", {"connections": 3_000, "preliminary_rate": "5k"}),
        ("throughput", {"max_rate": "10k", "connections": 10_000, "duration_s": 1}),
    ],
)
def test_figures_of_named_ports_are_those_of_left_and_right(
    name: str, conditions: dict[str, Any], tmp_path: Path
) -> None:
    plain, named = (
        measured(
            name, Nat(capacity=4_000, rate_cps=7_000), tmp_path / one, mapping=mapping, repetitions=1, **conditions
        )
        for one, mapping in (("plain", NAT44), ("named", NAMED))
    )
    assert (named.limited_by, named.message) == (
        plain.limited_by,
        plain.message.replace("forward", "inside->outside"),
    )
    assert named.main_figure() == plain.main_figure()
    assert named.has_number == (name != "throughput")


def test_only_validation_finds_that_connections_were_evicted(tmp_path: Path) -> None:
    evicting = {"capacity": 4_000, "evicts": True}
    blind = measured(
        "establishment-rate", Nat(**evicting), tmp_path / "blind", repetitions=1, max_rate="50k", reply_share=0
    )
    assert blind.establishment_cps.median == 50_000
    assert not blind.validated
    seeing = measured("establishment-rate", Nat(**evicting), tmp_path / "seeing", repetitions=1, max_rate="50k")
    assert seeing.establishment_cps.median is None
    assert "of 6,000 connections without a reply 6,000 are gone" in seeing.after_loss


def test_a_lost_frame_is_told_apart_from_a_lost_connection(tmp_path: Path) -> None:
    nat = Nat(lost_replies=frozenset(range(30)))
    point = measured("establishment-rate", nat, tmp_path, repetitions=1, max_rate="50k")
    assert "of 30 connections without a reply in 30 only a frame was lost" in point.after_loss


def test_of_very_many_lost_connections_only_some_are_asked(tmp_path: Path) -> None:
    conditions = {"connections": 50_000, "repetitions": 1, "max_rate": "50k"}
    point = measured("establishment-rate", Nat(capacity=4_000, evicts=True), tmp_path, **conditions)
    told = "of 46,000 connections without a reply, the first 10,000 were asked again: 10,000 are gone"
    assert told in point.after_loss


def test_a_tear_down_is_timed_with_and_without_connections(tmp_path: Path) -> None:
    point = measured("teardown-rate", Nat(), tmp_path, connections=5_000, repetitions=3)
    assert (point.connections, point.repetitions) == (5_000, 3)
    assert (set(point.deletion_s.values), set(point.empty_s.values)) == ({0.3}, {0.05})
    assert set(point.teardown_cps.values) == {5_000 / 0.3}


def test_connections_that_the_dut_had_evicted_are_not_torn_down(tmp_path: Path) -> None:
    point = measured("teardown-rate", Nat(capacity=4_000, evicts=True), tmp_path, connections=10_000)
    assert (point.teardown_cps.median, point.limited_by) == (None, "connections")
    assert "the DUT counted 4,000 of 10,000 connections" in point.message


def test_a_deletion_that_leaves_connections_has_no_time() -> None:
    nat = Nat(keeps=7)
    plan = plan_of("teardown-rate", nat, connections=5_000)
    trial = procedures.find("teardown-rate").make(plan).trial(plan.traffic.cases()[0], Load.fps(10_000), 0)
    with pytest.raises(ConfigError, match="has 7 connections after all were deleted"):
        phases.run(NatTester(nat), trial, dut=nat)
    assert nat.cleared == 2


def test_a_dut_that_counts_fewer_connections_than_were_opened_is_remarked_on(tmp_path: Path) -> None:
    conditions = {"connections": 10_000, "rates": "1k", "duration_s": 1, "repetitions": 1}
    summary = summary_of("frame-loss", Nat(capacity=4_000, evicts=True), tmp_path, **conditions)
    [remark] = [one.text for one in summary.remarks if one.about == "untracked"]
    assert remark.startswith("in 1 of 1 valid trials the DUT counted connections, as few as 4,000 of 10,000, fewer")
    assert not summary_of("frame-loss", Nat(), tmp_path / "all", **conditions).remarks


def test_a_cable_has_no_tear_down_rate() -> None:
    with pytest.raises(PlanError, match="no connections to delete"):
        procedures.find("teardown-rate").make(replace(plan_of("teardown-rate", Nat()), dut=Device(Dut())))


def test_a_capacity_needs_validation() -> None:
    with pytest.raises(PlanError, match="validated"):
        procedures.find("table-capacity").make(plan_of("table-capacity", Nat(), reply_share=0))


# --- phases ---------------------------------------------------------------------------------------


def test_the_duts_connections_are_deleted_before_each_trial() -> None:
    nat = Nat()
    nat.table[5] = None
    result = phases.run(NatTester(nat), trial_of(100), dut=nat)
    assert (nat.cleared, result.dut_connections) == (1, 100)


def test_a_table_that_is_not_empty_is_no_beginning() -> None:
    nat = Nat(cannot_clear=True)
    nat.table[5] = None
    with pytest.raises(
        ConfigError, match=r"^dut\.commands\.clear_connections: .*has 1 connection after all .* of ssh\?"
    ):
        phases.run(NatTester(nat), trial_of(100), dut=nat)


def test_connections_that_were_not_opened_are_a_finding_and_no_loss() -> None:
    tester = NatTester(Nat(capacity=60))
    result = phases.run(tester, trial_of(100), dut=tester.nat)
    assert tester.uses == [ConnectionUse.OPEN]
    assert result.verdict is Verdict.INVALID
    [cause] = result.causes
    assert cause.code == "not_opened"
    assert "learned 60 of 100 connections: the frames of 40 did not pass" in cause.text
    assert not result.directions()


def test_after_lost_replies_their_connections_are_asked_once_more() -> None:
    tester = NatTester(Nat(capacity=60, evicts=True, lost_replies=frozenset({99})))
    result = phases.run(tester, trial_of(100), dut=tester.nat)
    assert tester.uses == [ConnectionUse.OPEN, ConnectionUse.TRAFFIC, ConnectionUse.LOST]
    assert (result.connections_probed, result.connections_gone) == (41, 40)
    assert tester.trials[-1].intended(Direction.REVERSE) == 41
    numbers = [one.trial for one in tester.trials]
    assert numbers == [5, 6, 7]


@pytest.mark.parametrize("reply_share", [0.8, 0])
def test_connections_that_arrived_but_were_not_learned_are_no_pass(reply_share: float, tmp_path: Path) -> None:
    lacking = Opened(result={"connections": ConnectionCounts(learned=9_999, remapped=0, lost=0)})
    conditions = {"repetitions": 1, "max_rate": "5k", "reply_share": reply_share}
    point = measured("establishment-rate", Nat(), tmp_path, lacking, **conditions)
    assert point.establishment_cps.median is None
    assert point.limited_by == "connections"
    assert "learned 9,999 of 10,000 connections: the frames of 1 arrived, but not as UDP in IPv4" in point.message


@pytest.mark.parametrize(("proof", "is_kept"), [("at least 9 are the DUT's own loss", True), (None, False)])
def test_a_trial_that_is_repeated_anyway_keeps_a_proof_of_its_opening(proof: str | None, is_kept: bool) -> None:
    cause = Cause(code="sender_bursts", text="12 frames left late")
    disturbed = Opened(result={"verdict": Verdict.INVALID, "causes": (cause,), "proven_failed": proof})
    trial = validated(Nat(), rate_cps=1_000)
    trial = trial.model_copy(update={"question": trial.question.model_copy(update={"may_end_early": True})})
    result = phases.run(NatTester(Nat(rate_cps=500), disturbed), trial)
    assert (result.verdict, result.proven_failed) == (Verdict.INVALID, proof)
    assert (result.ended_in is not None, result.worst_loss_ratio) == ((True, 0.5) if is_kept else (False, 0))


def validated(dut: Nat, rate_cps: int) -> Trial:
    """A trial that opens 10,000 connections at that rate."""
    plan = plan_of("establishment-rate", dut, connections=10_000)
    return stateful.trial(plan, plan.conditions, plan.traffic.cases()[0], rate_cps, 0, reply_share=0.8)


def late_burst(frames: int, longest: int | None = None) -> dict[str, Any]:
    """Counts of an opening phase whose sender stalled."""
    bins = tuple(frames if part == 100 else 0 for part in range(LOSS_BINS))
    lateness = Quantiles(p50=1, p99=1, p999=1, max=40_000)
    return {"lateness_us": lateness, "late_bursts": LateBursts(frames=frames, longest=longest, bins=bins)}


def starved(waited_s: float = 0.0, share: float | None = None) -> Opened:
    return Opened(missed=Starvation(share=share, waited_s=waited_s))


DISTURBED = [
    ("a burst", Opened(counts=late_burst(4_000)), {}, {"sender_bursts"}),
    ("too few frames for the missing connections", Opened(counts=late_burst(499)), {}, set()),
    ("bursts as in any trial", Opened(counts=late_burst(4_000, longest=32)), {}, set()),
    ("frames lost in connections that are left", Opened(counts=late_burst(4_000)), {"capacity": 10**6}, set()),
    ("a wait for the core", starved(waited_s=0.005), {}, {"dut_disturbed"}),
    ("one that is too short", starved(waited_s=0.00498), {}, set()),
    (
        "one that is shorter than from a frame to the next",
        starved(waited_s=0.000009),
        {"lost_replies": frozenset({0}), "capacity": 9_999},
        set(),
    ),
    ("others on the core", starved(share=0.06), {}, {"dut_disturbed"}),
]


@pytest.mark.parametrize(("opened", "nat", "codes"), [row[1:] for row in DISTURBED], ids=[row[0] for row in DISTURBED])
def test_connections_that_a_disturbed_opening_may_have_cost_are_no_loss(
    opened: Opened, nat: dict[str, Any], codes: set[str]
) -> None:
    """The DUT forwards all frames of the opening phase at 100,000/s, and has no entry for 500 of 10,000."""
    dut = Nat(**{"capacity": 9_500, "evicts": True, "lost_replies": frozenset(range(500)), **nat})
    result = phases.run(NatTester(dut, opened), validated(dut, rate_cps=100_000), dut=dut)
    assert {cause.code for cause in result.causes} == codes
    assert all("500 connections were missing later" in cause.text for cause in result.causes if cause.direction)
    assert result.verdict is (Verdict.INVALID if codes else Verdict.VALID)
    assert TrialResult.model_validate(to_json(result)) == result


def test_a_disturbed_opening_before_a_pass_is_a_pass(tmp_path: Path) -> None:
    opened = Opened(counts=late_burst(4_000))
    point = measured("establishment-rate", Nat(), tmp_path, opened, repetitions=1, max_rate="50k")
    assert point.establishment_cps.median == 50_000


class Clock:
    """Time that only those take who say so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(phases, "monotonic", lambda: self.now_s)


class SlowNat(Nat):
    """It takes a while to count its connections."""

    clock: Clock
    counts_for_s: float

    def count_connections(self) -> int:
        self.clock.now_s += self.counts_for_s if self.table else 0
        return super().count_connections()


class TimedTester(NatTester):
    """Its phases last as long as they are meant to."""

    clock: Clock

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self.clock.now_s += trial.whole_s
        return super().run(trial, on_progress)


@pytest.mark.parametrize(
    ("counts_for_s", "lost", "probed", "is_valid"),
    [(1, 500, 500, True), (9.5, 500, 150, True), (9.65, 500, None, True), (11, 500, None, False), (11, 0, None, True)],
)
def test_connections_that_may_have_expired_are_no_loss(
    monkeypatch: pytest.MonkeyPatch, counts_for_s: float, lost: int, probed: int | None, is_valid: bool
) -> None:
    """The phases take 0.225 s, and 0.2 s to drain; 2,000 frames/s ask which connections are left."""
    nat = SlowNat(lost_replies=frozenset(range(lost)))
    tester = TimedTester(nat)
    nat.clock = tester.clock = Clock(monkeypatch)
    nat.counts_for_s = counts_for_s
    plan = plan_of("establishment-rate", nat, connections=1_000)
    trial = stateful.trial(plan, plan.conditions, plan.traffic.cases()[0], 10_000, 0, reply_share=0.8)
    result = phases.run(tester, trial, dut=nat, timeout_s=10)
    assert (result.verdict is Verdict.VALID, result.connections_probed) == (is_valid, probed)
    assert {cause.code for cause in result.causes} == (set() if is_valid else {"connections_expired"})


def test_a_journal_of_phases_can_be_resumed(tmp_path: Path) -> None:
    measured("establishment-rate", Nat(rate_cps=7_000), tmp_path, repetitions=2, resolution="5%")
    results = [line for line in journal_lines(tmp_path) if line["event"] == "result"]
    assert any(line["result"].get("ended_in") is not None for line in results)
    whole = [line["result"] for line in results if line["result"].get("ended_in") is None]
    assert all(line["dut_connections"] == 10_000 for line in whole)


def test_the_load_counts_connections() -> None:
    procedure = procedures.find("establishment-rate").make(plan_of("establishment-rate", Nat()))
    [case] = procedure.cases
    assert isinstance(case, Case)
    assert str(procedure.first_load(case)) == "1,000 connections/s"
    trial = procedure.trial(case, Load(2_000, procedure.first_load(case).unit), 0)
    [opening] = trial.preliminary
    assert (opening.intended(Direction.FORWARD), opening.duration_s) == (10_000, 5.0)
    assert trial.reverse is not None
    assert trial.reverse.rate_fps == 1_600
