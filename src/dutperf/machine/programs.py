# SPDX-License-Identifier: Apache-2.0
"""Where the programs are that are built from ``engine/``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_program(name: str, variable: str) -> str | None:
    """Path of the program ``name``: what the environment ``variable`` says, else of this source
    tree, else on the PATH; None where there is none."""
    built = Path(__file__).parents[3] / "build" / "engine" / name
    return os.environ.get(variable) or (str(built) if built.exists() else None) or shutil.which(name)
