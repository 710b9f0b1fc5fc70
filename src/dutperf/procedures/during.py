# SPDX-License-Identifier: Apache-2.0
"""What is done to the DUT while a trial runs: started once, a stated time after the first frame,
and over before the next trial begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from dutperf.tester import Progress, ProgressCallback


class Running(Protocol):
    """Something that was started and has not been waited for."""

    def finish(self) -> None:
        """Wait for its end. Raises what the starter says where it failed."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


@dataclass(frozen=True)
class During:
    """``start`` is called at the first report of progress, which come about once a second,
    ``after_s`` seconds after the start of sending or later."""

    after_s: float
    start: Callable[[], Running]


class Meanwhile:
    """What was started during a trial."""

    def __init__(self, during: During | None, on_progress: ProgressCallback) -> None:
        self._during = during
        self._on_progress = on_progress
        self._running: Running | None = None

    @property
    def missed(self) -> bool:
        """Whether something was to be started, and was not: the trial was over before."""
        return self._during is not None and self._running is None

    def progressed(self, progress: Progress) -> None:
        """To be called for each report of the trial's progress."""
        if self._during is not None and self._running is None and progress.elapsed_s >= self._during.after_s:
            self._running = self._during.start()
        self._on_progress(progress)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Within runs the trial. Leaving waits for the end of what was started; an exception ends
        it at once."""
        try:
            yield
        except BaseException:
            if self._running is not None:
                self._running.kill()
            raise
        if self._running is not None:
            self._running.finish()
