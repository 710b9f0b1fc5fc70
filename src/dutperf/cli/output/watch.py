# SPDX-License-Identifier: Apache-2.0
"""The observers of a measurement's progress: a person or a program on standard error (``--log-format
json``), Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from dutperf.cli import options
from dutperf.cli.errors import reported, say
from dutperf.cli.output import json_lines, live, log, webhook
from dutperf.cli.output.terminal import Output
from dutperf.engine.client import reporting_every
from dutperf.run import lease, progress
from dutperf.run.campaign import Observer, Status
from dutperf.run.suite import Measurement, Watch
from dutperf.setup.configuration import ConfigError


class Watchers(options.WatchOptions):
    """The options for progress."""

    @classmethod
    def of(cls, **chosen: Any) -> Watchers:
        """From the options. Raises ConfigError: an address without a port, a wait without a testbed."""
        if chosen.get("wait_for_testbed") and chosen.get("testbed") is None:
            raise ConfigError("has no effect without --testbed", "--wait-for-testbed")
        if chosen["metrics_address"] is not None and chosen["metrics_port"] is None:
            raise ConfigError("has no effect without --metrics-port", "--metrics-address")
        return cls(**chosen)

    def leased(self) -> AbstractContextManager[None]:
        """Within, the testbed is this command's. Raises LeaseError: another one has it."""
        return nullcontext() if self.testbed is None else lease.leased(self.testbed, self.wait_for_testbed, say)

    def told(self, directory: Path) -> AbstractContextManager[None]:
        """Within, what is in ``directory`` is posted at the end, however it comes: also where the test bench cannot be
        set up or taken down. Raises ConfigError: no URL of the web."""
        return nullcontext() if self.webhook is None else webhook.at_end(self.webhook, directory)


def watched(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with the options for progress, as its parameter ``watchers``, and with one-sentence
    errors."""

    def with_watchers(**given: Any) -> None:
        with log.form(given["log_format"]), reported():
            watchers = Watchers.of(**{name: given.pop(name) for name in options.WATCHERS})
            with watchers.leased():
                command(watchers=watchers, **given)

    own = [each for name, each in signature(command, eval_str=True).parameters.items() if name != "watchers"]
    watching = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in options.WATCHERS.values()]
    with_watchers.__doc__ = command.__doc__
    with_watchers.__signature__ = Signature([*own, *watching])  # type: ignore[attr-defined]
    return with_watchers


@contextmanager
def observers(measurements: Sequence[Measurement], directory: Path, watchers: Watchers) -> Iterator[Watch]:
    """Makes the observer of each measurement; ``directory`` is that of the run or the suite. Raises ConfigError:
    metrics cannot be served on the address. Raises WriteError: the metrics file cannot be written."""
    with ExitStack() as held:
        held.enter_context(reporting_every(round(watchers.progress_interval * 1000)))
        watches = [held.enter_context(_shown(measurements, watchers.log_format))]
        watches += [held.enter_context(progress.written(measurements, directory))]
        counting = _metrics(held, measurements, directory, watchers)
        watches += [] if counting is None else [counting]

        @contextmanager
        def watch(measurement: Measurement, number: int) -> Iterator[Observer]:
            with ExitStack() as each:
                yield _All([each.enter_context(one(measurement, number)) for one in watches])

        yield watch


@dataclass(frozen=True)
class _All:
    observers: Sequence[Observer]

    def update(self, status: Status) -> None:
        for one in self.observers:
            one.update(status)


def _metrics(held: ExitStack, measurements: Sequence[Measurement], directory: Path, watchers: Watchers) -> Watch | None:
    if watchers.metrics_port is None and watchers.metrics_file is None:
        return None
    from dutperf.cli.output import metrics  # imported late: the library is slow to import

    place = metrics.Place(watchers.metrics_port, watchers.metrics_address, watchers.metrics_file, watchers.testbed)
    return held.enter_context(metrics.observers(measurements, directory, place))


@contextmanager
def _shown(measurements: Sequence[Measurement], log_format: log.Format) -> Iterator[Watch]:
    console = Output(stderr=True)
    if log_format == "json":
        yield lambda one, number: _logged(one, number, len(measurements))
    elif not console.is_terminal:
        yield lambda one, number: _plain(one, number, len(measurements), console)
    else:
        with Live(console=console, transient=True, refresh_per_second=4) as shown:
            agenda = live.Agenda([one.name for one in measurements])
            yield lambda one, _: _live(one, agenda, shown)


@contextmanager
def _logged(measurement: Measurement, number: int, count: int) -> Iterator[Observer]:
    log.event("measurement", measurement=measurement.name, number=number, count=count)
    yield json_lines.JsonObserver(measurement.name)
    log.event("measured", measurement=measurement.name, number=number, count=count)


@contextmanager
def _plain(measurement: Measurement, number: int, count: int, console: Console) -> Iterator[Observer]:
    if count > 1:
        say(f"measurement {number} of {count}: {measurement.name}")
    yield live.PlainObserver(console)


@contextmanager
def _live(measurement: Measurement, agenda: live.Agenda, shown: Live) -> Iterator[Observer]:
    agenda.begin(measurement.name)
    yield live.LiveObserver(shown, agenda)
    agenda.end()
