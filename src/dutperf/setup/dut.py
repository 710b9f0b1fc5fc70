# SPDX-License-Identifier: Apache-2.0
"""The DUT of a test setup, as a measurement deals with it.

Its commands (``dut.commands`` of the configuration) run on this machine, each in a session of its own; ``ssh router
show version`` is an ordinary command. They do not concern the test traffic.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dutperf.machine.signals import defer_signals
from dutperf.model import Direction, TrialResult, shown_directions
from dutperf.setup import printed
from dutperf.setup.configuration import Command, ConfigError, Dut, DutCommands, Setup

if TYPE_CHECKING:
    from dutperf.lab.refdut import RefDut

KEPT_CHARACTERS = 1_000_000
"""Of a state, from its beginning."""
FILTERS = "DUTPERF_FILTERS"
"""Environment variable of the command ``filters``: how many it is to install."""
COUNTED = "connections"
"""Name that a line of the command ``count_connections`` may give the count itself."""
DELETION = "deletion_s"
"""Name of the line in which ``clear_connections`` may tell its time."""

ByCause = dict[Direction, dict[str, int]]
"""Frames that a DUT has counted as lost, by direction and cause."""
Answer = TypeVar("Answer")


class Running(Protocol):
    """An action on the DUT that was started."""

    def finish(self) -> None:
        """Wait for its end. Raises the starter's error where the action failed."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


class Device:
    """The device under test, by its commands, or a reference DUT by its control socket. What there is no command for,
    its user does, or nobody.

    All methods raise ConfigError, one sentence that names ``dut.commands.NAME`` or ``dut.control``, if the DUT does
    not do what was asked: a command could not be started, ended with another status than 0, or took too long.
    """

    def __init__(self, described: Dut, *, has_connections: bool = False) -> None:
        self.described = described
        self.has_connections = has_connections
        """Whether there is a router or a gateway, which may have connections: no switch, and no cable."""
        self._has_told_losses = False

    @classmethod
    def of(cls, setup: Setup) -> Device:
        """That of a test setup."""
        return cls(setup.dut, has_connections=any(side.has_gateway for side in setup.sides().values()))

    def identity(self) -> dict[str, Any]:
        """What the results say about it, as JSON types."""
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
        """Whether it has the command."""
        return self._command(command) is not None

    def state(self) -> str:
        """Its state; empty where there is no command for it."""
        return self._output("state")[:KEPT_CHARACTERS]

    def reset(self) -> Running:
        """Start to reset it."""
        command = self._command("reset")
        assert command is not None, "it can"
        return RunningCommand(command, "reset", self._time_limit_s)

    def clear_addresses(self) -> None:
        """Empty its address table, where there is a command for it."""
        self._output("clear_addresses")

    def counts_losses(self) -> bool:
        """Whether it has loss counters that can be read."""
        return self.described.control is not None or self.can("losses")

    def losses(self) -> ByCause | None:
        """Its loss counters. None: it does not answer now. After a first answer, a command that fails or prints
        nothing gives None too: a DUT that restarts cannot answer."""
        if self.described.control is not None:
            return _losses_of_reference(Path(self.described.control))
        try:
            if not (output := self._output("losses")).strip():
                raise ConfigError(
                    "printed nothing: it prints a line for each counter, also for 0", "dut.commands.losses"
                )
        except ConfigError:
            if not self._has_told_losses:
                raise
            return None
        losses = _losses_in(output)
        self._has_told_losses = True
        return losses

    def losses_during(self, run: Callable[[], TrialResult]) -> TrialResult:
        """The result of ``run``, with its own loss counts during the trial, or why they are not known; without
        either where it has none."""
        if not self.counts_losses():
            return run()
        before = self.losses()
        result = run()
        after = self.losses()
        if before is None or after is None:
            return result.model_copy(update={"dut_losses_unknown": "the DUT did not tell its loss counters"})
        if back := _went_back(before, after):
            return result.model_copy(update={"dut_losses_unknown": back})
        lost = {
            way: {cause: after.get(way, {})[cause] - before.get(way, {}).get(cause, 0) for cause in after.get(way, {})}
            for way in {**before, **after}
        }
        counted = {way: {cause: number for cause, number in causes.items() if number} for way, causes in lost.items()}
        return result.model_copy(update={"dut_losses": counted})

    # --- its connections (RFC 9693) -----------------------------------------------------------------

    def clear_connections(self) -> float:
        """Delete all connections; returns how long that took, in seconds: by the output of the command,
        where it tells (``deletion_s 0.25``), else from its start to its end. Raises ConfigError where
        the DUT cannot."""
        began_s = time.monotonic()
        if self.described.control is not None:
            self._reference(lambda dut: dut.clear_connections())
            return time.monotonic() - began_s
        if not self.can("clear_connections"):
            raise ConfigError(
                "is missing: without it the connections of the DUT cannot be deleted before a trial",
                "dut.commands.clear_connections",
            )
        output = self._output("clear_connections")
        ended_s = time.monotonic()
        with _naming("clear_connections"):
            told_s = printed.seconds(output, DELETION)
        return ended_s - began_s if told_s is None else told_s

    def begin_without_connections(self) -> None:
        """Delete all connections, and make sure that none is left (RFC 9693 section 4.4)."""
        self.clear_connections()
        if left := self.count_connections():
            key = "dut.control" if self.described.control is not None else "dut.commands.clear_connections"
            raise ConfigError(
                f"the DUT has {left:,} connections after all were deleted: it must have none before a trial (RFC 9693"
                " section 4.4)",
                key,
            )

    def count_connections(self) -> int | None:
        """How many there are; None: the DUT cannot tell."""
        if self.described.control is not None:
            counted = self._reference_counters()
            return None if counted is None else counted["current"]
        return count_in(self._output("count_connections")) if self.can("count_connections") else None

    def connection_statistics(self) -> dict[str, int]:
        """What the DUT counts of its connections besides their number, by its own names; empty where it
        counts nothing."""
        if self.described.control is not None:
            return {name: number for name, number in (self._reference_counters() or {}).items() if name != "current"}
        return statistics_in(self._output("count_connections"))

    def _reference_counters(self) -> dict[str, int] | None:
        truth = self._reference(lambda dut: dut.counters())
        return None if truth.connections is None else truth.connections.model_dump()

    def _reference(self, ask: Callable[[RefDut], Answer]) -> Answer:
        from dutperf.lab.refdut import RefDut, RefDutError  # imported late: commands start fast

        try:
            return ask(RefDut(Path(str(self.described.control))))
        except RefDutError as error:
            raise ConfigError(str(error), "dut.control") from None

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
        return "" if command is None else RunningCommand(command, name, self._time_limit_s, variables).output()


def count_in(output: str) -> int:
    """The number of connections in the output of the command ``count_connections``.

    Raises:
        ConfigError: there is none, or it is not understood.
    """
    with _naming("count_connections"):
        return printed.count(output, COUNTED)


def statistics_in(output: str) -> dict[str, int]:
    """What that output tells besides, in lines of a name and a number.

    Raises:
        ConfigError: a number is not understood, or a name is there twice.
    """
    statistics: dict[str, int] = {}
    with _naming("count_connections"):
        for name, number in printed.named_numbers(output):
            if name in statistics:
                raise ValueError(f"printed {name} more than once")
            statistics[name] = number
    statistics.pop(COUNTED, None)
    return statistics


@contextmanager
def _naming(command: str) -> Iterator[None]:
    """Within, a ValueError is about what ``command`` printed."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(str(error), f"dut.commands.{command}") from None


def _went_back(before: ByCause, after: ByCause) -> str:
    """Which counters were reset meanwhile, or are too narrow: then nobody knows what the DUT lost. Empty: none."""
    back = [
        f"{way} {cause} from {count:,} to {now:,}"
        for way, causes in before.items()
        for cause, count in causes.items()
        if (now := after.get(way, {}).get(cause, 0)) < count
    ]
    return f"its loss counters went back during the trial ({', '.join(back)})" if back else ""


def _losses_of_reference(control: Path) -> ByCause | None:
    from dutperf.lab.refdut import RefDut, RefDutError  # imported late: commands start fast

    with suppress(RefDutError):
        truth = RefDut(control).counters()
        return {Direction.FORWARD: truth.forward.lost, Direction.REVERSE: truth.reverse.lost}
    return None


def _losses_in(output: str) -> ByCause:
    losses: ByCause = {}
    with _naming("losses"):
        for line in printed.lines(output):
            match line.split():
                case [direction, cause, number] if _is_direction(direction):
                    causes = losses.setdefault(Direction(direction), {})
                    if cause in causes:
                        raise ValueError(f"printed {direction} {cause} more than once")
                    causes[cause] = printed.whole(number, line)
                case _:
                    raise ValueError(f"'{line}' is not a direction, a cause and a number")
    return {direction: losses.get(direction, {}) for direction in shown_directions(losses)}


def _is_direction(text: str) -> bool:
    try:
        Direction(text)
    except ValueError:
        return False
    return True


class RunningCommand:
    """A command that has been started, with normal priority. The caller waits for it or kills it.

    Raises:
        ConfigError: it could not be started.
    """

    def __init__(
        self, command: Command, name: str, time_limit_s: float, variables: Mapping[str, str] | None = None
    ) -> None:
        self._key = f"dut.commands.{name}"
        self._time_limit_s = time_limit_s
        self._deadline_s = time.monotonic() + time_limit_s
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        """A file, not a pipe: a pipe that nobody reads would block the command."""
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=None if variables is None else {**os.environ, **variables},
            )
        except OSError as error:
            self._output.close()
            raise ConfigError(f"cannot run {argv[0]}: {error.strerror}", self._key) from None
        with suppress(OSError):  # a command that resets the DUT must not inherit the low priority of this process
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 0)

    def finish(self) -> None:
        """Wait for its end.

        Raises:
            ConfigError: it ended with another status than 0, or took too long. It names ``dut.commands.NAME``.
        """
        self.output()

    def output(self) -> str:
        """Wait for its end; returns its output.

        Raises:
            ConfigError: it ended with another status than 0, or took too long. It names ``dut.commands.NAME``.
        """
        self._await()
        self._output.seek(0)
        output = self._output.read().decode(errors="replace")
        self._output.close()
        if self._process.returncode:
            raise ConfigError(f"{_exit_text(self._process.returncode)}; {printed.last_line(output)}", self._key)
        return output

    def kill(self) -> None:
        """End it, and all that it started."""
        _kill(self._process)
        self._output.close()

    def _await(self) -> None:
        try:
            self._process.wait(timeout=max(0.0, self._deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise ConfigError(f"did not end within {self._time_limit_s:g} s", self._key) from None
        except BaseException:
            self.kill()
            raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _exit_text(status: int) -> str:
    return f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
