# SPDX-License-Identifier: Apache-2.0
"""Pacing by the wire: what the line of a card carries, to the byte time.

No card is at hand: engine/tests/fake_nic.cpp is one whose line has a rate, and it writes down when each frame
leaves. At 10 Mbit/s its ring holds so much that the stalls of a busy machine do not show.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from documents import blocks
from dutperf.cli import app
from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.frames import Stack, build
from dutperf.frames.additional import broadcast
from dutperf.model import (
    LEFT_AND_RIGHT,
    AdditionalFrames,
    Bursts,
    Direction,
    DirectionCounts,
    Fill,
    Poisson,
    Profile,
    Segment,
    Stamping,
    Stream,
    Trial,
    TrialResult,
    Verdict,
)
from dutperf.tester import TesterError
from fake_engines import frames_that_left
from frame_rows import ENDPOINTS

from .conftest import OpenEngine, with_fake_nic
from .streams import stream, trial

pytestmark = pytest.mark.alone

MBPS = 10
BYTE_NS = 8000 / MBPS
RING = 256
LARGE_RING = 1024
"""For frames and fillers that are short."""
ON_LINE = 24
"""FCS, preamble and gap, of a frame without FCS."""
SHORTEST = 84
LEAD_NS = 1_500_000
"""Fillers before the start."""
FILL = Fill(destination="02:00:00:00:88:b5")
CARD = f"card media={MBPS} filters"
"""A card, beside a DUT whose NIC drops what is for other stations."""
DRAIN_NS = 500_000_000
"""Longer than a full ring takes to leave."""


@pytest.fixture
def command(command: EngineCommand) -> EngineCommand:
    """The engine whose NIC is made up."""
    return with_fake_nic(command)


@dataclass(frozen=True)
class Line:
    """What left a port."""

    ns: Any
    """When each frame began to leave."""
    length: Any
    """On the line, in byte times."""
    is_filler: Any

    def places_ns(self) -> Any:
        """When test frames left, since the place of the start."""
        return (self.ns - self.ns[0] - LEAD_NS)[~self.is_filler]

    def assert_never_idle(self) -> None:
        """Each frame begins where the one before it ends."""
        assert np.allclose(np.diff(self.ns), self.length[:-1] * BYTE_NS, atol=0.01)


@dataclass(frozen=True)
class Sent:
    planned: Trial
    result: TrialResult
    lines: tuple[Line, Line]
    """Of the left and the right port."""

    @property
    def forward(self) -> DirectionCounts:
        assert self.result.forward is not None
        return self.result.forward


Send = Callable[..., Sent]


@pytest.fixture
def send(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Send:
    """Sends on ports of which ``nic`` says what they are."""

    def one(
        forward: Stream, reverse: Stream | None = None, *, nic: str = CARD, ring: int = RING, **members: Any
    ) -> Sent:
        leaves = tmp_path / "leaves"
        monkeypatch.setenv("DUTPERF_FAKE_NIC", f"{nic} ring={ring}")
        monkeypatch.setenv("DUTPERF_FAKE_NIC_LEAVES", str(leaves))
        port = {"port": "ring", "receive_ring": ring}
        planned = trial(forward, reverse, **({"drain_ns": DRAIN_NS, "pacing": FILL} | members))
        with open_engine(port, port) as engine:
            result = engine.run(planned)
        records = frames_that_left(leaves)
        ports = np.unique(records["port"])
        of_ports = [records[records["port"] == port] for port in ports]
        lines = [Line(of["ns"], np.maximum(abs(of["length"]), 60) + ON_LINE, of["length"] < 0) for of in of_ports]
        return Sent(planned, result, (lines[0], lines[-1]))

    return one


def assert_filled(sent: Sent) -> None:
    """Everything arrived, the line was never idle, and no filler came back."""
    assert sent.result.verdict is Verdict.VALID, sent.result.causes
    for counts in sent.result.directions().values():
        assert counts.sent == counts.received == counts.intended
        assert counts.other_received == {}
        line = counts.line
        assert line is not None
        assert (line.mbps, line.shortest_filler, line.forwarded, line.returned, line.idle.times) == (MBPS, 64, 0, 0, 0)
        transmitted = counts.transmitted
        assert transmitted is not None
        assert transmitted.handed_over == transmitted.counted == counts.sent + line.fillers
    for line_ in sent.lines:
        line_.assert_never_idle()
        assert line_.length[line_.is_filler].min() >= SHORTEST


def errors_bytes(sent: Sent, direction: Direction = Direction.FORWARD) -> Any:
    """By how many byte times test frames left after they were due."""
    line = sent.lines[0 if direction is Direction.FORWARD else -1]
    times, places = sent.planned.times(direction), line.places_ns()
    return (places - np.array([times.due_ns(frame) for frame in range(len(places))])) / BYTE_NS


def mixed(rate_fps: int) -> Stream:
    """Frames of two sizes in turn, with headers of their own."""
    kinds = [build(Stack.parse("vlan(id=7)/ipv6/udp"), size, ENDPOINTS) for size in (88, 1000)]
    return Stream(rate_fps=rate_fps, frames=tuple(kinds), order=(0, 0, 1))


@pytest.mark.parametrize(
    "rate_fps", [*(pytest.param(one, marks=pytest.mark.long) for one in (1, 100, 4000)), 2000, 10_000]
)
def test_frames_leave_at_their_places_and_fillers_in_between(send: Send, rate_fps: int) -> None:
    """At 4,000 frames/s of 64 bytes a gap has 228.5 byte times, at 10,000 there are 41, too few for a filler."""
    ring = RING if rate_fps <= 2000 else LARGE_RING
    sent = send(stream(size=64, rate_fps=rate_fps), ring=ring)
    assert_filled(sent)
    errors = errors_bytes(sent)
    most = 0 if rate_fps <= 4000 else SHORTEST - 1
    assert errors.min() > -1.01  # due times are rounded down to a byte time
    assert errors.max() < most + 0.01
    line = sent.forward.line
    assert line is not None
    assert line.error_us.max == pytest.approx(max(0, np.ceil(errors.max() - 0.01)) * BYTE_NS / 1000)
    assert line.fillers == sent.lines[0].is_filler.sum()


def test_errors_do_not_add_up(send: Send) -> None:
    sent = send(stream(size=64, rate_fps=12_347), ring=LARGE_RING, duration_ns=500_000_000)
    assert_filled(sent)
    errors = errors_bytes(sent)
    assert np.median(errors[:1000]) == pytest.approx(np.median(errors[-1000:]), abs=10)


def test_the_line_is_filled_both_ways(send: Send) -> None:
    sent = send(stream(rate_fps=500), stream(rate_fps=701))
    assert_filled(sent)
    for direction in LEFT_AND_RIGHT:
        assert abs(errors_bytes(sent, direction)).max() < 1.01


@pytest.mark.parametrize(
    "pattern",
    [
        Poisson(),
        pytest.param(Bursts(frames=50), marks=pytest.mark.long),
        Bursts(frames=50, within_fps=5000),
        Profile(segments=(Segment(duration_ns=70_000_000, from_fps=0, to_fps=4000),)),
    ],
    ids=["poisson", "bursts", "bursts at a rate", "ramp"],
)
def test_patterns_keep_their_times(send: Send, pattern: Any) -> None:
    """A frame is late only behind others that were due with it, or by less than the shortest filler."""
    sent = send(stream(rate_fps=2000, pattern=pattern))
    assert_filled(sent)
    errors, line = errors_bytes(sent), sent.lines[0]
    follows = np.concatenate(([False], ~line.is_filler[:-1]))[~line.is_filler]
    assert errors.min() > -1.01
    assert errors[~follows].max() < SHORTEST
    assert len(errors) == sent.planned.intended(Direction.FORWARD)


def test_described_frames_of_several_sizes(send: Send) -> None:
    sent = send(mixed(1000))
    assert_filled(sent)
    assert errors_bytes(sent).max() < SHORTEST
    lengths = sent.lines[0].length[~sent.lines[0].is_filler]
    assert lengths[:3].tolist() == [88 + 20, 88 + 20, 1000 + 20]


def test_at_the_line_rate_there_are_no_gaps(send: Send) -> None:
    sent = send(stream(size=1000, rate_fps=MBPS * 1_000_000 // 8 // 1020))
    assert_filled(sent)
    assert errors_bytes(sent).max() < SHORTEST


def test_software_pacing_leaves_gaps_that_depend_on_the_loop(send: Send) -> None:
    """The comparison: the same trial, and nothing between its frames."""
    sent = send(stream(rate_fps=2000), pacing=None)
    assert sent.forward.line is None
    assert not sent.lines[0].is_filler.any()
    gaps = np.diff(sent.lines[0].ns)
    assert np.unique(gaps.round()).size > 10
    filled = np.diff(send(stream(rate_fps=2000)).lines[0].places_ns())
    assert np.unique(filled.round()).tolist() == [500_000]


@pytest.mark.parametrize("rate_fps", [10, 1000])
def test_additional_frames_have_places_too(send: Send, rate_fps: int) -> None:
    """They leave between the test frames, and after the last one if they are due only then."""
    every_ns, lengths = 7_000_000, {"routing-updates": 128, "broadcast": 256}
    timed, following = (
        AdditionalFrames(name=name, frames=(broadcast(IPv4Address("198.18.0.2"), 0, lengths[name]).hex(),), **rhythm)
        for name, rhythm in (("routing-updates", {"every_ns": every_ns}), ("broadcast", {"after_frames": 50}))
    )
    sent = send(stream(size=64, rate_fps=rate_fps, additional=(timed, following)))
    counts, line = sent.forward, sent.lines[0]
    assert sent.result.verdict is Verdict.VALID, sent.result.causes
    assert counts.sent == counts.received == counts.intended
    assert [(one.sent, one.intended) for one in counts.additional or ()] == [(29, 29), (rate_fps // 250,) * 2]
    assert counts.transmitted is not None
    assert counts.line is not None
    assert counts.transmitted.handed_over == counts.sent + 29 + rate_fps // 250 + counts.line.fillers
    line.assert_never_idle()
    is_timed, is_following = ((line.length == length + 20) & ~line.is_filler for length in lengths.values())
    is_test = ~line.is_filler & ~is_timed & ~is_following
    numbers = np.cumsum(is_test)
    assert numbers[is_following].tolist() == [50 * one for one in range(1, rate_fps // 250 + 1)]
    at = (line.ns - line.ns[0] - LEAD_NS) / BYTE_NS
    late = at[is_timed] - every_ns / BYTE_NS * np.arange(29)
    errors = at[is_test] - 1e9 / BYTE_NS / rate_fps * np.arange(counts.sent)
    assert min(late.min(), errors.min()) > -1.01
    assert max(late.max(), errors.max()) < SHORTEST + sum(lengths.values()) + 40


def test_fillers_that_come_back_are_counted_and_make_a_trial_invalid(send: Send) -> None:
    """A cable, which gives the receiving port everything."""
    sent = send(stream(rate_fps=500), stream(rate_fps=500), nic=CARD.replace(" filters", ""))
    assert {cause.code for cause in sent.result.causes} == {"fillers_forwarded"}
    for counts in sent.result.directions().values():
        assert counts.line is not None
        assert (counts.line.forwarded, counts.line.returned) == (counts.line.fillers, 0)
        assert counts.other_received == {}
        assert counts.lost == 0


def test_a_line_that_was_idle_makes_a_trial_invalid(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender is stopped for longer than half a ring lasts."""
    monkeypatch.setenv("DUTPERF_FAKE_NIC", f"{CARD} ring={RING}")
    port = {"port": "ring", "receive_ring": RING}
    with open_engine(port, port) as engine:
        engine.environment()
        assert engine._process is not None
        pid = engine._process.pid
        timers = [
            threading.Timer(at_s, os.kill, (pid, what)) for at_s, what in ((0.5, signal.SIGSTOP), (1.0, signal.SIGCONT))
        ]
        for timer in timers:
            timer.start()
        result = engine.run(trial(stream(rate_fps=500), duration_ns=1_500_000_000, drain_ns=DRAIN_NS, pacing=FILL))
        for timer in timers:
            timer.join()
    assert "line_idle" in {cause.code for cause in result.causes}
    assert result.forward is not None
    assert result.forward.line is not None
    assert result.forward.line.idle.longest_us > 0.2e6


@pytest.mark.parametrize(("slow_ppm", "code"), [(-30_000, "line_rate"), (30_000, "sending_time")])
def test_a_line_of_another_rate_than_told_makes_a_trial_invalid(send: Send, slow_ppm: int, code: str) -> None:
    ring = 16
    sent = send(
        stream(rate_fps=500, size=1000),
        nic=f"{CARD} slow={slow_ppm}",
        ring=ring,
        duration_ns=1_000_000_000,
    )
    assert code in {cause.code for cause in sent.result.causes}, sent.result.forward


def test_a_card_whose_clock_is_as_wrong_as_clocks_may_be(send: Send) -> None:
    sent = send(stream(rate_fps=500), nic=CARD + " slow=150", duration_ns=500_000_000)
    assert sent.result.verdict is Verdict.VALID, sent.result.causes
    assert sent.forward.lost == 0


@pytest.mark.parametrize(
    ("nic", "members", "opened", "why"),
    [
        ("media=10", {}, {}, "the left port is a software device, which takes frames at any time"),
        (CARD, {"pacing": Fill(destination="00:00:00:00:00:00")}, {}, "is that of a port or of the DUT"),
        (CARD, {}, {"queues": 2}, "fill needs a single queue"),
        (CARD, {}, {"offloads": ["rate_limit"]}, "does not go with the offloads send_at and rate_limit"),
        (f"{CARD} pauses", {}, {"flow_control": "full"}, "flow control lets the other end"),
    ],
)
def test_where_there_is_no_line_to_fill_a_sentence_says_why(
    open_engine: OpenEngine,
    monkeypatch: pytest.MonkeyPatch,
    nic: str,
    members: dict[str, Any],
    opened: dict[str, Any],
    why: str,
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", nic)
    with open_engine("ring", "ring", **opened) as engine, pytest.raises(TesterError, match=why) as refused:
        engine.run(trial(stream(), **({"pacing": FILL} | members)))
    assert (refused.value.code, refused.value.field) == ("bad_request", "pacing")


@pytest.fixture
def four_cards(command: EngineCommand, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TrialResult]:
    """Runs trials on four ports, each of which receives what the one before it sends."""
    ends = [*zip("abcd", "bcda", strict=True), ("a", "c")]
    opened = {
        "ports": [{"name": name, "port": "ring", "receive_ring": RING} for name in "abcd"],
        "paths": [{"from": sender, "to": receiver} for sender, receiver in ends],
        "memory": "no_huge_pages",
    }

    def run(*paths: str, nic: str = CARD) -> TrialResult:
        monkeypatch.setenv("DUTPERF_FAKE_NIC", f"{nic} ring={RING}")
        with EngineTester(command, opened) as engine:
            return engine.run(
                Trial(
                    trial=1,
                    duration_ns=200_000_000,
                    drain_ns=DRAIN_NS,
                    seed=1,
                    pacing=FILL,
                    paths={Direction(path): stream(rate_fps=500) for path in paths},
                )
            )

    return run


def test_the_lines_of_several_paths_are_filled(four_cards: Callable[..., TrialResult]) -> None:
    counts = four_cards("a->b", "b->c", "c->d", "d->a").directions().values()
    assert {(one.sent, one.received) for one in counts} == {(100, 100)}
    for one in counts:
        assert one.line is not None
        assert one.line.fillers > 100
        assert (one.line.forwarded, one.line.returned) == (0, 0)


def test_fillers_of_each_path_are_counted_wherever_they_come(four_cards: Callable[..., TrialResult]) -> None:
    """The path from a to c is no cable: what a sends comes to b, as from a switch that floods."""
    result = four_cards("a->c", "c->d", nic=CARD.replace(" filters", ""))
    assert "fillers_forwarded" in {cause.code for cause in result.causes}
    for path, one in result.directions().items():
        assert one.line is not None
        assert (one.line.forwarded, one.line.returned) == (one.line.fillers, 0), path
        assert one.other_received == {}


def test_a_line_is_filled_by_one_path(four_cards: Callable[..., TrialResult]) -> None:
    with pytest.raises(TesterError, match="several begin at that of a->b"):
        four_cards("a->b", "a->c")


def test_several_lines_may_end_at_one_port(four_cards: Callable[..., TrialResult]) -> None:
    """Those of a and b at c: a is plugged into another port, so nothing of it comes."""
    counts = four_cards("b->c", "a->c").directions()
    received = {str(path): (one.sent, one.received) for path, one in counts.items()}
    assert received == {"b->c": (100, 100), "a->c": (100, 0)}
    assert all(one.line is not None and one.line.fillers > 100 for one in counts.values())


def test_stamped_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="without stamped frames"):
        trial(stream(), stamping=Stamping.EVERY, pacing=FILL)


def test_the_documented_command(command: EngineCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """docs/procedures.md has it, for a card: here one that is made up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUTPERF_ENGINE", command.program)
    monkeypatch.setenv("DUTPERF_FAKE_NIC", f"{CARD} ring={RING}")
    side = f"{{port: ring, receive_ring: {RING}, version: 4, ipv4: 198.1%d.0.2/24}}"
    Path("gateway.yaml").write_text(
        f"engine: {{memory: no_huge_pages}}\nleft: {side % 8}\nright: {side % 9}\n", encoding="utf-8"
    )
    [documented] = [
        line
        for block in blocks("docs/procedures.md")
        for line in block.commands()
        if block.language == "sh" and "--pacing fill" in line
    ]
    said = CliRunner().invoke(app, documented.removeprefix("dutperf ").split())
    assert said.exit_code == 0, said.output
    text = " ".join(said.output.split())
    assert "the line of 10 Mbit/s was filled with" in text
    assert "none of them came back" in text
