# SPDX-License-Identifier: Apache-2.0
"""A suite on a simulated DUT whose results have something to show in every table and plot, for the
tests of reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dutperf import procedures
from dutperf.dut.device import Device
from dutperf.run import suite
from dutperf.run.campaign import Observer, Plan
from dutperf.run.suite import Measurement
from dutperf.setup.conditions import Conditions, Rate
from dutperf.setup.configuration import Dut
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Log, plan

MEDIA_FPS = 148_809
CONFIG: dict[str, Any] = {
    "left": {
        "port": "af_packet:left",
        "version": 6,
        "ipv6": "2001:2::2/64",
        "gateway6": "2001:2::1",
        "seen_as": "198.18.0.2",
    },
    "right": {
        "port": "af_packet:right",
        "version": 4,
        "ipv4": "198.19.0.2/24",
        "gateway4": "198.19.0.1",
        "seen_as": "2001:2:0:1000::2",
    },
    "media_mbps": 100,
}
DUT = Device(Dut(name="gateway <&> of a test", version="1.2"))
SHORT: dict[str, Any] = {
    "duration_s": 0.5,
    "drain_s": 0,
    "repetitions": 3,
    "frame_sizes": (84, 1518),
    "tag_after_s": 0.1,
    "tags": 200,
}
MEASURED: dict[str, dict[str, Any]] = {
    "throughput": {"search": "mlr", "goals": (0.0, 0.005)},
    "latency": {},
    "pdv": {},
    "ipdv": {},
    "frame-loss": {"max_rate": Rate.parse("100%")},
    "back-to-back": {"max_rate": Rate.parse("100%"), "burst_resolution": 0.02, "max_burst_s": 2},
}
JITTERY = SimulatedDut(
    capacity_fps=54_321, queue_frames=100, loss_ratio=1e-6, delay_us=80, jitter_us=40, slow_every=700, slow_us=900
)


@dataclass
class SimulatedBench:
    """See :class:`dutperf.run.suite.Bench`."""

    tester: SimulatedTester

    def plan(self, conditions: Conditions) -> Plan:
        """With a set-up that can be drawn."""
        return replace(plan(MEDIA_FPS, **dict(conditions)), conditions=conditions, config=CONFIG, dut=DUT)

    @contextmanager
    def modified(self, _conditions: Conditions) -> Iterator[SimulatedBench]:
        """The DUT stays as it is."""
        yield self


def a_suite(**measured: dict[str, Any]) -> tuple[Measurement, ...]:
    """Those procedures; without any, all of MEASURED."""
    chosen = measured or MEASURED
    return suite.arrange(
        [
            (definition, definition.conditions.recorded(SHORT | members))
            for definition, members in (
                (procedures.find(name.replace("_", "-")), each) for name, each in chosen.items()
            )
        ]
    )


def measure(out: Path, measurements: tuple[Measurement, ...] | None = None) -> Path:
    """Measure them into ``out``."""
    tester = SimulatedTester(JITTERY, SimulatedLimits(disturbed_ratio=0.1), seed=7)
    suite.begin(measurements or a_suite(), SimulatedBench(tester), out, watch)
    return out


@contextmanager
def watch(_measurement: Measurement, _number: int) -> Iterator[Observer]:
    """Looks away."""
    yield Log()
