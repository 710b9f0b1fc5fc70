# SPDX-License-Identifier: Apache-2.0
"""DNS64 performance: the highest rate at which a DNS64 server answers every query in time (RFC 8219 section 9).

The tester asks the DUT for AAAA records, and answers the DUT's own questions as the authoritative server of the names.
A query counts as answered if an answer with the right AAAA record arrives within the timeout of its own; the tester
checks the record, not only that there is one. A trial passes where every query is answered.

No name is asked for twice, and none has an AAAA record of its own (0 % and 0 %: required). Other shares of cached names
and of names with an AAAA record are measured as further cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import model_validator

from dutperf.journal import ResultEvent, TrialEvent
from dutperf.judge.own_server import SHARE_OF_TIMEOUT
from dutperf.lab.refdut import Dns64Properties
from dutperf.model import (
    AAAA_NAMES,
    CACHED_NAMES,
    Case,
    Delays,
    Direction,
    DirectionCounts,
    LimitedBy,
    Load,
    Quantiles,
    ServerCounts,
    Trial,
    TrialResult,
    Unit,
    Value,
    Verdict,
)
from dutperf.model.digits import two_digits
from dutperf.procedures import evidence, looped_back, repeated_searches, searches
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.known_truth import SEARCH_S, KnownTruth, fps, highest_rate
from dutperf.procedures.looped_back import OptionalTesterAlone, TesterAlone
from dutperf.procedures.repeated_searches import RateSearches, SearchFinding, SearchPoint, UpperBound
from dutperf.procedures.searches import SearchRange
from dutperf.results import deviations
from dutperf.results.deviations import Facts
from dutperf.results.deviations import Rule as Clause
from dutperf.results.points import Recorded, Row, Trials
from dutperf.results.statistics import Repetitions, Statistics
from dutperf.search.binary import HIGHEST, Bounds, BoundsError
from dutperf.setup.conditions import Conditions, Settling, WithDuration, WithRepetitions, WithSettling
from dutperf.setup.given import default
from dutperf.setup.option import SEARCH, Option
from dutperf.setup.questions import TIMEOUT_S, WithQuestions
from dutperf.spelling import with_and

UPSTREAM_MARGIN = 0.02
"""Queries for each of the client's that the DUT may send less or more than it has to: a few that it repeats are not
worth a remark."""
USUAL_QUERIES = 2.0
"""That a DUT sends to the name server for a name that it does not know and that has no AAAA record."""


class Dns64(WithQuestions, SearchRange, WithDuration, WithRepetitions, WithSettling, Conditions):
    """Conditions of a measurement of a DNS64 server."""

    settle_s: Settling = 5.0
    """A DUT that was overloaded still asks for the names of the trial before."""
    self_test_from: Annotated[
        OptionalTesterAlone,
        Option(
            "Offer no higher rate than this self-test proves",
            clause="RFC 8219 section 9.2.1",
            label="self-test of the tester alone",
            metavar="DIR",
            panel=SEARCH,
        ),
    ] = default(None)

    @model_validator(mode="after")
    def _proves_enough(self) -> Self:
        tested = self.self_test_from
        if tested is not None and tested.timeout_s > SHARE_OF_TIMEOUT * self.timeout_s:
            raise ValueError(
                f"`self_test_from` has a timeout of {tested.timeout_s:g} s, longer than a quarter of `timeout_s`"
            )
        return self


class Dns64Procedure(RateSearches[Dns64]):
    unit = Unit.QUERIES_PER_SECOND

    def __init__(self, plan: Plan[Dns64]) -> None:
        super().__init__(plan)
        if plan.traffic.setup.other_name_server and self.conditions.self_test_from is not None:
            raise PlanError(
                "it proves the tester's own name server, but the DUT asks another one (dns64.addresses)",
                option="self_test_from",
            )

    def bounds_of(self, case: Case) -> Bounds:
        """Not above what the self-test proves."""
        found, tested = super().bounds_of(case), self.conditions.self_test_from
        if tested is None or tested.proves_qps >= (found.maximum or HIGHEST):
            return found
        try:
            return replace(found, maximum=tested.proves_qps, maximum_is_media=False)
        except BoundsError as error:
            text = f"it proves up to {tested.proves_qps:,} queries/s: {error}"
            raise PlanError(text, option="self_test_from") from None

    def limits(self, case: Case) -> dict[str, Any]:
        alone = {"looped_back": True} if self.plan.traffic.setup.is_looped_back else {}
        return super().limits(case) | alone

    def trial(self, case: Case, load: Load, number: int, duration_s: float | None = None) -> Trial:
        question = searches.question(self.conditions, self._bounds[case], load.value)
        return super().trial(case, load, number, duration_s).model_copy(update={"question": question})

    def shortcoming(self, result: TrialResult) -> str:
        return with_and(_unanswered(one) for one in result.directions().values())

    def nothing_came(self, result: TrialResult) -> str:
        seen = [_unanswered(one) for one in result.directions().values()]
        seen += [_asked(result.server, self._zone)]
        return f"no query has a right answer: {'; '.join(seen + evidence.instead(result))}"

    @property
    def _zone(self) -> str:
        dut = self.plan.traffic.setup.dns64
        assert dut is not None, "the traffic is checked"
        return dut.zone

    def all_passed(self, case: Case, limited_by: LimitedBy) -> str:
        highest, tested = Load(self._bounds[case].highest, self.unit), self.conditions.self_test_from
        if tested is not None and tested.proves_qps == highest.value:
            return f"{highest} passed, the highest rate that the self-test proves"
        return f"the {'media' if limited_by is LimitedBy.MEDIA else 'search'}'s maximum rate, {highest}, passed"


def _unanswered(counts: DirectionCounts) -> str:
    """``12 of 30,000 queries (0.04 %) had no right answer in time: 3 late, 2 servfail``."""
    kinds = [f"{counts.late:,} late"] if counts.late else []
    kinds += [counts.answers.in_words()] if counts.answers is not None and counts.answers.in_words() else []
    share = two_digits(counts.loss_ratio * 100)
    told = f": {', '.join(kinds)}" if kinds else ""
    return f"{counts.lost:,} of {counts.sent:,} queries ({share} %) had no right answer in time{told}"


def _asked(server: ServerCounts | None, zone: str) -> str:
    """What the DUT asked the tester's name server; None: it asks another one."""
    if server is None:
        return f"does it answer queries, and does the server that it asks for {zone} answer?"
    asked = server.queries
    parts = {
        "for AAAA": asked.aaaa,
        "for A": asked.a,
        "others": asked.other,
        "for unknown names": server.unknown,
        "out of the zone": server.refused,
        "malformed": server.malformed,
    }
    told = ", ".join(f"{count:,} {kind}" for kind, count in parts.items() if count)
    if told:
        over_tcp = f" ({server.tcp:,} over TCP)" if server.tcp else ""
        return f"it asked the tester's name server {told}{over_tcp}"
    return f"it asked the tester's name server nothing: does it answer queries, and ask there for {zone}?"


class UpstreamQueries(Value):
    """Queries that the DUT sent to the tester's name server at the highest rate that passed."""

    a: int
    aaaa: int
    other: int
    """About the zone, other types, unknown names, out of the zone."""
    tcp: int = 0
    """Of all queries, over TCP."""
    per_query: float
    """For each query of the client."""

    def remarks(self, needed: float) -> Iterator[str]:
        """``needed``: queries for each of the client's."""
        said = f": the DUT asked the tester's name server {self.per_query:.2f} times per query, not {needed:.2f}: it"
        if self.per_query < needed - UPSTREAM_MARGIN:
            yield f"{said} has names in its cache that should not be there, or asks another server too"
        if self.per_query > needed + UPSTREAM_MARGIN:
            yield (
                f"{said} has not cached the names that it should, retries, minimises names, asks for both types at"
                f" once, or for others ({self.other:,} of these)"
            )
        if self.tcp:
            yield f": the DUT asked the tester's name server over TCP: {self.tcp:,} queries of this trial"


class OtherNames(Value):
    """Names of another name server's, and how many of them all trials so far had asked for."""

    names: int
    asked: int

    def remarks(self) -> Iterator[str]:
        """What is not known, and whether names were asked for again."""
        yield (
            ": the DUT asked another name server than the tester's: how often, and how long that took to answer, is not"
            " known, and a slow answer of it counts as the DUT's"
        )
        yield (
            ": every run asks for the same names from the first one on: they were new ones only if the DUT's cache was"
            " cleared before this run"
        )
        if self.asked > self.names:
            yield (
                f": {self.asked:,} queries for new names, but the network has {self.names:,}: names were asked for"
                " again, and were new ones only if the DUT's cache was exhausted between"
            )


class Dns64Point(SearchPoint):
    """A case and its DNS64 performance."""

    figure: ClassVar[str] = "dns64_qps"
    in_headline: ClassVar[str] = Unit.QUERIES_PER_SECOND
    what: ClassVar[str] = "DNS64 performance"
    label: ClassVar[str] = f"DNS64 performance, {Unit.QUERIES_PER_SECOND.label}"
    drawn_over_cases: ClassVar[bool] = True
    title: ClassVar[str] = "DNS64 performance, queries/s"
    columns: ClassVar[Row] = ("median", "p1", "p99", "ms", "p99 ms", "asked", "limited by")

    dns64_qps: Statistics
    limited_by: LimitedBy | None
    """None where no repetition was finished."""
    upper_bound: UpperBound | None
    unanswered: str
    """At the upper bound: how many queries had no right answer, and what came instead; empty where there is none."""
    answer_us: Quantiles | None
    """Times from queries to their right answers at the highest rate that passed."""
    upstream: UpstreamQueries | None
    is_self_test: bool
    """Whether the tester's client asked its own name server (RFC 8219 section 9.2.1)."""
    self_test: TesterAlone | None
    """None: it is none, has names without an AAAA record or cached ones, or found no rate."""
    other_names: OtherNames | None
    """None: the tester's own name server knew the names."""
    repetitions: Repetitions
    trials: Trials

    def rows(self) -> list[Row]:
        figures, times = self.dns64_qps, self.answer_us
        in_ms = ("-", "-") if times is None else (f"{times.p50 / 1000:,.3f}", f"{times.p99 / 1000:,.3f}")
        upstream = "-" if self.upstream is None else f"{self.upstream.per_query:.2f}"
        return [(*figures.cells(",.0f"), *in_ms, upstream, self.limited_by or "-")]

    def remarks(self) -> Iterator[str]:
        if self.unanswered and self.upper_bound is not None:
            yield f": at the upper bound, {self.upper_bound.load}: {self.unanswered}"
        if (alone := self.self_test) is not None:
            yield (
                f": a self-test of the tester alone, which proves DNS64 servers of up to {alone.proves_qps:,} queries/s"
                f" with timeouts of {alone.proves_from_s:g} s or longer"
            )
        if self.upstream is not None and not self.is_self_test:
            yield from self.upstream.remarks(_needed_upstream(self.case))
        if self.other_names is not None:
            yield from self.other_names.remarks()
        yield from super().remarks()


def point(recorded: Recorded) -> Dns64Point:
    dns64_qps, members = repeated_searches.found(recorded)
    results = recorded.of(ResultEvent)
    passed = _highest_that_passed(results)
    is_self_test = bool(recorded.limits.get("looped_back"))
    return Dns64Point(
        **members,
        dns64_qps=dns64_qps,
        unanswered=_at_upper_bound(results, members["upper_bound"]),
        answer_us=None if passed is None else _answer_times(passed.directions()[Direction.FORWARD].delay_us),
        upstream=None if passed is None else _upstream(passed),
        is_self_test=is_self_test,
        self_test=_self_tested(recorded) if is_self_test else None,
        other_names=_other_names([event.trial for event in recorded.of(TrialEvent)]),
    )


def _self_tested(recorded: Recorded) -> TesterAlone | None:
    if recorded.case.key() != looped_back.CASE:
        return None
    rates = [search.lower_bound for search in recorded.of(SearchFinding)]
    return TesterAlone.of_rates(rates, recorded.conditions.timeout_s)


def _other_names(trials: Sequence[Trial]) -> OtherNames | None:
    """Of the trials of a case; the last one has the highest numbers."""
    asked = [stream.questions for one in trials for stream in one.streams().values() if stream.questions is not None]
    if not asked or asked[-1].addresses is None:
        return None
    queries, addresses = trials[-1].intended(Direction.FORWARD), asked[-1].addresses
    return OtherNames(names=addresses.network.num_addresses, asked=addresses.first + asked[-1].new_names(queries))


def _needed_upstream(case: Case) -> float:
    """Queries for each of the client's that a DUT sends whose cache has the cached names alone."""
    fresh, with_aaaa = 1 - case[CACHED_NAMES] / 100, case[AAAA_NAMES] / 100
    return fresh * (USUAL_QUERIES - with_aaaa)


def _highest_that_passed(results: Sequence[ResultEvent]) -> TrialResult | None:
    passed = [
        event
        for event in results
        if event.result.verdict is Verdict.VALID and event.result.directions() and not event.result.worst_loss_ratio
    ]
    return max(passed, key=lambda event: event.load.value).result if passed else None


def _at_upper_bound(results: Sequence[ResultEvent], upper: UpperBound | None) -> str:
    """Of all valid trials at that rate."""
    if upper is None:
        return ""
    failed = [
        one.result.directions()[Direction.FORWARD]
        for one in results
        if one.load == upper.load and one.result.verdict is Verdict.VALID and one.result.directions()
    ]
    worst = max(failed, key=lambda one: one.lost, default=None)
    return "" if worst is None else _unanswered(worst)


def _answer_times(delay: Delays | None) -> Quantiles | None:
    return None if delay is None else Quantiles(p50=delay.p50, p99=delay.p99, p999=delay.p999, max=delay.max)


def _upstream(result: TrialResult) -> UpstreamQueries | None:
    server, sent = result.server, sum(one.sent for one in result.directions().values())
    if server is None or not sent:
        return None
    asked, other = server.queries, server.queries.other + server.unknown + server.refused
    per_query = (asked.a + asked.aaaa + other) / sent
    return UpstreamQueries(a=asked.a, aaaa=asked.aaaa, other=other, tcp=server.tcp, per_query=per_query)


# --- clauses --------------------------------------------------------------------------------------


def _timeout(facts: Facts) -> str | None:
    timeout_s = facts.conditions.timeout_s
    return f"a timeout of {timeout_s:g} s, longer than {TIMEOUT_S:g} s" if timeout_s > TIMEOUT_S else None


def _is_self_test(facts: Facts) -> bool:
    return any(frame.get("looped_back") for frame in facts.frames)


def _required_case(facts: Facts) -> str | None:
    if _is_self_test(facts):
        return None
    required = {CACHED_NAMES.name: 0, AAAA_NAMES.name: 0}
    if any(frame["case"] == required for frame in facts.frames):
        return None
    return "not measured without cached names and names with an AAAA record, which is required"


def _has_other_names(facts: Facts) -> bool:
    asked = (one.questions for one in facts.streams())
    return any(one is not None and one.addresses is not None for one in asked)


def _other_server(facts: Facts) -> str | None:
    if not _has_other_names(facts):
        return None
    return "the authoritative server is not the tester's: nothing shows that it answered every query, and in time"


def _new_names(facts: Facts) -> str | None:
    """Of one trial: whether those of all trials were enough is told beside the result."""
    trial = facts.first_trial()
    asked = next((one.questions for one in facts.streams() if one.questions is not None), None)
    if asked is None or asked.addresses is None:
        return None
    names, new = asked.addresses.network.num_addresses, asked.new_names(trial.intended(Direction.FORWARD))
    return None if new <= names else f"a trial asks for {new:,} new names, but the network has {names:,}"


def _self_test(facts: Facts) -> str | None:
    if _has_other_names(facts):
        return (
            "no self-test of the tester with the authoritative server, looped back, at more than twice the rate in a"
            " quarter of the timeout"
        )
    if facts.conditions.self_test_from is not None or _is_self_test(facts):
        return None
    return "no self-test of the tester alone, looped back, at more than twice the rate in a quarter of the timeout"


RULES = (
    Clause("RFC 8219 section 9.2", deviations.trial_length),
    Clause("RFC 8219 section 9.2", deviations.few_repetitions),
    Clause("RFC 8219 section 9.2", _timeout),
    Clause("RFC 8219 section 9.2", _required_case),
    Clause("RFC 8219 section 9.2", _new_names),
    Clause("RFC 8219 section 9.1", _other_server),
    Clause("RFC 8219 section 9.2.1", _self_test),
)


# --- a DUT whose truth is known ------------------------------------------------------------------

CAPACITY_QPS, QUEUE_QUERIES = 4_010, 100
"""The queue holds the queries of a stall of 25 ms."""
LOWEST_QPS, HIGHEST_QPS, RESOLUTION_QPS = 4_000, 4_800, 40


def _known_truth() -> KnownTruth:
    return KnownTruth(
        Dns64Properties(capacity_fps=CAPACITY_QPS, queue=QUEUE_QUERIES),
        {
            "min_rate": fps(LOWEST_QPS),
            "max_rate": fps(HIGHEST_QPS),
            "resolution": fps(RESOLUTION_QPS),
            "duration_s": SEARCH_S,
            "settle_s": 0,
        },
        (highest_rate("DNS64 performance", "queries/s", CAPACITY_QPS, QUEUE_QUERIES, lambda point: point.dns64_qps),),
        more={"repetitions": 3},
    )


PROCEDURE = Definition(
    name="dns64",
    summary="Search for the highest rate of a DNS64 server (RFC 8219 9).",
    chapter=Chapter.RATES,
    example="--lab refdut-dns64 --max-rate 10k --resolution 5% --duration 2 --settle 1 --repetitions 3",
    simulated={"max_rate": "10k", "resolution": "5%", "repetitions": 2},
    known_truth=_known_truth,
    conditions=Dns64,
    make=Dns64Procedure,
    point=point,
    rules=RULES,
)
