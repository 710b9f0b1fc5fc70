# SPDX-License-Identifier: Apache-2.0
"""``progress.json``: what a run does now, for programs that watch it. It stands in the directory of the run or the
suite as long as that is measured, and is replaced as a whole.

It is no part of the results: it is not synced, and a run whose disk does not take it goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dutperf.journal import WriteError, write_whole
from dutperf.run.campaign import Observer, Status
from dutperf.run.suite import Measurement, Watch
from dutperf.tester import Progress

PROGRESS = "progress.json"


@contextmanager
def written(measurements: Sequence[Measurement], directory: Path) -> Iterator[Watch]:
    """Makes the observer of each measurement of the run or the suite in ``directory``. The file is gone at the end."""
    names = [one.name for one in measurements]
    with _file_in(directory) as path:

        @contextmanager
        def watch(measurement: Measurement, number: int) -> Iterator[Observer]:
            yield _Writer(path, {"measurement": measurement.name, "number": number, "measurements": names})

        yield watch


@contextmanager
def observed(name: str, directory: Path) -> Iterator[Observer]:
    """The observer of the only run in ``directory``, which no procedure makes. The file is gone at the end."""
    with _file_in(directory) as path:
        yield _Writer(path, {"measurement": name, "number": 1, "measurements": [name]})


@contextmanager
def _file_in(directory: Path) -> Iterator[Path]:
    path = directory / PROGRESS
    try:
        yield path
    finally:
        with suppress(OSError, ValueError, KeyError, TypeError):
            # a run that measures there already, which refuses this one, has its own
            if json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid():
                path.unlink()


class _Writer:
    def __init__(self, path: Path, of_all: Mapping[str, Any]) -> None:
        self._path = path
        self._of_all = {**of_all, "pid": os.getpid()}

    def update(self, status: Status) -> None:
        text = json.dumps({"time": datetime.now(UTC).isoformat(), **self._of_all, **as_json(status)})
        with suppress(WriteError):
            write_whole(self._path, text, synced=False)


def as_json(status: Status) -> dict[str, Any]:
    """JSON types."""
    names = ("procedure", "repetition", "repetitions", "trials_done", "trials_left", "remaining_s", "note")
    loads = {"load": status.trying, "passed": status.lower, "not_passed": status.upper}
    return {
        "case": str(status.case),
        **{name: getattr(status, name) for name in names},
        **{name: None if load is None else load.as_json() for name, load in loads.items()},
        "trial": None if status.progress is None else _trial(status.progress),
    }


def _trial(progress: Progress) -> dict[str, Any]:
    """Counts so far of the trial under way; ``sent - received`` includes frames on their way."""
    of = {direction.value: so_far.model_dump(mode="json") for direction, so_far in progress.directions.items()}
    return {
        "elapsed_s": progress.elapsed_s,
        "sent": progress.sent,
        "received": progress.received,
        "directions": of,
    }
