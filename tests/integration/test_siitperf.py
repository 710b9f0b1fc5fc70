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
from dutperf.exit_status import INVALID
from dutperf.tester.validity import DUT_DISTURBED
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
def workplace(name: str, text: str, directory: Path) -> Iterator[Workplace]:
    """One with the lab ``name``, and ``text`` in siitperf.conf."""
    (directory / "siitperf.conf").write_text(text)
    link_commands(directory)
    with lab.bring_up(name, {}) as mapping:
        yield Workplace(directory, mapping)


DUTS = [("kernel-ipv4", ROUTER), ("tayga-siit", TRANSLATOR)]


@pytest.mark.parametrize(("name", "text"), DUTS, ids=[row[0] for row in DUTS])
def test_scripts_for_siitperf_run_unchanged(name: str, text: str, tmp_path: Path) -> None:
    with workplace(name, text, tmp_path) as here:
        [found] = here.script("throughput", "84", "4000", "1000", "1")
        assert found["Size"] == "84"
        assert 0 <= int(found["Rate"]) < 4000
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
        return done.returncode == INVALID and {cause["code"] for cause in json.loads(done.stdout)["causes"]} <= {
            DUT_DISTURBED
        }

    done = until(lambda: here.run(sys.executable, "-m", "dutperf", *trial), passes, if_busy=sure)
    return {direction: json.loads(done.stdout)[direction]["received"] for direction in ("forward", "reverse")}


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
        assert silent.returncode == 2
        assert re.search(r"^Error: MAC-R-DUT: .*DUTPERF_GATEWAYS$", silent.stderr, re.MULTILINE)
        elsewhere = here.run("./build/siitperf-tp", *["84", "1000", "1", "300", "2", "2"], NETNS="no-such-namespace")
        assert "Error: DUTPERF_NETNS: there is no network namespace no-such-namespace" in elsewhere.stderr
        assert "Traceback" not in silent.stderr + elsewhere.stderr
