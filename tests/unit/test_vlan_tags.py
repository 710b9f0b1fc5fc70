# SPDX-License-Identifier: Apache-2.0
"""What is said of VLAN tags that arrived."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf import traffic
from dutperf.judge.unasked import with_unasked
from dutperf.model import (
    ArrivedTags,
    DirectionCounts,
    LinkState,
    OtherTags,
    TrialResult,
    UnaskedTags,
    Verdict,
    tags_in_words,
)
from dutperf.results import beside
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.ports import open_request
from plans import counts, make_trial


def result(forward: DirectionCounts) -> TrialResult:
    return TrialResult(trial=1, verdict=Verdict.VALID, forward=forward)


@pytest.mark.parametrize(
    ("tags", "words"),
    [("", "no VLAN tag"), ("8100000a", "VLAN 10"), ("88a800648100000a", "VLAN 100 (type 0x88a8) / VLAN 10")],
)
def test_tags_in_words(tags: str, words: str) -> None:
    assert tags_in_words(tags) == words


def test_frames_with_other_tags_are_told_beside_the_loss() -> None:
    other = counts(vlan_tags=ArrivedTags(other=7, seen=(OtherTags(tags="", frames=7),)))
    assert beside.of_counts([other, other]) == "14 with other VLAN tags"


def test_tags_that_are_not_compared_are_told() -> None:
    text = (
        "forward: the VLAN tags of arriving frames were not compared: AF_XDP does not see the outer one at the right"
        " port (af_packet: does)"
    )
    hidden = result(counts(vlan_tags=ArrivedTags(hidden=True)))
    assert list(beside.of_trial(hidden)) == [text]
    assert beside.of_run([hidden, hidden]) == (text,)
    assert beside.of_run([result(counts())]) == ()


def hints(frame: str | None = None, *, arrived: int = 0, answered: bool = True, **left: Any) -> list[str]:
    """What is said beside the loss of all frames with these headers, and a left port that has these keys too."""
    side = {"port": "a", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"} | left
    other = {"port": "b", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
    setup = configuration.parse({"left": side, "right": other}, origin="test")
    chosen = SingleTrial(frame_sizes=(128,), duration_s=1, directions="forward", frame=frame)
    conditions = traffic.of(setup, chosen).sized()
    planned = make_trial(setup, conditions, 128, 1000, 1)
    lost = result(counts(1000, arrived)).model_copy(update={"dut_answered": LinkState(left=answered, right=True)})
    found = with_unasked(lost, planned, open_request(setup, 1518))
    assert found.verdict is Verdict.VALID, "it is a hint"
    assert beside.of_run([found, found]) == tuple(beside.of_trial(found))
    return list(beside.of_trial(found))


WITHOUT_TAG = "but at the left port the DUT answered ARP or Neighbour Discovery with no VLAN tag: it may not have"
OTHERWISE_ASKED: list[tuple[str | None, dict[str, Any], str]] = [
    ("vlan(id=100)/ip/udp", {}, f"frames carry VLAN 100, {WITHOUT_TAG} their VLAN"),
    ("vlan(id=7,type=0x88a8)/vlan(id=100)/ip/udp", {}, f"frames carry VLAN 7 (type 0x88a8), {WITHOUT_TAG} their VLAN"),
    ("vlan(id=100)/ip/udp", {"vlans": [200, 300]}, "the DUT answered ARP or Neighbour Discovery with VLAN 200 or VLAN"),
    (None, {"vlans": [100]}, "frames carry no VLAN tag, but at the left port the DUT answered ARP or Neighbour"),
    (
        "vlan(id=100)/ip/udp",
        {"gateway_mac": "02:00:00:00:00:01"},
        "frames carry VLAN 100, and at the left port the DUT was not asked whether it has that (gateway_mac)",
    ),
]


@pytest.mark.parametrize(("frame", "left", "words"), OTHERWISE_ASKED)
def test_a_dut_that_may_not_have_the_vlan_of_frames_that_were_all_lost(
    frame: str | None, left: dict[str, Any], words: str
) -> None:
    [text] = hints(frame, **left)
    assert text.startswith("forward: nothing arrived: ")
    assert words in text
    assert hints(frame, arrived=1, **left) == [], "it has the VLAN"
    assert hints(frame, answered=False, **left) == [], "it is not there at all"


@pytest.mark.parametrize(
    ("frame", "left"),
    [
        (None, {}),
        ("ip/udp", {}),
        ("vlan(id=0,pcp=5)/ip/udp", {}),
        ("vlan(id=100)/ip/udp", {"vlans": [100]}),
        ("vlan(id=200)/vlan(id=5)/ip/udp", {"vlans": [100, 200]}),
        (None, {"gateway_mac": "02:00:00:00:00:01"}),
    ],
)
def test_nothing_is_said_of_tags_with_which_the_dut_was_asked(frame: str | None, left: dict[str, Any]) -> None:
    assert hints(frame, **left) == []


def test_of_a_run_in_which_some_frames_arrived_nothing_is_said_of_tags() -> None:
    lost = result(counts(1000, 0, vlan_tags=ArrivedTags(unasked=UnaskedTags(sent=("81000064",), asked=("",)))))
    assert not any("VLAN" in text for text in beside.of_run([lost, result(counts(1000, 1))]))
