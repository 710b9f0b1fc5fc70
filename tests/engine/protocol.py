# SPDX-License-Identifier: Apache-2.0
"""Requests and events as they are in the protocol."""

from __future__ import annotations

import dataclasses
from typing import Any

from dutperf.engine.client import EngineCommand
from dutperf.engine.process import EngineProcess

Json = dict[str, Any]
ANSWER_S = 60.0
MS = 1_000_000
RINGS = {name: {"port": "ring"} for name in ("left", "right")}


class Refused(Exception):
    """An answer that is an error, with its field."""


@dataclasses.dataclass
class Engine:
    """A client that knows no more than the protocol."""

    process: EngineProcess
    requests: int = 0

    def ask(self, method: str, params: Json) -> tuple[list[Json], Json]:
        """The progress of a request and its answer."""
        self.begin(method, params)
        return self.end()

    def begin(self, method: str, params: Json) -> None:
        """Only sends a request."""
        self.requests += 1
        self.process.send({"id": self.requests, "method": method, "params": params})

    def end(self) -> tuple[list[Json], Json]:
        events = [self.process.receive(ANSWER_S)]
        while events[-1]["event"] == "progress":
            events.append(self.process.receive(ANSWER_S))
        if events[-1]["event"] == "error":
            raise Refused(events[-1]["field"], events[-1]["message"])
        return events[:-1], events[-1]

    def run(self, **members: Any) -> Json:
        defaults = {"trial": self.requests, "seed": 1, "duration_ns": 200 * MS, "drain_ns": 20 * MS}
        return self.ask("run", defaults | members)[1]


class Opening:
    """Opens engines, and ends them with the test."""

    def __init__(self, command: EngineCommand) -> None:
        self.command = command
        self._engines: list[Engine] = []

    def __call__(self, others: list[Json] | None = None, **parameters: Any) -> Engine:
        engine = Engine(EngineProcess(self.command.argv()))
        self._engines.append(engine)
        ports = {} if "ports" in parameters or "left" in parameters else RINGS
        engine.ask("open", {**ports, "memory": "no_huge_pages", "other_streams": others or [], **parameters})
        return engine

    def close(self) -> None:
        for engine in self._engines:
            engine.process.close()
