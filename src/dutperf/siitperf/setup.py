# SPDX-License-Identifier: Apache-2.0
"""Makes the test setup and the conditions from siitperf's file, its arguments and our variables.

The source is the sender's Real address of its version. The destination is the other side's Real
address, through a translator its Virt address. siitperf identifies the DUT only by its MAC addresses.
If the file has none, ARP and NDP resolve them, for the first address of the tester's /24 or /64 or
the addresses in ``DUTPERF_GATEWAYS``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from math import ceil
from typing import Any

from dutperf.machine import pci
from dutperf.model import IPV6_HEADER_EXCESS, FieldMode, VaryingAddress, VaryingField, to_json
from dutperf.setup import configuration, host_address
from dutperf.setup.conditions import Conditions, Foreground, SingleTrial
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.setup.rate import Rate
from dutperf.siitperf import stateful
from dutperf.siitperf.arguments import Arguments, all_ipv4, connections, has_background
from dutperf.siitperf.configuration import DIRECTIONS, SIDES, InputError, Settings
from dutperf.siitperf.variables import Gateways, Ports, Variables
from dutperf.traffic.connections import LONGEST_S
from dutperf.traffic.udp_ports import destination_ports, source_ports

NAMES = {"L": "left", "R": "right"}
CORES = {"Forward": ("CPU-L-Send", "CPU-R-Recv"), "Reverse": ("CPU-R-Send", "CPU-L-Recv")}
"""Each direction's sender and receiver."""
NETWORK_BITS = {4: 24, 6: 64}
"""Prefix lengths of the tester's addresses, if the DUT's MAC address is resolved."""
HOST_BITS = {4: 32, 6: 128}
SENT_BY = {"L": "Forward", "R": "Reverse"}


def make(settings: Settings, variables: Variables, arguments: Arguments) -> Setup:
    """The test setup of a command. Raises InputError: the file, the variables and this machine do not match."""
    versions = {6} if has_background(arguments) else set[int]()
    whole = mapping(settings, ports=variables.ports or dpdk_ports(), gateways=variables.gateways, background=versions)
    engine = {"netns": variables.netns, "cores": "auto" if variables.automatic_cores else _existing_cores(settings)}
    try:
        return configuration.parse(whole | {"engine": engine}, "")
    except ConfigError as error:
        raise InputError(key_of(error.key), error.message) from None


def conditions(settings: Settings, variables: Variables, arguments: Arguments) -> Conditions:
    """The conditions of a command's trial. SIZE is that of IPv6 frames even if all traffic is IPv4."""
    model: type[SingleTrial | Latency]
    tagging: dict[str, Any]
    if "DELAY" not in arguments:
        model, tagging = SingleTrial, {}
    else:
        from dutperf.procedures.latency import Latency

        model, tagging = Latency, {"tags": arguments["TIMESTAMPS"], "tag_after_s": arguments["DELAY"]}
    seed: dict[str, Any] = {} if variables.seed is None else {"seed": variables.seed}
    return model(
        frame_sizes=(arguments["SIZE"] - (IPV6_HEADER_EXCESS if all_ipv4(arguments, settings) else 0),),
        duration_s=arguments["DURATION"],
        drain_s=arguments["TIMEOUT"] / 1000,
        learning_rest_s=variables.learning_rest_s,
        directions=directions(settings),
        foreground=Foreground(n=arguments["n"], m=arguments["m"]),
        **_preliminary(settings, arguments),
        **seed,
        **tagging,
    )


def _preliminary(settings: Settings, arguments: Arguments) -> dict[str, Any]:
    """Members of the conditions of a stateful test."""
    if not settings.stateful:
        return {}
    count = connections(arguments, settings)
    rate_fps = max(arguments["R"], ceil(count / LONGEST_S))  # :func:`preliminary.timed` sets it to R, for N frames
    return {"connections": count, "preliminary_rate": Rate(value=rate_fps, unit="fps")}


def directions(settings: Settings) -> Any:
    """The active directions, as in :class:`Conditions`; of a stateful test without any, the Initiator's."""
    active = settings.active() or settings.sending()
    return "both" if len(active) == len(DIRECTIONS) else active[0].lower()


def mapping(
    settings: Settings, *, ports: Ports | None, gateways: Gateways, background: Collection[int]
) -> dict[str, Any]:
    """Both sides in the form of our configuration file, without ports if ``ports`` is None, and what connections there
    are. ``background``: IP versions of background traffic. Raises InputError: gateways that are not used; see
    :func:`stateful.space`."""
    asked = () if ports is not None and ports[0] in configuration.MEMORY_PORTS else _asked(settings, background)
    sides = {
        NAMES[side]: _side(settings, side, gateways, [version for one, version in asked if one == side])
        for side in SIDES
    }
    used = {address for keys in sides.values() for name, address in keys.items() if name in ("gateway4", "gateway6")}
    for gateway in gateways:
        if str(gateway) not in used:
            raise InputError(
                "DUTPERF_GATEWAYS",
                f"{gateway} is not used: it is not in the network of a side without MAC-x-DUT",
            )
    if ports is not None:
        sides = {name: {"port": port} | keys for port, (name, keys) in zip(ports, sides.items(), strict=True)}
    return sides | ({"stateful": stateful.section(settings)} if settings.stateful else {})


def _asked(settings: Settings, background: Collection[int]) -> list[tuple[str, int]]:
    """The sides and IP versions to resolve the DUT's MAC address for: the file does not have it."""
    return [
        (side, version)
        for side in SIDES
        if not settings[f"MAC-{side}-DUT"]
        for version in sorted({settings[f"IP-{side}-Vers"], *background})
    ]


def key_of(place: str) -> str:
    """siitperf's name for a key of our configuration (``left.gateway_mac``) or a condition; the key itself
    if there is none."""
    name, _, key = place.partition(".")
    side = next((letter for letter, known in NAMES.items() if known == name), None)
    if side is None:
        others = {
            "engine.netns": "DUTPERF_NETNS",
            "engine.cores": "CPU-x-Send, CPU-x-Recv",
            "duration_s": "DURATION",
            "connections": "N",
        }
        return others.get(place, place)
    known = {
        "port": "DUTPERF_PORTS",
        "ipv4": f"IPv4-{side}-Real",
        "ipv6": f"IPv6-{side}-Real",
        "mac": f"MAC-{side}-Tester",
        "seen_as": f"IPvx-{side}-Virt",
        **dict.fromkeys(("gateway4", "gateway6", "gateway_mac"), f"MAC-{side}-DUT"),
    }
    return known.get(key, place)


def dpdk_ports() -> Ports:
    """DPDK's ports 0 and 1. Raises InputError: there are fewer than two."""
    found = pci.dpdk_ports()
    if len(found) < 2:
        raise InputError(
            "DUTPERF_PORTS",
            f"is not set, and DPDK has {len(found)} port(s) here, not 2: bind two network cards to vfio-pci, or set"
            " LEFT,RIGHT",
        )
    return found[0], found[1]


# --- cores ----------------------------------------------------------------------------------------


def cores(settings: Settings) -> dict[str, int]:
    """The cores of the directions that send by key, in the order in which the engine places senders and receivers.
    Raises InputError: a core is missing, or is given twice."""
    sending = settings.sending()
    keys = [key for direction in sending for key in CORES[direction]]
    if sending == ("Reverse",):
        keys.reverse()  # of two cores, the engine's second one sends in this direction
    chosen = {key: settings.required(key, "set the core, or DUTPERF_CORES=auto") for key in keys}
    for key, core in chosen.items():
        former = next(other for other, one in chosen.items() if one == core)
        if former != key:
            raise InputError(key, f"core {core} is already that of {former}; choose another, or set DUTPERF_CORES=auto")
    return chosen


def _existing_cores(settings: Settings) -> list[int]:
    here = os.sched_getaffinity(0)
    for key, core in cores(settings).items():
        if core not in here:
            raise InputError(
                key,
                f"core {core} does not exist here or is not allowed; set DUTPERF_CORES=auto to let the engine choose",
            )
    return list(cores(settings).values())


# --- a side ---------------------------------------------------------------------------------------


def _side(settings: Settings, side: str, gateways: Gateways, asked: Collection[int]) -> dict[str, Any]:
    version = settings[f"IP-{side}-Vers"]
    virtual = settings.virtual(side)
    own = {name: own for number in (4, 6) if (own := _own(settings, side, number, asked)) for name in [f"ipv{number}"]}
    keys = {
        "version": version,
        **{name: str(address) for name, address in own.items()},
        **{f"gateway{number}": str(_gateway(own[f"ipv{number}"], gateways)) for number in asked},
        "gateway_mac": settings[f"MAC-{side}-DUT"],
        "mac": settings[f"MAC-{side}-Tester"],
        "seen_as": None if virtual is None else str(settings[virtual]),
        "varying_address": _varying(settings, side),
        **({} if settings.stateful else _stateless(settings, side)),
    }
    return {name: value for name, value in keys.items() if value is not None}


def _stateless(settings: Settings, side: str) -> dict[str, Any]:
    return {
        "source_port": _port(settings, SENT_BY[side], "sport"),
        "destination_port": _port(settings, SENT_BY[side], "dport"),
        "networks": settings[f"Num-{side}-Nets"],
    }


def _own(settings: Settings, side: str, version: int, asked: Collection[int]) -> IPv4Interface | IPv6Interface | None:
    """The tester's address. siitperf has no prefix lengths; none is needed if the DUT's MAC address is
    given. An address that may not be used (of the other version, for background traffic) counts if it can
    be a host's: siitperf's own files have 0.0.0.0 and :: there."""
    address = settings[f"IPv{version}-{side}-Real"]
    used = version == settings[f"IP-{side}-Vers"] or version in asked
    if address is None or not (used or host_address.fault(address) is None):
        return None
    return ip_interface(f"{address}/{(NETWORK_BITS if version in asked else HOST_BITS)[version]}")


def _gateway(own: IPv4Interface | IPv6Interface, gateways: Gateways) -> IPv4Address | IPv6Address:
    """The DUT's address in the network of ``own``: the given one, else the first that is not the
    tester's."""
    return next(one for one in (*gateways, *_first(own)) if one.version == own.version and one in own.network)


def _first(own: IPv4Interface | IPv6Interface) -> Iterator[IPv4Address | IPv6Address]:
    yield from (address for address in (own.network[1], own.network[2]) if address != own.ip)


def _varying(settings: Settings, side: str) -> dict[str, Any] | None:
    mode = settings.mode(f"IP-{side}-var")
    if mode is FieldMode.FIXED:
        return None
    offsets = {
        f"offset{version}": offset
        for version in (4, 6)
        if (offset := settings[f"IPv{version}-{side}-offset"]) is not None
    }
    return to_json(VaryingAddress(mode=mode, min=settings[f"IP-{side}-min"], max=settings[f"IP-{side}-max"], **offsets))


def _port(settings: Settings, direction: str, field: str) -> dict[str, Any]:
    """Fixed ports are those of RFC 2544 C.2.6.4 for any range."""
    if not settings.has_range(direction, field):
        return to_json((source_ports if field == "sport" else destination_ports)(FieldMode.FIXED))
    stem = f"{DIRECTIONS[direction]}-{field}"
    mode = settings.mode(f"{DIRECTIONS[direction]}-var-{field}")
    return to_json(VaryingField(mode=mode, min=settings[f"{stem}-min"], max=settings[f"{stem}-max"]))
