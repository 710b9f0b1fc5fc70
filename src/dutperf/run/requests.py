# SPDX-License-Identifier: Apache-2.0
"""Requests to a measurement that runs, through two files in its directory: ``request.json``, which a process that asks
writes as a whole and the measurement takes away, and ``answer-ID.json``, which says whether it did what was asked.

Only one request stands at a time: a newer one replaces one that was not taken.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dutperf.errors import DutperfError
from dutperf.journal import WriteError, is_being_written, journals_of, write_whole
from dutperf.procedures.bench import PlanError
from dutperf.procedures.request import Request
from dutperf.setup.configuration import ConfigError

REQUEST = "request.json"
_ANSWERS = "answer-*.json"
PATIENCE_S = 15.0
"""For an answer: a part may just be ending, and the DUT may be slow to answer ARP or NDP."""
_LOOK_S = 0.05
T = TypeVar("T")


class RequestError(DutperfError):
    """The request was not fulfilled."""


class Requests:
    """Those to the measurement in a directory, on its own side."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def forget(self) -> None:
        """Take away what an earlier process left."""
        for path in (self._directory / REQUEST, *self._directory.glob(_ANSWERS)):
            with suppress(OSError):
                path.unlink()

    def take(self, accept: Callable[[Request], T]) -> T | None:
        """What ``accept`` makes of the request that stands; None: there is none, or it was refused. ``accept`` may
        raise PlanError or ConfigError: then the process that asked is told why."""
        taken = self._directory / f".{REQUEST}"
        try:
            (self._directory / REQUEST).rename(taken)
            members = json.loads(taken.read_text(encoding="utf-8"))
            identifier = uuid.UUID(members.pop("id")).hex
        except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
            return None
        finally:
            with suppress(OSError):
                taken.unlink()
        try:
            made, refusal = accept(Request.model_validate(members)), None
        except ValidationError:
            made, refusal = None, "it is no request that this version knows"
        except (PlanError, ConfigError) as error:
            made, refusal = None, error.message
        with suppress(WriteError):
            _write(_answer(self._directory, identifier), {"error": refusal})
        return made


def ask(directory: Path, request: Request, patience_s: float = PATIENCE_S) -> None:
    """Ask the measurement that runs in ``directory``, which is that of a run or of a suite. Raises RequestError:
    nothing runs there that would take it, it was refused, or there is no answer in time."""
    of_run = _taker_in(directory)
    identifier = uuid.uuid4().hex
    path, answer = of_run / REQUEST, _answer(of_run, identifier)
    try:
        _write(path, {"id": identifier, **request.model_dump(mode="json")})
    except WriteError as error:
        raise RequestError(str(error)) from None
    until_s = time.monotonic() + patience_s
    while not answer.exists() and is_being_written(of_run) and time.monotonic() < until_s:
        time.sleep(_LOOK_S)
    if (told := _taken(answer)) is None:
        _withdraw(path, identifier)
        raise RequestError(f"{of_run} did not answer: it has ended, or is between two trials; ask again")
    if told.get("error"):
        raise RequestError(str(told["error"]))


def _taker_in(directory: Path) -> Path:
    """The directory of the measurement that takes requests."""
    from dutperf.procedures import traffic  # imported late: nothing else needs this procedure

    running = [path for path in journals_of(directory) if is_being_written(path.parent)]
    if not running:
        raise RequestError(f"nothing is being measured in {directory}")
    for path in running:
        with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
            if json.loads(file.readline()).get("procedure") == traffic.PROCEDURE.name:
                return path.parent
    raise RequestError(
        f"what is being measured in {directory} finds its rates itself: only those of dutperf {traffic.PROCEDURE.name}"
        " are given"
    )


def _answer(directory: Path, identifier: str) -> Path:
    return directory / _ANSWERS.replace("*", identifier)


def _taken(path: Path) -> dict[str, Any] | None:
    """The content of the file, which is taken away; None: there is none."""
    with suppress(OSError, ValueError):
        members = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        return dict(members)
    return None


def _withdraw(path: Path, identifier: str) -> None:
    """Take the request away if it still stands."""
    with suppress(OSError, ValueError):
        if json.loads(path.read_text(encoding="utf-8")).get("id") == identifier:
            path.unlink()


def _write(path: Path, members: dict[str, Any]) -> None:
    write_whole(path, json.dumps(members), synced=False)
