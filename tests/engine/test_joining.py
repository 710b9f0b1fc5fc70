# SPDX-License-Identifier: Apache-2.0
"""Flows that begin one after the other, as the engine sends them: which flow each frame belongs to, when it left, and
what is counted of each flow."""

from __future__ import annotations

from math import ceil

import pytest
from scapy.layers.inet import UDP

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.frames import Stack, build
from dutperf.model import DescribedFrame, Direction, Joining, Stream
from frame_rows import ENDPOINTS

from .streams import trial
from .test_frames import OpenCapture, captured_bytes
from .test_patterns import PUNCTUAL_US, late_us, timed

FLOWS, APART_NS, RATE_FPS = 5, 100_000_000, 1_000
LASTS_NS = 700_000_000


def frame(size: int = 64) -> DescribedFrame:
    return build(Stack.parse("ipv4/udp(source=increment(4000,by=flow))"), size, ENDPOINTS, flows=FLOWS)


def joining(*frames: DescribedFrame, **members: object) -> Stream:
    pattern = Joining(flows=FLOWS, apart_ns=APART_NS)
    return Stream(rate_fps=RATE_FPS, pattern=pattern, frames=frames, **members)  # type: ignore[arg-type]


def flow_of_each() -> list[int]:
    """In each stage the newest flow first, and then all in turn: counted by hand."""
    flows: list[int] = []
    for stage in range(1, FLOWS + 1):
        until_ns = stage * APART_NS if stage < FLOWS else LASTS_NS
        frames = ceil((until_ns - (stage - 1) * APART_NS) * RATE_FPS * stage / FLOWS / 1e9)
        flows += [(stage - 1 + number) % stage for number in range(frames)]
    return flows


@pytest.mark.alone
def test_each_flow_begins_at_its_time(open_capture: OpenCapture) -> None:
    made = trial(joining(frame()), duration_ns=LASTS_NS, stamping="every")
    tsc_hz, [packets] = timed(open_capture, [made])
    flows = [packet[UDP].sport - 4000 for packet in packets]
    assert flows == flow_of_each()
    begins_ns = [made.times(Direction.FORWARD).due_ns(flows.index(flow)) for flow in range(FLOWS)]
    assert begins_ns == [flow * APART_NS for flow in range(FLOWS)]
    late = sorted(late_us(packets, made, tsc_hz))
    assert late[len(late) // 2] < PUNCTUAL_US


def test_frames_are_the_same_whatever_the_burst(open_capture: OpenCapture) -> None:
    one = joining(frame(), frame(128), order=(0, 0, 1))
    trials = [trial(one, duration_ns=LASTS_NS, burst=burst) for burst in (1, 7, 64)]
    first, *others = captured_bytes(open_capture, trials)
    assert all(each == first for each in others)


@pytest.mark.parametrize("queues", [1, 2])
def test_flows_are_counted_from_their_beginning(command: EngineCommand, queues: int) -> None:
    ports = {name: {"port": "ring"} for name in ("left", "right")}
    with EngineTester(command, {**ports, "memory": "no_huge_pages", "queues": queues}) as engine:
        counts = engine.run(trial(joining(frame()), duration_ns=LASTS_NS, by_flow=True)).forward
    assert counts is not None
    assert counts.kinds is not None
    assert counts.kinds[0].flows is not None
    expected = flow_of_each()
    assert list(counts.kinds[0].flows.sent) == [expected.count(flow) for flow in range(FLOWS)]
    assert counts.kinds[0].flows.received == counts.kinds[0].flows.sent
