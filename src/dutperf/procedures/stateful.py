# SPDX-License-Identifier: Apache-2.0
"""Common to the procedures that count connections (RFC 9693): their conditions, and the trial that
opens connections at a rate and validates them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from dutperf.model import FRAME_SIZE, Case, Question, Trial, TrialResult, Unit
from dutperf.procedures import searches
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.one_frame_each import OneFrameEach
from dutperf.procedures.searches import SearchRange
from dutperf.search.binary import Bounds
from dutperf.setup.conditions import (
    Conditions,
    ConnectionCount,
    Rate,
)
from dutperf.setup.given import Given, default
from dutperf.setup.option import Option
from dutperf.spelling import with_and
from dutperf.traffic import ConnectionTraffic

CONNECTIONS = 10_000
"""By default: any DUT has room for so many."""

REPLY_SHARE_HELP = "Replies that validate connections, as share of the rate; 0: no validation"
ReplyShare = Annotated[
    float,
    Field(ge=0, le=1),
    Option(REPLY_SHARE_HELP, label="rate of the validation, share of the establishment rate", metavar="ALPHA"),
]


class OfConnections(SearchRange, OneFrameEach):
    """Conditions of a search for connections/s."""

    phase_gap_s: Annotated[
        float,
        Field(ge=0, le=3_600),
        Option(
            "Wait between opening and validation, in s",
            label="wait between opening and validation, s",
            needs="reply_share",
        ),
    ] = 0.0


class Validated(OfConnections):
    """Conditions of a search whose connections are validated."""

    connections: Annotated[
        Given[ConnectionCount, str],
        Option(
            "Connections that each trial opens (RFC 9693 section 5: tenfold steps)",
            label="connections",
            metavar="COUNT,…",
            several=True,
        ),
    ] = default(CONNECTIONS)
    reply_share: ReplyShare = 0.8


def bounds(
    plan: Plan[Any],
    conditions: OfConnections,
    reply_share: float,
    minimum: int | None = None,
    maximum: int | None = None,
) -> Bounds:
    """The range of connections/s of a search; ``minimum`` and ``maximum`` narrow that of the conditions. At no rate of
    it does a trial last longer than the DUT keeps a connection without a frame (RFC 9693 section 4.4). Raises
    PlanError: rates that contradict each other or that timeout, or percentages of a link's speed."""
    limits = _chosen_bounds(conditions)
    in_time = ConnectionTraffic(plan.traffic.setup, conditions).lowest_rate(frames_each(reply_share))
    if maximum is not None:
        lowest = limits.lowest if minimum is None else minimum
        limits = replace(limits, minimum=lowest, maximum=maximum, initial=maximum)
    _check_in_time(conditions, in_time, max_rate=limits.highest, initial_rate=limits.initial)
    if maximum is None:
        _check_in_time(conditions, in_time, min_rate=limits.minimum)
    return replace(limits, minimum=max(limits.lowest, in_time)) if in_time > limits.lowest else limits


def preliminary_cps(plan: Plan[Any], conditions: OneFrameEach, rate: Rate) -> int:
    """The rate of a preliminary phase, at which the DUT keeps all connections until the last is opened. Raises
    PlanError: a percentage of a link's speed, or the DUT's timeout is shorter."""
    _check_is_number(rate, "preliminary_rate")
    rate_cps = max(1, round(rate.value))
    in_time = ConnectionTraffic(plan.traffic.setup, conditions).lowest_rate(1)
    _check_in_time(conditions, in_time, preliminary_rate=rate_cps)
    return rate_cps


def _check_is_number(rate: Rate | None, option: str) -> None:
    if rate is not None and rate.unit == "percent":
        raise PlanError("connections/s have no share of a link's speed: give a number", option=option)


def _check_in_time(conditions: Conditions, lowest_cps: int, **rates_cps: int | None) -> None:
    count = conditions.every.connections
    for option, rate_cps in rates_cps.items():
        if rate_cps is not None and rate_cps < lowest_cps:
            raise PlanError(
                f"{count:,} connections at {rate_cps:,} in a second take longer than the DUT keeps one"
                f" without a frame (stateful.timeout_s): at least {lowest_cps:,} in a second are needed",
                option=option,
            )


def _chosen_bounds(conditions: SearchRange) -> Bounds:
    for name in ("max_rate", "min_rate", "initial_rate"):
        _check_is_number(getattr(conditions, name), name)
    return replace(searches.bounds(conditions, None), unit=Unit.CONNECTIONS_PER_SECOND)


def frames_each(reply_share: float) -> float:
    """Frames in each connection, those of the replies weighted by how much longer they take."""
    return 1 + (1 / reply_share if reply_share else 0)


def trial(
    plan: Plan[Any], conditions: OfConnections, case: Case, rate_cps: int, number: int, reply_share: float
) -> Trial:
    """Opens the connections of ``conditions`` at ``rate_cps`` and, unless ``reply_share`` is 0, has each pass
    one reply at that share of the rate (RFC 9693 sections 4.5, 4.6)."""
    kind, size = ConnectionTraffic(plan.traffic.setup, conditions), case[FRAME_SIZE]
    question = searches.question(conditions, _chosen_bounds(conditions), rate_cps)
    opening = kind.opening(size, rate_cps, number)
    opening = opening.model_copy(update={"question": question})
    if not reply_share:
        return Trial(**dict(opening))
    rate_of_replies = max(1, round(rate_cps * reply_share))
    measured = Question(**{**dict(question), "opening_counts": True})
    replies = kind.replies(size, rate_of_replies, number + 1)
    return Trial(**{**dict(replies), "question": measured, "preliminary": (opening,)})


def left_after(result: TrialResult) -> str:
    """What is known about the connections that lost replies; empty where none did, or none was asked."""
    if result.connections_probed is None or result.connections_gone is None:
        return ""
    asked, gone = result.connections_probed, result.connections_gone
    lost = asked if result.connections is None else result.connections.lost
    left = asked - gone
    which = [f"{gone:,} are gone" if gone else "", f"in {left:,} only a frame was lost" if left else ""]
    answered = with_and(text for text in which if text)
    limited = f", the first {asked:,} were asked again:" if asked < lost else ""
    return f"of {lost:,} connections without a reply{limited} {answered}"
