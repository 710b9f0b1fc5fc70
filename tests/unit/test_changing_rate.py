# SPDX-License-Identifier: Apache-2.0
"""Rates that change: due times against the integral of the rate, and the texts that name them."""

from __future__ import annotations

from math import pi, sin
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dutperf.model import Direction, Profile, Segment
from dutperf.setup.changing_rate import SINE_SEGMENTS, ChangingRate
from dutperf.setup.conditions import SingleTrial, Usual
from dutperf.setup.configuration import ParameterError
from plans import stream, trial

SECOND_NS = 10**9
rates_fps = st.sampled_from((0, 1, 10**9)) | st.integers(0, 10**6)
segments = st.builds(Segment, duration_ns=st.integers(1, 10**11), from_fps=rates_fps, to_fps=rates_fps)
profiles = (
    st.lists(segments, min_size=1, max_size=5)
    .filter(lambda several: any(one.from_fps + one.to_fps for one in several))
    .map(lambda several: Profile(segments=tuple(several)))
)


def frames_by(profile: Profile, time_ns: int) -> float:
    """The integral of the rate, in floating point."""
    length_ns = sum(one.duration_ns for one in profile.segments)
    rounds, left = divmod(time_ns, length_ns)
    frames = rounds * sum((one.from_fps + one.to_fps) / 2 * one.duration_ns / 1e9 for one in profile.segments)
    for one in profile.segments:
        time = min(left, one.duration_ns)
        frames += time / 1e9 * (one.from_fps + (one.to_fps - one.from_fps) * time / one.duration_ns / 2)
        left -= time
    return frames


@given(profiles, st.integers(0, 10**12))
def test_as_many_frames_are_due_before_a_time_as_the_rate_adds_up_to(profile: Profile, time_ns: int) -> None:
    expected = frames_by(profile, time_ns)
    assert -1e-12 * expected - 1e-4 <= profile.times().frames_before(time_ns) - expected <= 1 + 1e-12 * expected + 1e-4


@given(profiles, st.integers(0, 10**9))
def test_a_frame_is_counted_before_a_time_exactly_where_it_is_due_before_it(profile: Profile, frame: int) -> None:
    times = profile.times()
    due_ns = times.due_ns(frame)
    assert times.frames_before(due_ns) <= frame < times.frames_before(due_ns + 1)
    assert due_ns <= times.due_ns(frame + 1)


@given(st.integers(1, 10**9), st.integers(1, 10**12), st.integers(0, 10**12))
def test_a_profile_of_one_rate_has_its_times(rate_fps: int, duration_ns: int, frame: int) -> None:
    flat = Profile(segments=(Segment(duration_ns=duration_ns, from_fps=rate_fps, to_fps=rate_fps),))
    assert flat.mean_fps == rate_fps
    if frame < rate_fps * duration_ns // SECOND_NS:
        assert flat.times().due_ns(frame) == frame * SECOND_NS // rate_fps


def test_a_trial_sends_the_frames_of_its_profile() -> None:
    ramp = Profile(segments=(Segment(duration_ns=10 * SECOND_NS, from_fps=0, to_fps=20_000),))
    one = trial(forward=stream(6, 84, 10_000, pattern=ramp), reverse=None, duration_ns=10 * SECOND_NS)
    assert one.intended(Direction.FORWARD) == 100_000
    assert one.times(Direction.FORWARD).due_ns(25_000) == 5 * SECOND_NS
    assert ramp.times().rate_fps(5 * SECOND_NS) == 10_000
    assert one.streams()[Direction.FORWARD].highest_fps == 20_000


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"segments": []}, "at least 1"),
        ({"segments": [{"duration_ns": 1, "from_fps": 0, "to_fps": 0}]}, "must not be 0"),
        ({"segments": [{"duration_ns": 0, "from_fps": 0, "to_fps": 1}]}, "greater than or equal to 1"),
        ({"segments": [{"duration_ns": 1, "from_fps": 7, "to_fps": 7}]}, "mean rate of the profile is 7 frames/s"),
    ],
)
def test_a_profile_that_cannot_be_is_none(members: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        stream(6, 84, 1000, pattern={"kind": "profile", **members})


# --- texts ----------------------------------------------------------------------------------------


def made(text: str, maximum_fps: int | None = None) -> list[tuple[int, int, int]]:
    """The segments of a trial of 60 s."""
    profile = ChangingRate.parse(text).profile(60 * SECOND_NS, maximum_fps)
    return [(one.duration_ns, one.from_fps, one.to_fps) for one in profile.segments]


def test_texts_name_rates() -> None:
    assert made("ramp:1k-100k") == [(60 * SECOND_NS, 1000, 100_000)]
    assert made("ramp:100k-0/500ms") == [(500_000_000, 100_000, 0)]
    assert made("ramp:1%-100%", 1_000_000) == [(60 * SECOND_NS, 10_000, 1_000_000)]
    assert made("steps:1k,0,1.5M") == [(20 * SECOND_NS, rate, rate) for rate in (1000, 0, 1_500_000)]
    assert made("steps:10k,20k/2s") == [(2 * SECOND_NS, rate, rate) for rate in (10_000, 20_000)]


def test_a_sine_is_off_by_as_much_as_its_segments_are() -> None:
    """The error that the documentation states, 0.12 % of the amplitude, and what rounding adds."""
    profile = ChangingRate.parse("sine:10k-50k/2s").profile(60 * SECOND_NS, None)
    times = profile.times()
    assert len(profile.segments) == SINE_SEGMENTS
    assert profile.mean_fps == 30_000
    off = [
        abs(times.rate_fps(time_ns) - 30_000 - 20_000 * sin(2 * pi * time_ns / 2e9))
        for time_ns in range(0, 2 * SECOND_NS, 1_234_567)
    ]
    assert max(off) <= 0.0012 * 20_000 + 1
    assert times.frames_before(2 * SECOND_NS) == 60_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ramp", "is not a rate that changes: give ramp:FROM-TO"),
        ("ramp:", "is not a rate that changes"),
        ("ramp:1k", "needs two rates, as in ramp:1k-100k"),
        ("ramp:1k-2k-3k", "needs two rates"),
        ("ramp:1k-fast", "'fast' is not a rate"),
        ("ramp:0-0", "sends nothing"),
        ("steps:1k", "needs 2 to 1,000 rates"),
        ("steps:1k,", "'' is not a rate"),
        ("sine:1k-2k/2", "'2' is not a time"),
        ("sine:1k-2k/0s", "'0s' is not a time"),
        ("sine:1k-2k/86401s", "is not a time"),
    ],
)
def test_a_text_that_names_no_rates_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ChangingRate.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sine:2k-1k", "from a lower to a higher rate"),
        ("ramp:1%-2%", "needs the media's speed"),
        ("ramp:1-1001M", "above the limit"),
    ],
)
def test_rates_that_cannot_be_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        made(text)


def test_only_a_single_trial_has_rates_that_change() -> None:
    assert SingleTrial(pattern="ramp:1k-2k").pattern == "ramp:1k-2k"
    with pytest.raises(ParameterError, match="is for a single trial"):
        Usual(pattern="ramp:1k-2k")
    with pytest.raises(ParameterError, match=r"bursts:FRAMES, ramp:FROM-TO, .* with /2s or without"):
        SingleTrial(pattern="ramps")
