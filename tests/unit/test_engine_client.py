# SPDX-License-Identifier: Apache-2.0
"""The engine's client on engines that behave well and badly (tests/fakes/fake_engine.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from dutperf.engine import client as engine
from dutperf.engine import process
from dutperf.engine.client import EngineCommand, EngineTester, Patience
from dutperf.model import (
    Cause,
    FieldMode,
    FrameSpec,
    Question,
    Stream,
    Trial,
    TrialResult,
    VaryingField,
    Verdict,
)
from dutperf.tester import Progress, TesterError
from dutperf.watch.core_choice import CoreChoice
from dutperf.watch.dut_core import DutCores, DutWatch, Sending, Starvation
from fakes import fake_engine

PREFIX = (sys.executable, fake_engine.__file__)
PATIENT = Patience(start_s=60, open_s=60, answer_s=60, trial_s=60, stop_s=30)
"""Longer than any test takes on a busy machine."""
HASTY = Patience(start_s=60, open_s=60, answer_s=0.3, trial_s=0.3, stop_s=0.3)


def a_trial(number: int = 1) -> Trial:
    port = VaryingField(mode=FieldMode.FIXED, min=9, max=9)
    frame = FrameSpec(version=4, size=64, source="198.18.0.2", destination="198.19.0.2")  # type: ignore[arg-type]
    stream = Stream(rate_fps=1000, foreground=frame, source_port=port, destination_port=port)
    return Trial(trial=number, duration_ns=10_000_000, drain_ns=0, forward=stream)


def long_trial(question: Question) -> Trial:
    """Of a second, with a drain of a fifth."""
    times = {"duration_ns": 1_000_000_000, "drain_ns": 200_000_000}
    return a_trial().model_copy(update={"question": question, **times})


def engine_tester(behaviour: str, patience: Patience = PATIENT) -> EngineTester:
    return EngineTester(EngineCommand(behaviour, PREFIX), {"link_timeout_ms": 0}, patience)


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File with the process id of every engine started."""
    file = tmp_path / "starts"
    monkeypatch.setenv("FAKE_ENGINE_STARTS", str(file))
    return file


def pids(starts: Path) -> list[int]:
    return [int(line) for line in starts.read_text().splitlines()]


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_end(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


@pytest.mark.parametrize(
    ("engine", "here", "exact"),
    [("HeardLate", True, True), ("HeardLate", False, False), ("OfAnotherMachine", True, False)],
)
def test_the_engine_on_this_machine_knows_when_sending_began(
    engine: str, here: bool, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Sending | None] = []
    monkeypatch.setattr(DutWatch, "starvation", lambda _watch, sending: seen.append(sending) or Starvation())
    choice = CoreChoice(configured=DutCores((0,)), is_here=here)
    before_s = time.monotonic()
    with EngineTester(EngineCommand(engine, PREFIX), {}, PATIENT, choice=choice) as tester:
        tester.run(a_trial())
    [sending] = seen
    assert sending is not None
    assert before_s < sending.earliest_s <= sending.latest_s < time.monotonic()
    assert (sending.earliest_s == sending.latest_s) == exact
    assert exact or sending.latest_s - sending.earliest_s > 0.19


def test_one_engine_runs_many_trials(starts: Path) -> None:
    with engine_tester("Engine") as tester:
        results = [tester.run(a_trial(number)) for number in range(5)]
    assert [(result.trial, result.verdict) for result in results] == [(number, Verdict.VALID) for number in range(5)]
    assert all(
        result.forward is not None and result.forward.received == 10 and result.reverse is None for result in results
    )
    assert len(pids(starts)) == 1


def test_the_environment_is_what_the_engine_says() -> None:
    with engine_tester("Engine") as tester:
        environment = tester.environment()
    assert (environment["engine"], environment["protocol"], environment["left"]["driver"]) == ("fake", 1, "fake")
    assert "id" not in environment
    assert "event" not in environment


def test_closing_ends_the_engine_and_may_be_repeated(starts: Path) -> None:
    tester = engine_tester("Engine")
    tester.environment()
    assert is_alive(pids(starts)[0])
    tester.close()
    tester.close()
    assert not is_alive(pids(starts)[0])


def test_the_tester_s_own_drops_make_the_trial_invalid() -> None:
    with engine_tester("Drops") as tester:
        result = tester.run(a_trial())
    assert result.verdict is Verdict.INVALID
    assert "tester_drops" in [cause.code for cause in result.causes]


ENDLESS = Question(may_end_early=True)
REASONS = [
    ("Dropping", {"resolution": 0.01}, "tester_drops"),
    ("Late", {"resolution": 0.01}, "sender_late"),
    ("LinkDown", {"resolution": 0.01}, "link_down"),
    ("PortGone", {"links_may_fall": True}, "port_changed"),
    ("ClockSet", {"resolution": 0.01}, "nic_clock"),
    ("LateAndLossy", {}, "sender_late"),
]


@pytest.mark.parametrize(("behaviour", "question", "code"), REASONS, ids=[row[0] for row in REASONS])
def test_a_trial_that_can_no_longer_become_valid_is_ended(
    behaviour: str, question: dict[str, float], code: str
) -> None:
    endable = long_trial(ENDLESS.model_copy(update=question))
    with engine_tester(behaviour) as tester:
        result = tester.run(endable)
        assert tester.run(a_trial(2)).verdict in (Verdict.VALID, Verdict.INVALID)  # the same engine goes on
    assert result.verdict is Verdict.INVALID
    assert result.causes[0].code == code
    assert "unsent" not in {cause.code for cause in result.causes}
    assert result.ended_early_s is not None
    assert 0 < result.ended_early_s < endable.duration_s
    assert result.proven_failed is None


@pytest.mark.parametrize(
    ("behaviour", "question"),
    [
        ("Dropping", Question()),
        ("LinkDown", Question(may_end_early=True, links_may_fall=True)),
        ("LateAndLossy", Question(may_end_early=True, resolution=0.01)),
        ("LateAndLossy", Question(may_end_early=True, tolerated_loss=0.5)),
        ("Lossy", ENDLESS),
        ("Overdue", ENDLESS),
    ],
    ids=[
        "asked for by a person",
        "the DUT is reset",
        "may prove something",
        "tolerated",
        "loses and is in time",
        "loss is not certain",
    ],
)
def test_a_trial_that_may_still_be_of_use_is_sent_to_its_end(behaviour: str, question: Question) -> None:
    with engine_tester(behaviour) as tester:
        assert tester.run(long_trial(question)).ended_early_s is None


DEATHS = [
    ("Dies", PATIENT, "ended with status 7; its last output: a thing that should not have happened"),
    ("Killed", PATIENT, "was ended by SIGSEGV"),
    ("Hangs", HASTY, "sent nothing for 0.3 s and was killed"),
    ("Endless", HASTY, "was killed"),
]


@pytest.mark.parametrize(("behaviour", "patience", "text"), DEATHS, ids=[row[0] for row in DEATHS])
def test_a_trial_that_the_engine_does_not_survive_is_aborted_and_the_next_one_gets_a_new_engine(
    behaviour: str, patience: Patience, text: str, starts: Path
) -> None:
    with engine_tester(behaviour, patience) as tester:
        result = tester.run(a_trial())
        assert result.verdict is Verdict.ABORTED
        assert [cause.code for cause in result.causes] == ["engine_died"]
        assert text in result.causes[0].text
        assert not is_alive(pids(starts)[0])
        assert tester.run(a_trial()).verdict is Verdict.VALID
    assert all(await_end(pid) for pid in pids(starts))


def test_after_a_death_the_same_tester_goes_on(starts: Path) -> None:
    with engine_tester("Dies") as tester:
        assert [tester.run(a_trial(number)).verdict for number in range(3)] == [
            Verdict.ABORTED,
            Verdict.VALID,
            Verdict.VALID,
        ]
    assert len(pids(starts)) == 2


def test_progress_is_passed_on() -> None:
    seen: list[Progress] = []
    with engine_tester("Dies") as tester:
        tester.run(a_trial(), seen.append)
    [progress] = seen
    assert (progress.elapsed_s, progress.sent, progress.received) == (1.0, 5, 4)


def test_what_a_library_prints_into_the_stream_does_no_harm() -> None:
    with engine_tester("Chatty") as tester:
        assert tester.run(a_trial()).verdict is Verdict.VALID


REFUSALS = [
    ("Old", "no_engine", None, "speaks protocol 0"),
    ("NoAnswer", "no_answer", "left.gateway4", "does not answer ARP"),
    (
        "Mute",
        "no_engine",
        None,
        "the engine did not start: the engine ended with status 1; its last output: no huge pages",
    ),
]


@pytest.mark.parametrize(("behaviour", "code", "field", "text"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_an_engine_that_cannot_work_is_an_error_and_is_ended(
    behaviour: str, code: str, field: str | None, text: str, starts: Path
) -> None:
    with engine_tester(behaviour) as tester, pytest.raises(TesterError, match=text) as caught:
        tester.environment()
    assert (caught.value.code, caught.value.field) == (code, field)
    assert all(await_end(pid) for pid in pids(starts))


def test_a_gateway_that_does_not_answer_is_named_with_its_port_and_what_to_check() -> None:
    ports = {"left": {"port": "eth1", "gateway4": "198.18.0.1"}, "right": {"port": "eth2"}, "link_timeout_ms": 0}
    tester = EngineTester(EngineCommand("NoAnswer", PREFIX), ports, PATIENT)
    with tester, pytest.raises(TesterError) as caught:
        tester.environment()
    assert (caught.value.code, caught.value.is_temporary) == ("no_answer", True)
    assert caught.value.sentence == (
        "left.gateway4: 198.18.0.1 does not answer ARP. Nobody has 198.18.0.1 at the left port (eth1): check"
        " left.gateway4, the DUT's own address there, and that the ports and their cables are not exchanged"
    )


def test_a_refused_trial_is_an_error_that_names_the_member() -> None:
    with engine_tester("Refuses") as tester, pytest.raises(TesterError, match="too fast") as caught:
        tester.run(a_trial())
    assert caught.value.field == "forward.rate_fps"


def test_a_result_of_another_trial_is_refused() -> None:
    with engine_tester("ShortOfAnother") as tester, pytest.raises(TesterError, match="of another trial"):
        tester.run(a_trial())


def test_ctrl_c_stops_the_trial_and_the_engine_lives_to_be_closed(starts: Path) -> None:
    def interrupt(_progress: Progress) -> None:
        raise KeyboardInterrupt

    with engine_tester("Waits") as tester:
        with pytest.raises(KeyboardInterrupt):
            tester.run(a_trial(), interrupt)
        assert is_alive(pids(starts)[0])
        assert len(pids(starts)) == 1
    assert not is_alive(pids(starts)[0])


def test_a_callback_that_raises_stops_the_trial_and_the_engine_measures_on(starts: Path) -> None:
    def broken(_progress: Progress) -> None:
        raise ZeroDivisionError

    with engine_tester("Waits") as tester:
        for number in (1, 2):  # an engine whose trial runs on would be busy
            with pytest.raises(ZeroDivisionError):
                tester.run(a_trial(number), broken)
    assert len(pids(starts)) == 1


def test_an_engine_that_may_not_be_ended_is_not_waited_for_without_end(
    starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under sudo, where root's process is not this user's to end."""

    def forbidden(_group: int, _number: int) -> None:
        raise PermissionError

    kill = os.killpg
    monkeypatch.setattr(process.os, "killpg", forbidden)
    monkeypatch.setattr(process, "SUDO", ("false",))
    monkeypatch.setattr(process, "CLOSE_S", 0.2)
    monkeypatch.setattr(process, "KILLED_S", 0.2)
    tester = engine_tester("Hangs", HASTY)
    try:
        assert tester.run(a_trial()).verdict is Verdict.ABORTED
        [pid] = pids(starts)
        assert is_alive(pid)
    finally:
        kill(pids(starts)[0], signal.SIGKILL)
    tester.close()


def test_sudo_ends_what_this_user_may_not(starts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill, asked = os.killpg, list[list[str]]()

    def forbidden(_group: int, _number: int) -> None:
        raise PermissionError

    def as_root(argv: list[str], **_: object) -> None:
        asked.append(argv)
        kill(int(argv[-1].removeprefix("-")), int(argv[3].removeprefix("-")))

    monkeypatch.setattr(process.os, "killpg", forbidden)
    monkeypatch.setattr(process.subprocess, "run", as_root)
    monkeypatch.setattr(process, "CLOSE_S", 0.2)
    assert engine_tester("Hangs", HASTY).run(a_trial()).verdict is Verdict.ABORTED
    [pid] = pids(starts)
    assert await_end(pid)
    assert asked[-1] == ["sudo", "-n", "kill", "-9", "--", f"-{pid}"]


def test_ctrl_c_while_the_engine_hangs_ends_it(starts: Path) -> None:
    with engine_tester("Hangs", Patience(start_s=60, answer_s=60, stop_s=0.2)) as tester:
        tester.environment()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            tester.run(a_trial())
    assert await_end(pids(starts)[0])


def test_the_engine_outlives_the_thread_that_started_it(starts: Path) -> None:
    with engine_tester("Chatty") as tester:
        starter = threading.Thread(target=tester.environment)
        starter.start()
        starter.join()
        time.sleep(0.2)
        assert tester.run(a_trial()).verdict is Verdict.VALID
    assert len(pids(starts)) == 1


CLIENT = """
import sys
from unit.test_engine_client import a_trial, engine_tester
tester = engine_tester("Waits")
tester.run(a_trial(), lambda progress: print("runs", flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_the_engine_does_not_outlive_its_client(number: signal.Signals, starts: Path) -> None:
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": f"{tests}:{tests.parent / 'src'}", "FAKE_ENGINE_STARTS": str(starts)}
    with subprocess.Popen([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, env=environment, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "runs\n"
        assert is_alive(pids(starts)[0])
        client.send_signal(number)
        client.wait(timeout=30)
    assert await_end(pids(starts)[0])


def test_the_command_puts_prefix_and_namespace_first() -> None:
    assert EngineCommand("engine", ("sudo", "-n"), "tester").argv() == [
        "sudo",
        "-n",
        "ip",
        "netns",
        "exec",
        "tester",
        "engine",
    ]


FINDINGS = [
    (
        "a program that is not there",
        {"DUTPERF_ENGINE": "/nowhere/engine"},
        None,
        "DUTPERF_ENGINE",
        "/nowhere/engine is not an executable program",
    ),
    (
        "a namespace that is not there",
        {},
        "no-such-namespace",
        "engine.netns",
        "there is no network namespace no-such-namespace",
    ),
]


@pytest.mark.parametrize(
    ("environment", "netns", "field", "text"), [row[1:] for row in FINDINGS], ids=[row[0] for row in FINDINGS]
)
def test_what_cannot_be_found_is_named(
    environment: dict[str, str], netns: str | None, field: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TesterError, match=text) as caught:
        EngineCommand.find(netns=netns)
    assert caught.value.field == field


def test_the_engine_named_by_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_ENGINE", sys.executable)
    assert EngineCommand.find().argv() == [sys.executable]


def test_a_command_that_cannot_be_started_is_an_error() -> None:
    with (
        EngineTester(EngineCommand("engine", ("/nowhere/ssh",)), {}) as tester,
        pytest.raises(TesterError, match="cannot start /nowhere/ssh") as caught,
    ):
        tester.environment()
    assert caught.value.field == "engine.command"


@pytest.mark.parametrize(("effective", "may"), [("000001ffffffffff", True), ("0000000000000000", False)])
def test_who_may_not_enter_a_namespace_is_told_that_root_is_missing(
    effective: str, may: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "status").write_text(f"Name:\tx\nCapEff:\t{effective}\n")
    (tmp_path / "router").touch()
    monkeypatch.setattr(engine, "NETNS_DIRECTORY", tmp_path)
    monkeypatch.setattr(engine, "may_enter_namespaces", partial(engine.may_enter_namespaces, tmp_path / "status"))
    if may:
        assert EngineCommand.find(netns="router").netns == "router"
        return
    with pytest.raises(TesterError, match=r"only root may enter the network namespace router .*as root") as error:
        EngineCommand.find(netns="router")
    assert error.value.field == "engine.netns"
    assert EngineCommand.find(("ssh", "tester"), netns="router").netns == "router"


def test_a_port_that_is_not_there_names_the_namespace() -> None:
    event = {"message": "there is no interface 'eth9' in this network namespace", "code": "port_away"}
    assert str(engine._tester_error(event, "router")).endswith("in this network namespace (engine.netns: router)")
    assert str(engine._tester_error(event, None)) == f"{event['message']}; engine.netns: NAME names another one"
    assert str(engine._tester_error(event | {"message": "no socket"}, None)) == "no socket"
    assert str(engine._tester_error({**event, "code": "busy"}, "router")) == event["message"]
    advice = {"message": "raise it (ip link set tl mtu 8986), or use frames of up to 1514 bytes", "code": "port"}
    assert "(ip -n router link set tl mtu 8986)" in str(engine._tester_error(advice, "router"))
    assert str(engine._tester_error(advice, None)) == advice["message"]


@pytest.mark.parametrize(
    ("told", "key"), [("params.cores", "engine.cores"), ("offloads", "engine.offloads"), ("left.port", "left.port")]
)
def test_an_error_names_the_key_of_the_configuration(told: str, key: str) -> None:
    assert engine._tester_error({"message": "no", "code": "bad_request", "field": told}, None).field == key


def test_who_had_a_core_is_said_of_the_first_cause_that_it_may_explain() -> None:
    codes = ("drops", "sender_late", "sender_bursts", "dut_disturbed")
    causes = tuple(Cause(code=code, text=code) for code in codes)
    result = TrialResult(trial=1, verdict=Verdict.INVALID, causes=causes)
    told = engine._with_others(result, ("the tester's", "the DUT's")).causes
    assert [one.text for one in told] == [
        "drops",
        "sender_late (the tester's)",
        "sender_bursts",
        "dut_disturbed (the DUT's)",
    ]
    assert engine._with_others(result, ("", "")) == engine._with_others(result, ()) == result
