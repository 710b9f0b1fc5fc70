# SPDX-License-Identifier: Apache-2.0
"""DNS64 servers (RFC 6147) as DUTs by RFC 8219 section 9: clients ask on the left over IPv6, the tester's right side is
the authoritative server of the only zone.

Debian's servers, each in a process of the lab's own (:mod:`dutperf.lab.dns_servers`); the machine's own, if there is
one, does not meet it.
"""

from __future__ import annotations

import platform
import socket
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dutperf.lab import dns_counters, outage
from dutperf.lab.addresses import LEFT, NAT64_PREFIX, RIGHT, tester
from dutperf.lab.definition import Cores, Lab, ResetOptions
from dutperf.lab.dns_servers import SERVERS, DnsServer, Task, log
from dutperf.lab.netns import DUT_PORTS, FORWARDING, package_version, standalone
from dutperf.lab.outage import Daemons
from dutperf.lab.site import Site, await_start
from dutperf.lab.transparent import Version

_UNCONFINED = (
    'own=/proc/self/attr/apparmor/exec; [ ! -e $own ] || { echo exec unconfined > $own; } 2> /dev/null; exec "$@"'
)
"""Debian's AppArmor profiles let Unbound and BIND read and write only the directories of its services. A shell that
starts a program after this is without a profile, where there are any (apparmor(7), change_onexec)."""


class DnsServerOptions(ResetOptions):
    """The authoritative server's IP version, the cores, and the cache."""

    server_version: Annotated[
        Version, Field(description="IP version of the DUT's queries to the authoritative server, 4 or 6")
    ] = 4
    cores: Cores = 1
    cache_mb: Annotated[
        int,
        Field(
            ge=4,
            le=65_536,
            description="size of the DUT's cache, in MB; PowerDNS counts answers, 500 for each MB",
        ),
    ] = 256


def build(server: DnsServer, site: Site, options: DnsServerOptions) -> dict[str, Any]:
    cores = site.dut_cores(options.cores)
    site.add_router(options.mtu, cores)
    site.dut.sysctl(dict.fromkeys(FORWARDING, 0))  # no frame may pass under the server's name
    for side, port in zip((LEFT, RIGHT), DUT_PORTS, strict=True):
        site.dut.ip(*side.ip4(port), *side.ip6(port))
    task = task_of(site, options)
    start(server, site, task, cores)
    return {
        **tester(cores, ({"version": 6, **LEFT.ipv6}, {"version": 6, **RIGHT.ipv4, **RIGHT.ipv6})),
        "dns64": {"server": LEFT.dut6, "prefix": NAT64_PREFIX},
        "dut": {
            "name": server.name,
            "version": server.version(),
            "package": package_version(server.package),
            "kernel": platform.release(),
            "cores": list(cores),
            "cache_mb": options.cache_mb,
            "server_version": options.server_version,
            "commands": commands(server, site, task, cores, options.reset_s),
        },
    }


def task_of(site: Site, options: DnsServerOptions) -> Task:
    upstream, source = (RIGHT.tester4, RIGHT.dut4) if options.server_version == 4 else (RIGHT.tester6, RIGHT.dut6)
    return Task(site.directory, LEFT.dut6, upstream, source, options.cores, options.cache_mb)


def start(server: DnsServer, site: Site, task: Task, cores: Sequence[int]) -> None:
    """Write the configuration and start the processes; returns when all threads receive queries. Raises LabError: a
    process did not start."""
    for name, text in server.files(task).items():
        (site.directory / name).write_text(text)
    processes = server.processes(task)
    for number in range(processes):
        output = log(site.directory, number)
        daemon = site.start_daemon(unconfined(server.argv(task)), output, cores)
        started = partial(is_listening, daemon.pid, task.threads // processes * (number + 1))
        await_start(daemon, output, f"lab {site.record.lab}: {server.name}", started)


def is_listening(pid: int, count: int) -> bool:
    """Whether there are so many sockets at the server's address in the namespace of a process."""
    try:
        lines = Path(f"/proc/{pid}/net/udp6").read_text().splitlines()
    except OSError:
        return False  # it has ended
    return sum(listening_address() in line for line in lines) >= count


def listening_address() -> str:
    """The server's address and port as the kernel shows them: words of the machine's byte order."""
    words = struct.unpack("=4I", socket.inet_pton(socket.AF_INET6, LEFT.dut6))
    return f"{''.join(f'{word:08X}' for word in words)}:0035 "


def unconfined(argv: Sequence[str]) -> list[str]:
    """The command line without the AppArmor profile of its program."""
    return ["sh", "-c", _UNCONFINED, "sh", *argv]


def commands(server: DnsServer, site: Site, task: Task, cores: Sequence[int], reset_s: float) -> dict[str, list[str]]:
    """The DUT's commands: its counters, the queries that it lost, its reset."""
    ask = standalone(dns_counters, server.key, str(site.directory))
    lost = '$2 ~ /:0035$/ { lost += $NF } END { print "forward receive_queue", lost + 0 }'
    return {
        "state": site.dut.command(ask),
        "losses": site.dut.command(["awk", lost, "/proc/net/udp6"]),
        "reset": reset(server, site, task, cores, reset_s),
    }


def reset(server: DnsServer, site: Site, task: Task, cores: Sequence[int], reset_s: float) -> list[str]:
    """The command that kills the server, and restarts it ``reset_s`` seconds later with an empty cache."""
    processes = server.processes(task)
    sockets = task.threads // processes * processes
    listen = f"[ $(grep -c '{listening_address()}' /proc/net/udp6) -ge {sockets} ]"
    logs = [log(site.directory, number) for number in range(processes)]
    forget = f"rm -rf {site.directory}/cache {site.directory}/control"  # Knot Resolver's, which outlives it
    daemons = Daemons(server.program, unconfined(server.argv(task)), logs, cores, listen)
    return outage.restart(site.dut, daemons, reset_s, forget)


LABS = tuple(
    Lab(
        name=f"{server.key}-dns64",
        summary=f"{server.name} as a DNS64 server: clients on the left, its authoritative server on the right",
        options=DnsServerOptions,
        programs={server.program: server.package},
        build=partial(build, server),
        needs_ipv6=True,
    )
    for server in SERVERS
)
