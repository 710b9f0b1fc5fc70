# SPDX-License-Identifier: Apache-2.0
"""Lost frames in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.model import (
    LOSS_BINS,
    Direction,
    DirectionCounts,
    Losses,
    MovedGateway,
    NeighbourEvidence,
    TrialResult,
    UnansweredAddress,
    Verdict,
    to_json,
)
from dutperf.procedures.evidence import no_forwarding
from dutperf.results import beside, loss
from dutperf.results.points import losses
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import counts as plain_counts
from plans import plan, trial

SENDING_S = 2.0
CLEAN = SimulatedTester().run(trial(1_000)).directions()[Direction.FORWARD]


def counts(lost: dict[int, int] | None = None, longest_run: int = 1, **changes: Any) -> DirectionCounts:
    """Those of a trial of two seconds; ``lost``: frames by the hundredth of the time in which they
    were lost."""
    placed = {(2 * hundredth + 1) * LOSS_BINS // 200: count for hundredth, count in (lost or {}).items()}
    bins = tuple(placed.get(index, 0) for index in range(LOSS_BINS))
    used = sorted(lost or {})
    width = SENDING_S / 100
    losses = (
        Losses(first_s=used[0] * width, last_s=(used[-1] + 1) * width, longest_run=longest_run, bins=bins)
        if used
        else None
    )
    received = CLEAN.sent - sum(bins) - changes.get("late", 0)
    return CLEAN.model_copy(update={"send_time_s": SENDING_S, "received": received, "losses": losses} | changes)


@pytest.mark.parametrize(
    ("lost", "longest_run", "words"),
    [
        ({}, 1, None),
        ({20: 1}, 1, "at 0.40 s, a single frame"),
        ({60: 3}, 1, "all within 20 ms around 1.21 s, one by one"),
        ({60: 30, 66: 9}, 20, "all within 0.14 s around 1.27 s, in runs of up to 20 frames"),
        (dict.fromkeys(range(20, 100), 5), 32, "from 0.40 s to the end, in runs of up to 32 frames"),
        (dict.fromkeys(range(100), 5), 1, "over the whole time, one by one"),
        (dict.fromkeys(range(30, 60), 5), 2, "from 0.60 s to 1.20 s, in runs of up to 2 frames"),
        ({3: 1, 50: 2, 97: 1}, 2, "scattered from 0.06 s to 1.96 s, in runs of up to 2 frames"),
        ({0: 1, 99: 1}, 1, "scattered over the whole time, one by one"),
    ],
)
def test_when_in_words(lost: dict[int, int], longest_run: int, words: str | None) -> None:
    assert loss.when(counts(lost, longest_run)) == words


def test_where_no_frame_arrived_there_is_no_pattern() -> None:
    few = counts(dict.fromkeys((0, 25, 50, 75, 99), 1), sent=5, received=0)
    assert loss.when(few) == "every frame"
    assert loss.when(few.model_copy(update={"sent": 6, "received": 1})) == "scattered over the whole time, one by one"


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({}, {"elsewhere": 30}),
        ({"dut_input_drops": 10}, {"not handed to the DUT": 10, "elsewhere": 20}),
        ({"tester_drops": {"nic_missed": 30}}, {"tester: nic_missed": 30}),
        (
            {"tester_drops": {"no_buffer": 7, "kernel_socket": 0}, "corrupted": 3},
            {"tester: no_buffer": 7, "corrupted": 3, "elsewhere": 20},
        ),
        ({"dut_input_drops": 10, "corrupted": 90}, {"not handed to the DUT": 10, "corrupted": 20}),
        ({"late": 4}, {"later than the frame timeout": 4, "elsewhere": 30}),
        pytest.param({"dut_input_drops": 90}, {"not handed to the DUT": 30}, id="a port's counter has others' frames"),
        pytest.param(
            {"tester_drops": {"nic_missed": 20, "no_buffer": 20}, "dut_input_drops": 20, "late": 2},
            {"later than the frame timeout": 2, "tester: nic_missed": 20, "tester: no_buffer": 10},
            id="the tester's counters come before the DUT's",
        ),
    ],
)
def test_where(changes: dict[str, Any], places: dict[str, int]) -> None:
    assert loss.where(counts({50: 30}, 30, **changes)) == places


@pytest.mark.parametrize(
    ("counted", "late", "shown"),
    [(10, 0, 10), (130, 0, 100), pytest.param(130, 40, 60, id="late frames were handed over"), (0, 0, 0)],
)
def test_no_more_frames_are_not_handed_over_than_are_lost(counted: int, late: int, shown: int) -> None:
    as_written = {**to_json(plain_counts(received=900)), "dut_input_drops": counted, "late": late}
    read = DirectionCounts.model_validate(as_written)
    assert read.dut_input_drops == shown
    result = TrialResult(trial=1, verdict=Verdict.VALID, forward=read)
    assert losses(result)["forward"].dut_input_drops == shown
    assert all(count <= read.lost for count in loss.where(read).values())


def test_where_in_words() -> None:
    places = loss.where(counts({50: 30}, 30, dut_input_drops=10))
    assert loss.where_in_words(places, valid=True) == "10 not handed to the DUT, 20 in the DUT"
    assert loss.where_in_words(places, valid=False) == "10 not handed to the DUT, 20 unknown where"
    counted = {"queue_full": 1_800, "random": 2}
    assert loss.where_in_words(places, counted, valid=True) == "10 not handed to the DUT, 20 in the DUT"
    known = "20 not in the tester's counters (in the DUT's own:"
    for causes, said in ((counted, "1,800 queue full, 2 random"), ({}, "none")):
        assert loss.where_in_words(places, causes, valid=False) == f"10 not handed to the DUT, {known} {said})"


@pytest.mark.parametrize(
    ("lost", "causes", "words"),
    [
        (
            1_200,
            {"queue": 1_190, "every_nth": 10},
            "of 1,200 lost frames the DUT counts 1,200 itself: 1,190 queue, 10 every nth",
        ),
        (12, {"queue": 40}, "12 test frames are lost, and the DUT counts 40, others among them: 40 queue"),
        (12, {}, "of 12 lost frames the DUT counts 0 itself"),
        (12, None, ""),
        (0, {"queue": 3}, ""),
    ],
)
def test_counted_in_words(lost: int, causes: dict[str, int] | None, words: str) -> None:
    assert loss.counted_in_words(lost, causes) == words


def test_nothing_was_lost_nowhere() -> None:
    assert loss.where(CLEAN) == {}


@given(st.dictionaries(st.integers(0, 99), st.integers(1, 5)), st.integers(0, 50), st.integers(0, 50))
def test_every_lost_frame_is_somewhere(lost: dict[int, int], dropped: int, undelivered: int) -> None:
    one = counts(lost, tester_drops={"nic_missed": dropped}, dut_input_drops=undelivered)
    places = loss.where(one)
    assert sum(places.values()) == one.lost
    assert (loss.when(one) is None) == (one.lost == 0)
    assert places.get("elsewhere", 0) == max(0, one.lost - dropped - undelivered)


def test_a_simulated_outage_is_found_where_it_was() -> None:
    tester = SimulatedTester(SimulatedDut(outage_s=(0.25, 0.5)))
    result: TrialResult = tester.run(trial(1_000, duration_ns=2 * 10**9))
    assert result.verdict is Verdict.VALID
    assert loss.when(result.directions()[Direction.FORWARD]) == "from 0.25 s to 0.50 s, in runs of up to 250 frames"


def test_what_the_dut_asked_for_is_said_beside_the_loss() -> None:
    asked = UnansweredAddress(target="198.19.0.3", asker="198.19.0.1", requests=3)
    moved = MovedGateway(gateway="198.18.0.1", mac="02:00:00:00:00:03", messages=1)
    seen = {"right": NeighbourEvidence(requests=3, unanswered=(asked,)), "left": NeighbourEvidence(moved=(moved,))}
    result = TrialResult(trial=1, verdict=Verdict.VALID, forward=plain_counts(received=900), neighbours=seen)
    moves = "198.18.0.1 has the MAC address 02:00:00:00:00:03 by 1 message of the DUT"
    vain = "for which the tester does not answer (see seen_as and answers_for)"
    said = [
        f"right: the DUT asked for 198.19.0.3 (3 requests by 198.19.0.1), {vain}",
        f"left: {moves}, not the one to which frames were sent",
    ]
    assert loss.asked_in_words(result) == said
    assert losses(result)["forward"].sentence() == "; ".join(said)
    assert said[0] in no_forwarding(
        result.model_copy(update={"forward": plain_counts(received=0)}), plan().traffic.setup
    )
    assert loss.asked_in_words(TrialResult(trial=1, verdict=Verdict.VALID, forward=plain_counts())) == []


@pytest.mark.parametrize(
    ("forward", "reverse", "span_s"),
    [
        pytest.param({50: 700}, {50: 690}, 0.02, id="both at once"),
        pytest.param({50: 700}, {}, 0.02, id="one direction alone"),
        pytest.param({}, {}, None, id="nothing lost"),
        pytest.param({50: 1}, {50: 3}, None, id="so few may lie together by chance"),
        pytest.param({50: 700}, {60: 700}, None, id="two episodes"),
        pytest.param({20: 700, 50: 1}, {20: 700}, None, id="a loss besides"),
        pytest.param({98: 700}, {}, None, id="until the end: a queue that is full"),
        pytest.param(dict.fromkeys(range(40, 45), 100), {}, None, id="long"),
    ],
)
def test_one_short_episode(forward: dict[int, int], reverse: dict[int, int], span_s: float | None) -> None:
    found = loss.episode([counts(forward), counts(reverse)])
    assert found == (None if span_s is None else loss.Episode("one short episode", pytest.approx(span_s)))


ALL = CLEAN.sent // 100
"""Frames in a hundredth of the time."""


@pytest.mark.parametrize(
    ("lost", "longest_run", "is_outage"),
    [
        pytest.param(dict.fromkeys(range(40, 45), ALL), 5 * ALL, True, id="nothing for a while"),
        pytest.param(dict.fromkeys(range(60, 100), ALL), 40 * ALL, True, id="nothing until the end"),
        pytest.param(dict.fromkeys(range(30, 45), ALL) | {45: 3}, 15 * ALL, True, id="the first afterwards too"),
        pytest.param(dict.fromkeys(range(40, 45), ALL), ALL, False, id="now and then one came through"),
        pytest.param(dict.fromkeys(range(40, 45), ALL) | {80: 3}, 5 * ALL, False, id="others much later"),
        pytest.param(dict.fromkeys(range(100), ALL), 100 * ALL, True, id="all frames of the trial"),
        pytest.param({99: ALL}, ALL, True, id="it began with the last frames"),
        pytest.param({99: ALL}, ALL // 2, False, id="of the last frames a full queue let some through"),
    ],
)
def test_one_outage(lost: dict[int, int], longest_run: int, is_outage: bool) -> None:
    found = loss.episode([counts(lost, longest_run), counts()])
    assert found == (loss.Episode("one outage", pytest.approx(len(lost) * SENDING_S / 100)) if is_outage else None)


def test_frames_that_came_late_are_no_episode() -> None:
    assert loss.episode([counts({50: 700}, late=3)]) is None


def test_a_disturbance_may_have_lost_a_few_others_beside_an_outage() -> None:
    outage = dict.fromkeys(range(40, 45), ALL)
    beside = counts(outage | {80: 3}, 5 * ALL, late=1)
    assert (loss.episode([beside]), loss.episode([beside], disturbed=True) is not None) == (None, True)
    assert loss.episode([counts(outage | {80: ALL}, 5 * ALL)], disturbed=True) is None, "a sixth of all lost"


def test_checksums_that_hosts_refuse_are_told_beside_the_loss() -> None:
    one = plain_counts().model_copy(update={"zero_checksums": 2})
    assert beside.of_counts([one, one]) == "4 with the UDP checksum 0 over IPv6, which hosts discard"
