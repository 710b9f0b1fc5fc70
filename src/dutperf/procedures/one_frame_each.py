# SPDX-License-Identifier: Apache-2.0
"""Conditions of trials that send one frame for each of something: connections, addresses. How many and how fast
follows from these."""

from __future__ import annotations

from dutperf.setup.conditions import Conditions, WithFrameSizes, WithRepetitions, WithSettling


class OneFrameEach(WithRepetitions, WithSettling, Conditions, WithFrameSizes):
    """Conditions of trials whose frames follow from what is counted."""
