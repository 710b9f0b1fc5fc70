# SPDX-License-Identifier: Apache-2.0
"""Shell completion: labs and their options, directories with results, plots and frame size series.

Functions import what they complete from: every command declares completion, few complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import typer


def labs(incomplete: str) -> list[tuple[str, str]]:
    from dutperf import lab

    return [(info.name, info.summary) for info in lab.list_labs() if info.name.startswith(incomplete)]


def lab_options(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Keys of the lab's options with their help; those of all labs if no lab is named yet."""
    from dutperf import lab

    name = ctx.params.get("lab") or ctx.params.get("name")
    options = {key: text for info in lab.list_labs() if name in (None, info.name) for key, text in info.options.items()}
    return [(f"{key}=", text) for key, text in options.items() if key.startswith(incomplete)]


def results_directories(incomplete: str) -> list[str]:
    """Directories with results whose names begin with the text, and those directly inside other
    directories that do."""
    parent, name = (
        (Path(incomplete), "") if incomplete.endswith("/") else (Path(incomplete).parent, Path(incomplete).name)
    )
    matching = sorted(path for path in parent.glob("*") if path.name.startswith(name) and path.is_dir())
    return [str(found) for path in matching for found in _with_results(path)]


def frame_sizes(incomplete: str) -> list[str]:
    """The series of the RFCs."""
    from dutperf.setup.conditions import FRAME_SIZE_SERIES

    return [name for name in FRAME_SIZE_SERIES if name.startswith(incomplete)]


def figures(ctx: typer.Context, incomplete: str) -> list[str]:
    """The plots of the results in the directory on the command line."""
    from dutperf.api import results
    from dutperf.journal import JournalError

    directory = ctx.params.get("directory")
    with suppress(JournalError):
        if directory is not None:
            return [
                name
                for one in results.read(Path(directory)).measured
                for name in one.charts()
                if name.startswith(incomplete)
            ]
    return []


def _with_results(path: Path) -> Iterator[Path]:
    if _has_results(path):
        yield path
        return
    with suppress(OSError):
        yield from sorted(inner for inner in path.iterdir() if _has_results(inner))


def _has_results(path: Path) -> bool:
    from dutperf.journal import JOURNAL
    from dutperf.run.suite import SUITE

    return (path / JOURNAL).exists() or (path / SUITE).exists()
