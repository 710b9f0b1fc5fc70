# SPDX-License-Identifier: Apache-2.0
"""What a run does, as a stream of events, read from its directory: ``state``, ``trial`` for each that has ended,
``progress`` of the one under way, ``log``.

Nothing of the run waits for a reader.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dutperf.run.progress import PROGRESS
from dutperf.web import own_files
from dutperf.web.runs import LOG, Run, Runs, journals, progress

LOOK_S = 0.1
SELDOM = 5
"""Looks between two at the journals, the log and the state."""
KEEP_ALIVE = 150
"""Looks without news until a comment shows that the stream lives."""
MOST_LINES = 500
"""Of the log, at first."""


@dataclass
class _Tail:
    """The lines of a file that have been added."""

    path: Path
    _at: int = 0
    _rest: bytes = b""

    def lines(self) -> list[bytes]:
        try:
            with own_files.opened(self.path) as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return whole


@dataclass
class Follower:
    """Of one run for one reader."""

    runs: Runs
    run: Run
    _journals: dict[Path, _Tail] = field(default_factory=dict)
    _procedures: dict[Path, str] = field(default_factory=dict)
    _log: _Tail | None = None
    _state: str = ""
    _told: str = ""

    def news(self) -> Iterator[tuple[str, Any]]:
        """Events since the last call, but for the progress."""
        for path in journals(self.run.directory):
            yield from self._trials(path)
        if self._log is None:
            self._log = _Tail(self.run.directory / LOG)
        if lines := self._log.lines()[-MOST_LINES:]:
            yield "log", [line.decode("utf-8", "replace") for line in lines]
        if (state := self.runs.state(self.run)) != self._state:
            self._state = state
            yield "state", state

    def progress(self) -> dict[str, Any] | None:
        """What is under way, if that is new."""
        path = self.run.directory / PROGRESS
        try:
            stamp = f"{path.stat().st_mtime_ns} {path.stat().st_ino}"
        except OSError:
            return None
        if stamp == self._told:
            return None
        self._told = stamp
        return progress(self.run.directory)

    def _trials(self, path: Path) -> Iterator[tuple[str, Any]]:
        for line in self._journals.setdefault(path, _Tail(path)).lines():
            try:
                event = json.loads(line)
            except ValueError:  # torn
                continue
            if event.get("event") == "plan":
                self._procedures[path] = str(event.get("procedure", ""))
            elif event.get("event") == "result":
                yield "trial", trial(event, self._procedures.get(path, ""))


def trial(event: dict[str, Any], procedure: str) -> dict[str, Any]:
    """A trial that has ended, from its line in a journal: JSON types."""
    result = event.get("result", {})
    of = {name: one for name, one in result.items() if isinstance(one, dict) and "intended" in one}
    of |= {name: one for name, one in (result.get("paths") or {}).items() if isinstance(one, dict)}
    of = of or dict(result.get("other_streams") or {})
    return {
        "time": event.get("time"),
        "procedure": procedure,
        "case": event.get("case"),
        "repetition": event.get("repetition"),
        "load": event.get("load"),
        "trial": event.get("trial"),
        "verdict": result.get("verdict"),
        "causes": [str(cause.get("text", cause)) for cause in result.get("causes", [])],
        "directions": {name: _direction(counts) for name, counts in of.items()},
    }


def _direction(counts: dict[str, Any]) -> dict[str, Any]:
    names = ("intended", "sent", "received", "send_time_s", "lateness_us", "stall_us")
    delays = counts.get("delay_us") or {}
    return {
        **{name: counts.get(name) for name in names},
        "lost": (counts.get("sent") or 0) - (counts.get("received") or 0),
        "tester_drops": sum((counts.get("tester_drops") or {}).values()),
        "delay_us": {name: delays[name] for name in ("min", "p50", "p99", "p999", "max") if name in delays} or None,
        "delay_histogram": _histogram(delays),
    }


def _histogram(delays: dict[str, Any]) -> list[list[float]] | None:
    """The largest delay of each bucket, and its number of frames."""
    found = delays.get("buckets")
    if not isinstance(found, list):
        return None
    return [pair for pair in found if isinstance(pair, list) and len(pair) == 2][:2000]


async def events(follower: Follower, is_ending: Callable[[], bool]) -> AsyncIterator[str]:
    """Server-sent events until the reader goes."""
    looks, quiet = 0, 0
    while not is_ending():
        found: list[tuple[str, Any]] = []
        if looks % SELDOM == 0:
            found += await asyncio.to_thread(lambda: list(follower.news()))
        if (now := follower.progress()) is not None:
            found.append(("progress", now))
        for name, members in found:
            yield f"event: {name}\ndata: {json.dumps(members)}\n\n"
        quiet = 0 if found else quiet + 1
        if quiet >= KEEP_ALIVE:
            quiet = 0
            yield ": lives\n\n"
        looks += 1
        await asyncio.sleep(LOOK_S)
