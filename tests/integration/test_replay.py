# SPDX-License-Identifier: Apache-2.0
"""Captures written by tcpdump, dumpcap and scapy, replayed through DUTs made by hand, which count their
own losses. Root only."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgReader

import dutperf as dutperf_api
from dutperf.engine.factory import engine_on
from dutperf.model import DirectionCounts, Trial, TrialResult
from dutperf.setup import configuration
from dutperf.traffic.replayed import Replaying, recording_of, trial_of
from printed import printed
from recordings import MACS, capture, udp
from undisturbed import LOSS_IS_CERTAIN, until, valid

from .test_by_hand import made, mapping
from .test_commands import dutperf
from .test_described_frames import mac

pytestmark = pytest.mark.root
RULES = """
table ip told {{
  counter dropped {{ }}
  chain forwarded {{
    type filter hook forward priority 0; policy accept;
    {rule} counter name dropped drop
  }}
}}
"""
TALK = """
import random, socket, sys, time
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 20)
random.seed(1)
for number in range(300):
    one.sendto(random.randbytes(random.choice((18, 64, 700, 1400, random.randrange(18, 1400)))), ("198.19.0.2", 7))
    time.sleep(0.001)
"""


def told(namespace: str, *words: str) -> str:
    return subprocess.run(
        ["ip", "netns", "exec", namespace, *words], check=True, capture_output=True, text=True, timeout=30
    ).stdout


def drop(dut: str, rule: str) -> None:
    """The DUT drops what fits the rule, and counts it."""
    subprocess.run(["ip", "netns", "exec", dut, "nft", "-f", "-"], input=RULES.format(rule=rule), text=True, check=True)


def dropped(dut: str) -> int:
    [counter] = [
        one["counter"]
        for one in json.loads(told(dut, "nft", "-j", "list", "counters", "table", "ip", "told"))["nftables"]
        if "counter" in one
    ]
    return int(counter["packets"])


def mixed(count: int) -> list[Packet]:
    random = Random(2)
    return [
        Ether(**MACS)
        / IP(src="198.18.0.2", dst="198.19.0.2", ttl=9)
        / random.choice((UDP(sport=5, dport=7), TCP(sport=6, dport=7, flags="A")))
        / Raw(random.randbytes(random.choice((30, 100, 1400, random.randrange(30, 1400)))))
        for _ in range(count)
    ]


def sent(path: Path, **given: Any) -> Trial:
    """The trial that replays a capture."""
    conditions = Replaying(**({"drain_s": 0.3} | given))
    return trial_of(recording_of(path, conditions), conditions, 1)


def run(kind: str, name: str, path: Path, **given: Any) -> tuple[TrialResult, DirectionCounts]:
    """The first valid trial that replays a capture."""
    setup = configuration.parse(mapping(kind, name), "by hand")
    trial = sent(path, **given)
    with engine_on(setup, 1518) as tester:
        result = valid(lambda: tester.run(trial), LOSS_IS_CERTAIN)
    [counts] = result.directions().values()
    return result, counts


@contextmanager
def two_hosts() -> Iterator[str]:
    """On one cable; the name of the one that sends."""
    name = f"talk-{secrets.token_hex(3)}"
    hosts = (name, f"{name}-peer")
    try:
        for host in hosts:
            subprocess.run(["ip", "netns", "add", host], check=True)
        subprocess.run(
            ["ip", "-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other", "netns", hosts[1]],
            check=True,
        )
        for host, port, address in ((name, "one", "198.18.0.2/15"), (hosts[1], "other", "198.19.0.2/15")):
            subprocess.run(["ip", "-n", host, "address", "add", address, "dev", port], check=True)
            subprocess.run(["ip", "-n", host, "link", "set", port, "up"], check=True)
        yield name
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "delete", host], check=False)


def test_frames_that_the_router_sends_back_are_not_its_loss(tmp_path: Path) -> None:
    """A capture of both directions of a link has such frames: to the tester's own address."""
    packets = [udp(network=IP(src="198.18.0.2", dst=f"198.{18 + number % 2}.0.2", ttl=9)) for number in range(400)]
    path = capture(tmp_path / "both.pcap", packets, [number * 1_000_000 for number in range(400)])
    with made("router") as name, engine_on(configuration.parse(mapping("router", name), "by hand"), 1518) as tester:
        result = tester.run(sent(path))
    assert "returned" in {cause.code for cause in result.causes}, result.causes
    assert result.forward is not None
    assert result.forward.received == 200


def test_a_single_frame_has_no_rate(tmp_path: Path) -> None:
    path, config = capture(tmp_path / "one.pcap", [udp()]), tmp_path / "router.yaml"
    with made("router") as name:
        config.write_text(yaml.safe_dump(mapping("router", name)))
        done = dutperf("replay", str(path), "--config", str(config), "--drain", "0.2")
    assert "replaying 1 frame, " in done.stderr
    assert "1 frame of" in done.stdout
    assert "Mbit/s" not in done.stdout


WRITERS = {
    "tcpdump": ["tcpdump", "-Z", "root", "-Q", "out", "-U", "-n", "-i", "one", "udp", "-w"],
    "dumpcap": ["dumpcap", "-q", "-i", "one", "-f", "udp", "-w"],
}


def written(writer: str, path: Path) -> Path:
    """What a host says to another, written by a program."""
    if shutil.which(writer) is None:
        pytest.skip(f"needs Debian's {'wireshark-common' if writer == 'dumpcap' else writer}")
    with two_hosts() as host:
        process = subprocess.Popen(
            ["ip", "netns", "exec", host, *WRITERS[writer], path], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        time.sleep(2)
        told(host, sys.executable, "-c", TALK)
        time.sleep(1)
        process.terminate()
        process.wait(timeout=20)
    return path


@pytest.mark.parametrize("writer", ["tcpdump", pytest.param("dumpcap", marks=pytest.mark.long)])
def test_a_capture_of_real_traffic_goes_through_a_router(tmp_path: Path, writer: str) -> None:
    """As it is, but for addresses and what a router changes, and at its own times."""
    path = written(writer, Path("/tmp") / f"dutperf-{secrets.token_hex(4)}.pcap")
    try:
        recording = recording_of(path, Replaying())
        assert len(recording) == 300
        arrived = tmp_path / "arrived.pcapng"
        with made("router") as name:
            result, counts = run("router", name, path, capture="first", capture_to=str(arrived))
    finally:
        path.unlink(missing_ok=True)
    assert (counts.intended, counts.sent, counts.received, counts.out_of_order) == (300, 300, 300, 0)
    assert counts.matched is not None
    assert (counts.matched.in_order, counts.matched.extra) == (300, 0)
    assert result.forward is counts
    with PcapNgReader(str(arrived)) as reader:
        payloads = [bytes(packet[UDP].payload) for packet in reader if UDP in packet]
    assert payloads == [bytes(Ether(recording[place].data)[UDP].payload) for place in range(300)]


@pytest.mark.parametrize(
    "rule",
    [
        "limit rate over 1000/second burst 20 packets",
        pytest.param("numgen random mod 20 == 0", marks=pytest.mark.long),
        pytest.param("tcp dport 7", marks=pytest.mark.long),
    ],
    ids=["limit", "random", "all of TCP"],
)
def test_losses_are_those_that_the_dut_counts(tmp_path: Path, rule: str) -> None:
    """Both by order and by tag."""
    path = capture(tmp_path / "a.pcap", mixed(1000))
    with made("router") as name, engine_on(configuration.parse(mapping("router", name), "by hand"), 1518) as tester:
        drop(f"{name}-dut", rule)
        for tags in (False, True):
            trial = sent(path, tag=tags, rate=2000)
            counted: list[tuple[TrialResult, int]] = []

            def attempt(trial: Trial = trial, counted: list[tuple[TrialResult, int]] = counted) -> TrialResult:
                before = dropped(f"{name}-dut")
                counted.append((tester.run(trial), dropped(f"{name}-dut") - before))
                return counted[-1][0]

            result = valid(attempt, LOSS_IS_CERTAIN)
            [lost] = [lost for one, lost in counted if one is result]
            assert result.forward is not None
            assert result.forward.lost == lost > 0
            assert (result.forward.matched is None) == tags
            assert (result.forward.losses is not None) == tags


def test_lost_frames_are_captured_by_their_tags(tmp_path: Path) -> None:
    path, lost = capture(tmp_path / "a.pcap", mixed(400)), tmp_path / "lost.pcapng"
    with made("router") as name:
        drop(f"{name}-dut", "tcp dport 7")
        _, counts = run(
            "router",
            name,
            path,
            tag=True,
            rate=2000,
            capture="lost",
            capture_to=str(lost),
        )
    with PcapNgReader(str(lost)) as reader:
        packets = list(reader)
    assert len(packets) == counts.lost == sum(TCP in packet for packet in mixed(400))
    assert all(TCP in packet for packet in packets)


def test_a_translator_changes_no_length_that_counts(tmp_path: Path) -> None:
    """IPv6 to IPv4: 20 bytes less, and a DUT that drops some of it."""
    random = Random(3)
    translated = IPv6(src="2001:2::2", dst="2001:2:0:1000::2", hlim=9)
    packets = [udp(random.randrange(20, 1300), translated) for _ in range(500)]
    path = capture(tmp_path / "a.pcap", packets)
    with made("tayga") as name:
        _, counts = run("tayga", name, path, rate=1000)
    assert counts.received == counts.sent == 500
    assert counts.matched is not None
    assert (counts.matched.in_order, counts.matched.extra) == (500, 0)


ENCAPSULATE = """
import socket, struct, sys
west, east = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) for _ in range(2))
west.bind(("west", 0x0800))
east.bind(("east", 0))
macs = bytes.fromhex(sys.argv[1].replace(":", "")) + east.getsockname()[4]
while True:
    frame, (_, _, kind, *_) = west.recvfrom(2000)
    if kind != socket.PACKET_HOST or frame[30:34] != bytes((198, 19, 0, 200)):
        continue
    inner = frame[14 : 14 + int.from_bytes(frame[16:18], "big")]
    ends = bytes((198, 19, 0, 1, 198, 19, 0, 2))
    outer = struct.pack("!BBHHHBBH8s", 0x45, 0, 20 + len(inner), 0, 0, 64, 4, 0, ends)
    total = sum(struct.unpack("!10H", outer))
    total = (total & 0xFFFF) + (total >> 16)
    outer = outer[:10] + struct.pack("!H", 0xFFFF & ~((total & 0xFFFF) + (total >> 16))) + outer[12:]
    east.send(macs + b"\\x08\\x00" + outer + inner)
"""
"""Puts IPv4 packets into IPv4 packets (RFC 2003)."""


@pytest.mark.long
def test_a_tunnel_changes_lengths_and_says_so(tmp_path: Path) -> None:
    """20 bytes more behind the outer header. Untold, the trial is invalid, and says which change would
    explain it."""
    packets = [packet for packet in mixed(600) if len(packet) < 1400]
    for packet in packets:
        packet[IP].dst = "198.19.0.200"
    path = capture(tmp_path / "a.pcap", packets)
    with made("router") as name:
        dut = f"{name}-dut"
        told(dut, "ip", "route", "add", "blackhole", "198.19.0.200")
        setup = configuration.parse(mapping("router", name), "by hand")
        program = subprocess.Popen(
            ["ip", "netns", "exec", dut, sys.executable, "-c", ENCAPSULATE, mac(name, "eth2")], start_new_session=True
        )

        def result_of(change: str, tester: Any) -> TrialResult:
            result: TrialResult = tester.run(sent(path, rate=500, drain_s=0.5, length_change=change))
            return result

        with engine_on(setup, 1518) as tester:
            untold = result_of("0", tester)
            explained = valid(lambda: result_of("+20", tester))
        program.terminate()
        program.wait(timeout=10)
    assert "+20 bytes (--length-change)" in next(cause.text for cause in untold.causes if cause.code == "matched")
    assert explained.forward is not None
    assert explained.forward.received == explained.forward.sent == len(packets)


def test_the_command(tmp_path: Path) -> None:
    """Backwards through the router, twice, at double speed; and what it says."""
    packets = [udp(size, IP(src="198.19.0.2", dst="198.18.0.2")) for size in (30, 500, 1200) * 50]
    path = capture(tmp_path / "a.pcap", packets, [number * 1_000_000 for number in range(150)])
    with made("router") as name:
        config = tmp_path / "setup.yaml"
        config.write_text(yaml.safe_dump(mapping("router", name)))
        given = ["replay", str(path), "--config", str(config), "--directions", "reverse", "--speed", "2", "--loop", "2"]

        def attempt() -> dict[str, Any]:
            out = tmp_path / secrets.token_hex(3)
            done = dutperf(*given, "--drain", "0.3", "--json", "--out", str(out))
            assert done.returncode in (0, 3), done.stderr
            assert json.loads((out / "trial.json").read_text())["reverse"] == printed(done)["reverse"]
            report: dict[str, Any] = printed(done)
            return report

        report = until(attempt, lambda one: one["verdict"] == "valid", lambda one: str(one["causes"]))
        text = until(
            lambda: dutperf(*given, "--drain", "0.3"), lambda done: done.returncode == 0, lambda done: done.stdout
        )
    assert report["passed"] is True
    assert report["reverse"]["sent"] == report["reverse"]["received"] == 300
    assert report["replay"]["counted"] == "by order and length"
    assert report["trial"]["duration_ns"] == 150_000_000
    words = " ".join(text.stdout.split())
    assert "300 frames without a tag were matched with what arrived by order and length" in words
    assert "0 lost, 0 extra. This is weaker evidence than tags" in words


def test_a_program_replays_a_capture(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", mixed(300))
    with made("router") as name, dutperf_api.bench(config=mapping("router", name)) as bench:
        result = valid(
            lambda: bench.replay(path, Replaying(tag=True, rate=3000, drain_s=0.3)),
            LOSS_IS_CERTAIN,
        )
        with pytest.raises(dutperf_api.ConfigError, match="file: 3046 bytes are longer than max_frame_size=1518"):
            bench.replay(capture(tmp_path / "b.pcap", [udp(3000)]))
    assert result.reverse is None
    assert result.forward is not None
    assert result.forward.sent == result.forward.received == 300


def test_a_frame_that_the_port_does_not_take_is_named(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", [udp(), udp(3000)])
    with made("router") as name:
        config = tmp_path / "setup.yaml"
        config.write_text(yaml.safe_dump(mapping("router", name)))
        done = dutperf("replay", str(path), "--config", str(config))
    assert done.returncode == 2
    assert "the MTU of eth1 is 1500" in done.stderr
    assert f"frame 2 of {path} has 3046 bytes with FCS" in done.stderr
