# SPDX-License-Identifier: Apache-2.0
"""Losses while the DUT asks for an address that nobody has, or while it has another MAC address: whose they are."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from dutperf.engine.client import EngineCommand, EngineTester, Patience
from dutperf.judge import validity
from dutperf.judge.unanswered import NUMBER_AWAY, Finding, Unrelated, finding_of, lasting, probe_of
from dutperf.model import (
    AddressConflict,
    Cause,
    Direction,
    LinkState,
    MovedGateway,
    NeighbourEvidence,
    Question,
    Stamping,
    TrialResult,
    UnansweredAddress,
    Verdict,
)
from dutperf.procedures import evidence as of_trials
from dutperf.results.loss import asked_in_words
from fakes import fake_engine
from plans import counts, stream, trial

FORWARD, REVERSE = Direction.FORWARD, Direction.REVERSE
PATIENT = Patience(start_s=60, open_s=60, answer_s=60, trial_s=60, stop_s=30)


def asked(*targets: str, others: int = 0) -> NeighbourEvidence:
    each = tuple(UnansweredAddress(target=one, asker="198.19.0.1", requests=2) for one in targets)
    return NeighbourEvidence(requests=2 * len(each) + others, unanswered=each)


MOVED = NeighbourEvidence(moved=(MovedGateway(gateway="198.18.0.1", mac="02:00:00:00:00:03", messages=1),))


def codes(forward: int, evidence: dict[str, NeighbourEvidence], **question: Any) -> set[tuple[str, Direction | None]]:
    """Causes of a trial with so many received frames of a thousand forward, and all of them reverse."""
    counted = {FORWARD: counts(received=forward), REVERSE: counts()}
    asked_trial = trial(question=Question(**question))
    _, causes = validity.judge(asked_trial, counted, neighbours=evidence)
    return {(cause.code, cause.direction) for cause in causes}


def test_a_loss_while_the_dut_asks_in_vain_is_not_proven_to_be_its_own() -> None:
    assert codes(500, {"right": asked("198.19.0.3")}) == {("unanswered", FORWARD)}
    assert codes(500, {"left": asked("198.19.0.3")}) == set()  # where no lost frame had to go
    assert codes(1000, {"right": asked("198.19.0.3")}) == set()
    assert codes(500, {"right": asked("198.19.0.3")}, tolerated_loss=0.5) == set()


def test_a_loss_while_the_gateway_moves_is_not_proven_to_be_the_duts() -> None:
    assert codes(500, {"left": MOVED}) == {("dut_moved", FORWARD)}
    assert codes(500, {"right": MOVED}) == set()
    assert codes(1000, {"left": MOVED}) == set()


def test_a_gateway_mac_that_is_not_the_gateways_is_a_cause_where_nothing_arrives() -> None:
    """A router may forward frames to another MAC address than the one by which it answers, as VRRP's."""
    [one] = MOVED.moved
    given = {"left": NeighbourEvidence(moved=(one.model_copy(update={"given": "02:12:34:56:78:9a"}),))}
    assert codes(0, given) == {("gateway_mac", FORWARD)}
    assert codes(1, given) == codes(1000, given) == set()
    _, [cause] = validity.judge(trial(reverse=None), {FORWARD: counts(received=0)}, neighbours=given)
    assert cause.lasts
    for text in (
        "frames go to 02:12:34:56:78:9a, but 198.18.0.1 has the MAC address 02:00:00:00:00:03",
        "left.gateway_mac",
    ):
        assert text in cause.text


def conflict(address: str, *, of_gateway: bool) -> NeighbourEvidence:
    one = AddressConflict(
        address=address, of_gateway=of_gateway, holder="02:00:00:00:00:02", mac="02:00:00:00:00:03", messages=1
    )
    return NeighbourEvidence(conflicts=(one,))


@pytest.mark.parametrize(
    ("port", "other", "address", "of_gateway", "whose"),
    [
        ("right", "left", "198.19.0.2", False, "the right port's own address"),
        ("left", "right", "198.18.0.1", True, "the gateway of the left port"),
    ],
)
def test_a_loss_while_two_stations_have_an_address_is_not_proven_to_be_the_duts(
    port: str, other: str, address: str, of_gateway: bool, whose: str
) -> None:
    evidence = conflict(address, of_gateway=of_gateway)
    assert codes(500, {port: evidence}) == {("address_conflict", FORWARD)}
    assert codes(500, {other: evidence}) == set()
    assert codes(1000, {port: evidence}) == set()
    _, [cause] = validity.judge(trial(reverse=None), {FORWARD: counts(received=0)}, neighbours={port: evidence})
    assert (
        f"another station, MAC address 02:00:00:00:00:03, claims {address}, {whose} (02:00:00:00:00:02)" in cause.text
    )


def test_a_station_with_an_address_of_a_range_has_none_of_the_ports_own() -> None:
    [one] = conflict("198.19.7.7", of_gateway=False).conflicts
    of_range = {"right": NeighbourEvidence(conflicts=(one.model_copy(update={"of_range": True}),))}
    assert codes(500, of_range) == {("address_conflict", FORWARD)}
    _, [cause] = validity.judge(trial(reverse=None), {FORWARD: counts(received=0)}, neighbours=of_range)
    assert "claims 198.19.7.7, an address for which the right port answers (02:00:00:00:00:02)" in cause.text
    assert "own address" not in cause.text


@pytest.mark.parametrize("port", ["left", "right"])
def test_a_dut_that_has_an_address_of_the_tester_forwards_nothing(port: str) -> None:
    [one] = conflict("198.18.0.2", of_gateway=False).conflicts
    held = {port: NeighbourEvidence(conflicts=(one.model_copy(update={"by_dut": True}),))}
    assert codes(0, held) == {("own_address", FORWARD)}
    assert codes(500, held) == codes(1000, held) == set()
    _, [cause] = validity.judge(trial(reverse=None), {FORWARD: counts(received=0)}, neighbours=held)
    assert f"has 198.18.0.2, the {port} port's own address" in cause.text
    assert of_trials.is_refused(result(0, held, causes=("own_address",)))
    with_words = result(0, held, causes=("own_address",))
    assert f"{port}: the DUT, MAC address 02:00:00:00:00:03, has 198.18.0.2" in asked_in_words(with_words)[0]


def test_the_cause_says_which_address_and_what_to_change() -> None:
    counted = {FORWARD: counts(received=0)}
    evidence = {"right": asked("198.19.0.3", "fe80::2", others=7)}
    _, [cause] = validity.judge(trial(reverse=None), counted, neighbours=evidence)
    for text in (
        "1,000 frames were lost",
        "198.19.0.3 (2 requests by 198.19.0.1), fe80::2 (2 requests by 198.19.0.1), others (7 requests)",
        "right.answers_for",
    ):
        assert text in cause.text
    assert not cause.lasts


def test_a_dut_that_looks_for_the_sender_where_frames_should_arrive_has_its_ports_exchanged() -> None:
    counted = {FORWARD: counts(received=0)}
    for target, is_exchanged in (("2001:2::2", True), ("2001:2::3", False)):
        _, [cause] = validity.judge(trial(reverse=None), counted, neighbours={"right": asked(target)})
        assert ("The left port has it: the two ports are exchanged" in cause.text) is is_exchanged
        assert ("answers_for" in cause.text) is not is_exchanged


def result(
    received: int, evidence: dict[str, NeighbourEvidence], sent: int = 1000, causes: tuple[str, ...] = ("unanswered",)
) -> TrialResult:
    return TrialResult(
        trial=1,
        verdict=Verdict.INVALID if causes else Verdict.VALID,
        causes=tuple(Cause(code=code, text=code, direction=FORWARD) for code in causes),
        forward=counts(sent=sent, received=received),
        neighbours=evidence,
    )


FINDINGS = [
    ("few frames are lost too", 125, asked("198.19.0.3"), Finding.LASTING),
    ("few frames are lost too, but nothing is asked for", 125, None, Finding.NOTHING),
    ("few frames pass while it asks", 250, asked("198.19.0.3"), Finding.UNRELATED),
    ("few frames pass", 250, None, Finding.UNRELATED),
    ("few frames are lost while it asks for another", 125, asked("198.19.0.4"), Finding.NOTHING),
]


@pytest.mark.parametrize(("received", "seen", "found"), [row[1:] for row in FINDINGS], ids=[row[0] for row in FINDINGS])
def test_few_frames_show_what_the_loss_has_to_do_with_the_address(
    received: int, seen: NeighbourEvidence | None, found: Finding
) -> None:
    probed = result(received, {} if seen is None else {"right": seen}, sent=250)
    assert finding_of(result(500, {"right": asked("198.19.0.3")}), probed) is found


LASTING = [
    ("few frames are lost too", "fragments", 500, 0.0, ("fragments",), True),
    ("few frames are lost too, in a valid trial", "icmp_errors", 500, 0.0, (), False),
    ("few frames are lost too, for another reason", "icmp_errors", 500, 0.0, ("fragments",), True),
    ("few frames are lost too, perhaps by the tester", "fragments", 500, 0.0, ("receiver_stall",), False),
    ("as few as are tolerated", "returned", 500, 0.5, (), False),
    ("few frames pass", "drain", 1000, 0.0, (), False),
    ("far fewer are lost", "multiplied", 990, 0.0, (), False),
    ("far fewer are lost, but the same is seen", "multiplied", 990, 0.0, ("multiplied",), True),
    ("the other station is still there", "address_conflict", 500, 0.0, ("address_conflict",), True),
    ("the other station is gone", "address_conflict", 500, 0.0, (), False),
    ("tags are still other ones, and nothing is lost", "vlan_tags", 1000, 0.0, ("vlan_tags",), True),
    ("frames still go elsewhere, and nothing is lost", "destinations", 1000, 0.0, ("destinations",), True),
    ("tags are right of few frames", "vlan_tags", 1000, 0.0, (), False),
    ("the router has moved", "dut_moved", 500, 0.0, ("dut_moved",), False),
]


@pytest.mark.parametrize(
    ("code", "received", "tolerated", "shown", "lasts"), [row[1:] for row in LASTING], ids=[row[0] for row in LASTING]
)
def test_few_frames_show_whether_the_test_setup_loses_frames_at_any_rate(
    code: str, received: int, tolerated: float, shown: tuple[str, ...], lasts: bool
) -> None:
    measured = trial(question=Question(tolerated_loss=tolerated))
    lossy = result(400, {}, causes=(code,))
    assert (probe_of(measured, lossy) is not None) == (code != "dut_moved")
    found = lasting(measured, lossy, result(received, {}, causes=shown))
    assert [cause.code for cause in found] == ([code] if lasts else [])


def test_where_nothing_arrives_a_search_tries_few_frames_itself() -> None:
    assert probe_of(trial(), result(0, {}, causes=("icmp_errors",))) is None


def test_a_small_loss_is_not_expected_in_few_frames() -> None:
    lossy = result(999, {"right": asked("198.19.0.3")})
    assert finding_of(lossy, result(250, {}, sent=250)) is Finding.NOTHING
    assert finding_of(lossy, result(250, {"right": asked("198.19.0.3")}, sent=250)) is Finding.UNRELATED


def test_a_probe_has_few_frames_of_the_same_kinds_and_another_number() -> None:
    measured = trial(100_000, number=3, stamping=Stamping.EVERY, frame_timeout_ns=10**6)
    probe = probe_of(measured, result(500, {"right": asked("198.19.0.3")}))
    assert probe is not None
    assert (probe.trial, probe.stamping, probe.frame_timeout_ns) == (3 + NUMBER_AWAY, Stamping.NONE, None)
    assert probe.forward is not None
    assert measured.forward is not None
    assert (probe.forward.rate_fps, probe.forward.foreground) == (250, measured.forward.foreground)
    assert probe.request()["trial"] == probe.trial


def test_nothing_is_probed_without_reason() -> None:
    lossy = result(500, {"right": asked("198.19.0.3")})
    silent = lossy.model_copy(update={"dut_answered": LinkState(left=True, right=False)})
    assert probe_of(trial(), result(500, {}, causes=("sender_late",))) is None
    assert probe_of(trial(), lossy.model_copy(update={"verdict": Verdict.ABORTED})) is None
    assert probe_of(trial(), silent) is None


def test_an_address_without_a_loss_is_known_to_be_unrelated() -> None:
    unrelated = Unrelated()
    unrelated.note(result(1000, {"right": asked("198.19.0.9"), "left": asked("198.18.0.9")}, causes=()))
    left = unrelated.without({"right": asked("198.19.0.9", "198.19.0.3", others=5)})
    assert left == {"right": asked("198.19.0.3", others=5)}
    assert unrelated.known == {("right", "198.19.0.9")}  # no frame had to go to the left


def run(behaviour: str, number: int = 1, **streams: Any) -> list[TrialResult]:
    with EngineTester(EngineCommand(behaviour, (sys.executable, fake_engine.__file__)), {}, PATIENT) as tester:
        return [tester.run(trial(**{"reverse": None, **streams}, number=one)) for one in range(number)]


def test_a_next_hop_that_nobody_is_makes_all_trials_invalid() -> None:
    [found] = run("AsksInVain")
    assert found.verdict is Verdict.INVALID
    [cause] = found.causes
    assert (cause.code, cause.lasts) == ("unanswered", True)
    assert "at 100 frames/s" in cause.text
    assert (found.neighbours or {})["right"].unanswered[0].target == "198.19.0.3"
    assert TrialResult.model_validate_json(found.model_dump_json()) == found


def test_a_dut_that_fragments_frames_at_any_rate_makes_all_trials_invalid() -> None:
    [found] = run("Fragments")
    [cause] = found.causes
    assert (cause.code, cause.lasts) == ("fragments", True)
    assert "(at 100 frames/s frames are lost too)" in cause.text


def test_the_rate_of_both_directions_is_told_once() -> None:
    [found] = run("Fragments", reverse=stream(4, 64, 1000))
    assert {"(at 100 frames/s frames are lost too)" in cause.text for cause in found.causes} == {True}


@pytest.mark.parametrize("behaviour", ["AsksForItsTimeServer", "AsksOnce"])
def test_a_dut_that_asks_for_something_else_loses_its_own_frames(behaviour: str) -> None:
    for found in run(behaviour, 2):
        assert (found.verdict, found.causes) == (Verdict.VALID, ())
        assert found.forward is not None
        assert found.forward.lost == 500


def test_what_is_certain_to_last_needs_no_probe_and_is_no_figure() -> None:
    """Where another cause only may be why no frame arrives, the DUT forwards nothing."""
    for received in (0, 500):
        known = result(received, {}, causes=("taken_address",))
        certain = known.model_copy(
            update={"causes": tuple(one.model_copy(update={"lasts": True}) for one in known.causes)}
        )
        assert probe_of(trial(), certain) is None
        assert of_trials.does_not_fit(certain)
        assert not of_trials.forwards_nothing(certain)
        assert of_trials.invalidity(certain).startswith("no trial can be valid with this test setup")
    assert of_trials.forwards_nothing(result(0, {}, causes=("icmp_errors",)))
