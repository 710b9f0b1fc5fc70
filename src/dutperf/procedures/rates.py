# SPDX-License-Identifier: Apache-2.0
"""The user's rates in frames/s per direction, checked against the limit of a trial, and the
throughput of an earlier run."""

from __future__ import annotations

from dutperf.model import FRAME_SIZE, Case, Load
from dutperf.procedures.bench import Plan, PlanError
from dutperf.results.deviations import Facts
from dutperf.search.binary import HIGHEST
from dutperf.setup.conditions import AtThroughput, Rate, WithMaximum


def given(option: str, rate: Rate | None, media_fps: int | None, *, is_bound: bool = False) -> int | None:
    """``rate`` in frames/s; ``media_fps`` is the media's maximum frame rate (None: unknown). ``is_bound``: no frames
    need to be sent at that rate. Raises PlanError: above the limit of a trial or the media's maximum, or a percentage
    of an unknown maximum; it names ``option``."""
    if rate is None:
        return None
    try:
        return rate.fps(media_fps) if is_bound else rate.offered_fps(media_fps)
    except ValueError as error:
        raise PlanError(str(error), option=option) from error


def highest(conditions: WithMaximum, media_fps: int | None) -> tuple[int | None, bool]:
    """The highest rate to offer (None: no limit), and whether it is the media's maximum, not a lower one of the user's.
    Raises PlanError: see :func:`given`; or it is above the rate within a burst."""
    maximum_fps = given("max_rate", conditions.max_rate, media_fps, is_bound=True)
    is_media = media_fps is not None and media_fps <= min(maximum_fps or HIGHEST, HIGHEST)
    highest_fps = media_fps if is_media else maximum_fps
    burst_fps = given("burst_rate", conditions.every.burst_rate, media_fps)
    if burst_fps is not None and (highest_fps is None or highest_fps > burst_fps):
        text = (
            f"bursts at {burst_fps:,} frames/s have no higher mean rate: give a highest rate (`max_rate`) that is not"
            " above it"
        )
        raise PlanError(text, option="burst_rate")
    return highest_fps, is_media


def first(plan: Plan[WithMaximum], case: Case, what: str = "the rate") -> Load:
    """The highest rate to offer; ``what`` names it in messages. Raises PlanError: see :func:`highest`; or there is no
    limit."""
    return Load.fps(known_highest(plan.conditions, plan.traffic.maximum_fps(case), what))


def known_highest(conditions: WithMaximum, media_fps: int | None, what: str) -> int:
    fps, _ = highest(conditions, media_fps)
    if fps is None:
        raise PlanError(
            f"give {what}: the media's maximum frame rate is not known (virtual links have none)", option="max_rate"
        )
    return fps


def rate_of(plan: Plan[AtThroughput], case: Case) -> int:
    """The rate to measure a case at, in frames/s per direction. Raises PlanError: none is known, or two are."""
    conditions = plan.conditions
    if (conditions.rate is None) == (conditions.throughput_from is None):
        what = "both a rate and an earlier result" if conditions.rate is not None else "no rate"
        raise PlanError(
            f"there is {what} to measure at: give `rate`, or `throughput_from` with the directory of a throughput run",
            option="rate",
        )
    if conditions.throughput_from is None:
        rate_fps = given("rate", conditions.rate, plan.traffic.maximum_fps(case))
        assert rate_fps is not None
        return rate_fps
    if (throughput_fps := conditions.throughput_from.get(case.get(FRAME_SIZE) or 0)) is None:
        raise PlanError(f"has no throughput for {case}", option="throughput_from")
    return (
        given("throughput_from", Rate(value=throughput_fps, unit="fps"), plan.traffic.maximum_fps(case))
        or throughput_fps
    )


def throughput_otherwise(facts: Facts) -> str | None:
    """Deviations of the search for the throughput that a procedure measures at."""
    texts = facts.conditions.throughput_deviations
    return f"measured at a throughput that was found with {'; '.join(texts)}" if texts else None


def throughput_given(facts: Facts) -> str | None:
    """Deviation of procedures that measure at the throughput."""
    return "the throughput is given, not measured by a test before" if facts.conditions.rate is not None else None
