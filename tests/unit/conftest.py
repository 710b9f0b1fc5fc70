# SPDX-License-Identifier: Apache-2.0
"""Reports take a second each to draw; the commands of these tests write none, but for those that ask for it."""

from __future__ import annotations

import pytest

from dutperf.cli import measure


@pytest.fixture
def real_reports() -> None:
    """Commands write their reports."""


@pytest.fixture(autouse=True)
def _no_reports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real_reports" not in request.fixturenames:
        monkeypatch.setattr(measure, "_report", lambda _: True)
