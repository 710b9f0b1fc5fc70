# SPDX-License-Identifier: Apache-2.0
"""Delays by the time stamps of two cards, whose clocks run apart, over namespaces. The kernel's side of cards is made
up (engine/tests/fake_cards.cpp): each stamp is the kernel's own, as the card's clock would have said it. So the true
delay between the stamps of each frame is known. Root only."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dutperf.engine.client import EngineCommand
from dutperf.lab.refdut import Properties, RefDut
from dutperf.model import DelaysFiles, Stamping, Tagged, TrialResult, Verdict
from dutperf.setup.conditions import Usual
from dutperf.tester import TesterError
from dutperf.traffic.ptp_messages import with_ptp
from fake_engines import engine_with_fake
from plans import make_trial
from stamped import clocks_of, stamps_of
from undisturbed import until, valid

from .measuring import Bench, bench
from .test_commands import dutperf
from .test_kernel_stamps import EVERY, TAGGED, delays, excess_us

pytestmark = [pytest.mark.root, pytest.mark.alone]
APART_PPM, APART_US = 100, 1e6
APART = "drift_ppm=60/-40 offset_ns=0/1000000000"
"""Of the cards: the right one's clock is a second ahead, and slower by 100 ppm."""
ROUNDED_US = 0.002
"""Stamps and what they are converted to are whole ns."""
SECONDS = 2e-6
"""Share of a delay: the tester and the fake each measure the speed of the counter."""
LEFT, RIGHT = 0, 1
WAYS = {"forward": (LEFT, RIGHT), "reverse": (RIGHT, LEFT)}
"""The ports from and to which frames go."""


@dataclass(frozen=True)
class Cards:
    """A lab with the engine, whose ports are fake cards."""

    ready: Bench
    directory: Path

    def run(self, *, frame: str | None = None, fps: int = 2_000, **members: Any) -> TrialResult:
        """A trial of a second, in which each frame has a stamp unless ``members`` say otherwise."""
        self.truth.write_text("")
        trial = make_trial(self.ready.setup, Usual(duration_s=1, drain_s=0.3, frame=frame), 128, fps, 1)
        files = DelaysFiles(**{way: str(self.delays_file(way)) for way in WAYS})
        stamped = {"stamps": "card", "delays_files": files, **(members or EVERY)}
        return self.ready.tester.run(with_ptp(trial.model_copy(update=stamped)))

    @property
    def truth(self) -> Path:
        """A file with all stamps by the tester's clock."""
        return self.directory / "truth"

    def delays_file(self, direction: str) -> Path:
        """A file with all delays of the last trial."""
        return self.directory / f"{direction}.npy"

    def delays_us(self, direction: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each delay of the last trial, and the time between the two stamps of its frame, in the order of arrival. Of
        several arrivals the first one counts."""
        lines = [line.split() for line in self.truth.read_text().splitlines()]
        port_from, port_to = WAYS[direction]
        left_ns = {frame: float(ns) for port, way, ns, frame in lines if (int(port), way) == (port_from, "sent")}
        true_ns: dict[str, float] = {}
        for port, way, ns, frame in lines:
            if (int(port), way) == (port_to, "received") and frame in left_ns:
                true_ns.setdefault(frame, float(ns) - left_ns[frame])
        return np.load(self.delays_file(direction))["delay_ns"] / 1e3, np.array(list(true_ns.values())) / 1e3


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[Cards]]:
    """A lab, by default a cable, with cards as ``words`` describe them."""

    @contextlib.contextmanager
    def bring_up(words: str, lab: str = "loopback") -> Iterator[Cards]:
        monkeypatch.setenv("DUTPERF_FAKE_CARDS", words)
        with bench(lab, kind="af_packet") as ready:
            yield Cards(ready, tmp_path)

    monkeypatch.setenv("DUTPERF_ENGINE", str(engine_with_fake("cards", EngineCommand.find())))
    monkeypatch.setenv("DUTPERF_FAKE_CARDS_TRUTH", str(tmp_path / "truth"))
    return bring_up


BringUp = Callable[..., contextlib.AbstractContextManager[Cards]]


def codes(result: TrialResult) -> set[str]:
    return {cause.code for cause in result.causes}


def compared_closely(result: TrialResult) -> bool:
    """Whether the tester read the clocks without being interrupted each time."""
    return all(clocks_of(counts).error_us < 10 for counts in result.directions().values())


def checked(measured: Cards, **members: Any) -> TrialResult:
    """A trial of which no delay is wrong by more than the error that its result states, valid or not."""
    result = measured.run(**members)
    for direction, counts in result.directions().items():
        delays_us, true_us = measured.delays_us(direction)
        assert len(delays_us) == len(true_us) == stamps_of(counts).both == delays(counts).frames > 0
        assert (abs(delays_us - true_us) - SECONDS * true_us).max() <= clocks_of(counts).error_us + ROUNDED_US
        assert stamps_of(counts).impossible == 0
    return result


@pytest.mark.parametrize(
    "answers",
    [
        "compared=precise",
        "compared=extended",
        pytest.param("compared=plain", marks=pytest.mark.long),
        pytest.param("unanswered_every=3", marks=pytest.mark.long),
    ],
)
def test_two_clocks_that_run_apart_change_no_delay_by_more_than_the_stated_error(cards: BringUp, answers: str) -> None:
    began_s = time.monotonic()
    with cards(f"{APART} {answers}") as measured:
        result = until(lambda: checked(measured), compared_closely)
        most_us = APART_PPM * (time.monotonic() - began_s)
    for sign, counts in zip((1, -1), result.directions().values(), strict=True):
        both = clocks_of(counts)
        assert (stamps_of(counts).both, stamps_of(counts).missing) == (counts.received, 0)
        assert {both.sending.name, both.receiving.name} == {"ptp80", "ptp81"}
        assert both.drift_ppm * sign == pytest.approx(-APART_PPM, abs=3)
        assert -most_us <= both.offset_us * sign - APART_US + both.error_us <= 2 * both.error_us
        assert both.step_us == 0


@pytest.mark.parametrize("delay_ms", [pytest.param(1, marks=pytest.mark.long), 20])
def test_a_known_delay_is_read_by_two_clocks_that_run_apart(cards: BringUp, delay_ms: float) -> None:
    with cards(APART, "refdut-ipv4") as measured:
        dut = RefDut(Path(str(measured.ready.setup.dut.control)))

        def excess() -> float:
            dut.configure(Properties(delay_ms=delay_ms))
            return excess_us(checked(measured), dut.counters())

        until(excess, lambda by_us: by_us < 40)


def test_stamps_by_one_clock_are_no_longer_for_its_drift(cards: BringUp) -> None:
    """A delay is in the tester's seconds whether one card has both ports or not."""
    with cards("one_clock drift_ppm=100", "refdut-ipv4") as measured:
        RefDut(Path(str(measured.ready.setup.dut.control))).configure(Properties(delay_ms=20))
        result = measured.run()
        for direction, counts in result.directions().items():
            delays_us, true_us = measured.delays_us(direction)
            both = clocks_of(counts)
            wrong_us = (abs(delays_us - true_us) - SECONDS * true_us).max()
            assert wrong_us <= both.error_us + ROUNDED_US
            assert wrong_us < 0.5 < APART_PPM * 1e-6 * true_us.min()
            assert 0 < both.error_us < 10
            assert (both.sending.name, both.receiving.name, both.offset_us, both.drift_ppm) == ("ptp80", "ptp80", 0, 0)


@pytest.mark.parametrize(("steps_ns", "step_us"), [("0/1000000", 1_000), ("-100000/0", -100)])
def test_a_clock_that_is_set_during_a_trial_makes_it_invalid(cards: BringUp, steps_ns: str, step_us: float) -> None:
    with cards(f"{APART} step_ns={steps_ns} step_after_s=0.8") as measured:
        result = measured.run()
        until(measured.run, lambda later: "card_clock" not in codes(later))
    assert result.verdict is Verdict.INVALID
    texts = [cause.text for cause in result.causes if cause.code == "card_clock"]
    assert len(texts) == 2
    assert all("was set by" in text for text in texts)
    for counts in result.directions().values():
        assert clocks_of(counts).step_us == pytest.approx(step_us, abs=10)
        assert clocks_of(counts).error_us > abs(step_us) - 10


def test_few_frames_without_a_stamp_are_counted_by_name(cards: BringUp) -> None:
    with cards(f"{APART} unstamped_sent=250 unstamped_received=400") as measured:
        result = checked(measured)
        assert "missing_stamps" not in codes(result)
        for direction, counts in result.directions().items():
            one = stamps_of(counts)
            assert 7 <= one.no_transmit <= 9
            assert 4 <= one.no_receive <= 6
            assert one.both + one.missing == counts.stamped_received
            assert measured.delays_us(direction)[0].min() > 0


@pytest.mark.parametrize(
    ("words", "missing"), [("unstamped_sent=50", "no_transmit"), ("unstamped_received=50", "no_receive")]
)
def test_many_frames_without_a_stamp_make_a_trial_invalid(cards: BringUp, words: str, missing: str) -> None:
    with cards(f"{APART} {words}") as measured:
        result = checked(measured)
    assert "missing_stamps" in codes(result)
    for counts in result.directions().values():
        assert getattr(stamps_of(counts), missing) == stamps_of(counts).missing > 0.015 * counts.stamped_received


def test_a_card_that_stamps_one_frame_at_a_time_is_for_few_tags(cards: BringUp) -> None:
    with cards(f"{APART} latch_us=700") as measured:
        every = measured.run()
        valid(lambda: checked(measured, **TAGGED))
    texts = [cause.text for cause in every.causes if cause.code == "missing_stamps"]
    assert len(texts) == 2
    assert all("many cards stamp one frame at a time, so take fewer tags" in text for text in texts)


def test_no_stamp_is_that_of_another_frame(cards: BringUp) -> None:
    with cards(f"{APART} unstamped_sent=60 unstamped_received=70", "refdut-ipv4") as measured:
        RefDut(Path(str(measured.ready.setup.dut.control))).configure(
            Properties(delay_ms=1, loss=0.05, duplicate_every=100, reorder_every=50)
        )
        result = checked(measured)
    for counts in result.directions().values():
        assert min(counts.lost, counts.duplicates, counts.out_of_order, stamps_of(counts).missing) > 10
        assert stamps_of(counts).both + stamps_of(counts).missing == counts.stamped_received


@pytest.mark.parametrize(
    ("lab", "words"),
    [("kernel-ipv4", "driver=ptp"), ("kernel-ipv6", "driver=narrows"), ("refdut-siit", "driver=ptp")],
)
def test_cards_that_stamp_ptp_alone_stamp_messages_in_place_of_tagged_frames(
    cards: BringUp, words: str, lab: str
) -> None:
    with cards(f"{APART} {words}", lab) as measured:
        result = valid(lambda: checked(measured, **TAGGED))
    for counts in result.directions().values():
        assert counts.ptp
        assert (stamps_of(counts).both, stamps_of(counts).missing, counts.stamped_received) == (200, 0, 200)
        assert (counts.sent, counts.lost, counts.out_of_order, counts.corrupted) == (2_000, 0, 0, 0)


@pytest.mark.parametrize("frame", ["vlan(id=7)/ip/udp", "eth", "ip/gre/ip/udp"])
def test_messages_of_ptp_have_the_headers_of_the_frames_up_to_ip(cards: BringUp, frame: str) -> None:
    with cards(f"{APART} driver=ptp") as measured:
        result = valid(lambda: checked(measured, frame=frame, **TAGGED))
    assert all(counts.ptp and stamps_of(counts).both == 200 for counts in result.directions().values())


def test_no_message_of_ptp_has_the_stamp_of_another(cards: BringUp) -> None:
    with cards(f"{APART} driver=ptp unstamped_sent=60 unstamped_received=70", "refdut-ipv4") as measured:
        RefDut(Path(str(measured.ready.setup.dut.control))).configure(
            Properties(delay_ms=1, loss=0.05, duplicate_every=100, reorder_every=50)
        )
        result = checked(measured, fps=5_000, stamping=Stamping.TAGGED, tagged=Tagged(count=1_000, after_ns=0))
    for counts in result.directions().values():
        assert min(counts.lost, counts.duplicates, counts.out_of_order, stamps_of(counts).missing) > 10
        assert stamps_of(counts).both + stamps_of(counts).missing == counts.stamped_received


def test_cards_that_stamp_every_frame_stamp_the_test_frames(cards: BringUp) -> None:
    with cards(APART) as measured:
        result = valid(lambda: measured.run(**TAGGED))
    assert not any(counts.ptp for counts in result.directions().values())


REFUSALS = {
    "driver=ptp": r"the driver veth of \w+, the left port, does not stamp every frame that it receives"
    r" \(none, ptpv2-event\), but messages of PTP, which may be the tagged frames of latency: leave stamps at kernel",
    "driver=narrows": r"the driver veth of \w+, the left port, does not stamp every frame that it receives"
    r" \(ptpv2-event\), but messages of PTP, which may be the tagged frames of latency: leave stamps at kernel or loop",
    "driver=sends_none": r"the driver veth of \w+, the left port, was asked for stamps of sent frames and makes none",
    "driver=locked": r"the driver veth of \w+, the left port, lets only root switch time stamps on",
    "no_access": r"/dev/ptp80, the clock of \w+, the left port, cannot be opened \(Permission denied\): run as root",
    "compared=none": r"/dev/ptp80, the clock of \w+, the left port, cannot be read: leave stamps at kernel or loop",
}


@pytest.mark.parametrize("words", REFUSALS)
def test_what_a_card_cannot_do_is_said_in_one_sentence(cards: BringUp, words: str) -> None:
    with cards(words) as measured, pytest.raises(TesterError, match=REFUSALS[words]) as caught:
        measured.run()
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "stamps")


@pytest.fixture
def clock_writer() -> Iterator[int]:
    """The process of a program that has a clock open for writing: a file of that name, which is there for it alone."""
    script = "mount -t tmpfs none /dev && exec sleep 60 9> /dev/ptp81"
    program = subprocess.Popen(["unshare", "--mount", "sh", "-c", script])
    opened = Path(f"/proc/{program.pid}/fd/9")
    try:
        while not opened.is_symlink():
            assert program.poll() is None
            time.sleep(0.01)
        yield program.pid
    finally:
        program.kill()
        program.wait()


def test_a_program_that_may_set_a_clock_is_named(cards: BringUp, clock_writer: int) -> None:
    refusal = rf"sleep \(process {clock_writer}\) may set /dev/ptp81, the clock of \w+, the right port: end it"
    with cards(APART) as measured, pytest.raises(TesterError, match=refusal) as caught:
        measured.run()
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "stamps")


def test_a_report_names_both_clocks_and_the_messages_of_ptp(cards: BringUp, tmp_path: Path) -> None:
    trials = ("--rate", "1000", "--duration", "1", "--drain", "0.2", "--repetitions", "1", "--frame-sizes", "84")
    out = ("--verbose", "--out", str(tmp_path / "out"))
    with cards(f"{APART} driver=ptp"):  # for its environment
        done = dutperf("latency", "--lab", "loopback", "--stamps", "card", *trials, *out)
    told = " ".join((done.stdout + done.stderr).split())
    assert "frames have time stamps of sending and receiving" in told
    apart = r"±[\d.]+ µs; they were (\d\.\d+) s apart; they ran 100\.0 ppm apart"
    found = re.search(rf"ptp80 \(card, PTP only\) to ptp81 \(card, PTP only\), {apart}", told)
    assert found is not None, told
    assert float(found[1]) == pytest.approx(1, abs=0.001)
    assert "tagged frames are messages of PTP between fixed addresses, as a card stamps no others" in told
