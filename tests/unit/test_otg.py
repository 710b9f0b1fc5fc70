# SPDX-License-Identifier: Apache-2.0
"""The Open Traffic Generator API: which frames and streams its messages mean, what is refused, and what the addresses
answer; nothing is sent."""

from __future__ import annotations

import asyncio
import binascii
import json
import ssl
import subprocess
import time
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import Any

import pytest
import snappi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet
from scapy.utils import PcapReader
from starlette.testclient import TestClient

import frame_bytes
from dutperf.captures import CapturedFrame
from dutperf.frames import KINDS
from dutperf.model import Bursts, Cause, Direction, SoFar, Trial, TrialResult, Verdict
from dutperf.otg import app, certificate, coverage, flows, headers, links, port_links, recorded, tls, trial_log
from dutperf.otg.generator import Generator
from dutperf.otg.links import Links
from dutperf.otg.model import Rejected, messages, of_members
from dutperf.otg.traffic import Open, Transmission
from dutperf.otg.trial_log import TrialLog
from dutperf.setup.configuration import EngineSettings, Setup
from dutperf.tester import EndTrial, Progress, ProgressCallback, TesterError
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from dutperf.web.access import Rules
from otg_messages import LOCATED, PORTS, TOKEN, UDP, Opened, configured, flow, frames, opening, planned, serving
from plans import counts

LOCAL = "http://127.0.0.1:8443"
GATEWAY = "devices[0].ethernets[0].ipv4_addresses[0].gateway"
DISSECTED: tuple[type[Packet], ...] = (MPLS, IP, IPv6, VXLAN)
"""Layers that scapy knows once they are imported."""
# --- headers --------------------------------------------------------------------------------------


def parts_of(kind: headers.ModelHeader) -> Iterator[headers.ModelHeader]:
    """Itself, and the rest where ours are two."""
    yield kind
    if kind.then is not None:
        yield from parts_of(kind.then)


def test_every_field_is_one_of_the_model_and_one_of_ours() -> None:
    for name, header in headers.HEADERS.items():
        for kind in parts_of(header):
            for one in kind.fields.values():
                assert {part.name for part in one.parts} <= set(KINDS[kind.ours].known), name
    for message, fields in coverage.COVERED.items():
        known = {field.name for field in messages.DESCRIPTOR.message_types_by_name[message].fields}
        assert set(fields) <= known, message


def test_a_field_that_is_left_out_has_the_models_default() -> None:
    """As snappi says what it is, where it is no length, type or checksum."""
    api = snappi.api(location="http://localhost")
    for name, kind in headers.HEADERS.items():
        header = getattr(api.config().flows.add(name="f").packet, name)()[-1]
        header = getattr(header, kind.within) if kind.within else header
        for key, one in (item for part in parts_of(kind) for item in part.fields.items()):
            pattern = getattr(header, key)
            if one.default is not None:
                told = pattern.auto if pattern.choice == "auto" and hasattr(pattern, "auto") else pattern.value
                assert one.form(told) == one.form(one.default), f"{name}.{key}"


def test_what_a_pattern_leaves_out_is_the_models_default() -> None:
    for header, pattern, at, each in (
        ("ipv4", {"time_to_live": {"choice": "increment", "increment": {"count": 3}}}, 22, [64, 65, 66]),
        ("ipv4", {"time_to_live": {"choice": "value"}}, 22, [64, 64, 64]),
        ("ipv6", {"hop_limit": {"choice": "decrement", "decrement": {"count": 2}}}, 21, [64, 63, 64]),
        ("ipv4", {"dst": {"choice": "increment", "increment": {"start": "198.18.0.1", "count": 2}}}, 33, [1, 2, 1]),
    ):
        found = frames([{"ethernet": {}}, {header: pattern}, {"udp": {}}], count=3)
        assert [data[at] for data in found] == each, pattern


@pytest.mark.parametrize(
    ("header", "pattern", "place"),
    [
        ("ipv4", {"priority": {"choice": "raw", "raw": {"value": 300}}}, "priority.raw: 300 does not fit in 8 bits"),
        ("ipv6", {"traffic_class": {"values": [1, 256]}}, "traffic_class: 256 does not fit in 8 bits (0 to 255)"),
    ],
)
def test_a_value_that_a_field_has_no_bits_for_is_refused(header: str, pattern: dict[str, Any], place: str) -> None:
    with pytest.raises(Rejected) as caught:
        frames([{"ethernet": {}}, {header: pattern}, {"udp": {}}])
    assert place in str(caught.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"duration": {"fixed_seconds": {"seconds": None}}}, "flows[0].duration.fixed_seconds.seconds"),
        ({"rate": {"percentage": None}}, "flows[0].rate.percentage"),
        ({"duration": {"fixed_packets": {"delay": {"microseconds": None}}}}, "fixed_packets.delay.microseconds"),
        ({"duration": {"burst": {"inter_burst_gap": {"nanoseconds": None}}}}, "burst.inter_burst_gap.nanoseconds"),
    ],
)
def test_what_is_no_number_is_refused(client: TestClient, number: str, members: dict[str, Any], place: str) -> None:
    given = json.loads(json.dumps(members).replace("null", f'"{number}"'))
    answer = client.post("/config", json=configured(flow(**given)))
    assert answer.status_code == 501
    assert f"{place} with {'nan' if number == 'NaN' else number[:-5].lower()} is not covered" in answer.text


def test_numbers_of_64_bits_keep_their_digits() -> None:
    gap = {
        "duration": {"burst": {"packets": 1, "inter_burst_gap": {"nanoseconds": 499_999_000}}},
        "rate": {"pps": "1000000"},
    }
    [made] = planned(flow(**gap))
    assert made.stream.rate_fps == 2
    short = {"duration": {"fixed_seconds": {"seconds": 0.3}}}
    assert planned(flow(**short))[0].sends_ns == 300_000_000


@pytest.mark.parametrize(
    ("packet", "layers"),
    [
        (UDP, ["Ether", "IP", "UDP"]),
        ([{"ethernet": {}}, {"vlan": {"id": {"value": 7}}}, {"ipv6": {}}, {"tcp": {}}], ["Dot1Q", "IPv6", "TCP"]),
        ([{"ethernet": {}}, {"mpls": {"label": {"value": 99}}}, {"ipv4": {}}, {"icmp": {"echo": {}}}], ["IP", "ICMP"]),
        ([{"ethernet": {}}, {"ipv6": {}}, {"icmpv6": {"echo": {}}}], ["IPv6", "ICMPv6EchoRequest"]),
        ([{"ethernet": {}}, {"arp": {"target_protocol_addr": {"value": "198.18.0.1"}}}], ["Ether", "ARP"]),
        (
            [{"ethernet": {}}, {"ipv4": {}}, {"gre": {"checksum_present": {"value": 1}}}, {"ipv4": {}}, {"udp": {}}],
            ["IP", "GRE", "IP", "UDP"],
        ),
        (
            [*UDP[:2], {"udp": {"dst_port": {"value": 4789}}}, {"vxlan": {}}, {"ethernet": {}}, {"ipv4": {}}],
            ["UDP", "VXLAN", "Ether", "IP"],
        ),
        ([*UDP, {"custom": {"bytes": "0x47:45 54"}}], ["UDP", "Raw"]),
    ],
)
def test_headers_are_those_of_the_model(packet: list[dict[str, Any]], layers: list[str]) -> None:
    [data] = frames(packet)
    assert len(data) == 124
    found = [layer.__name__ for layer in Ether(data).layers()]
    assert any(found[first : first + len(layers)] == layers for first in range(len(found)))


def test_values_follow_each_other_in_order() -> None:
    udp = {
        "src_port": {"choice": "values", "values": [5000, 5010, 5020]},
        "dst_port": {"increment": {"start": 6000, "step": 5, "count": 2}},
    }
    ip = {
        "src": {"decrement": {"start": "198.18.0.9", "step": "0.0.0.2", "count": 2}},
        "priority": {"raw": {"values": [0x2E << 2 | 1, 0]}},
    }
    each = [Ether(one) for one in frames([{"ethernet": {}}, {"ipv4": ip}, {"udp": udp}], 4)]
    assert [one["UDP"].sport for one in each] == [5000, 5010, 5020, 5000]
    assert [one["UDP"].dport for one in each] == [6000, 6005, 6000, 6005]
    assert [one["IP"].src for one in each] == ["198.18.0.9", "198.18.0.7"] * 2
    assert [one["IP"].tos for one in each] == [0x2E << 2 | 1, 0] * 2
    assert all(one["IP"].ttl == 64 for one in each)


def test_random_values_are_those_of_their_seed() -> None:
    def ports(seed: int) -> list[int]:
        udp = {"src_port": {"random": {"min": 1000, "max": 2000, "seed": seed, "count": 3}}}
        return [Ether(one)["UDP"].sport for one in frames([*UDP[:2], {"udp": udp}], 6)]

    assert ports(1) == ports(1) != ports(2)
    assert ports(1)[:3] == ports(1)[3:]
    assert all(1000 <= one <= 2000 for one in ports(7))


def test_flags_of_tcp() -> None:
    [data] = frames([*UDP[:2], {"tcp": {"ctl_syn": {"value": 1}, "ecn_echo": {"value": 1}, "window": {"value": 9}}}])
    assert (str(Ether(data)["TCP"].flags), Ether(data)["TCP"].window) == ("SE", 9)


def test_an_inner_frame_leaves_room_for_an_fcs() -> None:
    [data] = frames([*UDP[:2], {"udp": {}}, {"vxlan": {}}, {"ethernet": {}}, {"ipv4": {}}, {"tcp": {}}], size=256)
    outer_ip, inner_ip = 256 - 18, 256 - 18 - 20 - 8 - 8 - 14 - 4
    assert int.from_bytes(data[16:18], "big") == outer_ip
    assert int.from_bytes(data[50 + 14 + 2 : 50 + 14 + 4], "big") == inner_ip


# --- flows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "fps"),
    [
        ({}, 1000),
        ({"pps": "50"}, 50),
        ({"bps": "672000"}, 1000),
        ({"kbps": "672"}, 1000),
        ({"mbps": 672}, 1_000_000),
        ({"gbps": 1}, 1_488_095),
        ({"percentage": 50.0}, 744_048),
    ],
)
def test_rates(rate: dict[str, Any], fps: int) -> None:
    """Bits are those of the media: 64 bytes are 672 bits."""
    layer = {"name": "l", "port_names": ["p1"], "speed": "speed_1_gbps"}
    [made] = planned(flow(rate=rate, size={"fixed": 64}), layer1=[layer])
    assert made.stream.rate_fps == fps


@given(frames_left=st.integers(1, 10**6), fps=st.integers(24, 10**7), sent=st.integers(0, 10**6))
def test_so_many_frames_are_sent_and_no_more(frames_left: int, fps: int, sent: int) -> None:
    [made] = planned(flow(duration={"fixed_packets": {"packets": frames_left + sent}}, rate={"pps": str(fps)}))
    part = made.part(sent, 0, goes_on=sent > 0)
    assert part is not None
    assert part.sends_ns is not None
    trial = Trial(trial=1, duration_ns=part.sends_ns, drain_ns=0, other_streams={made.direction: part})
    assert trial.intended(made.direction) == frames_left
    assert made.part(frames_left + sent, 0, goes_on=True) is None


@given(bursts=st.integers(1, 50), packets=st.integers(2, 200))
def test_so_many_bursts_are_sent_whole(bursts: int, packets: int) -> None:
    burst = {"bursts": bursts, "packets": packets, "inter_burst_gap": {"nanoseconds": packets * 500_000}}
    [made] = planned(flow(rate={"pps": "2000"}, duration={"burst": burst}))
    part = made.part(0, 0, goes_on=False)
    assert part is not None
    assert part.sends_ns is not None
    trial = Trial(trial=1, duration_ns=part.sends_ns, drain_ns=0, other_streams={made.direction: part})
    assert trial.intended(made.direction) == bursts * packets


@pytest.mark.parametrize(("seconds", "fps", "frames"), [(0.3, 1000, 300), (0.4, 3000, 1200), (1.1, 1000, 1100)])
def test_seconds_are_those_that_were_written(seconds: float, fps: int, frames: int) -> None:
    """In 32 bits 0.3 is 0.30000001, and would have one frame more."""
    [made] = planned(flow(rate={"pps": str(fps)}, duration={"fixed_seconds": {"seconds": seconds}}))
    part = made.part(0, 0, goes_on=False)
    assert part is not None
    trial = Trial(trial=1, duration_ns=10**10, drain_ns=0, other_streams={made.direction: part})
    assert trial.intended(made.direction) == frames


def test_each_header_of_the_link_has_the_type_of_what_follows() -> None:
    """The model's tpid stands behind the tag."""
    tags = [{"vlan": {"id": {"value": 10}, "tpid": {"value": 0x8100}}}, {"vlan": {"id": {"value": 20}}}]
    [data] = frames([{"ethernet": {"ether_type": {"value": 0x88A8}}}, *tags, {"ipv4": {}}, {"udp": {}}])
    assert data[12:22].hex() == "88a8000a810000140800"
    [data] = frames([{"ethernet": {}}, {"vlan": {"id": {"value": 10}, "tpid": {"value": 0x1234}}}])
    assert data[12:18].hex() == "8100000a1234"


def test_a_flow_begins_later_by_its_delay() -> None:
    [made] = planned(flow(duration={"fixed_seconds": {"seconds": 0.5, "delay": {"microseconds": 250}}}))
    part = made.part(0, 0, goes_on=False)
    assert part is not None
    assert (part.begin_ns, part.sends_ns) == (250_000, 500_000_000)
    rest = made.part(200, 200_000_000, goes_on=True)
    assert rest is not None
    assert (rest.begin_ns, rest.sends_ns) == (None, 300_000_000)
    assert made.part(500, 500_000_000, goes_on=True) is None


def test_a_thousand_flows_begin_one_after_the_other_within_the_time_of_a_frame() -> None:
    each = planned(*(flow(name=f"f{n}", rate={"pps": str(200_000 if n % 2 else 1)}) for n in range(1000)))
    parts = [one.part(0, 0, goes_on=False) for one in each]
    begins_ns = [0 if part is None or part.begin_ns is None else part.begin_ns for part in parts]
    assert begins_ns[::2] == [10_000 * n for n in range(0, 1000, 2)]
    assert begins_ns[1::2] == [5 * n for n in range(1, 1000, 2)]
    goes_on = each[4].part(1, 10**9, goes_on=True)
    assert goes_on is not None
    assert goes_on.begin_ns == 40_000


def test_the_pairs_of_ports_between_flows_leave_numbers_for_fewer_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_MOST_NAMED", 120)
    names = [f"p{number}" for number in range(6)]
    pairs = list(permutations(names, 2))

    def made(count: int, between: int) -> tuple[flows.Flow, ...]:
        each = [
            flow(name=f"f{n}", tx_rx={"port": {"tx_name": tx, "rx_names": [rx]}})
            for n, (tx, rx) in zip(range(count), cycle(pairs[:between]), strict=False)
        ]
        wanted = {"ports": [{"name": name, "location": name} for name in names], "flows": each}
        configuration = of_members(wanted, messages.Config)
        return flows.planned(configuration, links.planned(configuration, dict.fromkeys(names, "null")))

    assert len(made(100, 20)) == 100
    with pytest.raises(Rejected, match="100 flows between 21 pairs of ports are not possible: at most 99 are"):
        made(100, 21)


def test_bursts() -> None:
    burst = {"bursts": 3, "packets": 50, "inter_burst_gap": {"nanoseconds": 50_000_000}}
    [made] = planned(flow(rate={"pps": "1000"}, duration={"burst": burst}))
    assert made.stream.pattern == Bursts(frames=50, within_fps=1000)
    assert (made.stream.rate_fps, made.frames) == (500, 150)
    uneven = burst | {"inter_burst_gap": {"nanoseconds": 997_000_000}}
    with pytest.raises(Rejected, match=r"whole frames/s are sent, and those are more than 0\.1% off"):
        planned(flow(rate={"pps": "1000"}, duration={"burst": uneven | {"packets": 1}}))


@pytest.mark.parametrize(
    ("size", "sizes"),
    [
        ({}, (64,)),
        ({"increment": {"start": 64, "end": 70, "step": 2}}, (64, 66, 68, 70)),
        ({"random": {"min": 64, "max": 66}}, (64, 65, 66)),
        ({"weight_pairs": {"predefined": "imix"}}, (64, 570, 1518)),
        ({"weight_pairs": {"custom": [{"size": 100, "weight": 2.5}, {"size": 200}]}}, (100, 200)),
    ],
)
def test_sizes(size: dict[str, Any], sizes: tuple[int, ...]) -> None:
    [made] = planned(flow(size=size))
    assert made.sizes == sizes
    assert bool(made.stream.shares) == ("random" in size or "weight_pairs" in size)


DEVICES = [
    {
        "name": f"d{number}",
        "ethernets": [
            {
                "name": f"e{number}",
                "connection": {"port_name": f"p{number}"},
                "mac": f"02:00:00:00:00:0{number}",
                "ipv4_addresses": [
                    {"name": f"ip{number}", "address": f"198.1{7 + number}.0.2", "gateway": f"198.1{7 + number}.0.1"}
                ],
            }
        ],
    }
    for number in (1, 2)
]


def test_a_flow_without_a_size_has_the_smallest_frames_of_its_headers() -> None:
    [short, long] = planned(flow(), flow(name="f2", packet=[*UDP, {"custom": {"bytes": "00" * 100}}]))
    assert (short.sizes, long.sizes) == ((64,), (164,))


def test_a_flow_between_devices_has_their_addresses() -> None:
    tx_rx = {"device": {"tx_names": ["d1"], "rx_names": ["ip2"]}}
    [made] = planned(flow(tx_rx=tx_rx, packet=[{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}]), devices=DEVICES)
    [frame] = made.stream.frames
    assert (frame.source_mac, frame.destination_mac) == ("port", "next_hop4")
    packet = Ether(frame_bytes.written(frame, 0))
    assert (packet["IP"].src, packet["IP"].dst) == ("198.18.0.2", "198.19.0.2")
    configuration = of_members(configured(devices=DEVICES), messages.Config)
    port = links.planned(configuration, LOCATED).sides["p1"]
    assert (port.mac, str(port.ipv4), str(port.gateway4)) == ("02:00:00:00:00:01", "198.18.0.2/24", "198.18.0.1")


LOOPBACK = {"eth_name": "e1", "address": "2001:2::1"}
NEST = {"ports": PORTS, "lags": [{"name": "l"}], "devices": [{"name": "d", "bgp": {"router_id": "1.1.1.1"}}]}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (NEST, ["lags is not covered", "devices[0].bgp is not covered"]),
        (
            configured(
                flow(packet=[{"ethernet": {"src": {"value": "02:00:00:00:00:01", "metric_tags": [{"name": "m"}]}}}])
            ),
            ["flows[0].packet[0].ethernet.src.metric_tags is not covered"],
        ),
        (configured(flow(packet=[{"rsvp": {}}])), ["flows[0].packet[0].rsvp is not covered"]),
        (
            configured(flow(size={"choice": "fixed", "fixed": 100, "random": {"min": 64, "max": 128}})),
            ["flows[0].size.random beside the choice fixed is not covered"],
        ),
        ({"ports": []}, ["ports: 0 ports are not possible: 1 to 15 are"]),
        ({"ports": [{"name": "p", "location": "eth0"}]}, ["there is no port 'eth0' here; there are left, right"]),
        (
            {"ports": [PORTS[0], {"name": "q", "location": "left"}]},
            ["ports[1].location: 'left' is that of another port"],
        ),
        (configured(flow(), flow()), ["flows[1].name: 'f1' is there twice"]),
        (configured(flow(name="")), ["flows[0].name is missing"]),
        (configured(flow(name="e2"), devices=DEVICES), ["devices[1].ethernets[0].name: 'e2' is there twice"]),
        (
            configured(flow(name="ip2"), devices=DEVICES),
            ["devices[1].ethernets[0].ipv4_addresses[0].name: 'ip2' is there twice"],
        ),
        (
            configured(devices=[*DEVICES, {"name": "d3", "ipv6_loopbacks": [LOOPBACK | {"name": "ip1"}]}]),
            ["devices[2].ipv6_loopbacks[0].name: 'ip1' is there twice"],
        ),
        (configured(flow(tx_rx={"port": {"tx_name": "nope"}})), ["tx_rx.port.tx_name: there is no port 'nope'"]),
        (configured(flow(tx_rx={"port": {"tx_name": "p1", "rx_names": ["p1"]}})), ["p1 would send to itself"]),
        (configured(flow(size={"fixed": 60})), ["flows[0].size: 60 bytes are too few for f1", "need 64"]),
        (configured(flow(size={"fixed": 9300})), ["9,300 bytes are too many; 9,216 are possible"]),
        (
            configured(flow(size={"random": {"min": 64, "max": 1518}})),
            ["1,455 sizes are not possible: a flow has 1 to 32"],
        ),
        (configured(*(flow(name=f"f{n}") for n in range(8001))), ["8,001 flows are not possible: at most 8,000 are"]),
        (
            configured(flow(size={"fixed": 500}), layer1=[{"name": "l", "port_names": ["p1"], "mtu": 200}]),
            ["flows[0].size: 500 bytes are too many for the mtu of p1 (layer1)"],
        ),
        (configured({"name": "f"}), ["flows[0].tx_rx is missing"]),
        (configured(flow(packet=[])), ["flows[0].packet: frames begin with ethernet"]),
        (
            configured(
                flow(rate={"percentage": 150.0}), layer1=[{"name": "l", "port_names": ["p1"], "speed": "speed_1_gbps"}]
            ),
            ["more than 100 %"],
        ),
        (configured(flow(rate={"percentage": 10.0})), ["the speed of its port is unknown: give layer1 with a speed"]),
        (configured(flow(rate={"bps": "600"})), ["f1 would send 0.89"]),
        (
            configured(flow(duration={"fixed_packets": {"packets": 10**6}}, rate={"pps": "1"})),
            ["flows[0].duration.fixed_packets: f1 would send for more than a day"],
        ),
        (configured(flow(duration={"fixed_packets": {"packets": 0}})), ["none would be sent"]),
        (configured(flow(duration={"burst": {"packets": 0}})), ["duration.burst.packets: none would be sent"]),
        (
            configured(flow(duration={"burst": {"packets": 1_000_001}})),
            ["flows[0].duration.burst.packets: a burst has at most 1,000,000 frames"],
        ),
        (configured(flow(duration={"continuous": {"gap": 100}})), ["a least gap of more than 12 bytes is not covered"]),
        (configured(flow(packet=[{"ipv4": {}}])), ["flows[0].packet: frames begin with ethernet, not ipv4"]),
        (
            configured(flow(packet=[*UDP[:2], {"udp": {"src_port": {"value": 70000}}}])),
            ["flows[0].packet[2].udp.src_port: 70000 does not fit in 16 bits"],
        ),
        (
            configured(flow(packet=[*UDP[:2], {"udp": {"checksum": {"generated": "bad"}}}])),
            ["udp.checksum: a bad checksum is not covered"],
        ),
        (
            configured(flow(packet=[{"ethernet": {"src": {"value": "zz"}}}])),
            ["packet[0].ethernet.src.value: 'zz' is no MAC address"],
        ),
        (configured(flow(packet=[*UDP, {"custom": {"bytes": "4"}}])), ["custom.bytes: '4' are no bytes"]),
        (
            configured(flow(tx_rx={"device": {"tx_names": ["x"], "rx_names": ["y"]}})),
            ["there is no device, interface or"],
        ),
        (configured(captures=[{"name": "c", "port_names": ["p9"]}]), ["captures[0].port_names: there is no port 'p9'"]),
        (configured(layer1=[{"name": "l", "port_names": ["p9"]}]), ["layer1[0].port_names: there is no port 'p9'"]),
    ],
)
def test_what_is_not_possible_is_told_with_its_place(wanted: dict[str, Any], said: list[str]) -> None:
    generator = Generator(LOCATED, EngineSettings(), opening(SimulatedTester))
    try:
        with pytest.raises(Rejected) as caught:
            generator.set_configuration(of_members(wanted, messages.Config))
        for text in said:
            assert text in str(caught.value)
    finally:
        generator.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "the body is no JSON"),
        ("[1]", "is no JSON object of the model's Config"),
        ('{"ports": 5}', "ports"),
        ('{"flows": [{"packet": [{"custom": {"bytes": 5}}]}]}', "flows.packet.custom.bytes: "),
        ('{"ports": [{"nmae": "p"}]}', 'has no field named "nmae" at "Config.ports[0]"'),
        ('{"flows": [{"rate": {"pps": "-1"}}]}', "pps"),
        ('{"flows": [{"rate": {"choice": "warp"}}]}', "warp"),
        ('{"flows": [{"size": {"fixed": 1.5}}]}', "fixed"),
        ("[" * 100_000, "no JSON"),
        ('{"ports": [{"name": "\\ud800"}]}', "surrogate"),
    ],
)
def test_a_body_that_is_no_message_is_an_error_of_the_model(body: str, said: str, client: TestClient) -> None:
    answer = client.post("/config", content=body.encode("utf-8", "surrogatepass"))
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "kind", "errors"}
    assert said in answer.json()["errors"][0]
    assert len(answer.json()["errors"][0]) < 500
    assert client.get("/config").json() == {}


def test_what_has_no_effect_is_answered_by_a_warning(client: TestClient) -> None:
    layer = {"name": "l", "port_names": ["p1"], "media": "fiber", "auto_negotiate": True}
    warnings = client.post("/config", json=configured(flow(), layer1=[layer])).json()["warnings"]
    assert warnings == [
        "layer1[0].media has no effect: the interface's own medium applies",
        "layer1[0].auto_negotiate has no effect: the interface's own settings apply",
    ]


# --- what is sent ---------------------------------------------------------------------------------


class Lasting(Opened):
    """One whose trials last until they are ended; half of the frames come."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        assert on_progress is not None
        began_s = time.monotonic()
        with_flows = trial.other_streams or {}
        while True:
            elapsed_s = time.monotonic() - began_s
            now = {
                direction: {"sent": int(elapsed_s * one.rate_fps), "received": int(elapsed_s * one.rate_fps) // 2}
                for direction, one in with_flows.items()
            }
            try:
                on_progress(Progress(elapsed_s, 0, 0, {direction: SoFar(**one) for direction, one in now.items()}))
            except EndTrial:
                return result_of(trial, now)
            time.sleep(0.01)


def result_of(trial: Trial, now: Mapping[Direction, Mapping[str, int]]) -> TrialResult:
    return TrialResult(
        trial=trial.trial,
        verdict=Verdict.VALID,
        other_streams={direction: counts(one["sent"], one["received"]) for direction, one in now.items()},
    )


@pytest.fixture
def client() -> Iterator[TestClient]:
    yield from serving(Opened)


@pytest.fixture
def lossy() -> Iterator[TestClient]:
    yield from serving(Opened, dut=SimulatedDut(capacity_fps=500.0, queue_frames=0))


@pytest.fixture
def lasting() -> Iterator[TestClient]:
    yield from serving(Lasting)


def transmit(client: TestClient, state: str, *names: str) -> Any:
    answer = client.post("/control/state", json={"traffic": {"flow_transmit": {"state": state, "flow_names": names}}})
    assert answer.status_code == 200, answer.text
    return answer.json()["warnings"]


def metrics(client: TestClient, *names: str) -> dict[str, dict[str, Any]]:
    answer = client.post("/monitor/metrics", json={"choice": "flow", "flow": {"flow_names": names}}).json()
    return {one["name"]: one for one in answer["flow_metrics"]}


def stopped(client: TestClient, within_s: float = 10.0) -> dict[str, dict[str, Any]]:
    """The metrics when all flows have stopped."""
    end_s = time.monotonic() + within_s
    while time.monotonic() < end_s:
        found = metrics(client)
        if all(one["transmit"] == "stopped" for one in found.values()):
            return found
        time.sleep(0.02)
    raise AssertionError("they have not stopped")


def test_a_configuration_is_given_back_as_it_was_set(client: TestClient) -> None:
    wanted = configured(flow())
    assert client.post("/config", json=wanted).json() == {"warnings": []}
    assert client.get("/config").json()["flows"][0]["name"] == "f1"
    refused = client.post("/config", json=configured(flow(size={"fixed": 60})))
    assert refused.status_code == 400
    assert client.get("/config").json()["flows"][0].get("size") is None, "nothing changed"


def test_flows_are_sent_and_counted(lossy: TestClient) -> None:
    lossy.post("/config", json=configured(flow(), flow(name="quiet", metrics={})))
    assert transmit(lossy, "start") == []
    found = stopped(lossy)
    assert set(found) == {"f1"}, "of those that report any"
    one = found["f1"]
    assert (one["frames_tx"], one["port_tx"], one["port_rx"]) == ("100", "p1", "p2")
    assert int(one["frames_rx"]) < 100
    assert one["loss"] == pytest.approx(100 - int(one["frames_rx"]))
    assert one["bytes_tx"] == str(100 * 64)
    [trial] = lossy.get("/dutperf/verdicts").json()["trials"]
    assert (trial["flows"], trial["verdict"]) == (["f1", "quiet"], "valid")
    ports = lossy.post("/monitor/metrics", json={"port": {}}).json()["port_metrics"]
    assert [(port["name"], port["frames_tx"], port["link"]) for port in ports] == [
        ("p1", "200", "up"),
        ("p2", "0", "up"),
    ]


def test_a_start_clears_the_counts(client: TestClient) -> None:
    client.post("/config", json=configured(flow()))
    for _ in range(2):
        transmit(client, "start")
        assert stopped(client)["f1"]["frames_tx"] == "100"


def test_the_verdicts_of_so_many_flows_are_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last trial in any case."""
    monkeypatch.setattr(trial_log, "MOST_COUNTS", 4)
    for flows_of_each, kept in ((1, 4), (2, 2), (5, 1)):
        client.post("/config", json=configured(*(flow(name=f"f{n}") for n in range(flows_of_each))))
        for _ in range(5):
            transmit(client, "start")
            stopped(client)
        assert len(client.get("/dutperf/verdicts").json()["trials"]) == kept


def test_one_flow_stops_beside_another(lasting: TestClient) -> None:
    endless = {"duration": {"continuous": {}}, "rate": {"pps": "1000"}}
    lasting.post("/config", json=configured(flow(**endless), flow(name="f2", **endless)))
    transmit(lasting, "start")
    time.sleep(0.3)
    [warning] = transmit(lasting, "stop", "f2")
    assert warning.startswith("f1: paused for 0.")
    before = metrics(lasting)
    time.sleep(0.3)
    after = metrics(lasting)
    assert after["f2"]["frames_tx"] == before["f2"]["frames_tx"] != "0"
    assert int(after["f1"]["frames_tx"]) > int(before["f1"]["frames_tx"])
    assert [after[name]["transmit"] for name in ("f1", "f2")] == ["started", "stopped"]
    transmit(lasting, "pause")
    paused = metrics(lasting)
    assert [paused[name]["transmit"] for name in ("f1", "f2")] == ["paused", "stopped"]
    transmit(lasting, "resume", "f1")
    time.sleep(0.2)
    assert int(metrics(lasting)["f1"]["frames_tx"]) > int(paused["f1"]["frames_tx"])
    transmit(lasting, "stop")
    assert all(one["transmit"] == "stopped" for one in metrics(lasting).values())


class FirstInvalid(Lasting):
    """In its first trial the tester drops frames."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        if trial.trial != 1:
            return result
        dropped = Cause(code="tester_drops", text="the tester dropped 5 frames")
        return result.model_copy(update={"verdict": Verdict.INVALID, "causes": (dropped,)})


DROPPED = "not valid: the tester dropped 5 frames"
TWO_ENDLESS = configured(
    *(flow(name=name, duration={"continuous": {}}) for name in ("f1", "f2")),
    captures=[{"name": "c", "port_names": ["p2"]}],
)


@pytest.fixture
def dropping() -> Iterator[TestClient]:
    for client in serving(FirstInvalid):
        client.post("/config", json=TWO_ENDLESS)
        yield client


@pytest.mark.parametrize(
    ("method", "path", "change"),
    [
        ("POST", "/control/state", {"traffic": {"flow_transmit": {"state": "start", "flow_names": ["f2"]}}}),
        ("POST", "/control/state", {"port": {"capture": {"state": "start"}}}),
        ("PATCH", "/config/append", [{"flows": [flow(name="f3")]}]),
        ("PATCH", "/config/delete", [{"flows": ["f2"]}]),
    ],
)
def test_stop_tells_of_every_trial_whose_counts_a_flow_has(
    method: str, path: str, change: Any, dropping: TestClient
) -> None:
    """The trial that the change ends was invalid; the next one is valid."""
    transmit(dropping, "start", "f1")
    assert dropping.request(method, path, json=change).status_code == 200
    assert DROPPED in transmit(dropping, "pause", "f1")
    transmit(dropping, "resume", "f1")
    for _ in range(2):
        assert DROPPED in transmit(dropping, "stop", "f1"), "also if the first answer got lost"
    transmit(dropping, "start", "f1")
    assert DROPPED not in transmit(dropping, "stop", "f1"), "its counts are new"


def test_what_stop_told_of_a_flow_says_nothing_of_those_that_are_sent_later(dropping: TestClient) -> None:
    transmit(dropping, "start", "f1")
    assert transmit(dropping, "stop") == [DROPPED]
    transmit(dropping, "start", "f2")
    assert transmit(dropping, "stop") == []


def test_rates_are_those_of_the_last_half_second(lasting: TestClient) -> None:
    lasting.post("/config", json=configured(flow(duration={"continuous": {}}, rate={"pps": "1000"})))
    transmit(lasting, "start")
    time.sleep(1.2)
    now = metrics(lasting)["f1"]
    assert now["frames_tx_rate"] == pytest.approx(1000, rel=0.2)
    assert now["frames_rx_rate"] == pytest.approx(500, rel=0.2)
    transmit(lasting, "stop")
    assert metrics(lasting)["f1"]["frames_tx_rate"] == 0.0


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/control/state", {"traffic": {"flow_transmit": {"state": "start"}}}, "no flow is configured"),
        ("/control/state", {"port": {"capture": {"state": "start"}}}, "no capture is configured"),
        ("/control/state", {"port": {"link": {"state": "down"}}}, "no port is configured"),
        ("/control/state", {"port": {"link": {}}}, "port.link.state is missing"),
        ("/control/state", {}, "says nothing of flows"),
        ("/control/state", {"traffic": {"flow_transmit": {"state": "unspecified"}}}, "state with unspecified is not"),
        ("/control/state", {"traffic": {"flow_transmit": {"state": -1}}}, "state with -1 is not covered"),
        ("/monitor/metrics", {"choice": 99}, "choice with 99 is not covered"),
        ("/monitor/metrics", {"choice": "unspecified"}, "choice with unspecified is not covered"),
        (
            "/monitor/metrics",
            {"flow": {"metric_names": ["unspecified"]}},
            "metric_names with unspecified is not covered",
        ),
        ("/control/action", {"protocol": {"ipv4": {}}}, "the action is no ping"),
        ("/control/action", {"protocol": {"ipv4": {"ping": {}}}}, "protocol.ipv4.ping.requests: there is none"),
        ("/control/action", {"protocol": {"bgp": {}}}, "protocol.bgp is not covered"),
        ("/control/action", {"port": {"reboot": {}}}, "port is not covered"),
        ("/monitor/metrics", {"flow": {"flow_names": ["f9"]}}, "there is no flow 'f9'"),
        ("/monitor/metrics", {"port": {"port_names": ["p9"]}}, "there is no port 'p9'"),
        ("/monitor/metrics", {"bgpv4": {}}, "bgpv4 is not covered"),
        ("/monitor/metrics", {"choice": "bgpv4"}, "bgpv4 is not covered"),
        ("/monitor/states", {"lldp_neighbors": {}}, "lldp_neighbors is not covered"),
        ("/monitor/capture", {"port_name": "p1"}, "there is no port 'p1'"),
    ],
)
def test_before_a_configuration_there_is_nothing(
    path: str, body: dict[str, Any], said: str, client: TestClient
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code in (400, 501)
    assert said in answer.json()["errors"][0]


def test_flows_are_changed_while_they_are_sent(lasting: TestClient) -> None:
    """Neither their state nor their counts are lost."""
    endless = {"duration": {"continuous": {}}, "rate": {"pps": "1000"}}
    lasting.post("/config", json=configured(flow(**endless), flow(name="f2", **endless)))
    transmit(lasting, "start")
    time.sleep(0.3)
    update = {"flows": {"property_names": ["rate"], "flows": [{"name": "f2", "rate": {"pps": "5000"}}]}}
    [warning] = lasting.patch("/config", json=update).json()["warnings"]
    assert warning.startswith("f1, f2: paused for 0.")
    before = metrics(lasting)
    assert all(one["transmit"] == "started" and int(one["frames_tx"]) >= 200 for one in before.values())
    time.sleep(0.3)
    now = metrics(lasting)
    sent = {name: int(now[name]["frames_tx"]) - int(before[name]["frames_tx"]) for name in now}
    assert sent["f2"] > 2 * sent["f1"] > 0
    transmit(lasting, "stop")


def test_lists_of_changes_are_taken_as_snappi_sends_them(client: TestClient) -> None:
    client.post("/config", json=configured(flow()))
    added = {"config_append_list": [{"choice": "flows", "flows": [flow(name="f2")]}]}
    assert client.patch("/config/append", json=added).status_code == 200
    deleted = {"config_delete_list": [{"choice": "flows", "flows": ["f1"]}]}
    assert client.patch("/config/delete", json=deleted).status_code == 200
    assert [one["name"] for one in client.get("/config").json()["flows"]] == ["f2"]


def test_only_the_columns_that_were_asked_for_are_told(client: TestClient) -> None:
    client.post("/config", json=configured(flow()))
    asked = {"flow": {"metric_names": ["frames_tx"]}}
    [one] = client.post("/monitor/metrics", json=asked).json()["flow_metrics"]
    assert set(one) == {"name", "port_tx", "port_rx", "frames_tx"}
    asked = {"port": {"column_names": ["link"]}}
    assert [set(one) for one in client.post("/monitor/metrics", json=asked).json()["port_metrics"]] == [
        {"name", "link"}
    ] * 2


def test_flows_are_added_changed_and_deleted(client: TestClient) -> None:
    client.post("/config", json=configured(flow()))
    assert client.patch("/config/append", json=[{"flows": [flow(name="f2")]}]).status_code == 200
    update = {"flows": {"property_names": ["rate"], "flows": [{"name": "f2", "rate": {"pps": "7"}}]}}
    assert client.patch("/config", json=update).status_code == 200
    assert client.patch("/config/delete", json=[{"flows": ["f1"]}]).status_code == 200
    [left] = client.get("/config").json()["flows"]
    assert (left["name"], left["rate"]) == ("f2", {"pps": "7"})
    assert "there is no 'f1'" in client.patch("/config/delete", json=[{"flows": ["f1"]}]).text


def test_neighbours_are_the_gateways_of_devices(client: TestClient) -> None:
    client.post("/config", json=configured(devices=DEVICES))
    found = client.post("/monitor/states", json={"ipv4_neighbors": {}}).json()["ipv4_neighbors"]
    assert found[0] == {"ethernet_name": "e1", "ipv4_address": "198.18.0.1", "link_layer_address": "02:00:00:00:00:aa"}
    assert (
        client.post("/monitor/states", json={"ipv4_neighbors": {"ethernet_names": ["e2"]}}).json()["ipv4_neighbors"][0][
            "ethernet_name"
        ]
        == "e2"
    )


def test_neighbours_of_an_unknown_interface_are_refused(client: TestClient) -> None:
    client.post("/config", json=configured(devices=DEVICES))
    for version in (4, 6):
        wanted = {f"ipv{version}_neighbors": {"ethernet_names": ["e1", "e9"]}}
        answer = client.post("/monitor/states", json=wanted)
        told = [f"ipv{version}_neighbors.ethernet_names: there is no interface 'e9'"]
        assert (answer.status_code, answer.json()["errors"]) == (400, told)


def test_a_gateway_that_does_not_answer_is_a_warning_and_starts_nothing() -> None:
    class Silent(Opened):
        def environment(self) -> dict[str, Any]:
            raise TesterError("the DUT did not answer ARP", code="no_answer", field="p1.gateway4")

    [one] = list(islice(serving(Silent), 1))
    tx_rx = {"device": {"tx_names": ["d1"], "rx_names": ["d2"]}}
    wanted = configured(flow(tx_rx=tx_rx, packet=[{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}]), devices=DEVICES)
    assert one.post("/config", json=wanted).json()["warnings"] == [f"{GATEWAY}: the DUT did not answer ARP"]
    answer = one.post("/control/state", json={"traffic": {"flow_transmit": {"state": "start"}}})
    assert (answer.status_code, answer.json()["kind"]) == (500, "internal")
    assert "did not answer ARP" in answer.text
    assert "link_layer_address" not in one.post("/monitor/states", json={"ipv4_neighbors": {}}).text


@contextmanager
def served(opened: Open, *command: str) -> Iterator[TestClient]:
    generator = Generator(LOCATED, EngineSettings(command=command), opened, drain_s=0.0)
    try:
        with TestClient(app.make(generator, Rules(TOKEN, "127.0.0.1")), LOCAL) as one:
            yield one
    finally:
        generator.close()


@contextmanager
def with_faults(*faults: tuple[str, str, str]) -> Iterator[TestClient]:
    """A server whose ports have faults, each of a field, a code and a text: those of gateways only where a port has
    one."""

    def opened(setup: Setup, _size: int, _streams: Sequence[Direction]) -> Any:
        class Faulty(Opened):
            def environment(self) -> dict[str, Any]:
                for field, code, text in faults:
                    port, _, setting = field.partition(".")
                    if getattr(setup.sides()[port], setting):
                        raise TesterError(text, code=code, field=field)
                return super().environment()

        return Faulty()

    with served(opened) as one:
        yield one


def neighbours(client: TestClient) -> dict[str, str | None]:
    found = client.post("/monitor/states", json={"ipv4_neighbors": {}}).json()["ipv4_neighbors"]
    return {one["ethernet_name"]: one.get("link_layer_address") for one in found}


@pytest.mark.parametrize(
    ("silent", "known"), [(("p1",), {"e2"}), (("p2",), {"e1"}), (("p1", "p2"), set()), ((), {"e1", "e2"})]
)
def test_a_silent_gateway_hides_no_other(silent: tuple[str, ...], known: set[str]) -> None:
    with with_faults(*((f"{port}.gateway4", "no_answer", "no answer") for port in silent)) as one:
        one.post("/config", json=configured(devices=DEVICES))
        assert {name for name, mac in neighbours(one).items() if mac} == known


@pytest.mark.parametrize(("code", "status"), [("port", 500), ("port_away", 200)])
def test_a_port_that_cannot_be_opened_is_told_with_its_place(code: str, status: int) -> None:
    """Where it may be there later, the configuration is set."""
    with with_faults(("p2.port", code, "the p2 port has no driver")) as one:
        answer = one.post("/config", json=configured(flow()))
        assert answer.status_code == status
        told = answer.json()
        assert told["warnings" if status == 200 else "errors"] == ["ports[1].location: the p2 port has no driver"]
        assert bool(one.get("/config").json()) == (status == 200)
        started = one.post("/control/state", json={"traffic": {"flow_transmit": {"state": "start"}}}).json()
        assert started["code"] == (500 if status == 200 else 400)


def narrow(_setup: Setup, size: int, _streams: Sequence[Direction]) -> Any:
    """Opens ports of which the second one takes no long frames."""

    class Narrow(Lasting):
        def environment(self) -> dict[str, Any]:
            if size > 1518:
                raise TesterError("the p2 port takes 1518 bytes", code="port", field="p2.port")
            return super().environment()

    return Narrow()


class Failing(Lasting):
    """One whose flow of 9 frames/s cannot be sent."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        if any(one.rate_fps == 9 for one in trial.streams().values()):
            raise TesterError("the engine is gone", code="internal")
        return super().run(trial, on_progress)


CHANGES: list[tuple[str, str, Any]] = [
    ("PATCH", "", {"flows": {"property_names": ["size"], "flows": [{"name": "f1", "size": {"fixed": 2000}}]}}),
    ("PATCH", "/append", [{"flows": [flow(name="f2", size={"fixed": 2000})]}]),
    ("POST", "", configured(flow(name="f2", size={"fixed": 2000}))),
]


@pytest.mark.parametrize("is_sent", [False, True])
@pytest.mark.parametrize(("method", "path", "change"), CHANGES)
def test_a_change_whose_ports_cannot_be_opened_changes_nothing(
    method: str, path: str, change: Any, is_sent: bool
) -> None:
    """What is sent goes on, with its counts."""

    endless = flow(duration={"continuous": {}}, rate={"pps": "1000"})
    with served(narrow) as one:
        one.post("/config", json=configured(endless, flow(name="f0")))
        before = one.get("/config").json()
        if is_sent:
            transmit(one, "start", "f1")
            time.sleep(0.1)
        answer = one.request(method, f"/config{path}", json=change)
        assert (answer.status_code, answer.json()["errors"]) == (
            500,
            ["ports[1].location: the p2 port takes 1518 bytes"],
        )
        assert one.get("/config").json() == before
        assert set(metrics(one)) == {"f0", "f1"}
        assert metrics(one)["f1"]["transmit"] == ("started" if is_sent else "stopped")
        transmit(one, "stop")
        assert int(metrics(one)["f1"]["frames_tx"]) >= (100 if is_sent else 0)
        assert one.patch("/config/append", json=[{"flows": [flow(name="f2")]}]).status_code == 200


def test_a_ring_alone_is_refused() -> None:
    with switching(["true"], Opened, loop="ring") as one:
        answer = one.post("/config", json={"ports": [{"name": "p1", "location": "loop"}]})
        told = ["ports[0].location: what leaves a ring needs a port where it arrives"]
        assert (answer.status_code, answer.json()["errors"]) == (400, told)


def test_a_change_with_which_flows_cannot_go_on_changes_nothing() -> None:
    endless = flow(duration={"continuous": {}}, rate={"pps": "1000"})
    change = {"flows": {"property_names": ["rate"], "flows": [{"name": "f1", "rate": {"pps": "9"}}]}}
    with contextmanager(serving)(Failing) as one:
        one.post("/config", json=configured(endless))
        transmit(one, "start")
        before = one.get("/config").json()
        answer = one.patch("/config", json=change)
        assert (answer.status_code, answer.json()["errors"]) == (500, ["the engine is gone"])
        assert one.get("/config").json() == before
        assert metrics(one)["f1"]["transmit"] == "started"
        transmit(one, "stop")
        assert [trial["verdict"] for trial in one.get("/dutperf/verdicts").json()["trials"]] == [
            *("valid", "aborted", "valid")
        ]


# --- links ----------------------------------------------------------------------------------------


@contextmanager
def switching(command: Sequence[str], kind: type[SimulatedTester], **located: str) -> Iterator[TestClient]:
    """A server that switches links with ``command`` before ``ip``."""
    generator = Generator(LOCATED | located, EngineSettings(command=tuple(command)), opening(kind), drain_s=0.0)
    try:
        with TestClient(app.make(generator, Rules(TOKEN, "127.0.0.1")), LOCAL) as one:
            yield one
    finally:
        generator.close()


def switch(client: TestClient, state: str, *names: str) -> dict[str, Any]:
    answer = client.post("/control/state", json={"port": {"link": {"state": state, "port_names": names}}})
    return dict(answer.json())


def capture(client: TestClient, state: str, *names: str) -> dict[str, Any]:
    answer = client.post("/control/state", json={"port": {"capture": {"state": state, "port_names": names}}})
    return dict(answer.json())


def links_of(client: TestClient) -> list[str]:
    return [one["link"] for one in client.post("/monitor/metrics", json={"port": {}}).json()["port_metrics"]]


def test_a_link_goes_down_and_up_and_is_up_in_the_next_configuration(tmp_path: Path) -> None:
    note = tmp_path / "commands"
    with switching(["sh", "-c", f'echo "$*" >> {note}', "sh"], Lasting) as one:
        endless = flow(duration={"continuous": {}})
        one.post("/config", json=configured(endless))
        assert switch(one, "down", "p2") == {"warnings": []}
        assert links_of(one) == ["up", "down"]
        assert switch(one, "up") == {"warnings": []}
        assert links_of(one) == ["up", "up"]
        switch(one, "down", "p1")
        refused = one.post("/control/state", json={"traffic": {"flow_transmit": {"state": "start"}}}).json()
        assert refused["errors"] == ["traffic.flow_transmit: the link of p1 is down"]
        one.post("/config", json=configured(endless))
        assert links_of(one) == ["up", "up"]
        transmit(one, "start")
        assert switch(one, "down", "p1")["errors"] == [
            "port.link.port_names: f1 is sent from such a port: stop it first"
        ]
        assert switch(one, "down", "p2") == {"warnings": []}
    changes = ["eth2 down", "eth1 up", "eth2 up", "eth1 down", "eth1 up", "eth2 down", "eth2 up"]
    assert note.read_text().splitlines() == [f"ip link set {one}" for one in changes]


@pytest.mark.parametrize("spec", ["null", "ring", "0000:01:00.0", "memif:/socket", "vdev:net_null0"])
def test_links_of_other_ports_are_refused_by_name(spec: str) -> None:
    with switching(["true"], Opened, right=spec) as one:
        one.post("/config", json=configured(flow()))
        assert switch(one, "down") == {
            "code": 501,
            "kind": "validation",
            "errors": ["port.link.port_names: p2 is no interface of the kernel: links of others are not covered"],
        }
        assert links_of(one) == ["up", "up"]


def test_a_link_that_the_kernel_does_not_switch_is_an_error() -> None:
    with switching(["sh", "-c", "echo no such device >&2; exit 1"], Opened) as one:
        one.post("/config", json=configured(flow()))
        told = switch(one, "down", "p1")
        assert told["kind"] == "internal"
        assert told["errors"][0].endswith("no such device")
        assert links_of(one) == ["up", "up"]


def test_a_refused_configuration_leaves_links_as_they_were() -> None:
    with served(narrow, "true") as one:
        one.post("/config", json=configured(flow()))
        switch(one, "down", "p2")
        assert one.post("/config", json=configured(flow(size={"fixed": 2000}))).status_code == 500
        assert links_of(one) == ["up", "down"]


@pytest.mark.parametrize("error", [OSError("no ip"), subprocess.TimeoutExpired("ip", 10)])
def test_a_link_that_cannot_be_taken_up_again_refuses_no_configuration(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_arguments: Any, **_options: Any) -> Any:
        raise error

    with switching(["true"], Opened) as one:
        one.post("/config", json=configured(flow()))
        switch(one, "down", "p2")
        monkeypatch.setattr(port_links.subprocess, "run", failing)
        assert one.post("/config", json=configured(flow())).status_code == 200


# --- captures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "status"), [(["ssh", "tester"], 501), (["env"], 200), ([], 200)])
def test_captures_need_the_engine_here(command: Sequence[str], status: int) -> None:
    with switching(command, Lasting) as one:
        one.post("/config", json=configured(flow(), captures=[{"name": "c", "port_names": ["p1"]}]))
        assert capture(one, "start").get("code", 200) == status
        assert capture(one, "stop") == {"warnings": []}


@pytest.mark.parametrize("is_new", [False, True])
@given(data=st.lists(st.binary(min_size=60, max_size=200), max_size=5), snap=st.one_of(st.none(), st.integers(64, 100)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
def test_a_capture_has_the_frames_of_its_port_with_their_fcs(
    is_new: bool, data: list[bytes], snap: int | None, tmp_path: Path
) -> None:
    """Read by scapy; the FCS is that of scapy's own computation."""
    each = [CapturedFrame(one, 10**9 * number + 7, len(one), "p1") for number, one in enumerate(data)]
    others = [CapturedFrame(bytes(60), 5, 60, "p2")]
    recorded_frames = recorded.frames_of
    try:
        recorded.frames_of = lambda _path: iter([*each, *others])  # type: ignore[assignment]
        made = recorded.file_of([tmp_path], "p1", snap=snap, is_new=is_new)
    finally:
        recorded.frames_of = recorded_frames
    if not data and is_new:
        return
    with PcapReader(BytesIO(made)) as reader:
        found = list(reader)
    assert len(found) == len(data)
    for one, sent in zip(found, data, strict=True):
        whole = sent + binascii.crc32(sent).to_bytes(4, "little")
        assert bytes(one)[: len(whole[:snap])] == whole[:snap] or bytes(one.original) == whole[:snap]
        assert one.wirelen == len(whole)


def test_a_large_capture_is_in_memory_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [CapturedFrame(bytes(1514), number, 1514, "p1") for number in range(500)]
    monkeypatch.setattr(recorded, "frames_of", lambda _path: iter(frames))
    tracemalloc.start()
    made = recorded.file_of([tmp_path], "p1", snap=None, is_new=False)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.5 * len(made)


def test_captures_that_no_port_needs_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Transmission(EngineSettings(), opening(Opened), 0.5, TrialLog())
    monkeypatch.setattr(sent, "_open", lambda **_: None)
    monkeypatch.setattr(sent, "_begin_part", lambda _names: None)

    def capture(number: int, *ports: str) -> Path:
        file = Path(sent._directory.name) / f"{number}.pcapng"
        file.write_bytes(b"frames")
        sent._captured.append((file, frozenset(ports)))
        return file

    both, one = capture(1, "p1", "p2"), capture(2, "p1")
    sent.begin_capture(frozenset({"p1"}))
    assert (both.exists(), one.exists()) == (True, False)
    sent.set(Links(), [], messages.Config(), messages.Config())
    assert not both.exists()
    sent.close()


class ThirdFailing(Lasting):
    """One whose third trial cannot begin."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        if trial.trial == 3:
            raise TesterError("the engine is gone", code="internal")
        return super().run(trial, on_progress)


def test_a_capture_that_cannot_begin_changes_nothing() -> None:
    """What was sent and captured before goes on, and is stopped and started again."""
    captures = [{"name": "c", "port_names": ["p1", "p2"]}]
    with contextmanager(serving)(ThirdFailing) as one:
        one.post("/config", json=configured(flow(duration={"continuous": {}}), captures=captures))
        transmit(one, "start")
        assert "errors" not in capture(one, "start", "p1")
        assert capture(one, "start", "p2")["errors"] == ["the engine is gone"]
        ports = one.post("/monitor/metrics", json={"port": {}}).json()["port_metrics"]
        assert [port["capture"] for port in ports] == ["started", "stopped"]
        assert metrics(one)["f1"]["transmit"] == "started"
        assert one.post("/monitor/capture", json={"port_name": "p2"}).json()["errors"] == [
            "port_name: nothing was captured at p2"
        ]
        transmit(one, "stop")
        transmit(one, "start")
        assert metrics(one)["f1"]["transmit"] == "started"


def test_rates_and_bytes_of_a_mix_have_its_mean_size(lasting: TestClient) -> None:
    imix = {"size": {"weight_pairs": {"predefined": "imix"}}, "duration": {"continuous": {}}, "rate": {"pps": "1200"}}
    lasting.post("/config", json=configured(flow(**imix)))
    transmit(lasting, "start")
    time.sleep(1.2)
    one, mean = metrics(lasting)["f1"], (7 * 64 + 4 * 570 + 1518) / 12
    transmit(lasting, "stop")
    assert one["tx_rate_bytes"] / one["frames_tx_rate"] == pytest.approx(mean)
    assert one["rx_rate_bps"] / one["frames_rx_rate"] == pytest.approx(8 * mean)
    assert one["tx_l1_rate_bps"] / one["frames_tx_rate"] == pytest.approx(8 * (mean + 20))
    of_all = metrics(lasting)["f1"]
    assert int(of_all["bytes_tx"]) / int(of_all["frames_tx"]) == pytest.approx(mean, rel=0.01)


# --- who may use it -------------------------------------------------------------------------------


def test_elsewhere_only_who_has_the_token_is_served() -> None:
    generator = Generator(LOCATED, EngineSettings(), opening(Opened))
    made = app.make(generator, Rules(TOKEN, "192.0.2.1"))
    try:
        with TestClient(made, "https://192.0.2.1:8443") as one:
            assert one.get("/config").status_code == 401
            assert one.get("/wrong/config").status_code == 401
            assert one.get(f"/{TOKEN}/config").status_code == 200
            assert one.get("/config", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
            assert one.post(f"/{TOKEN}/config", json=configured(flow())).status_code == 200
    finally:
        generator.close()


def test_no_page_of_another_origin_and_no_other_name(client: TestClient) -> None:
    assert client.get("/config", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get("/config", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/nothing").json()["errors"] == ["there is no such address here (Not Found)"]
    assert client.delete("/config").status_code == 405


def test_a_body_that_is_too_long_is_refused(client: TestClient) -> None:
    answer = client.post("/config", content=b" " * (app.MOST_BODY + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, 413)


def test_a_client_that_goes_in_the_middle_of_a_request_is_no_error(client: TestClient) -> None:
    pieces = iter([{"type": "http.request", "body": b'{"ports', "more_body": True}, {"type": "http.disconnect"}])
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/config",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 50000),
    }

    async def receive() -> Any:
        return next(pieces)

    async def send(_message: Any) -> None:
        """To nobody."""

    asyncio.run(client.app(scope, receive, send))
    assert client.get("/config").json() == {}


def test_any_client_may_use_this_version(client: TestClient) -> None:
    told = client.get("/capabilities/version").json()
    assert told["api_spec_version"] == ">=1.0.0"


def test_the_certificate_is_one_that_tls_takes(tmp_path: Path) -> None:
    made = certificate.generate(tmp_path, "192.0.2.1")
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*made)
    assert made[1].stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "CONNECT"])
def test_a_plain_request_to_tls_gets_a_sentence(method: str, tmp_path: Path) -> None:
    files = certificate.generate(tmp_path, "127.0.0.1")

    async def told() -> bytes:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=tls.server_context(*files))
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(f"{method} /config HTTP/1.1\r\n".encode())
            found = await reader.readuntil(b"}")
            writer.write(b"\r\n{}")  # what comes later resets no connection
            await writer.drain()
            writer.write_eof()
            return found + await reader.read()

    head, _, body = asyncio.run(told()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["errors"] == ["this server speaks TLS: use https:// in its address"]


NAMES = (
    *("ports", "flows", "name", "location", "packet", "tx_rx", "port", "tx_name", "size", "fixed", "rate", "pps"),
    *("ethernet", "ipv4", "src", "value", "devices", "captures", "traffic", "flow_transmit", "state", "flow"),
)
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(NAMES), one, max_size=4),
    max_leaves=20,
)


@given(body=BODIES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
def test_no_body_makes_the_server_fail(client: TestClient, body: Any) -> None:
    for path in ("/config", "/control/state", "/monitor/metrics", "/monitor/states", "/monitor/capture"):
        answer = client.post(path, json=body)
        assert answer.status_code in (200, 400, 500, 501)
        if answer.status_code != 200:
            assert answer.json()["code"] == answer.status_code
            assert answer.status_code != 500 or "Traceback" not in answer.text
    assert client.get("/capabilities/version").status_code == 200
