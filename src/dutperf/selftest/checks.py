# SPDX-License-Identifier: Apache-2.0
"""What the self-test measures: for each procedure a reference DUT with set properties, a short form
of the procedure, the truth and the error of each figure.

The errors are derived in docs/accuracy.md. ``Evidence`` holds what they depend on: the disturbances
of the very trials that a figure rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from dutperf.lab.refdut import Properties
from dutperf.procedures import back_to_back, frame_loss, ipdv, latency, pdv, recovery, reset, throughput
from dutperf.procedures.definition import Definition
from dutperf.selftest.findings import Finding, judge
from dutperf.selftest.ground_truth import Befall, Witnessed
from dutperf.setup.conditions import Rate
from dutperf.tester.validity import SENDING_TIME_SLACK_S

BUCKET = 0.000125
"""Share by which a delay is off at most, to either side (the engine's histogram)."""
FRAME_SIZE = 84
DRAIN_S = 0.3

CAPACITY_FPS = 20_050
SEARCH_S = 0.25
"""A trial near the capacity tells what is lost there from what the tester's own bursts cost only
where there is none: a short one often has none."""
LOWEST_FPS, HIGHEST_FPS, RESOLUTION_FPS = 20_000, 24_000, 200
"""The first search's steps do not fall upon the truth: next to it a trial loses a frame or none."""
QUEUE_FRAMES = 500
"""As much as comes in a standstill of 20 ms."""
BURST_CAPACITY_FPS, BURST_RATE_FPS = 5_000, 10_000
BURST_RESOLUTION = 0.02
LOST_EVERY = 10
DELAY_FPS = 2_000
DELAY_MS = 20.0
DELAYED_EVERY = 100
CHANGE_FPS = 40
"""A frame is over before the next one begins, so that delays do not overtake each other."""
RECOVERY_FPS = 2_000
RECOVERY_S = 0.4
OVERLOAD_S = 0.5
STALL_AT_S = 0.05
RESET_FPS = 1_000
RESET_S = 3.0
"""Stall and reset cost more than half of a trial's frames: so much loss cannot be the work of
frames that left late (validity.py)."""


@dataclass(frozen=True)
class Evidence:
    """What a figure's error depends on."""

    point: Any
    """The procedure's."""
    seen: Sequence[Witnessed]
    """Its trials."""
    floor_s: float = 0.0
    """What 99 of 100 frames need at most for the way through a DUT without delay, measured just
    before."""

    def failures(self) -> Iterator[tuple[int, float]]:
        """Of each valid trial that lost frames, the rate and the disturbance in seconds."""
        for one in self.seen:
            if one.is_valid and one.lost:
                for stream in (one.trial.forward, one.trial.reverse):
                    if stream is not None:
                        yield stream.rate_fps, one.disturbance_s

    def largest_disturbance_s(self) -> float:
        """Of the valid trials that lost frames: those alone tell a search to go down."""
        return max((disturbance_s for _, disturbance_s in self.failures()), default=0.0)

    def typical_disturbance_s(self) -> float:
        """The median of the valid trials: where a figure is the median of theirs, and each is off
        by its own disturbance at most, so much is the median off."""
        return median([one.disturbance_s for one in self.seen if one.is_valid] or [0.0])


@dataclass(frozen=True)
class Figure:
    """One figure of a procedure: true value, error and what of it can be borne are in ``unit``."""

    name: str
    unit: str
    true: float
    tolerable: float
    read: Callable[[Any], Iterator[float | None]]
    """From the procedure's point, a value for each direction."""
    error: Callable[[Evidence], float]

    def judged(self, procedure: str, evidence: Evidence) -> Finding:
        """Of the directions, the one that is farther from the truth."""
        values = (
            [value for value in self.read(evidence.point) if value is not None]
            if not evidence.point.limited_by_tester
            else []
        )
        measured = max(values, key=lambda value: abs(value - self.true), default=None)
        error = self.error(evidence)
        judgement, note = judge(measured, self.true, error, self.tolerable)
        return Finding(
            procedure=procedure,
            figure=self.name,
            unit=self.unit,
            measured=measured,
            true=self.true,
            stated_error=error,
            judgement=judgement,
            note=note,
        )


@dataclass(frozen=True)
class Check:
    """One procedure on a reference DUT that is known."""

    definition: Definition
    properties: Properties
    conditions: Mapping[str, Any]
    figures: tuple[Figure, ...]
    befall: Befall | None = None
    """What happens to the DUT in each trial."""
    reset_s: float | None = None
    """For how long it is reset where the procedure asks for that."""
    has_floor: bool = False
    """Whether the errors depend on the floor of the way through the DUT."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Conditions of the long form."""

    @property
    def name(self) -> str:
        """That of the procedure."""
        return self.definition.name

    def chosen(self, *, quick: bool) -> dict[str, Any]:
        """The conditions of its short or of its long form."""
        usual = {"frame_sizes": (FRAME_SIZE,), "drain_s": DRAIN_S, "repetitions": 1}
        return usual | dict(self.conditions) | ({} if quick else dict(self.more))


def directions(point: Any, *names: str) -> Iterator[Any]:
    """A member of each direction's figures, where there are some."""
    for figures in (point.forward, point.reverse):
        if figures:
            yield from (figures[name] for name in names)


def delayed(evidence: Evidence) -> float:
    """In ms: what the way through the DUT takes besides, and a histogram's bucket of either side."""
    return evidence.floor_s * 1e3 + 2 * BUCKET * DELAY_MS


def _throughput() -> Figure:
    """The queue takes up what exceeds the capacity (docs/accuracy.md).

    What was late came in a bunch, which takes a part of the queue: so the truth lies no higher
    above a rate that lost frames than that bunch is worth. One that the queue could not hold says
    nothing.
    """
    true = CAPACITY_FPS + (QUEUE_FRAMES + 1) / SEARCH_S

    def error(evidence: Evidence) -> float:
        bunches = [(rate_fps, rate_fps * disturbance_s) for rate_fps, disturbance_s in evidence.failures()]
        highest = min(
            (rate_fps + bunch / SEARCH_S for rate_fps, bunch in bunches if bunch < QUEUE_FRAMES), default=2 * true
        )
        value = evidence.point.throughput_fps.median or 0
        return max(0.0, highest - value) + (SENDING_TIME_SLACK_S * CAPACITY_FPS + 1) / SEARCH_S

    return Figure("throughput", "frames/s", true, 0.02 * true, lambda point: iter([point.throughput_fps.median]), error)


def _burst() -> Figure:
    """A burst of n frames at a rate R leaves n - n C / R of them in the DUT, which has room for the
    queue and the one in service."""
    true = (QUEUE_FRAMES + 1) / (1 - BURST_CAPACITY_FPS / BURST_RATE_FPS)

    def error(evidence: Evidence) -> float:
        return true * BURST_RESOLUTION + 2 + BURST_RATE_FPS * evidence.largest_disturbance_s()

    return Figure("longest burst", "frames", true, 0.15 * true, lambda point: iter([point.average_frames]), error)


def _loss() -> Figure:
    def read(point: Any) -> Iterator[float | None]:
        both = (
            figures
            for rate in point.rates
            for figures in (rate.loss_ratio.forward, rate.loss_ratio.reverse)
            if figures is not None
        )
        return (figures.median * 100 for figures in both if figures.median is not None)

    return Figure("frame loss", "%", 100 / LOST_EVERY, 0.01, read, lambda _: 1e-9)


def _typical() -> Figure:
    return Figure(
        "typical latency",
        "ms",
        DELAY_MS,
        0.1 * DELAY_MS,
        lambda point: (one.median for one in directions(point, "TL")),
        delayed,
    )


def _variation() -> Figure:
    return Figure(
        "PDV", "ms", DELAY_MS, 0.1 * DELAY_MS, lambda point: (one.median for one in directions(point, "PDV")), delayed
    )


def _change() -> Figure:
    """The largest of few changes is where a disturbance shows."""

    def error(evidence: Evidence) -> float:
        return delayed(evidence) + evidence.typical_disturbance_s() * 1e3

    return Figure(
        "largest change",
        "ms",
        DELAY_MS,
        0.25 * DELAY_MS,
        lambda point: (one.median for one in directions(point, "max")),
        error,
    )


def _recovery() -> Figure:
    """The stall ends so long after the rate changed; the queue has room as soon as a frame was
    served."""

    def error(evidence: Evidence) -> float:
        reduced_fps = RECOVERY_FPS * recovery.OVERLOAD_PERCENT // 100 * recovery.REDUCED_PERCENT // 100
        return 2 / reduced_fps + 2 / RECOVERY_FPS + evidence.floor_s + evidence.typical_disturbance_s()

    return Figure(
        "recovery time",
        "s",
        RECOVERY_S,
        0.02,
        lambda point: (one.median for one in directions(point, "recovery")),
        error,
    )


def _reset(name: str) -> Figure:
    def error(evidence: Evidence) -> float:
        return 2 / RESET_FPS + evidence.typical_disturbance_s()

    return Figure(
        f"reset time by {name.replace('_', ' ')}",
        "s",
        RESET_S,
        0.02,
        lambda point: (one.median for one in directions(point, name)),
        error,
    )


def _delays(definition: Definition, properties: Properties, figure: Figure, **conditions: Any) -> Check:
    """Medians over repetitions are what one disturbed trial does not move."""
    usual = {"rate": _fps(DELAY_FPS), "duration_s": 0.5, "repetitions": 3}
    more = {"duration_s": conditions.get("duration_s", 0.5) * 2, "repetitions": 5}
    return Check(definition, properties, usual | conditions, (figure,), has_floor=True, more=more)


def _fps(rate: int) -> Rate:
    return Rate(value=rate, unit="fps")


_ONE_WAY: dict[str, Any] = {"directions": "forward"}
_AROUND = {"min_rate": _fps(LOWEST_FPS), "max_rate": _fps(HIGHEST_FPS), "resolution": _fps(RESOLUTION_FPS)}
_OVERLOADED = {"rate": _fps(RECOVERY_FPS), "overload_s": OVERLOAD_S, "duration_s": 1.5, "repetitions": 3}

ALL: tuple[Check, ...] = (
    Check(
        throughput.PROCEDURE,
        Properties(capacity_fps=CAPACITY_FPS, queue=QUEUE_FRAMES),
        {**_ONE_WAY, **_AROUND, "duration_s": SEARCH_S},
        (_throughput(),),
        more={"repetitions": 3},
    ),
    Check(
        frame_loss.PROCEDURE,
        Properties(loss_every=LOST_EVERY),
        {"rates": (_fps(4_000), _fps(2_000)), "duration_s": 0.5},
        (_loss(),),
        more={"duration_s": 2.0, "repetitions": 3},
    ),
    Check(
        back_to_back.PROCEDURE,
        Properties(capacity_fps=BURST_CAPACITY_FPS, queue=QUEUE_FRAMES),
        {
            **_ONE_WAY,
            "rate": _fps(BURST_CAPACITY_FPS),
            "max_rate": _fps(BURST_RATE_FPS),
            "max_burst_s": 0.5,
            "burst_resolution": BURST_RESOLUTION,
            "duration_s": 0.5,
        },
        (_burst(),),
        more={"repetitions": 3},
    ),
    _delays(latency.PROCEDURE, Properties(delay_ms=DELAY_MS), _typical(), tags=500, tag_after_s=0.1),
    _delays(pdv.PROCEDURE, Properties(extra_delay_every=DELAYED_EVERY, extra_delay_ms=DELAY_MS), _variation()),
    _delays(ipdv.PROCEDURE, Properties(extra_delay_every=3, extra_delay_ms=DELAY_MS), _change(), rate=_fps(CHANGE_FPS)),
    Check(
        recovery.PROCEDURE,
        Properties(capacity_fps=RECOVERY_FPS, queue=20),
        {**_ONE_WAY, **_OVERLOADED},
        (_recovery(),),
        befall=lambda dut: dut.stall(OVERLOAD_S + RECOVERY_S - STALL_AT_S, after_s=STALL_AT_S),
        more={"repetitions": 5},
    ),
    Check(
        reset.PROCEDURE,
        Properties(),
        {"rate": _fps(RESET_FPS), "duration_s": 5.5, "reset_after_s": 1.0},
        (_reset("arrival_gap"), _reset("loss")),
        reset_s=RESET_S,
        more={"repetitions": 3},
    ),
)
