# SPDX-License-Identifier: Apache-2.0
"""What tests do that need a quiet machine: a quiet one never excuses them, and a busy one is never
shown as success."""

from __future__ import annotations

import pytest

import undisturbed
from undisturbed import FEWEST_IF_BUSY, Pauses, until

QUIET, BUSY = Pauses(0.001, 0.0005), Pauses(0.5, 0.01)


def tried(monkeypatch: pytest.MonkeyPatch, pauses: Pauses, gives: int) -> int:
    """Of runs that all give one number: 1 shows it, 2 is enough on a busy machine."""
    monkeypatch.setattr(undisturbed, "PATIENCE_S", 0)
    monkeypatch.setattr(undisturbed, "machine_pauses", lambda: [pauses])
    return until(lambda: gives, lambda result: result == 1, if_busy=lambda result: result == 2)


@pytest.mark.parametrize("pauses", [QUIET, BUSY])
def test_what_is_shown_needs_no_excuse(pauses: Pauses, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, pauses, 1) == 1


@pytest.mark.parametrize("gives", [2, 3])
def test_on_a_quiet_machine_a_test_fails(gives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.fail.Exception, match="the machine is quiet, and yet: 4 tries"):
        tried(monkeypatch, QUIET, gives)


def test_on_a_busy_machine_it_is_skipped_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, BUSY, 2) == 2
    with pytest.raises(
        pytest.skip.Exception, match=r"not shown on this machine: others took up to 50% of a core, 10\.0 ms at a time"
    ):
        tried(monkeypatch, BUSY, 3)


def test_what_is_enough_on_a_busy_machine_is_taken_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = list[int]()
    monkeypatch.setattr(undisturbed, "machine_pauses", lambda: [BUSY])
    assert until(lambda: tries.append(2) or 2, lambda result: result == 1, if_busy=lambda result: result == 2) == 2
    assert len(tries) == FEWEST_IF_BUSY


def test_all_that_a_test_shows_shares_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(undisturbed.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(undisturbed, "machine_pauses", lambda: [BUSY])
    assert until(lambda: 1, lambda result: result == 1) == 1
    now_s += undisturbed.PATIENCE_S
    with pytest.raises(pytest.skip.Exception, match="; 4 tries, the last"):
        until(lambda: 3, lambda result: result == 1)
