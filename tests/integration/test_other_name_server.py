# SPDX-License-Identifier: Apache-2.0
"""DNS64 servers that ask another authoritative name server (NSD) than the tester's, for names of addresses; and the
tester's client beside dnsperf, which asks the same server for the same names."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from dutperf import lab, traffic
from dutperf.dns64perf.output import HEADER
from dutperf.engine.client import EngineTester
from dutperf.engine.factory import engine_on
from dutperf.lab.hosts import replace_side
from dutperf.lab.netns import Namespace
from dutperf.lab.refdut import Dns64Properties, Dns64Truth, RefDut
from dutperf.model import AAAA_NAMES, CACHED_NAMES, Case, DirectionCounts, Load, TrialResult, Verdict
from dutperf.model.questions import ZONE
from dutperf.procedures.dns64 import Dns64
from dutperf.setup import configuration
from dutperf.setup.configuration import Setup
from dutperf.tester import phases
from dutperf.traffic.names_in_turn import NamesInTurn
from labs.nsd import NEEDS_NSD, of_addresses, serving, zone_of
from undisturbed import until

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records"), NEEDS_NSD]

NETWORK = "198.18.0.0/19"
NUMBERS = count(1)
UNBOUND = pytest.param(
    "unbound-dns64",
    marks=pytest.mark.skipif(shutil.which("unbound") is None, reason="needs Debian's unbound"),
    id="unbound",
)
LABS = [pytest.param("refdut-dns64", id="refdut"), UNBOUND]


@dataclass(frozen=True)
class Client:
    """The tester with its only port, and the names that it has asked for."""

    setup: Setup
    tester: EngineTester
    names: NamesInTurn

    def ask(self, cached: int = 0, qps: int = 400, **conditions: Any) -> TrialResult:
        """One trial of half a second."""
        chosen = Dns64(**({"duration_s": 0.5, "drain_s": 1.0, "cached_names": 100} | conditions))
        case = Case({CACHED_NAMES: cached, AAAA_NAMES: 0})
        made = traffic.of(self.setup, chosen).trial(case, Load.fps(qps), 2 * next(NUMBERS))
        return phases.run(self.tester, self.names.given_to(made))

    def ask_all(self, **given: Any) -> TrialResult:
        """The first valid trial without a lost query."""
        return until(
            lambda: self.ask(**given),
            lambda one: one.verdict is Verdict.VALID and not one.worst_loss_ratio,
            lambda one: str([cause.text for cause in one.causes]),
        )


@contextmanager
def with_nsd(lab_name: str, directory: Path, network: str = NETWORK) -> Iterator[dict[str, Any]]:
    """The lab's configuration for a tester with one port: NSD is at the other end of the DUT."""
    with lab.bring_up(lab_name, {}) as mapping:
        address = mapping["right"]["ipv4"].partition("/")[0]
        host = replace_side(mapping, "right")
        with serving(host, directory, address, ZONE, zone_of(ZONE, of_addresses(network), address)):
            yield {
                **{key: value for key, value in mapping.items() if key != "right"},
                "dns64": mapping["dns64"] | {"addresses": network},
            }


@contextmanager
def client(mapping: dict[str, Any]) -> Iterator[Client]:
    setup = configuration.parse(mapping, origin="test")
    with engine_on(setup, 1518) as tester:
        tester.environment()
        yield Client(setup, tester, NamesInTurn())


@pytest.mark.parametrize("lab_name", LABS)
@pytest.mark.parametrize("cached", [0, 50])
def test_all_names_of_another_server_are_answered(lab_name: str, cached: int, tmp_path: Path) -> None:
    with with_nsd(lab_name, tmp_path) as mapping, client(mapping) as asking:
        for _ in range(2):
            result = asking.ask_all(cached=cached)
            assert result.forward is not None
            assert (result.forward.sent, result.forward.received) == (200, 200)
            assert result.forward.answers is not None
            assert not result.forward.answers.in_words()
            assert result.server is None


def test_names_that_the_other_server_does_not_have_are_told(tmp_path: Path) -> None:
    """NSD knows the first 128 of 200 names."""
    with with_nsd("refdut-dns64", tmp_path, "198.18.0.0/25") as mapping:
        mapping["dns64"]["addresses"] = "198.18.0.0/24"
        with client(mapping) as asking:
            dut = RefDut(Path(mapping["dut"]["control"]))

            def measure() -> tuple[DirectionCounts, Dns64Truth]:
                dut.configure(Dns64Properties())
                counts, truth = replace(asking, names=NamesInTurn()).ask().forward, dut.counters().dns64
                assert counts is not None
                assert truth is not None
                return counts, truth

            counts, _ = until(measure, lambda one: not one[1].retries, lambda one: str(one[1]))
    assert counts.answers is not None
    assert counts.answers.wrong == {"nxdomain": 72}
    assert counts.received == 128


DNSPERF = pytest.mark.skipif(shutil.which("dnsperf") is None, reason="needs Debian's dnsperf")
QPS, QUERIES = 500, 1_000


def queries_of(setup: Setup) -> int:
    """How many queries the DUT itself counted so far."""
    [dut] = setup.duts()
    if dut.control is not None:
        truth = RefDut(Path(dut.control)).counters().dns64
        assert truth is not None
        return truth.queries
    assert dut.commands is not None
    assert dut.commands.state is not None
    said = subprocess.run(dut.commands.state, check=True, capture_output=True, text=True).stdout
    return next(int(number) for name, number in map(str.split, said.splitlines()) if name == "queries")


def dnsperf(host: Namespace, server: str, names: Path) -> dict[str, int]:
    """What dnsperf counts, at the same rate with the same number of names."""
    argv = ["dnsperf", "-s", server, "-d", str(names), "-Q", str(QPS), "-n", "1", "-c", "1", "-T", "1", "-e"]
    said = subprocess.run(host.command(argv), check=True, capture_output=True, text=True).stdout
    lines = {name: rf"Queries {name}: +([0-9]+)" for name in ("sent", "completed", "lost")}
    found = {name: re.search(line, said) for name, line in (lines | {"noerror": "NOERROR ([0-9]+)"}).items()}
    return {name: int(one[1]) for name, one in found.items() if one is not None}


@DNSPERF
@pytest.mark.parametrize("lab_name", LABS)
def test_dnsperf_and_the_client_see_the_same_server(lab_name: str, tmp_path: Path) -> None:
    """Both ask for 1,000 names at 500 queries/s, every query is answered, and the DUT counts as many of each."""
    names = tmp_path / "names"
    names.write_text("".join(f"{one.split()[0]}.{ZONE} AAAA\n" for one in list(of_addresses(NETWORK))[-QUERIES:]))
    with with_nsd(lab_name, tmp_path) as mapping:
        setup = configuration.parse(mapping, origin="test")
        with client(mapping) as asking:

            def measure() -> tuple[TrialResult, int]:
                before = queries_of(setup)
                return asking.ask(qps=QPS, duration_s=QUERIES / QPS), queries_of(setup) - before

            asked, counted = until(
                measure,
                lambda one: one[0].verdict is Verdict.VALID and not one[0].worst_loss_ratio,
                lambda one: str([cause.text for cause in one[0].causes]),
            )
        assert asked.forward is not None
        assert (asked.forward.sent, asked.forward.received, counted) == (QUERIES, QUERIES, QUERIES)
        before = queries_of(setup)
        theirs = dnsperf(replace_side(mapping, "left"), str(mapping["dns64"]["server"]), names)
        assert theirs == {"sent": QUERIES, "completed": QUERIES, "lost": 0, "noerror": QUERIES}
        assert queries_of(setup) - before == QUERIES


def dns64perf(directory: Path, mapping: dict[str, Any], *words: object) -> subprocess.CompletedProcess[str]:
    """The command in a directory with the configuration of the client's port."""
    without = {key: value for key, value in mapping["dns64"].items() if key not in ("server", "addresses")}
    (directory / "dns64perf.yaml").write_text(yaml.safe_dump(mapping | {"dns64": without | {"zone": ZONE}}))
    argv = [sys.executable, "-c", "from dutperf.start import dns64perf; dns64perf()", *map(str, words)]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=60)


def test_dns64perfs_command_asks_as_the_original_does(tmp_path: Path) -> None:
    """Three threads, bursts of two, 400 queries/s; the DUT answers each sixth query wrongly."""
    server = tmp_path / "nsd"
    server.mkdir()
    with with_nsd("refdut-dns64", server, "198.18.0.0/24") as mapping:
        dut = RefDut(Path(mapping["dut"]["control"]))

        def measure() -> tuple[subprocess.CompletedProcess[str], Dns64Truth]:
            dut.configure(Dns64Properties(servfail_every=6))
            address = mapping["dns64"]["server"]
            done = dns64perf(tmp_path, mapping, address, 53, "198.18.0.0/24", 240, 2, 3, 15_000_000, 1)
            truth = dut.counters().dns64
            assert truth is not None
            return done, truth

        done, counted = until(
            measure,
            lambda one: "Received answers: 240" in one[0].stdout and not one[1].retries,
            lambda one: f"{one[0].returncode} {one[0].stderr} {one[1]}",
        )
    assert done.returncode == (3 if "the test is invalid" in done.stderr else 0)
    assert counted.queries == 240
    told = dict(line.split(": ") for line in done.stdout.splitlines())
    assert told["Sent queries"] == told["Received answers"] == "240"
    assert told["Valid answers"] == "200 (83.33%)"
    assert 0 < float(told["Average round-trip time"].removesuffix(" ms")) < 1000
    parameters, _, rows = (tmp_path / "dns64perf.csv").read_text().partition(f"{HEADER}\n")
    assert "threads: 3\n" in parameters
    queries = list(csv.reader(rows.splitlines(), delimiter=";"))
    assert [(int(row[0]), int(row[1])) for row in queries] == [(name, name // 80) for name in range(240)]
    assert sum(row[5] == "1" for row in queries) == 200
    sent = [int(row[2]) for row in queries]
    assert sent[0] < sent[80] < sent[160] < sent[2], "the threads take turns"
    assert all(int(row[3]) - int(row[2]) == pytest.approx(int(row[6]), abs=1) for row in queries)
