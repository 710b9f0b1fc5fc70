# SPDX-License-Identifier: Apache-2.0
"""Building an initramfs: busybox, programs with their libraries, and kernel modules with what they depend on."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from dutperf.lab.errors import LabError
from dutperf.spelling import with_and


def lay_out(root: Path) -> None:
    """Debian's merged /usr, which the paths of libraries rely on."""
    for directory in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / directory).mkdir(parents=True)
        (root / directory).symlink_to(f"usr/{directory}")
    for directory in ("dev", "proc", "root", "run", "sys", "tmp", "usr/local/bin", "var"):
        (root / directory).mkdir(parents=True)
    (root / "var/run").symlink_to("../run")


def install_busybox(root: Path, busybox: Path) -> None:
    """Busybox, the libraries that one needs which is not static, and links of its applets."""
    shutil.copy2(busybox, root / "usr/bin/busybox")
    for library in libraries(busybox):
        copy_with_links(library, root)
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (root / "usr/bin" / applet).symlink_to("busybox")


def write_script(path: Path, text: str) -> None:
    """An executable file."""
    path.write_text(text)
    path.chmod(0o755)


def libraries(program: Path, places: Sequence[Path] = ()) -> set[Path]:
    """The libraries that the loader needs for ``program``, and the loader; ``places``: where else they may be. A static
    program needs none."""
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, places))} if places else None
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, env=environment).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}


def copy_with_links(path: Path, root: Path, place: Path | None = None) -> None:
    """``path`` at its place below ``root``, or in the directory ``place`` there, and what it leads to where it is a
    symbolic link."""
    where = path.parent.resolve() if place is None else place
    target = root / (where / path.name).relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_symlink() and not target.exists():
        shutil.copy2(path, target, follow_symlinks=False)
    if path.is_symlink():
        copy_with_links(path.parent / path.readlink(), root, place)


def install_modules(root: Path, modules: Path, names: Iterable[str], more: Iterable[Path] = ()) -> None:
    """The named modules of ``modules``, a kernel's directory, with those that they depend on, and the tables by which
    ``modprobe`` finds these; ``more``: files of further modules. Raises LabError if there is no module of a name."""
    others = {_named(path): path for path in more}
    files = {_named(path): path for path in modules.rglob("*.ko*")} | others
    if missing := {*map(_spelled, names)} - files.keys():
        raise LabError(f"{modules} has no module {with_and(sorted(missing))}")
    wanted = {*map(_spelled, names), *others}
    needed = {files[one] for name in wanted for one in (name, *_dependencies(name, files))}
    target = root / "lib/modules" / modules.name
    target.mkdir(parents=True)
    lists = {modules / f"modules.{kind}" for kind in ("builtin", "builtin.modinfo", "order")}
    for file in lists:
        shutil.copy2(file, target)
    for file in needed:
        (target / f"{file.name.partition('.ko')[0]}.ko").write_bytes(_read_module(file))
    depmod = shutil.which("depmod") or "/usr/sbin/depmod"
    subprocess.run([depmod, "--basedir", root, modules.name], check=True)


def pack(root: Path, archive: Path) -> Path:
    """All below ``root`` as a file that a kernel boots; returns it."""
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


def _named(file: Path) -> str:
    return _spelled(file.name.partition(".ko")[0])


def _spelled(module: str) -> str:
    return module.replace("-", "_")


def _read_module(file: Path) -> bytes:
    """What the kernel loads: distributions compress it, and the guest's ``modprobe`` may not know how."""
    match file.suffix:
        case ".xz":
            return lzma.decompress(file.read_bytes())
        case ".gz":
            return gzip.decompress(file.read_bytes())
        case ".zst":
            return subprocess.run(["zstd", "-dcq", file], capture_output=True, check=True).stdout
        case _:
            return file.read_bytes()


def _dependencies(name: str, files: dict[str, Path]) -> list[str]:
    """The modules that must be there before ``name``, the one to be loaded last first. What is no
    file is part of the kernel."""
    stated = re.search(rb"\0depends=([^\0]*)", _read_module(files[name]))
    direct = [other for other in map(_spelled, stated[1].decode().split(",")) if other in files] if stated else []
    all_of_them = [one for other in direct for one in (other, *_dependencies(other, files))]
    return [*reversed(dict.fromkeys(reversed(all_of_them)))]
