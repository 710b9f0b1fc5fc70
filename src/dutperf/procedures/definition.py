# SPDX-License-Identifier: Apache-2.0
"""What a procedure is to the rest: a name, the options that it takes, how it measures, and how its
results are read from the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dutperf.procedures.bench import Plan, Procedure
from dutperf.results.points import PointBuilder


@dataclass(frozen=True)
class Definition:
    """One procedure. Its command, its journal and its summary follow from this."""

    name: str
    """Of the command and in every file."""
    summary: str
    """One sentence for a person, with the clause."""
    options: tuple[str, ...]
    """Members of :class:`~dutperf.setup.conditions.Conditions` that it uses beyond those of every
    trial."""
    make: Callable[[Plan], Procedure]
    """Raises PlanError where the plan's conditions cannot be measured."""
    point: PointBuilder
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Conditions that this procedure's clause has otherwise than the conditions themselves."""
    without: tuple[str, ...] = ()
    """Conditions of every trial that have no meaning here."""
