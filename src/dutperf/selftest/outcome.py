# SPDX-License-Identifier: Apache-2.0
"""The results of a self-test, as a value for ``selftest.json`` and as a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from dutperf.model import Value
from dutperf.selftest.findings import Finding
from dutperf.spelling import with_and
from dutperf.tester.calibration import Calibration, Floor, Key

COLUMNS = ("procedure", "figure", "measured", "true", "error", "stated error", "verdict")
FLOOR_COLUMNS = (
    "frame size",
    "limit, frames/s",
    "delays at, frames/s",
    "min, µs",
    "typical, µs",
    "p99.9, µs",
    "loop stall, µs",
)
STAMPS_COLUMNS = ("time stamps", *FLOOR_COLUMNS[3:])


class Outcome(Value):
    """Findings, and the calibration if there is one; ``host`` as in the journals' environment."""

    date: str
    host: dict[str, Any]
    load: float
    """Load average of the last minute at the start of the self-test."""
    calibration: Calibration | None = None
    by_stamps: Calibration | None = None
    """With the floors of the smallest frames by each kind of time stamps, on ports that may have all of them."""
    without_stamps: dict[str, str] = Field(default_factory=dict)
    """Why there is no floor by the other kinds."""
    findings: tuple[Finding, ...] = ()


def row(finding: Finding) -> tuple[str, ...]:
    """Cells for ``COLUMNS``."""
    figures = (finding.measured, finding.true, finding.error, finding.stated_error)
    return (finding.procedure, f"{finding.figure}, {finding.unit}", *map(_text, figures), finding.judgement)


def floor_rows(calibration: Calibration) -> Iterator[tuple[str, ...]]:
    """Rows for ``FLOOR_COLUMNS``."""
    for floor in calibration.floors:
        limit = "-" if floor.limit_fps is None else f"{floor.limit_fps:,}"
        yield (str(floor.frame_size), limit, f"{floor.rate_fps:,}", *_times(floor))


def stamps_title(calibration: Calibration) -> str:
    """Of the table of floors by time stamps."""
    floor = calibration.floors[0]
    return (
        f"delays without a DUT by time stamps, ports {_ports(calibration.key)}, {floor.frame_size} bytes,"
        f" {floor.rate_fps:,} frames/s"
    )


def stamps_rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Rows for ``STAMPS_COLUMNS``."""
    assert outcome.by_stamps is not None
    smallest = outcome.by_stamps.floors[0].frame_size
    yield from ((one.stamps, *_times(one)) for one in outcome.by_stamps.floors if one.frame_size == smallest)
    yield from ((stamps, *("-" for _ in STAMPS_COLUMNS[1:])) for stamps in outcome.without_stamps)


def notes(outcome: Outcome) -> Iterator[str]:
    yield from (f"no floor by {stamps} stamps: {why}" for stamps, why in outcome.without_stamps.items())
    yield from (f"{one.procedure}, {one.figure}: {one.note}" for one in outcome.findings if one.note)


def _times(floor: Floor) -> tuple[str, ...]:
    return tuple(f"{time:,.1f}" for time in (floor.min_us, floor.typical_us, floor.p999_us, floor.stall_us))


def _ports(key: Key) -> str:
    drivers = with_and(dict.fromkeys(key.drivers))
    queues = f", {key.queues} queues" if key.queues > 1 else ""
    return drivers + queues + (f", with {', '.join(key.offloads)}" if key.offloads else "")


def markdown(outcome: Outcome) -> str:
    host = outcome.host
    machine = f"{host['cpu']}, {host['cores']} cores, kernel {host['kernel']}, dutperf {host['dutperf']}"
    parts = [f"Machine: {machine}; load {outcome.load:.1f} at the beginning; {outcome.date}."]
    if outcome.calibration is not None:
        parts.append(
            "Without a DUT, ports"
            f" {_ports(outcome.calibration.key)}:\n\n{_table(FLOOR_COLUMNS, list(floor_rows(outcome.calibration)))}"
        )
    if outcome.by_stamps is not None:
        title = stamps_title(outcome.by_stamps)
        parts.append(f"{title[0].upper()}{title[1:]}:\n\n{_table(STAMPS_COLUMNS, list(stamps_rows(outcome)))}")
    if outcome.findings:
        parts.append(f"Against the reference DUT:\n\n{_table(COLUMNS, [row(one) for one in outcome.findings])}")
    parts += [f"{note}." for note in notes(outcome)]
    return "\n\n".join(parts) + "\n"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(figure: float | None) -> str:
    """With its significant digits: the fourth decimal is a tenth of a microsecond in ms."""
    if figure is None:
        return "-"
    return f"{figure:,.0f}" if abs(figure) >= 1000 or figure == int(figure) else f"{figure:.4f}"
