# SPDX-License-Identifier: Apache-2.0
"""The base of all exceptions for callers, and the first error of pydantic's validation."""

from __future__ import annotations

from importlib import import_module

from pydantic import ValidationError
from pydantic_core import ErrorDetails


class DutperfError(Exception):
    """Base of every exception of this package."""


class MissingLibrary(DutperfError, ImportError):
    """A library is not installed that only a part of the package needs."""


def require(library: str, extra: str, purpose: str) -> None:
    """Make sure that an optional library can be imported.

    Raises:
        MissingLibrary: it is not installed; the message names the extra that installs it.
    """
    try:
        import_module(library)
    except ImportError:
        raise MissingLibrary(f"{purpose} needs {library}: pip install 'dutperf[{extra}]'") from None


def first(error: ValidationError) -> ErrorDetails:
    """The first error; messages of our own validators are those of their ``ValueError``."""
    details = error.errors(include_url=False)[0]
    details["msg"] = details["msg"].removeprefix("Value error, ")
    return details
