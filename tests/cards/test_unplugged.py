# SPDX-License-Identifier: Apache-2.0
"""A card that is torn out in a trial. QEMU does not put it back: the machine is thrown away
afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from cards.bench import bench, causes
from cards.conftest import Guests
from cards.machine import Guest, Machine
from dutperf.model import Verdict
from dutperf.tester import TesterError

pytestmark = pytest.mark.cards


@pytest.fixture
def throw_away(model: str, guests: Guests) -> Iterator[Guest]:
    """A machine that nobody uses afterwards."""
    guest = guests.of(Machine(model))
    guest.run("bind vfio-pci " + " ".join(guest.cards))
    yield guest
    guests.stop()


def test_a_card_that_is_torn_out_in_a_trial_is_not_the_duts_loss(throw_away: Guest) -> None:
    with bench(throw_away) as ready:
        result = ready.run_while(lambda: throw_away.tear_out(0), duration_s=15)
        assert result.verdict in (Verdict.INVALID, Verdict.ABORTED)
        assert causes(result) & {"link_down", "engine_died"}
        with contextlib.suppress(TesterError):  # where the engine knows that the card is gone, or cannot open it again
            assert ready.run().verdict is not Verdict.VALID
