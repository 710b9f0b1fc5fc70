# SPDX-License-Identifier: Apache-2.0
"""What siitperf's commands are given: every key of the file, every argument and every variable."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import FieldMode
from dutperf.siitperf import arguments as positional
from dutperf.siitperf import configuration
from dutperf.siitperf.arguments import COMMON, LATENCY, PDV, STATEFUL
from dutperf.siitperf.configuration import KEYS, InputError, parse
from dutperf.siitperf.variables import Variables
from siitperf_files import TRANSLATOR, with_lines
from siitperf_plans import IPV4_ALONE, STATELESS, WITH_STATE, plan

# --- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyRow:
    """What is true of a key: its default, texts and their values, texts that are refused, lines
    with which it may not be missing."""

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
ADDRESS = {
    4: {text: ip_address(text) for text in ("198.18.0.2", "198.19.255.254")},
    6: {text: ip_address(text) for text in ("2001:2::2", "2001:2:0:ffff::1")},
}
NO_ADDRESS = {
    4: ["198.18.0.256", "198.18.0", "2001:2::2", "x"],
    6: ["198.18.0.2", "2001:2::10000", "2001:2::2/64", "fe80::1%eth0", "x"],
}


def _of_side(side: str) -> dict[str, KeyRow]:
    vary = [
        f"IP-{side}-var 1",
        f"IP-{side}-min 0",
        f"IP-{side}-max 9",
        f"IPv4-{side}-offset 2",
        f"IPv6-{side}-offset 14",
    ]
    both = {version: [f"IP-L-Vers {version}", f"IP-R-Vers {version}"] for version in (4, 6)}
    through = {
        4: [f"IP-{side}-Vers 6", f"IP-{'R' if side == 'L' else 'L'}-Vers 4"],
        6: [f"IP-{side}-Vers 4", f"IP-{'R' if side == 'L' else 'L'}-Vers 6"],
    }
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
    (
        "the other letters' case",
        "forward 1",
        "siitperf.conf, line 20",
        "cannot be read: 'forward 1'; did you mean Forward?",
    ),
    ("no value", "Promisc", "siitperf.conf, line 20", "cannot be read: 'Promisc'"),
    ("a value in a comment", "Promisc # 1", "siitperf.conf, line 20", "cannot be read: 'Promisc # 1'"),
    ("an equals sign", "Promisc=1", "siitperf.conf, line 20", "cannot be read: 'Promisc=1'"),
    (
        "a placeholder that is used",
        "IPv4-R-Real 0.0.0.0",
        "IPv4-R-Real",
        "is 0.0.0.0, which is not the address of a host",
    ),
    (
        "a placeholder through a translator",
        "IPv6-R-Virt ::",
        "IPv6-R-Virt",
        "is ::, which is not the address of a host",
    ),
    ("no direction", "Forward 0\nReverse 0", "Forward", "is 0, and Reverse as well"),
    (
        "ports upside down",
        "Fwd-sport-min 500\nFwd-sport-max 400",
        "Fwd-sport-min",
        "is 500, greater than Fwd-sport-max, 400",
    ),
    ("ports beyond the default", "Rev-dport-min 50000", "Rev-dport-min", "is 50000, greater than Rev-dport-max, 49151"),
    (
        "address bits upside down",
        "IP-L-var 1\nIP-L-min 0x10\nIP-L-max 15\nIPv4-L-offset 2\nIPv6-L-offset 14",
        "IP-L-min",
        "is 16, greater than IP-L-max, 15",
    ),
    (
        "varying, in many networks",
        "Num-R-Nets 2\nIP-L-var 1\nIP-L-min 0\nIP-L-max 9\nIPv4-L-offset 2\nIPv6-L-offset 14",
        "Num-R-Nets",
        "one network only",
    ),
]


@pytest.mark.parametrize(("lines", "name", "message"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_lines_that_cannot_be_used(lines: str, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(TRANSLATOR + "\n" * (19 - len(TRANSLATOR.splitlines())) + lines)
    assert caught.value.name == name
    assert message in caught.value.message


def test_comments_blanks_tabs_and_an_older_name() -> None:
    settings = parse(
        TRANSLATOR + "\t Num-L-Nets\t7# seven\r\n#Num-R-Nets 9\n   # nothing\nResponder-ports 2\nPromisc 1\nPromisc 1\n"
    )
    assert (settings["Num-L-Nets"], settings["Num-R-Nets"], settings["Responder-tuples"]) == (7, 1, 2)


DOUBTED = [
    (
        "Promisc 0 1",
        "Promisc",
        0,
        "siitperf.conf, line 1: Promisc has words behind its value, without #; they are ignored",
    ),
    (
        "IPv4-R-Real 198.19.0.2 // right",
        "IPv4-R-Real",
        IPv4Address("198.19.0.2"),
        "IPv4-R-Real has words behind its value",
    ),
    (
        "Promisc 0\nPromisc 1",
        "Promisc",
        1,
        "siitperf.conf, line 2: Promisc is given twice, with different values; the last",
    ),
    (
        "MAC-L-DUT 2:0:0:0:0:A",
        "MAC-L-DUT",
        "02:00:00:00:00:0a",
        "line 1: MAC-L-DUT is short of digits; it is read as 02:00",
    ),
]


@pytest.mark.parametrize(("lines", "key", "value", "warning"), DOUBTED)
def test_what_may_not_be_meant_is_read_as_siitperf_does_with_a_warning(
    lines: str, key: str, value: Any, warning: str
) -> None:
    settings = parse(f"{lines}\n{TRANSLATOR}")
    assert settings[key] == value
    [remark] = settings.remarks
    assert warning in remark
    assert f"Warning: {remark}" in plan(settings=settings).remarks
    assert parse(TRANSLATOR + TRANSLATOR).remarks == ()


@pytest.mark.parametrize("end", ["\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\r"])
def test_only_lf_ends_a_line(end: str, tmp_path: Path) -> None:
    file = tmp_path / "siitperf.conf"
    file.write_bytes(f"{TRANSLATOR}# some note{end}Reverse 0\n".encode())
    assert configuration.load(file).active() == ("Forward", "Reverse")


UNUSED = [
    ("ranges of ports that do not vary", "Fwd-var-sport 0\nFwd-sport-min 500\nFwd-sport-max 400"),
    ("ranges of a direction that is off", "Reverse 0\nRev-sport-min 500\nRev-sport-max 400"),
    ("addresses that do not vary", "IP-L-min 0x10\nIP-L-max 15"),
    ("placeholders", "IPv4-L-Real 0.0.0.0\nIPv6-L-Virt ::\nIPv4-R-Virt 0.0.0.0\nIPv6-R-Real ::"),
    ("addresses that no host has", "IPv4-L-Real 127.0.0.1\nIPv6-L-Virt ff02::1\nIPv4-R-Virt 255.255.255.255"),
    ("the address of a direction that is off", "Reverse 0\nIPv4-L-Virt 0.0.0.0"),
]


@pytest.mark.parametrize("lines", [row[1] for row in UNUSED], ids=[row[0] for row in UNUSED])
def test_given_is_not_used(lines: str) -> None:
    settings = parse(with_lines(TRANSLATOR, *lines.split("\n")))
    planned = plan(settings=settings)
    assert planned.trial.forward is not None
    assert planned.trial.forward.foreground == plan().trial.forward.foreground
    addresses = [address for side in planned.setup.sides().values() for address in (side.ipv4, side.ipv6, side.seen_as)]
    written = {line.split()[1] for line in lines.split("\n")}
    assert not written & {str(getattr(address, "ip", address)) for address in addresses}


def test_both_directions_may_be_off_in_stateful_tests() -> None:
    assert parse(TRANSLATOR + "Stateful 1\nForward 0\nReverse 0\n").stateful


def test_one_way_needs_no_address_for_the_other() -> None:
    settings = parse(with_lines(TRANSLATOR, "IPv4-L-Virt", "Reverse 0"))
    assert plan(settings=settings).trial.reverse is None


def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"cannot be read in {tmp_path}: No such file"):
        configuration.load()


@pytest.mark.parametrize(
    ("mode", "meant"), [(1, FieldMode.INCREASING), (2, FieldMode.DECREASING), (3, FieldMode.RANDOM)]
)
@pytest.mark.parametrize("side", ["L", "R"])
def test_modes_of_varying_addresses(side: str, mode: int, meant: FieldMode) -> None:
    lines = f"IP-{side}-var {mode}\nIP-{side}-min 0\nIP-{side}-max 0\nIPv4-{side}-offset 2\nIPv6-{side}-offset 14\n"
    assert parse(TRANSLATOR + lines).mode(f"IP-{side}-var") is meant


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for lines in (text, TRANSLATOR + text):
        with contextlib.suppress(InputError):
            assert set(parse(lines).given) <= set(KEYS)


# --- arguments ------------------------------------------------------------------------------------

TP_WORDS = {"SIZE": 84, "RATE": 1000, "DURATION": 60, "TIMEOUT": 2000, "n": 2, "m": 2}
STATE_WORDS = {"N": 4000, "M": 4000, "R": 1000, "T": 500, "D": 4500}
LAT_WORDS = {"DELAY": 10, "TIMESTAMPS": 500}
ARGUMENTS: list[tuple[Any, Any, dict[str, int], str, Sequence[int], Sequence[int]]] = [
    # the command's own parameters, the file, all values, the parameter, accepted values, refused
    # ones
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
    ((), WITH_STATE, TP_WORDS | STATE_WORDS | {"D": 100_000_000}, "N", (4000, 10_000), (0, 3999, 10_001, 2**32)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS, "M", (1, 4000), (0, 4001, 2**32)),
    ((), WITH_STATE, TP_WORDS | STATE_WORDS, "m", (2,), (1, 0)),
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
def test_arguments(
    own: Any, settings: Any, values: dict[str, int], name: str, accepted: Sequence[int], refused: Sequence[int]
) -> None:
    for value in accepted:
        given_ = values | {name: value}
        assert positional.parse([str(one) for one in given_.values()], own, settings) == given_
    for word in (*map(str, refused), "x", "1.5", "0x10", ""):
        with pytest.raises(InputError) as caught:
            positional.parse([str(one) for one in (values | {name: word}).values()], own, settings)
        assert caught.value.name == (name if not (name == "N" and word == "3999") else "M")
        assert word in caught.value.message


@pytest.mark.parametrize(
    ("own", "settings", "count"),
    [((), STATELESS, 6), (LATENCY, STATELESS, 8), (PDV, STATELESS, 7), ((), WITH_STATE, 11)],
)
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


# --- variables ------------------------------------------------------------------------------------

VARIABLES: list[tuple[str, str, str, Any]] = [
    ("PORTS", "af_packet:tl,af_packet:tr", "ports", ("af_packet:tl", "af_packet:tr")),
    ("PORTS", "eth1,eth2", "ports", ("eth1", "eth2")),
    ("PORTS", "0000:01:00.0, 0000:01:00.1", "ports", ("0000:01:00.0", "0000:01:00.1")),
    (
        "PORTS",
        "vdev:net_pcap_l,tx_pcap=a,vdev:net_pcap_r,tx_pcap=b",
        "ports",
        ("vdev:net_pcap_l,tx_pcap=a", "vdev:net_pcap_r,tx_pcap=b"),
    ),
    ("PORTS", "virtio_user:/l,server=1,memif:/r,id=1", "ports", ("virtio_user:/l,server=1", "memif:/r,id=1")),
    ("NETNS", "tester", "netns", "tester"),
    ("CORES", "auto", "automatic_cores", True),
    ("GATEWAYS", "198.19.0.9, 2001:2::9", "gateways", (IPv4Address("198.19.0.9"), IPv6Address("2001:2::9"))),
    ("SEED", "9007199254740991", "seed", 2**53 - 1),
    ("LEARNING_REST", "0.5", "learning_rest_s", 0.5),
    ("LEARNING_REST", "", "learning_rest_s", 2.0),
    ("REPEAT", "0", "repeats", 0),
    ("REPEAT", "100", "repeats", 100),
    ("REPEAT", "", "repeats", 0),
]
BAD_VARIABLES = [
    ("PORTS", "eth0"),
    ("PORTS", "eth0,eth1,eth2"),
    ("PORTS", "ring"),
    ("NETNS", "a/b"),
    ("CORES", "1,2"),
    ("GATEWAYS", "198.19.0"),
    ("SEED", "-1"),
    ("SEED", "9007199254740992"),
    ("LEARNING_REST", "-1"),
    ("LEARNING_REST", "61"),
    ("REPEAT", "-1"),
    ("REPEAT", "101"),
    ("REPEAT", "1.5"),
    ("REPEAT", "yes"),
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
