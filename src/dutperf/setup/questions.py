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
            "Queries for names in the DUT's cache, in %",
            clause="RFC 8219 9.2",
            label="queries for cached names, %",
            metavar="PERCENT,…",
            listed=True,
            panel=TRAFFIC,
        ),
    ] = default((0,))
    with_aaaa: Annotated[
        Percents,
        Field(min_length=1),
        Option(
            "Queries for names with an AAAA record, in %",
            clause="RFC 8219 9.2",
            label="names with an AAAA record, %",
            metavar="PERCENT,…",
            listed=True,
            panel=TRAFFIC,
        ),
    ] = default((0,))
    cached_names: Annotated[
        int,
        Field(ge=1, le=MOST_CACHED),
        Option(
            "Names that are queried again and again, with `cached`",
            label="cached names",
            metavar="COUNT",
            panel=TRAFFIC,
        ),
    ] = 1_000
    preliminary_rate: Annotated[
        AnyRate,
        Option(
            "Rate of the queries that fill the cache, in queries/s",
            label="rate before a trial with cached names, queries/s",
            metavar="RATE",
            panel=TRAFFIC,
        ),
    ] = default(PRELIMINARY_RATE)
    timeout_s: Annotated[
        float,
        Field(gt=0, le=60),
        Option(
            "Time to answer a query",
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
