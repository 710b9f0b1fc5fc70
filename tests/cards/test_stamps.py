# SPDX-License-Identifier: Apache-2.0
"""Time stamps of cards: an emulated Intel 82576, which stamps messages of PTP alone, and its driver in the kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cards import by_hand
from cards.bench import JOINED, Bench, bench
from cards.conftest import Guests
from cards.machine import STAMPING, Guest, Machine, Missing
from cards.test_documents import COMMAND_S, in_project
from dutperf.model import Stamping, TrialResult
from dutperf.setup.conditions import SingleTrial
from dutperf.tester import TesterError
from plans import make_trial

pytestmark = [pytest.mark.cards, pytest.mark.root]

PORTS = {"left": "eth0", "right": "eth1"}
BY_DRIVER = {name: side | {"port": f"af_packet:{PORTS[name]}"} for name, side in JOINED.items()}
_START = """
modprobe igb
for port in eth0 eth1; do ip link set $port up; done
for number in $(grep eth /proc/interrupts | cut -d : -f 1); do echo 1 > /proc/irq/$number/smp_affinity; done
"""
"""The engine leaves the driver no time on the other core."""


@pytest.fixture(scope="module")
def stamping(guests: Guests) -> Iterator[Guest]:
    """A machine with such a card on each of the namespace's cables, and the host's files."""
    guests.stop()  # of an earlier namespace
    with by_hand.taps():
        cables = tuple(map(by_hand.cable, (by_hand.LEFT, by_hand.RIGHT)))
        described = Machine(STAMPING, cables, iommu=False, huge_pages=0, shows_host=True, netns=by_hand.NAMESPACE)
        try:
            guest = guests.of(described)
        except Missing as missing:
            pytest.skip(str(missing))
        guest.run(f"{_START} enter-host")
        yield guest
        guests.stop()


def run(ready: Bench, rate_fps: int, **members: Any) -> TrialResult:
    """A second by the cards' stamps; ``members`` are the trial's."""
    given = SingleTrial(duration_s=1, drain_s=0.5)
    trial = make_trial(ready.setup, given, 128, rate_fps, next(ready.numbers))
    return ready.tester.run(trial.model_copy(update={"stamps": "card"} | members))


def test_what_the_ports_can_stamp(stamping: Guest) -> None:
    listed = json.loads(stamping.run(in_project(".venv/bin/dutperf ports --json"), COMMAND_S))["ports"]
    found = {one["interface"]: (one["driver"], one["stamps"]) for one in listed}
    assert found == dict.fromkeys(PORTS.values(), ("igb", "kernel, card (PTP only)"))


def test_a_trial_whose_every_frame_needs_a_stamp_is_refused(stamping: Guest) -> None:
    with bench(stamping, BY_DRIVER, memory="auto") as ready, pytest.raises(TesterError) as refused:
        run(ready, 1_000, stamping=Stamping.EVERY)
    assert (refused.value.code, refused.value.field) == ("port_unavailable", "stamps")
    assert str(refused.value).startswith(
        "the driver igb of eth0, the left port, does not stamp every frame that it receives (none, ptpv1-l4-sync,"
        " ptpv1-l4-delay-req, ptpv2-event)"
    )
