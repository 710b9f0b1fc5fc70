# SPDX-License-Identifier: Apache-2.0
"""``report.html``: one file that opens offline, made from summaries and journals alone.

It has the results with their deviations from the RFCs, the test setup, the plots, the conditions
(RFC 2544 26.1: text that accompanies the graphs), and every trial. The plots are SVG in the page, so
they follow its colours and can be searched; there is no script. The page is
``templates/report.html.j2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from dutperf.errors import MissingLibrary
from dutperf.journal import PlanEvent
from dutperf.model import Axis, Unit, axes_of, shown_directions
from dutperf.model.wording import FRAMES, QUERIES, Wording
from dutperf.report import drawing
from dutperf.report.templating import environment
from dutperf.results import connections, environments, headline, labels, overload, tables
from dutperf.results.charts import Chart
from dutperf.results.headline import Headline
from dutperf.results.measured import Measured, moment
from dutperf.results.tables import Table
from dutperf.results.trials import INVALID, FinishedTrial
from dutperf.version import __version__

REPORT = "report.html"
_ARROWS = {"both": "⇄", "forward": "→", "reverse": "←"}
_LATE = ("lateness_p999_us", "lateness_max_us")


def page(measured: Sequence[Measured]) -> str:
    """The whole file for a run, or for the measurements of a suite in their order."""
    rendering = environment(Path(__file__).parent / "templates", escape=True)
    summarised = [one for one in measured if one.summary is not None]
    plan = summarised[0].plan if summarised else None
    return rendering.get_template("report.html.j2").render(
        dut=tables.dut_name({} if plan is None else plan.dut) or "a DUT without a name",
        started=None if plan is None else moment(plan.time),
        version=__version__,
        setup=_setup(plan),
        ports=_ports(plan),
        parts=[_part(one) for one in measured],
        overload=overload.table(overload.degradations([one.summary for one in summarised if one.summary is not None])),
        deviations=_deviations(summarised),
        conditions=_merged({one.name: _named(_conditions(one), labels.of_conditions()) for one in summarised}),
        environment=_merged({one.name: _named(_environment(one), labels.ENVIRONMENT) for one in summarised}),
        ranges=[(one.name, _ranges(one)) for one in summarised],
    )


def paragraphs(of: Headline, details: str = "") -> str:
    """A headline as an HTML fragment; ``details``: the address of the deviations in full."""
    warning = ' class="warning"'
    figures = "".join(f"<p{warning if warns else ''}><b>{escape(text)}</b></p>" for text, warns in of.figures)
    deviations = escape(of.deviations)
    link = f'<a href="{escape(details)}">{deviations}</a>' if details else deviations
    return f'<div class="headline">{figures}<p>{escape(of.believed)}</p><p>{link}</p></div>'


def table_of(one: Measured) -> str:
    """The headline and the table of one measurement with its messages, as an HTML fragment for a notebook."""
    if one.summary is None:
        return f"<p><b>{escape(one.name)}</b>: {escape(one.note or 'no results yet')}</p>"
    table = tables.results(one.summary)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.heads)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    texts = [text for text, _ in tables.messages(one.summary)] + [state for state in (one.state(),) if state]
    below = "".join(f"<p>{escape(text)}</p>" for text in texts)
    caption = escape(f"{one.name}: {table.title}")
    first = paragraphs(headline.of_summary(one.summary))
    return (
        f"{first}<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}"
    )


# --- test setup -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A port of the tester in the picture of the test setup."""

    name: str
    facts: tuple[tuple[str, str], ...]
    traffic: str
    """Of the link to the DUT."""
    dut_addresses: tuple[str, ...]


def _setup(plan: PlanEvent | None) -> dict[str, Any] | None:
    """Both ports of the tester and the DUT between them; None where the journal has no setup."""
    config = {} if plan is None else plan.config
    if plan is None or not all(isinstance(config.get(side), Mapping) for side in ("left", "right")):
        return None
    return {
        "left": _box("left", config, "client" if _questions(plan) else None),
        "right": _box("right", config, "name server" if _questions(plan) else None),
        "arrow": _ARROWS[plan.conditions.get("directions", "both")],
        "dut": _dut(plan, config),
        "counted": _counted(plan),
    }


def _ports(plan: PlanEvent | None) -> Table | None:
    """The ports of a setup that is not two ports; None: it has none."""
    config = {} if plan is None else plan.config
    named = config["ports"] if isinstance(config.get("ports"), Mapping) else config
    members = ("port", "version", "ipv4", "ipv6")
    rows = tuple(
        (name, *(str(port.get(member) or "–") for member in members))
        for name, port in named.items()
        if isinstance(port, Mapping) and "port" in port
    )
    paths = config.get("paths") or ()
    texts = [paths] if isinstance(paths, str) else map(str, paths)
    title = f"ports of the tester{'; paths: ' if paths else ''}{', '.join(texts)}"
    return Table(title, ("name", "port", "IP version", "IPv4", "IPv6"), rows) if rows else None


def _questions(plan: PlanEvent) -> Mapping[str, Any]:
    """What a DNS64 server is asked; empty: the DUT is none."""
    first = plan.cases[0].get("first_trial", {}) if plan.cases else {}
    questions: Mapping[str, Any] = (first.get("forward") or {}).get("questions") or {}
    return questions


def _counted(plan: PlanEvent) -> Wording:
    return QUERIES if _questions(plan) else FRAMES


def _box(side: str, config: Mapping[str, Any], role: str | None) -> Box:
    port = config[side]
    facts = [
        ("role", role),
        ("port", port.get("port")),
        ("IPv4", port.get("ipv4")),
        ("IPv6", port.get("ipv6")),
        ("seen by the other side as", port.get("seen_as")),
        ("tunnel", port.get("tunnel")),
    ]
    gateways = tuple(str(port[name]) for name in ("gateway6", "gateway4") if port.get(name))
    return Box(
        side, tuple((name, str(value)) for name, value in facts if value), f"IPv{port.get('version', '?')}", gateways
    )


def _dut(plan: PlanEvent, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    if len(row := environments.duts(plan.dut)) > 1:
        identity = [
            (str(one["name"]), ", ".join(f"{name} {labels.text(value)}" for name, value in environments.flat(rest)))
            for one in row
            if (rest := {key: value for key, value in one.items() if key != "name"})
        ]
    else:
        identity = [
            (str(name), labels.text(value))
            for name, value in environments.flat(plan.dut)
            if name not in ("name", "version")
        ]
    media = [("media", f"{config['media_mbps']:,} Mbit/s")] if config.get("media_mbps") else []
    for link in config.get("between", ()):
        speed = f"{link['mbps']:,} Mbit/s, " if link.get("mbps") else ""
        media.append(("between the DUTs", f"{speed}frames {link.get('overhead', 0):+} bytes"))
    return [*_task(plan, config), *identity, *media]


def _task(plan: PlanEvent, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    if questions := _questions(plan):
        is_asked = [
            ("asked at", questions["destination"]),
            ("zone", questions["zone"]),
            ("prefix", questions["prefix"]),
        ]
        return [("task", "DNS64 server: asks the name server, and answers the client"), *is_asked]
    versions = {config[side].get("version") for side in ("left", "right")}
    return [("task", "translates between IPv4 and IPv6" if len(versions) > 1 else "forwards")]


# --- a measurement --------------------------------------------------------------------------------


def _part(one: Measured) -> dict[str, Any]:
    has = one.summary is not None
    return {
        "name": one.name,
        "note": one.note,
        "state": one.state(),
        "headline": paragraphs(headline.of_summary(one.summary), "#deviations") if one.summary else "",
        "table": tables.results(one.summary) if one.summary else None,
        "streams": tables.by_stream(one.summary) if one.summary else None,
        "connections": connections.table(one.trials()) if has else None,
        "messages": tables.messages(one.summary) if one.summary else [],
        "results": _drawn(one, one.result_charts()),
        "progress": _drawn(one, one.progress_charts()),
        "trials": _trials(one.trials()) if has else None,
    }


def _drawn(one: Measured, charts: Iterable[Chart]) -> list[dict[str, str]]:
    return [_plot(one.figure_name(chart), chart) for chart in charts]


def _plot(name: str, chart: Chart) -> dict[str, str]:
    prefix = re.sub(r"[^a-z0-9-]", "-", name.lower())
    try:
        svg = drawing.embedded(chart, prefix)
    except MissingLibrary as missing:
        svg = f"<p>{escape(str(missing))}</p>"
    return {"name": name, "title": chart.title, "caption": chart.caption, "svg": svg}


def _trials(done: Sequence[FinishedTrial]) -> dict[str, Any]:
    """Every trial in a row: its place in the run, each direction's counts, and its outcome."""
    counted = [direction for one in done for direction in one.result.directions()]
    directions = [direction for direction in shown_directions(counted) if direction in counted]
    paths = {path: counts.counted.path(path) for one in done for path, counts in one.result.directions().items()}
    columns = ("sent", "lost", "lost, %", "lateness p99.9, µs", "max lateness, µs")
    axes = [axis for axis in axes_of(one.case for one in done) if not axis.derived]
    units = " or ".join(dict.fromkeys(one.load.unit.value for one in done)) or Unit.FRAMES_PER_SECOND.value
    heads = (
        "trial",
        *(axis.heading for axis in axes),
        "repetition",
        "attempt",
        units,
        *(f"{paths[direction]} {name}" for direction in directions for name in columns),
        "verdict by",
    )
    rows = tuple(_trial_row(one, axes, directions) for one in done)
    invalid = sum(one.outcome == INVALID for one in done)
    return {"table": Table("every trial", heads, rows), "count": len(done), "invalid": invalid}


def _trial_row(one: FinishedTrial, axes: Sequence[Axis[Any]], directions: Sequence[str]) -> tuple[str, ...]:
    record = one.record()
    numbers = (f"{one.repetition:,}", f"{one.attempt:,}", f"{one.load.value:,}")
    where = (f"{one.number:,}", *tables.case_cells(one.case, axes), *numbers)
    counted = tuple(cell for direction in directions for cell in _counts(record, direction))
    return (*where, *counted, f"{one.outcome}: {record['causes']}" if record["causes"] else one.outcome)


def _counts(record: Mapping[str, Any], direction: str) -> tuple[str, ...]:
    if f"{direction}.sent" not in record:
        return ("–",) * 5
    sent, lost, ratio = (record[f"{direction}.{name}"] for name in ("sent", "lost", "loss_ratio"))
    return (
        f"{sent:,}",
        f"{lost:,}",
        f"{ratio * 100:.4f}",
        *(f"{record[f'{direction}.{name}']:,.1f}" for name in _LATE),
    )


# --- of all measurements --------------------------------------------------------------------------


def _deviations(measured: Sequence[Measured]) -> list[tuple[str, str, str]]:
    """Clause, text, and the names of the measurements where not all have the deviation."""
    owners: dict[tuple[str, str], list[str]] = {}
    for one in measured:
        for deviation in one.summary.deviations if one.summary else ():
            owners.setdefault((deviation.clause, deviation.text), []).append(one.name)
    return [
        (clause, text, "" if len(names) == len(measured) else ", ".join(names))
        for (clause, text), names in owners.items()
    ]


def _conditions(one: Measured) -> dict[str, Any]:
    assert one.summary is not None
    counted = _counted(one.plan)
    return {name: labels.rates(value, counted) for name, value in one.summary.conditions.items() if name != "ranges"}


def _environment(one: Measured) -> dict[str, Any]:
    assert one.summary is not None
    return {**one.summary.environment, "started": moment(one.summary.environment["started"])}


def _ranges(one: Measured) -> Table:
    """The limits of each case, from the plan."""
    assert one.summary is not None
    ranges = (tables.with_case(limits) for limits in one.summary.conditions["ranges"])
    rows = tables.uniform([dict(environments.flat(limits)) for limits in ranges])
    return Table(
        f"rates of {one.name}",
        tuple(name.replace("_", " ") for name in rows[0]),
        tuple(tuple(map(labels.text, row.values())) for row in rows),
    )


def _named(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    return {labels.name_of(name, names): labels.text(value) for name, value in environments.flat(values)}


def _merged(by_measurement: Mapping[str, Mapping[str, str]]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each name with its values; a value that not all measurements have comes with the names of
    those that have it."""
    merged = []
    for name in dict.fromkeys(name for values in by_measurement.values() for name in values):
        owners: dict[str, list[str]] = {}
        for measurement, values in by_measurement.items():
            if name in values:
                owners.setdefault(values[name], []).append(measurement)
        merged.append(
            (
                name,
                [
                    (value, "" if len(those) == len(by_measurement) else ", ".join(those))
                    for value, those in owners.items()
                ],
            )
        )
    return merged
