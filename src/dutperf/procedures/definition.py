# SPDX-License-Identifier: Apache-2.0
"""A procedure as the other packages see it: a name, its conditions, how it measures, and how its
results are read from the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dutperf.procedures.base import Procedure
from dutperf.procedures.bench import Plan
from dutperf.results.summary import Reader
from dutperf.setup.conditions import AtThroughput, Conditions


@dataclass(frozen=True)
class Definition(Reader):
    """One procedure. Its command, its journal and its summary follow from this."""

    name: str
    """Name of the command, and in every file."""
    summary: str
    """One sentence for a person, with the clause."""
    make: Callable[[Plan[Any]], Procedure[Any]]
    """Raises PlanError where the plan's conditions cannot be measured."""

    def needs_throughput(self, conditions: Conditions) -> bool:
        """Whether the throughput has to be measured first."""
        return isinstance(conditions, AtThroughput) and conditions.rate is None and conditions.throughput_from is None
