# SPDX-License-Identifier: Apache-2.0
"""The three commands: read file and arguments, run a trial, print its lines. The exit status is that of
dutperf's other commands.

Scripts start one process for each trial. So modules that only one command needs are imported late.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from dutperf import traffic
from dutperf.engine.factory import engine_on
from dutperf.exit_status import (
    ABORTED,
    INTERRUPTED,
    INVALID,
    WRONG_USAGE,
    signals_interrupt,
)
from dutperf.fault import status_of, unexpected
from dutperf.model import TRIAL_NUMBERS, ConnectionUse, Direction, DirectionCounts, Load, Trial, TrialResult, Verdict
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.siitperf import arguments as positional
from dutperf.siitperf import configuration, output, preliminary, setup
from dutperf.siitperf.arguments import Arguments, Parameter
from dutperf.siitperf.configuration import InputError, Settings
from dutperf.siitperf.output import Figures, Lines
from dutperf.siitperf.variables import Variables
from dutperf.tester import Tester, TesterError, phases
from dutperf.watch.dut_core import yield_to_the_dut

if TYPE_CHECKING:
    from dutperf.procedures.latency import Latency

SEEDED_TRIAL = 1
"""Number of a trial with a given seed: as in ``dutperf trial``, so that both send the same frames."""


@dataclass(frozen=True)
class Program:
    """One of the commands: its own parameters, the time stamps of its trial, and its figures from a
    direction's delays."""

    parameters: tuple[Parameter, ...]
    stamp: Callable[[Trial, Any, Arguments], Trial]
    figures: Callable[[DirectionCounts, Arguments], Figures | None]


def _tagged(trial: Trial, conditions: Latency, _arguments: Arguments) -> Trial:
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
    """None with a frame timeout: the command then prints the frames in time instead."""
    from dutperf.procedures import pdv

    return None if arguments["FRAME_TIMEOUT"] else pdv.figures(counts)


TP = Program((), lambda trial, _conditions, _arguments: trial, lambda _counts, _arguments: None)
LAT = Program(positional.LATENCY, _tagged, _typical_and_worst)
PDV = Program(positional.PDV, _every, _variation)


@dataclass(frozen=True)
class Planned:
    setup: Setup
    trial: Trial
    arguments: Arguments
    remarks: tuple[str, ...]
    repeats: int
    """Maximum number of repeats of a trial that is not valid."""


def plan(program: Program, words: Sequence[str], settings: Settings, variables: Variables) -> Planned:
    """Make the trial from the user's input. Raises InputError: invalid input."""
    arguments = positional.parse(words, program.parameters, settings)
    remarks = _remarks(settings)
    if settings.stateful:
        remarks += preliminary.remarks(arguments, settings, variables)
    number = SEEDED_TRIAL
    if variables.seed is None:
        # a new number as well: late frames of an earlier command have another one, and are not taken
        # for frames of this trial
        variables, number = replace(variables, seed=secrets.randbelow(2**53)), secrets.randbelow(TRIAL_NUMBERS)
        remarks.append(f"Info: the random seed is {variables.seed} (set DUTPERF_SEED to repeat it).")
    chosen = setup.conditions(settings, variables, arguments)
    checked = setup.make(settings, variables, arguments)
    try:
        kind = traffic.of(checked, chosen)
        trial = kind.trial(kind.cases()[0], Load.fps(arguments["RATE"]), number)
        if settings.stateful:
            trial = preliminary.timed(trial, arguments, settings)
    except ConfigError as error:
        raise InputError(setup.key_of(error.key), error.message) from None
    if trial.connections is None or trial.connections.use is ConnectionUse.TRAFFIC:
        trial = program.stamp(trial, chosen, arguments)
    repeats = 0 if settings.stateful else variables.repeats
    return Planned(checked, trial, arguments, tuple(remarks), repeats)


def _remarks(settings: Settings) -> list[str]:
    """Warnings: what may not be meant, and keys without an effect."""
    without = [key for key in configuration.STATEFUL_ONLY if settings[key] and not settings.stateful]
    remarks = [f"Warning: {remark}" for remark in settings.remarks]
    remarks += [f"Warning: {key} has no effect where Stateful is 0." for key in without]
    return (
        remarks
        if settings["Promisc"]
        else [
            *remarks,
            "Warning: Promisc 0 has no effect: the payload identifies the frames of this test.",
        ]
    )


def run(planned: Planned) -> TrialResult:
    """Run the trial, with the requested repeats while it is not valid. Raises TesterError: it cannot be run."""
    yield_to_the_dut()
    with engine_on(planned.setup, max(positional.LONGEST, planned.arguments["SIZE"])) as tester:
        return until_valid(tester, planned)


def until_valid(tester: Tester, planned: Planned) -> TrialResult:
    """The first valid result, or the last one. Each repeat has the next number, which distinguishes it from late frames
    of the trial before. Raises TesterError: the trial cannot be run."""
    result = phases.run(tester, planned.trial)
    for repeat in range(1, planned.repeats + 1):
        if result.verdict is Verdict.VALID:
            break
        print(output.repeated(result, repeat, planned.repeats), file=sys.stderr, flush=True)
        number = (planned.trial.trial + repeat) % TRIAL_NUMBERS
        result = phases.run(tester, planned.trial.model_copy(update={"trial": number}))
    return result


def say(planned: Planned, program: Program, result: TrialResult) -> int:
    """Print the result; returns the exit status."""
    if result.verdict is Verdict.ABORTED:
        return _fail(f"Error: {result.causes[0].text}", ABORTED)
    opened, measured = preliminary.split(planned.trial, result)
    if opened is not None:
        phase = planned.trial.preliminary[0] if planned.trial.preliminary else planned.trial
        _print(output.preliminary(phase, opened, planned.arguments["M"]))
    if measured is not None:
        _print(_lines(planned, program, measured))
    return 0 if result.verdict is Verdict.VALID else INVALID


def _lines(planned: Planned, program: Program, result: TrialResult) -> Lines:
    found = {direction: program.figures(counts, planned.arguments) for direction, counts in result.directions().items()}
    figures: dict[Direction, Figures] = {direction: one for direction, one in found.items() if one is not None}
    return output.lines(planned.trial, result, figures)


def _print(lines: Lines) -> None:
    for number in lines.numbers:
        print(number)
    sys.stdout.flush()
    for warning in lines.warnings:
        print(warning, file=sys.stderr)


def main(program: Program, words: Sequence[str]) -> int:
    try:
        planned = plan(program, words, configuration.load(), Variables.read(os.environ))
        for remark in planned.remarks:
            print(remark, file=sys.stderr)
        return say(planned, program, run(planned))
    except InputError as error:
        return _fail(f"Input Error: {error}", WRONG_USAGE)
    except TesterError as error:
        return _fail(f"Error: {_explained(error)}", status_of(error))
    except KeyboardInterrupt:
        return _fail("Error: interrupted", INTERRUPTED)
    except Exception as error:
        text, status = unexpected(error)
        return _fail(f"Error: {text}", status)


def _explained(error: TesterError) -> str:
    key = f"{setup.key_of(error.field)}: " if error.field else ""
    remedy = (
        "; give the DUT's MAC address in siitperf.conf, or its IP address in DUTPERF_GATEWAYS"
        if error.code == "no_answer"
        else ""
    )
    return f"{key}{error}{remedy}"


def _fail(line: str, status: int) -> int:
    print(line, file=sys.stderr)
    return status


def _end(program: Program) -> NoReturn:
    with signals_interrupt():
        sys.exit(main(program, sys.argv[1:]))


def tp() -> NoReturn:
    """``siitperf-tp SIZE RATE DURATION TIMEOUT n m [N M R T D]``: frame loss at a rate, for throughput."""
    _end(TP)


def lat() -> NoReturn:
    """``siitperf-lat … DELAY TIMESTAMPS``: latency."""
    _end(LAT)


def pdv() -> NoReturn:
    """``siitperf-pdv … FRAME_TIMEOUT``: packet delay variation, or frames in time."""
    _end(PDV)
