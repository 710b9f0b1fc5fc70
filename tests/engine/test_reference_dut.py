# SPDX-License-Identifier: Apache-2.0
"""The reference DUT between two capture files, judged by scapy, which knows nothing of our code:
what it translates (RFC 7915, and as a NAT), byte by byte. And when it comes before other threads, which
needs root."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.all import ICMP, IP, TCP, UDP, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Packet, Raw, rdpcap, wrpcap

from dutperf.engine.process import EngineProcess
from dutperf.lab.refdut import PROGRAM, VARIABLE
from dutperf.machine.programs import find_program

MACS = {"left": "02:00:00:00:00:11", "right": "02:00:00:00:00:12"}
TESTERS = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}
EMBEDDED = "2001:2:0:6464::"
"""Prefix of RFC 6052, 96 bits."""
MAPPINGS = {"198.18.0.2": "2001:2::2", "198.18.7.2": "2001:2:0:7::2", "198.19.0.2": "2001:2:0:1000::2"}


def open_request(tmp_path: Path, options: str = "", **translator: Any) -> dict[str, Any]:
    """Both ports are files: what arrives, and what leaves. ``options`` of the driver."""

    def side(name: str) -> dict[str, Any]:
        files = f"rx_pcap={tmp_path / name}-in.pcap,tx_pcap={tmp_path / name}-out.pcap{options}"
        return {"port": f"vdev:net_pcap_{name},{files}", "mac": MACS[name], "gateway_mac": TESTERS[name]}

    routes = {"routes4": ["198.18.0.0/16"], "routes6": ["2001:2:0:1000::/56", f"{EMBEDDED}/96"]}
    return {
        "left": side("left"),
        "right": side("right"),
        "to_left": {"routes6": ["2001:2::/56"]},
        "to_right": {"routes4": ["198.19.0.0/16", "203.0.113.0/24"], "routes6": ["2001:2:0:8000::/56"]},
        "translator": {
            **routes,
            "mappings": [{"ipv4": four, "ipv6": six} for four, six in MAPPINGS.items()],
            "prefix": f"{EMBEDDED}/96",
            **translator,
        },
        "memory": "no_huge_pages",
    }


def passed(
    tmp_path: Path, packets: dict[str, list[Packet]], **translator: Any
) -> tuple[dict[str, list[Packet]], dict[str, Any]]:
    """What leaves by each side when ``packets`` come in, and the DUT's counters."""
    with started(tmp_path, packets, **translator) as process:
        counters = until_all_were_received(process, {"forward": len(packets["left"]), "reverse": len(packets["right"])})
    return {side: list(rdpcap(str(tmp_path / f"{side}-out.pcap"))) for side in MACS}, counters


@contextmanager
def started(
    tmp_path: Path,
    packets: dict[str, list[Packet]],
    prefix: Sequence[str] = (),
    options: str = "",
    **translator: Any,
) -> Iterator[EngineProcess]:
    """A DUT into which ``packets`` come, started by ``prefix``."""
    for side, arriving in packets.items():
        write(tmp_path, side, arriving)
    with running(prefix) as process:
        process.send({"id": 1, "method": "open", "params": open_request(tmp_path, options, **translator)})
        assert process.receive(20)["event"] == "opened"
        yield process


def write(tmp_path: Path, side: str, arriving: list[Packet]) -> None:
    """What comes in by that side."""
    frames = [Ether(dst=MACS[side], src=TESTERS[side]) / packet for packet in arriving]
    wrpcap(str(tmp_path / f"{side}-in.pcap"), frames, linktype=1)


@contextmanager
def running(prefix: Sequence[str] = ()) -> Iterator[EngineProcess]:
    """A DUT without ports."""
    program = find_program(PROGRAM, VARIABLE)
    if program is None:
        pytest.skip(f"{PROGRAM} is not built")
    process = EngineProcess([*prefix, program])
    try:
        yield process
    finally:
        process.close()


def until_all_were_received(process: EngineProcess, expected: dict[str, int]) -> dict[str, Any]:
    """The counters once everything that arrives has arrived, and nothing is held."""
    deadline = time.monotonic() + 20
    while True:
        process.send({"id": 2, "method": "counters"})
        counters = process.receive(20)
        if all(
            counters[direction]["received"] == count and counters[direction]["held"] == 0
            for direction, count in expected.items()
        ):
            return counters
        assert time.monotonic() < deadline, counters
        time.sleep(0.01)


def six(four: str) -> str:
    """The IPv6 address that stands for an IPv4 address."""
    return MAPPINGS.get(four, EMBEDDED + four)


def transport(rng: random.Random, version: int) -> Packet:
    """A UDP, TCP or echo packet of any length; its checksum is scapy's to compute."""
    data = Raw(rng.randbytes(rng.choice([0, 1, 2, 17, 18, 100, 1200])))
    ports = {"sport": rng.randrange(1, 65536), "dport": rng.randrange(1, 65536)}
    numbers = {"id": rng.randrange(65536), "seq": rng.randrange(65536)}
    echo = {
        4: (ICMP(type=8, **numbers), ICMP(type=0, **numbers)),
        6: (ICMPv6EchoRequest(**numbers), ICMPv6EchoReply(**numbers)),
    }
    return rng.choice([UDP(**ports), TCP(**ports, seq=rng.randrange(2**32)), *echo[version]]) / data


def other_version(packet: Packet, version: int) -> Packet:
    """The same transport in the other IP version, checksums to be computed anew."""
    again = packet.copy()
    if version == 6 and ICMP in again:
        kind = ICMPv6EchoRequest if again[ICMP].type == 8 else ICMPv6EchoReply
        return kind(id=again[ICMP].id, seq=again[ICMP].seq, data=bytes(again[ICMP].payload))
    if version == 4 and (ICMPv6EchoRequest in again or ICMPv6EchoReply in again):
        echo = again[ICMPv6EchoRequest] if ICMPv6EchoRequest in again else again[ICMPv6EchoReply]
        return ICMP(type=8 if ICMPv6EchoRequest in again else 0, id=echo.id, seq=echo.seq) / Raw(bytes(echo.payload))
    return again


def ip_bytes(frame: Packet) -> bytes:
    """The IP packet in a frame, without padding."""
    packet = frame.payload
    length = packet.plen + 40 if isinstance(packet, IPv6) else packet.len
    return bytes(frame)[14 : 14 + length]


COUNT = 150


def test_ipv6_becomes_the_ipv4_that_scapy_builds(tmp_path: Path) -> None:
    rng = random.Random(1)
    arriving, expected = [], []
    for number in range(COUNT):
        source, destination = rng.choice(["198.18.0.2", "198.18.7.2"]), rng.choice(["198.19.0.2", "203.0.113.9"])
        inner, hops, traffic_class = transport(rng, 6), rng.randrange(2, 256), rng.randrange(256)
        arriving.append(IPv6(src=six(source), dst=six(destination), hlim=hops, tc=traffic_class) / inner)
        expected.append(
            IP(src=source, dst=destination, ttl=hops - 1, tos=traffic_class, id=number, flags=0)
            / other_version(inner, 4)
        )
    left, counters = passed(tmp_path, {"left": arriving, "right": []})
    assert [ip_bytes(frame) for frame in left["right"]] == [bytes(packet) for packet in expected]
    assert {(frame.src, frame.dst) for frame in left["right"]} == {(MACS["right"], TESTERS["right"])}
    assert counters["forward"]["translated"] == counters["forward"]["forwarded"] == COUNT


def test_ipv4_becomes_the_ipv6_that_scapy_builds(tmp_path: Path) -> None:
    rng = random.Random(2)
    arriving, expected = [], []
    for _ in range(COUNT):
        source, destination = rng.choice(["198.19.0.2", "203.0.113.9"]), rng.choice(["198.18.0.2", "198.18.7.2"])
        inner, hops, tos = transport(rng, 4), rng.randrange(2, 256), rng.randrange(256)
        arriving.append(
            IP(src=source, dst=destination, ttl=hops, tos=tos, flags=rng.choice(["DF", 0]), id=rng.randrange(65536))
            / inner
        )
        expected.append(
            IPv6(src=six(source), dst=six(destination), hlim=hops - 1, tc=tos, fl=0) / other_version(inner, 6)
        )
    left, counters = passed(tmp_path, {"left": [], "right": arriving})
    assert [ip_bytes(frame) for frame in left["left"]] == [bytes(packet) for packet in expected]
    assert counters["reverse"]["translated"] == counters["reverse"]["forwarded"] == COUNT


@pytest.mark.parametrize(("choice", "computed", "lost"), [("compute", 1, 0), ("drop", 0, 1)])
def test_udp_without_a_checksum(tmp_path: Path, choice: str, computed: int, lost: int) -> None:
    """RFC 7915 section 4.5."""
    without = IP(src="198.19.0.2", dst="198.18.0.2", ttl=9) / UDP(sport=49184, dport=7, chksum=0) / Raw(b"data")
    left, counters = passed(tmp_path, {"left": [], "right": [without]}, udp_zero_checksum=choice)
    expected = IPv6(src="2001:2:0:1000::2", dst="2001:2::2", hlim=8) / UDP(sport=49184, dport=7) / Raw(b"data")
    assert [ip_bytes(frame) for frame in left["left"]] == [bytes(expected)] * computed
    assert (counters["checksums_computed"], counters["reverse"]["lost"]["unsupported"]) == (computed, lost)


def test_a_cleared_count_of_checksums_is_0(tmp_path: Path) -> None:
    without = IP(src="198.19.0.2", dst="198.18.0.2", ttl=9) / UDP(sport=49184, dport=7, chksum=0) / Raw(b"data")
    with started(tmp_path, {"left": [], "right": [without]}) as process:
        assert until_all_were_received(process, {"reverse": 1})["checksums_computed"] == 1
        process.send({"id": 3, "method": "clear"})
        assert process.receive(20)["event"] == "done"
        assert until_all_were_received(process, {"reverse": 0})["checksums_computed"] == 0


def test_what_is_only_routed_is_the_same_but_for_its_hop_limit(tmp_path: Path) -> None:
    packet = IPv6(src="2001:2::2", dst="2001:2:0:8000::2", hlim=64, tc=5, fl=7) / UDP(sport=1, dport=2) / Raw(b"data")
    left, counters = passed(tmp_path, {"left": [packet], "right": []})
    packet.hlim = 63
    assert [ip_bytes(frame) for frame in left["right"]] == [bytes(packet)]
    assert counters["forward"]["translated"] == 0


REFUSED: list[tuple[str, Callable[[], Packet]]] = [
    ("hop_limit", lambda: IP(src="198.19.0.2", dst="198.18.0.2", ttl=1) / UDP()),
    ("not_routable", lambda: IP(src="198.19.0.2", dst="192.0.2.1") / UDP()),
    ("not_routable", lambda: IP(src="198.19.0.2", dst="198.18.9.9") / UDP()),
    ("malformed", lambda: IP(src="198.19.0.2", dst="198.18.0.2", chksum=1) / UDP()),
    ("unsupported", lambda: IP(src="198.19.0.2", dst="198.18.0.2", flags="MF") / UDP()),
    ("unsupported", lambda: IP(src="198.19.0.2", dst="198.18.0.2") / ICMP(type=3)),
    ("too_long", lambda: IP(src="198.19.0.2", dst="198.18.0.2") / UDP() / Raw(bytes(1460))),
]


def test_what_is_refused_is_counted_by_cause(tmp_path: Path) -> None:
    left, counters = passed(tmp_path, {"left": [], "right": [make() for _, make in REFUSED]})
    assert left["left"] == []
    causes = [cause for cause, _ in REFUSED]
    assert {cause: count for cause, count in counters["reverse"]["lost"].items() if count} == {
        cause: causes.count(cause) for cause in causes
    }


POOL, FIRST_PORT = "198.19.254.129", 3000


@contextmanager
def nat(tmp_path: Path, packets: dict[str, list[Packet]], version: int) -> Iterator[EngineProcess]:
    """A NAT44 or a stateful NAT64 into which ``packets`` come."""
    prefix = {"prefix": f"{EMBEDDED}/96"} if version == 6 else {}
    request = open_request(tmp_path) | {
        "to_left": {"routes4": ["198.18.0.0/16"] if version == 4 else [], "routes6": ["2001:2::/56"]},
        "to_right": {"routes4": ["198.19.0.0/16"], "routes6": []},
        "nat": {"pool": [POOL], "first_port": FIRST_PORT, **prefix},
    }
    del request["translator"]
    for side, arriving in packets.items():
        write(tmp_path, side, arriving)
    with running() as process:
        process.send({"id": 1, "method": "open", "params": request})
        assert process.receive(20)["event"] == "opened"
        yield process


def ask(process: EngineProcess, method: str, **params: Any) -> dict[str, Any]:
    """The answer to a request."""
    process.send({"id": 3, "method": method} | ({"params": params} if params else {}))
    return process.receive(20)


def inside(version: int, source: str, destination: str, **fields: Any) -> Packet:
    """The header of a packet on the left, between a left and a right host by their IPv4 addresses."""
    if version == 4:
        return IP(src=source, dst=destination, ttl=fields["hops"], flags="DF")
    return IPv6(src=six(source), dst=EMBEDDED + destination, hlim=fields["hops"])


@pytest.mark.parametrize("version", [4, 6])
def test_a_nat_does_to_udp_what_scapy_builds_in_both_directions(tmp_path: Path, version: int) -> None:
    """Each connection has one frame from the inside, and one back, which comes after it."""
    rng = random.Random(version)
    flows = rng.sample(range(1, 65536), COUNT)
    packets: dict[str, list[Packet]] = {"left": [], "right": []}
    expected: dict[str, list[bytes]] = {"left": [], "right": []}
    for number, port in enumerate(flows):
        host, remote = rng.choice(["198.18.0.2", "198.18.7.2"]), rng.choice(["198.19.0.2", "198.19.200.9"])
        remote_port, hops, outside = rng.randrange(1, 65536), rng.randrange(2, 256), FIRST_PORT + number
        data = Raw(rng.randbytes(rng.choice([1, 2, 17, 18, 100, 1200])))
        flags = "DF" if version == 4 else 0
        out, back = UDP(sport=port, dport=remote_port) / data, UDP(sport=remote_port, dport=outside) / data
        packets["left"].append(inside(version, host, remote, hops=hops) / out)
        packets["right"].append(IP(src=remote, dst=POOL, ttl=hops, id=number) / back)
        identification = 1 if version == 4 else number
        expected["right"].append(
            bytes(
                IP(src=POOL, dst=remote, ttl=hops - 1, flags=flags, id=identification)
                / UDP(sport=outside, dport=remote_port)
                / data
            )
        )
        header = (
            IP(src=remote, dst=host, ttl=hops - 1, id=number)
            if version == 4
            else IPv6(src=EMBEDDED + remote, dst=six(host), hlim=hops - 1)
        )
        expected["left"].append(bytes(header / UDP(sport=remote_port, dport=port) / data))
    with nat(tmp_path, packets, version) as process:
        counters = until_all_were_received(process, {"forward": COUNT, "reverse": COUNT})
    for side in MACS:
        assert [ip_bytes(frame) for frame in rdpcap(str(tmp_path / f"{side}-out.pcap"))] == expected[side]
    assert counters["connections"] == {
        **dict.fromkeys(("refused", "untracked", "evicted", "expired", "deleted", "remapped"), 0),
        **dict.fromkeys(("created", "current", "highest"), COUNT),
    }


def test_connections_are_cleared_on_request(tmp_path: Path) -> None:
    frames = [inside(4, "198.18.0.2", "198.19.0.2", hops=9) / UDP(sport=port, dport=7) for port in range(1, 201)]
    with nat(tmp_path, {"left": frames, "right": []}, 4) as process:
        assert until_all_were_received(process, {"forward": 200})["connections"]["current"] == 200
        assert ask(process, "clear_connections")["event"] == "done"
        connections = ask(process, "counters")["connections"]
        assert (connections["current"], connections["deleted"], connections["highest"]) == (0, 200, 200)


def test_what_has_no_nat_has_no_connections(tmp_path: Path) -> None:
    with started(tmp_path, {"left": [], "right": []}) as process:
        assert ask(process, "clear_connections")["code"] == "no_nat"
        assert "connections" not in ask(process, "counters")
        refused = ask(process, "configure", nat={"capacity": 7})
        assert (refused["code"], refused["field"]) == ("bad_request", "params.nat")


def test_what_is_no_dns64_has_no_resolver(tmp_path: Path) -> None:
    with started(tmp_path, {"left": [], "right": []}) as process:
        assert "dns64" not in ask(process, "counters")
        refused = ask(process, "configure", dns64={"cache_names": 7})
        assert (refused["code"], refused["field"]) == ("bad_request", "params.dns64")


def dns64(server: str = "198.19.0.2", prefix: str = f"{EMBEDDED}/96", **others: Any) -> dict[str, Any]:
    """A request for a DNS64."""
    left, right = {"port": "null", "ipv6": "2001:2::1"}, {"port": "null", "ipv4": "198.19.0.1"}
    routes = {"to_left": {}, "to_right": {}}
    dut = {"left": left, "right": right, **routes, "dns64": {"server": server, "prefix": prefix}}
    return {"method": "open", "params": dut | others}


BAD_REQUESTS = [
    pytest.param(dns64(server="dns"), "bad_request", "params.dns64.server", id="no address of a DNS64's server"),
    pytest.param(dns64(server="2001:2::5"), "bad_request", "params.dns64.server", id="no IPv6 towards that server"),
    pytest.param(dns64(left={"port": "null"}), "bad_request", "params.dns64.server", id="no address for its clients"),
    pytest.param(dns64(prefix="2001:db8::/44"), "bad_request", "params.dns64.prefix", id="no length of RFC 6052"),
    pytest.param(
        dns64(to_right={"routes4": ["198.19.0.0/16"]}), "bad_request", "params.dns64", id="a DNS64 that forwards"
    ),
    pytest.param({"method": "counters"}, "not_open", None, id="not open"),
    pytest.param({"method": "run"}, "bad_request", "method", id="no such method"),
    pytest.param(
        {"method": "open", "params": {"left": {"port": "null"}}}, "bad_request", "params.to_left", id="no routes"
    ),
]


@pytest.mark.parametrize(("request_", "code", "field"), BAD_REQUESTS)
def test_a_bad_request_is_named(request_: dict[str, Any], code: str, field: str | None) -> None:
    with running() as process:
        process.send({"id": 7, **request_})
        answer = process.receive(20)
    assert (answer["id"], answer["code"], answer["field"]) == (7, code, field)


def may_be_real_time() -> bool:
    """Whether this process may have a thread in the real-time class: a container may not grant it."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return False
    os.sched_setscheduler(0, *before)
    return True


def comes_to(process: EngineProcess, policy: int, limit_s: float = 10, **properties: int) -> bool:
    """Whether the thread of a DUT with these ``properties`` is soon scheduled by ``policy``, and then stays so."""
    process.send({"id": 2, "method": "configure", "params": properties})
    assert process.receive(20)["event"] == "done"
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if os.sched_getscheduler(process.pid) == policy:
            time.sleep(0.05)
            return os.sched_getscheduler(process.pid) == policy
        time.sleep(0.001)
    return False


@pytest.mark.root
def test_only_one_that_sleeps_comes_before_every_other_thread_of_its_core(tmp_path: Path) -> None:
    """One that does not would keep them from running at all."""
    if not may_be_real_time():
        pytest.skip("this process may not use the real-time class")
    core = str(min(os.sched_getaffinity(0)))
    with started(tmp_path, {"left": [], "right": []}, ["taskset", "--cpu-list", core]) as process:
        assert comes_to(process, os.SCHED_OTHER)
        assert comes_to(process, os.SCHED_RR, capacity_fps=10_000, queue_frames=10)
        assert comes_to(process, os.SCHED_OTHER, capacity_fps=10_000, queue_frames=10, delay_ns=1000)
        assert comes_to(process, os.SCHED_RR, capacity_fps=100_000)
        assert comes_to(process, os.SCHED_OTHER, capacity_fps=1_000_000)
    with started(
        tmp_path, {"left": [], "right": []}, ["chrt", "--batch", "0", "taskset", "--cpu-list", core]
    ) as process:
        assert not comes_to(process, os.SCHED_RR, 0.5, capacity_fps=10_000), "as the user chose"
        assert comes_to(process, os.SCHED_BATCH)
    frames = {"left": [IP(src="198.18.0.2", dst="198.19.0.2") / UDP()], "right": []}
    with started(tmp_path, frames, ["taskset", "--cpu-list", core], ",infinite_rx=1") as process:
        assert comes_to(process, os.SCHED_OTHER, capacity_fps=10), "it is never idle"


@pytest.mark.root
def test_one_that_may_run_on_several_cores_comes_before_none(tmp_path: Path) -> None:
    """It would stay on the core of another that works."""
    if len(os.sched_getaffinity(0)) == 1 or not may_be_real_time():
        pytest.skip("this process may use one core only, or not the real-time class")
    with started(tmp_path, {"left": [], "right": []}) as process:
        assert not comes_to(process, os.SCHED_RR, 0.5, capacity_fps=10_000)
