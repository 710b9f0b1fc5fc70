# SPDX-License-Identifier: Apache-2.0
"""Flows of ``dutperf otg`` to several ports, and metrics by the bits of frames as they arrive, through a bridge of the
kernel. Root only."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import snappi

from snappi_calls import metrics, sent

from .test_otg import PATIENCE_S, serving

pytestmark = pytest.mark.root
PORTS = ("eth1", "eth2", "eth3")
AT_THIRD, AT_NONE = "02:00:00:00:00:33", "02:00:00:00:00:44"


@pytest.fixture
def bridge() -> Iterator[str]:
    """The tester's namespace, whose three ports are cabled to a bridge that knows who is at the third one, and writes
    DSCP 10 for frames from the second one."""
    name = f"counted-{secrets.token_hex(3)}"
    dut = f"{name}-dut"
    lines = [f"ip netns add {name}", f"ip netns add {dut}", f"ip -n {dut} link add bridge type bridge"]
    for port in PORTS:
        lines += [
            f"ip -n {name} link add {port} type veth peer name {port} netns {dut}",
            f"ip -n {name} link set {port} up",
            f"ip -n {dut} link set {port} master bridge up",
        ]
    rules = "table bridge t { chain c { type filter hook forward priority 0; iifname eth2 ip dscp set 10; }; }"
    try:
        for line in (*lines, f"ip -n {dut} link set bridge up"):
            subprocess.run(line.split(), check=True)
        subprocess.run(f"bridge -n {dut} fdb add {AT_THIRD} dev eth3 master static".split(), check=True)
        subprocess.run(["ip", "netns", "exec", dut, "nft", rules], check=True)
        yield name
    finally:
        for one in (name, dut):
            subprocess.run(["ip", "netns", "del", one], check=False)


def served(name: str) -> Any:
    return serving(None, *(f"--ports={one}=af_packet:{one}" for one in PORTS), "--netns", name, "--plain")


def added(configuration: Any, name: str, tx: str, rx: list[str], mac: str) -> Any:
    one = configuration.flows.add(name=name)
    one.tx_rx.port.tx_name, one.tx_rx.port.rx_names = tx, rx
    one.packet.ethernet().ipv4().udp()
    one.packet[0].src.value, one.packet[0].dst.value = f"02:00:00:00:01:{tx[-1]}0", mac
    one.size.fixed, one.rate.pps = 128, 1000
    one.duration.fixed_packets.packets = 400
    one.metrics.enable = one.metrics.loss = True
    return one


def configured(api: Any) -> Any:
    configuration = api.config()
    for name in PORTS:
        configuration.ports.add(name=name, location=name)
    return configuration


def test_frames_count_at_any_of_several_ports(bridge: str) -> None:
    """One flow goes to one of two ports, another one is flooded to both."""
    with served(bridge) as address:
        api = snappi.api(location=address)
        configuration = configured(api)
        for name, mac in (("known", AT_THIRD), ("flooded", AT_NONE)):
            flow = added(configuration, name, "eth1", ["eth2", "eth3"], mac)
            flow.metrics.predefined_metric_tags.rx_name = True
        assert list(api.set_config(configuration).warnings) == []
        found = sent(api, PATIENCE_S)
        assert {name: (one.frames_tx, one.frames_rx, one.loss) for name, one in found.items()} == {
            "known": (400, 400, 0),
            "flooded": (400, 800, 0),
        }
        at = {
            name: [(tagged.tags[0].value.str, tagged.frames_rx) for tagged in one.tagged_metrics]
            for name, one in found.items()
        }
        assert at == {"known": [("eth3", 400)], "flooded": [("eth2", 400), ("eth3", 400)]}
        request = api.metrics_request()
        request.port.port_names = []
        ports = {one.name: (one.frames_tx, one.frames_rx) for one in api.get_metrics(request).port_metrics}
        assert ports == {"eth1": (800, 0), "eth2": (0, 400), "eth3": (0, 800)}


def test_frames_are_counted_by_the_bits_that_the_bridge_writes(bridge: str) -> None:
    """DSCP as it arrives, beside a port of each frame; and at several ports."""
    with served(bridge) as address:
        api = snappi.api(location=address)
        configuration = configured(api)
        for name, tx, rx in (("kept", "eth1", ["eth3"]), ("written", "eth2", ["eth1", "eth3"])):
            flow = added(configuration, name, tx, rx, AT_THIRD if name == "kept" else AT_NONE)
            flow.packet[1].priority.dscp.phb.values = [46, 0]
            flow.packet[2].dst_port.values = [1, 2, 3, 4]
            _, ip, udp = flow.egress_packet.ethernet().ipv4().udp()
            ip.priority.dscp.phb.metric_tags.metrictag(name="phb")
            udp.dst_port.metric_tags.metrictag(name="port", offset=8, length=8)
        assert list(api.set_config(configuration).warnings) == []
        sent(api, PATIENCE_S)
        found = {
            name: {tuple(tag.value.hex for tag in tagged.tags): tagged.frames_rx for tagged in one.tagged_metrics}
            for name, one in metrics(api).items()
        }
        assert found == {
            "kept": {("2e", "01"): 100, ("00", "02"): 100, ("2e", "03"): 100, ("00", "04"): 100},
            "written": {("0a", f"0{port}"): 200 for port in range(1, 5)},
        }
