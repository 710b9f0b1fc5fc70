# SPDX-License-Identifier: Apache-2.0
"""The interface between the procedures, which decide what to send, and the testers, which send it:
a :class:`Tester` runs trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dutperf.errors import DutperfError
from dutperf.model import Direction, LinkState, SoFar, Trial, TrialResult


@dataclass(frozen=True)
class Progress:
    """Progress of a running trial; ``sent`` and ``received`` are sums over the directions."""

    elapsed_s: float
    sent: int
    received: int
    directions: Mapping[Direction, SoFar] = field(default_factory=dict)
    """The engine's counts of each."""
    link_down: LinkState = field(default_factory=lambda: LinkState(left=False, right=False))
    """The tester's own links that were down at any time so far."""
    port_changes: Mapping[str, str] = field(default_factory=dict)
    """By port, why it is no longer the one that was opened: clauses."""


ProgressCallback = Callable[[Progress], None]


class EndTrial(Exception):  # no error: a decision
    """Raised by a callback: the trial ends now, with its drain. Its result counts what was sent until
    then, as if its sending time had been that long."""


class Tester(Protocol):
    """Runs trials one after the other. Implementations: the engine's process, a simulated tester, a
    replayed journal."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """Run ``trial`` and judge it. Faults *during the measurement* never raise: they become the verdict. Raises
        TesterError: the trial cannot be run at all (bad port, DUT without an answer to ARP or NDP, no privilege)."""
        ...

    def wait_until_quiet(self, limit_s: float) -> float:
        """Between trials: wait until other processes leave the cores of tester and DUT idle,
        ``limit_s`` at most. Returns the time waited."""
        ...

    def environment(self) -> dict[str, Any]:
        """The trials' environment, as JSON types: versions, ports, drivers, MAC addresses, cores,
        memory, warnings."""
        ...

    def close(self) -> None:
        """Release ports and processes. May be called more than once."""
        ...


AWAY = frozenset({"port_away", "link_down", "no_answer", "no_memory", "netns", "otg_away"})
"""Codes of errors that may pass: a port, a DUT, a namespace or a server that is not up, what others have."""


class TesterError(DutperfError):
    """The tester cannot work as configured. ``field`` names the configuration's key (``left.port``)
    where there is one; ``max_frame_size`` is the longest frame, in bytes incl. FCS, that a port takes which
    refused longer ones."""

    def __init__(
        self, message: str, *, code: str = "internal", field: str | None = None, max_frame_size: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.max_frame_size = max_frame_size
        self.is_temporary = code in AWAY
        self.is_fault = code == "internal"
        self.place = ""
        """The configuration file and the line of ``field``, where they are known."""

    @property
    def sentence(self) -> str:
        return ": ".join(part for part in (self.place, self.field, str(self)) if part)
