# SPDX-License-Identifier: Apache-2.0
"""What the guest boots: Debian's kernel, and an initramfs of busybox, the engine, its libraries and
drivers, and a few modules.

``scripts/setup cards`` fetches the kernel, ``scripts/build cards`` builds an engine for the
processor that QEMU emulates.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dutperf.lab.guest import initramfs
from dutperf.lab.guest.shell import AGENT

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build/cards"
ENGINE = BUILT / "engine/engine/dutperf-engine"
CARD_CLOCK = BUILT / "card-clock"
SCRIPTS = Path(__file__).parent / "guest"

DRIVERS = (
    *("bus_pci", "bus_vdev", "mempool_ring", "net_af_packet", "net_e1000", "net_null", "net_ring", "net_virtio"),
    "net_vmxnet3",
)
"""Of DPDK, for the cards that QEMU emulates, and for those that the guest's kernel drives."""
MODULES = (
    "vfio-pci",
    "vfio_iommu_type1",
    "uio_pci_generic",
    "e1000",
    "e1000e",
    "igb",
    "vmxnet3",
    "virtio_pci",
    "virtio_net",
    "9p",
    "9pnet_virtio",
    "overlay",
)
"""Of the kernel; those that they depend on come with them."""
BUSYBOX = Path("/bin/busybox")


class Missing(Exception):
    """Something that the guest needs is not there; the message says what to do."""


@dataclass(frozen=True)
class Image:
    """The files that QEMU boots."""

    kernel: Path
    initramfs: Path


def build(directory: Path) -> Image:
    """The guest's files, the initramfs made anew in ``directory``.

    Raises:
        Missing: the kernel or the engine is not there.
    """
    kernel = next((BUILT / "kernel/boot").glob("vmlinuz-*"), None)
    for present, what, remedy in (
        (kernel is not None, "the guest's kernel", "scripts/setup cards"),
        (ENGINE.exists(), "the engine for the guest", "scripts/build cards"),
        (CARD_CLOCK.exists(), "a program for the guest", "scripts/build cards"),
        (BUSYBOX.exists(), "busybox-static", "scripts/setup cards"),
    ):
        if not present:
            raise Missing(f"{what} is missing: run {remedy}")
    assert kernel is not None
    root = directory / "root"
    initramfs.lay_out(root)
    _install_programs(root)
    initramfs.install_modules(root, BUILT / "kernel/lib/modules" / kernel.name.removeprefix("vmlinuz-"), MODULES)
    return Image(kernel, initramfs.pack(root, directory / "initramfs"))


def _install_programs(root: Path) -> None:
    initramfs.install_busybox(root, BUSYBOX)
    for program in (ENGINE, CARD_CLOCK):
        shutil.copy2(program, root / "usr/local/bin")
    shutil.copy2(SCRIPTS / "init", root / "init")
    for script in ("bind", "enter-host", "start-engine", "tear-out"):
        shutil.copy2(SCRIPTS / script, root / "usr/local/bin" / script)
    initramfs.write_script(root / "usr/local/bin/agent", AGENT)
    drivers = list(_drivers())
    linked = (ENGINE, CARD_CLOCK, *drivers)
    for library in {path for program in linked for path in initramfs.libraries(program)} | set(drivers):
        initramfs.copy_with_links(library, root)


def _drivers() -> Iterable[Path]:
    """DPDK's plug-ins as it finds them, links and files: two copies of one would register twice."""
    for name in DRIVERS:
        found = list(Path("/usr/lib").glob(f"*-linux-gnu/dpdk/pmds-*/librte_{name}.so.*"))
        if not found:
            raise Missing(f"DPDK's driver {name} is missing: run scripts/setup")
        yield from found
