# SPDX-License-Identifier: Apache-2.0
"""Debian's DNS64 servers as docs/dns64.md configures them, in namespaces made by hand (by_hand.sh), measured with the
configuration of the same page: what they count themselves is what the tester's client and name server count. Root
only."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents import blocks
from dutperf.lab import dns_counters
from dutperf.lab.dns64 import unconfined
from dutperf.lab.dns_servers import SERVERS, DnsServer
from undisturbed import until

from .test_by_hand import made
from .test_commands import dutperf

pytestmark = pytest.mark.root
DOCUMENT = "docs/dns64.md"
FILES = {
    "unbound": "/etc/unbound/unbound.conf.d/dns64.conf",
    "bind9": "/etc/bind/named.conf",
    "knot": "/etc/knot-resolver/kresd.conf",
    "pdns": "/etc/powerdns/recursor.conf",
}
"""Of each server the file whose contents the page has; its name is in the first line."""
START = {
    "unbound": "unbound -d -p -c unbound.conf",
    "bind9": "named -f -c named.conf",
    "knot": "kresd -n -c kresd.conf .",
    "pdns": "pdns_recursor --config-dir=. --write-pid=no",
}
COUNTING = {
    "unbound": (
        "server:\n  extended-statistics: yes\n  username: ''\n  chroot: ''\nremote-control:\n  control-enable: yes\n"
        "  control-interface: {here}/unbound.sock\n  control-use-cert: no\n"
    ),
    "bind9": f"statistics-channels {{{{ inet 127.0.0.1 port {dns_counters.COUNTERS_PORT}; }}}};\n",
    "knot": "",
    "pdns": "socket-dir={here}\n",
}
"""What shows the server's own counters to this test, beside the configuration of the page."""
QPS, SECONDS, NUMBERS = 400, 0.5, count(1)
TESTED = [
    pytest.param(
        one,
        id=one.key,
        marks=pytest.mark.skipif(shutil.which(one.program) is None, reason=f"needs Debian's {one.package}"),
    )
    for one in SERVERS
]


def shown(path: str) -> str:
    """The contents of a file as the page has them."""
    [text] = [block.text for block in blocks(DOCUMENT) if re.match(rf"\W+{re.escape(path)}\n", block.text)]
    return text


@contextmanager
def server(one: DnsServer, netns: str, here: Path) -> Iterator[None]:
    """A server in its namespace with the page's configuration; its files stay in ``here``."""
    name = START[one.key].partition(".conf")[0].rpartition(" ")[2] if one.key != "pdns" else "recursor"
    text = shown(FILES[one.key]).replace("/var/cache/bind", str(here))
    (here / f"{name}.conf").write_text(text + COUNTING[one.key].format(here=here))
    argv = ["ip", "netns", "exec", f"{netns}-dut", *unconfined(START[one.key].split())]
    with (here / "log").open("w") as log, subprocess.Popen(argv, cwd=here, stdout=log, stderr=log) as process:
        try:
            Path(f"/proc/{process.pid}/autogroup").write_text("-20")  # as on a machine without other work
            yield
        finally:
            process.terminate()


def counted(one: DnsServer, netns: str, here: Path) -> dict[str, int]:
    """What the server has counted since its start."""
    program = [sys.executable, "-I", "-S", dns_counters.__file__, one.key, str(here)]
    for _ in range(50):
        done = subprocess.run(["ip", "netns", "exec", f"{netns}-dut", *program], capture_output=True, text=True)
        if done.returncode == 0:
            return {name: int(number) for name, number in map(str.split, done.stdout.splitlines())}
        time.sleep(0.1)
    raise AssertionError(done.stderr + (here / "log").read_text())


def configuration(netns: str, here: Path) -> str:
    """The page's file of the test setup, in a namespace."""
    text = shown("dns64.yaml: the DUT has 2001:2::1 at the tester's eth1 and 198.19.0.1 at eth2")
    file = here / "dns64.yaml"
    file.write_text(yaml.safe_dump({"engine": {"netns": netns}, **yaml.safe_load(text)}))
    return str(file)


def results(out: Path) -> list[dict[str, Any]]:
    """Of all trials, from the journal."""
    events = map(json.loads, (out / "journal.jsonl").read_text().splitlines())
    return [event["result"] for event in events if event["event"] == "result"]


@pytest.mark.long
@pytest.mark.parametrize("one", TESTED)
def test_a_server_configured_as_the_page_says_counts_what_the_tester_does(one: DnsServer, tmp_path: Path) -> None:
    search = f"--min-rate {QPS} --max-rate {QPS} --duration {SECONDS} --drain 1 --settle 0 --repetitions 1".split()
    with made("dns64") as netns, server(one, netns, tmp_path):
        file = configuration(netns, tmp_path)

        def measure() -> tuple[list[dict[str, Any]], dict[str, int]]:
            out, before = tmp_path / f"out{next(NUMBERS)}", counted(one, netns, tmp_path)
            done = dutperf("dns64", "--config", file, *search, "--out", str(out))
            assert (out / "journal.jsonl").exists(), done.stderr
            return results(out), {name: now - before[name] for name, now in counted(one, netns, tmp_path).items()}

        trials, own = until(
            measure,
            lambda found: all(trial["verdict"] == "valid" and not trial["forward"]["lost"] for trial in found[0]),
            lambda found: str([cause["text"] for trial in found[0] for cause in trial["causes"]]),
        )
    queries = sum(trial["forward"]["sent"] for trial in trials)
    by_type = [trial["server"]["queries"] for trial in trials]
    assert queries == len(trials) * QPS * SECONDS
    assert own["queries"] == queries
    assert own["upstream_queries"] == sum(asked["aaaa"] + asked["a"] + asked["other"] for asked in by_type)
    assert [(asked["aaaa"], asked["a"]) for asked in by_type] == [(QPS * SECONDS, QPS * SECONDS)] * len(trials)
