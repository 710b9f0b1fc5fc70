# SPDX-License-Identifier: Apache-2.0
"""What a summary remarks on a run beside its figures: sentences, each by what it is about. A new kind of remark is a
file that makes the sentences, and its line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dutperf.journal import EnvironmentEvent, Event, ResultEvent, of_kind
from dutperf.model import TrialResult, Value, ports_of
from dutperf.results import (
    beside,
    buffered,
    by_metrics,
    filled_lines,
    idle_offloads,
    modifier_frames,
    tester_delay,
    untracked,
    waits,
)
from dutperf.setup.conditions import Conditions, WithGoals, WithStamps


class Remark(Value):
    """A sentence on the run."""

    about: str
    """``beside``: what arrived beside the expected frames, or instead of them; ``buffered``: rates that passed into a
    DUT's buffers; ``idle_offloads``: offloads that were enabled and had no effect; ``modifier_frames``: what the
    modifiers sent beside the test frames, and what came back of it; ``filled_lines``: how lines were filled;
    ``tester_delays``: how much of the delays may be the tester's own, and which pairs of frames have none; ``waits``:
    how often the DUT forwarded nothing; ``by_metrics``: what the metrics of an OTG server do not prove;
    ``untracked``: how few connections a DUT counted that had forwarded the frames of more."""
    text: str


@dataclass(frozen=True)
class _Run:
    events: Sequence[Event]
    conditions: Conditions
    of_changes: bool

    @cached_property
    def results(self) -> tuple[TrialResult, ...]:
        return tuple(event.result for event in of_kind(self.events, ResultEvent))


def _offloads(run: _Run) -> Iterable[str]:
    first = next(of_kind(run.events, EnvironmentEvent), None)
    return () if first is None or not first.tester.get("offloads") else idle_offloads.of_run(run.results)


def _tester_delays(run: _Run) -> Iterable[str]:
    if run.conditions.every.frame_timeout_ms is not None:
        return ()  # delays decide there which frames are lost, and are no figures
    told = tester_delay.of_run(run.results, changes=run.of_changes)
    is_avoidable = _could_be_stamped_by_the_kernel(run) and any(tester_delay.MAY_HAVE_ADDED in text for text in told)
    return (*told, "with --stamps kernel delays are without what the tester's loops add") if is_avoidable else told


def _could_be_stamped_by_the_kernel(run: _Run) -> bool:
    first = next(of_kind(run.events, EnvironmentEvent), None)
    ports = [] if first is None else list(ports_of(first.tester).values())
    by_loop = isinstance(run.conditions, WithStamps) and run.conditions.stamps == "loop"
    return by_loop and bool(ports) and all("af_packet" in port.get("driver", "") for port in ports)


_KINDS: dict[str, Callable[[_Run], Iterable[str]]] = {
    "beside": lambda run: beside.of_run(run.results, is_patient=bool(run.conditions.every.dut_patience_s)),
    "buffered": lambda run: buffered.of_run(run.results) if isinstance(run.conditions, WithGoals) else (),
    "idle_offloads": _offloads,
    "modifier_frames": lambda run: modifier_frames.of_run(run.events),
    "filled_lines": lambda run: filled_lines.of_run(run.results),
    "tester_delays": _tester_delays,
    "waits": lambda run: waits.of_run(run.events),
    "by_metrics": lambda run: by_metrics.of_run(run.results),
    "untracked": lambda run: untracked.of_run(run.results),
}


def of_run(events: Sequence[Event], conditions: Conditions, *, of_changes: bool) -> tuple[Remark, ...]:
    """All of a journal's events. ``of_changes``: the figures are changes of delay from frame to frame."""
    run = _Run(events, conditions, of_changes)
    return tuple(Remark(about=about, text=text) for about, make in _KINDS.items() for text in make(run))
