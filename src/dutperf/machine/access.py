# SPDX-License-Identifier: Apache-2.0
"""The seam to the machine: files below a root directory, programs, and the user. Tests replace all
three."""

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
"""Directories of ``ip`` and ``modprobe``, which are not on every user's PATH."""
COMMAND_LINE = (
    "the kernel's command line (Debian: GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub) and reboot"
)
"""The end of advice that begins with what to add."""
TIME_LIMIT_S = 60
"""Time limit for a program: none of them measures."""


class MachineError(DutperfError):
    """The machine does not meet a requirement, or cannot be changed: one sentence with a remedy."""


@dataclass(frozen=True)
class Done:
    """Exit status and output of a program."""

    status: int
    output: str = ""
    errors: str = ""


Runner = Callable[[Sequence[str]], Done]


def run(argv: Sequence[str]) -> Done:
    """Run a program; a missing one has the exit status 127, as in a shell."""
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:{SYSTEM_PATHS}", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, env=environment, capture_output=True, errors="replace", timeout=TIME_LIMIT_S, check=False
        )
    except (FileNotFoundError, PermissionError):  # the latter also where a directory of PATH is closed
        return Done(127, errors=f"{argv[0]} is not installed")
    except subprocess.TimeoutExpired:
        return Done(124, errors=f"{argv[0]} did not end within {TIME_LIMIT_S} s")
    return Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Machine:
    """Reads and changes the machine. Paths have no leading slash: they are below ``root``."""

    root: Path = Path("/")
    run: Runner = run
    user: int = field(default_factory=os.geteuid)
    release: str = field(default_factory=lambda: os.uname().release)

    def read(self, path: str) -> str | None:
        """A file's text, stripped; None if it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def count(self, path: str) -> int:
        """The number in a file; 0 if there is none."""
        return int(self.read(path) or 0)

    def glob(self, pattern: str) -> list[Path]:
        """Paths below the root, sorted."""
        return sorted(self.root.glob(pattern))

    def names(self, pattern: str) -> list[str]:
        """Names of the files that :meth:`glob` finds."""
        return [path.name for path in self.glob(pattern)]

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def is_readable(self, path: str) -> bool:
        return os.access(self.root / path, os.R_OK)

    def target(self, path: str) -> str | None:
        """Name of a symbolic link's target; None if there is none, or it cannot be read."""
        try:
            return (self.root / path).readlink().name
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        """Write to an existing file. Raises OSError: an error of the kernel, or no permission."""
        # no O_CREAT: sysfs would report a missing file as a missing permission
        descriptor = os.open(self.root / path, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)

    def kernel_has(self, option: str) -> bool | None:
        """Whether the kernel was built with ``CONFIG_option``, as a module or built in; None if
        unknown."""
        if self._configuration is None:
            return None
        return re.search(rf"^CONFIG_{option}=[ym]$", self._configuration, re.MULTILINE) is not None

    @cached_property
    def _configuration(self) -> str | None:
        packed = self.root / "proc/config.gz"
        if packed.exists():
            return gzip.decompress(packed.read_bytes()).decode(errors="replace")
        return self.read(f"boot/config-{self.release}")
