# SPDX-License-Identifier: Apache-2.0
"""What a guest is made of: Debian's packages of the kernel, of Jool, conntrack and WireGuard, downloaded, unpacked and
built once, and kept in ``$XDG_CACHE_HOME/dutperf/guest``. Nothing is installed. Remove the directory for newer
versions."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dutperf import installation
from dutperf.lab.errors import LabError
from dutperf.user_directory import user_directory

KERNEL = "linux-image-amd64"
HEADERS = "linux-headers-amd64"
"""Meta packages: they depend on those of the current kernel."""
JOOL = ("jool-dkms", "jool-tools", "libnl-3-200", "libnl-genl-3-200")
CONNTRACK = ("conntrack", "libnetfilter-conntrack3", "libnfnetlink0", "libmnl0")
JOOL_MODULES = ("common", "nat64", "siit")
"""Directories of its modules, in the order of their dependencies."""
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "cpio": "cpio",
    "depmod": "kmod",
}
"""Programs that a guest needs, each with its Debian package."""


def cache() -> Path:
    """Where all this is kept. Raises NoHome."""
    return user_directory("XDG_CACHE_HOME", ".cache") / "guest"


@dataclass(frozen=True)
class Kernel:
    root: Path

    @property
    def image(self) -> Path:
        return next((self.root / "boot").glob("vmlinuz-*"))

    @property
    def release(self) -> str:
        """As ``uname -r`` says."""
        return self.image.name.removeprefix("vmlinuz-")

    @property
    def modules(self) -> Path:
        return next(self.root.glob(f"**/lib/modules/{self.release}/kernel")).parent


@dataclass(frozen=True)
class Jool:
    """Jool: its modules, built for a kernel, and its programs."""

    root: Path
    version: str

    @property
    def modules(self) -> list[Path]:
        return sorted(self.root.rglob("src/mod/*/*.ko"))

    def program(self, name: str) -> Path:
        """``jool`` or ``jool_siit``."""
        return self.root / "usr/bin" / name

    @property
    def libraries(self) -> list[Path]:
        return [path.parent for path in sorted(self.root.rglob("libnl-3.so.200"))]


@dataclass(frozen=True)
class Tool:
    """A program of a package that need not be installed."""

    root: Path
    path: str
    """Of the program, below."""

    @property
    def program(self) -> Path:
        return self.root / self.path

    @property
    def libraries(self) -> list[Path]:
        return sorted({path.parent for path in self.root.rglob("*.so.*")})


def conntrack() -> Tool:
    """Debian's ``conntrack``. Raises LabError: it cannot be downloaded."""
    return _tool("conntrack", CONNTRACK, "usr/sbin/conntrack")


def wireguard() -> Tool:
    """Debian's ``wg``. Raises LabError: it cannot be downloaded."""
    return _tool("wireguard-tools", ("wireguard-tools",), "usr/bin/wg")


def _tool(name: str, names: Iterable[str], path: str) -> Tool:
    with _kept(target := cache() / name) as fresh:
        if fresh is not None:
            _say(f"downloading Debian's {name}, once")
            _unpack(_download(fresh, names), fresh)
    return Tool(target, path)


def of_this_machine(program: str) -> Path:
    """A program that is installed here. Raises LabError: it is not."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        raise LabError(f"{program} is not installed")
    return Path(found).resolve()


def kernel() -> Kernel:
    """Debian's kernel. Raises LabError: it cannot be downloaded."""
    with _kept(target := cache() / "kernel") as fresh:
        if fresh is not None:
            _say("downloading Debian's kernel, once")
            _unpack(_download(fresh, [_current(KERNEL)]), fresh)
    return Kernel(target)


def jool(built_for: Kernel) -> Jool:
    """Jool, built for this kernel: about a minute and a half, once. Raises LabError: it cannot be downloaded, or
    built."""
    with _kept(root := cache() / f"jool-{built_for.release}") as fresh:
        if fresh is not None:
            _say("downloading and building Jool, once: a minute or two")
            _build(fresh, built_for)
    return Jool(root, (root / "version").read_text().strip())


def _build(root: Path, built_for: Kernel) -> None:
    headers = _current(HEADERS)
    if headers.removeprefix("linux-headers-") != built_for.release:
        raise LabError(
            f"Debian has headers for a newer kernel than the one that is kept, {built_for.release}: remove {cache()}"
        )
    packages = _download(root, [headers, *_needed(headers), *JOOL])
    _unpack(packages, root)
    version = next(path.name.split("_")[1] for path in packages if path.name.startswith("jool-dkms_"))
    tree = root / "usr/src" / headers
    for program in ("make", *re.findall(r"gcc-\d+", (tree / ".kernelvariables").read_text())):
        if shutil.which(program) is None:
            raise LabError(f"Jool is built with {program}, which is not installed: {installation.package(program)}")
    makefile = tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src", f"{root}/usr/src"))
    source = next(root.glob("usr/src/jool-*/src/mod"))
    for part in JOOL_MODULES:
        _run(["make", "-C", str(tree), f"M={source / part}", "-j2", "modules"], root, "building Jool failed")
    for unneeded in (root / "usr/src").glob("linux-*"):
        unneeded.unlink() if unneeded.is_symlink() else shutil.rmtree(unneeded)
    (root / "version").write_text(version)


def _needed(headers: str) -> list[str]:
    """What the headers' package depends on, without the compiler."""
    return [name for name in _depends(headers) if name.startswith(("linux-headers-", "linux-kbuild-"))]


def _current(meta: str) -> str:
    found = _depends(meta)
    if not found:
        raise LabError(f"apt-get knows no package {meta}: apt-get update, on a Debian system")
    return found[0]


def _depends(package: str) -> list[str]:
    shown = subprocess.run(["apt-cache", "depends", package], capture_output=True, text=True, check=False).stdout
    return re.findall(r"^ *Depends: ([\w.+-]+)$", shown, re.MULTILINE)


def _download(directory: Path, names: Iterable[str]) -> list[Path]:
    _run(
        ["apt-get", "download", "--quiet", "-o", "APT::Sandbox::User=root", *names],
        directory,
        "downloading Debian's packages failed",
    )
    return sorted(directory.glob("*.deb"))


def _unpack(packages: Iterable[Path], root: Path) -> None:
    for package in packages:
        _run(["dpkg-deb", "--extract", str(package), str(root)], root, f"unpacking {package.name} failed")
        package.unlink()


def _run(argv: list[str], directory: Path, what: str) -> None:
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise LabError(f"{what}: {lines[-1]}")


@contextmanager
def _kept(target: Path) -> Iterator[Path | None]:
    """Within, a directory to fill, which is ``target`` afterwards; None where that is there. Only one process at a
    time fills it, and what a killed one left is no part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        shutil.rmtree(draft := target.with_name(f"{target.name}.new"), ignore_errors=True)
        draft.mkdir()
        yield draft
        draft.rename(target)


def _say(text: str) -> None:
    print(f"dutperf: {text}", file=sys.stderr, flush=True)
