# SPDX-License-Identifier: Apache-2.0
"""The engine in a guest as the package's tester, and trials that a slow machine can carry."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from cards.machine import Guest
from dutperf import traffic
from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.engine.process import EngineProcess
from dutperf.model import Stamping, Tagged, TrialResult
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from dutperf.setup.ports import open_request
from dutperf.tester import Progress, ProgressCallback, TesterError
from plans import make_trial
from undisturbed import PATIENCE_S, valid

SLOW_FPS = 2_000
"""Frames/s each way that the emulated processor has time for."""


@dataclass(frozen=True)
class Bench:
    """The tester on the cards of a guest."""

    guest: Guest
    setup: Setup
    tester: EngineTester
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """Of the trials: frames of an earlier one are known by it."""

    def run(
        self,
        rate_fps: int = SLOW_FPS,
        on_progress: ProgressCallback | None = None,
        tags: int | None = None,
        **conditions: Any,
    ) -> TrialResult:
        """One trial, a second unless said otherwise, with the smallest frames, of which so many are tagged."""
        chosen = SingleTrial(**({"duration_s": 1, "drain_s": 0.5} | conditions))
        size = traffic.of(self.setup, chosen).sized().frame_sizes[0]
        trial = make_trial(self.setup, chosen, size, rate_fps, next(self.numbers))
        if tags is not None:
            tagged = {"stamping": Stamping.TAGGED, "tagged": Tagged(count=tags, after_ns=0)}
            trial = trial.model_copy(update=tagged)
        self.tester.environment()  # the ports are started, and what their start made the console say is over
        began = len(self.guest.console())
        result = self.tester.run(trial, on_progress)
        self.guest.trials.append(slice(began, len(self.guest.console())))
        return result

    def run_while(self, interfere: Callable[[], None], duration_s: float = 4, **conditions: Any) -> TrialResult:
        """A trial with ``interfere`` called once when its first second is over."""
        begun: list[Progress] = []

        def once(progress: Progress) -> None:
            begun.append(progress)
            if len(begun) == 1:
                interfere()

        return self.run(on_progress=once, duration_s=duration_s, **conditions)

    def run_valid(self, *arguments: Any, **conditions: Any) -> TrialResult:
        """The first valid result."""
        return valid(lambda: self.run(*arguments, **conditions))


def causes(result: TrialResult) -> set[str]:
    """Codes of what speaks against a result."""
    return {cause.code for cause in result.causes}


JOINED = {
    "left": {"version": 4, "ipv4": "198.18.0.2/24"},
    "right": {"version": 4, "ipv4": "198.19.0.2/24"},
}
"""The configuration of two cards with a cable between them, without their ports."""


@contextlib.contextmanager
def bench(
    guest: Guest, sides: dict[str, Any] | None = None, max_frame_size: int = 1518, **engine: Any
) -> Iterator[Bench]:
    """A new engine on both cards; ``engine`` goes to the configuration's key of that name."""
    setup = set_up(guest, sides, command=guest.start_engine(), **engine)
    with EngineTester(EngineCommand.find(setup.engine.command), open_request(setup, max_frame_size)) as tester:
        yield Bench(guest, setup, tester)


def set_up(guest: Guest, sides: dict[str, Any] | None = None, **engine: Any) -> Setup:
    """The configuration of both cards of a guest."""
    mapping = {
        name: {"port": card} | side for (name, side), card in zip((sides or JOINED).items(), guest.cards, strict=True)
    }
    settings = {"memory": "huge_pages", "cores": [1]} | engine  # the other core is the guest's kernel's
    return configuration.parse({"engine": settings, **mapping}, origin="test")


def refusal(
    guest: Guest, sides: dict[str, Any] | None = None, max_frame_size: int = 1518, **engine: Any
) -> TesterError:
    """The error with which a new engine refuses to open the ports."""
    with bench(guest, sides, max_frame_size, **engine) as ready, pytest.raises(TesterError) as refused:
        ready.tester.environment()
    return refused.value


def one_sentence(guest: Guest, side: str = "left", sides: dict[str, Any] | None = None) -> str:
    """What the engine says of a port that it cannot have."""
    refused = refusal(guest, sides)
    assert refused.code == "port_unavailable"
    assert refused.field == f"{side}.port"
    assert "\n" not in str(refused)
    return str(refused)


@contextlib.contextmanager
def asked(guest: Guest) -> Iterator[Callable[..., dict[str, Any]]]:
    """A new engine that is asked by hand: a function of a method and its parameters which returns
    the engine's answer."""
    process = EngineProcess(guest.start_engine())
    numbers = itertools.count(1)

    def ask(method: str, **params: Any) -> dict[str, Any]:
        number = next(numbers)
        process.send({"id": number, "method": method} | ({"params": params} if params else {}))
        while (event := process.receive(PATIENCE_S)).get("id") != number or event["event"] == "progress":
            pass
        return event

    try:
        yield ask
    finally:
        process.close()
