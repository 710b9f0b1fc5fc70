# SPDX-License-Identifier: Apache-2.0
"""The DUT of a test setup, as a measurement deals with it: by its commands, or a reference DUT by its control socket;
or several in a row."""

from __future__ import annotations

from dutperf.dut.counters import of_link
from dutperf.dut.device import Device
from dutperf.dut.row import DeviceOrRow, DeviceRow
from dutperf.setup.configuration import Dut, Setup


def of_setup(setup: Setup) -> DeviceOrRow:
    has_connections = any(side.has_gateway for side in setup.sides().values())
    if isinstance(setup.dut, Dut):
        return of(setup.dut, has_connections=has_connections)
    row = [of(one, has_connections=has_connections, key=f"dut.{number}") for number, one in enumerate(setup.dut)]
    links = (
        of_link(one, "between" if len(setup.between) == 1 else f"between.{place}")
        for place, one in enumerate(setup.between)
    )
    return DeviceRow(row, {place: one for place, one in enumerate(links) if one is not None})


def of(described: Dut, *, has_connections: bool = False, key: str = "dut") -> Device:
    """The one that a configuration describes at ``key``."""
    if described.control is None:
        return Device(described, has_connections=has_connections, key=key)
    from dutperf.dut.reference import ReferenceDevice  # imported late: commands start fast

    return ReferenceDevice(described, has_connections=has_connections, key=key)
