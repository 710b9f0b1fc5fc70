# SPDX-License-Identifier: Apache-2.0
"""``dutperf otg`` as its users have it: the command, and snappi over its own HTTP and TLS, through a cable, a bridge
and a router that a person made (by_hand.sh). Root only."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import grpc
import pytest
import snappi
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader

from dutperf.otg import certificate
from snappi_calls import metrics, sent, set_flows
from undisturbed import NOT_SHOWN

from .test_by_hand import DUT_CORE, by_hand, made

pytestmark = pytest.mark.root
ENDED_S = 10
PATIENCE_S = 20
EXAMPLES = Path(__file__).parents[2] / "examples/otg"


@contextmanager
def serving(netns: str | None, *options: str, ends_with: signal.Signals = signal.SIGINT) -> Iterator[str]:
    """The server on the ports eth1 and eth2 of a namespace, or on those of ``options``, until a signal; its address, of
    gRPC if this is asked for."""
    ports = [part for name in ("eth1", "eth2") for part in ("--ports", f"{name}=af_packet:{name}")]
    where = [] if netns is None else [*ports, "--netns", netns]
    command = [sys.executable, "-m", "dutperf", "otg", *where, "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(1 + ("--grpc-port" in options))]
        yield lines[-1].strip().removeprefix("gRPC: ")
    finally:
        server.send_signal(ends_with)
        _, said = server.communicate(timeout=ENDED_S)
        assert "Traceback" not in said


@pytest.fixture
def cable() -> Iterator[str]:
    """A namespace whose ports are the ends of a cable."""
    name = f"cable-{secrets.token_hex(3)}"
    try:
        for line in (
            f"netns add {name}",
            f"-n {name} link add eth1 mtu 1600 type veth peer name eth2 mtu 1600",
            f"-n {name} link set eth1 up",
            f"-n {name} link set eth2 up",
        ):
            subprocess.run(["ip", *line.split()], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def configuration_of(api: Any) -> Any:
    configuration = api.config()
    for name in ("eth1", "eth2"):
        configuration.ports.add(name=f"port {name}", location=name)
    return configuration


def added(configuration: Any, name: str, sender: int, packets: int, pps: int = 1000) -> Any:
    """A flow of TCP frames."""
    one = configuration.flows.add(name=name)
    ports = [port.name for port in configuration.ports]
    one.tx_rx.port.tx_name, one.tx_rx.port.rx_names = ports[sender], [ports[1 - sender]]
    ethernet, ip, tcp = one.packet.ethernet().ipv4().tcp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:01:01", "02:00:00:00:01:02"
    ip.src.value, ip.dst.value = "198.18.0.2", "198.19.0.2"
    tcp.src_port.values = [5000, 5010, 5020]
    one.size.fixed, one.rate.pps = 128, pps
    one.duration.fixed_packets.packets = packets
    one.metrics.enable = one.metrics.loss = True
    return one


def set_capture(api: Any, state: str) -> None:
    wanted = api.control_state()
    wanted.port.capture.state = state
    api.set_control_state(wanted)


@pytest.mark.parametrize(("transport", "options"), [("http", ()), ("grpc", ("--grpc-port", "0"))])
def test_flows_over_a_cable_are_counted_and_captured(cable: str, transport: str, options: tuple[str, ...]) -> None:
    """As the public conformance suite asks: values in order, lengths, the FCS, the counts to the frame."""
    with serving(cable, *options) as address:
        api = snappi.api(location=address, transport=transport)
        configuration = configuration_of(api)
        configuration.captures.add(name="all", port_names=[port.name for port in configuration.ports])
        added(configuration, "out", 0, 90)
        added(configuration, "back", 1, 60, pps=500)
        assert list(api.set_config(configuration).warnings) == []
        set_capture(api, "start")
        found = sent(api, PATIENCE_S)
        assert {name: (one.frames_tx, one.frames_rx, one.loss) for name, one in found.items()} == {
            "out": (90, 90, 0),
            "back": (60, 60, 0),
        }
        assert found["out"].bytes_rx == 90 * 128
        request = api.capture_request()
        request.port_name = "port eth1"
        with PcapReader(BytesIO(api.get_capture(request).read())) as reader:  # while the capture goes on
            assert len([one for one in reader if len(one) == 128]) == 60
        set_capture(api, "stop")
        request.port_name = "port eth2"
        with PcapReader(BytesIO(api.get_capture(request).read())) as reader:
            frames = [Ether(bytes(one)[:-4]) for one in reader if len(one) == 128]
        assert [one[TCP].sport for one in frames] == [5000, 5010, 5020] * 30
        assert {one[IP].len for one in frames} == {128 - 18}


def test_hundreds_of_flows_are_counted_each_to_the_frame() -> None:
    """Both ways through rings in memory. Each has a number of frames and a rate of its own. From 510 flows on a frame
    has a further bit of their number."""
    frames = {f"f{number}": 20 + number for number in range(600)}
    with serving(None, "--ports", "eth1=ring", "--ports", "eth2=ring", "--plain") as address:
        api = snappi.api(location=address)
        configuration = configuration_of(api)
        for number, (name, count) in enumerate(frames.items()):
            added(configuration, name, number % 2, count, pps=100 + number)
        assert list(api.set_config(configuration).warnings) == []
        found = sent(api, PATIENCE_S)
        assert {name: (one.frames_tx, one.frames_rx) for name, one in found.items()} == {
            name: (count, count) for name, count in frames.items()
        }


def test_a_flow_of_a_number_of_frames_sends_all_of_them_at_whatever_rate_its_port_can(cable: str) -> None:
    """100 ms at the rate that is asked for. No port of a kernel is that quick, and the trial says so."""
    with serving(cable, "--plain") as address:
        api = snappi.api(location=address)
        configuration = configuration_of(api)
        added(configuration, "fast", 0, 1_000_000, pps=10_000_000)
        added(configuration, "slow", 1, 50)
        assert list(api.set_config(configuration).warnings) == []
        found = sent(api, PATIENCE_S)
        assert {name: one.frames_tx for name, one in found.items()} == {"fast": 1_000_000, "slow": 50}
        with urllib.request.urlopen(f"{address}/dutperf/verdicts") as answer:
            assert [one["verdict"] for one in json.load(answer)["trials"]] == ["invalid"]


@pytest.mark.parametrize("options", [(), ("--plain",)])
def test_the_example_of_the_page_measures_a_bridge(options: tuple[str, ...]) -> None:
    with made("bridge", DUT_CORE) as name, serving(name, *options) as address:
        assert address.startswith("http://" if options else "https://")
        if options:
            return
        done = example("two_flows", address, "eth1", "eth2")
        assert re.search(r"^a to b: 10000 sent, \d+ received, loss ", done.stdout, re.MULTILINE), done.stderr
        assert done.returncode in (0, 3)


def test_a_client_without_tls_is_told_so() -> None:
    with serving(None, "--ports", "eth1=ring", "--ports", "eth2=ring") as address:
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(address.replace("https", "http") + "/config", timeout=PATIENCE_S)
        assert (error.value.code, "speaks TLS" in error.value.read().decode()) == (400, True)
        assert dict(snappi.api(location=address).get_config().serialize(encoding="dict")) == {}


def example(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)


def test_the_example_of_flows_shows_which_of_them_a_router_loses() -> None:
    """It forwards 3,000 frames/s of the 3,500; fewer where bursts of late frames make the trial invalid."""
    with made("router", DUT_CORE) as name, serving(name) as address:
        by_hand("limit", name, 3000, 10, "west")
        done = example("loss_by_flow", address, "eth1", "eth2")
    line = re.compile(r"^(\w+): (\d+) sent, (\d+) received, loss \S+ %, latency [\d.]+ us", re.MULTILINE)
    found = line.findall(done.stdout)
    assert [(kind, int(sent)) for kind, sent, _ in found] == [("voice", 1000), ("video", 2000), ("data", 4000)]
    received = sum(int(one) for _, _, one in found)
    assert 0 < received < 1.02 * 6000
    assert done.returncode == 3 or received > 0.98 * 6000, done.stdout


def test_the_examples_run_over_grpc_and_on_a_lab(tmp_path: Path) -> None:
    file = tmp_path / "arrived.pcap"
    with serving(None, "--lab", "kernel-ipv4", "--grpc-port", "0") as address:
        done = example("neighbours", address, "left", "right")
        assert len(re.findall(r"^ethernet\d: 198\.1\d\.0\.1 is at (?:\w\w:){5}\w\w$", done.stdout, re.MULTILINE)) == 2
        assert done.stdout.count("succeeded") == 2
        assert done.returncode == 0, done.stderr
        done = example("capture", address, "left", "right", file)
        assert "300 sent, 300 received" in done.stdout, done.stderr
    with PcapReader(str(file)) as reader:
        ports = [one[UDP].dport for one in reader if UDP in one and one[UDP].sport == 49184]
    assert ports == [5000, 5001, 5002] * 100


def test_the_example_of_vlans_tells_which_ones_a_bridge_forwards() -> None:
    with made("bridge", DUT_CORE) as name, serving(name) as address:
        rules = "table bridge vlans { chain c { type filter hook forward priority 0; vlan id 20 drop; }; }"
        subprocess.run(["ip", "netns", "exec", f"{name}-dut", "nft", rules], check=True)
        done = example("vlans", address, "eth1", "eth2", "10", "20")
        told = ["VLAN 10: forwarded, 500 of 500", "VLAN 20: not forwarded, 0 of 500"]
        assert done.stdout.splitlines() == told, done.stderr
        assert done.returncode == 1


def test_devices_resolve_their_gateways_and_a_limit_of_the_router_is_its_loss() -> None:
    """IPv4 through a kernel router that forwards 500 frames/s of one direction."""
    with made("router", DUT_CORE) as name, serving(name) as address:
        by_hand("limit", name, 500, 10, "west")
        api = snappi.api(location=address)
        configuration = configuration_of(api)
        for number, port in enumerate(configuration.ports):
            ethernet = configuration.devices.add(name=f"device {number}").ethernets.add(name=f"ethernet {number}")
            ethernet.connection.port_name, ethernet.mac = port.name, f"02:00:00:00:02:0{number}"
            net = f"198.1{8 + number}.0"
            ethernet.ipv4_addresses.add(name=f"ip {number}", address=f"{net}.2", gateway=f"{net}.1", prefix=24)
        for way, (tx, rx) in {"limited": (0, 1), "free": (1, 0)}.items():
            one = added(configuration, way, tx, 2000)
            one.tx_rx.device.tx_names, one.tx_rx.device.rx_names = [f"ip {tx}"], [f"device {rx}"]
            one.packet.clear()
            _, ip, _ = one.packet.ethernet().ipv4().udp()
            ip.src.value, ip.dst.value = f"198.1{8 + tx}.0.2", f"198.1{8 + rx}.0.2"
        assert list(api.set_config(configuration).warnings) == []
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = []
        neighbours = api.get_states(request).ipv4_neighbors
        assert {one.ipv4_address for one in neighbours if one.link_layer_address} == {"198.18.0.1", "198.19.0.1"}
        action = api.control_action()
        for destination in ("198.18.0.1", "198.19.0.1", "198.19.0.77"):
            action.protocol.ipv4.ping.requests.add(src_name="ip 0", dst_ip=destination)
        pings = api.set_control_action(action).response.protocol.ipv4.ping.responses
        assert [(one.dst_ip[-2:], one.result) for one in pings] == [
            (".1", "succeeded"),
            (".1", "succeeded"),
            ("77", "failed"),
        ]
        found = sent(api, PATIENCE_S)
        assert (found["free"].frames_tx, found["free"].frames_rx) == (2000, 2000)
        assert found["limited"].frames_tx == 2000
        assert found["limited"].frames_rx == pytest.approx(500 * 2 + 10, rel=0.02)


def test_devices_at_both_ends_of_a_cable_are_each_others_gateways(cable: str) -> None:
    """The tester's ports answer one another while they resolve their gateways, over IPv4 and IPv6."""
    with serving(cable, "--plain") as address:
        api = snappi.api(location=address)
        configuration = configuration_of(api)
        for number, port in enumerate(configuration.ports):
            ethernet = configuration.devices.add(name=f"device {number}").ethernets.add(name=f"ethernet {number}")
            ethernet.connection.port_name, ethernet.mac = port.name, f"02:00:00:00:02:0{number}"
            own, other = number + 1, 2 - number
            ethernet.ipv4_addresses.add(name=f"ip {number}", address=f"198.18.0.{own}", gateway=f"198.18.0.{other}")
            ethernet.ipv6_addresses.add(name=f"ip6 {number}", address=f"2001:2::{own}", gateway=f"2001:2::{other}")
        assert list(api.set_config(configuration).warnings) == []
        request = api.states_request()
        for version in (4, 6):
            getattr(request, f"ipv{version}_neighbors").ethernet_names = []
            found = getattr(api.get_states(request), f"ipv{version}_neighbors")
            assert [one.link_layer_address for one in found] == ["02:00:00:00:02:01", "02:00:00:00:02:00"]


def test_a_link_that_goes_down_at_the_receiver_loses_frames_and_the_trial_says_so() -> None:
    """A bridge forwards again when the link is back. The server leaves no link down."""
    with made("bridge", DUT_CORE) as name:
        with serving(name, "--plain") as address:
            api = snappi.api(location=address)
            configuration = configuration_of(api)
            added(configuration, "out", 0, 1).duration.continuous.gap = 12
            api.set_config(configuration)
            set_flows(api, "start")
            time.sleep(0.3)
            for state in ("down", "up"):
                wanted = api.control_state()
                wanted.port.link.state, wanted.port.link.port_names = state, ["port eth2"]
                assert list(api.set_control_state(wanted).warnings) == []
                assert is_up(name, "eth2") is (state == "up")
                before = metrics(api)["out"].frames_rx
                time.sleep(1)
            assert metrics(api)["out"].frames_rx > before
            assert any("port_down" in text for text in set_flows(api, "stop"))
            one = metrics(api)["out"]
            assert one.frames_rx < one.frames_tx - 500
            wanted.port.link.state = "down"
            api.set_control_state(wanted)
        assert is_up(name, "eth2")


def is_up(netns: str, interface: str) -> bool:
    shown = subprocess.run(["ip", "-n", netns, "-json", "link", "show", interface], capture_output=True, check=True)
    return "UP" in json.loads(shown.stdout)[0]["flags"]


def test_a_search_by_a_script_reads_the_capacity_of_the_reference_dut() -> None:
    """2,000 frames/s and a queue of 10: within 0.5 % of what a trial of a second shows of it. Near it hardly a trial is
    valid where others take the cores: then the search has come as far as it says."""
    options = ["--lab", "refdut-ipv4", "--lab-option", "capacity_fps=2000", "--lab-option", "queue=10"]
    truth_fps = 2000 + 11
    with serving(None, *options, "--plain") as address:
        done = example("throughput", address, "left", "right", "1900", "2150")
        assert done.returncode in (0, 3), done.stderr
        last = done.stdout.splitlines()[-1]
        found = re.fullmatch(r"throughput: (?:at least )?(\d+)(?: and less than (\d+))? frames/s.*", last)
        assert found is not None, last
        below, above = int(found[1]), int(found[2] or found[1])
        assert below <= 1.005 * truth_fps
        assert above >= 0.995 * truth_fps
        if above - below > 0.01 * truth_fps:
            pytest.skip(f"{NOT_SHOWN}{last}")


def test_an_engine_that_stops_for_a_while_makes_the_trial_invalid(cable: str) -> None:
    with serving(cable, "--plain") as address:
        api = snappi.api(location=address)
        start_and_stop_the_engine(api, cable)
        assert any(text.startswith("not valid: endless: ") and " late" in text for text in set_flows(api, "stop"))
        with urllib.request.urlopen(f"{address}/dutperf/verdicts") as answer:
            assert [one["verdict"] for one in json.load(answer)["trials"]] == ["invalid"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_on_the_disk_has_the_trials_of_clients(cable: str, number: signal.Signals, tmp_path: Path) -> None:
    """Of two trials, the second one, in which the engine stops for a while, runs when the server ends."""
    out = tmp_path / "run"
    with serving(cable, "--plain", "--token", "a-secret-of-this-test", "--out", str(out), ends_with=number) as address:
        api = snappi.api(location=address)
        configuration = configuration_of(api)
        added(configuration, "first flow", 0, 200)
        api.set_config(configuration)
        assert sent(api, PATIENCE_S)["first flow"].frames_rx == 200
        start_and_stop_the_engine(api, cable)
        with urllib.request.urlopen(f"{address}/dutperf/verdicts") as answer:
            assert json.load(answer) == {"trials": []}, "of this configuration"
        time.sleep(0.5)
        now = json.loads((out / "progress.json").read_text())
        assert now["trial"]["directions"]["port1->port2:endless"]["sent"] > 500
        assert now["note"].startswith("configuration 2: 1 flow, a trial runs; the last trial was ")
    assert not (out / "progress.json").exists()
    assert b"a-secret" not in b"".join(one.read_bytes() for one in out.iterdir())
    shown = subprocess.run(
        [sys.executable, "-m", "dutperf", "show", str(out), "--json"], capture_output=True, text=True, check=True
    )
    [point] = json.loads(shown.stdout)["points"]
    [at] = point["rates"]
    assert list(at["flows"]) == ["first flow, 128 bytes", "endless, 128 bytes"]
    assert at["flows"]["endless, 128 bytes"]["limited_by"] == "tester"
    written = (out / "report.html").read_text()
    assert re.search(r"<td[^>]*>invalid: endless: a frame left [0-9.]+ ms late", written)
    subprocess.run([sys.executable, "-m", "dutperf", "report", str(out)], check=True)
    assert re.search(r"<td[^>]*>invalid: endless: a frame left", (out / "report.html").read_text())


def start_and_stop_the_engine(api: Any, netns: str) -> None:
    """Send a flow without an end, and let the engine stop for 300 ms."""
    configuration = configuration_of(api)
    added(configuration, "endless", 0, 1).duration.continuous.gap = 12
    api.set_config(configuration)
    set_flows(api, "start")
    time.sleep(0.3)
    [engine] = engines(netns)
    os.kill(engine, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(engine, signal.SIGCONT)
    time.sleep(0.3)


def engines(netns: str) -> list[int]:
    """The engine's processes in a namespace."""
    inside = subprocess.run(["ip", "netns", "pids", netns], capture_output=True, text=True, check=True).stdout.split()
    return [int(pid) for pid in inside if Path(f"/proc/{pid}/comm").read_text().strip() == "dutperf-engine"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_its_traffic_though_a_client_stays(cable: str, number: signal.Signals) -> None:
    with serving(cable, ends_with=number) as address:
        api = snappi.api(location=address)  # keeps its connection
        configuration = configuration_of(api)
        added(configuration, "endless", 0, 1).duration.continuous.gap = 12
        api.set_config(configuration)
        set_flows(api, "start")
        assert metrics(api)["endless"].transmit == "started"
    assert engines(cable) == []


def test_a_second_server_is_told_who_has_the_ports_and_the_first_gives_them_back(cable: str) -> None:
    with serving(cable, "--plain") as first:
        api = snappi.api(location=first)
        api.set_config(configuration_of(api))
        with serving(cable, "--plain") as second:
            other = snappi.api(location=second)
            [warning] = other.set_config(configuration_of(other)).warnings
            assert "is in use by another run of dutperf" in warning
    with serving(cable, "--plain") as third:
        again = snappi.api(location=third)
        assert list(again.set_config(configuration_of(again)).warnings) == []


def test_elsewhere_grpc_has_tls_and_needs_the_token(cable: str, tmp_path: Path) -> None:
    token = "a-token-of-this-test"
    file, key = certificate.generate(tmp_path, "127.0.0.1")
    of_tls = ["--certificate", str(file), "--key", str(key)]
    with serving(cable, "--address", "0.0.0.0", "--token", token, *of_tls, "--grpc-port", "0") as address:
        at = f"127.0.0.1:{address.rpartition(':')[2]}"
        with grpc.secure_channel(at, grpc.ssl_channel_credentials(file.read_bytes())) as channel:
            ask = channel.unary_unary("/otg.Openapi/GetVersion")
            with pytest.raises(grpc.RpcError) as caught:
                ask(b"")
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert ask(b"", metadata=[("authorization", f"Bearer {token}")])
        with grpc.insecure_channel(at) as channel, pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/otg.Openapi/GetVersion")(b"", timeout=5)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
