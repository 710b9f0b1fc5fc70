# SPDX-License-Identifier: Apache-2.0
"""The conditions of questions to a DNS64 server (RFC 8219 section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator

from dutperf.model import Value
from dutperf.model.questions import MOST_CACHED
from dutperf.setup.conditions import words_of
from dutperf.setup.given import Given, default
from dutperf.setup.option import TRAFFIC, TRIAL, Option
from dutperf.setup.rate import AnyRate, Rate

TIMEOUT_S = 1.0
"""Longest timeout of a query (RFC 8219 section 9.2)."""
PRELIMINARY_RATE = Rate(value=500, unit="fps")
"""Queries/s, low enough for small DUTs."""


Percent = Annotated[int, Field(ge=0, le=100)]
Percents = Given[tuple[Percent, ...], Sequence[int] | int | str]


class WithQuestions(Value):
    """Queries for AAAA to a DNS64 server."""

    cached: Annotated[
        Percents,
        Field(min_length=1),
        Option(
            "Queries for names that the DUT has in its cache, in per cent: they were asked for directly before the"
            " trial. Repeatable, or a list (0,20,40,60,80,100); each is measured with each of `with_aaaa`",
            clause="RFC 8219 section 9.2: 0, then others",
            label="queries for cached names, %",
            metavar="PERCENT",
            listed=True,
            panel=TRAFFIC,
        ),
    ] = default((0,))
    with_aaaa: Annotated[
        Percents,
        Field(min_length=1),
        Option(
            "Names that have an AAAA record, in per cent, which the DUT returns as it is. Repeatable, or a list",
            clause="RFC 8219 section 9.2: 0, then others",
            label="names with an AAAA record, %",
            metavar="PERCENT",
            listed=True,
            panel=TRAFFIC,
        ),
    ] = default((0,))
    cached_names: Annotated[
        int,
        Field(ge=1, le=MOST_CACHED),
        Option("Names that are asked for again and again, with `cached`", label="cached names", panel=TRAFFIC),
    ] = 1_000
    preliminary_rate: Annotated[
        AnyRate,
        Option(
            "Rate at which the cached names are asked for before a trial, in queries/s: safely below the DUT's limit",
            label="rate before a trial with cached names, queries/s",
            metavar="RATE",
            panel=TRAFFIC,
        ),
    ] = default(PRELIMINARY_RATE)
    timeout_s: Annotated[
        float,
        Field(gt=0, le=60),
        Option(
            "Time in which a query has to be answered",
            clause="RFC 8219 section 9.2: 1",
            label="timeout of a query, s",
            panel=TRIAL,
        ),
    ] = TIMEOUT_S

    @field_validator("cached", "with_aaaa", mode="before")
    @classmethod
    def _numbers(cls, given: Any) -> Any:
        return tuple(words_of(given))

    @field_validator("cached", "with_aaaa")
    @classmethod
    def _different(cls, shares: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(shares)) < len(shares):
            raise ValueError("the same share twice")
        return shares
