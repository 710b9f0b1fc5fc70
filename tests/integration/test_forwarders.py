# SPDX-License-Identifier: Apache-2.0
"""Labs whose DUT forwards by MAC address, or from one port to the other: what they forward is what was sent, to
the byte; a reset stops them; what they count as lost is what is missing. Root only."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from scapy.all import IP, UDP, Ether, IPv6, Packet, Raw, rdpcap

from dutperf import lab
from dutperf.dut.device import Device
from dutperf.lab import telemetry, testpmd
from dutperf.model import LEFT_AND_RIGHT
from dutperf.setup import configuration
from labs.stations import Stations, stations_of
from labs.test_labs import wait_for
from printed import printed
from switches import has_open_vswitch
from undisturbed import until

from .test_commands import dutperf

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

WITH_DPDK = pytest.mark.skipif(not has_open_vswitch(), reason="needs Debian's openvswitch-switch-dpdk")
ON_CABLES = [("linux-bridge", {}), ("ovs", {}), ("ovs", {"flows": "fixed"})]
IN_MEMORY = [("testpmd", {}), pytest.param("ovs", {"link": "vhost"}, marks=WITH_DPDK)]
START_S = 30


def packet(version: int, reverse: bool = False, payload: int = 18) -> Packet:
    """With a hop limit, flow label, DSCP and wrong checksum that nobody may mend."""
    ends = ("198.18.0.2", "198.19.0.2") if version == 4 else ("2001:2::2", "2001:2:0:8000::2")
    source, destination = reversed(ends) if reverse else ends
    header = (
        IP(src=source, dst=destination, ttl=3, tos=0x28, id=77)
        if version == 4
        else IPv6(src=source, dst=destination, hlim=3, fl=0x12345)
    )
    return header / UDP(sport=49184, dport=7, chksum=0x1234) / Raw(bytes(payload))


@contextmanager
def up(name: str, options: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The lab, which must be ready in time."""
    began_s = time.monotonic()
    with lab.bring_up(name, options) as made:
        assert time.monotonic() - began_s < START_S
        assert made["engine"]["dut_cores"] == made["dut"]["cores"] == [max(os.sched_getaffinity(0))]
        yield made


def passes(both: Stations) -> bool:
    """Whether a frame gets through now."""
    return len(both.exchange("left", [packet(4)], expected=1, wait_s=0.3)) == 1


@pytest.mark.parametrize(("name", "options"), ON_CABLES)
def test_frames_pass_unchanged_both_ways(name: str, options: dict[str, str]) -> None:
    with up(name, options) as made, stations_of(made) as both:
        for version in (4, 6):
            for sender, source, sink in (("left", both.left, both.right), ("right", both.right, both.left)):
                sent = packet(version, reverse=sender == "right")
                (received,) = both.exchange(sender, [sent], expected=1)
                assert bytes(received) == bytes(Ether(src=source.mac, dst=sink.mac) / sent)


@pytest.mark.parametrize(("name", "options"), ON_CABLES)
def test_the_longest_frames_pass(name: str, options: dict[str, str]) -> None:
    sent = packet(6, payload=9216 - 18 - 40 - 8)
    with up(name, options | {"max_frame_size": "9216"}) as made, stations_of(made) as both:
        (received,) = both.exchange("left", [sent], expected=1)
    assert len(received) == 9216 - 4


@pytest.mark.parametrize(("name", "options"), ON_CABLES)
def test_a_reset_stops_it_for_its_time(name: str, options: dict[str, str]) -> None:
    with up(name, options | {"reset_s": "1.5"}) as made, stations_of(made) as both:
        assert wait_for(lambda: passes(both))
        began_s = time.monotonic()
        with subprocess.Popen(made["dut"]["commands"]["reset"]) as reset:
            assert wait_for(lambda: not passes(both), 1.2)
            assert wait_for(lambda: passes(both), 10)
        assert time.monotonic() - began_s > 1.2
        assert reset.returncode == 0


@pytest.mark.long
def test_a_reset_of_testpmd_is_measured(tmp_path: Path) -> None:
    """It has no cables on which a station could ask."""
    argv = ("--lab", "testpmd", "--lab-option", "reset_s=1.5", "--rate", "10k", "--duration", "5", "--reset-after", "1")
    argv += ("--drain", "0.3", "--repetitions", "1", "--json", "--out")
    runs = itertools.count()

    def measured() -> dict[str, Any]:
        done = dutperf("reset", *argv, str(tmp_path / f"out{next(runs)}"))
        found: dict[str, Any] = printed(done)["points"][0]
        return found

    def right(point: dict[str, Any]) -> bool:
        return all(1.5 <= (point[way] or {}).get("arrival_gap", {}).get("median", 0) < 1.7 for way in LEFT_AND_RIGHT)

    until(measured, right, fewest=2)


def test_the_bridge_learns_and_forgets_addresses() -> None:
    """As the kernel itself tells."""
    with up("linux-bridge", {"ageing_s": "1"}) as made, stations_of(made) as both:
        namespace = made["engine"]["dut_netns"]

        def learned() -> set[str]:
            shown = subprocess.run(
                ["bridge", "-n", namespace, "-json", "fdb", "show", "dynamic"],
                capture_output=True,
                text=True,
                check=True,
            )
            return {entry["mac"] for entry in json.loads(shown.stdout)}

        assert passes(both)
        assert both.left.mac in learned()
        assert wait_for(lambda: both.left.mac not in learned())


def trial(made: dict[str, Any], folder: Path, *more: str) -> dict[str, Any]:
    """The result of a trial of both directions, with a capture of the first frames."""
    file = folder / "setup.yaml"
    file.write_text(yaml.safe_dump(made))
    argv = ["trial", "--config", str(file), "--rate", "1k", "--duration", "0.5", "--drain", "0.3", "--json"]
    argv += ["--capture", "first:4", "--capture-to", str(folder / "first.pcapng"), *more]
    done = subprocess.run([sys.executable, "-m", "dutperf", *argv], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    result: dict[str, Any] = printed(done)
    return result


@pytest.mark.parametrize(("name", "options"), IN_MEMORY)
@pytest.mark.parametrize("size", [64, pytest.param(9000, marks=pytest.mark.long)])
def test_trials_through_shared_memory(name: str, options: dict[str, str], size: int, tmp_path: Path) -> None:
    with up(name, options | {"max_frame_size": "9216"}) as made:
        result = trial(made, tmp_path, "--frame-size", str(size))
    for direction in LEFT_AND_RIGHT:
        counts = result[direction]
        assert counts["sent"] == counts["received"] + counts["lost"]
        assert counts["received"] > 400
    assert {len(frame) for frame in rdpcap(str(tmp_path / "first.pcapng"))} == {size - 4}


@pytest.mark.parametrize("forward", [*(pytest.param(one, marks=pytest.mark.long) for one in ("io", "mac")), "macswap"])
def test_the_mac_addresses_that_testpmd_leaves(forward: str, tmp_path: Path) -> None:
    with up("testpmd", {"forward": forward}) as made:
        trial(made, tmp_path)
    left, right = testpmd.TESTER_MACS
    seen = {(frame.src, frame.dst) for frame in rdpcap(str(tmp_path / "first.pcapng"))}
    if forward == "mac":
        assert {destination for _, destination in seen} == {left, right}
        assert not {source for source, _ in seen} & {left, right}
    else:
        assert seen == {(left, right), (right, left)}


def test_what_open_vswitch_counts_as_lost_is_what_is_missing() -> None:
    with up("ovs", {}) as made, stations_of(made) as both:
        assert made["dut"]["version"][0].isdigit()
        assert wait_for(lambda: passes(both))
        count = Device(configuration.parse(made, "ovs").dut).losses
        assert [count()[direction] for direction in LEFT_AND_RIGHT] == [{"not_forwarded": 0}] * 2
        socket = next(word for word in made["dut"]["commands"]["reset"][-1].split() if word.startswith("unix:"))
        control = Path(socket.removeprefix("unix:")).with_name("vswitchd.ctl")
        subprocess.run(["ovs-ofctl", "del-flows", socket.rstrip(";")], check=True)
        # What its datapath has learned goes later, on another thread.
        subprocess.run(["ovs-appctl", "-t", control, "revalidator/wait"], check=True)
        assert both.exchange("left", [packet(4)] * 7, expected=1, wait_s=0.5) == []
        assert [count()[direction]["not_forwarded"] for direction in LEFT_AND_RIGHT] == [7, 0]


def test_what_testpmd_did_not_forward() -> None:
    counters = [{"ipackets": 100, "opackets": 50}, {"ipackets": 50, "opackets": 93}]
    assert telemetry.not_forwarded(counters) == {"forward": 7, "reverse": 0}
