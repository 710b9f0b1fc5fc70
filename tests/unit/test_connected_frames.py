# SPDX-License-Identifier: Apache-2.0
"""Frames of any headers and sizes in connections: what of them is the connection's, and what goes beside."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf import traffic
from dutperf.model import (
    Case,
    ConnectionCounts,
    DescribedField,
    DescribedFrame,
    Direction,
    KindCounts,
    Load,
    Phase,
    Stream,
    Trial,
    TrialResult,
    Verdict,
    address_range,
)
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.tester import ProgressCallback, phases
from dutperf.tester.simulated import SimulatedTester
from plans import NAT44, NAT64, counts

DUAL = {
    "left": {**NAT44["left"], "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"},
    "right": {**NAT44["right"], "ipv6": "2001:2:0:8000::2/64", "gateway6": "2001:2:0:8000::1"},
}
RANGE = {"mode": "random", "min": 2, "max": 5}
Config = dict[str, Any]


def trial_of(config: Config, **conditions: Any) -> Trial:
    setup: Setup = configuration.parse(config, "test")
    given = SingleTrial(**{"duration_s": 1, "drain_s": 0.1, "connections": 100} | conditions)
    kind = traffic.of(setup, traffic.of(setup, given).sized())
    kind.check()
    [case] = kind.cases()
    assert isinstance(case, Case)
    return kind.trial(case, Load.fps(1000), 0)


def streams(trial: Trial) -> tuple[Stream, Stream]:
    both = trial.streams()
    return both[Direction.FORWARD], both[Direction.REVERSE]


def of_connection(frame: DescribedFrame) -> dict[tuple[str, str | None], DescribedField]:
    """Fields by mode and part."""
    return {(one.mode, one.part): one for one in frame.fields}


def opening(trial: Trial) -> Phase:
    return trial.preliminary[0]


@pytest.mark.parametrize("headers", ["ip/udp", "vlan(id=7)/ip(dscp=46)/udp", "vlan/vlan(id=9)/ip/udp"])
@pytest.mark.parametrize(("config", "left", "right"), [(NAT44, 20, 20), (NAT64, 40, 20)])
def test_open_addresses_and_ports_are_those_of_the_connection(
    headers: str, config: Config, left: int, right: int
) -> None:
    forward, reverse = streams(trial_of(config, frame=headers))
    [frame] = forward.frames
    fields = of_connection(frame)
    udp = 8 * (14 + 4 * headers.count("vlan") + left)
    assert fields.keys() == {("connection", "source_port"), ("connection", "destination_port")}
    assert [one.bit for one in fields.values()] == [udp, udp + 16]
    assert [(one.first, one.count) for one in fields.values()] == [("1024", "100"), ("1", "1")]
    [reply] = reverse.frames
    learned = of_connection(reply)
    udp = 8 * (14 + 4 * headers.count("vlan") + right)
    assert {key: (one.bit, one.bits) for key, one in learned.items()} == {
        ("learned", "destination_address"): (udp - 32, 32),
        ("learned", "source_port"): (udp, 16),
        ("learned", "destination_port"): (udp + 16, 16),
    }
    assert list(address_range.destinations(reverse)) == []


def test_addresses_that_vary_are_parts_of_connections() -> None:
    config = {
        "left": NAT44["left"] | {"varying_address": RANGE},
        "right": NAT44["right"] | {"varying_address": RANGE | {"offset4": 1}},
    }
    plain, described = trial_of(config), trial_of(config, frame="ip/udp")
    forward, reverse = streams(described)
    fields, back = of_connection(forward.frames[0]), of_connection(reverse.frames[0])
    assert (fields["connection", "source_address"].bit, fields["connection", "destination_address"].bit) == (
        8 * (26 + 2),
        8 * (30 + 1),
    )
    assert {(one.first, one.count) for key, one in fields.items() if "address" in str(key)} == {("2", "4")}
    assert back["connection", "source_address"].bit == 8 * (26 + 1)
    for ranges in (address_range.sources, address_range.destinations):
        assert set(ranges(forward)) == set(ranges(streams(plain)[0]))
    assert set(address_range.sources(reverse)) == set(address_range.sources(streams(plain)[1]))


@pytest.mark.parametrize("conditions", [{}, {"frame": "ip/udp"}, {"frame_sizes": ("imix",)}])
def test_other_paths_of_named_ports_carry_frames_of_no_connection(conditions: Config) -> None:
    third = {"port": "eth3", "version": 4, "ipv4": "198.18.3.2/24", "gateway4": "198.18.3.1"}
    paths = ["c -> b", "a -> b", "b -> a", "a -> c"]
    ports = {"a": NAT44["left"], "b": NAT44["right"], "c": third}
    stateful = {**NAT44.get("stateful", {}), "initiator": "a"}
    trial = trial_of({"ports": ports, "paths": paths, "stateful": stateful}, **conditions)
    there, back = Direction("a->b"), Direction("b->a")
    assert set(opening(trial).streams()) == {there}
    assert trial.connections is not None
    assert trial.connections.initiator is there
    for way, stream in trial.streams().items():
        connected = any(frame.is_connected for frame in stream.frames)
        assert connected == (bool(stream.frames) and way in (there, back))
        if stream.foreground is not None and way not in (there, back):
            assert stream == trial_of({"ports": ports, "paths": paths}, connections=None).streams()[way]
    assert list(address_range.destinations(trial.streams()[there])) != []


@pytest.mark.parametrize(
    ("conditions", "between"),
    [
        ({"modifiers": ["extension-header:destination:50%"]}, [0, 8]),
        ({"modifiers": ["extension-header:routing+destination+fragment"]}, [24 + 8 + 8]),
        ({"frame": "ip/hop_by_hop/udp"}, [8]),
    ],
)
def test_extension_headers_are_between_a_connection_s_address_and_ports(conditions: Config, between: list[int]) -> None:
    config = {"left": NAT64["left"] | {"varying_address": RANGE}, "right": NAT64["right"]}
    if "frame" in conditions:
        config["right"] = config["right"] | {"frame": "ip/udp"}
        config["left"] = config["left"] | {"frame": conditions["frame"]}
        conditions = {}
    trial = trial_of(config, frame_sizes=(128,), **conditions)
    forward, reverse = streams(trial)
    assert len(forward.frames) == len(between)
    for frame, size in zip(forward.frames, between, strict=True):
        fields = of_connection(frame)
        assert fields["connection", "source_address"].bit == 8 * (14 + 8 + 14)
        udp = 8 * (14 + 40 + size)
        assert (fields["connection", "source_port"].bit, fields["connection", "destination_port"].bit) == (
            udp,
            udp + 16,
        )
    assert all(frame.is_connected for frame in reverse.frames)
    assert [frame.is_connected for frame in opening(trial).streams()[Direction.FORWARD].frames] == [True] * len(between)


def test_each_connection_is_opened_by_a_frame_of_its_own_kind_alone() -> None:
    """What belongs to no connection has no place where each frame opens one."""
    each = [
        {"name": "inside", "directions": "forward", "frame": "vlan(id=10)/ip/udp", "sizes": "imix", "share": 9},
        {"name": "ping", "directions": "forward", "frame": "vlan(id=10)/ip/icmp"},
        {"name": "outside", "directions": "reverse", "frame": "vlan(id=10)/ip/udp"},
    ]
    trial = trial_of({**NAT44, "streams": each})
    forward, _ = streams(trial)
    assert forward.streams == ("inside", "ping")
    assert of_connection(forward.frames[-1]) == {}
    opened = opening(trial).streams()[Direction.FORWARD]
    assert opened.sizes == (68, 594, 1518)
    assert [opened.order.count(kind) for kind in range(3)] == [21, 12, 3]
    assert all(of_connection(frame) for frame in opened.frames)
    assert opening(trial).intended(Direction.FORWARD) == 100


def test_native_ipv6_belongs_to_no_connection() -> None:
    trial = trial_of(DUAL, foreground="4:3")
    for stream in streams(trial):
        foreground, native = stream.frames
        assert stream.streams == ("foreground", "native IPv6")
        assert {mode for mode, _ in of_connection(foreground)} <= {"connection", "learned"}
        assert {mode for mode, _ in of_connection(native)} == {"random"}
    [only] = opening(trial).streams()[Direction.FORWARD].frames
    assert of_connection(only).keys() == {("connection", "source_port"), ("connection", "destination_port")}


@pytest.mark.parametrize(
    ("config", "conditions", "message"),
    [
        (NAT44, {"frame": "ip/tcp"}, "frame: no frames belong to connections: these are ip/udp without"),
        (NAT44, {"frame": "ip/udp(destination=53)"}, "frame: no frames belong to connections"),
        (NAT44, {"frame": "ip(source=198.18.0.9)/udp"}, "frame: no frames belong to connections"),
        (NAT44, {"frame": "ip(options=rr(3))/udp"}, "frame: no frames belong to connections"),
        (NAT44, {"frame": "mpls(label=17)/ip/udp"}, "frame: no frames belong to connections"),
        (NAT44, {"frame": "vlan(id=5)"}, "frame: no frames belong to connections"),
        (NAT64, {"modifiers": ["extension-header:esp"]}, "no frames belong to connections"),
        ({**NAT44, "streams": [{"name": "a", "frame": "ip/icmp"}]}, {}, "streams: no frames belong to connections"),
        (
            {**NAT44, "streams": [{"name": "a", "flows": 5}]},
            {},
            r"streams\.0\.flows: frames of connections have no flows",
        ),
    ],
)
def test_some_frames_of_each_direction_belong_to_connections(config: Config, conditions: Config, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        trial_of(config, **conditions)


class DropsBySize(SimulatedTester):
    """A tester at a DUT that keeps all connections and drops replies of some sizes."""

    def __init__(self, dropped: set[int]) -> None:
        super().__init__()
        self.dropped = dropped

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        del on_progress
        assert trial.connections is not None
        self.trials.append(trial)
        lost = 0
        of_ways = {}
        for way, stream in trial.streams().items():
            kinds = []
            for number, frame in enumerate(stream.frames):
                sent = sum(1 for k in range(trial.intended(way)) if stream.order[k % len(stream.order)] == number)
                passed = 0 if way is Direction.REVERSE and frame.size in self.dropped else sent
                lost += (sent - passed) if frame.is_connected else 0
                kinds.append(KindCounts(name=frame.name, stream=frame.stream, sent=sent, received=passed))
            received = sum(kind.received for kind in kinds)
            of_ways[str(way)] = counts(trial.intended(way), received, kinds=tuple(kinds))
        count = trial.connections.count
        of_connections = ConnectionCounts(learned=count, remapped=0, lost=min(lost, count))
        return TrialResult(trial=trial.trial, verdict=Verdict.VALID, connections=of_connections, **of_ways)


def test_connections_are_not_asked_by_what_the_dut_drops_for_its_size() -> None:
    each = [
        {"name": "inside", "directions": "forward", "sizes": "imix"},
        {"name": "outside", "directions": "reverse", "sizes": "imix", "share": 3},
        {"name": "log", "directions": "reverse", "frame": "ip/udp(source=9,destination=514)"},
    ]
    tester = DropsBySize({594})
    result = phases.run(tester, trial_of({**NAT44, "streams": each}))
    [_, measured, probe] = tester.trials
    assert {size for one in measured.streams().values() for size in one.sizes} == {64, 594, 1518}
    assert [one.size for one in probe.streams()[Direction.REVERSE].frames] == [64, 1518]
    assert all(one.is_connected for one in probe.streams()[Direction.REVERSE].frames)
    assert result.connections_probed == 100
    assert result.connections_gone == 0
