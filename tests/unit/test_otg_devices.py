# SPDX-License-Identifier: Apache-2.0
"""Several devices at a port of the Open Traffic Generator API: hosts, and the frames of flows between them."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

import frame_bytes
from dutperf.judge.answered import with_answers
from dutperf.model import DescribedFrame, Trial
from dutperf.otg import flows, links
from dutperf.otg.generator import Generator
from dutperf.otg.model import Rejected, messages, of_members
from dutperf.otg.traffic import Streams
from dutperf.setup.configuration import EngineSettings, Setup, SharedPort
from dutperf.setup.ports import open_request
from dutperf.tester import TesterError
from otg_messages import LOCATED, UDP, Opened, configured, flow, planned

PACKET = [{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}]


def ethernet(name: str, port: str, *addresses: str, vlan: int | None = None, **members: Any) -> dict[str, Any]:
    """An interface; the gateway has the first address of each net."""
    made: dict[str, Any] = {"name": name, "connection": {"port_name": port}, "mac": f"02:00:00:00:00:{name[-2:]}"}
    for number, address in enumerate(addresses):
        version = 6 if ":" in address else 4
        gateway = f"{address.rpartition(':')[0]}:1" if version == 6 else f"{address.rpartition('.')[0]}.1"
        one = {"name": f"{name} {number}", "address": address, "gateway": gateway}
        made.setdefault(f"ipv{version}_addresses", []).append(one)
    if vlan is not None:
        made["vlans"] = [{"name": f"{name} vlan", "id": vlan}]
    return made | members


DEVICES = [
    {"name": "a", "ethernets": [ethernet("e11", "p1", "198.18.1.2", vlan=10)]},
    {"name": "b", "ethernets": [ethernet("e12", "p1", "198.18.2.2", "2001:2:0:2::2", vlan=20)]},
    {"name": "c", "ethernets": [ethernet("e21", "p2", "198.19.0.2", "198.19.0.3", "2001:2:0:9::2")]},
]


def linked(devices: list[dict[str, Any]]) -> links.Links:
    return links.planned(of_members(configured(devices=devices), messages.Config), LOCATED)


def between(senders: list[str], receivers: list[str], mode: str = "mesh", **members: Any) -> dict[str, Any]:
    tx_rx = {"device": {"tx_names": senders, "rx_names": receivers, "mode": mode}}
    return flow(**{"tx_rx": tx_rx, "packet": PACKET} | members)


def ends(frame: DescribedFrame, number: int = 0) -> tuple[int | None, str, str]:
    """Its host, and the addresses of its frame ``number``."""
    packet = Ether(frame_bytes.written(frame, number))
    layer = packet[IPv6] if IPv6 in packet else packet["IP"]
    return frame.host, layer.src, layer.dst


def test_each_interface_and_each_address_is_a_host_of_its_own() -> None:
    port = linked(DEVICES).sides["p1"]
    assert isinstance(port, SharedPort)
    [second] = port.hosts
    assert (port.mac, str(port.ipv4), port.vlans) == ("02:00:00:00:00:11", "198.18.1.2/24", (10,))
    assert (second.mac, str(second.ipv6), str(second.gateway6)) == (
        "02:00:00:00:00:12",
        "2001:2:0:2::2/64",
        "2001:2:0:2::1",
    )
    other = linked(DEVICES).sides["p2"]
    assert isinstance(other, SharedPort)
    assert [str(one.ipv4) for one in (other, *other.hosts)] == ["198.19.0.2/24", "198.19.0.3/24"]
    assert [(one.ethernet, one.host, one.address) for one in linked(DEVICES).neighbours] == [
        ("e11", 0, "198.18.1.1"),
        ("e12", 1, "198.18.2.1"),
        ("e12", 1, "2001:2:0:2::1"),
        ("e21", 0, "198.19.0.1"),
        ("e21", 0, "2001:2:0:9::1"),
        ("e21", 1, "198.19.0.1"),
    ]


def test_gateways_whose_mac_addresses_are_given_otherwise_are_those_of_two_hosts() -> None:
    given = ethernet("e11", "p1", "198.18.1.2", "2001:2:0:1::2")
    given["ipv6_addresses"][0]["gateway_mac"] = {"value": "02:00:00:00:00:99"}
    port = linked([{"name": "a", "ethernets": [given]}]).sides["p1"]
    assert isinstance(port, SharedPort)
    [second] = port.hosts
    assert (str(port.gateway4), port.gateway6, port.gateway_mac) == ("198.18.1.1", None, None)
    assert (second.gateway4, str(second.gateway6), second.gateway_mac) == (None, "2001:2:0:1::1", "02:00:00:00:00:99")


def test_an_address_is_that_of_one_interface_in_a_vlan() -> None:
    same = {"name": "d", "ethernets": [ethernet("e13", "p1", "198.18.1.2", vlan=10)]}
    with pytest.raises(Rejected, match=r"devices\[3\]\.ethernets\[0\]\.ipv4_addresses\[0\]\.address: 198.18.1.2 is"):
        linked([*DEVICES, same])
    same["ethernets"][0]["vlans"][0]["id"] = 30
    assert "d" in linked([*DEVICES, same]).ends


def test_the_pairs_of_a_mesh_take_turns() -> None:
    [made] = planned(between(["a", "b"], ["c"]), devices=DEVICES)
    each = [ends(one) for one in made.stream.frames]
    assert each == [
        (None, "198.18.1.2", "198.19.0.2"),
        (None, "198.18.1.2", "198.19.0.3"),
        (1, "198.18.2.2", "198.19.0.2"),
        (1, "198.18.2.2", "198.19.0.3"),
    ]
    assert made.stream.order == (0, 1, 2, 3)


def test_names_are_paired_one_to_one() -> None:
    [made] = planned(between(["b", "a"], ["e21 0", "e21 1"], "one_to_one"), devices=DEVICES)
    assert [ends(one)[1:] for one in made.stream.frames] == [
        ("198.18.2.2", "198.19.0.2"),
        ("198.18.1.2", "198.19.0.3"),
    ]


def test_frames_of_ipv6_are_those_of_the_interfaces_that_have_it() -> None:
    packet = [{"ethernet": {}}, {"ipv6": {}}, {"udp": {}}]
    [made] = planned(between(["b"], ["c"], packet=packet), devices=DEVICES)
    assert [ends(one) for one in made.stream.frames] == [(1, "2001:2:0:2::2", "2001:2:0:9::2")]


def test_values_follow_each_other_over_all_pairs() -> None:
    """As the model has it: the tag of each frame is that of its sender."""
    vlan = {"vlan": {"id": {"values": [10, 10, 20, 20]}}}
    udp = {"udp": {"src_port": {"increment": {"start": 5000, "step": 1, "count": 3}}}}
    [made] = planned(between(["a", "b"], ["c"], packet=[{"ethernet": {}}, vlan, {"ipv4": {}}, udp]), devices=DEVICES)
    sent = [Ether(frame_bytes.written(made.stream.frames[turn % 4], turn // 4)) for turn in range(12)]
    assert [one[Dot1Q].vlan for one in sent] == [10, 10, 20, 20] * 3
    assert [one["UDP"].sport for one in sent] == [5000, 5001, 5002] * 4


def test_pairs_have_all_sizes() -> None:
    size = {"increment": {"start": 100, "end": 300, "step": 100}}
    [made] = planned(between(["a", "b"], ["e21 0"], size=size), devices=DEVICES)
    assert made.sizes == (100, 200, 300) * 2
    assert [made.sizes[kind] for kind in made.stream.order] == [100, 200, 300] * 2
    assert [kind // 3 for kind in made.stream.order] == [0, 1] * 3
    mixed = {"weight_pairs": {"custom": [{"size": 100, "weight": 3}, {"size": 200, "weight": 1}]}}
    [made] = planned(between(["a", "b"], ["e21 0"], size=mixed), devices=DEVICES)
    assert made.stream.shares == (3, 1, 3, 1)


def test_frames_of_a_device_are_not_longer_than_its_interface_sends() -> None:
    """A tag is not part of the packet. The receiver's MTU is no limit of the sender's frames."""
    devices = [
        {"name": "a", "ethernets": [ethernet("e11", "p1", "198.18.1.2", mtu=1000)]},
        {"name": "b", "ethernets": [ethernet("e12", "p1", "198.18.2.2", mtu=9000)]},
        {"name": "c", "ethernets": [ethernet("e21", "p2", "198.19.0.2", mtu=500)]},
    ]
    tagged = [PACKET[0], {"vlan": {"id": {"value": 7}}}, *PACKET[1:]]
    for size, packet in ((1018, PACKET), (1022, tagged)):
        planned(between(["a", "b"], ["c"], size={"fixed": size}, packet=packet), devices=devices)
        with pytest.raises(
            Rejected, match=rf"flows\[0\].size: {size + 1:,} bytes are too many for the mtu of the interface"
        ):
            planned(between(["a", "b"], ["c"], size={"fixed": size + 1}, packet=packet), devices=devices)
    planned(between(["b"], ["c"], size={"fixed": 1100}), devices=devices)
    planned(flow(size={"fixed": 1100}), devices=devices)  # no device sends it
    usual = {"name": "a", "ethernets": [ethernet("e11", "p1", "198.18.1.2", mtu=1500)]}
    planned(between(["a"], ["c"], size={"fixed": 9000}), devices=[usual, devices[2]])  # snappi writes it unasked


PORTS = [{"name": f"p{number}", "location": location} for number, location in enumerate(("left", "right", "third"), 1)]
MORE = [*DEVICES, {"name": "d", "ethernets": [ethernet("e31", "p3", "198.19.3.2")]}]


def of_three(*each: dict[str, Any]) -> tuple[Any, ...]:
    configuration = of_members({"ports": PORTS, "devices": MORE, "flows": list(each)}, messages.Config)
    return flows.planned(configuration, links.planned(configuration, LOCATED | {"third": "af_packet:eth3"}))


def test_a_flow_between_several_ports_has_its_rate_and_its_frames_in_all() -> None:
    each = of_three(between(["a", "b"], ["c", "d"], rate={"pps": "1000"}))
    assert [(one.name, one.stream.rate_fps, one.frames) for one in each] == [
        ("f1: p1 to p2", 666, 66),
        ("f1: p1 to p3", 334, 34),
    ]
    assert {one.of for one in each} == {"f1"}
    assert len({one.direction for one in each}) == 2


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (between(["a", "b"], ["c"], "one_to_one"), "flows[0].tx_rx.device: one_to_one needs as many tx_names"),
        (between(["a"], []), "flows[0].tx_rx.device: tx_names and rx_names each need a device"),
        (between(["a"], ["b"]), "flows[0].tx_rx.device: p1 would send to itself"),
        (between(["a"] * 17, ["c"]), "34 pairs of devices with frames of 1 size are not possible: 32 kinds"),
        (between(["a"], ["c", "d"], rate={"pps": "1"}), "would send less than 1 frame/s between some of its ports"),
        (between(["a"], ["c", "d"], rate={"percentage": 50}), "the speed of its port is unknown"),
        (
            between(["a"], ["c", "d"], duration={"burst": {"packets": 10}}),
            "flows[0].duration.burst: bursts between several ports are not covered",
        ),
        (
            between(["a"], ["c"], packet=[*UDP[:2], {"udp": {"src_port": {"values": [*range(4097)]}}}]),
            "flows[0].packet: more than 4,096 values of a field that 2 pairs of devices share",
        ),
    ],
)
def test_what_pairs_of_devices_cannot_be_is_told(one: dict[str, Any], said: str) -> None:
    with pytest.raises(Rejected) as caught:
        of_three(one)
    assert said in str(caught.value)


def test_a_port_has_a_bounded_number_of_hosts() -> None:
    many = [ethernet(f"e{number}11", "p1", f"198.18.{number % 250}.{2 + number // 250}") for number in range(257)]
    with pytest.raises(Rejected, match="port p1 has 257 addresses; at most 256 are possible"):
        linked([{"name": "a", "ethernets": many}])


def test_a_loopback_is_an_address_behind_an_interface() -> None:
    """The interface answers for it, and flows from it go by the gateway of the interface."""
    loopbacks = {
        "name": "r",
        "ipv4_loopbacks": [{"name": "lo4", "eth_name": "e12", "address": "198.18.200.1"}],
        "ipv6_loopbacks": [{"name": "lo6", "eth_name": "e12", "address": "2001:2:0:200::1"}],
    }
    devices = [*DEVICES, loopbacks]
    port = linked(devices).sides["p1"]
    assert isinstance(port, SharedPort)
    assert port.answers_for == ()
    assert list(map(str, port.hosts[0].answers_for)) == ["198.18.200.1/32", "2001:2:0:200::1/128"]
    [made] = planned(between(["lo4"], ["e21 0"]), devices=devices)
    assert [ends(one) for one in made.stream.frames] == [(1, "198.18.200.1", "198.19.0.2")]
    [made] = planned(between(["e21 0"], ["b"]), devices=devices)
    assert [ends(one)[2] for one in made.stream.frames] == ["198.18.2.2"]


@pytest.mark.parametrize(
    ("loopback", "said"),
    [
        ({"eth_name": "e99", "address": "198.18.200.1"}, r"ipv4_loopbacks\[0\].eth_name: there is no interface 'e99'"),
        ({"eth_name": "a", "address": "198.18.200.1"}, "eth_name: there is no interface 'a'"),
        ({"eth_name": "e11", "address": "2001:2::1"}, "address: '2001:2::1' is no IPv4 address"),
    ],
)
def test_a_loopback_needs_an_interface_and_an_address(loopback: dict[str, str], said: str) -> None:
    with pytest.raises(Rejected, match=said):
        linked([*DEVICES, {"name": "r", "ipv4_loopbacks": [loopback]}])


def test_the_engine_gets_the_hosts_with_the_port() -> None:
    setup = Setup.model_construct(engine=EngineSettings(), ports=linked(DEVICES).sides, paths=("p1->p2",))
    [port, _] = open_request(setup, 1518)["ports"]
    assert port["hosts"] == [
        {
            "mac": "02:00:00:00:00:12",
            "ipv4": "198.18.2.2",
            "ipv6": "2001:2:0:2::2",
            "gateway4": "198.18.2.1",
            "gateway6": "2001:2:0:2::1",
            "vlans": [20],
        }
    ]


def opened(setup: Setup, _size: int, _streams: Streams) -> Opened:
    """Ports beside which the IPv4 gateway of the second device does not answer."""
    port = setup.sides()["p1"]
    assert isinstance(port, SharedPort)
    is_asked = port.hosts[0].gateway4 is not None

    class Beside(Opened):
        def environment(self) -> dict[str, Any]:
            if is_asked:
                raise TesterError("the DUT did not answer ARP", code="no_answer", field="p1.hosts.0.gateway4")
            hosts = [{"mac": "02:00:00:00:00:12", "dut_mac4": "02:00:00:00:00:bb", "dut_mac6": "02:00:00:00:00:cc"}]
            return {"ports": {"p1": {"dut_mac4": "02:00:00:00:00:aa", "hosts": hosts}, "p2": {}}}

    return Beside()


def test_of_several_gateways_the_one_that_does_not_answer_is_named() -> None:
    generator = Generator(LOCATED, EngineSettings(), opened)
    try:
        place = "devices[1].ethernets[0].ipv4_addresses[0].gateway"
        warnings = generator.set_configuration(of_members(configured(devices=DEVICES), messages.Config))
        assert warnings == [f"{place}: the DUT did not answer ARP"]
        assert list(generator.neighbours(4, ["e11", "e12"])) == [
            ("e11", "198.18.1.1", "02:00:00:00:00:aa"),
            ("e12", "198.18.2.1", ""),
        ]
        assert list(generator.neighbours(6, ["e12"])) == [("e12", "2001:2:0:2::1", "02:00:00:00:00:cc")]
    finally:
        generator.close()


def test_a_port_answers_in_a_trial_for_no_address_of_its_further_hosts() -> None:
    """Two MAC addresses would be told of it."""
    loopbacks = {"name": "r", "ipv4_loopbacks": [{"name": "lo4", "eth_name": "e12", "address": "198.18.200.1"}]}
    devices = [*DEVICES, loopbacks]
    setup = Setup.model_construct(engine=EngineSettings(), ports=linked(devices).sides, paths=("p1->p2",))
    opened = open_request(setup, 1518)
    [made] = planned(between(["a", "b", "lo4"], ["e21 1"]), devices=devices)
    trial = Trial(trial=1, duration_ns=10**9, drain_ns=0, other_streams={made.direction: made.stream})
    params = with_answers(trial.request(), trial, opened)
    assert "answers_for" not in params["other_streams"][made.direction]
    [other] = planned(flow(packet=[*PACKET[:1], {"ipv4": {"src": {"value": "198.18.7.7"}}}, PACKET[2]]))
    trial = trial.model_copy(update={"other_streams": {made.direction: other.stream}})
    answered = with_answers(trial.request(), trial, opened)["other_streams"][made.direction]["answers_for"]
    assert answered["from"]["ipv4"] == [{"first": "198.18.7.7"}]
