# SPDX-License-Identifier: Apache-2.0
"""Scripts as they are written for siitperf, run unchanged on real DUTs, and the commands next to
``dutperf trial``. Root only."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dutperf import lab
from dutperf.exit_status import INVALID, NOT_NOW
from dutperf.judge.validity import DUT_DISTURBED
from printed import printed
from siitperf_files import ROUTER, TRANSLATOR, link_commands, with_lines
from undisturbed import until

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

SCRIPTS = Path(__file__).parent / "siitperf_scripts"
Command = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Workplace:
    """A directory with siitperf.conf and build/, and a lab that the variables lead to."""

    directory: Path
    mapping: dict[str, Any]

    def run(self, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command there, on the cores that are not the DUT's."""
        netns = self.mapping["engine"]["netns"]
        ours = {"PORTS": "tl,tr", "NETNS": netns, "CORES": "auto", "LEARNING_REST": "0.1"} | variables
        environment = os.environ | {f"DUTPERF_{name}": value for name, value in ours.items()}
        free = os.sched_getaffinity(0) - set(self.mapping["engine"].get("dut_cores", [])) or os.sched_getaffinity(0)
        keep_off = ["taskset", "--cpu-list", ",".join(map(str, sorted(free)))]
        return subprocess.run(
            [*keep_off, *argv],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def script(self, name: str, *arguments: str) -> list[dict[str, str]]:
        """The rows of the CSV file that a script leaves."""
        done = self.run(str(SCRIPTS / f"{name}.sh"), *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        with (self.directory / f"{name}.csv").open() as file:
            return list(csv.DictReader(file))

    def in_dut(self, *argv: str) -> str:
        """Output of a command in the DUT's namespace."""
        dut = self.mapping["engine"]["netns"].removesuffix("tester") + "dut"
        return subprocess.run(["ip", "netns", "exec", dut, *argv], check=True, capture_output=True, text=True).stdout


@contextmanager
def workplace(name: str, text: str, directory: Path, **options: str) -> Iterator[Workplace]:
    """One with the lab ``name``, and ``text`` in siitperf.conf."""
    (directory / "siitperf.conf").write_text(text)
    link_commands(directory)
    with lab.bring_up(name, options) as mapping:
        yield Workplace(directory, mapping)


NAT44 = (
    "Stateful 1",
    "Enumerate-ports 3",
    "Fwd-sport-min 1024",
    "Fwd-sport-max 1123",
    "Fwd-dport-min 1",
    "Fwd-dport-max 10",
)
SOURCES = ("IP-L-var 3", "IP-L-min 2", "IP-L-max 11", "IPv4-L-offset 2")
DESTINATIONS = ("IP-R-var 3", "IP-R-min 20", "IP-R-max 24", "IPv4-R-offset 2")
CLEAR = """\
#!{python}
from pathlib import Path
from dutperf.lab.refdut import RefDut

RefDut(Path("{socket}")).clear_connections()
"""
DUTS = [("kernel-ipv4", ROUTER), ("tayga-siit", TRANSLATOR)]


@pytest.mark.parametrize(
    ("name", "text"),
    [DUTS[0], pytest.param(*DUTS[1], marks=pytest.mark.long)],
    ids=[row[0] for row in DUTS],
)
def test_a_script_for_the_throughput_runs_unchanged(name: str, text: str, tmp_path: Path) -> None:
    with workplace(name, text, tmp_path) as here:
        [found] = here.script("throughput", "84", "4000", "1000", "1")
    assert found["Size"] == "84"
    assert 0 <= int(found["Rate"]) < 4000


@pytest.mark.long
@pytest.mark.parametrize(("name", "text"), DUTS, ids=[row[0] for row in DUTS])
def test_scripts_for_losses_and_delays_run_unchanged(name: str, text: str, tmp_path: Path) -> None:
    with workplace(name, text, tmp_path) as here:
        losses = here.script("frame_loss", "84", "2000", "500")
        assert [row["Rate"] for row in losses] == ["2000", "500"]
        assert all(0 <= float(row[direction]) <= 1 for row in losses for direction in ("Forward", "Reverse"))
        [latency] = here.script("latency", "84", "1000", "1")
        if latency["FwdTL"]:  # an invalid trial has none
            assert 0 < float(latency["FwdTL"]) <= float(latency["FwdWCL"])
            assert 0 < float(latency["RevTL"]) <= float(latency["RevWCL"])
        [pdv] = here.script("pdv", "84", "1000", "1")
        if pdv["Forward"]:
            assert float(pdv["Forward"]) > 0
            assert float(pdv["Reverse"]) > 0


NATS = [pytest.param("nft-nat44", marks=pytest.mark.long), "refdut-nat44"]


@pytest.mark.long
@pytest.mark.parametrize("name", NATS)
def test_scripts_for_stateful_tests_run_unchanged(name: str, tmp_path: Path) -> None:
    with workplace(name, with_lines(ROUTER, *NAT44, "Responder-tuples 3"), tmp_path) as here:
        [found] = until(
            lambda: here.script("connection_rate", "1000", "10000", "4000"),
            lambda rows: 0 < int(rows[0]["Rate"]) < 10_000,
        )
        assert found["Connections"] == "1000"
        [found] = until(
            lambda: here.script("stateful_throughput", "1000", "2000", "4000", "2000"),
            lambda rows: 0 < int(rows[0]["Rate"]) < 4_000,
        )
        assert found["Unfilled"] == "0"


@pytest.mark.long
@pytest.mark.parametrize("when_full", ["refuse", "evict"])
def test_a_script_for_the_table_capacity_finds_it(when_full: str, tmp_path: Path) -> None:
    """The table refuses connections, so that the state table is not filled; or it evicts some, so that replies are
    lost."""
    lines = with_lines(ROUTER, *NAT44, "Responder-tuples 1", "Forward 0")
    with workplace("refdut-nat44", lines, tmp_path, connections="700", when_full=when_full) as here:
        clear = tmp_path / "clear"
        clear.write_text(CLEAR.format(python=sys.executable, socket=here.mapping["dut"]["control"]))
        clear.chmod(0o755)
        until(
            lambda: here.script("table_capacity", "680", "720", "1", "4000", "./clear"),
            lambda rows: rows[0]["Capacity"] == "700",
        )


STATEFUL: list[tuple[str, tuple[str, ...], str]] = [
    # lines of the file, arguments
    ("one entry", ("Enumerate-ports 0", "Responder-tuples 0"), "84 500 1 300 2 2 1 1 1000 300 400"),
    ("a smaller table", ("Responder-tuples 2",), "84 500 1 300 2 2 1000 500 4000 300 700"),
    (
        "no enumeration",
        ("Enumerate-ports 0", "Responder-tuples 1", "Fwd-var-sport 3", "Fwd-var-dport 3"),
        "84 500 1 300 2 2 3000 1000 4000 300 1200",
    ),
    (
        "addresses",
        ("Enumerate-ips 1", "Enumerate-ports 0", *SOURCES),
        "84 500 1 300 2 2 10 10 100 300 500",
    ),
    (
        "addresses of both sides",
        ("Enumerate-ips 3", "Responder-tuples 1", *SOURCES, *DESTINATIONS),
        "84 500 1 300 2 2 2000 2000 4000 300 900",
    ),
]


@pytest.mark.parametrize(
    ("lines", "arguments"),
    [pytest.param(*row[1:3], marks=[pytest.mark.long] * (number > 0)) for number, row in enumerate(STATEFUL)],
    ids=[row[0] for row in STATEFUL],
)
def test_every_frame_passes_a_nat_in_both_directions(lines: tuple[str, ...], arguments: str, tmp_path: Path) -> None:
    with workplace("refdut-nat44", with_lines(with_lines(ROUTER, *NAT44), *lines), tmp_path) as here:
        done = until(
            lambda: here.run("./build/siitperf-tp", *arguments.split()), passes, lambda done: done.stdout + done.stderr
        )
        frames = arguments.split()[6]
        for line in (
            f"Preliminary frames sent: {frames}",
            f"Preliminary frames received: {frames}",
            "Info: Preliminary phase finished.",
            "Forward frames sent: 500",
            "Forward frames received: 500",
            "Reverse frames sent: 500",
            "Reverse frames received: 500",
        ):
            assert line in done.stdout.splitlines()


@pytest.mark.long
def test_the_commands_agree_with_a_trial_to_the_frame(tmp_path: Path) -> None:
    """The router drops by UDP port: which frames are lost is a matter of the seed alone. MAC
    addresses stand in the file, as siitperf needs them."""
    ports = "Fwd-var-sport 3\nFwd-var-dport 3\nRev-var-sport 3\nRev-var-dport 1\n"
    with workplace("kernel-ipv4", ROUTER + ports, tmp_path) as here:
        macs = [
            f"MAC-{side}-DUT {json.loads(here.in_dut('ip', '-j', 'link', 'show', port))[0]['address']}"
            for side, port in (("L", "dl"), ("R", "dr"))
        ]
        (tmp_path / "siitperf.conf").write_text(with_lines(ROUTER + ports, *macs))
        here.in_dut(
            "nft",
            "add table inet t; add chain inet t f { type filter hook forward priority 0; }; add rule inet t f udp dport"
            " < 20000 drop",
        )
        by_trial = _by_trial(here, "7")
        assert 0 < by_trial["forward"] < 1000
        commands = (
            ("tp", "84 1000 1 300 2 2"),
            ("lat", "84 1000 1 300 2 2 0 500"),
            ("pdv", "84 1000 1 300 2 2 0"),
            ("pdv", "84 1000 1 300 2 2 1299"),
        )
        for name, arguments in commands:
            assert _by_command(here, name, arguments, "7") == by_trial
        assert _by_command(here, "tp", "84 1000 1 300 2 2", "8") != by_trial


def passes(done: Command) -> bool:
    """Whether the trial of a command was valid."""
    return done.returncode == 0


def _by_trial(here: Workplace, seed: str) -> dict[str, int]:
    """Received frames of ``dutperf trial`` with the file that was converted."""
    converted = here.run(sys.executable, "-m", "dutperf", "convert")
    (here.directory / "ours.yaml").write_text(converted.stdout)
    trial = [
        "trial",
        "--config",
        "ours.yaml",
        "--frame-size",
        "64",
        "--rate",
        "1000",
        "--duration",
        "1",
        "--drain",
        "0.3",
        "--seed",
        seed,
        "--json",
    ]

    def sure(done: Command) -> bool:
        """The loss is certain: whether others had the DUT's core does not matter."""
        return done.returncode == INVALID and {cause["code"] for cause in printed(done)["causes"]} <= {DUT_DISTURBED}

    done = until(lambda: here.run(sys.executable, "-m", "dutperf", *trial), passes, if_busy=sure)
    return {direction: printed(done)[direction]["received"] for direction in ("forward", "reverse")}


def _by_command(here: Workplace, name: str, arguments: str, seed: str) -> dict[str, int]:
    """Those that a command prints."""

    def sure(done: Command) -> bool:
        said = [line for line in done.stdout.splitlines() if "invalid" in line]
        return done.returncode == INVALID and all("of the core of the DUT" in line for line in said)

    done = until(lambda: here.run(f"./build/siitperf-{name}", *arguments.split(), SEED=seed), passes, if_busy=sure)
    return {
        direction.lower(): int(frames)
        for direction, frames in re.findall(r"^(\w+) frames received: (\d+)$", done.stdout, re.MULTILINE)
    }


def test_errors_name_what_to_do(tmp_path: Path) -> None:
    with workplace("kernel-ipv4", ROUTER, tmp_path) as here:
        here.in_dut("ip", "address", "flush", "dev", "dr")
        silent = here.run("./build/siitperf-tp", *["84", "1000", "1", "300", "2", "2"])
        assert silent.returncode == NOT_NOW
        assert re.search(r"^Error: MAC-R-DUT: .*DUTPERF_GATEWAYS$", silent.stderr, re.MULTILINE)
        elsewhere = here.run("./build/siitperf-tp", *["84", "1000", "1", "300", "2", "2"], NETNS="no-such-namespace")
        assert "Error: DUTPERF_NETNS: there is no network namespace no-such-namespace" in elsewhere.stderr
        assert "Traceback" not in silent.stderr + elsewhere.stderr
