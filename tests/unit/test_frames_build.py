# SPDX-License-Identifier: Apache-2.0
"""Frames built from header stacks: their JSON, marks, addresses, sizes, and fields that vary."""

from __future__ import annotations

import json
from ipaddress import IPv6Address, ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import frame_bytes
from dutperf.frames import Endpoints, FrameError, Stack, Varying, build
from dutperf.model import LEFT_AND_RIGHT, Checksum, DescribedField, DescribedFrame, to_json
from frame_rows import ENDPOINTS, ROUTED
from frame_stacks import stacks


def made(text: str, size: int = 160, **members: Any) -> DescribedFrame:
    return build(Stack.parse(text), size, ENDPOINTS, **members)


def bits_of(data: bytes, bit: int, bits: int) -> int:
    return int.from_bytes(data, "big") >> (8 * len(data) - bit - bits) & ((1 << bits) - 1)


def test_the_json_is_that_of_the_protocol() -> None:
    frame = made("ipv4(destination=increment(198.19.0.2,count=1000,by=flow))/udp", 128, flows=1000)
    assert json.loads(json.dumps(to_json(frame))) == {
        "size": 128,
        "bytes": "000000000000000000000000" + "08004500006e000040000a110000c6120002c6130002" + "c0200007005a0000",
        "tag_at": 42,
        "source_mac": "port",
        "destination_mac": "next_hop4",
        "checksums": [
            {"at": 40, "covers": [[26, 34], [34, 124]], "plus": 107, "zero_as_ones": True},
            {"at": 24, "covers": [[14, 34]], "plus": 0, "zero_as_ones": False},
        ],
        "fields": [
            {
                "bit": 240,
                "bits": 32,
                "by": "flow",
                "mode": "increasing",
                "first": "3323133954",
                "step": "1",
                "count": "1000",
            }
        ],
        "flows": 1000,
        "flow_order": "in_turn",
        "checked": True,
    }
    assert DescribedFrame.model_validate(to_json(frame)) == frame


@pytest.mark.parametrize(
    ("text", "min_size"),
    [
        ("eth", 64),
        ("ipv4/udp", 64),
        ("ipv6/udp", 84),
        ("ipv4/icmp", 64),
        ("vlan/ipv4/udp", 68),
        ("vlan/vlan/vlan/ipv6/udp", 96),
        ("mpls/ipv4/tcp", 80),
        ("ipv4(options=rr(2))/udp", 76),
        ("ipv6/dest_options(size=24)/udp", 108),
        ("ipv6/routing(segments=[2001:2::5,2001:2::6])/udp", 124),
        ("ipv4/udp/vxlan/eth/ipv4/udp", 114),
        ("ipv4/udp/gtpu(sequence=1)/ipv4/udp", 104),
        ("ipv4/gre(checksum=yes,key=1,sequence=2)/ipv4/udp", 100),
    ],
)
def test_smallest_size(text: str, min_size: int) -> None:
    stack = Stack.parse(text)
    assert stack.min_size == min_size
    assert made(text, min_size).tag_at + 18 <= min_size - 4
    with pytest.raises(FrameError, match=f"size {min_size - 1} is not possible: .* needs at least {min_size} bytes"):
        build(stack, min_size - 1, ENDPOINTS)
    with pytest.raises(FrameError, match="size 9217 is not possible: frames have at most 9216 bytes"):
        build(stack, 9217, ENDPOINTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/".join(["ipv4"] * 17), "17 checksums are too many: a frame can have 16"),
        (
            "/".join(["ipv4(ttl=random(1,9),dscp=random(1,9))"] * 16 + ["ipv6(hop_limit=random(1,9))"] * 33),
            "65 fields that vary are too many: a frame can have 64",
        ),
    ],
)
def test_more_than_the_engine_takes_is_refused(text: str, message: str) -> None:
    with pytest.raises(FrameError, match=message):
        made(text, 2000)


@pytest.mark.parametrize(
    ("text", "version", "destination", "source"),
    [
        ("ipv4/ipv6/udp", 4, "next_hop4", "port"),
        ("ipv6/ipv4/udp", 6, "next_hop6", "port"),
        ("vlan/mpls/ipv6/udp", 6, "next_hop6", "port"),
        ("eth", None, "next_hop4", "port"),
        ("eth(destination=02:00:00:00:00:09)", None, "given", "port"),
        ("eth(source=02:00:00:00:00:09)/ipv6", 6, "next_hop6", "given"),
        ("eth(source=increment(02:00:00:00:00:09,count=4))/ipv6", 6, "next_hop6", "given"),
        ("ipv4/gre/eth(destination=02:00:00:00:00:09)", 4, "next_hop4", "port"),
    ],
)
def test_who_writes_the_mac_addresses(text: str, version: int | None, destination: str, source: str) -> None:
    assert Stack.parse(text).ip_version == version
    frame = made(text)
    assert (frame.destination_mac, frame.source_mac) == (destination, source)


def test_a_missing_address_is_an_error_unless_both_are_given() -> None:
    only4 = Endpoints(ipv4=ENDPOINTS.ipv4)
    with pytest.raises(FrameError, match=r"^ipv6 needs source and destination: the test setup has no IPv6 addresses$"):
        build(Stack.parse("ipv6/udp"), 128, only4)
    with pytest.raises(FrameError, match=r"^ipv6 needs source: "):
        build(Stack.parse("ipv6(destination=2001:2::9)/udp"), 128, only4)
    assert build(Stack.parse("ipv6(source=2001:2::8,destination=2001:2::9)/udp"), 128)
    assert build(Stack.parse("ipv4/ipv6/udp"), 128, only4)
    assert build(Stack.parse("eth"), 64)


def test_addresses_inside_tunnels_follow_the_direction() -> None:
    inner4, inner6 = (
        [made(f"ipv4/{name}/udp", direction=direction) for direction in LEFT_AND_RIGHT] for name in ("ipv4", "ipv6")
    )
    assert [frame.bytes[92:108] for frame in inner4] == ["c6120002c6130002", "c6130002c6120002"]
    first, second = (IPv6Address(address).packed.hex() for address in ("2001:2::2", "2001:2:0:1::2"))
    assert [frame.bytes[84:148] for frame in inner6] == [first + second, second + first]
    macs = [made("ipv4/gre/eth", direction=direction).bytes[76:100] for direction in LEFT_AND_RIGHT]
    assert macs == ["020000000002020000000001", "020000000001020000000002"]
    outer = [made("ipv4/udp", direction=direction).bytes for direction in LEFT_AND_RIGHT]
    assert outer[0] == outer[1]


@pytest.mark.parametrize(
    ("text", "checked"),
    [
        ("ipv4/udp", True),
        ("ipv4/udp(checksum=yes)", True),
        ("ipv4/udp(checksum=0)", True),
        ("ipv4/udp(checksum=0xdead)", False),
        ("ipv4/udp(checksum=random(1,65535))", False),
        ("ipv6/udp(checksum=0)", False),
        ("ipv6/udp(checksum=0)/vxlan/eth/ipv4/udp", True),
        ("ipv4/ipv6/udp(checksum=0)", False),
        ("ipv4/tcp(checksum=0)", False),
        ("ipv4(checksum=0)/udp", False),
        ("ipv4/icmp(checksum=0)", False),
        ("ipv4/gre(checksum=0)/ipv4/udp", False),
        ("ipv4/gre(checksum=yes)/ipv4/udp", True),
        ("ipv4(length=142)/udp", True),
        ("ipv4(length=141)/udp", False),
        ("ipv4(ihl=5)/udp", True),
        ("ipv4(ihl=6)/udp", False),
        ("ipv6(length=102)/udp", True),
        ("ipv6(length=0)/udp", False),
        ("ipv4/udp(length=122)", True),
        ("ipv4/udp(length=8)", False),
        ("ipv4/tcp(data_offset=6)", False),
        ("ipv6/dest_options(length=0)/udp", True),
        ("ipv6/dest_options(length=1)/udp", False),
        (f"{ROUTED[:-1]},last_entry=2)/udp", True),
        (f"{ROUTED[:-1]},last_entry=1)/udp", False),
        ("ipv4/udp/gtpu(length=106)/ipv4/udp", True),
        ("ipv4/udp/gtpu(length=105)/ipv4/udp", False),
        ("ipv4(protocol=99)/udp", True),
        ("eth(type=0x1234)/ipv4/udp", True),
        ("mpls(s=1)/mpls/ipv4/udp", True),
    ],
)
def test_what_the_receiver_checks(text: str, checked: bool) -> None:
    assert made(text).checked is checked


@pytest.mark.parametrize(
    ("text", "ats"),
    [
        ("ipv4(checksum=0xdead)/udp", [40]),
        ("ipv4/udp(checksum=0xdead)", [24]),
        ("ipv4/udp(checksum=0)", [24]),
        ("ipv4/udp/vxlan/eth/ipv4/udp", [90, 74, 24]),
        ("ipv4/udp(checksum=yes)/vxlan/eth/ipv4/udp", [90, 74, 40, 24]),
        ("ipv6/udp/vxlan/eth/ipv4/udp", [110, 94, 60]),
        ("ipv4/gre(checksum=yes)/ipv4/tcp", [78, 52, 38, 24]),
        ("ipv6/icmp", [56]),
        ("eth", []),
    ],
)
def test_the_engine_computes_inner_checksums_first(text: str, ats: list[int]) -> None:
    frame = made(text)
    assert [checksum.at for checksum in frame.checksums] == ats
    for checksum in frame.checksums:
        assert frame.bytes[2 * checksum.at : 2 * checksum.at + 4] == "0000"


def test_a_given_checksum_is_in_the_bytes() -> None:
    assert made("ipv4/udp(checksum=0xdead)").bytes.endswith("dead")


@pytest.mark.parametrize(
    ("text", "covers"),
    [
        ("ipv4/udp", ((26, 34), (34, 156))),
        ("ipv6/udp", ((22, 54), (54, 156))),
        ("vlan/ipv6/hop_by_hop/tcp", ((26, 58), (66, 156))),
        (f"{ROUTED}/udp", ((22, 38), (62, 78), (110, 156))),
        (f"{ROUTED[:-1]},segments_left=0)/udp", ((22, 54), (110, 156))),
        (f"{ROUTED[:-1]},segments_left=1)/icmp", ((22, 38), (62, 78), (110, 156))),
        (f"{ROUTED}/ipv4/udp", ((122, 130), (130, 156))),
        ("ipv6(destination=2001:2::5)/routing(segments=[2001:2::5])/udp", ((22, 54), (78, 156))),
        ("ipv6/routing(type=3,segments_left=1,data=0x00000000)/udp", ((22, 54), (62, 156))),
        ("ipv4(options=[nop,lsrr(198.18.1.1,198.18.2.1),nop])/udp", ((26, 30), (42, 46), (50, 156))),
        ("ipv4/icmp", ((34, 156),)),
    ],
)
def test_the_last_address_of_the_path_is_covered(text: str, covers: tuple[tuple[int, int], ...]) -> None:
    assert made(text).checksums[0].covers == covers


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ipv6/routing(segments=[2001:2::5])", 1),
        (ROUTED, 3),
        ("ipv6(destination=2001:2::5)/routing(segments=[2001:2::5,2001:2::6])", 1),
        ("ipv6(destination=2001:2::5)/routing(segments=[2001:2::5])", 0),
        ("ipv6(destination=increment(2001:2::5))/routing(segments=[2001:2::5])", 1),
        ("ipv6/routing(segments=[2001:2::5],segments_left=200)", 200),
        ("ipv6/routing(type=2,data=0x00000000)", 0),
    ],
)
def test_segments_left(text: str, left: int) -> None:
    assert bytes.fromhex(made(text).bytes)[57] == left


def numbers(*written: str) -> list[int]:
    return [int(ip_address(one)) for one in written]


FIELDS = (
    ("vlan(id=increment(10,20,step=5))/ipv4/udp", 116, 12, "increasing", [10, 15, 20, 10]),
    ("vlan(id=decrement(2))/ipv4/udp", 116, 12, "decreasing", [2, 1, 0, 2]),
    ("vlan(id=list(7,9,by=flow))/ipv4/udp", 116, 12, "list", [7, 9, 7, 9]),
    ("ipv4(mf=list(0,1))", 162, 1, "list", [0, 1, 0, 1]),
    ("ipv4/tcp(flags=list(S,FA))", 375, 9, "list", [2, 17, 2, 17]),
    (
        "eth(source=increment(02:00:00:00:00:ff,count=2))",
        48,
        48,
        "increasing",
        [0x0200000000FF, 0x020000000100, 0x0200000000FF, 0x020000000100],
    ),
    (
        "ipv6(destination=increment(2001:2::,count=3,step=0x10000000000000000,by=flow))/udp",
        304,
        128,
        "increasing",
        numbers("2001:2::", "2001:2:0:1::", "2001:2:0:2::", "2001:2::"),
    ),
    (
        "ipv4/ipv4(source=list(198.18.0.9,198.18.0.7))/udp",
        368,
        32,
        "list",
        numbers("198.18.0.9", "198.18.0.7", "198.18.0.9", "198.18.0.7"),
    ),
    (
        "ipv6/routing(segments=[2001:2::5,decrement(2001:2::7,count=2)])/udp",
        496,
        128,
        "decreasing",
        numbers("2001:2::7", "2001:2::6", "2001:2::7", "2001:2::6"),
    ),
)


@pytest.mark.parametrize(("text", "bit", "bits", "mode", "values"), FIELDS)
def test_fields_that_vary(text: str, bit: int, bits: int, mode: str, values: list[int]) -> None:
    frame = made(text, flows=4, flow_order="random")
    by = "flow" if "by=flow" in text else "frame"
    (field,) = frame.fields
    assert (field.bit, field.bits, field.by, field.mode) == (bit, bits, by, mode)
    assert (frame.flows, frame.flow_order) == (4, "random")
    assert Stack.parse(text).varies_by_flow is (by == "flow")
    assert bits_of(bytes.fromhex(frame.bytes), bit, bits) == values[0]
    found = [frame_bytes.written(frame, number, flow=number) for number in range(4)]
    assert [bits_of(data, bit, bits) for data in found] == values


def test_a_random_field() -> None:
    (field,) = made("ipv4(dscp=random(1,63))/udp").fields
    assert to_json(field) == {"bit": 120, "bits": 6, "by": "frame", "mode": "random", "first": "1", "count": "63"}
    (field,) = made("ipv6(source=random(::,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff))").fields
    assert field.count == str(2**128 - 1), "the engine has no number for 2^128"


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        ("", "30ff006200000001"),
        ("sequence=0x1234", "32ff00620000000112340000"),
        ("n_pdu=5", "31ff00620000000100000500"),
        ("sequence=1,n_pdu=5", "33ff00620000000100010500"),
    ],
)
def test_optional_fields_of_gtpu(fields: str, header: str) -> None:
    assert made(f"ipv4/udp/gtpu({fields})/ipv4/udp", 152).bytes[84 : 84 + len(header)] == header


@given(stacks(), st.integers(0, 300), st.integers(0, 1 << 40))
def test_every_stack_is_a_frame(stack: Stack, excess: int, number: int) -> None:
    frame = build(stack, stack.min_size + excess, ENDPOINTS, flows=7)
    data = frame_bytes.written(frame, number, number % 7)
    assert frame.tag_at == stack.header_size == len(frame.bytes) // 2
    assert data[frame.tag_at : frame.tag_at + 18] == frame_bytes.TAG
    assert data[frame.tag_at + 18 :] == bytes(index & 0xFF for index in range(18, len(data) - frame.tag_at))
    varying = [(field.bit, field.bits) for field in frame.fields]
    for header in stack.headers:
        for cell in header.cells():
            if isinstance(cell.value, Varying):
                assert cell.bits in {bits for _, bits in varying}
    for bit, bits in varying:
        field = next(one for one in frame.fields if one.bit == bit)
        assert bits_of(data, bit, bits) == frame_bytes.value(field, number % 7 if field.by == "flow" else number)


def test_no_flows_are_an_error() -> None:
    with pytest.raises(FrameError, match="0 flows are not possible"):
        made("ipv4/udp", flows=0)


GOOD: dict[str, Any] = {"size": 64, "bytes": "00" * 42, "tag_at": 42, "destination_mac": "given"}


@pytest.mark.parametrize(
    "members",
    [
        {"size": 63},
        {"bytes": "0"},
        {"bytes": "00" * 61},
        {"tag_at": 43},
        {"source_mac": "next_hop4"},
        {"flows": 0},
        {"checksums": [{"at": 59, "covers": [[0, 2]]}]},
        {"checksums": [{"at": 58, "covers": [[0, 61]]}]},
        {"checksums": [{"at": 58, "covers": [[2, 2]]}]},
        {"fields": [{"bit": 473, "bits": 8, "mode": "list", "values": ["1"]}]},
        {"unknown": 1},
    ],
)
def test_a_described_frame_is_within_its_size(members: dict[str, Any]) -> None:
    assert DescribedFrame.model_validate(GOOD)
    with pytest.raises(ValidationError):
        DescribedFrame.model_validate(GOOD | members)


@pytest.mark.parametrize(
    "members",
    [
        {"mode": "list"},
        {"mode": "list", "values": ()},
        {"mode": "list", "values": ("256",)},
        {"mode": "list", "values": ("-1",)},
        {"mode": "list", "values": ("1",), "first": "1"},
        {"mode": "random", "first": "1"},
        {"mode": "random", "first": "1", "count": "0"},
        {"mode": "increasing", "first": "1", "count": "2"},
        {"mode": "increasing", "first": "256", "step": "1", "count": "2"},
        {"mode": "fixed", "first": "1"},
    ],
)
def test_a_field_has_the_members_of_its_mode(members: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DescribedField.model_validate({"bit": 0, "bits": 8} | members)


def test_a_checksum_covers_something() -> None:
    with pytest.raises(ValidationError):
        Checksum(at=0, covers=())
