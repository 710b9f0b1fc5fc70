# SPDX-License-Identifier: Apache-2.0
"""Neighbours of a router: simulated ones, and the kernel's, whose table has the size that it was given."""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dutperf
from dutperf.dut.device import Device
from dutperf.model import Direction, LimitedBy, Trial, TrialResult
from dutperf.procedures.bench import PlanError
from dutperf.procedures.ndp_capacity import PROCEDURE, TEST_FRAMES, NdpCapacityPoint
from dutperf.setup.configuration import ConfigError, Dut
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedTester
from plans import counts, measure, plan
from undisturbed import until

THRESHOLD = Path("/proc/sys/net/ipv6/neigh/default/gc_thresh3")
"""Entries of the kernel's table, those of all namespaces together."""
OWN = 12
"""Entries of others at most: the tester's addresses, link-local and multicast ones."""


class Router(SimulatedTester):
    """Has room for so many neighbours, and loses what goes to others."""

    capacity = 0

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        [stream] = trial.streams().values()
        assert stream.destination_address is not None
        asked = stream.destination_address.max - stream.destination_address.min + 1
        sent = trial.intended(Direction.FORWARD)
        received = sent * min(asked, self.capacity) // asked
        return result.model_copy(update={"forward": counts(sent, received)})


def points_of(capacity: int, out: Path, **conditions: Any) -> tuple[Any, Router]:
    tester = Router()
    tester.capacity = capacity
    [point] = measure(tester, plan(**{"repetitions": 1, **conditions}), out, "ndp-capacity").points
    assert isinstance(point, NdpCapacityPoint)
    return point, tester


def test_twenty_capacities_are_read_exactly(tmp_path: Path) -> None:
    generator = random.Random(8161)
    for number in range(20):
        capacity = generator.randint(1, 240)
        point, tester = points_of(capacity, tmp_path / str(number), first_neighbours=generator.randint(1, 200))
        assert (point.neighbours.median, point.limited_by) == (capacity, LimitedBy.DUT)
        assert all(trial.question.clear_addresses for trial in tester.trials if trial.question.tolerated_loss == 0)


def test_each_neighbour_is_asked_for_before_it_is_tested(tmp_path: Path) -> None:
    _, tester = points_of(50, tmp_path, first_neighbours=40, most_neighbours=40)
    asking, test = tester.trials
    assert [one.intended(Direction.FORWARD) for one in (asking, test)] == [40, 40 * TEST_FRAMES]
    for one in (asking, test):
        assert one.reverse is None
        assert one.forward is not None
        assert one.forward.destination_address is not None
        assert (one.forward.destination_address.min, one.forward.destination_address.max) == (3, 42)


def test_what_cannot_be_measured_says_what_it_needs(tmp_path: Path) -> None:
    """The simulated right link is 198.19.0.2/24 behind 198.19.0.1: 252 hosts are left."""
    point, _ = points_of(1_000, tmp_path / "room")
    assert (point.neighbours.median, point.limited_by) == (252, LimitedBy.RANGE)
    assert "252 addresses for which the link's network has room" in point.message
    with pytest.raises(PlanError, match="is above 252"):
        points_of(9, tmp_path, first_neighbours=253)
    with pytest.raises(PlanError, match=r"dut\.commands\.clear_addresses"):
        PROCEDURE.make(replace(plan(), dut=Device(Dut()), conditions=PROCEDURE.conditions()))
    bare = plan()
    setup = bare.traffic.setup
    assert setup.right is not None
    bare.traffic.setup = setup.model_copy(update={"right": setup.right.model_copy(update={"gateway4": None})})
    with pytest.raises(ConfigError, match=r"right\.gateway4: is needed"):
        PROCEDURE.make(replace(bare, conditions=PROCEDURE.conditions()))


@contextmanager
def router() -> Iterator[dict[str, Any]]:
    """The kernel between two networks, made by hand; the configuration to measure it with."""
    tester, dut = (f"ndp-{end}-{secrets.token_hex(3)}" for end in "td")
    run = lambda *words: subprocess.run(words, check=True, capture_output=True)  # noqa: E731
    try:
        for name in (tester, dut):
            run("ip", "netns", "add", name)
        run("ip", "netns", "exec", dut, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        for port, network in (("l", "2001:2:0:0"), ("r", "2001:2:0:1")):
            run("ip", "-n", tester, "link", "add", f"t{port}", "type", "veth", "peer", "name", f"d{port}", "netns", dut)
            run("ip", "-n", tester, "link", "set", f"t{port}", "up", "addrgenmode", "none")
            run("ip", "-n", dut, "link", "set", f"d{port}", "up")
            run("ip", "-n", dut, "-6", "address", "add", f"{network}::1/64", "dev", f"d{port}", "nodad")
        while run("ip", "-n", dut, "-6", "address", "show", "tentative").stdout:  # until then it asks for nobody
            time.sleep(0.1)
        yield {
            "engine": {"netns": tester},
            "left": {"port": "tl", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"},
            "right": {"port": "tr", "version": 6, "ipv6": "2001:2:0:1::2/64", "gateway6": "2001:2:0:1::1"},
            "dut": {"commands": {"clear_addresses": ["ip", "-n", dut, "-6", "neigh", "flush", "all"]}},
        }
    finally:
        for name in (tester, dut):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.mark.root
@pytest.mark.long
def test_the_kernels_table_is_read(tmp_path: Path) -> None:
    """Two sizes, so that what others have in it does not matter."""
    if not THRESHOLD.exists():
        pytest.skip("its table's size is not for this network namespace to set")
    before, found = THRESHOLD.read_text(), {}
    chosen = dutperf.NdpCapacity(
        first_neighbours=140, neighbour_error=2, resolution_rate="4k", test_rate="4k", drain_s=0.1
    )
    with router() as configuration:
        file = tmp_path / "router.json"
        file.write_text(json.dumps(configuration))
        try:
            for size in (150, 250):
                THRESHOLD.write_text(str(size))

                def measured(size: int = size) -> Any:
                    out = tmp_path / f"{size}-{len(list(tmp_path.iterdir()))}"
                    [point] = dutperf.measure(chosen, out, config=file).summary.points
                    return point

                point = until(measured, lambda one: one.limited_by is LimitedBy.DUT, lambda one: str(one.message))
                found[size] = point.neighbours.median
        finally:
            THRESHOLD.write_text(before)
    assert all(size - OWN <= value < size for size, value in found.items()), found
    assert found[250] - found[150] == pytest.approx(100, abs=3), found
