# SPDX-License-Identifier: Apache-2.0
"""Network cards on the PCI bus in sysfs (Documentation/ABI/testing/sysfs-bus-pci,
sysfs-kernel-iommu_groups): their drivers, NUMA nodes and IOMMU groups, and the processes that use
them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dutperf.machine.access import COMMAND_LINE, Machine, MachineError
from dutperf.machine.open_files import openers

DEVICES = "sys/bus/pci/devices"
DRIVERS = "sys/bus/pci/drivers"
GROUPS = "sys/kernel/iommu_groups"
NETWORK_CLASS = "0x02"
BRIDGE_CLASS = "0x0604"
VFIO = "vfio-pci"
UIO = "uio_pci_generic"
HANDING_OVER = (VFIO, UIO, "igb_uio")
"""Kernel drivers that leave a device to DPDK."""
BESIDE_VFIO = (None, VFIO, "pci-stub")
"""Drivers that the other functions of an IOMMU group may have when one of them is opened
(Documentation/driver-api/vfio.rst)."""
SHARED = {"mlx4_core": "mlx4", "mlx5_core": "mlx5"}
"""Bifurcated drivers, which keep a card while DPDK uses it, and DPDK's drivers for them."""
NO_IOMMU_GROUP = "vfio-noiommu"
"""Name of a group that vfio creates for a card without an IOMMU."""
_ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])", re.IGNORECASE)


@dataclass(frozen=True)
class Function:
    """A function of a PCI device; a network card with two ports has two."""

    address: str
    kind: str
    """The class as the kernel writes it: ``0x020000``."""
    model: str
    """Vendor and device: ``8086:10d3``."""
    driver: str | None
    numa_node: int | None
    """None: the machine has one node, or it is unknown."""
    group: str | None
    """Number of the IOMMU group; None without an IOMMU between the card and the memory."""

    @property
    def is_network_card(self) -> bool:
        return self.kind.startswith(NETWORK_CLASS)

    @property
    def is_bridge(self) -> bool:
        """Whether it is a PCI bridge, which may keep its driver when the rest of its IOMMU group is given
        away."""
        return self.kind.startswith(BRIDGE_CLASS)

    @property
    def is_handed_over(self) -> bool:
        """Whether its present driver leaves it to DPDK."""
        return self.driver in HANDING_OVER


def address_of(text: str) -> str | None:
    """A PCI address in the kernel's form, from upper case or without its domain; None if the text is not
    one."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function}"


def find(machine: Machine, address: str) -> Function | None:
    place = f"{DEVICES}/{address}"
    kind = machine.read(f"{place}/class")
    if kind is None:
        return None
    node = int(machine.read(f"{place}/numa_node") or -1)
    ids = [(machine.read(f"{place}/{name}") or "").removeprefix("0x") for name in ("vendor", "device")]
    return Function(
        address=address,
        kind=kind,
        model=":".join(ids) if all(ids) else "",
        driver=machine.target(f"{place}/driver"),
        numa_node=node if node >= 0 else None,
        group=_group(machine, place),
    )


def network_cards(machine: Machine) -> list[Function]:
    """All network cards, by address."""
    found = (find(machine, address) for address in machine.names(f"{DEVICES}/*"))
    return [function for function in found if function is not None and function.is_network_card]


def group_members(machine: Machine, function: Function) -> list[Function]:
    """The other functions in its IOMMU group. The IOMMU cannot distinguish their memory accesses, so they
    are given away together or not at all."""
    if function.group is None:
        return []
    found = (find(machine, address) for address in machine.names(f"{GROUPS}/{function.group}/devices/*"))
    return [other for other in found if other is not None and other.address != function.address]


def users(machine: Machine, function: Function) -> list[str]:
    """The processes that have a handed-over card open, each by its id and name."""
    group = machine.target(f"{DEVICES}/{function.address}/iommu_group")
    nodes = {f"vfio/{group}", f"vfio/noiommu-{group}"} if group else set[str]()
    nodes |= set(machine.names(f"{DEVICES}/{function.address}/uio/uio*"))
    nodes |= {f"vfio/devices/{name}" for name in machine.names(f"{DEVICES}/{function.address}/vfio-dev/vfio*")}
    return list(openers(machine, {f"/dev/{node}" for node in nodes})) if nodes and function.is_handed_over else []


def dpdk_ports(root: Path = Path("/")) -> list[str]:
    """PCI addresses of the handed-over network cards, in the order of DPDK's port numbers."""
    return [card.address for card in network_cards(Machine(root)) if card.is_handed_over]


def has_iommu(machine: Machine) -> bool:
    return bool(machine.names("sys/class/iommu/*"))


def without_iommu(machine: Machine) -> str:
    """Advice for a missing IOMMU, as the end of a sentence."""
    if machine.exists("sys/firmware/acpi/tables/DMAR"):
        return f"the firmware has VT-d, but the kernel does not use it: add intel_iommu=on iommu=pt to {COMMAND_LINE}"
    if machine.exists("sys/firmware/acpi/tables/IVRS"):
        return (
            "the firmware has AMD-Vi, but the kernel does not use it: remove amd_iommu=off or iommu=off from"
            f" {COMMAND_LINE}"
        )
    return (
        "turn VT-d or AMD-Vi on in the firmware (for a virtual machine: give it an IOMMU), with Intel also add"
        f" intel_iommu=on to {COMMAND_LINE}"
    )


def existing(machine: Machine, address: str) -> Function:
    """The network card with that address. Raises MachineError: there is no such card."""
    function = find(machine, address)
    if function is None:
        raise MachineError(f"{address}: there is no such PCI device; dutperf ports lists the cards")
    if not function.is_network_card:
        raise MachineError(
            f"{address}: is not a network card (its PCI class is {function.kind}); dutperf ports lists the cards"
        )
    return function


def _group(machine: Machine, place: str) -> str | None:
    number = machine.target(f"{place}/iommu_group")
    return None if number is None or machine.read(f"{GROUPS}/{number}/name") == NO_IOMMU_GROUP else number
