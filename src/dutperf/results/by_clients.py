# SPDX-License-Identifier: Apache-2.0
"""Results of a run whose trials no procedure chose, but clients of the Open Traffic Generator API (``dutperf otg``):
what became of each flow, by its rate.

The journal is that of every run, with ``trial`` and ``result`` around each trial in which flows were sent. What its
plan cannot know, because clients set it later, its findings have: ``configuration`` each time one was set or changed,
``ports`` where the tester opened others than the ``environment`` says, which stands before the first trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from dutperf.journal import Event, Finding, ResultEvent, TrialEvent
from dutperf.judge.setup_faults import limit_of
from dutperf.model import Axis, Case, Direction, DirectionCounts, LimitedBy, Load, TrialResult, Value, Verdict
from dutperf.results import points
from dutperf.results.deviations import Rule
from dutperf.results.points import MainFigure, Point, Recorded, Row, Trials, cell
from dutperf.results.statistics import Statistics, statistics
from dutperf.results.summary import Reader
from dutperf.setup.conditions import Conditions
from dutperf.spelling import count_of

CASE = Case({Axis("chosen_by", "", "by"): "OTG"})
"""The only one of such a run: who chose its trials."""
_DELAYS = ("p50", "p99", "max")


class ConfigurationFinding(Finding):
    """A client set or changed the configuration."""

    event: Literal["configuration"] = "configuration"
    number: int
    """From 1."""
    client: str
    """Its address; empty: unknown."""
    flows: dict[Direction, str]
    """The names of flows that its trials have, and those of the configuration."""
    configuration: dict[str, Any] | None
    """As the API has it; None: that of the event before."""


class PortsFinding(Finding):
    """The tester opened other ports, or in another way."""

    event: Literal["ports"] = "ports"
    tester: dict[str, Any]
    """As in ``environment``."""


class FlowFigures(Value):
    """A flow at a rate, all its trials together."""

    trials: int
    valid: int
    sent: int
    lost: int
    """In the valid trials."""
    loss_ratio: Statistics | None
    """Of the valid trials in which it was sent; None: there is none."""
    delay_us: dict[str, Statistics]
    """``p50``, ``p99`` and ``max`` of the valid trials; empty where frames were not stamped."""
    limited_by: LimitedBy | None
    """None where a trial was valid."""
    counted_as: Direction
    """Its name in the trials."""

    @classmethod
    def of(cls, sent: Sequence[tuple[Direction, TrialResult]]) -> FlowFigures:
        """Of the trials in which it was sent, and its name in each."""
        valid = [
            counts
            for direction, result in sent
            if result.verdict is Verdict.VALID and (counts := (result.other_streams or {}).get(direction)) is not None
        ]
        ratios = [counts.loss_ratio for counts in valid if counts.sent]
        return cls(
            trials=len(sent),
            valid=len(valid),
            sent=sum(counts.sent for counts in valid),
            lost=sum(counts.lost for counts in valid),
            loss_ratio=statistics(ratios, len(ratios)) if ratios else None,
            delay_us=_delays(valid),
            limited_by=None if valid else limit_of(sent[-1][1]),
            counted_as=sent[-1][0],
        )

    def cells(self, name: str) -> Row:
        """Under the columns behind the rate; ``name``: the flow's, with its size."""
        ratio = None if self.loss_ratio is None or self.loss_ratio.median is None else 100 * self.loss_ratio.median
        delays = (one.median if (one := self.delay_us.get(name)) is not None else None for name in _DELAYS)
        return (
            name,
            f"{self.valid:,} of {self.trials:,}",
            f"{self.lost:,}" if self.valid else "-",
            cell(ratio, ".3g"),
            *(cell(delay, ",.1f") for delay in delays),
            "" if name.startswith(f"{self.counted_as.stream}, ") else self.counted_as,
            "" if self.limited_by is None else self.limited_by.value,
        )


def _delays(counted: Sequence[DirectionCounts]) -> dict[str, Statistics]:
    each = [counts.delay_us for counts in counted if counts.delay_us is not None]
    return {name: statistics([getattr(one, name) for one in each], len(each)) for name in _DELAYS} if each else {}


class FlowsAtRate(Value):
    load: Load
    flows: dict[str, FlowFigures]
    """By name and mean frame size, in the order in which they were first sent."""


class ClientsPoint(Point):
    """What became of the flows of all configurations."""

    less_is_better: ClassVar[Sequence[str]] = ("*",)
    title: ClassVar[str] = "flows: loss and delays in µs of the median valid trial"
    columns: ClassVar[Row] = (
        *("rate", "flow", "valid trials", "lost", "lost, %", "median", "p99", "max"),
        *("counted as", "limited by"),
    )
    series: ClassVar[str | None] = "rates"

    rates: tuple[FlowsAtRate, ...]
    """Ascending."""
    limited_by: LimitedBy | None
    """None where a trial was valid."""
    trials: Trials

    @property
    def has_number(self) -> bool:
        return any(flow.loss_ratio is not None for at in self.rates for flow in at.flows.values())

    def main_figure(self) -> MainFigure:
        """The loss of all flows, and the longest median delay of one."""
        flows = [(name, one) for at in self.rates for name, one in at.flows.items() if one.loss_ratio is not None]
        lost, sent = sum(one.lost for _, one in flows), sum(one.sent for _, one in flows)
        medians = [one.delay_us["p50"].median or 0.0 for _, one in flows if one.delay_us]
        delay = f", a median delay of {max(medians):,.1f} µs at most" if medians else ""
        number = count_of(len({name for name, _ in flows}), "flow")
        return MainFigure(f"{number}: {lost:,} of {count_of(sent, 'frame')} lost{delay}")

    def rows(self) -> list[Row]:
        return [
            (f"{at.load.value:,}", *figures.cells(name)) for at in self.rates for name, figures in at.flows.items()
        ] or [("-",) * (len(self.columns) - 1) + ("",)]

    def loads_by_stream(self) -> tuple[Load, ...]:
        """None: each flow has its row."""
        return ()


def point(recorded: Recorded) -> ClientsPoint:
    sent: dict[int, dict[str, list[tuple[Direction, TrialResult]]]] = {}
    for rate_fps, flow, direction, result in _flows(recorded.events):
        sent.setdefault(rate_fps, {}).setdefault(flow, []).append((direction, result))
    counted = points.trials(recorded.of(ResultEvent))
    return ClientsPoint(
        case=recorded.case,
        rates=tuple(
            FlowsAtRate(
                load=Load.fps(rate_fps), flows={name: FlowFigures.of(each) for name, each in sent[rate_fps].items()}
            )
            for rate_fps in sorted(sent)
        ),
        limited_by=points.unmeasured_by(recorded.of(ResultEvent)) if sent and not counted.valid else None,
        trials=counted,
        message=_sentence(counted) if sent else "no flow was sent",
    )


def _flows(events: Sequence[Event]) -> Iterator[tuple[int, str, Direction, TrialResult]]:
    """Each flow of each trial that has ended: its rate in frames/s, its name with the size of its frames, its name in
    the trial, and the result."""
    names: dict[Direction, str] = {}
    trial = None
    for event in events:
        if isinstance(event, Finding) and event.event == ConfigurationFinding.name():
            names = ConfigurationFinding.of(event).flows
        elif isinstance(event, TrialEvent):
            trial = event.trial
        elif isinstance(event, ResultEvent) and trial is not None:
            for direction, stream in trial.streams().items():
                name = f"{names.get(direction, direction)}, {stream.mean_size:g} bytes"
                yield stream.rate_fps, name, direction, event.result


def _sentence(counted: Trials) -> str:
    number = counted.valid + counted.invalid + counted.aborted
    others = [f"{count:,} {name}" for name in ("invalid", "aborted") if (count := getattr(counted, name))]
    return f"{count_of(number, 'trial')}: {', '.join([f'{counted.valid:,} valid', *others])}"


READER = Reader(
    name="otg",
    conditions=Conditions,
    point=point,
    rules=(Rule("RFC 2544, RFC 8219", lambda _: "no procedure of theirs: clients chose frames, rates and trials"),),
)
