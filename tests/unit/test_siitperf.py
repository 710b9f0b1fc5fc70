# SPDX-License-Identifier: Apache-2.0
"""siitperf's outward interface: every key, every argument, every variable and every line of the output."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dutperf import config, pci, traffic
from dutperf.cli import app
from dutperf.conditions import Conditions
from dutperf.model import Cause, Delays, Direction, DirectionCounts, FieldMode, TrialResult, Verdict
from dutperf.siitperf import arguments as positional
from dutperf.siitperf import commands, configuration, convert, setup
from dutperf.siitperf.arguments import COMMON, LATENCY, PDV, STATEFUL
from dutperf.siitperf.configuration import KEYS, InputError, parse
from dutperf.siitperf.variables import Variables
from dutperf.tester import TesterError
from plans import counts
from siitperf_files import MACS, ROUTER, TRANSLATOR, with_lines

RINGS = Variables(ports=("ring", "ring"), automatic_cores=True, seed=7)
VETHS = Variables(ports=("af_packet:tl", "af_packet:tr"), automatic_cores=True, seed=7)
WITH_CORES = replace(VETHS, automatic_cores=False)

# --- the file --------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyRow:
    """What is true of a key: its default, texts and their values, texts that are refused, lines with which it may not be missing."""

    default: Any
    accepted: dict[str, Any]
    refused: Sequence[str]
    needed_with: Sequence[str] | None = None


FLAG = {"0": 0, "1": 1}
MODE = {"0": 0, "1": 1, "2": 2, "3": 3}
ANY_PORT = {"0": 0, "65535": 65535}
NO_PORT = ["-1", "65536", "0x10", "1.5", "x"]
BITS = {"0": 0, "65535": 65535, "0x0": 0, "0xffff": 65535}
CORE = {"0": 0, "127": 127}
MAC = {"02:00:00:00:00:01": "02:00:00:00:00:01", "0A:1b:2C:3d:4E:5f": "0a:1b:2c:3d:4e:5f"}
NO_MAC = ["02:00:00:00:00", "02:00:00:00:00:00:00", "02-00-00-00-00-01", "01:00:5e:00:00:01", "00:00:00:00:00:00", "x"]
ADDRESS = {4: {text: ip_address(text) for text in ("198.18.0.2", "198.19.255.254")}, 6: {text: ip_address(text) for text in ("2001:2::2", "2001:2:0:ffff::1")}}
NO_ADDRESS = {4: ["198.18.0.256", "198.18.0", "2001:2::2", "x"], 6: ["198.18.0.2", "2001:2::10000", "2001:2::2/64", "fe80::1%eth0", "x"]}


def _of_side(side: str) -> dict[str, KeyRow]:
    vary = [f"IP-{side}-var 1", f"IP-{side}-min 0", f"IP-{side}-max 9", f"IPv4-{side}-offset 2", f"IPv6-{side}-offset 14"]
    both = {version: [f"IP-L-Vers {version}", f"IP-R-Vers {version}"] for version in (4, 6)}
    through = {4: [f"IP-{side}-Vers 6", f"IP-{'R' if side == 'L' else 'L'}-Vers 4"], 6: [f"IP-{side}-Vers 4", f"IP-{'R' if side == 'L' else 'L'}-Vers 6"]}
    rows = {
        f"IP-{side}-Vers": KeyRow({"L": 6, "R": 4}[side], {"4": 4, "6": 6}, ["3", "5", "7", "x"]),
        f"MAC-{side}-Tester": KeyRow(None, MAC, NO_MAC),
        f"MAC-{side}-DUT": KeyRow(None, MAC, NO_MAC),
        f"Num-{side}-Nets": KeyRow(1, {"1": 1, "256": 256}, ["0", "257", "x"]),
        f"CPU-{side}-Send": KeyRow(None, CORE, ["-1", "x"]),
        f"CPU-{side}-Recv": KeyRow(None, CORE, ["-1", "x"]),
        f"IP-{side}-var": KeyRow(0, {"0": 0}, ["-1", "4", "x"]),
        f"IP-{side}-min": KeyRow(None, BITS, ["-1", "65536", "0x10000", "0x", "x"], vary),
        f"IP-{side}-max": KeyRow(None, BITS, ["-1", "65536", "0x10000", "0x-1", "x"], vary),
        f"IPv4-{side}-offset": KeyRow(None, {"1": 1, "2": 2}, ["0", "3", "x"], vary),
        f"IPv6-{side}-offset": KeyRow(None, {"6": 6, "14": 14}, ["5", "15", "x"], vary),
    }
    for version in (4, 6):
        rows[f"IPv{version}-{side}-Real"] = KeyRow(None, ADDRESS[version], NO_ADDRESS[version], both[version])
        rows[f"IPv{version}-{side}-Virt"] = KeyRow(None, ADDRESS[version], NO_ADDRESS[version], through[version])
    return rows


def _of_direction(name: str, prefix: str) -> dict[str, KeyRow]:
    return {
        name: KeyRow(1, FLAG, ["-1", "2", "x"]),
        f"{prefix}-var-sport": KeyRow(0, MODE, ["-1", "4", "x"]),
        f"{prefix}-var-dport": KeyRow(0, MODE, ["-1", "4", "x"]),
        f"{prefix}-sport-min": KeyRow(1024, ANY_PORT, NO_PORT),
        f"{prefix}-sport-max": KeyRow(65535, {"1024": 1024, "65535": 65535}, NO_PORT),
        f"{prefix}-dport-min": KeyRow(1, {"0": 0, "49151": 49151}, NO_PORT),
        f"{prefix}-dport-max": KeyRow(49151, {"1": 1, "65535": 65535}, NO_PORT),
    }


KEY_ROWS: dict[str, KeyRow] = {
    **_of_side("L"),
    **_of_side("R"),
    **_of_direction("Forward", "Fwd"),
    **_of_direction("Reverse", "Rev"),
    "Promisc": KeyRow(1, FLAG, ["-1", "2", "x"]),
    "MEM-Channels": KeyRow(1, {"1": 1, "8": 8}, ["0", "-1", "x"]),
    "Stateful": KeyRow(0, {"0": 0, "1": 1, "2": 2}, ["-1", "3", "x"]),
    "Enumerate-ports": KeyRow(0, MODE, ["-1", "4", "x"]),
    "Enumerate-ips": KeyRow(0, MODE, ["-1", "4", "x"]),
    "Responder-tuples": KeyRow(0, MODE, ["-1", "4", "x"]),
}
EVERY_ADDRESS = """\
IPv4-L-Real 198.18.0.2
IPv4-R-Real 198.19.0.2
IPv6-L-Real 2001:2::2
IPv6-R-Real 2001:2:0:8000::2
IPv4-L-Virt 198.18.0.2
IPv4-R-Virt 198.19.0.2
IPv6-L-Virt 2001:2::2
IPv6-R-Virt 2001:2:0:1000::2
"""


def test_there_is_a_row_for_every_key() -> None:
    assert KEY_ROWS.keys() == KEYS.keys()


@pytest.mark.parametrize("key", KEY_ROWS)
def test_keys(key: str) -> None:
    row = KEY_ROWS[key]
    text = with_lines(EVERY_ADDRESS, "IP-L-Vers 6", "IP-R-Vers 4")
    assert configuration.Settings({})[key] == row.default
    for written, value in row.accepted.items():
        assert parse(with_lines(text, f"{key} {written}"))[key] == value
    for written in row.refused:
        with pytest.raises(InputError) as caught:
            parse(with_lines(text, f"{key} {written}"))
        assert caught.value.name == key
        assert written.removeprefix("-") in caught.value.message


@pytest.mark.parametrize("key", [key for key, row in KEY_ROWS.items() if row.needed_with])
def test_keys_that_may_not_be_missing(key: str) -> None:
    others = [line for line in KEY_ROWS[key].needed_with or () if line.split()[0] != key]
    with pytest.raises(InputError, match="is missing") as caught:
        parse(with_lines(EVERY_ADDRESS, *others, key))
    assert caught.value.name == key


LINES: list[tuple[str, str, str, str]] = [
    ("unknown key", "Num-Nets 3", "siitperf.conf, line 20", "cannot be read: 'Num-Nets 3'"),
    ("the other letters' case", "forward 1", "siitperf.conf, line 20", "cannot be read: 'forward 1'; did you mean Forward?"),
    ("no value", "Promisc", "siitperf.conf, line 20", "cannot be read: 'Promisc'"),
    ("a value in a comment", "Promisc # 1", "siitperf.conf, line 20", "cannot be read: 'Promisc # 1'"),
    ("two values", "Promisc 1 1", "siitperf.conf, line 20", "cannot be read: 'Promisc 1 1'"),
    ("an equals sign", "Promisc=1", "siitperf.conf, line 20", "cannot be read: 'Promisc=1'"),
    ("twice, with different values", "Promisc 0\nPromisc 1", "Promisc", "stands there twice, with different values (siitperf.conf, line 21)"),
    ("no direction", "Forward 0\nReverse 0", "Forward", "is 0, and Reverse as well"),
    ("ports upside down", "Fwd-sport-min 500\nFwd-sport-max 400", "Fwd-sport-min", "is 500, greater than Fwd-sport-max, 400"),
    ("ports beyond the default", "Rev-dport-min 50000", "Rev-dport-min", "is 50000, greater than Rev-dport-max, 49151"),
    ("address bits upside down", "IP-L-min 0x10\nIP-L-max 15", "IP-L-min", "is 16, greater than IP-L-max, 15"),
    ("varying, in many networks", "Num-R-Nets 2\nIP-L-var 1\nIP-L-min 0\nIP-L-max 9\nIPv4-L-offset 2\nIPv6-L-offset 14", "Num-R-Nets", "one network only"),
]


@pytest.mark.parametrize(("lines", "name", "message"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_lines_that_cannot_be_used(lines: str, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(TRANSLATOR + "\n" * (19 - len(TRANSLATOR.splitlines())) + lines)
    assert caught.value.name == name
    assert message in caught.value.message


def test_comments_blanks_tabs_and_an_older_name() -> None:
    settings = parse(TRANSLATOR + "\t Num-L-Nets\t7# seven\r\n#Num-R-Nets 9\n   # nothing\nResponder-ports 2\nPromisc 1\nPromisc 1\n")
    assert (settings["Num-L-Nets"], settings["Num-R-Nets"], settings["Responder-tuples"]) == (7, 1, 2)


def test_both_directions_may_be_off_in_stateful_tests() -> None:
    assert parse(TRANSLATOR + "Stateful 1\nForward 0\nReverse 0\n").stateful


def test_one_way_needs_no_address_for_the_other() -> None:
    settings = parse(with_lines(TRANSLATOR, "IPv4-L-Virt", "Reverse 0"))
    assert plan(settings=settings).trial.reverse is None


def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"cannot be read in {tmp_path}: No such file"):
        configuration.load()


@pytest.mark.parametrize(("mode", "meant"), [(1, FieldMode.INCREASING), (2, FieldMode.DECREASING), (3, FieldMode.RANDOM)])
@pytest.mark.parametrize("side", ["L", "R"])
def test_modes_of_varying_addresses(side: str, mode: int, meant: FieldMode) -> None:
    lines = f"IP-{side}-var {mode}\nIP-{side}-min 0\nIP-{side}-max 0\nIPv4-{side}-offset 2\nIPv6-{side}-offset 14\n"
    assert parse(TRANSLATOR + lines).mode(f"IP-{side}-var") is meant


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for lines in (text, TRANSLATOR + text):
        with contextlib.suppress(InputError):
            assert set(parse(lines).given) <= set(KEYS)


# --- arguments -------------------------------------------------------------------------------------------------------------------------------

STATELESS, IPV4_ALONE, WITH_STATE = parse(TRANSLATOR), parse(ROUTER), parse(TRANSLATOR + "Stateful 2\n")
TP_WORDS = {"SIZE": 84, "RATE": 1000, "DURATION": 60, "TIMEOUT": 2000, "n": 2, "m": 2}
STATE_WORDS = {"N": 4000, "M": 4000, "R": 1000, "T": 500, "D": 4500}
LAT_WORDS = {"DELAY": 10, "TIMESTAMPS": 500}
ARGUMENTS: list[tuple[Any, Any, dict[str, int], str, Sequence[int], Sequence[int]]] = [
    # the command's own parameters, the file, all values, the parameter, accepted values, refused ones
    ((), STATELESS, TP_WORDS, "SIZE", (84, 1518), (83, 1519)),
    ((), IPV4_ALONE, TP_WORDS, "SIZE", (84, 1538), (83, 1539)),
    ((), IPV4_ALONE, TP_WORDS | {"m": 1}, "SIZE", (84, 1518), (83, 1519)),
    ((), STATELESS, TP_WORDS, "RATE", (1, 14_880_952, 1_000_000_000), (0, 1_000_000_001)),
    ((), STATELESS, TP_WORDS, "DURATION", (1, 3600), (0, 3601)),
    ((), STATELESS, TP_WORDS, "TIMEOUT", (0, 60_000), (-1, 60_001)),
    ((), STATELESS, TP_WORDS, "n", (2, 1_000_000), (1, 1_000_001)),
    ((), STATELESS, TP_WORDS | {"n": 10}, "m", (0, 10), (-1, 11)),
    (LATENCY, STATELESS, TP_WORDS | LAT_WORDS, "DELAY", (0, 59), (-1, 60)),
    (LATENCY, STATELESS, TP_WORDS | LAT_WORDS | {"DURATION": 3600}, "DELAY", (3599,), (3600, 3601)),
    (LATENCY, STATELESS, TP_WORDS | LAT_WORDS, "TIMESTAMPS", (1, 50_000), (0, 50_001)),
    (LATENCY, STATELESS, TP_WORDS | LAT_WORDS | {"RATE": 10}, "TIMESTAMPS", (500,), (501,)),
    (PDV, STATELESS, TP_WORDS | {"FRAME_TIMEOUT": 0}, "FRAME_TIMEOUT", (0, 61_999), (-1, 62_000)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS | {"D": 100_000_000}, "N", (4000, 4001), (0, 3999, 2**32)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS, "M", (1, 4000), (0, 4001, 2**32)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS | {"m": 1}, "M", (1, 2000), (2001,)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS, "R", (1000, 1_000_000_000), (0, 1_000_000_001)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS, "T", (1, 500), (0, 2001)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS | {"D": 6000}, "T", (2000,), (2001,)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS, "D", (4500, 100_000_000), (4499, 100_000_001)),
    (LATENCY, WITH_STATE, TP_WORDS | STATE_WORDS | LAT_WORDS, "DELAY", (59,), (60,)),
    (PDV, WITH_STATE, TP_WORDS | STATE_WORDS | {"FRAME_TIMEOUT": 0}, "FRAME_TIMEOUT", (61_999,), (62_000,)),
]


def test_there_is_a_row_for_every_argument() -> None:
    assert {row[3] for row in ARGUMENTS} == {one.name for one in (*COMMON, *STATEFUL, *LATENCY, *PDV)}


@pytest.mark.parametrize(("own", "settings", "values", "name", "accepted", "refused"), ARGUMENTS)
def test_arguments(own: Any, settings: Any, values: dict[str, int], name: str, accepted: Sequence[int], refused: Sequence[int]) -> None:
    for value in accepted:
        given_ = values | {name: value}
        assert positional.parse([str(one) for one in given_.values()], own, settings) == given_
    for word in (*map(str, refused), "x", "1.5", "0x10", ""):
        with pytest.raises(InputError) as caught:
            positional.parse([str(one) for one in (values | {name: word}).values()], own, settings)
        assert caught.value.name == (name if not (name == "N" and word == "3999") else "M")
        assert word in caught.value.message


@pytest.mark.parametrize(("own", "settings", "count"), [((), STATELESS, 6), (LATENCY, STATELESS, 8), (PDV, STATELESS, 7), ((), WITH_STATE, 11)])
def test_how_many_arguments(own: Any, settings: Any, count: int) -> None:
    for wrong in (0, count - 1, count + 1):
        with pytest.raises(InputError, match=f"there are {wrong}, not {count}: SIZE RATE"):
            positional.parse(["84"] * wrong, own, settings)


def test_background_needs_ipv6_on_both_sides() -> None:
    one_side = parse(with_lines(TRANSLATOR, "IPv6-R-Real"))
    positional.parse(["84", "1", "1", "0", "2", "2"], (), one_side)
    with pytest.raises(InputError, match="is missing") as caught:
        positional.parse(["84", "1", "1", "0", "2", "1"], (), one_side)
    assert caught.value.name == "IPv6-R-Real"


# --- variables -------------------------------------------------------------------------------------------------------------------------------

VARIABLES: list[tuple[str, str, str, Any]] = [
    ("PORTS", "af_packet:tl,af_packet:tr", "ports", ("af_packet:tl", "af_packet:tr")),
    ("PORTS", "0000:01:00.0, 0000:01:00.1", "ports", ("0000:01:00.0", "0000:01:00.1")),
    ("PORTS", "vdev:net_pcap_l,tx_pcap=a,vdev:net_pcap_r,tx_pcap=b", "ports", ("vdev:net_pcap_l,tx_pcap=a", "vdev:net_pcap_r,tx_pcap=b")),
    ("NETNS", "tester", "netns", "tester"),
    ("CORES", "auto", "automatic_cores", True),
    ("GATEWAYS", "198.19.0.9, 2001:2::9", "gateways", (IPv4Address("198.19.0.9"), IPv6Address("2001:2::9"))),
    ("SEED", "9007199254740991", "seed", 2**53 - 1),
    ("LEARNING_REST", "0.5", "learning_rest_s", 0.5),
    ("LEARNING_REST", "", "learning_rest_s", 2.0),
]
BAD_VARIABLES = [
    ("PORTS", "eth0,eth1"),
    ("PORTS", "ring"),
    ("NETNS", "a/b"),
    ("CORES", "1,2"),
    ("GATEWAYS", "198.19.0"),
    ("SEED", "-1"),
    ("SEED", "9007199254740992"),
    ("LEARNING_REST", "-1"),
    ("LEARNING_REST", "61"),
]


@pytest.mark.parametrize(("name", "text", "member", "value"), VARIABLES)
def test_variables(name: str, text: str, member: str, value: Any) -> None:
    assert getattr(Variables.read({f"DUTPERF_{name}": text}), member) == value


@pytest.mark.parametrize(("name", "text"), BAD_VARIABLES)
def test_variables_that_cannot_be_used(name: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        Variables.read({f"DUTPERF_{name}": text})
    assert caught.value.name == f"DUTPERF_{name}"


def test_nothing_set_is_as_siitperf_has_it() -> None:
    assert Variables.read({}) == Variables()


# --- set-up and trial ------------------------------------------------------------------------------------------------------------------------


def plan(
    program: commands.Program = commands.TP, words: str = "84 1000 1 100 2 2", settings: configuration.Settings = STATELESS, variables: Variables = VETHS
) -> commands.Planned:
    return commands.plan(program, words.split(), settings, variables)


def frames(text: str, words: str = "84 1000 1 100 2 2") -> dict[str, Any]:
    """Version, size, source and destination of what each direction sends."""
    streams = plan(words=words, settings=parse(text)).trial.streams()
    return {
        str(direction): [(one.version, one.size, str(one.source), str(one.destination)) for one in (stream.foreground, stream.background) if one]
        for direction, stream in streams.items()
    }


L4, R4, L6, R6 = "198.18.0.2", "198.19.0.2", "2001:2::2", "2001:2:0:8000::2"
BACKGROUND = ((6, 128, L6, R6), (6, 128, R6, L6))


def test_who_sends_what_to_whom() -> None:
    there, back = (6, 128, L6, "2001:2:0:1000::2"), (4, 108, R4, "198.18.0.2")
    assert frames(TRANSLATOR, "128 1 1 0 2 2") == {"forward": [there], "reverse": [back]}
    assert frames(TRANSLATOR, "128 1 1 0 2 1") == {"forward": [there, BACKGROUND[0]], "reverse": [back, BACKGROUND[1]]}
    assert frames(ROUTER, "128 1 1 0 2 2") == {"forward": [(4, 108, L4, R4)], "reverse": [(4, 108, R4, L4)]}
    assert frames(ROUTER, "128 1 1 0 2 1") == {"forward": [(4, 108, L4, R4), BACKGROUND[0]], "reverse": [(4, 108, R4, L4), BACKGROUND[1]]}
    assert frames(ROUTER, "1538 1 1 0 2 2")["forward"] == [(4, 1518, L4, R4)]
    assert frames(with_lines(TRANSLATOR, "Forward 0")).keys() == {"reverse"}


def test_ports_networks_and_varying_addresses_are_those_of_their_direction() -> None:
    lines = ["Fwd-var-sport 1", "Fwd-sport-min 5000", "Fwd-sport-max 6000", "Fwd-var-dport 0", "Rev-var-dport 2", "Rev-dport-max 80", "Num-R-Nets 256"]
    trial = plan(settings=parse(with_lines(TRANSLATOR, *lines))).trial
    assert trial.forward is not None
    assert trial.reverse is not None
    fields = [(one.mode, one.min, one.max) for stream in (trial.forward, trial.reverse) for one in (stream.source_port, stream.destination_port)]
    assert fields == [(FieldMode.INCREASING, 5000, 6000), (FieldMode.FIXED, 7, 7), (FieldMode.RANDOM, 1024, 65535), (FieldMode.DECREASING, 1, 80)]
    assert (trial.forward.networks, trial.reverse.networks) == (256, 1)
    vary = plan(settings=parse(TRANSLATOR + "IP-L-var 3\nIP-L-min 0x10\nIP-L-max 32\nIPv4-L-offset 1\nIPv6-L-offset 6\n")).trial
    assert vary.forward is not None
    assert vary.reverse is not None
    assert vary.forward.source_address == vary.reverse.destination_address
    assert vary.forward.source_address is not None
    assert vary.forward.source_address.model_dump() == {"mode": FieldMode.RANDOM, "min": 16, "max": 32, "offset4": 1, "offset6": 6}
    assert (vary.forward.destination_address, vary.reverse.source_address) == (None, None)


GATEWAYS: list[tuple[str, str, str, tuple[str, ...], Any, Any]] = [
    ("the first address", TRANSLATOR, "2 2", (), (None, "2001:2::1"), ("198.19.0.1", None)),
    ("with background", TRANSLATOR, "2 1", (), (None, "2001:2::1"), ("198.19.0.1", "2001:2:0:8000::1")),
    ("the tester is the first", with_lines(TRANSLATOR, "IPv4-R-Real 198.19.0.1"), "2 2", (), (None, "2001:2::1"), ("198.19.0.2", None)),
    ("named", TRANSLATOR, "2 2", ("198.19.0.77",), (None, "2001:2::1"), ("198.19.0.77", None)),
    ("MAC addresses are given", TRANSLATOR + MACS, "2 1", (), (None, None), (None, None)),
]


@pytest.mark.parametrize(("text", "mix", "gateways", "left", "right"), [row[1:] for row in GATEWAYS], ids=[row[0] for row in GATEWAYS])
def test_the_dut_is_asked_for_where_its_mac_address_is_missing(text: str, mix: str, gateways: tuple[str, ...], left: Any, right: Any) -> None:
    variables = replace(VETHS, gateways=tuple(map(ip_address, gateways)))
    made = plan(words=f"84 1 1 0 {mix}", settings=parse(text), variables=variables).setup
    assert [tuple(one and str(one) for one in (side.gateway4, side.gateway6)) for side in (made.left, made.right)] == [left, right]
    assert (made.left.gateway_mac is not None) == ("MAC-L-DUT" in text)


def test_nobody_is_asked_in_a_ring() -> None:
    assert not plan(variables=RINGS).setup.left.has_gateway


CONTRADICTIONS: list[tuple[str, str, Variables, str, str]] = [
    ("a gateway nowhere", TRANSLATOR, replace(VETHS, gateways=(IPv4Address("198.20.0.1"),)), "DUTPERF_GATEWAYS", "198.20.0.1 is not asked for"),
    ("a gateway in vain", TRANSLATOR + MACS, replace(VETHS, gateways=(IPv4Address("198.19.0.1"),)), "DUTPERF_GATEWAYS", "MAC-x-DUT"),
    ("a gateway in a ring", ROUTER, replace(RINGS, gateways=(IPv4Address("198.19.0.1"),)), "DUTPERF_GATEWAYS", "198.19.0.1 is not asked for"),
    ("one address for both", with_lines(ROUTER, "IPv4-R-Real 198.18.0.2"), VETHS, "IPv4-R-Real", "is the address of left already"),
    ("a group's address", with_lines(ROUTER, "IPv4-R-Real 224.0.0.1"), VETHS, "IPv4-R-Real", "no address that a host can have"),
    ("one port for both", ROUTER, replace(VETHS, ports=("af_packet:t", "af_packet:t")), "DUTPERF_PORTS", "is the port of left already"),
    ("a MAC address on one side in a ring", ROUTER + "MAC-L-DUT 02:00:00:00:00:0a\n", RINGS, "MAC-R-DUT", "a DUT stands between"),
    (
        "no core",
        with_lines(TRANSLATOR, "CPU-R-Recv"),
        WITH_CORES,
        "CPU-R-Recv",
        "is missing: the core is needed; or set DUTPERF_CORES=auto",
    ),
    ("a core twice", with_lines(TRANSLATOR, "CPU-R-Recv 2"), WITH_CORES, "CPU-R-Recv", "core 2 is that of CPU-L-Send already"),
]


@pytest.mark.parametrize(("text", "variables", "name", "message"), [row[1:] for row in CONTRADICTIONS], ids=[row[0] for row in CONTRADICTIONS])
def test_contradictions(text: str, variables: Variables, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(settings=parse(text), variables=variables)
    assert caught.value.name == name
    assert message in caught.value.message


CORES = [("", [2, 4, 6, 8]), ("Reverse 0\n", [2, 4]), ("Forward 0\n", [8, 6])]


@pytest.mark.parametrize(("lines", "expected"), CORES)
def test_cores_in_the_order_in_which_the_engine_places_roles(lines: str, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.os, "sched_getaffinity", lambda _pid: {2, 4, 6, 8})
    made = plan(settings=parse(TRANSLATOR + lines), variables=WITH_CORES).setup
    assert list(made.engine.cores or ()) == expected


def test_a_core_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.os, "sched_getaffinity", lambda _pid: {2, 4, 8})
    with pytest.raises(InputError, match="core 6 does not exist here, or may not be used; set DUTPERF_CORES=auto") as caught:
        plan(variables=WITH_CORES)
    assert caught.value.name == "CPU-R-Send"


def test_ports_are_the_first_two_cards_that_dpdk_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address, kind, driver in (
        ("0000:81:00.0", "0x020000", "vfio-pci"),
        ("0000:01:00.1", "0x020000", "igb_uio"),
        ("0000:01:00.0", "0x020000", "ixgbe"),
        ("0000:00:02.0", "0x010802", "vfio-pci"),
    ):
        device = tmp_path / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "class").write_text(kind + "\n")
        (tmp_path / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers" / driver)
    assert pci.dpdk_ports(tmp_path) == ["0000:01:00.1", "0000:81:00.0"]
    monkeypatch.setattr(setup.pci, "dpdk_ports", lambda: ["0000:01:00.1", "0000:81:00.0", "0000:82:00.0"])
    made = plan(settings=parse(TRANSLATOR + MACS), variables=replace(VETHS, ports=None)).setup
    assert (made.left.port, made.right.port) == ("0000:01:00.1", "0000:81:00.0")
    monkeypatch.setattr(setup.pci, "dpdk_ports", lambda: ["0000:01:00.1"])
    with pytest.raises(InputError, match=r"DUTPERF_PORTS: is not set, and DPDK has 1 port\(s\) here"):
        plan(variables=replace(VETHS, ports=None))


def test_the_trial_of_each_command() -> None:
    tp = plan(words="84 1000 60 2000 2 2").trial
    assert (tp.trial, tp.seed, tp.duration_ns, tp.drain_ns, tp.rest_ns) == (1, 7, 60 * 10**9, 2 * 10**9, 2 * 10**9)
    lat = plan(commands.LAT, "84 1000 60 2000 2 2 10 500").trial
    assert lat.tagged is not None
    assert (lat.tagged.count, lat.tagged.after_ns, lat.lost_delay_ns) == (500, 10 * 10**9, 52 * 10**9)
    pdv = plan(commands.PDV, "84 1000 60 2000 2 2 0").trial
    assert (pdv.stamping, pdv.lost_delay_ns, pdv.frame_timeout_ns) == ("every", 62 * 10**9, None)
    assert plan(commands.PDV, "84 1000 60 2000 2 2 5").trial.frame_timeout_ns == 5_000_000


def test_without_a_seed_each_command_has_new_frames_and_says_which() -> None:
    planned = [plan(variables=replace(VETHS, seed=None)) for _ in range(20)]
    assert len({(one.trial.seed, one.trial.trial) for one in planned}) == 20
    for one in planned:
        assert f"seed {one.trial.seed} " in one.remarks[-1]
        again = plan(variables=replace(VETHS, seed=one.trial.seed))
        assert again.trial.model_copy(update={"trial": one.trial.trial}) == one.trial


def test_what_the_file_says_without_effect_is_told() -> None:
    remarks = plan(settings=parse(TRANSLATOR + "Enumerate-ports 1\nPromisc 0\n")).remarks
    assert ["Enumerate-ports" in remarks[0], "Promisc" in remarks[1], len(remarks)] == [True, True, 2]


def test_stateful_tests_are_refused() -> None:
    with pytest.raises(TesterError, match=r"stateful tests are not there yet \(Stateful is 2"):
        plan(words="84 1000 60 2000 2 2 4000 4000 1000 500 4500", settings=WITH_STATE)


# --- the output ------------------------------------------------------------------------------------------------------------------------------

DELAY = Delays(min=295.0, p50=49.012, p99=200.0, p999=622.3, max=700.0)
CALM = counts(3000, send_time_s=2.9990334, delay_us=DELAY)
LATE = Cause(code="sending_time", text="forward: sending took 3.1 s, more than the 3.000600 s allowed", direction=Direction.FORWARD)
DROPS = Cause(code="tester_drops", text="forward: the tester itself dropped 3 frames (no_buffer)", direction=Direction.FORWARD)
TP, LAT, VARIATION, IN_TIME = (
    (commands.TP, "84 1000 3 0 2 2"),
    (commands.LAT, "84 1000 3 0 2 2 1 500"),
    (commands.PDV, "84 1000 3 0 2 2 0"),
    (commands.PDV, "84 1000 3 0 2 2 1"),
)
OUTPUT: list[tuple[str, Any, DirectionCounts, tuple[Cause, ...], list[str], list[str]]] = [
    # the command, what was counted forward, causes; lines that are printed, and words that are not
    ("sent", TP, CALM, (), ["Forward frames sent: 3000"], ["Reverse", "invalid", "Error", "TL", "PDV"]),
    ("sending time", TP, CALM, (), ["Info: Forward sender's sending took 2.9990334000 seconds."], []),
    ("received", TP, counts(3000, 2990), (), ["Forward frames received: 2990"], ["invalid"]),
    ("typical latency", LAT, CALM, (), ["Forward TL: 0.049012"], ["PDV"]),
    ("worst-case latency", LAT, CALM, (), ["Forward WCL: 0.622300"], ["PDV"]),
    ("PDV", VARIATION, CALM, (), ["Forward PDV: 0.327300"], ["TL", "completely missing"]),
    ("what it is made of", VARIATION, CALM, (), ["Info: Forward D99_9th_perc: 0.622300", "Info: Forward Dmin: 0.295000", "Info: Forward Dmax: 0.700000"], []),
    ("frames in time", IN_TIME, counts(3000, 2900, late=60), (), ["Forward frames received: 2900", "Info: Forward frames completely missing: 40"], ["PDV"]),
    ("too slow", TP, CALM, (LATE,), ["Warning: Forward sending exceeded the 3.0006000000 seconds limit, the test is invalid."], ["Forward frames sent"]),
    ("too slow, in our words", TP, CALM, (LATE,), ["Warning: the test is invalid: " + LATE.text + ".", "Forward frames received: 3000"], []),
    ("another cause", LAT, CALM, (DROPS,), ["Forward frames sent: 3000", "Warning: the test is invalid: " + DROPS.text + "."], ["TL", "WCL", "exceeded"]),
]


def outcome(command: tuple[commands.Program, str], direction: str, counted: DirectionCounts, *causes: Cause) -> tuple[commands.Planned, TrialResult]:
    ours = tuple(cause.model_copy(update={"direction": Direction(direction)}) for cause in causes)
    verdict = Verdict.INVALID if causes else Verdict.VALID
    return plan(*command), TrialResult.model_validate({"trial": 1, "verdict": verdict, "causes": ours, direction: counted})


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize(("command", "counted", "causes", "printed", "absent"), [row[1:] for row in OUTPUT], ids=[row[0] for row in OUTPUT])
def test_output_lines(
    command: Any, counted: DirectionCounts, causes: Any, printed: list[str], absent: list[str], direction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    planned, result = outcome(command, direction, counted, *causes)
    assert commands.say(planned, command[0], result) == (3 if causes else 0)
    captured = capsys.readouterr()
    said = (captured.out + captured.err).replace(direction.capitalize(), "Forward").splitlines()
    assert set(printed) <= set(said)
    assert not [line for line in said for words in absent if words in line]


def test_the_limit_of_a_minute_is_siitperfs(capsys: pytest.CaptureFixture[str]) -> None:
    planned, result = outcome((commands.TP, "84 1000 60 0 2 2"), "forward", CALM, LATE)
    commands.say(planned, commands.TP, result)
    assert "exceeded the 60.0006000000 seconds limit" in capsys.readouterr().err


def test_a_trial_that_was_aborted_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    result = TrialResult(trial=1, verdict=Verdict.ABORTED, causes=(Cause(code="engine_died", text="the engine ended with status 1"),))
    assert commands.say(plan(), commands.TP, result) == 4
    assert capsys.readouterr() == ("", "Error: the engine ended with status 1\n")


ERRORS: list[tuple[str, str, list[str], str]] = [
    ("no file", "", [], "Input Error: siitperf.conf: cannot be read"),
    ("a bad line", TRANSLATOR + "Speed 10", [], "Input Error: siitperf.conf, line 18: cannot be read: 'Speed 10'"),
    ("a bad argument", TRANSLATOR, ["84", "0", "1", "0", "2", "2"], "Input Error: RATE: should be 1 to 1000000000, not 0"),
    ("stateful", TRANSLATOR + "Stateful 1", ["84", "1000", "1", "0", "2", "2", "9", "9", "10", "1", "2000"], "Error: stateful tests are not there yet"),
    ("no engine", TRANSLATOR, ["84", "1000", "1", "0", "2", "2"], "Error: DUTPERF_ENGINE: /nowhere is no program that can be run"),
]


@pytest.mark.parametrize(("text", "words", "line"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_have_their_line_and_status(
    text: str, words: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "yield_to_the_dut", lambda: None)
    for name, value in (("PORTS", "ring,ring"), ("CORES", "auto"), ("SEED", "1"), ("ENGINE", "/nowhere")):
        monkeypatch.setenv(f"DUTPERF_{name}", value)
    if text:
        Path("siitperf.conf").write_text(text)
    assert commands.main(commands.TP, words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(line)
    assert captured.err.count("\n") == 1


# --- dutperf convert -------------------------------------------------------------------------------------------------------------------------

VARYING = "IP-R-var 2\nIP-R-min 5\nIP-R-max 0xff\nIPv4-R-offset 1\nIPv6-R-offset 8\n"
CONVERTED: list[tuple[str, str, str]] = [
    ("translator", TRANSLATOR, "84 1000 1 100 2 2"),
    ("translator with MAC addresses and background", TRANSLATOR + MACS, "84 1000 1 100 10 9"),
    ("router", ROUTER, "84 1000 1 100 2 2"),
    ("router with background", ROUTER + MACS, "84 1000 1 100 2 1"),
    ("all ports otherwise", TRANSLATOR + "Fwd-sport-min 5\nRev-sport-max 6000\nFwd-dport-max 7\nNum-L-Nets 3\nNum-R-Nets 256\n", "84 1000 1 100 2 2"),
    ("varying addresses", TRANSLATOR + VARYING, "84 1000 1 100 2 2"),
    ("one direction", TRANSLATOR + "Forward 0\n", "84 1000 1 100 2 2"),
]


@pytest.mark.parametrize(("text", "words"), [row[1:] for row in CONVERTED], ids=[row[0] for row in CONVERTED])
def test_a_converted_file_is_the_same_trial(text: str, words: str) -> None:
    settings = parse(text)
    planned = plan(words=words, settings=settings)
    ours = config.parse_yaml(convert.text(settings, VETHS), "converted")
    size, rate, duration, timeout, n, m = map(int, words.split())
    chosen = Conditions(duration_s=duration, drain_s=timeout / 1000, n=n, m=m, learning_rest_s=2, seed=7, directions=setup.directions(settings))
    ipv4_alone = settings["IP-L-Vers"] == 4 and n == m
    assert traffic.make_trial(ours, chosen, size - 20 if ipv4_alone else size, rate, 1) == planned.trial
    assert traffic.open_request(ours, 1518) == traffic.open_request(planned.setup, 1518)


def test_what_has_no_counterpart_stands_in_a_comment() -> None:
    every = "Promisc 0\nMEM-Channels 2\nStateful 0\nEnumerate-ports 1\nEnumerate-ips 2\nResponder-tuples 3\n"
    unused = "IPv4-R-Virt 198.19.0.9\nIP-L-min 1\nIPv6-L-offset 6\nReverse 0\nFwd-var-sport 0\nFwd-sport-min 5000\n"
    text = convert.text(parse(with_lines(TRANSLATOR, *(every + unused).splitlines())), WITH_CORES)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    for words in (
        "Promisc 0 has",
        "MEM-Channels 2 has",
        "Stateful 0 has",
        "Enumerate-ports 1 has",
        "Enumerate-ips 2 has",
        "Responder-tuples 3 has",
        "--directions forward",
    ):
        assert any(words in line for line in comments), words
    [left_out] = [line for line in comments if "Without effect" in line]
    for key in ("IPv4-R-Virt 198.19.0.9", "IP-L-min 1", "IPv6-L-offset 6", "Fwd-sport-min 5000", "CPU-R-Send 6", "CPU-L-Recv 8"):
        assert key in left_out
    assert config.parse_yaml(text, "converted").engine.cores == (2, 4)


def test_ports_that_are_not_known_are_left_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.pci, "dpdk_ports", list)
    text = convert.text(parse(TRANSLATOR), replace(VETHS, ports=None))
    assert "# left.port and right.port are missing" in text
    with pytest.raises(config.ConfigError, match=r"left.port: is missing"):
        config.parse_yaml(text, "converted")


def test_the_command_converts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_PORTS", "ring,ring")
    file = tmp_path / "siitperf.conf"
    file.write_text(TRANSLATOR)
    done = CliRunner().invoke(app, ["convert", str(file)])
    assert done.exit_code == 0
    assert config.parse_yaml(done.stdout, "converted").left.port == "ring"
    file.write_text("Forwards 1\n")
    refused = CliRunner().invoke(app, ["convert", str(file)])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{file}, line 1: cannot be read: 'Forwards 1'" in refused.stderr


def test_a_command_starts_fast() -> None:
    """Scripts start one process for each trial: what takes long to import stays away."""
    program = "import sys; import dutperf.siitperf.commands; from dutperf.procedure import latency, pdv; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    imported = done.stdout.split()
    assert "dutperf.siitperf.commands" in imported
    assert not {"numpy", "MLRsearch", "typer", "rich", "jsonschema", "scapy"} & set(imported)
