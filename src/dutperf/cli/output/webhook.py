# SPDX-License-Identifier: Apache-2.0
"""Tells a web server when a run or a suite has ended, however it ended."""

from __future__ import annotations

import json
import platform
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dutperf.api import results
from dutperf.cli.errors import say
from dutperf.errors import DutperfError
from dutperf.setup.configuration import ConfigError

TIMEOUT_S = 10.0


@contextmanager
def at_end(url: str, directory: Path) -> Iterator[None]:
    """Posts what is in ``directory`` at the end, as JSON. A server that does not take it is named, and changes nothing.

    Raises:
        ConfigError: no URL of the web.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url} is no URL such as https://ci.example/hook", "--webhook")
    try:
        yield
    finally:
        _post(url, ended(directory, sys.exc_info()[1]))


def ended(directory: Path, error: BaseException | None) -> dict[str, Any]:
    """What is told: JSON types."""
    outcome = "completed" if error is None else "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    return {
        "event": "ended",
        "outcome": outcome,
        "message": "" if error is None else str(error),
        "host": platform.node(),
        "directory": str(directory.resolve()),
        "measurements": _measurements(directory),
    }


def _measurements(directory: Path) -> list[dict[str, Any]]:
    try:
        found = results.read(directory).measured
    except DutperfError:
        return []
    return [
        {
            "measurement": one.name,
            "procedure": None if one.summary is None else one.summary.procedure,
            "complete": one.is_complete,
            "without_number": 0 if one.summary is None else len(one.summary.without_number()),
        }
        for one in found
    ]


def _post(url: str, members: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "dutperf"}
    request = urllib.request.Request(url, json.dumps(members).encode(), headers)  # http(s) only, checked
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            pass
    except (OSError, ValueError) as error:  # urllib's errors are among them
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        say(f"the webhook did not take the end of the run: {reason}")
