# SPDX-License-Identifier: Apache-2.0
"""The line that shows a person the course of a run."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from dutperf import spelling
from dutperf.cli.output import live
from dutperf.model import FRAME_SIZE, Case, Cause, Load, TrialResult, Verdict
from dutperf.run.campaign import Status
from dutperf.tester import Progress

SMALL = Case({FRAME_SIZE: 84})
DURATIONS = [
    (0, "0.0 s"),
    (1.25, "1.2 s"),
    (59.6, "60 s"),
    (89, "89 s"),
    (90, "1 min 30 s"),
    (5399, "89 min 59 s"),
    (5400, "1 h 30 min"),
    (90_000, "25 h 0 min"),
]


@pytest.mark.parametrize(("seconds", "text"), DURATIONS)
def test_durations_for_a_person(seconds: float, text: str) -> None:
    assert live.duration(seconds) == text


def a_status(**members: Any) -> Status:
    given = {
        "procedure": "throughput",
        "case": SMALL,
        "cases": (SMALL,),
        "repetition": 2,
        "repetitions": 20,
        "trying": Load.fps(15_000),
        "lower": Load.fps(10_000),
        "upper": None,
    }
    return Status(**(given | {"trials_done": 3, "trials_left": 7, "remaining_s": 213.0} | members))


def shown_as_lines(*statuses: Status) -> list[str]:
    written = io.StringIO()
    observer = live.PlainObserver(Console(width=80, file=written))
    for status in statuses:
        observer.update(status)
    return written.getvalue().splitlines()


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"trials_done": 0, "trials_left": 42, "remaining_s": 42 * 0.75}, "about 42 trials of 0.8 s"),
        ({"trials_done": 0, "trials_left": 1, "remaining_s": 62.0}, "about 1 trial of 62 s"),
        ({"trials_done": 0, "trials_left": 0, "remaining_s": 0.0}, "about 0 trials"),
        ({"trials_done": 1, "trials_left": 41, "remaining_s": 50.0}, "about 41 trials, 50 s"),
    ],
)
def test_no_time_is_estimated_before_a_trial_has_ended(members: dict[str, Any], text: str) -> None:
    status = a_status(**members)
    assert shown_as_lines(status) == [f"throughput: {text}; Ctrl-C stops it and keeps the finished trials"]
    assert live._left(status) == f"{text} left"


def test_long_causes_lose_what_is_in_parentheses_first() -> None:
    taken = "others took 88% of the core of the DUT while frames were lost"
    seen = "(on the DUT's core 1: 53 % cc1plus, 44 % pytest, 2.5 % small, ended or moved programs)"
    late = "forward: 118 frames left late, by up to 6.133 ms (of 10,000); they may have caused the loss of 94"
    causes = (Cause(code="a", text=f"{late} {seen}"), Cause(code="b", text=f"{taken} {seen}"))
    result = TrialResult(trial=1, verdict=Verdict.INVALID, causes=causes)
    [_, line] = shown_as_lines(a_status(last=result))
    assert f": invalid: {late}; {taken}; about 7 left" in line
    [_, line] = shown_as_lines(a_status(last=result.model_copy(update={"causes": causes[1:]})))
    assert f": invalid: {taken} {seen}; about 7 left" in line


def test_long_causes_are_shortened_in_the_middle() -> None:
    causes = tuple(Cause(code="a", text=f"cause {number} {'x ' * 60}advice {number}") for number in range(3))
    result = TrialResult(trial=1, verdict=Verdict.INVALID, causes=causes)
    note = f"repetition 1: {'y ' * 200}done"
    [_, first, second] = shown_as_lines(a_status(note=note, last=result))
    assert re.fullmatch(r"repetition 1: (y )+… (y )+done", first)
    assert re.fullmatch(r"84 bytes, .* 15,000 frames/s: invalid: cause 0 (x )+… (x )+advice 2; about 7 left.*", second)
    assert max(len(first), len(second) - len(second.partition("invalid: ")[0])) < 240


def test_no_clause_is_joined_with_another_one() -> None:
    text = (
        "64 bytes: limited by the tester, not the DUT: at 5,000 frames/s: reverse: 264 frames left late, by up to 5.590"
        " ms; they may have caused the loss of 1; the DUT had to wait 0.3 ms for its core, which others had"
    )
    assert spelling.shortened(text) == (
        "64 bytes: limited by the tester, not the DUT: at 5,000 frames/s: reverse: 264 frames left late, … they may"
        " have caused the loss of 1; the DUT had to wait 0.3 ms for its core, which others had"
    )


def test_the_live_line_shows_rate_bracket_what_is_left_and_the_running_trial() -> None:
    console = Console(width=200, file=io.StringIO(), force_terminal=True, color_system=None)
    with Live(console=console, auto_refresh=False) as shown:
        live.LiveObserver(shown).update(
            a_status(note="trial 2 was invalid", progress=Progress(elapsed_s=3.0, sent=45_000, received=44_999))
        )
        shown.refresh()
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]  # a dumb terminal has 80 columns, whatever is asked for
    line = (
        "84 bytes, 2/20: trying 15,000 frames/s (passed 10,000, not -); about 7 trials, 3 min 33 s left (3 s:"
        " sent 45,000, received 44,999)"
    )
    assert line in text
    assert "trial 2 was invalid" in text
    assert "throughput: about 7 trials, 3 min 33 s" in text
