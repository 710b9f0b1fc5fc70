# SPDX-License-Identifier: Apache-2.0
"""Mismatches between two measurements: conditions, lab and setup, versions, machine, deviations from
the RFCs.

RFC 2544 section 10 and RFC 8219 section 5 ask that results state their conditions, so that nobody
unknowingly compares results of different conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from dutperf.model import Value
from dutperf.results import environments, labels
from dutperf.results.measured import Measured


class Weight(StrEnum):
    """Effect of a mismatch on a comparison."""

    NOTED = "noted"
    """It is part of the comparison (another DUT, each DUT's throughput), or only selects random
    numbers."""
    WARNED = "warned"
    """The figures may differ because of it, not because of the DUT."""
    REFUSED = "refused"
    """The figures have different meanings."""


class Mismatch(Value):
    """A condition that differs; a missing value is ``–``."""

    name: str
    base: str
    other: str
    weight: Weight

    def sentence(self) -> str:
        return (
            f"{self.name}: {self.base}, not {self.other}"
            if self.weight is Weight.REFUSED
            else f"{self.name}: {self.base} against {self.other}"
        )


MEANINGS = ("procedure", "definition", "stamps", "subtract_calibration")
"""Conditions that change the meaning of a figure."""
NOTED = ("seed", "throughput_from", "delays_to", "dut")
"""Conditions that are only noted, with all their members."""
_GENERATED = re.compile(r"engine\.(dut_)?netns|dut\..*|between\.(\d+\.)?passed")
"""Setup members that have other names each time a lab comes up, as its commands do. What the DUT is, it says itself."""
_NAMES = {
    "procedure": "procedure",
    "definition": "definition of latency",
    "stamps": "time stamps",
    "subtract_calibration": "the tester's own delay is subtracted from latencies",
}


def meaning(one: Measured) -> dict[str, Any]:
    """What has to be the same for two measurements to be of one series over time: procedure, conditions, setup, the
    DUT's name, and the host's name and processor, by dotted names; not the versions of DUT, kernel and tester."""
    assert one.summary is not None
    stated = {name: value for name, value in _stated(one) if not name.startswith(("deviation ", "subtracted at "))}
    kept = {name: value for name, value in stated.items() if _weight(name) is not Weight.NOTED}
    others = ("dutperf", "set-up.config", *(f"{part}." for part in ("host", "tester")))
    chosen = {name: value for name, value in kept.items() if not name.startswith(others)}
    hosts = ("host.name", "host.cpu")
    host = {name: value for name, value in stated.items() if name in hosts}
    return chosen | host | {"dut": one.summary.dut.get("name")}


def mismatches(base: Measured, other: Measured) -> tuple[Mismatch, ...]:
    """Every condition that differs, those of most weight first. Both measurements have a summary."""
    there, here = dict(_stated(base)), dict(_stated(other))
    names = [name for name in dict.fromkeys((*there, *here)) if there.get(name) != here.get(name)]
    differing = [
        Mismatch(
            name=_name(one), base=labels.text(there.get(one)), other=labels.text(here.get(one)), weight=_weight(one)
        )
        for one in names
    ]
    return tuple(sorted(differing, key=lambda one: list(Weight).index(one.weight), reverse=True))


def _stated(one: Measured) -> Iterator[tuple[str, Any]]:
    """Conditions, setup, environment and deviations, by dotted names."""
    assert one.summary is not None
    summary, plan = one.summary, one.plan
    yield "procedure", summary.procedure
    for name, value in summary.conditions.items():
        if name not in ("ranges", "series") and value != []:  # an empty list is as good as none
            yield from environments.flat(labels.rates(value), name)
    for point, limits in zip(summary.points, plan.cases, strict=True):
        yield from environments.flat(limits.get("subtracted", {}), f"subtracted at {point.case}")
    yield from environments.flat(plan.source, "set-up")
    config = {name: value for name, value in environments.flat(plan.config) if not _GENERATED.fullmatch(name)}
    yield from ((f"set-up.{name}", value) for name, value in config.items())
    yield from ((f"dut.{name}", value) for name, value in environments.of_dut(summary.dut) if name != "control")
    yield "dutperf", plan.dutperf
    yield from environments.stated(summary.environment)
    yield from ((f"deviation from {deviation.clause}", deviation.text) for deviation in summary.deviations)


def _weight(name: str) -> Weight:
    if name in MEANINGS:
        return Weight.REFUSED
    return Weight.NOTED if name.partition(".")[0] in NOTED else Weight.WARNED


def _name(name: str) -> str:
    if name in _NAMES or name.startswith("deviation"):
        return _NAMES.get(name, name)
    label = labels.name_of(name, {**labels.of_conditions(), **labels.ENVIRONMENT})
    return label if label != name.replace("_", " ") else name.replace(".", " ").replace("_", " ")
