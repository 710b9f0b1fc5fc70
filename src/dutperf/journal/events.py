# SPDX-License-Identifier: Apache-2.0
"""The events of a journal, one model each. :data:`FORMAT` is their version.

The events of a run, in order:

* ``plan``: procedure, conditions, DUT, configuration, versions, search, cases;
* ``environment``: this machine (``host``) and the tester;
* ``trial`` before and ``result`` after each trial;
* a procedure's findings: what a trial or a repetition of it showed. Each procedure declares its own
  (:class:`Finding`), in its file;
* ``dut_state``: the output of the DUT's command ``state``, before and after each search;
* ``wait``: the tester waited for a DUT that answered nothing;
* ``end``: how the run ended. It is missing where the run was killed;
* ``resumed``: another process resumed the run here, in its environment. A trial without a result
  before it is run again after it.
"""

from __future__ import annotations

from typing import Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError, field_serializer

from dutperf.model import Load, Trial, TrialResult, Value, to_json
from dutperf.model.case import AxisValue

FORMAT = 3
"""Version of the events; stands in the plan."""
FINAL = ("completed", "ended")
"""Outcomes of a run that need not be resumed."""


class Event(Value):
    """One line of a journal. ``event`` says which kind it is."""

    event: str
    time: str = ""
    """When it was written (ISO 8601, UTC)."""

    def as_json(self) -> dict[str, Any]:
        """Without its time, as JSON types."""
        return self.model_dump(mode="json", exclude={"time"})


class PlanEvent(Event):
    """What is to be measured: the first event."""

    event: Literal["plan"] = "plan"
    format: int = FORMAT
    dutperf: str
    """Version of the package that began the run."""
    invocation: tuple[str, ...] = ()
    source: dict[str, Any] = Field(default_factory=dict)
    """Where the test setup came from."""
    first_trial: int = 0
    """Number of the first trial."""
    procedure: str
    conditions: dict[str, Any]
    dut: dict[str, Any] = Field(default_factory=dict)
    config: dict[str, Any] = Field(default_factory=dict)
    attempts: dict[str, int]
    """Trials of a load before it counts as unmeasurable."""
    search: dict[str, Any]
    """How the procedure finds its loads."""
    axes: list[dict[str, Any]]
    cases: list[dict[str, Any]]
    """Each case with its limits."""


class Environment(Event):
    """The machine and the tester that trials are run with."""

    host: dict[str, Any]
    tester: dict[str, Any]
    calibration: dict[str, Any] | None = None
    """The tester's own delay and rate, where they were measured on such ports."""

    def as_json(self) -> dict[str, Any]:
        """See :class:`Event`."""
        return {name: one for name, one in super().as_json().items() if name != "calibration" or one is not None}


class EnvironmentEvent(Environment):
    """On what the run began."""

    event: Literal["environment"] = "environment"


class ResumedEvent(Environment):
    """Another process resumed the run."""

    event: Literal["resumed"] = "resumed"
    dutperf: str
    invocation: tuple[str, ...] = ()


class Located(Event):
    """An event of one repetition of a case."""

    case: dict[str, AxisValue] = Field(default_factory=dict)
    """Its axes' names and values."""
    repetition: int = 0
    """From 1."""


class TrialEvent(Located):
    """A trial begins."""

    event: Literal["trial"] = "trial"
    load: Load
    attempt: int
    """Of this load, from 1."""
    trial: Trial

    @field_serializer("trial")
    def _trial(self, trial: Trial) -> dict[str, Any]:
        return to_json(trial)


class ResultEvent(Located):
    """A trial has ended."""

    event: Literal["result"] = "result"
    load: Load
    attempt: int
    trial: int
    """Its number."""
    result: TrialResult

    @field_serializer("result")
    def _result(self, result: TrialResult) -> dict[str, Any]:
        return to_json(result)


class DutStateEvent(Located):
    """The output of the DUT's command ``state``."""

    event: Literal["dut_state"] = "dut_state"
    when: Literal["before", "after"]
    """The search."""
    sha256: str
    output: str


class WaitEvent(Located):
    """The tester waited for a DUT that answered nothing."""

    event: Literal["wait"] = "wait"
    trial: int
    """Number of the trial that met it."""
    answered: bool
    """Whether the DUT forwarded again."""
    waited_s: float
    probes: int
    """Small trials that asked; they have numbers too."""


class EndEvent(Event):
    """How the run ended."""

    event: Literal["end"] = "end"
    outcome: Literal["completed", "ended", "interrupted", "error"]
    message: str | None


class Finding(Located):
    """What a trial or a repetition showed. A procedure derives its own findings, each with its
    ``event``. A journal is read without knowing them; :meth:`of` gives them their form."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def name(cls) -> str:
        """The ``event`` of this kind of finding."""
        return str(cls.model_fields["event"].default)

    @classmethod
    def of(cls, recorded: Finding) -> Self:
        """``recorded`` as this kind of finding.

        Raises:
            ValidationError: it is none.
        """
        return recorded if type(recorded) is cls else cls.model_validate(recorded.model_dump())


class RepetitionFinding(Finding):
    """What a repetition showed."""

    model_config = ConfigDict(extra="forbid")

    valid: bool = True
    """Whether there was a valid trial."""
    not_forwarding: bool = False
    """Whether the DUT forwarded nothing, which ends the run; ``message`` says what happened."""
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


def event_of_json(members: dict[str, Any]) -> Event:
    """The event that ``members`` describe.

    Raises:
        ValueError: they describe none; the message says why.
    """
    model = _KINDS.get(members.get("event", ""), Finding)
    try:
        return model.model_validate(members)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(one) for one in first["loc"])
        raise ValueError(f"{members.get('event')}: {where}: {first['msg']}") from None
