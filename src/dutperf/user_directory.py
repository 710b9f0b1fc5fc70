# SPDX-License-Identifier: Apache-2.0
"""The directories of a user, which may be missing."""

from __future__ import annotations

import os
from pathlib import Path

from dutperf.errors import DutperfError


class NoHome(DutperfError):
    """This user has no home directory, and the environment names no other place."""


def user_directory(variable: str, usual: str) -> Path:
    """The directory for dutperf's files of this user: below that of the environment ``variable``, else below ``usual``
    in the home directory. Raises NoHome: there is neither."""
    if base := os.environ.get(variable):
        return Path(base) / "dutperf"
    try:
        return Path.home() / usual / "dutperf"
    except RuntimeError:
        raise NoHome(f"this user has no home directory: set {variable} or HOME") from None
