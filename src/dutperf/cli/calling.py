# SPDX-License-Identifier: Apache-2.0
"""Commands in messages and help, so that they work where they are read."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

from dutperf.cli.index import COMMANDS

NAME = "dutperf"
_COMMAND = re.compile(rf"(?<![\w./-])(?<!-m ){NAME} (?=(?:{'|'.join(COMMANDS)})\b)")


def as_called(text: str) -> str:
    """``text`` with the program as it was called in place of ``dutperf``, where the shell does not find that: in a
    source tree or a virtual environment ``.venv/bin/dutperf``, or ``python -m dutperf``. What is so already stays."""
    program = _program(Path(sys.argv[0]))
    return text if program == NAME else _COMMAND.sub(lambda _: f"{program} ", text)


def command(*words: str | Path) -> str:
    """A command line of this program, with quoted paths."""
    return as_called(shlex.join([NAME, *map(str, words)]))


def after_measuring(directory: Path, before: Path | None) -> tuple[str, ...]:
    """What a person may type next with the results in ``directory``; ``before``: those of an earlier run, if any."""
    compare = ("--help",) if before is None else (before, directory)
    return command("show", directory), command("report", directory), command("compare", *compare)


def _program(called: Path) -> str:
    if called.parts[-2:] == (NAME, "__main__.py"):
        return shlex.join([sys.executable, "-m", NAME])
    is_found = (found := shutil.which(NAME)) is not None and Path(found).resolve() == called.resolve()
    return shlex.quote(str(called)) if called.name == NAME and not is_found else NAME
