# SPDX-License-Identifier: Apache-2.0
"""Progress for a person, on standard error: a live display on a terminal, else one plain line for each
trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dutperf.cli.output.news import News
from dutperf.cli.output.terminal import Output
from dutperf.model import DirectionCounts, Trial, TrialResult, Verdict
from dutperf.results import beside
from dutperf.run.campaign import Observer, Status
from dutperf.spelling import count_of, shortened
from dutperf.tester import Progress, ProgressCallback


def duration(seconds: float) -> str:
    """A time for a person: ``62 s``, ``1 min 5 s``, ``3 h 20 min``."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 90:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    return f"{minutes} min {whole % 60} s" if minutes < 90 else f"{hours} h {minutes % 60} min"


@contextmanager
def observer() -> Iterator[Observer]:
    """Shows a procedure's progress until the block is left."""
    console = Output(stderr=True)
    if not console.is_terminal:
        yield PlainObserver(console)
        return
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        yield LiveObserver(live)


@contextmanager
def trial_progress(trial: Trial) -> Iterator[ProgressCallback]:
    console = Output(stderr=True)
    if not console.is_terminal:
        yield lambda _progress: None
        return
    whole_s = trial.whole_s
    with Live(console=console, transient=True) as live:
        yield lambda progress: live.update(
            Text(f"{_progress_text(progress)}, {duration(max(0.0, whole_s - progress.elapsed_s))} left")
        )


class PlainObserver:
    """One line for each trial, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._news = News()
        self._started = False

    def update(self, status: Status) -> None:
        if not self._started:
            self._started = True
            self._print(_estimate(status))
        if note := self._news.note(status):
            self._print(shortened(note))
        if (ended := self._news.trial(status)) and self._shows(ended):
            self._print(_ended(status, ended))

    def _shows(self, _result: TrialResult) -> bool:
        """Whether the trial gets a permanent line."""
        return True

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Agenda:
    """The measurements of a run and their states: done, under way, left."""

    def __init__(self, measurements: Sequence[str]) -> None:
        """``measurements`` by name."""
        self._measurements = measurements
        self._done: set[str] = set()
        self._now: str | None = None

    def begin(self, name: str) -> None:
        self._now = name

    def end(self) -> None:
        self._done |= {self._now} if self._now else set()
        self._now = None

    def lines(self, status: Status) -> list[str]:
        width = max(map(len, self._measurements))
        return [f"{name:{width}}  {self._state(name, status)}" for name in self._measurements]

    def left(self) -> int:
        return len([name for name in self._measurements if name != self._now and name not in self._done])

    def _state(self, name: str, status: Status) -> str:
        if name != self._now:
            return "done" if name in self._done else "left"
        cases = list(status.cases)
        place = cases.index(status.case)
        done = [f"{case} done" for case in cases[:place]]
        left = [f"{case} left" for case in cases[place + 1 :]]
        return ", ".join([*done, f"{status.case}: repetition {status.repetition} of {status.repetitions}", *left])


class LiveObserver(PlainObserver):
    """The measurements, the last trial and the running one, updated in place; notes and trials that
    were not valid stay above them."""

    def __init__(self, live: Live, agenda: Agenda | None = None) -> None:
        super().__init__(live.console)
        self._live = live
        self._agenda = agenda

    def update(self, status: Status) -> None:
        super().update(status)
        self._live.update(Text("\n".join([*self._before(status), _running(status)])))

    def _before(self, status: Status) -> list[str]:
        last = [] if status.last is None else [f"last trial: {_outcome(status.last)}"]
        if self._agenda is None:
            return last
        more = self._agenda.left()
        return [
            *self._agenda.lines(status),
            *last,
            *([f"after this one {count_of(more, 'more measurement')}"] if more else []),
        ]

    def _shows(self, result: TrialResult) -> bool:
        return result.verdict is not Verdict.VALID

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)


def _estimate(status: Status) -> str:
    return f"{status.procedure}: {_trials_left(status)}; Ctrl-C stops it and keeps the finished trials"


def _place(status: Status) -> str:
    return f"{status.case}, repetition {status.repetition} of {status.repetitions}"


def _ended(status: Status, result: TrialResult) -> str:
    left = f"; about {status.trials_left} left, {duration(status.remaining_s)}" if status.trials_left else ""
    return f"{_place(status)}, trial {status.trials_done}: {status.trying}: {_outcome(result)}{left}"


def _running(status: Status) -> str:
    where = f"{status.case}, {status.repetition}/{status.repetitions}"
    if status.trying is None:
        return f"{where}: {_left(status)}"
    lower, upper = ("-" if bound is None else f"{bound.value:,}" for bound in (status.lower, status.upper))
    return f"{where}: trying {status.trying} (passed {lower}, not {upper}); {_left(status)}"


def _left(status: Status) -> str:
    progress = f" ({_progress_text(status.progress)})" if status.progress else ""
    return f"{_trials_left(status)} left{progress}"


def _trials_left(status: Status) -> str:
    """With the time that they take, which is known once one has ended. Until then, the time that one is planned
    for."""
    trials = f"about {count_of(status.trials_left, 'trial')}"
    if status.trials_done:
        return f"{trials}, {duration(status.remaining_s)}"
    return f"{trials} of {duration(status.remaining_s / status.trials_left)}" if status.trials_left else trials


def _progress_text(progress: Progress) -> str:
    return f"{progress.elapsed_s:.0f} s: sent {progress.sent:,}, received {progress.received:,}"


def _outcome(result: TrialResult) -> str:
    if result.proven_failed is not None:
        return f"failed, though the tester was disturbed: {result.proven_failed}"
    if result.verdict is not Verdict.VALID:
        early = "" if not result.ended_early_s else f", ended after {result.ended_early_s:.1f} s"
        return f"{result.verdict}{early}: {shortened('; '.join(cause.text for cause in result.causes))}"
    losses = [
        f"{counts.counted.loss(direction, counts.lost, counts.sent)}{_late(counts)}"
        for direction, counts in result.directions().items()
        if counts.lost
    ]
    others = islice(beside.of_trial(result), 2)
    return ", ".join([*(losses or [result.counted.nothing_lost]), *others])


def _late(counts: DirectionCounts) -> str:
    return f" ({counts.late:,} of them late)" if counts.late else ""
