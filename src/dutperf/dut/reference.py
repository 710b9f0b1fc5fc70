# SPDX-License-Identifier: Apache-2.0
"""The reference DUT: its losses and connections by its control socket (``dut.control`` of the configuration)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dutperf.dut.device import Device
from dutperf.dut.printed import ByCause
from dutperf.lab.refdut import PortLosses, RefDut, RefDutError
from dutperf.model import Direction
from dutperf.setup.configuration import ConfigError

Answer = TypeVar("Answer")


class ReferenceDevice(Device):
    """The reference DUT, which may have commands too."""

    deletes_by = "control"

    def counts_losses(self) -> bool:
        return True

    def losses(self) -> ByCause | str:
        try:
            truth = self._client.counters()
        except RefDutError as error:
            return str(error)
        return {
            Direction.FORWARD: truth.forward.lost | _at_ports(truth.left, truth.right),
            Direction.REVERSE: truth.reverse.lost | _at_ports(truth.right, truth.left),
        }

    def deletes_connections(self) -> bool:
        return self._counted() is not None

    def clear_connections(self) -> float:
        began_s = time.monotonic()
        self._ask(lambda refdut: refdut.clear_connections())
        return time.monotonic() - began_s

    def count_connections(self) -> int | None:
        counted = self._counted()
        return None if counted is None else counted["current"]

    def _counted(self) -> dict[str, int] | None:
        truth = self._ask(lambda refdut: refdut.counters())
        return None if truth.connections is None else truth.connections.model_dump()

    def _ask(self, ask: Callable[[RefDut], Answer]) -> Answer:
        try:
            return ask(self._client)
        except RefDutError as error:
            raise ConfigError(str(error), f"{self.key}.control") from None

    @property
    def _client(self) -> RefDut:
        return RefDut(Path(str(self.described.control)))


def _at_ports(way_in: PortLosses, way_out: PortLosses) -> dict[str, int]:
    """What a direction lost in the kernel's buffers of the ports by which its frames enter and leave the DUT."""
    return {"port_before": way_in.lost_before, "port_after": way_out.lost_after}
