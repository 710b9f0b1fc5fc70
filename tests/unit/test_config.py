# SPDX-License-Identifier: Apache-2.0
"""The configuration file: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import contextlib
import copy
from ipaddress import IPv4Address, IPv6Interface
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError, Setup, load, parse, parse_yaml

SIIT = """\
engine: {netns: tester, cores: auto}
left:
  port: af_packet:tl
  version: 6
  ipv6: 2001:2::2/64
  gateway6: 2001:2::1
  seen_as: 198.18.0.2
right:
  port: af_packet:tr
  version: 4
  ipv4: 198.19.0.2/24
  gateway4: 198.19.0.1
  ipv6: 2001:2:0:8000::2/64
  gateway6: 2001:2:0:8000::1
  seen_as: 2001:2:0:1000::2
"""
ROUTER: dict[str, Any] = {
    "left": {"port": "0000:01:00.0", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"},
    "right": {"port": "0000:01:00.1", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
}


def changed(base: str | dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """``base`` with the values of some paths replaced; None removes the key."""
    mapping = yaml.safe_load(base) if isinstance(base, str) else copy.deepcopy(base)
    for path, value in changes:
        *parents, key = path.split(".")
        at = mapping
        for parent in parents:
            at = at.setdefault(parent, {})
        if value is None:
            del at[key]
        else:
            at[key] = value
    return mapping


def test_the_example_is_read() -> None:
    setup = parse_yaml(SIIT, "example")
    assert setup.left.ipv6 == IPv6Interface("2001:2::2/64")
    assert setup.left.seen_as == IPv4Address("198.18.0.2")
    assert setup.engine.cores is None
    assert [side.version for side in setup.sides().values()] == [6, 4]


ACCEPTED: list[tuple[str, str | dict[str, Any], list[tuple[str, Any]]]] = [
    ("a router", ROUTER, []),
    (
        "ports in memory, cable",
        ROUTER,
        [*((f"{s}.port", "ring") for s in ("left", "right")), ("left.gateway4", None), ("right.gateway4", None)],
    ),
    ("a direct cable", ROUTER, [("left.gateway4", None), ("right.gateway4", None)]),
    ("a link-local gateway", SIIT, [("left.gateway6", "fe80::1")]),
    ("MAC instead of gateway", ROUTER, [("left.gateway4", None), ("left.gateway_mac", "02:00:00:00:00:0A")]),
    ("cores", ROUTER, [("engine.cores", [2, 3]), ("engine.dut_cores", [1])]),
    ("a prefix command", ROUTER, [("engine.command", ["ssh", "tester-host"])]),
    ("further DUT keys", ROUTER, [("dut.name", "TAYGA"), ("dut.version", 0.9), ("dut.firmware", {"build": 7})]),
    ("varying addresses", ROUTER, [("left.varying_address", {"mode": "random", "min": 0, "max": 255, "offset4": 2})]),
    ("short PCI address", ROUTER, [("left.port", "01:00.0")]),
    (
        "ports and networks",
        ROUTER,
        [("left.source_port", {"mode": "fixed", "min": 7, "max": 7}), ("right.networks", 256)],
    ),
    ("translated one way", SIIT, [("left.seen_as", None)]),
    ("static NAT44 1:1", ROUTER, [("left.seen_as", "198.19.0.9"), ("right.seen_as", "198.18.0.9")]),
    ("NAT to the DUT's own address", ROUTER, [("right.seen_as", "198.18.0.1")]),
    (
        "link-local addresses on a cable",
        SIIT,
        [("left.gateway6", None), ("right.gateway4", None), ("right.gateway6", None), ("left.ipv6", "fe80::2/64")],
    ),
    ("a virtual device", ROUTER, [("left.port", "vdev:net_tap0,iface=x")]),
    (
        "a switch's sockets",
        ROUTER,
        [("left.port", "virtio_user:/run/ovs/p0,server=1"), ("right.port", "vhost_user:/run/vm/net1")],
    ),
    ("memif", ROUTER, [("left.port", "memif:/run/vpp/memif.sock,id=1")]),
    ("AF_XDP", ROUTER, [("left.port", "af_xdp:enp1s0f0")]),
    ("an interface alone", ROUTER, [("left.port", "enp1s0f0")]),
]


@pytest.mark.parametrize(("base", "changes"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_is_accepted_survives_its_way_through_json(
    base: str | dict[str, Any], changes: list[tuple[str, Any]]
) -> None:
    setup = parse(changed(base, *changes), "test")
    assert Setup.model_validate(configuration.as_json(setup)) == setup


REFUSED: list[tuple[str, str | dict[str, Any], list[tuple[str, Any]], str, str]] = [
    ("unknown key", SIIT, [("left.gatway6", "2001:2::1")], "left.gatway6", "unknown key; did you mean gateway6?"),
    ("unknown key at the top", SIIT, [("engin", {})], "engin", "unknown key; did you mean engine?"),
    (
        "unknown key like none",
        SIIT,
        [("engine.x", 1)],
        "engine.x",
        (
            "unknown key; there are netns, cores, dut_netns, dut_cores, queues, offloads, flow_control,"
            " link_timeout_s, memory, command"
        ),
    ),
    (
        "key of another place",
        SIIT,
        [("initiator", "left")],
        "initiator",
        "unknown key; did you mean stateful.initiator?",
    ),
    (
        "key of both sides",
        SIIT,
        [("gateway6", "2001:2::1")],
        "gateway6",
        "unknown key; did you mean left.gateway6 or right.gateway6?",
    ),
    ("key of many places", SIIT, [("mode", "fixed")], "mode", "unknown key; there are engine, left"),
    ("key of a stream", SIIT, [("left.rate", 5)], "left.rate", "unknown key; did you mean streams.0.rate?"),
    ("command", SIIT, [("losses", "ls")], "losses", "unknown key; did you mean dut.commands.losses?"),
    ("empty port", SIIT, [("left", {"port": None})], "left.port", 'is empty; the port null is written "null"'),
    (
        "unknown key deep",
        ROUTER,
        [("left.varying_address", {"mode": "fixed", "min": 1, "max": 1, "ofset4": 1})],
        "left.varying_address.ofset4",
        "offset4?",
    ),
    ("no side", SIIT, [("right", None)], "right", "is missing"),
    ("no port", SIIT, [("left.port", None)], "left.port", "is missing"),
    ("no version", SIIT, [("left.version", None)], "left.version", "is missing"),
    ("version 5", SIIT, [("left.version", 5)], "left.version", "should be 4 or 6 (it is 5)"),
    ("no address", SIIT, [("left.ipv6", None)], "left.ipv6", "is missing: left has version 6"),
    (
        "no address to see",
        SIIT,
        [("left.seen_as", None), ("right.seen_as", None)],
        "left.seen_as",
        "is missing: the other side needs an IPv4 address",
    ),
    ("seen as the wrong version", SIIT, [("left.seen_as", "2001:2::9")], "left.seen_as", "is not an IPv4 address"),
    ("seen as in a router", ROUTER, [("left.seen_as", "198.18.0.2")], "left.seen_as", "the tester's own address"),
    ("seen as the sender", ROUTER, [("left.seen_as", "198.19.0.2")], "left.seen_as", "the tester's own address"),
    ("NAT44 seen as IPv6", ROUTER, [("left.seen_as", "2001:2::9")], "left.seen_as", "is not an IPv4 address"),
    *(
        (f"seen as {address}", base, [(f"{side}.seen_as", address)], f"{side}.seen_as", text)
        for base, side, address, text in (
            (ROUTER, "left", "127.0.0.1", "127.0.0.1 is a loopback address"),
            (SIIT, "left", "127.0.0.1", "127.0.0.1 is a loopback address"),
            (SIIT, "left", "0.0.0.0", "0.0.0.0 means no host"),
            (SIIT, "left", "0.1.2.3", "0.1.2.3 means no host"),
            (SIIT, "left", "224.0.0.5", "224.0.0.5 is a multicast address"),
            (SIIT, "left", "255.255.255.255", "255.255.255.255 is the broadcast address"),
            (SIIT, "left", "198.19.0.255", "198.19.0.255 is the broadcast address of 198.19.0.0/24"),
            (SIIT, "left", "198.19.0.0", "198.19.0.0 is the address of the network 198.19.0.0/24"),
            (SIIT, "left", "169.254.7.7", "169.254.7.7 is a link-local address"),
            (SIIT, "left", "198.19.0.2", "the tester's own address"),
            (SIIT, "right", "::", ":: means no host"),
            (SIIT, "right", "::1", "::1 is a loopback address"),
            (SIIT, "right", "ff02::1", "ff02::1 is a multicast address"),
            (SIIT, "right", "fe80::2", "fe80::2 is a link-local address"),
            (SIIT, "right", "::ffff:198.19.0.2", "is an IPv4-mapped address"),
            (SIIT, "right", "2001:2::", "2001:2:: is the address of all routers in 2001:2::/64"),
        )
    ),
    (
        "a link-local address behind a router",
        SIIT,
        [("left.ipv6", "fe80::2/64")],
        "left.ipv6",
        "is a link-local address",
    ),
    (
        "IPv4's link-local",
        ROUTER,
        [("left.ipv4", "169.254.1.2/16"), ("left.gateway4", "169.254.1.1")],
        "left.ipv4",
        "link-local",
    ),
    ("this network", ROUTER, [("left.ipv4", "0.0.0.2/24"), ("left.gateway4", "0.0.0.1")], "left.ipv4", "means no host"),
    ("all routers of a network", SIIT, [("left.ipv6", "2001:2::/64")], "left.ipv6", "of all routers in 2001:2::/64"),
    (
        "a gateway that is a broadcast address",
        ROUTER,
        [("left.gateway4", "198.18.0.255")],
        "left.gateway4",
        "198.18.0.255 is the broadcast",
    ),
    (
        "a gateway that is a network",
        ROUTER,
        [("left.gateway4", "198.18.0.0")],
        "left.gateway4",
        "is the address of the network",
    ),
    (
        "a gateway that is the other port",
        ROUTER,
        [("left.ipv4", "198.18.0.2/15"), ("right.ipv4", "198.19.0.2/15"), ("left.gateway4", "198.19.0.2")],
        "left.gateway4",
        "198.19.0.2 is the tester's own address (right)",
    ),
    ("seen as nonsense", SIIT, [("left.seen_as", "198.18.0.256")], "left.seen_as", "198.18.0.256"),
    ("no prefix length", SIIT, [("left.ipv6", "2001:2::2")], "left.ipv6", "needs a prefix length"),
    ("bad address", SIIT, [("right.ipv4", "198.19.0.300/24")], "right.ipv4", "198.19.0.300/24"),
    (
        "address of the network",
        SIIT,
        [("right.ipv4", "198.19.0.0/24")],
        "right.ipv4",
        "not a valid host address",
    ),
    ("multicast", SIIT, [("left.ipv6", "ff02::1/64")], "left.ipv6", "not a valid host address"),
    (
        "gateway elsewhere",
        SIIT,
        [("right.gateway4", "198.20.0.1")],
        "right.gateway4",
        "198.20.0.1 is not in 198.19.0.0/24",
    ),
    ("gateway of the tester", SIIT, [("right.gateway4", "198.19.0.2")], "right.gateway4", "the tester's own address"),
    (
        "gateway without address",
        ROUTER,
        [("left.gateway6", "2001:2::1")],
        "left.gateway6",
        "has no effect without left.ipv6",
    ),
    (
        "gateway of one version only",
        SIIT,
        [("right.gateway4", None)],
        "right.gateway4",
        "is missing: the foreground of right is IPv4",
    ),
    ("gateway on one side", ROUTER, [("right.gateway4", None)], "right.gateway4", "is missing: left has a gateway"),
    (
        "the same address twice",
        ROUTER,
        [("right.ipv4", "198.18.0.2/24"), ("right.gateway4", "198.18.0.1")],
        "right.ipv4",
        "is already the address of left",
    ),
    ("the same port twice", ROUTER, [("right.port", "0000:01:00.0")], "right.port", "is already the port of left"),
    ("ring on one side", ROUTER, [("right.port", "ring")], "left.port", "ring must be the port of both sides"),
    (
        "gateway in a ring",
        ROUTER,
        [("left.port", "null"), ("right.port", "null")],
        "left.gateway4",
        "nothing answers",
    ),
    ("bad port", ROUTER, [("left.port", "eth0,eth1")], "left.port", "is not a port: give a PCI address"),
    ("port without interface", ROUTER, [("left.port", "af_packet:")], "left.port", "is not a port"),
    ("interface's name too long", ROUTER, [("left.port", "af_packet:abcdefghijklmnop")], "left.port", "is not a port"),
    ("a socket without a path", ROUTER, [("left.port", "vhost_user:p0")], "left.port", "is not a port"),
    ("a socket's path too long", ROUTER, [("left.port", "memif:/" + 107 * "a")], "left.port", "is not a port"),
    (
        "an argument without a value",
        ROUTER,
        [("left.port", "virtio_user:/run/p0,server")],
        "left.port",
        "is not a port",
    ),
    ("VLAN 4095", ROUTER, [("left.vlans", [10, 4095])], "left.vlans.1", "4094"),
    ("no VLAN", ROUTER, [("left.vlans", [])], "left.vlans", "1"),
    (
        "VLANs where nobody is asked",
        ROUTER,
        [("left.vlans", [10]), ("left.gateway_mac", "02:00:00:00:00:0A")],
        "left.vlans",
        "has no effect",
    ),
    ("bad MAC", ROUTER, [("left.gateway_mac", "02:00:00:00:00")], "left.gateway_mac", "is not a MAC address"),
    ("MAC of a group", ROUTER, [("left.mac", "01:00:5e:00:00:01")], "left.mac", "is not a unicast MAC address"),
    ("ring of a frame", ROUTER, [("left.receive_ring", 1)], "left.receive_ring", "8"),
    ("cores as text", ROUTER, [("engine.cores", "2,3")], "engine.cores", "neither auto nor a list"),
    ("a core below 0", ROUTER, [("engine.cores", [1, -2])], "engine.cores.1", "greater than or equal to 0"),
    ("no cores", ROUTER, [("engine.cores", [])], "engine.cores", "neither auto nor a list"),
    ("no queue", ROUTER, [("engine.queues", 0)], "engine.queues", "greater than or equal to 1"),
    ("too many queues", ROUTER, [("engine.queues", 17)], "engine.queues", "less than or equal to 16"),
    ("help that there is not", ROUTER, [("engine.offloads", ["magic"])], "engine.offloads.0", "receive_timestamps"),
    (
        "flow control that there is not",
        ROUTER,
        [("engine.flow_control", "both")],
        "engine.flow_control",
        "should be 'off', 'receive', 'transmit' or 'full'",
    ),
    (
        "a link that is awaited for a day",
        ROUTER,
        [("engine.link_timeout_s", 86400)],
        "engine.link_timeout_s",
        "less than or equal to 600",
    ),
    (
        "the same help twice",
        ROUTER,
        [("engine.offloads", ["receive_timestamps"] * 2)],
        "engine.offloads",
        "names receive_timestamps twice",
    ),
    ("memory", ROUTER, [("engine.memory", "swap")], "engine.memory", "huge_pages"),
    ("a namespace with a slash", ROUTER, [("engine.netns", "../x")], "engine.netns", "pattern"),
    (
        "an empty range",
        ROUTER,
        [("left.varying_address", {"mode": "random", "min": 2, "max": 1})],
        "left.varying_address",
        "min (2) is greater than max (1)",
    ),
    ("a side that is none", ROUTER, [("left", "eth0")], "left", "left"),
    ("a core twice", ROUTER, [("engine.cores", [0, 1, 0])], "engine.cores", "names 0 twice"),
    ("a core of the DUT twice", ROUTER, [("engine.dut_cores", [3, 3])], "engine.dut_cores", "names 3 twice"),
    ("a VLAN without a list", ROUTER, [("left.vlans", 10)], "left.vlans", "should be a list, as in [10]"),
    ("an address without a list", ROUTER, [("left.answers_for", "198.18.0.9")], "left.answers_for", "[198.18.0.9]"),
    ("a range as a list", ROUTER, [("left.varying_address", [2, 100])], "left.varying_address", "mode, min, max"),
    ("no speed", ROUTER, [("media_mbps", 0)], "media_mbps", "greater than or equal to 1"),
    ("a link between one DUT", ROUTER, [("between", {"overhead": 20})], "between", "several DUTs"),
    (
        "more links than DUTs",
        ROUTER,
        [("dut", [{"name": "a"}, {"name": "b"}]), ("between", [{"overhead": 20}, {"mbps": 100}])],
        "between",
        "has 2 links; between 2 DUTs are 1",
    ),
]


@pytest.mark.parametrize(
    ("base", "changes", "key", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_refused_is_named(
    base: str | dict[str, Any], changes: list[tuple[str, Any]], key: str, text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(changed(base, *changes), "test")
    assert caught.value.key == key
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize("word", ["no", "yes", "off", "true"])
@pytest.mark.parametrize(
    "path",
    [
        "engine.cores",
        "engine.dut_cores",
        "engine.queues",
        "engine.link_timeout_s",
        "left.vlans",
        "left.version",
        "left.networks",
        "left.receive_ring",
        "left.seen_as",
        "left.gateway4",
        "media_mbps",
        "dut.name",
        "dut.version",
        "stateful.source_ports",
        "stateful.timeout_s",
        "dut.commands.time_limit_s",
        "streams",
    ],
)
def test_a_truth_value_is_neither_a_number_nor_a_text(path: str, word: str) -> None:
    value: Any = yaml.safe_load(word)
    if path.endswith(("cores", "vlans", "ports")):
        value = [value]
    if path == "streams":
        value = [{"name": value}]
    with pytest.raises(ConfigError, match="is true or false, as YAML reads yes, no, on and off") as caught:
        parse(changed(ROUTER, (path, value)), "test")
    assert caught.value.key.startswith(path)


def test_where_a_truth_value_is_one() -> None:
    setup = parse(changed(ROUTER, ("dut.hardened", True), ("engine.flow_control", False)), "test")
    assert (setup.dut.identity()["hardened"], setup.engine.flow_control) == (True, "off")


YAML_REFUSED = [
    ("the line of a truth value", "engine:\n  cores: [1,\n no]\n", "f.yaml, line 3: engine.cores.1: is true or false"),
    (
        "a key that a list's element lacks",
        f"{SIIT}streams:\n  - name: a\n  - share: 2\n",
        "line 18: streams.1.name: is",
    ),
    (
        "an element as a whole",
        f"{SIIT}streams:\n  - name: a\n  - {{name: b, share: 2, rate: 9}}\n",
        "f.yaml, line 18: streams.1: the stream b: share and rate exclude each other",
    ),
    (
        "one of two types",
        f"{SIIT}streams:\n  - {{name: a, sizes: 12}}\n",
        "f.yaml, line 17: streams.0.sizes: the stream a: should be greater than or equal to 64 (it is 12)",
    ),
    (
        "a value made of a number",
        f"{SIIT}streams:\n  - {{name: a, rate: -1}}\n",
        "f.yaml, line 17: streams.0.rate: the stream a: should be greater than 0",
    ),
    (
        "the line is told",
        SIIT.replace("gateway6: 2001:2::1\n", "gatway6: 2001:2::1\n", 1),
        "f.yaml, line 6: left.gatway6: unknown key; did you mean gateway6?",
    ),
    ("the nearest line is told", SIIT.replace("  version: 6\n", ""), "f.yaml, line 2: left.version: is missing"),
    ("a key twice", SIIT + "  port: ring\n", "f.yaml, line 16: right.port: is given twice"),
    ("no YAML", "left: [", "f.yaml, line 1: is not valid YAML"),
    (
        "empty",
        "",
        "f.yaml: a configuration is a mapping with the keys engine, left, right, ports, paths, streams, stateful",
    ),
    ("a list", "- 1\n", "f.yaml: a configuration is a mapping"),
    ("a text", "hello", "f.yaml: a configuration is a mapping"),
    ("an unknown tag", "left: !!python/object:os.system {}", "is not valid YAML"),
    *(
        (
            f"a line that only YAML ends, by U+{ord(end):04X}",
            f"# 1 G{end}media_mbps: 10\n",
            f"U+{ord(end):04X}, which YAML",
        )
        for end in "\x85\u2028\u2029"
    ),
    ("endless", "left: &a [*a]", "f.yaml, line 1: has an alias that stands for what it is in"),
    ("a key that is a list", "[1, 2]: 3\n", "f.yaml"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in YAML_REFUSED], ids=[row[0] for row in YAML_REFUSED])
def test_yaml_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "f.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_yaml_does_not_make_numbers_of_addresses_and_versions() -> None:
    text = (
        "left: {port: 0000:01:00.0, version: 4, ipv4: 198.18.0.2/24, gateway_mac: 52:54:00:12:34:56}\nright: {port:"
        " 0000:01:00.1, version: 4, ipv4: 198.19.0.2/24, gateway_mac: 10:20:30:40:50:10, varying_address: {mode: fixed,"
        " min: 0x10, max: 0x20}}\ndut: {name: 7, version: 0.10, released: 2024-01-01}\n"
    )
    setup = parse_yaml(text, "test")
    assert (setup.left.port, setup.left.gateway_mac, setup.right.gateway_mac) == (
        "0000:01:00.0",
        "52:54:00:12:34:56",
        "10:20:30:40:50:10",
    )
    assert setup.right.varying_address is not None
    assert setup.right.varying_address.max == 0x20
    assert setup.dut.identity() == {"name": "7", "version": "0.10", "released": "2024-01-01"}


UNREADABLE = [("missing", None, "No such file"), ("no UTF-8", b"\xff\xfe\x00", "not UTF-8 text")]


@pytest.mark.parametrize(("content", "text"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_a_file_that_cannot_be_read(content: bytes | None, text: str, tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=text) as caught:
        load(path)
    assert caught.value.key == "config"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [f"{side}.{key}" for side in ("left", "right") for key in configuration.Side.model_fields]
    + ["left", "engine", "dut", "engine.cores", "engine.command", "media_mbps"]
)


@given(path=PATHS, value=VALUES.filter(lambda value: value is not None))
def test_any_value_anywhere_is_accepted_or_refused(path: str, value: Any) -> None:
    with contextlib.suppress(ConfigError):
        parse(changed(SIIT, (path, value)), "test")


@given(text=st.text(max_size=60))
def test_any_text_is_accepted_or_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_yaml(text, "test")
