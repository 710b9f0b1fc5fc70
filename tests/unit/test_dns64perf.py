# SPDX-License-Identifier: Apache-2.0
"""The command dns64perf++: its arguments, the trial that they make, its lines and its file. The whole command:
tests/integration/test_other_name_server.py."""

from __future__ import annotations

import errno
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dutperf.dns64perf import commands, output, planned
from dutperf.dns64perf.arguments import ArgumentError, QueryTest, parse
from dutperf.model import Cause, Direction, RecordsWritten, TrialResult, Verdict
from dutperf.tester import TesterError
from plans import DNS64, counts

WORDS = "2001:2::1 53 198.18.0.0/24 240 10 4 8000000 1"
LEFT_ALONE: dict[str, Any] = {"left": DNS64["left"]}


def parsed(words: str = WORDS) -> QueryTest:
    return parse(words.split())


@pytest.fixture
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a configuration of the client's port."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dns64perf.yaml").write_text(yaml.safe_dump(LEFT_ALONE))
    return tmp_path


def test_the_arguments_are_those_of_the_original() -> None:
    given = parsed()
    assert (given.requests, given.slice_size, given.exact_qps) == (240, 60, 5000)
    assert [given.thread_of(name) for name in (0, 59, 60, 239)] == [0, 0, 1, 3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("2001:2::1 53", "arguments: there are 2, not 8: SERVER PORT SUBNET REQUESTS BURST THREADS DELAY-NS TIMEOUT-S"),
        (WORDS.replace("2001:2::1", "198.18.0.1"), "SERVER: "),
        (WORDS.replace(" 53 ", " 0 "), "PORT: should be a whole number from 1 to 65,535, not '0'"),
        (WORDS.replace("/24", "/23").replace("198.18.0.0", "198.18.1.0"), "SUBNET: "),
        (WORDS.replace("240", "241"), "REQUESTS: should be a multiple of THREADS × BURST, 40, not 241"),
        (WORDS.replace("240", "280"), "REQUESTS: 280 are more than SUBNET has addresses, 256"),
        (WORDS.replace("8000000", "-1"), "DELAY-NS: "),
        (WORDS.replace("8000000", "1"), "DELAY-NS: makes a rate of 4e+10 queries/s"),
        (f"{WORDS[:-1]}0", "TIMEOUT-S: should be a number of seconds above 0"),
        (f"{WORDS[:-1]}nan", "TIMEOUT-S: should be a number of seconds above 0"),
        (f"{WORDS[:-1]}1e-10", "TIMEOUT-S: should be a number of seconds above 0"),
        ("2001:2::1 53 198.18.0.0/15 100000 1 1 1000000000 1", "REQUESTS: 100,000 take longer than a day at 1 in a"),
    ],
)
def test_wrong_arguments_are_named(words: str, message: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        parsed(words)
    assert message in str(refused.value)


@pytest.mark.usefixtures("in_directory")
def test_one_schedule_sends_the_bursts_of_all_threads() -> None:
    made = planned.plan(parsed(), Path("/tmp/q.npy"))
    trial, setup = made.trial, made.setup
    assert trial.intended(Direction.FORWARD) == 240
    assert trial.forward is not None
    assert trial.forward.questions is not None
    request = trial.request()
    assert request["forward"]["rate_fps"] == 5000
    assert request["forward"]["pattern"] == {"kind": "bursts", "frames": 10}
    asked = request["forward"]["questions"]
    assert asked["addresses"] == {
        "network": "198.18.0.0/24",
        "first": 0,
        "slices": {"count": 4, "burst": 10, "names": 60},
    }
    assert (asked["zone"], asked["destination"], asked["destination_port"]) == ("dns64perf.test", "2001:2::1", 53)
    assert (request["frame_timeout_ns"], request["queries_file"]) == (1_000_000_000, "/tmp/q.npy")
    assert "server" not in request
    assert setup.other_name_server
    assert made.remarks == ()


@pytest.mark.usefixtures("in_directory")
def test_a_rate_that_is_no_whole_number_is_told() -> None:
    made = planned.plan(parsed("2001:2::1 53 198.18.0.0/24 100 1 1 3000000 0.5"), Path("/q"))
    assert made.remarks == ("Warning: the rate is 333 queries/s, the nearest whole number to 333.333.",)
    assert made.trial.forward is not None
    assert made.trial.forward.pattern is None
    assert made.trial.intended(Direction.FORWARD) == 100


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.integers(1, 10**9))
def test_as_many_queries_are_sent_as_requested(burst: int, threads: int, rounds: int, delay_ns: int) -> None:
    requests = burst * threads * rounds
    rate_fps = max(1, round(threads * burst * 1e9 / delay_ns))
    if rate_fps > 10**9:
        return
    made = QueryTest(parsed().server, 53, IPv4Network("10.0.0.0/8"), requests, burst, threads, delay_ns, 1.0)
    setup = planned.configuration.parse(planned._with_arguments(LEFT_ALONE, made), "test")
    assert planned._trial(made, setup, Path("/q")).intended(Direction.FORWARD) == requests


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "cannot read dns64perf.yaml, the configuration of the client's port: No such file or directory"),
        ({"left": DNS64["left"], "right": DNS64["right"]}, "dns64perf.yaml, line 6: right: has no effect"),
        ({"left": {"port": "tl", "version": 4, "ipv4": "198.18.0.2/24"}}, "left.ipv6: is missing"),
        ({"left": DNS64["left"], "dns64": 5}, "dns64"),
        ({"left": DNS64["left"], "engine": {"command": ["ssh", "x"]}}, "engine.command: the engine has to run here"),
        ({"left": {**DNS64["left"], "vlans": [5]}}, "left.vlans: has no effect on questions to a DNS64 server"),
        ({"left": DNS64["left"], "dut": {"commands": {"set_up": "true"}}}, "dut.commands: the DUT is not set up here"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(in_directory: Path, config: Any, message: str) -> None:
    file = in_directory / "dns64perf.yaml"
    file.unlink() if config is None else file.write_text(yaml.safe_dump(config))
    with pytest.raises(ArgumentError) as refused:
        planned.plan(parsed(), Path("/q"))
    assert message in str(refused.value)


def written(path: Path, arguments: QueryTest, answers: dict[int, tuple[float, int]]) -> None:
    """A file as the engine's: query k is sent at k ms. ``answers``: time in ms and kind, by k."""
    records = np.zeros(arguments.requests, [("sent_ns", "<f8"), ("received_ns", "<f8"), ("answer", "|u1")])
    records["sent_ns"] = np.arange(arguments.requests) * 1e6
    records["received_ns"] = np.nan
    for k, (rtt_ms, answer) in answers.items():
        records[k] = (k * 1e6, (k + rtt_ms) * 1e6, answer)
    np.save(path, records)


SMALL = "2001:2::1 53 198.18.0.0/24 8 2 2 4000000 0.5"
"""Sent are the names 0 1, 4 5, 2 3, 6 7."""


@pytest.mark.parametrize("at_once", [65_536, 8, 3])
def test_the_file_has_a_line_for_each_name(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "AT_ONCE", at_once)
    arguments = parsed(SMALL)
    written(tmp_path / "q.npy", arguments, {0: (1, 1), 2: (2, 1), 4: (600, 1), 7: (3, 4)})
    queries = output.read(tmp_path / "q.npy", arguments)
    output.write_csv(tmp_path / "dns64perf.csv", arguments, queries)
    lines = (tmp_path / "dns64perf.csv").read_text().splitlines()
    header = lines.index("query;thread id;tsent [ns];treceived [ns];received;answered;rtt [ns]")
    assert "subnet: 198.18.0.0/24" in lines[:header]
    assert lines[header + 1 :] == [
        "0;0;0;1000000;1;1;1000000",
        "1;0;1000000;;0;0;",
        "2;0;4000000;604000000;1;0;600000000",
        "3;0;5000000;;0;0;",
        "4;1;2000000;4000000;1;1;2000000",
        "5;1;3000000;;0;0;",
        "6;1;6000000;;0;0;",
        "7;1;7000000;10000000;1;0;3000000",
    ]
    assert list(output.lines(queries)) == [
        "Sent queries: 8",
        "Received answers: 4",
        "Valid answers: 2 (25.00%)",
        "Average round-trip time: 1.500000 ms",
        "Standard deviation of the round-trip time: 0.500000 ms",
    ]


def test_without_a_valid_answer_there_are_no_times(tmp_path: Path) -> None:
    arguments = parsed(SMALL)
    written(tmp_path / "q.npy", arguments, {})
    assert list(output.lines(output.read(tmp_path / "q.npy", arguments))) == [
        "Sent queries: 8",
        "Received answers: 0",
        "Valid answers: 0 (0.00%)",
    ]


@pytest.mark.parametrize(("verdict", "status"), [(Verdict.VALID, 0), (Verdict.INVALID, 3)])
def test_a_disturbed_test_has_a_status_of_its_own(
    in_directory: Path, capsys: pytest.CaptureFixture[str], verdict: Verdict, status: int
) -> None:
    made = planned.plan(parsed(SMALL), in_directory / "q.npy")
    written(in_directory / "q.npy", made.arguments, {0: (1, 1)})
    causes = () if verdict is Verdict.VALID else (Cause(code="stall", text="the sender stalled"),)
    counted = counts(8, 8).model_copy(update={"queries_file": RecordsWritten(written=8, unwritten=0)})
    result = TrialResult(trial=1, verdict=verdict, causes=causes, forward=counted)
    assert commands.say(made, result, in_directory / "q.npy") == status
    said = capsys.readouterr()
    assert "Valid answers: 1 (12.50%)" in said.out
    assert said.err == "".join(f"Warning: the test is invalid: {cause.text}.\n" for cause in causes)
    assert (in_directory / "dns64perf.csv").exists()


def test_what_is_no_yaml_names_file_line_and_key(in_directory: Path) -> None:
    (in_directory / "dns64perf.yaml").write_text("left:\n  port: a\n  port: b\n")
    with pytest.raises(ArgumentError, match=r"dns64perf\.yaml, line 3: left\.port: is given twice"):
        planned.plan(parsed(), Path("/q"))


def test_an_empty_section_is_none(in_directory: Path) -> None:
    (in_directory / "dns64perf.yaml").write_text(f"{yaml.safe_dump(LEFT_ALONE)}dns64:\n")
    assert planned.plan(parsed(), Path("/q")).setup.dns64 is not None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141),
        (OSError(errno.ENOSPC, "No space left on device"), 4),
        (PermissionError(errno.EACCES, "Permission denied", "x.csv"), 2),
        (ValueError("oops"), 70),
    ],
)
@pytest.mark.usefixtures("in_directory")
def test_errors_of_the_system_have_the_statuses_of_other_commands(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_planned: object) -> TrialResult:
        raise error

    monkeypatch.setattr("dutperf.fault.let_go_of_output", lambda: None)
    monkeypatch.setattr(commands, "run", fail)
    assert commands.main(SMALL.split()) == status


@pytest.mark.parametrize(("code", "status"), [("cores", 2), ("port_away", 75), ("internal", 70)])
def test_an_error_of_the_tester_is_a_line(
    in_directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str, status: int
) -> None:
    del in_directory

    def fail(_planned: object) -> TrialResult:
        raise TesterError("nobody is there", code=code, field="left.gateway6")

    monkeypatch.setattr(commands, "run", fail)
    assert commands.main(SMALL.split()) == status
    assert capsys.readouterr().err == "Error: left.gateway6: nobody is there\n"
