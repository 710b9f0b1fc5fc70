# SPDX-License-Identifier: Apache-2.0
"""Pages and files from templates: one set of rules for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(templates: Path, *, escape: bool) -> Environment:
    """Renders the templates of a directory. A missing name is an error. ``escape``: values are escaped for HTML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # imported late: it is slow to import

    return Environment(
        loader=FileSystemLoader(templates),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not escape,
    )
