# SPDX-License-Identifier: Apache-2.0
"""The progress of a measurement as JSON lines (:mod:`dutperf.cli.output.log`)."""

from __future__ import annotations

from typing import Any

from dutperf.cli.output.log import event
from dutperf.cli.output.news import News
from dutperf.model import TrialResult
from dutperf.run.campaign import Status


class JsonObserver:
    """A line for each trial and each note."""

    def __init__(self, measurement: str) -> None:
        self._measurement = measurement
        self._news = News()

    def update(self, status: Status) -> None:
        if note := self._news.note(status):
            event("note", text=note, **self._where(status))
        if ended := self._news.trial(status):
            event("trial", **self._where(status), **_outcome(ended))

    def _where(self, status: Status) -> dict[str, Any]:
        names = ("procedure", "repetition", "repetitions", "trials_done", "trials_left", "remaining_s")
        return {
            "measurement": self._measurement,
            "case": status.case.key(),
            "load": None if status.trying is None else status.trying.as_json(),
            **{name: getattr(status, name) for name in names},
        }


def _outcome(result: TrialResult) -> dict[str, Any]:
    counts = {
        direction.value: {name: getattr(one, name) for name in ("intended", "sent", "received", "lost")}
        for direction, one in result.directions().items()
    }
    return {"verdict": result.verdict.value, "causes": [cause.text for cause in result.causes], **counts}
