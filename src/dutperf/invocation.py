# SPDX-License-Identifier: Apache-2.0
"""The command line by which a program was started, without its secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence

_AFTER_HOST = re.compile(r"//(?:[^/?#@]*@)?([^/?#]*).*")


def command_line(words: Sequence[str]) -> list[str]:
    """A command line as it may be kept and shown: as text, and of a webhook's URL the host alone, because its path is
    a password to most services."""
    texts = [word.encode(errors="backslashreplace").decode() for word in words]
    return [
        _AFTER_HOST.sub(r"//\1/...", text) if before == "--webhook" or text.startswith("--webhook=") else text
        for before, text in zip(["", *texts], texts, strict=False)
    ]
