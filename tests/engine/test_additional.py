# SPDX-License-Identifier: Apache-2.0
"""Additional frames through the engine: how many there are, where they stand between the test frames, their
bytes, and that no count of test frames includes them."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from dutperf.engine.client import EngineTester
from dutperf.frames import additional
from dutperf.model import AdditionalCounts, AdditionalFrames, Bursts, BytesAt, Poisson, Stamping

from .conftest import OpenEngine
from .streams import stream, trial

OpenCapture = Callable[..., tuple[EngineTester, dict[str, Path]]]
RATE_FPS = 99_000
SENT = RATE_FPS // 5 // 99
"""Broadcasts of a trial of a fifth of a second."""
LARGEST_BURST = 32
"""Test frames that leave at once after a stall of the sender."""
FRAME = additional.broadcast(IPv4Address("198.18.0.2"), 0, 128)
MARK = additional.broadcast_mark(0)
BROADCASTS = AdditionalFrames(
    name="broadcast",
    frames=(FRAME.hex(),),
    after_frames=99,
    forwarded=(BytesAt(at=MARK[0], bytes=MARK[1].hex()),),
)


def timed(*frames: bytes, every_ns: int) -> AdditionalFrames:
    return AdditionalFrames(name="management", frames=tuple(one.hex() for one in frames), every_ns=every_ns)


@pytest.mark.parametrize("queues", [1, 3])
@pytest.mark.parametrize("pattern", [None, Poisson(), Bursts(frames=64)])
def test_they_are_counted_apart_from_test_frames(open_engine: OpenEngine, queues: int, pattern: Any) -> None:
    engine = open_engine("ring", "ring", queues=queues)
    counts = engine.run(
        trial(stream(rate_fps=RATE_FPS, pattern=pattern, additional=(BROADCASTS,)), stamping=Stamping.EVERY)
    ).forward
    assert counts is not None
    assert counts.sent == counts.received == counts.intended == RATE_FPS // 5
    assert counts.additional == (AdditionalCounts(intended=SENT, sent=SENT, received=SENT, replies=0),)
    assert counts.other_received == {}
    assert counts.transmitted is not None
    assert counts.transmitted.handed_over == counts.sent + SENT


def test_those_without_marks_are_counted_by_their_kind(open_engine: OpenEngine) -> None:
    engine = open_engine("ring", "ring")
    unmarked = BROADCASTS.model_copy(update={"forwarded": ()})
    counts = engine.run(trial(stream(rate_fps=RATE_FPS, additional=(unmarked,)))).forward
    assert counts is not None
    assert counts.additional == (AdditionalCounts(intended=SENT, sent=SENT, received=0, replies=0),)
    assert sum(counts.other_received.values()) == SENT


def test_replies_are_those_that_the_sending_port_receives(open_engine: OpenEngine) -> None:
    engine = open_engine("ring", "ring")
    question = AdditionalFrames(
        name="management", frames=(FRAME.hex(),), every_ns=50_000_000, replies=BROADCASTS.forwarded
    )
    answer = AdditionalFrames(name="broadcast", frames=(FRAME.hex(),), every_ns=100_000_000)
    result = engine.run(trial(stream(additional=(question,)), stream(additional=(answer,))))
    assert result.forward is not None
    assert result.reverse is not None
    [questions], [answers] = result.forward.additional or (), result.reverse.additional or ()
    assert (questions.sent, questions.received, questions.replies) == (4, 0, 2)
    assert (answers.sent, answers.received, answers.replies) == (2, 0, 0)
    assert questions.last_reply is not None
    assert bytes.fromhex(questions.last_reply)[12:] == FRAME[12:]


def test_they_stand_between_the_test_frames(open_capture: OpenCapture) -> None:
    first, second = (FRAME[:42] + bytes([number]) * 82 for number in (1, 2))
    engine, files = open_capture()
    updates = timed(first, second, every_ns=60_000_000)
    result = engine.run(trial(stream(rate_fps=2000, additional=(BROADCASTS, updates)), drain_ns=0))
    engine.close()
    assert result.forward is not None
    assert [one.sent for one in result.forward.additional or ()] == [4, 4]
    kinds = []
    for data, _ in RawPcapReader(str(files["left"])):
        assert data[6:12] == bytes.fromhex("020000000001")
        kinds.append({FRAME[12:]: "b", first[12:]: "1", second[12:]: "2"}.get(bytes(data)[12:], "."))
    assert kinds[0] == "1", "before the first test frame"
    assert [kind for kind in kinds if kind in "12"] == ["1", "2", "1", "2"]
    before = [kinds[:place].count(".") for place, kind in enumerate(kinds) if kind == "b"]
    assert [number // 99 for number in before] == [1, 2, 3, 4]
    assert all(number % 99 <= LARGEST_BURST for number in before), before
    due = [120 * number for number in range(4)]
    before = [kinds[:place].count(".") for place, kind in enumerate(kinds) if kind in "12"]
    assert all(number <= limit for number, limit in zip(before, due, strict=True)), "before the frames due then"
