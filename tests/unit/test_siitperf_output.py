# SPDX-License-Identifier: Apache-2.0
"""What siitperf's commands print: every line of the output, and the exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dutperf.model import Cause, Delays, Direction, DirectionCounts, TrialResult, Verdict
from dutperf.siitperf import commands
from plans import counts
from siitperf_files import ENUMERATED, ROUTER, TRANSLATOR, with_lines
from siitperf_plans import plan

DELAY = Delays(min=295.0, p50=49.012, p99=200.0, p999=622.3, max=700.0)
CALM = counts(3000, send_time_s=2.9990334, delay_us=DELAY)
LATE = Cause(
    code="sending_time",
    text="forward: sending took 3.1 s, more than the 3.000600 s allowed",
    direction=Direction.FORWARD,
)
DROPS = Cause(
    code="tester_drops", text="forward: the tester itself dropped 3 frames (no_buffer)", direction=Direction.FORWARD
)
TP, LAT, VARIATION, IN_TIME = (
    (commands.TP, "84 1000 3 0 2 2"),
    (commands.LAT, "84 1000 3 0 2 2 1 500"),
    (commands.PDV, "84 1000 3 0 2 2 0"),
    (commands.PDV, "84 1000 3 0 2 2 1"),
)
OUTPUT: list[tuple[str, Any, DirectionCounts, tuple[Cause, ...], list[str], list[str]]] = [
    # the command, what was counted forward, causes; lines that are printed, and words that are not
    ("sent", TP, CALM, (), ["Forward frames sent: 3000"], ["Reverse", "invalid", "Error", "TL", "PDV"]),
    ("sending time", TP, CALM, (), ["Info: Forward sender's sending took 2.9990334000 seconds."], []),
    ("received", TP, counts(3000, 2990), (), ["Forward frames received: 2990"], ["invalid"]),
    ("typical latency", LAT, CALM, (), ["Forward TL: 0.049012"], ["PDV"]),
    ("worst-case latency", LAT, CALM, (), ["Forward WCL: 0.622300"], ["PDV"]),
    ("PDV", VARIATION, CALM, (), ["Forward PDV: 0.327300"], ["TL", "completely missing"]),
    (
        "what it is made of",
        VARIATION,
        CALM,
        (),
        ["Info: Forward D99_9th_perc: 0.622300", "Info: Forward Dmin: 0.295000", "Info: Forward Dmax: 0.700000"],
        [],
    ),
    (
        "frames in time",
        IN_TIME,
        counts(3000, 2900, late=60),
        (),
        ["Forward frames received: 2900", "Info: Forward frames completely missing: 40"],
        ["PDV"],
    ),
    (
        "too slow",
        TP,
        CALM,
        (LATE,),
        ["Warning: Forward sending exceeded the 3.0006000000 seconds limit, the test is invalid."],
        ["Forward frames sent"],
    ),
    (
        "too slow, in our words",
        TP,
        CALM,
        (LATE,),
        ["Warning: the test is invalid: " + LATE.text + ".", "Forward frames received: 3000"],
        [],
    ),
    (
        "another cause",
        LAT,
        CALM,
        (DROPS,),
        ["Forward frames sent: 3000", "Warning: the test is invalid: " + DROPS.text + "."],
        ["TL", "WCL", "exceeded"],
    ),
]


def outcome(
    command: tuple[commands.Program, str], direction: str, counted: DirectionCounts, *causes: Cause
) -> tuple[commands.Planned, TrialResult]:
    ours = tuple(cause.model_copy(update={"direction": Direction(direction)}) for cause in causes)
    verdict = Verdict.INVALID if causes else Verdict.VALID
    return plan(*command), TrialResult.model_validate(
        {"trial": 1, "verdict": verdict, "causes": ours, direction: counted}
    )


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("command", "counted", "causes", "printed", "absent"), [row[1:] for row in OUTPUT], ids=[row[0] for row in OUTPUT]
)
def test_output_lines(
    command: Any,
    counted: DirectionCounts,
    causes: Any,
    printed: list[str],
    absent: list[str],
    direction: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned, result = outcome(command, direction, counted, *causes)
    assert commands.say(planned, command[0], result) == (3 if causes else 0)
    captured = capsys.readouterr()
    said = (captured.out + captured.err).replace(direction.capitalize(), "Forward").splitlines()
    assert set(printed) <= set(said)
    assert not [line for line in said for words in absent if words in line]


def test_the_limit_of_a_minute_is_siitperfs(capsys: pytest.CaptureFixture[str]) -> None:
    planned, result = outcome((commands.TP, "84 1000 60 0 2 2"), "forward", CALM, LATE)
    commands.say(planned, commands.TP, result)
    assert "exceeded the 60.0006000000 seconds limit" in capsys.readouterr().err


def test_a_trial_that_was_aborted_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    result = TrialResult(
        trial=1, verdict=Verdict.ABORTED, causes=(Cause(code="engine_died", text="the engine ended with status 1"),)
    )
    assert commands.say(plan(), commands.TP, result) == 4
    assert capsys.readouterr() == ("", "Error: the engine ended with status 1\n")


ERRORS: list[tuple[str, str, list[str], str]] = [
    ("no file", "", [], "Input Error: siitperf.conf: cannot be read"),
    ("a bad line", TRANSLATOR + "Speed 10", [], "Input Error: siitperf.conf, line 18: cannot be read: 'Speed 10'"),
    (
        "a bad argument",
        TRANSLATOR,
        ["84", "0", "1", "0", "2", "2"],
        "Input Error: RATE: should be 1 to 1000000000, not 0",
    ),
    (
        "a bad argument of a stateful test",
        with_lines(ROUTER, "Stateful 1", *ENUMERATED["Fwd"]),
        ["84", "1000", "1", "0", "2", "2", "9", "10", "10", "1", "2000"],
        "Input Error: M: should be at most N, 9, not 10",
    ),
    (
        "no engine",
        TRANSLATOR,
        ["84", "1000", "1", "0", "2", "2"],
        "Error: DUTPERF_ENGINE: /nowhere is not an executable program",
    ),
]


@pytest.mark.parametrize(("text", "words", "line"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_have_their_line_and_status(
    text: str,
    words: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "yield_to_the_dut", lambda: None)
    for name, value in (("PORTS", "ring,ring"), ("CORES", "auto"), ("SEED", "1"), ("ENGINE", "/nowhere")):
        monkeypatch.setenv(f"DUTPERF_{name}", value)
    if text:
        Path("siitperf.conf").write_text(text)
    assert commands.main(commands.TP, words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(line)
    assert captured.err.count("\n") == 1


def test_a_command_starts_fast() -> None:
    """Scripts start one process for each trial: what takes long to import stays away."""
    program = (
        "import sys; import dutperf.siitperf.commands; from dutperf.procedures import latency, pdv; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    imported = done.stdout.split()
    assert "dutperf.siitperf.commands" in imported
    assert not {"numpy", "MLRsearch", "typer", "rich", "jsonschema", "scapy"} & set(imported)
