# SPDX-License-Identifier: Apache-2.0
"""The seam between deciding what to send and sending it: whoever can run a trial is a
:class:`Tester`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dutperf.errors import DutperfError
from dutperf.model import Direction, LinkState, SoFar, Trial, TrialResult


@dataclass(frozen=True)
class Progress:
    """How far a running trial is; ``sent`` and ``received`` are sums over the directions."""

    elapsed_s: float
    sent: int
    received: int
    directions: Mapping[Direction, SoFar] = field(default_factory=dict)
    """What the engine says of each."""
    link_down: LinkState = field(default_factory=lambda: LinkState(left=False, right=False))
    """The tester's own links that were down at any time so far."""


ProgressCallback = Callable[[Progress], None]


class Tester(Protocol):
    """Runs trials one after the other. Implementations: the engine's process, a simulated tester, a
    replayed journal."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """Run ``trial`` and judge it. Never raises for what goes wrong *while measuring*: that is a
        verdict.

        Raises:
            TesterError: the trial cannot be run at all (bad port, DUT without an answer to ARP or
                NDP, no privilege).
        """
        ...

    def wait_until_quiet(self, limit_s: float) -> float:
        """Between trials: wait until others leave the tester's and the DUT's cores alone,
        ``limit_s`` at most. Returns how long that took."""
        ...

    def environment(self) -> dict[str, Any]:
        """What the trials are run with, as JSON types: versions, ports, drivers, MAC addresses,
        cores, memory, warnings."""
        ...

    def close(self) -> None:
        """Release ports and processes. May be called more than once."""
        ...


class TesterError(DutperfError):
    """The tester cannot work as configured. ``field`` names the configuration's key (``left.port``)
    where there is one."""

    def __init__(self, message: str, *, code: str = "internal", field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
