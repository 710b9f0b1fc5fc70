# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a configuration, a condition or an option."""

from __future__ import annotations

from dutperf.errors import DutperfError
from dutperf.setup.yaml_text import Location


class ConfigError(DutperfError):
    """The configuration, or an option, cannot be used. ``key`` is the key's path (``left.ipv6``) or
    the option of a command (``--out``)."""

    def __init__(self, message: str, key: str, *, origin: str = "", line: int | None = None) -> None:
        place = origin + (f", line {line}" if origin and line else "")
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.message = message
        self.key = key
        self.origin = origin


class ParameterError(ConfigError):
    """A condition, or the source of the setup, cannot be used. ``key`` is the parameter's name in the
    Python interface (``frame_sizes``); empty: several contradict each other. The command line shows
    its option instead, for names in backticks in the message too (:mod:`dutperf.cli.options`)."""


class Invalid(Exception):
    def __init__(self, location: Location, message: str) -> None:
        self.location = location
        self.message = message
