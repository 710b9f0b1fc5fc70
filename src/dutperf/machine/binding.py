# SPDX-License-Identifier: Apache-2.0
"""Gives network cards to DPDK (``vfio-pci``) and back to the kernel, by ``driver_override``
(Documentation/ABI/testing/sysfs-bus-pci).

Everything is checked before anything is changed. A card with the default route is never changed,
whatever the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dutperf.machine import pci
from dutperf.machine.access import Machine, MachineError
from dutperf.machine.interfaces import in_another_namespace
from dutperf.machine.pci import DEVICES, DRIVERS, SHARED, UIO, VFIO, Function
from dutperf.machine.ports import Inventory, kernel_port, with_it
from dutperf.machine.steps import Action, Run, Step, Write

NO_IOMMU_MODE = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
OVERRIDE, PROBE = "driver_override", "sys/bus/pci/drivers_probe"


@dataclass(frozen=True)
class Consent:
    force: bool = False
    """Also a card that the kernel uses."""
    no_iommu: bool = False
    """Also a card without an IOMMU between it and the memory."""


@dataclass(frozen=True)
class Planned:
    """Steps to carry out, and remarks on cards that need none."""

    steps: tuple[Step, ...]
    remarks: tuple[str, ...]


def bind(known: Inventory, names: Sequence[str], consent: Consent) -> Planned:
    """Plan to give the cards to DPDK. ``names``: PCI addresses, or interfaces. Raises MachineError: a card cannot or
    must not be given away."""
    cards = [_card(known, name) for name in names]
    wanted = [card for card in dict.fromkeys(cards) if not card.is_handed_over]
    for card in wanted:
        _check(known, card, wanted, consent)
    remarks = tuple(
        f"{card.address} is already bound to {card.driver}: nothing to do"
        for card in dict.fromkeys(cards)
        if card.is_handed_over
    )
    return Planned((*_prepared(known.machine, wanted), *(_given(known, card) for card in wanted)), remarks)


def unbind(known: Inventory, names: Sequence[str]) -> Planned:
    """Plan to give the cards back to the kernel. Raises MachineError: a card is in use."""
    cards = list(dict.fromkeys(_card(known, name) for name in names))
    taken = [card for card in cards if card.is_handed_over or card.driver is None]
    for card in taken:
        if processes := pci.users(known.machine, card):
            raise MachineError(
                f"{card.address}: process {', '.join(processes)} has it open; end it first: the kernel would wait"
                " for it"
            )
    remarks = tuple(
        f"{card.address} already has the kernel's driver {card.driver}: nothing to do"
        for card in cards
        if card not in taken
    )
    return Planned(tuple(_returned(card) for card in taken), remarks)


def driver_for(machine: Machine, card: Function) -> str:
    """The driver that hands the card over: vfio-pci; without an IOMMU only in a mode that most
    distributions do not build, else uio_pci_generic."""
    unsafe = machine.exists(NO_IOMMU_MODE) or machine.kernel_has("VFIO_NOIOMMU") is True
    return VFIO if card.group is not None or unsafe else UIO


# --- checks ---------------------------------------------------------------------------------------


def _card(known: Inventory, name: str) -> Function:
    """The card with a PCI address in any form, or with an interface of that name."""
    address = pci.address_of(name)
    if address is not None:
        return pci.existing(known.machine, address)
    one = next((one for one in known.interfaces if one.name == name), None)
    if one is None:
        raise MachineError(
            f"{name}: is neither a PCI address (0000:01:00.0) nor an interface of this network namespace; dutperf ports"
            " lists both"
        )
    if one.card is None:
        port = None if name in known.default_route else kernel_port(known.machine, one)
        raise MachineError(
            f"{name}: is not a PCI network card, so there is nothing to"
            f" bind{f'; its port in a configuration is {port}' if port else ''}"
        )
    return pci.existing(known.machine, one.card)


def _check(known: Inventory, card: Function, wanted: Sequence[Function], consent: Consent) -> None:
    for check in (_shared, _default_route, _namespace, _used, _iommu, _group):
        reason = check(known, card, wanted, consent)
        if reason is not None:
            raise MachineError(f"{_name(known, card)}: {reason}")


Check = Callable[[Inventory, Function, Sequence[Function], Consent], str | None]


def _shared(_known: Inventory, card: Function, _wanted: Sequence[Function], _consent: Consent) -> str | None:
    if card.driver not in SHARED:
        return None
    return (
        f"DPDK's {SHARED[card.driver]} driver shares the card with the kernel's {card.driver}: leave it bound, and"
        f" write {card.address} in the configuration"
    )


def _default_route(known: Inventory, card: Function, _wanted: Sequence[Function], _consent: Consent) -> str | None:
    return (
        "carries the default route, so this machine would go offline; choose another card"
        if card.address in known.untouchable
        else None
    )


def _namespace(known: Inventory, _card: Function, _wanted: Sequence[Function], _consent: Consent) -> str | None:
    if not in_another_namespace(known.machine):
        return None
    return (
        "this network namespace does not show which interface has the default route; run the command outside of it"
        " (nsenter --target 1 --net) and outside of a container"
    )


def _used(known: Inventory, card: Function, _wanted: Sequence[Function], consent: Consent) -> str | None:
    use = known.use(card)
    return (
        None
        if use is None or consent.force
        else f"is in use by the kernel: {use}; end that first, or give --force to bind it anyway"
    )


def _iommu(known: Inventory, card: Function, _wanted: Sequence[Function], consent: Consent) -> str | None:
    if card.group is not None or consent.no_iommu:
        return None
    which = (
        "is in no IOMMU group, although the machine has an IOMMU"
        if pci.has_iommu(known.machine)
        else "this machine uses no IOMMU"
    )
    mode = "vfio's enable_unsafe_noiommu_mode" if driver_for(known.machine, card) == VFIO else UIO
    way_out = "" if pci.has_iommu(known.machine) else f"; {pci.without_iommu(known.machine)}"
    return (
        f"{which}{way_out}; or give --no-iommu to do without ({mode}): a faulty card or driver may then write to any"
        " memory"
    )


def _group(known: Inventory, card: Function, wanted: Sequence[Function], _consent: Consent) -> str | None:
    addresses = {one.address for one in wanted}
    others = [other for other in with_it(known.machine, card) if other.address not in addresses]
    if not others:
        return None
    shared = (
        f"shares IOMMU group {card.group} with {', '.join(map(_described, others))}, which would have to be bound"
        " with it"
    )
    fixed = [
        other
        for other in others
        if not other.is_network_card or other.address in known.untouchable or other.driver in SHARED
    ]
    if fixed:
        return f"{shared}, and {fixed[0].address} cannot be: put the card into another slot"
    return f"{shared}: dutperf ports bind {' '.join(sorted(addresses | {other.address for other in others}))}"


def _described(card: Function) -> str:
    return f"{card.address} ({card.driver})"


def _name(known: Inventory, card: Function) -> str:
    names = ", ".join(one.name for one in known.of_card(card.address))
    return f"{card.address} ({names})" if names else card.address


# --- steps ----------------------------------------------------------------------------------------


def _prepared(machine: Machine, wanted: Sequence[Function]) -> Iterator[Step]:
    """Load the drivers that are not loaded yet."""
    for driver in sorted({driver_for(machine, card) for card in wanted}):
        if not machine.exists(f"{DRIVERS}/{driver}"):
            yield load(driver)
    unsafe = [card for card in wanted if card.group is None and driver_for(machine, card) == VFIO]
    if unsafe and machine.read(NO_IOMMU_MODE) != "Y":
        yield Step(
            "vfio: cards may be used without an IOMMU",
            (Write(NO_IOMMU_MODE, "Y"),),
            f"echo N > /{NO_IOMMU_MODE}",
        )


def load(driver: str) -> Step:
    return Step(
        f"the kernel loads its driver {driver}",
        (Run(("modprobe", driver)),),
        f"modprobe --remove {driver}",
        lambda machine: (
            None
            if machine.exists(f"{DRIVERS}/{driver}")
            else f"modprobe {driver} succeeded, but the driver is not there"
        ),
    )


def _given(known: Inventory, card: Function) -> Step:
    place, driver = f"{DEVICES}/{card.address}", driver_for(known.machine, card)
    from_ = f"from the kernel's {card.driver} " if card.driver else ""
    clear = (Write(f"{place}/{OVERRIDE}", "\n"), Write(PROBE, card.address))
    lost = [
        f"ip address add {address} dev {one.name}" for one in known.of_card(card.address) for address in one.addresses
    ]
    return Step(
        f"{_name(known, card)} goes {from_}to {driver}",
        (Write(f"{place}/{OVERRIDE}", driver), *_released(card), Write(PROBE, card.address)),
        " && ".join([f"dutperf ports unbind {card.address}", *lost]),
        lambda machine: _not_bound_to(machine, card, driver),
        clear,
    )


def _returned(card: Function) -> Step:
    place = f"{DEVICES}/{card.address}"
    from_ = f"from {card.driver} " if card.driver else ""
    return Step(
        f"{card.address} goes {from_}back to the kernel",
        (Write(f"{place}/{OVERRIDE}", "\n"), *_released(card), Write(PROBE, card.address)),
        f"dutperf ports bind {card.address}{'' if card.group else ' --no-iommu'}",
        lambda machine: _without_driver(machine, card),
    )


def _released(card: Function) -> tuple[Action, ...]:
    return (Write(f"{DRIVERS}/{card.driver}/unbind", card.address),) if card.driver else ()


def _not_bound_to(machine: Machine, card: Function, driver: str) -> str | None:
    now = pci.find(machine, card.address)
    if now is not None and now.driver == driver:
        return None
    return (
        f"{card.address}: {driver} did not take the card (see the kernel's log, dmesg); it was given back to the kernel"
    )


def _without_driver(machine: Machine, card: Function) -> str | None:
    """The kernel probes only loaded drivers; the card's own may have to be loaded first."""
    if _has_driver(machine, card):
        return None
    kind = machine.read(f"{DEVICES}/{card.address}/modalias")
    if kind:
        machine.run(["modprobe", kind])
    return (
        None
        if _has_driver(machine, card)
        else f"{card.address}: no driver of the kernel took the card back (modprobe {kind or 'its driver'})"
    )


def _has_driver(machine: Machine, card: Function) -> bool:
    now = pci.find(machine, card.address)
    return now is not None and now.driver is not None
