# SPDX-License-Identifier: Apache-2.0
"""The tester's name server against NSD with the same zone: every answer is the same to the record, by dnspython."""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rdatatype
import pytest

from dutperf.engine.client import EngineCommand
from dutperf.lab.netns import Namespace
from labs.dns_peers import TTL_S, ZONE
from labs.nsd import NEEDS_NSD, of_numbers, serving, zone_of
from labs.stations import in_namespace

from .protocol import MS, Json, Opening

pytestmark = [pytest.mark.root, pytest.mark.alone, NEEDS_NSD]

OURS, NSD = "198.18.0.1", "127.0.0.1"
HOST, HOST_MAC = "198.18.0.64", "02:00:00:00:00:64"
NUMBERS = (0, 1, 42, 131_071, 131_072)
NAMES = [f"{kind}00010001{number:010x}." for kind in "ab" for number in NUMBERS]


@dataclass(frozen=True)
class Ask:
    """A query, and what of it varies."""

    name: str
    kind: str
    edns: int | bool = False
    dnssec: bool = False
    recursion: bool = True
    klass: str = "IN"

    def message(self) -> dns.message.Message:
        made = dns.message.make_query(
            self.name, self.kind, self.klass, use_edns=self.edns, want_dnssec=self.dnssec, payload=1232
        )
        if not self.recursion:
            made.flags &= ~dns.flags.RD
        return made


ASKED = [
    *(Ask(f"{name}{ZONE}", kind) for name in NAMES for kind in ("A", "AAAA", "MX", "TXT")),
    *(Ask(ZONE, kind) for kind in ("SOA", "A", "AAAA")),
    Ask(f"ns.{ZONE}", "A"),
    Ask(f"ns.{ZONE}", "MX"),
    *(Ask(f"{name}{ZONE}", kind) for name in ("no.", "c00010001000000002a.", "x.y.") for kind in ("A", "AAAA")),
    Ask(f"{NAMES[2].upper()}{ZONE.upper()}", "A"),
    Ask(f"{NAMES[0]}{ZONE}", "A", recursion=False),
    Ask(f"{NAMES[0]}{ZONE}", "A", edns=0),
    Ask(f"{NAMES[0]}{ZONE}", "AAAA", edns=0),
    Ask(f"{NAMES[0]}{ZONE}", "AAAA", edns=0, dnssec=True),
    Ask(f"no.{ZONE}", "AAAA", edns=0, dnssec=True),
    Ask(f"{NAMES[0]}{ZONE}", "A", edns=1),
    Ask("example.com.", "A"),
    Ask("test.", "NS"),
]
OF_NAME_SERVERS = Ask(ZONE, "NS")


def said(answer: dns.message.Message) -> dict[str, Any]:
    """Everything but the order of records and the ID."""
    sections = {
        section: sorted(
            f"{found.name.to_text().lower()} {found.ttl} {found.rdclass} {found.rdtype} {record.to_text().lower()}"
            for found in answer.section_from_number(number)
            for record in found
        )
        for number, section in enumerate(("question", "answer", "authority", "additional"))
        if number
    }
    edns = (answer.edns, answer.payload if answer.edns >= 0 else 0, bool(answer.ednsflags & dns.flags.DO))
    return {
        "flags": dns.flags.to_text(answer.flags),
        "rcode": answer.rcode(),
        "question": [str(one) for one in answer.question],
        "edns": edns,
        **sections,
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[Ask, dict[str, Any]]]]:
    """What each server says to every query."""
    host = Namespace(f"dutperf-test-{secrets.token_hex(4)}")
    subprocess.run(["ip", "netns", "add", host.name], check=True)
    try:
        for near, far in (("tl", "dl"), ("tr", "dr")):
            host.ip(f"link add {near} type veth peer name {far}", f"link set {near} up")
        host.ip(f"link set dr address {HOST_MAC}", "link set dr up", "link set dl up", "link set lo up")
        host.ip(f"addr add {HOST}/24 dev dr")
        zone = zone_of(ZONE.removesuffix("."), of_numbers(NUMBERS), OURS)
        directory: Path = tmp_path_factory.mktemp("nsd")
        with serving(host, directory, NSD, ZONE.removesuffix("."), zone), engine_serves(host):
            asks = (*ASKED, OF_NAME_SERVERS)
            yield {server: {ask: asked(host, server, ask) for ask in asks} for server in (OURS, NSD)}
    finally:
        subprocess.run(["ip", "netns", "del", host.name], check=True)


@contextmanager
def engine_serves(host: Namespace) -> Iterator[None]:
    """The engine's name server at the right port, for a trial that lasts as long as it is needed."""
    sides: Json = {
        "left": {"port": "af_packet:tl", "ipv6": "2001:2::2", "gateway_mac": HOST_MAC},
        "right": {"port": "af_packet:tr", "ipv4": OURS, "gateway_mac": HOST_MAC},
    }
    opening = Opening(EngineCommand.find(netns=host.name))
    try:
        served = {"port": "right", "zone": ZONE.removesuffix("."), "ttl_s": TTL_S}
        engine = opening(**sides, max_frame_size=1518)
        engine.begin("run", {"trial": 1, "duration_ns": 600_000 * MS, "drain_ns": 0, "server": served})
        yield
    finally:
        opening.close()


def asked(host: Namespace, server: str, ask: Ask) -> dict[str, Any]:
    def socket_for_it() -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    with in_namespace(host.name, socket_for_it) as one:
        one.setblocking(False)
        return said(dns.query.udp(ask.message(), server, timeout=5, sock=one, one_rr_per_rrset=True))


@pytest.mark.parametrize("ask", ASKED, ids=str)
def test_both_say_the_same(both: dict[str, dict[Ask, dict[str, Any]]], ask: Ask) -> None:
    assert both[OURS][ask] == both[NSD][ask]


def test_only_nsd_adds_the_address_of_the_name_server(both: dict[str, dict[Ask, dict[str, Any]]]) -> None:
    """A resolver asks for it if it needs it (RFC 1034 section 4.3.2: the record is an addition)."""
    ours, other = both[OURS][OF_NAME_SERVERS], both[NSD][OF_NAME_SERVERS]
    assert ours | {"additional": [f"ns.{ZONE} {TTL_S} 1 1 {OURS}"]} == other
    assert len(ours["answer"]) == 1
