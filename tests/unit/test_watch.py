# SPDX-License-Identifier: Apache-2.0
"""What a run under way tells: a person, a program, Prometheus."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse
from rich.console import Console
from rich.live import Live

import documented
import plans
import simulated_run
from command_line import dutperf
from documented import SimulatedBench
from dutperf import procedures
from dutperf.api import results
from dutperf.cli.output import live, log, metrics, watch, webhook
from dutperf.cli.output.watch import Watchers
from dutperf.journal import JournalError, WriteError
from dutperf.model import FRAME_SIZE, Case, Load
from dutperf.results.comparison import figures_of
from dutperf.run import progress, suite
from dutperf.run.campaign import Observer, Status
from dutperf.run.progress import PROGRESS
from dutperf.run.suite import Measurement
from dutperf.setup.conditions import Rate
from dutperf.setup.configuration import ConfigError
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester

MEASURED = documented.a_suite(throughput={"frame_sizes": (84, 512)}, latency={"frame_sizes": (84, 512), "tags": 50})
Sample = tuple[str, frozenset[tuple[str, str]]]


class Fetching:
    """Asks the endpoint after each update."""

    def __init__(self, observer: Observer, port: int) -> None:
        self._observer = observer
        self._port = port
        self.fetched: list[dict[Sample, float]] = []
        self.statuses: list[Status] = []

    def update(self, status: Status) -> None:
        self._observer.update(status)
        self.statuses.append(status)
        if len(self.statuses) % 10 == 0:
            self.fetched.append(fetch(self._port))


def samples(families: Any) -> dict[Sample, float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def fetch(port: int, accept: str = "text/plain") -> dict[Sample, float]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read().decode()
        return samples((parse_openmetrics if "openmetrics" in answer.headers["Content-Type"] else parse)(text))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def measure(
    directory: Path, watchers: Watchers, measurements: tuple[Measurement, ...] = MEASURED, port: int = 0
) -> list[Fetching]:
    """A suite on a simulated DUT; what was fetched from ``port`` meanwhile."""
    tester, made = SimulatedTester(documented.JITTERY, SimulatedLimits(disturbed_ratio=0.1), seed=7), []
    with watchers.told(directory), watch.observers(measurements, directory, watchers) as watching:

        @contextmanager
        def fetching(measurement: Measurement, number: int) -> Iterator[Observer]:
            with watching(measurement, number) as observer:
                made.append(Fetching(observer, port))
                yield made[-1] if port else observer

        suite.begin(measurements, SimulatedBench(tester), directory, fetching)
        if port:
            made[-1].fetched.append(fetch(port, "application/openmetrics-text"))
    return made


def value(of: dict[Sample, float], name: str, **labels: str) -> float:
    return of[name, frozenset(labels.items())]


def test_metrics_are_served_while_it_measures_and_not_after(tmp_path: Path) -> None:
    port = free_port()
    throughput, latency = measure(tmp_path / "suite", Watchers(metrics_port=port), port=port)
    assert len(throughput.fetched) > 2
    for fetched, status in zip(throughput.fetched, throughput.statuses[9::10], strict=True):
        assert value(fetched, "dutperf_frame_size_bytes") == status.case[FRAME_SIZE]
        assert status.trying is not None
        assert value(fetched, "dutperf_intended_frames_per_second") == status.trying.value
        assert value(fetched, "dutperf_measurement_under_way", measurement="throughput", procedure="throughput") == 1
        assert 0 <= value(fetched, "dutperf_progress_ratio") <= 1
        assert status.last is not None
        for direction, counts in status.last.directions().items():
            assert value(fetched, "dutperf_trial_sent_frames", direction=direction.value) == counts.sent
            assert value(fetched, "dutperf_trial_lost_frames", direction=direction.value) == counts.lost
            assert value(
                fetched, "dutperf_trial_lateness_seconds", direction=direction.value, quantile="1"
            ) == pytest.approx(counts.lateness_us.max / 1e6)
            rate_fps = value(fetched, "dutperf_trial_received_frames_per_second", direction=direction.value)
            assert rate_fps == pytest.approx(counts.received / counts.send_time_s)
    assert_results(latency.fetched[-1], tmp_path / "suite")
    with pytest.raises(urllib.error.URLError):
        fetch(port)


def assert_results(fetched: dict[Sample, float], directory: Path) -> None:
    """Every figure of the summaries, and every trial of the journals."""
    for one in results.read(directory).measured:
        assert one.summary is not None
        done = [trial.result.verdict for trial in one.trials()]
        for verdict in set(done):
            assert value(fetched, "dutperf_trials_total", measurement=one.name, verdict=verdict.value) == done.count(
                verdict
            )
        unit, factor = ("frames_per_second", 1) if one.name == "throughput" else ("seconds", 1e-3)
        for point in one.summary.points:
            for name, figure in figures_of(point):
                where = {"measurement": one.name, "frame_size": str(point.case[FRAME_SIZE]), "figure": name}
                assert figure.median is not None
                assert value(fetched, f"dutperf_result_{unit}", **where) == pytest.approx(figure.median * factor)
    assert value(fetched, "dutperf_measurements_ended") == value(fetched, "dutperf_measurements") == 2


def test_a_file_of_metrics_is_whole_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "dutperf.prom"
    measure(tmp_path / "suite", Watchers(metrics_file=path, testbed="rack-1"))
    assert 'dutperf_testbed_info{testbed="rack-1"} 1.0' in path.read_text()
    assert_results(samples(parse(path.read_text())), tmp_path / "suite")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("dutperf")] == ["dutperf.prom"]
    helps = re.findall(r"^# HELP (\S+) (\S.*)$", path.read_text(), flags=re.MULTILINE)
    assert len(helps) >= 15
    assert all(name.startswith("dutperf_") for name, _ in helps)


@pytest.mark.parametrize("unit", ["frame-loss", "back-to-back"])
def test_other_procedures_results_have_their_units(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "dutperf.prom"
    chosen = documented.a_suite(
        throughput={"frame_sizes": (84,)},
        **{unit.replace("-", "_"): documented.MEASURED[unit] | {"frame_sizes": (84,)}},
    )
    measure(tmp_path / "suite", Watchers(metrics_file=path), chosen)
    name = {"frame-loss": "dutperf_result_ratio", "back-to-back": "dutperf_result_frames"}[unit]
    assert any(
        sample == name and dict(labels)["measurement"] == unit for sample, labels in samples(parse(path.read_text()))
    )


def test_metrics_that_cannot_be_had_are_said_before_anything_is_measured(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="metrics cannot be served there"):
            measure(tmp_path / "suite", Watchers(metrics_port=taken.getsockname()[1]))
    with pytest.raises(JournalError, match="cannot write"):
        measure(tmp_path / "suite", Watchers(metrics_file=tmp_path / "none" / "dutperf.prom"))
    assert not (tmp_path / "suite").exists()


def test_an_address_without_a_port() -> None:
    with pytest.raises(ConfigError, match="no effect"):
        Watchers.of(log_format="text", metrics_port=None, metrics_address="::1", metrics_file=None, webhook=None)


def test_a_file_that_cannot_be_written_any_more_does_not_end_the_run(tmp_path: Path) -> None:
    place = tmp_path / "metrics"
    place.mkdir()
    with watch.observers(MEASURED, tmp_path / "suite", Watchers(metrics_file=place / "dutperf.prom")) as watching:
        (place / "dutperf.prom").unlink()
        place.rmdir()
        suite.begin(MEASURED, SimulatedBench(SimulatedTester(documented.JITTERY)), tmp_path / "suite", watching)
    assert results.read(tmp_path / "suite").is_complete


def test_a_program_reads_a_line_for_each_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with log.form("json"):
        measure(tmp_path / "suite", Watchers(log_format="json"))
        log.message("the end")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert all({"time", "event"} <= line.keys() for line in lines)
    for one in results.read(tmp_path / "suite").measured:
        trials = [line for line in lines if line["event"] == "trial" and line["measurement"] == one.name]
        assert [line["verdict"] for line in trials] == [done.result.verdict.value for done in one.trials()]
        assert [line["forward"]["lost"] for line in trials] == [
            done.result.forward.lost for done in one.trials() if done.result.forward
        ]
    assert [(line["event"], line["number"]) for line in lines if line["event"].startswith("measure")] == [
        ("measurement", 1), ("measured", 1), ("measurement", 2), ("measured", 2),
    ]  # fmt: skip
    assert any(line["event"] == "note" and line["text"].startswith("repetition 1: ") for line in lines)
    assert lines[-1]["text"] == "the end"


def test_a_log_is_plain_and_has_a_line_for_each_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(tmp_path / "suite", Watchers())
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert "measurement 2 of 2: latency" in told
    assert len(re.findall(r", trial \d+: ", told)) == sum(
        len(one.trials()) for one in results.read(tmp_path / "suite").measured
    )


def test_a_terminal_shows_what_is_done_under_way_and_left() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=100, height=20)
    agenda = live.Agenda(["throughput", "latency", "pdv", "ipdv"])
    cases = [Case({FRAME_SIZE: size}) for size in (84, 512, 1518)]
    given = {
        "procedure": "latency",
        "case": cases[1],
        "cases": cases,
        "repetition": 2,
        "repetitions": 20,
        "trying": Load.fps(15_000),
        "lower": None,
        "upper": None,
    }
    status = Status(**given, trials_done=3, trials_left=7, remaining_s=213.0)  # type: ignore[arg-type]
    agenda.begin("throughput")
    agenda.end()
    agenda.begin("latency")
    with Live(console=console, auto_refresh=False) as shown:
        live.LiveObserver(shown, agenda).update(status)
        shown.refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for line in (
        "throughput  done",
        "latency     84 bytes done, 512 bytes: repetition 2 of 20, 1518 bytes left",
        "pdv         left",
        "about 7 trials, 3 min 33 s left",
        "after this one 2 more measurements",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("procedure", "figure", "unit", "factor"),
    [
        ("throughput", "throughput_fps", "frames_per_second", 1),
        ("back-to-back", "burst_frames", "frames", 1),
        ("frame-loss", "rates.loss_ratio.worst", "ratio", 1),
        ("soak", "loss_ratio", "ratio", 1),
        ("latency", "forward.TL", "seconds", 1e-3),
        ("pdv", "reverse.D99.9", "seconds", 1e-3),
        ("reset", "forward.loss", "seconds", 1),
        ("load-latency", "loads.delay_us.forward.p99", "seconds", 1e-6),
        ("table-capacity", "capacity", "connections", 1),
        ("teardown-rate", "teardown_cps", "connections_per_second", 1),
        ("teardown-rate", "deletion_s", "seconds", 1),
        ("address-capacity", "addresses", "addresses", 1),
        ("address-learning-rate", "learning_aps", "addresses_per_second", 1),
        ("address-ageing", "ageing_s", "seconds", 1),
        ("broadcast", "delay_us.p2.min", "seconds", 1e-6),
        ("ndp-capacity", "neighbours", "neighbours", 1),
        ("latency", "paths.lan->wan_s.TL", "seconds", 1e-3),
        ("load-latency", "loads.delay_us.lan->wan_ms.p99", "seconds", 1e-6),
    ],
)
def test_metrics_have_the_unit_of_the_figure(procedure: str, figure: str, unit: str, factor: float) -> None:
    assert metrics._unit(figure, procedure) == (unit, factor)


def test_a_run_that_is_refused_leaves_the_progress_of_another(tmp_path: Path) -> None:
    others = json.dumps({"pid": os.getppid(), "measurement": "throughput"})
    (tmp_path / PROGRESS).write_text(others)
    with progress.observed("replay", tmp_path):
        pass
    assert (tmp_path / PROGRESS).read_text() == others
    (tmp_path / PROGRESS).write_text(json.dumps({"pid": os.getpid()}))
    with progress.observed("replay", tmp_path):
        pass
    assert not (tmp_path / PROGRESS).exists()


@pytest.mark.parametrize("name", procedures.NAMES)
def test_every_figure_has_a_name_of_its_own(name: str, tmp_path: Path) -> None:
    outage_s = (1.2, 1.6) if name == "reset" else None
    dut = SimulatedDut(capacity_fps=54_321, addresses=simulated_run.TABLE, outage_s=outage_s)
    for point in plans.measure(SimulatedTester(dut), simulated_run.a_plan(name), tmp_path, name).points:
        found = [(figure.load, member) for member, figure in figures_of(point)]
        assert len(set(found)) == len(found) > 0
        assert all(metrics._unit(figure, name)[0] for _, figure in found)


def test_a_figure_that_is_not_the_duts_is_no_metric(tmp_path: Path) -> None:
    watched = metrics.Metrics(1, None)
    tester = SimulatedTester(limits=SimulatedLimits(send_fps=20_000))
    plans.measure(tester, plans.plan(max_rate=Rate.parse("50k"), repetitions=1), tmp_path, "throughput")
    [point, *_] = results.read(tmp_path)["throughput"].summary.points
    assert point.limited_by_tester
    assert point.throughput_fps.median is not None
    watched.ended("throughput", tmp_path)
    assert "dutperf_result" not in generate_latest(watched.registry).decode()


def test_the_dashboard_shows_metrics_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "dutperf.prom"
    measure(tmp_path / "suite", Watchers(metrics_file=path))
    served = set(re.findall(r"^# TYPE (dutperf_\w+)", path.read_text(), re.MULTILINE)) | {"dutperf_trials_total"}
    board = json.loads((Path(__file__).parents[2] / "examples" / "grafana" / "dutperf.json").read_text())
    shown = {
        name for one in board["panels"] for each in one["targets"] for name in re.findall(r"dutperf_\w+", each["expr"])
    }
    assert len(shown) > 10
    assert shown <= served


# --- a webhook ------------------------------------------------------------------------------------


@contextmanager
def server(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web server on loopback, and what it was told."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{made.server_port}/hook", told
        finally:
            made.shutdown()


def test_a_web_server_is_told_when_a_suite_has_ended(tmp_path: Path) -> None:
    with server() as (url, told):
        measure(tmp_path / "suite", Watchers(webhook=url))
    [ended] = told
    assert (ended["event"], ended["outcome"], ended["directory"]) == (
        "ended",
        "completed",
        str((tmp_path / "suite").resolve()),
    )
    assert {one["procedure"] for one in ended["measurements"]} >= {"throughput", "latency"}
    assert all(one["complete"] and not one["without_number"] for one in ended["measurements"])


@pytest.mark.parametrize(("error", "outcome"), [(KeyboardInterrupt(), "interrupted"), (WriteError("full"), "failed")])
def test_a_web_server_is_told_how_a_run_ended(error: BaseException, outcome: str, tmp_path: Path) -> None:
    with server() as (url, told), pytest.raises(type(error)), webhook.at_end(url, tmp_path / "none"):
        raise error
    assert (told[0]["outcome"], told[0]["message"], told[0]["measurements"]) == (outcome, str(error), [])


def test_a_web_server_is_told_of_a_run_that_could_not_begin(tmp_path: Path) -> None:
    with server() as (url, told):
        done = dutperf("throughput", "--config", tmp_path / "none.yaml", "--out", tmp_path / "out", "--webhook", url)
    assert done.exit_code == 2
    assert [one["outcome"] for one in told] == ["failed"]
    assert "cannot read" in told[0]["message"]


def test_a_web_server_that_refuses_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with server(500) as (url, told), webhook.at_end(url, tmp_path):
        pass
    assert len(told) == 1
    assert "the webhook did not take the end of the run" in capsys.readouterr().err
    with webhook.at_end("http://127.0.0.1:9/", tmp_path):
        pass
    assert "did not take" in capsys.readouterr().err


@contextmanager
def talking(answers: Sequence[bytes]) -> Iterator[str]:
    """A server that says this, whatever it is told; then nothing more."""

    def talk(listening: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                for answer in answers:
                    connection.sendall(answer)
                    time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=talk, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"


NO_HTTP = [[b"nonsense\r\n\r\n"], [b"HTTP/1.1 abc\r\n"], [], [b"\x00" * 70_000], [b"H"] * 100]


@pytest.mark.parametrize("answers", NO_HTTP)
def test_a_server_that_speaks_no_http_changes_nothing(
    answers: list[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_S", 1.0)
    began_s = time.monotonic()
    with talking(answers) as url, webhook.at_end(url, tmp_path):
        pass
    assert "the webhook did not take the end of the run" in capsys.readouterr().err
    assert time.monotonic() - began_s < 4, "one byte at a time does not keep the command"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b", "ci.example/hook", "http://", "http://[::1/hook"])
def test_what_is_no_url_of_the_web_is_refused_before_anything_is_measured(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no URL"):
        measure(tmp_path / "suite", Watchers(webhook=url))
    assert not (tmp_path / "suite").exists()
