# SPDX-License-Identifier: Apache-2.0
"""The command line by which a program was started, without its secrets, and the same for root."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

_AFTER_HOST = re.compile(r"//(?:[^/?#@]*@)?([^/?#]*).*")


def command_line(words: Sequence[str]) -> list[str]:
    """A command line as it may be kept and shown: as text, without a server's token, and of a webhook's URL the host
    alone, because its path is a password to most services."""
    texts = [word.encode(errors="backslashreplace").decode() for word in words]
    return [_kept(before, text) for before, text in zip(["", *texts], texts, strict=False)]


def _kept(before: str, text: str) -> str:
    if before == "--webhook" or text.startswith("--webhook="):
        return _AFTER_HOST.sub(r"//\1/...", text)
    if before == "--token":
        return "..."
    return "--token=..." if text.startswith("--token=") else text


def as_root() -> str:
    """What a user without privileges is to do: of the command line the same command. It has the program's whole path:
    sudo does not search a virtual environment."""
    program = Path(sys.argv[0])
    if program.name != "dutperf":
        return "run it as root"
    return f"sudo {shlex.join(command_line([str(program.absolute()), *sys.argv[1:]]))}"
