# SPDX-License-Identifier: Apache-2.0
"""The connections of siitperf's stateful tests: which combinations of ports and addresses there are, and
the ``stateful`` section of our configuration for them.

With ``Enumerate-ports`` or ``Enumerate-ips`` each frame of the preliminary phase has a combination of its
own. Without them its fields are fixed, or drawn at random by ``Fwd-var-…`` and ``IP-…-var``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dutperf.model import MOST_CONNECTIONS, ConnectionOrder, FieldMode, Opening, ResponderOrder
from dutperf.siitperf.configuration import DIRECTIONS, SIDES, InputError, Settings
from dutperf.traffic.udp_ports import destination_ports, source_ports

ORDERS = {1: ConnectionOrder.INCREASING, 2: ConnectionOrder.DECREASING, 3: ConnectionOrder.RANDOM}
RESPONDERS = (ResponderOrder.FIRST, ResponderOrder.IN_ORDER, ResponderOrder.DECREASING, ResponderOrder.RANDOM)
"""Meaning of 0 to 3 for ``Responder-tuples``."""
FIXED, RANDOM = 0, 3
_ADDRESS_KEYS = ("IP-L-var", "IP-R-var")
_NAMES = {"L": "left", "R": "right"}


@dataclass(frozen=True)
class Space:
    """The combinations."""

    source_ports: tuple[int, int]
    """First and last."""
    destination_ports: tuple[int, int]
    addresses: int
    """Pairs of source and destination addresses."""
    order: ConnectionOrder
    opening: Opening

    @property
    def size(self) -> int:
        ports = (high - low + 1 for low, high in (self.source_ports, self.destination_ports))
        return self.addresses * next(ports) * next(ports)


def prefix(settings: Settings) -> str:
    """Of the Initiator's keys: ``Fwd`` or ``Rev``."""
    return DIRECTIONS[settings.initiator_direction]


def space(settings: Settings) -> Space:
    """The combinations of a stateful test. Raises InputError: keys that contradict each other, or that the tester has
    no connections for."""
    _check_enumeration(settings)
    _check_networks(settings)
    enumerates = settings["Enumerate-ports"] or settings["Enumerate-ips"]
    found = Space(
        source_ports=_ports(settings, "sport"),
        destination_ports=_ports(settings, "dport"),
        addresses=_addresses(settings, "L") * _addresses(settings, "R"),
        order=ORDERS.get(enumerates, ConnectionOrder.RANDOM),
        opening=Opening.EACH if enumerates or not list(_varying(settings)) else Opening.RANDOM,
    )
    if found.size > MOST_CONNECTIONS:
        raise InputError(
            f"{prefix(settings)}-sport-max",
            f"the ranges of ports and addresses have {found.size:,} combinations, at most {MOST_CONNECTIONS:,} are"
            " possible: choose smaller ranges",
        )
    return found


def section(settings: Settings) -> dict[str, Any]:
    """The ``stateful`` section of our configuration."""
    found = space(settings)
    return {
        "initiator": _NAMES[settings.initiator],
        "source_ports": list(found.source_ports),
        "destination_ports": list(found.destination_ports),
        "order": str(found.order),
        "responder": str(RESPONDERS[settings["Responder-tuples"]]),
    }


def varying_keys(settings: Settings) -> tuple[str, ...]:
    """The keys by which fields of the connections vary."""
    return (*_port_keys(settings), *_ADDRESS_KEYS)


def _port_keys(settings: Settings) -> tuple[str, str]:
    return f"{prefix(settings)}-var-sport", f"{prefix(settings)}-var-dport"


def _varying(settings: Settings) -> Iterator[str]:
    return (key for key in varying_keys(settings) if settings[key] != FIXED)


def _addresses(settings: Settings, side: str) -> int:
    if settings[f"IP-{side}-var"] == FIXED:
        return 1
    return int(settings[f"IP-{side}-max"] - settings[f"IP-{side}-min"] + 1)


def _ports(settings: Settings, field: str) -> tuple[int, int]:
    stem = f"{prefix(settings)}-{field}"
    if settings["Enumerate-ports"] or settings[f"{prefix(settings)}-var-{field}"] != FIXED:
        return settings[f"{stem}-min"], settings[f"{stem}-max"]
    fixed = (source_ports if field == "sport" else destination_ports)(FieldMode.FIXED)
    return fixed.min, fixed.max


def _check_enumeration(settings: Settings) -> None:
    ports, ips = settings["Enumerate-ports"], settings["Enumerate-ips"]
    if ports and ips and ports != ips:
        raise InputError("Enumerate-ips", f"is {ips}, but Enumerate-ports is {ports}: both have to be equal, or one 0")
    for key in _ADDRESS_KEYS:
        if ports and not ips and settings[key] != FIXED:
            raise InputError(key, f"is {settings[key]}: where ports are enumerated, set Enumerate-ips too, or 0")
    for key in _port_keys(settings):
        if ips and not ports and settings[key] != FIXED:
            raise InputError(key, f"is {settings[key]}: where addresses are enumerated, set Enumerate-ports too, or 0")
    for key in varying_keys(settings):
        if not ports and not ips and settings[key] not in (FIXED, RANDOM):
            raise InputError(
                key,
                f"is {settings[key]}: without Enumerate-ports and Enumerate-ips a stateful test has fixed (0) or random"
                " (3) fields",
            )


def _check_networks(settings: Settings) -> None:
    for side in SIDES:
        if settings[f"Num-{side}-Nets"] > 1:
            raise InputError(
                f"Num-{side}-Nets", f"is {settings[f'Num-{side}-Nets']}: stateful tests go with one network only"
            )
