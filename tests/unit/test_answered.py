# SPDX-License-Identifier: Apache-2.0
"""For which addresses the ports answer: all that the frames of a trial have at their ends, and no others."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP

from dutperf import traffic
from dutperf.frames import Endpoints, Stack, build
from dutperf.judge.answered import with_answers
from dutperf.model import DescribedField, Direction, Stream, Trial, VaryingAddress
from dutperf.model import address_range as ranges
from dutperf.model.address_range import AddressRange
from dutperf.setup.conditions import Usual
from dutperf.setup.configuration import ConfigError, Setup, parse
from dutperf.setup.ports import open_request
from dutperf.traffic.replayed import Replaying, recording_of, trial_of
from plans import make_trial
from protocol_schemas import REQUESTS
from recordings import capture, udp

LEFT: dict[str, Any] = {"port": "null", "version": 4, "ipv4": "198.18.0.2/16", "gateway_mac": "02:00:00:00:00:0a"}
RIGHT: dict[str, Any] = {"port": "null", "version": 4, "ipv4": "198.19.0.2/16", "gateway_mac": "02:00:00:00:00:0b"}
LEFT6 = LEFT | {"version": 6, "ipv6": "2001:2::2/64"}
Answers = dict[str, Any]


def contains(one: AddressRange, text: str) -> bool:
    """As the engine decides it (engine/frame/address_range.hpp)."""
    address, mask = int(ip_address(text)), one.mask
    same = address & ~mask == int(one.first) & ~mask
    return same and int(one.first) & mask <= address & mask <= int(one.last) & mask


@pytest.mark.parametrize(
    ("one", "inside", "outside"),
    [
        (ranges.one(ip_address("198.19.0.3")), ["198.19.0.3"], ["198.19.0.2", "198.19.0.4"]),
        (
            ranges.varying(ip_address("198.18.0.2"), VaryingAddress(mode="random", min=2, max=300)),
            ["198.18.0.2", "198.18.1.44"],
            ["198.18.0.1", "198.18.1.45", "198.19.0.2"],
        ),
        (
            ranges.varying(ip_address("2001:2::2"), VaryingAddress(mode="random", min=1, max=2, offset6=6)),
            ["2001:2:0:1::2", "2001:2:0:2::2"],
            ["2001:2::2", "2001:2:0:3::2", "2001:2:0:1::3"],
        ),
        (ranges.in_networks(ip_address("198.19.0.2"), 4), ["198.19.0.2", "198.19.3.2"], ["198.19.4.2", "198.19.3.3"]),
        (
            ranges.in_networks(ip_address("2001:2:0:8000::2"), 256),
            ["2001:2:0:8000::2", "2001:2:0:80ff::2"],
            ["2001:2:0:8100::2", "2001:2:0:8000::3"],
        ),
        (ranges.of_network(IPv4Network("198.19.0.0/30")), ["198.19.0.0", "198.19.0.3"], ["198.19.0.4"]),
    ],
)
def test_ranges_have_their_addresses(one: AddressRange, inside: list[str], outside: list[str]) -> None:
    assert [text for text in (*inside, *outside) if contains(one, text)] == inside


def described(text: str) -> Stream:
    endpoints = Endpoints(ipv4=(ip_address("198.18.0.2"), ip_address("198.19.0.2")))  # type: ignore[arg-type]
    frame = build(Stack.parse(text), 128, endpoints, Direction.FORWARD, flows=3)
    return Stream(rate_fps=1, frames=(frame,))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("ipv4/udp", ["198.19.0.2"], ["198.19.0.3"]),
        ("vlan(id=5)/ipv4(destination=198.19.0.7)/udp", ["198.19.0.7"], ["198.19.0.2"]),
        ("ipv4(destination=increment(198.19.0.9,count=300))/udp", ["198.19.0.9", "198.19.1.52"], ["198.19.1.53"]),
        ("ipv4(destination=decrement(198.19.0.9,198.19.0.5))/udp", ["198.19.0.5", "198.19.0.9"], ["198.19.0.4"]),
        ("ipv4(destination=random(198.19.0.5,198.19.0.6))/udp", ["198.19.0.5", "198.19.0.6"], ["198.19.0.7"]),
        ("ipv4(destination=list(198.19.0.5,198.19.0.9))/udp", ["198.19.0.5", "198.19.0.9"], ["198.19.0.10"]),
        ("ipv6(source=2001:2::2,destination=2001:2::7)/udp", ["2001:2::7"], ["2001:2::2"]),
    ],
)
def test_destinations_of_described_frames(text: str, inside: list[str], outside: list[str]) -> None:
    [one] = ranges.destinations(described(text))
    assert [each for each in (*inside, *outside) if contains(one, each)] == inside


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (
            {"bit": 256, "bits": 16, "mode": "connection", "part": "destination_address", "first": "9", "count": "3"},
            [("198.19.0.9", "198.19.0.11")],
        ),
        ({"bit": 240, "bits": 32, "mode": "learned", "part": "destination_address"}, []),
    ],
)
def test_destinations_of_connections(field: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    [frame] = described("ipv4/udp").frames
    frame = frame.model_copy(update={"fields": (DescribedField.model_validate(field),)})
    stream = Stream(rate_fps=1, frames=(frame,))
    assert [(str(one.first), str(one.last)) for one in ranges.destinations(stream)] == expected
    assert list(ranges.sources(stream)) == [ranges.one(ip_address("198.18.0.2"))]
    params = Trial(trial=0, duration_ns=1, drain_ns=0, forward=stream).request()
    REQUESTS.validate({"id": 1, "method": "run", "params": params})


def answers(setup: Setup, trial: Trial) -> dict[str, Answers]:
    """Of each path, as in the request to the engine, which the schema allows."""
    opened = open_request(setup, 1518)
    params = with_answers(trial.request(), trial, opened)
    REQUESTS.validate({"id": 1, "method": "open", "params": opened})
    REQUESTS.validate({"id": 2, "method": "run", "params": params})
    streams = params.get("paths", params)
    return {str(direction): streams[direction].get("answers_for", {}) for direction in trial.streams()}


def made(setup: Setup, **conditions: Any) -> Trial:
    return make_trial(setup, Usual(**conditions), 84, 1, 0)


def test_a_host_answers_for_itself_alone_if_its_frames_have_no_other_address() -> None:
    setup = parse({"left": LEFT, "right": RIGHT}, "test")
    assert answers(setup, made(setup)) == {"forward": {}, "reverse": {}}


def test_networks_are_answered_for_where_their_frames_arrive() -> None:
    setup = parse({"left": LEFT, "right": RIGHT}, "test")
    left, right = ({"first": f"{net}.0.2", "last": f"{net}.3.2", "mask": "0.0.255.0"} for net in ("198.18", "198.19"))
    assert answers(setup, made(setup, networks=4)) == {
        "forward": {"to": {"ipv4": [right]}},
        "reverse": {"to": {"ipv4": [left]}},
    }


def test_behind_a_translator_the_networks_are_those_of_the_port_s_own_address() -> None:
    left = LEFT6 | {"seen_as": "198.18.0.2"}
    del left["ipv4"]
    setup = parse({"left": left, "right": RIGHT | {"seen_as": "2001:2:0:1000::2"}}, "test")
    found = answers(setup, made(setup, networks=2, directions="forward"))
    networks = [{"first": "198.19.0.2", "last": "198.19.1.2", "mask": "0.0.255.0"}]
    assert found["forward"] == {"translated": {"ipv4": networks}}


def test_varying_addresses_are_answered_for_in_both_versions_and_directions() -> None:
    varying = {"mode": "random", "min": 2, "max": 9}
    setup = parse({"left": LEFT | {"ipv6": "2001:2::2/64", "varying_address": varying}, "right": RIGHT}, "test")
    range4 = {"first": "198.18.0.2", "last": "198.18.0.9", "mask": "0.0.255.255"}
    range6 = {"first": "2001:2::2", "last": "2001:2::9", "mask": "::ffff"}
    assert open_request(setup, 1518)["left"]["answers_for"] == {"ipv4": [range4], "ipv6": [range6]}
    assert answers(setup, made(setup)) == {
        "forward": {"from": {"ipv4": [range4]}},
        "reverse": {"to": {"ipv4": [range4]}},
    }


def test_the_next_hop_of_routing_updates_is_answered_for() -> None:
    left, right = LEFT6, RIGHT | {"version": 6, "ipv6": "2001:2:0:8000::2/64"}
    setup = parse({"left": left, "right": right}, "test")
    found = answers(setup, made(setup, modifiers=["routing-updates"]))
    assert found["forward"] == {"from": {"ipv6": [{"first": "fe80::2"}]}}


def test_frames_of_a_replay_have_the_addresses_of_the_capture(tmp_path: Path) -> None:
    ends = [("198.18.0.5", "198.19.0.5"), ("198.18.0.6", "198.19.0.6"), ("198.18.0.5", "198.19.0.9")]
    file = capture(tmp_path / "some.pcap", [udp(network=IP(src=source, dst=to)) for source, to in ends])
    setup = parse({"left": LEFT, "right": RIGHT}, "test")
    trial = trial_of(recording_of(file, Replaying()), Replaying(rate=1000), 1)
    everything = "255.255.255.255"
    assert answers(setup, trial)["forward"] == {
        "from": {"ipv4": [{"first": "198.18.0.5", "last": "198.18.0.6", "mask": everything}]},
        "to": {"ipv4": [{"first": "198.19.0.5", "last": "198.19.0.6", "mask": everything}, {"first": "198.19.0.9"}]},
    }


def test_groups_and_other_addresses_of_nobody_are_left_out() -> None:
    given = [
        ranges.one(ip_address(text)) for text in ("224.0.0.9", "255.255.255.255", "0.0.0.0", "ff02::1", "198.18.0.9")
    ]
    assert [str(one.first) for one in ranges.merged(given)] == ["198.18.0.9"]


def test_nobody_asks_where_a_cable_joins_the_ports() -> None:
    sides = {"left": dict(LEFT), "right": dict(RIGHT)}
    for side in sides.values():
        del side["gateway_mac"]
    setup = parse(sides, "test")
    assert answers(setup, made(setup, networks=4)) == {"forward": {}, "reverse": {}}


def test_further_addresses_are_those_of_the_configuration() -> None:
    setup = parse(
        {"left": LEFT, "right": RIGHT | {"answers_for": ["198.19.0.3", "198.19.4.0/24", "2001:2::/64"]}}, "test"
    )
    assert open_request(setup, 1518)["right"]["answers_for"] == {
        "ipv4": [{"first": "198.19.0.3"}, {"first": "198.19.4.0", "last": "198.19.4.255", "mask": "0.0.0.255"}],
        "ipv6": [{"first": "2001:2::", "last": "2001:2::ffff:ffff:ffff:ffff", "mask": "::ffff:ffff:ffff:ffff"}],
    }
    for wrong in ("198.19.0.3/24", "224.0.0.0/4", "host", 5):
        with pytest.raises(ConfigError, match=r"right\.answers_for"):
            parse({"left": LEFT, "right": RIGHT | {"answers_for": [wrong]}}, "test")


def test_named_ports_answer_at_the_ends_of_their_paths() -> None:
    ports = {"a": LEFT, "b": RIGHT | {"networks": 2}, "c": RIGHT | {"ipv4": "198.19.0.3/16"}}
    setup = parse({"ports": ports, "paths": ["a->b", "a->c"]}, "test")
    found = answers(setup, made(setup))
    assert found == {
        "a->b": {"to": {"ipv4": [{"first": "198.19.0.2", "last": "198.19.1.2", "mask": "0.0.255.0"}]}},
        "a->c": {},
    }


def test_an_ipv6_network_of_one_address_is_one_address() -> None:
    assert ranges.one(IPv6Address("2001:2::7")).request() == {"first": "2001:2::7"}


SOME_FLOWS = "destination=increment(198.19.0.2,count=1000,by=flow)"
ROUTED: dict[str, dict[str, Any]] = {
    name: {"port": f"eth{number}", "version": 4, "ipv4": f"198.{net}.0.2/24", "gateway4": f"198.{net}.0.1"}
    for name, number, net in (("left", 1, 18), ("right", 2, 19))
}


@pytest.mark.parametrize(
    ("side", "changes", "conditions", "key", "texts"),
    [
        (
            "left",
            {"varying_address": {"mode": "random", "min": 0, "max": 255}},
            {},
            "left.varying_address",
            ["198.18.0.0 (of the network", "198.18.0.1 (the DUT's own)", "broadcast", "for example min 2, max 254"],
        ),
        (
            "right",
            {"varying_address": {"mode": "increasing", "min": 1, "max": 9}},
            {},
            "right.varying_address",
            ["198.19.0.1 to 198.19.0.9", "198.19.0.1 (the DUT's own)", "for example min 2, max 9"],
        ),
        (
            "right",
            {"varying_address": {"mode": "random", "min": 0xC612, "max": 0xC613, "offset4": 0}},
            {},
            "right.varying_address",
            ["198.18.0.2 (the tester's own at the left port)"],
        ),
        ("right", {"ipv4": "198.19.0.1/8", "gateway4": "198.19.2.1"}, {"networks": 4}, "networks", ["198.19.2.1"]),
        (
            "left",
            {},
            {"frame": "eth/ipv4(destination=random(198.19.0.0,198.19.0.255))/udp", "directions": "forward"},
            "frame",
            ["198.19.0.255 (the broadcast"],
        ),
        (
            "left",
            {},
            {"frame": f"eth/ipv4({SOME_FLOWS})/udp", "flows": 1000, "directions": "forward"},
            "frame",
            ["198.19.0.255 (the broadcast address of 198.19.0.0/24)", "for example 198.19.1.0 to 198.19.3.233"],
        ),
    ],
)
def test_addresses_to_which_no_router_forwards_are_refused(
    side: str, changes: dict[str, Any], conditions: dict[str, Any], key: str, texts: list[str]
) -> None:
    setup = parse(ROUTED | {side: ROUTED[side] | changes}, "test")
    with pytest.raises(ConfigError) as caught:
        traffic.of(setup, Usual(frame_sizes=(128,), **conditions)).check()
    assert caught.value.key == key
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "conditions"),
    [
        ({"varying_address": {"mode": "random", "min": 2, "max": 254}}, {}),
        ({"varying_address": {"mode": "random", "min": 256, "max": 65535}}, {}),  # behind a next hop
        ({}, {"networks": 256}),
        ({}, {"networks": 256, "foreground": {"n": 2, "m": 1}}),
        ({}, {"frame": f"eth/ipv4({SOME_FLOWS})/udp", "flows": 200, "directions": "forward"}),
        ({}, {"frame": "eth/ipv4(destination=198.19.0.1)/udp", "directions": "forward"}),  # said so
        ({}, {"frame": "eth/ipv4(destination=list(198.19.0.0,198.19.0.9))/udp", "directions": "forward"}),
    ],
)
def test_other_addresses_may_vary(changes: dict[str, Any], conditions: dict[str, Any]) -> None:
    ipv6 = [{"ipv6": f"2001:2:0:{net}::2/64", "gateway6": f"2001:2:0:{net}::1"} for net in ("0", "8000")]
    setup = parse({name: ROUTED[name] | own | changes for name, own in zip(ROUTED, ipv6, strict=True)}, "test")
    traffic.of(setup, Usual(frame_sizes=(128,), **conditions)).check()


def test_a_bridge_forwards_to_any_address() -> None:
    plain = {"varying_address": {"mode": "random", "min": 0, "max": 255}}
    sides = {
        name: {key: value for key, value in side.items() if key != "gateway4"} | plain for name, side in ROUTED.items()
    }
    traffic.of(parse(sides, "test"), Usual(frame_sizes=(128,))).check()
