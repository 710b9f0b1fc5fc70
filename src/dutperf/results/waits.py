# SPDX-License-Identifier: Apache-2.0
"""What a run with ``--dut-patience`` remarks on a DUT that stopped forwarding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dutperf.journal import Event, WaitEvent, of_kind


def of_run(events: Sequence[Event]) -> Iterator[str]:
    """One sentence; none where nobody waited. The trial in which the DUT stopped forwarded some frames, so that its
    losses count."""
    seconds = [one.waited_s for one in of_kind(events, WaitEvent)]
    if seconds:
        times = "once" if len(seconds) == 1 else f"{len(seconds):,} times"
        yield (
            f"the DUT forwarded nothing {times}, and was waited for {sum(seconds):,.0f} s: the trials just before may"
            " have lost frames because it stopped, not by their rates"
        )
