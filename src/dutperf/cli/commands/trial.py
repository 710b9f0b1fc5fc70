# SPDX-License-Identifier: Apache-2.0
"""``dutperf trial``: one elementary trial (RFC 2544 section 23) and its verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import typer

from dutperf import traffic
from dutperf.cli import condition_options, options
from dutperf.cli.errors import reported, say
from dutperf.cli.output import console, live
from dutperf.cli.source_options import RESULT, SOURCE, split_source
from dutperf.exit_status import ABORTED, INVALID, NO_NUMBER
from dutperf.journal import TRIAL_FILE, JournalError, claim, write_new
from dutperf.model import Stamping, Stream, Trial, TrialResult, Verdict, to_json
from dutperf.procedures import evidence
from dutperf.run.testbench import Bench, bench, check_one_rate, check_one_size
from dutperf.run.waiting import Wait, announcement, is_dut_down, probe, probe_fps, wait_for_dut
from dutperf.setup import configuration
from dutperf.setup.conditions import Conditions, SingleTrial
from dutperf.setup.rate import Rate
from dutperf.spelling import count_of, with_and

NUMBER = 1
"""Number of the only trial."""
MOST_FLOWS_TOLD = 10_000
"""Flows up to which each is counted by itself."""
STATUS = {Verdict.VALID: 0, Verdict.INVALID: INVALID, Verdict.ABORTED: ABORTED}


def status_of(result: TrialResult) -> int:
    if result.verdict is Verdict.VALID and evidence.dead_directions(result):
        return NO_NUMBER
    return STATUS[result.verdict]


def trial(**given: Any) -> None:
    """Run one trial at a rate: is it valid, and what was lost?"""
    with reported():
        _trial(**given)


trial.__signature__ = condition_options.signature(  # type: ignore[attr-defined]
    {"rate": (options.RateText, None), **SOURCE},
    SingleTrial,
    RESULT,
)


def _trial(*, rate: str | None, out: Path | None, as_json: bool, **given: Any) -> None:
    source, chosen = split_source(given)
    [conditions] = condition_options.chosen(SingleTrial, chosen)
    check_one_size(conditions)
    intended = None if rate is None else condition_options.parse_rate("--rate", rate)
    check_one_rate(conditions, intended, sends_by_itself=source.sends_by_itself())
    claim_trial(out)
    with bench(source, conditions) as on, on.modified(conditions) as ready:
        planned = _planned(ready, conditions, intended, NUMBER)
        sized = ready.sized(conditions)
        result = run_one(planned, sized.every.frame_sizes[0], ready)
        waited = _wait(ready, conditions, intended, planned, result)
        if waited is not None and waited.answered:
            number = planned.trial + (waited.probes + 1) * planned.numbers
            planned = _planned(ready, conditions, intended, number)
            result = run_one(planned, sized.every.frame_sizes[0], ready)
        report = as_report(ready, sized, planned, result) | ({} if waited is None else {"dut_wait": asdict(waited)})
        show_and_write(report, out, as_json, lambda: console.trial(report, result))
        if status_of(result) == NO_NUMBER:
            say(evidence.no_forwarding(result, ready.setup))
    raise typer.Exit(status_of(result))


def _planned(ready: Bench, conditions: SingleTrial, intended: Rate | None, number: int) -> Trial:
    planned = ready.trial(conditions, intended, number)
    flows = sum(frame.flows for stream in planned.streams().values() for frame in stream.frames)
    if len(planned.streams()) * 32 < flows <= MOST_FLOWS_TOLD:
        planned = planned.model_copy(update={"by_flow": True})
    return planned.model_copy(update={"capture": conditions.capture_wanted()} | _stamping(conditions, planned))


def _wait(
    ready: Bench, conditions: SingleTrial, intended: Rate | None, planned: Trial, result: TrialResult
) -> Wait | None:
    """Wait for a DUT that forwarded nothing; its probes take the numbers after the trial's. None: nobody asked to wait,
    or it forwarded."""
    patience_s = conditions.every.dut_patience_s
    if not patience_s or not is_dut_down(result):
        return None
    say(announcement(result, ready.setup, patience_s))
    numbers = count(planned.trial + planned.numbers, planned.numbers)
    low = None if intended is None else Rate(value=probe_fps(conditions), unit="fps")
    waited = wait_for_dut(ready.tester, lambda: probe(ready.trial(conditions, low, next(numbers))), patience_s)
    say(f"the DUT {'forwards now' if waited.answered else 'still forwards nothing'} after {waited.waited_s:.0f} s")
    return waited


def _stamping(conditions: Conditions, planned: Trial) -> dict[str, Any]:
    """Who chooses what times frames wants delays."""
    wanted = conditions.every.stamped_by is not None and planned.stamping is Stamping.NONE
    return {"stamping": Stamping.EVERY} if wanted else {}


def show_and_write(report: dict[str, Any], out: Path | None, as_json: bool, show: Callable[[], None]) -> None:
    """Both: what was measured is shown even where it cannot be written, and written even where it cannot be
    shown. It is called before the test bench is taken down, which may fail."""
    try:
        typer.echo(json.dumps(report)) if as_json else show()
    finally:
        if out is not None:
            write_trial(out, report)


def run_one(planned: Trial, frame_size: int, ready: Bench) -> TrialResult:
    what = f"with {frame_size} byte frames at {_rates_of(planned)}"
    if planned.sends_others_alone:
        what = f"of {count_of(len(planned.streams()), 'stream')}"
    say(f"one trial {what}, {live.duration(planned.whole_s)}")
    with live.trial_progress(planned) as on_progress:
        return ready.run(planned, on_progress)


def _rates_of(planned: Trial) -> str:
    """In words: those of each direction where they differ."""
    texts = {way: _rate_of(stream) for way, stream in planned.streams().items()}
    if len(set(texts.values())) == 1:
        return f"{next(iter(texts.values()))} per direction"
    return with_and(f"{text} {way}" for way, text in texts.items())


def _rate_of(stream: Stream) -> str:
    up_to = f", up to {stream.highest_fps:,}," if stream.highest_fps > stream.rate_fps else ""
    return f"{stream.rate_fps:,} frames/s{up_to}"


def as_report(ready: Bench, conditions: Conditions, planned: Trial, result: TrialResult) -> dict[str, Any]:
    """The result with its conditions, setup and environment. ``trial`` are the trial's parameters;
    ``passed`` is null where it is not valid."""
    [frame_size] = conditions.every.frame_sizes
    valid = result.verdict is Verdict.VALID
    return to_json(result) | {
        "passed": result.worst_loss_ratio <= conditions.every.loss_tolerance if valid else None,
        "loss_tolerance": conditions.every.loss_tolerance,
        "frame_timeout_ms": conditions.every.frame_timeout_ms,
        "frame_size": frame_size,
        "size_mix": conditions.every.size_mix,
        "kinds": {
            direction: [frame.name for frame in stream.frames]
            for direction, stream in planned.streams().items()
            if stream.frames
        },
        "frame_size_ipv4": traffic.of(ready.setup, conditions).size_ipv4(frame_size),
        "trial": to_json(planned),
        "dut": ready.dut.identity(),
        "config": configuration.as_json(ready.setup),
        "environment": ready.tester.environment(),
    }


def recorded(directory: Path) -> tuple[dict[str, Any], TrialResult]:
    """The result that :func:`write_trial` wrote. Raises JournalError: this version cannot read it."""
    path = directory / TRIAL_FILE
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        members = {name: report[name] for name in TrialResult.model_fields if name in report}
        result = TrialResult.model_validate(members | {"trial": Trial.model_validate(report["trial"]).trial})
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path}: this version cannot read it ({str(error).splitlines()[0]})") from None
    return report, result


def claim_trial(out: Path | None) -> None:
    """Make the directory of a trial's result, before it is measured. Raises JournalError where there is a result."""
    if out is not None:
        claim(out, (TRIAL_FILE,), "the result of another trial")


def write_trial(out: Path, report: dict[str, Any]) -> None:
    write_new(out / TRIAL_FILE, json.dumps(report, indent=2) + "\n")
    say(f"the result is in {out / TRIAL_FILE}")
