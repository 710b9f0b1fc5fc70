# SPDX-License-Identifier: Apache-2.0
"""Every two features of traffic: planned together, or refused with the sentence of the table."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf import traffic
from dutperf.model import Direction, Load, Stream, address_range
from dutperf.setup.conditions import Foreground, SingleTrial
from dutperf.setup.configuration import ConfigError, ParameterError, Setup, parse
from dutperf.traffic import combinations
from dutperf.traffic.combinations import FEATURES, PAIRS, REFUSALS, Feature
from dutperf.traffic.kind_order import KindOrder
from protocol_schemas import REQUESTS
from traffic_features import CHOICES, chosen, versions, with_needed

BOTH = {
    "left": {"port": "af_packet:tl", "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1", "ipv6": "2001:2::2/64"},
    "right": {"port": "af_packet:tr", "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1", "ipv6": "2001:2:0:8000::2/64"},
    "third": {
        "port": "af_packet:tt",
        "ipv4": "198.19.128.3/24",
        "gateway4": "198.19.128.1",
        "ipv6": "2001:2:0:c000::3/64",
    },
    "media_mbps": 1000,
}
GATEWAYS6 = {"left": "2001:2::1", "right": "2001:2:0:8000::1", "third": "2001:2:0:c000::1"}
SEEN_AS = {
    "left": {4: "198.18.0.2", 6: "2001:2:0:1::2"},
    "right": {4: "198.19.0.2", 6: "2001:2:0:1::3"},
    "third": {4: "198.19.128.3", 6: "2001:2:0:1::4"},
}


def config_of(left: int, right: int) -> dict[str, Any]:
    """With a translator in the middle if the versions differ."""
    made = {name: dict(value) if isinstance(value, dict) else value for name, value in BOTH.items()}
    for name, version, other in (("left", left, right), ("right", right, left), ("third", right, left)):
        made[name] |= {"version": version, "gateway6": GATEWAYS6[name]}
        if version != other:
            made[name]["seen_as"] = SEEN_AS[name][other]
    return made


def plan(setup: Setup, conditions: dict[str, Any]) -> dict[Direction, Stream]:
    given = SingleTrial(**{"duration_s": 1.0, **conditions})
    kind = traffic.of(setup, traffic.of(setup, given).sized())
    kind.check()
    [case] = kind.cases()
    trial = kind.trial(case, Load.fps(1000), 0)
    for one in (*trial.preliminary_trials(), trial):
        request = {"id": 1, "method": "run", "params": one.request()}
        assert [error.message for error in REQUESTS.iter_errors(request)] == []
    return trial.streams()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " & ".join(one.name for one in pair))
def test_two_features_go_together_or_the_table_says_why_not(pair: tuple[Feature, Feature]) -> None:
    setup, conditions = chosen(config_of(*versions(*pair)), *pair)
    given = SingleTrial(**conditions)
    assert all(one.chosen(setup, given.every) is not None for one in pair)
    needed = set(with_needed(*pair))
    refused = [one for one in REFUSALS if {one.feature, one.beside} <= needed and is_chosen(one, setup, given)]
    if not refused:
        plan(setup, conditions)
        return
    where, beside = (one.chosen(setup, given.every) for one in (refused[0].feature, refused[0].beside))
    assert where is not None
    assert beside is not None
    with pytest.raises(ConfigError, match=re.escape(refused[0].sentence(beside))) as raised:
        plan(setup, conditions)
    assert (raised.value.key, isinstance(raised.value, ParameterError)) == (where.key, where.is_condition)


def is_chosen(one: combinations.Refusal, setup: Setup, given: SingleTrial) -> bool:
    return all(feature.chosen(setup, given.every) is not None for feature in (one.feature, one.beside))


def test_fewer_than_a_tenth_of_the_pairs_are_refused() -> None:
    assert set(CHOICES) == set(FEATURES)
    refused = [pair for pair in PAIRS if combinations.refusal(*pair) is not None]
    assert len(refused) == len(REFUSALS)
    assert len(refused) < len(PAIRS) / 10


# --- what the frames are --------------------------------------------------------------------------

RANGE = {"mode": "random", "min": 300, "max": 511}
MOVING = config_of(4, 4)
for _side in ("left", "right"):
    MOVING[_side] = MOVING[_side] | {"varying_address": {**RANGE, "offset4": 1, "offset6": 10}}
MOVING.pop("third")


@pytest.mark.parametrize("versions", [(4, 4), (6, 6), (6, 4)])
@pytest.mark.parametrize(
    "conditions", [{}, {"networks": 16}, {"foreground": "4:3"}, {"foreground": "4:1", "networks": 3}]
)
def test_described_frames_have_the_addresses_of_plain_ones(
    versions: tuple[int, int], conditions: dict[str, Any]
) -> None:
    """What a plain frame varies, the same headers by their names vary too."""
    config = config_of(*versions)
    config.pop("third")
    setup = parse(config, "test")
    plain, described = plan(setup, conditions), plan(setup, {**conditions, "frame": "ip/udp"})
    for way, stream in plain.items():
        assert not stream.frames
        assert described[way].frames
        for ranges in (address_range.sources, address_range.destinations):
            assert set(ranges(described[way])) == set(ranges(stream))


@pytest.mark.parametrize("mode", ["fixed", "increasing", "decreasing", "random"])
def test_described_frames_vary_in_the_bits_of_plain_ones(mode: str) -> None:
    config = {**MOVING, "left": MOVING["left"] | {"varying_address": {**RANGE, "mode": mode, "offset4": 1}}}
    setup = parse(config, "test")
    plain, described = plan(setup, {}), plan(setup, {"frame": "vlan(id=7)/ip/udp"})
    for way, stream in plain.items():
        [frame] = described[way].frames
        by_end = {"source": stream.source_address, "destination": stream.destination_address}
        for end, at in (("source", 18 + 12), ("destination", 18 + 16)):
            field = by_end[end]
            assert field is not None
            bit = 8 * (at + 1)
            found = [one for one in frame.fields if one.bit == bit]
            first = field.max if field.mode == "decreasing" else field.min
            assert frame.bytes[2 * (at + 1) :][:4] == f"{first:04x}"
            if field.mode == "fixed":
                assert found == []
            else:
                [one] = found
                assert (one.bits, one.mode, one.first, one.count) == (16, field.mode, str(first), "212")


SHARES = st.lists(st.integers(1, 9), min_size=1, max_size=3)


@given(
    st.tuples(SHARES, SHARES).flatmap(
        lambda both: st.permutations([(share, native) for native in (False, True) for share in both[native]])
    ),
    st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))),
)
def test_kinds_have_their_shares_and_the_background_its_places(
    kinds: list[tuple[int, bool]], places: tuple[int, int]
) -> None:
    """RFC 8219 5.3: frame k is foreground if k mod n < m."""
    native, (n, m) = [one for _, one in kinds], places
    order = KindOrder([Fraction(share) for share, _ in kinds], native, Foreground(n=n, m=m))
    found = order.kinds()
    assert len(found) == order.length
    assert [native[kind] for kind in found] == [k % n >= m for k in range(len(found))]
    for of in (False, True):
        of_group = [(share, found.count(kind)) for kind, (share, one) in enumerate(kinds) if one is of]
        assert len({Fraction(count, share) for share, count in of_group}) == 1


def test_networks_are_those_of_the_trial_whatever_its_frames_are() -> None:
    """For whom the receiver answers, and what deviates from RFC 2544 section 12, follows from them."""
    config = config_of(6, 4)
    config.pop("third")
    for conditions in ({}, {"frame": "ip/udp"}, {"flows": 20}, {"frame_sizes": "imix", "foreground": "4:3"}):
        both = plan(parse(config, "test"), {"networks": 16, **conditions})
        assert {stream.networks for stream in both.values()} == {16}


def test_flows_have_addresses_of_their_own() -> None:
    config = config_of(4, 4)
    config.pop("third")
    [frame] = plan(parse(config, "test"), {"networks": 16, "flows": 8})[Direction.FORWARD].frames
    assert {one.by for one in frame.fields} == {"flow"}
    assert (14 + 16 + 2) * 8 in [one.bit for one in frame.fields]


def test_the_background_has_the_headers_of_the_foreground_and_is_a_stream() -> None:
    config = config_of(6, 4)
    config.pop("third")
    both = plan(parse(config, "test"), {"foreground": "10:9", "frame": "vlan(id=7)/ip/udp", "frame_sizes": "imix"})
    forward, reverse = both[Direction.FORWARD], both[Direction.REVERSE]
    assert forward.streams == reverse.streams == ("foreground", "native IPv6")
    assert forward.sizes == (88, 594, 1518) * 2
    assert reverse.sizes == (68, 574, 1498, 88, 594, 1518)
    assert [kind < 3 for kind in forward.order] == [k % 10 < 9 for k in range(len(forward.order))]
    weights = [forward.order.count(kind) for kind in range(6)]
    assert [sum(weights[:3]), sum(weights[3:])] == [9 * sum(weights) // 10, sum(weights) // 10]
    types = {frame.stream: frame.bytes[24:36] for frame in reverse.frames}
    assert types == {"foreground": "810000070800", "native IPv6": "8100000786dd"}
    to = {one.first for one in address_range.destinations(forward)}
    assert {str(one) for one in to} == {"2001:2:0:1::3", "2001:2:0:8000::2"}


def test_extension_headers_are_in_the_background_too() -> None:
    config = config_of(4, 4)
    config.pop("third")
    conditions = {"foreground": "2:1", "modifiers": ["extension-header:destination:50%"]}
    forward = plan(parse(config, "test"), conditions)[Direction.FORWARD]
    assert forward.streams == ("foreground", "native IPv6", "native IPv6 with destination")
    assert [forward.order.count(kind) for kind in range(3)] == [2, 1, 1]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"foreground": "2:1", "frame": "ipv4/udp"}, "frame: native IPv6 in the background has the headers"),
        ({"foreground": "2:1", "frame": "ip(destination=198.19.0.9)/udp"}, "frame: native IPv6"),
        ({"networks": 2, "frame": "ip(destination=198.19.0.9)/udp"}, "networks: has no effect: the headers of the"),
        ({"networks": 2, "frame": "eth(type=0x88b5)"}, "networks: has no effect"),
        (
            {"foreground": "1000000:1", "frame": "ip/udp"},
            "foreground: too many kinds of frames at once: 2, whose shares",
        ),
        ({"foreground": "97:37", "frame_sizes": "imix:84=89,85=83"}, "foreground: too many kinds of frames at once: 4"),
        ({"flows": 5, "frame": "ip/tcp"}, "flows: nothing tells 5 flows from each other"),
        ({"flows": 5, "ports": "fixed"}, "flows: nothing tells 5 flows from each other"),
        ({"flows": 5, "frame": "ip/icmp(id=increment(1,count=4,by=flow))"}, "flows: only 4 of 5 flows differ: let"),
        (
            {"flows": 7, "frame": "ip(dscp=increment(0,count=2,by=flow))/icmp(id=increment(1,count=3,by=flow))"},
            "flows: only 6 of 7 flows differ",
        ),
        ({"connections": 5, "foreground": "1:0"}, "foreground: leaves no frames for connections"),
    ],
)
def test_headers_must_leave_open_what_else_says_something_about_them(conditions: dict[str, Any], message: str) -> None:
    config = config_of(4, 4)
    config.pop("third")
    with pytest.raises(ConfigError, match=re.escape(message)):
        plan(parse(config, "test"), conditions)


def test_addresses_that_vary_need_headers_that_leave_them_open() -> None:
    with pytest.raises(ConfigError, match=r"varying_address: has no effect: the headers of the frames forward have"):
        plan(parse(MOVING, "test"), {"frame": "ip(source=198.18.0.9)/udp"})
