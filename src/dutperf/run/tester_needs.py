# SPDX-License-Identifier: Apache-2.0
"""What procedures need that an OTG server in place of the engine does not have. What else a trial may need is refused
by :func:`dutperf.otg_client.messages.check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dutperf.procedures.definition import Chapter, Definition
from dutperf.setup.configuration import ConfigError

BY_COUNTS = ("throughput", "frame-loss")
"""Procedures that need no more than how many frames were sent and received."""
_BURSTS = "bursts of frames that follow each other without a gap"
_NEEDS: Mapping[Chapter | str, str] = {
    "back-to-back": _BURSTS,
    "burst-interval": _BURSTS,
    "dns64": "DNS queries and their answers",
    Chapter.DELAYS: "the delay of each frame, of which a server tells the smallest, the largest and the mean one alone",
    Chapter.TIMES: "the times at which frames were lost",
    Chapter.LOADS: "delays, or a rate that changes within a trial",
    Chapter.CONNECTIONS: "connections",
    Chapter.TABLES: "frames that show which addresses the DUT has learned",
}


def check(definition: Definition, config: Mapping[str, Any]) -> None:
    """Raises ConfigError where the tester of ``config``, as JSON types, cannot measure by this procedure."""
    if not config.get("engine", {}).get("otg") or definition.name in BY_COUNTS:
        return
    need = _NEEDS.get(definition.name) or _NEEDS[definition.chapter]
    raise ConfigError(f"an OTG server cannot measure {definition.name}, which needs {need}", "engine.otg")
