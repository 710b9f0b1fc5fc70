# SPDX-License-Identifier: Apache-2.0
"""What a run with connections (RFC 9693) remarks on a DUT that counted fewer than were opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dutperf.model import TrialResult, Verdict

FEWER = "fewer than were opened: does it track them, and is that the right count?"


def of_run(results: Iterable[TrialResult]) -> Iterator[str]:
    counted = [
        (own, phase.connections.learned)
        for one in results
        for phase in (*one.preliminary, one)[:1]
        if one.verdict is Verdict.VALID and phase.connections is not None and (own := one.dut_connections) is not None
    ]
    if fewer := [(own, opened) for own, opened in counted if own < opened]:
        own, opened = min(fewer)
        times = f"in {len(fewer):,} of {len(counted):,} valid trials"
        yield f"{times} the DUT counted connections, as few as {own:,} of {opened:,}, {FEWER}"
