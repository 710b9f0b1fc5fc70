# SPDX-License-Identifier: Apache-2.0
"""Echo requests that clients of the Open Traffic Generator API ask for. What arrives is made by scapy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

import frame_bytes
from dutperf.model import Direction, Trial, TrialResult, Verdict
from dutperf.otg.generator import Generator
from dutperf.otg.model import Rejected, as_members, messages, of_members
from dutperf.otg.server import acted
from dutperf.setup.configuration import EngineSettings, Setup
from dutperf.setup.ports import open_request
from dutperf.tester import ProgressCallback, TesterError
from otg_messages import LOCATED, Opened, configured, flow

MAC = "02:00:00:00:00:01"
Arrived = Callable[[Packet], Sequence[Packet]]
"""What arrives after a request."""


def device(number: int, **members: Any) -> dict[str, Any]:
    ipv4 = {"name": f"four{number}", "address": f"198.18.{number}.2", "gateway": f"198.18.{number}.1"}
    ipv6 = {"name": f"six{number}", "address": f"2001:2:0:{number}::2", "gateway": f"2001:2:0:{number}::1"}
    ethernet = {
        "name": f"e{number}",
        "mac": MAC,
        "connection": {"port_name": f"p{number}"},
        "ipv4_addresses": [ipv4],
        "ipv6_addresses": [ipv6],
    }
    return {"name": f"d{number}", "ethernets": [ethernet | members]}


def opening(arrived: Arrived, error: TesterError | None = None) -> Any:
    def opened(setup: Setup, size: int, streams: Sequence[Direction]) -> Any:
        open_request(setup, size)

        class Dut(Opened):
            def run(self, trial: Trial, _on_progress: ProgressCallback | None = None) -> TrialResult:
                if error is not None:
                    raise error
                [(direction, stream)] = (trial.other_streams or {}).items()
                assert list(streams) == [direction]
                assert trial.capture is not None
                [frame] = stream.frames
                assert (frame.source_mac, frame.destination_mac[:-1]) == ("port", "next_hop")
                wrpcap(trial.capture.path, list(arrived(Ether(frame_bytes.written(frame, 0)))), linktype=1)
                return TrialResult(trial=trial.trial, verdict=Verdict.VALID)

        return Dut()

    return opened


def asked(
    opened: Any, version: int, source: str, destination: str, devices: Sequence[dict[str, Any]] = (device(1), device(2))
) -> str:
    """The result of one ping."""
    generator = Generator(LOCATED, EngineSettings(), opened, drain_s=0.0)
    try:
        generator.set_configuration(of_members(configured(devices=list(devices)), messages.Config))
        request = {"src_name": source, "dst_ip": destination}
        wanted = {"protocol": {f"ipv{version}": {"ping": {"requests": [request]}}}}
        answer = as_members(acted(generator, of_members(wanted, messages.ControlAction)))
    finally:
        generator.close()
    [response] = answer["response"]["protocol"][f"ipv{version}"]["ping"]["responses"]
    assert {name: response[name] for name in request} == request
    return str(response["result"])


def reply(request: Packet) -> Packet:
    """RFC 792, RFC 4443 4.2: with the request's data."""
    made = request.copy()
    ip = made[IP] if IP in made else made[IPv6]
    ip.src, ip.dst = ip.dst, ip.src
    if IP in made:
        made[ICMP].type = 0
        del made[IP].chksum, made[ICMP].chksum
        return made
    echo = made[ICMPv6EchoRequest]
    ip.remove_payload()
    return made / ICMPv6EchoReply(id=echo.id, seq=echo.seq, data=echo.data)


def other_identifier(request: Packet) -> Packet:
    made = reply(request)
    message = made[ICMP] if ICMP in made else made[ICMPv6EchoReply]
    message.id ^= 1
    return made


def other_address(request: Packet) -> Packet:
    made = reply(request)
    ip = made[IP] if IP in made else made[IPv6]
    ip.src = "198.18.9.9" if IP in made else "2001:2::9"
    return made


def tagged(request: Packet) -> Packet:
    """As a port without VLAN offload sees it."""
    made = reply(request)
    return Ether(src=made.src, dst=made.dst) / Dot1Q(vlan=9) / made.payload


@pytest.mark.parametrize(("version", "destination"), [(4, "198.18.1.1"), (4, "198.19.0.1"), (6, "2001:2:0:9::1")])
@pytest.mark.parametrize(
    ("arrived", "result"),
    [
        (lambda request: [reply(request)], "succeeded"),
        (lambda request: [Ether(bytes(60)), tagged(request)], "succeeded"),
        (lambda _request: [], "failed"),
        (lambda request: [request], "failed"),
        (lambda request: [other_identifier(request)], "failed"),
        (lambda request: [other_address(request)], "failed"),
        (lambda request: [Ether(bytes(reply(request))[:20])], "failed"),
    ],
)
def test_a_ping_succeeds_by_a_reply_to_it(arrived: Arrived, result: str, version: int, destination: str) -> None:
    assert asked(opening(arrived), version, "d1", destination) == result


def test_requests_are_whole_and_have_the_devices_tag() -> None:
    requests: list[Packet] = []

    def noted(request: Packet) -> Sequence[Packet]:
        requests.append(request)
        return [reply(request)]

    tag = device(1, vlans=[{"name": "v", "id": 7}])
    assert asked(opening(noted), 4, "four1", "198.19.0.1", [tag]) == "succeeded"
    assert asked(opening(noted), 6, "e1", "2001:2:0:9::1") == "succeeded"
    assert requests[0][Dot1Q].vlan == 7
    assert (requests[0][ICMP].type, requests[0][IP].src) == (8, "198.18.1.2")
    assert requests[1][IPv6].src == "2001:2:0:1::2"
    assert requests[1].haslayer(ICMPv6EchoRequest)


def test_a_silent_gateway_is_a_ping_that_failed_and_another_fault_is_an_error() -> None:
    silent = TesterError("the DUT did not answer ARP", code="no_answer", field="p1.gateway4")
    assert asked(opening(reply, silent), 4, "d1", "198.19.0.1") == "failed"
    with pytest.raises(Rejected, match=r"ports\[0\].location: it has gone"):
        asked(opening(reply, TesterError("it has gone", code="port_away", field="p1.port")), 4, "d1", "198.19.0.1")


@pytest.mark.parametrize(
    ("version", "source", "destination", "said"),
    [
        (4, "d9", "198.19.0.1", "requests[0].src_name: there is no device"),
        (4, "six1", "198.19.0.1", "requests[0].src_name: six1 has no IPv4 address"),
        (4, "d1", "2001:2::1", "requests[0].dst_ip: '2001:2::1' is no IPv4 address"),
        (4, "d1", "198.18.2.2", "requests[0].dst_ip: 198.18.2.2 is a device's, and devices answer no echo requests"),
        (6, "d1", "2001:2:0:2::2", "requests[0].dst_ip: 2001:2:0:2::2 is a device's"),
        (4, "d1", "198.18.1.9", "requests[0].dst_ip: 198.18.1.9 is in the net of d1: of this only the gateway is"),
    ],
)
def test_what_is_not_possible_is_told_with_its_place(version: int, source: str, destination: str, said: str) -> None:
    with pytest.raises(Rejected) as caught:
        asked(opening(lambda request: [reply(request)]), version, source, destination)
    assert f"protocol.ipv{version}.ping.{said}" in str(caught.value)


def test_pings_need_the_engine_here() -> None:
    generator = Generator(LOCATED, EngineSettings(command=("ssh", "tester")), lambda *_: Opened(), drain_s=0.0)
    try:
        generator.set_configuration(of_members(configured(devices=[device(1)]), messages.Config))
        request = messages.ActionProtocolIpv4PingRequest(src_name="d1", dst_ip="198.19.0.1")
        with pytest.raises(Rejected, match=r"pings need the engine on this machine: engine\.command has ssh"):
            generator.ping(4, [request])
    finally:
        generator.close()


def test_nothing_is_pinged_while_frames_are_captured() -> None:
    generator = Generator(LOCATED, EngineSettings(), lambda *_: Opened(), drain_s=0.0)
    try:
        captures = [{"name": "c", "port_names": ["p1"]}]
        wanted = configured(flow(), devices=[device(1)], captures=captures)
        generator.set_configuration(of_members(wanted, messages.Config))
        generator.capture("start", [])
        request = messages.ActionProtocolIpv4PingRequest(src_name="d1", dst_ip="198.19.0.1")
        with pytest.raises(Rejected, match="stop that first"):
            generator.ping(4, [request])
        generator.capture("stop", [])
    finally:
        generator.close()
