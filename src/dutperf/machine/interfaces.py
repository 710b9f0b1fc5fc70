# SPDX-License-Identifier: Apache-2.0
"""Network interfaces of this network namespace from rtnetlink (``ip -json``) and sysfs, and those with the
default route."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf import installation
from dutperf.machine import pci
from dutperf.machine.access import Machine, MachineError

CLASS = "sys/class/net"
ETHERNET = "ether"
OPEN_VSWITCH = "openvswitch"


@dataclass(frozen=True)
class Interface:
    name: str
    kind: str | None
    """Kind of a virtual interface (``veth``, ``bond``, ``vlan``); None for a device."""
    link_type: str
    """``ether``, ``loopback``, …"""
    mac: str | None
    is_up: bool
    """Whether it is administratively up, with a cable or without."""
    carrier: bool | None
    """Whether its link is up; None while the interface is down."""
    speed_mbps: int | None
    addresses: tuple[str, ...]
    """With prefix lengths; without link-local ones."""
    master: str | None
    """The bond, bridge or VRF that it belongs to."""
    below: tuple[str, ...]
    """Interfaces that carry its frames: the members of a bond, the parent of a VLAN."""
    above: tuple[str, ...]
    driver: str | None
    numa_node: int | None
    card: str | None
    """PCI address of the network card."""
    virtual_functions: int
    physical_function: str | None
    """PCI address of the card that this one is a virtual function of."""

    def use(self) -> str | None:
        """The kernel's use of it, as a clause; None: no visible use."""
        if self.master is not None:
            return f"{self.name} belongs to {self.master}"
        if self.above:
            return f"{self.name} carries {', '.join(self.above)}"
        if self.virtual_functions:
            return f"{self.name} has {self.virtual_functions} virtual functions, which would disappear"
        return f"{self.name} is up with {', '.join(self.addresses)}" if self.is_up and self.addresses else None


def interfaces(machine: Machine) -> list[Interface]:
    """All interfaces of this network namespace except the loopback. Raises MachineError: ``ip`` (iproute2) is missing
    or fails."""
    shown = [one for one in _ip(machine, "-details", "address", "show") if one.get("link_type") != "loopback"]
    return [_interface(machine, one) for one in shown]


def with_default_route(machine: Machine, known: Sequence[Interface]) -> frozenset[str]:
    """The interfaces of default routes in any table, and all interfaces that carry their frames."""
    families = ("-4", "-6") if machine.exists("proc/net/if_inet6") else ("-4",)
    routes = [
        route for family in families for route in _ip(machine, family, "route", "show", "table", "all", "default")
    ]
    devices = {hop["dev"] for route in routes for hop in (route, *route.get("nexthops", ())) if "dev" in hop}
    return _all_below(devices | _switched(devices, known), {one.name: one for one in known})


def _all_below(names: Collection[str], known: Mapping[str, Interface]) -> frozenset[str]:
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(known[name].below if name in known else ())
    return frozenset(found)


def _switched(devices: Collection[str], known: Sequence[Interface]) -> set[str]:
    """Ports of Open vSwitch that may carry the route: it does not say which one does."""
    kinds = {one.name: one.kind for one in known}
    if not any(kinds.get(device) == OPEN_VSWITCH for device in devices):
        return set()
    return {one.name for one in known if one.master is not None and kinds.get(one.master) == OPEN_VSWITCH}


def _ip(machine: Machine, *arguments: str) -> list[dict[str, Any]]:
    done = machine.run(["ip", "-json", *arguments])
    if done.status == 127:
        raise MachineError(
            f"ip, which lists the interfaces and routes, is not installed: {installation.package('iproute2')}"
        )
    try:
        if done.status:
            raise ValueError(done.errors.strip())
        return list(json.loads(done.output or "[]"))
    except ValueError as error:
        raise MachineError(
            f"ip -json {' '.join(arguments)} does not say what the interfaces are used for: {error}"
        ) from None


def _interface(machine: Machine, shown: Mapping[str, Any]) -> Interface:
    name = shown["ifname"]
    place = f"{CLASS}/{name}"
    function = _function(machine, place)
    numa_node = int(machine.read(f"{place}/device/numa_node") or -1) if function is None else function.numa_node
    card = None if function is None else function.address
    return Interface(
        name=name,
        kind=shown.get("linkinfo", {}).get("info_kind"),
        link_type=shown.get("link_type", ""),
        mac=shown.get("address"),
        is_up="UP" in shown.get("flags", ()),
        carrier={"0": False, "1": True}.get(machine.read(f"{place}/carrier") or ""),
        speed_mbps=_positive(machine.read(f"{place}/speed")),
        addresses=tuple(_addresses(shown.get("addr_info", ()))),
        master=shown.get("master"),
        below=_linked(machine, place, "lower_"),
        above=tuple(one for one in _linked(machine, place, "upper_") if one != shown.get("master")),
        driver=machine.target(f"{place}/device/driver") if function is None else function.driver,
        numa_node=None if numa_node is None or numa_node < 0 else numa_node,
        card=card,
        virtual_functions=machine.count(f"{pci.DEVICES}/{card}/sriov_numvfs"),
        physical_function=machine.target(f"{pci.DEVICES}/{card}/physfn"),
    )


def _addresses(shown: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in shown:
        if "local" in one and not (one.get("family") == "inet6" and one.get("scope") == "link"):
            yield f"{one['local']}/{one.get('prefixlen', '')}"


def _linked(machine: Machine, place: str, prefix: str) -> tuple[str, ...]:
    return tuple(name.removeprefix(prefix) for name in machine.names(f"{place}/{prefix}*"))


def _positive(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None


def _function(machine: Machine, place: str) -> pci.Function | None:
    """The network card of an interface: its device, or the parent of that (virtio). A USB adapter has no
    network card as its parent."""
    device = machine.root / place / "device"
    addresses = (
        [part for part in reversed(device.resolve().parts) if pci.address_of(part) == part] if device.exists() else []
    )
    function = pci.find(machine, addresses[0]) if addresses else None
    return function if function is not None and function.is_network_card else None


FIRST_PROCESSES = "pid:[4026531836]"
"""The namespace of processes that a machine boots with (linux/proc_ns.h)."""
FIRST_NETWORKS = ("net:[4026531833]", "net:[4026531840]")
"""Likewise, of networks; the second by kernels before 6.18."""


def in_another_namespace(machine: Machine) -> bool:
    """Whether this process is in another network namespace than the machine's first process, whose
    interfaces are then not visible. In a container, process 1 is the container's: there, only a namespace that is
    certainly the machine's first one counts as such."""
    ours, first = (_namespace(machine.root / f"proc/{process}/ns/net") for process in ("self", "1"))
    processes = _namespace(machine.root / "proc/self/ns/pid")
    if processes not in (None, FIRST_PROCESSES):
        return ours not in FIRST_NETWORKS
    return ours is not None and first is not None and ours != first


def _namespace(link: Path) -> str | None:
    try:
        return str(link.readlink())
    except OSError:
        return None
