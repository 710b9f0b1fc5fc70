# SPDX-License-Identifier: Apache-2.0
"""Labs with DNS64 servers: what they answer, whom they ask, and that they count it as both ends do. Root only."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest
from scapy.all import UDP, IPv6

from dutperf import lab
from dutperf.lab import dns64, site
from dutperf.lab.dns_servers import SERVERS
from dutperf.setup.configuration import parse

from .dns_peers import AAAA, A, a_of, aaaa_of, counters, name, peers_of
from .stations import stations_of
from .test_labs import dut_pids, left_over, namespaces_of, start_owner, wait_for

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

LABS = [
    pytest.param(
        f"{server.key}-dns64",
        id=server.key,
        marks=pytest.mark.skipif(shutil.which(server.program) is None, reason=f"needs Debian's {server.package}"),
    )
    for server in SERVERS
]


def synthesised(configuration: dict[str, Any], number: int) -> list[IPv6Address]:
    """The AAAA record of a name without one."""
    return [IPv6Network(configuration["dns64"]["prefix"])[int(a_of(number))]]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("lab_name", LABS)
def test_it_synthesises_what_is_not_there_and_asks_nothing_twice_and_nobody_else(lab_name: str, version: int) -> None:
    with (
        lab.bring_up(lab_name, {"server_version": str(version)}) as configuration,
        peers_of(configuration) as peers,
    ):
        for number in (1, 131_071, 1_000_000):
            peers.authority.seen.clear()
            assert peers.addresses(name("a", number)) == synthesised(configuration, number)
            assert peers.authority.seen == [(name("a", number), AAAA), (name("a", number), A)]
        peers.authority.seen.clear()
        assert peers.addresses(name("b", 2)) == [aaaa_of(2)]
        assert peers.authority.seen == [(name("b", 2), AAAA)]
        assert peers.addresses(name("a", 1)) == synthesised(configuration, 1)
        assert peers.addresses(name("b", 2)) == [aaaa_of(2)]
        assert peers.authority.seen == [(name("b", 2), AAAA)], "repeated names are answered from the cache"
        assert counters(configuration) == {"queries": 6, "upstream_queries": 7, "cache_hits": 2, "servfail": 0}
        outside = peers.ask("www.example.com.")
        assert outside is not None
        assert outside.rcode != 0
        assert peers.foreign_frames() == []


@pytest.mark.parametrize("lab_name", LABS)
def test_it_forwards_nothing(lab_name: str) -> None:
    """A throughput would be that of this kernel's router, under the server's name."""
    with lab.bring_up(lab_name, {}) as configuration, stations_of(configuration) as both:
        source, destination = (configuration[side]["ipv6"].partition("/")[0] for side in ("left", "right"))
        passed = both.exchange("left", [IPv6(src=source, dst=destination) / UDP(dport=7)], expected=1, wait_s=1)
    assert not [frame for frame in passed if frame.haslayer(UDP) and frame[UDP].dport == 7]


@pytest.mark.parametrize("lab_name", LABS)
def test_it_works_on_several_cores(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usable = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(site.Site, "dut_cores", lambda _site, count: tuple((usable * count)[:count]))
    with lab.bring_up(lab_name, {"cores": "2"}) as configuration, peers_of(configuration) as peers:
        assert dns64.is_listening(min(dut_pids(configuration)), 2)
        for number in range(30):
            assert peers.addresses(name("a", number)) == synthesised(configuration, number)
        assert len(peers.authority.seen) == 60
        assert counters(configuration) == {"queries": 30, "upstream_queries": 60, "cache_hits": 0, "servfail": 0}


@pytest.mark.parametrize("lab_name", LABS)
def test_a_reset_empties_the_cache_and_the_server_is_back(lab_name: str) -> None:
    with lab.bring_up(lab_name, {"reset_s": "0.1"}) as configuration, peers_of(configuration) as peers:
        before = dut_pids(configuration)
        assert peers.addresses(name("a", 1)) == synthesised(configuration, 1)
        subprocess.run(configuration["dut"]["commands"]["reset"], check=True)
        assert wait_for(lambda: peers.ask(name("a", 1), wait_s=0.5) is not None, limit_s=30)
        assert dut_pids(configuration).isdisjoint(before)
        assert peers.authority.seen[2:4] == [(name("a", 1), AAAA), (name("a", 1), A)]


@pytest.mark.parametrize("lab_name", LABS)
def test_queries_that_find_the_sockets_buffer_full_are_counted(lab_name: str) -> None:
    with lab.bring_up(lab_name, {}) as configuration, peers_of(configuration) as peers:
        command = configuration["dut"]["commands"]["losses"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "forward receive_queue 0\n"
        pids = dut_pids(configuration)
        subprocess.run(["kill", "-STOP", *map(str, pids)], check=True)
        for _ in range(3000):
            peers.client.sendto(bytes(200), (peers.server, 53))
        lost = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        subprocess.run(["kill", "-CONT", *map(str, pids)], check=True)
    assert 0 < int(lost.removeprefix("forward receive_queue ")) < 3000


@pytest.mark.long
@pytest.mark.parametrize("lab_name", LABS)
def test_an_answer_without_records_is_kept_as_long_as_its_soa_record_says(lab_name: str) -> None:
    with lab.bring_up(lab_name, {}) as configuration, peers_of(configuration) as peers:
        assert peers.addresses(name("a", 1)) == synthesised(configuration, 1)
        time.sleep(7)  # Knot Resolver's minimum is five seconds
        assert peers.addresses(name("a", 1)) == synthesised(configuration, 1)
        assert len(peers.authority.seen) == 2


@pytest.mark.long
@pytest.mark.parametrize("lab_name", LABS)
def test_an_authoritative_server_that_was_silent_is_asked_again(lab_name: str) -> None:
    with lab.bring_up(lab_name, {}) as configuration, peers_of(configuration) as peers:
        assert peers.addresses(name("a", 0)) == synthesised(configuration, 0)
        peers.authority.silent = True
        for number in range(1, 500):
            peers.ask(name("a", number), wait_s=0.01)
        peers.authority.silent = False
        time.sleep(3)
        right = 0
        for number in range(1000, 1050):
            reply = peers.ask(name("a", number), wait_s=1.0)
            right += reply is not None and reply.ancount == 1
        assert right >= 48


@pytest.mark.parametrize("lab_name", LABS)
def test_it_gives_a_configuration_and_leaves_nothing(lab_name: str, lab_records: Path) -> None:
    with lab.bring_up(lab_name, {}) as configuration:
        pids = dut_pids(configuration)
        written = {path for pid in pids for path in files_of(pid)}
        assert pids
        setup = parse(configuration, origin=f"lab {lab_name}")
        assert setup.engine.netns == configuration["engine"]["netns"]
        assert setup.dns64 is not None
        assert setup.left is not None
        assert setup.dns64.server == setup.left.gateway6
    for key in ("name", "version", "package"):
        assert configuration["dut"][key]
    assert all(path.is_relative_to(lab_records) for path in written), written
    assert not namespaces_of(configuration)
    assert not left_over(lab_records)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("lab_name", LABS)
def test_a_killed_owner_takes_the_server_with_it(lab_name: str, lab_records: Path) -> None:
    owner, configuration = start_owner(lab_records, lab_name)
    pids = dut_pids(configuration)
    assert len(pids) == 1
    owner.kill()
    owner.wait()
    assert wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))
    with lab.bring_up("loopback", {}):
        assert not namespaces_of(configuration)
    assert not left_over(lab_records)


def files_of(pid: int) -> list[Path]:
    """The files that a process holds open to write, devices left out."""
    descriptors = Path(f"/proc/{pid}/fd")
    opened = [
        descriptor.readlink()
        for descriptor in descriptors.iterdir()
        if int((Path(f"/proc/{pid}/fdinfo") / descriptor.name).read_text().split()[3], 8) & 3
    ]
    return [path for path in opened if str(path).startswith("/") and not str(path).startswith(("/dev/", "/proc/"))]
