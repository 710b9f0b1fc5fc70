# SPDX-License-Identifier: Apache-2.0
"""The seam to the machine: files below a root, programs that are run, and who runs us. A test makes
up all three."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dutperf.errors import DutperfError

SYSTEM_PATHS = "/usr/sbin:/sbin"
"""Where ``ip`` and ``modprobe`` are, which is not on every user's PATH."""
TIME_LIMIT_S = 60
"""For a program: none of them measures."""


class MachineError(DutperfError):
    """The machine is not as it has to be, or does not let itself be changed: one sentence with what
    to do."""


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    status: int
    output: str = ""
    errors: str = ""


Runner = Callable[[Sequence[str]], Done]


def run(argv: Sequence[str]) -> Done:
    """Run a program; one that is not there has the status that a shell gives it, 127."""
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:{SYSTEM_PATHS}", "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    except FileNotFoundError:
        return Done(127, errors=f"{argv[0]} is not installed")
    except subprocess.TimeoutExpired:
        return Done(124, errors=f"{argv[0]} did not end within {TIME_LIMIT_S} s")
    return Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Machine:
    """Where everything about the machine comes from, and how it is changed. Paths have no leading
    slash: they are below ``root``."""

    root: Path = Path("/")
    run: Runner = run
    user: int = field(default_factory=os.geteuid)
    release: str = field(default_factory=lambda: os.uname().release)
    """Of the kernel."""

    def read(self, path: str) -> str | None:
        """A file's text without white space around it; None where it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def count(self, path: str) -> int:
        """A file's number; 0 where there is none."""
        return int(self.read(path) or 0)

    def glob(self, pattern: str) -> list[Path]:
        """Paths below the root, sorted."""
        return sorted(self.root.glob(pattern))

    def names(self, pattern: str) -> list[str]:
        """Last parts of the paths that :meth:`glob` finds."""
        return [path.name for path in self.glob(pattern)]

    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""
        return (self.root / path).exists()

    def target(self, path: str) -> str | None:
        """The last part of what a symbolic link leads to; None where there is none, or it may not
        be read."""
        try:
            return (self.root / path).readlink().name
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        """Write to a file that is there.

        Raises:
            OSError: the kernel, or the file's mode, does not let it.
        """
        descriptor = os.open(
            self.root / path, os.O_WRONLY | os.O_TRUNC
        )  # never creates one: sysfs would call that a lack of permission
        with os.fdopen(descriptor, "w") as file:
            file.write(text)

    def kernel_has(self, option: str) -> bool | None:
        """Whether the kernel was built with ``CONFIG_option``, as a module or not; None where it
        does not tell."""
        if self._configuration is None:
            return None
        return re.search(rf"^CONFIG_{option}=[ym]$", self._configuration, re.MULTILINE) is not None

    @cached_property
    def _configuration(self) -> str | None:
        packed = self.root / "proc/config.gz"
        if packed.exists():
            return gzip.decompress(packed.read_bytes()).decode(errors="replace")
        return self.read(f"boot/config-{self.release}")
