# SPDX-License-Identifier: Apache-2.0
"""The self-test before a measurement of a DNS64 server (RFC 8219 section 9.2.1): the tester alone, its client asking
its own name server, with names that all have an AAAA record.

A DNS64 server asks twice for each query of the client. So the tester must answer 2 (1 + delta) r queries/s in a
quarter of the timeout before a rate r counts; then it takes at most half of the timeout.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from dutperf import journal
from dutperf.journal import Finding, JournalError, PlanEvent, of_kind
from dutperf.judge.own_server import SHARE_OF_TIMEOUT
from dutperf.model import AAAA_NAMES, CACHED_NAMES, Value
from dutperf.procedures.repeated_searches import SearchFinding
from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError
from dutperf.setup.given import Given

DELTA = 0.1
"""The least that the standard allows."""
CASE = {CACHED_NAMES.name: 0, AAAA_NAMES.name: 100}
HOW = "dutperf dns64 --lab loopback --with-aaaa 100 --timeout 0.25"
"""How to measure it, on ports of the same kind."""


class TesterAlone(Value):
    """The highest rate that the tester alone passed, and the timeout of its queries."""

    qps: Annotated[int, Field(ge=1)]
    timeout_s: float

    @property
    def proves_qps(self) -> int:
        """The highest rate of a DNS64 server that it proves."""
        return int(self.qps / (2 * (1 + DELTA)))

    @property
    def proves_from_s(self) -> float:
        """The shortest timeout of that server's queries."""
        return self.timeout_s / SHARE_OF_TIMEOUT

    @classmethod
    def of_rates(cls, rates: Sequence[int | None], timeout_s: float) -> Self | None:
        """The lowest of the repetitions; None: there are none, or one found no rate."""
        found = [rate for rate in rates if rate is not None]
        return cls(qps=min(found), timeout_s=timeout_s) if found and len(found) == len(rates) else None

    @classmethod
    def of_directory(cls, directory: Path) -> Self:
        """From the results of a measurement of the tester alone. Raises ValueError: it is none, or found no rate."""
        try:
            events = journal.read(directory)
        except JournalError as error:
            raise ValueError(str(error)) from None
        plan = next(of_kind(events, PlanEvent), None)
        if plan is None or plan.procedure != "dns64":
            raise ValueError(f"{directory} is no measurement of a DNS64 server: {HOW}")
        if not journal.is_complete(events):
            raise ValueError(f"{directory} is not complete: 'dutperf resume' ends it, or give another one")
        try:
            is_looped = configuration.parse(plan.config, str(directory)).is_looped_back
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if not is_looped:
            raise ValueError(f"{directory} has results of a DUT, not of the tester alone: {HOW}")
        found = [SearchFinding.of(one) for one in of_kind(events, Finding) if one.event == SearchFinding.name()]
        rates = [one.lower_bound for one in found if one.case == CASE]
        if (alone := cls.of_rates(rates, plan.conditions["timeout_s"])) is None:
            raise ValueError(f"{directory} has no rate for names that all have an AAAA record: {HOW}")
        return alone


def _of_path(given: Any) -> Any:
    if not isinstance(given, str | os.PathLike):
        return given
    path = os.fspath(given)
    return TesterAlone.of_directory(Path(path)) if isinstance(path, str) else given


OptionalTesterAlone = Annotated[
    Given[TesterAlone | None, str | os.PathLike[str]],
    BeforeValidator(_of_path),
]
