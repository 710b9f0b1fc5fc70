# SPDX-License-Identifier: Apache-2.0
"""Huge pages (Documentation/admin-guide/mm/hugetlbpage.rst): what is reserved, and how to reserve more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.machine.access import COMMAND_LINE, Machine
from dutperf.machine.pci import network_cards
from dutperf.machine.steps import Run, Step, Write

SIZES_KB = {2048: "2 MB", 1048576: "1 GB"}
ENOUGH_MB = 256
"""The engine's need for ports with one queue and frames of usual size, in pages of one size."""
RESERVED_MB = 1024
"""Amount to reserve if that is missing: enough for several queues, or two engines at once."""
LEFT_SHARE = 0.5
"""Minimum share of the free memory that stays free."""
MOUNT_POINT = "dev/hugepages"
_OF_2_MB = "hugepages/hugepages-2048kB"


@dataclass(frozen=True)
class Pages:
    """Huge pages of one size."""

    size_kb: int
    reserved: int
    free: int

    @property
    def free_mb(self) -> int:
        return self.free * self.size_kb // 1024

    def __str__(self) -> str:
        return f"{SIZES_KB[self.size_kb]}: {self.reserved} reserved, {self.free} free"


def huge_pages(machine: Machine) -> list[Pages]:
    places = {kilobytes: f"sys/kernel/mm/hugepages/hugepages-{kilobytes}kB" for kilobytes in SIZES_KB}
    return [
        Pages(kilobytes, machine.count(f"{place}/nr_hugepages"), machine.count(f"{place}/free_hugepages"))
        for kilobytes, place in places.items()
    ]


def suffices(pages: list[Pages]) -> bool:
    """Whether there are enough free huge pages for the engine."""
    return any(one.free_mb >= ENOUGH_MB for one in pages)


def mount_points(machine: Machine) -> list[str]:
    return [
        line.split()[1]
        for line in (machine.read("proc/mounts") or "").splitlines()
        if line.split()[2:3] == ["hugetlbfs"]
    ]


def reserve(machine: Machine) -> Iterator[Step]:
    """Steps to reserve huge pages on the NUMA nodes of the network cards; none if there are enough, or
    too little free memory."""
    if suffices(huge_pages(machine)):
        return
    places = _places(machine)
    missing = min(RESERVED_MB, _spare_mb(machine)) // 2 // len(places)
    for place in places if missing * 2 * len(places) >= ENOUGH_MB else ():
        yield _reserved(place, machine.count(f"{place}/nr_hugepages"), missing)


def cannot_reserve(machine: Machine) -> str | None:
    """Message for too little free memory for huge pages; None: there is enough."""
    spare_mb = _spare_mb(machine)
    return (
        None
        if spare_mb >= ENOUGH_MB
        else f"{2 * spare_mb} MB of memory are free, too little to reserve {ENOUGH_MB} MB of it"
    )


def mount(machine: Machine) -> Iterator[Step]:
    """Step to mount hugetlbfs, if it is not mounted and the kernel has it. The engine does not need it;
    dpdk-testpmd and Open vSwitch do."""
    if mount_points(machine) or "hugetlbfs" not in (machine.read("proc/filesystems") or "").split():
        return
    yield Step(
        f"hugetlbfs is mounted on /{MOUNT_POINT}",
        (Run(("mkdir", "-p", f"/{MOUNT_POINT}")), Run(("mount", "-t", "hugetlbfs", "hugetlbfs", f"/{MOUNT_POINT}"))),
        f"umount /{MOUNT_POINT}",
    )


def _places(machine: Machine) -> list[str]:
    """Directories to reserve pages of 2 MB in: of each NUMA node with a network card, or of the whole
    machine."""
    nodes = machine.names("sys/devices/system/node/node[0-9]*")
    with_cards = sorted(
        {f"node{card.numa_node}" for card in network_cards(machine) if card.numa_node is not None} & set(nodes)
    )
    if len(nodes) < 2 or not with_cards:
        return [f"sys/kernel/mm/{_OF_2_MB}"]
    return [f"sys/devices/system/node/{node}/{_OF_2_MB}" for node in with_cards]


def _reserved(place: str, before: int, more: int) -> Step:
    path, wanted = f"{place}/nr_hugepages", before + more

    def fault(machine: Machine) -> str | None:
        now = machine.count(path)
        if now - before >= min(more, ENOUGH_MB // 2):
            return None
        return (
            f"only {now} of {wanted} huge pages could be reserved, memory is fragmented: add hugepages={wanted} to"
            f" {COMMAND_LINE}"
        )

    node = re.search("node[0-9]+", place)
    what = f"{more} huge pages of 2 MB are reserved{f' on {node[0]}' if node else ''} ({2 * more} MB)"
    return Step(what, (Write(path, str(wanted)),), f"echo {before} > /{path}", fault, (Write(path, str(before)),))


def _spare_mb(machine: Machine) -> int:
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", machine.read("proc/meminfo") or "", re.MULTILINE)
    return int(int(found[1]) / 1024 * (1 - LEFT_SHARE)) if found else 0
