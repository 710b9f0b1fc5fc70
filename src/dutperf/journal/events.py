# SPDX-License-Identifier: Apache-2.0
"""The events of a journal, one model for each. :data:`FORMAT` is their version.

The events of a run, in order:

* ``plan``: procedure, conditions, DUT, configuration, versions, search, cases;
* ``environment``: this machine (``host``) and the tester;
* ``trial`` before and ``result`` after each trial;
* the findings of the procedure: what a trial or a repetition showed. Each procedure declares its own
  kinds (:class:`Finding`) in its module;
* ``dut_state``: the output of the DUT's command ``state``, before and after each search;
* ``wait``: the tester waited for a DUT that did not answer;
* ``end``: how the run ended. It is missing if the run was killed;
* ``resumed``: another process resumed the run here, with its environment. If the last trial before
  it has no result, that trial is run again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, PlainSerializer, ValidationError

from dutperf.model import Load, Trial, TrialResult, Value, to_json
from dutperf.model.case import AxisValue

FORMAT = 4
"""Version of the events; the plan states it."""
FINAL = ("completed", "ended")
"""Outcomes of a run that is complete."""


class Event(Value):
    """One line of a journal; ``event`` is its kind."""

    event: str
    time: str = ""
    """Time of writing (ISO 8601, UTC)."""

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"time"})


class PlanEvent(Event):
    """The first event: everything that the run is to measure."""

    event: Literal["plan"] = "plan"
    format: int = FORMAT
    dutperf: str
    """Version of the package that started the run."""
    invocation: tuple[str, ...] = ()
    source: dict[str, Any] = Field(default_factory=dict)
    """Source of the test setup."""
    first_trial: int = 0
    """Number of the first trial."""
    procedure: str
    conditions: dict[str, Any]
    dut: dict[str, Any] = Field(default_factory=dict)
    config: dict[str, Any] = Field(default_factory=dict)
    attempts: dict[str, int | float]
    """Trials of a load before it counts as not measurable."""
    search: dict[str, Any]
    """How the procedure finds its loads."""
    axes: list[dict[str, Any]]
    cases: list[dict[str, Any]]
    """The cases, each with its limits."""


class Environment(Event):
    """The machine and the tester that run the trials."""

    host: dict[str, Any]
    tester: dict[str, Any]
    calibration: dict[str, Any] | None = None
    """The tester's own delay and rate, if they were measured on such ports."""

    def as_json(self) -> dict[str, Any]:
        return {name: one for name, one in super().as_json().items() if name != "calibration" or one is not None}


class EnvironmentEvent(Environment):
    """The environment in which the run was started."""

    event: Literal["environment"] = "environment"


class ResumedEvent(Environment):
    """Another process resumed the run, in this environment."""

    event: Literal["resumed"] = "resumed"
    dutperf: str
    invocation: tuple[str, ...] = ()


class Located(Event):
    """An event of one repetition of a case."""

    case: dict[str, AxisValue] = Field(default_factory=dict)
    """Its axes' names and values."""
    repetition: int = 0
    """From 1."""


class Attempt(Located):
    """An event of a trial."""

    load: Load
    attempt: int
    """Of this load, from 1."""


class TrialEvent(Attempt):
    """A trial begins."""

    event: Literal["trial"] = "trial"
    trial: Annotated[Trial, PlainSerializer(to_json)]


class ResultEvent(Attempt):
    """A trial has ended."""

    event: Literal["result"] = "result"
    trial: int
    result: Annotated[TrialResult, PlainSerializer(to_json)]


class DutStateEvent(Located):
    """The output of the DUT's command ``state``."""

    event: Literal["dut_state"] = "dut_state"
    when: Literal["before", "after"]
    sha256: str
    output: str


class WaitEvent(Located):
    """The tester waited for a DUT that did not answer."""

    event: Literal["wait"] = "wait"
    trial: int
    """Number of the trial after which the tester waited."""
    answered: bool
    """Whether the DUT forwarded again."""
    waited_s: float
    probes: int
    """Number of probes, which are short trials and have trial numbers."""


class EndEvent(Event):
    """How the run ended."""

    event: Literal["end"] = "end"
    outcome: Literal["completed", "ended", "interrupted", "error"]
    message: str | None


class Finding(Located):
    """What a trial or a repetition showed. Each procedure derives its own kinds, each with its
    ``event``. The reader does not know them; :meth:`of` turns a finding into its kind."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def name(cls) -> str:
        """The ``event`` of this kind of finding."""
        return str(cls.model_fields["event"].default)

    @classmethod
    def of(cls, recorded: Finding) -> Self:
        """``recorded`` as this kind of finding. Raises ValidationError: it is not of this kind."""
        return recorded if type(recorded) is cls else cls.model_validate(recorded.model_dump())


class RepetitionFinding(Finding):
    """The result of a repetition."""

    model_config = ConfigDict(extra="forbid")

    valid: bool = True
    """Whether there was a valid trial."""
    not_forwarding: bool = False
    """Whether the DUT forwarded nothing, which ends the case; ``message`` gives the details."""
    message: str | None = None


EventT = TypeVar("EventT", bound=Event)
LocatedT = TypeVar("LocatedT", bound=Located)
_KINDS: dict[str, type[Event]] = {
    model.model_fields["event"].default: model
    for model in (
        PlanEvent,
        EnvironmentEvent,
        ResumedEvent,
        TrialEvent,
        ResultEvent,
        DutStateEvent,
        WaitEvent,
        EndEvent,
    )
}


def line_of(event: Event) -> str:
    """The event as a line of a journal, with the present time, without its line feed."""
    members = event.as_json()
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"event": members.pop("event"), "time": now, **members}, allow_nan=False)


def event_of_json(members: dict[str, Any]) -> Event:
    """The event with these ``members``. Raises ValueError: they are not an event; the message says why."""
    model = _KINDS.get(members.get("event", ""), Finding)
    try:
        return model.model_validate(members)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(one) for one in first["loc"])
        raise ValueError(f"{members.get('event')}: {where}: {first['msg']}") from None
