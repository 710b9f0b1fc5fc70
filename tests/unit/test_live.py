# SPDX-License-Identifier: Apache-2.0
"""The line that shows a person the course of a run."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from dutperf.cli.output import live
from dutperf.model import FRAME_SIZE, Case, Load
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
