# SPDX-License-Identifier: Apache-2.0
"""The trials of a run in a few numbers: how many were invalid, and how late the tester sent in the others."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.journal import Event, ResultEvent, of_kind
from dutperf.model import TrialResult, Value, Verdict
from dutperf.model.wording import FRAMES


class RunTrials(Value):
    done: int
    invalid: int
    """Of these, those that prove nothing about the DUT."""
    repeated: int
    """Of the invalid ones, those whose load was offered again."""
    max_lateness_us: float | None
    """Of the latest frame in the other trials; None: there is none, or nothing but an OTG server's metrics shows it."""
    counted: str
    """What left late: ``frame``, or ``query``."""


def is_conclusive(result: TrialResult) -> bool:
    """Whether the trial proves anything about the DUT: it is valid, or its losses are the DUT's all the same."""
    return result.verdict is Verdict.VALID or result.proven_failed is not None


def of_run(events: Sequence[Event]) -> RunTrials:
    """Those of a journal's events."""
    done = list(of_kind(events, ResultEvent))
    counted = [counts for event in done if is_conclusive(event.result) for counts in event.result.directions().values()]
    return RunTrials(
        done=len(done),
        invalid=sum(not is_conclusive(event.result) for event in done),
        repeated=_repeated(done),
        max_lateness_us=max((one.lateness_us.max for one in counted if one.by_metrics is None), default=None),
        counted=counted[0].counted.one if counted else FRAMES.one,
    )


def _repeated(done: Sequence[ResultEvent]) -> int:
    """Invalid trials after which their repetition offered the same load."""
    later, repeated = set[tuple[object, ...]](), 0
    for event in reversed(done):
        offered = (*event.case.items(), event.repetition, event.load)
        repeated += offered in later and not is_conclusive(event.result)
        later.add(offered)
    return repeated
