# SPDX-License-Identifier: Apache-2.0
"""Which of a point's repeated searches says what the point is limited by, and what a person is told
of it; from the journal's ``search`` events."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.journal import Event
from dutperf.model import LimitedBy

SERIOUSNESS = (LimitedBy.TESTER, LimitedBy.DUT, LimitedBy.RANGE, LimitedBy.MEDIA)
"""What a point is limited by where its repetitions differ: the first of these that any has.

``tester`` first: one repetition that only shows what the tester can do puts the median and the
percentiles in doubt. Then ``dut``, which is a result. ``range`` before ``media``: of a range that
ended too early (or in which nothing passed) a person can do something about it.
"""


def decisive(found: Sequence[Event], above: str) -> Event | None:
    """The repetition that says what the point is limited by: one that found a dead DUT, else the
    lowest of the most serious kind; None: there is none.

    ``above``: the member that holds the load which did not pass, a rate or the length of a burst.
    """
    return min(
        found,
        key=lambda search: (not search["silent"], SERIOUSNESS.index(search["limited_by"]), search[above] or 0),
        default=None,
    )


def message(found: Sequence[Event], above: str) -> str:
    """Why the decisive repetition's value is what it is, and in how many of them it is so."""
    one = decisive(found, above)
    if one is None:
        return "not measured"
    alike = sum(search["limited_by"] == one["limited_by"] for search in found)
    share = "" if alike == len(found) or one["silent"] else f"in {alike} of {len(found)} repetitions "
    return share + str(one["message"])


def without_waits(results: Sequence[Event], waits: Sequence[Event]) -> list[Event]:
    """The ``result`` events without trials that met a DUT which was down and came back: they were
    repeated, and show nothing of a load."""
    met = {(wait["repetition"], wait["trial"]) for wait in waits if wait["answered"]}
    return [event for event in results if (event["repetition"], event.get("trial")) not in met]
