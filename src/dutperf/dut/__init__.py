# SPDX-License-Identifier: Apache-2.0
"""The DUT of a test setup, as a measurement deals with it: by its commands, or a reference DUT by its control
socket."""

from __future__ import annotations

from dutperf.dut.device import Device
from dutperf.setup.configuration import Dut, Setup


def of_setup(setup: Setup) -> Device:
    """That of a test setup."""
    return of(setup.dut, has_connections=any(side.has_gateway for side in setup.sides().values()))


def of(described: Dut, *, has_connections: bool = False) -> Device:
    """The one that a configuration describes."""
    if described.control is None:
        return Device(described, has_connections=has_connections)
    from dutperf.dut.reference import ReferenceDevice  # imported late: commands start fast

    return ReferenceDevice(described, has_connections=has_connections)
