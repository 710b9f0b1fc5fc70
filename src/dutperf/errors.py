# SPDX-License-Identifier: Apache-2.0
"""The base of all exceptions for callers, and the first error of pydantic's validation."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails


class DutperfError(Exception):
    """Base of every exception of this package."""


def first(error: ValidationError) -> ErrorDetails:
    """The first error; messages of our own validators are those of their ``ValueError``."""
    details = error.errors(include_url=False)[0]
    details["msg"] = details["msg"].removeprefix("Value error, ")
    return details
