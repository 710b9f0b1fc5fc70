# SPDX-License-Identifier: Apache-2.0
"""A tester that replays a journal: each trial gets its recorded result."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dutperf import journal
from dutperf.journal import EnvironmentEvent, ResultEvent, TrialEvent
from dutperf.model import Trial, TrialResult, to_json
from dutperf.tester import Progress, ProgressCallback, TesterError


class ReplayedTester:
    """A :class:`dutperf.tester.Tester`. A trial recorded several times gets its results in the order
    of the records, each once."""

    def __init__(self, events: Sequence[journal.Event]) -> None:
        self._results: defaultdict[str, deque[TrialResult]] = defaultdict(deque)
        self._environment: dict[str, Any] = {}
        running: str | None = None
        for event in events:
            if isinstance(event, EnvironmentEvent):
                self._environment = event.tester
            elif isinstance(event, TrialEvent):
                running = _key(event.trial)
            elif isinstance(event, ResultEvent) and running is not None:
                self._results[running].append(event.result)

    @classmethod
    def of(cls, directory: Path) -> ReplayedTester:
        """From the journal in ``directory``. Raises JournalError: the journal cannot be read."""
        return cls(journal.read(directory))

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """See :meth:`dutperf.tester.Tester.run`. Raises TesterError: the journal has no result for ``trial``, or none
        that is left."""
        results = self._results.get(_key(trial))
        if not results:
            raise TesterError(
                f"the journal has no result for trial {trial.trial}: {json.dumps(to_json(trial))}", code="not_recorded"
            )
        result = results.popleft()
        if on_progress is not None:
            on_progress(_at_end(trial, result))
        return result

    def has(self, trial: Trial) -> bool:
        """Whether a result for ``trial`` is left."""
        return bool(self._results.get(_key(trial)))

    def wait_until_quiet(self, limit_s: float) -> float:
        """A replay is never disturbed."""
        return 0.0

    def environment(self) -> dict[str, Any]:
        return self._environment

    def close(self) -> None:
        """Nothing to release."""


def _key(trial: Trial) -> str:
    return json.dumps(to_json(trial), sort_keys=True)


def _at_end(trial: Trial, result: TrialResult) -> Progress:
    counts = result.directions().values()
    return Progress(
        elapsed_s=trial.duration_s, sent=sum(one.sent for one in counts), received=sum(one.received for one in counts)
    )
