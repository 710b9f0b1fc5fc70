# SPDX-License-Identifier: Apache-2.0
"""Measurements of DNS64 servers (RFC 8219 section 9): which questions are asked, what makes a trial invalid, and what
is told of a result. The engine's part: tests/engine/test_questions.py."""

from __future__ import annotations

import copy
import html
import re
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scapy.layers.dns import DNS, DNSQR, DNSRROPT
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from typer.testing import CliRunner

from dutperf import journal, traffic
from dutperf.api import results
from dutperf.cli import app
from dutperf.cli.output import live
from dutperf.journal import ResumedJournal, TrialEvent, of_kind
from dutperf.judge.validity import DUT_DISTURBED, judge, proven_failed
from dutperf.model import (
    AAAA_NAMES,
    ANY_LOSS,
    CACHED_NAMES,
    LOSS_BINS,
    TRIAL_NUMBERS,
    Answers,
    CachedNames,
    Case,
    Cause,
    Direction,
    IcmpError,
    LimitedBy,
    Load,
    LoopStall,
    Losses,
    NameServer,
    Phase,
    Quantiles,
    Question,
    Questions,
    ServerCounts,
    ServerDelay,
    ServerQueries,
    SourcePorts,
    Spread,
    Stream,
    Trial,
    TrialResult,
    Verdict,
    to_json,
)
from dutperf.procedures.bench import Plan, PlanError
from dutperf.procedures.dns64 import Dns64, Dns64Point, Dns64Procedure
from dutperf.procedures.looped_back import TesterAlone
from dutperf.run import campaign
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.setup.ports import with_media
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from dutperf.traffic.names_in_turn import NamesInTurn
from dutperf.watch.dut_core import Starvation
from plans import DNS64, LOOPED_BACK, Log, counts, measure, narrowed, questions

MS = 1_000_000
ASKED = Questions(source=IPv6Address("2001:2::2"), destination=IPv6Address("2001:2::1"))


@given(st.integers(1, 1000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.integers(0, 5000))
def test_a_spread_has_its_share_of_any_numbers(n_m: tuple[int, int], numbers: int) -> None:
    n, m = n_m
    chosen = sum((k + 1) * m // n != k * m // n for k in range(numbers))
    assert chosen == numbers * m // n


@given(st.integers(0, 100))
def test_a_spread_of_a_percentage_is_that(share: int) -> None:
    spread = Spread.percent(share)
    assert spread.m * 100 == share * spread.n


def test_more_than_all_are_no_spread() -> None:
    with pytest.raises(ValidationError, match="3 of 2 are too many"):
        Spread(n=2, m=3)


@pytest.mark.parametrize("zone", ["dutperf.test", "a.b-c.d1", "x"])
def test_the_size_of_a_query_is_that_of_its_frame(zone: str) -> None:
    name = f"a{'0' * 18}.{zone}"
    asked = DNS(rd=1, qd=DNSQR(qname=name, qtype="AAAA"), ar=DNSRROPT(rclass=1232))
    frame = Ether() / IPv6() / UDP() / asked
    assert ASKED.model_copy(update={"zone": zone}).frame_size == len(bytes(frame)) + 4


@pytest.mark.parametrize("zone", ["", ".", "a..b", "A.test", "-a.test", "a_b", "a" * 65, "a.b.c.d.e.f.g.h.i"])
def test_zones_that_are_none_are_refused(zone: str) -> None:
    with pytest.raises(ValidationError):
        NameServer(zone=zone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dns64": {"server": "198.18.0.1"}}, "dns64.server: "),
        (
            {"dns64": {"server": "2001:2::1", "prefix": "64:ff9b::/97"}},
            "should have a length of 32, 40, 48, 56, 64 or 96",
        ),
        ({"dns64": {"server": "2001:2::2"}}, "dns64.server: 2001:2::2 is the tester's own address (left.ipv6)"),
        ({"dns64": {}}, "dns64.server: is missing"),
        ({"dns64": {"server": "2001:2::1", "serve": 1}}, "dns64.serve: unknown key"),
        (
            {"left": {"port": "tl", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"}},
            "left.ipv6: is missing: a DNS64 server is asked over IPv6",
        ),
        ({"left": {"port": "tl", "version": 6, "ipv6": "2001:2::2/64"}}, "left.gateway6: is missing"),
    ],
)
def test_a_configuration_that_is_not_one_of_a_dns64_server_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration.parse(DNS64 | change, "test")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dns64": None}, "dns64: is missing: give the address that is asked (server)"),
        ({"streams": [{"name": "a", "rate": 10}]}, "streams: do not go with questions"),
        (
            {"left": DNS64["left"] | {"networks": 3}},
            "left.networks: has no effect on questions to a DNS64 server: leave it out",
        ),
    ],
)
def test_what_has_no_effect_on_questions_is_refused(change: dict[str, Any], message: str) -> None:
    members = {key: one for key, one in (copy.deepcopy(DNS64) | change).items() if one is not None}
    if "dns64" not in members:
        members["right"] = members["right"] | {"seen_as": "64:ff9b::198.19.0.2"}
        members["left"] = members["left"] | {"seen_as": "198.18.0.5"}
    setup = configuration.parse(members, "test")
    with pytest.raises(ConfigError) as refused:
        traffic.of(setup, Dns64()).check()
    assert message in str(refused.value)


def planned(case: Case, **conditions: Any) -> Trial:
    return questions(**conditions).traffic.trial(case, Load.fps(1000), 7)


def test_without_cached_names_a_trial_has_no_phase_before_it() -> None:
    made = planned(Case({CACHED_NAMES: 0, AAAA_NAMES: 0}), timeout_s=0.5)
    assert made.preliminary == ()
    assert made.request() == {
        "trial": 7,
        "seed": 0,
        "duration_ns": 5_000 * MS,
        "drain_ns": 2_000 * MS,
        "burst": 32,
        "stamping": "every",
        "frame_timeout_ns": 500 * MS,
        "server": {"port": "right", "zone": "dutperf.test", "ttl_s": 86_400},
        "forward": {
            "rate_fps": 1000,
            "questions": {
                "source": "2001:2::2",
                "destination": "2001:2::1",
                "source_ports": {"first": 10_000, "count": 4_096},
                "destination_port": 53,
                "zone": "dutperf.test",
                "prefix": "64:ff9b::/96",
                "aaaa": {"n": 1, "m": 0},
            },
        },
    }


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"preliminary_rate": "50%"}, "media's speed"),
        ({"preliminary_rate": 10, "cached_names": 1_000_000}, "longer than a day"),
    ],
)
def test_a_cache_that_cannot_be_filled_names_the_rate(conditions: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        planned(Case({CACHED_NAMES: 40, AAAA_NAMES: 20}), **conditions)
    assert caught.value.key == "preliminary_rate"


def test_cached_names_are_asked_for_once_before_the_trial() -> None:
    made = planned(Case({CACHED_NAMES: 40, AAAA_NAMES: 20}), cached_names=750, preliminary_rate=500)
    [phase] = made.preliminary
    assert (phase.trial, made.trial) == (7, 8)
    assert phase.intended(Direction.FORWARD) == 750
    assert phase.question.tolerated_loss == ANY_LOSS
    assert phase.forward is not None
    assert phase.forward.questions is not None
    assert phase.forward.questions.cached is None
    assert to_json(made)["forward"]["questions"] | {} == to_json(phase)["forward"]["questions"] | {
        "cached": {"n": 5, "m": 2, "names": 750, "trial": 7}
    }
    assert made.forward is not None
    assert made.forward.questions is not None
    assert made.forward.questions.aaaa == Spread(n=5, m=1)


OTHER: dict[str, Any] = {
    "left": DNS64["left"],
    "dns64": {"server": "2001:2::1", "addresses": "198.18.0.0/20", "zone": "dns64perf.test"},
}
"""The DUT asks another name server than the tester's."""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": DNS64["right"]}, "right: has no effect: the DUT asks another name server (dns64.addresses)"),
        ({"dns64": {"server": "2001:2::1"}}, "right: is missing"),
        ({"dns64": OTHER["dns64"] | {"addresses": "198.18.0.1/20"}}, "dns64.addresses: "),
        ({"engine": {"offloads": ["send_at"]}}, "engine.offloads: do not go with dns64.addresses"),
    ],
)
def test_a_tester_with_one_port_needs_another_name_server(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration.parse(OTHER | change, "test")
    assert message in str(refused.value)


def test_the_link_that_is_not_there_says_nothing_about_the_media() -> None:
    setup = with_media(
        configuration.parse(OTHER, "test"), {"left": {"link_mbps": 25_000}, "right": {"link_mbps": 10_000}}
    )
    assert setup.media_mbps == 25_000


def test_with_one_port_nothing_but_questions_is_sent() -> None:
    with pytest.raises(ConfigError, match=r"right: is missing: with dns64\.addresses the tester has one port"):
        traffic.of(configuration.parse(OTHER, "test"), SingleTrial())


def test_what_is_about_the_testers_own_name_server_is_refused() -> None:
    with pytest.raises(ConfigError, match="`with_aaaa` is for the tester's own"):
        questions(OTHER, with_aaaa=(0, 20)).traffic.check()
    with pytest.raises(PlanError, match="it proves the tester's own name server, but the DUT asks another one"):
        Dns64Procedure(questions(OTHER, self_test_from=TesterAlone(qps=1_000_000, timeout_s=0.25)))


def test_another_name_servers_names_are_those_of_addresses() -> None:
    made = questions(OTHER).traffic.trial(Case({CACHED_NAMES: 0, AAAA_NAMES: 0}), Load.fps(1000), 7)
    request = made.request()
    assert "server" not in request
    asked = request["forward"]["questions"]
    assert asked["addresses"] == {"network": "198.18.0.0/20", "first": 0}
    assert asked["zone"] == "dns64perf.test"


def asked_of(phase: Phase) -> Questions:
    assert phase.forward is not None
    assert phase.forward.questions is not None
    return phase.forward.questions


def first_name(phase: Phase) -> int:
    addresses = asked_of(phase).addresses
    assert addresses is not None
    return addresses.first


def test_no_name_of_an_address_is_asked_for_twice() -> None:
    """Each phase goes on where the one before it ended; cached names are those of the phase before the trial."""
    kind, names = questions(OTHER, cached=(0, 40), cached_names=750, duration_s=1).traffic, NamesInTurn()
    made = [
        names.given_to(kind.trial(Case({CACHED_NAMES: share, AAAA_NAMES: 0}), Load.fps(1000), 2 * number))
        for number, share in enumerate((0, 40, 0))
    ]
    first = [[first_name(phase) for phase in (*one.preliminary, one)] for one in made]
    assert first == [[0], [1000, 1750], [2350]]
    repeated = asked_of(made[1]).cached
    assert repeated is not None
    assert (repeated.first, repeated.trial, repeated.names) == (1000, None, 750)


@given(st.integers(0, 65_535), st.integers(1, 7))
def test_trials_near_each_other_have_no_source_port_in_common(number: int, later: int) -> None:
    one, other = SourcePorts.of_trial(number), SourcePorts.of_trial((number + later) % TRIAL_NUMBERS)
    assert abs(one.first - other.first) >= one.count
    assert one.first + one.count <= 65_536


def test_a_cached_name_is_of_one_kind() -> None:
    for wrong in ({}, {"trial": 1, "first": 1}):
        with pytest.raises(ValidationError, match="either the number of their trial, or of the first"):
            CachedNames(n=2, m=1, names=1, **wrong)


@pytest.mark.parametrize("addresses", ["198.18.0.0/24", "198.18.0.0/15"])
def test_the_result_says_what_is_not_known_of_another_name_server(tmp_path: Path, addresses: str) -> None:
    config = OTHER | {"dns64": OTHER["dns64"] | {"addresses": addresses}}
    tester, asked = SimulatedTester(SimulatedDut(capacity_fps=1500)), questions(config, max_rate="2k", repetitions=1)
    summary = measure(tester, asked, tmp_path, name="dns64")
    [point] = summary.points
    assert isinstance(point, Dns64Point)
    assert point.rows()[0][-2] == "-"
    remarks = "\n".join(point.remarks())
    assert "the DUT asked another name server than the tester's" in remarks
    repeats = addresses == "198.18.0.0/24"
    assert ("names were asked for again" in remarks) == repeats
    told = [one.text for one in summary.deviations]
    assert sum("the authoritative server is not the tester's" in text for text in told) == 1
    assert sum("no self-test of the tester with the authoritative server" in text for text in told) == 1
    assert sum("new names, but the network has 256" in text for text in told) == repeats


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_resumed_run_asks_for_the_names_of_an_uninterrupted_one(tmp_path: Path, share: float) -> None:
    def what() -> Plan[Dns64]:
        return questions(OTHER, max_rate="2k", cached=(0, 50), repetitions=2, duration_s=1)

    def firsts(directory: Path) -> list[tuple[int, ...]]:
        """Of each trial; one that was cut off is repeated as it was."""
        trials = [event.trial for event in of_kind(journal.read(directory), TrialEvent)]
        return list(dict.fromkeys(tuple(first_name(phase) for phase in (*one.preliminary, one)) for one in trials))

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    dut = SimulatedDut(capacity_fps=1500)
    measure(SimulatedTester(dut), what(), whole, name="dns64")
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    cut.mkdir()
    (cut / "journal.jsonl").write_bytes(b"".join(lines[: int(share * len(lines))]))
    with ResumedJournal.open(cut) as recorded:
        campaign.resume(SimulatedTester(dut), narrowed(what(), "dns64"), recorded, Log())
    expected = firsts(whole)
    assert firsts(cut) == expected
    assert sorted(expected) == expected
    assert len({number for one in expected for number in one}) == sum(map(len, expected))


def test_the_last_query_has_its_whole_timeout() -> None:
    made = planned(Case({CACHED_NAMES: 0, AAAA_NAMES: 0}), timeout_s=3, drain_s=0)
    assert made.drain_ns == made.frame_timeout_ns == 3_000 * MS


def test_the_cases_are_all_shares_with_each_other() -> None:
    made = questions(cached="0,50", with_aaaa=(0, 100))
    assert [str(case) for case in made.traffic.cases()] == [
        "0 % cached, 0 % AAAA",
        "0 % cached, 100 % AAAA",
        "50 % cached, 0 % AAAA",
        "50 % cached, 100 % AAAA",
    ]


@pytest.mark.parametrize("cached", ["", "101", "-1", "0,0", "x", [True]])
def test_shares_that_are_none_are_refused(cached: Any) -> None:
    with pytest.raises(ConfigError):
        Dns64(cached=cached)


# --- the verdict ----------------------------------------------------------------------------------

TRIAL = Trial(
    trial=1,
    duration_ns=5_000 * MS,
    drain_ns=2_000 * MS,
    stamping="every",
    frame_timeout_ns=1_000 * MS,
    forward=Stream(rate_fps=1000, questions=ASKED),
    server=NameServer(),
)


def verdict(server: ServerCounts, *, received: int = 5000) -> tuple[Verdict, list[str]]:
    of_clients = {Direction.FORWARD: counts(5000, received)}
    found, causes = judge(TRIAL, of_clients, server=server)
    return found, [cause.code for cause in causes]


@pytest.mark.parametrize(
    ("server", "received", "codes"),
    [
        (ServerCounts(), 5000, []),
        (ServerCounts(unsent=1), 5000, ["server_drops"]),
        (ServerCounts(tester_drops={"rx_missed": 3}), 5000, ["server_drops"]),
        (ServerCounts(tester_drops={"rx_missed": 0}), 5000, []),
        (ServerCounts(delay_ns=ServerDelay(median=1, p99=2, max=251 * MS)), 5000, []),
        (ServerCounts(delay_ns=ServerDelay(median=1, p99=2, max=251 * MS)), 4999, ["server_late"]),
        (ServerCounts(delay_ns=ServerDelay(median=1, p99=2, max=249 * MS)), 4999, []),
    ],
)
def test_what_the_testers_own_server_loses_or_delays_is_not_the_duts(
    server: ServerCounts, received: int, codes: list[str]
) -> None:
    found, named = verdict(server, received=received)
    assert named == codes
    assert found is (Verdict.INVALID if codes else Verdict.VALID)


OF_CLIENT = counts(5000, 4000).model_copy(update={"answers": Answers(wrong={"servfail": 3})})
DISTURBED = {
    "not all sent": {"sent": 4900},
    "a late query": {"lateness_us": Quantiles(p50=1, p99=1, p999=1, max=60_000)},
    "a slow receiver": {"stall_us": LoopStall(sender=1, receiver=300_000), "late": 3},
    "more answers than queries": {"received": 5001},
    "ICMP errors": {"received": 0, "icmp_errors": (IcmpError(protocol="icmpv6", type=1, code=1, frames=500),)},
}


@pytest.mark.parametrize("changes", DISTURBED.values(), ids=DISTURBED)
def test_causes_are_about_queries_and_answers(changes: dict[str, Any]) -> None:
    of_clients = {Direction.FORWARD: OF_CLIENT.model_copy(update=changes)}
    causes = judge(TRIAL, of_clients, Starvation(share=0.5))[1]
    said = " ".join(cause.text for cause in causes)
    assert "client: " in said
    assert not re.search("frame|forward", said), said


@pytest.mark.parametrize(
    ("wrong", "proof"),
    [
        ({"wrong_address": 1}, "at least 1 of the 1 queries not answered in time (1 wrong address) are the DUT's own"),
        ({"nxdomain": 1}, "(1 nxdomain)"),
        ({"servfail": 1}, None),
        ({"nodata": 1}, None),
        ({}, None),
    ],
)
def test_no_disturbance_makes_a_wrong_answer(wrong: dict[str, int], proof: str | None) -> None:
    """A late or lost query has no answer, or a late one; a DUT that waited in vain says SERVFAIL, or has no records."""
    one = counts(5000, 4999).model_copy(update={"answers": Answers(wrong=wrong)})
    asked = TRIAL.model_copy(update={"question": Question(resolution=0.1)})
    found = proven_failed(asked, {Direction.FORWARD: one}, (Cause(code=DUT_DISTURBED, text=""),))
    assert (proof is None and found is None) or (proof or "-") in str(found)


def test_what_a_search_and_a_progress_line_say_is_about_queries() -> None:
    lost = Losses(first_s=0, last_s=5, longest_run=1, bins=(1000 // LOSS_BINS,) * LOSS_BINS)
    lossy = {Direction.FORWARD: OF_CLIENT.model_copy(update={"losses": lost})}
    asked = TRIAL.model_copy(update={"question": Question(resolution=0.1)})
    cause = Cause(code=DUT_DISTURBED, text="")
    assert "of the 1,000 queries not answered in time (3 servfail) are the DUT's own" in str(
        proven_failed(asked, lossy, (cause,))
    )
    outcomes = [
        live._outcome(TrialResult(trial=1, verdict=Verdict.VALID, forward=one))
        for one in (OF_CLIENT, OF_CLIENT.model_copy(update={"received": 5000}))
    ]
    assert outcomes[0].startswith("1,000 of 5,000 queries not answered in time")
    assert outcomes[1].startswith("every query answered in time")


# --- the procedure --------------------------------------------------------------------------------


@dataclass
class Asked:
    """A simulated tester whose DUT asks its name server ``asks`` times for each query; ``wrong``: answers of each kind
    in a trial that lost some."""

    tester: SimulatedTester
    wrong: dict[str, int] = field(default_factory=dict)
    asks: float = 2
    tcp: int = 0
    trials: list[Trial] = field(default_factory=list)

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self.trials.append(trial)
        result = self.tester.run(trial, on_progress)
        forward = result.forward
        assert forward is not None
        asked = ServerQueries(a=round(forward.sent * (self.asks - 1)), aaaa=forward.sent)
        lossy = forward.model_copy(update={"answers": Answers(wrong=self.wrong if forward.lost else {})})
        return result.model_copy(
            update={"forward": lossy, "server": ServerCounts(queries=asked, tcp=self.tcp, answered=2)}
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tester, name)


def measured(tester: Any, directory: Path, **conditions: Any) -> Dns64Point:
    [point] = measure(tester, questions(**conditions), directory, "dns64").points
    assert isinstance(point, Dns64Point)
    return point


def test_it_finds_the_capacity_and_says_what_was_asked(tmp_path: Path) -> None:
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=12_345)), {"servfail": 12, "wrong_prefix": 1})
    point = measured(tester, tmp_path, resolution=10)
    assert point.dns64_qps.median is not None
    assert 0 <= 12_345 - point.dns64_qps.median <= 10
    assert point.upstream is not None
    assert point.upstream.per_query == 2
    assert "12 servfail, 1 wrong prefix" in point.unanswered
    assert "queries" in point.message
    assert "frames" not in " ".join((point.message, *point.remarks()))
    assert {trial.question.tolerated_loss for trial in tester.trials} == {0}


def test_a_dut_that_asks_less_than_it_has_to_is_told(tmp_path: Path) -> None:
    """It has names in its cache that no trial asked for, or another server."""
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)), asks=1.5)
    remarks = " ".join(measured(tester, tmp_path / "less", resolution="20%").remarks())
    assert "the DUT asked the tester's name server 1.50 times per query, not 2.00" in remarks
    half = measured(tester, tmp_path / "half", resolution="20%", with_aaaa=50)
    assert "times per query" not in " ".join(half.remarks())


@pytest.mark.parametrize(("asks", "is_told"), [(2.0, False), (2.01, False), (2.05, True)])
def test_a_dut_that_asks_more_than_it_has_to_is_told(asks: float, is_told: bool, tmp_path: Path) -> None:
    """Not of a few repeated queries, which the figure does not show."""
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)), asks=asks)
    remarks = " ".join(measured(tester, tmp_path, resolution="20%").remarks())
    assert ("times per query, not 2.00: it has not cached" in remarks) == is_told


def test_a_dut_that_does_not_cache_what_it_should_is_told(tmp_path: Path) -> None:
    """The figure is that of new names."""
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)), asks=2.0)
    remarks = " ".join(measured(tester, tmp_path, resolution="20%", cached=100).remarks())
    assert "2.00 times per query, not 0.00: it has not cached the names that it should" in remarks


def test_queries_over_tcp_are_told(tmp_path: Path) -> None:
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)), tcp=1_234)
    remarks = " ".join(measured(tester, tmp_path / "tcp", resolution="20%").remarks())
    assert "over TCP: 1,234 queries" in remarks
    udp = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)))
    assert "TCP" not in " ".join(measured(udp, tmp_path / "udp", resolution="20%").remarks())


def test_a_dut_that_answers_nothing_is_said_to_ask_nothing(tmp_path: Path) -> None:
    tester = SimulatedTester(SimulatedDut(dead_directions=frozenset({Direction.FORWARD})))
    point = measured(tester, tmp_path)
    assert point.dns64_qps.median is None
    assert "no query has a right answer" in point.message


def test_the_deviations_are_those_of_section_9(tmp_path: Path) -> None:
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)))
    summary = measure(tester, questions(resolution="20%", timeout_s=2, cached=20), tmp_path, "dns64")
    assert {(one.clause, one.text.split(",")[0]) for one in summary.deviations} == {
        ("RFC 8219 section 9.2", "trials of 5 s"),
        ("RFC 8219 section 9.2", "3 repetitions"),
        ("RFC 8219 section 9.2", "a timeout of 2 s"),
        ("RFC 8219 section 9.2", "not measured without cached names and names with an AAAA record"),
        ("RFC 8219 section 9.2.1", "no self-test of the tester alone"),
    }


# --- the self-test --------------------------------------------------------------------------------


def test_a_self_test_says_what_it_proves(tmp_path: Path) -> None:
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=22_000)), asks=1)
    summary = measure(tester, questions(LOOPED_BACK, with_aaaa=100, resolution=1), tmp_path, "dns64")
    [point] = summary.points
    assert isinstance(point, Dns64Point)
    assert "proves DNS64 servers of up to 10,000 queries/s" in " ".join(point.remarks())
    assert not {"RFC 8219 section 9.2.1"} & {one.clause for one in summary.deviations}


class Slower(Asked):
    """A tester whose later trials answer less."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        self.tester.dut = SimulatedDut(capacity_fps=22_000 if len(self.trials) < 26 else 11_000)
        return super().run(trial, on_progress)


def test_a_self_test_proves_what_a_measurement_takes_from_it(tmp_path: Path) -> None:
    """By the lowest of its repetitions, and no DUT with a timeout shorter than four times its own."""
    plan = questions(LOOPED_BACK, with_aaaa=100, resolution=1, timeout_s=1)
    [point] = measure(Slower(SimulatedTester(), asks=1), plan, tmp_path, "dns64").points
    assert isinstance(point, Dns64Point)
    assert point.dns64_qps.median == 22_000
    assert TesterAlone.of_directory(tmp_path).proves_qps == 5_000
    said = " ".join(point.remarks())
    assert "proves DNS64 servers of up to 5,000 queries/s with timeouts of 4 s or longer" in said


def test_only_names_that_all_have_an_aaaa_record_prove_a_rate(tmp_path: Path) -> None:
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=22_000)), asks=1)
    [point] = measure(tester, questions(LOOPED_BACK, with_aaaa=50, resolution="20%"), tmp_path, "dns64").points
    assert "a self-test" not in " ".join(point.remarks())


def self_test(directory: Path, config: dict[str, Any] = LOOPED_BACK, **conditions: Any) -> Path:
    """The results of a tester that answers 22,000 queries/s."""
    chosen = {"with_aaaa": 100, "timeout_s": 0.25, "resolution": 1} | conditions
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=22_000)))
    measure(tester, questions(config, **chosen), directory, "dns64")
    return directory


def test_no_rate_is_offered_that_the_self_test_does_not_prove(tmp_path: Path) -> None:
    tested = self_test(tmp_path / "self")
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=50_000)))
    summary = measure(tester, questions(self_test_from=tested, resolution=100), tmp_path / "dut", "dns64")
    [point] = summary.points
    assert isinstance(point, Dns64Point)
    assert point.dns64_qps.median == 10_000
    assert point.limited_by is LimitedBy.RANGE
    assert "10,000 queries/s passed, the highest rate that the self-test proves" in point.message
    assert "RFC 8219 section 9.2.1" not in {one.clause for one in summary.deviations}
    assert max(trial.streams()[Direction.FORWARD].rate_fps for trial in tester.trials) == 10_000


def test_a_self_test_above_the_limit_of_the_dut_changes_nothing(tmp_path: Path) -> None:
    tested = self_test(tmp_path / "self")
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)))
    point = measured(tester, tmp_path / "dut", self_test_from=tested, resolution=10)
    assert point.limited_by is LimitedBy.DUT
    assert point.dns64_qps.median is not None
    assert 0 <= 5_000 - point.dns64_qps.median <= 10


@pytest.mark.parametrize(
    ("config", "conditions", "message"),
    [
        (DNS64, {}, "has results of a DUT, not of the tester alone"),
        (LOOPED_BACK, {"with_aaaa": 0}, "has no rate for names that all have an AAAA record"),
        (LOOPED_BACK, {"timeout_s": 0.5}, "has a timeout of 0.5 s, longer than a quarter of"),
    ],
)
def test_results_that_are_no_self_test_are_refused(
    config: dict[str, Any], conditions: dict[str, Any], message: str, tmp_path: Path
) -> None:
    tested = self_test(tmp_path / "self", config, repetitions=1, **conditions)
    with pytest.raises(ConfigError) as refused:
        Dns64(self_test_from=tested)
    assert message in str(refused.value)


def test_a_self_test_that_was_ended_proves_nothing(tmp_path: Path) -> None:
    tested = self_test(tmp_path / "self", repetitions=1) / journal.JOURNAL
    tested.write_text("".join(tested.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ConfigError, match="is not complete: 'dutperf resume' ends it"):
        Dns64(self_test_from=tested.parent)


def test_a_directory_without_results_is_no_self_test(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no run in"):
        Dns64(self_test_from=str(tmp_path))


def test_a_search_above_what_the_self_test_proves_is_refused(tmp_path: Path) -> None:
    tested = self_test(tmp_path / "self", repetitions=1)
    plan = questions(self_test_from=tested, min_rate="20k")
    with pytest.raises(PlanError, match="it proves up to 10,000 queries/s: the minimum rate"):
        Dns64Procedure(plan)


def test_the_journal_keeps_what_the_self_test_found(tmp_path: Path) -> None:
    stated = Dns64(self_test_from=self_test(tmp_path / "self", repetitions=1)).stated()
    assert stated["self_test_from"] == {"qps": 22_000, "timeout_s": 0.25}
    assert Dns64.recorded(stated).stated() == stated


def test_the_help_does_not_speak_of_frames_where_cases_have_none() -> None:
    text = " ".join(CliRunner().invoke(app, ["dns64", "--help"], env={"COLUMNS": "500"}).stdout.split())
    assert "Repetitions of each case" in text
    assert "frame size" not in text
    assert "frames/s" not in text


# --- the report -----------------------------------------------------------------------------------


def test_the_report_shows_who_asks_whom_and_speaks_of_queries(tmp_path: Path) -> None:
    tester = Asked(SimulatedTester(SimulatedDut(capacity_fps=5_000)))
    plan = replace(questions(resolution="20%", initial_rate="2k", repetitions=1), config=DNS64)
    measure(tester, plan, tmp_path, "dns64")
    page = results.write_report(tmp_path).read_text(encoding="utf-8")
    body = re.sub(r"<(style|script|svg).*?</\1>", "", page, flags=re.DOTALL)
    shown = " ".join(html.unescape(re.sub("<[^>]+>", " ", body)).split())
    for text in (
        "role client",
        "role name server",
        "task DNS64 server: asks the name server, and answers the client asked at 2001:2::1",
        "zone dutperf.test prefix 64:ff9b::/96",
        "2,000 queries/s",
        "client lost, %",
        "queries were not answered in time at a higher rate",
    ):
        assert text in shown, text
    assert "translates" not in shown
    frames = {shown[at.start() - 30 : at.end() + 20] for at in re.finditer("frame|forward", shown)}
    assert not {
        one
        for one in frames
        if not re.search(
            "(learning|queue.|no) frames|frames handed|DUT that forwards|queue_frames|forward (send|receive)",
            one,
        )
    }
