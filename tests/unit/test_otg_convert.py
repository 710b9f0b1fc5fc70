# SPDX-License-Identifier: Apache-2.0
"""Configurations of the Open Traffic Generator API as ours, and ours as scripts for snappi: the same frames at the same
times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import snappi
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import frame_bytes
from command_line import dutperf
from dutperf import installation, traffic
from dutperf.frames import Stack
from dutperf.model import Direction, Stream, Trial
from dutperf.otg import flows, links, script, to_configuration, to_message
from dutperf.otg.flows import Flow, as_sent
from dutperf.otg.model import Rejected, chosen, messages, of_members
from dutperf.setup import configuration
from dutperf.setup.conditions import Rate, SingleTrial
from dutperf.setup.configuration import NO_PORT, ConfigError, Setup
from dutperf.setup.ports import open_request
from frame_stacks import stacks

PORTS = [{"name": "a", "location": "eth1"}, {"name": "b", "location": "eth2"}, {"name": "c", "location": "eth3"}]
LOCATED = {one["location"]: one["location"] for one in PORTS}
UDP = [{"ethernet": {"dst": {"value": "02:00:00:00:00:02"}}}, {"ipv4": {"dst": {"value": "198.19.0.2"}}}, {"udp": {}}]
LONGEST_S = 100


def flow(name: str = "f", tx: str = "a", rx: str = "b", **members: Any) -> dict[str, Any]:
    ends = {"tx_rx": {"port": {"tx_name": tx, "rx_names": [rx]}}}
    return {"name": name, **ends, "packet": UDP, "duration": {"fixed_packets": {"packets": 100}}} | members


def message(*each: dict[str, Any], **members: Any) -> Any:
    return of_members({"ports": PORTS, "flows": list(each)} | members, messages.Config)


def converted(*each: dict[str, Any], located: Mapping[str, str] | None = None, **members: Any) -> tuple[Setup, str]:
    """Our setup, and what was said."""
    made = to_configuration.convert(message(*each, **members), located or {})
    return configuration.parse_yaml(made.text, "converted"), "\n".join(made.notes)


def trial_of(setup: Setup, duration_s: float = LONGEST_S) -> Trial:
    """That of ``dutperf trial`` without a rate."""
    chosen = SingleTrial(duration_s=duration_s)
    kind = traffic.of(setup, traffic.of(setup, chosen).sized())
    kind.check()
    return kind.trial_of_others(kind.cases()[0], 1)


def planned(wanted: Any, located: Mapping[str, str] = LOCATED) -> tuple[Flow, ...]:
    """What ``dutperf otg`` sends."""
    return flows.planned(wanted, links.planned(wanted, located))


def check_same(flow: Flow, ours: Stream, duration_s: float = LONGEST_S) -> None:
    """The same frames at the same times."""
    theirs = replace(flow, shift_ns=0).part(0, 0, goes_on=False)
    assert theirs is not None
    for name in ("rate_fps", "pattern", "begin_ns", "order", "shares"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert tuple(map(as_sent, ours.frames)) == tuple(map(as_sent, theirs.frames))
    trials = [
        Trial(trial=1, duration_ns=round(duration_s * 1e9), drain_ns=0, other_streams={flow.direction: one})
        for one in (ours, theirs)
    ]
    assert trials[0].intended(flow.direction) == trials[1].intended(flow.direction)


def check_all_same(*each: dict[str, Any], **members: Any) -> Setup:
    setup, _ = converted(*each, **members)
    streams = trial_of(setup).streams()
    theirs = planned(message(*each, **members))
    assert list(streams) == [one.direction for one in theirs]
    for one in theirs:
        check_same(one, streams[one.direction])
    return setup


# --- any flow -------------------------------------------------------------------------------------


def macs(number: int) -> str:
    return (0x020000000000 + number).to_bytes(6, "big").hex(":")


def ipv4s(number: int) -> str:
    return f"198.18.{number >> 8 & 255}.{number & 255}"


def ipv6s(number: int) -> str:
    return f"2001:2::{number:x}"


def patterns(shown: Any = int, most: int = 1000) -> st.SearchStrategy[dict[str, Any]]:
    """A field with numbers up to ``most``."""
    zero = shown(1) if shown is int else {macs: "00:00:00:00:00:01", ipv4s: "0.0.0.1", ipv6s: "::1"}[shown]
    numbers = st.integers(0, most)
    counted = st.fixed_dictionaries({"start": numbers.map(shown), "step": st.just(zero), "count": st.integers(1, 9)})
    return st.one_of(
        numbers.map(lambda one: {"value": shown(one)}),
        st.lists(numbers.map(shown), min_size=1, max_size=5).map(lambda each: {"values": each}),
        counted.map(lambda one: {"increment": one}),
        counted.map(lambda one: {"decrement": one | {"start": shown(most)}}),
    )


def fixed(most: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.integers(0, most).map(lambda one: {"value": one})


def header(name: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields).map(lambda one: {name: one})


NETWORKS = {
    "ipv4": header(
        "ipv4",
        src=patterns(ipv4s),
        dst=patterns(ipv4s),
        time_to_live=patterns(most=200),
        identification=patterns(),
        dont_fragment=fixed(1),
        priority=st.one_of(
            patterns(most=200).map(lambda one: {"raw": one}),
            st.fixed_dictionaries({"phb": patterns(most=50)}).map(lambda one: {"dscp": one}),
        ),
    ),
    "ipv6": header(
        "ipv6", src=patterns(ipv6s), dst=patterns(ipv6s), traffic_class=patterns(most=200), flow_label=patterns()
    ),
}
TRANSPORTS = st.one_of(
    header("udp", src_port=patterns(), dst_port=patterns(), checksum=st.just({"custom": 5})),
    header("tcp", src_port=patterns(), seq_num=patterns(), ctl_syn=st.just({"value": 1}), window=patterns()),
)
TAGS = st.lists(header("vlan", id=patterns(), priority=fixed(7)), max_size=2)
PACKETS = st.builds(
    lambda link, tags, network, transport, more: [link, *tags, network, *transport, *more],
    header("ethernet", src=patterns(macs), dst=patterns(macs)),
    TAGS,
    st.one_of(*NETWORKS.values()),
    st.lists(TRANSPORTS, max_size=1),
    st.sampled_from([[], [{"custom": {"bytes": "474554"}}]]),
)
SIZES = st.one_of(
    st.integers(200, 1500).map(lambda size: {"fixed": size}),
    st.builds(
        lambda start, step, count: {"increment": {"start": start, "end": start + step * count, "step": step}},
        st.integers(200, 300),
        st.integers(1, 50),
        st.integers(0, 20),
    ),
    st.integers(200, 220).map(lambda last: {"random": {"min": 200, "max": last}}),
    st.lists(
        st.fixed_dictionaries({"size": st.integers(200, 1500), "weight": st.integers(1, 100)}),
        min_size=1,
        max_size=5,
        unique_by=lambda one: one["size"],
    ).map(lambda each: {"weight_pairs": {"custom": each}}),
)
DELAYS = st.sampled_from([{}, {"delay": {"microseconds": 1500.0}}, {"delay": {"nanoseconds": 7.0}}])
DURATIONS = st.one_of(
    st.builds(lambda delay, packets: {"fixed_packets": {"packets": packets} | delay}, DELAYS, st.integers(1, 10_000)),
    st.builds(
        lambda delay, s: {"fixed_seconds": {"seconds": s} | delay}, DELAYS, st.sampled_from([1.0, 0.3, 0.123, 5.5])
    ),
    DELAYS.map(lambda delay: {"continuous": delay}),
    st.builds(
        lambda packets, bursts: {"burst": {"packets": packets, "bursts": bursts}}, st.integers(1, 50), st.integers(0, 9)
    ),
)
FLOWS = st.fixed_dictionaries(
    {
        "packet": PACKETS,
        "size": SIZES,
        "rate": st.integers(200, 100_000).map(lambda fps: {"pps": fps}),
        "duration": DURATIONS,
    }
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ab", "ba", "ac"]), FLOWS), min_size=1, max_size=3))
def test_the_streams_of_a_converted_file_are_the_flows(each: list[tuple[str, dict[str, Any]]]) -> None:
    check_all_same(*(flow(f"f{number}", *ends, **one) for number, (ends, one) in enumerate(each)))


def test_bursts_have_their_rate_and_their_gaps() -> None:
    burst = {"bursts": 3, "packets": 10, "inter_burst_gap": {"microseconds": 90_000}}
    setup = check_all_same(flow(duration={"burst": burst}, rate={"pps": 1000}))
    [stream] = setup.streams
    assert (stream.pattern, stream.burst_rate, stream.duration_s) == ("bursts:10", 1000, 0.3)


def test_rates_and_mixes_of_the_model_are_frames_a_second_and_sizes() -> None:
    speed = [{"name": "l", "port_names": ["a"], "speed": "speed_1_gbps"}]
    setup = check_all_same(
        flow("share", rate={"percentage": 10}, size={"fixed": 980}),
        flow("bits", rate={"mbps": "8"}, size={"fixed": 980}),
        flow("mix", size={"weight_pairs": {"predefined": "imix"}}),
        layer1=speed,
    )
    assert [one.rate.value for one in setup.streams if isinstance(one.rate, Rate)] == [12_500, 1000, 1000]
    assert setup.streams[2].sizes == "imix-random:64=7,570=4,1518=1"


# --- ports ----------------------------------------------------------------------------------------


def device(port: str, number: int, *versions: int) -> dict[str, Any]:
    ethernet: dict[str, Any] = {"name": f"e{port}{number}", "connection": {"port_name": port}, "mac": macs(number)}
    net = {4: f"198.18.{number}.", 6: f"2001:2:0:{number}::"}
    for version in versions:
        one = {"name": f"ip{version}{port}{number}", "address": f"{net[version]}2", "gateway": f"{net[version]}1"}
        ethernet[f"ipv{version}_addresses"] = [one]
    return {"name": f"d{port}", "ethernets": [ethernet]}


def between(one: str, other: str, name: str = "f", **members: Any) -> dict[str, Any]:
    ends = {"tx_rx": {"device": {"tx_names": [f"d{one}"], "rx_names": [f"d{other}"]}}}
    return flow(name) | ends | members


IPV6 = [{"ethernet": {}}, {"ipv6": {}}, {"udp": {}}]
IPV4 = [{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}]


@pytest.mark.parametrize(
    ("versions", "version", "packets"),
    [((4,), 4, [IPV4]), ((6,), 6, [IPV6]), ((4, 6), 4, [IPV4, IPV6]), ((6,), 6, [IPV6, UDP])],
)
def test_devices_are_the_hosts_at_the_ports(
    versions: tuple[int, ...], version: int, packets: list[list[dict[str, Any]]]
) -> None:
    """Frames of IPv4 have their own size beside IPv6, too."""
    devices = [device("a", 1, *versions), device("b", 2, *versions)]
    each = [
        between(*ends, f"{ends}{number}", packet=packet, size={"increment": {"start": 100, "end": 120, "step": 10}})
        for ends in ("ab", "ba")
        for number, packet in enumerate(packets)
    ]
    setup = check_all_same(*each, devices=devices)
    sides = setup.sides()
    assert list(sides) == ["a", "b"]
    assert {one.version for one in sides.values()} == {version}
    assert str(sides["b"].address(version)).split("/")[0] == ("198.18.2.2" if version == 4 else "2001:2:0:2::2")
    assert open_request(setup, 1518)["ports"][0]["mac"] == macs(1)


def test_a_port_without_a_device_goes_beside_one_that_has_one() -> None:
    setup = check_all_same(flow("f1"), flow("f2", "b", "a"), devices=[device("a", 1, 4)])
    assert setup.sides()["b"].gateway_mac == "02:00:00:00:00:00"
    assert setup.sides()["b"].ipv4 is not None


def test_how_a_translator_maps_addresses_is_left_to_the_user() -> None:
    devices = [device("a", 1, 6), device("b", 2, 4)]
    wanted = message(flow("f1"), flow("f2", "b", "a"), devices=devices, ports=PORTS[:2])
    made = to_configuration.convert(wanted, {})
    assert made.notes == [
        "ports.b.seen_as: enter its IPv6 address for a, as the DUT translates it",
        "ports.a.seen_as: enter its IPv4 address for b, as the DUT translates it",
    ]
    with pytest.raises(ConfigError, match=r"ports\.a\.seen_as"):
        configuration.parse_yaml(made.text, "converted")
    whole = yaml.safe_load(made.text)
    whole["ports"]["a"]["seen_as"], whole["ports"]["b"]["seen_as"] = "198.18.2.9", "2001:2:0:1::9"
    streams = trial_of(configuration.parse(whole, "entered")).streams()
    for one in planned(wanted):
        check_same(one, streams[one.direction])


def test_a_location_that_is_no_port_is_left_to_the_user() -> None:
    ports = [{"name": "p 1", "location": "10.0.0.1;1;5"}, {"name": "p2", "location": "10.0.0.2"}]
    wanted = of_members({"ports": ports, "flows": [flow(tx="p 1", rx="p2")]}, messages.Config)
    made = to_configuration.convert(wanted, {})
    assert [note.partition(":")[0] for note in made.notes] == ["ports.port1.port", "ports.port2.port"]
    assert "'10.0.0.1;1;5'" in made.notes[0]
    assert "# Port port1 is 'p 1'." in made.text
    with pytest.raises(ConfigError, match=r"ports\.port1\.port: is not a port"):
        configuration.parse_yaml(made.text, "converted")
    made = to_configuration.convert(wanted, {"10.0.0.1;1;5": "ring", "10.0.0.2": "ring"})
    assert made.notes == []
    assert {one.port for one in configuration.parse_yaml(made.text, "").sides().values()} == {"ring"}


def test_a_flow_that_nobody_receives_goes_nowhere() -> None:
    ends = {"tx_rx": {"port": {"tx_name": "a"}}}
    setup, said = converted(flow() | ends)
    assert setup.sides()["nowhere"].port == NO_PORT.port
    assert list(trial_of(setup).streams()) == ["a->nowhere:f"]
    assert "f: it has no receiving port" in said
    assert "ports: b is left out: no flow has it" in said


# --- what is told and refused ---------------------------------------------------------------------


def test_what_a_configuration_does_not_have_is_told() -> None:
    tagged = [UDP[0], {"vlan": {}}, *UDP[1:]]
    setup, said = converted(
        flow("f 1", duration={"continuous": {}}, packet=tagged, metrics={"enable": True, "latency": {"enable": True}}),
        flow("f2", rx="c"),
        captures=[{"name": "all", "port_names": ["a"]}],
        layer1=[{"name": "l", "port_names": ["a"], "media": "copper"}],
    )
    assert said.splitlines() == [
        "layer1[0].media has no effect: the interface's own medium applies",
        "captures: all is left out: give dutperf trial --capture first",
        "metrics: dutperf trial shows delays of f 1 with --frame-timeout, and no time stamps",
        "f 1: no end is given, so dutperf trial sends for its --duration",
        f"f 1: a trial is not valid if the DUT changes the VLAN tags ({installation.page('frames')})",
    ]
    assert [one.name for one in setup.streams] == ["flow-1", "flow-2"]


def test_the_file_says_how_it_is_sent() -> None:
    """For as long as its flows last, not shorter."""
    delayed = {"fixed_seconds": {"seconds": 0.2, "delay": {"microseconds": 100_000}}}
    text = to_configuration.convert(message(flow(duration=delayed)), {}).text
    assert "#   dutperf trial --config THIS --duration 0.3\n" in text
    assert trial_of(configuration.parse_yaml(text, ""), 0.3).intended(Direction("a->b:f")) == 200
    endless = to_configuration.convert(message(flow(), flow("g", duration={"continuous": {}})), {}).text
    assert "--duration 0.1, or longer\n" in endless


@pytest.mark.parametrize(
    ("each", "members", "said"),
    [
        ([], {}, "flows: a configuration has 1 to 32 streams, not 0"),
        (
            [flow(f"f{number}") for number in range(33)],
            {},
            "1 to 32 streams, not 33; dutperf otg has up to 8,000 flows",
        ),
        (
            [flow(egress_packet=[{"ethernet": {"dst": {"metric_tags": [{"name": "mac"}]}}}])],
            {},
            "f: egress_packet: no stream of a configuration has metric_tags",
        ),
        (
            [between("a", "b")],
            {"devices": [device("a", 18, 4), device("a", 19, 4) | {"name": "second"}, device("b", 20, 4)]},
            "devices: port a has several interfaces or addresses",
        ),
        ([flow()], {"lags": [{"name": "l"}]}, r"lags is not covered"),
        ([flow(rx="d")], {}, "there is no port 'd'"),
        ([between("a", "b")], {"devices": [device("a", 1, 4) | {}, device("b", 1, 4)]}, "is already the address of a"),
    ],
)
def test_what_cannot_be_converted_is_refused(each: list[Any], members: dict[str, Any], said: str) -> None:
    with pytest.raises(Rejected, match=said):
        to_configuration.convert(message(*each, **members), {})


def test_a_flow_whose_frames_no_stream_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else flows will have."""

    def with_payload(*given: Any) -> tuple[Flow, ...]:
        [one] = flows.planned(*given)
        frames = tuple(frame.model_copy(update={"bytes": f"{frame.bytes}4745"}) for frame in one.stream.frames)
        return (replace(one, stream=one.stream.model_copy(update={"frames": frames})),)

    monkeypatch.setattr(to_configuration, "planned_flows", with_payload)
    with pytest.raises(Rejected, match="f: no stream of a configuration has such frames"):
        to_configuration.convert(message(flow()), {})


# --- the command ----------------------------------------------------------------------------------


def of_snappi() -> Any:
    """A configuration as a script makes it."""
    made = snappi.api(location="http://localhost").config()
    for name in ("a", "b"):
        made.ports.add(name=name, location=f"eth-{name}")
    one = made.flows.add(name="f")
    one.tx_rx.port.tx_name, one.tx_rx.port.rx_names = "a", ["b"]
    _, _, udp = one.packet.ethernet().ipv4().udp()
    udp.src_port.increment.start, udp.src_port.increment.count = 1024, 10
    one.rate.pps, one.duration.fixed_packets.packets = 500, 50
    one.size.weight_pairs.custom.add(size=64, weight=58.67)
    one.size.weight_pairs.custom.add(size=128, weight=41.33)
    return made


@pytest.mark.parametrize("encoding", ["json", "yaml"])
@pytest.mark.parametrize("name", ["flows.json", "flows.yaml", "flows"])
def test_files_are_known_by_what_they_have(encoding: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(of_snappi().serialize(encoding))
    done = dutperf("convert", file, "--ports", "eth-a=ring", "--ports", "eth-b=ring")
    assert (done.exit_code, done.stderr) == (0, "")
    setup = configuration.parse_yaml(done.stdout, "converted")
    assert [one.port for one in setup.sides().values()] == ["ring", "ring"]
    wanted = of_members(json.loads(of_snappi().serialize("json")), messages.Config)
    [theirs] = planned(wanted, {"eth-a": "eth1", "eth-b": "eth2"})
    check_same(theirs, trial_of(setup).streams()[theirs.direction])


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ('{"flows": [,]}', [], "is no JSON: Expecting value: line 1 column 12"),
        ('{"flow": []}', [], "has neither ports nor flows"),
        ("flows:\n- name: f\n   x: 1\n", [], "line 3: is not valid YAML"),
        ('{"ports": [], "flows": [{"nam": "f"}]}', [], 'has no field named "nam" at "Config.flows[0]"'),
        ('{"ports": [], "flows": []}', [], "ports: 0 ports are not possible: 1 to 15 are"),
        ("left: {port: eth1}\n", [], "is a configuration of dutperf: give --to snappi"),
        ("left: {port: eth1}\n", ["--ports", "a=b"], "--ports: is for a configuration of the Open Traffic Generator"),
    ],
)
def test_a_file_that_cannot_be_converted_is_named(text: str, options: list[str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    done = dutperf("convert", file, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert str(file) in done.stderr or options


def test_what_the_user_has_to_do_is_told_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "flows.json"
    file.write_text(json.dumps({"ports": [{"name": "a", "location": "x;1"}, {"name": "b", "location": "eth2"}],
                                "flows": [flow()]}))  # fmt: skip
    done = dutperf("convert", file)
    assert done.exit_code == 0
    assert f"dutperf: {file}: ports.a.port: enter the port of 'x;1'" in done.stderr
    assert yaml.safe_load(done.stdout)["ports"]["a"]["port"] == "FILL IN (x;1)"


# --- ours as scripts ------------------------------------------------------------------------------

CABLE: dict[str, Any] = {
    "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.1/24", "ipv6": "2001:2::1/64"},
    "right": {"port": "eth2", "version": 4, "ipv4": "198.18.0.2/24", "ipv6": "2001:2::2/64"},
}
ROUTED: dict[str, Any] = {
    "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1", "mac": macs(1)},
    "right": {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1", "vlans": [7]},
}
ROUTED_BOTH: dict[str, Any] = {
    "left": ROUTED["left"] | {"ipv6": "2001:2::2/64", "gateway6": "2001:2::1"},
    "right": ROUTED["right"] | {"ipv6": "2001:2:0:1::2/64", "gateway6": "2001:2:0:1::1"},
}
FIXED = "ip/udp(source=1,destination=2)"


def ours(*streams: dict[str, Any], config: Mapping[str, Any] = CABLE) -> Setup:
    return configuration.parse({**config, "streams": [*streams]}, "ours")


def stream_of(frame: str = FIXED, **members: Any) -> dict[str, Any]:
    return {"name": "s", "frame": frame, "rate": 100, "sizes": 200, "directions": "forward", "duration_s": 5} | members


def of_script(setup: Setup) -> Any:
    """The configuration that the script of a setup makes in snappi."""
    made, _ = to_message.config_of(setup)
    names: dict[str, Any] = {}
    exec(compile(script.script_of(made, "ours.yaml"), "script", "exec"), names)
    configured = names["configured"](snappi.api(location="http://localhost"), list(setup.sides()))
    return of_members(json.loads(configured.serialize("json")), messages.Config)


def on_the_wire(stream: Stream, number: int) -> list[bytes]:
    """Frame ``number`` of each kind."""
    return [frame_bytes.written(frame, number) for frame in stream.frames]


def check_script(setup: Setup) -> Any:
    """What ``dutperf otg`` would send for the script is what a trial sends; returns the script's configuration."""
    wanted = of_script(setup)
    streams = trial_of(setup).streams()
    located = {name: side.port for name, side in setup.sides().items()}
    for theirs, (direction, one) in zip(planned(wanted, located), streams.items(), strict=True):
        assert theirs.direction.ports == direction.ports
        sent = replace(theirs, shift_ns=0).part(0, 0, goes_on=False)
        assert sent is not None
        for name in ("rate_fps", "pattern", "begin_ns", "order", "shares", "sizes"):
            assert getattr(sent, name) == getattr(one, name), name
        for number in (*range(12), 999):
            assert on_the_wire(sent, number) == on_the_wire(one, number)
        trials = [Trial(trial=1, duration_ns=10**11, drain_ns=0, other_streams={direction: x}) for x in (sent, one)]
        assert trials[0].intended(direction) == trials[1].intended(direction)
    return wanted


@settings(max_examples=60, deadline=None)
@given(FLOWS.filter(lambda one: "delay" not in str(one) or "burst" not in one["duration"]))
def test_a_flow_comes_back_as_it_was(one: dict[str, Any]) -> None:
    setup, _ = converted(flow(**one))
    check_script(setup)


@pytest.mark.parametrize(
    "frame",
    [
        FIXED,
        "ip(dscp=46,ecn=1,ttl=9,df=0)/tcp(flags=SA,window=7)",
        "vlan(id=7,pcp=3,type=0x88a8)/vlan(id=8)/ip/udp(source=increment(5,count=9),destination=list(4,4,2))",
        "eth(destination=02:00:00:00:00:09,source=increment(02:00:00:00:00:01,count=4))/ipv6(dscp=list(1,2,3))/icmp",
        "eth(destination=02:00:00:00:00:09)/ipv4(source=increment(198.18.0.9,step=3,count=20))/icmp(id=3)",
        "mpls(label=17)/mpls(label=18,ttl=3)/ipv4",
        "ipv6(flow_label=decrement(9,count=3))/udp(source=1,destination=9,checksum=5)/payload(data=0x474554)",
        "ipv4/gre(checksum=yes)/ipv6/udp(source=1,destination=2)",
        "ipv4/udp(source=1)/vxlan(vni=9,trailer=4)/eth/ipv4/udp(source=3)",
        "ipv4/udp(source=1)/gtpu(teid=9)/ipv4/udp(source=3)",
        "arp(sender_ip=198.18.0.2,target_ip=increment(198.18.0.3,count=100))",
        "ipv4(length=80,checksum=7,protocol=99)/udp(source=increment(1,count=3,by=flow),destination=2)",
        "vlan(id=5)",
        "ipv4/ipv6",
    ],
)
@pytest.mark.parametrize("config", [CABLE, ROUTED_BOTH], ids=["cable", "routed"])
def test_headers_of_a_script_are_ours(frame: str, config: dict[str, Any]) -> None:
    check_script(ours(stream_of(frame), config=config))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(stacks())
def test_any_headers_are_the_same_or_refused(stack: Stack) -> None:
    try:
        setup = ours(stream_of(str(stack), sizes=1500))
        to_message.config_of(setup)
    except ConfigError:
        return
    frames = [frame for stream in trial_of(setup).streams().values() for frame in stream.frames]
    assume(all(field.mode != "random" for frame in frames for field in frame.fields))  # repeats in the model
    check_script(setup)


def test_streams_of_a_script_have_sizes_and_times() -> None:
    each = [
        stream_of(sizes="imix-random:84=7,594=4,1518=1", duration_s=None),
        stream_of(sizes="imix:100=1,150=1,200=1", begin_s=0.25, duration_s=0.123456789),
        stream_of(pattern="bursts:10", burst_rate=1000, rate=100, duration_s=0.3),
        stream_of(directions="both", rate="10%", begin_s=1.5),
        stream_of(rate="7Mbit/s"),
    ]
    streams = [one | {"name": f"s{number}"} for number, one in enumerate(each)]
    wanted = check_script(ours(*streams, config=CABLE | {"media_mbps": 10}))
    assert [one.name for one in wanted.flows] == ["s0", "s1", "s2", "s3-left-right", "s3-right-left", "s4"]
    assert [chosen(one.duration) for one in wanted.flows][:3] == ["continuous", "fixed_packets", "burst"]
    assert wanted.flows[3].duration.fixed_seconds.seconds == 5


def test_devices_of_a_script_are_the_hosts_at_the_ports() -> None:
    wanted = check_script(ours(stream_of(), config=ROUTED))
    left, right = (one.ethernets[0] for one in wanted.devices)
    assert (left.mac, left.ipv4_addresses[0].gateway, left.ipv4_addresses[0].prefix) == (macs(1), "198.18.0.1", 24)
    assert [one.id for one in right.vlans] == [7]
    given_macs = stream_of(f"eth(source={macs(5)},destination={macs(6)})/ipv4/udp(source=1,destination=2)")
    assert [chosen(one.tx_rx) for one in check_script(ours(given_macs)).flows] == ["port"]


def test_devices_of_a_script_send_its_longest_frames_with_the_mtu_that_snappi_writes() -> None:
    wanted = check_script(ours(stream_of(sizes=5000), config=ROUTED))
    assert [one.ethernets[0].mtu for one in wanted.devices] == [1500, 1500]


def test_addresses_that_vary_are_those_of_whole_fields() -> None:
    varying = {"mode": "increasing", "min": 5, "max": 200}
    config = ROUTED | {"right": ROUTED["right"] | {"varying_address": varying}}
    wanted = check_script(ours(stream_of(), config=config))
    assert wanted.flows[0].packet[1].ipv4.dst.increment.start == "198.19.0.5"


def test_values_at_random_repeat_and_that_is_told() -> None:
    made, notes = to_message.config_of(ours(stream_of("ip/udp")))
    assert notes == ["s: the values at random repeat in the model: udp.src_port, udp.dst_port"]
    random = made.flows[0].packet[2].udp.src_port.random
    assert (random.min, random.max, random.count) == (1024, 65535, 1000)


@pytest.mark.parametrize(
    ("stream", "config", "said"),
    [
        ({"pattern": "poisson"}, CABLE, "streams.0: the model has no pattern poisson"),
        ({"pattern": "bursts:5"}, CABLE, "streams.0: bursts of the model have a rate: give burst_rate"),
        ({"pattern": "bursts:7", "burst_rate": 999}, CABLE, "streams.0: bursts of the model are whole: 500 frames"),
        ({"pattern": "bursts:5", "burst_rate": 999, "begin_s": 1}, CABLE, "begin at once: leave out begin_s"),
        ({"sizes": "imix"}, CABLE, "streams.0: the model has mixes of sizes at random only: imix-random"),
        ({"begin_s": 1.23456789}, CABLE, "streams.0: would have another beginning (1.234568 s)"),
        ({"flows": 10, "frame": "ip/udp"}, CABLE, "streams.0.flows: are not those of the model"),
        ({"frame": "ipv6/hop_by_hop/udp(source=1)"}, CABLE, "streams.0: no header hop_by_hop is converted"),
        ({"frame": "ipv4(options=rr(3))/udp(source=1)"}, CABLE, "streams.0: ipv4: no option is converted"),
        ({"frame": "ip/tcp(urgent=1)"}, CABLE, "streams.0: tcp: no urgent is converted"),
        ({"frame": "ip/udp(source=1)/vxlan/eth/ipv4"}, CABLE, "streams.0: vxlan: the model leaves room for an FCS"),
        ({"frame": "ip/gre(key=5)/ipv4"}, CABLE, "streams.0: gre: no key is converted"),
        ({"frame": "ip(ttl=random(1,9))/udp"}, CABLE, "ipv4.time_to_live varies at random"),
        ({"frame": "ip(offset=32)/icmp"}, CABLE, "streams.0: ipv4: Invalid 32 format"),
        ({"rate": None, "duration_s": None}, CABLE, "streams.0.rate: is missing: the stream shares the rate"),
    ],
)
def test_what_the_model_does_not_have_is_refused(stream: dict[str, Any], config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        to_message.config_of(ours(stream_of(**stream), config=config))
    assert said in str(error.value)


def test_the_command_writes_a_script(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(yaml.safe_dump({**ROUTED, "engine": {"netns": "x"}, "streams": [stream_of(duration_s=None)]}))
    done = dutperf("convert", "--to", "snappi", file)
    assert (done.exit_code, done.stderr) == (0, f"dutperf: {file}: left out, since no flow has it: engine\n")
    assert "python THIS.py https://127.0.0.1:8443 LOCATION-left LOCATION-right\n" in done.stdout
    assert "--seconds" in done.stdout
    file.write_text(yaml.safe_dump({**CABLE, "streams": [stream_of(pattern="poisson")]}, sort_keys=False))
    refused = dutperf("convert", "--to", "snappi", file)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{file}, line" in refused.stderr
