# SPDX-License-Identifier: Apache-2.0
"""Engines that were built beside the real one, in which what a test needs is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dutperf.engine.client import EngineCommand


def engine_with_fake(what: str, engine: EngineCommand) -> Path:
    """The one with a fake ``nic`` (engine/tests/fake_nic.cpp) or fake ``cards`` (engine/tests/fake_cards.cpp)."""
    program = Path(engine.program).with_name(f"dutperf-engine-fake-{what}")
    if not program.exists():
        pytest.skip(f"no engine with a fake {what}: its build needs GoogleTest")
    return program


def frames_that_left(leaves: Path) -> Any:
    """What the fake NIC wrote into the file that $DUTPERF_FAKE_NIC_LEAVES names: of each frame ``ns``, ``port`` and
    ``length``, which of fillers is negative."""
    return np.fromfile(leaves, dtype=[("ns", "<f8"), ("port", "<i4"), ("length", "<i4")])
