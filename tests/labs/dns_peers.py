# SPDX-License-Identifier: Apache-2.0
"""The tester's ends of a DNS64 lab, played by ordinary sockets and scapy: a client on the left, an authoritative server
on the right."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from itertools import count
from typing import Any

from scapy.all import ARP, DNS, DNSQR, DNSRR, DNSRROPT, DNSRRSOA, IP, UDP, Ether, IPv6, Packet

from dutperf.lab.hosts import Hosts, replace_tester

from .stations import ETH_P_ALL, PACKET_OUTGOING, in_namespace

ZONE = "dutperf.test."
A, AAAA = 1, 28
TTL_S = 3600
_NAME = re.compile(r"[ab][0-9a-f]{8}([0-9a-f]{10})")


def name(kind: str, number: int) -> str:
    """A name that has only an A record (kind ``a``), or both (``b``)."""
    return f"{kind}00010001{number:010x}.{ZONE}"


def a_of(number: int) -> IPv4Address:
    """The A record of a name."""
    return IPv4Address("198.18.0.0") + number % 131_072


def aaaa_of(number: int) -> IPv6Address:
    """The AAAA record of a name that has one."""
    return IPv6Address("2001:2:0:d64::") + number


def answer(query: Packet) -> Packet:
    """What the authoritative server of the zone says. The question is repeated as it came, and the flag DO: without it
    Knot Resolver keeps an answer without records for five seconds only."""
    asked = query.qd[0]
    asked_name = asked.qname.decode().lower()
    label, _, rest = asked_name.partition(".")
    known = _NAME.fullmatch(label) if rest == ZONE else None
    reply = DNS(id=query.id, qr=1, aa=1, rd=query.rd, qd=asked, an=[], ns=[], ar=[])
    if query.ar:
        reply.ar = [DNSRROPT(rclass=1232, z=query.ar[0].z)]
    if known and asked.qtype == A:
        reply.an = [_record(asked, a_of(int(known[1], 16)))]
    elif known and label[0] == "b" and asked.qtype == AAAA:
        reply.an = [_record(asked, aaaa_of(int(known[1], 16)))]
    else:
        reply.rcode = 0 if known or asked_name == ZONE else 3 if asked_name.endswith(f".{ZONE}") else 5
        reply.ns = [
            DNSRRSOA(
                rrname=ZONE,
                ttl=TTL_S,
                mname=f"ns.{ZONE}",
                rname=f"hostmaster.{ZONE}",
                serial=1,
                refresh=3600,
                retry=600,
                expire=86_400,
                minimum=TTL_S,
            )
        ]
    return reply


def _record(asked: Packet, address: IPv4Address | IPv6Address) -> Packet:
    return DNSRR(rrname=asked.qname, type=asked.qtype, ttl=TTL_S, rdata=str(address))


@dataclass
class Authority:
    """The authoritative server; ``seen`` are the names and types of its queries. While it is ``silent`` it sees
    them and does not answer."""

    sockets: list[socket.socket]
    seen: list[tuple[str, int]] = field(default_factory=list)
    silent: bool = False

    def serve(self, end: threading.Event, one: socket.socket) -> None:
        """Answer at one socket until the end."""
        while not end.is_set():
            try:
                data, client = one.recvfrom(4096)
            except TimeoutError:
                continue
            query = DNS(data)
            self.seen.append((query.qd[0].qname.decode().lower(), query.qd[0].qtype))
            if not self.silent:
                one.sendto(bytes(answer(query)), client)


@dataclass
class Peers:
    """Both ends, and what crosses the right cable."""

    hosts: Hosts
    server: str
    authority: Authority
    right_cable: socket.socket
    client: socket.socket
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def ask(self, asked: str, wait_s: float = 5.0) -> Packet | None:
        """The answer to a query for AAAA; None: there was none in time."""
        ident = next(self._ids)
        query = DNS(id=ident, rd=1, qd=DNSQR(qname=asked, qtype=AAAA), ar=[DNSRROPT(rclass=1232, z=0)])
        self.client.settimeout(wait_s)
        self.client.sendto(bytes(query), (self.server, 53))
        try:
            while (reply := DNS(self.client.recv(4096))).id != ident:
                pass
        except TimeoutError:
            return None
        return reply

    def addresses(self, asked: str) -> list[IPv6Address]:
        """The AAAA records of a name."""
        reply = self.ask(asked)
        assert reply is not None, asked
        assert (reply.rcode, reply.tc, reply.ra) == (0, 0, 1)
        return [IPv6Address(record.rdata) for record in reply.an if record.type == AAAA]

    def foreign_frames(self) -> list[str]:
        """Frames of the DUT on the right cable that are neither queries to the authoritative server nor of the
        neighbour protocols (ARP, Neighbour Discovery, MLD)."""
        servers = {one.getsockname()[0] for one in self.authority.sockets}
        return [frame.summary() for frame in self._frames() if not _is_expected(frame, servers)]

    def _frames(self) -> Iterator[Packet]:
        self.right_cable.setblocking(False)
        while True:
            try:
                data, address = self.right_cable.recvfrom(65535)
            except BlockingIOError:
                return
            if address[2] != PACKET_OUTGOING:
                yield Ether(data)


def _is_expected(frame: Packet, servers: set[str]) -> bool:
    if ARP in frame:
        return True
    network = frame.getlayer(IP) or frame.getlayer(IPv6)
    if UDP not in frame:
        return IPv6 in frame and any("ICMPv6" in layer.__name__ for layer in network.layers())
    return network.dst in servers and frame[UDP].dport == 53 and frame[DNS].qd[0].qname.decode().lower().endswith(ZONE)


@contextmanager
def peers_of(configuration: dict[str, Any]) -> Iterator[Peers]:
    """Both ends of a lab, which take over the tester's ports and addresses."""
    hosts = replace_tester(configuration)
    end = threading.Event()
    with ExitStack() as stack:

        def bound(host: str, address: str, port: int) -> socket.socket:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            made: socket.socket = stack.enter_context(
                in_namespace(host, lambda: socket.socket(family, socket.SOCK_DGRAM))
            )
            made.bind((address, port))
            made.settimeout(0.1)
            return made

        right = [configuration["right"][key].partition("/")[0] for key in ("ipv4", "ipv6")]
        left = configuration["left"]["ipv6"].partition("/")[0]
        cable = stack.enter_context(
            in_namespace(hosts.right.name, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        )
        cable.bind(("tr", ETH_P_ALL))
        authority = Authority([bound(hosts.right.name, address, 53) for address in right])
        threads = [threading.Thread(target=authority.serve, args=(end, one)) for one in authority.sockets]
        for thread in threads:
            thread.start()
        try:
            yield Peers(hosts, configuration["dns64"]["server"], authority, cable, bound(hosts.left.name, left, 0))
        finally:
            end.set()
            for thread in threads:
                thread.join()


def counters(configuration: dict[str, Any]) -> dict[str, int]:
    """What the DUT counted itself."""
    printed = subprocess.run(configuration["dut"]["commands"]["state"], capture_output=True, text=True, check=True)
    return {key: int(number) for key, number in (line.split() for line in printed.stdout.splitlines())}
