# SPDX-License-Identifier: Apache-2.0
"""Hardware offloads: found by what a port offers, refused where it does not, and what comes of it.

No NIC is at hand: an engine whose NIC is made up (engine/tests/fake_nic.cpp) joins its ports by a
cable that is a millisecond long, and lets frames be polled two milliseconds after they have
arrived. Its clock ticks and starts otherwise than the tester's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.model import Bursts, Clocks, DirectionCounts, FieldMode, Poisson, TrialResult, VaryingAddress, Verdict
from dutperf.setup.configuration import Offload
from dutperf.tester import TesterError
from undisturbed import valid

from .conftest import OpenEngine, with_fake_nic
from .streams import frame, stream, trial
from .test_queues import sent_by
from .test_ring import reversed_stream

ALL = list(get_args(Offload))
SHOWN = [help_ for help_ in ALL if help_ != "rate_limit"]
"""What ports say that they offer; a limit can only be tried, which they are spared where nobody
asked for it."""
CABLE_US = 1_000.0
POLLED_US = CABLE_US + 2_000.0
TRIAL_US = 220_000.0
STEP_BACK_S = 1.0
UNREST_US = 900.0
"""What a busy machine may add to the median of delays, from stamp to driver."""
CLOCK_US = 20.0
"""How well two clocks are expected to agree: far less than what is to be told apart, far more than
they disagree by."""


@pytest.fixture
def command(command: EngineCommand) -> EngineCommand:
    """The engine whose NIC is made up."""
    return with_fake_nic(command)


@pytest.fixture
def real_engine(command: EngineCommand) -> Iterator[OpenEngine]:
    """Opens the engine itself, on ports without any help."""
    own = EngineCommand(str(Path(command.program).with_name("dutperf-engine")))
    engines: list[EngineTester] = []

    def open_one(port: str, *offloads: str) -> EngineTester:
        engines.append(
            EngineTester(
                own,
                {
                    "left": {"port": port},
                    "right": {"port": port},
                    "memory": "no_huge_pages",
                    "offloads": list(offloads),
                },
            )
        )
        return engines[-1]

    yield open_one
    for engine in engines:
        engine.close()


def measured(open_engine: OpenEngine, *offloads: str, stamping: str = "every", **opened: object) -> TrialResult:
    """A trial over the cable, both ways. Received for so long that a standstill of this machine at
    the end costs no frame."""
    with open_engine("ring", "ring", offloads=list(offloads), **opened) as engine:
        one = stream()
        tagged = {"tagged": {"count": 100, "after_ns": 0}} if stamping == "tagged" else {}
        return engine.run(trial(one, reversed_stream(one), stamping=stamping, drain_ns=100_000_000, **tagged))


def expect_two_cards(counts: DirectionCounts) -> Clocks:
    assert counts.clocks is not None
    ends = {f"the clock of the {side} port (card)" for side in ("left", "right")}
    assert {str(counts.clocks.sending), str(counts.clocks.receiving)} == ends
    return counts.clocks


def expect_all(counts: DirectionCounts) -> None:
    assert (counts.sent, counts.received, counts.corrupted, counts.duplicates, counts.stale) == (400, 400, 0, 0, 0)


def test_ports_say_what_they_offer_and_the_tester_what_it_uses(
    open_engine: OpenEngine, real_engine: OpenEngine
) -> None:
    with open_engine("ring", "ring") as engine:
        environment = engine.environment()
    assert environment["offloads"] == []
    assert environment["left"]["offloads_available"] == environment["right"]["offloads_available"] == SHOWN
    for used in (ALL, ALL[:1]):
        with open_engine("ring", "ring", offloads=used) as engine:
            environment = engine.environment()
        assert environment["offloads"] == used
        assert environment["left"]["offloads_available"] == (ALL if "rate_limit" in used else SHOWN)
    with real_engine("null") as engine:
        assert engine.environment()["left"]["offloads_available"] == []


@pytest.mark.parametrize("port", ["null", "ring"])
@pytest.mark.parametrize("help_", ALL)
def test_what_a_port_does_not_offer_is_refused_in_a_sentence(real_engine: OpenEngine, port: str, help_: str) -> None:
    with (
        real_engine(port, help_) as engine,
        pytest.raises(
            TesterError, match=f"net_{port} of the left port does not offer {help_}; what it offers: none"
        ) as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "engine.offloads")


@pytest.mark.parametrize("help_", ["receive_timestamps", "send_at"])
def test_times_of_a_clock_that_cannot_be_read_are_not_offered(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, help_: str
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "no_clock")
    with open_engine("ring", "ring", offloads=[help_]) as engine, pytest.raises(TesterError, match=help_) as caught:
        engine.environment()
    assert caught.value.field == "engine.offloads"


@pytest.mark.alone
@pytest.mark.parametrize("stamping", ["every", "tagged"])
@pytest.mark.parametrize("queues", [1, 2])
def test_a_delay_ends_when_the_nic_says(open_engine: OpenEngine, stamping: str, queues: int) -> None:
    result = valid(lambda: measured(open_engine, "receive_timestamps", stamping=stamping, queues=queues))
    for counts in result.directions().values():
        expect_all(counts)
        arrivals, delay = counts.receive_timestamps, counts.delay_us
        assert arrivals is not None
        assert delay is not None
        assert (arrivals.by_nic, arrivals.by_poll, arrivals.impossible) == (counts.stamped_received, 0, 0)
        assert 0 < arrivals.uncertainty_us < CLOCK_US
        assert counts.clocks is not None
        assert (counts.clocks.sending.at, counts.clocks.receiving.at) == ("loop", "card")
        assert 0.99 * arrivals.uncertainty_us < counts.clocks.error_us < CLOCK_US
        assert CABLE_US - CLOCK_US < delay.min < CABLE_US + UNREST_US
        assert CABLE_US < delay.p50 < CABLE_US + UNREST_US


def test_without_help_a_delay_ends_at_the_poll(open_engine: OpenEngine) -> None:
    for counts in measured(open_engine).directions().values():
        expect_all(counts)
        assert counts.receive_timestamps is None
        assert counts.delay_us is not None
        assert counts.delay_us.min >= POLLED_US


@pytest.mark.alone
def test_unstamped_frames_arrive_at_their_poll_and_are_counted(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "unstamped")
    for counts in measured(open_engine, "receive_timestamps").directions().values():
        expect_all(counts)
        arrivals, delay = counts.receive_timestamps, counts.delay_us
        assert arrivals is not None
        assert delay is not None
        assert (arrivals.by_nic, arrivals.by_poll) == (360, 40)
        assert delay.p50 < CABLE_US + UNREST_US
        assert delay.p99 >= POLLED_US


def test_a_clock_that_jumps_makes_a_trial_invalid_and_no_delay_impossible(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "jumps")
    result = measured(open_engine, "receive_timestamps")
    assert result.verdict is Verdict.INVALID
    assert {cause.code for cause in result.causes} >= {"nic_clock"}
    for counts in result.directions().values():
        assert counts.receive_timestamps is not None
        assert counts.receive_timestamps.uncertainty_us > 500
        assert counts.delay_us is not None
        assert counts.delay_us.max < TRIAL_US


def test_frames_without_stamps_have_no_delays_that_could_end(open_engine: OpenEngine) -> None:
    for counts in measured(open_engine, "receive_timestamps", stamping="none").directions().values():
        expect_all(counts)
        assert counts.receive_timestamps is None


@pytest.mark.parametrize("stamping", ["every", "tagged"])
@pytest.mark.parametrize("queues", [1, 2])
def test_frames_leave_when_the_nic_is_told_and_their_stamps_say_so(
    open_engine: OpenEngine, stamping: str, queues: int
) -> None:
    """From the time at which a frame is to leave to its arrival by the NIC's clock nothing of this
    machine's unrest is left: only the cable."""
    result = measured(open_engine, "receive_timestamps", "send_at", stamping=stamping, queues=queues)
    for counts in result.directions().values():
        expect_all(counts)
        departures, delay = counts.send_at, counts.delay_us
        assert departures is not None
        assert delay is not None
        assert departures.timed + departures.at_once == counts.sent
        assert departures.timed > counts.sent / 10
        assert 0 < departures.uncertainty_us < CLOCK_US
        assert departures.uncertainty_us < expect_two_cards(counts).error_us
        assert delay.min == pytest.approx(CABLE_US, abs=CLOCK_US)
        assert delay.p50 == pytest.approx(CABLE_US, abs=CLOCK_US)


@pytest.mark.parametrize("stamping", ["every", "none"])
def test_frames_leave_at_once_where_the_clock_jumps(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, stamping: str
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "jumps")
    result = measured(open_engine, "send_at", stamping=stamping)
    assert (result.verdict, {cause.code for cause in result.causes} >= {"nic_clock"}) == (Verdict.INVALID, True)
    for counts in result.directions().values():
        expect_all(counts)
        assert counts.send_at is not None
        assert counts.send_at.timed + counts.send_at.at_once == counts.sent
        assert counts.send_at.at_once > counts.sent / 10
        assert counts.send_at.uncertainty_us > 500
        assert counts.tester_drops == {}


def test_frames_that_stay_in_the_nic_are_the_tester_s(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is put back in the middle of the first trial: until its next reading frames get
    times far ahead, and all others wait behind them."""
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "steps_back")
    with open_engine("ring", "ring", offloads=["send_at"]) as engine:
        during, held_up = (engine.run(trial(stream(), trial=number)) for number in (1, 2))
        time.sleep(STEP_BACK_S)
        after = engine.run(trial(stream(), trial=3))
    assert (during.verdict, {cause.code for cause in during.causes} >= {"nic_clock", "tester_drops"}) == (
        Verdict.INVALID,
        True,
    )
    assert during.forward is not None
    assert 0 < during.forward.tester_drops["transmit_unaccounted"] <= during.forward.lost
    assert {cause.code for cause in held_up.causes} >= {"tester_drops"}
    assert after.forward is not None
    assert (after.forward.sent, after.forward.received, after.forward.tester_drops) == (400, 400, {})


def test_where_nobody_counts_what_left_a_lost_frame_is_not_the_dut_s(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "uncounted")
    with open_engine("ring", "ring", offloads=["send_at"]) as engine:
        counts = engine.run(trial(stream())).forward
    assert counts is not None
    assert (counts.lost, counts.tester_drops) == (0, {})
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "uncounted steps_back")
    with open_engine("ring", "ring", offloads=["send_at"]) as engine:
        counts = engine.run(trial(stream())).forward
    assert counts is not None
    assert counts.lost > 0
    assert counts.tester_drops == {"transmit_unaccounted": counts.lost}


def test_a_frame_that_came_late_is_not_in_the_nic(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "uncounted")
    with open_engine("ring", "ring", offloads=["send_at"]) as engine:
        counts = engine.run(trial(stream(), stamping="every", frame_timeout_ns=100_000)).forward
    assert counts is not None
    assert (counts.lost, counts.tester_drops) == (counts.late, {})
    assert counts.late > 0


@pytest.mark.parametrize("pattern", [Poisson(), Bursts(frames=8)])
def test_any_pattern_leaves_at_given_times(open_engine: OpenEngine, pattern: Poisson | Bursts) -> None:
    with open_engine("ring", "ring", offloads=["send_at"]) as engine:
        counts = engine.run(trial(stream(pattern=pattern))).forward
    assert counts is not None
    expect_all(counts)
    assert counts.send_at is not None
    assert counts.send_at.timed > counts.sent / 10


VARIED = [
    pytest.param(4, {}, {}, id="ipv4", marks=pytest.mark.long),
    pytest.param(
        6, {"networks": 256}, {"stamping": "tagged", "tagged": {"count": 100, "after_ns": 0}}, id="ipv6-networks-tagged"
    ),
    pytest.param(4, {"networks": 256, "background": frame(6, 90), "n": 7, "m": 3}, {}, id="ipv4-networks-mixed"),
    pytest.param(
        4,
        {"mode": FieldMode.FIXED, "source_address": VaryingAddress(mode=FieldMode.RANDOM, min=0, max=65535, offset4=1)},
        {},
        id="ipv4-odd-address",
    ),
]


@pytest.mark.parametrize(("version", "members", "stamping"), VARIED)
def test_frames_are_the_same_to_the_byte_whatever_helps(
    open_engine: OpenEngine, tmp_path: Path, version: int, members: dict[str, Any], stamping: dict[str, Any]
) -> None:
    one = trial(stream(version, 84, rate_fps=5000, **members), **stamping)
    plain, helped = (
        sent_by(open_engine, tmp_path / str(len(used)), 1, one, offloads=used) for used in ([], ["send_at"])
    )
    assert helped == plain


@pytest.mark.parametrize("queues", [1, 2])
def test_a_queue_s_limit_is_above_what_it_needs_and_every_frame_leaves(open_engine: OpenEngine, queues: int) -> None:
    """20,000 frames/s of 128 bytes and what Ethernet adds are 23.68 Mbit/s; the fake NIC keeps to
    the limit. At half of it a fifth of a second is too much."""
    with open_engine("ring", "ring", offloads=["rate_limit"], queues=queues) as engine:
        counts = engine.run(trial(stream(rate_fps=20_000), drain_ns=80_000_000)).forward
        bursts = engine.run(trial(stream(pattern=Bursts(frames=8)))).forward
    assert counts is not None
    assert counts.rate_limit_mbps == {1: 27, 2: 14}[queues]
    assert (counts.intended, counts.sent, counts.received, counts.corrupted) == (4000, 4000, 4000, 0)
    assert bursts is not None
    assert bursts.rate_limit_mbps == 0
    expect_all(bursts)


@pytest.mark.alone
def test_a_limit_and_a_frame_timeout_exclude_each_other(open_engine: OpenEngine) -> None:
    timed = trial(stream(), stamping="every", frame_timeout_ns=10**9)
    with open_engine("ring", "ring", offloads=["rate_limit"]) as engine:
        with pytest.raises(TesterError, match="with rate_limit frames wait in the tester's own port") as caught:
            engine.run(timed)
        assert (caught.value.code, caught.value.field) == ("bad_request", "frame_timeout_ns")
        untimed = engine.run(trial(stream())).forward
    assert untimed is not None
    expect_all(untimed)
    with open_engine("ring", "ring", offloads=["send_at"]) as engine:
        valid(lambda: engine.run(timed))
