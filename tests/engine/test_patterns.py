# SPDX-License-Identifier: Apache-2.0
"""Poisson arrivals and bursts as the engine sends them: the same frames whatever the burst, none
early, and at the times that the pattern has."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pytest
from scapy.packet import Packet

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.model import Bursts, Direction, Pattern, Poisson, Profile, Segment, Stream, Trial, Verdict

from .streams import stream, trial
from .test_frames import OpenCapture, captured, captured_bytes, payload
from .test_ring import reversed_stream

RATE_FPS = 500


def profile(rate_fps: int) -> Profile:
    """A ramp, a pause and a ramp down, again and again, with this mean rate."""
    parts = ((40_000_000, 0, 2 * rate_fps), (10_000_000, 0, 0), (50_000_000, 2 * rate_fps, rate_fps * 2 // 5))
    return Profile(segments=tuple(Segment(duration_ns=ns, from_fps=a, to_fps=b) for ns, a, b in parts))


PATTERNS = {
    "poisson": Poisson(),
    "bursts": Bursts(frames=40),
    "bursts-at-a-rate": Bursts(frames=40, within_fps=2000),
    "profile": profile(RATE_FPS),
}
EACH = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
PUNCTUAL_US = 1000
STAMP_BITS = 40


def made(pattern: Pattern | None, rate_fps: int = RATE_FPS) -> Stream:
    """A small stream of that pattern."""
    if isinstance(pattern, Profile):
        pattern = profile(rate_fps)
    return stream(4, 64, rate_fps).model_copy(update={"pattern": pattern})


@pytest.mark.parametrize(
    "pattern",
    [Poisson(), Bursts(frames=40), Bursts(frames=40, within_fps=200_000), profile(100_000)],
    ids=PATTERNS,
)
def test_every_frame_arrives(command: EngineCommand, pattern: Pattern) -> None:
    """Fast enough that many frames are due in a turn, and with more frames than are halved one by
    one."""
    one = made(pattern, 100_000)
    ring = {"port": "ring"}
    with EngineTester(command, {"left": ring, "right": ring, "memory": "no_huge_pages"}) as engine:
        result = engine.run(trial(one, reversed_stream(one)))
    for counts in result.directions().values():
        assert counts.intended == counts.sent == 20_000
        assert counts.received == counts.sent or result.verdict is Verdict.INVALID
        assert (counts.duplicates, counts.out_of_order, counts.corrupted) == (0, 0, 0)


@EACH
def test_frames_are_the_same_whatever_the_burst(open_capture: OpenCapture, pattern: Pattern) -> None:
    frames = captured_bytes(open_capture, [trial(made(pattern, 2000), burst=burst) for burst in (1, 7, 64, 512)])
    assert len(frames[0]) == 400
    assert all(one == frames[0] for one in frames[1:])


@pytest.mark.alone
@pytest.mark.parametrize("queues", [1, 2])
def test_delays_are_told_by_part_of_the_sending_time(command: EngineCommand, queues: int) -> None:
    """The largest delay of all is the largest of a part; in the pause of each round nothing is due."""
    one = made(profile(100_000), 100_000)
    ring = {"port": "ring"}
    with EngineTester(command, {"left": ring, "right": ring, "memory": "no_huge_pages", "queues": queues}) as engine:
        result = engine.run(trial(one, one, stamping="every", delay_parts=10, duration_ns=100_000_000))
    for counts in result.directions().values():
        assert counts.delay_parts_us is not None
        assert counts.delay_us is not None
        assert [part is None for part in counts.delay_parts_us] == [part == 4 for part in range(10)]
        told = [part for part in counts.delay_parts_us if part is not None]
        assert all(p50 <= p99 <= largest for p50, p99, largest in told)
        assert max(largest for *_, largest in told) == counts.delay_us.max
        assert min(p50 for p50, *_ in told) <= counts.delay_us.p50 <= max(p50 for p50, *_ in told)


def timed(open_capture: OpenCapture, trials: list[Trial]) -> tuple[int, list[list[Packet]]]:
    """Ticks of the sender's clock in a second, and what each trial sent."""
    engine, files = open_capture(max_frame_size=9216)
    return engine.environment()["tsc_hz"], captured(lambda **_: (engine, files), trials)


def stamp(packet: Packet) -> int:
    """The sender's clock as the frame was made, in ticks."""
    return int.from_bytes(payload(packet)[13:18], "big")


def late_us(packets: list[Packet], of: Trial, tsc_hz: int) -> list[float]:
    """How much later than the most punctual one each frame was made, after the time at which the
    trial has it due."""
    times, first = of.times(Direction.FORWARD), stamp(packets[0])
    since_first_us = [((stamp(packet) - first) % (1 << STAMP_BITS)) / tsc_hz * 1e6 for packet in packets]
    behind = [made_us - times.due_ns(number) / 1000 for number, made_us in enumerate(since_first_us)]
    return [one - min(behind) for one in behind]


@pytest.mark.alone
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(pattern, id=name, marks=[] if name in ("poisson", "profile") else [pytest.mark.long])
        for name, pattern in PATTERNS.items()
    ],
)
def test_frames_are_made_when_the_pattern_has_them_due(open_capture: OpenCapture, pattern: Pattern) -> None:
    """By the stamps in the frames. At a constant rate most would be off by more than the limit: a
    second trial shows that the test can tell."""
    of_pattern, constant = (trial(made(one), stamping="every", duration_ns=500_000_000) for one in (pattern, None))
    tsc_hz, (packets, at_constant_rate) = timed(open_capture, [of_pattern, constant])
    typical_us = median(late_us(at_constant_rate, constant, tsc_hz))
    if typical_us > PUNCTUAL_US:
        pytest.skip(
            f"this machine is not quiet enough: at a constant rate half the frames were made more than {typical_us:.0f}"
            " us after the most punctual one"
        )
    assert median(late_us(packets, of_pattern, tsc_hz)) < PUNCTUAL_US
    assert median(late_us(at_constant_rate, of_pattern, tsc_hz)) > PUNCTUAL_US


@pytest.mark.long
def test_gaps_between_captured_frames_are_exponential(open_capture: OpenCapture) -> None:
    """Kolmogorov-Smirnov on the times at which the driver took the frames; at a constant rate the
    same test rejects."""
    of_pattern, constant = (trial(made(one), duration_ns=2_000_000_000) for one in (Poisson(), None))
    taken, at_constant_rate = captured(open_capture, [of_pattern, constant])
    even = gaps_s(at_constant_rate) * RATE_FPS
    if np.median(np.abs(even - 1)) * 1e6 / RATE_FPS > PUNCTUAL_US / 4:
        pytest.skip(
            "this machine is not quiet enough: at a constant rate half the gaps are off by a quarter of a millisecond"
        )
    assert distance_from_exponential(gaps_s(taken) * RATE_FPS) < KOLMOGOROV
    assert distance_from_exponential(even) > 5 * KOLMOGOROV


KOLMOGOROV = 2.3
"""Of samples of the distribution, one in 20,000 is farther from it."""


def distance_from_exponential(sample: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Kolmogorov's and Smirnov's distance from the distribution with mean 1, times the root of the
    sample's size."""
    size, expected = len(sample), 1 - np.exp(-np.sort(sample))
    steps = np.arange(size + 1) / size
    return float(max(np.max(steps[1:] - expected), np.max(expected - steps[:-1])) * size**0.5)


def gaps_s(packets: list[Packet]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Between the capture's times of neighbours."""
    return np.diff([float(packet.time) for packet in packets])


@pytest.mark.alone
def test_stamps_of_a_burst_are_close_together(open_capture: OpenCapture) -> None:
    """Within a burst next to no time passes, between bursts most of it."""
    tsc_hz, [packets] = timed(open_capture, [trial(made(Bursts(frames=40), 2000), stamping="every", burst=8)])
    stamps = [stamp(packet) for packet in packets]
    gaps_us = [((after - before) % (1 << STAMP_BITS)) / tsc_hz * 1e6 for before, after in pairwise(stamps)]
    between = [gap for number, gap in enumerate(gaps_us, start=1) if number % 40 == 0]
    within = [gap for number, gap in enumerate(gaps_us, start=1) if number % 40]
    assert (len(between), len(within)) == (9, 390)
    assert median(within) < median(between) / 20
