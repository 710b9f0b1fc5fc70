# SPDX-License-Identifier: Apache-2.0
"""How this copy of dutperf was installed: the commands that install what is missing, which work there as they stand,
and where its documents are."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
DEBIAN = {"matplotlib": "python3-matplotlib", "starlette": "python3-starlette", "uvicorn": "python3-uvicorn"} | {
    "buildbot": "buildbot",
    "cryptography": "python3-cryptography",
}
"""Debian 12's and 13's packages of optional libraries; they have none of the others."""
VENV = "~/dutperf-venv"
DEBIAN_DOCS = "/usr/share/doc/dutperf"


def source_tree() -> Path | None:
    """The root of the source tree in which the package is; None: it is installed."""
    root = HERE.parents[1]
    return root if (root / "engine" / "meson.build").exists() and (root / "Makefile").exists() else None


def is_debian_package() -> bool:
    """Whether it is installed by Debian's package manager, whose Python packages pip may not change."""
    return HERE.is_relative_to("/usr/lib")


def engine() -> str:
    """The command that installs or builds the engine and the reference DUT."""
    root = source_tree()
    if root is not None:
        return f"make -C {shlex.quote(str(root))} build"
    if is_debian_package():
        return "apt-get install ./dutperf-engine_*.deb"
    return f"{_pip()} --force-reinstall build/wheel/dutperf-*.whl, which `make wheel` builds with the engine inside"


def library(name: str, extra: str) -> str:
    """The command that installs an optional library, which the extra of pyproject.toml names too."""
    root = source_tree()
    if root is not None:
        return f"{_pip()} --editable {shlex.quote(f'{root}[{extra}]')}"
    if not is_debian_package():
        return f"{_pip()} 'dutperf[{extra}]'"
    if name in DEBIAN:
        return package(DEBIAN[name])
    made = f"python3 -m venv --system-site-packages {VENV} && {VENV}/bin/pip install {name}"
    return f"{made}, then {VENV}/bin/python -m dutperf (Debian has no package of it)"


def package(*names: str) -> str:
    """The command that installs packages of Debian; elsewhere what is to be installed."""
    wanted = " ".join(names)
    return f"apt-get install {wanted}" if shutil.which("apt-get") else f"install what Debian calls {wanted}"


def page(name: str) -> str:
    """Where the page ``name`` of docs/ is; a wheel has none."""
    root = source_tree()
    if root is not None:
        return f"{root}/docs/{name}.md"
    return f"{DEBIAN_DOCS}/{name}.md" if is_debian_package() else f"docs/{name}.md of the source tree"


def _pip() -> str:
    return f"{shlex.quote(sys.executable)} -m pip install"
