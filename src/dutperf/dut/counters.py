# SPDX-License-Identifier: Apache-2.0
"""Counters that are read before and after a trial: of a DUT, and of a link between two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from dutperf.dut import printed
from dutperf.dut.commands import RunningCommand
from dutperf.dut.printed import ByCause
from dutperf.model import LEFT_AND_RIGHT, Direction, DirectionCounts, TrialResult
from dutperf.setup.configuration import ConfigError, DutCommands, LinkBetween
from dutperf.spelling import with_and

NOT_FORWARDED = "not_forwarded"
"""Cause of a loss that is known by what was sent on the links before and behind a DUT."""
OWN_FRAMES, OWN_FRAMES_AT_LEAST = 20, 3
"""So many frames of the DUTs' own (ARP, Neighbour Discovery) may be counted on a link in a trial, a hundredth of those
sent at most, and these few in any."""
Read = TypeVar("Read")


class CommandCounters(Generic[Read]):
    """What a command prints of them. ``output`` runs it and raises ConfigError; ``read`` raises ValueError; ``key`` is
    its key in the configuration."""

    def __init__(self, output: Callable[[], str], read: Callable[[str], Read], key: str) -> None:
        self._output = output
        self._read = read
        self._key = key
        self._has_told = False

    def now(self) -> Read | str:
        """Their values. A text: why they are not known now. After a first answer, a command that fails or prints
        nothing gives one: a device that restarts cannot answer."""
        try:
            if not (output := self._output()).strip():
                raise ConfigError("printed nothing: it prints a line for each counter, also for 0", self._key)
        except ConfigError as error:
            if not self._has_told:
                raise
            return str(error)
        try:
            values = self._read(output)
        except ValueError as error:
            raise ConfigError(str(error), self._key) from None
        self._has_told = True
        return values


Passed = Mapping[Direction, int]
"""Frames that were sent on a link, by direction."""
LinkCounters = CommandCounters[dict[Direction, int]]
"""Frames that were sent on a link so far, by direction."""


def of_link(link: LinkBetween, key: str) -> LinkCounters | None:
    """Those of a link between two DUTs; None: nothing tells."""
    command = link.passed
    if command is None:
        return None
    return CommandCounters(
        lambda: RunningCommand(command, f"{key}.passed", DutCommands().time_limit_s).output(),
        printed.passed,
        f"{key}.passed",
    )


def passed_between(before: Passed | str, after: Passed | str) -> Passed | str:
    """Frames that were sent on a link between two readings, or why that is not known."""
    if isinstance(before, str) or isinstance(after, str):
        return f"no counter says what was sent on it: {before if isinstance(before, str) else after}"
    if before.keys() != after.keys() or any(after[way] < count for way, count in before.items()):
        return "its counters went back during the trial, or are missing after it"
    return {way: count - before[way] for way, count in after.items()}


def lost_between(
    names: Sequence[str],
    passed: Mapping[int, Passed],
    result: TrialResult,
    own: Mapping[str, ByCause],
    counting: Collection[int],
) -> tuple[ByCause, list[str]]:
    """What DUTs in a row, from left to right, lost in a trial, and of which directions that is not known, and why.

    ``passed``: frames sent on the link behind the DUT with this place, by direction. ``own``: what DUTs counted
    themselves; it is not told again. ``counting``: places whose links have counted a frame in some trial: of the others
    it is not known whether they count the frames at all.
    """
    lost: ByCause = {}
    unknown: list[str] = []
    for way in LEFT_AND_RIGHT:
        counts = [one for direction, one in result.all_directions().items() if direction.path is way]
        links = {place: ways[way] for place, ways in passed.items() if way in ways}
        if not counts or not links:
            continue
        sent, arrived = sum(one.sent for one in counts), sum(map(_arrived, counts))
        dropped = sum(sum(one.tester_drops.values()) for one in counts)
        towards = list(names) if way is Direction.FORWARD else list(names)[::-1]
        behind = {place + 1 if way is Direction.FORWARD else len(names) - 1 - place: place for place in links}
        told = {number: links[place] for number, place in behind.items()}
        if silent := [number for number, place in behind.items() if place not in counting]:
            unknown.append(_uncounted(towards, min(silent), arrived, way))
        elif isinstance(fitting := _fitting(told, sent, arrived, towards, way), str):
            unknown.append(fitting)
        else:
            at = fitting | {len(towards): min(arrived + dropped, *fitting.values())}
            lost[way] = _of_each(at, towards, {name: own[name].get(way, {}) for name in towards if name in own})
    return lost, unknown


def _arrived(counts: DirectionCounts) -> int:
    """Frames that the last DUT forwarded and the tester counted: late and corrupted ones were lost at no DUT."""
    return min(counts.sent, counts.received + counts.late + counts.corrupted)


def _uncounted(towards: Sequence[str], number: int, arrived: int, way: Direction) -> str:
    link = f"the link behind {with_and(towards[:number])}"
    if arrived:
        return f"{arrived:,} frames arrived over {link}, of which it counted none ({way}): what does passed count?"
    return f"on {link} no frame has been counted yet ({way}): none was sent there, or passed counts something else"


def _fitting(
    told: Mapping[int, int], sent: int, arrived: int, towards: Sequence[str], way: Direction
) -> dict[int, int] | str:
    """The frames that were sent, and those on each link by the number of DUTs before it; a few frames of the DUTs' own
    are taken off. A text: they do not fit together."""
    margin = max(OWN_FRAMES_AT_LEAST, min(OWN_FRAMES, sent // 100))
    at, most = {0: sent}, sent
    for number in sorted(told):
        count = told[number]
        before = with_and(towards[:number])
        if count < arrived - margin:
            return (
                f"only {count:,} frames were counted behind {before}, but {arrived:,} arrived ({way}): what does"
                " passed count?"
            )
        if sent == arrived:  # what the DUTs send themselves does not matter
            count = sent
        if count > most + margin:
            return f"{count:,} frames were counted behind {before}, which was sent {most:,} ({way})"
        at[number] = most = max(arrived, min(count, most))
    return at


def _of_each(at: Mapping[int, int], towards: Sequence[str], own: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    lost = {}
    for before, behind in pairwise(sorted(at)):
        some = towards[before:behind]
        counted = sum(sum(own[name].values()) for name in some if name in own)
        if (number := at[before] - at[behind] - counted) > 0:
            lost[f"{with_and(some)}: {NOT_FORWARDED}"] = number
    return lost


def located(count: int, links: Iterable[int]) -> set[int]:
    """Places of the DUTs, two or more, whose losses are known by the links behind DUTs with the places ``links``."""
    edges = {-1, count - 1, *links}
    return {place for place in range(count) if {place - 1, place} <= edges}
