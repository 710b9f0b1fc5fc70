# SPDX-License-Identifier: Apache-2.0
"""What tests in namespaces share: they need root, and keep out of the way of other labs on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dutperf.lab import site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked root are skipped without it, and say so."""
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root for network namespaces"))


@pytest.fixture
def lab_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the test's own for labs' records: labs of others on this machine are none of its business."""
    monkeypatch.setattr(site, "STATE_DIR", tmp_path / "labs")
    return tmp_path / "labs"
