# SPDX-License-Identifier: Apache-2.0
"""The tester's ports as the engine opens them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dutperf.model import Direction, address_range, ports_of
from dutperf.setup.configuration import LINK_TIMEOUT_S, NO_PORT, Setup, SharedPort, Side, is_interface


def with_media(setup: Setup, environment: dict[str, Any]) -> Setup:
    """``setup`` with the speed of the slower link as the tester reports it, if the configuration has
    none and both links have one."""
    used = [name for name, side in setup.sides().items() if side is not NO_PORT]
    speeds = [port.get("link_mbps", 0) for name, port in ports_of(environment).items() if name in used]
    return (
        setup
        if setup.media_mbps is not None or not speeds or not all(speeds)
        else setup.model_copy(update={"media_mbps": min(speeds)})
    )


PACKET_SOCKET = "af_packet:"


def by_packet_sockets(setup: Setup) -> Setup:
    """``setup`` with AF_PACKET for ports that are named by their interface alone: the kernel's time stamps need it."""
    alone = {
        name: side.model_copy(update={"port": f"{PACKET_SOCKET}{side.port}"})
        for name, side in setup.sides().items()
        if is_interface(side.port)
    }
    return setup.model_copy(update=alone if setup.ports is None else {"ports": {**setup.ports, **alone}})


def open_request(setup: Setup, max_frame_size: int, dut_cores: Sequence[int] = ()) -> dict[str, Any]:
    """Parameters of the engine's ``open`` (protocol/request.schema.json); ``max_frame_size`` in bytes.
    The engine does not use ``dut_cores``."""
    request = _ports_and_paths(setup)
    request |= {"memory": setup.engine.memory, "max_frame_size": max_frame_size}
    if setup.engine.cores is not None:
        request["cores"] = list(setup.engine.cores)
    if dut_cores or setup.engine.dut_cores:
        request["dut_cores"] = list(dut_cores or setup.engine.dut_cores)
    if setup.engine.queues > 1:
        request["queues"] = setup.engine.queues
    if setup.engine.flow_control != "off":
        request["flow_control"] = setup.engine.flow_control
    if setup.engine.link_timeout_s != LINK_TIMEOUT_S:
        request["link_timeout_ms"] = round(setup.engine.link_timeout_s * 1000)
    if setup.engine.offloads:
        request["offloads"] = list(setup.engine.offloads)
    return request


def _ports_and_paths(setup: Setup) -> dict[str, Any]:
    request: dict[str, Any] = {name: _port(side) for name, side in setup.sides().items()}
    if setup.ports is not None:
        request = {
            "ports": [{"name": name, **port} for name, port in request.items()],
            "paths": [_from_to(*ends) for ends in setup.path_ends().values()],
        }
    others = other_streams(setup.other_streams())
    return request | ({"other_streams": others} if others else {})


def other_streams(
    names: Iterable[Direction], also_to: Mapping[Direction, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """Streams with rates of their own, as the engine gets to know them. ``also_to``: further ports at which the frames
    of each may arrive."""
    made: list[dict[str, Any]] = [{"name": name, **_from_to(*name.ports)} for name in names]
    for one in made:
        if further := (also_to or {}).get(one["name"]):
            one["also_to"] = list(further)
    return made


def _from_to(sender: str, receiver: str) -> dict[str, str]:
    return {"from": sender, "to": receiver}


def _port(side: Side) -> dict[str, Any]:
    members = {"port": side.port, "receive_ring": side.receive_ring}
    request = {name: value for name, value in members.items() if value is not None} | _host(side)
    if isinstance(side, SharedPort):
        request["hosts"] = [_host(one) for one in side.hosts]
    return request


def _host(side: Side) -> dict[str, Any]:
    members = {
        "mac": side.mac,
        "ipv4": side.ipv4 and str(side.ipv4.ip),
        "ipv6": side.ipv6 and str(side.ipv6.ip),
        "gateway4": side.gateway4 and str(side.gateway4),
        "gateway6": side.gateway6 and str(side.gateway6),
        "gateway_mac": side.gateway_mac,
        "answers_for": _answers_for(side),
        "vlans": side.vlans and list(side.vlans),
    }
    return {name: value for name, value in members.items() if value is not None}


def _answers_for(side: Side) -> dict[str, Any] | None:
    """Addresses that do not follow from the frames that are sent: a translator changes them, and the DUT may have
    next hops of its own."""
    own = [address.ip for address in (side.ipv4, side.ipv6) if address is not None]
    moving = [address_range.varying(address, side.varying_address) for address in own if side.varying_address]
    ranges = [*map(address_range.of_network, side.answers_for), *moving]
    by_version = {f"ipv{version}": [one.request() for one in ranges if one.version == version] for version in (4, 6)}
    return {version: each for version, each in by_version.items() if each} or None
