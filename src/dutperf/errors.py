# SPDX-License-Identifier: Apache-2.0
"""The base of all exceptions for callers, the first error of pydantic's validation, and the directories
of a user, which may be missing."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails


class DutperfError(Exception):
    """Base of every exception of this package."""

    is_temporary = False
    """Whether the same may succeed later, without any change by the user."""


class NoHome(DutperfError):
    """This user has no home directory, and the environment names no other place."""


class StoreError(DutperfError):
    """A store of results cannot be used, or a directory has no results; the text is one sentence."""


class StoreBusy(StoreError):
    """Another process writes to the store for longer than one waits."""

    is_temporary = True


class MissingLibrary(DutperfError, ImportError):
    """A library is not installed that only a part of the package needs."""


_AFTER_HOST = re.compile(r"//(?:[^/?#@]*@)?([^/?#]*).*")
DEBIAN = {name: f"apt-get install python3-{name}" for name in ("matplotlib", "starlette", "uvicorn")}
"""How Debian 12 and 13 install an optional library; they have no package of the others."""


def require(library: str, extra: str, purpose: str) -> None:
    """Make sure that an optional library can be imported.

    Raises:
        MissingLibrary: it is not installed; the message names the extra that installs it, or the package if
            dutperf is one of Debian's.
    """
    try:
        import_module(library)
    except ImportError:
        remedy = f"pip install 'dutperf[{extra}]'"
        if "dist-packages" in Path(__file__).parts:
            remedy = DEBIAN.get(library, f"{remedy} in a virtual environment: Debian has no package of it")
        raise MissingLibrary(f"{purpose} needs {library}: {remedy}") from None


def user_directory(variable: str, usual: str) -> Path:
    """The directory for dutperf's files of this user: below that of the environment ``variable``, else below ``usual``
    in the home directory.

    Raises:
        NoHome: there is neither.
    """
    if base := os.environ.get(variable):
        return Path(base) / "dutperf"
    try:
        return Path.home() / usual / "dutperf"
    except RuntimeError:
        raise NoHome(f"this user has no home directory: set {variable} or HOME") from None


def command_line(words: Sequence[str]) -> list[str]:
    """A command line as it may be kept and shown: as text, and of a webhook's URL the host alone, because its path is
    a password to most services."""
    texts = [word.encode(errors="backslashreplace").decode() for word in words]
    return [
        _AFTER_HOST.sub(r"//\1/...", text) if before == "--webhook" or text.startswith("--webhook=") else text
        for before, text in zip(["", *texts], texts, strict=False)
    ]


def sentence_of_fault(error: BaseException) -> str:
    """What a command says of a defect; the traceback is in a file of its own, or else on standard error."""
    text = "".join([f"{command_line(sys.argv)}\n", *traceback.format_exception(error)])
    try:
        descriptor, name = tempfile.mkstemp(prefix="dutperf-fault-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        where = f"its traceback is in {name}"
    except OSError:
        print(text, file=sys.stderr)
        where = "its traceback is above"
    said = " ".join(str(error).split())
    return (
        f"a fault of dutperf or of this machine, not a result of the DUT: {type(error).__name__}: {said}; {where}:"
        " please report it"
    )


def first(error: ValidationError) -> ErrorDetails:
    """The first error; messages of our own validators are those of their ``ValueError``."""
    details = error.errors(include_url=False)[0]
    details["msg"] = details["msg"].removeprefix("Value error, ")
    return details
