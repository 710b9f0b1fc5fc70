# SPDX-License-Identifier: Apache-2.0
"""Lost frames in words: when they were lost, in runs or one by one, and where, as far as the
tester's counters show.

The time of a loss is unknown, but a lost frame's number says when it was due: all times are due
times (docs/recovery-and-reset.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dutperf.model import LOSS_BINS, DirectionCounts, Losses, PhaseResult
from dutperf.model.digits import two_digits

ELSEWHERE = "elsewhere"
AT_ONCE_SHARE = 0.1
"""Losses that span less than this share of the sending time count as simultaneous."""
SCATTERED_SHARE = 0.2
"""Losses in less than this share of the hundredths of the sending time that they span count as
scattered."""
EPISODE_SHARE = 0.02
"""Losses that span at most this share of the sending time are one short episode, if it is over before the last
such share: a rate a little too high fills a queue, and only the end of the trial loses frames."""
OUTAGE_SHARE = 0.9
"""A longer one is an outage if so many of the frames were lost in a row. A queue that is full lets frames through."""
FEWEST_IN_EPISODE = 5
"""Fewer frames, lost at random, may lie so close together by chance; a single one always does."""


def when(counts: DirectionCounts) -> str | None:
    """``from 0.41 s to the end, in runs of up to 32 frames``; None where every frame arrived, even
    if late. Where none arrived there is no pattern to tell."""
    if counts.losses is not None and sum(counts.losses.bins) == counts.sent:
        return "every frame"
    return None if counts.losses is None else f"{_span(counts.losses, counts.send_time_s)}{_runs(counts.losses)}"


@dataclass(frozen=True)
class Episode:
    """In which a trial lost all its lost frames, in seconds."""

    name: str
    span_s: float

    def __str__(self) -> str:
        return f"{self.name}, all within {span_in_words(self.span_s)}"


def episode(counts: Iterable[DirectionCounts], *, disturbed: bool = False) -> Episode | None:
    """The one in which a trial lost all its lost frames: short, or an outage of some length, up to the whole trial, in
    which nearly every frame was lost. None: there was none, or other losses too. ``disturbed``: a few others may be
    the tester's.

    A DUT that is overloaded loses frames for as long as it is, and not all of them. One episode may be the DUT's (a
    pause that comes now and then, a restart) or somebody else's turn on its core; the trial alone cannot tell.
    """
    lossy = [one for one in counts if one.lost]
    losses = [one.losses for one in lossy if one.losses is not None and (disturbed or not one.late)]
    if not lossy or len(losses) < len(lossy) or sum(one.lost for one in lossy) < FEWEST_IN_EPISODE:
        return None
    first_s, last_s = min(one.first_s for one in losses), max(one.last_s for one in losses)
    send_time_s = max(one.send_time_s for one in lossy)
    limit_s = EPISODE_SHARE * send_time_s
    if last_s - first_s <= limit_s and last_s < send_time_s - limit_s:
        return Episode("one short episode", last_s - first_s)
    are_outages = [_is_outage(*one, disturbed) for one in zip(lossy, losses, strict=True)]
    return Episode("one outage", last_s - first_s) if all(are_outages) else None


def _is_outage(counts: DirectionCounts, losses: Losses, disturbed: bool) -> bool:
    """Whether nearly all lost frames were lost in a row, and the others close to them if nothing ``disturbed`` the
    trial."""
    due = 0.0 if disturbed else (losses.last_s - losses.first_s) * counts.sent / counts.send_time_s
    return losses.longest_run >= OUTAGE_SHARE * max(counts.lost, due)


def where(counts: DirectionCounts) -> dict[str, int]:
    """Where the lost frames were lost: those that came late first, then in the order of their path; the sum is
    ``lost``.

    Counters of ports have frames of others too, so each explains at most what is left; the tester's come before
    the DUT's. ``ELSEWHERE``: frames handed to the DUT that no counter of the tester has. In a valid trial the DUT
    lost them.
    """
    counted = {
        "later than the frame timeout": counts.late,
        **{f"tester: {name}": count for name, count in counts.tester_drops.items()},
        "not handed to the DUT": counts.dut_input_drops,
        "corrupted": counts.corrupted,  # a DUT may send a corrupted copy beside the frame itself
        ELSEWHERE: counts.lost,
    }
    places, left = {}, max(0, counts.lost)
    for name, count in counted.items():
        places[name] = min(count, left)
        left -= places[name]
    return {name: count for name, count in places.items() if count}


def where_in_words(places: Mapping[str, int], causes: Mapping[str, int] | None = None, *, valid: bool) -> str:
    """``12 not handed to the DUT, 30 in the DUT``, from the result of :func:`where`. In a trial that is not valid the
    DUT's own loss counters, ``causes``, may know more than the tester's."""
    rest = "in the DUT" if valid else "unknown where"
    if causes is not None and not valid:
        rest = f"not in the tester's counters (in the DUT's own: {_by_cause(causes) or 'none'})"
    return ", ".join(f"{count:,} {rest if name == ELSEWHERE else name}" for name, count in places.items())


def asked_in_words(result: PhaseResult) -> list[str]:
    """What ARP and Neighbour Discovery say, a sentence for each port: ``right: the DUT asked for 198.19.0.3 (3
    requests by 198.19.0.1), for which the tester does not answer (see seen_as and answers_for)``."""
    said = []
    for port, seen in (result.neighbours or {}).items():
        asked, moves = seen.asked_in_vain(), seen.moves()
        vain = "for which the tester does not answer (see seen_as and answers_for)"
        said += [f"{port}: {asked}, {vain}"] if asked else []
        said += [f"{port}: {moves}, not the one to which frames were sent"] if moves else []
        claims = [seen.claims(port, of_gateway=of_gateway) for of_gateway in (True, False)]
        said += [f"{port}: {one}" for one in (*claims, seen.held_by_dut(port)) if one]
    return said


UNKNOWN = "the DUT's own loss counts of this trial are not known"


def counted_in_words(lost: int, causes: Mapping[str, int] | None, unknown: str | None = None) -> str:
    """``of 12 lost frames the DUT counts 12 itself: 10 queue, 2 random``; empty where none was lost
    or the DUT has no loss counters. ``unknown``: why it has, but not of this trial, or not of all DUTs in a row."""
    if not lost or causes is None:
        return f"{UNKNOWN}: {unknown}" if lost and unknown else ""
    counted = sum(causes.values())
    named = _by_cause(causes)
    others = f"{lost:,} test frames are lost, and the DUT counts {counted:,}, others among them"
    said = f"of {lost:,} lost frames the DUT counts {counted:,} itself" if counted <= lost else others
    return said + (f": {named}" if named else "") + (f" ({unknown})" if unknown else "")


def _by_cause(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {cause.replace('_', ' ')}" for cause, count in causes.items())


def _span(losses: Losses, sending_s: float) -> str:
    if sum(losses.bins) == 1:
        return f"at {losses.first_s:.2f} s"
    hundredths = sorted({index * 100 // LOSS_BINS for index, count in enumerate(losses.bins) if count})
    first, last = losses.first_s, losses.last_s
    if last - first < AT_ONCE_SHARE * sending_s:
        return f"all within {span_in_words(last - first)} around {(first + last) / 2:.2f} s"
    spanned = hundredths[-1] - hundredths[0] + 1
    scattered = "scattered " if len(hundredths) < SCATTERED_SHARE * spanned else ""
    if hundredths[-1] < 99:
        return f"{scattered}from {first:.2f} s to {last:.2f} s"
    return f"{scattered}over the whole time" if hundredths[0] == 0 else f"{scattered}from {first:.2f} s to the end"


def span_in_words(span_s: float) -> str:
    """``3.7 ms``, ``0.25 s``."""
    return f"{span_s:.2f} s" if span_s >= 0.1 else f"{two_digits(span_s * 1000)} ms"


def _runs(losses: Losses) -> str:
    if sum(losses.bins) == 1:
        return ", a single frame"
    return ", one by one" if losses.longest_run == 1 else f", in runs of up to {losses.longest_run:,} frames"
