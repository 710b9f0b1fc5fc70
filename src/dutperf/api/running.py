# SPDX-License-Identifier: Apache-2.0
"""Traffic that a program starts, watches, changes and stops. Each part between two changes is a trial
with its own verdict: what the engine sends stays a function of the trial alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dutperf.model import Direction, SoFar, Trial, TrialResult, Verdict
from dutperf.setup import arguments
from dutperf.setup.conditions import Rate, SingleTrial
from dutperf.tester import Progress, Tester
from dutperf.tester.in_background import TrialInBackground

LONGEST_WAIT_S = 86_400.0


@dataclass(frozen=True)
class TrafficPart:
    """What a program asks for between two changes."""

    rate: Rate | str | float
    conditions: SingleTrial | None
    streams: Sequence[Mapping[str, Any]]
    """Empty: those of the configuration."""


class RunningTraffic:
    """Traffic that runs until :meth:`stop`. Made by :meth:`dutperf.Bench.start`; as a context manager it
    stops at the end of the block."""

    def __init__(self, tester: Tester, plan: Callable[[TrafficPart], Trial], first: TrafficPart) -> None:
        self._tester, self._plan, self._wanted = tester, plan, first
        self._part: TrialInBackground | None = None
        self._results: list[TrialResult] = []
        self._pauses_s: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Start the next part. Called by :meth:`dutperf.Bench.start` and :meth:`change`."""
        self._part = TrialInBackground(self._tester, self._plan(self._wanted))
        self._part.wait_until_sending()

    def change(
        self,
        rate: Rate | str | float | None = None,
        conditions: SingleTrial | None = None,
        streams: Sequence[Mapping[str, Any]] | None = None,
    ) -> TrialResult:
        """End the present part and start the next one with another rate, other conditions or other streams;
        what is None stays. Returns the result of the part that ended. Traffic that has been stopped starts again.

        Sending pauses meanwhile (:attr:`pauses_s`): frames on the way still arrive (``drain_s``), and ARP
        and NDP ask again.

        Raises:
            ConfigError: see :meth:`dutperf.Bench.start`; the traffic is stopped then.
        """
        ended_s = time.monotonic()
        self.end()
        self._wanted = TrafficPart(
            self._wanted.rate if rate is None else rate,
            self._wanted.conditions if conditions is None else conditions,
            self._wanted.streams if streams is None else streams,
        )
        self.begin()
        self._pauses_s.append(time.monotonic() - ended_s)
        return self._results[-1]

    def wait(self, seconds: float) -> SoFar:
        """Let it run, then return the counts of the present part so far, over both directions."""
        time.sleep(arguments.seconds(seconds, "seconds", most=LONGEST_WAIT_S))
        return self.counters()

    def counters(self, direction: Direction | str | None = None) -> SoFar:
        """The counts of the present part so far: of a direction, or over both. They are at most
        ``progress_ms`` old. ``sent - received`` includes frames on their way."""
        chosen = None if direction is None else arguments.direction(direction, "direction")
        part = self._part
        if part is None or part.progress is None:
            return SoFar(sent=0, received=0)
        if chosen is not None:
            return part.progress.directions.get(chosen, SoFar(sent=0, received=0))
        return _together(part.progress)

    def stop(self) -> TrialResult:
        """Stop the traffic and return the result of its last part, with delays and losses by time, kind
        and flow. Without effect on traffic that has been stopped."""
        self.end()
        return self._results[-1]

    @property
    def is_running(self) -> bool:
        """Whether it still sends: it ends by itself after ``duration_s``, or if the engine dies."""
        return self._part is not None and self._part.is_running

    @property
    def results(self) -> tuple[TrialResult, ...]:
        """The results of all parts that have ended."""
        return tuple(self._results)

    @property
    def is_valid(self) -> bool:
        """Whether all parts that have ended are valid."""
        return all(result.verdict is Verdict.VALID for result in self._results)

    @property
    def pauses_s(self) -> tuple[float, ...]:
        """How long sending paused at each change, at most, in seconds."""
        return tuple(self._pauses_s)

    def end(self) -> TrialResult | None:
        """As :meth:`stop`; None if it had been stopped, or never sent."""
        part, self._part = self._part, None
        if part is None:
            return None
        self._results.append(part.end())
        return self._results[-1]


def _together(progress: Progress) -> SoFar:
    of = progress.directions.values()
    if not of:
        return SoFar(sent=progress.sent, received=progress.received)
    return SoFar(
        sent=progress.sent,
        received=progress.received,
        max_lateness_us=max(one.max_lateness_us for one in of),
        tester_drops=sum(one.tester_drops for one in of),
        nic_clock_us=max(one.nic_clock_us for one in of),
    )
