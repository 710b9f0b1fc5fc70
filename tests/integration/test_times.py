# SPDX-License-Identifier: Apache-2.0
"""Recovery and reset on real DUTs: what is known of them comes out, and each frame's loss has its
time. Root only."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dutperf import journal, procedures, traffic
from dutperf.model import DirectionCounts
from dutperf.procedures.times import TimesPoint
from dutperf.run import campaign
from dutperf.run.testbench import Bench as CommandBench
from dutperf.run.testbench import Source
from undisturbed import until

from .measuring import Bench, bench

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

RESET_S = 0.3
AWAY_S = 0.1
"""By how much a busy machine may shift what is measured; the time that the commands themselves take
is on top."""


class Silent:
    """An observer that is not interested."""

    def update(self, status: campaign.Status) -> None:
        """See :class:`dutperf.run.campaign.Observer`."""


def measured(name: str, on: Bench, out: Path, **conditions: Any) -> TimesPoint:
    """The only point of a run with one repetition of 3 s at 5,000 frames/s."""
    definition = procedures.find(name)
    usual = {"duration_s": 3, "drain_s": 0.5, "repetitions": 1, "rate": "5k"}
    chosen = definition.conditions(**(usual | conditions))
    plan = CommandBench(on.setup, on.tester, Source("none", {}, None)).plan(traffic.of(on.setup, chosen).sized())
    [point] = campaign.measure(definition, on.tester, plan, out, Silent()).points
    assert isinstance(point, TimesPoint)
    return point


def counted(out: Path) -> list[DirectionCounts]:
    """Of every trial of a run, also of those that others on this machine made invalid."""
    events = [event for event in journal.read(out) if isinstance(event, journal.ResultEvent)]
    return [counts for event in events for counts in event.result.directions().values()]


@pytest.mark.long
@pytest.mark.parametrize("name", ["kernel-ipv4", "tayga-siit"])
def test_a_reset_takes_as_long_as_the_dut_was_out_of_service(name: str, tmp_path: Path) -> None:
    with bench(name, {"reset_s": str(RESET_S)}) as ready:
        point = measured("reset", ready, tmp_path, reset_after_s=1)
    for counts in counted(tmp_path):
        assert counts.arrivals is not None
        assert counts.losses is not None
        assert RESET_S - 0.01 <= counts.arrivals.longest_gap_s <= RESET_S + 2
        assert counts.arrivals.longest_gap_from_s >= 1 - AWAY_S
        assert counts.losses.longest_run / 5_000 == pytest.approx(counts.arrivals.longest_gap_s, abs=AWAY_S)
    assert point.has_number or point.limited_by_tester, point.message


@pytest.mark.long
def test_a_token_bucket_recovers_at_once(tmp_path: Path) -> None:
    """110 % of its 5,000 packets/s is too much, half of that is not."""
    with bench("kernel-ipv4", {"limit_fps": "5000", "burst": "100"}) as ready:
        runs = count()
        point = until(
            lambda: measured(
                "recovery", ready, tmp_path / str(next(runs)), overload_s=2, directions="forward", duration_s=4
            ),
            lambda point: not point.limited_by_tester,
            lambda point: point.message,
            fewest=1,
        )
    times = point.forward
    assert times is not None, point.message
    assert 0 <= times["recovery"].median <= AWAY_S
