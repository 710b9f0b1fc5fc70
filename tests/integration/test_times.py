# SPDX-License-Identifier: Apache-2.0
"""Recovery and reset on real DUTs: what is known of them comes out, and each frame's loss has its time. Root only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dutperf import campaign, procedure, traffic
from dutperf.cli.bench import Bench as CommandBench
from dutperf.cli.bench import Source
from dutperf.conditions import Conditions, Rate
from dutperf.procedure.times import TimesPoint

from .measuring import Bench, bench

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

RESET_S = 0.3
AWAY_S = 0.05
"""By how much a busy machine may make an outage longer than it was meant to be; the commands' own time is on top."""


class Silent:
    """An observer that is not interested."""

    def update(self, status: campaign.Status) -> None:
        """See :class:`dutperf.campaign.Observer`."""


def measured(name: str, on: Bench, out: Path, **conditions: Any) -> TimesPoint:
    """The only point of a run with one repetition of 4 s; on a machine that was too busy for one valid trial, of one of a few runs."""
    points = [_measured_once(name, on, out / "1", **conditions)]
    while points[-1].limited_by_tester and len(points) < 3:
        points.append(_measured_once(name, on, out / str(1 + len(points)), **conditions))
    return points[-1]


def _measured_once(name: str, on: Bench, out: Path, **conditions: Any) -> TimesPoint:
    chosen = Conditions(**({"duration_s": 4, "drain_s": 0.5, "repetitions": 1, "rate": Rate.parse("5k")} | conditions))
    plan = CommandBench(on.setup, on.tester, Source("none", {}, None)).plan(traffic.sized(on.setup, chosen))
    [point] = campaign.measure(procedure.find(name), on.tester, plan, out, Silent()).points
    assert isinstance(point, TimesPoint)
    return point


@pytest.mark.parametrize("name", ["kernel-ipv4", "tayga-siit"])
def test_a_reset_takes_as_long_as_the_dut_was_out_of_service(name: str, tmp_path: Path) -> None:
    with bench(name, {"reset_s": str(RESET_S)}) as ready:
        point = measured("reset", ready, tmp_path, reset_after_s=1)
    for times in (point.forward, point.reverse):
        assert times is not None, point.message
        assert RESET_S - 0.01 <= times["silence"].median <= RESET_S + 2
        assert times["loss"].median == pytest.approx(times["silence"].median, abs=AWAY_S)


def test_a_token_bucket_recovers_at_once(tmp_path: Path) -> None:
    """Both directions share 10,000 packets/s: 110 % of 5,000 each is too much, half of that is not."""
    with bench("kernel-ipv4", {"limit_fps": "10000", "burst": "100"}) as ready:
        point = measured("recovery", ready, tmp_path, overload_s=2)
    for times in (point.forward, point.reverse):
        assert times is not None, point.message
        assert 0 <= times["recovery"].median <= AWAY_S
