# SPDX-License-Identifier: Apache-2.0
"""Files in a directory of results, which may come from anybody: what is a link there leads to files of others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def opened(path: Path) -> BinaryIO:
    """A file to be read. Raises OSError: it cannot be read, or is a link."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))


def has_links(directory: Path) -> bool:
    return any(path.is_symlink() for path in directory.rglob("*"))
