# SPDX-License-Identifier: Apache-2.0
"""A trial that runs while its caller does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dutperf.model import Trial, TrialResult
from dutperf.tester import EndTrial, Progress, Tester

LONGEST_START_S = 60.0
"""For the engine to send the first frame: ARP and NDP, and the rest that was asked for."""


class TrialInBackground:
    """A trial in a thread of its own, from its construction on."""

    def __init__(self, tester: Tester, trial: Trial, watch: Callable[[Progress], None] | None = None) -> None:
        """``watch`` is told each progress, in that thread."""
        self._tester, self._trial, self._watch = tester, trial, watch
        self._ending = threading.Event()
        self._sending = threading.Event()
        self._result: TrialResult | None = None
        self._error: BaseException | None = None
        self.progress: Progress | None = None
        """The latest, at most as old as the trial says (``progress_ms``)."""
        self._thread = threading.Thread(target=self._run, name="dutperf-trial", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def wait_until_sending(self) -> None:
        """Raises what :meth:`dutperf.tester.Tester.run` raised, if it did."""
        self._sending.wait(LONGEST_START_S)
        if self._error is not None:
            raise self._error

    def end(self) -> TrialResult:
        """End it with its drain, unless it has ended, and return its result."""
        self._ending.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def _run(self) -> None:
        try:
            self._result = self._tester.run(self._trial, self._note)
        except BaseException as error:
            self._error = error
        finally:
            self._sending.set()

    def _note(self, progress: Progress) -> None:
        if self._watch is not None:
            self._watch(progress)
        self.progress = progress
        self._sending.set()
        if self._ending.is_set():
            raise EndTrial
