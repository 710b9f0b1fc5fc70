# SPDX-License-Identifier: Apache-2.0
"""The engine on every card that QEMU emulates: what a card does that a virtual cable does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from cards.bench import JOINED, SLOW_FPS, asked, bench, causes, refusal, set_up
from cards.machine import Guest
from dutperf.model import TrialResult, Verdict
from dutperf.setup.conditions import Usual
from dutperf.setup.ports import open_request
from dutperf.tester import TesterError
from plans import make_trial

pytestmark = pytest.mark.cards

LONGEST = {"e1000": 9216, "e1000e": 9216, "virtio": 9216, "vmxnet3": 9018}
"""Bytes, incl. FCS, of the longest frame that the tester and the emulated card have."""
TWO_QUEUES = ("e1000e", "vmxnet3")
"""Models that have more than one queue each way to send with, whatever their cable."""


@pytest.fixture
def links_up_again(guest: Guest) -> Iterator[Guest]:
    """A guest whose links a test takes down."""
    yield guest
    for card in range(2):
        guest.set_link(card, up=True)


def assert_every_frame_arrived(result: TrialResult) -> None:
    for counts in result.directions().values():
        assert counts.sent == counts.received == counts.intended
        assert counts.other_received == {}


def test_every_frame_arrives_as_it_was_meant(guest: Guest) -> None:
    with bench(guest) as ready:
        assert_every_frame_arrived(ready.run_valid())


def test_the_longest_frames_arrive(guest: Guest) -> None:
    size = LONGEST[guest.machine.model]
    with bench(guest, max_frame_size=size) as ready:
        assert_every_frame_arrived(ready.run_valid(500, frame_sizes=(size,)))


def test_an_engine_opens_its_cards_again_after_it_could_not(guest: Guest) -> None:
    """The first time a gateway is asked for that nobody has."""
    with asked(guest) as ask:
        with_gateway = {name: side | {"gateway4": side["ipv4"].replace(".2/24", ".1")} for name, side in JOINED.items()}
        lonely, joined = set_up(guest, with_gateway), set_up(guest)
        assert ask("open", **open_request(lonely, 1518), resolve_timeout_ms=300)["code"] == "no_answer"
        opened = ask("open", **open_request(joined, 1518))
        assert opened["event"] == "opened", opened
        trial = make_trial(joined, Usual(duration_s=1, drain_s=0.5), 64, SLOW_FPS, 1)
        result = ask("run", **trial.request())
    for direction in ("forward", "reverse"):
        assert result[direction]["received"] == result[direction]["sent"] == SLOW_FPS, result


def test_fillers_leave_and_are_counted(guest: Guest) -> None:
    """No more can be shown: the line of an emulated card does not keep time. Behind a cable all fillers come back."""
    with bench(guest) as ready:
        opened = ready.tester.environment()
        if not all(opened[side]["link_mbps"] for side in ("left", "right")):
            with pytest.raises(TesterError, match="fill needs the rate of the media"):
                ready.run(pacing="fill")
            return
        result = ready.run(100, pacing="fill")
    assert "fillers_forwarded" in causes(result)
    for counts in result.directions().values():
        line, transmitted = counts.line, counts.transmitted
        assert line is not None
        assert transmitted is not None
        assert line.mbps >= 1000
        assert 0 < line.forwarded + line.returned <= line.fillers
        assert "transmit_unaccounted" not in counts.tester_drops
        assert transmitted.handed_over == counts.sent + line.fillers
        assert transmitted.counted >= counts.received + line.forwarded
        assert set(counts.other_received) <= {"arp_request", "arp_reply"}


def test_two_queues(guest: Guest) -> None:
    if guest.machine.model == "virtio":  # whose number is that of its cable: test_networks.py
        assert "offers 1 receive and 1 transmit queue(s), not 2 of each" in str(refusal(guest, queues=2))
        return
    with bench(guest, queues=2) as ready:
        if guest.machine.model in TWO_QUEUES:
            assert_every_frame_arrived(ready.run_valid())
        else:
            assert_what_the_card_kept_is_the_testers_loss(ready.run())


def assert_what_the_card_kept_is_the_testers_loss(result: TrialResult) -> None:
    """DPDK's driver offers two queues to send with, the card has one: what goes to the other never
    leaves, and the driver says nothing."""
    assert result.verdict is Verdict.INVALID
    assert "tester_drops" in causes(result)
    for counts in result.directions().values():
        assert counts.tester_drops["transmit_unaccounted"] == counts.sent - counts.received > 0


def test_a_link_that_is_down_is_awaited_and_then_named(links_up_again: Guest) -> None:
    links_up_again.set_link(1, up=False)
    began_s = time.monotonic()
    refused = refusal(links_up_again, link_timeout_s=2)
    assert (refused.code, refused.field) == ("link_down", "right.port")
    assert "the link of the right port is down after 2000 ms" in str(refused)
    assert time.monotonic() - began_s >= 2


def test_a_link_that_comes_up_late_is_enough(links_up_again: Guest) -> None:
    links_up_again.set_link(1, up=False)
    with bench(links_up_again, link_timeout_s=60) as ready:
        timer = threading.Timer(3, links_up_again.set_link, (1,), {"up": True})
        timer.start()
        opened = ready.tester.environment()
        timer.join()
    assert opened["right"]["link_up"] is True


def test_a_link_that_flaps_in_a_trial_makes_it_invalid(links_up_again: Guest) -> None:
    def flap() -> None:
        links_up_again.set_link(0, up=False)
        time.sleep(0.3)
        links_up_again.set_link(0, up=True)

    with bench(links_up_again) as ready:
        result = ready.run_while(flap)
        assert result.verdict is Verdict.INVALID
        assert "link_down" in causes(result)
        assert result.link_down.left
        assert_every_frame_arrived(ready.run_valid())


def test_a_link_that_stays_down_makes_a_trial_invalid(links_up_again: Guest) -> None:
    with bench(links_up_again, link_timeout_s=1) as ready:
        result = ready.run_while(lambda: links_up_again.set_link(0, up=False))
        again = ready.run()
    for one in (result, again):
        assert one.verdict is Verdict.INVALID
        assert "link_down" in causes(one)


def test_a_card_that_is_taken_away_in_a_trial_makes_it_invalid(guest: Guest) -> None:
    """The kernel asks for the card back; a new trial then has no port."""
    with bench(guest) as ready:
        try:
            result = ready.run_while(lambda: guest.unplug(0))
            assert result.verdict is Verdict.INVALID
            assert "link_down" in causes(result)
            with pytest.raises(TesterError, match="the card of the left port was unplugged") as refused:
                ready.run()
            assert refused.value.field == "left.port"
        finally:
            guest.stop_engine()  # it holds the card until it ends
            guest.plug(0)
    with bench(guest) as ready:
        assert ready.tester.environment()["left"]["link_up"] is True
