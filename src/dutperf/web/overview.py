# SPDX-License-Identifier: Apache-2.0
"""What the list of runs shows of each: DUT, procedure, figures, the trials behind them, when, and the search path."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dutperf.api import results
from dutperf.model import Load
from dutperf.results import headline
from dutperf.results.headline import Headline
from dutperf.results.measured import Measured
from dutperf.spelling import count_of

WIDTH, HEIGHT = 120, 24
"""Of a search path, in units of its picture."""
_MOST_STEPS = 60


@dataclass(frozen=True)
class Step:
    """A trial of a search path."""

    x: float
    y: float
    """0 is the highest offered load."""
    outcome: str


@dataclass(frozen=True)
class Line:
    """A measurement of a run."""

    name: str
    procedure: str
    headline: Headline
    path: tuple[Step, ...]
    """Its last trials."""


@dataclass(frozen=True)
class Overview:
    dut: str = ""
    """Without its version."""
    version: str = ""
    started: str = ""
    """As the journal has it."""
    lines: tuple[Line, ...] = field(default=())


def of_run(directory: Path) -> Overview:
    """The run in ``directory``. Raises DutperfError: it cannot be read."""
    measured = [one for one in results.read(directory).measured if one.summary is not None]
    if not measured:
        return Overview()
    first = measured[0].plan
    return Overview(
        dut=str(first.dut.get("name") or ""),
        version=str(first.dut.get("version") or ""),
        started=first.time,
        lines=tuple(_line(one) for one in measured),
    )


def _line(one: Measured) -> Line:
    assert one.summary is not None, "the caller has chosen"
    return Line(one.name, one.summary.procedure, headline.of_summary(one.summary), _path(one))


def _path(one: Measured) -> tuple[Step, ...]:
    done = one.trials()[-_MOST_STEPS:]
    highest = max((trial.load.value for trial in done), default=0)
    if highest <= 0 or len(done) < 2:
        return ()
    return tuple(
        Step(
            round(2 + (WIDTH - 4) * place / (len(done) - 1), 1),
            round(2 + (HEIGHT - 4) * (1 - trial.load.value / highest), 1),
            trial.outcome,
        )
        for place, trial in enumerate(done)
    )


def now(progress: Mapping[str, Any] | None) -> str:
    """What a run does, of its ``progress.json``: ``throughput, 84 bytes: trying 53,000 frames/s (passed 50,000
    frames/s, not 56,000 frames/s); 12 trials done, about 18 left``. Empty: it does not say."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        if progress:
            return _now(progress)
    return ""


def _now(progress: Mapping[str, Any]) -> str:
    of = [str(one) for one in (progress["measurement"], progress["case"]) if one]
    if progress["procedure"] == "otg":
        return f"{of[0]}: {progress['note']}"
    load, passed, failed = (_load(progress[name]) for name in ("load", "passed", "not_passed"))
    known = [text for text in (passed and f"passed {passed}", failed and f"not {failed}") if text]
    between = f" ({', '.join(known)})" if known else ""
    trying = f": trying {load}{between}" if load else ""
    done = count_of(int(progress["trials_done"]), "trial")
    return f"{', '.join(of)}{trying}; {done} done, about {int(progress['trials_left']):,} left"


def _load(members: Mapping[str, Any] | None) -> str:
    return "" if members is None else str(Load.of_json(members))
