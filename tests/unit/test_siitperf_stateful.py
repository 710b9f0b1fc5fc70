# SPDX-License-Identifier: Apache-2.0
"""siitperf's stateful tests: which connections there are, the phases of the trial, the lines that are
printed, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dutperf.model import (
    Cause,
    ConnectionCounts,
    ConnectionOrder,
    ConnectionUse,
    FieldMode,
    Opening,
    ResponderOrder,
    Trial,
    TrialResult,
    Verdict,
)
from dutperf.setup import configuration
from dutperf.setup.conditions import Rate, SingleTrial
from dutperf.siitperf import commands, convert, setup
from dutperf.siitperf.configuration import InputError, Settings, parse
from dutperf.tester import ProgressCallback
from plans import counts, make_trial
from siitperf_files import ENUMERATED, ROUTER, TRANSLATOR, with_lines
from siitperf_plans import VETHS, WITH_CORES, plan

WORDS = "84 1000 2 300 2 2 4000 4000 1000 500 5000"
IPS = ("IP-L-var 3", "IP-L-min 10", "IP-L-max 19", "IPv4-L-offset 2")


def settings(*lines: str, text: str = ROUTER) -> Settings:
    """A stateful test with the Initiator on the left and 10,000 combinations, and ``lines``."""
    return parse(with_lines(with_lines(text, "Stateful 1", *ENUMERATED["Fwd"]), *lines))


def phases_of(words: str = WORDS, *lines: str, text: str = ROUTER) -> tuple[Any, Trial]:
    """The preliminary phase and the test itself."""
    trial = plan(words=words, settings=settings(*lines, text=text)).trial
    [opening] = trial.preliminary
    return opening, trial


def test_the_arguments_are_the_phases() -> None:
    opening, trial = phases_of("84 1000 2 300 2 2 4000 3000 1000 500 5000")
    assert opening.connections.use is ConnectionUse.OPEN
    assert (opening.trial, trial.trial) == (1, 2)
    assert (opening.rest_ns, opening.duration_ns, opening.drain_ns) == (2 * 10**9, 4 * 10**9, 5 * 10**8)
    assert (opening.forward.rate_fps, opening.reverse) == (1000, None)
    assert Trial(**dict(opening)).intended(next(iter(opening.streams()))) == 4000
    assert (trial.rest_ns, trial.duration_ns, trial.drain_ns) == (5 * 10**8, 2 * 10**9, 3 * 10**8)
    assert trial.connections is not None
    assert (trial.connections.use, trial.connections.count, trial.connections.entries) == ("traffic", 4000, 3000)
    assert set(trial.streams()) == {"forward", "reverse"}


def test_the_initiator_may_be_on_the_right() -> None:
    lines = with_lines(ROUTER, "Stateful 2", *ENUMERATED["Rev"])
    trial = plan(words=WORDS, settings=parse(lines)).trial
    assert set(trial.preliminary[0].streams()) == {"reverse"}
    assert trial.connections is not None
    assert (trial.connections.initiator, trial.connections.version) == ("reverse", 4)


ORDERS = [("1", ConnectionOrder.INCREASING), ("2", ConnectionOrder.DECREASING), ("3", ConnectionOrder.RANDOM)]


@pytest.mark.parametrize(("value", "order"), ORDERS)
def test_enumerated_ports_are_combined_whatever_varies(value: str, order: ConnectionOrder) -> None:
    for var in range(4):
        opening, _ = phases_of(WORDS, f"Enumerate-ports {value}", f"Fwd-var-sport {var}")
        assert (opening.connections.order, opening.connections.opening) == (order, Opening.EACH)
        ports = opening.forward.source_port, opening.forward.destination_port
        assert [(one.min, one.max) for one in ports] == [(1024, 2023), (1, 10)]


def test_addresses_are_enumerated_with_ports_or_alone() -> None:
    opening, _ = phases_of("84 1000 2 300 2 2 100000 100000 50000 500 5000", "Enumerate-ips 3", *IPS)
    assert opening.connections.count == 100_000
    assert (opening.forward.source_address.min, opening.forward.source_address.max) == (10, 19)
    alone, _ = phases_of("84 1000 2 300 2 2 10 10 1000 500 5000", "Enumerate-ports", "Enumerate-ips 1", *IPS)
    assert (alone.connections.order, alone.connections.opening) == (ConnectionOrder.INCREASING, Opening.EACH)
    assert (alone.forward.source_port.mode, alone.forward.source_port.min) == (FieldMode.FIXED, 49184)
    assert alone.forward.destination_port.min == 7


def test_the_responder_replies_from_the_addresses_that_are_enumerated() -> None:
    lines = ("Enumerate-ips 3", *IPS, "IP-R-var 3", "IP-R-min 1", "IP-R-max 5", "IPv4-R-offset 1")
    opening, trial = phases_of("84 1000 2 300 2 2 500000 500000 500000 500 5000", *lines)
    assert opening.connections.count == 500_000
    assert trial.forward is not None
    assert trial.reverse is not None
    assert opening.forward.destination_address == trial.forward.destination_address == trial.reverse.source_address
    assert trial.forward.destination_address is not None
    assert (trial.forward.destination_address.max, trial.forward.destination_address.offset4) == (5, 1)
    assert trial.reverse.destination_address is None


def test_without_enumeration_there_is_one_connection_or_random_ones() -> None:
    one, _ = phases_of("84 1000 2 300 2 2 1 1 1000 500 5000", "Enumerate-ports")
    assert (one.connections.count, one.connections.opening) == (1, Opening.EACH)
    some, trial = phases_of(
        "84 1000 2 300 2 2 25000 20000 50000 500 5000", "Enumerate-ports", "Fwd-var-sport 3", "Fwd-var-dport 3"
    )
    assert (some.connections.count, some.connections.opening) == (10_000, Opening.RANDOM)
    assert trial.connections is not None
    assert trial.connections.entries == 10_000
    assert Trial(**dict(some)).intended(next(iter(some.streams()))) == 25_000


def test_without_enumeration_the_preliminary_phase_lasts_for_its_frames() -> None:
    """Not for all combinations, which would take a week."""
    many = ("Enumerate-ports", "Fwd-var-sport 3", "Fwd-var-dport 3", "Fwd-sport-min 1024", "Fwd-sport-max 65535")
    few, _ = phases_of("84 1000 2 300 2 2 100 100 1 500 101000", *many)
    assert few.connections.count > 86_400
    assert (few.duration_s, few.forward.rate_fps) == (100, 1)


@pytest.mark.parametrize(
    ("value", "order"),
    [
        (0, ResponderOrder.FIRST),
        (1, ResponderOrder.IN_ORDER),
        (2, ResponderOrder.DECREASING),
        (3, ResponderOrder.RANDOM),
    ],
)
def test_tuples_of_the_responder(value: int, order: ResponderOrder) -> None:
    _, trial = phases_of(WORDS, f"Responder-tuples {value}")
    assert trial.connections is not None
    assert trial.connections.responder is order


def test_a_test_without_a_direction_is_the_preliminary_phase_alone() -> None:
    for program, words in ((commands.TP, WORDS), (commands.LAT, WORDS + " 0 10"), (commands.PDV, WORDS + " 0")):
        trial = plan(program, words, settings("Forward 0", "Reverse 0")).trial
        assert trial.connections is not None
        assert (trial.connections.use, trial.preliminary, trial.drain_ns) == (ConnectionUse.OPEN, (), 5 * 10**8)


def test_latency_and_variation_are_measured_in_the_test_itself() -> None:
    latency = plan(commands.LAT, WORDS + " 1 100", settings()).trial
    assert latency.tagged is not None
    assert (latency.tagged.count, latency.lost_delay_ns) == (100, 1_300_000_000)
    variation = plan(commands.PDV, WORDS + " 0", settings()).trial
    assert variation.stamping == "every"
    assert {latency.preliminary[0].stamping, variation.preliminary[0].stamping} == {"none"}


def test_nat64_needs_no_address_for_the_responders_frames() -> None:
    nat64 = with_lines(TRANSLATOR, "IPv4-L-Virt", "Fwd-var-sport", "Fwd-var-dport")
    opening, trial = phases_of(WORDS, text=nat64)
    assert opening.forward.foreground.version == 6
    assert trial.reverse is not None
    assert trial.reverse.foreground is not None
    assert trial.reverse.foreground.version == 4


def test_cores_of_both_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.os, "sched_getaffinity", lambda _pid: {2, 4, 6, 8})
    every = ("CPU-L-Send 2", "CPU-R-Recv 4", "CPU-R-Send 6", "CPU-L-Recv 8")
    validation = plan(words=WORDS, settings=settings(*every, "Forward 0"), variables=WITH_CORES)
    assert list(validation.setup.engine.cores or ()) == [2, 4, 6, 8]
    one_way = plan(words=WORDS, settings=settings(*every, "Reverse 0"), variables=WITH_CORES)
    assert list(one_way.setup.engine.cores or ()) == [2, 4]


REFUSED: list[tuple[str, tuple[str, ...], str, str, str]] = [
    ("unequal enumerations", ("Enumerate-ips 1", *IPS), WORDS, "Enumerate-ips", "Enumerate-ports is 3"),
    ("several networks", ("Num-R-Nets 2",), WORDS, "Num-R-Nets", "one network only"),
    ("addresses beside enumerated ports", IPS, WORDS, "IP-L-var", "set Enumerate-ips too"),
    (
        "ports beside enumerated addresses",
        ("Enumerate-ports", "Enumerate-ips 3", "Fwd-var-sport 3", *IPS),
        WORDS,
        "Fwd-var-sport",
        "set Enumerate-ports too",
    ),
    ("counting ports", ("Enumerate-ports", "Fwd-var-sport 1"), WORDS, "Fwd-var-sport", "fixed (0) or random (3)"),
    ("one entry", ("Responder-tuples 3",), WORDS.replace("4000 4000", "4000 1"), "M", "only if Responder-tuples is 0"),
    ("too large ranges", ("Fwd-sport-max 65535", "Fwd-dport-max 65535"), WORDS, "Fwd-sport-max", "combinations"),
]


@pytest.mark.parametrize(
    ("lines", "words", "name", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_refused(lines: tuple[str, ...], words: str, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(words=words, settings=settings(*lines))
    assert caught.value.name == name
    assert message in caught.value.message


# --- warnings -------------------------------------------------------------------------------------

IN_TURN = ("Responder-tuples 1",)
WARNINGS: list[tuple[str, tuple[str, ...], str, list[str]]] = [
    # lines, arguments; words of each warning
    ("a script for the rate", ("Responder-tuples 3",), WORDS, ["does not prove", "4,000 of 10,000 combinations"]),
    ("validated", ("Forward 0", *IN_TURN), "84 5000 3 300 2 2 10000 10000 5000 500 5000", []),
    ("too few replies", ("Forward 0", *IN_TURN), "84 4999 2 300 2 2 10000 10000 5000 500 5000", ["does not prove"]),
    ("no replies", ("Reverse 0", *IN_TURN), "84 5000 3 300 2 2 10000 10000 5000 500 5000", ["does not prove"]),
    (
        "counting ports",
        ("Fwd-var-sport 1", *IN_TURN),
        "84 5000 3 300 2 2 10000 10000 5000 500 5000",
        ["Fwd-var-sport 1 has no effect"],
    ),
    (
        "random",
        ("Enumerate-ports", "Fwd-var-sport 3", "Fwd-var-dport 3", *IN_TURN),
        "84 5000 3 300 2 2 10000 10000 5000 500 5000",
        ["without Enumerate-ports frames open some of the 10,000"],
    ),
]


@pytest.mark.parametrize(("lines", "words", "said"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_warnings_about_what_is_not_shown(lines: tuple[str, ...], words: str, said: list[str]) -> None:
    remarks = plan(words=words, settings=settings(*lines)).remarks
    assert len(remarks) == len(said)
    for remark, words_of_it in zip(remarks, said, strict=True):
        assert remark.startswith("Warning: ")
        assert words_of_it in remark
        assert not [word for word in ("invalid", "Error", "frames sent", "frames received", "Failed") if word in remark]


def test_repeats_have_no_effect() -> None:
    planned = plan(words=WORDS, settings=settings(), variables=replace(VETHS, repeats=3))
    assert planned.repeats == 0
    assert any("DUTPERF_REPEAT has no effect" in remark for remark in planned.remarks)


# --- lines ----------------------------------------------------------------------------------------

LATE = Cause(code="sending_time", text="forward: sending took 5 s")


def opened(received: int, causes: tuple[Cause, ...] = ()) -> dict[str, Any]:
    """The result of a preliminary phase with 4,000 frames."""
    return {
        "trial": 1,
        "verdict": Verdict.INVALID if causes else Verdict.VALID,
        "causes": causes,
        "forward": counts(4000, received),
        "connections": ConnectionCounts(learned=received, remapped=0, lost=0),
    }


class TwoPhases:
    """A tester (:class:`dutperf.tester.Tester`) whose preliminary phase has the given result."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self.trials: list[Trial] = []
        self._opening = opening

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        del on_progress
        self.trials.append(trial)
        if len(self.trials) == 1:
            return TrialResult(**self._opening)
        both = {"forward": counts(2000), "reverse": counts(2000)}
        return TrialResult.model_validate({"trial": trial.trial, "verdict": Verdict.VALID, **both})

    def environment(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


TEST_ITSELF = [
    "Forward frames sent: 2000",
    "Forward frames received: 2000",
    "Reverse frames sent: 2000",
    "Reverse frames received: 2000",
]
FINISHED = "Info: Preliminary phase finished."
TOO_SLOW = "Warning: Preliminary sending was too slow: it exceeded the 4.0006000000 seconds limit, the test is invalid."


def unfilled(entries: int, size: int = 4000) -> str:
    return f"Error: Failed to fill state table (valid entries: {entries}, state table size: {size})!"


SENT = "Preliminary frames sent: 4000"
LINES: list[tuple[str, str, dict[str, Any], list[str], list[str], int]] = [
    # M, the preliminary phase; lines, words that are in none, exit status
    (
        "filled",
        "4000",
        opened(4000),
        [SENT, "Preliminary frames received: 4000", FINISHED, *TEST_ITSELF],
        ["Error", "invalid"],
        0,
    ),
    (
        "unfilled",
        "4000",
        opened(3999),
        [SENT, "Preliminary frames received: 3999", unfilled(3999), *TEST_ITSELF],
        ["invalid", "finished"],
        0,
    ),
    ("a smaller table", "3999", opened(3999), [FINISHED, *TEST_ITSELF], ["Error", "invalid"], 0),
    ("nothing passed", "4000", opened(0), [unfilled(0)], ["invalid", "finished", "Forward"], 3),
    ("too slow", "4000", opened(4000, (LATE,)), [TOO_SLOW, FINISHED, *TEST_ITSELF], [SENT, "Forward sending"], 3),
]


@pytest.mark.parametrize(
    ("size", "opening", "printed", "absent", "status"), [row[1:] for row in LINES], ids=[row[0] for row in LINES]
)
def test_lines(
    size: str,
    opening: dict[str, Any],
    printed: list[str],
    absent: list[str],
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned = plan(words=WORDS.replace("4000 4000", f"4000 {size}"), settings=settings())
    result = commands.until_valid(TwoPhases(opening), planned)
    assert commands.say(planned, commands.TP, result) == status
    captured = capsys.readouterr()
    said = (captured.out + captured.err).splitlines()
    assert set(printed) <= set(said)
    assert not [line for line in said for words in absent if words in line]


def test_lines_of_a_preliminary_phase_alone(capsys: pytest.CaptureFixture[str]) -> None:
    planned = plan(words=WORDS, settings=settings("Forward 0", "Reverse 0"))
    tester = TwoPhases(opened(3000))
    assert commands.say(planned, commands.TP, commands.until_valid(tester, planned)) == 0
    assert len(tester.trials) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [SENT, "Preliminary frames received: 3000"]
    assert captured.err.splitlines() == [unfilled(3000)]


# --- conversion -----------------------------------------------------------------------------------

CONVERTED = [
    ("the left side opens", settings("Responder-tuples 1")),
    ("the right side opens", parse(with_lines(ROUTER, "Stateful 2", *ENUMERATED["Rev"]))),
    ("one way", settings("Forward 0", "Enumerate-ports 2")),
    (
        "addresses",
        settings("Enumerate-ips 3", *IPS, "IP-R-var 3", "IP-R-min 1", "IP-R-max 5", "IPv4-R-offset 1"),
    ),
    ("NAT64", settings(text=TRANSLATOR)),
]


@pytest.mark.parametrize("file", [row[1] for row in CONVERTED], ids=[row[0] for row in CONVERTED])
def test_a_converted_file_is_the_same_test(file: Settings) -> None:
    planned = plan(words=WORDS.replace("300", "500"), settings=file)
    ours = configuration.parse_yaml(convert.text(file, VETHS), "converted")
    chosen = SingleTrial(
        duration_s=2,
        drain_s=0.5,
        learning_rest_s=2,
        seed=7,
        directions=setup.directions(file),
        connections=4000,
        preliminary_rate=Rate.parse("1k"),
        phase_gap_s=0.5,
    )
    trial = make_trial(ours, chosen, 84 if file.translates else 64, 1000, 1)
    assert trial.connections is not None
    all_entries = trial.connections.model_copy(update={"entries": 4000})
    assert trial.model_copy(update={"connections": all_entries}) == planned.trial


def test_a_converted_file_says_what_is_left_out() -> None:
    text = convert.text(settings("Forward 0", "Reverse 0", "Rev-var-sport 3", "Fwd-var-dport 3"), VETHS)
    assert "--connections N --preliminary-rate R --phase-gap (D-T)/1000-N/R" in text
    assert "clear_connections" in text
    assert "dutperf establishment-rate" in text
    assert "Rev-var-sport 3, Fwd-var-dport 3" in text
    assert "no counterpart: tests are stateless" not in text
    random = settings("Enumerate-ports", "Fwd-var-sport 3")
    assert "opens random combinations" in convert.text(random, VETHS)
