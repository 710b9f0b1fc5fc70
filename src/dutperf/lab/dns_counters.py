# SPDX-License-Identifier: Apache-2.0
"""Counters of a DNS server, asked from the server itself.

A program of its own, run as ``python3 -I -S dns_counters.py KIND DIRECTORY`` inside the DUT's namespace. It imports
nothing of this package, so it starts fast. It prints lines of a name and a number since the start of the server:

=================  ================================================================
queries            that clients sent
upstream_queries   that the server sent to the authoritative one, repeated ones too
cache_hits         queries that it answered without asking
servfail           answers with SERVFAIL
=================  ================================================================
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

COUNTERS_PORT = 8053
"""TCP port on the loopback interface of the DUT's namespace where BIND shows its counters."""
LIMIT_S = 10
"""Time limit for an answer, in seconds."""
Counters = dict[str, int]


def unbound(directory: Path) -> Counters:
    """By ``unbound-control``."""
    told = _pairs(_run("unbound-control", "-c", f"{directory}/unbound.conf", "stats_noreset"), "=")
    return {
        "queries": told["total.num.queries"],
        "upstream_queries": told["num.query.udpout"] + told["num.query.tcpout"],
        "cache_hits": told["total.num.cachehits"],
        "servfail": told.get("num.answer.rcode.SERVFAIL", 0),
    }


def bind9(_directory: Path) -> Counters:
    """By its statistics channel, which counts no hits of queries: those are without recursion."""
    with urllib.request.urlopen(f"http://127.0.0.1:{COUNTERS_PORT}/json/v1/server", timeout=LIMIT_S) as answer:
        told = json.load(answer)
    own: dict[str, int] = told.get("nsstats", {})  # absent before the first query
    sent: dict[str, int] = told["views"]["_default"]["resolver"].get("stats", {})
    queries = own.get("Requestv4", 0) + own.get("Requestv6", 0)
    return {
        "queries": queries,
        "upstream_queries": sent.get("Queryv4", 0) + sent.get("Queryv6", 0),
        "cache_hits": queries - own.get("QryRecursion", 0),
        "servfail": own.get("QrySERVFAIL", 0),
    }


def knot(directory: Path) -> Counters:
    """By the control socket of each process."""
    total: Counters = {}
    for path in (directory / "control").iterdir():
        own, worker = _ask_knot(path, "tojson({stats.list(), worker.stats()})")
        counted = {
            "queries": own["request.total"] - own["request.internal"],
            "upstream_queries": worker["udp"] + worker["tcp"],
            "cache_hits": own["answer.cached"],
            "servfail": own["answer.servfail"],
        }
        total = {name: total.get(name, 0) + count for name, count in counted.items()}
    return total


def pdns(directory: Path) -> Counters:
    """By ``rec_control``. It has two caches: of answers, and of records for what is not there."""
    told = _pairs(_run("rec_control", f"--socket-dir={directory}", "get-all"), "\t")
    return {
        "queries": told["questions"],
        "upstream_queries": told["all-outqueries"] + told["tcp-outqueries"],
        "cache_hits": told["packetcache-hits"] + told["cache-hits"],
        "servfail": told["servfail-answers"],
    }


KINDS: dict[str, Callable[[Path], Counters]] = {"unbound": unbound, "bind9": bind9, "knot": knot, "pdns": pdns}


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        raise OSError(f"{argv[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _pairs(text: str, separator: str) -> Counters:
    """Lines of a name and a whole number; others are of no interest."""

    def found() -> Iterator[tuple[str, int]]:
        for line in text.splitlines():
            name, _, number = line.partition(separator)
            if number.strip().isdigit():
                yield name, int(number)

    return dict(found())


def _ask_knot(path: Path, expression: str) -> Any:
    """What an expression of Lua gives, as JSON: the answer is a line in quotes, after the prompt."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(LIMIT_S)
        control.connect(str(path))
        control.sendall(f"{expression}\n".encode())
        answer = b""
        while not (answer.rstrip(b" >\n").endswith(b"'") and answer.count(b"'") >= 2):
            if not (part := control.recv(65536)):
                raise OSError(f"{path} gave no answer")
            answer += part
    return json.loads(answer.partition(b"'")[2].rpartition(b"'")[0])


def main(kind: str, directory: str) -> None:
    print("".join(f"{name} {count}\n" for name, count in KINDS[kind](Path(directory)).items()), end="")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except (OSError, KeyError, subprocess.TimeoutExpired) as error:
        sys.exit(f"dns_counters: {error}")
