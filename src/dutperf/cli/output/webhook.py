# SPDX-License-Identifier: Apache-2.0
"""Tells a web server when a run or a suite has ended, however it ended."""

from __future__ import annotations

import json
import platform
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
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
    Raises ConfigError: no URL of the web."""
    if not _is_of_the_web(url):
        raise ConfigError(f"{url} is no URL such as https://ci.example/hook", "--webhook")
    try:
        yield
    finally:
        _post(url, ended(directory, sys.exc_info()[1]))


def _is_of_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # half an IPv6 address
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


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
    except (DutperfError, OSError, ValueError):
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
    """In a thread of its own: a server that answers a byte at a time must not keep the command."""
    told = ["it did not answer in time"]
    posting = threading.Thread(target=lambda: told.append(_refusal(url, members)), daemon=True)
    posting.start()
    posting.join(TIMEOUT_S)
    if told[-1]:
        say(f"the webhook did not take the end of the run: {told[-1]}")


def _refusal(url: str, members: dict[str, Any]) -> str:
    """Why the server did not take it; empty: it did."""
    headers = {"Content-Type": "application/json", "User-Agent": "dutperf"}
    request = urllib.request.Request(url, json.dumps(members).encode(), headers)  # http(s) only, checked
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            return ""
    except (OSError, ValueError, HTTPException) as error:  # urllib's errors are OSErrors; the last: it spoke no HTTP
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return str(reason) or type(error).__name__
