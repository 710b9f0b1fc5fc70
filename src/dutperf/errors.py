# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: the base of all exceptions that a caller may meet, and what pydantic refused, for a
person."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails


class DutperfError(Exception):
    """Base of every exception by which this package says that something cannot be done."""


def first(error: ValidationError) -> ErrorDetails:
    """The first thing that it found; the message of a validator of ours is that of its
    ``ValueError``, as it was written."""
    details = error.errors(include_url=False)[0]
    details["msg"] = details["msg"].removeprefix("Value error, ")
    return details
