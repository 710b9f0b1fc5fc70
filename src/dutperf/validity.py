# SPDX-License-Identifier: Apache-2.0
"""Tells the tester's faults from the DUT's: from what the engine counted to the verdict on a trial.

A loss may be blamed on the DUT only if the tester can show that it sent every frame in time and dropped none itself. The rules, and why their
limits are what they are, stand in docs/decisions/0003-validity.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.model import Cause, Direction, DirectionCounts, Trial, Verdict

SENDING_TIME_TOLERANCE = 1.00001
"""Sending may take this many times the trial's duration (siitperf's rule; Lencse, IJATES2 9(3), 2020)."""
SENDING_TIME_SLACK_S = 600e-6
"""... but never less than this beyond it: what the rule grants the 60 s trial of RFC 2544 section 24."""
LATENESS_LIMIT_US = 50_000.0
"""No frame may be later than this: what follows a longer silence is a burst, not the intended load."""
LATENESS_LIMIT_WITH_LOSS_US = 10_000.0
"""The limit where frames were lost: the loss may be the work of the burst that made up for the delay."""

CAUSES = {
    "sending_time": "sending took longer than the trial allows",
    "unsent": "the tester did not send all frames",
    "sender_late": "frames left too late, the DUT got a burst instead of the intended load",
    "receiver_away": "the receiving loop was away while frames were lost",
    "tester_drops": "the tester itself dropped frames",
    "received_too_many": "more frames arrived than were sent",
    "stopped": "the trial was stopped before its end",
    "engine_died": "the engine ended while the trial ran",
}
"""Code of a cause -> its meaning. The first ones make a trial invalid, ``stopped`` and ``engine_died`` aborted."""


def judge(trial: Trial, counts: dict[Direction, DirectionCounts]) -> tuple[Verdict, tuple[Cause, ...]]:
    """The verdict on a completed trial, with every cause that speaks against it."""
    causes = tuple(cause for direction, one in counts.items() for cause in _causes(trial, direction, one))
    return (Verdict.INVALID if causes else Verdict.VALID), causes


def sending_time_limit_s(duration_s: float) -> float:
    """Longest valid sending time, in seconds."""
    return max(duration_s * SENDING_TIME_TOLERANCE, duration_s + SENDING_TIME_SLACK_S)


def _causes(trial: Trial, direction: Direction, counts: DirectionCounts) -> Iterator[Cause]:
    def cause(code: str, text: str) -> Cause:
        return Cause(code=code, text=f"{direction}: {text}", direction=direction)

    limit_s = sending_time_limit_s(trial.duration_s)
    if counts.sent < counts.intended:
        yield cause("unsent", f"only {counts.sent:,} of {counts.intended:,} frames were sent in {counts.send_time_s:.6f} s")
    elif counts.send_time_s > limit_s:
        yield cause("sending_time", f"sending took {counts.send_time_s:.6f} s, more than the {limit_s:.6f} s allowed")
    if counts.lost < 0:
        yield cause("received_too_many", f"{counts.received:,} frames arrived, but only {counts.sent:,} were sent")
    dropped = {name: count for name, count in counts.tester_drops.items() if count}
    if dropped:
        yield cause("tester_drops", "the tester itself dropped " + ", ".join(f"{count:,} frames ({name})" for name, count in dropped.items()))
    lateness_limit_us = LATENESS_LIMIT_WITH_LOSS_US if counts.lost > 0 else LATENESS_LIMIT_US
    if counts.lateness_us.max > lateness_limit_us:
        yield cause("sender_late", f"a frame left {counts.lateness_us.max / 1000:.3f} ms late, more than the {lateness_limit_us / 1000:g} ms allowed"
                    + (" where frames are lost" if counts.lost > 0 else ""))
    if counts.lost > 0 and counts.away_us.receiver > LATENESS_LIMIT_WITH_LOSS_US:
        yield cause("receiver_away", f"the receiving loop was away for {counts.away_us.receiver / 1000:.3f} ms while frames were lost")
