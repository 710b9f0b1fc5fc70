# SPDX-License-Identifier: Apache-2.0
"""An action on the DUT while a trial runs: it starts once, a stated time after the first frame, and
ends before the next trial begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dutperf.dut.commands import Running
from dutperf.tester import Progress, ProgressCallback


@dataclass(frozen=True)
class TrialAction:
    """``start`` is called at the first progress report ``after_s`` seconds or more after the start
    of sending; reports come about once a second."""

    after_s: float
    start: Callable[[], Running]


class ActionRunner:
    """Starts an action during a trial and waits for its end."""

    def __init__(self, action: TrialAction | None, on_progress: ProgressCallback) -> None:
        self._action = action
        self._on_progress = on_progress
        self._running: Running | None = None

    @property
    def missed(self) -> bool:
        """Whether the trial ended before the action was started."""
        return self._action is not None and self._running is None

    def progressed(self, progress: Progress) -> None:
        """Call this for each progress report of the trial."""
        if self._action is not None and self._running is None and progress.elapsed_s >= self._action.after_s:
            self._running = self._action.start()
        self._on_progress(progress)

    @contextmanager
    def around_trial(self) -> Iterator[None]:
        """Run the trial within this context. On leaving it, the action is waited for; after an
        exception it is killed."""
        try:
            yield
        except BaseException:
            if self._running is not None:
                self._running.kill()
            raise
        if self._running is not None:
            self._running.finish()
