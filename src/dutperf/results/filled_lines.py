# SPDX-License-Identifier: Apache-2.0
"""How lines were filled (``--pacing fill``): the fillers, what became of them, and the error of the test
frames' places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dutperf.model import Direction, LineCounts, TrialResult, Verdict


def of_trial(result: TrialResult) -> Iterator[str]:
    """``forward: the line of 1,000 Mbit/s was filled with 81,234 fillers, ...``."""
    for direction, counts in result.directions().items():
        if counts.line is not None:
            yield _text(direction, [counts.line])


def of_run(results: Iterable[TrialResult]) -> tuple[str, ...]:
    """The same of all valid trials of a run together."""
    valid = [result for result in results if result.verdict is Verdict.VALID]
    lines = {
        direction: [counts.line for result in valid if (counts := result.directions().get(direction)) and counts.line]
        for direction in dict.fromkeys(direction for result in valid for direction in result.directions())
    }
    return tuple(_text(direction, of) for direction, of in lines.items() if of)


def _text(direction: Direction, lines: list[LineCounts]) -> str:
    trials = f" in {len(lines):,} valid trials" if len(lines) > 1 else ""
    fillers, back = sum(line.fillers for line in lines), sum(line.forwarded + line.returned for line in lines)
    came = f"{back:,} of them came back" if back else "none of them came back"
    worst = max(lines, key=lambda line: line.error_us.max)
    return (
        f"{direction}: the line of {worst.mbps:,} Mbit/s was filled with {fillers:,} fillers{trials}, of"
        f" {worst.shortest_filler} bytes or more, to a byte time of {worst.byte_ns:g} ns; {came}; test frames left"
        f" {worst.error_us.p50 * 1000:,.1f} ns after their place in the median, {worst.error_us.max * 1000:,.1f} ns at"
        " most"
    )
