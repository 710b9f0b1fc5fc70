# SPDX-License-Identifier: Apache-2.0
"""Several DUTs in a row, as a measurement deals with one (RFC 8219 section 4.2: the dual DUT test setup)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from dutperf.dut.commands import Running
from dutperf.dut.counters import LinkCounters, located, lost_between, passed_between
from dutperf.dut.device import Device, losses_between
from dutperf.model import TrialResult
from dutperf.setup.configuration import ConfigError, Dut
from dutperf.spelling import with_and


class DeviceRow:
    """DUTs from left to right. Its methods are those of :class:`dutperf.dut.device.Device`, for all of them."""

    def __init__(self, devices: Sequence[Device], links: Mapping[int, LinkCounters] | None = None) -> None:
        """``links``: what counts the frames on the link behind the DUT with this place."""
        self.devices = {str(one.described.name): one for one in devices}
        """By their names."""
        self._links = links or {}
        self._counting: set[int] = set()
        """Places whose links have counted a frame in some trial."""

    @property
    def has_connections(self) -> bool:
        return any(one.has_connections for one in self.devices.values())

    def identity(self) -> dict[str, Any]:
        """A name for all, and what the results say about each."""
        return {"name": with_and(self.devices), "row": [one.identity() for one in self.devices.values()]}

    # --- around a measurement -----------------------------------------------------------------------

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Set up from left to right, and torn down in reverse."""
        with ExitStack() as stack:
            for one in self.devices.values():
                stack.enter_context(one.in_place())
            yield

    @contextmanager
    def filtered(self, filters: int | None) -> Iterator[tuple[Dut, ...]]:
        """Within, each that has the command has so many filters; the values say which."""
        with ExitStack() as stack:
            yield tuple(stack.enter_context(one.filtered(filters)) for one in self.devices.values())

    # --- around a trial -----------------------------------------------------------------------------

    def can(self, command: str) -> bool:
        return any(one.can(command) for one in self.devices.values())

    def state(self) -> str:
        """Each state under a line with the DUT's name."""
        states = {name: one.state() for name, one in self.devices.items() if one.can("state")}
        return "".join(f"{name}:\n{text.rstrip()}\n" for name, text in states.items())

    def reset(self) -> Running:
        """Start to reset those that have the command, at the same time."""
        started: list[Running] = []
        with ExitStack() as stack:
            for one in self.devices.values():
                if one.can("reset"):
                    started.append(one.reset())
                    stack.callback(started[-1].kill)
            stack.pop_all()
        return _Resets(started)

    def clear_addresses(self) -> None:
        for one in self.devices.values():
            one.clear_addresses()

    def losses_during(self, run: Callable[[], TrialResult]) -> TrialResult:
        """The result of ``run``, with the losses that each counted, under its name, and those that the links between
        them tell."""
        counting = {name: one for name, one in self.devices.items() if one.counts_losses()}
        if not counting and not self._links:
            return run()
        before = {name: one.losses() for name, one in counting.items()}
        links_before = {place: link.now() for place, link in self._links.items()}
        result = run()
        lost = {name: losses_between(before[name], one.losses()) for name, one in counting.items()}
        links = {place: passed_between(links_before[place], link.now()) for place, link in self._links.items()}
        names = list(self.devices)
        own = {name: causes for name, causes in lost.items() if not isinstance(causes, str)}
        passed = {place: ways for place, ways in links.items() if not isinstance(ways, str)}
        unknown = [f"{name}: {reason}" for name, reason in lost.items() if isinstance(reason, str)]
        unknown += [f"the link behind {names[place]}: {why}" for place, why in links.items() if isinstance(why, str)]
        self._counting |= {place for place, ways in passed.items() if any(ways.values())}
        all_lost, doubtful = ({}, []) if unknown else lost_between(names, passed, result, own, self._counting)
        unknown += doubtful
        if unknown and not all_lost:
            return result.model_copy(update={"dut_losses_unknown": "; ".join(unknown)})
        for name, by_cause in own.items():
            for way, causes in by_cause.items():
                all_lost.setdefault(way, {}).update({f"{name}: {cause}": number for cause, number in causes.items()})
        known = located(len(names), self._links)
        others = [name for place, name in enumerate(names) if name not in counting and place not in known]
        unknown += [f"{with_and(others)} {'has' if len(others) == 1 else 'have'} no loss counters"] if others else []
        return result.model_copy(update={"dut_losses": all_lost, "dut_losses_unknown": "; ".join(unknown) or None})

    # --- their connections (RFC 9693) ---------------------------------------------------------------

    def clear_connections(self) -> float:
        """Delete those of each that can, one after the other; the times add up."""
        able = [one for one in self.devices.values() if one.deletes_connections()]
        if not able:
            raise ConfigError(
                f"none of {with_and(self.devices)} has the command clear_connections: without it their connections"
                " cannot be deleted before a trial",
                "dut",
            )
        return sum(one.clear_connections() for one in able)

    def begin_without_connections(self) -> None:
        self.clear_connections()
        self.check_without_connections()

    def check_without_connections(self) -> None:
        for one in self.devices.values():
            one.check_without_connections()

    def count_connections(self) -> int | None:
        """The smallest count: a connection through the row needs an entry in each."""
        counts = [count for one in self.devices.values() if (count := one.count_connections()) is not None]
        return min(counts, default=None)


DeviceOrRow = Device | DeviceRow
"""What a measurement deals with."""


class _Resets:
    """Resets of several DUTs."""

    def __init__(self, running: Sequence[Running]) -> None:
        self._running = list(running)

    def finish(self) -> None:
        """Wait for all. Raises the error of the first one that failed."""
        errors: list[ConfigError] = []
        while self._running:
            try:
                self._running.pop(0).finish()
            except ConfigError as error:
                errors.append(error)
            except BaseException:
                self.kill()
                raise
        if errors:
            raise errors[0]

    def kill(self) -> None:
        while self._running:
            self._running.pop(0).kill()
