# SPDX-License-Identifier: Apache-2.0
"""The checks of the self-test: each procedure on a reference DUT whose truth is known
(:mod:`dutperf.procedures.known_truth`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dutperf import procedures
from dutperf.lab.refdut import Dns64Properties, NatProperties, Properties
from dutperf.procedures.definition import Definition
from dutperf.procedures.known_truth import Evidence, Figure, KnownTruth
from dutperf.selftest.findings import Finding, judge
from dutperf.setup.conditions import WithFrameSizes

LABS: dict[type[Properties], str] = {
    Properties: "refdut-ipv4",
    NatProperties: "refdut-nat44",
    Dns64Properties: "refdut-dns64",
}
FRAME_SIZE = 84
DRAIN_S = 0.3


@dataclass(frozen=True)
class Check:
    """One procedure on a reference DUT with known properties."""

    definition: Definition
    truth: KnownTruth

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def lab(self) -> str:
        """The reference DUT that has the properties."""
        return LABS[type(self.truth.properties)]

    def chosen(self, *, quick: bool) -> dict[str, Any]:
        """The conditions of its short or long form."""
        sizes = {"frame_sizes": (FRAME_SIZE,)} if issubclass(self.definition.conditions, WithFrameSizes) else {}
        usual = {"drain_s": DRAIN_S, "repetitions": 1} | sizes
        return usual | dict(self.truth.conditions) | ({} if quick else dict(self.truth.more))

    def judged(self, evidence: Evidence) -> list[Finding]:
        return [_judged(self.name, figure, evidence) for figure in self.truth.figures]


def _judged(procedure: str, figure: Figure, evidence: Evidence) -> Finding:
    """Judges the direction that is farther from the true value."""
    values = (
        [value for value in figure.read(evidence.point) if value is not None]
        if not evidence.point.needs_warning
        else []
    )
    measured = max(values, key=lambda value: abs(value - figure.true), default=None)
    error = figure.error(evidence)
    judgement, note = judge(measured, figure.true, error, figure.tolerable)
    return Finding(
        procedure=procedure,
        figure=figure.name,
        unit=figure.unit,
        measured=measured,
        true=figure.true,
        stated_error=error,
        judgement=judgement,
        note=note,
    )


ALL = tuple(Check(one, one.known_truth()) for one in procedures.every() if one.known_truth is not None)
