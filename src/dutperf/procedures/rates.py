# SPDX-License-Identifier: Apache-2.0
"""Rates as the user gave them, in frames/s per direction and within what a trial can have; and the
throughput that an earlier run found."""

from __future__ import annotations

from dutperf.model import FRAME_SIZE, Case, Load
from dutperf.procedures.bench import Plan, PlanError
from dutperf.results.deviations import Facts
from dutperf.search.binary import HIGHEST
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
    if fps > HIGHEST:
        raise PlanError(f"{rate} is more than the {HIGHEST:,} frames/s that a trial can have", option=option)
    return fps


def highest(conditions: WithMaximum, media_fps: int | None) -> tuple[int | None, bool]:
    """The highest rate to offer (None: nothing limits it), and whether it is the media's maximum,
    not a lower one of the user's.

    Raises:
        PlanError: see :func:`given`; or it is beyond the rate of a burst's frames.
    """
    maximum_fps = given("max_rate", conditions.max_rate, media_fps)
    is_media = media_fps is not None and media_fps <= min(maximum_fps or HIGHEST, HIGHEST)
    highest_fps = media_fps if is_media else maximum_fps
    burst_fps = given("burst_rate", conditions.burst_rate, media_fps)
    if burst_fps is not None and (highest_fps is None or highest_fps > burst_fps):
        text = (
            f"bursts at {burst_fps:,} frames/s have no higher mean rate: give a highest rate (`max_rate`) that is not"
            " above it"
        )
        raise PlanError(text, option="burst_rate")
    return highest_fps, is_media


def first(plan: Plan[WithMaximum], case: Case, what: str = "the rate") -> Load:
    """The highest rate to offer; ``what`` it is, for a person.

    Raises:
        PlanError: see :func:`highest`; or nothing limits it.
    """
    return Load.fps(known_highest(plan.conditions, plan.maximum_fps(case), what))


def known_highest(conditions: WithMaximum, media_fps: int | None, what: str) -> int:
    """See :func:`first`."""
    fps, _ = highest(conditions, media_fps)
    if fps is None:
        raise PlanError(
            f"give {what}: the media's maximum frame rate is not known (virtual links have none)", option="max_rate"
        )
    return fps


def rate_of(plan: Plan[AtThroughput], case: Case) -> int:
    """The rate to measure a case at, in frames/s per direction.

    Raises:
        PlanError: none is known, or two are.
    """
    conditions = plan.conditions
    if (conditions.rate is None) == (conditions.throughput_from is None):
        what = "both a rate and an earlier result" if conditions.rate is not None else "no rate"
        raise PlanError(
            f"there is {what} to measure at: give `rate`, or `throughput_from` with the directory of a throughput run",
            option="rate",
        )
    if conditions.throughput_from is None:
        rate_fps = given("rate", conditions.rate, plan.maximum_fps(case))
        assert rate_fps is not None
        return rate_fps
    if (found_fps := conditions.throughput_from.get(case.get(FRAME_SIZE) or 0)) is None:
        raise PlanError(f"has no throughput for {case}", option="throughput_from")
    return found_fps


def throughput_otherwise(facts: Facts) -> str | None:
    """A deviation of procedures that measure at a throughput: that of its search."""
    said = facts.conditions.throughput_deviations
    return f"the throughput that it is measured at was found with {'; '.join(said)}" if said else None


def throughput_given(facts: Facts) -> str | None:
    """A deviation of procedures that measure at the throughput."""
    return (
        "the throughput is given, not found by a test of its own before" if facts.conditions.rate is not None else None
    )
