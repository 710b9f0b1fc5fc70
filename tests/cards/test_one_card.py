# SPDX-License-Identifier: Apache-2.0
"""One card, one trial: what `make test` has of it. Its driver does DMA, which no other port of the
tests does."""

from __future__ import annotations

from cards.bench import bench
from cards.conftest import Guests, watched
from cards.machine import Machine


def test_a_card_sends_the_frames_that_were_meant(guests: Guests) -> None:
    with watched(guests.of(Machine("e1000e"))) as guest, bench(guest) as ready:
        result = ready.run_valid()
    for counts in result.directions().values():
        assert counts.sent == counts.received == counts.intended
        assert counts.other_received == {}
