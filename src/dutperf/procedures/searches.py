# SPDX-License-Identifier: Apache-2.0
"""The searches for the highest rate that passes: which one the conditions name, its bounds, and the
loss that it takes from a trial."""

from __future__ import annotations

from importlib.metadata import version
from types import ModuleType
from typing import Annotated, Any

from dutperf.model import Question, TrialResult, Unit
from dutperf.procedures import rates
from dutperf.procedures.bench import PlanError
from dutperf.results import loss
from dutperf.search import NO_LOSS, Loss, restart
from dutperf.search.binary import BinarySearch, Bounds, BoundsError, Resolution, Search
from dutperf.search.lengths import Lengths
from dutperf.search.restart import PriorResults
from dutperf.setup.conditions import AllConditions, Rate, WithGoals, WithMaximum
from dutperf.setup.given import default
from dutperf.setup.option import SEARCH, Option
from dutperf.setup.rate import AnyRate, OptionalRate


class SearchRange(WithMaximum):
    """The rates that are searched."""

    min_rate: Annotated[
        OptionalRate, Option("Lowest rate of the search", label="lowest rate", metavar="RATE", panel=SEARCH)
    ] = default(None)
    initial_rate: Annotated[
        OptionalRate, Option("Rate to try first", label="first rate", metavar="RATE", panel=SEARCH)
    ] = default(None)
    resolution: Annotated[
        AnyRate,
        Option(
            "Resolution of the search: a rate, or % of the maximum",
            label="resolution of the search",
            metavar="RATE",
            panel=SEARCH,
        ),
    ] = default(Rate(value=0.5, unit="percent"))


class Searched(WithGoals, SearchRange):
    """Conditions of a search for the highest rate that passes."""


TYPICAL_LATER_TRIALS = 4
"""Estimate for a binary search that begins near the last repetition's result; MLRsearch begins with
the whole range."""
RESTART = "a random place within a wide step around the result of the repetition before"
"""Where a later repetition's binary search begins, for the journal's plan."""


def bounds(conditions: SearchRange, media_fps: int | None) -> Bounds:
    """The search range; ``media_fps`` is the media's maximum frame rate (None: unknown). Raises PlanError: rates that
    contradict each other, or percentages of an unknown maximum."""
    maximum_fps, is_media = rates.highest(conditions, media_fps)
    try:
        return Bounds(
            least=conditions.every.of_directions.least_fps,
            resolution=_resolution(conditions.resolution, media_fps),
            minimum=rates.given("min_rate", conditions.min_rate, media_fps),
            maximum=maximum_fps,
            initial=rates.given("initial_rate", conditions.initial_rate, media_fps),
            maximum_is_media=is_media,
        )
    except BoundsError as error:
        raise PlanError(str(error), option=_option_of(error)) from error


def make(conditions: SearchRange, bounds: Bounds, prior: PriorResults | None = None, seed: str = "") -> Search:
    """The search that ``conditions`` name. ``prior``: results of earlier repetitions; ``seed``: for the random place
    where this one begins. Raises PlanError: conditions that this search does not support."""
    _check(conditions, bounds)
    if conditions.every.search == "binary":
        return BinarySearch(bounds, None if prior is None else restart.begin(bounds, prior, seed))
    try:
        search: Search = _mlr().MlrSearch(
            bounds, conditions.loss_goals(), _lengths(conditions), has_forwarded=prior is not None
        )
    except BoundsError as error:
        raise PlanError(str(error), option=_option_of(error)) from error
    return search


def limits(bounds: Bounds, unit: Unit, lowest: int | None = None) -> dict[str, Any]:
    """The bounds as limits of a case in the journal's plan; ``lowest``: that of the search, if it is another one."""
    step, share = bounds.resolution.step, bounds.resolution.share
    return {
        f"minimum_{unit.suffix}": bounds.lowest if lowest is None else lowest,
        f"maximum_{unit.suffix}": bounds.maximum,
        f"initial_{unit.suffix}": bounds.initial,
        **({f"resolution_{unit.suffix}": step} if step else {"resolution_percent": share * 100}),
    }


def of_numbers(first: int, most: int, error: int, unit: Unit) -> Search:
    """A search over whole numbers: it doubles from ``first``, then halves the range down to ``error``."""
    return BinarySearch(Bounds(Resolution(step=error), minimum=1, maximum=most, initial=first, unit=unit))


def lowest(conditions: SearchRange, bounds: Bounds) -> int:
    """The lowest rate that the search may offer, for conditions that it supports."""
    return bounds.lowest if conditions.every.search == "binary" else _mlr().lowest(bounds)


def typical_later_trials(conditions: SearchRange) -> int:
    """Estimate for the search of a repetition after the first."""
    return TYPICAL_LATER_TRIALS if conditions.every.search == "binary" else _mlr().TYPICAL_TRIALS


def description(conditions: SearchRange) -> dict[str, Any]:
    """The search's members in the journal's plan."""
    if conditions.every.search == "mlr":
        lengths = _lengths(conditions)
        return {
            "algorithm": "MLRsearch",
            "version": version("MLRsearch"),
            "goals": list(conditions.loss_goals()),
            "exceed_ratio": lengths.exceed_ratio,
            "duration_sum_s": lengths.duration_sum_s,
            "start": "none",
        }
    return {"algorithm": "binary", "start": RESTART if conditions.every.repetitions != 1 else "none"}


def question(conditions: SearchRange, bounds: Bounds, rate_fps: int) -> Question:
    """The question to a trial at ``rate_fps``. MLRsearch has none: it uses the loss itself, not
    only whether it is tolerated."""
    if conditions.every.search != "binary":
        return Question()
    return Question(
        tolerated_loss=conditions.every.loss_tolerance, resolution=min(1.0, bounds.resolution.at(rate_fps) / rate_fps)
    )


def loss_of(result: TrialResult) -> Loss:
    """The loss of the direction that lost the greater share of its frames: loss goals apply to each
    direction."""
    one_episode = episode_of(result) is not None
    return max(
        (Loss(counts.lost, counts.sent, one_episode) for counts in result.directions().values()),
        key=lambda one: one.ratio,
        default=NO_LOSS,
    )


def episode_of(result: TrialResult) -> loss.Episode | None:
    """The one in which a trial lost its frames, beside those that a disturbance of the tester explains."""
    return loss.episode(result.directions().values(), disturbed=result.proven_failed is not None)


def _resolution(rate: Rate, media_fps: int | None) -> Resolution:
    if rate.unit == "percent" and media_fps is None:
        return Resolution(share=rate.value / 100)
    return Resolution(step=rate.fps(media_fps))


def _option_of(error: BoundsError) -> str:
    """The member of the conditions to change."""
    return {"minimum": "min_rate", "initial": "initial_rate", "resolution": "resolution"}[error.bound]


def _mlr() -> ModuleType:
    """Import it only where it is used: the library takes longer to import than all else that a
    short command needs."""
    from dutperf.search import mlr

    return mlr


def _lengths(conditions: SearchRange) -> Lengths:
    every = conditions.every
    return Lengths(every.duration_s, every.duration_sum_s or every.duration_s, every.exceed_ratio)


def _check(conditions: SearchRange, bounds: Bounds) -> None:
    """Refuse options that the search would ignore, and goals that no trial could reach."""
    if conditions.every.search == "binary":
        _check_binary(conditions.every)
    else:
        _check_lengths(conditions)
        _check_mlr(conditions, bounds)


def _check_lengths(conditions: SearchRange) -> None:
    of_one_s, sum_s = conditions.every.duration_s, conditions.every.duration_sum_s
    if sum_s is not None and sum_s < of_one_s:
        raise PlanError(f"one trial has {of_one_s:g} s already: give at least that", option="duration_sum_s")
    if conditions.every.exceed_ratio and _lengths(conditions).trials == 1:
        raise PlanError(
            "has no effect where one trial decides: give a `duration_sum_s` of several trials", option="exceed_ratio"
        )


def _check_mlr(conditions: SearchRange, bounds: Bounds) -> None:
    if conditions.every.goals and conditions.every.loss_tolerance:
        raise PlanError("the loss goals already say what may be lost: give only one of them", option="loss_tolerance")
    if conditions.initial_rate is not None:
        raise PlanError("MLRsearch begins at the maximum rate: leave this out", option="initial_rate")
    if bounds.maximum is None:
        raise PlanError(
            "MLRsearch begins at the maximum rate, which is not known: give --max-rate, or add the line"
            " 'media_mbps: 1000' (Mbit/s of the links) to the configuration",
            option="max_rate",
        )


def _check_binary(every: AllConditions) -> None:
    if every.goals:
        raise PlanError("loss goals need `search` mlr; a binary search has one, `loss_tolerance`", option="goals")
    for member in ("exceed_ratio", "duration_sum_s"):
        if getattr(every, member):
            raise PlanError("needs `search` mlr: in a binary search one trial decides", option=member)
