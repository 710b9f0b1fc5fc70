# SPDX-License-Identifier: Apache-2.0
"""Runs the phases of a trial in order: the preliminary phases, then the measuring phase.

A trial is valid only if all its phases are valid: after a disturbed preliminary phase the DUT is not in the state
that is to be measured. A phase is judged by itself; one that tolerates loss, or opens connections, is judged once more
by what followed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from dutperf.dut.row import DeviceOrRow
from dutperf.judge.validity import EXPIRED, held_against
from dutperf.model import (
    NOT_OPENED,
    TRIAL_NUMBERS,
    Cause,
    ConnectionUse,
    DirectionCounts,
    Opening,
    PhaseResult,
    Question,
    Stream,
    Trial,
    TrialResult,
    Verdict,
    members_of,
)
from dutperf.tester import ProgressCallback, Tester

_WORST_FIRST = (Verdict.ABORTED, Verdict.INVALID, Verdict.VALID)


PROBED = 10_000
"""Connections that are asked at most, by one frame each, whether they are left."""
PROBE_SHARE = 0.25
"""Share of the replies' rate at which they are asked: their frames must not be lost by the rate."""


def run(
    tester: Tester,
    trial: Trial,
    on_progress: ProgressCallback | None = None,
    *,
    on_preliminary: ProgressCallback | None = None,
    dut: DeviceOrRow | None = None,
    timeout_s: float | None = None,
) -> TrialResult:
    """Run ``trial``; its result includes those of its preliminary phases.

    ``on_progress`` gets the progress of the measuring phase, ``on_preliminary`` that of the others
    (default: ``on_progress``). ``dut`` tells its own losses in the measuring phase, and deletes a connection after
    ``timeout_s`` without a frame. A trial that may end early (:class:`dutperf.model.Question`) ends with the first
    phase that is not valid. Any trial ends when the tester aborts a phase.

    Before a trial with connections those of ``dut`` are deleted. The trial ends if the Responder does not learn all of
    them, or with ``entries`` (:class:`dutperf.model.Connections`) none. Connections that lost replies are asked
    afterwards whether they are left. Raises TesterError: see :meth:`Tester.run`. Raises ConfigError: the connections of
    ``dut`` cannot be deleted, or some are left."""
    table = dut if dut is not None and dut.has_connections else None
    if trial.connections is not None and table is not None:
        table.begin_without_connections()
    lifetime = _Lifetime(timeout_s)
    done: list[TrialResult] = []
    dut_connections: int | None = None
    for phase in trial.preliminary_trials():
        done.append(tester.run(phase, on_preliminary or on_progress))
        if _ends_trial(done[-1], trial.question):
            return _with_preliminary(TrialResult(trial=trial.trial, verdict=Verdict.VALID, ended_early_s=0.0), done)
        if phase.connections is not None and table is not None:
            dut_connections = table.count_connections()
        if (missing := _not_opened(phase, done[-1], trial, dut_connections)) is not None:
            return _without_measuring(trial, phase, done, missing).model_copy(
                update={"dut_connections": dut_connections}
            )
    measure = partial(tester.run, trial.alone(), on_progress)
    measured = lifetime.judge(trial, measure() if dut is None else dut.losses_during(measure))
    measured = measured.model_copy(update=_probe(tester, trial, measured, lifetime))
    result = _afterwards(trial, table, measured, dut_connections)
    held = (held_against(phase, one, result) for phase, one in zip(trial.preliminary_trials(), done, strict=True))
    return _with_preliminary(result, [_holding(one, causes) for one, causes in zip(done, held, strict=True)])


def _ends_trial(phase: TrialResult, question: Question) -> bool:
    """Whether a trial need not go on: its phase was aborted, or the trial is repeated anyway. If the phase is measured
    too, it may prove that the DUT fails."""
    is_proof = question.opening_counts and phase.proven_failed is not None
    return phase.verdict is Verdict.ABORTED or (_is_bad(phase) and question.may_end_early and not is_proof)


class _Lifetime:
    """Of connections without a frame, from their opening on. Beside the phases, commands of the DUT take time."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = inf if timeout_s is None else timeout_s
        self._began_s = monotonic()

    def left_s(self) -> float:
        """Time in which none expires."""
        return self._timeout_s - (monotonic() - self._began_s)

    def judge(self, trial: Trial, measured: TrialResult) -> TrialResult:
        """The result of the measuring phase that has just ended: not valid if its lost connections may have expired."""
        lost = 0 if trial.opens_connections or measured.connections is None else measured.connections.lost
        took_s = monotonic() - self._began_s - trial.drain_ns / 1e9
        if not lost or took_s <= self._timeout_s:
            return measured
        text = (
            f"the last frame left {took_s:.1f} s after the first connection was opened, but the DUT deletes one after"
            f" {self._timeout_s:g} s without a frame (stateful.timeout_s)"
        )
        causes = (*measured.causes, Cause(code=EXPIRED, text=text))
        verdict = Verdict.INVALID if measured.verdict is Verdict.VALID else measured.verdict
        return measured.model_copy(update={"verdict": verdict, "causes": causes, "proven_failed": None})


def _afterwards(
    trial: Trial, table: DeviceOrRow | None, measured: TrialResult, dut_connections: int | None
) -> TrialResult:
    """The result with what the DUT is asked, and told, after the measuring phase."""
    if dut_connections is None and trial.connections is not None and table is not None:
        dut_connections = table.count_connections()
    added: dict[str, Any] = {"dut_connections": dut_connections}
    if (missing := _not_all_opened(trial, measured, dut_connections)) is not None:
        added |= {"verdict": Verdict.INVALID, "causes": (Cause(code=NOT_OPENED, text=missing),)}
    elif trial.question.delete_connections and table is not None:
        added["deletion_s"] = table.clear_connections()
        table.check_without_connections()
        added["deletion_empty_s"] = table.clear_connections()
    return measured.model_copy(update=added)


def _holding(phase: TrialResult, causes: tuple[Cause, ...]) -> TrialResult:
    """The phase with causes that hold because of what followed."""
    known = {(cause.code, cause.direction) for cause in phase.causes}
    more = tuple(cause for cause in causes if (cause.code, cause.direction) not in known)
    if not more:
        return phase
    verdict = Verdict.INVALID if phase.verdict is Verdict.VALID else phase.verdict
    return phase.model_copy(update={"verdict": verdict, "causes": phase.causes + more})


def _not_opened(phase: Trial, result: TrialResult, trial: Trial, dut_connections: int | None) -> str | None:
    """Why the connections of the measuring phase are not there; None: they are."""
    if phase.connections is None or not phase.opens_connections or result.connections is None:
        return None
    wanted, learned = phase.connections.count, result.connections.learned
    may_lack = trial.connections is not None and trial.connections.entries is not None
    if learned == wanted or (learned and may_lack):
        return None
    told = f"the Responder learned {learned:,} of {wanted:,} connections"
    if arrived := _not_learned(phase, result):
        return f"{told}: the frames of {arrived:,} arrived, but not as UDP in IPv{phase.connections.version} packets"
    counted = "" if dut_connections is None else f", which counted {dut_connections:,} connections itself"
    return f"{told}: the frames of {wanted - learned:,} did not pass the DUT{counted}"


def _not_learned(phase: Trial, result: PhaseResult) -> int:
    """Connections whose frames arrived, and which the Responder did not learn."""
    if phase.connections is None or phase.connections.opening is not Opening.EACH or result.connections is None:
        return 0
    return max(0, sum(one.received for one in result.directions().values()) - result.connections.learned)


def _not_all_opened(trial: Trial, measured: TrialResult, dut_connections: int | None) -> str | None:
    """Why a trial that only opens connections did not open those that it should have, and this is no loss."""
    if trial.connections is None or not trial.opens_connections or _is_bad(measured):
        return None
    wanted, deletes = trial.connections.count, trial.question.delete_connections
    if not deletes and not _not_learned(trial, measured):
        return None
    missing = _not_opened(trial, measured, trial, dut_connections)
    if missing is None and dut_connections is not None and dut_connections < wanted:
        return f"the DUT counted {dut_connections:,} of {wanted:,} connections before it was to delete them"
    return missing


def _without_measuring(trial: Trial, phase: Trial, done: list[TrialResult], missing: str) -> TrialResult:
    """The result of a trial that ended with ``phase``, which should have opened the connections."""
    opened = done[-1]
    if trial.question.opening_counts and not _not_learned(phase, opened):
        return _with_preliminary(opened.model_copy(update={"trial": trial.trial, "ended_in": opened.trial}), done[:-1])
    cause = () if _is_bad(opened) else (Cause(code=NOT_OPENED, text=missing),)
    verdict = Verdict.INVALID if cause else Verdict.VALID
    return _with_preliminary(TrialResult(trial=trial.trial, verdict=verdict, causes=cause, ended_in=opened.trial), done)


def _probe(tester: Tester, trial: Trial, measured: TrialResult, lifetime: _Lifetime) -> dict[str, int]:
    """Asks the connections that lost frames in a valid trial whether they are left, as many as is possible before any
    expires: members of the result."""
    connections, counts = trial.connections, measured.connections
    if connections is None or counts is None or not counts.lost or _is_bad(measured):
        return {}
    if connections.entries is not None:
        return {}  # the engine asks complete tables only
    replies = {
        direction: stream
        for direction, stream in trial.streams().items()
        if direction.leads_back(connections.initiator)
    }
    if not replies or connections.use is ConnectionUse.OPEN:
        return {}
    [(direction, stream)] = replies.items()
    rate_fps = max(1, round(stream.rate_fps * PROBE_SHARE))
    if (frames := int(min(counts.lost, PROBED, lifetime.left_s() * rate_fps))) < 1:
        return {}
    asking = stream.with_rate(rate_fps).only(_least_lost(stream, measured.directions()[direction]))
    probe = Trial(
        trial=(trial.trial + 1) % TRIAL_NUMBERS,
        seed=trial.seed,
        duration_ns=max(1, frames * 1_000_000_000 // rate_fps),
        drain_ns=trial.drain_ns,
        burst=trial.burst,
        question=Question(tolerated_loss=1.0),  # all of them may be gone
        connections=connections.model_copy(update={"use": ConnectionUse.LOST}),
        **members_of({direction: asking}),
    )
    result = tester.run(probe)
    if _is_bad(lifetime.judge(probe, result)) or result.connections is None or result.doubts:
        return {}
    return {"connections_probed": frames, "connections_gone": result.connections.lost}


def _least_lost(stream: Stream, counts: DirectionCounts) -> list[int]:
    """The kinds of frames in connections that lost the smallest share: a DUT may drop others for what they are, and say
    nothing about their connections so."""
    kinds = [kind for kind, frame in enumerate(stream.frames) if frame.is_connected]
    shares = {kind: one.lost / one.sent for kind, one in enumerate(counts.kinds or ()) if kind in kinds and one.sent}
    return [kind for kind, share in shares.items() if share == min(shares.values())] or kinds


def _is_bad(result: PhaseResult) -> bool:
    return result.verdict is not Verdict.VALID


def _with_preliminary(measured: TrialResult, preliminary: Sequence[TrialResult]) -> TrialResult:
    """``measured`` with the preliminary results; its verdict is the worst of all phases."""
    if not preliminary:
        return measured
    verdicts = {result.verdict for result in (*preliminary, measured)}
    causes = tuple(_in_preliminary(cause) for result in preliminary for cause in result.causes)
    return measured.model_copy(
        update={
            "verdict": next(verdict for verdict in _WORST_FIRST if verdict in verdicts),
            "causes": causes + measured.causes,
            "proven_failed": None if causes else measured.proven_failed,
            "preliminary": tuple(
                PhaseResult(**{name: getattr(one, name) for name in PhaseResult.model_fields}) for one in preliminary
            ),
        }
    )


def _in_preliminary(cause: Cause) -> Cause:
    return cause.model_copy(update={"text": f"preliminary phase: {cause.text}"})
