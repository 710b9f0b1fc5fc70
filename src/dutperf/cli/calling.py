# SPDX-License-Identifier: Apache-2.0
"""Commands in messages and help, so that they work where they are read."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from dutperf.cli.index import COMMANDS

_COMMAND = re.compile(rf"(?<![\w./-])dutperf (?=(?:{'|'.join(COMMANDS)})\b)")


def as_called(text: str) -> str:
    """``text`` with the program as it was called in place of ``dutperf``, where the shell does not find that: in a
    source tree or a virtual environment, ``.venv/bin/dutperf``."""
    called, found = Path(sys.argv[0]), shutil.which("dutperf")
    if called.name != "dutperf" or (found is not None and Path(found).resolve() == called.resolve()):
        return text
    return _COMMAND.sub(lambda _: f"{called} ", text)
