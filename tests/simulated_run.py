# SPDX-License-Identifier: Apache-2.0
"""A short campaign on a simulated DUT as a process of its own, to be killed: ``python
simulated_run.py DIR [PROCEDURE]``.

Where there is a journal it goes on. As it is a real process in virtual time, a trial takes no time:
the journal's writing and syncing is what it does.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import itertools

from dutperf import journal, procedures
from dutperf.journal import JOURNAL, ResultEvent, ResumedJournal, TrialEvent
from dutperf.procedures.definition import Chapter
from dutperf.run.campaign import Plan, Summary
from dutperf.setup.conditions import AtThroughput, WithFrameSizes
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from dutperf.tester.simulated_switch import AddressTable
from plans import Log, measure, plan, resume

THROUGHPUT = {84: 60_000, 128: 50_000}
"""Of the simulated DUT, as if it had been measured."""


def a_plan(name: str = "throughput") -> Plan:
    """Two frame sizes, or shares of names with AAAA; five repetitions."""
    definition = procedures.find(name)
    known = {"throughput_from": THROUGHPUT} if issubclass(definition.conditions, AtThroughput) else {}
    cases = {"frame_sizes": (84, 128)} if issubclass(definition.conditions, WithFrameSizes) else {"with_aaaa": (0, 50)}
    return plan(**{"repetitions": 5, "duration_s": 0.5, "seed": 3} | cases | known | definition.simulated)


TABLE = AddressTable(size=1_234, learning_aps=5_432, ageing_s=2)


def a_tester(events: list[journal.Event], name: str = "throughput") -> SimulatedTester:
    """A DUT that loses at random and a tester that is disturbed at times, as they are after the
    trials of ``events`` that have a result. Trials in phases have no chance in them: how many phases
    were run does not follow from the journal."""
    if procedures.find(name).chapter in (Chapter.CONNECTIONS, Chapter.TABLES):
        return SimulatedTester(SimulatedDut(capacity_fps=54_321, addresses=TABLE))
    trials = [
        event.trial
        for event, following in itertools.pairwise(events)
        if isinstance(event, TrialEvent) and isinstance(following, ResultEvent)
    ]
    return SimulatedTester(
        SimulatedDut(capacity_fps=54_321, loss_ratio=1e-7), SimulatedLimits(disturbed_ratio=0.1), seed=7, trials=trials
    )


def start(directory: Path, name: str = "throughput") -> Summary:
    """The whole run."""
    return measure(a_tester([], name), a_plan(name), directory, name)


def go_on(directory: Path) -> Summary:
    """What is left of it, under the conditions that its journal holds."""
    with ResumedJournal.open(directory) as recorded:
        return resume(
            a_tester(recorded.events, recorded.plan.procedure), plan(**recorded.plan.conditions), recorded, Log()
        )


def advance(directory: Path, name: str = "throughput") -> None:
    """Begin, or go on."""
    go_on(directory) if (directory / JOURNAL).exists() else start(directory, name)


if __name__ == "__main__":
    advance(Path(sys.argv[1]), *sys.argv[2:])
