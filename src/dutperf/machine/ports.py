# SPDX-License-Identifier: Apache-2.0
"""Every network card and interface of the machine, its use, and its port name in a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dutperf.machine import pci
from dutperf.machine.access import Machine
from dutperf.machine.interfaces import ETHERNET, Interface, interfaces, with_default_route
from dutperf.machine.pci import BESIDE_VFIO, SHARED, Function
from dutperf.machine.timestamping import UNKNOWN, hindrance, stamps_of

MEASURED_WITH = ("veth",)
"""Kinds of virtual interfaces that a tester can use: cables between network namespaces."""


@dataclass(frozen=True)
class Port:
    """One row: an interface of a card, a card without one, or an interface without a card."""

    address: str | None
    interface: str | None
    kind: str | None
    """Kind of a virtual interface: ``veth``, ``bond``."""
    model: str | None
    """PCI vendor and device."""
    mac: str | None
    driver: str | None
    numa_node: int | None
    link: bool | None
    speed_mbps: int | None
    stamps: str | None
    """Who can time-stamp its frames, as its driver claims (:mod:`dutperf.machine.timestamping`): ``kernel, card``;
    ``-``: nobody; ``unknown``. None: it has no interface."""
    clock: str | None
    """The card's clock for that: ``/dev/ptp0``."""
    clock_hindrance: str | None
    """Why this user cannot use that clock as it is, as the end of a sentence."""
    iommu_group: str | None
    default_route: bool
    use: str | None
    """Its use by the kernel or a process; None: no visible use."""
    port: str | None
    """Its present port name in a configuration; None: it cannot be measured with."""
    dpdk: str | None
    """What DPDK needs to use the card, in words; None: it is not a card."""

    @property
    def clock_text(self) -> str:
        """The clock, and what keeps this user from it: ``/dev/ptp0, which this user cannot read: run as root``."""
        return ", ".join(filter(None, (self.clock, self.clock_hindrance)))


@dataclass(frozen=True)
class Inventory:
    """The machine's cards and interfaces."""

    machine: Machine
    cards: tuple[Function, ...]
    interfaces: tuple[Interface, ...]
    default_route: frozenset[str]
    """Names of the interfaces with the default route."""

    def of_card(self, address: str) -> list[Interface]:
        return [one for one in self.interfaces if one.card == address]

    @cached_property
    def untouchable(self) -> frozenset[str]:
        """PCI addresses of the cards with the default route, on themselves or on a virtual function."""
        carrying = [one for one in self.interfaces if one.name in self.default_route]
        return frozenset(
            address for one in carrying for address in (one.card, one.physical_function) if address is not None
        )

    def use(self, card: Function) -> str | None:
        """The use of a card, as a clause; None: no visible use."""
        if card.is_handed_over:
            processes = pci.users(self.machine, card)
            return f"process {', '.join(processes)} has it open" if processes else None
        own = self.of_card(card.address)
        uses = [use for one in own if (use := one.use()) is not None]
        if uses or own:
            return "; ".join(uses) or None
        return "its interface is in another network namespace" if self._is_elsewhere(card) else None

    def _is_elsewhere(self, card: Function) -> bool:
        """Whether its interface is in another network namespace: sysfs then has the directory of the
        device's interfaces, but does not show them."""
        place = f"{pci.DEVICES}/{card.address}"
        return any(
            self.machine.exists(f"{place}/{below}net")
            for below in ("", *(f"{name}/" for name in self.machine.names(f"{place}/virtio*")))
        )


def inventory(machine: Machine) -> Inventory:
    """Read the cards and interfaces of the machine. Raises MachineError: the interfaces cannot be listed."""
    known = interfaces(machine)
    return Inventory(machine, tuple(pci.network_cards(machine)), tuple(known), with_default_route(machine, known))


def ports(known: Inventory) -> list[Port]:
    """The cards by address, then the interfaces without a card."""
    of_cards = [port for card in known.cards for port in _of_card(known, card)]
    return of_cards + [_without_card(known, one) for one in known.interfaces if one.card is None]


def kernel_port(machine: Machine, one: Interface) -> str | None:
    """The port name of an interface that stays with the kernel: AF_XDP, which is faster, if the kernel
    has it. None: it cannot be measured with."""
    if one.link_type != ETHERNET or (one.card is None and one.kind not in (None, *MEASURED_WITH)):
        return None
    return f"{'af_packet' if machine.kernel_has('XDP_SOCKETS') is False else 'af_xdp'}:{one.name}"


def _of_card(known: Inventory, card: Function) -> Iterator[Port]:
    own: Sequence[Interface | None] = known.of_card(card.address) or [None]
    for one in own:
        carries = card.address in known.untouchable
        yield Port(
            address=card.address,
            interface=None if one is None else one.name,
            kind=None,
            model=card.model or None,
            mac=None if one is None else one.mac,
            driver=card.driver,
            numa_node=card.numa_node,
            link=None if one is None else one.carrier,
            speed_mbps=None if one is None else one.speed_mbps,
            **_stamping(known.machine, one),
            iommu_group=card.group,
            default_route=carries,
            use=known.use(card),
            port=None if carries else _port(known.machine, card, one),
            dpdk="carries the default route and is never given to DPDK" if carries else _for_dpdk(known, card),
        )


def _stamping(machine: Machine, interface: Interface | None) -> dict[str, str | None]:
    offered = None if interface is None else stamps_of(machine, interface.name)
    clock = None if offered is None else offered.clock
    return {
        "stamps": None if interface is None else UNKNOWN if offered is None else str(offered),
        "clock": clock,
        "clock_hindrance": None if clock is None else hindrance(machine, clock),
    }


def _port(machine: Machine, card: Function, interface: Interface | None) -> str | None:
    if card.is_handed_over or card.driver in SHARED:
        return card.address
    return None if interface is None else kernel_port(machine, interface)


def _without_card(known: Inventory, one: Interface) -> Port:
    carries = one.name in known.default_route
    return Port(
        address=None,
        interface=one.name,
        kind=one.kind,
        model=None,
        mac=one.mac,
        driver=one.driver,
        numa_node=one.numa_node,
        link=one.carrier,
        speed_mbps=one.speed_mbps,
        **_stamping(known.machine, one),
        iommu_group=None,
        default_route=carries,
        use=one.use(),
        port=None if carries else kernel_port(known.machine, one),
        dpdk=None,
    )


def _for_dpdk(known: Inventory, card: Function) -> str:
    if card.driver in SHARED:
        return (
            f"stays bound to {card.driver}, with which DPDK's {SHARED[card.driver]} driver shares it (rdma-core has to"
            " be installed)"
        )
    if card.is_handed_over:
        use = known.use(card)
        return f"is bound to {card.driver}, DPDK can use it" + (f"; {use}" if use else "")
    return f"for DPDK: {', '.join(_needs(known, card))}"


def _needs(known: Inventory, card: Function) -> Iterator[str]:
    if (use := known.use(card)) is not None:
        yield f"end its use by the kernel ({use})"
    if card.group is None:
        yield "enable an IOMMU (or give --no-iommu)"
    if others := with_it(known.machine, card):
        yield f"bind with it {' '.join(other.address for other in others)} (IOMMU group {card.group})"
    yield f"dutperf ports bind {card.address}"


def with_it(machine: Machine, card: Function) -> list[Function]:
    """The functions of its IOMMU group that still have a kernel driver: while there are any, nobody can
    open the card."""
    return [
        other for other in pci.group_members(machine, card) if other.driver not in BESIDE_VFIO and not other.is_bridge
    ]
