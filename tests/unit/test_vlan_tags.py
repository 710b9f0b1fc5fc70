# SPDX-License-Identifier: Apache-2.0
"""What is said of VLAN tags that arrived."""

from __future__ import annotations

import pytest

from dutperf.model import ArrivedTags, DirectionCounts, OtherTags, TrialResult, Verdict, tags_in_words
from dutperf.results import beside
from plans import counts


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
