# SPDX-License-Identifier: Apache-2.0
"""Counting by order and length (engine/measure/length_match.hpp), compared with a plain search for the
longest common subsequence, and with simulated DUTs whose losses are known."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.engine.client import EngineCommand

EXACT_BELOW = 16
"""With fewer arrivals out of order the match is exact (``kHypotheses``)."""
WITHIN = 1000
"""A reordered frame is at most so far from its place (``kReorderedWithin``)."""

Match = Any


class Program:
    """The engine's matching, as a process."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def match(self, cycle: list[int], sent: int, lengths: list[int], sent_then: list[int] | None = None) -> Match:
        then = [sent] * len(lengths) if sent_then is None else sent_then
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"cycle": cycle, "sent": sent, "lengths": lengths, "sent_then": then}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)


@pytest.fixture(scope="module")
def program(command: EngineCommand) -> Iterator[Program]:
    path = Path(command.program).with_name("length-match")
    if not path.exists():
        pytest.skip("the matching is not built: its build needs GoogleTest")
    one = Program(path)
    yield one
    one.close()


def longest(frames: list[int], lengths: list[int], sent_then: list[int]) -> int:
    """Most arrivals that are frames in their order, each of those sent by then."""
    best = [0] * (len(frames) + 1)
    for length, then in zip(lengths, sent_then, strict=True):
        before = best[:]
        for place, frame in enumerate(frames):
            best[place + 1] = max(best[place], before[place + 1])
            if frame == length and place < then:
                best[place + 1] = max(best[place + 1], before[place] + 1)
    return best[-1]


LENGTHS = st.integers(1, 5)


@given(st.lists(LENGTHS, min_size=1, max_size=9), st.integers(1, 40), st.lists(LENGTHS, max_size=30), st.data())
@settings(max_examples=600, deadline=None)
def test_as_many_in_order_as_there_can_be(
    program: Program, cycle: list[int], sent: int, lengths: list[int], data: st.DataObject
) -> None:
    sent_then = sorted(data.draw(st.integers(0, sent)) for _ in lengths)
    frames = [cycle[place % len(cycle)] for place in range(sent)]
    match = program.match(cycle, sent, lengths, sent_then)
    most = longest(frames, lengths, sent_then)
    assert match["in_order"] <= most
    if len(lengths) - most < EXACT_BELOW:
        assert match["in_order"] == most
    common = sum((Counter(frames) & Counter(lengths)).values())
    assert match["in_order"] + match["reordered"] <= common
    assert match["in_order"] + match["reordered"] + match["extra"] == len(lengths)
    if all(then == sent for then in sent_then):
        assert match["in_order"] + match["reordered"] == common, "nothing is further away than 1,000 frames"


PLACES = st.integers(0, 2999)


@given(st.randoms(use_true_random=False), st.sets(PLACES, max_size=2000), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_after_losses_of_any_number_it_goes_on(program: Program, random: Any, lost: set[int], burst: int) -> None:
    """Single losses and a burst of them: nothing but losses is counted exactly."""
    cycle = [random.choice((40, 100, 1500, random.randrange(40, 1500))) for _ in range(700)]
    sent = 3000
    lost = lost | set(range(1000, 1000 + 40 * burst))
    lengths = [cycle[place % len(cycle)] for place in range(sent) if place not in lost]
    match = program.match(cycle, sent, lengths)
    assert (match["in_order"], match["reordered"], match["extra"]) == (sent - len(lost), 0, 0)


@given(
    st.randoms(use_true_random=False),
    st.sets(PLACES, max_size=300),
    st.sets(PLACES, max_size=60),
    st.sets(PLACES, max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_of_losses_swaps_and_foreign_frames_none_is_blamed_on_another(
    program: Program, random: Any, lost: set[int], swapped: set[int], foreign: set[int]
) -> None:
    """A DUT that loses, swaps neighbours, and sends frames of its own, of a length that no frame has. What
    it delivered counts as received."""
    cycle = [random.choice((40, 100, 1500, random.randrange(40, 1500))) for _ in range(700)]
    sent = 3000
    order = [place for place in range(sent) if place not in lost]
    for at in swapped:
        if at + 1 < len(order):
            order[at], order[at + 1] = order[at + 1], order[at]
    lengths = [cycle[place % len(cycle)] for place in order]
    for at in sorted(foreign, reverse=True):
        lengths.insert(min(at, len(lengths)), 9000)
    match = program.match(cycle, sent, lengths)
    received = match["in_order"] + match["reordered"]
    assert match["extra"] == len(foreign)
    assert received == len(order)


@given(st.randoms(use_true_random=False), st.integers(-60, 60).filter(bool), st.sets(PLACES, max_size=500))
@settings(max_examples=40, deadline=None)
def test_a_constant_change_is_found(program: Program, random: Any, change: int, lost: set[int]) -> None:
    cycle = [random.randrange(100, 1400) for _ in range(500)]
    lengths = [cycle[place % 500] + change for place in range(3000) if place not in lost]
    assert program.match(cycle, 3000, lengths)["fitting_change"] == change
