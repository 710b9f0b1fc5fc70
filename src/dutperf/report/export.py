# SPDX-License-Identifier: Apache-2.0
"""The tables of a summary as files: CSV and Parquet with every figure for programs, LaTeX and
Markdown for a person.

Libraries are imported where they are needed, so a measurement does not wait for them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf import journal
from dutperf.errors import require
from dutperf.results.tables import Record, Table

if TYPE_CHECKING:
    import pyarrow


class Format(StrEnum):
    """File formats by their suffix."""

    CSV = "csv"
    PARQUET = "parquet"
    LATEX = "tex"
    MARKDOWN = "md"


RECORDS: dict[Format, Callable[[Sequence[Record]], bytes]] = {
    Format.CSV: lambda records: _csv(records).encode(),
    Format.PARQUET: lambda records: _parquet(records),
}
TABLES: dict[Format, Callable[[Table], bytes]] = {
    Format.LATEX: lambda table: _latex(table).encode(),
    Format.MARKDOWN: lambda table: _markdown(table).encode(),
}


def write(path: Path, content: bytes) -> None:
    """Write a file that is derived from journals, and make its directory where it is missing. Raises WriteError: it
    cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise journal.WriteError(f"cannot write {path}: {error.strerror}") from error
    journal.write_whole(path, content)


def _csv(records: Sequence[Record]) -> str:
    """A cell with a list of values separates them by semicolons; missing values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(records[0] if records else [])
    writer.writerows([_csv_cell(value) for value in record.values()] for record in records)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    return ";".join("" if entry is None else str(entry) for entry in value) if isinstance(value, list) else value


def arrow(records: Sequence[Record]) -> pyarrow.Table:
    """The records as a table in memory, each column with one type, for Parquet and for the data
    frames of other libraries. Raises MissingLibrary where pyarrow is not installed."""
    require("pyarrow", "parquet", "a table in memory or in Parquet")
    import pyarrow

    return pyarrow.Table.from_pylist([_typed_record(record) for record in records])


def _parquet(records: Sequence[Record]) -> bytes:
    table = arrow(records)
    import pyarrow
    import pyarrow.parquet

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def _typed_record(record: Record) -> Record:
    """Convert figures in lists to floating-point numbers: a column has one type."""
    return {
        name: [None if entry is None else float(entry) for entry in value] if _is_figures(value) else value
        for name, value in record.items()
    }


def _is_figures(value: Any) -> bool:
    return isinstance(value, list) and all(
        entry is None or (isinstance(entry, int | float) and not isinstance(entry, bool)) for entry in value
    )


def _latex(table: Table) -> str:
    """A table for the package booktabs."""
    caption = f"\\caption{{{_latex_text(table.title)}}}"
    return f"\\begin{{table}}\n\\centering\n{caption}\n{_tabulated(table, 'latex_booktabs')}\n\\end{{table}}\n"


def _latex_text(text: str) -> str:
    return "".join(f"\\{character}" if character in "%&_#$" else character for character in text)


def _markdown(table: Table) -> str:
    """Bars divide cells: those within a cell are escaped."""
    heads, *rows = [tuple(cell.replace("|", "\\|") for cell in row) for row in (table.heads, *table.rows)]
    return f"**{table.title}**\n\n{_tabulated(replace(table, heads=heads, rows=tuple(rows)), 'pipe')}\n"


def _tabulated(table: Table, form: str) -> str:
    from tabulate import tabulate

    align = ["left" if table.is_word(column) else "right" for column in range(len(table.heads))]
    return tabulate(table.rows, headers=table.heads, tablefmt=form, disable_numparse=True, colalign=align)
