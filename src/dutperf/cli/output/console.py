# SPDX-License-Identifier: Apache-2.0
"""Results as tables for a person, on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.console import JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dutperf.cli.output.terminal import line, output
from dutperf.model import (
    IPV6_HEADER_EXCESS,
    CaptureWritten,
    Delays,
    Direction,
    DirectionCounts,
    KindCounts,
    LengthChanges,
    MatchedByLength,
    NicArrivals,
    NicDepartures,
    StreamCounts,
    Trial,
    TrialResult,
    Verdict,
    to_json,
)
from dutperf.results import (
    beside,
    by_metrics,
    connections,
    filled_lines,
    headline,
    idle_offloads,
    loss,
    modifier_frames,
    overload,
    tables,
    tester_delay,
)
from dutperf.run.campaign import Summary
from dutperf.spelling import count_of, shortened

if TYPE_CHECKING:  # it knows procedures, which a single trial does not need
    from dutperf.run.suite import SuiteSummary

_STYLE = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.ABORTED: "bold red"}
_MEANING = {
    Verdict.VALID: "the tester sent every frame in time and dropped none itself",
    Verdict.INVALID: "this trial says nothing about the DUT",
    Verdict.ABORTED: "this trial did not finish",
}

_BY_METRICS = "by its metrics the OTG server sent every frame; what they do not prove stands below"

Row = tuple[str, Callable[[DirectionCounts], str]]

_OTHER_TAGS: Row = (
    "with other VLAN tags",
    lambda counts: _number(0 if counts.vlan_tags is None else counts.vlan_tags.other),
)

_OTHER_ENCAPSULATION: tuple[Row, ...] = (
    ("still in the tunnel", lambda counts: _number(counts.not_decapsulated)),
    ("outside of the tunnel", lambda counts: _number(counts.not_encapsulated)),
)

_SENT_AND_LOST: tuple[Row, ...] = (
    ("sent", lambda counts: f"{counts.sent:,}"),
    ("received", lambda counts: f"{counts.received:,}"),
    ("lost", lambda counts: f"{counts.lost:,}"),
    ("loss ratio", lambda counts: f"{counts.loss_ratio:.6%}"),
)
_ALWAYS: tuple[Row, ...] = (("intended frames", lambda counts: f"{counts.intended:,}"), *_SENT_AND_LOST)
_OF_ENGINE: tuple[Row, ...] = (
    ("sending time, s", lambda counts: f"{counts.send_time_s:.6f}"),
    ("lateness, µs: median", lambda counts: f"{counts.lateness_us.p50:,.1f}"),
    ("    p99, p99.9", lambda counts: f"{counts.lateness_us.p99:,.1f}, {counts.lateness_us.p999:,.1f}"),
    ("    largest", lambda counts: f"{counts.lateness_us.max:,.1f}"),
    ("longest loop stall, µs: sender", lambda counts: f"{counts.stall_us.sender:,.1f}"),
    ("    receiver", lambda counts: f"{counts.stall_us.receiver:,.1f}"),
)
_WHERE_ANY: tuple[Row, ...] = (
    ("lost when", lambda counts: loss.when(counts) or ""),
    ("later than the frame timeout, among the lost", lambda counts: _number(counts.late)),
    ("background received", lambda counts: _number(counts.background_received)),
    ("duplicates", lambda counts: _number(counts.duplicates)),
    ("reordered", lambda counts: _number(counts.out_of_order)),
    ("extra: of no frame's length and place", lambda counts: _number(counts.matched.extra if counts.matched else 0)),
    ("of another trial", lambda counts: _number(counts.stale)),
    ("corrupted", lambda counts: _number(counts.corrupted)),
    ("with unfinished checksums", lambda counts: _number(counts.unfinished_checksums)),
    ("with UDP checksum 0 over IPv6", lambda counts: _number(counts.zero_checksums)),
    _OTHER_TAGS,
    *_OTHER_ENCAPSULATION,
    ("for other addresses", lambda counts: _number(0 if counts.destinations is None else counts.destinations.other)),
    ("not accepted at first (TX full)", lambda counts: _number(counts.not_accepted)),
    ("dropped by the tester", lambda counts: _by_kind(counts.tester_drops)),
    (
        "counted as sent by",
        lambda counts: "nobody" if counts.lost and counts.transmitted and counts.transmitted.by == "nobody" else "",
    ),
    ("tolerance at the media's rate, µs", lambda counts: f"{counts.tolerance_us:,.1f}" if counts.tolerance_us else ""),
    (
        "longest wait in the full transmit ring, µs",
        lambda counts: (
            "unknown" if counts.waited_us is None else f"{counts.waited_us:,.1f}" if counts.waited_us else ""
        ),
    ),
    ("dropped before the DUT's input", lambda counts: _number(counts.dut_input_drops)),
    ("other frames received", lambda counts: _by_kind(counts.other_received)),
    ("delay, µs: smallest, median", lambda counts: _delays(counts, "min", "p50")),
    ("    p99, p99.9", lambda counts: _delays(counts, "p99", "p999")),
    ("    largest", lambda counts: _delays(counts, "max")),
    ("delays by NIC timestamps", lambda counts: _nic_count(counts.receive_timestamps, "by_nic")),
    (
        "    by poll time, without a NIC timestamp",
        lambda counts: _number(counts.receive_timestamps.by_poll if counts.receive_timestamps else 0),
    ),
    ("delays by timestamps of the kernel or cards", lambda counts: _stamps(counts, "both")),
    ("    frames without one of them", lambda counts: _stamps(counts, "missing")),
    ("clocks of the delays", lambda counts: "" if counts.clocks is None else str(counts.clocks)),
    ("frames sent at a time set in the NIC", lambda counts: _nic_count(counts.send_at, "timed")),
    ("    sent at once instead", lambda counts: _number(counts.send_at.at_once if counts.send_at else 0)),
    ("    largest uncertainty of the NIC's clock, µs", lambda counts: _uncertainty(counts)),
    (
        "rate limit of each queue, Mbit/s",
        lambda counts: "" if counts.rate_limit_mbps is None else f"{counts.rate_limit_mbps:,}",
    ),
)


def trial(report: dict[str, Any], result: TrialResult) -> None:
    """One trial: counts of each direction, the verdict and its causes."""
    console = output()
    planned = Trial.model_validate(report["trial"])
    title = f"{_title(report)}: {_on_the_wire(planned)}"
    if planned.sends_others_alone:
        title = f"{count_of(len(planned.streams()), 'stream')} with rates of their own"
    if result.directions():
        console.print(_counts(title, result))
        if any(counts.kinds for counts in result.directions().values()):
            _by_frames(report.get("kinds", {}), result)
    _verdict(result)
    if report["passed"] is not None:
        late = (
            ""
            if report["frame_timeout_ms"] is None
            else f"; a frame later than {report['frame_timeout_ms']:g} ms counts as lost"
        )
        goal = f"loss ratio goal {report['loss_tolerance']:g}"
        without_loss = "no loss" if not report["loss_tolerance"] else goal
        console.print(f"passed ({without_loss}){late}" if report["passed"] else f"failed ({goal}){late}")
    for text in modifier_frames.of_trial(planned, result):
        line(text)
    for text in _remarks(result):
        line(text)


def replay(report: dict[str, Any], result: TrialResult) -> None:
    """One trial with the frames of a capture: as :func:`trial`, and how they were counted."""
    planned = Trial.model_validate(report["trial"])
    [stream] = planned.streams().values()
    assert stream.replay is not None, "a replay"
    rates_fps = report["replay"]["rates_fps"]
    mean = f", {_on_the_wire(planned)} in the mean" if any(one["intended"] for one in rates_fps.values()) else ""
    title = f"{count_of(stream.replay.frames, 'frame')} of {report['replay']['file']}{mean}"
    if result.directions():
        output().print(_counts(title, result))
    _verdict(result)
    if report["passed"] is not None:
        goal = f"loss ratio goal {report['loss_tolerance']:g}" if report["loss_tolerance"] else "no loss"
        line(f"{'passed' if report['passed'] else 'failed'} ({goal})")
    for direction, rates in rates_fps.items():
        if shown := ", ".join(f"{name} {rate:,.1f}" for name, rate in rates.items() if rate is not None):
            line(f"{direction}, frames/s: {shown}")
    line(f"counted {report['replay']['counted']}")
    for counts in result.directions().values():
        if counts.matched is not None:
            line(matched_in_words(counts.matched, stream.replay.length_changes))
    for text in _remarks(result):
        line(text)


def matched_in_words(matched: MatchedByLength, changes: LengthChanges) -> str:
    """How frames without a tag were counted, and how far that can be trusted."""
    changed = {name: change for name, change in changes.model_dump().items() if change}
    by = "the bytes behind the IP header" + (
        f", changed by {', '.join(f'{change:+} ({name})' for name, change in changed.items())}" if changed else ""
    )
    return (
        f"{count_of(matched.sent, 'frame')} without a tag {'was' if matched.sent == 1 else 'were'} matched with what"
        f" arrived by order and length ({by}):"
        f" {matched.in_order:,} in order, {matched.reordered:,} reordered, {matched.lost:,} lost, {matched.extra:,}"
        " extra. This is weaker evidence than tags: a frame of another source may stand for a lost one of its length,"
        " and damage is not seen"
    )


def _verdict(result: TrialResult) -> None:
    console = output()
    style = _STYLE[result.verdict]
    is_by_metrics = any(counts.by_metrics for counts in result.all_directions().values())
    meaning = _BY_METRICS if is_by_metrics and result.verdict is Verdict.VALID else _MEANING[result.verdict]
    console.print(f"[{style}]{result.verdict}[/]: {meaning}")
    for cause in result.causes:
        console.print(f"  {cause.text}", markup=False, highlight=False)


def _title(report: dict[str, Any]) -> str:
    size, size_ipv4 = report["frame_size"], report["frame_size_ipv4"]
    if report.get("size_mix") is not None:
        return f"frames of {report['size_mix']}, {size} bytes in the mean"
    return f"{size} byte frames" + (f" ({size_ipv4} IPv4)" if size_ipv4 != size and _has_ipv4(report) else "")


def _has_ipv4(report: dict[str, Any]) -> bool:
    """Whether the foreground of any port is IPv4."""
    config = report["config"]
    sides = config["ports"].values() if "ports" in config else (config["left"], config["right"])
    return any(side["version"] == 4 for side in sides)


def _on_the_wire(trial: Trial) -> str:
    """Rate and bit rate with preambles and gaps: of the direction whose frames are longer by an IP header's difference,
    or of each where they have rates or sizes of their own."""
    streams = trial.streams()
    mbps = {way: stream.rate_fps * stream.wire_bits / 1e6 for way, stream in streams.items()}
    rates = {way: stream.rate_fps for way, stream in streams.items()}
    bits = [stream.wire_bits for stream in streams.values()]
    of_their_own = len(set(rates.values())) > 1 or max(bits) - min(bits) > 8 * IPV6_HEADER_EXCESS
    if trial.paths is None and of_their_own:
        each = (f"{way} {fps:,} frames/s, {mbps[way]:,.2f} Mbit/s" for way, fps in rates.items())
        return f"{'; '.join(each)} on the wire"
    where = "in each direction" if trial.paths is None else "on each path"
    return f"{max(rates.values()):,} frames/s, {max(mbps.values()):,.2f} Mbit/s on the wire {where}"


def _remarks(result: TrialResult) -> Iterator[str]:
    yield from idle_offloads.of_trial(result)
    yield from filled_lines.of_trial(result)
    yield from tester_delay.of_trial(result)
    yield from by_metrics.of_trial(result)
    answered = result.dut_answered.ports()
    for name, up in result.link_up.ports().items():
        if not up:
            yield f"the link of port {name} was down at the end of the trial"
        if not answered.get(name, True):
            yield f"the DUT did not answer ARP or NDP on port {name} before the trial"
    if result.capture is not None:
        yield captured(result.capture)
    yield from beside.of_trial(result)
    if opened := connections.sentence(result):
        yield opened
    yield from loss.asked_in_words(result)
    for direction, causes in (result.dut_losses or {}).items():
        yield f"the DUT's own counters, {direction}: {_by_kind(causes) or 'nothing'} lost"
    if result.dut_losses_unknown is not None:
        yield (
            result.dut_losses_unknown
            if result.dut_losses is not None
            else f"{loss.UNKNOWN}: {result.dut_losses_unknown}"
        )


def captured(capture: CaptureWritten) -> str:
    """What the capture file has, and what it has not."""
    if capture.error is not None:
        return f"the capture file could not be written: {capture.error}"
    written = _by_kind({kind: count for kind, count in to_json(capture.written).items() if count})
    left_out = _by_kind({kind: count for kind, count in to_json(capture.left_out).items() if count})
    return f"captured: {written or 'no frame'}" + (f"; left out: {left_out}" if left_out else "")


def _counts(title: str, result: TrialResult) -> Table:
    directions = result.all_directions()
    if result.paths is not None or all(direction.stream for direction in directions):
        return _paths(title, result)
    table = Table(title=escape(title), title_justify="left")
    table.add_column("", overflow="fold")
    for direction in directions:
        table.add_column(escape(direction.value), justify="right", overflow="fold")
    is_by_metrics = any(counts.by_metrics for counts in directions.values())
    for name, cell in _ALWAYS if is_by_metrics else (*_ALWAYS, *_OF_ENGINE):
        table.add_row(name, *(escape(cell(counts)) for counts in directions.values()))
    for name, cell in _WHERE_ANY:
        cells = [cell(counts) for counts in directions.values()]
        if any(cells):
            table.add_row(name, *map(escape, cells))
    places = [
        loss.where_in_words(
            loss.where(counts),
            (result.dut_losses or {}).get(direction),
            valid=result.verdict is Verdict.VALID and not direction.stream,
        )
        for direction, counts in directions.items()
    ]
    if any(places):
        table.add_row("lost where", *map(escape, places))
    return table


_OF_PATHS: tuple[Row, ...] = (
    *_SENT_AND_LOST,
    ("duplicates", lambda counts: _number(counts.duplicates)),
    ("reordered", lambda counts: _number(counts.out_of_order)),
    ("corrupted", lambda counts: _number(counts.corrupted)),
    ("with unfinished checksums", lambda counts: _number(counts.unfinished_checksums)),
    ("with UDP checksum 0 over IPv6", lambda counts: _number(counts.zero_checksums)),
    _OTHER_TAGS,
    *_OTHER_ENCAPSULATION,
    ("at another port", lambda counts: _by_kind(counts.misdelivered or {})),
    ("median delay, µs", lambda counts: "" if counts.delay_us is None else f"{counts.delay_us.p50:,.1f}"),
    ("largest delay, µs", lambda counts: "" if counts.delay_us is None else f"{counts.delay_us.max:,.1f}"),
    ("dropped by the tester", lambda counts: _by_kind(counts.tester_drops)),
    ("other frames received", lambda counts: _by_kind(counts.other_received)),
)


def _paths(title: str, result: TrialResult) -> Table:
    """A line for each path, and where there are several, all of them in sum."""
    directions = result.directions()
    shown = [row for number, row in enumerate(_OF_PATHS) if number < 4 or any(map(row[1], directions.values()))]
    table = Table(title=escape(title), title_justify="left")
    for name in ("path", *(name for name, _ in shown)):
        table.add_column(name, justify="left" if name == "path" else "right", overflow="fold")
    for direction, counts in result.all_directions().items():
        table.add_row(escape(direction.value), *(escape(cell(counts)) for _, cell in shown))
    if len(directions) > 1:
        table.add_section()
        total = _in_sum(result)
        counted = "paths" if result.paths is not None else "streams"
        table.add_row(f"{len(directions)} {counted} in sum", *(total.get(name, "") for name, _ in shown))
    return table


def _in_sum(result: TrialResult) -> dict[str, str]:
    counted = result.directions().values()
    sent, received = (sum(getattr(one, name) for one in counted) for name in ("sent", "received"))
    total = {
        "sent": f"{sent:,}",
        "received": f"{received:,}",
        "lost": f"{sent - received:,}",
        "loss ratio": f"{result.loss_ratio_in_sum:.6%}",
    }
    if result.in_sum is not None:
        delays = result.in_sum.delay_us
        total |= {"median delay, µs": f"{delays.p50:,.1f}", "largest delay, µs": f"{delays.max:,.1f}"}
    return total


def _by_frames(names: Mapping[Direction, Sequence[str]], result: TrialResult) -> None:
    """Of several kinds of frames each by itself, and what flows lost."""
    for direction, counts in result.directions().items():
        kinds = counts.kinds or ()
        streams = counts.by_stream()
        for name, stream in streams.items() if len(streams) < len(kinds) else ():
            line(f"{direction}, {name}: {_lost_of(stream)}{_delay_of(stream.delay_us)}")
        for name, kind in zip(names[direction], kinds, strict=True):
            if len(kinds) > 1:
                line(f"{direction}, {name}: {_sent_and_lost(kind)}")
            if kind.flows is not None and any(lost := kind.flows.lost()):
                worst = max(range(len(lost)), key=lost.__getitem__)
                several = sum(1 for one in lost if one)
                line(
                    f"{direction}, {name}: {several:,} of {len(lost):,} flows had losses, the most flow {worst}:"
                    f" {lost[worst]:,} of {kind.flows.sent[worst]:,} frames"
                )


def _sent_and_lost(kind: KindCounts) -> str:
    delay = "" if kind.delay_us is None else f"; delay {kind.delay_us[1]:,.1f} µs, at most {kind.delay_us[2]:,.1f} µs"
    return f"{_lost_of(kind)}{delay}"


def _lost_of(counts: KindCounts | StreamCounts) -> str:
    return f"{f'{counts.lost:,}' if counts.lost else 'nothing'} lost of {counts.sent:,} frames"


def _delay_of(delay: Delays | None) -> str:
    return "" if delay is None else f"; median delay {delay.p50:,.1f} µs, at most {delay.max:,.1f} µs"


def _delays(counts: DirectionCounts, *figures: str) -> str:
    """Those of frames that arrived, or count as delayed though they were lost."""
    delay = counts.delay_us
    return "" if delay is None or not delay.frames else ", ".join(f"{getattr(delay, one):,.1f}" for one in figures)


def _stamps(counts: DirectionCounts, member: str) -> str:
    return "" if counts.stamps is None else _number(getattr(counts.stamps, member))


def _nic_count(counts: NicArrivals | NicDepartures | None, member: str) -> str:
    return "" if counts is None else f"{getattr(counts, member):,}"


def _uncertainty(counts: DirectionCounts) -> str:
    uncertainties_us = [one.uncertainty_us for one in (counts.receive_timestamps, counts.send_at) if one is not None]
    return f"{max(uncertainties_us):,.2f}" if uncertainties_us else ""


def _number(count: int) -> str:
    return f"{count:,}" if count else ""


def _by_kind(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def result(of: Summary | SuiteSummary, *, verbose: bool = False) -> None:
    """Show the results of a run, or of each measurement of a suite under its name; ``verbose``: with each
    deviation and whole causes."""
    if isinstance(of, Summary):
        _summary(of, verbose)
        return
    for part in of.measurements:
        output().rule(f"[bold]{escape(part.name)}", align="left")
        if part.note is not None:
            line(part.note)
        if part.summary is not None:
            _summary(part.summary, verbose)
    if (shown := overload.table(of.overload)) is not None:
        output().print(table(shown))


def _summary(of: Summary, verbose: bool) -> None:
    """The headline, rows for each case, messages, and the deviations from the RFCs in full."""
    console, first = output(), headline.of_summary(of)
    for text, warns in first.figures:
        line(text if verbose else shortened(text), style="bold red" if warns else "bold")
    line(first.believed)
    line(f"{first.deviations}, see the report or --verbose" if of.deviations and not verbose else first.deviations)
    of_dut = f", of {name}" if (name := tables.dut_name(of.dut)) else ""
    shown = tables.results(of)
    console.print(table(replace(shown, title=shown.title + of_dut)))
    if (streams := tables.by_stream(of)) is not None:
        console.print(table(streams))
    for text, warns in tables.messages(of):
        text = shortened(text) if warns and not verbose else text
        console.print(text, style="bold red" if warns else None, markup=False, highlight=False)
    for deviation in of.deviations if verbose else ():
        console.print(f"deviates from {deviation.clause}: {deviation.text}", markup=False, highlight=False)


def table(shown: tables.Table, styles: Mapping[str, str] = MappingProxyType({})) -> Table:
    """Words left-aligned, figures right-aligned, without columns that are empty. In a terminal that is too
    narrow for whole words and figures they are folded, never cut off. ``styles``: of some texts."""
    used = [number for number in range(len(shown.heads)) if any(row[number] for row in shown.rows)]
    widths, padding = _widths(shown, used)
    drawn = Table(title=escape(shown.title), title_justify="left", padding=(0, padding))
    for number, width in zip(used, widths, strict=True):
        justify: JustifyMethod = "left" if shown.is_word(number) else "right"
        drawn.add_column(escape(shown.heads[number]), justify=justify, overflow="fold", width=width)
    for row in shown.rows:
        drawn.add_row(*(Text(row[number], style=styles.get(row[number], "")) for number in used))
    return drawn


def _widths(shown: tables.Table, used: Sequence[int]) -> tuple[list[int | None], int]:
    """Widths of the columns, and the space at either side of their texts. Each has room for its longest text, without
    that space if need be; else for its longest word, and what is left goes to the columns whose texts are longer, from
    left to right. None: no such widths fit."""
    texts = [[shown.heads[number], *(row[number] for row in shown.rows)] for number in used]
    whole = [max(map(len, column)) for column in texts]
    for padding in (1, 0):
        if _spare(whole, padding) >= 0:
            return list(whole), padding
    words = [max((len(word) for text in column for word in text.split()), default=1) for column in texts]
    for padding in (1, 0):
        spare = _spare(words, padding)
        if spare < 0:
            continue
        widths: list[int | None] = []
        for text, longest in zip(whole, words, strict=True):
            more = min(spare, text - longest)
            spare -= more
            widths.append(longest + more)
        return widths, padding
    return [None] * len(used), 1


def _spare(widths: Sequence[int], padding: int) -> int:
    """What columns of these widths and their frames leave of the terminal."""
    return output().width - sum(widths) - (2 * padding + 1) * len(widths) - 1
