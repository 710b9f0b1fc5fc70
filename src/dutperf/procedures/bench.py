# SPDX-License-Identifier: Apache-2.0
"""What every procedure is given and has to offer: the plan, a bench that runs valid trials, and the
status that a progress line shows.

A procedure decides which load comes next and what the results mean. Running a trial, repeating one
that is not valid, keeping the journal and telling the observer is the bench's work, the same for
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from dutperf.model import IPV6_HEADER_EXCESS, Trial, TrialResult, to_json
from dutperf.procedures.during import During, Running
from dutperf.setup.conditions import Conditions
from dutperf.setup.dut import CountLosses
from dutperf.tester import Progress
from dutperf.tester.calibration import Calibration

TrialFactory = Callable[[int, int, int], Trial]
"""Frame size (bytes), rate (frames/s per direction) and trial number to a trial."""


class PlanError(ValueError):
    """The conditions cannot be measured as they are. ``option`` names the one to change, as in
    ``Conditions`` (``max_rate``)."""

    def __init__(self, message: str, *, option: str) -> None:
        super().__init__(message)
        self.option = option


ConditionsT = TypeVar("ConditionsT", bound=Conditions, default=Conditions, covariant=True)


@dataclass(frozen=True)
class Plan(Generic[ConditionsT]):
    """What is to be measured. ``dut``, ``config`` and ``invocation`` are JSON types and go to the
    journal as they are."""

    conditions: ConditionsT
    make_trial: TrialFactory
    maximum_fps: Callable[[int], int | None]
    """The media's maximum frame rate for a frame size (RFC 8219 appendix A), in frames/s per
    direction; None where it is unknown."""
    dut: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    invocation: Sequence[str] = ()
    source: Mapping[str, Any] = field(default_factory=dict)
    """Where the set-up came from, for a run that goes on later: JSON types."""
    calibration: Calibration | None = None
    """What the tester can do by itself, where it was measured on such ports."""
    dut_state: Callable[[], str] | None = None
    """Asks the DUT for its state, where the set-up says how."""
    dut_reset: Callable[[], Running] | None = None
    """Starts the command that resets the DUT, where the set-up has one."""
    dut_losses: CountLosses | None = None
    """Asks the DUT what it has counted as lost so far, where it can be asked."""


@dataclass(frozen=True)
class Place:
    """Where in its course a procedure is; the procedure's share of a :class:`Status`."""

    frame_size: int
    repetition: int
    """From 1."""
    repetitions: int
    """As many as there will be at least."""
    lower_fps: int | None
    """Highest rate that passed in this repetition."""
    upper_fps: int | None
    """Lowest rate that did not pass in this repetition."""
    trials_left: int
    """Estimate for the whole run, the next trial included; 0 at its end."""
    duration_s: float | None = None
    """Sending time of the next trial; None: as the conditions say."""
    burst_frames: int | None = None
    """Length of the next trial's burst, where that is what is searched."""


@dataclass(frozen=True)
class Status:
    """What a progress line shows. Rates in frames/s per direction."""

    procedure: str
    frame_size: int
    repetition: int
    repetitions: int
    trying_fps: int
    lower_fps: int | None
    upper_fps: int | None
    trials_done: int
    trials_left: int
    remaining_s: float
    """Estimate for the whole run."""
    progress: Progress | None = None
    """Of the running trial."""
    last: TrialResult | None = None
    """The trial that ended last."""
    burst_frames: int | None = None
    """Length of the burst, where that is what is searched."""
    note: str | None = None
    """A sentence for a person: why a trial is repeated, how a search ended."""


class Observer(Protocol):
    """Is told how far a measurement is: before, about once a second during, and after each trial."""

    def update(self, status: Status) -> None: ...


Amend = Callable[[Trial], Trial]


class Bench(Protocol):
    """Runs a procedure's trials."""

    def measure(
        self, rate_fps: int, place: Place, amend: Amend | None = None, during: During | None = None
    ) -> TrialResult:
        """A valid result at ``rate_fps``; or, where repeats did not help, the last one, whose
        verdict is not valid.

        ``amend`` adds to each trial what the procedure needs beyond the plan's trials; ``during``
        is done to the DUT in each of them.

        Raises:
            TesterError: the tester cannot work at all.
        """
        ...

    def record(self, event: str, **members: Any) -> None:
        """Write an event to the journal; it is on the disk when this returns."""
        ...

    def say(self, note: str, place: Place) -> None:
        """Show a person one sentence, between trials; ``place`` as it is now."""
        ...


class Procedure(Protocol):
    """One way to measure, by one clause."""

    def description(self) -> dict[str, Any]:
        """What the journal's plan states about this procedure, as JSON types: ``search``, how it
        finds its rates; ``frames``, each frame size's limits."""
        ...

    def run(self, bench: Bench) -> str | None:
        """Measure every frame size. Returns why the run ended before its time, None where it did
        not."""
        ...


def fixed_repetitions(conditions: Conditions) -> int:
    """For a procedure that has no single figure whose median could decide.

    Raises:
        PlanError: the repetitions are to decide for themselves.
    """
    if not isinstance(conditions.repetitions, int):
        raise PlanError("this procedure has no single figure for auto to look at; give a number", option="repetitions")
    return conditions.repetitions


def frame_limits(plan: Plan, frame_size: int, first_fps: int) -> dict[str, Any]:
    """What a frame size's entry in the plan has for every procedure; ``first_fps``: the first rate
    to be offered."""
    trial = plan.make_trial(frame_size, first_fps, 0)
    return {
        "frame_size": frame_size,
        "frame_size_ipv4": frame_size_ipv4(trial, frame_size),
        "media_maximum_fps": plan.maximum_fps(frame_size),
        "first_trial": to_json(trial),
    }


def frame_size_ipv4(trial: Trial, frame_size: int) -> int:
    """The size of the IPv4 frames of a measurement of ``frame_size``, in bytes: shorter, unless all
    frames are IPv4 (RFC 8219 5.1.1)."""
    frames = [
        frame
        for stream in trial.streams().values()
        for frame in (stream.foreground, stream.background)
        if frame is not None
    ]
    return min((frame.size for frame in frames if frame.version == 4), default=frame_size - IPV6_HEADER_EXCESS)
