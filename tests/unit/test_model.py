# SPDX-License-Identifier: Apache-2.0
"""Trials are checked when they are made, and counted exactly."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dutperf.model import (
    DescribedField,
    Direction,
    FieldMode,
    FrameSpec,
    Trial,
    TrialResult,
    VaryingField,
    Verdict,
    to_json,
)
from plans import counts, frame, stream, trial


@given(rate_fps=st.integers(1, 10**9), duration_ns=st.integers(1, 86_400 * 10**9))
def test_intended_frames_are_those_due_before_the_end(rate_fps: int, duration_ns: int) -> None:
    """Frame k is due at k / rate: counted exactly, also where a float or 32 bits would not do."""
    made = trial(forward=stream(6, 84, rate_fps), reverse=None, duration_ns=duration_ns)
    count = made.intended(Direction.FORWARD)
    assert count == ceil(Fraction(rate_fps) * duration_ns / 10**9)
    assert Fraction(count - 1, rate_fps) < Fraction(duration_ns, 10**9) <= Fraction(count, rate_fps)
    assert made.intended(Direction.REVERSE) == 0


@given(
    rate_fps=st.integers(1, 10**9),
    then_fps=st.integers(1, 10**9),
    change_ns=st.integers(1, 10**11),
    duration_ns=st.integers(10**6, 10**11),
    data=st.data(),
)
def test_frames_of_a_rate_that_changes_are_due_where_they_are_counted(
    rate_fps: int, then_fps: int, change_ns: int, duration_ns: int, data: st.DataObject
) -> None:
    """A frame is counted before a time exactly where it is due before it; due times are rounded
    down to a nanosecond."""
    made = stream(6, 84, rate_fps, then={"rate_fps": then_fps, "after_ns": change_ns}).times(duration_ns, seed=0)
    before_change = made.frames_before(change_ns)
    assert before_change == ceil(Fraction(rate_fps) * change_ns / 10**9)
    frame = data.draw(st.integers(0, made.frames_before(duration_ns)))
    exact = (
        Fraction(frame, rate_fps) * 10**9
        if frame < before_change
        else change_ns + Fraction(frame - before_change, then_fps) * 10**9
    )
    assert made.due_ns(frame) == exact.__floor__()
    assert (made.frames_before(duration_ns) > frame) == (exact < duration_ns)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: frame(6, 83), "at least 84"),
        (lambda: frame(4, 63), "64"),
        (lambda: frame(4, 9217), "9216"),
        (lambda: FrameSpec.model_validate({**to_json(frame(4, 64)), "version": 6, "size": 84}), "not an IPv6 address"),
        (lambda: stream(6, 84, 0), "rate_fps"),
        (lambda: stream(6, 84, 1, n=2, m=3), "m <= n"),
        (lambda: stream(6, 84, 1, n=2, m=1), "background"),
        (
            lambda: stream(6, 84, 1, networks=2, destination_address={"mode": "random", "min": 0, "max": 9}),
            "2 networks, but destination_address has another number",
        ),
        (lambda: VaryingField(mode=FieldMode.RANDOM, min=2, max=1), "greater than max"),
        (lambda: trial(forward=None, reverse=None), "needs a direction"),
        (lambda: trial(number=65536), "65535"),
        (
            lambda: trial(forward=stream(6, 84, 1, then={"rate_fps": 1, "after_ns": 10**9})),
            "rate of forward would change",
        ),
        (lambda: trial(unknown=1), "unknown"),
    ],
)
def test_what_cannot_be(make: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        make()


def part(mode: str = "connection", **members: Any) -> DescribedField:
    """A field that holds a part of a connection."""
    numbers = {"first": "1024", "count": "100"} if mode == "connection" else {}
    return DescribedField.model_validate(
        {"bit": 272, "bits": 16, "mode": mode, "part": "source_port", **numbers} | members
    )


def test_fields_of_connections_have_no_more_members_than_the_engine_reads() -> None:
    assert to_json(part()) == {
        "bit": 272,
        "bits": 16,
        "by": "frame",
        "mode": "connection",
        "part": "source_port",
        "first": "1024",
        "count": "100",
    }
    learned = part("learned", part="destination_address", bits=128)
    assert to_json(learned) == {
        "bit": 272,
        "bits": 128,
        "by": "frame",
        "mode": "learned",
        "part": "destination_address",
    }


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"step": "1"}, "has the members count, first, part"),
        ({"part": None}, "has the members count, first, part"),
        ({"mode": "learned", "first": "1"}, "has the members part"),
        ({"mode": "random", "first": "1", "count": "2"}, "has the members count, first"),
        ({"by": "flow"}, "a flow has no connection"),
        ({"bits": 15}, "does not have 15 bits"),
        ({"first": "65436", "count": "101"}, "last number does not fit in 16 bits"),
        ({"count": "0"}, "at least one value"),
        ({"part": "port"}, "source_port"),
    ],
)
def test_fields_of_connections_that_cannot_be(members: dict[str, Any], words: str) -> None:
    part(first="65436")
    with pytest.raises(ValidationError, match=words):
        part(**members)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"part": "source_address", "bits": 32}, "no source address is learned"),
        ({"part": "destination_address"}, "does not have 16 bits"),
        ({"bits": 32}, "does not have 32 bits"),
    ],
)
def test_learned_fields_that_cannot_be(members: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        part("learned", **members)


def test_values_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        trial().trial = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("sent", "received", "lost", "ratio"), [(1000, 990, 10, 0.01), (1000, 1000, 0, 0), (0, 0, 0, 0), (3, 4, -1, -1 / 3)]
)
def test_loss(sent: int, received: int, lost: int, ratio: float) -> None:
    one = counts(sent, received)
    assert (one.lost, one.loss_ratio) == (lost, ratio)
    assert to_json(one)["lost"] == lost


def test_the_worse_direction_counts() -> None:
    result = TrialResult(trial=0, verdict=Verdict.VALID, forward=counts(1000, 999), reverse=counts(1000, 900))
    assert result.worst_loss_ratio == 0.1
    assert list(result.directions()) == [Direction.FORWARD, Direction.REVERSE]
    assert TrialResult(trial=0, verdict=Verdict.ABORTED).worst_loss_ratio == 0


def test_a_trial_goes_through_json_unchanged() -> None:
    made = trial(forward=stream(6, 84, 1000, background=frame(6, 84), m=1), reverse=None)
    assert "reverse" not in to_json(made)
    assert Trial.model_validate(to_json(made)) == made
