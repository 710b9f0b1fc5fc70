# SPDX-License-Identifier: Apache-2.0
"""Paths of the programs built from ``engine/``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_program(name: str, variable: str) -> str | None:
    """Path of the program ``name``: from the environment ``variable``, else built in this source tree,
    else on the PATH; None if there is none."""
    built = Path(__file__).parents[3] / "build" / "engine" / name
    return os.environ.get(variable) or (str(built) if built.exists() else None) or shutil.which(name)
