# SPDX-License-Identifier: Apache-2.0
"""Without the optional libraries everything else works, and each part that needs one says so."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

import pytest

import command_line
from dutperf import installation
from dutperf.errors import DutperfError, MissingLibrary
from dutperf.report import html
from dutperf.results.measured import Measured


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if none of them were installed."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("matplotlib", "pyarrow")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("matplotlib", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without")
def test_a_report_has_everything_but_its_plots(measured: dict[str, Measured]) -> None:
    page = html.page(list(measured.values()))
    assert f"a plot needs matplotlib: {escape(installation.library('matplotlib', 'plots'))}" in page
    assert "<svg" not in page
    assert all(one.name in page for one in measured.values())


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["plot"], f"dutperf: a plot needs matplotlib: {installation.library('matplotlib', 'plots')}"),
        (
            ["export", "--format", "parquet"],
            f"dutperf: a table in memory or in Parquet needs pyarrow: {installation.library('pyarrow', 'parquet')}",
        ),
    ],
)
def test_a_command_names_the_command_that_installs_what_it_needs(
    command: list[str], said: str, suite_directory: Path, tmp_path: Path
) -> None:
    result = command_line.dutperf(*command, str(suite_directory), "--out", str(tmp_path))
    assert (result.exit_code, result.stderr.strip()) == (2, said)


@pytest.mark.usefixtures("without")
def test_csv_needs_none_of_them(suite_directory: Path, tmp_path: Path) -> None:
    assert command_line.dutperf("export", str(suite_directory), "--out", str(tmp_path)).exit_code == 0
    assert list(tmp_path.glob("*.csv"))


def test_it_is_an_import_error_too() -> None:
    assert issubclass(MissingLibrary, ImportError)
    assert issubclass(MissingLibrary, DutperfError)
