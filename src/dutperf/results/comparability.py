# SPDX-License-Identifier: Apache-2.0
"""What two measurements had otherwise than each other: conditions, lab and set-up, versions,
machine, deviations from the RFCs.

RFC 2544 section 10 and RFC 8219 section 5 ask that results name their conditions, so that nobody
compares what was measured differently unawares.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from dutperf.model import Value
from dutperf.results import environments, labels
from dutperf.results.measured import Measured


class Weight(StrEnum):
    """What a difference does to a comparison."""

    NOTED = "noted"
    """It belongs to what is compared: another DUT, the throughput that each DUT had; or only says
    which random numbers were drawn."""
    WARNED = "warned"
    """The figures may differ because of it, and not because of the DUT."""
    REFUSED = "refused"
    """The figures mean different things."""


class Unlike(Value):
    """A condition that differs; a value that there is not is ``–``."""

    name: str
    base: str
    other: str
    weight: Weight

    def said(self) -> str:
        """For a person."""
        return (
            f"{self.name}: {self.base}, not {self.other}"
            if self.weight is Weight.REFUSED
            else f"{self.name}: {self.base} against {self.other}"
        )


MEANINGS = ("procedure", "definition", "subtract_calibration")
"""Conditions without which figures of the same name are not the same."""
LOOSE = ("seed", "throughput_from", "delays_to", "dut")
"""What is noted alone, with all its members."""
_EACH_TIME = ("engine.netns", "engine.dut_netns")
"""Of the set-up: a lab gives them another name each time."""
_NAMES = {
    "procedure": "procedure",
    "definition": "definition of latency",
    "subtract_calibration": "the tester's own delay is taken from latencies",
}


def unlike(base: Measured, other: Measured) -> tuple[Unlike, ...]:
    """Every condition that differs, the weightiest first. Both measurements have a summary."""
    there, here = dict(_stated(base)), dict(_stated(other))
    names = [name for name in dict.fromkeys((*there, *here)) if there.get(name) != here.get(name)]
    found = [
        Unlike(name=_name(one), base=labels.text(there.get(one)), other=labels.text(here.get(one)), weight=_weight(one))
        for one in names
    ]
    return tuple(sorted(found, key=lambda one: list(Weight).index(one.weight), reverse=True))


def _stated(one: Measured) -> Iterator[tuple[str, Any]]:
    """By dotted names: what was chosen, where it was measured, and what that deviates from."""
    assert one.summary is not None
    summary, plan = one.summary, one.plan
    yield "procedure", summary.procedure
    for name, value in summary.conditions.items():
        if name not in ("ranges", "series"):
            yield from environments.flat(labels.rates(value), name)
    for point, limits in zip(summary.points, plan.cases, strict=True):
        yield from environments.flat(limits.get("subtracted", {}), f"subtracted at {point.case}")
    yield from environments.flat(plan.source, "set-up")
    config = {
        name: value
        for name, value in environments.flat(plan.config)
        if not name.startswith("dut.") and name not in _EACH_TIME
    }
    yield from ((f"set-up.{name}", value) for name, value in config.items())
    yield from ((f"dut.{name}", value) for name, value in environments.flat(summary.dut) if name != "control")
    yield "dutperf", plan.dutperf
    yield from environments.stated(summary.environment)
    yield from ((f"deviation from {deviation.clause}", deviation.text) for deviation in summary.deviations)


def _weight(name: str) -> Weight:
    if name in MEANINGS:
        return Weight.REFUSED
    return Weight.NOTED if name.partition(".")[0] in LOOSE else Weight.WARNED


def _name(name: str) -> str:
    if name in _NAMES or name.startswith("deviation"):
        return _NAMES.get(name, name)
    known = labels.name_of(name, {**labels.of_conditions(), **labels.ENVIRONMENT})
    return known if known != name.replace("_", " ") else name.replace(".", " ").replace("_", " ")
