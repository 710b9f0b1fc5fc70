# SPDX-License-Identifier: Apache-2.0
"""What unit tests share. Reports take a second each to draw; the commands of these tests write
none, but for those that ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import command_line
import documented
import virtual
from dutperf.api import results
from dutperf.cli.commands import measure
from dutperf.report.html import REPORT
from dutperf.results.measured import Measured


@pytest.fixture
def real_reports() -> None:
    """Commands write their reports."""


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> virtual.Labs:
    """Every lab and every configuration is measured by a simulated tester."""
    return virtual.install(monkeypatch)


@pytest.fixture(autouse=True)
def _no_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test does by mistake, the files of whoever runs it stay as they are."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True)
def _no_reports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real_reports" not in request.fixturenames:
        monkeypatch.setattr(measure, "_report", lambda _: True)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose engine is a fake process that behaves well."""
    return command_line.write(tmp_path, "Engine")


@pytest.fixture(scope="session")
def suite_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a suite, with a report; not to be changed but by adding to them."""
    directory = documented.measure(tmp_path_factory.mktemp("report") / "suite")
    results.write_report(directory)
    return directory


@pytest.fixture(scope="session")
def page(suite_directory: Path) -> str:
    """Its report."""
    return (suite_directory / REPORT).read_text()


@pytest.fixture(scope="session")
def measured(suite_directory: Path) -> dict[str, Measured]:
    """Its measurements, by name."""
    return {one.name: one for one in results.read(suite_directory).measured}
