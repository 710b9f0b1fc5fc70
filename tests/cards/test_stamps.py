# SPDX-License-Identifier: Apache-2.0
"""Time stamps of cards: an emulated Intel 82576, which stamps messages of PTP alone, and its driver in the kernel.

The card's clock is that of the emulated machine: the stamps show that each frame has its own, and no accuracy. A busy
machine sends late and in bursts, which no test here is about. QEMU's card stamps one frame at a time, and none in UDP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cards import by_hand
from cards.bench import JOINED, Bench, bench, causes
from cards.conftest import Guests
from cards.machine import STAMPING, Guest, Machine, Missing
from cards.relay import DELAY_S
from cards.test_documents import COMMAND_S, in_project
from cards.test_networks import ROUTED
from dutperf.model import TrialResult
from dutperf.tester import TesterError
from stamped import clocks_of, stamps_of
from undisturbed import until

pytestmark = [pytest.mark.cards, pytest.mark.root]

PORTS = {"left": "eth0", "right": "eth1"}
LOAD_FPS, TAGS = 5_000, 1_000
ETHERNET = "eth(type=0x88b5)/payload(data=0x00)"
"""Frames without an IP header: the messages of PTP have none either. Only they are of PTP."""
ENOUGH = 5
"""Frames with both stamps each way: those that are sent in one burst get few."""
CLOCKS_US, OSCILLATOR_PPM = 50, 20
"""By which two clocks of one machine may seem to differ."""
STEP_US = 1_000
_START = """
modprobe igb
for port in eth0 eth1; do ip link set $port up; done
for number in $(grep eth /proc/interrupts | cut -d : -f 1); do echo 1 > /proc/irq/$number/smp_affinity; done
for port in eth0 eth1; do card-clock free $port > /dev/console 2>&1 & done
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


@pytest.fixture
def switched(stamping: Guest) -> Iterator[Bench]:
    """The tester on a switch."""
    by_hand.switch()
    with bench(stamping, by_driver(JOINED), memory="auto") as ready:
        yield ready
    by_hand.no_switch()


def by_driver(sides: dict[str, Any]) -> dict[str, Any]:
    """``sides`` with the ports that the kernel's driver has."""
    return {name: side | {"port": f"af_packet:{PORTS[name]}"} for name, side in sides.items()}


def run(ready: Bench, rate_fps: int = LOAD_FPS, tags: int = TAGS, frame: str | None = ETHERNET) -> TrialResult:
    """A trial whose every tagged frame that arrived has both stamps of its own, or counts as one that lacks them."""
    result = ready.run(rate_fps, tags=tags, stamps="card", frame_sizes=(128,), frame=frame)
    for counts in result.directions().values():
        stamps = stamps_of(counts)
        assert counts.ptp
        assert stamps.both + stamps.missing == counts.stamped_received
        assert stamps.impossible == 0
        assert (counts.delay_us.frames if counts.delay_us else 0) == stamps.both
    return result


def with_both(result: TrialResult) -> int:
    """Frames, in the direction that has fewer."""
    return min(stamps_of(counts).both for counts in result.directions().values())


def test_what_the_ports_can_stamp(stamping: Guest) -> None:
    listed = json.loads(stamping.run(in_project(".venv/bin/dutperf ports --json"), COMMAND_S))["ports"]
    found = {one["interface"]: (one["driver"], one["stamps"]) for one in listed}
    assert found == dict.fromkeys(PORTS.values(), ("igb", "kernel, card (PTP only)"))


def test_a_trial_whose_every_frame_needs_a_stamp_is_refused(switched: Bench) -> None:
    with pytest.raises(TesterError) as refused:
        switched.run(stamps="card", frame_timeout_ms=100)
    assert (refused.value.code, refused.value.field) == ("port_unavailable", "stamps")
    assert str(refused.value).startswith(
        "the driver igb of eth0, the left port, does not stamp every frame that it receives (none, ptpv1-l4-sync,"
        " ptpv1-l4-delay-req, ptpv2-event)"
    )


def test_messages_of_ptp_beside_the_load_are_stamped_through_a_switch(switched: Bench) -> None:
    result = until(lambda: run(switched), lambda one: with_both(one) >= ENOUGH, if_busy=with_both)
    for counts in result.directions().values():
        clocks = clocks_of(counts)
        assert {clocks.sending.name, clocks.receiving.name} == {"ptp0", "ptp1"}
        assert abs(clocks.drift_ppm) < OSCILLATOR_PPM
        assert clocks.error_us < CLOCKS_US
        assert abs(clocks.step_us) < CLOCKS_US


def test_a_card_whose_clock_is_set_in_a_trial_makes_it_invalid(switched: Bench) -> None:
    result = switched.run_while(
        lambda: switched.guest.run(f"card-clock step /dev/ptp1 {STEP_US}000"),
        tags=100,
        stamps="card",
        frame_sizes=(128,),
        frame=ETHERNET,
    )
    assert "card_clock" in causes(result)
    for counts in result.directions().values():
        assert abs(clocks_of(counts).step_us) == pytest.approx(STEP_US, abs=CLOCKS_US)


def test_lost_doubled_and_reordered_messages_get_no_stamp_of_another(stamping: Guest) -> None:
    """With that of the one before or behind it, a frame's delay would be shorter than the DUT's."""
    with by_hand.relay(), bench(stamping, by_driver(JOINED), memory="auto") as ready:
        result = until(lambda: run(ready, 1_000, 200), lambda one: with_both(one) >= ENOUGH, if_busy=with_both)
    for counts in result.directions().values():
        assert counts.lost > 0
        assert counts.duplicates > 0
        assert counts.out_of_order > 0
        assert counts.delay_us is not None
        assert counts.delay_us.min >= DELAY_S * 1e6 - clocks_of(counts).error_us


def test_messages_that_a_card_does_not_stamp_have_no_delay(stamping: Guest) -> None:
    by_hand.router(2 * LOAD_FPS)
    with bench(stamping, by_driver(ROUTED), memory="auto") as ready:
        result = run(ready, frame=None)
    assert "missing_stamps" in causes(result)
    for counts in result.directions().values():
        stamps = stamps_of(counts)
        assert stamps.no_receive == counts.stamped_received > 0
