# SPDX-License-Identifier: Apache-2.0
"""Binary search for the highest load that passes, as RFC 2544 26.1 leaves it to the tester.

First it brackets the result: it looks for a load that passes and a higher one that does not. It
doubles upwards and halves downwards; with a start load it takes steps from there that double. Then
it bisects. Every load after the first lies strictly between the highest load that passed (the lower
bound) and the lowest that failed, unless it is offered again (``MAX_RETRIES`` times at most) or is the
probe of a DUT that forwards nothing. So the search ends whatever the outcomes are.
Its result is the lower bound.

A DUT may be inconsistent: it may fail a load and pass a higher one. This search never offers a load
above one that failed. For such a DUT it finds the highest load that passed below the lowest that
failed, and two searches may differ.

A trial that lost all its frames within one episode may have failed by that episode and not by its
load: a pause that comes now and then, somebody else's turn on the DUT's core, or a restart (an outage, in
which several trials in a row may lose all their frames). Where such a trial bounds the result, its load is
offered again (``MAX_RETRIES`` times in a search at most). It bounds the result if it fails again: a DUT that
pauses in every trial fails each of them. Else the search goes on above it.

A load that could not be measured may be bad luck. Where only such a load bounds the result, it is
offered once more, and then one a little higher. Where a load a little higher has failed, the DUT's
limit lies between the lower bound and that one: the search ends there, limited by the DUT, with a
wider distance between its bounds than was asked for. Only where none has, it ends as limited by the
tester.

A load is a number here; the caller knows its unit (:class:`dutperf.model.Load`).
:mod:`dutperf.search.burst` searches burst lengths with this search.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Literal, Protocol

from dutperf.model import LimitedBy, Load, Unit
from dutperf.search import MAX_RETRIES, NO_LOSS, Loss, Outcome, Probes

DEFAULT_START = 1_000
"""First load where neither an initial nor a minimum load nor the media's maximum is known."""
DEFAULT_MINIMUM = 10
"""Lowest load unless the user sets one. Even a trial of one second then has enough frames to show
that the DUT forwards."""
HIGHEST = 1_000_000_000
"""The engine's own limit (protocol/request.schema.json)."""
WIDENED = 2
"""So many resolutions may lie between the bounds where the loads between could not be measured..."""
WIDENED_SHARE = 0.005
"""... or this share of the upper bound, whichever is more."""
TYPICAL_TRIALS = 14
"""Estimate for a search without prior results."""


@dataclass(frozen=True)
class Resolution:
    """Largest distance between lower and upper bound at the end: ``step``; where that is 0, a
    ``share`` of the upper bound."""

    step: int = 0
    share: float = 0.0

    def at(self, upper: int) -> int:
        """The resolution at an upper bound of ``upper``; at least 1."""
        return max(1, self.step or int(self.share * upper))

    def widened(self, upper: int) -> int:
        """The same where loads between the bounds could not be measured."""
        return max(WIDENED * self.at(upper), int(WIDENED_SHARE * upper))


class BoundsError(ValueError):
    """The bounds contradict each other; ``bound`` names the one to change."""

    def __init__(self, message: str, bound: Literal["minimum", "initial", "resolution"]) -> None:
        super().__init__(message)
        self.bound = bound


@dataclass(frozen=True)
class Bounds:
    """The range of a search. Raises BoundsError: the range is empty, or the initial load lies outside it."""

    resolution: Resolution
    minimum: int | None = None
    """As the user set it."""
    least: int = 1
    """Below which no trial is possible."""
    maximum: int | None = None
    initial: int | None = None
    maximum_is_media: bool = False
    """``maximum`` is the media's; the user set none below it."""
    unit: Unit = Unit.FRAMES_PER_SECOND
    """Unit of the loads, for messages."""

    def __post_init__(self) -> None:
        if self.lowest > self.highest:
            raise BoundsError(
                f"the minimum rate ({self._text(self.lowest)}) is above the maximum rate ({self._text(self.highest)})",
                "minimum",
            )
        if self.initial is not None and not self.lowest <= self.initial <= self.highest:
            message = (
                f"the initial rate ({self._text(self.initial)}) is not within {self.lowest:,} to"
                f" {self._text(self.highest)}"
            )
            raise BoundsError(message, "initial")

    @property
    def lowest(self) -> int:
        usual = min(DEFAULT_MINIMUM, self.highest, self.initial or DEFAULT_MINIMUM)
        return max(self.least, usual if self.minimum is None else self.minimum)

    @property
    def highest(self) -> int:
        return HIGHEST if self.maximum is None else self.maximum

    @property
    def first(self) -> int:
        """The load to begin with: the initial one; else the maximum, which ends the search if it
        passes; else a low one to double from."""
        return self.initial or self.maximum or max(self.lowest, DEFAULT_START)

    def clamp(self, load: int) -> int:
        """The load of the range that is nearest to ``load``."""
        return min(max(load, self.lowest), self.highest)

    def _text(self, load: int) -> str:
        return str(Load(load, self.unit))


@dataclass(frozen=True)
class Start:
    """Where a search begins: a load within the range, and the width of the first step from it; 0:
    as wide as the load itself."""

    load: int
    step: int = 0


@dataclass(frozen=True)
class SearchResult:
    lower_bound: int | None
    """The highest load that passed; None where none passed, or the DUT forwards nothing
    (``not_forwarding``)."""
    limited_by: LimitedBy
    upper_bound: int | None
    """The lowest load above the lower bound that did not pass; without a lower bound, the lowest
    load tried."""
    not_forwarding: bool
    loads: tuple[tuple[int, Outcome], ...]
    """Every load offered, in order."""
    unmeasurable: tuple[int, ...] = ()
    """Loads between the bounds that could not be measured, in ascending order."""
    goals: tuple[GoalResult, ...] = ()
    """Where the search had loss goals: the result for each; this is the first one's."""


@dataclass(frozen=True)
class GoalResult:
    """Result for one loss goal (RFC 9971)."""

    loss_ratio: float
    """Share of a direction's frames that may be lost."""
    result: SearchResult
    conditional: float | None
    """Conditional throughput: the forwarding rate at the lower bound."""


class Search(Protocol):
    """Call :meth:`next_load` and :meth:`record_outcome` in turn until the former is None; then
    :meth:`result`."""

    @property
    def lower(self) -> int | None:
        """Highest load that passed so far."""
        ...

    @property
    def upper(self) -> int | None:
        """Lowest load that did not pass, above the highest that did."""
        ...

    def next_load(self) -> int | None:
        """The load to offer next; None where the search has ended."""
        ...

    def next_duration_s(self) -> float | None:
        """Sending time of that load's trial; None: as the conditions say."""
        ...

    def record_outcome(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        """Take the outcome of the load that :meth:`next_load` named. Raises ValueError: the search has ended."""
        ...

    def result(self) -> SearchResult:
        """The result so far; final when :meth:`next_load` is None."""
        ...

    def trials_left(self) -> int:
        """Estimate of how many loads are still to be offered."""
        ...


class BinarySearch:
    """A :class:`Search` for one goal, which is already in the outcomes.

    Where nothing comes through in some direction, the DUT may not work at all. The lowest load is
    then a probe (:class:`dutperf.search.Probes`). If nothing comes through either, the search ends without
    a lower bound.
    """

    def __init__(self, bounds: Bounds, start: Start | None = None) -> None:
        """``start``, where an earlier search ended, only saves trials: the result rests on this search's own."""
        self._bounds = bounds
        self._start = start
        self._narrowed = 0
        self._loads: list[tuple[int, Outcome]] = []
        self._not_passed: dict[int, Outcome] = {}
        self._retries = 0
        self._confirmed = False
        self._by_episode: set[int] = set()
        """Loads that failed by one episode."""
        self._looked_again: set[int] = set()
        """... and were offered again, when the DUT was not down."""
        self._looks = 0
        self._probed_for: int | None = None
        """The load whose outcome waits for the probe."""
        self._probes = Probes(has_forwarded=start is not None)
        self._lower: int | None = None

    @property
    def lower(self) -> int | None:
        return self._lower

    @property
    def upper(self) -> int | None:
        return min(self._not_passed, default=None)

    def next_load(self) -> int | None:
        if self._probes.not_forwarding:
            return None
        if self._probed_for is not None:
            return self._bounds.lowest
        load = self._narrowing_load()
        if load is not None:
            return load
        if self._needs_second_look():
            return self._upper_bound()
        return self.upper if self._needs_retry() else self._a_little_higher()

    def next_duration_s(self) -> None:
        """Every trial is as long as the conditions say."""

    def record_outcome(self, outcome: Outcome, loss: Loss = NO_LOSS) -> None:
        load = self.next_load()
        if load is None:
            raise ValueError("the search has ended")
        self._loads.append((load, outcome))
        self._probes.see(outcome, loss)
        if self._probed_for is not None:
            self._after_probe(load, self._probed_for, outcome, loss)
            return
        is_second_look = load in self._by_episode
        if is_second_look:
            self._looks += 1
            if outcome is not Outcome.NOT_FORWARDING or not loss.one_episode:
                self._looked_again.add(load)
        elif loss.one_episode and outcome in (Outcome.FAILED, Outcome.NOT_FORWARDING):
            self._by_episode.add(load)
        if outcome is Outcome.NOT_FORWARDING:
            self._probed_for = load
        elif is_second_look:
            self._look_again(load, outcome)
        else:
            self._narrow(load, outcome)

    def result(self) -> SearchResult:
        return SearchResult(
            lower_bound=None if self._probes.not_forwarding else self.lower,
            limited_by=self._limited_by(),
            upper_bound=self._upper_bound(),
            not_forwarding=self._probes.not_forwarding,
            loads=tuple(self._loads),
            unmeasurable=tuple(sorted(load for load in self._not_passed if load < (self._upper_bound() or 0))),
        )

    def trials_left(self) -> int:
        if self.next_load() is None:
            return 0
        if self.upper is not None and self.lower is not None:
            return max(1, self._bisections(self.upper, self.upper - self.lower))
        if self._start is not None and self._start.step:
            return max(2, 2 + self._bisections(self._start.load, self._start.step) - len(self._loads))
        return max(2, TYPICAL_TRIALS - len(self._loads))

    def _bisections(self, upper: int, gap: int) -> int:
        """Number of bisections until a gap below ``upper`` is narrow enough."""
        return max(0, ceil(log2(gap / self._bounds.resolution.at(upper))))

    def _narrowing_load(self) -> int | None:
        """The next load that narrows the search; None where it is narrow enough."""
        if self.lower is None:
            return self._first() if self.upper is None else self._down(self.upper)
        if self.upper is None:
            return self._up(self.lower)
        if self._is_bracketed():
            return None
        return self._between(self.lower, self.upper)

    @property
    def _failed(self) -> int | None:
        """Lowest load that failed."""
        failed = (load for load, outcome in self._not_passed.items() if outcome is not Outcome.UNMEASURABLE)
        return min(failed, default=None)

    def _is_bracketed(self) -> bool:
        """Whether a load has failed so little above the lower bound that the loads between, which
        could not be measured, hardly matter."""
        return (
            self._upper_outcome() is Outcome.UNMEASURABLE
            and self.lower is not None
            and self._failed is not None
            and self._failed - self.lower <= self._bounds.resolution.widened(self._failed)
        )

    def _a_little_higher(self) -> int | None:
        """Where a load that could not be measured bounds the result: the highest load that would be little
        enough above the lower bound if it failed. The more the DUT loses, the less a disturbance
        matters. None where that has been tried."""
        if self.lower is None or self._upper_outcome() is not Outcome.UNMEASURABLE or self._is_bracketed():
            return None
        higher = self.lower + self._bounds.resolution.widened(self.lower)
        return higher if higher not in self._not_passed and higher <= self._bounds.highest else None

    def _needs_second_look(self) -> bool:
        """Whether the upper bound is a load that failed once, by one episode."""
        doubtful = self._upper_bound() in self._by_episode - self._looked_again
        return doubtful and self._looks < MAX_RETRIES

    def _look_again(self, load: int, outcome: Outcome) -> None:
        """Take the outcome of a load that failed by one episode before. Only a trial that passes
        contradicts that one."""
        if outcome is Outcome.PASSED:
            self._narrow(load, outcome)

    def _needs_retry(self) -> bool:
        """Whether the upper bound is a load that could not be measured and was tried only once."""
        return self._upper_outcome() is Outcome.UNMEASURABLE and not self._confirmed and self._retries < MAX_RETRIES

    def _upper_bound(self) -> int | None:
        if self._probes.not_forwarding:
            return self._loads[-1][0]
        return self._failed if self._is_bracketed() else self.upper

    def _upper_outcome(self) -> Outcome | None:
        return None if self.upper is None else self._not_passed[self.upper]

    def _first(self) -> int:
        return self._bounds.first if self._start is None else self._start.load

    def _up(self, lower: int) -> int | None:
        return None if lower >= self._bounds.highest else self._bounds.clamp(lower + (self._step() or lower))

    def _down(self, upper: int) -> int | None:
        return None if upper <= self._bounds.lowest else self._bounds.clamp(upper - (self._step() or (upper + 1) // 2))

    def _step(self) -> int:
        """The next step from the start load; 0 where there is none."""
        return 0 if self._start is None else self._start.step << (self._narrowed - 1)

    def _between(self, lower: int, upper: int) -> int | None:
        gap = upper - lower
        return None if gap <= self._bounds.resolution.at(upper) else lower + gap // 2

    def _narrow(self, load: int, outcome: Outcome) -> None:
        self._narrowed += 1
        again = load in self._not_passed
        self._retries += again
        if outcome is Outcome.PASSED or self.upper is None or load <= self.upper:
            self._confirmed = again and outcome is Outcome.UNMEASURABLE
        if outcome is Outcome.PASSED:
            self._lower, had_upper = load, self.upper is not None
            self._not_passed = {other: outcome for other, outcome in self._not_passed.items() if other > load}
            if had_upper and self.upper is None:
                self._narrowed = 1  # further steps begin here
        else:
            self._not_passed[load] = outcome

    def _after_probe(self, lowest: int, probed_for: int, outcome: Outcome, loss: Loss) -> None:
        """Take the probe's outcome at the lowest load, and with it that of ``probed_for``, where
        nothing came through."""
        if self._probes.another(outcome):
            return
        self._probed_for = None
        if self._probes.not_forwarding:
            return
        if self._not_passed.get(probed_for) is not Outcome.FAILED:  # else it was offered again
            self._narrow(probed_for, Outcome.FAILED)
        if self.lower is None and lowest < probed_for and outcome is not Outcome.UNMEASURABLE:
            if outcome is Outcome.FAILED and loss.one_episode:
                self._by_episode.add(lowest)
            self._narrow(lowest, outcome)

    def _limited_by(self) -> LimitedBy:
        if self._probes.not_forwarding:
            return LimitedBy.DUT
        if self.upper is None:
            return LimitedBy.MEDIA if self._bounds.maximum_is_media else LimitedBy.RANGE
        if self._upper_outcome() is Outcome.UNMEASURABLE and not self._is_bracketed():
            return LimitedBy.TESTER
        below_users_minimum = self.lower is None and self._bounds.minimum is not None
        return LimitedBy.RANGE if below_users_minimum else LimitedBy.DUT
