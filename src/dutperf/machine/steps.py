# SPDX-License-Identifier: Apache-2.0
"""Changes of the machine as values: what is written and run, so that it can be shown before it is
done, and how it is undone."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dutperf.machine.access import Machine, MachineError


@dataclass(frozen=True)
class Write:
    """A text into a file of the kernel's; ``path`` as for :class:`~dutperf.machine.access.Machine`."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"echo {self.text} > /{self.path}" if self.text.strip() else f"echo > /{self.path}"

    def do(self, machine: Machine) -> None:
        """Do it.

        Raises:
            MachineError: the kernel does not let it.
        """
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
        """Do it.

        Raises:
            MachineError: it fails, or is not there.
        """
        done = machine.run(self.argv)
        if done.status:
            raise MachineError(f"'{self}' failed: {' '.join(done.errors.split()) or f'exit status {done.status}'}")


Action = Write | Run


def _succeeds(_machine: Machine) -> str | None:
    return None


@dataclass(frozen=True)
class Step:
    """One change."""

    what: str
    """A sentence for a person: what is changed."""
    actions: tuple[Action, ...]
    undo: str
    """A command line that takes it back."""
    fault: Callable[[Machine], str | None] = _succeeds
    """What is not as it should be after the actions although none failed; None: all is well."""
    back: tuple[Action, ...] = ()
    """Where it fails: leaves what was found, as far as that is possible."""

    def do(self, machine: Machine) -> None:
        """Carry it out.

        Raises:
            MachineError: it did not work; what it had done is taken back.
        """
        try:
            for action in self.actions:
                action.do(machine)
            if (fault := self.fault(machine)) is not None:
                raise MachineError(fault)
        except MachineError as error:
            left = list(_failing(self.back, machine))
            raise MachineError(f"{error}{f'; taking it back failed too: {left[0]}' if left else ''}") from None


def _failing(actions: Iterable[Action], machine: Machine) -> Iterable[str]:
    for action in actions:
        try:
            action.do(machine)
        except MachineError as error:
            yield str(error)


def _advice(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "; run it as root (sudo)"
    return "; run it on the machine itself, not in a container" if error.errno == errno.EROFS else ""


def check_root(machine: Machine) -> None:
    """Raises MachineError where this process may not change the machine."""
    if machine.user != 0:
        raise MachineError("this needs root: run the same command with sudo")
