# SPDX-License-Identifier: Apache-2.0
"""Maximum connection establishment rate: the highest rate at which a stateful DUT opens all connections
(RFC 9693 sections 4.5, 4.6).

Each trial begins with an empty connection tracking table. The Initiator sends one frame in each of the
connections at the rate R, each with a four tuple of its own; they last for N / R. That all of them arrive proves
nothing yet: a DUT with a full table may pass frames without an entry, or evict other entries for them. So the
Responder then sends one reply in each connection, at the rate alpha * R. The trial passes if all frames and all
replies arrive. ``reply_share`` 0 leaves out this validation.

The connections whose replies were lost are asked once more, at a quarter of the rate of the replies: those whose
reply is lost again are gone, in the others a frame was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from dutperf.journal import ResultEvent
from dutperf.judge.rules import SENDING_TIME_SLACK_S
from dutperf.lab.refdut import NatProperties
from dutperf.model import Case, LimitedBy, Load, Trial, TrialResult, Unit, Verdict
from dutperf.procedures import repeated_searches, stateful
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import QUEUE_FRAMES, Evidence, Figure, KnownTruth, fps, median_of
from dutperf.procedures.repeated_searches import RateSearches, SearchPoint, UpperBound
from dutperf.procedures.stateful import Validated
from dutperf.results import deviations
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row, Trials
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import Bounds


class EstablishmentRate(Validated):
    """Conditions of a measurement of the maximum connection establishment rate."""


class EstablishmentRateProcedure(RateSearches[EstablishmentRate]):
    unit = Unit.CONNECTIONS_PER_SECOND

    def bounds_of(self, case: Case) -> Bounds:
        return stateful.bounds(self.plan, self.conditions, self.conditions.reply_share)

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        """The connections and the rate set the duration."""
        return stateful.trial(
            self.plan, self.conditions, case, load.value, number, reply_share=self.conditions.reply_share
        )


class EstablishmentPoint(SearchPoint):
    """A case and its maximum connection establishment rate."""

    figure: ClassVar[str] = "establishment_cps"
    in_headline: ClassVar[str] = Unit.CONNECTIONS_PER_SECOND
    what: ClassVar[str] = "Connection establishment rate"
    label: ClassVar[str] = f"establishment rate, {Unit.CONNECTIONS_PER_SECOND.label}"
    drawn_over_cases: ClassVar[bool] = True
    title: ClassVar[str] = "maximum connection establishment rate, connections/s"
    columns: ClassVar[Row] = ("connections", "validated", "median", "p1", "p99", "dispersion", "limited by")

    connections: int
    """That each trial opened."""
    validated: bool
    """Whether each connection had to pass a reply (RFC 9693 section 4.6)."""
    establishment_cps: Statistics
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    after_loss: str
    """At the upper bound: whether connections were gone, or only frames lost; empty where neither is known."""
    dut_connections: int | None
    """Connections that the DUT counted itself in the trial at the highest rate that passed, after they were opened;
    None: it does not count them, or nothing passed."""
    repetitions: Repetitions
    trials: Trials

    def rows(self) -> list[Row]:
        figures = self.establishment_cps
        dispersion = "-" if figures.dispersion_percent is None else f"{figures.dispersion_percent:.2f} %"
        validated = "yes" if self.validated else "no"
        return [(f"{self.connections:,}", validated, *figures.cells(",.0f"), dispersion, self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        if self.upper_bound is not None and self.upper_bound.sentence():
            yield f": {self.upper_bound.sentence()}"
        if self.after_loss:
            yield f": {self.after_loss}"
        if self.dut_connections is not None:
            yield f": the DUT itself counted {self.dut_connections:,} connections at the highest rate that passed"
        yield from super().remarks()


def point(recorded: Recorded) -> EstablishmentPoint:
    establishment_cps, members = repeated_searches.found(recorded)
    results = recorded.of(ResultEvent)
    return EstablishmentPoint(
        **members,
        connections=recorded.conditions.connections,
        validated=recorded.conditions.reply_share > 0,
        establishment_cps=establishment_cps,
        after_loss=_after_loss(results, members["upper_bound"]),
        dut_connections=_counted_by_dut(results),
    )


def _after_loss(results: Sequence[ResultEvent], upper: UpperBound | None) -> str:
    at_bound: list[TrialResult] = [
        event.result
        for event in results
        if upper is not None and event.load == upper.load and event.result.connections_probed
    ]
    return stateful.left_after(at_bound[-1]) if at_bound else ""


def _counted_by_dut(results: Sequence[ResultEvent]) -> int | None:
    """Of the trial at the highest load that passed."""
    passed = [
        event
        for event in results
        if event.result.verdict is Verdict.VALID and not event.result.worst_loss_ratio and event.result.ended_in is None
    ]
    return max(passed, key=lambda event: event.load.value).result.dut_connections if passed else None


def _not_validated(facts: Facts) -> str | None:
    return "the connections were not validated" if not facts.conditions.reply_share else None


RULES = deviations.rules(
    Clause("RFC 9693 section 4.6", _not_validated),
    Clause("RFC 9693 section 6", deviations.few_repetitions),
    any_size=True,
)


# --- a DUT whose truth is known ------------------------------------------------------------------

CONNECTIONS, ESTABLISHED_CPS = 5_000, 20_050
"""Opened in a quarter of a second; the DUT's queue holds new connections as it holds the frames of a throughput
trial."""
LOWEST_CPS, HIGHEST_CPS, RESOLUTION_CPS = 20_500, 24_000, 100


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

    return Figure("establishment rate", "connections/s", true, 0.02 * true, median_of("establishment_cps"), error)


def _known_truth() -> KnownTruth:
    return KnownTruth(
        NatProperties(establishment_cps=ESTABLISHED_CPS, establishment_queue=QUEUE_FRAMES),
        {
            "connections": CONNECTIONS,
            "min_rate": fps(LOWEST_CPS),
            "max_rate": fps(HIGHEST_CPS),
            "resolution": fps(RESOLUTION_CPS),
        },
        (_establishment(),),
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name="establishment-rate",
    summary="Search for the rate of connections (RFC 9693 4.5, 4.6).",
    chapter=Chapter.CONNECTIONS,
    example="--lab nft-nat44 --connections 2000 --max-rate 20k --resolution 10% --repetitions 1",
    simulated={"max_rate": "70k", "resolution": "5%"},
    known_truth=_known_truth,
    conditions=EstablishmentRate,
    make=EstablishmentRateProcedure,
    point=point,
    rules=RULES,
)
