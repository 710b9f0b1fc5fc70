# SPDX-License-Identifier: Apache-2.0
"""Converts a siitperf.conf to a configuration file of dutperf for the same frames. Comments at its head list
what the configuration cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import yaml

from dutperf import installation
from dutperf.model import Opening
from dutperf.setup import configuration, host_address
from dutperf.setup.configuration import ConfigError
from dutperf.siitperf import setup, stateful
from dutperf.siitperf.configuration import DIRECTIONS, SIDES, STATEFUL_ONLY, InputError, Settings
from dutperf.siitperf.variables import Ports, Variables

WIDTH = 140


def text(settings: Settings, variables: Variables) -> str:
    """The text of the file. Ports and gateways come from the variables, as for the commands; cores need not exist on
    this machine. Raises InputError: the variables do not match the file, or dutperf's commands would refuse the
    configuration."""
    ports = variables.ports or _dpdk_ports()
    engine = {"netns": variables.netns, "cores": _cores(settings, variables) or "auto"}
    whole = {"engine": {name: value for name, value in engine.items() if value is not None}}
    whole |= setup.mapping(settings, ports=ports, gateways=variables.gateways, background=())
    _check(whole)
    comments = "".join(f"# {line}\n" for line in _comments(settings, variables, ports, whole))
    return f"{comments}{yaml.safe_dump(whole, sort_keys=False, width=WIDTH)}"


def _check(whole: dict[str, Any]) -> None:
    """Read it as the next command will; missing ports are for the user to enter."""
    sides = {name: {"port": f"vdev:{name}"} | whole[name] for name in setup.NAMES.values()}
    try:
        configuration.parse(whole | sides, "")
    except ConfigError as error:
        raise InputError(setup.key_of(error.key), error.message) from None


def _dpdk_ports() -> Ports | None:
    try:
        return setup.dpdk_ports()
    except InputError:
        return None


def _cores(settings: Settings, variables: Variables) -> list[int] | None:
    """None: the engine chooses, by request or because the file does not name all cores."""
    try:
        return None if variables.automatic_cores else list(setup.cores(settings).values())
    except InputError:
        return None


def _comments(settings: Settings, variables: Variables, ports: Ports | None, whole: dict[str, Any]) -> Iterator[str]:
    yield (
        "Converted by dutperf convert from a siitperf.conf. The trial of siitperf-tp, with the same frames if"
        " DUTPERF_SEED was SEED:"
    )
    yield (
        "  dutperf trial --config THIS --frame-size SIZE --rate RATE --duration DURATION --drain TIMEOUT/1000"
        f"{'' if settings.stateful else ' --foreground n:m'} --seed SEED{_options(settings)}"
    )
    if settings.stateful:
        yield from _stateful_comments(settings)
    if settings["IP-L-Vers"] == settings["IP-R-Vers"] == 4:
        yield (
            "If m = n, all traffic is IPv4 and --frame-size is SIZE - 20 (siitperf's SIZE is that of IPv6 frames, ours"
            " that of the frames sent)."
        )
    if ports is None:
        yield (
            "left.port and right.port are missing: enter the PCI addresses of DPDK's ports 0 and 1 (none were found on"
            " this machine)."
        )
    if whole["engine"]["cores"] == "auto" and not variables.automatic_cores:
        yield "CPU-x-Send and CPU-x-Recv do not name separate cores for all active roles: the engine chooses."
    yield from settings.remarks
    for side in SIDES:
        yield from _gateway_comments(side, whole[setup.NAMES[side]])
    yield from _without_counterpart(settings)


def _options(settings: Settings) -> str:
    """Options that replace keys of this file."""
    connections = " --connections N --preliminary-rate R --phase-gap (D-T)/1000-N/R" if settings.stateful else ""
    one_way = len(settings.active()) not in (0, len(DIRECTIONS))
    return connections + (f" --directions {setup.directions(settings)}" if one_way else "")


def _stateful_comments(settings: Settings) -> Iterator[str]:
    yield (
        "N opens so many connections, M has no counterpart: the Responder's table has all of them. T has none either:"
        " --drain is that of both phases."
    )
    yield (
        "Before each trial all connections of the DUT are deleted: set dut.commands.clear_connections and"
        f" count_connections ({installation.page('stateful')})."
    )
    if stateful.space(settings).opening is Opening.RANDOM:
        yield (
            "Enumerate-ports is 0: siitperf opens random combinations, possibly several times the same. dutperf opens"
            " each once."
        )
    if not settings.active():
        yield "Forward and Reverse are 0: measure the preliminary phase by dutperf establishment-rate."


def _gateway_comments(side: str, keys: dict[str, Any]) -> Iterator[str]:
    name = setup.NAMES[side]
    asked = [str(keys[key]) for key in ("gateway4", "gateway6") if key in keys]
    if asked:
        yield (
            f"MAC-{side}-DUT is missing: ARP or NDP resolves it, for {', '.join(asked)}. Check that this is the DUT's"
            " address, and check the prefix length of the tester's."
        )
    if asked and "gateway6" not in keys and "ipv6" in keys:
        yield (
            f"For background traffic (m < n) {name} also needs gateway6, the DUT's IPv6 address there, in the network"
            f" of {name}.ipv6."
        )


def _without_counterpart(settings: Settings) -> Iterator[str]:
    given = settings.given
    yield "--learning-rest 2 is siitperf's wait before the first frame."
    if "Promisc" in given:
        yield (
            f"Promisc {given['Promisc']} has no counterpart: ports are always promiscuous, and the payload identifies"
            " the test's frames."
        )
    if "MEM-Channels" in given:
        yield f"MEM-Channels {given['MEM-Channels']} has no counterpart: DPDK detects it."
    for key in ("Stateful", *STATEFUL_ONLY):
        if key in given and not settings.stateful:
            yield f"{key} {given[key]} has no counterpart: tests are stateless."
    unused = [f"{key} {given[key]}" for key in given if _is_unused(settings, key) or _is_placeholder(given[key])]
    if unused:
        yield f"Left out, without effect in the file: {', '.join(unused)}."


def _decides_ports(settings: Settings, key: str) -> bool:
    """Whether it says that the ports of a stateful test have ranges, which is in the section as them."""
    return key in stateful.varying_keys(settings) and not settings["Enumerate-ports"]


def _is_unused(settings: Settings, key: str) -> bool:
    """Whether other keys make this one ineffective."""
    words = key.split("-")
    if settings.stateful and _decides_ports(settings, key):
        return False
    if settings.stateful and words[0] in DIRECTIONS.values():
        return (
            words[0] != stateful.prefix(settings)
            or words[-1] in ("sport", "dport")
            or not settings.has_range(settings.initiator_direction, words[1])
        )
    if key.endswith("-Virt"):
        return key != settings.virtual(words[1])
    if key.endswith("-offset") or (words[0] == "IP" and words[-1] in ("min", "max")):
        return bool(settings[f"IP-{words[1]}-var"] == 0)
    if words[0] in DIRECTIONS.values() and words[-1] in ("min", "max"):
        return not any(
            settings.has_range(direction, words[1]) for direction, prefix in DIRECTIONS.items() if prefix == words[0]
        )
    if key.startswith("CPU-"):
        return not any(key in setup.CORES[direction] for direction in settings.sending())
    return False


def _is_placeholder(value: object) -> bool:
    """Whether it is an address that no host has, which stands where none is used."""
    return isinstance(value, IPv4Address | IPv6Address) and host_address.fault(value) is not None
