# SPDX-License-Identifier: Apache-2.0
"""``--log-format json``: standard error as one JSON object per line, for programs.

Every line has ``time`` (ISO 8601, UTC) and ``event``: ``measurement`` and ``measured`` around each
measurement, ``trial`` for each trial that ended, ``note`` (a repetition's result, why a trial is
repeated), ``message`` (any other line of text, errors included).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

from dutperf.cli.calling import as_called

Format = Literal["text", "json"]
_form: ContextVar[Format] = ContextVar("log_format", default="text")


@contextmanager
def form(wanted: Format) -> Iterator[None]:
    """Within, messages have this format."""
    former = _form.set(wanted)
    try:
        yield
    finally:
        _form.reset(former)


def message(text: str) -> None:
    """A line for a person, on standard error; an event with ``--log-format json``. Its commands can be copied."""
    text = as_called(text)
    if _form.get() == "json":
        event("message", text=text)
    else:
        print(f"dutperf: {text}", file=sys.stderr, flush=True)


def event(name: str, **fields: Any) -> None:
    """Write one line. ``fields`` are JSON types."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": name, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)
