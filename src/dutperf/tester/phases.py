# SPDX-License-Identifier: Apache-2.0
"""Runs the phases of a trial one after the other: the preliminary ones, then the measuring one.

Each phase is judged by itself. A trial is valid only if all of its phases are: a preliminary phase
that the tester disturbed has not brought the DUT into the state that is to be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dutperf.model import Cause, PhaseResult, Trial, TrialResult, Verdict
from dutperf.tester import ProgressCallback, Tester

_WORST_FIRST = (Verdict.ABORTED, Verdict.INVALID, Verdict.VALID)


def run(
    tester: Tester,
    trial: Trial,
    on_progress: ProgressCallback | None = None,
    measure: Callable[[Trial], TrialResult] | None = None,
) -> TrialResult:
    """The result of ``trial``, with those of its preliminary phases.

    ``on_progress`` hears of all phases. ``measure`` runs the measuring phase in place of ``tester``:
    it may do more around it. A trial that may end early (:class:`dutperf.model.Question`) ends with
    the first phase that is not valid; any trial ends where the tester aborts a phase.

    Raises:
        TesterError: see :meth:`Tester.run`.
    """
    done: list[TrialResult] = []
    for phase in trial.preliminary_trials():
        done.append(tester.run(phase, on_progress))
        if done[-1].verdict is Verdict.ABORTED or (_is_bad(done[-1]) and trial.question.may_end_early):
            return _with_preliminary(TrialResult(trial=trial.trial, verdict=Verdict.VALID, ended_early_s=0.0), done)
    measured = tester.run(trial.alone(), on_progress) if measure is None else measure(trial.alone())
    return _with_preliminary(measured, done)


def _is_bad(result: PhaseResult) -> bool:
    return result.verdict is not Verdict.VALID


def _with_preliminary(measured: TrialResult, preliminary: Sequence[TrialResult]) -> TrialResult:
    """The whole trial's verdict is the worst of its phases'."""
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
