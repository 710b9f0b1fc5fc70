# SPDX-License-Identifier: Apache-2.0
"""The engine on every card that QEMU emulates: what a card does that a virtual cable does not."""

from __future__ import annotations

import pytest

from cards.bench import bench
from cards.machine import Guest

pytestmark = pytest.mark.cards


def test_every_frame_arrives_as_it_was_meant(guest: Guest) -> None:
    with bench(guest) as ready:
        result = ready.run_valid()
    for counts in result.directions().values():
        assert counts.sent == counts.received == counts.intended
        assert counts.other_received == {}
