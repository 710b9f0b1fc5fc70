# SPDX-License-Identifier: Apache-2.0
"""Paths of the programs built from ``engine/``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

BUILT_IN = "built in"
"""In the version of an engine that has DPDK's drivers inside and loads none of the system's."""


def find_program(name: str, variable: str) -> str | None:
    """Path of the program ``name``: from the environment ``variable``, else built in this source tree,
    else in this package (a wheel), else on the PATH; None if there is none."""
    package = Path(__file__).parents[1]
    here = (package.parents[1] / "build" / "engine" / name, package / "engine" / "bin" / name)
    return os.environ.get(variable) or next((str(path) for path in here if path.exists()), None) or shutil.which(name)
