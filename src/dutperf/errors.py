# SPDX-License-Identifier: Apache-2.0
"""The base of all exceptions for callers, those of missing libraries and of stores, and the first error of pydantic's
validation."""

from __future__ import annotations

from importlib import import_module

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dutperf import installation


class DutperfError(Exception):
    """Base of every exception of this package."""

    is_temporary = False
    """Whether the same may succeed later, without any change by the user."""
    is_fault = False
    """Whether it is a defect, which no change by the user mends."""

    @property
    def sentence(self) -> str:
        """What happened, and at which setting where that is known."""
        return str(self)


class StoreError(DutperfError):
    """A store of results cannot be used, or a directory has no results; the text is one sentence."""


class StoreBusy(StoreError):
    """Another process writes to the store for longer than one waits."""

    is_temporary = True


class MissingLibrary(DutperfError, ImportError):
    """A library is not installed that only a part of the package needs."""


def require(library: str, extra: str, purpose: str) -> None:
    """Make sure that an optional library can be imported. Raises MissingLibrary: it is not installed; the message has
    the command that installs it."""
    try:
        import_module(library)
    except ImportError:
        raise MissingLibrary(f"{purpose} needs {library}: {installation.library(library, extra)}") from None


def first(error: ValidationError) -> ErrorDetails:
    """The first error; messages of our own validators are those of their ``ValueError``."""
    details = error.errors(include_url=False)[0]
    details["msg"] = details["msg"].removeprefix("Value error, ")
    return details
