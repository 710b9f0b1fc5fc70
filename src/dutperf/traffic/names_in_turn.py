# SPDX-License-Identifier: Apache-2.0
"""Names of addresses for one trial after the other: none is asked for twice, as long as the network has others (RFC
8219 section 9.2).

Late answers of an earlier trial must not count for a later one. Names of a trial's own have its number in them; names
of addresses have not, and come again when the network has no others. So the trials have different source ports
(:meth:`dutperf.model.SourcePorts.of_trial`): an answer counts if port and ID are those of a query of this trial, and
the name is that of this query; the ports are those of none of the seven trials before, and another run has other IDs.
"""

from __future__ import annotations

from typing import TypeVar

from dutperf.model import Direction, Phase, Stream, Trial

PhaseT = TypeVar("PhaseT", bound=Phase)


class NamesInTurn:
    """The names that the trials so far have asked for."""

    def __init__(self) -> None:
        self._asked = 0

    def given_to(self, trial: Trial) -> Trial:
        """The trial with the next names. The cached ones are those of the phase before it."""
        cached_from = self._asked
        preliminary = tuple(self._next(phase, cached_from) for phase in trial.preliminary)
        return self._next(trial.model_copy(update={"preliminary": preliminary}), cached_from)

    def _next(self, phase: PhaseT, cached_from: int) -> PhaseT:
        if phase.forward is None or phase.forward.questions is None or phase.forward.questions.addresses is None:
            return phase
        asked = phase.forward.questions
        stream = phase.forward.model_copy(update={"questions": asked.counting_from(self._asked, cached_from)})
        self._asked += new_names(phase, stream)
        return phase.model_copy(update={"forward": stream})


def new_names(phase: Phase, stream: Stream) -> int:
    """How many names a phase asks for that are not cached ones."""
    assert stream.questions is not None
    return stream.questions.new_names(phase.intended(Direction.FORWARD))
