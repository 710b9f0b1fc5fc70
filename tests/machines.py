# SPDX-License-Identifier: Apache-2.0
"""A made-up machine: sysfs and proc below a directory, ``ip`` and ``modprobe`` as functions, and a
kernel that binds drivers when it is told to.

Layout: Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-net, sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dutperf.machine.access import Done, Machine

DEVICES, DRIVERS = "sys/bus/pci/devices", "sys/bus/pci/drivers"
KERNEL = "6.1.0"


@dataclass(frozen=True)
class FakeKernel(Machine):
    """Its files react to what is written as the kernel's do; ``written`` and ``started`` keep what
    was asked of it."""

    user: int = 0
    release: str = KERNEL
    modules: frozenset[str] = frozenset({"vfio-pci", "uio_pci_generic"})
    """What modprobe finds."""
    refused_by: frozenset[str] = frozenset()
    """Drivers whose probe fails."""
    routes: list[dict[str, Any]] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    """What ``ip -json address`` shows."""
    native: dict[str, str] = field(default_factory=dict)
    """Card to the kernel's own driver of it."""
    written: list[tuple[str, str]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    stamps: dict[str, str] = field(default_factory=dict)
    """Interface to what ``ethtool -T`` says of it."""

    def write(self, path: str, text: str) -> None:
        """See :meth:`Machine.write`; then do what the kernel does."""
        super().write(path, text)
        self.written.append((path, text))
        if path.endswith("/unbind"):
            (self.root / DEVICES / text / "driver").unlink()
        elif path.endswith("/drivers_probe"):
            self._probe(text)

    def _probe(self, address: str) -> None:
        override = (self.read(f"{DEVICES}/{address}/driver_override") or "").replace("(null)", "")
        driver = override or self.native.get(address)
        link = self.root / DEVICES / address / "driver"
        if driver and not link.is_symlink() and self.exists(f"{DRIVERS}/{driver}") and driver not in self.refused_by:
            link.symlink_to(self.root / DRIVERS / driver)

    # --- building ---------------------------------------------------------------------------------

    def file(self, path: str, text: str = "") -> None:
        """Write a file that was not there before."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text + "\n")

    def driver(self, name: str) -> None:
        """A driver of the PCI bus."""
        self.file(f"{DRIVERS}/{name}/unbind")

    def card(
        self,
        address: str,
        driver: str | None = "e1000e",
        *,
        group: str | None = None,
        kind: str = "0x020000",
        **files: str,
    ) -> str:
        """A device of the PCI bus, with further ``files``."""
        place = f"{DEVICES}/{address}"
        self.file("sys/bus/pci/drivers_probe")
        usual = {"class": kind, "vendor": "0x8086", "device": "0x10d3", "numa_node": "-1", "driver_override": "(null)"}
        for name, text in {**usual, **files}.items():
            self.file(f"{place}/{name}", text)
        if driver is not None:
            self.driver(driver)
            self.native[address] = driver
            (self.root / place / "driver").symlink_to(self.root / DRIVERS / driver)
        if group is not None:
            self.in_group(address, group)
        return address

    def in_group(self, address: str, group: str) -> None:
        """The IOMMU sees the device as one of that group."""
        members = self.root / "sys/kernel/iommu_groups" / group / "devices"
        members.mkdir(parents=True, exist_ok=True)
        (members / address).symlink_to(self.root / DEVICES / address)
        (self.root / DEVICES / address / "iommu_group").symlink_to(members.parent)
        (self.root / "sys/class/iommu/dmar0").mkdir(parents=True, exist_ok=True)

    def interface(
        self,
        name: str,
        card: str | None = None,
        *,
        below: Sequence[str] = (),
        addresses: Sequence[str] = (),
        **shown: Any,
    ) -> None:
        """An interface, of a card or (``below``) on top of others."""
        place = f"sys/class/net/{name}"
        self.file(f"{place}/carrier", "1")
        self.file(f"{place}/speed", "1000")
        if card is not None:
            (self.root / place / "device").symlink_to(self.root / DEVICES / card)
            (self.root / DEVICES / card / "net" / name).mkdir(parents=True, exist_ok=True)
        for one in below:
            (self.root / place / f"lower_{one}").symlink_to(self.root / "sys/class/net" / one)
            (self.root / "sys/class/net" / one / f"upper_{name}").symlink_to(self.root / place)
        given = [
            dict(zip(("local", "prefixlen"), one.split("/"), strict=True)) | {"family": "inet", "scope": "global"}
            for one in addresses
        ]
        usual = {
            "ifname": name,
            "link_type": "ether",
            "address": "02:00:00:00:00:01",
            "flags": ["UP"],
            "addr_info": given,
        }
        self.shown.append(usual | shown)

    def programs(self, argv: Sequence[str]) -> Done:
        """``ip``, ``ethtool`` and ``modprobe``."""
        if argv[0] == "ip":
            return Done(0, json.dumps((self.routes if "-4" in argv else []) if "route" in argv else self.shown))
        if argv[0] == "ethtool":
            return Done(0, self.stamps.get(argv[2], "")) if argv[2] in self.stamps else Done(127)
        self.started.append(" ".join(argv))
        if argv[0] == "modprobe" and argv[1] not in self.modules:
            return Done(1, errors=f"modprobe: FATAL: Module {argv[1]} not found\n")
        if argv[0] == "modprobe":
            self.driver(argv[1])
        return Done(0)


def made_up(root: Path, **members: Any) -> FakeKernel:
    """A machine without anything."""
    return but(FakeKernel(root=root), **members)


def but(kernel: FakeKernel, **members: Any) -> FakeKernel:
    """The same machine with other members."""
    other: FakeKernel
    other = replace(kernel, **members, run=lambda argv: other.programs(argv))
    return other
