# SPDX-License-Identifier: Apache-2.0
"""The names of conditions and of the environment's members for a person; what is not here is shown
by the name that it has in summary.json, without its underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dutperf.setup import conditions
from dutperf.setup.conditions import Rate

SEARCH: Mapping[str, str] = {
    "series": "series of frame sizes",
    "search.algorithm": "search",
    "search.start": "where a repetition's search starts",
    "search.first_frames": "first burst, frames",
    "search.order": "order of the rates",
    "search.ends": "the series ends",
    "search.attempts.beyond_reach": "attempts at a rate before it counts as beyond the tester's reach",
    "search.attempts.within_reach": "… where the tester managed that rate before",
}
"""What a plan says of its search."""
ENVIRONMENT: Mapping[str, str] = {
    "started": "started",
    "host.name": "host",
    "host.cpu": "CPU",
    "host.cores": "cores",
    "host.usable_cores": "cores that dutperf may use",
    "host.memory_kb": "memory, kB",
    "host.kernel": "kernel",
    "host.kernel_options": "options of the kernel's command line",
    "host.governor": "frequency governor",
    "host.clock_source": "clock source",
    "host.dutperf": "dutperf",
    "host.python": "Python",
    "tester.core_choice.tester": "cores of the tester's loops",
    "tester.core_choice.dut": "cores of the DUT",
    "tester.core_choice.why": "why these cores",
}


def of_conditions() -> dict[str, str]:
    """Member to its name, with the unit."""
    return {**conditions.labels(), **SEARCH}


def name_of(member: str, names: Mapping[str, str]) -> str:
    """What a member with that dotted name is called; where only the beginning has a name, that and
    the rest."""
    known, rest = member, ""
    while known and known not in names:
        known, _, last = known.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    return member.replace("_", " ") if not known else names[known] + (f": {rest}" if rest else "")


def rates(value: Any) -> Any:
    """A condition with its rates as a person reads them, wherever they stand in it."""
    if isinstance(value, list):
        return [rates(entry) for entry in value]
    return str(Rate.model_validate(value)) if isinstance(value, Mapping) and set(value) == {"value", "unit"} else value


def text(value: Any) -> str:
    """A plain value of JSON for a person."""
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(text(entry) for entry in value)
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
