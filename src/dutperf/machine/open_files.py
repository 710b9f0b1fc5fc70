# SPDX-License-Identifier: Apache-2.0
"""The processes that have a file open (proc(5), fd and fdinfo). Of other users' processes only root sees it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from dutperf.machine.access import Machine


def openers(machine: Machine, files: Collection[str], *, for_writing: bool = False) -> Iterator[str]:
    """Each by its id and name: ``815 (ptp4l)``."""
    for process in machine.glob("proc/[0-9]*"):
        opened = (descriptor.name for descriptor in _descriptors(process) if _leads_to(descriptor) in files)
        if any(not for_writing or _writes(machine, process.name, descriptor) for descriptor in opened):
            yield f"{process.name} ({machine.read(f'proc/{process.name}/comm') or 'unknown'})"


def _descriptors(process: Path) -> list[Path]:
    """None of a process that has ended meanwhile, or is another user's."""
    try:
        return list(process.glob("fd/*"))
    except OSError:
        return []


def _writes(machine: Machine, process: str, descriptor: str) -> bool:
    flags = re.search(r"^flags:\s*([0-7]+)$", machine.read(f"proc/{process}/fdinfo/{descriptor}") or "", re.MULTILINE)
    return flags is not None and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _leads_to(descriptor: Path) -> str | None:
    try:
        return str(descriptor.readlink())
    except OSError:
        return None
