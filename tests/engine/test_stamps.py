# SPDX-License-Identifier: Apache-2.0
"""Time stamps: which frames carry one, what the delays say, and what is counted as late or lost
(RFC 8219 7.2 and 7.3)."""

from __future__ import annotations

import itertools
from itertools import accumulate
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from dutperf.frames import Stack, build
from dutperf.model import DelaysFiles, FieldMode, RecordsWritten, Tagged, TrialResult
from dutperf.tester import TesterError

from .conftest import OpenEngine
from .streams import stream, trial
from .test_frames import OpenCapture, payload, sent_frames


def stamped_numbers(open_capture: OpenCapture, count: int, after_ns: int) -> list[int]:
    """Numbers of the frames with a stamp, of 400 in a fifth of a second."""
    packets = sent_frames(
        open_capture, stream(4, 64), stamping="tagged", tagged=Tagged(count=count, after_ns=after_ns), burst=7
    )
    return [number for number, packet in enumerate(packets) if payload(packet)[13:18] != bytes(5)]


@pytest.mark.parametrize(
    ("count", "after_ns", "first"),
    [
        *(pytest.param(*row, marks=pytest.mark.long) for row in ((400, 0, 0), (100, 0, 0), (200, 100_000_000, 200))),
        (7, 0, 0),
        (1, 0, 0),
        (2, 199_000_000, 398),
    ],
)
def test_tagged_frames_are_spread_evenly(open_capture: OpenCapture, count: int, after_ns: int, first: int) -> None:
    numbers = stamped_numbers(open_capture, count, after_ns)
    parts = [first + part * (400 - first) // count for part in range(count + 1)]
    assert numbers[0] == first
    assert all(begin <= number < end for number, (begin, end) in zip(numbers, itertools.pairwise(parts), strict=True))


def test_tagged_frames_are_at_no_fixed_distance(open_capture: OpenCapture) -> None:
    """So that they cannot fall into step with what a DUT does every so many frames; the same seed
    tags the same frames."""
    numbers = stamped_numbers(open_capture, 40, 0)
    assert len({number % 10 for number in numbers}) > 5


def on_ports(open_engine: OpenEngine, port: str, **members: object) -> TrialResult:
    """A stamped trial between two ports of one kind."""
    with open_engine(port, port) as engine:
        return engine.run(trial(stream(mode=FieldMode.FIXED), **members))


@pytest.mark.alone
def test_delays_over_memory_are_short_and_ordered(open_engine: OpenEngine) -> None:
    result = on_ports(open_engine, "ring", stamping="every")
    assert result.forward is not None
    assert (result.forward.stamped_sent, result.forward.stamped_received, result.forward.late) == (400, 400, 0)
    delays, changes = result.forward.delay_us, result.forward.ipdv_us
    assert delays is not None
    assert changes is not None
    assert 0 < delays.min <= delays.p50 <= delays.p99 <= delays.p999 <= delays.max
    assert changes.min <= changes.p50 <= changes.max
    assert max(-changes.min, changes.max) <= (delays.max - delays.min) * 1.002
    assert (delays.frames, changes.pairs) == (400, 399)
    own = delays.by_tester
    assert own is not None
    assert 0 < own.p50 <= delays.p50
    assert delays.max - own.max < 1000, "nothing else than the loops delays frames over memory"


def test_frames_that_do_not_arrive_have_no_delays(open_engine: OpenEngine) -> None:
    result = on_ports(open_engine, "null", stamping="every")
    assert result.forward is not None
    assert (result.forward.stamped_sent, result.forward.stamped_received) == (400, 0)
    assert result.forward.delay_us is None


def test_tagged_frames_give_delays_and_no_changes_of_delay(open_engine: OpenEngine) -> None:
    result = on_ports(open_engine, "ring", stamping="tagged", tagged=Tagged(count=50, after_ns=0))
    assert result.forward is not None
    assert (result.forward.stamped_sent, result.forward.stamped_received) == (50, 50)
    assert result.forward.delay_us is not None
    assert result.forward.ipdv_us is None


@pytest.mark.parametrize(
    "stamping", [{"stamping": "every"}, {"stamping": "tagged", "tagged": Tagged(count=20, after_ns=0)}]
)
def test_lost_frames_count_as_told(open_engine: OpenEngine, stamping: dict[str, object]) -> None:
    result = on_ports(open_engine, "null", lost_delay_ns=3_000_000, **stamping)
    assert result.forward is not None
    assert result.forward.stamped_received == 0
    assert result.forward.delay_us is not None
    assert result.forward.delay_us.min == pytest.approx(3000, rel=0.001)
    assert result.forward.delay_us.p999 == pytest.approx(3000, rel=0.001)


@pytest.mark.parametrize(("timeout_ns", "late"), [(1, 400), (3_600_000_000_000, 0)])
def test_a_frame_later_than_the_timeout_is_not_received(open_engine: OpenEngine, timeout_ns: int, late: int) -> None:
    result = on_ports(open_engine, "ring", stamping="every", frame_timeout_ns=timeout_ns)
    assert result.forward is not None
    assert (result.forward.late, result.forward.lost, result.forward.received) == (late, late, 400 - late)


@pytest.mark.parametrize(
    ("stamping", "count"),
    [({"stamping": "every"}, 400), ({"stamping": "tagged", "tagged": Tagged(count=50, after_ns=0)}, 50)],
)
def test_every_delay_is_in_the_file_and_agrees_with_the_figures(
    open_engine: OpenEngine, tmp_path: Path, stamping: dict[str, object], count: int
) -> None:
    path = tmp_path / "made" / "delays.npy"
    result = on_ports(open_engine, "ring", delays_files=DelaysFiles(forward=str(path)), **stamping)
    assert result.forward is not None
    assert result.forward.delays_file == RecordsWritten(written=count, unwritten=0)
    delays = np.load(path, mmap_mode="r")
    assert len(np.unique(delays["sequence"])) == len(delays) == count
    figures = result.forward.delay_us
    assert figures is not None
    ordered = np.sort(delays["delay_ns"]) / 1000
    assert (ordered[0], ordered[-1]) == (pytest.approx(figures.min, rel=1e-9), pytest.approx(figures.max, rel=1e-9))
    for share, figure in ((0.5, figures.p50), (0.99, figures.p99), (0.999, figures.p999)):
        assert ordered[ceil(share * count) - 1] == pytest.approx(figure, rel=0.001)
    assert figures.buckets is not None
    ends, counts = zip(*figures.buckets, strict=True)
    assert ends[-1] == figures.max
    assert list(np.searchsorted(ordered, np.array(ends) * (1 + 1e-9), side="right")) == list(accumulate(counts))


def test_lost_frames_are_not_in_the_file(open_engine: OpenEngine, tmp_path: Path) -> None:
    path = tmp_path / "delays.npy"
    result = on_ports(
        open_engine, "null", lost_delay_ns=3_000_000, stamping="every", delays_files=DelaysFiles(forward=str(path))
    )
    assert result.forward is not None
    assert result.forward.delays_file == RecordsWritten(written=0, unwritten=0)
    assert len(np.load(path)) == 0


def test_a_file_that_cannot_be_made_is_named_before_anything_is_sent(open_engine: OpenEngine) -> None:
    with pytest.raises(TesterError, match="/proc/nowhere") as caught:
        on_ports(open_engine, "ring", stamping="every", delays_files=DelaysFiles(forward="/proc/nowhere/delays.npy"))
    assert (caught.value.code, caught.value.field) == ("file", "delays_files.forward")


SYNC = build(Stack.parse("ipv4(source=198.18.0.2,destination=198.19.0.2)/udp/ptp"), 128)
MESSAGES = {
    "two for one kind": ((SYNC, SYNC), "must have a message for each kind of frames: 1"),
    "one that varies": (
        (build(Stack.parse("ipv4(source=198.18.0.2,destination=198.19.0.2,id=increment(0))/udp/ptp"), 128),),
        "must be empty: the message is always the same",
    ),
    "too short for one": (
        (build(Stack.parse("ipv4(source=198.18.0.2,destination=198.19.0.2)"), 128),),
        "leaves no room for a message",
    ),
}


@pytest.mark.parametrize("which", MESSAGES)
def test_messages_of_ptp_that_cannot_be_are_refused(open_engine: OpenEngine, which: str) -> None:
    messages, why = MESSAGES[which]
    with open_engine("ring", "ring") as engine, pytest.raises(TesterError, match=why):
        engine.run(trial(stream(ptp=messages)))
