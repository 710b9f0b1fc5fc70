# SPDX-License-Identifier: Apache-2.0
"""Rules for the tester's own name server, for which a DNS64 server asks: what it loses, or answers late, is no fault of
the DUT. They are a part of the rules of :mod:`dutperf.judge.validity`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dutperf.judge.own_loss import loss_matters
from dutperf.model import Cause, Direction, DirectionCounts, ServerCounts, Trial

DROPS, LATE = "server_drops", "server_late"
SHARE_OF_TIMEOUT = 0.25
"""The server may take this share of a query's timeout (RFC 8219 section 9.2.1: two queries in half of it)."""


def of_server(
    trial: Trial, counts: Mapping[Direction, DirectionCounts], server: ServerCounts | None
) -> Iterator[Cause]:
    """The tester's server answered every query of the DUT in time."""
    if server is None:
        return
    if server.dropped:
        parts = {**server.tester_drops, "answers that could not be sent": server.unsent}
        told = ", ".join(f"{count:,} ({name})" for name, count in parts.items() if count)
        yield Cause(code=DROPS, text=f"the tester's own name server lost queries or answers: {told}")
    if server.delay_ns is None or trial.frame_timeout_ns is None:
        return
    limit_ns = SHARE_OF_TIMEOUT * trial.frame_timeout_ns
    if server.delay_ns.max > limit_ns and any(loss_matters(trial, one) for one in counts.values()):
        yield Cause(
            code=LATE,
            text=(
                f"the tester's own name server took up to {server.delay_ns.max / 1e6:.3f} ms to answer, more than the"
                f" {limit_ns / 1e6:g} ms allowed, while queries were not answered in time"
            ),
        )
