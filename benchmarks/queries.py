# SPDX-License-Identifier: Apache-2.0
"""How many DNS queries a second one core asks, answers and checks, and how many dnsperf has answered by NSD where both
have that one core: part of ``make bench``.

The tester is client and name server, as in its self-test (RFC 8219 section 9.2.1): joined in memory, and on a cable of
the kernel's. dnsperf and NSD are on such a cable, in namespaces of their own. Each round measures all, one right after
the other; what counts is the median, and the best round is told beside it. Prints a table and adds its entries to
``bench.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv6Address
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

from cases import Case, Ports
from speed import engine_of

from dutperf import lab
from dutperf.engine.client import EngineTester
from dutperf.lab.dns64 import unconfined
from dutperf.lab.hosts import Hosts, replace_tester
from dutperf.machine.processor import cpu_model
from dutperf.model import NameServer, Questions, Spread, Stamping, Stream, Trial
from dutperf.model.questions import ZONE

CLIENT, SERVER = "2001:2::2", "2001:2:0:8000::2"
TRIAL_S = 0.3
MOST_QPS = 10_000_000
"""More than a core can answer: what counts is how many are answered in the sending time."""
DNSPERF_S = 2
NAMES = 10_000
OUTSTANDING = (100, 1_000)
"""Queries of dnsperf that wait for their answers; the better rate counts."""
LEAST_QPS, LEAST_RATIO = 1_000_000, 5.0
"""What is aimed at: queries/s in memory, and their ratio to dnsperf with NSD."""
IN_MEMORY = "ask and answer on one core, in memory"
LOOPED: dict[str, Ports] = {
    IN_MEMORY: "ring",
    "ask and answer on one core, over veth, af_packet": "af_packet",
    "ask and answer on one core, over veth, af_xdp": "af_xdp",
}
REFERENCE = "dnsperf with NSD on one core, over veth"


def trial(number: int) -> Trial:
    """Queries for names with an AAAA record, each with its time stamp and checked."""
    asked = Questions(source=IPv6Address(CLIENT), destination=IPv6Address(SERVER), aaaa=Spread(n=1, m=1))
    return Trial(
        trial=number,
        duration_ns=round(TRIAL_S * 1e9),
        drain_ns=10_000_000,
        stamping=Stamping.EVERY,
        frame_timeout_ns=1_000_000_000,
        forward=Stream(rate_fps=MOST_QPS, questions=asked),
        server=NameServer(),
    )


def answered(tester: EngineTester, number: int) -> float:
    """Queries/s with a right answer in time."""
    counts = tester.run(trial(number)).forward
    assert counts is not None
    return counts.received / counts.send_time_s


def looped(ports: Ports, core: int, number: int) -> float:
    """The same, of an engine of its own on a core."""
    with engine_of(Case("", ports=ports), [core]) as tester:
        return answered(tester, number)


@contextmanager
def nsd(hosts: Hosts, address: str, core: int) -> Iterator[Path]:
    """NSD with its names on a core of the right host; the file of queries for dnsperf."""
    with TemporaryDirectory(prefix="dutperf-bench-") as name:
        directory = Path(name)
        labels = [f"n{number:05}" for number in range(NAMES)]
        records = [f"{label} AAAA 2001:2:0:d64::{number:x}" for number, label in enumerate(labels)]
        soa = f"$ORIGIN {ZONE}.\n$TTL 3600\n@ SOA ns hostmaster 1 3600 600 86400 3600\n@ NS ns\nns A {address}\n"
        (directory / "zone").write_text(soa + "".join(f"{record}\n" for record in records))
        (directory / "queries").write_text("".join(f"{label}.{ZONE} AAAA\n" for label in labels))
        (directory / "nsd.conf").write_text(
            f'server:\n  ip-address: {address}\n  zonesdir: "{name}"\n  xfrdfile: "{name}/xfrd"\n  xfrdir: "{name}"\n'
            f'  zonelistfile: "{name}/zones"\n  pidfile: ""\n  database: ""\n  username: ""\n  chroot: ""\n'
            f'  logfile: "{name}/log"\n  server-count: 1\n  rrl-ratelimit: 0\n  minimal-responses: yes\n'
            f'remote-control:\n  control-enable: no\nzone:\n  name: "{ZONE}"\n  zonefile: "zone"\n'
        )
        argv = ["taskset", "-c", str(core), *unconfined(["nsd", "-d", "-c", f"{name}/nsd.conf"])]
        with subprocess.Popen(hosts.right.command(argv)) as server:
            try:
                while ":53 " not in _output(hosts.right.command(["ss", "-lun"])):
                    if server.poll() is not None:
                        sys.exit((directory / "log").read_text())
                    time.sleep(0.1)
                yield directory / "queries"
            finally:
                server.terminate()


def dnsperf(hosts: Hosts, address: str, core: int, queries: Path) -> float:
    """Its highest rate of answers, on the same core."""

    def rate(outstanding: int) -> float:
        asked = ["dnsperf", "-s", address, "-d", str(queries), "-l", str(DNSPERF_S), "-q", str(outstanding)]
        said = _output(hosts.left.command(["taskset", "-c", str(core), *asked]))
        found = re.search(r"Queries per second: +([0-9.]+)", said)
        if found is None or not float(found[1]):
            sys.exit(f"nothing was answered:\n{said}")
        return float(found[1])

    return max(map(rate, OUTSTANDING))


def _output(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def reference(stack: ExitStack, core: int) -> Callable[[], float]:
    """Measures dnsperf with NSD, which runs as long as the stack is open."""
    mapping = stack.enter_context(lab.bring_up("loopback", {}))
    hosts, address = replace_tester(mapping), mapping["right"]["ipv4"].partition("/")[0]
    for host, port, other in ((hosts.left, "tl", "right"), (hosts.right, "tr", "left")):
        _output(host.command(["ethtool", "--features", port, "tx", "on"]))  # as a cable of the kernel's has it
        host.ip(f"route add {mapping[other]['ipv4'].partition('/')[0]} dev {port}")
    queries = stack.enter_context(nsd(hosts, address, core))
    return lambda: dnsperf(hosts, address, core, queries)


def main() -> None:
    """Measures, prints the table and adds to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="COUNT")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    chosen = parser.parse_args()
    core = max(os.sched_getaffinity(0))
    missing = [program for program in ("dnsperf", "nsd") if shutil.which(program) is None]
    measured: dict[str, list[float]] = {name: [] for name in (*LOOPED, *([] if missing else [REFERENCE]))}
    with ExitStack() as stack:
        ask = None if missing else reference(stack, core)
        for number in range(chosen.rounds):
            for name, ports in LOOPED.items():
                measured[name].append(looped(ports, core, number))
            if ask is not None:
                measured[REFERENCE].append(ask())
    _add(chosen.out, [_entry(name, rates, measured.get(REFERENCE)) for name, rates in measured.items()])
    _show(measured, missing)


def _ratio(rates: list[float], reference: list[float] | None) -> float | None:
    """The median over the rounds; None: there is no reference."""
    return None if reference is None else median(one / other for one, other in zip(rates, reference, strict=True))


def _entry(name: str, rates: list[float], reference: list[float] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "value": round(median(rates)), "unit": "queries/s answered"}
    if reference is not None and reference is not rates:
        ratio = _ratio(rates, reference)
        entry |= {"reference": REFERENCE, "reference_value": round(median(reference)), "ratio": round(ratio or 0, 3)}
    return entry


def _add(path: Path, entries: list[dict[str, Any]]) -> None:
    """To those of other benchmarks in the file."""
    names = {entry["name"] for entry in entries}
    others = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([one for one in others if one["name"] not in names] + entries, indent=2) + "\n")


def _show(measured: dict[str, list[float]], missing: list[str]) -> None:
    table = Table(title=f"DNS queries a second, {cpu_model(Path('/proc/cpuinfo').read_text())}", title_justify="left")
    for column in ("", "median", "best", "aimed at", "to dnsperf with NSD", "best to best", "aimed at"):
        table.add_column(column, justify="left" if not column else "right")
    of_others = measured.get(REFERENCE)
    for name, rates in measured.items():
        goals = (f"{LEAST_QPS:,}", f"{LEAST_RATIO:.1f}") if name == IN_MEMORY else ("", "")
        ratio = "" if of_others is None or rates is of_others else f"{_ratio(rates, of_others):.1f}"
        best = f"{max(rates) / max(of_others):.1f}" if ratio and of_others is not None else ""
        table.add_row(name, f"{median(rates):,.0f}", f"{max(rates):,.0f}", goals[0], ratio, best, goals[1])
    Console(width=140).print(table)
    if missing:
        print(f"not compared with dnsperf and NSD, as there is no {' and no '.join(missing)} here (apt-get install)")


if __name__ == "__main__":
    main()
