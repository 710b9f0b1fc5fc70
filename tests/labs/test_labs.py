# SPDX-License-Identifier: Apache-2.0
"""Labs for real: what they forward, byte by byte, and that nothing of them stays behind. Root only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, UDP, VXLAN, Ether, IPv6, IPv6ExtHdrSegmentRouting, Packet, Raw

from dutperf import lab
from dutperf.cli.commands import lab as cli_lab
from dutperf.dut import printed
from dutperf.dut.commands import RunningCommand
from dutperf.lab import LabError, kernel_router, site, tayga_siit
from dutperf.model import LEFT_AND_RIGHT
from dutperf.setup.configuration import load, parse

from .stations import ETH_P_ALL, Stations, in_namespace, stations_of

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

DATA = bytes(range(18))
ENCAPSULATIONS = ["srv6", "vxlan"]
IN_A_ROW = ["tayga-464xlat", *ENCAPSULATIONS]
REFERENCE_ENDS = {
    "refdut-464xlat": 4,
    "refdut-map-t": 4,
    "refdut-map-e": 4,
    "refdut-lw4o6": 4,
    "refdut-6rd": 6,
}
"""By the version of the foreground; DS-Lite has a NAT."""
NATS = ["nft-nat44", "tayga-nat64", "refdut-nat44", "refdut-nat64"]
SWITCHES = ["linux-bridge", "ovs", "testpmd"]
LABS = [
    "tayga-siit",
    "tayga-464xlat",
    "srv6",
    "vxlan",
    "kernel-ipv4",
    "kernel-ipv6",
    "nptv6",
    "refdut-siit",
    "refdut-dns64",
    "refdut-ds-lite",
    *REFERENCE_ENDS,
    "loopback",
    *NATS,
    *SWITCHES,
]


def udp(source: str, destination: str, payload: bytes = DATA) -> Packet:
    """A UDP packet of the addresses' IP version, DF set in IPv4."""
    network = (
        IPv6(src=source, dst=destination, hlim=64) if ":" in source else IP(src=source, dst=destination, flags="DF")
    )
    return network / UDP(sport=49184, dport=7) / Raw(payload)


def assert_carries(frame: Packet, source: str, destination: str, payload: bytes = DATA) -> None:
    """``frame`` has these addresses, the ports and payload of :func:`udp`, and right lengths and
    checksums."""
    packet = frame[IPv6 if ":" in source else IP]
    assert (packet.src, packet.dst, frame[UDP].sport, frame[UDP].dport, bytes(frame[UDP].payload)[: len(payload)]) == (
        source,
        destination,
        49184,
        7,
        payload,
    )
    again = packet.copy()
    for layer, computed in ((again, ("chksum", "len", "plen")), (again[UDP], ("chksum", "len"))):
        for name in computed:
            if name in layer.fields:
                layer.delfieldval(name)
    assert bytes(again) == bytes(packet)


def left_over(records: Path) -> list[str]:
    """What is there of labs that have their records in this directory: files, and namespaces named
    after them."""
    return [path.name for path in records.glob("*") if path.name != ".lock"]


def namespaces() -> set[str]:
    """Names of all network namespaces of labs on this machine."""
    return {path.name for path in Path("/run/netns").glob("dutperf-*")}


def namespaces_of(configuration: dict[str, Any]) -> set[str]:
    """Those of one lab."""
    stem = configuration["engine"]["netns"].removesuffix("tester")
    return {name for name in namespaces() if name.startswith(stem)}


def dut_pids(configuration: dict[str, Any]) -> set[int]:
    """The processes of a lab's DUTs."""
    pids = set()
    for name in namespaces_of(configuration) - {configuration["engine"]["netns"]}:
        listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
        pids |= {int(pid) for pid in listed.stdout.split()}
    return pids


def translates(configuration: dict[str, Any]) -> bool:
    """Whether a frame gets through TAYGA."""
    with stations_of(configuration) as both:
        return len(both.exchange("left", [udp("2001:2::2", "2001:2:0:1000::2")], expected=1)) == 1


def wait_for(condition: Callable[[], bool], limit_s: float = 10.0) -> bool:
    """Whether ``condition`` came true in time."""
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


TRANSLATED = [
    ("foreground forward", "left", ("2001:2::2", "2001:2:0:1000::2"), ("198.18.0.2", "198.19.0.2")),
    ("foreground forward, network 255", "left", ("2001:2::2", "2001:2:0:10ff::2"), ("198.18.0.2", "198.19.255.2")),
    ("foreground forward, network 10", "left", ("2001:2::2", "2001:2:0:100a::2"), ("198.18.0.2", "198.19.10.2")),
    ("foreground reverse", "right", ("198.19.0.2", "198.18.0.2"), ("2001:2:0:1000::2", "2001:2::2")),
    (
        "foreground reverse, network 255",
        "right",
        ("198.19.0.2", "198.18.255.2"),
        ("2001:2:0:1000::2", "2001:2:0:ff::2"),
    ),
    ("background forward", "left", ("2001:2::2", "2001:2:0:8000::2"), ("2001:2::2", "2001:2:0:8000::2")),
    ("background forward, network 255", "left", ("2001:2::2", "2001:2:0:80ff::2"), ("2001:2::2", "2001:2:0:80ff::2")),
    ("background reverse", "right", ("2001:2:0:8000::2", "2001:2::2"), ("2001:2:0:8000::2", "2001:2::2")),
    (
        "background reverse, network 255",
        "right",
        ("2001:2:0:8000::2", "2001:2:0:ff::2"),
        ("2001:2:0:8000::2", "2001:2:0:ff::2"),
    ),
]


def test_tayga_translates_the_foreground_and_the_background_passes_it_by() -> None:
    with lab.bring_up("tayga-siit", {}) as configuration, stations_of(configuration) as both:
        for description, side, sent, expected in TRANSLATED:
            received = both.exchange(side, [udp(*sent)], expected=1)
            assert len(received) == 1, description
            assert_carries(received[0], *expected)


WHOLE = {
    "tayga-siit": [
        ("left", ("2001:2::2", "2001:2:0:1000::2"), ("198.18.0.2", "198.19.0.2")),
        ("right", ("198.19.0.2", "198.18.0.2"), ("2001:2:0:1000::2", "2001:2::2")),
    ],
    "tayga-464xlat": [
        ("left", ("198.18.0.2", "198.19.0.2"), ("198.18.0.2", "198.19.0.2")),
        ("right", ("198.19.0.2", "198.18.0.2"), ("198.19.0.2", "198.18.0.2")),
    ],
}


WHOLE |= dict.fromkeys(ENCAPSULATIONS, WHOLE["tayga-464xlat"])


@pytest.mark.parametrize("max_frame_size", [1522, 9216])
@pytest.mark.parametrize(("name", "ip_header"), [("tayga-siit", 40), *((name, 20) for name in IN_A_ROW)])
def test_a_dut_that_makes_frames_longer_passes_the_longest_frames_whole(
    name: str, ip_header: int, max_frame_size: int
) -> None:
    payload = bytes(max_frame_size - 18 - ip_header - 8)
    with (
        lab.bring_up(name, {"max_frame_size": str(max_frame_size)}) as configuration,
        stations_of(configuration) as both,
    ):
        for side, sent, expected in WHOLE[name]:
            received = both.exchange(side, [udp(*sent, payload)], expected=1)
            assert len(received) == 1, side
            assert_carries(received[0], *expected, payload)


ROUTED = [
    ("198.18.0.2", "198.19.0.2", "left"),
    ("198.18.0.2", "198.19.255.2", "left"),
    ("198.19.0.2", "198.18.0.2", "right"),
    ("198.19.0.2", "198.18.255.2", "right"),
    ("2001:2::2", "2001:2:0:8000::2", "left"),
    ("2001:2::2", "2001:2:0:80ff::2", "left"),
    ("2001:2:0:8000::2", "2001:2::2", "right"),
    ("2001:2:0:8000::2", "2001:2:0:ff::2", "right"),
]


def become_known(both: Stations) -> None:
    """Reference DUTs lose the packets for which they ask for a MAC address."""
    for side in ("left", "right"):
        for source, destination, sender in ROUTED:
            if sender == side:
                both.exchange(side, [udp(source, destination)], expected=1, wait_s=0.3)


@pytest.mark.parametrize(
    ("name", "version"),
    [("kernel-ipv4", 4), ("kernel-ipv6", 6), *((name, 4) for name in IN_A_ROW), *REFERENCE_ENDS.items()],
)
def test_routers_and_duts_in_a_row_pass_both_versions_and_all_networks(name: str, version: int) -> None:
    with lab.bring_up(name, {}) as configuration, stations_of(configuration) as both:
        assert [configuration[side]["version"] for side in ("left", "right")] == [version, version]
        if name in REFERENCE_ENDS:
            become_known(both)
        for source, destination, side in ROUTED:
            received = both.exchange(side, [udp(source, destination)], expected=1)
            assert len(received) == 1, (source, destination)
            assert_carries(received[0], source, destination)


BETWEEN = [
    ("left", ("198.18.10.2", "198.19.255.2"), ("2001:2:0:3000::a02", "2001:2:0:6464::c613:ff02")),
    ("right", ("198.19.0.2", "198.18.0.2"), ("2001:2:0:6464::c613:2", "2001:2:0:3000::2")),
    ("left", ("2001:2::2", "2001:2:0:8000::2"), ("2001:2::2", "2001:2:0:8000::2")),
]


@contextmanager
def between_duts(configuration: dict[str, Any]) -> Iterator[Callable[[], Packet]]:
    """Receives the next test frame on the link between two DUTs."""
    near, _ = configuration["engine"]["dut_netns"]
    with in_namespace(near, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) as between:
        between.bind(("dr", ETH_P_ALL))
        between.settimeout(5)

        def receive() -> Packet:
            while DATA not in (frame := between.recv(65535)):
                pass
            return Ether(frame)

        yield receive


def test_between_two_translators_everything_is_ipv6() -> None:
    with (
        lab.bring_up("tayga-464xlat", {}) as configuration,
        stations_of(configuration) as both,
        between_duts(configuration) as receive,
    ):
        for side, sent, expected in BETWEEN:
            assert len(both.exchange(side, [udp(*sent)], expected=1)) == 1
            assert_carries(receive(), *expected)


OUTER = {
    "left": ("2001:2:0:4000::1", "2001:2:0:4000::2", "2001:2:0:5002::"),
    "right": ("2001:2:0:4000::2", "2001:2:0:4000::1", "2001:2:0:5001::"),
}
TUNNELLED = [one for one in ROUTED if "ff" in one[1] or "255" in one[1]]


@pytest.mark.parametrize("name", ENCAPSULATIONS)
def test_between_two_ends_of_a_tunnel_each_packet_is_in_another(name: str) -> None:
    with (
        lab.bring_up(name, {}) as configuration,
        stations_of(configuration) as both,
        between_duts(configuration) as receive,
    ):
        for source, destination, side in TUNNELLED:
            assert len(both.exchange(side, [udp(source, destination)], expected=1)) == 1
            frame = receive()
            near, far, segments = OUTER[side]
            outer = frame[IPv6]
            inner = frame[VXLAN].payload if name == "vxlan" else outer[IPv6ExtHdrSegmentRouting].payload
            version = 6 if ":" in source else 4
            assert (outer.src, outer.dst) == (near, far if name == "vxlan" else f"{segments}{version}")
            assert_carries(inner, source, destination)
            assert len(frame) - len(Ether() / udp(source, destination)) == configuration["between"]["overhead"]
        count = subprocess.run(
            configuration["between"]["passed"], shell=True, capture_output=True, text=True, check=True
        ).stdout
    assert printed.passed(count) == dict.fromkeys(LEFT_AND_RIGHT, len(TUNNELLED) // 2), "to the frame"


PREFIX_TRANSLATED = [
    ("left", ("2001:2::2", "2001:2:0:8000::2"), ("2001:2:0:9000:6fff::2", "2001:2:0:8000::2")),
    ("left", ("2001:2:0:ff:0:1:0:2", "2001:2:0:80ff::2"), ("2001:2:0:90ff:6fff:1:0:2", "2001:2:0:80ff::2")),
    ("right", ("2001:2:0:8000::2", "2001:2:0:9000:6fff::2"), ("2001:2:0:8000::2", "2001:2::2")),
    ("right", ("2001:2:0:80ff::2", "2001:2:0:90ff:6fff::2"), ("2001:2:0:80ff::2", "2001:2:0:ff::2")),
]


def test_a_prefix_is_translated_and_no_checksum_changes() -> None:
    """RFC 6296 section 3.5; the checksum is the sender's, and right for the new addresses."""
    with lab.bring_up("nptv6", {}) as configuration, stations_of(configuration) as both:
        for side, sent, expected in PREFIX_TRANSLATED:
            packet = udp(*sent)
            [received] = both.exchange(side, [packet], expected=1)
            assert_carries(received, *expected)
            assert received[UDP].chksum == IPv6(bytes(packet))[UDP].chksum
        outside = ("2001:2:0:9000::", "2001:2:0:9000:1::2")  # no NPTv6 gateway makes these of the inside's prefix
        for foreign in outside:
            assert both.exchange("right", [udp("2001:2:0:8000::2", foreign)], expected=1, wait_s=0.3) == []


@pytest.mark.parametrize("version", ["4", "6"])
def test_loopback_hands_frames_over_unchanged(version: str) -> None:
    with lab.bring_up("loopback", {"version": version}) as configuration, stations_of(configuration) as both:
        assert configuration["left"]["version"] == configuration["right"]["version"] == int(version)
        packet = udp("198.18.0.2", "198.19.0.2")
        received = both.exchange("right", [packet], expected=1)
    assert bytes(received[0]) == bytes(Ether(src=both.right.mac, dst=both.left.mac) / packet)


def test_loss_is_the_ratio_that_was_asked_for() -> None:
    sent = 400
    with lab.bring_up("kernel-ipv4", {"loss": "0.5"}) as configuration, stations_of(configuration) as both:
        received = both.exchange("left", [udp("198.18.0.2", "198.19.0.2")] * sent, expected=sent, wait_s=1.0)
    assert abs(len(received) - sent / 2) < 70, "seven standard deviations"


def test_the_limit_lets_its_burst_pass_and_little_more() -> None:
    with (
        lab.bring_up("kernel-ipv6", {"limit_fps": "1", "burst": "20"}) as configuration,
        stations_of(configuration) as both,
    ):
        began = time.monotonic()
        received = both.exchange("left", [udp("2001:2::2", "2001:2:0:8000::2")] * 100, expected=100, wait_s=1.0)
        took_s = time.monotonic() - began
    assert 20 <= len(received) <= 21 + took_s


@pytest.mark.parametrize("name", LABS)
def test_a_lab_gives_a_configuration_leaves_nothing_and_the_host_alone(name: str, lab_records: Path) -> None:
    def host() -> list[str]:
        shown = [
            subprocess.run(["ip", what], capture_output=True, text=True, check=True).stdout
            for what in ("addr", "route")
        ]
        return [
            *shown,
            *(
                Path("/proc/sys/net", key).read_text()
                for key in ("ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/rp_filter")
            ),
        ]

    before = [line for text in host() for line in text.splitlines() if "valid_lft" not in line]
    with lab.bring_up(name, {}) as configuration:
        assert namespaces_of(configuration)
        assert left_over(lab_records)
        during = [line for text in host() for line in text.splitlines() if "valid_lft" not in line]
        pids = dut_pids(configuration)
        assert bool(pids) == name.startswith(("tayga-", "refdut-", "ovs", "testpmd"))
        assert parse(configuration, origin=f"lab {name}").engine.netns == configuration["engine"]["netns"]
    for dut in configuration["dut"] if isinstance(configuration["dut"], list) else [configuration["dut"]]:
        assert dut["name"]
        assert dut["version"]
        assert dut["kernel"] == os.uname().release
    assert during == before
    assert not namespaces_of(configuration)
    assert not left_over(lab_records)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("tayga-siit", ("2001:2::2", "2001:2:0:1000::2")),
        ("kernel-ipv6", ("2001:2::2", "2001:2:0:8000::2")),
    ],
)
def test_a_reset_that_is_ended_early_starts_the_dut_again(name: str, addresses: tuple[str, str]) -> None:
    """A standing lab would stay dead."""
    with lab.bring_up(name, {"reset_s": "100"}) as configuration, stations_of(configuration) as both:

        def passes(wait_s: float) -> bool:
            return len(both.exchange("left", [udp(*addresses)], expected=1, wait_s=wait_s)) == 1

        assert passes(5)
        commands = configuration["dut"]["commands"]
        running = RunningCommand(commands["reset"], "reset", commands["time_limit_s"])
        assert wait_for(lambda: not passes(0.2))
        running.kill()
        assert wait_for(lambda: passes(0.2))


def test_two_labs_at_once_do_not_meet() -> None:
    with lab.bring_up("tayga-siit", {}) as one, lab.bring_up("tayga-siit", {}) as other:
        assert namespaces_of(one).isdisjoint(namespaces_of(other))
        for configuration in (one, other):
            assert translates(configuration)


def test_a_second_lab_of_a_name_says_that_there_is_one(lab_records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        cli_lab.up("kernel-ipv4")
        first = capsys.readouterr()
        cli_lab.up("kernel-ipv4")
        again = capsys.readouterr()
        assert "already" not in first.err
        assert f"another lab kernel-ipv4 is up already: measure it with --config {first.out.strip()}\n" in again.err
        assert f"measure it with --config {again.out.strip()}; take all of them down with: " in again.err
    finally:
        lab.down("kernel-ipv4")
    assert not left_over(lab_records)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupt_half_way_through_the_building_leaves_nothing(
    error: type[BaseException], lab_records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def interrupted(half_built: site.Site, _mtu: int) -> str:
        made.extend([half_built.tester.name, half_built.dut.name])
        raise error

    monkeypatch.setattr(tayga_siit, "start_tayga", interrupted)
    with pytest.raises(error), lab.bring_up("tayga-siit", {}):
        pass
    with pytest.raises(error):
        lab.up("tayga-siit", {})
    assert len(made) == 4
    assert namespaces().isdisjoint(made)
    assert not left_over(lab_records)


def test_a_tayga_that_does_not_start_is_one_sentence_and_leaves_nothing(
    lab_records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = tayga_siit.configuration
    real_start = site.Site.start_daemon

    def spoil(here: site.Site, argv: list[str], log: Path) -> subprocess.Popen[bytes]:
        (here.directory / "tayga.conf").write_text("nonsense\n" + sound(here.directory))
        return real_start(here, argv, log)

    monkeypatch.setattr(site.Site, "start_daemon", spoil)
    with (
        pytest.raises(LabError, match=r'ended with status.*Unknown directive "nonsense"'),
        lab.bring_up("tayga-siit", {}),
    ):
        pass
    assert not left_over(lab_records)


def test_a_refusal_of_the_kernel_is_one_sentence_and_leaves_nothing(
    lab_records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_router, "ruleset", lambda _rules: "table inet truth { nonsense }")
    with pytest.raises(LabError, match="nft") as error, lab.bring_up("kernel-ipv4", {"limit_fps": "5"}):
        pass
    assert "\n" not in str(error.value)
    assert not left_over(lab_records)


OWNER = """
import sys, time
from pathlib import Path
from dutperf.lab import bring_up, site
site.STATE_DIR = Path(sys.argv[1])
with bring_up(sys.argv[2], {}) as configuration:
    print(configuration["engine"]["netns"], flush=True)
    time.sleep(60)
"""


def start_owner(records: Path, name: str = "tayga-siit") -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Another process with a lab, and as much of the lab's configuration as the helpers above need."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(records), name], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert owner.stdout is not None
    return owner, {"engine": {"netns": owner.stdout.readline().strip()}}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_the_lab_down(number: signal.Signals, lab_records: Path) -> None:
    owner, configuration = start_owner(lab_records)
    assert len(namespaces_of(configuration)) == 2
    owner.send_signal(number)
    assert owner.wait(timeout=20) != 0
    assert not namespaces_of(configuration)
    assert not left_over(lab_records)


@pytest.mark.parametrize(
    ("name", "processes"), [("tayga-siit", 1), ("tayga-464xlat", 2), ("linux-bridge", 0), ("ovs", 2), ("testpmd", 1)]
)
def test_what_a_killed_owner_leaves_the_next_lab_command_removes(name: str, processes: int, lab_records: Path) -> None:
    owner, configuration = start_owner(lab_records, name)
    pids = dut_pids(configuration)
    assert len(pids) == processes
    owner.kill()
    owner.wait()
    assert wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)), "the DUT dies with its owner"
    assert len(namespaces_of(configuration)) == (3 if name == "tayga-464xlat" else 2)
    with lab.bring_up("loopback", {}):
        assert not namespaces_of(configuration)
        assert len(site.records()) == 1
    assert not left_over(lab_records)


def test_stopped_processes_do_not_hold_the_take_down_up() -> None:
    with lab.bring_up("tayga-siit", {}) as configuration:
        guest = subprocess.Popen(["ip", "netns", "exec", configuration["engine"]["netns"], "sleep", "600"])
        (tayga,) = dut_pids(configuration)
        assert wait_for(lambda: Path(f"/proc/{guest.pid}/comm").read_text() == "sleep\n")
        for pid in (tayga, guest.pid):
            os.kill(pid, signal.SIGSTOP)
    assert not namespaces_of(configuration)
    assert not Path(f"/proc/{tayga}").exists()
    assert guest.wait(timeout=10) == -signal.SIGKILL


def test_a_lab_that_was_brought_up_stays_until_it_is_taken_down(lab_records: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from dutperf.lab import site, up; site.STATE_DIR = Path(sys.argv[1]);"
        " print(up('tayga-siit', {}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(lab_records)], capture_output=True, text=True, check=True, env=environment
    )
    setup = load(Path(done.stdout.strip()))
    with lab.bring_up("tayga-siit", {}) as passing:
        own: dict[str, Any] = {**passing, "engine": {"netns": setup.engine.netns}}
        assert translates(own)
        assert lab.down("tayga-siit")
        assert not namespaces_of(own)
        assert len(namespaces_of(passing)) == 2
    assert not lab.down("tayga-siit")
    assert not left_over(lab_records)
