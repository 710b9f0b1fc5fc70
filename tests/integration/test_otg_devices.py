# SPDX-License-Identifier: Apache-2.0
"""Several devices, interfaces and addresses at the ports of ``dutperf otg``, by snappi, through a router of the kernel
that has them in VLANs. Root only."""

from __future__ import annotations

import secrets
import subprocess
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
import snappi
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader

from snappi_calls import metrics, sent

from .test_otg import PATIENCE_S, configuration_of, serving, set_capture

pytestmark = pytest.mark.root
ROUTER_MACS = {10: "02:00:00:00:0a:01", 20: "02:00:00:00:14:01"}
"""Of the router in each VLAN."""


def ip(*lines: str) -> None:
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True)


@pytest.fixture
def router() -> Iterator[str]:
    """The tester's namespace, whose ports are cabled to a router: the first to one with two VLANs."""
    name = f"devices-{secrets.token_hex(3)}"
    dut = f"{name}-dut"
    try:
        ip(f"netns add {name}", f"netns add {dut}")
        for port in ("eth1", "eth2"):
            ip(
                f"-n {name} link add {port} mtu 1600 type veth peer name {port} netns {dut}",
                f"-n {name} link set {port} up",
                f"-n {dut} link set {port} up",
            )
        for vlan, mac in ROUTER_MACS.items():
            ip(
                f"-n {dut} link add link eth1 name vlan{vlan} address {mac} type vlan id {vlan}",
                f"-n {dut} link set vlan{vlan} up",
                f"-n {dut} addr add 198.18.{vlan}.1/24 dev vlan{vlan}",
                f"-n {dut} -6 addr add 2001:2:0:{vlan}::1/64 dev vlan{vlan} nodad",
            )
        ip(f"-n {dut} addr add 198.19.0.1/24 dev eth2", f"-n {dut} -6 addr add 2001:2:0:9::1/64 dev eth2 nodad")
        for setting in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
            subprocess.run(["ip", "netns", "exec", dut, "sysctl", "-qw", f"net.{setting}=1"], check=True)
        yield name
    finally:
        for one in (name, dut):
            subprocess.run(["ip", "netns", "del", one], check=False)


def add_device(configuration: Any, name: str, port: int, mac: str, vlan: int | None = None) -> Any:
    """Its interface."""
    ethernet = configuration.devices.add(name=name).ethernets.add(name=f"{name} ethernet")
    ethernet.connection.port_name, ethernet.mac = configuration.ports[port].name, mac
    if vlan is not None:
        ethernet.vlans.add(name=f"{name} vlan", id=vlan)
        ethernet.ipv4_addresses.add(name=f"{name} 4", address=f"198.18.{vlan}.2", gateway=f"198.18.{vlan}.1")
        ethernet.ipv6_addresses.add(name=f"{name} 6", address=f"2001:2:0:{vlan}::2", gateway=f"2001:2:0:{vlan}::1")
    return ethernet


def with_devices(api: Any) -> Any:
    """Two devices in VLANs at the first port; one with two addresses, and an interface more, at the second."""
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


def seen_at(api: Any, port: str) -> Counter[tuple[str, str, str, str]]:
    """MAC and IP addresses of what was captured there."""
    request = api.capture_request()
    request.port_name = port
    with PcapReader(BytesIO(api.get_capture(request).read())) as reader:
        frames = [Ether(bytes(one)[:-4]) for one in reader if len(one) == 128]
    layers = [(one, one[IPv6] if IPv6 in one else one[IP]) for one in frames]
    return Counter((one.src, one.dst, packet.src, packet.dst) for one, packet in layers)


def test_devices_in_vlans_send_through_their_own_gateways(router: str) -> None:
    """A mesh of two senders and four addresses, and the way back in the VLAN of each receiver."""
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        configuration = with_devices(api)
        configuration.captures.add(name="all", port_names=[port.name for port in configuration.ports])
        mesh = add_flow(configuration, "mesh", ["a", "b"], ["c2", "c4"])
        _, vlan, _, _ = mesh.packet.ethernet().vlan().ipv4().udp()
        vlan.id.values = [10] * 4 + [20] * 4
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
        assert seen_at(api, "port eth2") == {
            (mac, to, f"198.18.{net}.2", f"198.19.0.{host}"): 50 for net in ROUTER_MACS for host, to in macs.items()
        }
        assert seen_at(api, "port eth1") == {
            (ROUTER_MACS[20], "02:00:00:00:01:14", "2001:2:0:9::2", "2001:2:0:20::2"): 200,
            (ROUTER_MACS[10], "02:00:00:00:01:0a", "2001:2:0:9::4", "2001:2:0:10::2"): 200,
        }


def test_each_interface_has_its_neighbours_and_pings_from_its_own_address(router: str) -> None:
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        assert list(api.set_config(with_devices(api)).warnings) == []
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = ["a ethernet", "b ethernet"]
        assert [(one.ipv4_address, one.link_layer_address) for one in api.get_states(request).ipv4_neighbors] == [
            (f"198.18.{vlan}.1", mac) for vlan, mac in ROUTER_MACS.items()
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
    ip(f"-n {router}-dut addr del 198.18.20.1/24 dev vlan20")
    with serving(router, "--plain") as address:
        api = snappi.api(location=address)
        [warning] = api.set_config(with_devices(api)).warnings
        assert "devices[1].ethernets[0].ipv4_addresses[0].gateway: the DUT did not answer ARP for gateway4" in warning
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = ["a ethernet", "b ethernet"]
        known = [one.link_layer_address for one in api.get_states(request).ipv4_neighbors]
        assert known == [ROUTER_MACS[10], None]
        ip(f"-n {router}-dut addr add 198.18.20.1/24 dev vlan20")
        configuration = api.get_config()
        add_flow(configuration, "late", ["b"], ["c2 4 2"]).packet.ethernet().vlan().ipv4().udp()
        configuration.flows[0].packet[1].vlan.id.value = 20
        assert list(api.set_config(configuration).warnings) == []
        assert sent(api, PATIENCE_S)["late"].frames_rx == 400
        assert metrics(api)["late"].port_rx == "port eth2"
