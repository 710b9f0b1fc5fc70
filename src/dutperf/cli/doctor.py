# SPDX-License-Identifier: Apache-2.0
"""``dutperf doctor``: what this machine offers for measuring and what it lacks."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from dutperf.cli import show
from dutperf.cli.errors import reported
from dutperf.doctor import Finding, examine

_STYLE = {"ok": "green", "note": "yellow", "lack": "red"}


def doctor() -> None:
    """Say what this machine offers and lacks, with a line of advice for each lack."""
    with reported():
        show.output().print(as_table(examine()))


def as_table(findings: list[Finding]) -> Table:
    """One row for each finding, advice below it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        style = _STYLE[finding.state]
        advice = f"\n[italic]{escape(finding.advice)}[/]" if finding.advice else ""
        table.add_row(f"[{style}]{finding.state}[/]", finding.topic, escape(finding.text) + advice)
    return table
