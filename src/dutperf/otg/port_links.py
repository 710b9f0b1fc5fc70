# SPDX-License-Identifier: Apache-2.0
"""The links of ports that are interfaces of a kernel, which clients take down and up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from dutperf.otg.model import Rejected
from dutperf.setup.configuration import EngineSettings
from dutperf.watch.core_choice import interface_of

_PLACE = "port.link.port_names"
_PATIENCE_S = 10


class PortLinks:
    """Those that are down. ``engine`` says where the interfaces are."""

    def __init__(self, engine: EngineSettings) -> None:
        self._command = [*engine.command, "ip", *(["-n", engine.netns] if engine.netns else []), "link", "set"]
        self.down: dict[str, str] = {}
        """Interfaces by the names of ports in the configuration."""

    def switch(self, state: str, ports: Mapping[str, str]) -> None:
        """Take ``ports`` ``up`` or ``down``; by their names, as a setup has them. Raises Rejected: one is no interface
        of a kernel, and none is switched then; or the kernel does not."""
        interfaces = {name: interface_of(spec) for name, spec in ports.items()}
        if others := [name for name, interface in interfaces.items() if interface is None]:
            text = f"{_PLACE}: {others[0]} is no interface of the kernel: links of others are not covered"
            raise Rejected(text, code=501)
        for name, interface in interfaces.items():
            assert interface is not None, "see above"
            self._set(interface, state)
            self.down.pop(name, None)
            if state == "down":
                self.down[name] = interface

    def restore(self) -> None:
        """Take all up again, if they are still there."""
        for interface in self.down.values():
            with suppress(Rejected):
                self._set(interface, "up")
        self.down = {}

    @contextmanager
    def restored(self) -> Iterator[None]:
        """All are up in the block; if something is rejected in it, those that were down are so again."""
        before = self.down
        self.restore()
        try:
            yield
        except Rejected:
            for name, interface in before.items():
                with suppress(Rejected):
                    self._set(interface, "down")
                    self.down[name] = interface
            raise

    def _set(self, interface: str, state: str) -> None:
        command = [*self._command, interface, state]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
            reason = done.stderr.strip() or f"exit status {done.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
        else:
            if done.returncode == 0:
                return
        raise Rejected(f"{_PLACE}: {' '.join(command)}: {reason}", code=500, kind="internal")
