# SPDX-License-Identifier: Apache-2.0
"""The self-test's judgement: a wrong number is found off, one of a disturbed tester is not called
off. In virtual time, with a made-up reference DUT."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from dutperf import procedures
from dutperf.cli import app
from dutperf.lab.refdut import DirectionTruth, NatProperties, PortLosses, Properties, Quantiles, RefDutError, Truth
from dutperf.machine import host
from dutperf.model import Connections, ConnectionUse, Direction, Trial, TrialResult, Verdict
from dutperf.procedures import back_to_back, establishment_rate, frame_loss, latency, pdv, throughput
from dutperf.procedures.back_to_back import BURST_CAPACITY_FPS
from dutperf.procedures.definition import Chapter
from dutperf.procedures.establishment_rate import CONNECTIONS, ESTABLISHED_CPS
from dutperf.procedures.known_truth import DELAY_MS, LOST_EVERY, QUEUE_FRAMES, Evidence
from dutperf.procedures.throughput import CAPACITY_FPS, SEARCH_S
from dutperf.run.campaign import Plan
from dutperf.run.earlier_runs import fresh_directory
from dutperf.selftest import checks, floors
from dutperf.selftest.checks import Check
from dutperf.selftest.findings import Finding, Judgement, exit_status, judge
from dutperf.selftest.floors import DisturbedError
from dutperf.selftest.ground_truth import ObservedTester, ObservedTrial, balance
from dutperf.selftest.outcome import Outcome, markdown
from dutperf.selftest.progress import ATTEMPTS, SelfTest
from dutperf.setup.conditions import Conditions
from dutperf.setup.questions import WithQuestions
from dutperf.tester import ProgressCallback, TesterError
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Log, counts, plan, questions, trial

OK, OFF, INVALID = Judgement.OK, Judgement.OFF, Judgement.INVALID


@pytest.mark.parametrize(
    ("measured", "stated_error", "judgement"),
    [
        pytest.param(100.0, 1.0, OK, id="exact"),
        pytest.param(101.0, 1.0, OK, id="at the edge of the error"),
        pytest.param(101.1, 1.0, OFF, id="beyond it"),
        pytest.param(98.9, 1.0, OFF, id="below it"),
        pytest.param(100.0, 11.0, INVALID, id="exact, but nobody could have told"),
        pytest.param(105.0, 11.0, INVALID, id="within an error that is too large"),
        pytest.param(120.0, 11.0, OFF, id="farther off than even a disturbed tester may be"),
        pytest.param(None, 1.0, INVALID, id="no figure"),
    ],
)
def test_a_figure_is_judged_by_its_stated_error(
    measured: float | None, stated_error: float, judgement: Judgement
) -> None:
    found, note = judge(measured, 100.0, stated_error, tolerable=10.0)
    assert found is judgement
    assert bool(note) is (judgement is not OK)


def finding(judgement: Judgement) -> Finding:
    return Finding(
        procedure="pdv", figure="PDV", unit="ms", measured=1.25, true=1, stated_error=0.5, judgement=judgement
    )


@pytest.mark.parametrize(
    ("judgements", "status"),
    [((OK, OK), 0), ((OK, OFF), 1), ((INVALID, OFF), 1), ((OK, INVALID), 3), ((), 3)],
    ids=["all ok", "one off", "off outweighs invalid", "one says nothing", "nothing was found"],
)
def test_the_exit_status_is_that_of_the_worst(judgements: tuple[Judgement, ...], status: int) -> None:
    assert exit_status(map(finding, judgements)) == status


# --- the balance of frames ------------------------------------------------------------------------


def direction_truth(received: int = 0, lost: int = 0, lateness_us: float = 0.0, **members: int) -> DirectionTruth:
    none = dict.fromkeys(("translated", "tunnelled", "held", "duplicated", "reordered", "delayed", "corrupted"), 0)
    lateness = Quantiles(p50=0, p99=0, p999=0, max=lateness_us)
    counted = {**none, "received": received, "forwarded": received - lost, "lost": {"queue": lost}} | members
    return DirectionTruth.model_validate({**counted, "delay_us": lateness, "lateness_us": lateness})


def truth(forward: DirectionTruth, reverse: DirectionTruth | None = None, between: int = 0) -> Truth:
    ports = PortLosses(lost_before=between, lost_after=0)
    return Truth(forward=forward, reverse=reverse or direction_truth(), left=ports, right=ports, checksums_computed=0)


def observed(
    received: int, truly_lost: int, between: int = 0, lateness_us: float = 0.0, verdict: Verdict = Verdict.VALID
) -> ObservedTrial:
    result = TrialResult(trial=0, verdict=verdict, causes=(), forward=counts(1000, received), reverse=None)
    return ObservedTrial(
        trial(drain_ns=10**8), result, truth(direction_truth(1000, truly_lost, lateness_us), between=between)
    )


@pytest.mark.parametrize(
    ("seen", "judgement"),
    [
        pytest.param([observed(990, 10)], OK, id="what is missing was lost"),
        pytest.param([observed(990, 10, verdict=Verdict.INVALID)], OK, id="frames sent late are counted as well"),
        pytest.param([observed(989, 10)], OFF, id="one more is missing"),
        pytest.param([observed(989, 10), observed(991, 10)], OFF, id="errors that cancel out"),
        pytest.param([observed(989, 10, between=1)], INVALID, id="lost between both"),
        pytest.param(
            [observed(989, 10, lateness_us=60_000.0)],
            INVALID,
            id="the DUT was away for so long that frames may come after the end",
        ),
        pytest.param([observed(989, 10, verdict=Verdict.ABORTED)], INVALID, id="aborted"),
        pytest.param([], INVALID, id="no trial"),
    ],
)
def test_frames_balance_in_every_trial_or_nothing_is_said(seen: list[ObservedTrial], judgement: Judgement) -> None:
    assert balance("throughput", seen).judgement is judgement


# --- whole checks ---------------------------------------------------------------------------------


@dataclass
class FakeDut:
    """A reference DUT that tells of a simulated tester's last trial what it shall: ``make`` turns
    the properties into what the simulated DUT really is."""

    tester: Remembering
    wrong: float = 1.0
    """The simulated DUT has so many times the capacity and the delay that it was told to have: a
    tester with a wrong clock sees that."""
    miscounts: int = 0
    lateness_us: float = 0.0
    asked: list[str] = field(default_factory=list)

    def configure(self, properties: Properties) -> None:
        self.asked.append("configure")
        delays = {
            "slow_every": properties.extra_delay_every or None,
            "slow_us": properties.extra_delay_ms * 1e3 * self.wrong,
        }
        limit, queue = properties.capacity_fps, properties.queue
        if isinstance(properties, NatProperties):
            limit, queue = properties.establishment_cps, properties.establishment_queue
        capacity = {"capacity_fps": limit * self.wrong, "queue_frames": queue} if limit else {}
        loss = 1 / properties.loss_every if properties.loss_every else 0.0
        self.tester.inner.dut = SimulatedDut(
            delay_us=10.0 + properties.delay_ms * 1e3 * self.wrong, **capacity, **delays
        )
        self.tester.loss = loss

    def counters(self) -> Truth:
        [*lost] = [one.lost for one in self.tester.results[-1].directions().values()]
        both = [direction_truth(10**6, one + self.miscounts, self.lateness_us) for one in lost]
        return truth(both[0], both[1] if len(both) > 1 else None)

    def clear(self) -> None:
        self.asked.append("clear")

    def stall(self, duration_s: float, after_s: float = 0.0) -> None:
        raise NotImplementedError

    def reset(self, duration_s: float, after_s: float = 0.0) -> None:
        raise NotImplementedError


@dataclass
class Remembering:
    """A simulated tester that keeps its results."""

    inner: SimulatedTester
    loss: float = 0.0
    results: list[TrialResult] = field(default_factory=list)

    def run(self, what: Any, on_progress: Any = None) -> TrialResult:
        result = self.inner.run(what, on_progress)
        if self.loss:
            lossy = {
                name: counts(one.sent, one.sent - round(one.sent * self.loss))
                for name, one in result.directions().items()
            }
            result = result.model_copy(update={direction.value: one for direction, one in lossy.items()})
        self.results.append(result)
        return result

    def wait_until_quiet(self, limit_s: float) -> float:
        return self.inner.wait_until_quiet(limit_s)

    def environment(self) -> dict[str, Any]:
        return self.inner.environment()

    def close(self) -> None:
        self.inner.close()


@dataclass(frozen=True)
class FakeBench:
    tester: Remembering

    def plan(self, conditions: Conditions) -> Plan:
        return plan(**dict(conditions))


@contextmanager
def watch(_name: str) -> Iterator[Log]:
    yield Log()


def check_of(name: str) -> Check:
    return next(check for check in checks.ALL if check.name == name)


def measured(name: str, out: Path, limits: SimulatedLimits | None = None, **dut: Any) -> dict[str, Finding]:
    """Figure to finding."""
    tester = Remembering(SimulatedTester(limits=limits or SimulatedLimits()))
    self_test = SelfTest(FakeBench(tester), FakeDut(tester, **dut), out, watch, quick=True)
    return {one.figure: one for one in self_test.findings(check_of(name))}


KNOWN = [
    pytest.param(
        throughput.PROCEDURE.name, "throughput", CAPACITY_FPS + (QUEUE_FRAMES + 1) / SEARCH_S, id="throughput"
    ),
    pytest.param(
        back_to_back.PROCEDURE.name,
        "longest burst",
        (QUEUE_FRAMES + 1) / (1 - BURST_CAPACITY_FPS / 10_000),
        id="back-to-back",
    ),
    pytest.param(latency.PROCEDURE.name, "typical latency", DELAY_MS, id="latency"),
    pytest.param(pdv.PROCEDURE.name, "PDV", DELAY_MS, id="pdv"),
    pytest.param(
        establishment_rate.PROCEDURE.name,
        "establishment rate",
        ESTABLISHED_CPS * (CONNECTIONS - 1) / (CONNECTIONS - QUEUE_FRAMES - 1),
        id="establishment-rate",
    ),
]


@pytest.mark.parametrize(("name", "figure", "true"), KNOWN)
def test_a_right_number_is_ok(name: str, figure: str, true: float, tmp_path: Path) -> None:
    found = measured(name, tmp_path)
    assert [one.judgement for one in found.values()] == [OK, OK]
    assert found[figure].true == pytest.approx(true)
    assert (tmp_path / name / "journal.jsonl").exists()


@pytest.mark.parametrize(("name", "figure", "true"), KNOWN)
@pytest.mark.parametrize("wrong", [0.94, 1.06])
def test_a_wrong_number_is_found_off(name: str, figure: str, true: float, wrong: float, tmp_path: Path) -> None:
    found = measured(name, tmp_path, wrong=wrong)[figure]
    assert found.judgement is OFF, (found, true)


def test_loss_is_exact(tmp_path: Path) -> None:
    found = measured(frame_loss.PROCEDURE.name, tmp_path)
    assert found["frame loss"].judgement is OK
    assert found["frame loss"].measured == pytest.approx(100 / LOST_EVERY)


def test_frames_that_were_never_lost_are_found_off(tmp_path: Path) -> None:
    assert measured(latency.PROCEDURE.name, tmp_path, miscounts=-1)["frames lost, all trials"].judgement is OFF


def test_a_tester_that_cannot_is_invalid_and_not_off(tmp_path: Path) -> None:
    """It finds a lower rate than the DUT's, and says whose limit that is."""
    found = measured(throughput.PROCEDURE.name, tmp_path, SimulatedLimits(send_fps=CAPACITY_FPS * 0.95))["throughput"]
    assert found.judgement is INVALID
    assert len(list(tmp_path.iterdir())) == ATTEMPTS


def test_a_disturbed_dut_makes_a_figure_unsure_and_not_off(tmp_path: Path) -> None:
    """Its loop was away for so long that bunches of frames may have spoilt the search: right or
    wrong, nobody can tell."""
    found = measured(throughput.PROCEDURE.name, tmp_path, wrong=0.97, lateness_us=40_000.0)["throughput"]
    assert found.judgement is INVALID
    assert "disturbed" in found.note


@pytest.mark.parametrize(
    ("failures", "error_fps"),
    [
        pytest.param([(20_500, 0.0)], 100, id="what failed undisturbed bounds the truth"),
        pytest.param([(20_500, 0.01)], 920, id="what was late came in a bunch of 205 frames, in a quarter of a second"),
        pytest.param(
            [(20_500, 0.01), (20_450, 0.05), (20_600, 0.0)], 200, id="one failure that was not disturbed is enough"
        ),
        pytest.param([(20_300, 0.03), (20_500, 0.0)], 100, id="what the queue could not hold says nothing"),
        pytest.param([(20_300, 0.0)], 0, id="the value is no lower for that"),
    ],
)
def test_the_error_of_a_throughput_is_what_its_failures_leave_open(
    failures: list[tuple[int, float]], error_fps: float
) -> None:
    """Beside what 600 us are worth, by which sending may take longer."""

    def failed(rate_fps: int, disturbance_s: float) -> ObservedTrial:
        one = observed(990, 10, lateness_us=disturbance_s * 1e6)
        return replace(one, trial=trial(rate_fps))

    point = SimpleNamespace(throughput_fps=SimpleNamespace(median=20_400.0))
    error = check_of("throughput").truth.figures[0].error(Evidence(point, [failed(*one) for one in failures]))
    assert error == pytest.approx(error_fps + (600e-6 * CAPACITY_FPS + 1) / SEARCH_S, abs=1)


def test_a_dut_that_does_not_answer_is_an_error_of_the_tester() -> None:
    class Dead(FakeDut):
        def counters(self) -> Truth:
            raise RefDutError("the reference DUT does not answer counters: gone")

    tester = Remembering(SimulatedTester())
    with pytest.raises(TesterError, match="does not answer"):
        ObservedTester(tester, Dead(tester), Properties()).run(trial())


def test_a_dut_keeps_its_connections_through_the_phases_of_a_trial() -> None:
    tester = Remembering(SimulatedTester())
    observing = ObservedTester(tester, dut := FakeDut(tester), NatProperties())
    for use in (ConnectionUse.OPEN, ConnectionUse.EACH, ConnectionUse.LOST):
        connections = Connections(use=use, initiator=Direction.FORWARD, count=1000)
        observing.run(trial(connections=connections, **{"reverse" if use is ConnectionUse.OPEN else "forward": None}))
    observing.run(trial())
    assert dut.asked == ["configure", "clear", "clear", "configure"]


def test_every_procedure_has_a_check() -> None:
    """But those of tables of addresses, of which the reference DUT has none: their own tests have the truth."""
    assert {check.name for check in checks.ALL} == {
        one.name for one in procedures.every() if one.chapter is not Chapter.TABLES
    }


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.name)
def test_the_conditions_of_every_check_can_be_planned(check: Check, quick: bool) -> None:
    make_plan = questions if issubclass(check.definition.conditions, WithQuestions) else plan
    check.definition.make(make_plan(**check.chosen(quick=quick)))


def test_the_table_says_machine_figures_and_what_speaks_against_them() -> None:
    bad = finding(OFF).model_copy(update={"note": "a wrong number"})
    text = markdown(
        Outcome(date="2026-01-02T03:04:05+00:00", host=host.environment(), load=12.3, findings=(finding(OK), bad))
    )
    assert "| pdv | PDV, ms | 1.2500 | 1 | 0.2500 | 0.5000 | ok |" in text
    assert "load 12.3" in text
    assert "pdv, PDV: a wrong number." in text


def test_results_of_another_self_test_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "selftest.json").touch()
    done = CliRunner().invoke(app, ["selftest", "--out", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dutperf: {tmp_path} holds the results of another self-test")


def test_a_part_that_there_is_not_is_an_error() -> None:
    done = CliRunner().invoke(app, ["selftest", "--only", "nonsense"])
    assert done.exit_code == 2


@pytest.mark.parametrize(
    "option", [("--queues", "2"), ("--offloads", "send_at"), ("--config", "ports.yaml")], ids=lambda option: option[0]
)
def test_what_is_for_the_calibration_alone_is_refused_without_it(option: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["selftest", "--only", "throughput", *option])
    assert (done.exit_code, done.stderr.strip()) == (
        2,
        f"dutperf: {option[0]}: is for the calibration, which --only throughput leaves out",
    )


@pytest.mark.parametrize(
    ("limits", "ends"),
    [(SimulatedLimits(send_fps=150_000), "calibrated"), (SimulatedLimits(disturbed_ratio=1.0), "disturbed")],
    ids=["quiet", "busy"],
)
def test_a_tester_is_calibrated_or_said_to_be_too_busy(limits: SimulatedLimits, ends: str, tmp_path: Path) -> None:
    """Its limit is what it can send without a DUT; its floor the delay of the cable."""
    bench = FakeBench(Remembering(Described(SimulatedDut(delay_us=7.0), limits)))
    if ends == "disturbed":
        with pytest.raises(DisturbedError, match="too busy"):
            floors.calibrate(bench, tmp_path, watch, quick=True)
        return
    [floor] = floors.calibrate(bench, tmp_path, watch, quick=True).floors
    assert floor.limit_fps is not None
    assert 100_000 <= floor.limit_fps <= 150_000
    assert floor.typical_us == pytest.approx(7.0)
    assert floor.rate_fps == floors.DELAYS_FPS


@pytest.mark.parametrize(
    "driver", ["net_af_xdp", "net_af_packet"], ids=["other ports than for the limit", "the same ports"]
)
def test_floors_by_each_kind_of_stamps_stand_side_by_side(driver: str, tmp_path: Path) -> None:
    def bench(driver: str) -> FakeBench:
        return FakeBench(Remembering(Described(SimulatedDut(delay_us=7.0), SimulatedLimits(), driver=driver)))

    loops = floors.calibrate(bench(driver), tmp_path, watch, quick=True)
    made, missing = floors.by_stamps(bench("net_af_packet"), loops, tmp_path, watch, quick=True)
    assert [floor.stamps for floor in made.floors] == ["loop", "kernel"]
    assert made.floor(84).stamps == "loop"
    assert (made.floors[0] == loops.floors[0]) == (driver == "net_af_packet")
    assert missing == {"card": Described.WITHOUT}
    outcome = Outcome(
        date=loops.date, host=host.environment(), load=0, calibration=loops, by_stamps=made, without_stamps=missing
    )
    text = markdown(outcome)
    assert "Delays without a DUT by time stamps, ports net_af_packet, 84 bytes, 10,000 frames/s:" in text
    assert "| kernel | 7.0 | 7.0 | 7.0 |" in text
    assert "| card | - | - | - | - |" in text
    assert f"no floor by card stamps: {Described.WITHOUT}." in text


def test_a_tester_that_fails_at_stamps_has_failed(tmp_path: Path) -> None:
    """Only what the ports cannot do is a kind of stamps that there is not."""
    loops = floors.calibrate(FakeBench(Remembering(Described())), tmp_path, watch, quick=True)
    with pytest.raises(TesterError, match=Described.WITHOUT):
        floors.by_stamps(FakeBench(Remembering(Described(code="internal"))), loops, tmp_path, watch, quick=True)


@dataclass
class Described(SimulatedTester):
    """Says what its ports are, as an engine does, and that its cards do not stamp."""

    WITHOUT: ClassVar[str] = "the driver lets no card stamp"
    driver: str = "net_af_packet"
    code: str = "port_unavailable"

    def environment(self) -> dict[str, Any]:
        side = {"driver": self.driver, "port": "af_packet:tl"}
        return {"left": side, "right": side, "engine": "0.1.0", "dpdk": "22.11"}

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        if trial.stamps == "card":
            raise TesterError(self.WITHOUT, code=self.code)
        return super().run(trial, on_progress)


def test_runs_of_one_second_have_directories_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two self-tests that began at once wrote into each other's journals."""
    monkeypatch.chdir(tmp_path)
    code = (
        "from dutperf.run.earlier_runs import fresh_directory; d = fresh_directory('x'); (d / 'mine').touch(); print(d)"
    )
    made = {fresh_directory("selftest") for _ in range(20)}
    assert len(made) == 20
    assert all(one.is_dir() for one in made)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (tmp_path / done.stdout.strip() / "mine").exists()
    empty = subprocess.run(
        [sys.executable, "-c", code.replace("(d / 'mine').touch(); ", "")], capture_output=True, text=True, check=True
    )
    assert not (tmp_path / empty.stdout.strip()).exists()  # nothing was written there
