# SPDX-License-Identifier: Apache-2.0
"""Time stamps: which frames carry one, what the delays say, and what is counted as late or lost (RFC 8219 7.2 and 7.3)."""

from __future__ import annotations

import pytest

from dutperf.model import FieldMode, Tagged, TrialResult

from .conftest import OpenEngine
from .streams import stream, trial
from .test_frames import OpenCapture, payload, sent_frames


def stamped_numbers(open_capture: OpenCapture, count: int, after_ns: int) -> list[int]:
    """Numbers of the frames with a stamp, of 400 in a fifth of a second."""
    packets = sent_frames(open_capture, stream(4, 64), stamping="tagged", tagged=Tagged(count=count, after_ns=after_ns), burst=7)
    return [number for number, packet in enumerate(packets) if payload(packet)[13:18] != bytes(5)]


@pytest.mark.parametrize(("count", "after_ns", "first"), [(400, 0, 0), (100, 0, 0), (7, 0, 0), (1, 0, 0), (200, 100_000_000, 200), (2, 199_000_000, 398)])
def test_tagged_frames_are_spread_evenly(open_capture: OpenCapture, count: int, after_ns: int, first: int) -> None:
    left = 400 - first
    expected = [first + i * left // count for i in range(count)]
    assert stamped_numbers(open_capture, count, after_ns) == expected


def on_ports(open_engine: OpenEngine, port: str, **members: object) -> TrialResult:
    """A stamped trial between two ports of one kind."""
    with open_engine(port, port) as engine:
        return engine.run(trial(stream(mode=FieldMode.FIXED), **members))


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


def test_tagged_frames_give_delays_and_no_changes_of_delay(open_engine: OpenEngine) -> None:
    result = on_ports(open_engine, "ring", stamping="tagged", tagged=Tagged(count=50, after_ns=0))
    assert result.forward is not None
    assert (result.forward.stamped_sent, result.forward.stamped_received) == (50, 50)
    assert result.forward.delay_us is not None
    assert result.forward.ipdv_us is None


@pytest.mark.parametrize("stamping", [{"stamping": "every"}, {"stamping": "tagged", "tagged": Tagged(count=20, after_ns=0)}])
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
