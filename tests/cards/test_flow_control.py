# SPDX-License-Identifier: Apache-2.0
"""Flow control off and on: the card has it, the result says so, and the throughput over a cable is the tester's own
either way. The part of the accuracy study (examples/accuracy-study) for which an emulated card is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cards.bench import SLOW_FPS, bench
from cards.machine import Guest
from dutperf import procedures, traffic
from dutperf.model import ports_of
from dutperf.run import campaign
from dutperf.run.testbench import Bench, Source
from dutperf.setup.conditions import Rate
from dutperf.tester import TesterError
from plans import Log

pytestmark = pytest.mark.cards

REFUSED = ("vmxnet3", "virtio")
"""Models whose driver cannot set it."""
NEGOTIATED_OFF = ("e1000",)
"""Models that take the setting and negotiate it away with the other end, which has none: the result says ``off``."""


def throughput(guest: Guest, mode: str, out: Path) -> tuple[set[Any], Any]:
    """Flow control that the ports say they use, and the point of a search up to what the machine can carry."""
    with bench(guest, flow_control=mode) as ready:
        used = {port["flow_control"] for port in ports_of(ready.tester.environment()).values()}
        definition = procedures.find("throughput")
        rates = {"max_rate": SLOW_FPS, "min_rate": SLOW_FPS // 2, "resolution": SLOW_FPS // 2}
        conditions = definition.conditions(
            duration_s=1,
            drain_s=0.5,
            repetitions=2,
            **{name: Rate(value=value, unit="fps") for name, value in rates.items()},
        )
        made = Bench(ready.setup, ready.tester, Source(None, {}, Path("cards.yaml")))
        plan = made.plan(traffic.of(ready.setup, conditions).sized())
        return used, campaign.measure(definition, ready.tester, plan, out, Log()).points[0]


def test_a_throughput_with_flow_control_off_and_on(guest: Guest, tmp_path: Path) -> None:
    if guest.machine.model in REFUSED:
        with pytest.raises(TesterError, match="flow control"), bench(guest, flow_control="full") as ready:
            ready.tester.environment()
        return
    for mode in ("off", "full"):
        used, point = throughput(guest, mode, tmp_path / mode)
        assert used == {mode} or (used == {"off"} and guest.machine.model in NEGOTIATED_OFF)
        assert point.throughput_fps.median in (SLOW_FPS, SLOW_FPS // 2) or point.limited_by == "tester"
        assert point.limited_by != "dut", "a cable loses nothing"
