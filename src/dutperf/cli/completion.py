# SPDX-License-Identifier: Apache-2.0
"""What the shell offers when a person presses the tabulator key: labs and their options,
directories with results, parts, plots and series."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import typer

from dutperf import lab
from dutperf.api import results
from dutperf.journal import JOURNAL, JournalError
from dutperf.run.suite import SUITE
from dutperf.setup.conditions import FRAME_SIZE_SERIES


def labs(incomplete: str) -> list[tuple[str, str]]:
    """Names of labs, each with what it is."""
    return [(info.name, info.summary) for info in lab.list_labs() if info.name.startswith(incomplete)]


def lab_options(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Keys of the lab's options, of all labs where it is not known which one; each with what it
    does."""
    name = ctx.params.get("lab") or ctx.params.get("name")
    known = {key: text for info in lab.list_labs() if name in (None, info.name) for key, text in info.options.items()}
    return [(f"{key}=", text) for key, text in known.items() if key.startswith(incomplete)]


def results_directories(incomplete: str) -> list[str]:
    """Directories with the results of a run or a suite: those that begin so, and those right inside
    of others that do."""
    parent, name = (
        (Path(incomplete), "") if incomplete.endswith("/") else (Path(incomplete).parent, Path(incomplete).name)
    )
    begun = sorted(path for path in parent.glob("*") if path.name.startswith(name) and path.is_dir())
    return [str(found) for path in begun for found in _with_results(path)]


def frame_sizes(incomplete: str) -> list[str]:
    """The series of the RFCs."""
    return [name for name in FRAME_SIZE_SERIES if name.startswith(incomplete)]


def figures(ctx: typer.Context, incomplete: str) -> list[str]:
    """The plots of the results that were named."""
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
    return (path / JOURNAL).exists() or (path / SUITE).exists()
