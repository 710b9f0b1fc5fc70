# SPDX-License-Identifier: Apache-2.0
"""Results as tables for a person, on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dutperf.model import DirectionCounts, NicArrivals, NicDepartures, TrialResult, Verdict
from dutperf.results import idle_offloads, loss, tables
from dutperf.run.campaign import Summary
from dutperf.run.suite import SuiteSummary

_STYLE = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.ABORTED: "bold red"}
_MEANING = {
    Verdict.VALID: "the tester sent every frame within its limits of time and dropped none itself",
    Verdict.INVALID: "this trial says nothing about the DUT",
    Verdict.ABORTED: "this trial did not come to its end",
}

Row = tuple[str, Callable[[DirectionCounts], str]]

_ALWAYS: tuple[Row, ...] = (
    ("intended frames", lambda counts: f"{counts.intended:,}"),
    ("sent", lambda counts: f"{counts.sent:,}"),
    ("received", lambda counts: f"{counts.received:,}"),
    ("lost", lambda counts: f"{counts.lost:,}"),
    ("loss ratio", lambda counts: f"{counts.loss_ratio:.6%}"),
    ("sending time, s", lambda counts: f"{counts.send_time_s:.6f}"),
    ("lateness, µs: median", lambda counts: f"{counts.lateness_us.p50:,.1f}"),
    ("    p99, p99.9", lambda counts: f"{counts.lateness_us.p99:,.1f}, {counts.lateness_us.p999:,.1f}"),
    ("    largest", lambda counts: f"{counts.lateness_us.max:,.1f}"),
    ("loop away at most, µs: sender", lambda counts: f"{counts.stall_us.sender:,.1f}"),
    ("    receiver", lambda counts: f"{counts.stall_us.receiver:,.1f}"),
)
_WHERE_ANY: tuple[Row, ...] = (
    ("lost when", lambda counts: loss.when(counts) or ""),
    ("later than the frame timeout, among the lost", lambda counts: _number(counts.late)),
    ("background received", lambda counts: _number(counts.background_received)),
    ("duplicates", lambda counts: _number(counts.duplicates)),
    ("out of order", lambda counts: _number(counts.out_of_order)),
    ("of another trial", lambda counts: _number(counts.stale)),
    ("corrupted", lambda counts: _number(counts.corrupted)),
    ("not taken at the first try", lambda counts: _number(counts.not_accepted)),
    ("dropped by the tester", lambda counts: _by_kind(counts.tester_drops)),
    (
        "counted as sent by",
        lambda counts: "nobody" if counts.lost and counts.transmitted and counts.transmitted.by == "nobody" else "",
    ),
    ("granted at the media's rate, µs", lambda counts: f"{counts.tolerance_us:,.1f}" if counts.tolerance_us else ""),
    (
        "wait in the full transmit ring at most, µs",
        lambda counts: (
            "unknown" if counts.waited_us is None else f"{counts.waited_us:,.1f}" if counts.waited_us else ""
        ),
    ),
    ("dropped before the DUT's input", lambda counts: _number(counts.dut_input_drops)),
    ("other frames received", lambda counts: _by_kind(counts.other_received)),
    ("delays that end at the NIC's stamps", lambda counts: _told(counts.receive_timestamps, "by_nic")),
    (
        "    at the poll, as the NIC stamped them not",
        lambda counts: _number(counts.receive_timestamps.by_poll if counts.receive_timestamps else 0),
    ),
    ("frames that the NIC was told when to send", lambda counts: _told(counts.send_at, "timed")),
    ("    that left at once", lambda counts: _number(counts.send_at.at_once if counts.send_at else 0)),
    ("    NIC's clock uncertain by at most, µs", lambda counts: _uncertainty(counts)),
    (
        "limit of each queue, Mbit/s",
        lambda counts: "" if counts.rate_limit_mbps is None else f"{counts.rate_limit_mbps:,}",
    ),
)


def output() -> Console:
    """Standard output, as it is now."""
    return Console()


def trial(report: dict[str, Any], result: TrialResult) -> None:
    """One trial: counts of each direction, the verdict and its causes."""
    console = output()
    title = f"{report['frame_size']} byte frames" + (
        f" ({report['frame_size_ipv4']} IPv4)" if report["frame_size_ipv4"] != report["frame_size"] else ""
    )
    if result.directions():
        console.print(_counts(title, result))
    style = _STYLE[result.verdict]
    console.print(f"[{style}]{result.verdict}[/]: {_MEANING[result.verdict]}")
    for cause in result.causes:
        console.print(f"  {cause.text}", markup=False, highlight=False)
    if report["passed"] is not None:
        late = (
            ""
            if report["frame_timeout_ms"] is None
            else f"; a frame later than {report['frame_timeout_ms']:g} ms counts as lost"
        )
        console.print(
            f"{'passed' if report['passed'] else 'failed'} at a loss tolerance of {report['loss_tolerance']:g}{late}"
        )
    for text in _remarks(result):
        line(text)


def _remarks(result: TrialResult) -> Iterator[str]:
    yield from idle_offloads.of_trial(result)
    for name in ("left", "right"):
        if not getattr(result.link_up, name):
            yield f"the link of port {name} was down at the end of the trial"
        if not getattr(result.dut_answered, name):
            yield f"the DUT did not answer ARP or NDP on port {name} before the trial"
    for direction, causes in (result.dut_losses or {}).items():
        yield f"the DUT's own counters, {direction}: {_by_kind(causes) or 'nothing'} lost"


def _counts(title: str, result: TrialResult) -> Table:
    directions = result.directions()
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for direction in directions:
        table.add_column(direction.value, justify="right")
    for name, cell in _ALWAYS:
        table.add_row(name, *(cell(counts) for counts in directions.values()))
    for name, cell in _WHERE_ANY:
        cells = [cell(counts) for counts in directions.values()]
        if any(cells):
            table.add_row(name, *cells)
    places = [
        loss.where_in_words(loss.where(counts), valid=result.verdict is Verdict.VALID) for counts in directions.values()
    ]
    if any(places):
        table.add_row("lost where", *places)
    return table


def _told(told: NicArrivals | NicDepartures | None, member: str) -> str:
    return "" if told is None else f"{getattr(told, member):,}"


def _uncertainty(counts: DirectionCounts) -> str:
    told = [one.uncertainty_us for one in (counts.receive_timestamps, counts.send_at) if one is not None]
    return f"{max(told):,.2f}" if told else ""


def _number(count: int) -> str:
    return f"{count:,}" if count else ""


def _by_kind(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def result(of: Summary | SuiteSummary) -> None:
    """The results of a run, or of each measurement of a suite under its name."""
    if isinstance(of, Summary):
        _summary(of)
        return
    for part in of.measurements:
        output().rule(f"[bold]{escape(part.name)}", align="left")
        if part.note is not None:
            line(part.note)
        if part.summary is not None:
            _summary(part.summary)


def line(text: str) -> None:
    """A sentence as it is; a path in it is not broken."""
    output().print(text, markup=False, highlight=False, soft_wrap=True)


def _summary(of: Summary) -> None:
    """A row or more for each case, what they rest on, and the deviations from the RFCs."""
    console = output()
    of_dut = f", of {name}" if (name := tables.dut_name(of.dut)) else ""
    shown = tables.results(of)
    console.print(table(replace(shown, title=shown.title + of_dut)))
    for text, warns in tables.messages(of):
        console.print(text, style="bold red" if warns else None, markup=False, highlight=False)
    for deviation in of.deviations:
        console.print(f"deviates from {deviation.clause}: {deviation.text}", markup=False, highlight=False)


def table(shown: tables.Table) -> Table:
    """Words to the left, figures to the right; no digit is cut off where the terminal is narrow."""
    drawn = Table(title=escape(shown.title), title_justify="left")
    for number, head in enumerate(shown.heads):
        drawn.add_column(head, justify="left" if shown.is_word(number) else "right", overflow="fold")
    for row in shown.rows:
        drawn.add_row(*row)
    return drawn
