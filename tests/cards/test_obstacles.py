# SPDX-License-Identifier: Apache-2.0
"""Cards that cannot be used: each gets one sentence that names the port, what was found and what to
do. And what looks like an obstacle and is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cards.bench import JOINED, bench, one_sentence, refusal
from cards.conftest import Guests, watched
from cards.machine import HUGE_PAGES, HUGE_PAGES_FILE, Guest, Machine

pytestmark = pytest.mark.cards


@pytest.fixture
def card_machine(guests: Guests) -> Iterator[Guest]:
    """A machine whose cards a test takes from vfio-pci or keeps busy; its huge pages are there
    again afterwards."""
    with watched(guests.of(Machine("e1000e"))) as ready:
        yield ready
        ready.run(f"echo {HUGE_PAGES} > {HUGE_PAGES_FILE}")


def test_a_card_that_the_kernel_uses(card_machine: Guest) -> None:
    address = card_machine.cards[1]
    card_machine.run(f"modprobe e1000e; bind e1000e {address}")
    interface = card_machine.run(f"ls /sys/bus/pci/devices/{address}/net")
    said = one_sentence(card_machine, "right")
    assert (
        f"the PCI device {address} is in use by the kernel (driver e1000e, interface {interface}): bind it to vfio-pci"
        in said
    )
    assert f"dutperf ports bind {address}" in said


def test_a_card_that_no_driver_has(card_machine: Guest) -> None:
    address = card_machine.cards[0]
    card_machine.run(f"echo {address} > /sys/bus/pci/devices/{address}/driver/unbind")
    assert f"no driver is bound to the PCI device {address}: bind it to vfio-pci" in one_sentence(card_machine)


def test_a_card_that_is_not_there(card_machine: Guest) -> None:
    nowhere = {name: side | ({"port": "0000:7f:00.0"} if name == "left" else {}) for name, side in JOINED.items()}
    refused = refusal(card_machine, nowhere)
    assert (refused.code, refused.field) == ("port_away", "left.port"), "it may come back"
    assert "there is no PCI device 0000:7f:00.0 on this machine" in str(refused)


def test_a_device_that_is_no_network_card(card_machine: Guest) -> None:
    bridge = {name: side | ({"port": "0000:00:1f.0"} if name == "left" else {}) for name, side in JOINED.items()}
    assert "the PCI device 0000:00:1f.0 is not a network card" in one_sentence(card_machine, sides=bridge)


def test_a_card_that_another_program_has(card_machine: Guest) -> None:
    group = card_machine.run(f"basename $(readlink /sys/bus/pci/devices/{card_machine.cards[0]}/iommu_group)")
    user = card_machine.run(f"sleep 600 < /dev/vfio/{group} > /dev/null 2>&1 & echo $!")
    try:
        said = one_sentence(card_machine)
    finally:
        card_machine.run(f"kill {user}; while [ -e /proc/{user}/exe ]; do usleep 50000; done")
    assert (
        f"the PCI device {card_machine.cards[0]} (or another one of its IOMMU group {group}) is in use by another"
        " program" in said
    )
    with bench(card_machine) as ready:
        ready.tester.environment()


def test_a_machine_without_free_huge_pages(card_machine: Guest) -> None:
    card_machine.run(f"echo 10 > {HUGE_PAGES_FILE}")
    refused = refusal(card_machine)
    assert (refused.code, refused.field) == ("no_memory", "engine.memory")
    assert "there are not enough free huge pages" in str(refused)


@pytest.mark.parametrize("model", ["e1000e", "virtio"])
def test_behind_an_iommu_small_pages_are_enough(guests: Guests, model: str) -> None:
    with watched(guests.of(Machine(model))) as guest:
        guest.run(f"echo 0 > {HUGE_PAGES_FILE}")
        try:
            with bench(guest, memory="auto") as ready:
                result = ready.run_valid()
                assert ready.tester.environment()["memory"]["mode"] == "no_huge_pages"
        finally:
            guest.run(f"echo {HUGE_PAGES} > {HUGE_PAGES_FILE}")
    for counts in result.directions().values():
        assert counts.sent == counts.received == counts.intended
