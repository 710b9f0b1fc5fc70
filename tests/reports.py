# SPDX-License-Identifier: Apache-2.0
"""Reports as their tests read them."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import command_line
import documented
from dutperf.results import tables

NAMES = tuple(documented.MEASURED)
STRICT = pytest.mark.filterwarnings(
    "error:constrained_layout not applied", "error::pytest.PytestUnraisableExceptionWarning"
)


def dutperf(*arguments: str | Path) -> Result:
    """On a terminal that is wide enough."""
    return command_line.dutperf(*arguments, columns=200)


class Tables(HTMLParser):
    """The cells of a page's tables, by the label of the region that they are in."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self._label = ""
        self._cell: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("role") == "region":
            self._label = str(given["aria-label"])
            self.rows[self._label] = []
        elif tag == "tr":
            self.rows[self._label].append([])
        elif tag in ("th", "td"):
            self._cell = ""

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td") and self._cell is not None:
            self.rows[self._label][-1].append(self._cell)
            self._cell = None


def tables_of(page: str) -> dict[str, list[list[str]]]:
    parser = Tables()
    parser.feed(page)
    return parser.rows


def numbers(value: Any) -> Counter[float]:
    """Every number in it, how often."""
    if isinstance(value, dict | list):
        return sum((numbers(inner) for inner in (value.values() if isinstance(value, dict) else value)), Counter())
    return Counter([float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else [])


def cells(of: tables.Table) -> list[list[str]]:
    return [list(of.heads), *map(list, of.rows)]
