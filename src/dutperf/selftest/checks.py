# SPDX-License-Identifier: Apache-2.0
"""The checks of the self-test: for each procedure the properties of the reference DUT, short conditions,
and the true value and error of each figure.

docs/accuracy.md derives the errors. They depend on ``Evidence``: the disturbances of the trials behind
a figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from dutperf.lab.refdut import NatProperties, Properties
from dutperf.procedures import (
    back_to_back,
    establishment_rate,
    frame_loss,
    ipdv,
    latency,
    load_latency,
    pdv,
    ramp,
    recovery,
    reset,
    soak,
    table_capacity,
    teardown_rate,
    throughput,
    traffic,
)
from dutperf.procedures.definition import Definition
from dutperf.selftest.findings import Finding, judge
from dutperf.selftest.ground_truth import FaultInjection, ObservedTrial
from dutperf.setup.conditions import Rate
from dutperf.tester.validity import SENDING_TIME_SLACK_S

BUCKET = 0.000125
"""Maximum relative error of a delay, to either side (the engine's histogram)."""
FRAME_SIZE = 84
DRAIN_S = 0.3

CAPACITY_FPS = 20_050
SEARCH_S = 0.25
"""Near the capacity, losses of the DUT cannot be distinguished from losses by the tester's own late
bursts. Short trials often have no such burst."""
LOWEST_FPS, HIGHEST_FPS, RESOLUTION_FPS = 20_000, 24_000, 200
"""The steps of the first search avoid the true value: next to it a trial loses one frame or none."""
QUEUE_FRAMES = 500
"""The frames that arrive during a stall of 20 ms."""
BURST_CAPACITY_FPS, BURST_RATE_FPS = 5_000, 10_000
BURST_RESOLUTION = 0.02
LOST_EVERY = 10
DELAY_FPS = 2_000
DELAY_MS = 20.0
DELAYED_EVERY = 100
CHANGED_EVERY = 3
CHANGE_FPS = 200
"""Four frames arrive while one is delayed: two of them overtake it, and no change depends on their order."""
RECOVERY_FPS = 2_000
RECOVERY_S = 0.4
OVERLOAD_S = 0.5
STALL_AT_S = 0.05
RAMP_FROM_FPS, RAMP_TO_FPS, RAMP_S = 2_000, 20_000, 1.0
RAMP_CAPACITY_FPS = 8_000
RESET_FPS = 1_000
RESET_S = 3.0
"""Stall and reset lose more than half of a trial's frames: late frames cannot cause so much loss
(validity.py)."""

CONNECTIONS, ESTABLISHED_CPS = 5_000, 20_050
"""Opened in a quarter of a second; the DUT's queue holds new connections as it holds the frames of a throughput
trial."""
LOWEST_CPS, HIGHEST_CPS, RESOLUTION_CPS = 20_500, 24_000, 100
TABLE, FIRST_CONNECTIONS, MOST_CONNECTIONS = 777, 300, 2_000
TABLE_CPS = 5_000
"""So slow that no disturbance costs the DUT a connection."""
DELETED, DELETED_CPS = 10_000, 10_000
DELETION_SLACK_S = 0.01
"""By which this process may notice the end of a deletion too late."""


@dataclass(frozen=True)
class Evidence:
    """What the error of a figure depends on."""

    point: Any
    """The procedure's point."""
    seen: Sequence[ObservedTrial]
    """Its trials."""
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

    def judged(self, procedure: str, evidence: Evidence) -> Finding:
        """Judges the direction that is farther from the true value."""
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
    """One procedure on a reference DUT with known properties."""

    definition: Definition
    properties: Properties
    conditions: Mapping[str, Any]
    figures: tuple[Figure, ...]
    inject_fault: FaultInjection | None = None
    """Fault of the DUT in each trial."""
    reset_s: float | None = None
    """Duration of a reset, if the procedure resets the DUT."""
    has_floor: bool = False
    """Whether the errors depend on the floor of the delay through the DUT."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further conditions of the long form."""

    @property
    def name(self) -> str:
        """The procedure's name."""
        return self.definition.name

    @property
    def lab(self) -> str:
        """The reference DUT that has the properties."""
        return "refdut-nat44" if isinstance(self.properties, NatProperties) else "refdut-ipv4"

    def chosen(self, *, quick: bool) -> dict[str, Any]:
        """The conditions of its short or long form."""
        usual = {"frame_sizes": (FRAME_SIZE,), "drain_s": DRAIN_S, "repetitions": 1}
        return usual | dict(self.conditions) | ({} if quick else dict(self.more))


def directions(point: Any, *names: str) -> Iterator[Any]:
    """Members of the figures of each direction that has any."""
    for figures in (point.forward, point.reverse):
        if figures:
            yield from (figures[name] for name in names)


def delayed(evidence: Evidence) -> float:
    """Error in ms: the floor of the delay through the DUT, and a histogram bucket to either side."""
    return evidence.floor_s * 1e3 + 2 * BUCKET * DELAY_MS


def _throughput() -> Figure:
    """The queue holds the frames above the capacity (docs/accuracy.md).

    Late frames arrive in a burst, which takes a part of the queue. So the true value is above a rate
    that lost frames by at most the rate that the burst stands for. A burst longer than the queue says
    nothing.
    """
    true = CAPACITY_FPS + (QUEUE_FRAMES + 1) / SEARCH_S

    def error(evidence: Evidence) -> float:
        bursts = [(rate_fps, rate_fps * disturbance_s) for rate_fps, disturbance_s in evidence.failures()]
        highest = min(
            (rate_fps + burst / SEARCH_S for rate_fps, burst in bursts if burst < QUEUE_FRAMES), default=2 * true
        )
        value = evidence.point.throughput_fps.median or 0
        return max(0.0, highest - value) + (SENDING_TIME_SLACK_S * CAPACITY_FPS + 1) / SEARCH_S

    return Figure("throughput", "frames/s", true, 0.02 * true, lambda point: iter([point.throughput_fps.median]), error)


def _burst() -> Figure:
    """A burst of n frames at a rate R leaves n - n C / R of them in the DUT, which holds the queue and the
    frame in service."""
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


def _loss_of_trials() -> Figure:
    """Every trial of a soak loses the same share."""

    def read(point: Any) -> Iterator[float | None]:
        return (ratio * 100 for ratio in point.loss_ratio.values if ratio is not None)

    return Figure("loss of each trial", "%", 100 / LOST_EVERY, 0.01, read, lambda _: 1e-9)


def _loss_of_parts() -> Figure:
    """Every part of traffic by hand loses the same share, in either direction."""

    def read(point: Any) -> Iterator[float | None]:
        return (
            ratio * 100
            for at in point.rates
            for one in at.loss_ratio.values()
            for ratio in one.values
            if ratio is not None
        )

    return Figure("loss of each part", "%", 100 / LOST_EVERY, 0.01, read, lambda _: 1e-9)


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


def _change(name: str, member: str, sign: int) -> Figure:
    """Into a delayed frame and out of it. A maximum over few changes is sensitive to disturbances."""

    def error(evidence: Evidence) -> float:
        return delayed(evidence) + evidence.typical_disturbance_s() * 1e3

    return Figure(
        name,
        "ms",
        sign * DELAY_MS,
        0.25 * DELAY_MS,
        lambda point: (one.median for one in directions(point, member)),
        error,
    )


def _delay_at_loads() -> Figure:
    """The DUT delays every frame by as much, at each load."""

    def read(point: Any) -> Iterator[float | None]:
        return (delays["p50"].median / 1000 for at in point.loads for delays in at.delay_us.values())

    return Figure("median delay at each load", "ms", DELAY_MS, 0.1 * DELAY_MS, read, delayed)


def _recovery() -> Figure:
    """The stall ends this long after the rate change; the queue has room as soon as a frame was served."""

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


def _first_loss() -> Figure:
    """Above the capacity the DUT's backlog grows with the square of the excess r: r^2 / 2 / slope of the
    ramp. The first frame is lost when it fills the queue. A late burst takes a part of the queue. The
    result is known to a 250th of the ramp, or as the point says."""
    slope = (RAMP_TO_FPS - RAMP_FROM_FPS) / RAMP_S

    def excess_fps(backlog: float) -> float:
        return math.sqrt(2 * slope * max(0.0, backlog))

    true = RAMP_CAPACITY_FPS + excess_fps(QUEUE_FRAMES + 1)

    def error(evidence: Evidence) -> float:
        burst = RAMP_TO_FPS * evidence.largest_disturbance_s()
        uncertain = float(evidence.point.uncertainty_fps or 0.0) + slope / RAMP_TO_FPS
        return uncertain + excess_fps(QUEUE_FRAMES + 1) - excess_fps(QUEUE_FRAMES + 1 - burst)

    return Figure("first loss", "frames/s", true, 0.05 * true, lambda point: iter([point.first_loss_fps.median]), error)


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


def _establishment() -> Figure:
    """As for throughput, but the number of connections is given, not the time. At a rate R the last of n
    connections finds n - C (n - 1) / R of them unestablished."""
    spare = CONNECTIONS - QUEUE_FRAMES - 1
    true = ESTABLISHED_CPS * (CONNECTIONS - 1) / spare

    def error(evidence: Evidence) -> float:
        bursts = [(rate_cps, rate_cps * disturbance_s) for rate_cps, disturbance_s in evidence.failures()]
        of_one = ESTABLISHED_CPS * CONNECTIONS / spare**2
        highest = min(
            (rate_cps + burst * of_one for rate_cps, burst in bursts if burst < QUEUE_FRAMES), default=2 * true
        )
        value = evidence.point.establishment_cps.median or 0
        return max(0.0, highest - value) + (SENDING_TIME_SLACK_S * ESTABLISHED_CPS + 1) * of_one

    return Figure(
        "establishment rate",
        "connections/s",
        true,
        0.02 * true,
        lambda point: iter([point.establishment_cps.median]),
        error,
    )


def _capacity() -> Figure:
    return Figure("capacity", "connections", TABLE, 1, lambda point: iter([point.capacity.median]), lambda _: 0.0)


def _teardown() -> Figure:
    """The DUT deletes at a fixed rate; the request and its answer take a part of the measured time."""

    def error(evidence: Evidence) -> float:
        own_s = (evidence.point.empty_s.median or 0.0) + DELETION_SLACK_S
        return DELETED_CPS * own_s * DELETED_CPS / DELETED

    return Figure(
        "tear-down rate",
        "connections/s",
        DELETED_CPS,
        0.03 * DELETED_CPS,
        lambda point: iter([point.teardown_cps.median]),
        error,
    )


def _delays(definition: Definition, properties: Properties, *figures: Figure, **conditions: Any) -> Check:
    """One disturbed trial does not change a median over repetitions."""
    usual = {"rate": _fps(DELAY_FPS), "duration_s": 0.5, "repetitions": 3}
    more = {"duration_s": conditions.get("duration_s", 0.5) * 2, "repetitions": 5}
    return Check(definition, properties, usual | conditions, figures, has_floor=True, more=more)


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
        },
        (_burst(),),
        more={"repetitions": 3},
    ),
    _delays(latency.PROCEDURE, Properties(delay_ms=DELAY_MS), _typical(), tags=500, tag_after_s=0.1),
    _delays(pdv.PROCEDURE, Properties(extra_delay_every=DELAYED_EVERY, extra_delay_ms=DELAY_MS), _variation()),
    _delays(
        ipdv.PROCEDURE,
        Properties(extra_delay_every=CHANGED_EVERY, extra_delay_ms=DELAY_MS),
        _change("largest change", "max", 1),
        _change("smallest change", "min", -1),
        rate=_fps(CHANGE_FPS),
    ),
    _delays(load_latency.PROCEDURE, Properties(delay_ms=DELAY_MS), _delay_at_loads(), loads=(0, 50, 100)),
    Check(
        soak.PROCEDURE,
        Properties(loss_every=LOST_EVERY),
        {"rate": _fps(2_000), "duration_s": 0.5, "soak_s": 1.5, "target": 0.5},
        (_loss_of_trials(),),
    ),
    Check(
        traffic.PROCEDURE,
        Properties(loss_every=LOST_EVERY),
        {"rate": _fps(2_000), "duration_s": 0.5},
        (_loss_of_parts(),),
    ),
    Check(
        ramp.PROCEDURE,
        Properties(capacity_fps=RAMP_CAPACITY_FPS, queue=QUEUE_FRAMES),
        {**_ONE_WAY, "from_rate": _fps(RAMP_FROM_FPS), "to_rate": _fps(RAMP_TO_FPS), "duration_s": RAMP_S},
        (_first_loss(),),
    ),
    Check(
        recovery.PROCEDURE,
        Properties(capacity_fps=RECOVERY_FPS, queue=20),
        {**_ONE_WAY, **_OVERLOADED},
        (_recovery(),),
        inject_fault=lambda dut: dut.stall(OVERLOAD_S + RECOVERY_S - STALL_AT_S, after_s=STALL_AT_S),
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
    Check(
        establishment_rate.PROCEDURE,
        NatProperties(establishment_cps=ESTABLISHED_CPS, establishment_queue=QUEUE_FRAMES),
        {
            "connections": CONNECTIONS,
            "min_rate": _fps(LOWEST_CPS),
            "max_rate": _fps(HIGHEST_CPS),
            "resolution": _fps(RESOLUTION_CPS),
        },
        (_establishment(),),
        more={"repetitions": 3},
    ),
    Check(
        table_capacity.PROCEDURE,
        NatProperties(connections=TABLE),
        {
            "first_connections": FIRST_CONNECTIONS,
            "most_connections": MOST_CONNECTIONS,
            "max_rate": _fps(TABLE_CPS),
            "resolution": Rate(value=50, unit="percent"),
        },
        (_capacity(),),
        more={"repetitions": 3},
    ),
    Check(
        teardown_rate.PROCEDURE,
        NatProperties(deletion_cps=DELETED_CPS),
        {"connections": DELETED, "preliminary_rate": _fps(10_000), "repetitions": 3},
        (_teardown(),),
    ),
)
