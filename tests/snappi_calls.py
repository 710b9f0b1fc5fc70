# SPDX-License-Identifier: Apache-2.0
"""What tests ask a server of the Open Traffic Generator API by snappi."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any


def set_flows(api: Any, state: str) -> Sequence[str]:
    """Returns warnings."""
    wanted = api.control_state()
    wanted.traffic.flow_transmit.state = state
    return list(api.set_control_state(wanted).warnings)


def metrics(api: Any) -> dict[str, Any]:
    """Of all flows, by their names."""
    request = api.metrics_request()
    request.flow.flow_names = []
    return {one.name: one for one in api.get_metrics(request).flow_metrics}


def sent(api: Any, patience_s: float) -> dict[str, Any]:
    """The metrics of all flows, once these have been sent."""
    assert set_flows(api, "start") == []
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        found = metrics(api)
        if all(one.transmit == "stopped" for one in found.values()):
            return found
        time.sleep(0.02)
    raise AssertionError("the flows do not stop")
