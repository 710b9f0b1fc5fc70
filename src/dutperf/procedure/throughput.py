# SPDX-License-Identifier: Apache-2.0
"""Throughput: the highest rate at which the DUT forwards every frame (RFC 2544 26.1, RFC 8219 7.1).

For each frame size the search is repeated. A trial passes where in each active direction no more than the tolerated share of the frames is lost
(RFC 2544: none). The value of a repetition is the highest rate that passed in a valid trial of its own.

A repetition starts its search near the value of the one before, which saves most of its trials. It still has to see a rate pass and a higher one fail
(RFC 2544 26.1 leaves it to the tester how the rate is found).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from dutperf.conditions import Conditions, Rate
from dutperf.model import IPV6_HEADER_EXCESS, LimitedBy, Trial, TrialResult, Verdict, to_json
from dutperf.procedure import evidence
from dutperf.procedure.bench import Bench, Place, Plan, PlanError
from dutperf.search import Outcome
from dutperf.search.binary import HIGHEST_FPS, TYPICAL_TRIALS, BinarySearch, Bounds, BoundsError, Found, Resolution

TYPICAL_LATER_TRIALS = 3
"""Estimate for the search of a repetition that starts near the value of the one before."""


@dataclass
class _Point:
    """A frame size in the course of its measurement."""

    frame_size: int
    bounds: Bounds
    near_fps: int | None = None
    repetition: int = 1
    results: dict[int, TrialResult] = field(default_factory=dict)
    """Of this repetition: rate to what its trial showed."""


class Throughput:
    """The procedure (:class:`dutperf.procedure.bench.Procedure`).

    Raises:
        PlanError: rates that contradict each other, or percentages of an unknown maximum.
    """

    name = "throughput"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._conditions = plan.conditions
        self._bounds = {size: bounds(plan.conditions, plan.maximum_fps(size)) for size in plan.conditions.frame_sizes}
        self._trials_of_later_searches: list[int] = []

    def description(self) -> dict[str, Any]:
        """See :meth:`dutperf.procedure.bench.Procedure.description`."""
        search = {"algorithm": "binary", "start": "bracket from the previous repetition" if self._conditions.repetitions > 1 else "none"}
        return {"search": search, "frames": [self._frame(size) for size in self._bounds]}

    def run(self, bench: Bench) -> str | None:
        """See :meth:`dutperf.procedure.bench.Procedure.run`. Ends before its time where the DUT forwards nothing."""
        for index, (size, limits) in enumerate(self._bounds.items()):
            message = self._measure(bench, _Point(size, limits), len(self._bounds) - index - 1)
            if message is not None:
                return message
        return None

    def _measure(self, bench: Bench, point: _Point, sizes_left: int) -> str | None:
        for repetition in range(1, self._conditions.repetitions + 1):
            point.repetition = repetition
            point.results.clear()
            search = BinarySearch(point.bounds, point.near_fps)
            self._search(bench, point, search, sizes_left)
            found = search.found()
            message = _explanation(found, point)
            bench.record("search", **_ended(found, point), message=message)
            bench.say(f"repetition {repetition}: {_number(found.value_fps)}; {message}", self._place(point, search, sizes_left))
            if found.silent:
                return message
            point.near_fps = found.value_fps or found.above_fps
        return None

    def _search(self, bench: Bench, point: _Point, search: BinarySearch, sizes_left: int) -> None:
        while (rate_fps := search.next_fps()) is not None:
            result = bench.measure(rate_fps, self._place(point, search, sizes_left))
            outcome = outcome_of(result, self._conditions)
            if outcome is not Outcome.PASSED or rate_fps not in point.results:
                point.results[rate_fps] = result
            search.tell(outcome)
        if point.near_fps is not None:
            self._trials_of_later_searches.append(len(search.found().loads))

    def _place(self, point: _Point, search: BinarySearch, sizes_left: int) -> Place:
        later = self._later_trials(self._conditions.repetitions - point.repetition, sizes_left)
        trials_left = 0 if search.found().silent else search.trials_left() + later
        return Place(point.frame_size, point.repetition, self._conditions.repetitions, search.lower_fps, search.upper_fps, trials_left)

    def _later_trials(self, repetitions_left: int, sizes_left: int) -> int:
        """Estimate of the trials of all searches after the running one."""
        later = fmean(self._trials_of_later_searches) if self._trials_of_later_searches else TYPICAL_LATER_TRIALS
        return round(later * repetitions_left + sizes_left * (TYPICAL_TRIALS + later * (self._conditions.repetitions - 1)))

    def _frame(self, frame_size: int) -> dict[str, Any]:
        limits = self._bounds[frame_size]
        trial = self._plan.make_trial(frame_size, limits.first_fps, 0)
        resolution = {"resolution_fps": limits.resolution.fps} if limits.resolution.fps else {"resolution_percent": limits.resolution.share * 100}
        return {
            "frame_size": frame_size,
            "frame_size_ipv4": frame_size_ipv4(trial, frame_size),
            "media_maximum_fps": self._plan.maximum_fps(frame_size),
            "minimum_fps": limits.lowest_fps,
            "maximum_fps": limits.maximum_fps,
            "initial_fps": limits.initial_fps,
            **resolution,
            "first_trial": to_json(trial),
        }


def bounds(conditions: Conditions, media_fps: int | None) -> Bounds:
    """The range to search, where the media's maximum frame rate is ``media_fps`` (None: unknown).

    Raises:
        PlanError: rates that contradict each other, or percentages of an unknown maximum.
    """
    maximum_fps = _fps("max_rate", conditions.max_rate, media_fps)
    is_media = media_fps is not None and media_fps <= min(maximum_fps or HIGHEST_FPS, HIGHEST_FPS)
    try:
        return Bounds(
            resolution=_resolution(conditions.resolution, media_fps),
            minimum_fps=_fps("min_rate", conditions.min_rate, media_fps),
            maximum_fps=media_fps if is_media else maximum_fps,
            initial_fps=_fps("initial_rate", conditions.initial_rate, media_fps),
            maximum_is_media=is_media,
        )
    except BoundsError as error:
        raise PlanError(str(error), option={"minimum": "min_rate", "initial": "initial_rate"}[error.bound]) from error


def outcome_of(result: TrialResult, conditions: Conditions) -> Outcome:
    """What a search may learn from ``result``: nothing, unless the trial was valid."""
    if result.verdict is not Verdict.VALID:
        return Outcome.UNMEASURABLE
    if evidence.silent_directions(result):
        return Outcome.SILENT
    return Outcome.PASSED if result.worst_loss_ratio <= conditions.loss_tolerance else Outcome.FAILED


def frame_size_ipv4(trial: Trial, frame_size: int) -> int:
    """The size of the IPv4 frames of a measurement of ``frame_size``, in bytes: shorter, unless all frames are IPv4 (RFC 8219 5.1.1)."""
    frames = [frame for stream in trial.streams().values() for frame in (stream.foreground, stream.background) if frame is not None]
    return min((frame.size for frame in frames if frame.version == 4), default=frame_size - IPV6_HEADER_EXCESS)


def _fps(option: str, rate: Rate | None, media_fps: int | None) -> int | None:
    if rate is None:
        return None
    try:
        fps = rate.fps(media_fps)
    except ValueError as error:
        raise PlanError(str(error), option=option) from error
    if fps > HIGHEST_FPS:
        raise PlanError(f"{rate} is more than the {HIGHEST_FPS:,} frames/s that a trial can have", option=option)
    return fps


def _resolution(rate: Rate, media_fps: int | None) -> Resolution:
    if rate.unit == "percent" and media_fps is None:
        return Resolution(share=rate.value / 100)
    return Resolution(fps=rate.fps(media_fps))


def _ended(found: Found, point: _Point) -> dict[str, Any]:
    """The members of a ``search`` event."""
    return {
        "frame_size": point.frame_size,
        "repetition": point.repetition,
        "value_fps": found.value_fps,
        "limited_by": found.limited_by,
        "above_fps": found.above_fps,
        "silent": found.silent,
        "loads": [[rate_fps, outcome] for rate_fps, outcome in found.loads],
    }


def _explanation(found: Found, point: _Point) -> str:
    """Why the value is what it is, in a sentence."""
    above_fps = found.above_fps
    if above_fps is None:
        highest = f"{point.bounds.highest_fps:,} frames/s"
        return f"the media's maximum of {highest} passed" if found.limited_by is LimitedBy.MEDIA else f"the maximum rate of the search, {highest}, passed"
    result = point.results[above_fps]
    if found.silent:
        return evidence.silence(result)
    if found.limited_by is LimitedBy.TESTER:
        return f"limited by the tester at {above_fps:,} frames/s: {evidence.invalidity(result)}"
    failed = f"at {above_fps:,} frames/s {evidence.losses(result)}"
    return failed if found.value_fps is not None else f"nothing passed, down to the minimum rate: {failed}"


def _number(value_fps: int | None) -> str:
    return "no value" if value_fps is None else f"{value_fps:,} frames/s"
