# SPDX-License-Identifier: Apache-2.0
"""Replays by the real engine: the frames that leave, when they leave, and how they are counted on ports
joined in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw
from scapy.utils import PcapReader, RawPcapReader

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.model import Capture, RecordedFrame, Recording, Trial, TrialResult, Verdict
from dutperf.tester import TesterError
from dutperf.traffic.replayed import Replaying, recording_of, trial_of
from recordings import MACS, capture, udp
from undisturbed import until

from .conftest import OpenEngine

OpenCapture = Callable[..., tuple[EngineTester, dict[str, Path]]]
RING = {"left": {"port": "ring"}, "right": {"port": "ring"}, "memory": "no_huge_pages"}


def packets(count: int = 200) -> list[Packet]:
    """Of many kinds and lengths."""
    random = Random(4)
    kinds = [
        lambda size: udp(size),
        lambda size: udp(size, IPv6(src="2001:2::2", dst="2001:2:0:1::2")),
        lambda size: Ether(**MACS) / IP(src="198.18.0.2", dst="198.19.0.2") / TCP(flags="PA") / Raw(bytes(size)),
        lambda _size: Ether(**MACS) / IP(src="198.18.0.2", dst="198.19.0.2") / TCP(flags="S"),
    ]
    return [random.choice(kinds)(random.choice((20, 400, 1400, random.randrange(20, 1400)))) for _ in range(count)]


def planned(tmp_path: Path, what: list[Packet], conditions: Replaying, times_ns: list[int] | None = None) -> Trial:
    path = capture(tmp_path / "replayed.pcap", what, times_ns)
    return trial_of(recording_of(path, conditions), conditions, 1)


def quick(**conditions: Any) -> Replaying:
    return Replaying(**({"drain_s": 0.02} | conditions))


@pytest.mark.parametrize("keeps", [False, True])
def test_every_byte_is_sent_but_for_addresses(open_capture: OpenCapture, tmp_path: Path, keeps: bool) -> None:
    broadcast = Ether(dst="ff:ff:ff:ff:ff:ff", src=MACS["src"]) / ARP()
    what = [*packets(), broadcast]
    trial = planned(tmp_path, what, quick(rate=2000, loop=2, macs="keep" if keeps else "rewrite"))
    engine, files = open_capture()
    result = engine.run(trial)
    engine.close()
    assert result.forward is not None
    assert result.forward.sent == 2 * len(what)
    with RawPcapReader(str(files["left"])) as reader:
        sent = [data for data, _ in islice(reader, result.forward.sent)]
    macs = bytes.fromhex("020000000002020000000001")
    for packet, data in zip(what * 2, sent, strict=True):
        expected = bytes(packet).ljust(60, b"\0")
        if not keeps:
            group = bool(expected[0] & 1)
            expected = (expected[:6] if group else macs[:6]) + macs[6:] + expected[12:]
        assert data == expected


def test_a_tag_leaves_every_checksum_right(open_capture: OpenCapture, tmp_path: Path) -> None:
    what = packets()
    engine, files = open_capture()
    result = engine.run(planned(tmp_path, what, quick(rate=2000, tag=True)))
    engine.close()
    assert result.forward is not None
    with PcapReader(str(files["left"])) as reader:
        sent = list(islice(reader, result.forward.sent))
    numbers = []
    for packet in sent:
        again = packet.copy()
        for layer in (IP, UDP, TCP):
            if layer in again:
                del again[layer].chksum
        assert bytes(again) == bytes(packet)
        at = bytes(packet).find(bytes.fromhex("d75450"))
        numbers += [] if at < 0 else [int.from_bytes(bytes(packet)[at + 8 : at + 13], "big")]
    assert 0 < len(numbers) < len(what)
    assert numbers == list(range(len(numbers)))


@pytest.mark.alone
@pytest.mark.parametrize("speed", [1, 4])
def test_frames_leave_at_the_times_of_the_capture(open_capture: OpenCapture, tmp_path: Path, speed: int) -> None:
    """By the clock of the driver that writes them to a file."""
    times_ns = [0, 0, 30_000_000, 31_000_000, 150_000_000, 150_000_001, 400_000_000]
    what = packets(len(times_ns))

    def differences_ms() -> float:
        engine, files = open_capture()
        engine.run(planned(tmp_path, what, quick(speed=str(speed)), times_ns))
        engine.close()
        with PcapReader(str(files["left"])) as reader:
            came_s = [float(packet.time) for packet in islice(reader, len(what))]
        return max(
            abs((at_s - came_s[0]) * 1e3 - at_ns / speed / 1e6) for at_s, at_ns in zip(came_s, times_ns, strict=True)
        )

    until(differences_ms, lambda worst_ms: worst_ms < 1.0)


KINDS: dict[str, dict[str, Any]] = {
    "own times": {},
    "a rate": {"rate": 50_000},
    "again and again": {"loop": 7},
    "for a time": {"loop": 0, "duration_s": 0.1},
    "backwards": {"directions": "reverse"},
}


@pytest.mark.parametrize(
    ("plan", "tags"),
    [
        pytest.param(plan, tags, id=f"{kind}-{tags}", marks=[pytest.mark.long] * (tags is (kind == "own times")))
        for kind, plan in KINDS.items()
        for tags in (False, True)
    ],
)
def test_every_frame_arrives(command: EngineCommand, tmp_path: Path, plan: dict[str, Any], tags: bool) -> None:
    random = Random(1)
    times_ns = sorted(random.randrange(50_000_000) for _ in range(200))
    trial = planned(tmp_path, packets(), quick(**plan, tag=tags), times_ns)
    with EngineTester(command, RING) as engine:
        result = engine.run(trial)
    [(direction, one)] = result.directions().items()
    assert one.intended == trial.intended(direction)
    assert (one.sent, one.received, one.out_of_order) == (one.intended, one.intended, 0)
    assert one.matched is not None
    assert (one.matched.extra, one.matched.reordered, one.matched.lost) == (0, 0, 0)
    assert (one.matched.sent < one.sent) == tags
    assert result.verdict is Verdict.VALID or {cause.code for cause in result.causes} <= {"sender_late", "sending_time"}


V4, V6 = IP(src="198.18.0.2", dst="198.19.0.2"), IPv6(src="2001:2::2", dst="2001:2:0:1::2")
LOAD = Raw(bytes(200))
ODD: list[Packet] = [
    Ether(**MACS) / V6 / IPv6ExtHdrFragment(m=1) / UDP() / LOAD,
    Ether(**MACS) / V6 / IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment(offset=5) / LOAD,
    Ether(**MACS) / V4 / IP(src="198.18.0.3", dst="198.19.0.3", flags="MF") / UDP() / LOAD,
    Ether(**MACS) / V4 / GRE() / V6 / IPv6ExtHdrFragment(m=1) / UDP() / LOAD,
    Ether(**MACS) / V4 / UDP(dport=4789) / VXLAN() / Ether(**MACS) / V4 / ICMP(type=3) / V4 / UDP() / LOAD,
    Ether(**MACS) / V4 / UDP(dport=2152) / GTP_U_Header() / IP(src="198.18.0.3", dst="198.19.0.3", frag=7) / LOAD,
    Ether(**MACS) / V4 / UDP(dport=2152) / GTP_U_Header() / V6 / UDP() / LOAD,
    Ether(**MACS) / MPLS(s=1) / V4 / ICMP() / LOAD,
    Ether(**MACS) / MPLS(s=1) / V4 / ICMP(type=11) / LOAD,
    Ether(**MACS) / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / V4 / UDP() / LOAD,
    Ether(**MACS) / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / V4 / TCP() / Raw(b"abc"),
    Ether(**MACS) / V4 / UDP(chksum=0x1234) / LOAD,
    Ether(**MACS) / V6 / UDP(chksum=0) / LOAD,
    Ether(**MACS) / V6 / TCP(chksum=0x1234) / LOAD,
    Ether(**MACS) / V4 / UDP(len=100) / LOAD,
    Ether(**MACS) / IP(src="198.18.0.2", dst="198.19.0.2", chksum=1) / UDP() / LOAD,
]
"""Fragments and ICMP errors at any depth have no tag; of wrong lengths and checksums none is the DUT's doing."""


def mutated(count: int) -> list[Packet]:
    """Frames with wrong bytes in their headers."""
    random, sound = Random(6), [bytes(one) for one in ODD + packets(20)]
    frames = []
    for _ in range(count):
        data = bytearray(random.choice(sound))
        for _ in range(random.randrange(4)):
            data[random.randrange(12, min(len(data), 90))] = random.choice((0, 1, 4, 6, 17, 41, 44, 47, 58, 0x45, 255))
        frames.append(Raw(bytes(data)))
    return frames


@pytest.mark.parametrize("what", [ODD, mutated(600)], ids=["odd", "mutated"])
def test_a_frame_gets_a_tag_where_the_receiver_finds_it(
    command: EngineCommand, tmp_path: Path, what: list[Packet]
) -> None:
    trial = planned(tmp_path, what, quick(rate=20_000, tag=True))
    with EngineTester(command, RING) as engine:
        result = engine.run(trial)
    assert result.forward is not None
    assert (result.forward.received, result.forward.corrupted) == (len(what), 0)


def test_lost_frames_of_a_list_are_captured_by_their_tags(open_engine: OpenEngine, tmp_path: Path) -> None:
    """Those without a tag have no number; which of them were lost is not known."""
    wanted = Capture(path=str(tmp_path / "lost.pcapng"), lost=10)
    engine = open_engine("null", "null")
    result = engine.run(
        planned(tmp_path, packets(), quick(rate=20_000, tag=True)).model_copy(update={"capture": wanted})
    )
    counts, captured = result.forward, result.capture
    assert counts is not None
    assert counts.matched is not None
    assert captured is not None
    tagged = counts.sent - counts.matched.sent
    assert 10 < tagged < counts.sent
    assert (captured.written.lost, captured.left_out.lost) == (10, tagged - 10)


def test_a_second_list_replaces_the_first(command: EngineCommand, tmp_path: Path) -> None:
    """And the first one again; other trials between them have buffers of their own."""
    with EngineTester(command, RING) as engine:
        for count in (7, 300, 300, 7):
            result = engine.run(planned(tmp_path, packets(count), quick(rate=10_000)))
            assert result.forward is not None
            assert result.forward.received == result.forward.sent == count


def test_frames_after_a_replay_are_those_of_their_trial(open_capture: OpenCapture, tmp_path: Path) -> None:
    """A buffer that a replay used holds no other trial's frame."""
    from .streams import stream, trial

    engine, files = open_capture()
    plain = trial(stream(4, 128, 20_000))
    results = [engine.run(one) for one in (plain, planned(tmp_path, packets(), quick(rate=20_000, loop=60)), plain)]
    engine.close()
    sent = [one.forward.sent for one in results if one.forward is not None]
    with RawPcapReader(str(files["left"])) as reader:
        each = [[data for data, _ in islice(reader, count)] for count in sent]
    assert each[0] == each[2]


def test_a_capture_of_test_frames_is_counted_by_order(command: EngineCommand, tmp_path: Path) -> None:
    """Whatever is in the frames: tags of an earlier trial are payload."""
    tag = bytes.fromhex("d754504600010001") + bytes(10)
    what = [udp(0) / Raw(tag + bytes(size)) for size in (0, 30, 60)]
    with EngineTester(command, RING) as engine:
        result = engine.run(planned(tmp_path, what, quick(rate=1000, loop=100)))
    assert result.forward is not None
    assert (result.forward.received, result.forward.stale) == (300, 0)


def test_lengths_that_differ_are_no_loss_of_the_dut(command: EngineCommand, tmp_path: Path) -> None:
    """Told which, they are counted; else the trial is invalid and says by how much they differ."""
    wrong = quick(rate=2000, length_change="8")
    with EngineTester(command, RING) as engine:
        result = engine.run(planned(tmp_path, packets(), wrong))
    assert result.verdict is Verdict.INVALID
    assert "-8 bytes" in next(cause.text for cause in result.causes if cause.code == "matched")


def test_what_is_longer_than_the_port_takes_is_refused(open_engine: OpenEngine, tmp_path: Path) -> None:
    trial = planned(tmp_path, [udp(1600)], quick())
    with pytest.raises(TesterError, match="more than max_frame_size"):
        open_engine("ring", "ring").run(trial)


def test_several_queues_have_no_order(open_engine: OpenEngine, tmp_path: Path) -> None:
    with pytest.raises(TesterError, match="one queue"):
        open_engine("ring", "ring", queues=2).run(planned(tmp_path, packets(5), quick()))


def test_a_hundred_thousand_frames_are_loaded_once(command: EngineCommand) -> None:
    """Two trials, of which the second needs no loading."""
    long = Recording()
    for number in range(100_000):
        long.append(RecordedFrame(number * 2000, number.to_bytes(4, "big") * (15 + number % 40), "next_hop4"))
    trial = trial_of(long, quick(), 1)
    with EngineTester(command, RING) as engine:
        results: list[TrialResult] = [engine.run(trial), engine.run(trial)]
    for result in results:
        assert result.forward is not None
        assert result.forward.received == result.forward.sent == 100_000
