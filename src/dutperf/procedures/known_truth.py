# SPDX-License-Identifier: Apache-2.0
"""What a procedure has to read of a DUT whose properties are known: its part of the self-test, declared in its file.

The reference DUT has the properties; the procedure is run under short conditions; each figure has a true value and an
error, which is stated before they are compared. docs/accuracy.md derives the errors. They depend on ``Evidence``: the
disturbances of the trials behind a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

from dutperf.judge.rules import SENDING_TIME_SLACK_S
from dutperf.lab.refdut import Properties
from dutperf.model import Trial
from dutperf.results.statistics import Statistics
from dutperf.setup.conditions import Rate

BUCKET = 0.000125
"""Maximum relative error of a delay, to either side (the engine's histogram)."""
QUEUE_FRAMES = 500
"""Of DUTs with a capacity: the frames that arrive during a stall of 20 ms."""
SEARCH_S = 0.25
"""Near the capacity, losses of the DUT cannot be distinguished from losses by the tester's own late
bursts. Short trials often have no such burst."""
LOST_EVERY = 10
DELAY_FPS = 2_000
DELAY_MS = 20.0
ONE_WAY: Mapping[str, Any] = {"directions": "forward"}


class SeenTrial(Protocol):
    """A trial that the self-test has observed."""

    @property
    def trial(self) -> Trial: ...
    @property
    def is_valid(self) -> bool: ...
    @property
    def lost(self) -> int: ...
    @property
    def disturbance_s(self) -> float: ...


class Faulty(Protocol):
    """A reference DUT that can be made to fail."""

    def stall(self, duration_s: float, after_s: float = 0.0) -> None: ...


@dataclass(frozen=True)
class Evidence:
    """What the error of a figure depends on."""

    point: Any
    """The procedure's point."""
    seen: Sequence[SeenTrial]
    floor_s: float = 0.0
    """The 99th percentile of the delay through the DUT without a configured delay, measured just
    before."""

    def failures(self) -> Iterator[tuple[int, float]]:
        """Rate and disturbance in seconds of each valid trial that lost frames."""
        for one in self.seen:
            if one.is_valid and one.lost:
                for stream in (one.trial.forward, one.trial.reverse):
                    if stream is not None:
                        yield stream.rate_fps, one.disturbance_s

    def largest_disturbance_s(self) -> float:
        """Of the valid trials that lost frames: only those lower the search's rate."""
        return max((disturbance_s for _, disturbance_s in self.failures()), default=0.0)

    def typical_disturbance_s(self) -> float:
        """The median over the valid trials. It bounds the error of a figure that is a median over them, if
        each trial's error is at most its own disturbance."""
        return median([one.disturbance_s for one in self.seen if one.is_valid] or [0.0])


@dataclass(frozen=True)
class Figure:
    """One figure of a procedure; true value, error and tolerable error are in ``unit``."""

    name: str
    unit: str
    true: float
    tolerable: float
    read: Callable[[Any], Iterator[float | None]]
    """Reads a value for each direction from the procedure's point."""
    error: Callable[[Evidence], float]


@dataclass(frozen=True)
class KnownTruth:
    """A reference DUT's properties, the conditions of the procedure, and the figures that follow."""

    properties: Properties
    conditions: Mapping[str, Any]
    figures: tuple[Figure, ...]
    inject_fault: Callable[[Faulty], None] | None = None
    """Fault of the DUT in each trial."""
    reset_s: float | None = None
    """Duration of a reset, if the procedure resets the DUT."""
    has_floor: bool = False
    """Whether the errors depend on the floor of the delay through the DUT."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further conditions of the long form."""


def highest_rate(name: str, unit: str, capacity: int, queue: int, of_point: Callable[[Any], Statistics]) -> Figure:
    """The highest rate without loss, of a DUT with a capacity and a queue, in trials of ``SEARCH_S``. The queue holds
    what exceeds the capacity (docs/accuracy.md).

    What is late arrives in a burst, which takes a part of the queue. So the true value is above a rate that lost some
    by at most the rate that the burst stands for. A burst longer than the queue says nothing.
    """
    true = capacity + (queue + 1) / SEARCH_S

    def error(evidence: Evidence) -> float:
        bursts = [(rate, rate * disturbance_s) for rate, disturbance_s in evidence.failures()]
        highest = min((rate + burst / SEARCH_S for rate, burst in bursts if burst < queue), default=2 * true)
        value = of_point(evidence.point).median or 0
        return max(0.0, highest - value) + (SENDING_TIME_SLACK_S * capacity + 1) / SEARCH_S

    return Figure(name, unit, true, 0.02 * true, lambda point: iter([of_point(point).median]), error)


def median_of(member: str) -> Callable[[Any], Iterator[float | None]]:
    """Reads the median of a point's figure."""
    return lambda point: iter([getattr(point, member).median])


def medians_of(name: str) -> Callable[[Any], Iterator[float | None]]:
    """Reads the median of a figure of each direction."""
    return lambda point: (figures[name].median for figures in (point.forward, point.reverse) if figures)


def delayed(evidence: Evidence) -> float:
    """Error in ms: the floor of the delay through the DUT, and a histogram bucket to either side."""
    return evidence.floor_s * 1e3 + 2 * BUCKET * DELAY_MS


def of_delays(properties: Properties, *figures: Figure, **conditions: Any) -> KnownTruth:
    """One disturbed trial does not change a median over repetitions."""
    usual = {"rate": fps(DELAY_FPS), "duration_s": 0.5, "repetitions": 3}
    more = {"duration_s": conditions.get("duration_s", 0.5) * 2, "repetitions": 5}
    return KnownTruth(properties, usual | conditions, figures, has_floor=True, more=more)


def fps(rate: int) -> Rate:
    """A rate in frames/s or connections/s."""
    return Rate(value=rate, unit="fps")
