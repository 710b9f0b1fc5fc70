# SPDX-License-Identifier: Apache-2.0
"""Described frames through the engine: sent to the byte as the package describes them, found and
checked behind any headers, counted by kind and flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw
from scapy.utils import RawPcapReader

import frame_bytes
from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.frames import Stack, Template, build
from dutperf.model import Delays, DescribedFrame, KindCounts, Stamping, Stream, Tagged
from dutperf.tester import TesterError
from frame_rows import ENDPOINTS, ROWS, Row

from .streams import trial

OpenCapture = Callable[..., tuple[EngineTester, dict[str, Path]]]
KINDS = 32
"""Kinds that a stream may have."""
RATE_FPS = 4000
IS_FRAGMENT = ("mf=1", "offset=", "more=1")
"""Fields that make a fragment, in which no tag is looked for."""


def frames_of(rows: list[Row]) -> tuple[DescribedFrame, ...]:
    return tuple(row.frame for row in rows)


def batches(rows: list[Row]) -> Iterator[list[Row]]:
    return (rows[start : start + KINDS] for start in range(0, len(rows), KINDS))


@pytest.fixture(scope="module")
def ring(command: EngineCommand) -> Iterator[EngineTester]:
    ports = {name: {"port": "ring"} for name in ("left", "right")}
    with EngineTester(command, {**ports, "memory": "no_huge_pages"}) as engine:
        yield engine


def kinds(engine: EngineTester, stream: Stream, **members: object) -> tuple[KindCounts, ...]:
    """What a trial counted of each kind, which must add up."""
    counts = engine.run(trial(stream, **members)).forward
    assert counts is not None
    assert counts.kinds is not None
    assert counts.corrupted == 0
    assert counts.sent == counts.intended == sum(kind.sent for kind in counts.kinds)
    assert counts.received == sum(kind.received for kind in counts.kinds)
    return counts.kinds


def test_every_stack_is_found_and_intact(ring: EngineTester) -> None:
    rows = [row for row in ROWS if not any(field in row.text for field in IS_FRAGMENT) and row.frame.checked]
    assert len(rows) > 300
    for some in batches(rows):
        counts = kinds(ring, Stream(rate_fps=RATE_FPS, frames=frames_of(some)))
        lost = [str(row) for row, kind in zip(some, counts, strict=True) if kind.received != kind.sent or not kind.sent]
        assert lost == []


@pytest.mark.parametrize(
    "text", ["ipv4/udp", "vlan/ipv4/udp", "ipv6/dest_options/udp", "ipv4/tcp", "ipv6/udp/gtpu/ipv4/udp"]
)
def test_bursts_arrive(ring: EngineTester, text: str) -> None:
    """At a rate at which frames are received in bursts, of one size and of three."""
    stack = Stack.parse(text)
    sizes = (stack.min_size, 300, 1500)
    for frames in (sizes[:1], sizes):
        stream = Stream(rate_fps=400_000, frames=tuple(build(stack, size, ENDPOINTS) for size in frames))
        counts = kinds(ring, stream, duration_ns=100_000_000)
        assert all(kind.received == kind.sent for kind in counts)


def test_frames_are_sent_to_the_byte(open_capture: OpenCapture) -> None:
    rows = [row for row in ROWS if not any(field in row.text for field in ("random", *IS_FRAGMENT))]
    engine, files = open_capture()
    several = list(batches(rows))
    for some in several:
        kinds_sent = engine.run(trial(Stream(rate_fps=RATE_FPS, frames=frames_of(some)), drain_ns=0)).forward
        assert kinds_sent is not None
        assert kinds_sent.sent == kinds_sent.intended
    engine.close()
    packets = iter([bytes(data) for data, _ in RawPcapReader(str(files["left"]))])
    for some in several:
        for number in range(RATE_FPS // 5):
            row, of_kind = some[number % len(some)], number // len(some)
            data = next(packets)
            assert data == frame_bytes.written(row.frame, of_kind, of_kind % 1000, sent=data), (str(row), of_kind)
    assert next(packets, None) is None


def described(text: str, size: int = 128, flows: int = 1) -> DescribedFrame:
    return build(Stack.parse(text), size, ENDPOINTS, flows=flows)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("ipv4(checksum=0x1234)/udp", 128),
        ("ipv4/udp(checksum=0xdead)", 128),
        ("ipv4(length=60)/udp", 128),
        ("ipv6(length=20)/udp", 128),
        ("ipv4/udp(length=9)", 128),
        ("ipv4/tcp(checksum=1)", 128),
    ],
)
def test_a_frame_that_is_wrong_on_purpose_counts_as_received(ring: EngineTester, text: str, size: int) -> None:
    wrong = described(text, size)
    assert not wrong.checked
    [counts] = kinds(ring, Stream(rate_fps=RATE_FPS, frames=(wrong,)))
    assert counts.received == counts.sent


@pytest.mark.parametrize(
    ("streams", "expected"), [((None, None, None), 10), (("a", "b", "b"), 20), (("a", "b", "a"), 20)]
)
def test_sizes_of_a_stream_have_the_same_flows(
    open_capture: OpenCapture, streams: tuple[str | None, ...], expected: int
) -> None:
    """Two streams have flows of their own: of 10 drawn from 64,512² ports no two are the same."""
    text = "ipv4/udp(source=random(1024,65535,by=flow),destination=random(1024,65535,by=flow))"
    frames = tuple(
        described(text, size, flows=10).model_copy(update={"stream": stream})
        for size, stream in zip((64, 594, 1518), streams, strict=True)
    )
    engine, files = open_capture()
    engine.run(trial(Stream(rate_fps=RATE_FPS, frames=frames, order=(0, 1, 0, 2, 0)), drain_ns=0))
    engine.close()
    packets = [Ether(data)[UDP] for data, _ in RawPcapReader(str(files["left"]))]
    assert len({len(packet) for packet in packets}) == 3
    assert len({(packet.sport, packet.dport) for packet in packets}) == expected


CAPTURED = (
    Ether() / IP(src="198.18.0.2", dst="198.19.0.2") / UDP() / Raw(b"payload" * 7),
    Ether() / IP(src="198.18.0.2", dst="198.19.0.2") / UDP(chksum=0x1234) / Raw(b"payload" * 7),
    Ether() / IPv6(src="2001:2::2", dst="2001:2:0:8000::2") / TCP(flags="S") / Raw(b"x" * 33),
    Ether() / IP(src="198.18.0.2", dst="198.19.0.2", proto=89) / Raw(b"o" * 61),
    Ether() / Dot1Q() / IP(dst="198.19.0.2") / UDP(dport=4789) / VXLAN() / Ether() / ARP() / Raw(b"z" * 40),
)


def test_frames_of_a_capture(open_capture: OpenCapture, ring: EngineTester) -> None:
    """Sent as they were captured but for the tag, and found whatever their headers are."""
    packets = [bytes(packet) for packet in CAPTURED]
    frames = tuple(build(Template.of(data, keeps_macs=True), len(data) + 4) for data in packets)
    stream = Stream(rate_fps=RATE_FPS, frames=frames)
    assert all(one.received == one.sent for one in kinds(ring, stream))
    engine, files = open_capture()
    engine.run(trial(stream, drain_ns=0))
    engine.close()
    for number, (data, _) in enumerate(RawPcapReader(str(files["left"]))):
        captured, frame = packets[number % len(packets)], frames[number % len(packets)]
        assert bytes(data) == frame_bytes.written(frame, sent=bytes(data))
        assert data[: frame.tag_at] == captured[: frame.tag_at]


def test_a_frame_in_which_no_tag_would_be_found(ring: EngineTester) -> None:
    """It is refused before anything is sent: else all its frames would count as lost."""
    fragment = described("ipv4(mf=1)/udp")
    with pytest.raises(TesterError, match="no receiver would find the tag"):
        ring.run(trial(Stream(rate_fps=RATE_FPS, frames=(fragment,))))


def test_kinds_in_an_order_and_at_random(ring: EngineTester) -> None:
    frames = (described("ipv4/udp", 64), described("vlan(id=5)/ipv4/udp", 594), described("ipv6/udp", 1518))
    in_order = kinds(ring, Stream(rate_fps=6000, frames=frames, order=(0, 1, 0, 2, 0, 0)))
    assert [one.sent for one in in_order] == [800, 200, 200]
    at_random = kinds(ring, Stream(rate_fps=60_000, frames=frames, shares=(7, 4, 1)))
    assert [one.sent / 12_000 for one in at_random] == pytest.approx([7 / 12, 4 / 12, 1 / 12], abs=0.03)
    assert all(one.received == one.sent for one in (*in_order, *at_random))


def test_native_ipv6_is_counted_as_the_background(ring: EngineTester) -> None:
    native = described("ipv6/udp").model_copy(update={"native": True})
    stream = Stream(rate_fps=RATE_FPS, frames=(described("ipv4/udp"), native), order=(0, 0, 1))
    counts = ring.run(trial(stream)).forward
    assert counts is not None
    assert counts.kinds is not None
    assert (counts.foreground_sent, counts.background_sent) == tuple(kind.sent for kind in counts.kinds)
    assert (counts.foreground_received, counts.background_received) == tuple(kind.received for kind in counts.kinds)
    assert counts.background_received > 0


def test_each_flow_is_counted(ring: EngineTester) -> None:
    several = described("ipv4(destination=increment(198.19.0.2,count=7,by=flow))/udp", flows=7)
    single = described("ipv6/udp")
    stream = Stream(rate_fps=5000, frames=(several, single))
    by_flow, alone = kinds(ring, stream, by_flow=True, stamping=Stamping.EVERY)
    assert by_flow.flows is not None
    assert by_flow.flows.sent == by_flow.flows.received == (72, 72, 72, 71, 71, 71, 71)
    assert by_flow.flows.delay_us is not None
    assert by_flow.delay_us is not None
    smallest, mean, largest = by_flow.delay_us
    assert smallest == min(one[0] for one in by_flow.flows.delay_us if one is not None)
    assert largest == max(one[2] for one in by_flow.flows.delay_us if one is not None)
    assert smallest <= mean <= largest
    assert alone.flows is not None
    assert alone.flows.sent == (500,)


VOICE_AND_WEB = (described("ipv4/udp", 64), described("ipv6/udp", 128), described("ipv4/udp", 594))


def of_streams(engine: EngineTester, numbers: tuple[int, ...], **members: object) -> list[Delays | None]:
    """The delays of each stream; ``numbers``: the streams of the three kinds, which come in turn."""
    names = tuple(
        frame.model_copy(update={"stream": f"stream {number}"})
        for frame, number in zip(VOICE_AND_WEB, numbers, strict=True)
    )
    result = engine.run(trial(Stream(rate_fps=30_000, frames=names), **members))
    assert result.forward is not None
    assert [kind.stream for kind in result.forward.kinds or ()] == [frame.stream for frame in names]
    delays = list(result.forward.stream_delay_us or ())
    by_stream = [one.delay_us for one in result.forward.by_stream().values()]
    assert by_stream == (delays or [None] * len(by_stream))
    whole = result.forward.delay_us
    if whole is not None and delays and None not in delays:
        told = [one for one in delays if one is not None]
        assert whole.min == min(one.min for one in told)
        assert whole.max == max(one.max for one in told)
        assert min(one.p50 for one in told) <= whole.p50 <= max(one.p50 for one in told)
    return delays


def test_delays_of_each_stream(ring: EngineTester) -> None:
    assert len(of_streams(ring, (0, 1, 1), stamping=Stamping.EVERY)) == 2
    tagged = of_streams(ring, (0, 1, 2), stamping=Stamping.TAGGED, tagged=Tagged(count=600, after_ns=0))
    assert len(tagged) == 3
    assert None not in tagged
    [one] = [one for one in of_streams(ring, (1, 0, 0), stamping="tagged", tagged=Tagged(count=1, after_ns=0)) if one]
    assert one.min == one.max
    assert of_streams(ring, (0, 1, 1)) == []
    assert of_streams(ring, (0, 0, 0), stamping=Stamping.EVERY) == []


def test_several_queues_tell_the_same_streams(command: EngineCommand) -> None:
    ports = {name: {"port": "ring"} for name in ("left", "right")}
    with EngineTester(command, {**ports, "memory": "no_huge_pages", "queues": 2}) as engine:
        assert len(of_streams(engine, (0, 1, 1), stamping=Stamping.EVERY)) == 2


def test_a_lost_frame_counts_in_its_stream(command: EngineCommand) -> None:
    """Nothing arrives: every stamped frame has the delay of a lost one."""
    ports = {"left": {"port": "null"}, "right": {"port": "null"}}
    lost = {"lost_delay_ns": 5_000_000}
    with EngineTester(command, {**ports, "memory": "no_huge_pages"}) as engine:
        assert of_streams(engine, (0, 1, 1), stamping=Stamping.EVERY) == [None, None]
        for one in of_streams(engine, (0, 1, 1), stamping=Stamping.EVERY, **lost):
            assert one is not None
            assert one.min == one.p50 == one.max
            assert one.max == pytest.approx(5000, rel=0.001)
        first = of_streams(engine, (0, 1, 1), stamping=Stamping.TAGGED, tagged=Tagged(count=1, after_ns=0), **lost)
        assert [one is None for one in first] == [False, True]  # the first frame is the tagged one
