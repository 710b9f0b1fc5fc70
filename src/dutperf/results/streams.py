# SPDX-License-Identifier: Apache-2.0
"""Results of each stream, where a direction sends several or others have rates of their own: what was sent, lost and
how long it took, of the valid trials at a load. Made from the journal alone, for every procedure.

RFC 2544 and RFC 8219 know one stream in each direction: a procedure decides by all frames of a
direction, and these figures show which of its streams they came from, and what became of the load beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pydantic import Field

from dutperf.journal import ResultEvent, WaitEvent
from dutperf.model import Case, Direction, DirectionCounts, Load, StreamCounts, TrialResult, Value, Verdict
from dutperf.results import points
from dutperf.results.points import Point, Recorded
from dutperf.results.statistics import percentiles

Delays = Callable[[Recorded, DirectionCounts], Mapping[str, float] | None]
"""A trial's delays of one stream in milliseconds, by name; the counts have the stream's ``delay_us``."""
Counted = tuple[DirectionCounts, StreamCounts]
"""The counts of a stream in a trial, behind those of its direction."""


class DelayFigure(Value):
    """A figure of each trial's delays, over the trials; in milliseconds."""

    median: float
    p1: float
    p99: float


class StreamResult(Value):
    """A stream in the valid trials of a case at one load."""

    case: Case
    load: Load
    direction: Direction
    stream: str
    trials: int
    sent: int
    received: int
    lost: int
    """Sent frames that did not arrive intact and in time."""
    loss_ratio: float
    delay_ms: dict[str, DelayFigure] = Field(default_factory=dict)
    """By name; empty where frames were not stamped."""


def delays(_recorded: Recorded, counts: DirectionCounts) -> Mapping[str, float] | None:
    """The figures of procedures that do not measure delays, but stamp frames because of a frame
    timeout, or for a figure that no stream has by itself."""
    delay = counts.delay_us
    if delay is None:
        return None
    return {"min": delay.min / 1000, "median": delay.p50 / 1000, "p99.9": delay.p999 / 1000, "max": delay.max / 1000}


def of_case(recorded: Recorded, point: Point, of_trial: Delays) -> list[StreamResult]:
    """The streams of a case, at the loads that its point is about; none where no direction has
    several."""
    wanted = point.loads_by_stream()
    steady = points.without_waits(recorded.of(ResultEvent), recorded.of(WaitEvent))
    counted: dict[tuple[Load, Direction, str], list[Counted]] = {}
    for event in steady:
        if event.result.verdict is not Verdict.VALID or (wanted is not None and event.load not in wanted):
            continue
        for direction, name, counts in _each(event.result):
            counted.setdefault((event.load, direction, name), []).append(counts)
    loads = sorted({load for load, _, _ in counted}, reverse=True)
    return [
        _result(recorded, key, trials, of_trial)
        for load in loads
        for direction in dict.fromkeys(direction for _, direction, _ in counted)
        for key, trials in counted.items()
        if key[:2] == (load, direction)
    ]


def _each(result: TrialResult) -> Iterator[tuple[Direction, str, Counted]]:
    """Path and name of each stream: of several of a direction, and of those beside them."""
    for direction, counts in result.directions().items():
        for name, stream in counts.by_stream().items():
            yield direction, name, (counts, stream)
    for other, counts in (result.other_streams or {}).items():
        own = StreamCounts(sent=counts.sent, received=counts.received, delay_us=counts.delay_us)
        yield other.path, other.stream, (counts, own)


def _result(
    recorded: Recorded,
    key: tuple[Load, Direction, str],
    trials: Sequence[Counted],
    of_trial: Delays,
) -> StreamResult:
    load, direction, name = key
    sent, received = (sum(getattr(stream, member) for _, stream in trials) for member in ("sent", "received"))
    return StreamResult(
        case=recorded.case,
        load=load,
        direction=direction,
        stream=name,
        trials=len(trials),
        sent=sent,
        received=received,
        lost=sent - received,
        loss_ratio=(sent - received) / sent if sent else 0.0,
        delay_ms=dict(_delays(_as_directions(trials), recorded, of_trial)),
    )


def _as_directions(trials: Iterable[Counted]) -> Iterator[DirectionCounts]:
    """The counts as if the stream were alone in its direction: a procedure's definition of a figure then
    holds for a stream as well. Changes of the delay are those between frames of all streams."""
    for counts, stream in trials:
        yield counts.model_copy(update={"delay_us": stream.delay_us, "ipdv_us": None})


def _delays(
    trials: Iterable[DirectionCounts], recorded: Recorded, of_trial: Delays
) -> Iterator[tuple[str, DelayFigure]]:
    figures = [one for counts in trials if (one := of_trial(recorded, counts)) is not None]
    for name in figures[0] if figures else ():
        yield name, DelayFigure(**percentiles([one[name] for one in figures]))
