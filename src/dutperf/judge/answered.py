# SPDX-License-Identifier: Apache-2.0
"""For which addresses a port of the tester answers ARP and Neighbour Discovery in a trial, beside its own.

A DUT that has no route by way of the tester's address takes the addresses of frames for hosts on its link, and asks
for each of them: for destinations where the frames leave it, for sources where they came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from dutperf.model import Trial
from dutperf.model.address_range import AddressRange, destinations, in_networks, merged, one, sources

MOST_RANGES = 1024
"""Of an IP version at one end of a path. Whoever asks for others gets no answer (:mod:`dutperf.judge.validity`)."""


def with_answers(params: dict[str, Any], trial: Trial, opened: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the engine's ``run`` with the addresses for which the ports answer. ``opened``: the
    parameters of ``open``."""
    ports = ports_of(opened)
    of_paths = params.get("paths", params)
    for direction, stream in trial.all_streams().items():
        streams = params["other_streams"] if direction.stream else of_paths
        sender, receiver = (ports.get(name, {}) for name in direction.ports)
        to = list(destinations(stream))
        translated = (in_networks(own, stream.networks) for own in _own(receiver))
        answered = {
            "from": _ranges(sources(stream), sender),
            "to": _ranges(to, receiver),
            "translated": _ranges((range_ for range_ in translated if range_ not in to), receiver),
        }
        if any(answered.values()):
            streams[direction] = streams[direction] | {
                "answers_for": {end: ranges for end, ranges in answered.items() if ranges}
            }
    return params


def ports_of(opened: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The ports of the parameters of ``open``, by name."""
    named = {port["name"]: port for port in opened.get("ports", ())}
    return named or {name: opened[name] for name in ("left", "right") if name in opened}


def _own(port: Mapping[str, Any]) -> list[Any]:
    return [ip_address(port[name]) for name in ("ipv4", "ipv6") if name in port]


def _ranges(ranges: Iterable[AddressRange], port: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """By IP version, those that a host at ``port`` may have beside its own and the further hosts'; none where nobody
    asks."""
    if not {"gateway4", "gateway6", "gateway_mac"} & set(port):
        return {}
    known = list(_known(port))
    found = merged(range_ for range_ in ranges if range_.request() not in known)
    by_version = {
        version: [range_.request() for range_ in found if range_.version == own.version][:MOST_RANGES]
        for version, own in (("ipv4" if own.version == 4 else "ipv6", own) for own in _own(port))
    }
    return {version: each for version, each in by_version.items() if each}


def _known(port: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The port's own addresses, and those for which further hosts there answer."""
    yield from (one(address).request() for address in _own(port))
    for host in port.get("hosts", ()):
        yield from (one(address).request() for address in _own(host))
        for ranges in host.get("answers_for", {}).values():
            yield from ranges
