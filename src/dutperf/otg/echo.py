# SPDX-License-Identifier: Apache-2.0
"""Echo requests (RFC 792, RFC 4443) from the addresses of devices: each a trial of its own, whose capture has the
reply."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import closing
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from dutperf.captures import CapturedFrame, frames_of
from dutperf.frames import Stack, build
from dutperf.frames.headers import ICMP, ICMPV6
from dutperf.frames.walk import Walk
from dutperf.model import Capture, Direction, Stream, Trial
from dutperf.otg.links import NOWHERE, Links, address_text
from dutperf.otg.model import Message, Rejected
from dutperf.otg.traffic import USUAL_FRAME, Open
from dutperf.setup.configuration import NO_PORT, EngineSettings, Setup, Side
from dutperf.tester import TesterError

_REQUESTS = 3
_RATE_FPS = 10
_WAIT_NS = 700_000_000
"""For the reply to the last request."""
_MOST_CAPTURED = 10_000
_REPLY = {4: b"\x00\x00", 6: b"\x81\x00"}
"""Type and code."""
_PROTOCOL = {4: bytes([ICMP]), 6: bytes([ICMPV6])}


@dataclass(frozen=True)
class Ping:
    """Echo requests from a device to an address."""

    source_name: str
    version: int
    source: str
    destination: str
    port: str
    """Its name of ours."""
    side: Side


def planned(request: Message, version: int, where: str, links: Links) -> Ping:
    """What a client asks for. Raises Rejected: it is not possible."""
    ends = links.ends_of(request.src_name, f"{where}.src_name")
    end = next((one for one in ends if f"ipv{version}" in one.addresses), None)
    if end is None:
        raise Rejected(f"{where}.src_name: {request.src_name} has no IPv{version} address")
    source = end.addresses[f"ipv{version}"]
    destination = address_text(request.dst_ip, version, f"{where}.dst_ip")
    if any(destination in one.addresses.values() for each in links.ends.values() for one in each):
        raise Rejected(f"{where}.dst_ip: {destination} is a device's, and devices answer no echo requests", code=501)
    side = links.host(end)
    own, gateway = (side.ipv4, side.gateway4) if version == 4 else (side.ipv6, side.gateway6)
    assert own is not None, "a device has it"
    if ip_address(destination) in own.network and destination != str(gateway):
        text = f"{destination} is in the net of {request.src_name}: of this only the gateway is covered"
        raise Rejected(f"{where}.dst_ip: {text}", code=501)
    return Ping(request.src_name, version, source, destination, links.ours[end.port], side)


def is_answered(ping: Ping, engine: EngineSettings, open_tester: Open) -> bool:
    """Whether a reply comes; the ports have to be free. Raises TesterError: the port cannot be opened."""
    other = {4: "gateway6", 6: "gateway4"}[ping.version]
    sides = {ping.port: ping.side.model_copy(update={other: None}), NOWHERE: NO_PORT}
    path = f"{ping.port}->{NOWHERE}"
    setup = Setup.model_construct(engine=engine, ports=sides, paths=(path,))
    direction = Direction(path).with_stream("ping")
    identifier = secrets.randbits(16)
    with tempfile.TemporaryDirectory(prefix="dutperf-ping-") as directory:
        file = Path(directory) / "arrived.pcapng"
        trial = Trial(
            trial=1,
            duration_ns=_REQUESTS * 10**9 // _RATE_FPS,
            drain_ns=_WAIT_NS,
            other_streams={direction: _stream(ping, identifier)},
            capture=Capture(path=str(file), first=_MOST_CAPTURED),
        )
        try:
            with closing(open_tester(setup, USUAL_FRAME, {direction: ()})) as tester:
                tester.run(trial)
        except TesterError as error:
            if error.code == "no_answer":  # the gateway does not answer
                return False
            raise
        return any(_is_reply(one, ping, identifier) for one in frames_of(file))


def _stream(ping: Ping, identifier: int) -> Stream:
    tags = "".join(f"vlan(id={one})/" for one in ping.side.vlans or ())
    ip = f"ipv{ping.version}(source={ping.source},destination={ping.destination})"
    stack = Stack.parse(f"eth/{tags}{ip}/icmp(id={identifier})")
    return Stream(rate_fps=_RATE_FPS, frames=(build(stack, stack.min_size),))


def _is_reply(frame: CapturedFrame, ping: Ping, identifier: int) -> bool:
    walk = Walk(frame.data)
    if walk.version != ping.version:
        return False
    packet = frame.data[walk.network_at :]
    addresses, message = (packet[12:20], 4 * (packet[0] & 15)) if ping.version == 4 else (packet[8:40], 40)
    protocol = packet[9:10] if ping.version == 4 else packet[6:7]
    expected = ip_address(ping.destination).packed + ip_address(ping.source).packed
    return (
        protocol == _PROTOCOL[ping.version]
        and addresses == expected
        and packet[message : message + 2] == _REPLY[ping.version]
        and packet[message + 4 : message + 6] == identifier.to_bytes(2)
    )
