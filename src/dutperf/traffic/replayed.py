# SPDX-License-Identifier: Apache-2.0
"""Makes the list of frames of a capture, and the trial that sends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from dutperf.captures import CapturedFrame, frames_of
from dutperf.errors import DutperfError
from dutperf.frames import FrameError, Template
from dutperf.frames.walk import Walk
from dutperf.model import (
    MAX_FRAME_SIZE,
    MIN_FRAME_SIZE,
    MOST_BYTES,
    MOST_FRAMES,
    Capture,
    Direction,
    LengthChanges,
    Question,
    Recorded,
    RecordedFrame,
    Recording,
    Replay,
    Stream,
    Trial,
)
from dutperf.setup.configuration import ParameterError, Setup

FCS_SIZE = 4
_ETHERNET_SIZE = 14
_LEAST = MIN_FRAME_SIZE - FCS_SIZE
_NS_PER_S = 1_000_000_000
_TAG = re.compile(rb"\xd7TP.{4}\x01", re.DOTALL)
"""How tags begin (protocol/README.md)."""
LONGEST_NS = 86_400 * _NS_PER_S
"""Of a trial."""


class ReplayError(DutperfError):
    """A capture cannot be replayed; the text names the file and the frame."""


@dataclass(frozen=True)
class Source:
    """Which frames are sent, and how each is changed."""

    path: Path
    speed: Fraction | None = Fraction(1)
    """How much faster than captured; None: the times of the capture are not needed."""
    keeps_macs: bool = False
    tags: bool = False
    """Whether frames get a tag, as far as they have room for one."""


@dataclass(frozen=True)
class Plan:
    """How often and how fast a recording is sent."""

    direction: Direction = Direction.FORWARD
    """Also a path between named ports."""
    rate_fps: int | None = None
    """None: at the times of the recording."""
    loop: int = 1
    """0: again and again until the end of ``duration_s``."""
    duration_s: float | None = None
    """When sending ends at the latest."""
    drain_s: float = 2.0
    rest_s: float = 0.0
    burst: int = 32
    tolerated_loss: float = 0.0
    length_changes: LengthChanges | None = None
    capture: Capture | None = None


def recording_of(source: Source) -> Recording:
    """The frames of a capture.

    Raises:
        CaptureError: the file cannot be read.
        ReplayError: a frame cannot be sent, or there is none.
    """
    recording = Recording()
    clock = _Clock(source)
    for number, frame in enumerate(frames_of(source.path), 1):
        recording.of_test_frames = recording.of_test_frames or _TAG.search(frame.data) is not None
        recording.append(_sent(source, number, frame, clock.at_ns(number, frame)))
        if len(recording) > MOST_FRAMES or recording.size > MOST_BYTES:
            raise _wrong(
                source.path, number, f"is one too many: at most {MOST_FRAMES:,} frames and {MOST_BYTES >> 20} MiB"
            )
    if not len(recording):
        raise ReplayError(f"{source.path} has no frames")
    return recording


class _Clock:
    """When frames are due, from their times in the capture."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._began_ns: int | None = None
        self._last_ns = 0

    def at_ns(self, number: int, frame: CapturedFrame) -> int:
        """Of the next frame, after the first; 0 where the times are not needed."""
        if self._source.speed is None:
            return 0
        if self._began_ns is None:
            self._began_ns = self._last_ns = frame.time_ns
        before_ns, self._last_ns = self._last_ns, frame.time_ns
        if frame.time_ns < before_ns:
            raise _wrong(
                self._source.path,
                number,
                f"is {(before_ns - frame.time_ns) / 1e9:.9f} s earlier than the one before: sort the capture"
                " (reordercap), or give a rate",
            )
        at_ns = (frame.time_ns - self._began_ns) * self._source.speed.denominator // self._source.speed.numerator
        if at_ns >= LONGEST_NS:
            raise _wrong(self._source.path, number, "is due after more than a day")
        return at_ns


def _sent(source: Source, number: int, frame: CapturedFrame, at_ns: int) -> RecordedFrame:
    """A frame as it is sent."""
    data = frame.data
    if not frame.is_whole:
        raise _wrong(source.path, number, f"has only {len(data)} of its {frame.wire_size} bytes: capture whole frames")
    if len(data) < _ETHERNET_SIZE:
        raise _wrong(source.path, number, f"has {len(data)} bytes, no whole Ethernet header")
    if len(data) + FCS_SIZE > MAX_FRAME_SIZE:
        raise _wrong(
            source.path, number, f"has {len(data)} bytes; frames have at most {MAX_FRAME_SIZE - FCS_SIZE} without FCS"
        )
    if source.tags and _TAG.search(data):
        raise _wrong(source.path, number, "is a test frame, which has a tag already: replay this capture without tags")
    data = data.ljust(_LEAST, b"\0")
    is_group = bool(data[0] & 1)
    return RecordedFrame(
        at_ns,
        data,
        "given" if source.keeps_macs or is_group else "next_hop6" if Walk(data).version == 6 else "next_hop4",
        "given" if source.keeps_macs else "port",
        _tag_at(data) if source.tags else None,
    )


def _tag_at(data: bytes) -> int | None:
    """Where a tag fits; None: nowhere."""
    try:
        return Template.of(data).tag_at
    except FrameError:
        return None


def check(recording: Recording, *, loop: int, duration_s: float | None, own_times: bool) -> None:
    """Check that a replay has an end. ``own_times``: whether the frames are due as in the capture.

    Raises:
        ParameterError: it has none, or nothing says when to repeat the capture.
    """
    if not loop and duration_s is None:
        raise ParameterError("0 repeats the capture again and again: give a duration as well", "loop")
    if own_times and loop != 1 and not recording.times_ns[-1]:
        raise ParameterError(
            "all frames of the capture have the same time, so nothing says when to repeat them: give a rate", "loop"
        )


def check_direction(direction: Direction, setup: Setup) -> None:
    """Check that the test setup has the path.

    Raises:
        ParameterError: it has other ones.
    """
    known = setup.path_ends()
    if direction not in known:
        raise ParameterError(f"{direction} is no path of this configuration; it has {', '.join(known)}", "directions")


def trial_of(recording: Recording, plan: Plan, number: int) -> Trial:
    """The trial that sends ``recording``.

    Raises:
        ParameterError: it would have no end, or is too long.
    """
    check(recording, loop=plan.loop, duration_s=plan.duration_s, own_times=plan.rate_fps is None)
    if plan.rate_fps is None:
        pattern = Recorded(period_ns=_period_ns(recording))
        frame_ns = Fraction(pattern.period_ns, len(recording))
    else:
        pattern, frame_ns = None, Fraction(_NS_PER_S, plan.rate_fps)
    duration_ns = _duration_ns(plan, floor(plan.loop * len(recording) * frame_ns))
    if duration_ns > LONGEST_NS:
        raise ParameterError(f"the replay would last {duration_ns / 1e9:,.0f} s; a trial lasts a day at most", "loop")
    stream = Stream(
        rate_fps=min(_NS_PER_S, max(1, round(_NS_PER_S / frame_ns))),
        pattern=pattern,
        replay=Replay.of(recording, plan.length_changes),
    )
    return Trial(
        trial=number,
        rest_ns=round(plan.rest_s * 1e9) or None,
        duration_ns=duration_ns,
        drain_ns=round(plan.drain_s * 1e9),
        burst=plan.burst,
        question=Question(tolerated_loss=plan.tolerated_loss),
        capture=plan.capture,
        **({str(plan.direction): stream} if plan.direction.is_of_two else {"paths": {plan.direction: stream}}),
    )


def _duration_ns(plan: Plan, whole_ns: int) -> int:
    """The sending time; ``whole_ns``: of all repetitions."""
    if plan.duration_s is None:
        return max(1, whole_ns)
    limit_ns = max(1, round(plan.duration_s * 1e9))
    return min(limit_ns, max(1, whole_ns)) if plan.loop else limit_ns


def _period_ns(recording: Recording) -> int:
    """From the first frame to its repetition: the mean gap follows the last frame."""
    span_ns = recording.times_ns[-1]
    return span_ns + max(1, span_ns // max(1, len(recording) - 1))


def speed_of(text: str) -> Fraction:
    """``"2"``, ``"0.5"``, ``"1/3"``.

    Raises:
        ParameterError: no positive number.
    """
    try:
        factor = Fraction(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}|/[0-9]{1,9})?", text) else Fraction(0)
    except ZeroDivisionError:
        factor = Fraction(0)
    if not factor:
        raise ParameterError(f"'{text}' is not a factor such as 2, 0.5 or 1/3", "speed")
    return factor


def length_changes_of(text: str) -> LengthChanges:
    """``"+50"``: of all frames; ``"ipv4=+20,ipv6=-20"``: by IP version, and ``other`` for those without.

    Raises:
        ParameterError: the text is neither.
    """
    return LengthChanges(**dict(_changes(text)))


def _changes(text: str) -> Iterator[tuple[str, Any]]:
    for part in text.split(","):
        match = re.fullmatch(r"\s*((?P<of>ipv4|ipv6|other)=)?(?P<bytes>[+-]?[0-9]{1,4})\s*", part)
        if match is None or ("," in text and not match["of"]):
            raise ParameterError(
                f"'{text}' is neither a number of bytes such as +50 nor one for each of ipv4=, ipv6=, other=",
                "length_change",
            )
        for name in (match["of"],) if match["of"] else ("ipv4", "ipv6", "other"):
            yield name, int(match["bytes"])


def _wrong(path: Path, number: int, why: str) -> ReplayError:
    return ReplayError(f"{path}: frame {number} {why}")
