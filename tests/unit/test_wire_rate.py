# SPDX-License-Identifier: Apache-2.0
"""Bit rates on the wire: each frame counts with its FCS, preamble and gap, each kind by its share."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dutperf.cli.output import console
from dutperf.frames import Endpoints, Stack, build
from dutperf.journal import TrialEvent
from dutperf.model import Load, Stream, Trial
from dutperf.procedures import throughput

STACK = Stack.parse("ipv4(source=198.18.0.2,destination=198.19.0.2)/udp")


def stream(sizes: tuple[int, ...], **members: object) -> Stream:
    frames = tuple(build(STACK, size, Endpoints()) for size in sizes)
    return Stream.model_validate({"rate_fps": 1000, "frames": frames, **members})


@pytest.mark.parametrize(
    ("members", "mean"),
    [
        ({}, Fraction(64 + 594 + 1518, 3)),
        ({"order": (0, 1, 0, 2)}, Fraction(64 * 2 + 594 + 1518, 4)),
        ({"shares": (7, 4, 1)}, Fraction(64 * 7 + 594 * 4 + 1518, 12)),
    ],
)
def test_mean_size(members: dict[str, object], mean: Fraction) -> None:
    made = stream((64, 594, 1518), **members)
    assert made.mean_size == pytest.approx(float(mean))
    assert made.wire_bits == pytest.approx(float(mean + 20) * 8)


def test_directions_with_sizes_of_their_own_are_told_apart() -> None:
    made = Trial(trial=1, duration_ns=10**9, drain_ns=0, forward=stream((64,)), reverse=stream((1518,)))
    assert console._on_the_wire(made) == (
        "forward 1,000 frames/s, 0.67 Mbit/s; reverse 1,000 frames/s, 12.30 Mbit/s on the wire"
    )
    alike = made.model_copy(update={"reverse": stream((84,))})  # as a translator's
    assert console._on_the_wire(alike) == "1,000 frames/s, 0.83 Mbit/s on the wire in each direction"


def test_the_throughputs_bits_are_those_of_the_directions_own_rate() -> None:
    slow = stream((1518,), rate_fps=100)
    made = Trial(trial=1, duration_ns=10**9, drain_ns=0, forward=stream((64,)), reverse=slow)
    event = TrialEvent(load=Load.fps(1000), attempt=1, trial=made)
    assert throughput._wire_mbps(2_000.0, [event]) == pytest.approx(2_000 * 0.1 * (1518 + 20) * 8 / 1e6)
