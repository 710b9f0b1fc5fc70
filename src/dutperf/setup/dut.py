# SPDX-License-Identifier: Apache-2.0
"""The DUT's commands (``dut.commands`` of the configuration): set it up, tear it down, read its state
and its loss counters, reset it, give it filters, count and clear its connections, clear its addresses.

They run on this machine, each in a session of its own; ``ssh router show version`` is an ordinary
command. They do not concern the test traffic.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dutperf.machine.signals import defer_signals
from dutperf.model import Direction, TrialResult, shown_directions
from dutperf.setup import printed
from dutperf.setup.configuration import Command, ConfigError, Dut, DutCommands

if TYPE_CHECKING:
    from dutperf.lab.refdut import RefDut

KEPT_CHARACTERS = 1_000_000
"""Of a state, from its beginning."""

ByCause = dict[Direction, dict[str, int]]
"""Frames that a DUT has counted as lost, by direction and cause."""
COUNTED = "connections"
"""Name that a line of the command ``count_connections`` may give the count itself."""
DELETION = "deletion_s"
"""Name of the line in which ``clear_connections`` may tell its time."""
Answer = TypeVar("Answer")
CountLosses = Callable[[], ByCause | None]
"""None: the DUT does not answer now."""


@contextmanager
def in_place(dut: Dut) -> Iterator[None]:
    """Within, ``dut`` is set up. It is torn down on every exit, also if ``set_up`` fails
    half-way.

    Raises:
        ConfigError: a command failed, or took too long. An error from within the block takes
            precedence.
    """
    try:
        _run_if_any(dut, "set_up")
        yield
    except BaseException:
        with suppress(ConfigError):
            _tear_down(dut)
        raise
    _tear_down(dut)


FILTERS = "DUTPERF_FILTERS"
"""Environment variable of the command ``filters``: how many it is to install."""


@contextmanager
def filtered(dut: Dut, filters: int | None) -> Iterator[Dut]:
    """Within, the DUT has so many filters (RFC 2544 11.4), and the value says which, by the command's
    output. None: the DUT stays as it is, as does one without the command: its user configures it.

    Raises:
        ConfigError: the command failed, or took too long. An error from within the block takes
            precedence.
    """
    if filters is None or dut.commands is None or dut.commands.filters is None:
        yield dut
        return
    command, time_limit_s = dut.commands.filters, dut.commands.time_limit_s

    def install(number: int) -> str:
        return run(command, "filters", time_limit_s, {FILTERS: str(number)})

    try:
        lines = printed.lines(install(filters))
        yield dut.model_copy(update={"filters": lines}) if lines else dut
    except BaseException:
        with suppress(ConfigError), defer_signals():
            install(0)
        raise
    with defer_signals():
        install(0)


def state_of(dut: Dut) -> Callable[[], str] | None:
    """Reads the DUT's state; None where the configuration has no command for it."""
    if dut.commands is None or dut.commands.state is None:
        return None
    return lambda: _run_if_any(dut, "state")[:KEPT_CHARACTERS]


def reset_of(dut: Dut) -> Callable[[], RunningCommand] | None:
    """Starts the command that resets the DUT; None where the configuration has none."""
    if dut.commands is None or dut.commands.reset is None:
        return None
    command, time_limit_s = dut.commands.reset, dut.commands.time_limit_s
    return lambda: RunningCommand(command, "reset", time_limit_s)


def clear_addresses_of(dut: Dut) -> Callable[[], None] | None:
    """Empties the DUT's address table; None where the configuration has no command for it.

    Raises, when it is called:
        ConfigError: see :func:`run`.
    """
    if dut.commands is None or dut.commands.clear_addresses is None:
        return None

    def clear() -> None:
        _run_if_any(dut, "clear_addresses")

    return clear


@dataclass(frozen=True)
class Connections:
    """The connections of a stateful DUT (RFC 9693), by its commands, or of a reference DUT by its
    control socket.

    All methods raise ConfigError, one sentence, if the DUT does not do what was asked.
    """

    dut: Dut

    def clear_connections(self) -> float:
        """Delete all connections; returns how long that took, in seconds: by the output of the command,
        where it tells (``deletion_s 0.25``), else from its start to its end. Raises ConfigError where
        the DUT cannot."""
        began_s = time.monotonic()
        if self.dut.control is not None:
            self._reference(lambda dut: dut.clear_connections())
            return time.monotonic() - began_s
        command = self._command("clear_connections")
        if command is None:
            raise ConfigError(
                "is missing: without it the connections of the DUT cannot be deleted before a trial",
                "dut.commands.clear_connections",
            )
        output = run(command, "clear_connections", self._time_limit_s)
        ended_s = time.monotonic()
        with _naming("clear_connections"):
            told_s = printed.seconds(output, DELETION)
        return ended_s - began_s if told_s is None else told_s

    def count_connections(self) -> int | None:
        """How many there are; None: the DUT cannot tell."""
        if self.dut.control is not None:
            counted = self._reference_counters()
            return None if counted is None else counted["current"]
        output = self._output_of_count()
        return None if output is None else count_in(output)

    def connection_statistics(self) -> dict[str, int]:
        """What the DUT counts of its connections besides their number, by its own names; empty where it
        counts nothing."""
        if self.dut.control is not None:
            return {name: number for name, number in (self._reference_counters() or {}).items() if name != "current"}
        return statistics_in(self._output_of_count() or "")

    def _output_of_count(self) -> str | None:
        command = self._command("count_connections")
        return None if command is None else run(command, "count_connections", self._time_limit_s)

    def _command(self, name: str) -> Command | None:
        return None if self.dut.commands is None else getattr(self.dut.commands, name)

    @property
    def _time_limit_s(self) -> float:
        return DutCommands().time_limit_s if self.dut.commands is None else self.dut.commands.time_limit_s

    def _reference_counters(self) -> dict[str, int] | None:
        truth = self._reference(lambda dut: dut.counters())
        return None if truth.connections is None else truth.connections.model_dump()

    def _reference(self, ask: Callable[[RefDut], Answer]) -> Answer:
        from dutperf.lab.refdut import RefDut, RefDutError  # imported late: commands start fast

        try:
            return ask(RefDut(Path(str(self.dut.control))))
        except RefDutError as error:
            raise ConfigError(str(error), "dut.control") from None


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


def losses_of(dut: Dut) -> CountLosses | None:
    """Reads the DUT's loss counters: those of a reference DUT, or by the configured command; None for
    other DUTs.

    After a first answer, a command that fails gives None: a DUT that restarts cannot answer.

    Raises, when it is called:
        ConfigError: the command fails the first time, or its output has another form.
    """
    if dut.control is not None:
        control = Path(dut.control)
        return lambda: _reference_losses(control)
    return None if dut.commands is None or dut.commands.losses is None else _Counter(dut)


def losses_during(count: CountLosses | None, run: Callable[[], TrialResult]) -> TrialResult:
    """The result of ``run``, with the DUT's own loss counts during the trial, or why they are not known; without
    either where it has none."""
    before = None if count is None else count()
    result = run()
    if count is None:
        return result
    after = count()
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


def _went_back(before: ByCause, after: ByCause) -> str:
    """Which counters were reset meanwhile, or are too narrow: then nobody knows what the DUT lost. Empty: none."""
    back = [
        f"{way} {cause} from {count:,} to {now:,}"
        for way, causes in before.items()
        for cause, count in causes.items()
        if (now := after.get(way, {}).get(cause, 0)) < count
    ]
    return f"its loss counters went back during the trial ({', '.join(back)})" if back else ""


def _reference_losses(control: Path) -> ByCause | None:
    from dutperf.lab.refdut import RefDut, RefDutError  # imported late: commands start fast

    with suppress(RefDutError):
        truth = RefDut(control).counters()
        return {Direction.FORWARD: truth.forward.lost, Direction.REVERSE: truth.reverse.lost}
    return None


class _Counter:
    """Reads the counters by the configured command."""

    def __init__(self, dut: Dut) -> None:
        self._dut = dut
        self._has_answered = False

    def __call__(self) -> ByCause | None:
        try:
            output = _run_if_any(self._dut, "losses")
        except ConfigError:
            if not self._has_answered:
                raise
            return None
        losses = _losses_in(output)
        self._has_answered = True
        return losses


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


def run(command: Command, name: str, time_limit_s: float, variables: Mapping[str, str] | None = None) -> str:
    """Run a command to its end, with further environment ``variables``; returns its output, standard error
    included.

    Raises:
        ConfigError: it could not be started, ended with another status than 0, or did not end in
            ``time_limit_s`` seconds. It names ``dut.commands.NAME``.
    """
    return RunningCommand(command, name, time_limit_s, variables).output()


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
            ConfigError: see :func:`run`.
        """
        self.output()

    def output(self) -> str:
        """Wait for its end; returns its output.

        Raises:
            ConfigError: see :func:`run`.
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


def _run_if_any(dut: Dut, name: str) -> str:
    command: Command | None = getattr(dut.commands, name, None)
    return "" if dut.commands is None or command is None else run(command, name, dut.commands.time_limit_s)


def _tear_down(dut: Dut) -> None:
    """Ctrl-C takes effect after it."""
    with defer_signals():
        _run_if_any(dut, "tear_down")


def _exit_text(status: int) -> str:
    return f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
