# SPDX-License-Identifier: Apache-2.0
"""NSD as an authoritative name server that is not the tester's, and zones for it: the names of a network's addresses,
as users of dns64perf++ have them, and the numbered names of the tester's own."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from dutperf.lab.dns64 import unconfined
from dutperf.lab.netns import Namespace

from .dns_peers import TTL_S, a_of, aaaa_of

NEEDS_NSD = pytest.mark.skipif(shutil.which("nsd") is None, reason="needs Debian's nsd")


def label(address: IPv4Address) -> str:
    """The name of an address, without the zone."""
    return "-".join(f"{part:03}" for part in address.packed)


def zone_of(zone: str, records: Iterable[str], server: str) -> str:
    """A zone file; the records of the zone itself are those of the tester's own."""
    return "\n".join(
        [
            f"$ORIGIN {zone}.",
            f"$TTL {TTL_S}",
            f"@ SOA ns hostmaster 1 3600 600 86400 {TTL_S}",
            "@ NS ns",
            f"ns A {server}",
            *records,
            "",
        ]
    )


def of_addresses(network: str) -> Iterator[str]:
    """An A record for each address."""
    return (f"{label(address)} A {address}" for address in IPv4Network(network))


def of_numbers(numbers: Iterable[int], mark: str = "00010001") -> Iterator[str]:
    """The records of numbered names, of both kinds; ``mark``: the digits of run and trial."""
    for number in numbers:
        yield f"a{mark}{number:010x} A {a_of(number)}"
        yield f"b{mark}{number:010x} A {a_of(number)}"
        yield f"b{mark}{number:010x} AAAA {aaaa_of(number)}"


@contextmanager
def serving(host: Namespace, directory: Path, address: str, zone: str, text: str) -> Iterator[None]:
    """NSD at port 53 of an address in a namespace, with the ``text`` of a zone file."""
    (directory / "zone").write_text(text)
    (directory / "nsd.conf").write_text(
        f"""server:
  ip-address: {address}@53
  zonesdir: "{directory}"
  xfrdfile: "{directory}/xfrd"
  xfrdir: "{directory}"
  zonelistfile: "{directory}/zones"
  pidfile: ""
  database: ""
  username: ""
  chroot: ""
  logfile: "{directory}/nsd.log"
  server-count: 1
  rrl-ratelimit: 0
  minimal-responses: yes
remote-control:
  control-enable: no
zone:
  name: "{zone}"
  zonefile: "zone"
"""
    )
    argv = host.command(unconfined(["nsd", "-d", "-c", str(directory / "nsd.conf")]))
    with subprocess.Popen(argv) as server:
        try:
            _await_start(host, server, directory)
            yield
        finally:
            server.terminate()


def _await_start(host: Namespace, server: subprocess.Popen[bytes], directory: Path) -> None:
    deadline = time.monotonic() + 20
    while ":53 " not in subprocess.run(host.command(["ss", "-lun"]), capture_output=True, text=True).stdout:
        assert server.poll() is None, (directory / "nsd.log").read_text()
        assert time.monotonic() < deadline, (directory / "nsd.log").read_text()
        time.sleep(0.1)
