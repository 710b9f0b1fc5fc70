# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a run under way: an endpoint (``--metrics-port``), a file for node_exporter's
textfile collector (``--metrics-file``), or both.

Names include units. Metrics of a trial are those of the last one that ended; metrics of a measurement
are those of the one under way. Results follow when a measurement has ended. The file is replaced
after each trial, and stays after the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dutperf.api import results
from dutperf.cli.output.news import News
from dutperf.journal import JournalError, not_written
from dutperf.model import Axis, Case, Direction, DirectionCounts, Load, TrialResult, Unit
from dutperf.results.comparison import figures_of
from dutperf.run.campaign import Observer, Status
from dutperf.run.suite import SUITE, Measurement, Watch
from dutperf.setup.configuration import ConfigError

LOOPBACK = "127.0.0.1"
_QUANTILES = {"0.5": "p50", "0.99": "p99", "0.999": "p999", "1": "max"}


@dataclass(frozen=True)
class Place:
    """Destinations of the metrics."""

    port: int | None
    """0: any free port."""
    address: str | None
    """None: loopback."""
    file: Path | None
    testbed: str | None = None
    """The one that is leased."""


class Metrics:
    """All metrics, in a registry of their own."""

    def __init__(self, measurements: int, testbed: str | None = None) -> None:
        self.registry = CollectorRegistry()
        if testbed is not None:
            self._gauge("testbed_info", "1 for the testbed that this run has leased.", "testbed").labels(testbed).set(1)
        self._gauge("measurements", "Measurements of this run or suite.").set(measurements)
        self.measured = self._gauge("measurements_ended", "Measurements that have ended.")
        self.under_way = self._gauge(
            "measurement_under_way", "1 for the measurement under way.", "measurement", "procedure"
        )
        self.repetition = self._gauge("repetition", "Repetition under way, from 1.")
        self.repetitions = self._gauge("repetitions", "Minimum number of repetitions.")
        self.progress = self._gauge(
            "progress_ratio",
            "Share of the trials of the measurement under way that are done; the total is an estimate.",
        )
        self.remaining = self._gauge("remaining_seconds", "Estimated remaining time of the measurement under way.")
        self.trials = Counter(
            "dutperf_trials", "Trials that ended, by verdict.", ("measurement", "verdict"), registry=self.registry
        )
        self.frames = {
            name: self._gauge(f"trial_{name}_frames", f"Frames {what} in the last trial.", "direction")
            for name, what in (("intended", "to be sent"), ("sent", "sent"), ("received", "received"), ("lost", "lost"))
        }
        self.rates = {
            name: self._gauge(
                f"trial_{name}_frames_per_second", f"Frames {name} in the last trial, by its sending time.", "direction"
            )
            for name in ("sent", "received")
        }
        self.dropped = self._gauge(
            "trial_tester_dropped_frames", "Frames that the tester itself dropped in the last trial.", "direction"
        )
        self.lateness = self._gauge(
            "trial_lateness_seconds",
            "Lateness of the sender in the last trial, against its schedule.",
            "direction",
            "quantile",
        )
        self.stall = self._gauge(
            "trial_stall_seconds",
            "Longest stall of a loop of the tester in the last trial.",
            "direction",
            "loop",
        )
        self._now: dict[str, Gauge] = {}
        self._results = _Results()
        self.registry.register(self._results)

    def trying(self, case: Case, load: Load | None) -> None:
        """Show the case and the intended load: a metric for each numeric axis, and one for the load,
        with its unit in the name."""
        shown = {_name_of(axis): (f"{axis.heading} being measured.", value) for axis, value in case.own().items()}
        if load is not None:
            text = f"Intended load of the trial under way, {load.unit.label}."
            shown[f"intended_{load.unit.in_words}"] = (text, load.value)
        for name in set(self._now) - set(shown):
            self.registry.unregister(self._now.pop(name))
        for name, (text, value) in shown.items():
            if not isinstance(value, str):
                if name not in self._now:
                    self._now[name] = self._gauge(name, text)
                self._now[name].set(value)

    def trial_ended(self, measurement: str, result: TrialResult) -> None:
        self.trials.labels(measurement, result.verdict.value).inc()
        for direction, counts in result.directions().items():
            self._count(direction, counts)

    def _count(self, direction: Direction, counts: DirectionCounts) -> None:
        for name, gauge in self.frames.items():
            gauge.labels(direction.value).set(getattr(counts, name))
        for name, gauge in self.rates.items():
            gauge.labels(direction.value).set(getattr(counts, name) / counts.send_time_s if counts.send_time_s else 0)
        self.dropped.labels(direction.value).set(sum(counts.tester_drops.values()))
        for quantile, name in _QUANTILES.items():
            self.lateness.labels(direction.value, quantile).set(getattr(counts.lateness_us, name) / 1e6)
        for loop in ("sender", "receiver"):
            self.stall.labels(direction.value, loop).set(getattr(counts.stall_us, loop) / 1e6)

    def ended(self, measurement: str, directory: Path) -> None:
        self.measured.inc()
        for one in results.read(directory).measured:
            for point in one.summary.points if one.summary else ():
                for name, figure in figures_of(point):
                    if figure.median is not None and not figure.unusable:
                        unit, factor = _unit(name, one.summary.procedure if one.summary else "")
                        load = figure.load
                        at = {} if load is None else {load.unit.column: str(load.value)}
                        case = {name: str(value) for name, value in point.case.key().items()}
                        labels = {"measurement": measurement, **case, "figure": name, **at}
                        self._results.add(unit, labels, figure.median * factor)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"dutperf_{name}", text, labels, registry=self.registry)


class _Results(Collector):
    """Medians. Labels include the axes of the case, so that they differ between results."""

    def __init__(self) -> None:
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}

    def add(self, unit: str, labels: dict[str, str], median: float) -> None:
        """Add a median in ``unit`` (``frames_per_second``)."""
        self._samples.setdefault(unit, []).append((labels, median))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for unit, samples in list(self._samples.items()):
            name = f"dutperf_result_{unit}"
            family = GaugeMetricFamily(name, f"Median over the repetitions, {unit.replace('_', ' ')}.")
            for labels, median in list(samples):
                family.add_sample(name, labels, median)
            yield family


def _name_of(axis: Axis[Any]) -> str:
    """With its unit: ``frame_size_bytes``."""
    unit = re.sub(r"\W+", "_", axis.unit).strip("_")
    return axis.name if unit in ("", axis.name) else f"{axis.name}_{unit}"


_COUNTS = {"capacity": "connections", "addresses": "addresses", "neighbours": "neighbours"}
"""Figures that are numbers of something."""
_TIMES = {"_us": 1e-6, "_ms": 1e-3, "_s": 1.0}
_UNNAMED = {"recovery": 1.0, "reset": 1.0, "latency": 1e-3, "pdv": 1e-3, "ipdv": 1e-3}
"""Procedures whose figures are times, but named by what they are alone, and the factor to seconds."""


def _unit(figure: str, procedure: str) -> tuple[str, float]:
    """The unit of a summary's figure by Prometheus's conventions, and the factor to it."""
    if figure in _COUNTS:
        return _COUNTS[figure], 1.0
    if "loss_ratio" in figure:
        return "ratio", 1.0
    parts = [part for part in figure.split(".") if "->" not in part]  # the names of ports say nothing
    for suffix, factor in _TIMES.items():
        if any(part.endswith(suffix) for part in parts):
            return "seconds", factor
    unit = next((unit.in_words for unit in Unit if figure.endswith(f"_{unit.suffix}")), None)
    return (unit, 1.0) if unit else ("seconds", _UNNAMED[procedure])


@contextmanager
def observers(measurements: Sequence[Measurement], directory: Path, place: Place) -> Iterator[Watch]:
    metrics = Metrics(len(measurements), place.testbed)
    with _served(metrics, place):
        _write(metrics, place)
        yield lambda one, _: _observer(
            one, directory / one.name if (directory / SUITE).exists() else directory, metrics, place
        )


@contextmanager
def _observer(measurement: Measurement, directory: Path, metrics: Metrics, place: Place) -> Iterator[Observer]:
    metrics.under_way.clear()
    metrics.under_way.labels(measurement.name, measurement.definition.name).set(1)
    yield _MetricsObserver(measurement.name, metrics, place)
    metrics.ended(measurement.name, directory)
    metrics.under_way.clear()
    _update_file(metrics, place)


class _MetricsObserver:
    def __init__(self, measurement: str, metrics: Metrics, place: Place) -> None:
        self._measurement = measurement
        self._metrics = metrics
        self._place = place
        self._news = News()

    def update(self, status: Status) -> None:
        metrics, all_ = self._metrics, status.trials_done + status.trials_left
        for gauge, value in (
            (metrics.repetition, status.repetition),
            (metrics.repetitions, status.repetitions),
            (metrics.progress, status.trials_done / all_ if all_ else 0),
            (metrics.remaining, status.remaining_s),
        ):
            gauge.set(value)
        metrics.trying(status.case, status.trying)
        if ended := self._news.trial(status):
            metrics.trial_ended(self._measurement, ended)
            _update_file(metrics, self._place)


@contextmanager
def _served(metrics: Metrics, place: Place) -> Iterator[None]:
    if place.port is None:
        yield
        return
    try:
        server, thread = start_http_server(place.port, place.address or LOOPBACK, metrics.registry)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(
            f"metrics cannot be served there: {getattr(error, 'strerror', None) or error}", "--metrics-port"
        ) from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _write(metrics: Metrics, place: Place) -> None:
    """Raises WriteError: the disk is full or fails. Raises JournalError: the file cannot be written otherwise."""
    if place.file is None:
        return
    try:
        write_to_textfile(str(place.file), metrics.registry)
    except OSError as error:
        raise not_written(place.file, error) from error


def _update_file(metrics: Metrics, place: Place) -> None:
    """Write the file; an error does not end the measurement under way."""
    with suppress(JournalError):
        _write(metrics, place)
