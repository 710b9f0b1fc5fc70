# SPDX-License-Identifier: Apache-2.0
"""The reference DUT as a DNS64 server, between a client and an authoritative server that are packet sockets: what it
sends byte by byte, judged by scapy, and its counters, which are exact. Root only."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from scapy.all import (
    ARP,
    DNS,
    DNSQR,
    DNSRR,
    DNSRROPT,
    IP,
    UDP,
    Ether,
    ICMPv6ND_NS,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    Packet,
    dns_compress,
)

from dutperf import lab
from dutperf.lab.addresses import LEFT, RIGHT
from dutperf.lab.refdut import WRONG_KINDS, Dns64Properties, Dns64Truth, RefDut, Truth
from labs.stations import PACKET_OUTGOING, Station, Stations, stations_of

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

ZONE = "dutperf.test"
TTL_S = 3600
A, AAAA = 1, 28
PREFIX = "2001:2:0:6464::/96"
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


def name_of(number: int, kind: str = "a") -> str:
    """A name with an A record only, or of kind ``b`` with an AAAA record too."""
    return f"{kind}{number:010x}.{ZONE}"


def ipv4_of(number: int) -> str:
    """Its A record."""
    return str(IPv4Address("198.18.0.0") + number)


def ipv6_of(number: int) -> str:
    """Its AAAA record."""
    return str(IPv6Address("2001:2:0:d64::") + number)


def synthesised(number: int) -> str:
    """What the DNS64 makes of its A record."""
    return str(IPv6Address("2001:2:0:6464::") + int(IPv4Address(ipv4_of(number))))


def query(name: str, number: int = 0, qtype: int = AAAA) -> Packet:
    """A client's query. The port and the message ID say its number."""
    header = IPv6(src=LEFT.tester6, dst=LEFT.dut6) / UDP(sport=10_000 + number % 1000, dport=53)
    return header / DNS(id=number, rd=1, qd=DNSQR(qname=name, qtype=qtype), ar=DNSRROPT(rclass=1232, z=0))


def respond(message: bytes) -> bytes:
    """The server's answer to a query: an A record for each name, an AAAA record for those of kind ``b``."""
    end = message.index(0, 12)
    qtype = struct.unpack_from("!H", message, end + 1)[0]
    number = int(message[14 : 13 + message[12]], 16)
    soa = b"\xc0" + bytes([12 + 1 + message[12]]) + struct.pack("!HHIH", 6, 1, TTL_S, 22) + b"\0\0" + bytes(20)
    record, counts = soa, (1, 0, 1, 0)
    if qtype == A or (qtype == AAAA and message[13:14] in b"bB"):
        data = IPv4Address(ipv4_of(number)).packed if qtype == A else IPv6Address(ipv6_of(number)).packed
        record = b"\xc0\x0c" + struct.pack("!HHIH", qtype, 1, TTL_S, len(data)) + data
        counts = (1, 1, 0, 0)
    return message[:2] + b"\x84\x00" + struct.pack("!4H", *counts) + message[12 : end + 5] + record


@dataclass
class Ends:
    """Client and server of a DNS64 in a lab."""

    stations: Stations
    refdut: RefDut
    questions: list[bytes] = field(default_factory=list)
    """Frames that the server received."""
    silent: int = 0
    """So many of the next questions get no response."""

    def ask(self, packets: list[Packet], expected: int | None = None, wait_s: float = 10.0) -> list[bytes]:
        """Send queries at once; returns the frames that came back by the time that so many are in (as many as the
        queries), or ``wait_s`` seconds are over."""
        answers: list[bytes] = []
        client, server = self.stations.left, self.stations.right
        sent = [bytes(Ether(src=client.mac, dst=client.dut_mac) / packet) for packet in packets]
        for frame in sent:
            client.socket.send(frame)
        deadline = time.monotonic() + wait_s
        while len(answers) < (len(packets) if expected is None else expected):
            ready = select.select([client.socket, server.socket], [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                break
            for station in (client, server):
                if station.socket in ready and (got := received(station)) is not None:
                    answers.append(got) if station is client else self._serve(got)
        return answers

    def resolve(self, names: list[str], expected: int | None = None, wait_s: float = 10.0) -> list[DNS]:
        """The messages of the answers to queries for these names, numbered from 0 on."""
        frames = self.ask([query(name, number) for number, name in enumerate(names)], expected, wait_s)
        return [Ether(frame)[UDP].payload for frame in frames]

    def _serve(self, frame: bytes) -> None:
        self.questions.append(frame)
        if self.silent:
            self.silent -= 1
            return
        asked = Ether(frame)
        header = asked[IPv6] if IPv6 in asked else asked[IP]
        swapped = type(header)(src=header.dst, dst=header.src) / UDP(sport=53, dport=asked[UDP].sport)
        self.stations.right.send(swapped / respond(bytes(asked[UDP].payload)))

    def truth(self) -> Truth:
        """The DUT's counters."""
        truth = self.refdut.counters()
        assert truth.left.lost_before == truth.left.lost_after == truth.right.lost_before == truth.right.lost_after == 0
        return truth

    def dns64(self) -> Dns64Truth:
        """Those of the DNS64."""
        counted = self.truth().dns64
        assert counted is not None
        return counted


def received(station: Station) -> bytes | None:
    """The next frame of a station, if it is DNS from the DUT; what asks for its MAC address is answered."""
    data, address = station.socket.recvfrom(65535, socket.MSG_PEEK)
    behind_ip = {b"\x08\x00": 34, b"\x86\xdd": 54}.get(data[12:14])
    ports = () if behind_ip is None or len(data) < 60 else struct.unpack_from("!HH", data, behind_ip)
    if address[2] == PACKET_OUTGOING or 53 not in ports:
        station.receive()
        return None
    station.socket.recv(65535)
    return data


@contextmanager
def dns64(**options: object) -> Iterator[Ends]:
    """A lab whose DUT knows both hosts' MAC addresses."""
    given = {name: str(value) for name, value in options.items()}
    with lab.bring_up("refdut-dns64", given) as configuration, stations_of(configuration) as both:
        ends = Ends(both, RefDut(Path(configuration["dut"]["control"])))
        introduce(both)
        ends.refdut.clear()
        yield ends


def introduce(both: Stations) -> None:
    """Each station asks for the DUT's MAC address; from that the DUT learns its."""
    for station, dut6, tester6 in ((both.left, LEFT.dut6, LEFT.tester6), (both.right, RIGHT.dut6, RIGHT.tester6)):
        station.send(
            IPv6(src=tester6, dst=dut6, hlim=255) / ICMPv6ND_NS(tgt=dut6) / ICMPv6NDOptSrcLLAddr(lladdr=station.mac)
        )
    both.right.send(ARP(op=1, hwsrc=both.right.mac, psrc=RIGHT.tester4, pdst=RIGHT.dut4))
    time.sleep(0.1)


def address_of(answer: DNS) -> str | None:
    """The only AAAA record of an answer; None: it has no record."""
    assert answer.ancount in (0, 1)
    return str(answer.an[0].rdata) if answer.ancount else None


@pytest.mark.parametrize("version", [4, 6])
def test_a_resolution_is_what_scapy_builds(version: int) -> None:
    name = "A0000000007." + ZONE
    with dns64(server_version=version) as ends:
        answers = ends.ask([query(name, 0x1234)])
        macs = {side: (station.dut_mac, station.mac) for side, station in vars(ends.stations).items()}
    own, server = (RIGHT.dut4, RIGHT.tester4) if version == 4 else (RIGHT.dut6, RIGHT.tester6)
    header = IP(src=own, dst=server, id=0, flags="DF") if version == 4 else IPv6(src=own, dst=server)
    for number, (frame, qtype) in enumerate(zip(ends.questions, (AAAA, A), strict=True), start=1):
        expected = (
            Ether(src=macs["right"][0], dst=macs["right"][1])
            / header
            / UDP(sport=49152, dport=53)
            / DNS(id=number, rd=0, qd=DNSQR(qname=name, qtype=qtype), ar=DNSRROPT(rclass=1232, z=0))
        )
        assert frame == bytes(expected)
    record = DNSRR(rrname=name, type="AAAA", ttl=TTL_S, rdata=synthesised(7))
    message = DNS(
        id=0x1234, qr=1, rd=1, ra=1, qd=DNSQR(qname=name, qtype=AAAA), an=record, ar=DNSRROPT(rclass=1232, z=0)
    )
    assert answers == [
        bytes(
            Ether(src=macs["left"][0], dst=macs["left"][1])
            / IPv6(src=LEFT.dut6, dst=LEFT.tester6)
            / UDP(sport=53, dport=10_000 + 0x1234 % 1000)
            / dns_compress(message)
        )
    ]


def test_names_with_and_without_an_aaaa_record() -> None:
    names = [name_of(number, "b" if number % 4 == 3 else "a") for number in range(40)]
    with dns64() as ends:
        answers = ends.resolve(names)
        truth = ends.truth()
        counted = ends.dns64()
    expected = {number: ipv6_of(number) if number % 4 == 3 else synthesised(number) for number in range(40)}
    assert {answer.id: address_of(answer) for answer in answers} == expected
    assert (counted.queries, counted.answered, counted.synthesised, counted.existing) == (40, 40, 30, 10)
    assert (counted.upstream.aaaa, counted.upstream.a, len(ends.questions)) == (40, 30, 70)
    assert (truth.forward.received, truth.forward.forwarded, truth.forward.held) == (40, 40, 0)
    assert (truth.reverse.received, truth.reverse.forwarded, truth.reverse.lost_total) == (40, 40, 0)
    zero = ("cache_hits", "retries", "timed_out", "unsent", "unexpected", "malformed", "unsupported", "pending")
    assert all(getattr(counted, name) == 0 for name in (*zero, "pending_full", "cached", "evicted"))


def test_the_cache_has_the_set_size_and_evicts_the_name_unused_for_longest() -> None:
    with dns64(cache=10) as ends:
        for number in (*range(10), 0):
            assert address_of(ends.resolve([name_of(number)])[0]) == synthesised(number)
        assert (ends.dns64().cache_hits, ends.dns64().cached, ends.dns64().evicted) == (1, 10, 0)
        ends.resolve([name_of(10)])  # evicts 1, as 0 was used since
        for number in (0, *range(2, 11)):
            assert address_of(ends.resolve([name_of(number)])[0]) == synthesised(number)
        counted = ends.dns64()
        assert (counted.cache_hits, counted.cached, counted.evicted) == (11, 10, 1)
        ends.resolve([name_of(1)])
        counted = ends.dns64()
        assert (counted.cache_hits, counted.evicted, counted.upstream.a, counted.answered) == (11, 2, 12, 23)


CASES: list[tuple[str, Any]] = [
    ("wrong_prefix", lambda answer, number: address_of(answer) == synthesised(number).replace("2001:2:", "2001:3:", 1)),
    ("wrong_address", lambda answer, number: address_of(answer) == synthesised(number ^ 1)),
    ("servfail", lambda answer, _: answer.rcode == SERVFAIL and address_of(answer) is None),
    ("refused", lambda answer, _: answer.rcode == REFUSED and address_of(answer) is None),
    ("nxdomain", lambda answer, _: answer.rcode == NXDOMAIN and address_of(answer) is None),
    ("nodata", lambda answer, _: answer.rcode == 0 and address_of(answer) is None and not answer.tc),
    ("truncated", lambda answer, _: answer.tc == 1 and address_of(answer) is None),
    ("wrong_id", lambda answer, number: answer.id == 0x8000 and address_of(answer) == synthesised(number)),
]


def test_every_kind_of_wrong_answer_is_tested() -> None:
    assert {kind for kind, _ in CASES} | {"malformed"} == set(WRONG_KINDS)


def test_every_nth_answer_is_wrong() -> None:
    """One query after the other, so that the answers come in the order of their numbers."""
    with dns64() as ends:
        for kind, is_wrong in CASES:
            ends.refdut.configure(Dns64Properties.model_validate({f"{kind}_every": 4}))
            for number in range(22):
                [answer] = ends.resolve([name_of(number)])
                if number % 4 == 3:
                    assert is_wrong(answer, number), (kind, answer.show(dump=True))
                else:
                    assert (answer.id, address_of(answer)) == (0, synthesised(number)), kind
            counted = ends.dns64()
            assert {name: count for name, count in counted.wrong.items() if count} == {kind: 5}
            assert counted.answered == 22


def test_a_malformed_answer_lacks_its_end() -> None:
    with dns64(malformed_every=2) as ends:
        whole, cut = (ends.ask([query(name_of(number), number)])[0] for number in range(2))
        assert ends.dns64().wrong["malformed"] == 1
    assert len(cut) == len(whole) - 5
    parsed = Ether(cut)
    assert parsed[UDP].len == parsed[IPv6].plen == len(cut) - 54
    checksum = parsed[UDP].chksum
    del parsed[UDP].chksum
    assert Ether(bytes(parsed))[UDP].chksum == checksum


def test_answers_are_lost_copied_and_corrupted_like_frames() -> None:
    with dns64(loss_every=5, duplicate_every=4, bit_error_every=7) as ends:
        answers = ends.ask([query(name_of(number), number) for number in range(40)], expected=40)
        truth = ends.truth()
    assert truth.reverse.lost["every_nth"] == 8
    assert truth.reverse.duplicated == 10 - 2  # every 20th is lost
    assert truth.reverse.corrupted == 5 - 1
    assert (truth.reverse.received, truth.reverse.forwarded) == (40, 32)
    assert len(answers) == 32 + 8
    assert (truth.forward.received, truth.forward.forwarded, truth.forward.lost_total) == (40, 40, 0)


def test_every_query_beyond_capacity_and_queue_is_dropped_and_counted() -> None:
    """A query that is served takes a second, so of a burst one is in service and five wait."""
    with dns64(capacity_fps=1, queue=5) as ends:
        answers = ends.resolve([name_of(number) for number in range(50)], expected=2, wait_s=5.0)
        truth = ends.truth()
    assert truth.forward.received == 50
    assert truth.forward.lost["queue"] == truth.forward.lost_total == 44
    assert [(answer.id, address_of(answer)) for answer in answers] == [(0, synthesised(0)), (1, synthesised(1))]


@pytest.mark.alone
def test_capacity_is_a_rate_of_queries_and_each_query_takes_one_service_time() -> None:
    with dns64(capacity_fps=500, queue=1000) as ends:
        began = time.monotonic()
        answers = ends.resolve([name_of(number) for number in range(200)])
        took = time.monotonic() - began
    assert [answer.id for answer in answers] == list(range(200))
    assert took >= 200 / 500


def test_a_query_of_an_unknown_flow_is_served_longer() -> None:
    with dns64(flow_cache=1, flow_miss_us=150_000) as ends:
        began = time.monotonic()
        for number in range(2):
            assert len(ends.ask([query(name_of(number), number)])) == 1  # each from a port of its own
        assert time.monotonic() - began >= 0.3


def test_answers_are_delayed() -> None:
    with dns64(delay_ms=150) as ends:
        began = time.monotonic()
        assert len(ends.resolve([name_of(0)])) == 1
        assert time.monotonic() - began >= 0.15
        assert ends.truth().reverse.delay_us.p50 >= 150_000


def test_a_server_that_is_silent_is_asked_twice() -> None:
    with dns64() as ends:
        ends.silent = 1
        assert address_of(ends.resolve([name_of(0)])[0]) == synthesised(0)
        ends.silent = 2
        assert ends.resolve([name_of(1)])[0].rcode == SERVFAIL
        counted = ends.dns64()
    assert (counted.retries, counted.timed_out, counted.upstream.aaaa, counted.upstream.a) == (2, 1, 4, 1)
    assert ends.questions[0] == ends.questions[1]


def test_queries_beyond_the_pending_ones_are_lost() -> None:
    with dns64(pending=3) as ends:
        ends.silent = 1000
        assert ends.resolve([name_of(number) for number in range(10)], expected=1, wait_s=0.5) == []
        counted = ends.dns64()
    assert (counted.queries, counted.pending, counted.pending_full) == (10, 3, 7)


def test_a_reset_forgets_queries_and_names() -> None:
    with dns64(cache=10) as ends:
        ends.resolve([name_of(0)])
        ends.refdut.reset(0.2)
        assert ends.resolve([name_of(0)], wait_s=0.5) == []
        ends.resolve([name_of(0)])
        truth, counted = ends.truth(), ends.dns64()
    assert truth.forward.lost["reset"] == 1
    assert (counted.cache_hits, counted.upstream.a) == (0, 2)


def test_it_forwards_nothing_and_answers_only_what_is_meant_for_it() -> None:
    others = [
        IPv6(src=LEFT.tester6, dst=RIGHT.tester6) / UDP(sport=10_000, dport=53) / DNS(),
        IPv6(src=LEFT.tester6, dst=LEFT.dut6) / UDP(sport=10_000, dport=54) / DNS(),
        IPv6(src=LEFT.tester6, dst=LEFT.dut6) / UDP(sport=10_000, dport=53, chksum=1) / DNS(),
    ]
    with dns64() as ends:
        answers = ends.ask([*others, query(name_of(1), 1, qtype=A), query(name_of(2), 2)], expected=2)
        messages = {answer.id: answer.rcode for answer in (Ether(frame)[UDP].payload for frame in answers)}
        truth, counted = ends.truth(), ends.dns64()
    assert messages == {1: 4, 2: 0}
    assert Counter({cause: number for cause, number in truth.forward.lost.items() if number}) == {
        "not_routable": 1,
        "malformed": 1,
    }
    assert (counted.queries, counted.unsupported, counted.answered) == (2, 1, 2)
