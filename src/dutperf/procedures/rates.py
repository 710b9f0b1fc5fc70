# SPDX-License-Identifier: Apache-2.0
"""Rates as the user gave them, in frames/s per direction and within what a trial can have."""

from __future__ import annotations

from dutperf.procedures.bench import PlanError
from dutperf.results.deviations import Facts
from dutperf.search.binary import HIGHEST_FPS
from dutperf.setup.conditions import AtThroughput, Rate, WithMaximum


def given(option: str, rate: Rate | None, media_fps: int | None) -> int | None:
    """``rate``, where the media's maximum frame rate is ``media_fps`` (None: unknown).

    Raises:
        PlanError: more than a trial can have, or a percentage of an unknown maximum; it names
            ``option``.
    """
    if rate is None:
        return None
    try:
        fps = rate.fps(media_fps)
    except ValueError as error:
        raise PlanError(str(error), option=option) from error
    if fps > HIGHEST_FPS:
        raise PlanError(f"{rate} is more than the {HIGHEST_FPS:,} frames/s that a trial can have", option=option)
    return fps


def highest(conditions: WithMaximum, media_fps: int | None) -> tuple[int | None, bool]:
    """The highest rate to offer (None: nothing limits it), and whether it is the media's maximum,
    not a lower one of the user's.

    Raises:
        PlanError: see :func:`given`; or it is beyond the rate of a burst's frames.
    """
    maximum_fps = given("max_rate", conditions.max_rate, media_fps)
    is_media = media_fps is not None and media_fps <= min(maximum_fps or HIGHEST_FPS, HIGHEST_FPS)
    highest_fps = media_fps if is_media else maximum_fps
    burst_fps = given("burst_rate", conditions.burst_rate, media_fps)
    if burst_fps is not None and (highest_fps is None or highest_fps > burst_fps):
        text = (
            f"bursts at {burst_fps:,} frames/s have no higher mean rate: give a highest rate (--max-rate) that is not"
            " above it"
        )
        raise PlanError(text, option="burst_rate")
    return highest_fps, is_media


def rate_of(conditions: AtThroughput, frame_size: int, media_fps: int | None) -> int:
    """The rate to measure at, in frames/s per direction.

    Raises:
        PlanError: none is known, or two are.
    """
    if (conditions.rate is None) == (conditions.throughput_from is None):
        what = "both a rate and an earlier result" if conditions.rate is not None else "no rate"
        raise PlanError(
            f"there is {what} to measure at: give --rate, or --throughput-from with the directory of a throughput run",
            option="rate",
        )
    if conditions.throughput_from is None:
        rate_fps = given("rate", conditions.rate, media_fps)
        assert rate_fps is not None
        return rate_fps
    if frame_size not in conditions.throughput_from:
        raise PlanError(f"has no throughput for frames of {frame_size} bytes", option="throughput_from")
    return conditions.throughput_from[frame_size]


def throughput_given(facts: Facts) -> str | None:
    """A deviation of procedures that measure at the throughput."""
    return (
        "the throughput is given, not found by a test of its own before" if facts.conditions.rate is not None else None
    )
