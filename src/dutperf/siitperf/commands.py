# SPDX-License-Identifier: Apache-2.0
"""The three commands: read file and arguments, run a trial, print its lines. Exit status as for
dutperf's other commands.

Scripts start one process for each trial: what this needs is imported early, what only one command
needs, late.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from dutperf.exit_status import ABORTED, INTERRUPTED, INVALID, WRONG_USAGE, signals_interrupt
from dutperf.model import TRIAL_NUMBERS, Direction, DirectionCounts, Trial, TrialResult, Verdict
from dutperf.setup import traffic
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import Setup
from dutperf.siitperf import arguments as positional
from dutperf.siitperf import configuration, output, setup
from dutperf.siitperf.arguments import Arguments, Parameter
from dutperf.siitperf.configuration import InputError, Settings
from dutperf.siitperf.output import Figures
from dutperf.siitperf.variables import Variables
from dutperf.tester import Tester, TesterError
from dutperf.tester.dut_core import yield_to_the_dut
from dutperf.tester.factory import engine_on

if TYPE_CHECKING:
    from dutperf.procedures.latency import LatencyConditions

SEEDED_TRIAL = 1
"""Number of a trial whose seed is given: that of ``dutperf trial``, so that both send the same
frames."""


@dataclass(frozen=True)
class Program:
    """One of the commands: its own parameters, the time stamps of its trial, and what it reads from
    a direction's delays."""

    parameters: tuple[Parameter, ...]
    stamp: Callable[[Trial, Any, Arguments], Trial]
    figures: Callable[[DirectionCounts, Arguments], Figures | None]


def _tagged(trial: Trial, conditions: LatencyConditions, _arguments: Arguments) -> Trial:
    from dutperf.procedures import latency

    return latency.stamp(trial, conditions)


def _typical_and_worst(counts: DirectionCounts, _arguments: Arguments) -> Figures | None:
    from dutperf.procedures import latency

    return latency.figures(counts)


def _every(trial: Trial, conditions: Conditions, arguments: Arguments) -> Trial:
    from dutperf.procedures import pdv

    timeout_ns = arguments["FRAME_TIMEOUT"] * 1_000_000 or None
    return pdv.stamp(trial, conditions).model_copy(update={"frame_timeout_ns": timeout_ns})


def _variation(counts: DirectionCounts, arguments: Arguments) -> Figures | None:
    """None with a frame timeout: it asks for the frames in time instead."""
    from dutperf.procedures import pdv

    return None if arguments["FRAME_TIMEOUT"] else pdv.figures(counts)


TP = Program((), lambda trial, _conditions, _arguments: trial, lambda _counts, _arguments: None)
LAT = Program(positional.LATENCY, _tagged, _typical_and_worst)
PDV = Program(positional.PDV, _every, _variation)


@dataclass(frozen=True)
class Planned:
    """What a command is to do."""

    setup: Setup
    trial: Trial
    arguments: Arguments
    remarks: tuple[str, ...]
    repeats: int
    """How often at most the trial is repeated while it says nothing about the DUT."""


def plan(program: Program, words: Sequence[str], settings: Settings, variables: Variables) -> Planned:
    """From what the user gave to the trial.

    Raises:
        InputError: something of it cannot be used.
        TesterError: it asks for what is not there yet.
    """
    arguments = positional.parse(words, program.parameters, settings)
    if settings.stateful:
        raise TesterError(
            f"stateful tests are not there yet (Stateful is {settings['Stateful']} in {configuration.FILE})",
            code="stateful",
        )
    remarks = list(_remarks(settings))
    number = SEEDED_TRIAL
    if variables.seed is None:
        # a new number as well: a late frame of the command before is then known by it, and not
        # taken for one of this trial
        variables, number = replace(variables, seed=secrets.randbelow(2**53)), secrets.randbelow(TRIAL_NUMBERS)
        remarks.append(f"Info: random values are those of the seed {variables.seed} (DUTPERF_SEED has them again).")
    chosen = setup.conditions(settings, variables, arguments)
    checked = setup.make(settings, variables, arguments)
    trial = traffic.make_trial(checked, chosen, chosen.frame_sizes[0], arguments["RATE"], number)
    return Planned(checked, program.stamp(trial, chosen, arguments), arguments, tuple(remarks), variables.repeats)


def _remarks(settings: Settings) -> list[str]:
    """What the file says without effect."""
    without = [key for key in configuration.STATEFUL_ONLY if settings[key]]
    remarks = [f"Warning: {key} has no effect where Stateful is 0." for key in without]
    return (
        remarks
        if settings["Promisc"]
        else [
            *remarks,
            "Warning: Promisc 0 has no effect: frames that are not this test's are told apart by what they carry.",
        ]
    )


def run(planned: Planned) -> TrialResult:
    """The trial; repeated, where that is asked for, while it is not valid.

    Raises:
        TesterError: it cannot be run.
    """
    yield_to_the_dut()
    with engine_on(planned.setup, max(positional.LONGEST, planned.arguments["SIZE"])) as tester:
        return until_valid(tester, planned)


def until_valid(tester: Tester, planned: Planned) -> TrialResult:
    """The first valid result, or the last one. Each repeat has the next number: frames of the trial
    before that come late are known by it.

    Raises:
        TesterError: the trial cannot be run.
    """
    result = tester.run(planned.trial)
    for repeat in range(1, planned.repeats + 1):
        if result.verdict is Verdict.VALID:
            break
        print(output.repeated(result, repeat, planned.repeats), file=sys.stderr, flush=True)
        result = tester.run(planned.trial.model_copy(update={"trial": (planned.trial.trial + repeat) % TRIAL_NUMBERS}))
    return result


def say(planned: Planned, program: Program, result: TrialResult) -> int:
    """Print what came of it; returns the exit status."""
    if result.verdict is Verdict.ABORTED:
        return _refuse(f"Error: {result.causes[0].text}", ABORTED)
    found = {direction: program.figures(counts, planned.arguments) for direction, counts in result.directions().items()}
    figures: dict[Direction, Figures] = {direction: one for direction, one in found.items() if one is not None}
    lines = output.lines(planned.trial, result, figures)
    print(*lines.numbers, sep="\n", flush=True)
    for warning in lines.warnings:
        print(warning, file=sys.stderr)
    return 0 if result.verdict is Verdict.VALID else INVALID


def main(program: Program, words: Sequence[str]) -> int:
    """One command from its words to its exit status."""
    try:
        planned = plan(program, words, configuration.load(), Variables.read(os.environ))
        for remark in planned.remarks:
            print(remark, file=sys.stderr)
        return say(planned, program, run(planned))
    except InputError as error:
        return _refuse(f"Input Error: {error}", WRONG_USAGE)
    except TesterError as error:
        return _refuse(f"Error: {_explained(error)}", WRONG_USAGE)
    except KeyboardInterrupt:
        return _refuse("Error: interrupted", INTERRUPTED)


def _explained(error: TesterError) -> str:
    key = f"{setup.key_of(error.field)}: " if error.field else ""
    way_out = (
        "; give the DUT's MAC address in siitperf.conf, or its IP address in DUTPERF_GATEWAYS"
        if error.code == "no_answer"
        else ""
    )
    return f"{key}{error}{way_out}"


def _refuse(line: str, status: int) -> int:
    print(line, file=sys.stderr)
    return status


def _end(program: Program) -> NoReturn:
    with signals_interrupt():
        sys.exit(main(program, sys.argv[1:]))


def tp() -> NoReturn:
    """``siitperf-tp SIZE RATE DURATION TIMEOUT n m``: frame loss at a rate, for throughput."""
    _end(TP)


def lat() -> NoReturn:
    """``siitperf-lat … DELAY TIMESTAMPS``: latency."""
    _end(LAT)


def pdv() -> NoReturn:
    """``siitperf-pdv … FRAME_TIMEOUT``: packet delay variation, or frames in time."""
    _end(PDV)
