# SPDX-License-Identifier: Apache-2.0
"""What a card does that a device made of memory does not: it keeps frames, counts late or wrongly,
has a link of some speed and a clock of its own.

No card is at hand: the engine's ports are made out to be some (engine/tests/fake_nic.cpp).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dutperf.engine.client import EngineCommand
from dutperf.model import DirectionCounts, Stamping, TrialResult
from undisturbed import until

from .conftest import OpenEngine, with_fake_nic
from .streams import stream, trial

FRAMES = 400
LOST = FRAMES // 10
DRAIN_NS = 100_000_000
MEDIA_MBPS = 10
MEDIA_FPS = 10_000_000 / 8 / (128 + 20)
FULL_RING = 16

Measure = Callable[..., tuple[TrialResult, DirectionCounts]]


@pytest.fixture
def command(command: EngineCommand) -> EngineCommand:
    """The engine whose NIC is made up."""
    return with_fake_nic(command)


@pytest.fixture
def measure(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """The last of ``trials`` like one, forward, on ports of which `amiss` says what is wrong."""

    def one(
        amiss: str, *, rate_fps: int = 2000, trials: int = 1, ring: int = 4096, **members: object
    ) -> tuple[TrialResult, DirectionCounts]:
        monkeypatch.setenv("DUTPERF_FAKE_NIC", amiss)
        port = {"port": "ring", "receive_ring": ring}
        with open_engine(port, port) as engine:
            results = [
                engine.run(trial(stream(rate_fps=rate_fps), trial=number, **{"drain_ns": DRAIN_NS} | members))
                for number in range(trials)
            ]
        assert results[-1].forward is not None
        return results[-1], results[-1].forward

    return one


@pytest.mark.parametrize(
    ("amiss", "drops"),
    [
        ("keeps", "transmit_unaccounted"),
        pytest.param("card keeps", "transmit_unaccounted", marks=pytest.mark.long),
        ("card keeps wraps", "transmit_unaccounted"),
        ("card keeps counts_late", "transmit_unaccounted"),
        ("card keeps errors", "transmit_errors"),
    ],
)
def test_what_a_driver_took_and_never_sent_is_the_tester_s(measure: Measure, amiss: str, drops: str) -> None:
    result, counts = measure(amiss)
    assert (counts.sent, counts.lost) == (FRAMES, LOST)
    assert counts.tester_drops == {drops: LOST}
    assert "tester_drops" in {cause.code for cause in result.causes}
    assert counts.transmitted is not None
    assert counts.transmitted.model_dump() == {"handed_over": FRAMES, "counted": FRAMES - LOST, "by": "driver"}


@pytest.mark.parametrize(
    ("amiss", "by"),
    [
        ("loses", "driver"),
        pytest.param("card loses", "driver", marks=pytest.mark.long),
        ("card loses wraps", "driver"),
        ("card loses counts_late", "driver"),
        ("card loses uncounted", "nobody"),
        ("card loses halved", "nobody"),
    ],
)
def test_what_left_and_was_lost_is_not(measure: Measure, amiss: str, by: str) -> None:
    """Whatever the driver counts: a count that is lower than what arrived is believed no more."""
    _, counts = measure(amiss)
    assert (counts.sent, counts.lost, counts.tester_drops) == (FRAMES, LOST, {})
    assert counts.transmitted is not None
    assert counts.transmitted.by == by


@pytest.mark.alone
def test_a_card_that_counts_late_is_awaited_only_where_frames_are_missing(measure: Measure) -> None:
    began = time.monotonic()
    _, counts = measure("card counts_late", trials=3)
    assert (counts.lost, counts.tester_drops) == (0, {})
    assert time.monotonic() - began < 2 * 3  # of 0.3 s each, were they not awaited; and a start


@pytest.mark.alone
def test_a_phase_without_a_drain_is_not_followed_by_a_wait(measure: Measure) -> None:
    """Its counts are not final anyway, and the next phase follows at once."""

    def took_s(trials: int) -> float:
        began = time.monotonic()
        measure("card loses", trials=trials, drain_ns=0)
        return time.monotonic() - began

    assert took_s(4) - took_s(1) < 3 * (0.2 + 0.5)


@pytest.mark.alone
def test_at_the_media_s_rate_a_trial_is_granted_what_clocks_differ_by(measure: Measure) -> None:
    _, limited = measure(f"card media={MEDIA_MBPS}", rate_fps=round(MEDIA_FPS))
    assert limited.media is not None
    assert limited.media.line_rate_fps == pytest.approx(MEDIA_FPS)
    assert limited.media.tolerance_us == pytest.approx(200e-6 * 200_000)
    for amiss, rate_fps in (
        (f"card media={MEDIA_MBPS}", round(MEDIA_FPS * 0.999)),
        (f"media={MEDIA_MBPS}", round(MEDIA_FPS)),
        ("card", round(MEDIA_FPS)),
    ):
        _, free = measure(amiss, rate_fps=rate_fps)
        assert free.media is None


@pytest.mark.alone
def test_frames_that_wait_in_a_full_ring_are_owned_up_to(measure: Measure) -> None:
    """A card that is 2 % too slow: of 1,689 frames 34 would wait at the end, if its ring held so
    many. Their delays have it."""
    slow = f"card media={MEDIA_MBPS} slow=20000 ring={FULL_RING}"

    def causes(measured: tuple[TrialResult, DirectionCounts]) -> set[str]:
        return {cause.code for cause in measured[0].causes}

    _, counts = until(  # a stalled sender does not come to its end
        lambda: measure(slow, rate_fps=round(MEDIA_FPS), ring=FULL_RING, stamping=Stamping.EVERY),
        lambda measured: causes(measured) >= {"transmit_wait", "sending_time"},
    )
    wait = counts.transmit_wait
    assert wait is not None
    assert (wait.frames, wait.full) == (FULL_RING + 32, True)
    assert wait.us == pytest.approx((FULL_RING + 32) / MEDIA_FPS * 1e6)


@pytest.mark.alone
def test_a_ring_that_is_never_full_is_stated_and_harmless(measure: Measure) -> None:
    result, counts = measure(f"card media={MEDIA_MBPS} ring=4096", rate_fps=2000, stamping=Stamping.EVERY)
    assert counts.transmit_wait is not None
    assert (counts.transmit_wait.frames, counts.transmit_wait.full) == (4096 + 32, False)
    assert "transmit_wait" not in {cause.code for cause in result.causes}
    assert counts.receive_ring_us == pytest.approx(4096 / 2000 * 1e6)


def test_what_is_made_of_memory_has_no_media(measure: Measure) -> None:
    _, counts = measure("loses")
    assert (counts.media, counts.transmit_wait, counts.receive_ring_us) == (None, None, None)
