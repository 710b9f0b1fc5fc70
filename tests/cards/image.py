# SPDX-License-Identifier: Apache-2.0
"""What the guest boots: Debian's kernel, and an initramfs of busybox, the engine, its libraries and
drivers, and a few modules.

``scripts/setup cards`` fetches the kernel, ``scripts/build cards`` builds an engine for the
processor that QEMU emulates.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build/cards"
ENGINE = BUILT / "engine/engine/dutperf-engine"
SCRIPTS = Path(__file__).parent / "guest"

DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_null", "net_ring", "net_virtio", "net_vmxnet3")
"""Of DPDK, for the cards that QEMU emulates."""
MODULES = (
    "vfio-pci",
    "vfio_iommu_type1",
    "uio_pci_generic",
    "e1000",
    "e1000e",
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
        (BUSYBOX.exists(), "busybox-static", "scripts/setup cards"),
    ):
        if not present:
            raise Missing(f"{what} is missing: run {remedy}")
    assert kernel is not None
    root = directory / "root"
    _lay_out(root)
    _install_programs(root)
    _install_modules(root, BUILT / "kernel/lib/modules" / kernel.name.removeprefix("vmlinuz-"))
    return Image(kernel, _pack(root, directory / "initramfs"))


def _lay_out(root: Path) -> None:
    """Debian's merged /usr, which the paths of libraries rely on."""
    for directory in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / directory).mkdir(parents=True)
        (root / directory).symlink_to(f"usr/{directory}")
    for directory in ("dev", "proc", "root", "run", "sys", "tmp", "usr/local/bin", "var"):
        (root / directory).mkdir(parents=True)
    (root / "var/run").symlink_to("../run")


def _install_programs(root: Path) -> None:
    shutil.copy2(BUSYBOX, root / "usr/bin/busybox")
    for applet in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (root / "usr/bin" / applet).symlink_to("busybox")
    shutil.copy2(ENGINE, root / "usr/local/bin/dutperf-engine")
    shutil.copy2(SCRIPTS / "init", root / "init")
    for script in ("agent", "bind", "enter-host", "start-engine", "tear-out"):
        shutil.copy2(SCRIPTS / script, root / "usr/local/bin" / script)
    drivers = list(_drivers())
    for library in {path for program in (ENGINE, *drivers) for path in _libraries(program)} | set(drivers):
        _copy_with_links(library, root)


def _drivers() -> Iterable[Path]:
    """DPDK's plug-ins as it finds them, links and files: two copies of one would register twice."""
    for name in DRIVERS:
        found = list(Path("/usr/lib").glob(f"*-linux-gnu/dpdk/pmds-*/librte_{name}.so.*"))
        if not found:
            raise Missing(f"DPDK's driver {name} is missing: run scripts/setup")
        yield from found


def _libraries(program: Path) -> set[Path]:
    """The libraries that the loader needs for ``program``, and the loader."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}


def _copy_with_links(path: Path, root: Path) -> None:
    """``path`` at its place below ``root``, and what it leads to where it is a symbolic link."""
    place = path.parent.resolve() / path.name
    target = root / place.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_symlink() and not target.exists():
        shutil.copy2(place, target, follow_symlinks=False)
    if place.is_symlink():
        _copy_with_links(place.parent / place.readlink(), root)


def _install_modules(root: Path, modules: Path) -> None:
    """The modules, and the tables by which ``modprobe`` finds what they depend on."""
    files = {_named(path.stem): path for path in modules.rglob("*.ko")}
    needed = {name: [files[other] for other in _dependencies(name, files)] for name in map(_named, MODULES)}
    target = root / "lib/modules" / modules.name
    target.mkdir(parents=True)
    lists = {modules / f"modules.{kind}" for kind in ("builtin", "builtin.modinfo", "order")}
    for file in lists | {files[name] for name in needed} | {file for others in needed.values() for file in others}:
        shutil.copy2(file, target)
    subprocess.run(["/usr/sbin/depmod", "--basedir", root, modules.name], check=True)


def _named(module: str) -> str:
    return module.replace("-", "_")


def _dependencies(name: str, files: dict[str, Path]) -> list[str]:
    """The modules that must be there before ``name``, the one to be loaded last first. What is no
    file is part of the kernel."""
    stated = re.search(rb"\0depends=([^\0]*)", files[name].read_bytes())
    direct = [other for other in map(_named, stated[1].decode().split(",")) if other in files] if stated else []
    all_of_them = [one for other in direct for one in (other, *_dependencies(other, files))]
    return [*reversed(dict.fromkeys(reversed(all_of_them)))]


def _pack(root: Path, archive: Path) -> Path:
    root.chmod(0o755)  # the loader of DPDK's plug-ins wants nobody else to write above them
    names = "\n".join(str(path.relative_to(root)) for path in (root, *sorted(root.rglob("*"))))
    with archive.open("wb") as file:
        subprocess.run(
            ["cpio", "--create", "--format=newc", "--quiet", "--owner=0:0"],
            cwd=root,
            input=names.encode(),
            stdout=file,
            check=True,
        )
    return archive
