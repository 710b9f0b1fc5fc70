# SPDX-License-Identifier: Apache-2.0
"""The lines that scripts read: numbers on standard output, warnings on standard error. Delays are
in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dutperf.judge.rules import sending_time_limit_s
from dutperf.model import Direction, Phase, PhaseResult, Trial, TrialResult, Verdict

Figures = dict[str, float]
OVERDUE = ("unsent", "sending_time")
"""Causes of an invalid trial that siitperf has too: sending took too long."""
DELAY_LINES = {"TL": "{} TL: {:.6f}", "WCL": "{} WCL: {:.6f}"}
PDV_LINES = {
    "D99.9": "Info: {} D99_9th_perc: {:.6f}",
    "Dmin": "Info: {} Dmin: {:.6f}",
    "Dmax": "Info: {} Dmax: {:.6f}",
    "PDV": "{} PDV: {:.6f}",
}


@dataclass(frozen=True)
class Lines:
    """Output of a command for its trial."""

    numbers: tuple[str, ...]
    warnings: tuple[str, ...]


def lines(trial: Trial, result: TrialResult, figures: dict[Direction, Figures]) -> Lines:
    """Output for a trial that was not aborted. ``figures``: each direction's delays by name, printed only
    if the trial is valid."""
    numbers = [*_sending(result), *_receiving(trial, result)]
    if result.verdict is Verdict.VALID:
        numbers += [line for direction, named in figures.items() for line in _delays(_name(direction), named)]
    return Lines(tuple(numbers), tuple(_warnings(trial, result)))


def preliminary(phase: Phase, result: PhaseResult, table_size: int) -> Lines:
    """Output for the preliminary phase of a stateful test. ``table_size``: entries of the state table, which
    the first frames that arrive fill."""
    numbers, warnings = list[str](), list[str]()
    for counts in result.directions().values():
        if _overdue(result):
            limit_s = sending_time_limit_s(phase.duration_s)
            warnings.append(
                f"Warning: Preliminary sending was too slow: it exceeded the {limit_s:.10f} seconds limit, the test is"
                " invalid."
            )
        else:
            numbers.append(f"Preliminary frames sent: {counts.sent}")
        numbers.append(f"Preliminary frames received: {counts.received}")
        learned = 0 if result.connections is None else result.connections.learned
        entries = min(table_size, counts.received) if learned else 0
        if entries == table_size:
            numbers.append("Info: Preliminary phase finished.")
        else:
            warnings.append(
                f"Error: Failed to fill state table (valid entries: {entries}, state table size: {table_size})!"
            )
    return Lines(tuple(numbers), (*warnings, *_invalid(result)))


def repeated(result: TrialResult, repeat: int, repeats: int) -> str:
    """Message before a repeat. It names the causes by their codes: scripts look for words that the causes'
    texts may have ("invalid", "Error")."""
    codes = sorted({cause.code.replace("_", " ") for cause in result.causes})
    return f"Info: the trial says nothing about the DUT ({', '.join(codes)}); repeat {repeat} of at most {repeats}."


def _name(direction: Direction) -> str:
    return direction.value.capitalize()


def _overdue(result: PhaseResult) -> set[Direction | None]:
    return {cause.direction for cause in result.causes if cause.code in OVERDUE}


def _sending(result: TrialResult) -> Iterator[str]:
    """Sending times; the number of frames only if they were sent in time."""
    for direction, counts in result.directions().items():
        yield f"Info: {_name(direction)} sender's sending took {counts.send_time_s:.10f} seconds."
        if direction not in _overdue(result):
            yield f"{_name(direction)} frames sent: {counts.sent}"


def _receiving(trial: Trial, result: TrialResult) -> Iterator[str]:
    for direction, counts in result.directions().items():
        yield f"{_name(direction)} frames received: {counts.received}"
        if trial.frame_timeout_ns is not None:
            yield f"Info: {_name(direction)} frames completely missing: {counts.lost - counts.late}"


def _delays(name: str, figures: Figures) -> Iterator[str]:
    for figure, line in {**DELAY_LINES, **PDV_LINES}.items():
        if figure in figures:
            yield line.format(name, figures[figure])


def _warnings(trial: Trial, result: TrialResult) -> Iterator[str]:
    """siitperf's warning for sending that took too long, and every cause as in dutperf. Each says "the test
    is invalid", which scripts look for."""
    limit_s = sending_time_limit_s(trial.duration_s)
    for direction in result.directions():
        if direction in _overdue(result):
            yield f"Warning: {_name(direction)} sending exceeded the {limit_s:.10f} seconds limit, the test is invalid."
    yield from _invalid(result)


def _invalid(result: PhaseResult) -> Iterator[str]:
    for cause in result.causes:
        yield f"Warning: the test is invalid: {cause.text}."
