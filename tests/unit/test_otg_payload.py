# SPDX-License-Identifier: Apache-2.0
"""Payloads of the Open Traffic Generator API: the bytes behind the headers, and how much flows may say in all."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

import frame_bytes
from dutperf.model.described_frame import TAG_SIZE
from dutperf.otg import flows
from dutperf.otg.model import Rejected
from otg_messages import UDP as UDP_PACKET
from otg_messages import flow, planned

HEADERS = 42


def sent(payload: dict[str, Any], size: int) -> bytes:
    """The bytes behind the headers, of which the tag takes the first."""
    [made] = planned(flow(payload=payload, size={"fixed": size}))
    data = frame_bytes.written(made.stream.frames[0])
    packet = Ether(data)
    del packet[IP].chksum, packet[UDP].chksum
    assert bytes(packet) == data, "checksums cover the payload"
    assert len(data) == size - 4
    return data[HEADERS:]


def words(first: int, step: int, size: int) -> bytes:
    return b"".join(((first + step * number) & 0xFFFF).to_bytes(2, "big") for number in range(size // 2 + 1))[:size]


@pytest.mark.parametrize("size", [64, 65, 1518, 9001])
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, lambda size: bytes(size)),
        ({"fixed": {}}, lambda size: bytes(size)),
        ({"fixed": {"pattern": "0xABCDEF"}}, lambda size: (b"\xab\xcd\xef" * size)[:size]),
        ({"fixed": {"pattern": 20 * "ab", "repeat": False}}, lambda size: 20 * b"\xab" + bytes(max(0, size - 20))),
        ({"choice": "increment_byte"}, lambda size: bytes(number & 0xFF for number in range(size))),
        ({"choice": "decrement_byte"}, lambda size: bytes(-1 - number & 0xFF for number in range(size))),
        ({"choice": "increment_word"}, lambda size: words(0, 1, size)),
        ({"choice": "decrement_word"}, lambda size: words(0xFFFF, -1, size)),
    ],
)
def test_payloads_are_those_of_the_model(payload: dict[str, Any], expected: Any, size: int) -> None:
    found = sent(payload, size)
    assert found[:TAG_SIZE] == frame_bytes.TAG
    assert found[TAG_SIZE:] == expected(len(found))[TAG_SIZE : len(found)]


def test_every_size_of_a_flow_has_the_payload() -> None:
    size = {"increment": {"start": 100, "end": 103}}
    [made] = planned(flow(payload={"choice": "decrement_byte"}, size=size))
    assert [frame_bytes.written(one)[-1] for one in made.stream.frames] == [-(one - 46) & 0xFF for one in made.sizes]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"fixed": {"pattern": ""}}, "flows[0].payload.fixed.pattern: there are no bytes"),
        ({"fixed": {"pattern": "abc"}}, "flows[0].payload.fixed.pattern: 'abc' are no bytes in hexadecimal digits"),
        (
            {"fixed": {"pattern": "50d754"}},
            "flows[0].payload.fixed.pattern: d75450 is not possible: the tester tells its frames by it",
        ),
    ],
)
def test_a_pattern_that_is_none_is_told(payload: dict[str, Any], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        planned(flow(payload=payload))
    assert str(caught.value) == said


def test_what_flows_say_in_all_has_to_fit_into_a_request_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MOST_DESCRIBED", 1_000_000)
    each = [flow(name=f"f{number}", payload={}, size={"fixed": 9000}) for number in range(60)]
    assert len(planned(*each[:50])) == 50
    with pytest.raises(Rejected, match=r"^flows: 1,\d\d\d,\d\d\d bytes describe their frames; 1,000,000 are possible"):
        planned(*each)
    many = {"udp": {"src_port": {"random": {"min": 1024, "max": 65535, "count": 65536}}}}
    values = [flow(name=f"f{number}", packet=[*UDP_PACKET[:2], many]) for number in range(3)]
    with pytest.raises(Rejected, match="give fewer values"):
        planned(*values)
