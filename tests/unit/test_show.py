# SPDX-License-Identifier: Apache-2.0
"""One trial as a table for a person: what hardware helped with, and what it was asked for and did
not do."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf.cli.output import console
from dutperf.cli.output.terminal import output
from dutperf.model import Delays, NicArrivals, NicDepartures, TrialResult, Verdict, to_json
from dutperf.results.tables import Table
from plans import counts, trial

REPORT = {
    "frame_size": 128,
    "frame_size_ipv4": 128,
    "passed": None,
    "frame_timeout_ms": None,
    "loss_tolerance": 0,
    "trial": to_json(trial(size=128)),
    "config": {"left": {"version": 6}, "right": {"version": 6}},
}


def shown(capsys: pytest.CaptureFixture[str], **members: Any) -> str:
    console.trial(REPORT, TrialResult(trial=1, verdict=Verdict.VALID, forward=counts(**members)))
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize(("versions", "is_told"), [((6, 6), False), ((6, 4), True), ((4, 6), True)])
def test_the_length_of_ipv4_frames_is_told_where_there_are_any(
    versions: tuple[int, int], is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [{"version": version} for version in versions]
    result = TrialResult(trial=1, verdict=Verdict.VALID, forward=counts())
    for config in ({"left": sides[0], "right": sides[1]}, {"ports": {"a": sides[0], "b": sides[1]}}):
        console.trial(REPORT | {"frame_size_ipv4": 108, "config": config}, result)
        assert ("128 byte frames (108 IPv4)" in capsys.readouterr().out) == is_told


def test_delays_are_shown_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    delays = Delays(min=2, p50=1234.56, p99=3000, p999=4000, max=5000, frames=10)
    told = shown(capsys, delay_us=delays)
    assert "delay, µs: smallest, median 2.0, 1,234.6 p99, p99.9 3,000.0, 4,000.0 largest 5,000.0" in told
    for none in (None, delays.model_copy(update={"frames": 0})):
        assert "delay, µs" not in shown(capsys, delay_us=none)


def test_words_are_whole_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    told = shown(capsys, other_received={"router_solicitation": 1})
    assert "…" not in told


FIGURES = {
    "% cached": "0",
    "% AAAA": "100",
    "median": "237,500",
    "p1": "237,500",
    "p99": "237,500",
    "asked": "1.00",
    "limited by": "tester",
}
"""Of 50 characters, and 8 lines beside them."""


@pytest.mark.parametrize(("columns", "lines_of_heads"), [(72, 1), (71, 1), (58, 1), (57, 2)])
def test_heads_are_whole_as_long_as_the_columns_have_room_without_a_space_beside_them(
    columns: int, lines_of_heads: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    output().print(console.table(Table("DNS64", tuple(FIGURES), (tuple(FIGURES.values()),))))
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("┃") for line in lines) == lines_of_heads
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize("name", ["voice [ef]", "[/24]", "/srv/[old]/x"])
def test_names_of_others_are_text_without_markup(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    output().print(console.table(Table(name, (name, "figure"), ((name, name),))))
    assert capsys.readouterr().out.count(name) == 4


def test_the_effect_of_offloads_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(
        capsys,
        receive_timestamps=NicArrivals(by_nic=1234, by_poll=5, impossible=0, uncertainty_us=0.25),
        send_at=NicDepartures(timed=990, at_once=10, uncertainty_us=0.75),
        rate_limit_mbps=27,
    )
    for text in (
        "NIC timestamps 1,234",
        "without a NIC timestamp 5",
        "set in the NIC 990",
        "sent at once instead 10",
        "NIC's clock, µs 0.75",
        "Mbit/s 27",
    ):
        assert text in told
    assert "no effect" not in told


def test_offloads_without_an_effect_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    idle = shown(
        capsys,
        receive_timestamps=NicArrivals(by_nic=0, by_poll=1000, impossible=0, uncertainty_us=0.25),
        send_at=NicDepartures(timed=0, at_once=1000, uncertainty_us=0.75),
        rate_limit_mbps=0,
    )
    for help_ in ("receive_timestamps", "send_at", "rate_limit"):
        assert f"forward: no effect of {help_}: " in idle


def test_offloads_that_are_off_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys)
    assert "no effect" not in told
    assert "NIC" not in told
    assert "rate limit" not in told
