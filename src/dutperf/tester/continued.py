# SPDX-License-Identifier: Apache-2.0
"""The tester of a resumed run: it takes the results of finished trials from the journal and runs the
others."""

from __future__ import annotations

from typing import Any

from dutperf.model import Trial, TrialResult
from dutperf.tester import ProgressCallback, Tester
from dutperf.tester.replayed import ReplayedTester


class ContinuedTester:
    """A :class:`dutperf.tester.Tester`: ``replayed`` for the trials that it has, then ``live``, which
    it closes."""

    def __init__(self, replayed: ReplayedTester, live: Tester) -> None:
        self._replayed = replayed
        self._live = live

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        tester = self._replayed if self._replayed.has(trial) else self._live
        return tester.run(trial, on_progress)

    def wait_until_quiet(self, limit_s: float) -> float:
        return self._live.wait_until_quiet(limit_s)

    def environment(self) -> dict[str, Any]:
        """The environment of the trials still to be run."""
        return self._live.environment()

    def close(self) -> None:
        self._live.close()
