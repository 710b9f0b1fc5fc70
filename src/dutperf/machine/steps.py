# SPDX-License-Identifier: Apache-2.0
"""Changes of the machine as values: files to write and programs to run, which can be shown first, and how
to undo them."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dutperf.invocation import as_root
from dutperf.machine.access import Machine, MachineError


@dataclass(frozen=True)
class Write:
    """Text to write to a file of the kernel; ``path`` as for :class:`~dutperf.machine.access.Machine`."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"echo {self.text} > /{self.path}" if self.text.strip() else f"echo > /{self.path}"

    def do(self, machine: Machine) -> None:
        """Do it. Raises MachineError: an error of the kernel."""
        try:
            machine.write(self.path, self.text)
        except OSError as error:
            raise MachineError(f"'{self}' failed: {error.strerror}{_advice(error)}") from None


@dataclass(frozen=True)
class Run:
    """A program and its arguments."""

    argv: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.argv)

    def do(self, machine: Machine) -> None:
        """Do it. Raises MachineError: it fails, or is not installed."""
        done = machine.run(self.argv)
        if done.status:
            raise MachineError(f"'{self}' failed: {' '.join(done.errors.split()) or f'exit status {done.status}'}")


Action = Write | Run


@dataclass(frozen=True)
class Step:
    """One change."""

    what: str
    """Description of the change, for a person."""
    actions: tuple[Action, ...]
    undo: str
    """Command line that undoes it."""
    fault: Callable[[Machine], str | None] = lambda _machine: None
    """Check after the actions: the fault although no action failed; None: success."""
    back: tuple[Action, ...] = ()
    """Actions after a failure, to restore the former state as far as possible."""

    def do(self, machine: Machine) -> None:
        """Carry it out. Raises MachineError: it failed; its changes were undone."""
        try:
            for action in self.actions:
                action.do(machine)
            if (fault := self.fault(machine)) is not None:
                raise MachineError(fault)
        except MachineError as error:
            left = list(_failing(self.back, machine))
            raise MachineError(f"{error}{f'; undoing it failed too: {left[0]}' if left else ''}") from None


def _failing(actions: Iterable[Action], machine: Machine) -> Iterable[str]:
    for action in actions:
        try:
            action.do(machine)
        except MachineError as error:
            yield str(error)


def _advice(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"; {as_root()}"
    return "; run it on the machine itself, not in a container" if error.errno == errno.EROFS else ""


def check_root(machine: Machine) -> None:
    """Raises MachineError if this process may not change the machine."""
    if machine.user != 0:
        raise MachineError(f"this needs root: {as_root()}")
