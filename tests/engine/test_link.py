# SPDX-License-Identifier: Apache-2.0
"""The link of a port that is the tester's own: awaited, watched, and what a trial without one is
worth; and its flow control.

The NIC is made up (engine/tests/fake_nic.cpp); tests/cards/ has emulated ones.
"""

from __future__ import annotations

import time

import pytest

from dutperf.engine.client import EngineCommand
from dutperf.judge.validity import LINK_DOWN
from dutperf.model import Question, TrialResult, Verdict
from dutperf.tester import TesterError

from .conftest import OpenEngine, with_fake_nic
from .streams import stream, trial

SLOW_LINK_S = 0.5


@pytest.fixture
def command(command: EngineCommand) -> EngineCommand:
    """The engine whose NIC is made up."""
    return with_fake_nic(command)


def measured(open_engine: OpenEngine, links_may_fall: bool = False) -> TrialResult:
    """A trial of 0.4 s. Received for so long that a stall at the end costs no frame."""
    with open_engine("ring", "ring", link_timeout_ms=2000) as engine:
        question = Question(links_may_fall=links_may_fall)
        return engine.run(trial(stream(), duration_ns=400_000_000, drain_ns=100_000_000, question=question))


def codes(result: TrialResult) -> set[str]:
    """Of the causes. A busy machine may add some."""
    return {cause.code for cause in result.causes}


def test_a_link_that_stays_down_is_named_with_the_port(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "no_link")
    with (
        open_engine("ring", "ring", link_timeout_ms=100) as engine,
        pytest.raises(TesterError, match="the link of the left port is down after 100 ms") as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == ("link_down", "left.port")


def test_a_link_that_takes_a_while_is_awaited(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "slow_link")
    began_s = time.monotonic()
    result = measured(open_engine)
    assert time.monotonic() - began_s >= SLOW_LINK_S
    assert LINK_DOWN not in codes(result)
    assert (result.link_changes.left, result.link_down.left) == (0, False)


def test_a_trial_in_which_the_link_fell_is_invalid_whatever_was_lost(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "flaps")
    result = measured(open_engine)
    assert result.verdict is Verdict.INVALID
    assert LINK_DOWN in codes(result)
    assert (result.link_changes.left, result.link_changes.right) == (2, 2)
    assert result.link_up.left
    assert result.link_up.right


def test_a_dut_that_is_reset_may_take_the_link_down(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "flaps")
    result = measured(open_engine, links_may_fall=True)
    assert LINK_DOWN not in codes(result)
    assert result.link_down.left


@pytest.mark.parametrize(
    ("nic", "wanted", "used"),
    [
        ("pauses", "off", "off"),
        ("agrees", "off", "off"),
        ("pauses", "receive", "receive"),
        ("", "off", None),
        ("pause", "off", "full"),
    ],
)
def test_flow_control_is_set_and_told(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, nic: str, wanted: str, used: str | None
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", nic)
    with open_engine("ring", "ring", flow_control=wanted) as engine:
        environment = engine.environment()
    assert environment["left"]["flow_control"] == environment["right"]["flow_control"] == used
    warned = any("flow control of the left port is full, not off" in warning for warning in environment["warnings"])
    assert warned == (nic == "pause")


@pytest.mark.parametrize(("nic", "found"), [("", "not known to the driver net_ring"), ("pause", "full")])
def test_flow_control_that_cannot_be_had_is_refused(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, nic: str, found: str
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", nic)
    with (
        open_engine("ring", "ring", flow_control="transmit") as engine,
        pytest.raises(TesterError, match=f"left port is {found}, not transmit") as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "engine.flow_control")
