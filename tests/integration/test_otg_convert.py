# SPDX-License-Identifier: Apache-2.0
"""A configuration of the Open Traffic Generator API as a file of ours, sent by a trial: what a capture of its frames
shows. Ports are a ring in memory. And a file of ours as a script for snappi, which a server runs over a cable."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import snappi
import yaml
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.utils import PcapNgReader

from .test_otg import cable, serving

__all__ = ["cable"]


def dutperf(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dutperf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_converted_file_sends_the_flows(tmp_path: Path) -> None:
    made = snappi.api(location="http://localhost").config()
    for name in ("a", "b"):
        made.ports.add(name=name, location=f"10.0.0.1;{name}")
    for name, tx, rx, size in (("call", "a", "b", 200), ("back", "b", "a", 128)):
        one = made.flows.add(name=name)
        one.tx_rx.port.tx_name, one.tx_rx.port.rx_names = tx, [rx]
        ethernet, vlan, ip, udp = one.packet.ethernet().vlan().ipv4().udp()
        ethernet.dst.value, vlan.id.value, ip.dst.value = "02:00:00:00:00:02", 7, "198.19.0.2"
        udp.src_port.values, udp.dst_port.value = [5000, 5010, 5020], size
        one.size.fixed, one.rate.pps = size, 500
    made.flows[0].duration.fixed_packets.packets = 90
    made.flows[1].duration.burst.bursts, made.flows[1].duration.burst.packets = 3, 20
    made.flows[1].duration.burst.inter_burst_gap.microseconds = 10_000
    made.flows[1].rate.pps = 2000
    file, ours, capture = tmp_path / "flows.json", tmp_path / "ours.yaml", tmp_path / "capture.pcapng"
    file.write_text(made.serialize("json"))
    done = dutperf("convert", file, "--ports", "10.0.0.1;a=ring", "--ports", "10.0.0.1;b=ring")
    assert done.returncode == 0, done.stderr
    ours.write_text(done.stdout)
    sent = dutperf(
        *("trial", "--config", ours, "--duration", "1", "--drain", "0.2", "--json"),
        *("--capture", "first", "--capture-to", capture),
    )
    counted = json.loads(sent.stdout)["other_streams"]
    assert {name: (one["sent"], one["received"]) for name, one in counted.items()} == {
        "a->b:call": (90, 90),
        "b->a:back": (60, 60),
    }
    with PcapNgReader(str(capture)) as reader:
        frames = [Ether(bytes(one)) for one in reader]
    for size, count in ((200, 90), (128, 60)):
        each = [one for one in frames if UDP in one and one[UDP].dport == size]
        assert [one[UDP].sport for one in each] == [5000, 5010, 5020] * (count // 3)
        assert {(len(one) + 4, one.dst, one[Dot1Q].vlan, one[IP].len, one[IP].ttl) for one in each} == {
            (size, "02:00:00:00:00:02", 7, size - 4 - 18, 64)
        }


@pytest.mark.root
def test_a_script_sends_the_streams(cable: str, tmp_path: Path) -> None:
    """One has no end: it is stopped."""
    sides = {
        name: {"port": f"eth{number}", "version": 4, "ipv4": f"198.18.0.{number}/24"}
        for number, name in ((1, "left"), (2, "right"))
    }
    streams = [
        {"name": "call", "rate": 500, "sizes": 200, "directions": "forward", "duration_s": 0.5},
        {"name": "download", "rate": 1000, "sizes": 1000, "directions": "reverse"},
    ]
    file, script = tmp_path / "ours.yaml", tmp_path / "flows.py"
    file.write_text(yaml.safe_dump({**sides, "streams": [one | {"frame": "ip/tcp"} for one in streams]}))
    script.write_text(dutperf("convert", "--to", "snappi", file).stdout)
    with serving(cable, "--plain") as address:
        command = [sys.executable, str(script), address, "eth1", "eth2", "--seconds", "1.5"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert told["call"] == "250 sent, 250 received, loss 0 %"
    sent, received = (int(word) for word in told["download"].split() if word.isdigit() and word != "0")
    assert sent == received
    assert sent > 1000
