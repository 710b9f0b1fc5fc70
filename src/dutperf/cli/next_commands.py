# SPDX-License-Identifier: Apache-2.0
"""Commands that a person may type next, as they can be copied: with the name by which this program was started, and
quoted paths."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

NAME = "dutperf"
OTHER = "OTHER_DIR"
"""In place of a directory that only the person knows."""


def after_measuring(directory: Path) -> tuple[str, ...]:
    """What can be done with the results in ``directory``."""
    return command("show", directory), command("report", directory), command("compare", directory, OTHER)


def command(*words: str | Path) -> str:
    """A command line of this program."""
    return shlex.join([*_program(), *map(str, words)])


def _program() -> list[str]:
    """``dutperf`` where a shell finds this very program by its name, else as it was started: from a virtual
    environment, or by ``python -m``."""
    started = Path(sys.argv[0])
    if started.parts[-2:] == (NAME, "__main__.py"):
        return [sys.executable, "-m", NAME]
    is_elsewhere = started.name == NAME and started.resolve() != Path(shutil.which(NAME) or "").resolve()
    return [str(started) if is_elsewhere else NAME]
