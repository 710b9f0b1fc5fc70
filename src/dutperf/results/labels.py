# SPDX-License-Identifier: Apache-2.0
"""Labels of conditions and of the environment's members, for a person. A member without a label is
shown by its name in summary.json, without underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dutperf.model.wording import FRAMES, Wording
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
    "search.attempts.within_reach": "… where the tester has reached that rate before",
    "search.attempts.within_reach_at_least": "… of which so many are run whatever they cost",
    "search.attempts.at_the_end": "attempts at a rate that a search can do without",
    "search.attempts.at_the_end_at_least": "… of which so many are run whatever they cost",
    "search.attempts.inconclusive_share": "share of the sending time that inconclusive trials may take",
    "search.attempts.in_vain": "further trials in vain, in a row, before a search has none beyond that share",
    "search.attempts.never_calm": "attempts at a rate of a search if late bursts disturb nearly every trial",
    "search.attempts.apart": "inconclusive times before a rate counts as one that cannot be judged",
    "search.attempts.unlikely": "probability below which bad luck explains no inconclusive trials",
}
"""Members of a plan's search."""
ENVIRONMENT: Mapping[str, str] = {
    "started": "started",
    "host.name": "host",
    "host.cpu": "CPU",
    "host.cores": "cores",
    "host.usable_cores": "cores that dutperf may use",
    "host.memory_kb": "memory, kB",
    "host.kernel": "kernel",
    "host.kernel_options": "kernel command-line options",
    "host.governor": "frequency governor",
    "host.clock_source": "clock source",
    "host.dutperf": "dutperf",
    "host.python": "Python",
    "tester.core_choice.tester": "cores of the tester's loops",
    "tester.core_choice.dut": "cores of the DUT",
    "tester.core_choice.why": "why these cores",
}


def of_conditions() -> dict[str, str]:
    """The label of each member, with its unit."""
    return {**conditions.labels(), **SEARCH}


def name_of(member: str, names: Mapping[str, str]) -> str:
    """The label of the member with that dotted name; where only the beginning has a label, that and
    the rest."""
    begin, rest = member, ""
    while begin and begin not in names:
        begin, _, last = begin.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    return member.replace("_", " ") if not begin else names[begin] + (f": {rest}" if rest else "")


def rates(value: Any, counted: Wording = FRAMES) -> Any:
    """A condition with all its rates as text."""
    if isinstance(value, list):
        return [rates(entry, counted) for entry in value]
    is_rate = isinstance(value, Mapping) and set(value) == {"value", "unit"}
    return Rate.model_validate(value).of(counted.many) if is_rate else value


def text(value: Any) -> str:
    """A plain JSON value as text."""
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(text(entry) for entry in value)
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
