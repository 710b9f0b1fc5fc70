# SPDX-License-Identifier: Apache-2.0
"""The command: read arguments and file, run the trial, print its lines and write its file. The exit status is that of
dutperf's other commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from dutperf.dns64perf import arguments as positional
from dutperf.dns64perf import output
from dutperf.dns64perf.arguments import ArgumentError
from dutperf.dns64perf.planned import Planned, plan
from dutperf.engine.factory import engine_on
from dutperf.exit_status import (
    ABORTED,
    INTERRUPTED,
    INVALID,
    NO_NUMBER,
    WRONG_USAGE,
    signals_interrupt,
)
from dutperf.fault import status_of, unexpected
from dutperf.model import TrialResult, Verdict
from dutperf.tester import TesterError, phases
from dutperf.watch.dut_core import yield_to_the_dut

LONGEST = 1518
"""Frames of answers have at most so many bytes."""


def run(planned: Planned) -> TrialResult:
    """Run the trial. Raises TesterError: it cannot be run."""
    yield_to_the_dut()
    with engine_on(planned.setup, LONGEST) as tester:
        return phases.run(tester, planned.trial)


def say(planned: Planned, result: TrialResult, times: Path) -> int:
    """Print the result and write the file; returns the exit status."""
    if result.verdict is Verdict.ABORTED:
        return _fail(f"Error: {result.causes[0].text}", ABORTED)
    assert result.forward is not None, "it was not aborted"
    written = result.forward.queries_file
    if written is None or written.unwritten:
        why = "" if written is None or written.error is None else f": {written.error}"
        return _fail(f"Error: the engine could not write the times of the queries{why}", WRONG_USAGE)
    queries = output.read(times, planned.arguments)
    for line in output.lines(queries):
        print(line)
    sys.stdout.flush()
    for cause in result.causes:
        print(f"Warning: the test is invalid: {cause.text}.", file=sys.stderr)
    output.write_csv(output.CSV, planned.arguments, queries)
    if result.forward.answers is not None and (wrong := result.forward.answers.in_words()):
        print(f"Warning: wrong answers: {wrong}.", file=sys.stderr)
    if not queries.received.any() and result.verdict is Verdict.VALID:
        return _fail(f"Error: nothing was answered: is {planned.arguments.server} up, and a DNS server?", NO_NUMBER)
    return 0 if result.verdict is Verdict.VALID else INVALID


def main(words: Sequence[str]) -> int:
    try:
        with TemporaryDirectory(prefix="dns64perf-") as directory:
            times = Path(directory, "queries.npy")
            planned = plan(positional.parse(words), times)
            for remark in planned.remarks:
                print(remark, file=sys.stderr)
            return say(planned, run(planned), times)
    except ArgumentError as error:
        return _fail(f"Input Error: {error}", WRONG_USAGE)
    except TesterError as error:
        return _fail(f"Error: {_place(error)}{error}", status_of(error))
    except KeyboardInterrupt:
        return _fail("Error: interrupted", INTERRUPTED)
    except Exception as error:
        text, status = unexpected(error)
        return _fail(f"Error: {text}", status)


def _place(error: TesterError) -> str:
    return f"{error.field}: " if error.field else ""


def _fail(line: str, status: int) -> int:
    print(line, file=sys.stderr)
    return status


def dns64perf() -> NoReturn:
    """``dns64perf++ SERVER PORT SUBNET REQUESTS BURST THREADS DELAY-NS TIMEOUT-S``."""
    with signals_interrupt():
        sys.exit(main(sys.argv[1:]))
