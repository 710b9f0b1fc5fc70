# SPDX-License-Identifier: Apache-2.0
"""A test setup and a trial as a configuration of the Open Traffic Generator API: a port for each side, a device behind
it that answers ARP and Neighbour Discovery, a flow for each stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from dutperf.frames import AddressBits, Endpoints, Header, Stack, Varying, build
from dutperf.frames.values import number_of
from dutperf.model import DescribedFrame, Direction, Stamping, Stream, Trial
from dutperf.model.address_range import NETWORK_BYTE
from dutperf.otg_client.headers import Members, NotPossible, headers_of
from dutperf.setup.configuration import Setup, Side

DutMacs = Mapping[tuple[str, int], str]
"""The DUT's MAC address by the name of the port and the IP version."""


def check(trial: Trial) -> None:
    """Raises NotPossible where ``trial`` needs what an OTG server does not have, or does not say."""
    for is_needed, what in (
        (trial.stamping is not Stamping.NONE, "delays (it tells the smallest, the largest and the mean one alone)"),
        (trial.connections is not None, "connections"),
        (trial.capture is not None, "a capture of the tester's"),
        (trial.pacing is not None, "lines filled without a gap"),
        (trial.rest_ns is not None, "a rest after learning frames"),
    ):
        if is_needed:
            raise NotPossible(what)
    for stream in trial.all_streams().values():
        _check_stream(stream)


def _check_stream(stream: Stream) -> None:
    for is_needed, what in (
        (stream.replay is not None, "the frames of a capture"),
        (stream.questions is not None, "DNS queries"),
        (bool(stream.additional), "frames beside the test frames"),
        (not stream.is_steady, "traffic that is not at one rate throughout: bursts, profiles, Poisson"),
        (len(stream.frames) > 1 or stream.background is not None, "frames of several kinds that share a rate"),
    ):
        if is_needed:
            raise NotPossible(what)


def own_mac(side: Side) -> str:
    """The MAC address of a port: that of the configuration, or a local one that is the same in each run."""
    return side.mac or "02:" + sha256(side.port.encode()).digest()[:5].hex(":")


def without_flows(setup: Setup) -> Members:
    """The ports and the devices behind them."""
    sides = setup.sides()
    return {
        "ports": [{"name": name, "location": side.port} for name, side in sides.items()],
        "devices": [_device(name, side) for name, side in sides.items() if side.has_gateway],
    }


def _device(name: str, side: Side) -> Members:
    interface: Members = {
        "name": ethernet_of(name),
        "mac": own_mac(side),
        "connection": {"choice": "port_name", "port_name": name},
    }
    if side.vlans is not None:
        interface["vlans"] = [{"name": f"{name} vlan", "id": side.vlans[0]}]
    for version in (4, 6):
        own, gateway = side.address(version), side.gateway(version)
        if own is not None and gateway is not None:
            address: Members = {
                "name": f"{name} ipv{version}",
                "address": str(own.ip),
                "prefix": own.network.prefixlen,
                "gateway": str(gateway),
            }
            if side.gateway_mac is not None:
                address["gateway_mac"] = {"choice": "value", "value": side.gateway_mac}
            interface[f"ipv{version}_addresses"] = [address]
    return {"name": f"{name} device", "ethernets": [interface]}


def ethernet_of(name: str) -> str:
    return f"{name} ethernet"


def unresolved(setup: Setup) -> Iterator[tuple[str, int]]:
    """Ports and IP versions of gateways whose MAC address the server has to find out."""
    for name, side in setup.sides().items():
        if side.gateway_mac is None:
            yield from ((name, version) for version in (4, 6) if side.gateway(version) and side.address(version))


def flow_name(direction: Direction, nonce: str) -> str:
    """Of a direction or a stream in the model's characters; ``nonce``: another client has other flows."""
    stream = sha256(direction.stream.encode()).hexdigest()[:8] if direction.stream else ""
    return f"{direction.path} {stream}{nonce}"


def flows(setup: Setup, trial: Trial, names: Mapping[Direction, str], macs: DutMacs) -> list[Members]:
    """The flows of a trial by their ``names``."""
    check(trial)
    return [_flow(setup, trial, direction, name, macs) for direction, name in names.items()]


def _flow(setup: Setup, trial: Trial, direction: Direction, name: str, macs: DutMacs) -> Members:
    stream = trial.all_streams()[direction]
    frame = described(stream)
    sender, receiver = setup.sides()[direction.sending_port], setup.sides()[direction.receiving_port]
    version = 6 if frame.destination_mac == "next_hop6" else 4
    dut_mac = sender.gateway_mac or macs.get((direction.sending_port, version)) or own_mac(receiver)
    fixed: Members = {"choice": "fixed_packets", "fixed_packets": {"packets": trial.intended(direction)}}
    return {
        "name": name,
        "tx_rx": {
            "choice": "port",
            "port": {"tx_name": direction.sending_port, "rx_names": [direction.receiving_port]},
        },
        "packet": headers_of(frame, own_mac(sender), dut_mac, f"{trial.seed} {direction}"),
        "size": {"choice": "fixed", "fixed": frame.size},
        "rate": {"choice": "pps", "pps": stream.rate_fps},
        "duration": fixed,
        "metrics": {"enable": True},
    }


def described(stream: Stream) -> DescribedFrame:
    """The frames of a stream of one kind, plain ones too."""
    if stream.frames:
        return stream.frames[0]
    spec = stream.foreground
    assert spec is not None, "checked"
    given = (("source", stream.source_port), ("destination", stream.destination_port))
    ports = tuple((end, number_of(one, "frame")) for end, one in given if one is not None)
    stack = Stack((Header("eth"), Header(f"ipv{spec.version}"), Header("udp", ports)))
    bits: dict[str, AddressBits] = {}
    if stream.networks > 1:
        networks = Varying("random", count=stream.networks)
        bits["destination"] = AddressBits(8 * NETWORK_BYTE[spec.version], 8, networks)
    pair = (spec.source, spec.destination)
    endpoints = Endpoints(**{f"ipv{spec.version}": pair, f"bits{spec.version}": bits})  # type: ignore[arg-type]
    return build(stack, spec.size, endpoints)
