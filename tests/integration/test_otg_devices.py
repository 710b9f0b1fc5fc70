# SPDX-License-Identifier: Apache-2.0
"""Several devices, interfaces and addresses at the ports of ``dutperf otg``, by snappi, through a router of the kernel
with several addresses, and in VLANs over a cable. Root only."""

from __future__ import annotations

import secrets
import subprocess
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
import snappi
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader

from snappi_calls import metrics, sent

from .test_otg import PATIENCE_S, cable, configuration_of, serving, set_capture

pytestmark = pytest.mark.root
__all__ = ["cable"]  # a fixture
ROUTER_MACS = {10: "02:00:00:00:0a:01", 20: "02:00:00:00:14:01"}
"""Of the router in each of its nets at the first port."""


def ip(*lines: str) -> None:
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True)


def sysctl(namespace: str, setting: str) -> None:
    subprocess.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", f"net.{setting}"], check=True)


@pytest.fixture
def router() -> Iterator[str]:
    """The tester's namespace, whose ports are cabled to a router: the first to two interfaces of it."""
    name = f"devices-{secrets.token_hex(3)}"
    dut = f"{name}-dut"
    try:
        ip(f"netns add {name}", f"netns add {dut}")
        # while it looks for others with its link-local address, it does not ask for its neighbours'
        sysctl(dut, "ipv6.conf.default.accept_dad=0")
        for port in ("eth1", "eth2"):
            ip(
                f"-n {name} link add {port} mtu 1600 type veth peer name {port} netns {dut}",
                f"-n {name} link set {port} up",
                f"-n {dut} link set {port} up",
            )
        for net, mac in ROUTER_MACS.items():
            ip(
                f"-n {dut} link add link eth1 name net{net} address {mac} type macvlan",
                f"-n {dut} link set net{net} up",
                f"-n {dut} addr add 198.18.{net}.1/24 dev net{net}",
                f"-n {dut} -6 addr add 2001:2:0:{net}::1/64 dev net{net} nodad",
            )
        ip(f"-n {dut} addr add 198.19.0.1/24 dev eth2", f"-n {dut} -6 addr add 2001:2:0:9::1/64 dev eth2 nodad")
        for setting in ("ipv4.ip_forward", "ipv6.conf.all.forwarding", "ipv4.conf.all.arp_ignore"):
            sysctl(dut, f"{setting}=1")
        yield name
    finally:
        for one in (name, dut):
            subprocess.run(["ip", "netns", "del", one], check=False)


def add_device(configuration: Any, name: str, port: int, mac: str, net: int | None = None) -> Any:
    """Its interface."""
    ethernet = configuration.devices.add(name=name).ethernets.add(name=f"{name} ethernet")
    ethernet.connection.port_name, ethernet.mac = configuration.ports[port].name, mac
    if net is not None:
        ethernet.ipv4_addresses.add(name=f"{name} 4", address=f"198.18.{net}.2", gateway=f"198.18.{net}.1")
        ethernet.ipv6_addresses.add(name=f"{name} 6", address=f"2001:2:0:{net}::2", gateway=f"2001:2:0:{net}::1")
    return ethernet


def with_devices(api: Any) -> Any:
    """Two devices in nets of their own at the first port; two with two IPv4 addresses each at the second."""
    configuration = configuration_of(api)
    add_device(configuration, "a", 0, "02:00:00:00:01:0a", 10)
    add_device(configuration, "b", 0, "02:00:00:00:01:14", 20)
    for mac, number in (("02:00:00:00:02:02", 2), ("02:00:00:00:02:04", 4)):
        ethernet = add_device(configuration, f"c{number}", 1, mac)
        ethernet.ipv6_addresses.add(name=f"c{number} 6", address=f"2001:2:0:9::{number}", gateway="2001:2:0:9::1")
        for host in (number, number + 1):
            ethernet.ipv4_addresses.add(name=f"c{number} 4 {host}", address=f"198.19.0.{host}", gateway="198.19.0.1")
    return configuration


def add_flow(configuration: Any, name: str, senders: list[str], receivers: list[str], mode: str = "mesh") -> Any:
    one = configuration.flows.add(name=name)
    one.tx_rx.device.tx_names, one.tx_rx.device.rx_names, one.tx_rx.device.mode = senders, receivers, mode
    one.size.fixed, one.rate.pps = 128, 1000
    one.duration.fixed_packets.packets = 400
    one.metrics.enable = one.metrics.loss = True
    return one


def seen_at(api: Any, port: str) -> Counter[tuple[str, str, str, str, int]]:
    """MAC and IP addresses, and UDP destination ports, of what was captured there."""
    request = api.capture_request()
    request.port_name = port
    with PcapReader(BytesIO(api.get_capture(request).read())) as reader:
        frames = [Ether(bytes(one)[:-4]) for one in reader if len(one) == 128]
    layers = [(one, one[IPv6] if IPv6 in one else one[IP]) for one in frames]
    return Counter((one.src, one.dst, packet.src, packet.dst, packet[UDP].dport) for one, packet in layers)


def test_devices_send_through_their_own_gateways(router: str) -> None:
    """A mesh of two senders and four addresses, and the way back to each receiver."""
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        configuration = with_devices(api)
        configuration.captures.add(name="all", port_names=[port.name for port in configuration.ports])
        mesh = add_flow(configuration, "mesh", ["a", "b"], ["c2", "c4"])
        _, _, udp = mesh.packet.ethernet().ipv4().udp()
        udp.dst_port.values = [1000 + pair for pair in range(8)]
        back = add_flow(configuration, "back", ["c2 6", "c4 6"], ["b", "a"], "one_to_one")
        back.packet.ethernet().ipv6().udp()
        assert list(api.set_config(configuration).warnings) == []
        set_capture(api, "start")
        found = sent(api, PATIENCE_S)
        assert {name: (one.frames_tx, one.frames_rx, one.loss) for name, one in found.items()} == {
            "mesh": (400, 400, 0),
            "back": (400, 400, 0),
        }
        set_capture(api, "stop")
        [mac] = {source for source, *_ in seen_at(api, "port eth2")}
        macs = {2: "02:00:00:00:02:02", 3: "02:00:00:00:02:02", 4: "02:00:00:00:02:04", 5: "02:00:00:00:02:04"}
        pairs = [(net, host) for net in ROUTER_MACS for host in macs]
        assert seen_at(api, "port eth2") == {
            (mac, macs[host], f"198.18.{net}.2", f"198.19.0.{host}", 1000 + number): 50
            for number, (net, host) in enumerate(pairs)
        }
        assert seen_at(api, "port eth1") == {
            (ROUTER_MACS[20], "02:00:00:00:01:14", "2001:2:0:9::2", "2001:2:0:20::2", 0): 200,
            (ROUTER_MACS[10], "02:00:00:00:01:0a", "2001:2:0:9::4", "2001:2:0:10::2", 0): 200,
        }


def test_devices_in_vlans_may_have_the_same_addresses(cable: str) -> None:
    """Each has the gateway of its own VLAN, which is a device at the other end."""
    with serving(cable, "--plain") as address:
        api = snappi.api(location=address)
        configuration = configuration_of(api)
        for vlan, number in ((10, 1), (20, 2)):
            for port in (0, 1):
                ethernet = add_device(configuration, f"{vlan} at {port}", port, f"02:00:00:00:0{port}:0{number}")
                ethernet.vlans.add(name=f"vlan {vlan} at {port}", id=vlan)
                own, gateway = f"198.18.0.{port + 1}", f"198.18.0.{2 - port}"
                ethernet.ipv4_addresses.add(name=f"ip {vlan} at {port}", address=own, gateway=gateway)
        configuration.captures.add(name="all", port_names=["port eth2"])
        one = add_flow(configuration, "both", ["10 at 0", "20 at 0"], ["10 at 1", "20 at 1"], "one_to_one")
        _, vlan, _, _ = one.packet.ethernet().vlan().ipv4().udp()
        vlan.id.values = [10, 20]
        assert list(api.set_config(configuration).warnings) == []
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = []
        found = {one.ethernet_name: one.link_layer_address for one in api.get_states(request).ipv4_neighbors}
        assert found == {
            f"{vlan} at {port} ethernet": f"02:00:00:00:0{1 - port}:0{number}"
            for vlan, number in ((10, 1), (20, 2))
            for port in (0, 1)
        }
        set_capture(api, "start")
        one = sent(api, PATIENCE_S)["both"]
        assert (one.frames_tx, one.frames_rx) == (400, 400)
        set_capture(api, "stop")
        assert seen_at(api, "port eth2") == {
            (f"02:00:00:00:00:0{number}", f"02:00:00:00:01:0{number}", "198.18.0.1", "198.18.0.2", 0): 200
            for number in (1, 2)
        }


def test_each_interface_has_its_neighbours_and_pings_from_its_own_address(router: str) -> None:
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        assert list(api.set_config(with_devices(api)).warnings) == []
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = ["a ethernet", "b ethernet"]
        assert [(one.ipv4_address, one.link_layer_address) for one in api.get_states(request).ipv4_neighbors] == [
            (f"198.18.{net}.1", mac) for net, mac in ROUTER_MACS.items()
        ]
        request.ipv6_neighbors.ethernet_names = []
        found = api.get_states(request).ipv6_neighbors
        assert [one.ethernet_name for one in found] == ["a ethernet", "b ethernet", "c2 ethernet", "c4 ethernet"]
        assert all(one.link_layer_address for one in found)
        action = api.control_action()
        for source in ("a", "b", "c4 4 5"):
            action.protocol.ipv4.ping.requests.add(src_name=source, dst_ip="198.18.10.1")
        pings = api.set_control_action(action).response.protocol.ipv4.ping.responses
        assert [one.result for one in pings] == ["succeeded"] * 3


def test_a_gateway_of_one_of_the_devices_that_is_away_is_named(router: str) -> None:
    ip(f"-n {router}-dut addr del 198.18.20.1/24 dev net20")
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        [warning] = api.set_config(with_devices(api)).warnings
        assert "devices[1].ethernets[0].ipv4_addresses[0].gateway: the DUT did not answer ARP for gateway4" in warning
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = ["a ethernet", "b ethernet"]
        known = [one.link_layer_address for one in api.get_states(request).ipv4_neighbors]
        assert known == [ROUTER_MACS[10], None]
        ip(f"-n {router}-dut addr add 198.18.20.1/24 dev net20")
        configuration = api.get_config()
        add_flow(configuration, "late", ["b"], ["c2 4 2"]).packet.ethernet().ipv4().udp()
        assert list(api.set_config(configuration).warnings) == []
        assert sent(api, PATIENCE_S)["late"].frames_rx == 400
        assert metrics(api)["late"].port_rx == "port eth2"


def test_loopbacks_of_devices_are_answered_for_and_are_ends_of_flows(router: str) -> None:
    """One that the router reaches by the device, and one that it takes to be on the link, so that it asks for it."""
    dut = f"{router}-dut"
    ip(
        f"-n {dut} route add 198.18.200.1/32 via 198.18.20.2",
        f"-n {dut} route add 2001:2:0:200::1/128 dev net20",
    )
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        configuration = with_devices(api)
        device = configuration.devices.add(name="router")
        device.ipv4_loopbacks.add(name="lo4", eth_name="b ethernet", address="198.18.200.1")
        device.ipv6_loopbacks.add(name="lo6", eth_name="b ethernet", address="2001:2:0:200::1")
        configuration.captures.add(name="all", port_names=["port eth1"])
        add_flow(configuration, "to 4", ["c2 4 3"], ["lo4"]).packet.ethernet().ipv4().udp()
        add_flow(configuration, "to 6", ["c4"], ["lo6"]).packet.ethernet().ipv6().udp()
        add_flow(configuration, "from 4", ["lo4"], ["c2 4 2"]).packet.ethernet().ipv4().udp()
        assert list(api.set_config(configuration).warnings) == []
        set_capture(api, "start")
        found = sent(api, PATIENCE_S)
        assert {name: (one.frames_tx, one.frames_rx) for name, one in found.items()} == dict.fromkeys(
            ("to 4", "to 6", "from 4"), (400, 400)
        )
        set_capture(api, "stop")
        assert seen_at(api, "port eth1") == {
            (ROUTER_MACS[20], "02:00:00:00:01:14", "198.19.0.3", "198.18.200.1", 0): 400,
            (ROUTER_MACS[20], "02:00:00:00:01:14", "2001:2:0:9::4", "2001:2:0:200::1", 0): 400,
        }
