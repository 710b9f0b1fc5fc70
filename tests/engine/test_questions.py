# SPDX-License-Identifier: Apache-2.0
"""DNS queries and the name server through the engine. scapy judges the messages, and plays a DNS64 server that
gives every kind of wrong answer."""

from __future__ import annotations

import dataclasses
import secrets
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.dns import DNS, DNSQR, DNSRR, DNSRROPT
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap

from dutperf.engine.client import EngineCommand
from labs.stations import ETH_P_ALL, PACKET_OUTGOING, in_namespace

from .protocol import MS, Engine, Json, Opening, Refused

ZONE = "dutperf.test"
CLIENT, SERVER, SERVER4 = "2001:2::2", "2001:2::1", "198.18.0.1"
DUT_MAC = "02:00:00:00:00:64"
RINGS: Json = {"left": {"port": "ring", "ipv6": CLIENT}, "right": {"port": "ring", "ipv6": SERVER, "ipv4": SERVER4}}
SERVED = {"port": "right", "zone": ZONE, "ttl_s": 77}
PREFIX = "64:ff9b::/96"


@pytest.fixture
def opened(command: EngineCommand) -> Iterator[Opening]:
    opening = Opening(command)
    yield opening
    opening.close()


def asking(rate_fps: int = 5000, pattern: Json | None = None, **questions: Any) -> Json:
    members = {"source": CLIENT, "destination": SERVER, "zone": ZONE, "prefix": PREFIX}
    return {"rate_fps": rate_fps, "questions": members | questions} | ({"pattern": pattern} if pattern else {})


def timed(timeout_ms: int = 1000) -> Json:
    return {"stamping": "every", "frame_timeout_ns": timeout_ms * MS}


def is_clean(of: Json) -> bool:
    keys = ("stale", "corrupted", "duplicates", "late")
    return not any(of[key] for key in keys) and not of["other_received"] and not of["tester_drops"]


@pytest.mark.parametrize("pattern", [None, {"kind": "poisson"}, {"kind": "bursts", "frames": 50}])
def test_our_server_answers_every_query_for_a_name_with_an_aaaa_record(opened: Opening, pattern: Json | None) -> None:
    engine = opened(**RINGS)
    result = engine.run(forward=asking(20_000, pattern, aaaa={"n": 1, "m": 1}), server=SERVED, **timed())
    forward, server = result["forward"], result["server"]
    assert forward["sent"] == forward["received"] == forward["intended"] == 4000
    assert forward["answers"] == {"wrong": {}}
    assert is_clean(forward)
    assert forward["delay_us"]["frames"] == forward["stamped_sent"] == 4000
    assert server["queries"] == {"a": 0, "aaaa": 4000, "other": 0}
    assert server["answered"] == 4000
    assert server["tester_drops"] == {}
    assert 0 < server["delay_ns"]["median"] <= server["delay_ns"]["p99"] <= server["delay_ns"]["max"]
    others = ("stale", "unknown", "refused", "malformed", "tcp", "unsent")
    assert [server[key] for key in others] == [0] * 6


def test_names_without_an_aaaa_record_have_no_data(opened: Opening) -> None:
    forward = opened(**RINGS).run(forward=asking(aaaa={"n": 4, "m": 1}), server=SERVED)["forward"]
    assert forward["sent"] == 1000
    assert forward["received"] == 250
    assert forward["answers"] == {"wrong": {"nodata": 750}}
    assert "delay_us" not in forward


def test_cached_names_are_of_the_earlier_trial(opened: Opening) -> None:
    engine = opened(**RINGS)
    engine.run(trial=7, forward=asking(aaaa={"n": 1, "m": 1}), server=SERVED)
    cached = {"names": 10, "n": 5, "m": 1, "trial": 7}
    result = engine.run(trial=8, forward=asking(aaaa={"n": 1, "m": 1}, cached=cached), server=SERVED)
    assert result["forward"]["received"] == 1000
    assert result["server"]["queries"]["aaaa"] == 1000
    assert result["server"]["stale"] == 0


def test_frames_of_another_path_beside_queries_and_answers(opened: Opening) -> None:
    """Answers and frames come to one port; both leave from the other one."""
    frame = {"version": 4, "size": 64, "source": "198.19.0.2", "destination": "198.18.0.2"}
    reverse = {"rate_fps": 5000, "foreground": frame}
    result = opened(**RINGS).run(forward=asking(aaaa={"n": 1, "m": 1}), reverse=reverse, server=SERVED, **timed())
    assert result["forward"]["received"] == result["reverse"]["received"] == 1000
    assert is_clean(result["forward"])
    assert is_clean(result["reverse"])
    assert result["reverse"]["transmitted"]["handed_over"] == 2000


def test_without_a_server_no_query_is_answered(opened: Opening) -> None:
    forward = opened(**RINGS).run(forward=asking())["forward"]
    assert (forward["sent"], forward["received"], forward["answers"]) == (1000, 0, {"wrong": {}})
    assert forward["losses"]["longest_run"] == 1000


NETWORK = "198.18.0.0/28"


def address_label(number: int) -> str:
    """Of an address of the network, numbered from 0 and beyond its end."""
    return "-".join(f"{part:03}" for part in IPv4Network(NETWORK)[number % 16].packed)


def test_names_of_addresses_are_as_the_protocol_says(opened: Opening, tmp_path: Path) -> None:
    """Two slices, bursts of two; behind the network's end its names begin again."""
    file = tmp_path / "left.pcap"
    left = {"port": f"vdev:net_pcap_left,tx_pcap={file}", "mac": "02:00:00:00:00:01"}
    right = {"port": f"vdev:net_pcap_right,tx_pcap={tmp_path / 'right.pcap'}", "mac": "02:00:00:00:00:02"}
    engine = opened(left=left, right=right)
    slices = {"count": 2, "burst": 2, "names": 50}
    engine.run(trial=258, forward=asking(500, addresses={"network": NETWORK, "first": 3, "slices": slices}), **timed())
    engine.process.close()
    asked = [packet[DNSQR].qname.decode() for packet in rdpcap(str(file))]
    order = [3 + half * 50 + pair * 2 + one for pair in range(25) for half in range(2) for one in range(2)]
    assert asked == [f"{address_label(number)}.{ZONE}." for number in order]


def test_names_of_addresses_have_other_ids_in_another_run(command: EngineCommand, tmp_path: Path) -> None:
    """The names themselves do not have the run in them. One of 65,536 runs has the same IDs by chance."""

    def first_id(file: Path, **questions: Any) -> int:
        opening = Opening(command)
        sides = {
            "left": {"port": f"vdev:net_pcap_left,tx_pcap={file}", "mac": "02:00:00:00:00:01"},
            "right": {"port": f"vdev:net_pcap_right,tx_pcap={file}.right", "mac": "02:00:00:00:00:02"},
        }
        try:
            opening(**sides).run(forward=asking(500, **questions), **timed())
        finally:
            opening.close()
        return int(rdpcap(str(file))[0][DNS].id)

    addresses = {"network": NETWORK}
    assert first_id(tmp_path / "1") == first_id(tmp_path / "2")
    assert first_id(tmp_path / "3", addresses=addresses) != first_id(tmp_path / "4", addresses=addresses)


def test_cached_names_of_addresses_are_those_from_a_number_on(opened: Opening, tmp_path: Path) -> None:
    file = tmp_path / "left.pcap"
    left = {"port": f"vdev:net_pcap_left,tx_pcap={file}", "mac": "02:00:00:00:00:01"}
    right = {"port": f"vdev:net_pcap_right,tx_pcap={tmp_path / 'right.pcap'}", "mac": "02:00:00:00:00:02"}
    engine = opened(left=left, right=right)
    cached = {"names": 2, "n": 2, "m": 1, "first": 9}
    engine.run(trial=1, forward=asking(500, addresses={"network": NETWORK, "first": 11}, cached=cached), **timed())
    engine.process.close()
    asked = [packet[DNSQR].qname.decode() for packet in rdpcap(str(file))]
    order = [11 + k // 2 if k % 2 == 0 else 9 + k // 2 % 2 for k in range(100)]
    assert asked == [f"{address_label(number)}.{ZONE}." for number in order]


def test_the_times_of_each_query_are_written(opened: Opening, tmp_path: Path) -> None:
    """Of four names one has an AAAA record; the others have no right answer."""
    file = tmp_path / "new" / "queries.npy"
    asked = asking(aaaa={"n": 4, "m": 1})
    result = opened(**RINGS).run(forward=asked, server=SERVED, queries_file=str(file), **timed())["forward"]
    assert result["queries_file"] == {"written": 1000, "unwritten": 0}
    records = np.load(file)
    assert (records["answer"] == np.where(np.arange(1000) % 4 == 3, 1, 2)).all()
    due_ns = np.arange(1000) * 200_000
    assert (records["sent_ns"] >= due_ns).all()
    assert (records["sent_ns"] <= due_ns + result["lateness_us"]["max"] * 1000 + 1).all()
    delays_us = (records["received_ns"] - records["sent_ns"])[3::4] / 1000
    assert delays_us.max() == pytest.approx(result["delay_us"]["max"], rel=1e-6)
    assert delays_us.min() == pytest.approx(result["delay_us"]["min"], rel=1e-6)


def test_queries_without_an_answer_have_no_time_of_one(opened: Opening, tmp_path: Path) -> None:
    file = tmp_path / "queries.npy"
    opened(**RINGS).run(forward=asking(), queries_file=str(file), **timed())
    records = np.load(file)
    assert len(records) == 1000
    assert not records["answer"].any()
    assert np.isnan(records["received_ns"]).all()


def test_a_file_that_cannot_be_created_is_refused(opened: Opening) -> None:
    with pytest.raises(Refused) as error:
        opened(**RINGS).run(forward=asking(), queries_file="/proc/none/q.npy", **timed())
    assert error.value.args[0] == "params.queries_file"


REFUSED: tuple[tuple[Json, Json, str], ...] = (
    ({}, {"reverse": asking()}, "params.reverse.questions"),
    ({}, {"forward": asking(), "capture": {"path": "/tmp/c", "first": 1}}, "params.forward.questions"),
    ({"queues": 2}, {"forward": asking()}, "params.forward.questions"),
    ({"queues": 2}, {"server": SERVED}, "params.server"),
)


@pytest.mark.parametrize(("parameters", "members", "field"), REFUSED)
def test_what_does_not_go_with_questions_is_refused(
    opened: Opening, parameters: Json, members: Json, field: str
) -> None:
    with pytest.raises(Refused) as error:
        opened(**RINGS, **parameters).run(**members)
    assert error.value.args[0] == field


def name_of(run: int, trial: int, number: int, has_aaaa: bool = False) -> str:
    return f"{'b' if has_aaaa else 'a'}{run:04x}{trial:04x}{number:010x}.{ZONE}."


def test_queries_are_as_the_protocol_says(opened: Opening, tmp_path: Path) -> None:
    """Every byte by scapy's dissection, and every length and checksum by its computation."""
    file = tmp_path / "left.pcap"
    left = {"port": f"vdev:net_pcap_left,tx_pcap={file}", "mac": "02:00:00:00:00:01"}
    right = {"port": f"vdev:net_pcap_right,tx_pcap={tmp_path / 'right.pcap'}", "mac": "02:00:00:00:00:02"}
    engine = opened(left=left, right=right)
    ports = {"first": 2000, "count": 3}
    cached = {"names": 4, "n": 5, "m": 2, "trial": 9}
    engine.run(trial=258, forward=asking(500, source_ports=ports, aaaa={"n": 2, "m": 1}, cached=cached), **timed())
    engine.process.close()
    packets = rdpcap(str(file))
    assert len(packets) == 100
    run = int(packets[0][DNSQR].qname[1:5], 16)
    first_id = packets[0][DNS].id
    for k, packet in enumerate(packets):
        assert (packet[Ether].src, packet[Ether].dst) == ("02:00:00:00:00:01", "02:00:00:00:00:02")
        assert (packet[IPv6].src, packet[IPv6].dst) == (CLIENT, SERVER)
        assert (packet[UDP].sport, packet[UDP].dport) == (2000 + k % 3, 53)
        query = packet[DNS]
        assert (query.id, query.qr, query.opcode, query.rd) == ((first_id + k // 3) % 65536, 0, 0, 1)
        assert (query.qdcount, query.ancount, query.nscount, query.arcount) == (1, 0, 0, 1)
        before = 2 * k // 5
        number, trial = (before % 4, 9) if 2 * (k + 1) // 5 > before else (k - before, 258)
        assert query[DNSQR].qname.decode() == name_of(run, trial, number, number % 2 == 1)
        assert (query[DNSQR].qtype, query[DNSQR].qclass) == (28, 1)
        assert (query[DNSRROPT].rclass, query[DNSRROPT].z, query[DNSRROPT].rdata) == (1232, 0, [])
        again = packet.copy()
        del again[IPv6].plen, again[UDP].len, again[UDP].chksum
        assert bytes(again) == bytes(packet)


@dataclasses.dataclass
class Cables:
    """A namespace with the tester's ports ``tl`` and ``tr``, and the packet sockets at their other ends."""

    name: str
    left: socket.socket
    right: socket.socket


@pytest.fixture
def cables() -> Iterator[Cables]:
    name = f"dutperf-test-{secrets.token_hex(4)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        off = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"
        subprocess.run(["ip", "netns", "exec", name, "sh", "-c", off], check=True)
        for near, far in (("tl", "dl"), ("tr", "dr")):
            subprocess.run(["ip", "-n", name, "link", "add", near, "type", "veth", "peer", "name", far], check=True)
            for end in (near, far):
                subprocess.run(["ip", "-n", name, "link", "set", end, "up"], check=True)
        with at(name, "dl") as left, at(name, "dr") as right:
            yield Cables(name, left, right)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@contextmanager
def at(namespace: str, port: str) -> Iterator[socket.socket]:
    one: socket.socket = in_namespace(
        namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    )
    one.bind((port, ETH_P_ALL))
    one.settimeout(0.1)
    with one:
        yield one


def arrived(one: socket.socket, until: Callable[[], bool]) -> Iterator[bytes]:
    """Frames at a packet socket."""
    while not until():
        try:
            data, origin = one.recvfrom(2048)
        except TimeoutError:
            continue
        if origin[2] != PACKET_OUTGOING:
            yield data


@contextmanager
def on(cables: Cables) -> Iterator[Engine]:
    """An engine on both cables, with the DUT's MAC address given."""
    sides: Json = {
        "left": {"port": "af_packet:tl", "ipv6": CLIENT, "gateway_mac": DUT_MAC},
        "right": {"port": "af_packet:tr", "ipv6": SERVER, "ipv4": SERVER4, "gateway_mac": DUT_MAC},
    }
    opening = Opening(EngineCommand.find(netns=cables.name))
    try:
        yield opening(**sides, max_frame_size=1518)
    finally:
        opening.close()


def number_in(query: DNS) -> int:
    return int(query[DNSQR].qname[9:19], 16)


def synthesised(number: int, prefix: str = "64:ff9b::") -> str:
    return str(IPv6Address(int(IPv6Address(prefix)) + int(IPv4Address("198.18.0.0")) + number))


def response(query: DNS, *addresses: str, **header: Any) -> DNS:
    records = [DNSRR(rrname=query[DNSQR].qname, type="AAAA", ttl=1, rdata=address) for address in addresses]
    return DNS(**({"id": query.id, "qr": 1, "rd": 1, "ra": 1, "qd": query.qd, "an": records} | header))


def right(query: DNS, **header: Any) -> DNS:
    return response(query, synthesised(number_in(query)), **header)


LATE_S = 1.5
TIMEOUT_MS = 1000
Answers = list[bytes | DNS]
KINDS: dict[str, Callable[[DNS], Answers]] = {
    "right": lambda query: [right(query)],
    "nodata": lambda query: [response(query)],
    "nxdomain": lambda query: [response(query, rcode=3)],
    "servfail": lambda query: [response(query, rcode=2)],
    "refused": lambda query: [response(query, rcode=5)],
    "other_rcode": lambda query: [response(query, rcode=4)],
    "wrong_prefix": lambda query: [response(query, synthesised(number_in(query), "64:ff9c::"))],
    "wrong_address": lambda query: [response(query, *(synthesised(number_in(query) + i) for i in range(2)))],
    "truncated": lambda query: [right(query, tc=1)],
    "malformed": lambda query: [bytes(right(query))[:-1]],
    "unexpected": lambda query: [right(query, id=query.id ^ 0x8000)],
    "duplicate": lambda query: [right(query)] * 2,
    "late": lambda query: [right(query)],
    "wrong then right": lambda query: [response(query, rcode=2), right(query)],
    "corrupted": lambda query: [right(query)],
    "silent": lambda _: [],
}
NAMES = list(KINDS)


def frame_of(answer: bytes | DNS, query: Packet, kind: str) -> bytes:
    udp = UDP(sport=53, dport=query[UDP].sport)
    if kind == "corrupted":
        udp.chksum = 1
    payload = Raw(answer) if isinstance(answer, bytes) else answer
    return bytes(
        Ether(src=DUT_MAC, dst=query[Ether].src) / IPv6(src=query[IPv6].dst, dst=query[IPv6].src) / udp / payload
    )


class WrongServer:
    """Answers query k by the kind of k."""

    def __init__(self, port: socket.socket) -> None:
        self._port, self._done = port, threading.Event()
        self._late: list[tuple[float, bytes]] = []
        self.asked: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> WrongServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _serve(self) -> None:
        self._port.settimeout(0.01)
        while not self._done.is_set():
            while self._late and self._late[0][0] <= time.monotonic():
                self._port.send(self._late.pop(0)[1])
            try:
                data, origin = self._port.recvfrom(2048)
            except TimeoutError:
                continue
            packet = Ether(data)
            if origin[2] != PACKET_OUTGOING and UDP in packet and packet[UDP].dport == 53:
                self._answer(packet)

    def _answer(self, packet: Packet) -> None:
        kind = NAMES[number_in(packet[DNS]) % len(NAMES)]
        self.asked[kind] += 1
        for answer in KINDS[kind](packet[DNS]):
            frame = frame_of(answer, packet, kind)
            if kind == "late":
                self._late.append((time.monotonic() + LATE_S, frame))
            else:
                self._port.send(frame)


@pytest.mark.root
@pytest.mark.alone
def test_wrong_answers_are_counted_by_kind_to_the_last_one(cables: Cables) -> None:
    with on(cables) as engine, WrongServer(cables.left) as dut:
        times = {"duration_ns": 2000 * MS, "drain_ns": 2500 * MS}
        result = engine.run(**times, forward=asking(80), **timed(TIMEOUT_MS))
    forward, asked = result["forward"], dut.asked
    assert forward["sent"] == sum(asked.values()) == 160
    assert min(asked.values()) == 10
    wrong = {kind: asked[kind] for kind in NAMES[NAMES.index("nodata") : NAMES.index("unexpected") + 1]}
    wrong["servfail"] += asked["wrong then right"]
    assert forward["answers"]["wrong"] == wrong
    assert forward["received"] == asked["right"] + asked["duplicate"] + asked["wrong then right"]
    assert forward["duplicates"] == asked["duplicate"]
    assert forward["late"] == asked["late"]
    assert forward["corrupted"] == asked["corrupted"]
    assert forward["tester_drops"] == {}
    assert forward["other_received"] == {}
    assert forward["delay_us"]["frames"] == forward["received"] + forward["late"]
    assert forward["delay_us"]["max"] >= LATE_S * 1e6


def asked_by(layer: Packet, message: bytes | DNS, port: int = 53) -> Packet:
    payload = Raw(message) if isinstance(message, bytes) else message
    return Ether(src=DUT_MAC, dst="ff:ff:ff:ff:ff:ff") / layer / UDP(sport=5353, dport=port) / payload


def ask(name: str, kind: str = "A", **header: Any) -> DNS:
    members: Json = {"id": 1, "rd": 0, "qd": DNSQR(qname=name, qtype=kind)}
    return DNS(**(members | header))


V6, V4 = IPv6(src="2001:2::64", dst=SERVER), IP(src="198.18.0.64", dst=SERVER4)
STALE = f"A00000000000000002A.{ZONE.upper()}"
OPT = DNSRROPT(rclass=4096, z=0x8000)
UNANSWERED = (
    asked_by(V6, ask(STALE), port=54),
    asked_by(IPv6(src="2001:2::64", dst="2001:2::3"), ask(STALE)),
    asked_by(IP(src="198.18.0.64", dst=SERVER4, flags="MF"), ask(STALE)),
)
"""No queries for this server."""


def test_scapy_agrees_with_the_example() -> None:
    assert len(STALE.partition(".")[0]) == 19


@pytest.mark.root
@pytest.mark.alone
def test_the_server_answers_queries_of_any_shape(cables: Cables) -> None:
    rows: list[tuple[str, Packet, str | None]] = [
        ("A over IPv6", asked_by(V6, ask(STALE)), "stale"),
        ("A over IPv4", asked_by(V4, ask(STALE, ar=OPT)), "stale"),
        ("AAAA", asked_by(V4, ask(STALE, "AAAA")), "stale"),
        ("SOA", asked_by(V6, ask(ZONE, "SOA")), "other"),
        ("no name", asked_by(V6, ask(f"_.{ZONE}", "NS")), "unknown"),
        ("the root", asked_by(V6, ask(".", "NS")), "refused"),
        ("half a header", asked_by(V6, b"\0\1\0\0\0"), "malformed"),
        ("no message", asked_by(V6, b""), "malformed"),
        ("zeros", asked_by(V4, bytes(64)), "malformed"),
        ("a response", asked_by(V6, ask(STALE, qr=1)), "malformed"),
        ("labels that do not end", asked_by(V6, bytes(ask(STALE))[:20]), "malformed"),
        ("a pointer as name", asked_by(V6, b"\0\1\0\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"), "malformed"),
        ("a wrong checksum", Ether(bytes(asked_by(V6, ask(STALE)))[:-1] + b"\2"), "malformed"),
    ]
    rows += [("not for it", packet, None) for packet in UNANSWERED]
    replies: list[Packet] = []
    with on(cables) as engine:
        engine.begin("run", {"trial": 1, "duration_ns": 1000 * MS, "drain_ns": 20 * MS, "server": SERVED})
        time.sleep(0.3)
        for _, packet, _ in rows:
            cables.right.send(bytes(packet))
        end = time.monotonic() + 0.5
        replies += [Ether(data) for data in arrived(cables.right, lambda: time.monotonic() > end)]
        server = engine.end()[1]["server"]
    expected = Counter(kind for _, _, kind in rows if kind)
    assert {kind: server[kind] for kind in ("stale", "unknown", "refused", "malformed")} | {
        "other": server["queries"]["other"]
    } == dict(expected)
    answers = [packet for packet in replies if UDP in packet and packet[UDP].sport == 53]
    assert server["answered"] == len(answers) == 9
    assert server["unsent"] == 0
    assert server["tester_drops"] == {}
    for packet in answers:
        assert (packet[Ether].dst, packet[UDP].dport) == (DUT_MAC, 5353)
        again = packet.copy()
        for layer, names in ((IP, ("len", "chksum")), (IPv6, ("plen",)), (UDP, ("len", "chksum"))):
            for name in names if layer in again else ():
                delattr(again[layer], name)
        assert bytes(again) == bytes(packet)
    assert [answer[DNS].rcode for answer in answers] == [0, 0, 0, 0, 3, 5, 1, 1, 1]
    first, second, third, soa, unknown = (answer[DNS] for answer in answers[:5])
    assert (first.an[0].rdata, first.an[0].ttl, first.aa, first.ra) == ("198.18.0.42", 77, 1, 0)
    assert first.qd[0].qname.decode() == f"{STALE}.", "the letters keep their case"
    assert (second.an[0].rdata, second.ar[0].rclass, second.ar[0].z) == ("198.18.0.42", 1232, 0x8000)
    assert answers[1][IP].flags == "DF"
    assert (third.ancount, third.ns[0].type, third.ns[0].minimum) == (0, 6, 77)
    assert (soa.an[0].mname, soa.an[0].rname) == (f"ns.{ZONE}.".encode(), f"hostmaster.{ZONE}.".encode())
    assert unknown.ns[0].rrname == f"{ZONE}.".encode()


@contextmanager
def serving(engine: Engine, duration_ms: int = 3000) -> Iterator[Json]:
    """A trial with the name server alone; afterwards it has what the server counted."""
    counted: Json = {}
    engine.begin("run", {"trial": 1, "duration_ns": duration_ms * MS, "drain_ns": 20 * MS, "server": SERVED})
    time.sleep(0.3)
    yield counted
    counted.update(engine.end()[1]["server"])


def recomputed(packet: Packet) -> bytes:
    """With scapy's lengths and checksums."""
    again = packet.copy()
    for layer, names in ((IP, ("len", "chksum")), (IPv6, ("plen",)), (TCP, ("dataofs", "chksum"))):
        for name in names if layer in again else ():
            delattr(again[layer], name)
    return bytes(again)


class TcpDut:
    """Speaks TCP by scapy's segments."""

    def __init__(self, port: socket.socket, layer: Packet) -> None:
        self._port, self._layer = port, layer
        self._sequence, self._acknowledged = 0xFFFFFFF0, 0

    def send(self, flags: str, payload: bytes = b"", **tcp: Any) -> list[Packet]:
        """Sends a segment; returns those that came for it."""
        members = {"sport": 4444, "dport": 53, "seq": self._sequence, "ack": self._acknowledged, "window": 64240}
        segment = self._layer / TCP(flags=flags, **(members | tcp)) / payload
        self._port.send(bytes(Ether(src=DUT_MAC, dst="02:00:00:00:00:01") / segment))
        self._sequence = (self._sequence + len(payload) + ("S" in flags) + ("F" in flags)) % 2**32
        end = time.monotonic() + 0.3
        came = [Ether(data) for data in arrived(self._port, lambda: time.monotonic() > end)]
        segments: list[Packet] = [packet for packet in came if TCP in packet and packet[TCP].sport == 53]
        for one in segments:
            assert recomputed(one) == bytes(one)
            assert (one[Ether].dst, one[TCP].dport) == (DUT_MAC, 4444)
            if "A" in one[TCP].flags and "R" not in one[TCP].flags:
                size = len(tcp_bytes(one)) + ("S" in one[TCP].flags) + ("F" in one[TCP].flags)
                self._acknowledged = (one[TCP].seq + size) % 2**32
        return segments


def tcp_bytes(packet: Packet) -> bytes:
    """What a segment carries, without padding of the frame."""
    network = packet[IP] if IP in packet else packet[IPv6]
    size = network.len - 20 if IP in packet else network.plen
    return bytes(packet[TCP].original)[packet[TCP].dataofs * 4 : size]


@pytest.mark.root
@pytest.mark.alone
@pytest.mark.parametrize("layer", [V4, V6], ids=["IPv4", "IPv6"])
def test_the_server_answers_over_tcp(cables: Cables, layer: Packet) -> None:
    query = bytes(ask(STALE))
    asked = len(query).to_bytes(2, "big") + query
    with on(cables) as engine, serving(engine, 6000) as server:
        dut = TcpDut(cables.right, layer)
        [reset] = dut.send("PA", asked)
        assert reset[TCP].flags == "R"
        assert len(reset) >= 60, "no frame is shorter"
        [opened] = dut.send("S", options=[("MSS", 1400), ("SAckOK", b""), ("WScale", 7)])
        assert (opened[TCP].flags, opened[TCP].options) == ("SA", [("MSS", 512)])
        assert dut.send("A") == []
        [answered] = dut.send("PA", asked)
        [part] = dut.send("PA", asked[:2])
        assert (part[TCP].flags, tcp_bytes(part)) == ("A", b"")
        [whole] = dut.send("PA", asked[2:])
        assert tcp_bytes(whole) == tcp_bytes(answered)
        answer = DNS(tcp_bytes(answered)[2:])
        assert len(tcp_bytes(answered)) == 2 + int.from_bytes(tcp_bytes(answered)[:2], "big")
        assert (answer.id, answer.rcode, answer.an[0].rdata) == (1, 0, "198.18.0.42")
        [ended] = dut.send("FA")
        assert ended[TCP].flags == "FA"
        assert dut.send("A") == []
    assert (server["tcp"], server["stale"], server["answered"], server["malformed"]) == (2, 2, 2, 0)
    assert (server["unsent"], server["tester_drops"]) == (0, {})


@pytest.mark.root
@pytest.mark.alone
@pytest.mark.parametrize("address", [SERVER4, SERVER], ids=["IPv4", "IPv6"])
def test_a_kernel_asks_over_tcp(cables: Cables, address: str) -> None:
    """Through its own neighbour discovery, over one connection: queries at once, and one by the byte."""
    own, family = ("198.18.0.64/24", socket.AF_INET) if address == SERVER4 else ("2001:2::64/64", socket.AF_INET6)
    ip = ["ip", "netns", "exec", cables.name]
    subprocess.run([*ip, "sysctl", "-qw", "net.ipv6.conf.dr.disable_ipv6=0"], check=True)
    nodad = ["nodad"] if family == socket.AF_INET6 else []
    subprocess.run(["ip", "-n", cables.name, "address", "add", own, "dev", "dr", *nodad], check=True)
    asked = [bytes(ask(f"a00000000{number:010x}.{ZONE}", id=number)) for number in range(1, 41)]
    stream = b"".join(len(one).to_bytes(2, "big") + one for one in asked)
    with on(cables) as engine, serving(engine, 6000) as server:
        client = in_namespace(cables.name, lambda: socket.socket(family, socket.SOCK_STREAM))
        with client:
            client.settimeout(3)
            client.connect((address, 53))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(stream)
            for byte in stream[:50]:
                client.sendall(bytes([byte]))
            client.sendall(stream[50 : 2 + len(asked[0])])
            client.shutdown(socket.SHUT_WR)
            answers = [DNS(message) for message in messages_of(client)]
    assert [answer.id for answer in answers] == [*range(1, 41), 1]
    assert {answer.rcode for answer in answers} == {0}
    assert (server["tcp"], server["answered"], server["malformed"]) == (41, 41, 0)


def messages_of(client: socket.socket) -> Iterator[bytes]:
    """Messages with their lengths, to the end of the stream."""
    with client.makefile("rb") as stream:
        while size := stream.read(2):
            yield stream.read(int.from_bytes(size, "big"))
