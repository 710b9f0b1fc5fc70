# SPDX-License-Identifier: Apache-2.0
"""A machine whose IOMMU is off, or that has none."""

from __future__ import annotations

import pytest

from cards.bench import bench, one_sentence, refusal
from cards.conftest import Guests
from cards.machine import HUGE_PAGES, HUGE_PAGES_FILE, Machine

pytestmark = pytest.mark.cards


@pytest.mark.parametrize("model", ["e1000e", "virtio"])
def test_without_an_iommu(guests: Guests, model: str) -> None:
    """vfio-pci takes no card then; uio_pci_generic does, and the engine uses physical addresses."""
    guest = guests.of(Machine(model, iommu=False))
    guest.run("bind vfio-pci " + " ".join(guest.cards) + " || true")
    assert "it has no IOMMU group, without which vfio-pci takes no card: turn on the IOMMU" in one_sentence(guest)
    guest.run("modprobe uio_pci_generic; bind uio_pci_generic " + " ".join(guest.cards))
    with bench(guest) as ready:
        result = ready.run_valid()
    for counts in result.directions().values():
        assert counts.sent == counts.received == counts.intended
        assert counts.other_received == {}
    guest.run(f"echo 0 > {HUGE_PAGES_FILE}")
    try:
        refused = refusal(guest, memory="auto")
    finally:
        guest.run(f"echo {HUGE_PAGES} > {HUGE_PAGES_FILE}")
    assert refused.code == "no_memory"
    assert "without one a card needs huge pages: reserve them" in str(refused)
