# SPDX-License-Identifier: Apache-2.0
"""DUTs in a namespace of the host, made by hand, measured through emulated cards: a TAP interface
is the cable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cards import by_hand
from cards.bench import bench
from cards.conftest import Guests, watched
from cards.machine import Guest, Machine

pytestmark = [pytest.mark.cards, pytest.mark.root]

ROUTED: dict[str, Any] = {
    "left": {"version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"},
    "right": {"version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
}
TRANSLATED: dict[str, Any] = {
    "left": {"version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1", "seen_as": "198.18.0.2"},
    "right": {"version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1", "seen_as": "2001:2:0:1000::2"},
}
LIMIT_FPS = 1_000
DURATION_S = 4


@pytest.fixture
def wired(guests: Guests) -> Iterator[Guest]:
    """A machine with an e1000e card on each of the namespace's cables."""
    guests.stop()  # of an earlier namespace
    with by_hand.taps():
        cables = tuple(map(by_hand.cable, (by_hand.LEFT, by_hand.RIGHT)))
        with watched(guests.of(Machine("e1000e", cables, netns=by_hand.NAMESPACE))) as guest:
            yield guest
        guests.stop()


def test_a_router_forwards_what_it_is_limited_to(wired: Guest) -> None:
    by_hand.router(LIMIT_FPS)
    with bench(wired, ROUTED) as ready:
        below, above = (
            ready.run_valid(rate_fps, duration_s=DURATION_S) for rate_fps in (LIMIT_FPS * 9 // 10, 2 * LIMIT_FPS)
        )
    for counts in below.directions().values():
        assert counts.received == counts.sent == counts.intended
    for counts in above.directions().values():
        assert counts.sent == counts.intended
        assert counts.received / DURATION_S == pytest.approx(LIMIT_FPS, rel=0.03)


def test_a_nat64_gateway_translates_every_frame(wired: Guest, tmp_path: Path) -> None:
    with by_hand.tayga(tmp_path), bench(wired, TRANSLATED) as ready:
        result = ready.run_valid()
    for counts in result.directions().values():
        assert counts.received == counts.sent == counts.intended


def test_two_queues_of_virtio(guests: Guests) -> None:
    guests.stop()
    with by_hand.taps(queues=2):
        by_hand.switch()
        cables = tuple(by_hand.cable(name, queues=2) for name in (by_hand.LEFT, by_hand.RIGHT))
        described = Machine("virtio", cables, {"mq": "on", "vectors": "6"}, netns=by_hand.NAMESPACE)
        with watched(guests.of(described)) as guest, bench(guest, queues=2) as ready:
            result = ready.run_valid()
        guests.stop()
    for counts in result.directions().values():
        assert counts.received == counts.sent == counts.intended
