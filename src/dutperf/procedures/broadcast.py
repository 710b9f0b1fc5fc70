# SPDX-License-Identifier: Apache-2.0
"""Broadcast frames: the highest rate at which a switch forwards every broadcast to every other port, and their delay
(RFC 2889 section 5.10).

A search as for the throughput. A trial passes if a copy of each broadcast arrives at each port but the sender's. At
one of these ports every copy is told from the others and timed; at the rest they are counted. Each repetition times
the next port. Delays are those of the trial at the highest rate that passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from dutperf.model import FRAME_SIZE, Case, LimitedBy, Load, Trial, TrialResult
from dutperf.model.digits import lost_share
from dutperf.procedures import evidence, repeated_searches, searches
from dutperf.procedures.base import Prior
from dutperf.procedures.bench import Place, Plan
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.load_latency import DelayFigures
from dutperf.procedures.repeated_searches import Offered, RateSearches, SearchFinding, SearchPoint, UpperBound
from dutperf.procedures.searches import SearchRange
from dutperf.results import deviations
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row, Trials, cell
from dutperf.results.statistics import Repetitions, Statistics, statistics
from dutperf.search import Outcome
from dutperf.search.binary import Search, SearchResult
from dutperf.setup.conditions import (
    Conditions,
    WithDuration,
    WithFrameSizes,
    WithPattern,
    WithPorts,
    WithRepetitions,
    WithSettling,
    WithTolerance,
)
from dutperf.setup.option import Option
from dutperf.traffic import switches


class Broadcast(
    SearchRange,
    WithDuration,
    WithTolerance,
    WithPattern,
    WithRepetitions,
    WithSettling,
    WithPorts,
    Conditions,
    WithFrameSizes,
):
    """Conditions of a broadcast measurement."""

    sending_port: Annotated[
        str | None,
        Option(
            "Port that sends the broadcasts. Default: the first of the configuration",
            label="sending port",
            metavar="PORT",
        ),
    ] = None


class BroadcastFinding(SearchFinding):
    """The result of a repetition's search."""

    timed_port: str
    delay_us: DelayFigures | None
    """Of the trial at the lower bound, at that port; None: nothing passed."""


class BroadcastProcedure(RateSearches[Broadcast]):
    begins_near_the_last = False

    def __init__(self, plan: Plan[Broadcast]) -> None:
        self._audience = self._now_timed = switches.audience(plan.traffic.setup, plan.conditions.sending_port)
        super().__init__(plan)

    def maximum_fps(self, case: Case) -> int | None:
        """Of the sending port, beside its frames to the other ports themselves."""
        media_fps, controls = self.plan.traffic.path_maximum_fps(case), len(self._audience.controls())
        return None if media_fps is None else int(media_fps / (1 + controls * switches.BROADCAST_CONTROL_SHARE))

    def limits(self, case: Case) -> dict[str, Any]:
        return {
            "sending_port": self._audience.sender,
            "receiving_ports": [self._audience.timed, *self._audience.others],
            **super().limits(case),
        }

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        made = switches.broadcast(
            self.plan.traffic.setup, self.conditions, case[FRAME_SIZE], self._now_timed, load.value, number
        )
        question = searches.question(self.conditions, self._bounds[case], load.value)
        made = made.model_copy(update={"question": question})
        return made if duration_s is None else made.lasting(duration_s)

    def new_search(self, place: Place, prior: Prior) -> Search:
        self._now_timed = self._audience.turned(place.repetition - 1)
        return super().new_search(place, prior)

    def outcome(self, result: TrialResult) -> Outcome:
        found = evidence.outcome_of(result, self.conditions)
        lost = any(ratio > self.conditions.loss_tolerance for ratio in self._copies_lost(result).values())
        return Outcome.FAILED if found is Outcome.PASSED and lost else found

    def shortcoming(self, result: TrialResult) -> str:
        copies = [
            f"{port} did not receive {lost_share(ratio)} of the broadcasts"
            for port, ratio in self._copies_lost(result).items()
            if ratio
        ]
        own = [super().shortcoming(result)] if result.worst_loss_ratio or not copies else []
        return ", ".join(own + copies)

    def _copies_lost(self, result: TrialResult) -> dict[str, float]:
        """Share of the broadcasts of which no copy was counted at each port that only counts."""
        counts = result.directions().get(self._now_timed.path)
        if counts is None or not counts.sent:
            return {}
        arrived = counts.misdelivered or {}
        return {port: max(0, counts.sent - arrived.get(port, 0)) / counts.sent for port in self._now_timed.others}

    def finding(
        self, members: dict[str, Any], case: Case, result: SearchResult, offered: Sequence[Offered]
    ) -> BroadcastFinding:
        passed = [one for one in offered if one.value == result.lower_bound and one.outcome is Outcome.PASSED]
        counts = passed[-1].result.directions()[self._now_timed.path] if passed else None
        delays = None if counts is None else counts.delay_us
        figures = None if delays is None else DelayFigures.of(delays)
        return BroadcastFinding(**members, timed_port=self._now_timed.timed, delay_us=figures)


class BroadcastPoint(SearchPoint):
    """A case and its broadcast forwarding rate."""

    less_is_better: ClassVar[Sequence[str]] = ("delay_us.*",)
    figure: ClassVar[str] = "broadcast_fps"
    in_headline: ClassVar[str] = "broadcasts/s"
    what: ClassVar[str] = "Broadcast forwarding rate"
    label: ClassVar[str] = "broadcasts, frames/s"
    drawn_over_cases: ClassVar[bool] = True
    title: ClassVar[str] = "broadcast forwarding rate, frames/s of the sending port; delays at it in µs"
    columns: ClassVar[Row] = ("at port", "median", "p1", "p99", "copies/s", "min", "delay", "p99 delay", "limited by")
    implied: ClassVar[Sequence[str]] = ("copies_fps",)

    broadcast_fps: Statistics
    copies_fps: float | None
    """The median times the receiving ports."""
    delay_us: dict[str, dict[str, Statistics]]
    """By receiving port, of the repetitions that timed it; without those that none did."""
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    repetitions: Repetitions
    trials: Trials

    def rows(self) -> list[Row]:
        rate = (*self.broadcast_fps.cells(",.0f"), cell(self.copies_fps, ",.0f"))
        limit = self.limited_by or "-"
        return [
            (port, *rate, *(cell(delays[name].median, ",.1f") for name in ("min", "p50", "p99")), limit)
            for port, delays in self.delay_us.items()
        ] or [("-", *rate, "-", "-", "-", limit)]


def point(recorded: Recorded) -> BroadcastPoint:
    broadcast_fps, members = repeated_searches.found(recorded, BroadcastFinding)
    found, rule = recorded.of(BroadcastFinding), recorded.conditions.every.repetitions
    ports: list[str] = recorded.limits["receiving_ports"]
    timed = {port: [one.delay_us for one in found if one.timed_port == port and one.delay_us] for port in ports}
    delay_us = {
        port: {name: statistics([getattr(one, name) for one in delays], rule) for name in DelayFigures.model_fields}
        for port, delays in timed.items()
        if delays
    }
    median = broadcast_fps.median
    return BroadcastPoint(
        **members,
        broadcast_fps=broadcast_fps,
        copies_fps=None if median is None else median * len(ports),
        delay_us=delay_us,
    )


RULES = deviations.rules(Clause("RFC 8219 section 12", deviations.single_iteration), any_size=True)


PROCEDURE = Definition(
    name="broadcast",
    summary="Search for the rate of broadcasts (RFC 2889 5.10).",
    chapter=Chapter.TABLES,
    example="--lab linux-bridge --lab-option ports=4 --max-rate 20k --duration 5 --repetitions 3",
    simulated={"max_rate": "70k", "resolution": "5%", "repetitions": 2},
    conditions=Broadcast,
    make=BroadcastProcedure,
    point=point,
    rules=tuple(rule for rule in RULES if rule not in (deviations.HEADERS_RULE, deviations.NETWORKS_RULE)),
)
