# SPDX-License-Identifier: Apache-2.0
"""Capture files, read by scapy: of a router made by hand that drops packets, of a reference DUT that
damages frames, and of a host that sends by itself. Root only."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import PcapNgReader

from dutperf.engine.client import EngineTester
from dutperf.engine.factory import engine_on
from dutperf.model import Capture, Trial, TrialResult
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from plans import make_trial
from undisturbed import LOSS_IS_CERTAIN, valid

from .measuring import bench
from .test_by_hand import SIDES
from .test_described_frames import by_hand

pytestmark = pytest.mark.root
RATE_FPS = 2000
LIMIT_FPS, BUCKET = 1000, 20
SENDER = """
import socket, time
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(3):
    one.sendto(b"hello %d" % number, ("198.18.0.2", 7))
    time.sleep(0.2)
"""
Read = list[tuple[str, bytes, float]]
"""Comment, frame, time in s."""


def read(path: Path) -> Read:
    with PcapNgReader(str(path)) as reader:
        return [(_comment(packet), bytes(packet), float(packet.time)) for packet in reader]


def _comment(packet: Packet) -> str:
    comment = packet.comment if hasattr(packet, "comment") else packet.comments[0]
    return comment.decode() if isinstance(comment, bytes) else str(comment)


def tag_of(frame: bytes) -> bytes:
    return frame[42:60]


def number_of(frame: bytes) -> int:
    """Of a plain IPv4 test frame; its checksums must be right."""
    tag = tag_of(frame)
    assert tag[:3] == bytes.fromhex("d75450")
    fresh = Ether(frame)
    del fresh[IP].chksum, fresh[UDP].chksum
    assert bytes(fresh) == frame
    return int.from_bytes(tag[8:13], "big")


def captured(run: Callable[[], TrialResult], path: Path, in_spite_of: Collection[str] = ()) -> tuple[TrialResult, Read]:
    """A valid trial and its file, which the next attempt overwrites."""
    files: list[tuple[TrialResult, Read]] = []

    def attempt() -> TrialResult:
        files.append((run(), read(path)))
        return files[-1][0]

    result = valid(attempt, in_spite_of)
    return next(one for one in files if one[0] is result)


def planned(setup: configuration.Setup, capture: Capture, **conditions: object) -> Trial:
    chosen = SingleTrial(**({"duration_s": 0.3, "drain_s": 0.2, "frame_sizes": (90,)} | conditions))  # type: ignore[arg-type]
    return make_trial(setup, chosen, 90, RATE_FPS, 1).model_copy(update={"capture": capture})


def test_what_arrived_and_what_was_lost_is_all_that_was_sent(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng"
    with by_hand("router") as name:
        subprocess.run(
            ["sh", Path(__file__).with_name("by_hand.sh"), "limit", name, str(LIMIT_FPS), str(BUCKET)],
            check=True,
            timeout=20,
        )
        setup = configuration.Setup.model_validate({"engine": {"netns": name}, **SIDES["router"]})
        trial = planned(setup, Capture(path=str(path), first=5000, lost=5000), directions="forward")
        before_s = time.time()
        with engine_on(setup, 1518) as tester:
            result, frames = captured(lambda: tester.run(trial), path, LOSS_IS_CERTAIN)
        assert result.capture is not None
        assert result.forward is not None
        written = result.capture.written
        assert written.lost == result.forward.lost > 0
        assert len(frames) == written.first + written.lost
        lost = [number_of(data) for comment, data, _ in frames if comment.startswith("lost")]
        ours = [data for comment, data, _ in frames if comment == "first" and tag_of(data)[:2] == b"\xd7\x54"]
        arrived = [number_of(data) for data in ours]
        assert sorted(lost + arrived) == list(range(result.forward.sent))
        assert all(f"lost: frame {number} of forward" in {one[0] for one in frames} for number in lost)
        assert all(before_s < at < time.time() for _, _, at in frames)
        assert [at for _, _, at in frames] == sorted(at for _, _, at in frames)


@pytest.mark.long
def test_more_than_was_asked_for_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng"
    with by_hand("router") as name:
        setup = configuration.Setup.model_validate(
            {"engine": {"netns": name}, **SIDES["router"], "right": {**SIDES["router"]["right"], "gateway4": None}}
        )
        subprocess.run(["ip", "-n", f"{name}-dut", "route", "add", "blackhole", "198.19.0.2/32"], check=True)
        trial = planned(setup, Capture(path=str(path), lost=7), directions="forward")
        with engine_on(setup, 1518) as tester:
            result, frames = captured(lambda: tester.run(trial), path, LOSS_IS_CERTAIN)
        assert result.capture is not None
        assert result.capture.written.lost == 7
        assert result.capture.left_out.lost == RATE_FPS // 2 - 7
        assert [number_of(data) for _, data, _ in frames] == list(range(7))


@pytest.mark.usefixtures("lab_records")
def test_damaged_frames(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng"
    with bench("refdut-ipv4", {"bit_error_every": "100"}) as ready:

        def attempt() -> TrialResult:
            return ready.tester.run(planned(ready.setup, Capture(path=str(path), damaged=100)))

        result, frames = captured(attempt, path)
    assert result.capture is not None
    corrupted = sum(counts.corrupted for counts in result.directions().values())
    assert result.capture.written.damaged == corrupted > 0
    assert len(frames) == corrupted
    for comment, data, _ in frames:
        assert comment == "damaged"
        fresh = Ether(data)
        del fresh[UDP].chksum
        assert bytes(fresh) != data


def test_a_host_that_sends_by_itself(tmp_path: Path) -> None:
    """Listening alone: datagrams that a program of the DUT sends, after ARP."""
    path = tmp_path / "listened.pcapng"
    with by_hand("router") as name:
        setup = configuration.Setup.model_validate({"engine": {"netns": name}, **SIDES["router"]})
        with engine_on(setup, 1518) as tester:
            assert isinstance(tester, EngineTester)
            tester.run(Trial(trial=1, duration_ns=1, drain_ns=0, capture=Capture(path=str(path), first=1)))
            sending = subprocess.Popen(["ip", "netns", "exec", f"{name}-dut", sys.executable, "-c", SENDER])
            trial = Trial(trial=1, duration_ns=1_500_000_000, drain_ns=0, capture=Capture(path=str(path), first=1000))
            result = tester.run(trial)
            assert sending.wait(timeout=20) == 0
        assert result.capture is not None
        packets = [Ether(data) for _, data, _ in read(path)]
        assert [bytes(packet[UDP].payload) for packet in packets if UDP in packet] == [
            b"hello 0",
            b"hello 1",
            b"hello 2",
        ]
