# SPDX-License-Identifier: Apache-2.0
"""Runs the phases of a trial in order: the preliminary phases, then the measuring phase.

Each phase is judged by itself. A trial is valid only if all its phases are valid: after a disturbed
preliminary phase the DUT is not in the state that is to be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dutperf.model import Cause, PhaseResult, Trial, TrialResult, Verdict
from dutperf.tester import ProgressCallback, Tester

_WORST_FIRST = (Verdict.ABORTED, Verdict.INVALID, Verdict.VALID)


def run(
    tester: Tester,
    trial: Trial,
    on_progress: ProgressCallback | None = None,
    *,
    on_preliminary: ProgressCallback | None = None,
    around: Callable[[Callable[[], TrialResult]], TrialResult] | None = None,
) -> TrialResult:
    """Run ``trial``; its result includes those of its preliminary phases.

    ``on_progress`` gets the progress of the measuring phase, ``on_preliminary`` that of the others
    (default: ``on_progress``). ``around`` calls its argument, which runs the measuring phase, and may
    do more before and after. A trial that may end early
    (:class:`dutperf.model.Question`) ends with the first phase that is not valid. Any trial ends when
    the tester aborts a phase.

    Raises:
        TesterError: see :meth:`Tester.run`.
    """
    done: list[TrialResult] = []
    for phase in trial.preliminary_trials():
        done.append(tester.run(phase, on_preliminary or on_progress))
        if done[-1].verdict is Verdict.ABORTED or (_is_bad(done[-1]) and trial.question.may_end_early):
            return _with_preliminary(TrialResult(trial=trial.trial, verdict=Verdict.VALID, ended_early_s=0.0), done)
    measure = partial(tester.run, trial.alone(), on_progress)
    return _with_preliminary(measure() if around is None else around(measure), done)


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
