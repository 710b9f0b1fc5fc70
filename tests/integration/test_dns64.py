# SPDX-License-Identifier: Apache-2.0
"""Questions to the reference DUT as a DNS64 server: what the tester counts of queries, answers and the DUT's own
questions is what the DUT counts, to the query; what it finds of a set capacity and a set cache is what was set."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dutperf import lab, traffic
from dutperf.lab import dns64 as dns64_labs
from dutperf.lab import dns_servers
from dutperf.lab.refdut import Dns64Properties, Dns64Truth, RefDut, Truth
from dutperf.model import AAAA_NAMES, CACHED_NAMES, Case, DirectionCounts, Load, TrialResult, Verdict
from dutperf.model.questions import ServerQueries
from dutperf.procedures.dns64 import Dns64
from dutperf.tester import phases
from printed import printed
from undisturbed import LOSS_IS_CERTAIN, until

from .measuring import Bench, bench
from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

QPS = 2_000
QUERIES = 1_000
"""In half a second."""
NUMBERS = count(1)
WRONG = {
    "wrong_prefix": "wrong_prefix",
    "wrong_address": "wrong_address",
    "servfail": "servfail",
    "refused": "refused",
    "nxdomain": "nxdomain",
    "nodata": "nodata",
    "truncated": "truncated",
    "malformed": "malformed",
    "wrong_id": "unexpected",
}
"""What the DUT does, and what the tester calls it."""


@pytest.fixture(scope="module", params=["server_version=4", "server_version=6", "prefix=2001:db8:122:300::/56"])
def dns64(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A DNS64 server for many trials."""
    with bench("refdut-dns64", dict([request.param.split("=")])) as ready:
        yield ready


SERVERS = [
    pytest.param(
        f"{server.key}-dns64",
        id=server.key,
        marks=pytest.mark.skipif(shutil.which(server.program) is None, reason=f"needs Debian's {server.package}"),
    )
    for server in dns_servers.SERVERS
]
USUAL = pytest.mark.parametrize("dns64", ["server_version=4"], indirect=True)


def asked(
    ready: Bench, properties: Dns64Properties, cached: int = 0, with_aaaa: int = 0, **conditions: Any
) -> tuple[TrialResult, DirectionCounts, Truth, Dns64Truth]:
    """The first trial in which neither the tester nor a queue between it and the DUT lost anything, and the DUT's
    counters of it, with those of the phase before. A DUT that lacks its core counts what it does all the same."""
    dut = RefDut(Path(str(ready.setup.dut.control)))
    kind = traffic.of(ready.setup, Dns64(**({"duration_s": 0.5, "drain_s": 1.0} | conditions)))
    case = Case({CACHED_NAMES: cached, AAAA_NAMES: with_aaaa})

    def measure() -> tuple[TrialResult, Truth]:
        dut.configure(properties)
        result = phases.run(ready.tester, kind.trial(case, Load.fps(QPS), 2 * next(NUMBERS)))
        return result, dut.counters()

    def nothing_between(measured: tuple[TrialResult, Truth]) -> bool:
        result, truth = measured
        lost = sum(port.lost_before + port.lost_after for port in (truth.left, truth.right))
        return {cause.code for cause in result.causes} <= LOSS_IS_CERTAIN and not lost

    result, truth = until(measure, nothing_between, lambda one: str([cause.text for cause in one[0].causes]))
    assert result.forward is not None
    assert truth.dns64 is not None
    return result, result.forward, truth, truth.dns64


@pytest.mark.parametrize("with_aaaa", [0, 30, 100])
def test_both_count_the_same_questions(dns64: Bench, with_aaaa: int) -> None:
    result, counts, _, truth = asked(dns64, Dns64Properties(), with_aaaa=with_aaaa)
    existing = QUERIES * with_aaaa // 100
    assert (counts.sent, counts.received, counts.lost) == (QUERIES, QUERIES, 0)
    assert (truth.queries, truth.answered, truth.existing) == (QUERIES, QUERIES, existing)
    assert result.server is not None
    assert (result.server.queries.aaaa, result.server.queries.a) == (truth.upstream.aaaa, truth.upstream.a)
    assert (truth.upstream.aaaa, truth.upstream.a, truth.retries) == (QUERIES, QUERIES - existing, 0)
    assert result.server.answered == 2 * QUERIES - existing
    assert (result.server.stale, result.server.unknown, result.server.refused, result.server.malformed) == (0, 0, 0, 0)


@USUAL
@pytest.mark.parametrize(("kind", "named"), WRONG.items(), ids=WRONG)
def test_wrong_answers_are_found_to_the_last_one(dns64: Bench, kind: str, named: str) -> None:
    _, counts, _, truth = asked(dns64, Dns64Properties(**{f"{kind}_every": 7}))
    assert truth.wrong[kind] == QUERIES // 7
    assert counts.answers is not None
    assert counts.answers.wrong == {named: QUERIES // 7}
    assert (counts.received, counts.lost) == (QUERIES - QUERIES // 7, QUERIES // 7)


@USUAL
def test_answers_that_come_late_or_twice_are_told(dns64: Bench) -> None:
    late = Dns64Properties(delay_ms=300)
    _, counts, _, truth = asked(dns64, late, timeout_s=0.2)
    assert (counts.received, counts.late, truth.answered) == (0, QUERIES, QUERIES)
    twice = Dns64Properties(duplicate_every=10)
    _, counts, _, _ = asked(dns64, twice)
    assert (counts.received, counts.duplicates) == (QUERIES, QUERIES // 10)


@USUAL
@pytest.mark.parametrize(("cache", "hits"), [(0, 0), (1_000, 500), (50, 0)])
def test_a_cache_of_set_size_shows_in_the_share_of_cached_names(dns64: Bench, cache: int, hits: int) -> None:
    """500 of 1,000 queries are for 100 names in turn. A cache of 50 evicts the name unused for longest, which is the
    next one."""
    result, counts, _, truth = asked(dns64, Dns64Properties(cache=cache), cached=50, cached_names=100)
    assert (counts.sent, counts.received) == (QUERIES, QUERIES)
    assert result.server is not None
    assert result.server.queries.aaaa == QUERIES - hits
    assert truth.cache_hits == hits


@USUAL
def test_queries_above_the_capacity_are_lost_and_counted(dns64: Bench) -> None:
    _, counts, truth, _ = asked(dns64, Dns64Properties(capacity_fps=1_000, queue=50))
    assert counts.lost == truth.forward.lost_total > QUERIES // 3


def own_counters(ready: Bench) -> dict[str, int]:
    """What a server says of itself."""
    commands = ready.setup.duts()[0].commands
    assert commands is not None
    assert commands.state is not None
    said = subprocess.run(commands.state, check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in map(str.split, said.splitlines())}


@pytest.mark.parametrize("lab_name", SERVERS)
@pytest.mark.parametrize(("cached", "with_aaaa"), [(0, 0), (0, 50), (50, 0)])
def test_debians_servers_count_what_the_tester_does(lab_name: str, cached: int, with_aaaa: int) -> None:
    with bench(lab_name, {}) as ready:
        chosen = Dns64(duration_s=0.5, drain_s=1.0, cached_names=100)
        kind = traffic.of(ready.setup, chosen)
        case = Case({CACHED_NAMES: cached, AAAA_NAMES: with_aaaa})

        def measure() -> tuple[TrialResult, dict[str, int]]:
            before = own_counters(ready)
            result = phases.run(ready.tester, kind.trial(case, Load.fps(400), 2 * next(NUMBERS)))
            return result, {name: number - before[name] for name, number in own_counters(ready).items()}

        result, counted = until(
            measure,
            lambda one: one[0].verdict is Verdict.VALID and not one[0].worst_loss_ratio,
            lambda one: str([cause.text for cause in one[0].causes]),
        )
    both = [*result.preliminary, result]
    asked_of_dut = sum(one.forward.sent for one in both if one.forward is not None)
    assert asked_of_dut == 200 + (100 if cached else 0)
    assert counted["queries"] == asked_of_dut
    by_dut = [one.server.queries for one in both if one.server is not None]
    assert counted["upstream_queries"] == sum(one.a + one.aaaa + one.other for one in by_dut)
    fresh = 200 - 200 * cached // 100
    assert (by_dut[-1].aaaa, by_dut[-1].a) == (fresh, fresh - fresh * with_aaaa // 100)


def unbound_over_tcp(task: dns_servers.Task) -> dict[str, str]:
    text = dns_servers.unbound(task)["unbound.conf"]
    return {"unbound.conf": text.replace("  prefetch: no\n", "  prefetch: no\n  tcp-upstream: yes\n")}


def bind9_over_tcp(task: dns_servers.Task) -> dict[str, str]:
    files = dns_servers.bind9(task)
    return files | {"named.conf": files["named.conf"] + f"server {task.upstream} {{ tcp-only yes; }};\n"}


OVER_TCP = {"unbound": unbound_over_tcp, "bind9": bind9_over_tcp}
COUNTS_QUERIES_OVER_TCP = {"bind9"}
"""Unbound counts connections."""


@pytest.fixture
def over_tcp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lab whose DUT asks its authoritative server over TCP alone."""
    [server] = [one for one in dns_servers.SERVERS if one.key == request.param]
    if shutil.which(server.program) is None:
        pytest.skip(f"needs Debian's {server.package}")
    [usual] = [one for one in dns64_labs.LABS if one.name == f"{server.key}-dns64"]
    changed = dataclasses.replace(server, files=OVER_TCP[server.key])
    special = dataclasses.replace(usual, build=partial(dns64_labs.build, changed))
    monkeypatch.setattr(lab, "_labs", lambda: {special.name: special})
    return special.name


@pytest.mark.parametrize("over_tcp", OVER_TCP, indirect=True)
@pytest.mark.parametrize("version", [4, 6])
def test_a_dut_that_asks_over_tcp_is_answered(over_tcp: str, version: int, request: pytest.FixtureRequest) -> None:
    """In two trials, as connections go on from one to the next."""
    with bench(over_tcp, {"server_version": str(version)}) as ready:
        kind = traffic.of(ready.setup, Dns64(duration_s=0.5, drain_s=1.0))
        case = Case({CACHED_NAMES: 0, AAAA_NAMES: 0})

        def measure() -> tuple[TrialResult, int]:
            before = own_counters(ready)["upstream_queries"]
            result = phases.run(ready.tester, kind.trial(case, Load.fps(200), 2 * next(NUMBERS)))
            return result, own_counters(ready)["upstream_queries"] - before

        for _ in range(2):
            result, counted = until(
                measure,
                lambda one: one[0].verdict is Verdict.VALID and not one[0].worst_loss_ratio,
                lambda one: str([cause.text for cause in one[0].causes]),
            )
            assert result.forward is not None
            assert result.server is not None
            assert (result.forward.sent, result.forward.received) == (100, 100)
            assert result.server.queries == ServerQueries(a=100, aaaa=100)
            assert (result.server.tcp, result.server.answered, result.server.unsent) == (200, 200, 0)
            if request.node.callspec.params["over_tcp"] in COUNTS_QUERIES_OVER_TCP:
                assert counted == 200


@pytest.mark.long
def test_a_set_capacity_is_read_within_a_hundredth(tmp_path: Path) -> None:
    """In 1 s a queue of 40 queries takes up what exceeds the capacity by 41 queries/s."""
    truth = pytest.approx(4_041, rel=0.01)
    options = [text for pair in ("capacity_fps=4000", "queue=40") for text in ("--lab-option", pair)]
    search = ["--duration", "1", "--drain", "1", "--settle", "0", "--repetitions", "1"]
    range_ = ["--min-rate", "3900", "--max-rate", "4200", "--resolution", "10"]
    runs = count()

    def measure() -> dict[str, Any]:
        out = str(tmp_path / f"out{next(runs)}")
        done = dutperf("dns64", "--lab", "refdut-dns64", *options, *search, *range_, "--json", "--out", out)
        [point] = printed(done)["points"]
        return dict(point)

    point = until(
        measure,
        lambda one: one["limited_by"] != "tester" or one["dns64_qps"]["median"] == truth,
        lambda one: str(one["message"]),
        fewest=1,
    )
    assert point["dns64_qps"]["median"] == truth
    assert point["upstream"]["per_query"] == 2
