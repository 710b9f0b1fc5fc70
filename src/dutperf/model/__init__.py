# SPDX-License-Identifier: Apache-2.0
"""The values that the rest of the package passes around: a trial, what came of it, what it was
measured with and for.

Everything here is immutable and checked when it is made, so nothing further in checks it again.
Units stand in the names: ``_s`` seconds, ``_us`` microseconds, ``_ns`` nanoseconds, ``_fps`` frames
per second *per direction*. Frame sizes are bytes including the frame check sequence. The words are
those of RFC 2544, RFC 8219 and RFC 9971.
"""

from __future__ import annotations

from dutperf.model.case import FRAME_SIZE, FRAME_SIZE_IPV4, Axis, AxisValue, Case, axes_as_json, axes_of, axes_of_json
from dutperf.model.load import Load, Unit, is_load
from dutperf.model.result import (
    LOSS_BINS,
    PUNCTUAL_US,
    Arrivals,
    Cause,
    DelayChanges,
    Delays,
    DelaysWritten,
    DirectionCounts,
    LateBursts,
    LimitedBy,
    LinkState,
    LoopStall,
    Losses,
    MediaLimit,
    NicArrivals,
    NicDepartures,
    PortState,
    Quantiles,
    ReceiveBacklog,
    SoFar,
    Transmitted,
    TransmitWait,
    TrialResult,
    Verdict,
)
from dutperf.model.stream import (
    IPV6_HEADER_EXCESS,
    MAX_FRAME_SIZE,
    MIN_FRAME_SIZE,
    MIN_FRAME_SIZE_IPV6,
    Bursts,
    FieldMode,
    FrameSpec,
    Poisson,
    RateChange,
    Stream,
    VaryingAddress,
    VaryingField,
)
from dutperf.model.trial import TRIAL_NUMBERS, DelaysFiles, Question, Stamping, Tagged, Trial
from dutperf.model.value import Count, Direction, Fps, Port16, Value, to_json

__all__ = [
    "FRAME_SIZE",
    "FRAME_SIZE_IPV4",
    "IPV6_HEADER_EXCESS",
    "LOSS_BINS",
    "MAX_FRAME_SIZE",
    "MIN_FRAME_SIZE",
    "MIN_FRAME_SIZE_IPV6",
    "PUNCTUAL_US",
    "TRIAL_NUMBERS",
    "Arrivals",
    "Axis",
    "AxisValue",
    "Bursts",
    "Case",
    "Cause",
    "Count",
    "DelayChanges",
    "Delays",
    "DelaysFiles",
    "DelaysWritten",
    "Direction",
    "DirectionCounts",
    "FieldMode",
    "Fps",
    "FrameSpec",
    "LateBursts",
    "LimitedBy",
    "LinkState",
    "Load",
    "LoopStall",
    "Losses",
    "MediaLimit",
    "NicArrivals",
    "NicDepartures",
    "Poisson",
    "Port16",
    "PortState",
    "Quantiles",
    "Question",
    "RateChange",
    "ReceiveBacklog",
    "SoFar",
    "Stamping",
    "Stream",
    "Tagged",
    "TransmitWait",
    "Transmitted",
    "Trial",
    "TrialResult",
    "Unit",
    "Value",
    "VaryingAddress",
    "VaryingField",
    "Verdict",
    "axes_as_json",
    "axes_of",
    "axes_of_json",
    "is_load",
    "to_json",
]
