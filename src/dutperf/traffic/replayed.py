# SPDX-License-Identifier: Apache-2.0
"""Makes the list of frames of a capture, and the trial that sends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from dutperf.captures import CapturedFrame, frames_of
from dutperf.errors import DutperfError
from dutperf.frames import FrameError, Template
from dutperf.frames.walk import Walk
from dutperf.model import (
    MAX_FRAME_SIZE,
    MIN_FRAME_SIZE,
    MOST_BYTES,
    MOST_FRAMES,
    PREAMBLE_AND_GAP,
    Direction,
    LengthChanges,
    Question,
    Recorded,
    RecordedFrame,
    Recording,
    Replay,
    Stream,
    Trial,
    Value,
)
from dutperf.setup.conditions import EveryTrial, WithCapture, WithTolerance
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.setup.given import Given, default
from dutperf.setup.option import OUTPUT, TRAFFIC, TRIAL, Option
from dutperf.setup.rate import OptionalRate, Rate

FCS_SIZE = 4
_ETHERNET_SIZE = 14
_LEAST = MIN_FRAME_SIZE - FCS_SIZE
_NS_PER_S = 1_000_000_000
_TAG = re.compile(rb"\xd7TP.{4}\x01", re.DOTALL)
"""How tags begin (protocol/README.md)."""
_FASTEST = 999_999_999
"""Factor of a capture's times."""
LONGEST_NS = 86_400 * _NS_PER_S
"""Of a trial."""


class ReplayError(DutperfError):
    """A capture cannot be replayed; the text names the file and the frame."""


class WithReplay(Value):
    """How often and how fast a capture is sent, and how its frames are changed."""

    rate: Annotated[
        OptionalRate,
        Option(
            "Send at this constant rate, not at the capture's times.",
            metavar="RATE",
            panel=TRAFFIC,
        ),
    ] = default(None)
    speed: Annotated[
        Given[str, str | float | Fraction],
        Option(
            "Send faster or slower than captured: 2, 0.5, 1/3. Default: 1",
            metavar="FACTOR",
            depends=True,
            panel=TRAFFIC,
        ),
    ] = default("1")
    loop: Annotated[
        int,
        Field(ge=0, le=1_000_000_000),
        Option("How often to send the capture; 0: until the duration ends", metavar="COUNT", panel=TRAFFIC),
    ] = 1
    duration_s: Annotated[
        float | None, Field(ge=0.001, le=86_400), Option("End sending after this time at the latest", panel=TRIAL)
    ] = None
    directions: Annotated[
        Given[Direction, str],
        Option(
            "forward: from the left port; reverse: from the right; or a path.",
            metavar="forward|reverse|PORT->PORT",
            panel=TRAFFIC,
        ),
    ] = default(Direction.FORWARD)
    macs: Annotated[
        Literal["rewrite", "keep"],
        Option(
            "rewrite: those of tester and DUT; keep: those of the capture.",
            panel=TRAFFIC,
        ),
    ] = "rewrite"
    tag: Annotated[
        bool,
        Option("Tag each frame with room for it, to count it exactly.", panel=TRAFFIC),
    ] = False
    length_change: Annotated[
        str | None,
        Option(
            "Bytes by which the DUT changes packets, as a tunnel does.",
            metavar="BYTES|ipv4=BYTES,…",
            panel=TRAFFIC,
        ),
    ] = None

    @field_validator("speed", mode="before")
    @classmethod
    def _of_number(cls, speed: Any) -> Any:
        if isinstance(speed, int | float | Fraction) and abs(float(speed)) <= _FASTEST:
            return str(Fraction(speed).limit_denominator(_FASTEST))
        return speed

    @field_validator("speed")
    @classmethod
    def _factor(cls, speed: str) -> str:
        factor_of(speed)
        return speed

    @field_validator("length_change")
    @classmethod
    def _changes(cls, text: str | None) -> str | None:
        if text is not None:
            length_changes_of(text)
        return text

    @property
    def factor(self) -> Fraction | None:
        """How much faster than captured; None: the times of the capture are not needed."""
        return factor_of(self.speed) if self.rate is None else None


class Replaying(WithCapture, WithTolerance, EveryTrial, WithReplay):
    """Conditions of a trial that sends the frames of a capture."""

    capture: Annotated[
        str | None,
        Option(
            "Write frames to a file: first, unexpected; if tagged lost, damaged.",
            metavar="KIND[:FRAMES],…",
            panel=OUTPUT,
        ),
    ] = None


def recording_of(path: Path, conditions: Replaying) -> Recording:
    """The frames of the capture ``path``, as they are sent.

    Raises:
        ParameterError: both a speed and a rate are given.
        CaptureError: the file cannot be read.
        ReplayError: a frame cannot be sent, or there is none.
    """
    if conditions.rate is not None and "speed" in conditions.model_fields_set:
        raise ParameterError("goes without `rate`, which replaces the capture's times", "speed")
    recording = Recording()
    clock = _Clock(path, conditions.factor)
    limit_ns = None if conditions.duration_s is None else _limit_ns(conditions.duration_s)
    for number, frame in enumerate(frames_of(path), 1):
        at_ns = clock.at_ns(number, frame)
        if limit_ns is not None and at_ns >= limit_ns:
            recording.ends_before = True
            continue  # one of the rest may be due before: then the capture is not sorted
        if at_ns >= LONGEST_NS:
            raise _wrong(path, number, "is due after more than a day: give a `duration_s`, a `speed` or a `rate`")
        recording.of_test_frames = recording.of_test_frames or _TAG.search(frame.data) is not None
        recording.append(_sent(conditions, path, number, frame, at_ns))
        if len(recording) > MOST_FRAMES or recording.size > MOST_BYTES:
            raise _wrong(path, number, f"is one too many: at most {MOST_FRAMES:,} frames and {MOST_BYTES >> 20} MiB")
    if not len(recording):
        raise ReplayError(f"{path} has no frames")
    return recording


class _Clock:
    """When frames are due, from their times in the capture."""

    def __init__(self, path: Path, factor: Fraction | None) -> None:
        self._path, self._factor = path, factor
        self._began_ns: int | None = None
        self._last_ns = 0

    def at_ns(self, number: int, frame: CapturedFrame) -> int:
        """Of the next frame, after the first; 0 where the times are not needed."""
        if self._factor is None:
            return 0
        if self._began_ns is None:
            self._began_ns = self._last_ns = frame.time_ns
        before_ns, self._last_ns = self._last_ns, frame.time_ns
        if frame.time_ns < before_ns:
            raise _wrong(
                self._path,
                number,
                f"is {(before_ns - frame.time_ns) / 1e9:.9f} s earlier than the one before: sort the capture"
                " (reordercap), or give a rate",
            )
        return (frame.time_ns - self._began_ns) * self._factor.denominator // self._factor.numerator


def _sent(conditions: Replaying, path: Path, number: int, frame: CapturedFrame, at_ns: int) -> RecordedFrame:
    data = frame.data
    if not frame.is_whole:
        raise _wrong(path, number, f"has only {len(data)} of its {frame.wire_size} bytes: capture whole frames")
    if len(data) < _ETHERNET_SIZE:
        raise _wrong(path, number, f"has {len(data)} bytes, no whole Ethernet header")
    if len(data) + FCS_SIZE > MAX_FRAME_SIZE:
        raise _wrong(
            path, number, f"has {len(data)} bytes; frames have at most {MAX_FRAME_SIZE - FCS_SIZE} without FCS"
        )
    if conditions.tag and _TAG.search(data):
        raise _wrong(path, number, "is a test frame, which has a tag already: replay this capture without tags")
    data = data.ljust(_LEAST, b"\0")
    keeps_macs, is_group = conditions.macs == "keep", bool(data[0] & 1)
    return RecordedFrame(
        at_ns,
        data,
        "given" if keeps_macs or is_group else "next_hop6" if Walk(data).version == 6 else "next_hop4",
        "given" if keeps_macs else "port",
        _tag_at(data) if conditions.tag else None,
    )


def _tag_at(data: bytes) -> int | None:
    """Where a tag fits; None: nowhere."""
    try:
        return Template.of(data).tag_at
    except FrameError:
        return None


def check(recording: Recording, conditions: Replaying) -> None:
    """Check that a replay has an end, and that what is to be captured can be known. Raises ParameterError: it has none,
    or nothing says when to repeat the capture; or lost frames are to be captured, which tags tell."""
    if not conditions.loop and conditions.duration_s is None:
        raise ParameterError("0 repeats the capture again and again: give a duration as well", "loop")
    if conditions.rate is None and conditions.loop != 1 and not recording.times_ns[-1]:
        raise ParameterError(
            "all frames of the capture have the same time, so nothing says when to repeat them: give a rate", "loop"
        )
    capture = conditions.capture_wanted()
    if capture is not None and capture.lost and recording.tagged < len(recording):
        raise ParameterError("lost frames are known by their tags, which not every frame has (`tag`)", "capture")


def check_direction(direction: Direction, setup: Setup) -> None:
    """Check that the test setup has the path. Raises ParameterError: it has other ones."""
    known = setup.path_ends()
    if direction not in known:
        raise ParameterError(f"{direction} is no path of this configuration; it has {', '.join(known)}", "directions")


def check_streams(recording: Recording, conditions: Replaying, setup: Setup) -> None:
    """Check that streams go beside a replay: with rates of their own, and so that its frames are told from theirs.
    Raises ConfigError: they do not."""
    if setup.has_sharing:
        raise ConfigError(
            "share the rate that is measured, but a replay has its own frames: give each a rate", "streams"
        )
    if recording.tagged == len(recording):
        return
    sender, receiver = conditions.directions.ports
    shared = [one for one in setup.other_streams() if one.ports[0] == sender or one.ports[1] == receiver]
    if shared:
        raise ParameterError(
            f"{len(recording) - recording.tagged:,} of {len(recording):,} frames have no tag, and nothing tells them"
            f" from those of the stream {shared[0].stream} on the same ports: give `tag`, use frames with room for one,"
            " or leave the stream out",
            "tag",
        )


def trial_of(recording: Recording, conditions: Replaying, number: int, media_mbps: float | None = None) -> Trial:
    """The trial that sends ``recording``. ``media_mbps``: speed of the media; None: unknown. Raises ParameterError: see
    :func:`check`; it is too long, or at a rate that the media does not carry."""
    check(recording, conditions)
    if conditions.rate is None:
        pattern = Recorded(period_ns=_period_ns(recording, conditions))
        frame_ns = Fraction(pattern.period_ns, len(recording))
    else:
        pattern, frame_ns = None, Fraction(_NS_PER_S, _fps(conditions.rate, recording, media_mbps))
    duration_ns = _duration_ns(conditions, floor(conditions.loop * len(recording) * frame_ns))
    if duration_ns > LONGEST_NS:
        raise ParameterError(f"the replay would last {duration_ns / 1e9:,.0f} s; a trial lasts a day at most", "loop")
    changes = None if conditions.length_change is None else length_changes_of(conditions.length_change)
    stream = Stream(
        rate_fps=min(_NS_PER_S, max(1, round(_NS_PER_S / frame_ns))),
        pattern=pattern,
        replay=Replay.of(recording, changes),
    )
    direction = conditions.directions
    return Trial(
        trial=number,
        rest_ns=round(conditions.learning_rest_s * 1e9) or None,
        duration_ns=duration_ns,
        drain_ns=round(conditions.drain_s * 1e9),
        burst=conditions.tx_burst,
        question=Question(tolerated_loss=conditions.loss_tolerance),
        capture=conditions.capture_wanted(),
        **({str(direction): stream} if direction.is_of_two else {"paths": {direction: stream}}),
    )


def _fps(rate: Rate, recording: Recording, media_mbps: float | None) -> int:
    wire_bits = 8 * (recording.size / len(recording) + FCS_SIZE + PREAMBLE_AND_GAP)
    try:
        return rate.offered_fps(None if media_mbps is None else int(media_mbps * 1_000_000 / wire_bits))
    except ValueError as error:
        raise ParameterError(str(error), "rate") from None


def _duration_ns(conditions: Replaying, whole_ns: int) -> int:
    """The sending time; ``whole_ns``: of all repetitions."""
    if conditions.duration_s is None:
        return max(1, whole_ns)
    limit_ns = _limit_ns(conditions.duration_s)
    return min(limit_ns, max(1, whole_ns)) if conditions.loop else limit_ns


def _limit_ns(duration_s: float) -> int:
    """When sending ends at the latest."""
    return max(1, round(duration_s * 1e9))


def _period_ns(recording: Recording, conditions: Replaying) -> int:
    """From the first frame to its repetition: the mean gap follows the last frame. Nothing is repeated of a capture
    that is longer than the sending time."""
    if recording.ends_before:
        assert conditions.duration_s is not None
        return _limit_ns(conditions.duration_s)
    span_ns = recording.times_ns[-1]
    return span_ns + max(1, span_ns // max(1, len(recording) - 1))


def factor_of(text: str) -> Fraction:
    """``"2"``, ``"0.5"``, ``"1/3"``. Raises ValueError: no positive number."""
    try:
        factor = Fraction(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}|/[0-9]{1,9})?", text) else Fraction(0)
    except ZeroDivisionError:
        factor = Fraction(0)
    if not factor:
        raise ValueError(f"'{text}' is not a factor such as 2, 0.5 or 1/3")
    return factor


def length_changes_of(text: str) -> LengthChanges:
    """``"+50"``: of all frames; ``"ipv4=+20,ipv6=-20"``: by IP version, and ``other`` for those without. Raises
    ValueError: the text is neither."""
    return LengthChanges(**dict(_changes(text)))


def _changes(text: str) -> Iterator[tuple[str, Any]]:
    for part in text.split(","):
        match = re.fullmatch(r"\s*((?P<of>ipv4|ipv6|other)=)?(?P<bytes>[+-]?[0-9]{1,4})\s*", part)
        if match is None or ("," in text and not match["of"]):
            raise ValueError(
                f"'{text}' is neither a number of bytes such as +50 nor one for each of ipv4=, ipv6=, other="
            )
        for name in (match["of"],) if match["of"] else ("ipv4", "ipv6", "other"):
            yield name, int(match["bytes"])


def _wrong(path: Path, number: int, why: str) -> ReplayError:
    return ReplayError(f"{path}: frame {number} {why}")
