# SPDX-License-Identifier: Apache-2.0
"""Frames of the modifiers broadcast, management and routing-updates: their bytes are those that scapy makes,
and trials count them beside the test frames."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest
from scapy.asn1.asn1 import ASN1_OID, ASN1_TIME_TICKS
from scapy.contrib.ripng import RIPng, RIPngEntry
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.rip import RIP, RIPEntry
from scapy.layers.snmp import SNMP, SNMPget, SNMPresponse, SNMPvarbind
from scapy.packet import Packet, Raw
from typer.testing import CliRunner

import dutperf
from dutperf import traffic
from dutperf.cli import app
from dutperf.frames import additional
from dutperf.judge import validity
from dutperf.model import LEFT_AND_RIGHT, AdditionalCounts, AdditionalFrames, Direction, Stream, Trial
from dutperf.procedures.recovery import Recovery, change_rate
from dutperf.results.comparability import Weight, mismatches
from dutperf.setup.conditions import Usual
from dutperf.setup.configuration import ParameterError, Setup, parse
from dutperf.tester.simulated import SimulatedTester
from plans import make_trial
from protocol_schemas import REQUESTS

LEFT = {"port": "af_packet:tl", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"}
RIGHT = {"port": "af_packet:tr", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
LEFT6 = {"port": "af_packet:tl", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}
RIGHT6 = {"port": "af_packet:tr", "version": 6, "ipv6": "2001:2:0:8000::2/64", "gateway6": "2001:2:0:8000::1"}
IPV4 = parse({"left": LEFT, "right": RIGHT}, "test")
IPV6 = parse({"left": LEFT6, "right": RIGHT6}, "test")
SIIT = parse({"left": LEFT6 | {"seen_as": "198.18.0.2"}, "right": RIGHT | {"seen_as": "2001:2:0:1000::2"}}, "test")
TESTER4, DUT4 = IPv4Address("198.18.0.2"), IPv4Address("198.18.0.1")
TESTER6, DUT6 = IPv6Address("2001:2::2"), IPv6Address("2001:2::1")
OBJECTS = ["1.3.6.1.2.1.1.3.0", *(f"1.3.6.1.2.1.2.2.1.{column}.1" for column in (10, 16, 11, 17))]
NO_MAC = "00:00:00:00:00:00"


def planned(setup: Setup, *modifiers: str, rate_fps: int = 1000, **conditions: Any) -> Trial:
    chosen = traffic.of(setup, Usual(modifiers=modifiers, **conditions)).sized()
    trial = make_trial(setup, chosen, chosen.frame_sizes[0], rate_fps, 3)
    request = {"id": 1, "method": "run", "params": trial.request()}
    assert [error.message for error in REQUESTS.iter_errors(request)] == []
    return trial


def streams(setup: Setup, *modifiers: str, **conditions: Any) -> dict[Direction, Stream]:
    return planned(setup, *modifiers, **conditions).streams()


def over(source: Any, destination: Any, mac: str = NO_MAC, hops: int = 10) -> Packet:
    """The headers before UDP."""
    ethernet = Ether(dst=mac, src=NO_MAC)
    if source.version == 6:
        return ethernet / IPv6(src=str(source), dst=str(destination), hlim=hops)
    return ethernet / IP(src=str(source), dst=str(destination), ttl=hops, flags="DF", id=0)


# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [64, 84, 300, 1518])
def test_a_broadcast_is_what_scapy_makes_of_it(size: int) -> None:
    payload = additional.BROADCAST_MARK + bytes([1])
    payload += bytes(number % 256 for number in range(len(payload), size - 4 - 42))
    headers = over(TESTER4, IPv4Address("255.255.255.255"), "ff:ff:ff:ff:ff:ff")
    expected = headers / UDP(sport=0xC021, dport=9) / Raw(payload)
    frame = additional.broadcast(TESTER4, 1, size)
    assert frame == bytes(expected)
    assert len(frame) == size - 4
    place, mark = additional.broadcast_mark(1)
    assert frame[place : place + len(mark)] == mark


@pytest.mark.parametrize(("own", "router"), [(TESTER4, DUT4), (TESTER6, DUT6)])
def test_a_management_query_is_what_scapy_makes_of_it(own: Any, router: Any) -> None:
    request = SNMPget(id=additional.REQUEST_ID, varbindlist=[SNMPvarbind(oid=ASN1_OID(name)) for name in OBJECTS])
    expected = over(own, router) / UDP(sport=0xC021, dport=161) / SNMP(version="v2c", community="public", PDU=request)
    assert additional.query(own, router) == bytes(expected)


def response(own: Any, router: Any, **members: Any) -> bytes:
    values = [SNMPvarbind(oid=ASN1_OID(name), value=ASN1_TIME_TICKS(4711)) for name in members.pop("names", OBJECTS)]
    pdu = SNMPresponse(**({"id": additional.REQUEST_ID, "varbindlist": values} | members))
    ports = UDP(sport=161, dport=0xC021)
    return bytes(over(router, own) / ports / SNMP(version="v2c", community="public", PDU=pdu))


@pytest.mark.parametrize(("own", "router"), [(TESTER4, DUT4), (TESTER6, DUT6)])
def test_a_reply_is_recognised_and_verified(own: Any, router: Any) -> None:
    marks = additional.reply_marks(own, router)

    def is_recognised(frame: bytes) -> bool:
        return all(frame[place : place + len(mark)] == mark for place, mark in marks)

    assert is_recognised(response(own, router))
    assert not is_recognised(response(router, own))
    assert not is_recognised(additional.query(own, router))
    assert additional.reply_error(response(own, router)) is None
    assert additional.reply_error(response(own, router).ljust(300, b"\0")) is None
    whole = response(own, router)
    assert additional.reply_error(whole[:12] + bytes.fromhex("88a800058100000a") + whole[12:]) is None


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"error": 2, "error_index": 1}, "its error status is 2, at variable 1"),
        ({"id": 5}, "it answers another request"),
        ({"names": OBJECTS[:4]}, "it has other variables"),
    ],
)
def test_a_reply_that_is_not_as_expected_is_told(members: dict[str, Any], words: str) -> None:
    assert additional.reply_error(response(TESTER4, DUT4, **members)) == words


def test_what_is_no_response_is_told() -> None:
    assert additional.reply_error(additional.query(TESTER4, DUT4)) == "it is no SNMPv2c response"
    assert additional.reply_error(additional.broadcast(TESTER4, 0, 64)) == "it is no SNMP message"
    whole = response(TESTER4, DUT4)
    for end in range(42, len(whole)):
        assert additional.reply_error(whole[:end]) is not None


def test_a_ripv2_update_is_what_scapy_makes_of_it() -> None:
    networks = [IPv4Network(f"198.18.{number}.0/24") for number in (65, 66)]
    expected = over(TESTER4, IPv4Address("224.0.0.9"), "01:00:5e:00:00:09", 1) / UDP(sport=520, dport=520)
    expected /= RIP(cmd=2, version=2)
    for one in networks:
        expected /= RIPEntry(AF=2, addr=str(one.network_address), mask=str(one.netmask), metric=7)
    assert additional.rip(TESTER4, networks, 7) == bytes(expected)


def test_a_ripng_update_is_what_scapy_makes_of_it() -> None:
    networks = [IPv6Network(f"2001:2:0:40{number}::/64") for number in (41, 42)]
    source = IPv6Address("fe80::2")
    expected = over(source, IPv6Address("ff02::9"), "33:33:00:00:00:09", 255) / UDP(sport=521, dport=521)
    expected /= RIPng(cmd=2, ver=1)
    for one in networks:
        expected /= RIPngEntry(prefix_or_nh=str(one.network_address), prefixlen=64, metric=7)
    assert additional.ripng(source, networks, 7) == bytes(expected)


# --- trials ---------------------------------------------------------------------------------------


def kinds(stream: Stream) -> dict[str, AdditionalFrames]:
    return {one.name: one for one in stream.additional}


def test_a_broadcast_takes_the_place_of_every_hundredth_frame() -> None:
    trial = planned(IPV4, "broadcast", rate_fps=1000, duration_s=10, frame_sizes=(128,))
    for direction, stream in trial.streams().items():
        assert (stream.rate_fps, trial.intended(direction), trial.additional(direction)) == (990, 9900, (100,))
        [frame] = kinds(stream)["broadcast"].frames
        assert (frame[:12], len(frame) // 2) == ("ff" * 6, 124)
    forward, reverse = (kinds(stream)["broadcast"].frames[0] for stream in trial.streams().values())
    assert forward != reverse


def test_the_rate_within_a_pattern_and_after_a_change_has_room_for_broadcasts() -> None:
    poisson = streams(IPV4, "broadcast", pattern="poisson")[Direction.FORWARD]
    assert (poisson.rate_fps, poisson.pattern is not None) == (990, True)
    changed = change_rate(
        planned(IPV4, "broadcast"), Recovery(), {"rate_fps": 1000, "reduced_fps": 500, "throughput_fps": 900}
    )
    assert changed.forward is not None
    assert changed.forward.then is not None
    assert changed.forward.then.rate_fps == 495


def test_through_a_translator_only_the_ipv4_side_sends_broadcasts() -> None:
    both = streams(SIIT, "broadcast")
    assert not both[Direction.FORWARD].additional
    assert (both[Direction.FORWARD].rate_fps, both[Direction.REVERSE].rate_fps) == (1000, 990)
    with pytest.raises(ParameterError, match="IPv6 has no broadcast frames") as caught:
        streams(IPV6, "broadcast")
    assert caught.value.key == "modifiers"
    with pytest.raises(ParameterError, match="no broadcast"):
        streams(SIIT, "broadcast", directions="forward")


@pytest.mark.parametrize(("setup", "next_hop"), [(IPV4, "next_hop4"), (IPV6, "next_hop6")])
def test_one_query_a_second_goes_to_the_dut(setup: Setup, next_hop: str) -> None:
    trial = planned(setup, "management", duration_s=60)
    assert [trial.additional(direction) for direction in LEFT_AND_RIGHT] == [(60,), ()]
    query = kinds(trial.streams()[Direction.FORWARD])["management"]
    assert (query.destination_mac, len(query.frames)) == (next_hop, 1)
    assert trial.streams()[Direction.FORWARD].rate_fps == 1000
    assert planned(setup, "management", duration_s=0.5).additional(Direction.FORWARD) == (1,)
    assert planned(setup, "management", directions="reverse").additional(Direction.REVERSE) == (60,)


def test_the_dut_that_is_asked_needs_an_address() -> None:
    sides = {
        side: {key: value for key, value in one.items() if key != "gateway4"}
        for side, one in (("left", LEFT), ("right", RIGHT))
    }
    bare = parse(sides, "test")
    with pytest.raises(ParameterError, match=r"gateway4"):
        streams(bare, "management")


def test_updates_alternate_between_two_states() -> None:
    trial = planned(IPV4, "routing-updates", duration_s=60)
    assert [trial.additional(direction) for direction in LEFT_AND_RIGHT] == [(2,), (2,)]
    for direction, network in ((Direction.FORWARD, 18), (Direction.REVERSE, 19)):
        first, second = (bytes.fromhex(one) for one in kinds(trial.streams()[direction])["routing-updates"].frames)
        read = [Ether(frame)[RIP].payload for frame in (first, second)]
        assert [entry.metric for entry in read] == [7, 8]
        entries = []
        entry = read[0]
        while isinstance(entry, RIPEntry):
            entries.append((entry.addr, entry.mask))
            entry = entry.payload
        assert entries == [(f"198.{network}.{number}.0", "255.255.255.0") for number in range(65, 71)]
    update = kinds(streams(IPV6, "routing-updates")[Direction.REVERSE])["routing-updates"]
    assert Ether(bytes.fromhex(update.frames[0]))[RIPngEntry].prefix_or_nh == "2001:2:0:c041::"


def test_each_of_16_ports_has_broadcasts_of_each_path_and_networks_of_its_own() -> None:
    ports = {
        f"p{n}": {"port": "ring", "version": 4, "ipv4": f"198.18.{n}.2/24", "ipv6": f"2001:2:0:{n:x}::2/64"}
        for n in range(16)
    }
    for version in (4, 6):
        named = {name: {**one, "version": version} for name, one in ports.items()}
        modifiers = ("routing-updates", "broadcast")[: 2 if version == 4 else 1]
        each = streams(parse({"ports": named, "paths": "mesh"}, "test"), *modifiers)
        updates = {kinds(one)["routing-updates"].forwarded for one in each.values() if "routing-updates" in kinds(one)}
        assert len(updates) == 16
        broadcasts = {kinds(one)["broadcast"].frames for one in each.values() if "broadcast" in kinds(one)}
        assert len(broadcasts) == (240 if version == 4 else 0)


def test_beside_a_tunnel_they_are_those_of_the_link() -> None:
    """IPv4 in IPv6: the DUT at the tunnel's end is asked over IPv6, and nobody hears a broadcast there."""
    both = {
        "ipv6": "2001:2:0:8000::2/64",
        "gateway6": "2001:2:0:8000::1",
        "tunnel": "ipv6(destination=2001:2:0:8000::1)",
    }
    setup = parse({"left": LEFT, "right": RIGHT | both}, "test")
    forward, reverse = streams(setup, "broadcast", "management", "routing-updates").values()
    assert set(kinds(forward)) == {"broadcast", "management", "routing-updates"}
    assert set(kinds(reverse)) == {"routing-updates"}
    assert Ether(bytes.fromhex(kinds(reverse)["routing-updates"].frames[0]))[RIPng].cmd == 2
    [query] = kinds(streams(setup, "management", directions="reverse")[Direction.REVERSE]).values()
    asked = Ether(bytes.fromhex(query.frames[0]))[IPv6]
    assert (query.destination_mac, asked.dst) == ("next_hop6", "2001:2:0:8000::1")


def test_unsent_frames_of_a_modifier_make_a_trial_invalid() -> None:
    trial = planned(IPV4, "broadcast", "management", duration_s=2)
    result = SimulatedTester().run(trial)
    assert result.verdict == "valid"
    counts = result.directions()
    assert [one.sent for one in counts[Direction.FORWARD].additional or ()] == [20, 2]
    unsent = AdditionalCounts(intended=20, sent=19, received=0, replies=0)
    fewer = counts[Direction.FORWARD].model_copy(
        update={"additional": (unsent, *(counts[Direction.FORWARD].additional or ())[1:])}
    )
    _, causes = validity.judge(trial, counts | {Direction.FORWARD: fewer})
    assert [(cause.code, cause.text) for cause in causes] == [
        ("unsent_additional", "forward: the tester sent 19 of 20 frames of the modifier broadcast")
    ]
    none = counts[Direction.FORWARD].model_copy(update={"additional": None})
    _, causes = validity.judge(trial, counts | {Direction.FORWARD: none})
    assert [cause.text for cause in causes] == [
        "forward: the engine counted 0 kinds of additional frames, but the trial has 2"
    ]


# --- results --------------------------------------------------------------------------------------

SHORT: dict[str, Any] = {"duration_s": 0.5, "drain_s": 0, "repetitions": 1, "settle_s": 0}


@pytest.mark.usefixtures("labs")
def test_a_result_says_what_the_modifiers_sent(tmp_path: Path) -> None:
    chosen = {"modifiers": ["management", "broadcast"], "rates": "10k", **SHORT}
    found = dutperf.measure(dutperf.FrameLoss(**chosen), tmp_path / "one", lab="kernel-ipv4")
    written = json.loads((tmp_path / "one" / "summary.json").read_text())
    assert written["conditions"]["modifiers"] == ["broadcast", "management"]
    trials = found.summary.points[0].finished
    several = f" in {trials} valid trials" if trials > 1 else ""
    assert [one["text"] for one in written["remarks"] if one["about"] == "modifier_frames"] == [
        f"forward, modifier broadcast: {50 * trials} frames sent{several}, 0 forwarded by the DUT",
        f"forward, modifier management: {trials} frames sent{several}, {trials} answered",
        f"reverse, modifier broadcast: {50 * trials} frames sent{several}, 0 forwarded by the DUT",
    ]
    results = [json.loads(line) for line in (tmp_path / "one" / "journal.jsonl").read_text().splitlines()]
    counts = next(one["result"]["forward"] for one in results if one["event"] == "result")
    assert (counts["intended"], counts["additional"][0]["sent"]) == (4950, 50)


@pytest.mark.usefixtures("labs")
def test_results_under_different_modifiers_are_not_alike(tmp_path: Path) -> None:
    one, other = (
        dutperf.measure(
            dutperf.FrameLoss(rates="10k", modifiers=modifiers, **SHORT), tmp_path / name, lab="kernel-ipv4"
        )
        for name, modifiers in (("plain", []), ("filters", ["filters:25"]))
    )
    [found] = [each for each in mismatches(one.measured[0], other.measured[0]) if each.name == "modifiers"]
    assert (found.base, found.other, found.weight) == ("–", "filters:25", Weight.WARNED)
    assert other.summary.dut["filters"] == ["permit all"]
    assert "filters" not in one.summary.dut


def test_behind_vlan_tags_they_have_those_of_the_test_frames() -> None:
    """Of several each in turn, with the size of the test frames."""
    tagged = streams(IPV4, "broadcast", "management", frame="vlan(id=5)/vlan(id=10)/ip/udp", frame_sizes="128")
    [broadcasts], [queries] = (one.frames for one in tagged[Direction.FORWARD].additional)
    plain = streams(IPV4, "broadcast", "management", frame_sizes="120")[Direction.FORWARD].additional
    for frame, untagged in zip((broadcasts, queries), plain, strict=True):
        assert frame == untagged.frames[0][:24] + "810000058100000a" + untagged.frames[0][24:]
    assert len(broadcasts) // 2 == 124
    two = parse(
        {
            "left": LEFT,
            "right": RIGHT,
            "streams": [{"name": "a", "frame": "vlan(id=5)/ip/udp"}, {"name": "b", "frame": "vlan(id=6)/ip/udp"}],
        },
        "test",
    )
    [updates] = streams(two, "routing-updates")[Direction.REVERSE].additional
    assert [one[24:34] for one in updates.frames] == ["8100000508", "8100000608"] * 2
    assert {one.at for one in updates.forwarded} == {42}, "places of marks are without tags"


@pytest.mark.usefixtures("labs")
def test_a_lab_without_filters_says_so(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="lab tayga-siit has no filters"):
        dutperf.measure(
            dutperf.FrameLoss(rates="10k", modifiers=["filters:1"], **SHORT), tmp_path / "one", lab="tayga-siit"
        )


@pytest.mark.usefixtures("labs")
def test_a_trial_says_what_the_modifiers_sent() -> None:
    modifiers = ["--modifier", "broadcast", "--modifier", "management"]
    shown = CliRunner().invoke(app, ["trial", "--lab", "kernel-ipv4", "--rate", "1k", "--duration", "2", *modifiers])
    assert shown.exit_code == 0
    assert "forward, modifier broadcast: 20 frames sent, 0 forwarded by the DUT\n" in shown.stdout
    assert "forward, modifier management: 2 frames sent, 2 answered\n" in shown.stdout
    assert "reverse, modifier management" not in shown.stdout
