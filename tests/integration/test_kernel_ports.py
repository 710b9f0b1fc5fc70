# SPDX-License-Identifier: Apache-2.0
"""What the tester's own kernel would do to frames before they are counted, and to the DUT: merge them,
join them, answer them, forward them back. Namespaces by hand (by_hand.sh), which nothing prepared.
Root only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dutperf.engine.client import EngineCommand
from dutperf.engine.factory import engine_on
from dutperf.model import Direction, DirectionCounts, TrialResult, Verdict
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.tester import Progress, ProgressCallback, TesterError
from plans import make_trial
from undisturbed import until, valid

from .test_by_hand import DUT_CORE, SIDES, made

pytestmark = pytest.mark.root
PORTS = ("eth1", "eth2")


def run_in(namespace: str, *command: str) -> str:
    return subprocess.run(
        ["ip", "netns", "exec", namespace, *command], check=True, capture_output=True, text=True
    ).stdout


def program(namespace: str, text: str) -> subprocess.Popen[str]:
    """A Python program in a namespace; it says a line when it is ready."""
    process = subprocess.Popen(
        ["ip", "netns", "exec", namespace, sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@contextmanager
def engine(name: str, kind: str) -> Iterator[Any]:
    """One forward trial of so many frames, on ports of a kind."""
    sides = {side: values | {"port": f"{kind}:{values['port']}"} for side, values in SIDES["router"].items()}
    setup = configuration.parse({"engine": {"netns": name}, **sides}, "by hand")
    with engine_on(setup, 1518) as tester:
        tester.environment()  # opens the ports

        def run(
            size: int = 64, meanwhile: ProgressCallback | None = None, rate_fps: int = 400, **conditions: Any
        ) -> TrialResult:
            chosen = SingleTrial(**{"duration_s": 0.5, "drain_s": 0.2, "directions": "forward"} | conditions)
            trial = make_trial(setup, chosen, size, rate_fps, 1)
            return tester.run(trial.model_copy(update={"progress_ms": 200}), meanwhile)

        yield run


def forward(result: TrialResult) -> DirectionCounts:
    return result.directions()[Direction.FORWARD]


def features(name: str) -> list[str]:
    wanted = ("generic-receive-offload", "rx-gro-list", "rx-udp-gro-forwarding")
    return [
        line for port in PORTS for line in run_in(name, "ethtool", "-k", port).splitlines() if line.startswith(wanted)
    ]


@pytest.mark.parametrize("kind", ["af_packet", "af_xdp"])
def test_fragments_arrive_as_fragments(kind: str) -> None:
    """DPDK's af_packet driver has the kernel join them: behind an MTU of 1,400 all frames of 1,518 bytes
    seemed to arrive whole."""
    with made("router") as name:
        subprocess.run(["ip", "-n", f"{name}-dut", "link", "set", "east", "mtu", "1400"], check=True)
        with engine(name, kind) as run:
            result = until(
                lambda: run(1518, frame="ipv4(df=0)/udp"),
                lambda result: [cause.code for cause in result.causes] == ["fragments"],
            )
    counts = forward(result)
    assert counts.received == 0
    assert sum(counts.other_received.values()) >= 2 * counts.sent


def test_received_frames_are_whole_and_only_the_testers() -> None:
    """The tester's kernel merges frames, and has an address, routes and forwarding: it forwarded received
    frames back, and answered them."""
    with made("router") as name:
        for port, network in zip(PORTS, (18, 19), strict=True):
            run_in(name, "ethtool", "-K", port, "gro", "on", "rx-udp-gro-forwarding", "on")
            run_in(name, "ip", "address", "add", f"198.{network}.0.2/24", "dev", port)
        run_in(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        before = features(name)
        with engine(name, "af_packet") as run:
            assert [line for line in features(name) if ": off" not in line] == []
            counts = forward(valid(run))
            assert counts.lost == 0
            back = run_in(f"{name}-dut", "cat", "/sys/class/net/east/statistics/rx_packets")
            assert int(back) < counts.sent / 2
        assert features(name) == before
        assert "dutperf" not in run_in(name, "nft", "list", "ruleset")


TAGGED_LLDP = """
    import socket, time
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    port.bind(("east", 0))
    print("ready", flush=True)
    while True:
        port.send(bytes.fromhex("0180c200000e 020000000001 81000064 88cc 0207".replace(" ", "")) + bytes(60))
        time.sleep(0.02)
"""


def test_frames_of_unknown_protocols_are_not_dropped_by_the_tester() -> None:
    """The kernel counts them as dropped (rx_dropped) behind a VLAN tag, though the socket gets them."""
    with made("router") as name, engine(name, "af_packet") as run:
        talking = program(f"{name}-dut", TAGGED_LLDP)
        try:
            counts = forward(valid(run))
        finally:
            talking.kill()
            talking.wait()
        assert counts.other_received["not_ip"] > 5
        assert counts.tester_drops == {}


def test_what_the_testers_kernel_sends_is_not_the_duts() -> None:
    with made("router") as name, engine(name, "af_packet") as run:
        talking = program(name, TAGGED_LLDP.replace("east", "eth2"))
        try:
            counts = forward(valid(run))
        finally:
            talking.kill()
            talking.wait()
        assert "not_ip" not in counts.other_received


CHANGES = [
    (
        "af_packet",
        "link set eth2 down; link set eth2 name away; link set away up",
        "right: eth2 was renamed to away",
    ),
    (
        "af_xdp",
        "link set eth2 netns {name}-dut; -n {name}-dut link set eth2 netns {name}; link set eth2 up",
        "right: eth2 is gone from the tester's network namespace: it was deleted, or moved to another one",
    ),
]


@pytest.mark.parametrize(("kind", "commands", "text"), CHANGES, ids=["renamed", "moved, and back"])
def test_a_port_that_is_taken_away_is_not_the_duts_loss(kind: str, commands: str, text: str) -> None:
    """Nobody read the counters of an interface that was not found, and all that it lost was the DUT's."""
    with made("router") as name, engine(name, kind) as run:

        def take_away(_progress: Progress) -> None:
            while waiting:
                words = waiting.pop(0).split()
                subprocess.run(["ip", *([] if "-n" in words else ["-n", name]), *words], check=True)

        waiting = commands.format(name=name).split("; ")
        result = run(meanwhile=take_away)
        assert text in [cause.text for cause in result.causes if cause.code == "port_changed"]
        for path in result.directions().values():
            assert path.tester_drops.get("port_down", 0) >= path.lost
        with pytest.raises(TesterError, match="start again when it is as before") as refused:
            run()
        assert (refused.value.code, refused.value.field) == ("port_away", "right.port")


@pytest.mark.parametrize("port", ["eth1", "eth2"])
def test_a_port_that_was_down_for_a_while_says_nothing_about_the_dut(port: str) -> None:
    """The kernel keeps what is sent meanwhile, and sends it when the port is up: nothing may be lost, or late here."""
    with made("router") as name, engine(name, "af_packet") as run:

        def down_and_up(_progress: Progress) -> None:
            for state in states:
                subprocess.run(["ip", "-n", name, "link", "set", port, state], check=True)
            states.clear()

        states = ["down", "up"]
        result = run(meanwhile=down_and_up)
        assert result.verdict is Verdict.INVALID
        side = {"eth1": "left", "eth2": "right"}[port]
        assert f"the link of the {side} port was down during the trial" in [cause.text for cause in result.causes]


def test_a_tun_device_is_refused() -> None:
    """It has no Ethernet frames: its packets were taken for such."""
    with made("router") as name:
        run_in(name, "ip", "tuntap", "add", "dev", "tun0", "mode", "tun")
        run_in(name, "ip", "link", "set", "tun0", "up")
        sides = {**SIDES["router"], "left": {**SIDES["router"]["left"], "port": "tun0"}}
        setup = configuration.parse({"engine": {"netns": name}, **sides}, "by hand")
        with pytest.raises(TesterError, match="tun0 has no Ethernet frames") as caught, engine_on(setup, 64) as tester:
            tester.environment()
        assert caught.value.field == "left.port"


RELAY = """
    import socket
    def relay(address, family, to):
        come = socket.socket(family, socket.SOCK_DGRAM)
        come.bind((address, 7))
        print("ready", flush=True)
        while True:
            come.sendto(come.recv(2000), to)
    relay("198.18.0.1", socket.AF_INET, ("198.19.0.2", 7))
"""


@pytest.mark.parametrize("kind", ["af_packet", "af_xdp"])
def test_a_kernel_leaves_checksums_of_a_program_unfinished(kind: str) -> None:
    """A UDP relay: its kernel leaves the sums to a card, and a veth has none."""
    with made("router") as name, engine(name, kind) as run:
        relaying = program(f"{name}-dut", RELAY)
        try:
            frame = "ip(destination=198.18.0.1)/udp(destination=7)"
            counts = forward(valid(lambda: run(128, frame=frame)))
        finally:
            relaying.kill()
            relaying.wait()
    assert (counts.lost, counts.corrupted) == (0, 0)
    assert counts.unfinished_checksums == counts.sent


VETH_QUEUE = 256
"""Frames that the end of a veth that receives by NAPI has room for."""
KEEPS_FRAMES = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 16)


def receive_slowly(name: str) -> None:
    """The DUT takes frames from the left by NAPI, in a thread of its core, and compares each with many rules."""
    dut = f"{name}-dut"
    rules = "\n".join(f"udp dport {port} counter" for port in range(20_000, 21_000))
    chain = f"chain slow {{\ntype filter hook prerouting priority -300\n{rules}\n}}"
    run_in(dut, "nft", f"table ip slow {{\n{chain}\n}}")
    run_in(name, "ethtool", "--features", "eth1", "tso", "off")  # or GRO gets no frames from there
    run_in(dut, "ethtool", "--features", "west", "gro", "on")
    run_in(dut, "sh", "-c", "echo 1 > /sys/class/net/west/threaded")
    for thread in subprocess.run(["pgrep", "^napi/west-"], capture_output=True, text=True, check=True).stdout.split():
        subprocess.run(["taskset", "--pid", "--cpu-list", str(DUT_CORE), thread], check=True, capture_output=True)


@pytest.mark.skipif(not KEEPS_FRAMES, reason="before Linux 6.16 a veth drops frames that its other end has no room for")
def test_frames_that_wait_in_a_queue_of_the_tester_are_not_what_the_dut_holds() -> None:
    """The DUT has room for a part of the burst. With a queue discipline at the tester it seemed to lose nothing."""
    burst: dict[str, Any] = {"rate_fps": 100_000, "duration_s": 0.01, "drain_s": 4}
    with made("router") as name:
        receive_slowly(name)
        with engine(name, "af_xdp") as run:
            lost = forward(run(**burst))
        run_in(name, "tc", "qdisc", "replace", "dev", "eth1", "root", "pfifo", "limit", "1000")
        with engine(name, "af_packet") as run:
            result = run(**burst)
            after = run(duration_s=0.1)
    assert VETH_QUEUE < lost.sent - lost.dut_input_drops < lost.sent
    assert (lost.queue_discipline, forward(after).queue_discipline) == (None, None)
    assert forward(result).lost == 0
    assert "queue_discipline" in {cause.code for cause in result.causes}
    held = forward(result).queue_discipline
    assert held is not None
    assert held.times > 0
    assert held.waiting == 0


@pytest.mark.parametrize("missing", ["cap_sys_admin", "cap_net_admin"])
def test_capabilities_that_af_xdp_needs_are_named(missing: str) -> None:
    with made("router") as name:
        opened = {"max_frame_size": 1518, "memory": "no_huge_pages"}
        opened |= {side: {"port": f"af_xdp:{values['port']}"} for side, values in SIDES["router"].items()}
        without = ["ip", "netns", "exec", name, "setpriv", f"--bounding-set=-{missing.removeprefix('cap_')}"]
        done = subprocess.run(
            [*without, EngineCommand.find().program],
            input=json.dumps({"id": 1, "method": "open", "params": opened}) + "\n",
            capture_output=True,
            text=True,
            check=False,
        )
    answer = json.loads(done.stdout.splitlines()[0])
    assert (answer["code"], answer["field"]) == ("no_privilege", "left.port")
    assert missing.upper() in answer["message"]
