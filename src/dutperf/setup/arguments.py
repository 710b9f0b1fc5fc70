# SPDX-License-Identifier: Apache-2.0
"""Checks of what a program gives beside the conditions. All raise :class:`~dutperf.setup.configuration.ParameterError`,
which names the parameter and says what is expected."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dutperf.model import Direction
from dutperf.setup.configuration import ParameterError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_LONGEST_SHOWN = 60


def path_of(given: object, parameter: str) -> Path:
    """What a program gave as a path. Nothing needs to be there."""
    if not isinstance(given, str | os.PathLike):
        raise _expected("a path", given, parameter)
    try:
        Path(given).stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except ValueError:
        raise _expected("a path, which has no null characters", given, parameter) from None
    except OSError as error:  # a name that is too long, or a directory that may not be searched
        raise ParameterError(f"cannot be used: {error.strerror} (it is {_shown(given)})", parameter) from None
    return Path(given)


def whole_number(given: object, parameter: str, *, least: int, most: int) -> int:
    """A number of the range, also a library's own (NumPy)."""
    try:
        number = -1 if isinstance(given, bool) else operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if least <= number <= most:
        return number
    raise _expected(f"a whole number from {least:,} to {most:,}", given, parameter)


def seconds(given: object, parameter: str, *, most: float) -> float:
    """A time that somebody can wait."""
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= most:
        return float(given)
    raise _expected(f"a number of seconds from 0 to {most:,g}", given, parameter)


def truth_value(given: object, parameter: str) -> bool:
    """True or false, and nothing that merely counts as one."""
    if isinstance(given, bool):
        return given
    raise _expected("True or False", given, parameter)


def callback(given: _Function | None, parameter: str) -> _Function | None:
    """A function, if there is any."""
    if given is None or callable(given):
        return given
    raise _expected("a function", given, parameter)


def sequence(given: object, parameter: str) -> Sequence[Any]:
    """Several values, not a text."""
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return given
    raise _expected("a list", given, parameter)


def name(given: object, parameter: str) -> str | None:
    """A name, if there is any."""
    if given is None or isinstance(given, str):
        return given
    raise _expected("a name", given, parameter)


def mapping(given: object, parameter: str) -> Mapping[str, Any]:
    """Values by their names; None: there are none."""
    if isinstance(given, Mapping | None):
        return given or {}
    raise _expected("a mapping of names to values", given, parameter)


def direction(given: object, parameter: str) -> Direction:
    """A direction, or its name."""
    try:
        return Direction(given if isinstance(given, str) else "")
    except ValueError:
        raise _expected("forward, reverse or a path from a port to another one, as a->b", given, parameter) from None


def _expected(what: str, given: object, parameter: str) -> ParameterError:
    return ParameterError(f"should be {what} (it is {_shown(given)})", parameter)


def _shown(given: object) -> str:
    try:
        text = repr(given)
    except ValueError:  # a number of thousands of digits
        return f"a value of type {type(given).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
