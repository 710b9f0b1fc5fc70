# SPDX-License-Identifier: Apache-2.0
"""Packet delay variation: D99.9 - Dmin over the one-way delays of all frames of a trial at the
throughput (RFC 8219 7.3.1).

The trial lasts 60 s or longer, every frame is stamped, and it is repeated 20 times or more. A lost
frame counts as a delay of the whole trial including its drain time. Delays are kept as a
distribution with an error below 0.0125 %, so memory does not grow with the number of frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from dutperf.lab.refdut import Properties
from dutperf.model import DirectionCounts, Stamping, Trial
from dutperf.procedures.definition import Chapter, Definition
from dutperf.procedures.delays import (
    AT_THROUGHPUT,
    SUBTRACTED,
    DelayConditions,
    Delays,
    DelaysPoint,
    Kind,
    of_stream,
    point_builder,
)
from dutperf.procedures.known_truth import DELAY_MS, Figure, KnownTruth, delayed, medians_of, of_delays
from dutperf.results import deviations
from dutperf.setup.conditions import Calibrated, Conditions


def figures(counts: DirectionCounts) -> dict[str, float] | None:
    """PDV of a direction and its components, in milliseconds."""
    delay = counts.delay_us
    if delay is None:
        return None
    return {
        "PDV": (delay.p999 - delay.min) / 1000,
        "Dmin": delay.min / 1000,
        "median": delay.p50 / 1000,
        "D99.9": delay.p999 / 1000,
        "Dmax": delay.max / 1000,
    }


def stamp(trial: Trial, _conditions: Conditions) -> Trial:
    return trial.model_copy(update={"stamping": Stamping.EVERY, "lost_delay_ns": trial.duration_ns + trial.drain_ns})


class PdvPoint(DelaysPoint):
    title: ClassVar[str] = "packet delay variation, ms"
    in_headline: ClassVar[Mapping[str, str]] = {"PDV": "ms packet delay variation"}
    what: ClassVar[str] = "Packet delay variation"
    plotted: ClassVar[Mapping[str, str]] = {"PDV": "99.9th percentile of a trial's delays minus the smallest"}


PDV = Kind(
    name="pdv", headline="PDV", figures=figures, stamp=stamp, latencies=frozenset({"Dmin", "median", "D99.9", "Dmax"})
)


class Pdv(DelayConditions, Calibrated):
    """Conditions of a packet delay variation measurement."""


RULES = deviations.rules(*AT_THROUGHPUT, SUBTRACTED)


# --- a DUT whose truth is known ------------------------------------------------------------------

DELAYED_EVERY = 100


def _variation() -> Figure:
    return Figure("PDV", "ms", DELAY_MS, 0.1 * DELAY_MS, medians_of("PDV"), delayed)


def _known_truth() -> KnownTruth:
    return of_delays(Properties(extra_delay_every=DELAYED_EVERY, extra_delay_ms=DELAY_MS), _variation())


PROCEDURE = Definition(
    name=PDV.name,
    summary="Measure packet delay variation of all frames (RFC 8219 7.3.1).",
    chapter=Chapter.DELAYS,
    example="--lab kernel-ipv4 --rate 10k --duration 5 --repetitions 3",
    known_truth=_known_truth,
    conditions=Pdv,
    make=partial(Delays, PDV),
    point=point_builder(PDV, PdvPoint),
    delays=of_stream(PDV),
    rules=RULES,
)
