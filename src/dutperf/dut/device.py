# SPDX-License-Identifier: Apache-2.0
"""The DUT by its commands: set up and taken down, asked and told around a trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dutperf.dut import printed
from dutperf.dut.commands import Running, RunningCommand
from dutperf.dut.counters import CommandCounters
from dutperf.dut.printed import ByCause
from dutperf.machine.signals import defer_signals
from dutperf.model import TrialResult
from dutperf.setup.configuration import Command, ConfigError, Dut, DutCommands
from dutperf.spelling import count_of

KEPT_CHARACTERS = 1_000_000
"""Of a state, from its beginning."""
FILTERS = "DUTPERF_FILTERS"
"""Environment variable of the command ``filters``: how many it is to install."""


class Device:
    """The device under test, by its commands. What there is no command for, its user does, or nobody.

    All methods raise ConfigError, one sentence that names the key of the configuration, if the DUT does not do what
    was asked: a command could not be started, ended with another status than 0, or took too long.
    """

    deletes_by = "commands.clear_connections"
    """The key by which its connections are deleted."""

    def __init__(self, described: Dut, *, has_connections: bool = False, key: str = "dut") -> None:
        self.described = described
        self.key = key
        """Its key in the configuration, for errors."""
        commands = described.commands or DutCommands()
        told = commands.clear_connections or commands.count_connections
        self.has_connections = has_connections or told is not None
        """Whether there is a router or a gateway, which may have connections, or a DUT whose commands say that it has
        them, as a transparent firewall: no switch, and no cable."""
        self._losses = CommandCounters(lambda: self._output("losses"), printed.losses, self._key("losses"))

    def identity(self) -> dict[str, Any]:
        return self.described.identity()

    # --- around a measurement -----------------------------------------------------------------------

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within, it is set up. It is torn down on every exit, also if ``set_up`` fails half-way. An error from
        within the block takes precedence."""
        try:
            self._output("set_up")
            yield
        except BaseException:
            with suppress(ConfigError):
                self._tear_down()
            raise
        self._tear_down()

    def _tear_down(self) -> None:
        """Ctrl-C takes effect after it."""
        with defer_signals():
            self._output("tear_down")

    @contextmanager
    def filtered(self, filters: int | None) -> Iterator[Dut]:
        """Within, it has so many filters (RFC 2544 11.4), and the value says which, by the command's output. None: it
        stays as it is, as does one without the command. An error from within the block takes precedence."""
        if filters is None or not self.can("filters"):
            yield self.described
            return

        def install(number: int) -> str:
            return self._output("filters", {FILTERS: str(number)})

        try:
            lines = printed.lines(install(filters))
            yield self.described.model_copy(update={"filters": lines}) if lines else self.described
        except BaseException:
            with suppress(ConfigError), defer_signals():
                install(0)
            raise
        with defer_signals():
            install(0)

    # --- around a trial -----------------------------------------------------------------------------

    def can(self, command: str) -> bool:
        return self._command(command) is not None

    def state(self) -> str:
        """Its state; empty where there is no command for it."""
        return self._output("state")[:KEPT_CHARACTERS]

    def reset(self) -> Running:
        """Start to reset it."""
        command = self._command("reset")
        assert command is not None, "it can"
        return RunningCommand(command, self._key("reset"), self._time_limit_s)

    def clear_addresses(self) -> None:
        """Empty its address table, where there is a command for it."""
        self._output("clear_addresses")

    def counts_losses(self) -> bool:
        """Whether it has loss counters that can be read."""
        return self.can("losses")

    def losses(self) -> ByCause | str:
        """Its loss counters, or why they are not known now (:meth:`dutperf.dut.counters.CommandCounters.now`)."""
        return self._losses.now()

    def losses_during(self, run: Callable[[], TrialResult]) -> TrialResult:
        """The result of ``run``, with its own loss counts during the trial, or why they are not known; without
        either where it has none."""
        if not self.counts_losses():
            return run()
        before = self.losses()
        result = run()
        lost = losses_between(before, self.losses())
        return result.model_copy(update={"dut_losses_unknown" if isinstance(lost, str) else "dut_losses": lost})

    # --- its connections (RFC 9693) -----------------------------------------------------------------

    def deletes_connections(self) -> bool:
        return self.can("clear_connections")

    def clear_connections(self) -> float:
        """Delete all connections; returns how long that took, in seconds: by the output of the command,
        where it tells (``deletion_s 0.25``), else from its start to its end. Raises ConfigError where
        the DUT cannot."""
        began_s = time.monotonic()
        if not self.can("clear_connections"):
            raise ConfigError(
                "is missing: without it the connections of the DUT cannot be deleted before a trial",
                self._key("clear_connections"),
            )
        output = self._output("clear_connections")
        ended_s = time.monotonic()
        with self._reading("clear_connections"):
            told_s = printed.seconds(output)
        return ended_s - began_s if told_s is None else told_s

    def begin_without_connections(self) -> None:
        """Delete all connections, and make sure that none is left (RFC 9693 section 4.4)."""
        self.clear_connections()
        self.check_without_connections()

    def check_without_connections(self) -> None:
        """Raises ConfigError where some are left."""
        if left := self.count_connections():
            raise ConfigError(
                f"the DUT has {count_of(left, 'connection')} after all were deleted: a trial needs a DUT without (RFC"
                " 9693 section 4.4). Does count_connections count others, as that of ssh?",
                f"{self.key}.{self.deletes_by}",
            )

    def count_connections(self) -> int | None:
        """How many there are; None: the DUT cannot tell."""
        if not self.can("count_connections"):
            return None
        output = self._output("count_connections")
        with self._reading("count_connections"):
            return printed.count(output)

    # --- common to all ------------------------------------------------------------------------------

    def _command(self, name: str) -> Command | None:
        return None if self.described.commands is None else getattr(self.described.commands, name)

    @property
    def _time_limit_s(self) -> float:
        commands = self.described.commands
        return DutCommands().time_limit_s if commands is None else commands.time_limit_s

    def _output(self, name: str, variables: Mapping[str, str] | None = None) -> str:
        """What a command prints, standard error included, with further environment ``variables``; empty where there
        is none of that name."""
        command = self._command(name)
        if command is None:
            return ""
        return RunningCommand(command, self._key(name), self._time_limit_s, variables).output()

    def _key(self, name: str) -> str:
        """That of a command, for errors."""
        return f"{self.key}.commands.{name}"

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Within, a ValueError is about what a command printed."""
        try:
            yield
        except ValueError as error:
            raise ConfigError(str(error), self._key(name)) from None


def losses_between(before: ByCause | str, after: ByCause | str) -> ByCause | str:
    """What a DUT lost between two readings of its loss counters, or why that is not known."""
    if isinstance(before, str) or isinstance(after, str):
        return f"the DUT did not tell its loss counters: {before if isinstance(before, str) else after}"
    if unusable := _gone(before, after) or _went_back(before, after):
        return unusable
    lost = {
        way: {cause: count - before.get(way, {}).get(cause, 0) for cause, count in causes.items()}
        for way, causes in after.items()
    }
    return {way: {cause: number for cause, number in causes.items() if number} for way, causes in lost.items()}


def _gone(before: ByCause, after: ByCause) -> str:
    """Which counters are not told any more: they are not 0. Empty: none."""
    gone = [f"{way} {cause}" for way, causes in before.items() for cause in causes if cause not in after.get(way, {})]
    return f"it did not tell all its loss counters after the trial (missing: {', '.join(gone)})" if gone else ""


def _went_back(before: ByCause, after: ByCause) -> str:
    """Which counters were reset meanwhile, or are too narrow: then nobody knows what the DUT lost. Empty: none."""
    back = [
        f"{way} {cause} from {count:,} to {now:,}"
        for way, causes in before.items()
        for cause, count in causes.items()
        if (now := after[way][cause]) < count
    ]
    return f"its loss counters went back during the trial ({', '.join(back)})" if back else ""
