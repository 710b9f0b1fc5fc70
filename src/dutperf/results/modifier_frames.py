# SPDX-License-Identifier: Apache-2.0
"""Frames that modifiers sent beside the test frames (RFC 2544 11.1 to 11.3): the proof that they were sent,
and what came back of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dutperf.frames.additional import reply_error
from dutperf.journal import Event, ResultEvent, TrialEvent
from dutperf.model import AdditionalCounts, AdditionalFrames, Direction, Trial, TrialResult, Verdict


@dataclass
class _Total:
    kind: AdditionalFrames
    trials: int = 0
    sent: int = 0
    received: int = 0
    replies: int = 0

    def add(self, counts: AdditionalCounts) -> None:
        self.trials += 1
        self.sent += counts.sent
        self.received += counts.received
        self.replies += counts.replies

    def text(self) -> str:
        forwarded = f", {self.received:,} forwarded by the DUT" if self.kind.forwarded else ""
        replies = f", {self.replies:,} answered" if self.kind.replies else ""
        trials = f" in {self.trials:,} valid trials" if self.trials > 1 else ""
        return f"modifier {self.kind.name}: {self.sent:,} frames sent{trials}{forwarded}{replies}"


def of_trial(trial: Trial, result: TrialResult) -> Iterator[str]:
    """``forward, modifier management: 60 frames sent, 60 answered``; and what is wrong with a reply."""
    for direction, kind, counts in _counted(trial, result):
        total = _Total(kind)
        total.add(counts)
        yield f"{direction}, {total.text()}"
        wrong = None if counts.last_reply is None else reply_error(bytes.fromhex(counts.last_reply))
        if wrong is not None:
            yield f"{direction}, modifier {kind.name}: the last reply is not as expected: {wrong}"


def of_run(events: Iterable[Event]) -> tuple[str, ...]:
    """The same for all valid trials of a run."""
    totals: dict[tuple[Direction, str], _Total] = {}
    wrong: dict[str, int] = {}
    trial: Trial | None = None
    for event in events:
        if isinstance(event, TrialEvent):
            trial = event.trial
        elif isinstance(event, ResultEvent) and trial is not None and event.result.verdict is Verdict.VALID:
            for direction, kind, counts in _counted(trial, event.result):
                totals.setdefault((direction, kind.name), _Total(kind)).add(counts)
            for text in [text for text in of_trial(trial, event.result) if "not as expected" in text]:
                wrong[text] = wrong.get(text, 0) + 1
    told = [f"{direction}, {total.text()}" for (direction, _), total in totals.items()]
    return (*told, *(f"{text}, in {trials:,} trials" for text, trials in wrong.items()))


def _counted(trial: Trial, result: TrialResult) -> Iterator[tuple[Direction, AdditionalFrames, AdditionalCounts]]:
    streams = trial.streams()
    for direction, counts in result.directions().items():
        additional = streams[direction].additional if direction in streams else ()  # else of a preliminary phase
        for kind, one in zip(additional, counts.additional or (), strict=False):
            yield direction, kind, one
