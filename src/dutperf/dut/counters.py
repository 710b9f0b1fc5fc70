# SPDX-License-Identifier: Apache-2.0
"""Counters that are read before and after a trial: of a DUT, and of a link between two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from dutperf.dut import printed
from dutperf.dut.commands import RunningCommand
from dutperf.dut.printed import ByCause
from dutperf.model import LEFT_AND_RIGHT, Direction, TrialResult
from dutperf.setup.configuration import ConfigError, DutCommands, LinkBetween

NOT_FORWARDED = "not_forwarded"
"""Cause of a loss that is known by what was sent on the links before and behind a DUT."""
Read = TypeVar("Read")


class CommandCounters(Generic[Read]):
    """What a command prints of them. ``output`` runs it and raises ConfigError; ``read`` raises ValueError; ``key`` is
    its key in the configuration."""

    def __init__(self, output: Callable[[], str], read: Callable[[str], Read], key: str) -> None:
        self._output = output
        self._read = read
        self._key = key
        self._has_told = False

    def now(self) -> Read | None:
        """Their values. None: the device does not answer now. After a first answer, a command that fails or prints
        nothing gives None too: a device that restarts cannot answer."""
        try:
            if not (output := self._output()).strip():
                raise ConfigError("printed nothing: it prints a line for each counter, also for 0", self._key)
        except ConfigError:
            if not self._has_told:
                raise
            return None
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


def passed_between(before: Passed | None, after: Passed | None) -> Passed | str:
    """Frames that were sent on a link between two readings, or why that is not known."""
    if before is None or after is None:
        return "nothing told what was sent on it"
    if before.keys() != after.keys() or any(after[way] < count for way, count in before.items()):
        return "its counters went back during the trial, or are missing after it"
    return {way: count - before[way] for way, count in after.items()}


def lost_between(
    names: Sequence[str], passed: Mapping[int, Passed], result: TrialResult, own: Mapping[str, ByCause]
) -> ByCause | str:
    """What DUTs in a row, from left to right, lost in a trial, or why that is not known. ``passed``: frames sent on the
    link behind the DUT with this place, by direction. ``own``: what DUTs counted themselves; it is not told again."""
    lost: ByCause = {}
    for way in LEFT_AND_RIGHT:
        counts = [one for direction, one in result.all_directions().items() if direction.path is way]
        links = {place + 1: ways[way] for place, ways in passed.items() if way in ways}
        if not counts or not links:
            continue
        lost[way] = {}
        ends = sum(one.sent for one in counts), sum(one.received for one in counts)
        at_left, at_right = ends if way is Direction.FORWARD else ends[::-1]
        at = {0: at_left, **links, len(names): at_right}
        for left, right in pairwise(sorted(at)) if at_left != at_right else ():
            before, behind = (left, right) if way is Direction.FORWARD else (right, left)
            some = names[left:right]
            if at[behind] > at[before]:
                return (
                    f"{at[behind]:,} frames were counted behind {listed(some)}, which was sent {at[before]:,} ({way})"
                )
            counted = sum(sum(own[name].get(way, {}).values()) for name in some if name in own)
            if (number := at[before] - at[behind] - counted) > 0:
                lost[way][f"{listed(some)}: {NOT_FORWARDED}"] = number
    return lost


def located(count: int, links: Iterable[int]) -> set[int]:
    """Places of the DUTs, two or more, whose losses are known by the links behind DUTs with the places ``links``."""
    edges = {-1, count - 1, *links}
    return {place for place in range(count) if {place - 1, place} <= edges}


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(", ".join(names).rsplit(", ", 1)) if len(names) > 1 else names[0]
