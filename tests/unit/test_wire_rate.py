# SPDX-License-Identifier: Apache-2.0
"""Bit rates on the wire: each frame counts with its FCS, preamble and gap, each kind by its share."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dutperf.frames import Endpoints, Stack, build
from dutperf.model import Stream

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
