# SPDX-License-Identifier: Apache-2.0
"""The run of ``dutperf otg --out``: what its journal has, and that every reader of runs reads it; nothing is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dutperf import journal
from dutperf.api import results
from dutperf.journal import EndEvent, Event, JournalError, ResultEvent, TrialEvent, of_kind
from dutperf.model import Cause, Direction, SoFar, Trial, TrialResult, Verdict
from dutperf.otg import trial_log
from dutperf.otg.traffic import AllSent
from dutperf.otg.trial_log import verdict_of
from dutperf.report.html import REPORT
from dutperf.results import by_clients
from dutperf.results.by_clients import ConfigurationFinding
from dutperf.results.summary import SUMMARY
from dutperf.run.progress import PROGRESS
from dutperf.store import Store
from dutperf.tester import EndTrial, Progress, ProgressCallback, TesterError
from dutperf.tester.simulated import SimulatedDut
from dutperf.web import following
from dutperf.web.errors import Refused
from dutperf.web.runs import Runs, run_in
from otg_messages import Opened, configured, flow, serving
from reports import dutperf, tables_of

EARLY = "a frame left 304.511 ms late, more than the 50 ms allowed"
LOSSY = SimulatedDut(capacity_fps=500.0, queue_frames=0)
ENDED_S = 10


class Late(Opened):
    """Every other trial is invalid."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        [direction] = trial.streams()
        late = Cause(code="sender_late", text=f"{direction}: {EARLY}", direction=direction)
        invalid = {"verdict": Verdict.INVALID, "causes": (late,)}
        return result.model_copy(update=invalid) if trial.trial % 2 == 0 else result


class Overloaded(Opened):
    """The flows of each trial are late, the second one most."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        latest_ms = dict(zip(trial.streams(), (60, 80, 70), strict=True))
        causes = [
            Cause(code="sender_late", text=f"{direction}: {latest} ms late", direction=direction)
            for direction, latest in latest_ms.items()
        ]
        counts = {
            direction: one.model_copy(
                update={"lateness_us": one.lateness_us.model_copy(update={"max": 1000.0 * latest_ms[direction]})}
            )
            for direction, one in (result.other_streams or {}).items()
        }
        told = (Cause(code="links", text="the link was down"), *causes)
        return result.model_copy(update={"verdict": Verdict.INVALID, "causes": told, "other_streams": counts})


class Dying(Opened):
    """Its engine dies in each trial."""

    def run(self, _trial: Trial, _on_progress: ProgressCallback | None = None) -> TrialResult:
        raise TesterError("the engine is gone", code="internal")


class Endless(Opened):
    """One whose trials last until they are ended, and of which it then tells nothing."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        assert on_progress is not None
        while True:
            try:
                on_progress(Progress(0.1, 10, 10))
            except EndTrial:
                return TrialResult(trial=trial.trial, verdict=Verdict.VALID, other_streams={})
            time.sleep(0.01)


@contextmanager
def recorded(out: Path, kind: type[Opened] = Opened, **members: Any) -> Iterator[TestClient]:
    with (
        trial_log.in_directory(out, trial_log.plan_event(0.0)) as log,
        contextmanager(serving)(kind, log, **members) as client,
    ):
        yield client


def transmit(client: TestClient, state: str) -> int:
    answer = client.post("/control/state", json={"traffic": {"flow_transmit": {"state": state}}})
    return answer.status_code


def verdicts(client: TestClient) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = client.get("/dutperf/verdicts").json()["trials"]
    return answer


def sent(client: TestClient, *flows: dict[str, Any], times: int = 1) -> list[dict[str, Any]]:
    """Set a configuration and send its flows so often; the verdicts of these trials."""
    assert client.post("/config", json=configured(*flows)).status_code == 200
    for number in range(1, times + 1):
        assert transmit(client, "start") == 200
        end_s = time.monotonic() + ENDED_S
        while len(verdicts(client)) < number:
            assert time.monotonic() < end_s
            time.sleep(0.02)
    return verdicts(client)


def shown(out: Path, note: str) -> dict[str, Any]:
    """What the progress says, once it has this note."""
    end_s = time.monotonic() + ENDED_S
    while True:
        now: dict[str, Any] = json.loads((out / PROGRESS).read_text()) if (out / PROGRESS).exists() else {"note": ""}
        if now["note"] == note:
            return now
        assert time.monotonic() < end_s, now["note"]
        time.sleep(0.05)


def kinds(events: list[Event]) -> list[str]:
    return [event.event for event in events]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two configurations: two flows that lose frames, and one in a valid trial and an invalid one."""
    out = tmp_path_factory.mktemp("otg") / "run"
    lasting = {"duration": {"fixed_seconds": {"seconds": 0.1}}}
    with recorded(out, dut=LOSSY) as client:
        sent(client, flow(name="a to b", **lasting), flow(name="f2", rate={"pps": "400"}, **lasting))
    alone = out.with_name("late")
    with recorded(alone, Late) as client:
        sent(client, flow(), times=3)
    return out


@pytest.fixture
def late(run: Path) -> Path:
    """Of three trials the second one is invalid."""
    return run.with_name("late")


def test_the_journal_has_configurations_and_trials_and_its_end(run: Path) -> None:
    events = journal.read(run)
    assert kinds(events) == ["plan", "configuration", "environment", "trial", "result", "end"]
    [configuration] = [ConfigurationFinding.of(one) for one in events if isinstance(one, journal.Finding)]
    assert (configuration.number, configuration.client) == (1, "testclient")
    assert sorted(configuration.flows.values()) == ["a to b", "f2"]
    assert configuration.configuration is not None
    assert [one["name"] for one in configuration.configuration["flows"]] == ["a to b", "f2"]
    assert journal.is_complete(events)
    assert not (run / PROGRESS).exists()


def test_clients_and_the_journal_have_the_same_verdicts(tmp_path: Path) -> None:
    with recorded(tmp_path / "run", Late) as client:
        told = sent(client, flow(name="a to b"), times=3)
    events = journal.read(tmp_path / "run")
    [configuration] = [ConfigurationFinding.of(one) for one in events if isinstance(one, journal.Finding)]
    trials = [one.trial for one in of_kind(events, TrialEvent)]
    ended = [one.result for one in of_kind(events, ResultEvent)]
    assert told == [verdict_of(*one, configuration.flows) for one in zip(trials, ended, strict=True)]
    assert [one["verdict"] for one in told] == ["valid", "invalid", "valid"]
    assert told[1]["causes"] == [f"a to b: {EARLY}"]


def test_what_is_true_of_several_flows_is_told_of_the_worst(tmp_path: Path) -> None:
    flows = [flow(name=name, duration={"fixed_seconds": {"seconds": 0.1}}) for name in ("f1", "f10", "f2")]
    with recorded(tmp_path / "run", Overloaded) as client:
        [told] = sent(client, *flows)
        stopped = client.post("/control/state", json={"traffic": {"flow_transmit": {"state": "stop"}}}).json()
    assert told["causes"] == ["the link was down", "f1: 60 ms late", "f10: 80 ms late", "f2: 70 ms late"]
    assert stopped["warnings"] == [
        "not valid: the link was down",
        "not valid: f10: 80 ms late; the worst of 3 flows",
    ]


def test_each_flow_has_a_row_by_its_rate(run: Path) -> None:
    [point] = results.read(run)["otg"].summary.points  # type: ignore[union-attr]
    assert isinstance(point, by_clients.ClientsPoint)
    assert [(at.load.value, list(at.flows)) for at in point.rates] == [
        (400, ["f2, 64 bytes"]),
        (1000, ["a to b, 64 bytes"]),
    ]
    [lossy] = point.rates[1].flows.values()
    assert (lossy.sent, lossy.valid, lossy.limited_by) == (100, 1, None)
    assert lossy.loss_ratio is not None
    assert lossy.loss_ratio.median == pytest.approx(lossy.lost / 100)
    assert lossy.lost > 0
    assert (point.message, point.has_number) == ("1 trial: 1 valid", True)


def test_invalid_trials_are_no_figures_and_the_report_has_their_cause(late: Path) -> None:
    [point] = results.read(late)["otg"].summary.points  # type: ignore[union-attr]
    assert isinstance(point, by_clients.ClientsPoint)
    [figures] = point.rates[0].flows.values()
    assert (figures.trials, figures.valid, figures.sent) == (3, 2, 200)
    page = dutperf("report", late)
    assert page.exit_code == 0, page.output
    rows = tables_of((late / REPORT).read_text())["Trials of otg"]
    assert [row[-1] for row in rows[1:]] == ["passed", f"invalid: f1: {EARLY}", "passed"]


@pytest.mark.parametrize("command", ["show", "export", "report", "plot"])
def test_every_command_for_results_reads_it(command: str, run: Path) -> None:
    done = dutperf(command, run)
    assert done.exit_code == 0, done.output
    if command == "show":
        assert "a to b, 64 bytes" in done.output
        assert "resume with" not in done.output
        assert done.output.startswith("2 flows: ")
        assert "deviates from RFC 2544 and RFC 8219" in done.output


def test_it_is_compared_with_another_one_and_with_no_procedure(run: Path, late: Path, suite_directory: Path) -> None:
    same = dutperf("compare", run, run)
    assert (same.exit_code, "too few repetitions" in same.output) == (0, True)
    others = dutperf("compare", run, late)
    assert (others.exit_code, "no figure in common" in others.output) == (2, True)
    procedure = dutperf("compare", run, suite_directory)
    assert (procedure.exit_code, f"only {run} has otg" in procedure.output) == (2, True)


def test_a_store_takes_it(run: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.add(run)
        assert [one.procedure for one in store.find()] == ["otg"]


def test_it_is_never_resumed(run: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    lines = (run / journal.JOURNAL).read_text().splitlines(keepends=True)
    (killed / journal.JOURNAL).write_text("".join(lines[:-1]))
    for directory in (run, killed):
        done = dutperf("resume", directory)
        assert (done.exit_code, "clients of dutperf otg chose its trials" in done.output) == (2, True)
    shown = dutperf("show", killed)
    assert "otg is not complete: it was killed" in shown.output
    assert "resume with" not in shown.output
    with pytest.raises(Refused, match="clients of dutperf otg"):
        Runs((tmp_path,)).resume(run_in(killed), lambda _: None, lambda _: None)


def test_metrics_make_nothing_grow(tmp_path: Path) -> None:
    with recorded(tmp_path / "run", Endless) as client:
        assert client.post("/config", json=configured(flow())).status_code == 200
        assert transmit(client, "start") == 200
        before = (tmp_path / "run" / journal.JOURNAL).read_bytes()
        for _ in range(50):
            client.post("/monitor/metrics", json={"flow": {}})
            client.get("/dutperf/verdicts")
        assert (tmp_path / "run" / journal.JOURNAL).read_bytes() == before
        client.post("/config", json=configured(flow()))
    events = journal.read(tmp_path / "run")
    assert kinds(events) == [
        *("plan", "configuration", "environment", "trial", "result"),
        *("configuration", "end"),
    ]
    again = ConfigurationFinding.of([one for one in events if isinstance(one, journal.Finding)][-1])
    assert (again.number, again.configuration) == (2, None), "the same one is not written twice"


def test_an_engine_that_died_is_an_aborted_trial(tmp_path: Path) -> None:
    with recorded(tmp_path / "run", Dying) as client:
        client.post("/config", json=configured(flow()))
        assert transmit(client, "start") == 500
        [told] = verdicts(client)
    [result] = of_kind(journal.read(tmp_path / "run"), ResultEvent)
    assert (told["verdict"], told["causes"], told["counts"]) == ("aborted", ["the engine is gone"], {})
    assert [one.text for one in result.result.causes] == told["causes"]
    [point] = results.read(tmp_path / "run")["otg"].summary.points  # type: ignore[union-attr]
    assert point.limited_by_tester


def test_a_server_that_nobody_used_has_a_run(tmp_path: Path) -> None:
    with recorded(tmp_path / "run"):
        pass
    assert json.loads((tmp_path / "run" / SUMMARY).read_text())["points"][0]["message"] == "no flow was sent"
    for command in ("show", "report"):
        assert dutperf(command, tmp_path / "run").exit_code == 0


def test_a_running_one_tells_its_flows_and_the_last_verdict(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with recorded(out, Endless) as client:
        client.post("/config", json=configured(flow()))
        transmit(client, "start")
        now = shown(out, "configuration 1: 1 flow, a trial runs")
        assert (now["procedure"], now["load"]["value"], now["trial"]["sent"]) == ("otg", 1000, 10)
        assert [(one.name, Runs((tmp_path,)).state(one)) for one in Runs((tmp_path,)).all()] == [("run", "running")]
        transmit(client, "stop")
        assert shown(out, "configuration 1: 1 flow, no trial runs; the last trial was valid")["trial"] is None


def test_the_page_gets_each_flow_of_a_trial_that_ended(run: Path) -> None:
    line = next(one for one in (run / journal.JOURNAL).read_text().splitlines() if '"event": "result"' in one)
    told = following.trial(json.loads(line), "otg")
    assert {name.partition(":")[2]: one["sent"] for name, one in told["directions"].items()} == {
        "flow-1": 100,
        "flow-2": 40,
    }


def test_a_directory_with_other_results_is_left_alone(run: Path) -> None:
    before = (run / journal.JOURNAL).read_bytes()
    with pytest.raises(JournalError, match="holds the journal of another run"), recorded(run):
        pass
    assert (run / journal.JOURNAL).read_bytes() == before


def test_an_error_of_the_server_is_the_end_of_the_run(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no more sockets"), recorded(tmp_path / "run"):
        raise OSError("no more sockets")
    [end] = of_kind(journal.read(tmp_path / "run"), EndEvent)
    assert (end.outcome, end.message) == ("error", "no more sockets")


def test_a_full_disk_refuses_the_next_trial_and_is_said_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    server = recorded(tmp_path / "run")
    client = server.__enter__()
    client.post("/config", json=configured(flow()))
    monkeypatch.setattr("os.write", full)
    assert transmit(client, "start") == 500
    monkeypatch.undo()
    assert transmit(client, "start") == 500, "the journal misses an event"
    assert verdicts(client) == []
    with pytest.raises(JournalError, match="No space left"):
        server.__exit__(None, None, None)


def test_a_flow_of_a_number_of_frames_has_been_sent_when_all_of_them_are() -> None:
    slow, steady = Direction("a->b:slow"), Direction("a->b:steady")
    all_sent = AllSent({slow: 100})
    for elapsed_s, frames in ((1.0, 60), (2.0, 100), (3.0, 100)):
        all_sent.note(
            Progress(elapsed_s, frames, 0, {slow: SoFar(sent=frames, received=0), steady: SoFar(sent=1, received=1)})
        )
    assert [all_sent.has(slow, before_s) for before_s in (1.0, 1.9, 2.0, 3.0)] == [False, False, True, True]
    assert all_sent.has(steady, 0.0), "it ends with its time"
