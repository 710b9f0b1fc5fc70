# SPDX-License-Identifier: Apache-2.0
"""The test setup and the DUT do not fit: frames are still on their way when the tester stops listening, have no
route, are too long for the DUT, or come back. None of that is a loss of the DUT's; the trial says what it is. Root
only."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dutperf
from dutperf.lab.refdut import Properties, RefDut
from dutperf.model import TrialResult, Verdict
from dutperf.results.summary import Summary
from integration.measuring import Bench, bench

pytestmark = [pytest.mark.root, pytest.mark.faults, pytest.mark.usefixtures("lab_records")]

FPS = 500
DISTURBED = ("dut_disturbed",)
"""A busy machine's own cause beside the one that is looked for."""


def causes(result: TrialResult) -> str:
    """In words, of a trial that is not valid."""
    assert result.verdict is Verdict.INVALID, result
    return "; ".join(cause.text for cause in result.causes if cause.code not in DISTURBED)


@pytest.mark.parametrize("delay_ms", [500, 900], ids=["the last frames", "every frame"])
def test_frames_that_are_still_on_their_way(delay_ms: int) -> None:
    with bench("refdut-ipv4") as ready:
        dut = RefDut(Path(str(ready.setup.dut.control)))
        dut.configure(Properties(delay_ms=delay_ms))
        result = ready.run(FPS, duration_s=0.4, drain_s=0.3)
        assert "give a drain longer than the DUT's delay" in causes(result)
        time.sleep(1)
        patient = ready.run(FPS, duration_s=0.4, drain_s=1.5)
        assert [counts.lost for counts in patient.directions().values()] == [0, 0]


def without_route(ready: Bench) -> None:
    ready.in_dut("ip", "route", "flush", "root", "198.19.0.0/16")


def with_short_frames(ready: Bench) -> None:
    """The frames say "don't fragment"."""
    ready.in_dut("ip", "link", "set", "dr", "mtu", "600")


SETUPS: list[tuple[str, Callable[[Bench], None], dict[str, Any], str]] = [
    ("no route", without_route, {}, "ICMP net unreachable"),
    ("too long", with_short_frames, {}, "ICMP fragmentation needed (MTU 600)"),
    ("fragmented", with_short_frames, {"frame": "ipv4(df=0)/udp"}, "fragments arrived"),
]


@pytest.mark.parametrize("kind", ["af_packet", "af_xdp"])
@pytest.mark.parametrize(("spoil", "chosen", "said"), [row[1:] for row in SETUPS], ids=[row[0] for row in SETUPS])
def test_frames_that_the_dut_refuses(
    spoil: Callable[[Bench], None], chosen: dict[str, Any], said: str, kind: str
) -> None:
    with bench("kernel-ipv4", kind=kind) as ready:
        spoil(ready)
        assert said in causes(ready.run(FPS, frame_sizes=(1000,), directions="forward", **chosen))


@pytest.mark.parametrize("patience_s", [0, 10])
def test_a_dut_that_begins_to_forward_in_the_middle_of_a_run(patience_s: int, tmp_path: Path) -> None:
    """Without patience the rate that is measured first is lost, and the run says why; with it none is."""
    with dutperf.bench(lab="refdut-ipv4") as ready:
        RefDut(Path(str(ready.setup.dut.control))).reset(2.0)
        loss = dutperf.FrameLoss(
            rates=["1000", "500"], duration_s=0.5, drain_s=0.2, repetitions=1, dut_patience_s=patience_s
        )
        result = ready.measure(loss, tmp_path / "run")
    losses = [row["rates.loss_ratio.worst.median"] for row in result.rows()]
    assert isinstance(result.summary, Summary)
    said = any("nothing arrived in the first" in one.text for one in result.summary.remarks)
    assert said or set(losses) <= {0.0, None}, result.rows()
    assert not patience_s or set(losses) <= {0.0, None}, result.rows()
