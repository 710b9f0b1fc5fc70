# SPDX-License-Identifier: Apache-2.0
"""``dutperf report DIR``: writes the HTML report from the journal again, also of a run that was killed
or is under way."""

from __future__ import annotations

from dutperf.api import results
from dutperf.cli.errors import reported, say
from dutperf.cli.options import Directory


def report(directory: Directory) -> None:
    """Write DIR/report.html again: tables, plots, conditions, every trial."""
    with reported():
        say(f"the report is {results.write_report(directory)}")
