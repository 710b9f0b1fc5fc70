# SPDX-License-Identifier: Apache-2.0
"""The rules that tell the tester's faults from the DUT's, as a table: what was counted, and every
cause that must come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

import pytest

from dutperf.judge import rules, validity
from dutperf.judge.validity import NO_LINK_DOWN
from dutperf.model import (
    LEFT_AND_RIGHT,
    LOSS_BINS,
    PUNCTUAL_US,
    Arrivals,
    ArrivedTags,
    Connections,
    Delays,
    Direction,
    FieldMode,
    HeldFrames,
    IcmpError,
    LateBursts,
    LinkState,
    LoopStall,
    Losses,
    MatchedByLength,
    MediaLimit,
    NicArrivals,
    NicDepartures,
    OtherDestination,
    OtherDestinations,
    OtherTags,
    Quantiles,
    Question,
    ReceiveBacklog,
    Replay,
    Stream,
    TransmitWait,
    VaryingAddress,
    Verdict,
)
from dutperf.watch.dut_core import Starvation
from dutperf.watch.dut_waits import Disturbance
from plans import counts, stream, trial

LATE_US = rules.LATENESS_LIMIT_US
LATE_WITH_LOSS_US = rules.LATENESS_LIMIT_WITH_LOSS_US
LIMIT_S = rules.sending_time_limit_s(1.0)


def late(us: float) -> Quantiles:
    return Quantiles(p50=0, p99=0, p999=0, max=us)


def burst(frames: int, late_us: float = PUNCTUAL_US + 1) -> dict[str, Any]:
    """So many in the middle of the trial."""
    return {"lateness_us": late(late_us), "late_bursts": LateBursts(frames=frames, bins=in_bins({50: frames}))}


def lost_at(*hundredths: int) -> dict[str, Any]:
    """One frame in the middle of each of those hundredths of the sending time."""
    return {
        "losses": Losses(
            first_s=min(hundredths) / 100,
            last_s=max(hundredths) / 100,
            longest_run=1,
            bins=in_bins(Counter(hundredths)),
        )
    }


def in_bins(counted: Mapping[int, int]) -> tuple[int, ...]:
    """Frames by the hundredth, each in its middle."""
    placed = {(2 * hundredth + 1) * LOSS_BINS // 200: count for hundredth, count in counted.items()}
    return tuple(placed.get(index, 0) for index in range(LOSS_BINS))


def nic_arrivals(uncertainty_us: float, impossible: int = 0) -> NicArrivals:
    return NicArrivals(by_nic=1000, by_poll=0, impossible=impossible, uncertainty_us=uncertainty_us)


def kernel_stamps(**counts: float) -> dict[str, Any]:
    """Of 1,000 stamped frames that arrived."""
    none = {"both": 1000, "no_transmit": 0, "no_receive": 0, "impossible": 0}
    return {"stamped_received": 1000, "stamps": none | counts, **kernel_clocks(0.0)}


def kernel_clocks(step_us: float) -> dict[str, Any]:
    kernel = {"name": "CLOCK_REALTIME", "at": "kernel"}
    return {"clocks": {"sending": kernel, "receiving": kernel, "error_us": 0.0, "step_us": step_us}}


def card_clocks(**members: float) -> dict[str, Any]:
    clocks = {"offset_us": 1e6, "drift_ppm": 100.0, "error_us": 0.5, "step_us": 0.0, "unread_us": 20_000.0}
    ends = {"sending": {"name": "ptp0", "at": "card"}, "receiving": {"name": "ptp1", "at": "card"}}
    return {**kernel_stamps(), "clocks": {**ends, **clocks, **members}}


def waited(us: float | None, *, full: bool = True) -> TransmitWait:
    return TransmitWait(frames=160, us=us, full=full)


AWAY: dict[str, Any] = {"received": 990, "stall_us": LoopStall(sender=0, receiver=LATE_WITH_LOSS_US + 1)}
MEDIA = MediaLimit(line_rate_fps=1000, tolerance_us=12_000)
DELAYS = Delays(p50=1, p99=1, p999=1, max=1, min=1)


def delays(p50: float, p999: float, largest: float, own: tuple[float, float, float]) -> dict[str, Any]:
    """In milliseconds; ``own``: the tester's share of each."""
    p50_us, p999_us, largest_us, *own_us = (1000 * one for one in (p50, p999, largest, *own))
    by_tester = Quantiles(p50=own_us[0], p99=own_us[0], p999=own_us[1], max=own_us[2])
    return {"delay_us": Delays(min=1, p50=p50_us, p99=p50_us, p999=p999_us, max=largest_us, by_tester=by_tester)}


WAIT_US = rules.TRANSMIT_WAIT_LIMIT_US

AT_A_STEP: dict[str, Any] = {
    "delay_us": DELAYS.model_copy(update={"by_tester": Quantiles(p50=1, p99=20_000, p999=1, max=20_000)})
}


TABLE: list[tuple[str, dict[str, Any], set[str]]] = [
    ("nothing wrong", {}, set()),
    ("the DUT lost frames", {"received": 1}, set()),
    ("the DUT lost all frames", {"received": 0}, set()),
    ("the engine meant another trial", {"sent": 999, "received": 999, "intended": 999}, {"miscounted"}),
    ("others had frames merged", {"switched_on": ("rx-gro, which merges frames",)}, {"switched_on"}),
    ("one frame was not sent", {"sent": 999, "intended": 1000}, {"unsent"}),
    ("sending took as long as it may", {"send_time_s": LIMIT_S}, set()),
    ("sending took too long", {"send_time_s": LIMIT_S + 1e-6}, {"sending_time"}),
    (
        "sending took as much longer as the media's clock explains",
        {"send_time_s": LIMIT_S + 0.012, "media": MEDIA},
        set(),
    ),
    ("sending took longer than that", {"send_time_s": LIMIT_S + 0.012001, "media": MEDIA}, {"sending_time"}),
    (
        "late by the media's clock",
        {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US + 12_000), "media": MEDIA},
        set(),
    ),
    (
        "later than that",
        {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US + 12_001), "media": MEDIA},
        {"sender_late"},
    ),
    (
        "late in a full ring as well",
        {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US - 1_000), "transmit_wait": waited(1_001)},
        {"sender_late"},
    ),
    (
        "a ring that was not full",
        {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US), "transmit_wait": waited(1_001, full=False)},
        set(),
    ),
    ("delays that hold little of a ring", {"delay_us": DELAYS, "transmit_wait": waited(WAIT_US)}, set()),
    ("delays that hold much of a ring", {"delay_us": DELAYS, "transmit_wait": waited(WAIT_US + 1)}, {"transmit_wait"}),
    (
        "delays that hold nobody knows how much of a ring",
        {"delay_us": DELAYS, "transmit_wait": waited(None)},
        {"transmit_wait"},
    ),
    (
        "a ring that was not full, of a link of unknown speed",
        {"delay_us": DELAYS, "transmit_wait": waited(None, full=False)},
        set(),
    ),
    ("no delays that could hold anything", {"transmit_wait": waited(None)}, set()),
    (
        "a burst that waited in the tester's queue discipline",
        {"queue_discipline": HeldFrames(times=1, waiting=0)},
        {"queue_discipline"},
    ),
    (
        "frames that an earlier trial left there",
        {"queue_discipline": HeldFrames(times=0, waiting=7)},
        {"queue_discipline"},
    ),
    ("a stall that no quantile shows", delays(1, 1, 49, (0, 0, 48)), set()),
    ("a stall that the largest delay shows", delays(1, 1, 52, (0, 0, 51)), {"tester_delay"}),
    ("a stall that few frames saw", delays(1, 10, 20, (0, 9, 19)), set()),
    ("a stall that more than one in a thousand saw", delays(1, 298, 300, (0, 297, 299)), {"tester_delay"}),
    ("a stall that is little beside the delay", delays(300, 312, 320, (0, 12, 20)), set()),
    ("a stall at a step of the distribution, which only the 99th percentile shows", AT_A_STEP, set()),
    ("a stall in the median", delays(12, 13, 13, (11, 11, 11)), {"tester_delay"}),
    ("an engine that does not say", {"delay_us": DELAYS, "stall_us": LoopStall(sender=0, receiver=3e5)}, set()),
    (
        "the receiving card's ring may have overrun",
        {"received": 990, "stall_us": LoopStall(sender=0, receiver=401), "receive_ring_us": 400},
        {"receiver_stall"},
    ),
    ("... but nothing was lost", {"stall_us": LoopStall(sender=0, receiver=401), "receive_ring_us": 400}, set()),
    (
        "the receiving card's ring held what came meanwhile",
        {"received": 990, "stall_us": LoopStall(sender=0, receiver=400), "receive_ring_us": 400},
        set(),
    ),
    ("more arrived than was sent", {"received": 1001}, {"received_too_many"}),
    ("the tester dropped frames", {"received": 990, "tester_drops": {"nic_missed": 10}}, {"tester_drops"}),
    (
        "the tester dropped frames of others only, still its fault",
        {"tester_drops": {"kernel_socket": 1}},
        {"tester_drops"},
    ),
    ("a cause of drops that did not occur", {"received": 990, "tester_drops": {"nic_missed": 0}}, set()),
    ("late without loss", {"lateness_us": late(LATE_US)}, set()),
    ("too late without loss", {"lateness_us": late(LATE_US + 1)}, {"sender_late"}),
    ("late with loss", {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US)}, set()),
    ("too late with loss", {"received": 990, "lateness_us": late(LATE_WITH_LOSS_US + 1)}, {"sender_late"}),
    ("few lost, and no burst", {"received": 999, "lateness_us": late(PUNCTUAL_US)}, set()),
    ("few lost, and as many in a burst", {"received": 990, **burst(10)}, {"sender_bursts"}),
    ("more lost than there were in bursts", {"received": 989, **burst(10)}, set()),
    ("lost where the burst was", {"received": 998, **burst(10), **lost_at(50, 50)}, {"sender_bursts"}),
    ("lost while the DUT forwards what it got", {"received": 998, **burst(10), **lost_at(51, 52)}, {"sender_bursts"}),
    ("lost before the burst", {"received": 998, **burst(10), **lost_at(48, 49)}, set()),
    ("lost long after many came in bursts", {"received": 998, **burst(10), **lost_at(53, 99)}, {"sender_bursts"}),
    ("lost long after few did", {"received": 999, **burst(1), **lost_at(53)}, set()),
    (
        "lost while the DUT forwards what few frames it got",
        {"received": 999, **burst(1), **lost_at(52)},
        {"sender_bursts"},
    ),
    ("as many lost before the burst as with it", {"received": 998, **burst(10), **lost_at(5, 50)}, {"sender_bursts"}),
    ("more lost before", {"received": 997, **burst(10), **lost_at(5, 6, 50)}, set()),
    ("a burst from the first frame to the last", {"received": 0, **burst(1000)}, {"sender_bursts"}),
    ("a burst without loss does not matter", burst(10), set()),
    ("receiver away without loss", {"stall_us": LoopStall(sender=0, receiver=1e6)}, set()),
    (
        "receiver away with loss",
        {"received": 990, "stall_us": LoopStall(sender=0, receiver=LATE_WITH_LOSS_US + 1)},
        {"receiver_stall"},
    ),
    (
        "a receive queue that was half full, with loss",
        {"received": 990, "receive_backlog": ReceiveBacklog(frames=512, ring=1024)},
        set(),
    ),
    (
        "a receive queue that may have been full",
        {"received": 990, "receive_backlog": ReceiveBacklog(frames=513, ring=1024)},
        {"receive_queue"},
    ),
    (
        "a receive queue of unknown size that held less than a burst",
        {"received": 990, "receive_backlog": ReceiveBacklog(frames=55)},
        set(),
    ),
    (
        "a receive queue of unknown size that held a burst",
        {"received": 990, "receive_backlog": ReceiveBacklog(frames=56)},
        {"receive_queue"},
    ),
    (
        "a kernel's queue that was never half full while the receiver was away",
        {**AWAY, "receive_backlog": ReceiveBacklog(frames=512, ring=1024, counted=True)},
        set(),
    ),
    (
        "a kernel's queue that may have been full then",
        {**AWAY, "receive_backlog": ReceiveBacklog(frames=513, ring=1024, counted=True)},
        {"receiver_stall"},
    ),
    (
        "a DUT's own queue, which nobody counts for",
        {**AWAY, "receive_backlog": ReceiveBacklog(frames=512, ring=1024)},
        {"receiver_stall"},
    ),
    ("a full receive queue that cost nothing", {"receive_backlog": ReceiveBacklog(frames=1024, ring=1024)}, set()),
    ("a NIC's clock that was followed", {"receive_timestamps": nic_arrivals(rules.NIC_CLOCK_LIMIT_US)}, set()),
    (
        "a NIC's clock that somebody put forward",
        {"receive_timestamps": nic_arrivals(rules.NIC_CLOCK_LIMIT_US + 1)},
        {"nic_clock"},
    ),
    (
        "a NIC's clock that sent late",
        {"send_at": NicDepartures(timed=1000, at_once=0, uncertainty_us=rules.NIC_CLOCK_LIMIT_US + 1)},
        {"nic_clock"},
    ),
    ("a NIC's stamp that cannot be", {"receive_timestamps": nic_arrivals(1, impossible=1)}, {"nic_stamps"}),
    (
        "a frame that came before it left",
        {"send_at": NicDepartures(timed=1000, at_once=0, impossible=1, uncertainty_us=1)},
        {"nic_stamps"},
    ),
    ("kernel stamps of nearly all frames", kernel_stamps(no_transmit=4, no_receive=6), set()),
    ("too many frames that nobody stamped", kernel_stamps(no_receive=11), {"missing_stamps"}),
    ("too many that left without a stamp", kernel_stamps(no_transmit=11), {"missing_stamps"}),
    ("an arrival before the leaving, by the kernel", kernel_stamps(impossible=1), {"nic_stamps"}),
    ("a clock that was set back", kernel_clocks(-11.0), {"stamp_clock"}),
    ("a clock that was read with an error", kernel_clocks(9.0), set()),
    ("cards' clocks that were compared throughout", card_clocks(error_us=40.0), set()),
    ("a card's clock that somebody set", card_clocks(step_us=-0.5), {"card_clock"}),
    ("a card's clock that was lost", card_clocks(unread_us=1_000_001.0), {"card_clock"}),
    ("a frame that came before it was sent, by another core's counter", {"early": 1}, {"core_clocks"}),
    ("the DUT's own input drops are the DUT's", {"received": 990, "dut_input_drops": 10}, set()),
    (
        "several at once",
        {
            "sent": 900,
            "intended": 1000,
            "received": 800,
            "tester_drops": {"no_buffer": 1},
            "lateness_us": late(1e6),
            "stall_us": LoopStall(sender=0, receiver=1e6),
        },
        {"unsent", "tester_drops", "sender_late", "receiver_stall"},
    ),
]


@pytest.mark.parametrize("direction", LEFT_AND_RIGHT)
@pytest.mark.parametrize(("members", "codes"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_judge(direction: Direction, members: dict[str, Any], codes: set[str]) -> None:
    both = dict.fromkeys(LEFT_AND_RIGHT, counts()) | {direction: counts(**members)}
    verdict, causes = validity.judge(trial(), both)
    assert {cause.code for cause in causes} == codes
    assert verdict is (Verdict.INVALID if codes else Verdict.VALID)
    assert codes <= {code for code, _ in rules.RULES}
    assert all(cause.direction is direction and direction in cause.text for cause in causes)


@pytest.mark.parametrize(
    ("dropped", "says"),
    [
        ({"kernel_socket": 3, "receive_errors": 0}, "3 frames (kernel_socket)"),
        ({"kernel_backlog": 3, "no_buffer": 2}, "3 frames (kernel_backlog), 2 frames (no_buffer): the card's ring"),
        ({"receive_errors": 2}, "2 frames (receive_errors): their FCS or length was wrong: look at the cable"),
    ],
)
def test_what_the_tester_dropped_names_what_helps(dropped: dict[str, int], says: str) -> None:
    [cause] = validity.judge(trial(), {Direction.FORWARD: counts(received=990, tester_drops=dropped)})[1]
    assert cause.text.startswith(f"forward: the tester itself dropped {says}")


@pytest.mark.parametrize(
    ("late_ms", "received", "codes"), [(20, 960, {"sender_late"}), (20, 1000, set()), (9, 960, set())]
)
def test_a_stall_of_one_direction_may_cost_frames_of_another(late_ms: int, received: int, codes: set[str]) -> None:
    """They share the DUT's capacity. The loss is far from the burst, which alone would not be a cause."""
    made = {
        Direction.FORWARD: counts(**burst(60, late_ms * 1000.0)),
        Direction.REVERSE: counts(received=received, **({} if received == 1000 else lost_at(*range(60, 100)))),
    }
    _, causes = validity.judge(trial(), made)
    assert {(cause.code, cause.direction) for cause in causes} == {(code, Direction.FORWARD) for code in codes}


@pytest.mark.parametrize(("after", "codes"), [(6, {"sender_bursts"}), (8, set())])
def test_a_burst_may_last_for_several_parts_of_a_short_trial(after: int, codes: set[str]) -> None:
    short = trial(10_000, duration_ns=100_000_000)  # hundredths of 1 ms
    counted = counts(received=999, send_time_s=0.1, **burst(1, late_us=5_000), **lost_at(50 + after))
    assert {cause.code for cause in validity.judge(short, {Direction.FORWARD: counted})[1]} == codes


DISTURBED: dict[str, Any] = {
    **burst(10, late_us=LATE_WITH_LOSS_US + 1),
    "stall_us": LoopStall(sender=0, receiver=LATE_WITH_LOSS_US + 1),
    "late": 5,
}


@pytest.mark.parametrize(
    ("stamped", "advice"),
    [
        (kernel_stamps(both=0, no_transmit=1000), "no frame has both, so leave stamps at loop"),
        (kernel_stamps(both=500, no_receive=500), "did not read them fast enough, so lower the rate, or leave"),
        (
            kernel_stamps(both=500, no_transmit=500) | {"clocks": card_clocks()["clocks"]},
            "many cards stamp one frame at a time, so take fewer",
        ),
    ],
    ids=["by no driver", "by a slow tester", "by a card with one register"],
)
def test_missing_stamps_come_with_what_to_do(stamped: dict[str, Any], advice: str) -> None:
    [cause] = validity.judge(trial(stamping="every"), {Direction.FORWARD: counts(**stamped)})[1]
    assert advice in cause.text


@pytest.mark.parametrize(
    ("lost", "members", "codes"),
    [
        (10, DISTURBED, set()),
        (11, DISTURBED, {"sender_late", "receiver_stall", "late_in_tester", validity.DUT_DISTURBED}),
        (10, burst(10), set()),
        (11, burst(11), {"sender_bursts", validity.DUT_DISTURBED}),
        (10, {"lateness_us": late(LATE_US + 1)}, {"sender_late"}),
        (10, {"tester_drops": {"no_buffer": 1}}, {"tester_drops"}),
    ],
    ids=[
        "tolerated",
        "more than that",
        "tolerated in bursts",
        "more in bursts",
        "so late that it was another load",
        "dropped by the tester",
    ],
)
def test_a_loss_that_is_tolerated_needs_no_culprit(lost: int, members: dict[str, Any], codes: set[str]) -> None:
    """A disturbance brings no frame back: the trial passes in spite of it."""
    tolerant = trial(stamping="every", frame_timeout_ns=10_000_000, question=Question(tolerated_loss=0.01))
    both = {Direction.FORWARD: counts(received=1000 - lost, **members), Direction.REVERSE: counts()}
    assert {cause.code for cause in validity.judge(tolerant, both, Starvation(1.0))[1]} == codes


@pytest.mark.parametrize(
    ("in_spite", "with_it", "burst_frames", "codes"),
    [(9, 3, 3, {"sender_bursts"}), (9, 3, 1, set()), (11, 1, 5, set()), (11, 20, 25, {"sender_bursts"})],
    ids=["the burst made the excess", "it is too short for that", "exceeded without it", "mostly its work"],
)
def test_beyond_what_is_tolerated_a_burst_answers_for_the_excess(
    in_spite: int, with_it: int, burst_frames: int, codes: set[str]
) -> None:
    tolerant = trial(question=Question(tolerated_loss=0.01))
    counted = counts(
        received=1000 - in_spite - with_it, **burst(burst_frames), **lost_at(*[5] * in_spite, *[50] * with_it)
    )
    assert {cause.code for cause in validity.judge(tolerant, {Direction.FORWARD: counted})[1]} == codes


@pytest.mark.parametrize(
    ("resolution", "codes"),
    [(0.0, {"sender_bursts"}), (0.005, {"sender_bursts"}), (0.04, {"sender_bursts"}), (0.05, set())],
)
def test_a_burst_shifts_a_throughput_by_no_more_than_its_share_of_the_frames(
    resolution: float, codes: set[str]
) -> None:
    searching = trial(question=Question(resolution=resolution))
    counted = counts(received=999, **burst(10), **lost_at(70))
    assert {cause.code for cause in validity.judge(searching, {Direction.FORWARD: counted})[1]} == codes


@pytest.mark.parametrize(("duration_s", "limit_s"), [(1.0, 1.0006), (60.0, 60.0006), (120.0, 120.0012)])
def test_sending_time_limit(duration_s: float, limit_s: float) -> None:
    assert rules.sending_time_limit_s(duration_s) == pytest.approx(limit_s, abs=1e-9)


@pytest.mark.parametrize(
    ("timeout_ms", "late_frames", "away", "codes"),
    [
        (10, 5, LoopStall(sender=1000, receiver=1000), set()),
        (10, 5, LoopStall(sender=0, receiver=1001), {"late_in_tester"}),
        (10, 5, LoopStall(sender=1001, receiver=0), {"late_in_tester"}),
        (10, 0, LoopStall(sender=5000, receiver=5000), set()),
        (100, 5, LoopStall(sender=5000, receiver=5000), set()),
    ],
)
def test_a_frame_that_waited_in_the_tester_is_not_the_duts(
    timeout_ms: int, late_frames: int, away: LoopStall, codes: set[str]
) -> None:
    timed = trial(stamping="every", frame_timeout_ns=timeout_ms * 1_000_000)
    counted = counts(received=1000 - late_frames, late=late_frames, stall_us=away)
    assert {cause.code for cause in validity.judge(timed, {Direction.FORWARD: counted})[1]} == codes


LINKS = [
    ("both up", NO_LINK_DOWN, False, set()),
    ("one fell, nothing was lost", LinkState(left=True, right=False), False, {"link_down"}),
    ("both fell", LinkState(left=True, right=True), False, {"link_down"}),
    ("a DUT that is reset took it down", LinkState(left=True, right=False), True, set()),
]


@pytest.mark.parametrize(
    ("came", "lost", "codes"),
    [(0, 10, set()), (1, 10, {"other_run"}), (1, 0, set()), (2, 0, set()), (3, 0, {"other_run"})],
)
def test_a_dut_with_the_load_of_another_run_proves_nothing_by_its_loss(came: int, lost: int, codes: set[str]) -> None:
    """Whichever direction they came in: 1,000 frames of each."""
    both = {
        Direction.FORWARD: counts(received=1000 - lost),
        Direction.REVERSE: counts(other_received={"other_run": came}),
    }
    _, causes = validity.judge(trial(), both)
    assert {cause.code for cause in causes} == codes
    assert validity.proven_failed(trial(), both, causes) is None


def test_frames_with_other_vlan_tags_are_no_pass() -> None:
    """Although all of them arrived; without other tags, and where none can be seen, they are one."""
    seen = (OtherTags(tags="", frames=600), OtherTags(tags="88a800648100000a", frames=300))
    other = {Direction.FORWARD: counts(vlan_tags=ArrivedTags(other=1000, seen=seen))}
    verdict, causes = validity.judge(trial(), other)
    assert verdict is Verdict.INVALID
    [cause] = causes
    assert cause.code == "vlan_tags"
    assert cause.text == (
        "forward: 1,000 frames arrived at the right port with other VLAN tags than they should have (600 with no VLAN"
        " tag, 300 with VLAN 100 (type 0x88a8) / VLAN 10, 100 with others, instead of no VLAN tag); if the DUT should"
        " deliver them so, say it in right.frame, or by streams of one direction"
    )
    assert validity.proven_failed(trial(), other, causes) is None
    assert "vlan_tags" not in validity.BY_LOSS
    for nothing in (None, ArrivedTags(hidden=True)):
        assert validity.judge(trial(), {Direction.FORWARD: counts(vlan_tags=nothing)})[0] is Verdict.VALID


def test_no_disturbance_explains_corrupted_frames() -> None:
    """Neither a stall nor a core that others took shortens frames: the trial is valid, and the DUT failed."""
    others = Starvation(1.0)
    disturbed = {**burst(10, late_us=LATE_WITH_LOSS_US + 1), "stall_us": LoopStall(sender=0, receiver=30_000)}
    only = counts(1000, 900, corrupted=100, **disturbed)
    assert validity.judge(trial(), {Direction.FORWARD: only}, others) == (Verdict.VALID, ())
    more = counts(1000, 890, corrupted=100, **disturbed)
    verdict, causes = validity.judge(trial(), {Direction.FORWARD: more}, others)
    assert verdict is Verdict.INVALID
    assert {cause.code for cause in causes} == {"sender_late", "receiver_stall", validity.DUT_DISTURBED}
    searched = trial().model_copy(update={"question": Question(resolution=0.01)})
    late = {Direction.FORWARD: more.model_copy(update={"stall_us": LoopStall(sender=0, receiver=0)})}
    _, causes = validity.judge(searched, late, others)
    assert {cause.code for cause in causes} == {"sender_late", validity.DUT_DISTURBED}
    assert validity.proven_failed(searched, late, causes, others) is not None


def test_frames_for_other_addresses_are_no_pass() -> None:
    """Although all of them arrived (RFC 2544 section 10)."""
    seen = (OtherDestination(address=IPv4Address("198.19.0.77"), frames=300),)
    moved = {Direction.FORWARD: counts(destinations=OtherDestinations(other=400, seen=seen))}
    verdict, causes = validity.judge(trial(), moved)
    assert verdict is Verdict.INVALID
    [cause] = causes
    assert cause.code == "destinations"
    assert "(300 to 198.19.0.77, 100 to others)" in cause.text
    assert validity.proven_failed(trial(), moved, causes) is None
    assert "destinations" not in validity.BY_LOSS


@pytest.mark.parametrize(("member", "codes"), [("not_decapsulated", ["encapsulation"]), ("not_encapsulated", [])])
def test_frames_that_stay_in_the_tunnel_are_no_pass(member: str, codes: list[str]) -> None:
    """Those that come outside of the receiving side's are a remark."""
    _, causes = validity.judge(trial(), {Direction.FORWARD: counts(**{member: 400})})
    assert [cause.code for cause in causes] == codes
    assert all("400 frames arrived at the right port still in the tunnel" in cause.text for cause in causes)


@pytest.mark.parametrize(("down", "may_fall", "codes"), [row[1:] for row in LINKS], ids=[row[0] for row in LINKS])
def test_a_link_of_the_testers_own_must_stay_up(down: LinkState, may_fall: bool, codes: set[str]) -> None:
    asked = trial().model_copy(update={"question": Question(links_may_fall=may_fall)})
    verdict, causes = validity.judge(asked, dict.fromkeys(LEFT_AND_RIGHT, counts()), link_down=down)
    assert {cause.code for cause in causes} == codes
    assert verdict is (Verdict.INVALID if codes else Verdict.VALID)
    assert len(causes) == (sum((down.left, down.right)) if codes else 0)


@pytest.mark.parametrize("may_fall", [False, True])
@pytest.mark.parametrize("received", [1000, 400])
def test_a_port_must_stay_what_was_opened(received: int, may_fall: bool) -> None:
    """Also where a DUT that is reset may take links down, and where nothing was lost. The loss proves nothing."""
    asked = trial().model_copy(update={"question": Question(links_may_fall=may_fall, resolution=0.01)})
    both = dict.fromkeys(LEFT_AND_RIGHT, counts(received=received))
    verdict, causes = validity.judge(asked, both, port_changes={"right": "r0 was renamed to rr0"})
    assert (verdict, [(cause.code, cause.text) for cause in causes]) == (
        Verdict.INVALID,
        [("port_changed", "right: r0 was renamed to rr0")],
    )
    assert validity.proven_failed(asked, both, causes) is None


@pytest.mark.parametrize(
    ("wait_us", "late_frames", "codes"),
    [(1000, 5, set()), (1001, 5, {"late_in_tester"}), (None, 5, {"late_in_tester"}), (1001, 0, set())],
)
def test_a_frame_that_waited_in_a_full_ring_is_not_the_duts_either(
    wait_us: float | None, late_frames: int, codes: set[str]
) -> None:
    timed = trial(stamping="every", frame_timeout_ns=10_000_000)
    counted = counts(received=1000 - late_frames, late=late_frames, delay_us=DELAYS, transmit_wait=waited(wait_us))
    assert {cause.code for cause in validity.judge(timed, {Direction.FORWARD: counted})[1]} == codes


@pytest.mark.parametrize(
    ("lost", "waited_s", "tolerated", "codes"),
    [
        (50, 0.0, 0.0, set()),
        (50, 0.049, 0.0, set()),
        (50, 0.05, 0.0, {validity.DUT_DISTURBED}),
        (0, 0.5, 0.0, set()),
        (50, 0.04, 0.02, {validity.DUT_DISTURBED}),
    ],
    ids=["it had its core", "it lost more than it missed", "no more", "nothing", "beyond what is tolerated no more"],
)
def test_what_a_dut_missed_while_others_had_its_core_is_not_its_loss(
    lost: int, waited_s: float, tolerated: float, codes: set[str]
) -> None:
    """1,000 frames in a second, lost all at once."""
    asked = trial(question=Question(tolerated_loss=tolerated))
    counted = counts(received=1000 - lost, **lost_at(*[3] * lost) if lost else {})
    judged = validity.judge(asked, {Direction.FORWARD: counted}, Starvation(waited_s=waited_s))
    assert {cause.code for cause in judged[1]} == codes


def test_a_loss_at_a_steady_rate_is_not_what_a_dut_missed_now_and_then() -> None:
    lost = lost_at(*[hundredth for hundredth in range(100) for _ in range(2)])
    steady = {Direction.FORWARD: counts(sent=4000, intended=4000, received=3800, **lost)}
    at_once = {Direction.FORWARD: counts(sent=4000, intended=4000, received=3800, **lost_at(*[3] * 200))}
    assert validity.judge(trial(4000), steady, Starvation(waited_s=0.05)) == (Verdict.VALID, ())
    assert validity.judge(trial(4000), at_once, Starvation(waited_s=0.05))[0] is Verdict.INVALID
    assert validity.judge(trial(4000), steady, Starvation(waited_s=0.051))[0] is Verdict.INVALID


@pytest.mark.parametrize(
    ("in_gaps_s", "last_s", "shown", "verdict"),
    [
        (0.0, 0.9995, True, Verdict.VALID),
        (0.0019, 0.9995, True, Verdict.VALID),
        (0.0021, 0.9995, True, Verdict.INVALID),
        (0.0, 0.9995, False, Verdict.INVALID),
        (None, 0.9995, True, Verdict.INVALID),
        (0.0, 0.99, True, Verdict.INVALID),
    ],
    ids=["none", "too short", "long enough", "several cores or processes", "unknown", "at the end"],
)
def test_a_dut_that_forwarded_while_its_soft_interrupts_waited_did_not_pause(
    in_gaps_s: float | None, last_s: float, shown: bool, verdict: Verdict
) -> None:
    """100 of 50,000 frames, in the last seventh of a second: a bucket is empty. Its core's thread waited for 5 ms."""
    times = Arrivals(
        first_s=1e-4, last_s=last_s, longest_gap_from_s=0.3, longest_gap_to_s=0.3009, in_long_gaps_s=in_gaps_s
    )
    bins = tuple(2 * (part % 7 < 5) if part >= LOSS_BINS - 70 else 0 for part in range(LOSS_BINS))
    losses = {"first_s": 0.86, "last_s": 0.999, "longest_run": 1, "bins": bins}
    counted = counts(sent=50_000, intended=50_000, received=49_900, losses=losses, arrivals=times)
    missed = Starvation(waited_s=0.005, disturbances=(Disturbance(0.3, 0.35, 0.005),), arrivals_show_pauses=shown)
    assert validity.judge(trial(50_000), {Direction.FORWARD: counted}, missed)[0] is verdict


def arrived(first_s: float, last_s: float) -> Arrivals:
    return Arrivals(first_s=first_s, last_s=last_s, longest_gap_from_s=first_s, longest_gap_to_s=last_s)


def error(protocol: str, kind: int, code: int, frames: int, mtu: int | None = None, **more: Any) -> IcmpError:
    members = {"protocol": protocol, "type": kind, "code": code, "frames": frames, "mtu": mtu}
    return IcmpError.model_validate(members | more)


NO_ROUTE, ADDRESS_UNREACHABLE, PORT_UNREACHABLE = ("icmpv6", 1, 0), ("icmpv6", 1, 3), ("icmpv6", 1, 4)

EVIDENCE: list[tuple[str, dict[str, Any], set[str]]] = [
    ("frames of an earlier trial, no loss", {"stale": 1000}, set()),
    ("as many of an earlier trial as were lost", {"received": 900, "stale": 100}, {"stale"}),
    ("more lost than they may have displaced", {"received": 899, "stale": 100}, set()),
    ("nothing came but frames of an earlier trial", {"received": 0, "stale": 1}, {"stale"}),
    ("no route", {"received": 400, "icmp_errors": (error(*NO_ROUTE, 3),)}, {"icmp_errors"}),
    ("no frame arrived, but an error", {"received": 0, "icmp_errors": (error(*NO_ROUTE, 1),)}, {"icmp_errors"}),
    ("a policer that rejects", {"received": 400, "icmp_errors": (error(*PORT_UNREACHABLE, 600),)}, set()),
    ("a filter that rejects all", {"received": 0, "icmp_errors": (error(*PORT_UNREACHABLE, 6),)}, {"icmp_errors"}),
    ("a stray error", {"received": 400, "icmp_errors": (error(*NO_ROUTE, 2),)}, set()),
    ("an error for each of few", {"received": 998, "icmp_errors": (error(*NO_ROUTE, 2),)}, {"icmp_errors"}),
    ("errors, no loss", {"icmp_errors": (error(*NO_ROUTE, 1000),)}, set()),
    (
        "neighbours that were lost under load",
        {"received": 400, "icmp_errors": (error(*ADDRESS_UNREACHABLE, 59),)},
        set(),
    ),
    (
        "neighbours that load cannot have lost, as no frame arrived",
        {"received": 0, "icmp_errors": (error(*ADDRESS_UNREACHABLE, 1),)},
        {"icmp_errors"},
    ),
    ("an unreachable neighbour", {"received": 400, "icmp_errors": (error(*ADDRESS_UNREACHABLE, 60),)}, {"icmp_errors"}),
    ("fragments", {"received": 0, "other_received": {"fragment": 2000}}, {"fragments"}),
    ("a few fragments", {"received": 0, "other_received": {"fragment": 99}}, set()),
    ("fragments, no loss", {"other_received": {"fragment": 2000}}, set()),
    ("a duplicate of every frame", {"received": 500, "duplicates": 500}, {"multiplied"}),
    ("some duplicates", {"received": 500, "duplicates": 499}, set()),
    ("duplicates, no loss", {"duplicates": 3000}, set()),
]


@pytest.mark.parametrize(("members", "codes"), [row[1:] for row in EVIDENCE], ids=[row[0] for row in EVIDENCE])
def test_what_arrived_instead_explains_a_loss(members: dict[str, Any], codes: set[str]) -> None:
    verdict, causes = validity.judge(trial(), {Direction.FORWARD: counts(**members)})
    assert {cause.code for cause in causes} == codes
    assert verdict is (Verdict.INVALID if codes else Verdict.VALID)
    tolerant = trial(question=Question(tolerated_loss=1.0))
    assert validity.judge(tolerant, {Direction.FORWARD: counts(**members)})[1] == ()


@pytest.mark.parametrize(
    ("size", "mtu", "members", "codes"),
    [
        (1000, 576, {"received": 0, "dut_input_drops": 1000}, {"dut_mtu"}),
        (1000, 576, {"received": 999, "dut_input_drops": 1}, {"dut_mtu"}),  # the longest of several
        (598, 576, {"received": 0, "dut_input_drops": 1000}, set()),  # the kernel takes a VLAN tag more
        (599, 576, {"received": 0, "dut_input_drops": 1000}, {"dut_mtu"}),
        (1000, 576, {"received": 0}, set()),
        (1000, None, {"received": 0, "dut_input_drops": 1000}, set()),
        (1000, 576, {"dut_input_drops": 0}, set()),
    ],
)
def test_frames_too_long_for_the_other_end_of_the_link_are_not_the_duts_loss(
    size: int, mtu: int | None, members: dict[str, Any], codes: set[str]
) -> None:
    counted = {Direction.FORWARD: counts(dut_input_mtu=mtu, **members)}
    _, causes = validity.judge(trial(size=size), counted)
    assert {cause.code for cause in causes} == codes
    for cause in causes:
        assert cause.lasts
        assert f"the left port, is 576, and frames of {size:,} bytes need {size - 18}" in cause.text


RANGE = VaryingAddress(mode=FieldMode.RANDOM, min=2, max=254, offset4=2, offset6=14)


@pytest.mark.parametrize(
    ("received", "errors", "holder", "range_", "codes"),
    [
        (993, 6, "198.19.0.200", RANGE, {"taken_address"}),
        (0, 1, "198.19.0.200", RANGE, {"taken_address"}),
        (900, 2, "198.19.0.200", RANGE, set()),  # too few, they may be about something else
        (993, 6, "198.19.1.200", RANGE, set()),  # of no frame of ours
        (993, 6, None, RANGE, set()),  # of a policer
        (993, 6, "198.19.0.2", None, set()),  # whose station forwards frames to it, as a translator
        (0, 6, "198.19.0.2", None, {"taken_address"}),
        (1000, 6, "198.19.0.200", RANGE, set()),
    ],
)
def test_frames_that_a_station_takes_for_its_own_are_not_the_duts_loss(
    received: int, errors: int, holder: str | None, range_: VaryingAddress | None, codes: set[str]
) -> None:
    """By an error whose sender is the destination of the frame that it is about."""
    one = error("icmp", 3, 3, errors, **({} if holder is None else {"holder": holder}))
    asked = trial(forward=stream(4, 64, 1000, destination_address=range_))
    judged = validity.judge(asked, {Direction.FORWARD: counts(received=received, icmp_errors=(one,))})
    assert {cause.code for cause in judged[1]} == codes
    for cause in judged[1]:
        assert cause.lasts, "no further trial is needed to know"
        assert f"takes them for its own: {holder}" in cause.text


@pytest.mark.parametrize(
    ("port", "returned", "codes"), [("left", 60, {"returned"}), ("left", 59, set()), ("right", 600, set())]
)
def test_frames_that_come_back_are_not_the_duts_loss(port: str, returned: int, codes: set[str]) -> None:
    """At another port they are: a switch that floods has lost them."""
    counted = {Direction.FORWARD: counts(received=400, misdelivered={port: returned})}
    assert {cause.code for cause in validity.judge(trial(), counted)[1]} == codes


BACK: list[tuple[dict[str, int], dict[str, Any], set[str]]] = [
    ({"udp": 250}, {}, {"returned"}),
    ({"udp": 20, "tcp": 20, "ipv4_other": 20}, {}, {"returned"}),
    ({"udp": 59}, {}, set()),
    ({"icmp_other": 250}, {}, {"returned"}),  # a capture of echo requests
    ({"icmp_other": 10, "icmpv6_other": 0, "not_ip": 0}, {}, set()),  # redirects
    ({"arp_request": 250, "ndp_solicitation": 250}, {}, set()),
    ({"other_run": 250}, {}, {"other_run"}),
    ({"other_run": 250}, {"of_test_frames": True}, {"returned"}),
    ({"udp": 250}, {"tagged": 1000}, set()),  # all have numbers, by which they are known where they come back
]


@pytest.mark.parametrize(("other", "members", "codes"), BACK)
def test_frames_of_a_replay_that_come_back_are_not_the_duts_loss(
    other: dict[str, int], members: dict[str, Any], codes: set[str]
) -> None:
    """Without tags they are frames like any other; a capture of test frames has those of its own run."""
    replay = Replay(frames=1000, longest=64, mean_size=64, sha256="", **({"tagged": 0} | members))
    counted = counts(
        received=400,
        losses=None,
        other_received=other,
        matched=MatchedByLength(sent=1000, in_order=400, reordered=0, extra=0),
    )
    asked = trial(forward=Stream(rate_fps=1000, replay=replay), reverse=None)
    judged = validity.judge(asked, {Direction.FORWARD: counted})
    assert {cause.code for cause in judged[1]} == codes


@pytest.mark.parametrize(
    ("question", "connections"), [({"links_may_fall": True}, None), ({}, {"count": 5, "initiator": "forward"})]
)
def test_a_dut_that_restarts_or_whose_table_is_full_may_refuse_frames(
    question: dict[str, Any], connections: dict[str, Any] | None
) -> None:
    counted = {Direction.FORWARD: counts(received=400, icmp_errors=(error(*NO_ROUTE, 600),))}
    asked = trial(question=Question(**question)).model_copy(
        update={"connections": None if connections is None else Connections.model_construct(**connections)}
    )
    assert validity.judge(asked, counted)[1] == ()


DELAYED: list[tuple[str, dict[str, Any], set[str]]] = [
    ("a delay above the drain: the tail is missing", {"received": 500, "arrivals": arrived(2.5, 3.0)}, {"drain"}),
    ("and more than the whole trial", {"received": 1, "arrivals": arrived(3.5, 3.5)}, {"drain"}),
    ("all came", {"arrivals": arrived(1.9, 2.9)}, set()),
    ("a queue that was longer than the drain: overload", {"received": 500, "arrivals": arrived(0.1, 3.0)}, set()),
    ("a DUT that began to forward late", {"received": 500, "arrivals": arrived(2.5, 1.0)}, set()),
    ("late by the frame timeout", {"received": 500, "late": 500, "arrivals": arrived(1.9, 3.0)}, set()),
]


@pytest.mark.parametrize(("members", "codes"), [row[1:] for row in DELAYED], ids=[row[0] for row in DELAYED])
def test_frames_that_are_still_on_their_way_are_not_lost(members: dict[str, Any], codes: set[str]) -> None:
    """A second of sending, then a drain of two."""
    judged = validity.judge(trial(drain_ns=2 * 10**9), {Direction.FORWARD: counts(**members)})
    assert {cause.code for cause in judged[1]} == codes
    assert all("longer than the DUT's delay" in cause.text for cause in judged[1])


def test_an_error_says_what_the_dut_refused() -> None:
    counted = {Direction.FORWARD: counts(received=400, icmp_errors=(error("icmpv6", 2, 0, 600, mtu=1280),))}
    [cause] = validity.judge(trial(), counted)[1]
    assert "the DUT sent 600 ICMPv6 packet too big (MTU 1,280)" in cause.text
    assert error("icmp", 3, 4, 1, mtu=576).words() == "1 ICMP fragmentation needed (MTU 576)"
    assert error("icmp", 3, 77, 2).words() == "2 ICMP destination unreachable (code 77)"
    assert error("icmpv6", 99, 1, 2).words() == "2 ICMPv6 type 99 (code 1)"


def test_streams_of_one_port_leave_in_turn() -> None:
    """Frames of 150 streams that are due at once take 0.6 ms, and none of them is late by the limits for that."""
    names = [Direction(f"forward:f{number}") for number in range(150)]
    streams = {name: stream(4, 64, 1000) for name in names}
    many = trial(forward=None, reverse=None, other_streams=streams)
    late = dict.fromkeys(names, counts(send_time_s=1.0011))
    assert validity.judge(many, late) == (Verdict.VALID, ())
    few = trial(forward=None, reverse=None, other_streams={names[0]: streams[names[0]]})
    assert [cause.code for cause in validity.judge(few, {names[0]: late[names[0]]})[1]] == ["sending_time"]
