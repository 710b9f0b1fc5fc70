# SPDX-License-Identifier: Apache-2.0
"""What a result says of the tester's share of its delays, and of how many pairs its changes of delay are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dutperf.model import DelayChanges, Delays, Direction, OfChanges, Quantiles, Trial, TrialResult, Verdict
from dutperf.procedures import ramp
from dutperf.procedures.ramp import Ends
from dutperf.results import tables, tester_delay
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import counts, measure, plan, trial


def delays(own: Quantiles | None) -> Delays:
    return Delays(min=100, p50=200, p99=300, p999=1_740, max=4_200, frames=1000, by_tester=own)


def changes(pairs: int | None, own: OfChanges | None = None) -> DelayChanges:
    return DelayChanges(min=-50, p50=0, max=50, pairs=pairs, by_tester=own)


def result(verdict: Verdict = Verdict.VALID, **members: Any) -> TrialResult:
    return TrialResult(trial=1, verdict=verdict, forward=counts(**members))


SHARES = Quantiles(p50=5, p99=14, p999=1_700, max=4_100)


@pytest.mark.parametrize(
    ("members", "texts"),
    [
        ({}, []),
        ({"delay_us": delays(None)}, []),
        ({"delay_us": delays(Quantiles(p50=10, p99=9, p999=80, max=200))}, []),
        (
            {"delay_us": delays(SHARES)},
            [
                (
                    "forward: of the delays the tester itself may have added up to 1.7 ms of the 99.9th percentile"
                    " (1.74 ms), 4.1 ms of the largest (4.2 ms)"
                )
            ],
        ),
    ],
)
def test_what_is_told_of_a_trial(members: dict[str, Any], texts: list[str]) -> None:
    assert list(tester_delay.of_trial(result(**members))) == texts


@pytest.mark.parametrize(
    ("members", "texts"),
    [
        ({}, []),
        (
            {"ipdv_us": changes(999, OfChanges(min=40, p50=1, max=45))},
            [
                (
                    "forward: of the changes of delay the tester itself may have added up to 0.04 ms of the smallest"
                    " (-0.05 ms), 0.045 ms of the largest (0.05 ms)"
                )
            ],
        ),
        ({"ipdv_us": changes(None)}, []),
        (
            {"ipdv_us": changes(666)},
            [
                (
                    "forward: the changes of delay are those of 666 of 999 pairs of frames; of the others a frame was"
                    " lost or came too late"
                )
            ],
        ),
    ],
)
def test_what_is_told_of_changes_of_delay(members: dict[str, Any], texts: list[str]) -> None:
    assert list(tester_delay.of_run([result(**members)], changes=True)) == texts
    assert not tester_delay.of_run([result(**members)])


def test_of_a_run_the_worst_valid_trial_is_told() -> None:
    calm = delays(Quantiles(p50=1, p99=1, p999=1, max=1))
    worse = delays(Quantiles(p50=1, p99=1, p999=1_739, max=1))
    trials = [result(delay_us=delays(SHARES)), result(delay_us=calm), result(Verdict.INVALID, delay_us=worse)]
    assert tester_delay.of_run(trials) == (
        (
            "forward: of the delays the tester itself may have added up to 1.7 ms of the 99.9th percentile (1.74 ms),"
            " 4.1 ms of the largest (4.2 ms) (the worst of 2 valid trials)"
        ),
    )


@dataclass
class HeldUp(SimulatedTester):
    """May have added 0.4 ms to the 99.9th percentile of each trial's delays, and to the largest one."""

    drivers: tuple[str, ...] = ()
    """Of its ports."""

    def environment(self) -> dict[str, Any]:
        ports = {side: {"driver": driver} for side, driver in zip(("left", "right"), self.drivers, strict=False)}
        return super().environment() | ports

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        measured = super().run(trial, on_progress)
        own = {"by_tester": Quantiles(p50=0, p99=0, p999=400, max=400)}
        update = {}
        for direction, one in measured.directions().items():
            assert one.delay_us is not None
            update[direction.value] = one.model_copy(update={"delay_us": one.delay_us.model_copy(update=own)})
        return measured.model_copy(update=update)


def test_each_figure_has_the_testers_share(tmp_path: Path) -> None:
    conditions = {"rate": "10k", "duration_s": 1, "repetitions": 3, "frame_sizes": (84,)}
    found = measure(HeldUp(SimulatedDut(delay_us=500, jitter_us=100)), plan(**conditions), tmp_path, "pdv")
    figures = found.points[0].forward
    own = {name: figures[name].by_tester for name in figures}
    assert own == pytest.approx({"PDV": 0.4, "Dmin": 0, "median": 0, "D99.9": 0.4, "Dmax": 0.4})
    assert any("may have added up to 0.4 ms of the 99.9th percentile" in text for text, _ in tables.messages(found))


@pytest.mark.parametrize(
    ("drivers", "stamps", "procedure", "hinted"),
    [
        (("net_af_packet", "net_af_packet"), "loop", "pdv", True),
        (("net_af_packet", "net_af_packet"), "kernel", "pdv", False),
        (("net_af_packet", "net_af_xdp"), "loop", "pdv", False),
        ((), "loop", "pdv", False),
        (("net_af_packet", "net_af_packet"), None, "traffic", False),  # has no such option
    ],
)
def test_packet_sockets_could_have_the_stamps_of_the_kernel(
    drivers: tuple[str, ...], stamps: str | None, procedure: str, hinted: bool, tmp_path: Path
) -> None:
    conditions = {"rate": "10k", "duration_s": 1, "frame_sizes": (84,)} | ({"stamps": stamps} if stamps else {})
    tester = HeldUp(SimulatedDut(delay_us=500, jitter_us=100), drivers=drivers)
    found = measure(tester, plan(**conditions), tmp_path, procedure)
    said = [text for text, _ in tables.messages(found)]
    assert any(tester_delay.MAY_HAVE_ADDED in text for text in said)
    assert ("with --stamps kernel delays are without what the tester's loops add" in said) == hinted


def test_a_part_of_a_ramp_that_the_tester_held_up_has_no_delays() -> None:
    parts = [(100.0, 200.0, 300.0)] * ramp.PARTS
    own = [(0.0, 50.0, 300.0)] * ramp.PARTS
    parts[7], own[7] = (100.0, 30_000.0, 30_000.0), (0.0, 29_900.0, 29_900.0)
    counted = counts(delay_parts_us=tuple(parts), delay_parts_by_tester_us=tuple(own))
    read = ramp.read(trial(), Direction.FORWARD, counted, Ends(from_fps=1, to_fps=1000))
    assert [number for number, part in enumerate(read.parts) if part.delay_us is None] == [7]
