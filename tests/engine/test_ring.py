# SPDX-License-Identifier: Apache-2.0
"""The engine against itself: two ports joined in memory. What one sends the other must count, to
the frame, in every composition."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.engine.process import EngineProcess
from dutperf.model import FieldMode, Stream, Verdict
from dutperf.tester import TesterError

from .conftest import OpenEngine
from .streams import frame, stream, trial


def reversed_stream(one: Stream) -> Stream:
    """The same from right to left."""
    swap = {"foreground": one.foreground, "background": one.background}
    turned = {
        name: part and part.model_copy(update={"source": part.destination, "destination": part.source})
        for name, part in swap.items()
    }
    return one.model_copy(update=turned)


COMPOSITIONS = [
    pytest.param(
        version,
        mode,
        networks,
        stamping,
        mixed,
        id=f"ipv{version}-{mode}-{networks}-{stamping}-{'mixed' if mixed else 'foreground'}",
    )
    for version, mode, networks, stamping, mixed in itertools.product(
        (4, 6), (FieldMode.FIXED, FieldMode.RANDOM), (1, 256), ("none", "every"), (False, True)
    )
]


@pytest.fixture(scope="module")
def ring_engine(command: EngineCommand) -> Iterator[EngineTester]:
    """One engine for many trials."""
    ring = {"port": "ring"}
    with EngineTester(command, {"left": ring, "right": ring, "memory": "no_huge_pages"}) as engine:
        yield engine


@pytest.mark.parametrize(("version", "mode", "networks", "stamping", "mixed"), COMPOSITIONS)
def test_every_composition_arrives(
    ring_engine: EngineTester, version: int, mode: FieldMode, networks: int, stamping: str, mixed: bool
) -> None:
    one = stream(
        version,
        84,
        mode=mode,
        networks=networks,
        rate_fps=20_000,
        **({"background": frame(6, 84), "n": 4, "m": 3} if mixed else {}),
    )
    result = ring_engine.run(trial(one, reversed_stream(one), stamping=stamping))
    for counts in result.directions().values():
        assert counts.intended == counts.sent == counts.received == 4000
        assert counts.background_sent == counts.background_received == (1000 if mixed else 0)
        assert counts.foreground_received == counts.foreground_sent
        assert (counts.duplicates, counts.out_of_order, counts.stale, counts.corrupted) == (0, 0, 0, 0)
        assert counts.other_received == {}
        assert (counts.delay_us is not None) == (stamping == "every")


def test_one_direction_leaves_the_other_out(open_engine: OpenEngine) -> None:
    with open_engine("ring", "ring") as engine:
        result = engine.run(trial(None, reversed_stream(stream())))
    assert result.forward is None
    assert result.reverse is not None
    assert result.reverse.received == 400


def test_many_trials_on_one_engine_do_not_meet(open_engine: OpenEngine) -> None:
    """Without a drain the last frames of a trial arrive in the next: they are stale there, never
    lost and found."""
    with open_engine("ring", "ring") as engine:
        missing = 0
        for number in range(10):
            result = engine.run(trial(stream(4 if number % 2 else 6, 84 + 10 * number), trial=number, drain_ns=0))
            assert result.forward is not None
            assert result.forward.sent == 400
            assert result.forward.stale <= missing
            assert result.forward.corrupted == 0
            missing = result.forward.lost


@pytest.mark.alone
def test_nothing_is_sent_before_the_rest_after_the_learning_frames_is_over(open_engine: OpenEngine) -> None:
    with open_engine("ring", "ring") as engine:
        engine.environment()
        began_s = time.monotonic()
        result = engine.run(trial(stream(), rest_ns=1_500_000_000))
        took_s = time.monotonic() - began_s
    assert result.forward is not None
    assert (result.verdict, result.forward.sent, result.forward.received) == (Verdict.VALID, 400, 400)
    assert took_s >= 1.5 + 0.2


def test_a_trial_at_rest_can_be_stopped(command: EngineCommand) -> None:
    sides = {side: {"port": "ring"} for side in ("left", "right")}
    process = EngineProcess(command.argv())
    try:
        process.send({"id": 1, "method": "open", "params": sides | {"memory": "no_huge_pages"}})
        assert process.receive(20)["event"] == "opened"
        process.send({"id": 2, "method": "run", "params": trial(stream(), rest_ns=60_000_000_000).request()})
        process.send({"id": 3, "method": "stop"})
        events = {event["id"]: event for event in (process.receive(20), process.receive(20))}
    finally:
        process.close()
    assert (events[2]["outcome"], events[2]["forward"]["sent"]) == ("stopped", 0)


def test_the_engine_says_when_sending_began_by_the_clock_of_its_machine(command: EngineCommand) -> None:
    sides = {side: {"port": "ring"} for side in ("left", "right")}
    process = EngineProcess(command.argv())
    try:
        process.send({"id": 1, "method": "open", "params": sides | {"memory": "no_huge_pages"}})
        assert process.receive(20)["event"] == "opened"
        asked_s = time.monotonic()
        process.send(
            {
                "id": 2,
                "method": "run",
                "params": trial(stream(), rest_ns=200_000_000, duration_ns=1_200_000_000, progress_ms=50).request(),
            }
        )
        began_at_the_latest_s = []
        while (event := process.receive(20))["event"] == "progress":
            began_at_the_latest_s.append(time.monotonic() - event["elapsed_s"])
    finally:
        process.close()
    assert asked_s + 0.2 < event["began_s"] <= min(began_at_the_latest_s)


def test_a_rate_beyond_reach_is_the_testers_fault(open_engine: OpenEngine) -> None:
    with open_engine("ring", "ring") as engine:
        result = engine.run(trial(stream(rate_fps=1_000_000_000)))
    assert result.verdict is Verdict.INVALID
    assert "unsent" in {cause.code for cause in result.causes}
    assert result.forward is not None
    assert result.forward.lost == 0


def test_a_ring_too_small_holds_frames_back_but_loses_none(open_engine: OpenEngine) -> None:
    sides = {"port": "ring", "receive_ring": 8}
    with open_engine(sides, sides) as engine:
        result = engine.run(trial(stream(rate_fps=500_000)))
    assert result.forward is not None
    assert result.forward.lost == 0
    assert result.forward.sent == result.forward.intended or result.verdict is Verdict.INVALID


def test_null_port_loses_everything_and_says_so(open_engine: OpenEngine) -> None:
    with open_engine("null", "null") as engine:
        result = engine.run(trial(stream()))
    assert result.forward is not None
    assert result.forward.lost == result.forward.sent == 400


@pytest.mark.parametrize(
    ("port", "code", "named"),
    [
        ("af_packet:nosuch0", "port_away", "nosuch0"),
        ("af_xdp:nosuch0", "port_away", "nosuch0"),
        ("0000:ff:1f.7", "port_away", "0000:ff:1f.7"),
        ("vdev:net_nosuch0", "port_unavailable", "net_nosuch0"),
        ("nosuch0", "port_away", "nosuch0"),
        ("not:a:port", "bad_request", "not:a:port"),
    ],
)
def test_a_port_that_is_not_there_is_named(open_engine: OpenEngine, port: str, code: str, named: str) -> None:
    with open_engine("null", port) as engine, pytest.raises(TesterError, match=named) as caught:
        engine.environment()
    assert caught.value.code == code
    assert caught.value.field == "right.port"


def test_roles_are_placed_and_said(open_engine: OpenEngine) -> None:
    with open_engine("null", "null", cores=[0]) as engine:
        environment = engine.environment()
    assert set(environment["roles"].values()) == {0}
    assert environment["memory"]["mode"] == "no_huge_pages"
    assert any("huge pages" in warning for warning in environment["warnings"])


@pytest.mark.parametrize(
    ("frames", "rate_fps"), [(1, 1_000_000_000), (1, 7), (64, 1_000_000), (1000, 148_809)], ids=str
)
def test_a_burst_has_exactly_its_frames_however_short_it_is(
    ring_engine: EngineTester, frames: int, rate_fps: int
) -> None:
    """Frame k is due at k / rate, so the last of a burst is due before its sending time ends and no
    other is."""
    one = stream(4, 84, rate_fps=rate_fps)
    result = ring_engine.run(trial(one, reversed_stream(one), duration_ns=frames * 10**9 // rate_fps))
    for counts in result.directions().values():
        assert counts.intended == counts.sent == counts.received == frames
