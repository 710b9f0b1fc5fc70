# SPDX-License-Identifier: Apache-2.0
"""What only virtio has: a host that tells its guest about the network."""

from __future__ import annotations

import pytest

from cards.bench import bench, refusal
from cards.conftest import Guests, watched
from cards.machine import Machine

pytestmark = pytest.mark.cards


def test_a_card_that_was_told_what_its_network_carries(guests: Guests) -> None:
    """The host of a virtio card may say so (virtio 1.1, 5.1.4)."""
    with watched(guests.of(Machine("virtio", options={"host_mtu": "1500"}))) as guest:
        refused = refusal(guest, max_frame_size=2048)
        assert refused.code == "port_unavailable"
        assert "takes frames of 1518 bytes at most, not of 2048" in str(refused)
        with bench(guest) as ready:
            ready.run_valid(frame_sizes=(1518,))
