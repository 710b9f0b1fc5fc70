# SPDX-License-Identifier: Apache-2.0
"""A network namespace of a guest: a DUT of its own beside others on the same emulated machine. What is done in it
before the guest boots is written down, for its set-up; it needs ``ip`` and ``nft`` there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dutperf.lab.guest import machine
from dutperf.lab.netns import Namespace
from dutperf.lab.site import Site

IP = "/usr/bin/ip"
"""Busybox's shell takes its own ``ip`` before any that has no path."""


@dataclass(frozen=True)
class GuestNamespace(Namespace):
    """Its methods write lines of the guest's set-up, and :meth:`command` is for when it runs."""

    site: Site
    set_up: list[str] = field(default_factory=list)
    """The lines so far, of all namespaces of the guest."""

    def create(self) -> None:
        self.set_up.append(f"{IP} netns add {self.name}\n")

    def do(self, argv: Sequence[str], stdin: str = "") -> None:
        self.set_up.append(f"{self.entered(argv)} << 'END'\n{stdin}END\n")

    def command(self, argv: Iterable[str]) -> list[str]:
        return machine.ask(self.site, self.entered(argv))

    def has_ipv6(self) -> bool:
        return True

    def entered(self, argv: Iterable[str]) -> str:
        """The line of a script in the guest that runs this inside."""
        return shlex.join([IP, *super().command(argv)[1:]])
