# SPDX-License-Identifier: Apache-2.0
"""A ramp over a DUT of known capacity finds where it breaks. Root only."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from dutperf import procedures, traffic
from dutperf.procedures.ramp import PARTS, Ramp, RampPoint
from dutperf.run import campaign
from dutperf.run.testbench import Bench as CommandBench
from dutperf.run.testbench import Source
from undisturbed import until

from .measuring import Bench, bench

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

CAPACITY_FPS, QUEUE = 10_000, 100
FROM_FPS, TO_FPS, OVER_S = 2_000, 20_000, 4


class Silent:
    """An observer that is not interested."""

    def update(self, status: campaign.Status) -> None:
        """See :class:`dutperf.run.campaign.Observer`."""


def measured(on: Bench, out: Path) -> RampPoint:
    """One ramp in the forward direction."""
    definition = procedures.find("ramp")
    chosen = Ramp.model_validate(
        {"from_rate": FROM_FPS, "to_rate": TO_FPS, "duration_s": OVER_S, "drain_s": 0.5, "directions": "forward"}
    )
    plan = CommandBench(on.setup, on.tester, Source("none", {}, None)).plan(traffic.of(on.setup, chosen).sized())
    [point] = campaign.measure(definition, on.tester, plan, out, Silent()).points
    assert isinstance(point, RampPoint)
    return point


@pytest.mark.long
def test_the_capacity_of_the_reference_dut_is_where_it_breaks(tmp_path: Path) -> None:
    """Its queue is full when the rate is sqrt(2 s b) above the capacity. Until then the delays grow to
    the time in which the queue empties; afterwards as much is forwarded as the capacity allows."""
    with bench("refdut-ipv4", {"capacity_fps": str(CAPACITY_FPS), "queue": str(QUEUE)}) as ready:
        runs = count()
        point = until(
            lambda: measured(ready, tmp_path / str(next(runs))),
            lambda point: not point.limited_by_tester and (point.uncertainty_fps or TO_FPS) < CAPACITY_FPS / 10,
            lambda point: f"{point.message}, uncertain by {point.uncertainty_fps}",
            fewest=1,
        )
    above_fps = (2 * (TO_FPS - FROM_FPS) / OVER_S * QUEUE) ** 0.5
    assert point.first_loss_fps.median is not None, point.message
    assert point.uncertainty_fps is not None
    assert point.first_loss_fps.median == pytest.approx(
        CAPACITY_FPS + above_fps, abs=CAPACITY_FPS / 20 + point.uncertainty_fps
    )
    assert len(point.parts) == PARTS
    for part in point.parts:
        [sent], [lost], delays = part.sent.values(), part.lost.values(), list(part.delay_us.values())
        assert sent == pytest.approx(part.load.value * OVER_S / PARTS, abs=2)
        if part.load.value < 0.9 * CAPACITY_FPS and not part.late:
            assert lost == 0
        if part.load.value > 1.3 * CAPACITY_FPS:
            assert part.forwarded_fps == pytest.approx(CAPACITY_FPS, rel=0.1)
            assert delays[0].p50 == pytest.approx(1e6 * QUEUE / CAPACITY_FPS, rel=0.2)
