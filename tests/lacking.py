# SPDX-License-Identifier: Apache-2.0
"""Packages for want of which tests are skipped: their reasons are ``needs Debian's NAME, NAME`` or ``needs Python's
NAME``."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NEEDS = re.compile(r"needs (Debian|Python)'s (\S.*)")
_COMMANDS = {"Debian": "apt-get install", "Python": ".venv/bin/pip install --editable"}


def sentence(reasons: Iterable[str]) -> str:
    """How many tests were skipped for want of which packages, and the command that installs these; empty where none
    was. ``reasons``: of all tests that were skipped."""
    found = [match for reason in reasons if (match := _NEEDS.search(reason))]
    wanted: dict[str, set[str]] = {}
    for match in found:
        wanted.setdefault(match[1], set()).update(match[2].split(", "))
    commands = [f"{_COMMANDS[kind]} {' '.join(sorted(wanted[kind]))}" for kind in _COMMANDS if kind in wanted]
    tests = "1 test was" if len(found) == 1 else f"{len(found)} tests were"
    return f"{tests} skipped for want of packages; they run after: {' && '.join(commands)}" if found else ""
