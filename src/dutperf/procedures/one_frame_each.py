# SPDX-License-Identifier: Apache-2.0
"""Conditions of trials that send one frame for each of something: connections, addresses. How many and how fast
follows from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from dutperf.model import FieldMode
from dutperf.setup.conditions import Conditions, Directions, Foreground
from dutperf.setup.given import Given, default
from dutperf.setup.option import FIXED
from dutperf.setup.pacing import SOFTWARE
from dutperf.setup.rate import OptionalRate


class OneFrameEach(Conditions):
    """Conditions of trials whose frames follow from what is counted."""

    duration_s: Annotated[float, FIXED] = 60.0
    directions: Annotated[Directions, FIXED] = "both"
    foreground: Annotated[Given[Foreground, str], FIXED] = default(Foreground())
    networks: Annotated[int, FIXED] = 1
    frame: Annotated[str | None, FIXED] = None
    frame_from: Annotated[str | None, FIXED] = None
    flows: Annotated[int, FIXED] = 1
    modifiers: Annotated[Given[tuple[str, ...], Sequence[str] | str], FIXED] = default(())
    ports: Annotated[Given[FieldMode, str], FIXED] = default(FieldMode.RANDOM)
    pattern: Annotated[str, FIXED] = "constant"
    burst_rate: Annotated[OptionalRate, FIXED] = default(None)
    warm_up_s: Annotated[float, FIXED] = 0.0
    pacing: Annotated[str, FIXED] = SOFTWARE
    loss_tolerance: Annotated[float, FIXED] = 0.0
