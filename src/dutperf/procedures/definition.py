# SPDX-License-Identifier: Apache-2.0
"""A procedure as the other packages see it: what it is called and what it measures, its conditions, how it measures,
and how its results are read from the journal. Command, plans, Python interface, help, documents, page and general tests
follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dutperf.procedures.base import Procedure
from dutperf.procedures.bench import Plan
from dutperf.procedures.known_truth import KnownTruth
from dutperf.results.summary import Reader
from dutperf.setup.conditions import AtThroughput, Conditions


class Chapter(StrEnum):
    """What procedures are about, in the order in which they are shown."""

    RATES = "rates and bursts"
    DELAYS = "delays"
    TIMES = "times"
    LOADS = "behaviour over offered loads and hours"
    CONNECTIONS = "connections of stateful DUTs"
    TABLES = "tables of switches and routers"


@dataclass(frozen=True, kw_only=True)
class Definition(Reader):
    """One procedure."""

    chapter: Chapter = Chapter.RATES
    summary: str
    """One sentence for a person, with the clause."""
    make: Callable[[Plan[Any]], Procedure[Any]]
    """Raises PlanError where the plan's conditions cannot be measured."""
    example: str = ""
    """Arguments of its command, as an example."""
    known_truth: Callable[[], KnownTruth] | None = None
    """A DUT whose truth it has to read in the self-test; None: the reference DUT cannot be such a one."""
    simulated: Mapping[str, Any] = field(default_factory=dict)
    """Conditions with which it gives a number of a simulated DUT, beside the throughput, in few trials."""

    def needs_throughput(self, conditions: Conditions) -> bool:
        return isinstance(conditions, AtThroughput) and conditions.rate is None and conditions.throughput_from is None
