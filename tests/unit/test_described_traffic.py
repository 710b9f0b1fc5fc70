# SPDX-License-Identifier: Apache-2.0
"""Trials with described frames: from options and configuration to kinds of frames and their order."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address
from typing import Any

import pytest

from dutperf import traffic
from dutperf.model import FRAME_SIZE, SIZE_MIX, Direction, Stream
from dutperf.setup.conditions import Usual
from dutperf.setup.configuration import ConfigError, ParameterError, Setup, parse
from plans import make_trial
from protocol_schemas import REQUESTS

LEFT = {"port": "af_packet:tl", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"}
RIGHT = {"port": "af_packet:tr", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
IPV4 = parse({"left": LEFT, "right": RIGHT}, "test")
LEFT6 = {"port": "af_packet:tl", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}
SIIT = parse({"left": LEFT6 | {"seen_as": "198.18.0.2"}, "right": RIGHT | {"seen_as": "2001:2:0:1000::2"}}, "test")


def streams(setup: Setup, **conditions: Any) -> dict[Direction, Stream]:
    chosen = traffic.of(setup, Usual(**conditions)).sized()
    trial = make_trial(setup, chosen, chosen.frame_sizes[0], 1000, 3)
    request = {"id": 1, "method": "run", "params": trial.request()}
    assert [error.message for error in REQUESTS.iter_errors(request)] == []
    return trial.streams()


def head(stream: Stream, kind: int = 0) -> bytes:
    return bytes.fromhex(stream.frames[kind].bytes)


def with_streams(*of: dict[str, Any]) -> Setup:
    return parse({"left": LEFT, "right": RIGHT, "streams": list(of)}, "test")


def test_plain_conditions_need_none() -> None:
    assert all(not stream.frames for stream in streams(IPV4).values())


def test_ip_is_that_of_the_sending_side_and_sizes_differ_by_twenty_bytes() -> None:
    both = streams(SIIT, frame="ip/udp", frame_sizes=(128,))
    forward, reverse = both[Direction.FORWARD], both[Direction.REVERSE]
    assert (head(forward)[12:14], forward.sizes) == (bytes.fromhex("86dd"), (128,))
    assert (head(reverse)[12:14], reverse.sizes) == (bytes.fromhex("0800"), (108,))
    assert head(forward)[38:54] == IPv6Address("2001:2:0:1000::2").packed
    assert head(reverse)[30:34] == bytes([198, 18, 0, 2])


def test_open_ports_vary_as_the_conditions_say() -> None:
    [varying] = {len(one.frames[0].fields) for one in streams(IPV4, frame="vlan/ip/udp").values()}
    assert varying == 2
    assert all(not one.frames[0].fields for one in streams(IPV4, frame="vlan/ip/udp", ports="fixed").values())
    given_one = streams(IPV4, frame="ip/udp(source=5)")[Direction.FORWARD].frames[0]
    assert [field.bits for field in given_one.fields] == [16]
    assert head(streams(IPV4, frame="ip/udp(source=5)")[Direction.FORWARD])[34:36] == b"\0\5"


def test_flows_have_ports_of_their_own() -> None:
    frame = streams(IPV4, flows=50)[Direction.FORWARD].frames[0]
    assert frame.flows == 50
    assert [field.by for field in frame.fields] == ["flow", "flow"]
    chosen = streams(IPV4, flows=50, frame="ip(destination=increment(198.19.0.2,count=50,by=flow))/udp")
    fields = chosen[Direction.FORWARD].frames[0].fields
    assert Counter(field.by for field in fields) == {"flow": 1, "frame": 2}


def test_only_udp_has_ports_to_leave_open() -> None:
    for frame, way in (("ip/esp", "by flow"), ("ip/udp(source=7,destination=8)", "UDP ports that are not fixed")):
        with pytest.raises(ConfigError, match=f"{way}$"):
            streams(IPV4, flows=5, frame=frame)


def test_the_smallest_size_has_room_for_the_headers() -> None:
    assert traffic.of(IPV4, Usual(frame="vlan/vlan/ip/udp")).smallest_frame_size == 72
    assert traffic.of(SIIT, Usual(frame="ip/tcp")).smallest_frame_size == 96
    with pytest.raises(ConfigError, match="64 bytes are impossible"):
        streams(IPV4, frame="vlan/vlan/ip/udp", frame_sizes=(64,))


def test_a_mix_is_several_kinds_in_an_order() -> None:
    both = streams(SIIT, frame_sizes="imix")
    forward, reverse = both[Direction.FORWARD], both[Direction.REVERSE]
    assert forward.sizes == (84, 594, 1518)
    assert reverse.sizes == (64, 574, 1498)
    assert Counter(forward.order) == {0: 7, 1: 4, 2: 1}
    random = streams(IPV4, frame_sizes="imix-random")[Direction.FORWARD]
    assert (random.order, random.shares) == ((), (7, 4, 1))
    chosen = traffic.of(IPV4, Usual(frame_sizes="imix")).sized()
    [case] = traffic.of(IPV4, chosen).cases()
    assert (case[FRAME_SIZE], case[SIZE_MIX]) == (362, "imix")


def test_streams_share_a_direction() -> None:
    setup = with_streams(
        {"name": "voice", "frame": "ip(dscp=46)/udp", "sizes": 128, "share": 3, "flows": 7},
        {"name": "web", "frame": "ip/tcp", "sizes": "imix"},
        {"name": "back", "directions": "reverse"},
    )
    both = streams(setup, frame_sizes=(300,))
    forward = both[Direction.FORWARD]
    assert forward.sizes == (128, 76, 594, 1518)
    assert Counter(forward.order) == {0: 36, 1: 7, 2: 4, 3: 1}
    assert [frame.flows for frame in forward.frames] == [7, 1, 1, 1]
    assert both[Direction.REVERSE].sizes == (128, 76, 594, 1518, 300)
    names = [frame.name for frame in forward.frames]
    assert names == ["voice, 128 bytes", "web, 76 bytes", "web, 594 bytes", "web, 1518 bytes"]


def test_each_side_may_send_frames_of_its_own() -> None:
    setup = parse({"left": LEFT | {"frame": "vlan(id=9)/ip/udp"}, "right": RIGHT}, "test")
    both = streams(setup)
    assert head(both[Direction.FORWARD])[12:16] == bytes.fromhex("81000009")
    assert head(both[Direction.REVERSE])[12:14] == bytes.fromhex("0800")
    with pytest.raises(ParameterError, match=r"the configuration has headers in left\.frame already"):
        streams(setup, frame="ip/udp")


def with_sides(left: dict[str, Any], right: dict[str, Any]) -> Setup:
    return parse({"left": LEFT | left, "right": RIGHT | right}, "test")


def one_way(frame: str | None, *, back: str | None = "none") -> Setup:
    streams = [{"name": "there", "directions": "forward", "frame": frame}]
    streams += [] if back == "none" else [{"name": "back", "directions": "reverse", "frame": back}]
    return with_streams(*streams)


NINE, TEN, SERVICE = "81000009", "8100000a", "88a80064"
ARRIVING = [
    ("the tags stay", IPV4, "vlan(id=9)/ip/udp", (NINE,)),
    ("two tags", IPV4, "vlan(id=100,type=0x88a8)/vlan(id=10,pcp=7)/ip/udp", (SERVICE + TEN,)),
    ("the DUT takes the tag away", with_sides({"frame": "vlan(id=9)/ip/udp"}, {}), None, ("",)),
    ("the DUT gives a tag", with_sides({}, {"frame": "vlan(id=9)/ip/udp"}), None, (NINE,)),
    (
        "the DUT routes between VLANs",
        with_sides({"frame": "vlan(id=9,pcp=3)/ip/udp"}, {"frame": "vlan(id=10)/ip/udp"}),
        None,
        (TEN,),
    ),
    ("the DUT has its addresses in VLANs", with_sides({}, {"vlans": [9, 10]}), "ip/udp", ("", NINE, TEN)),
    ("... and frames have tags", with_sides({}, {"vlans": [9, 10]}), "vlan(id=9)/ip/udp", (NINE,)),
    ("tags vary", IPV4, "vlan(id=increment(9,10))/ip/udp", None),
    ("priorities vary", IPV4, "vlan(id=9,pcp=increment(0,7))/ip/udp", (NINE,)),
    ("tags of the other side vary", with_sides({}, {"frame": "vlan(id=random(1,9))/ip/udp"}), None, None),
    ("a stream of both directions", with_streams({"name": "a", "frame": "vlan(id=9)/ip/udp"}), None, (NINE,)),
    ("a stream of one direction", one_way("vlan(id=9)/ip/udp", back="vlan(id=10)/ip/udp"), None, (NINE, TEN)),
    ("... whose tag the DUT takes away", one_way("vlan(id=9)/ip/udp", back=None), None, (NINE, "")),
    ("... alone", one_way("vlan(id=9)/ip/udp"), None, (NINE,)),
    ("a tag inside a tunnel", IPV4, "ip/udp/vxlan/eth/vlan(id=9)/ipv4/udp", ("",)),
]


@pytest.mark.parametrize(("setup", "frame", "tags"), [row[1:] for row in ARRIVING], ids=[row[0] for row in ARRIVING])
def test_frames_arrive_with_the_tags_that_the_receiving_side_sends(
    setup: Setup, frame: str | None, tags: tuple[str, ...] | None
) -> None:
    given = {} if frame is None else {"frame": frame}
    forward = streams(setup, directions="forward", **given)[Direction.FORWARD]
    assert {one.arrives_with for one in forward.frames} == {tags}


def test_plain_frames_arrive_without_a_tag_or_in_the_vlans_of_the_dut() -> None:
    assert {one.arrives_with for one in streams(IPV4).values()} == {None}
    both = streams(with_sides({}, {"vlans": [10]}))
    assert both[Direction.FORWARD].arrives_with == ("", TEN)
    assert both[Direction.REVERSE].arrives_with is None


def test_headers_of_the_other_side_that_are_not_possible_are_its_own() -> None:
    with pytest.raises(ConfigError, match=r"right\.frame: header 2"):
        streams(with_sides({"frame": "ip/udp"}, {"frame": "ip/up"}), directions="forward")


@pytest.mark.parametrize(
    ("setup", "conditions", "message"),
    [
        (IPV4, {"frame": "ip/udpp"}, r"frame: header 2 \(udpp\), character 4: unknown header 'udpp'"),
        (IPV4, {"frame": "vlan(id=4096)/ip/udp"}, "id: 4096 does not fit in 12 bits"),
        (IPV4, {"frame": "ipv6/udp"}, "ipv6"),
        (
            with_streams({"name": "a"}),
            {"flows": 2},
            r"flows: flows and streams \(streams\) exclude each other: each stream has its own",
        ),
        (with_streams({"name": "a", "directions": "forward"}), {}, "streams: has none in the reverse direction"),
        (with_streams({"name": "a", "frame": "ip/up"}), {}, r"streams\.0\.frame: header 2"),
        (
            parse({"left": LEFT, "right": RIGHT, "engine": {"offloads": ["send_at"]}}, "test"),
            {"pacing": "fill", "flows": 2},
            r"pacing: a filled line and the offload send_at \(engine\.offloads\) exclude each other",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(setup: Setup, conditions: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        streams(setup, **conditions)


def test_sizes_of_a_series_that_the_headers_do_not_leave_room_for_are_one() -> None:
    """Each size is a case, and a journal with a case twice cannot be read."""
    asked = Usual(frame="ip/udp/vxlan/eth/ip/udp/vxlan/eth/ip/udp", frame_sizes="rfc2544")
    sizes = traffic.of(IPV4, asked).sized().frame_sizes
    assert sizes == tuple(sorted(set(sizes)))
    assert sizes[0] > 128
    assert sizes[1:] == (256, 512, 1024, 1280, 1518)
    read = Usual.recorded(traffic.of(IPV4, asked).sized().stated())
    assert read.frame_sizes == sizes
