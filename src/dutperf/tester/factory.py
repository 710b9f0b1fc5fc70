# SPDX-License-Identifier: Apache-2.0
"""The engine on a set-up, as every command has it: its command line, what it is asked to open, and
the cores that it keeps off."""

from __future__ import annotations

from dutperf.setup import traffic
from dutperf.setup.configuration import Setup
from dutperf.tester import core_choice
from dutperf.tester.core_choice import CoreChoice
from dutperf.tester.engine import EngineCommand, EngineTester


def engine_on(setup: Setup, max_frame_size: int) -> EngineTester:
    """The tester; ``max_frame_size`` in bytes incl. FCS. The DUT is to be there: where it works is
    looked up now.

    Raises:
        TesterError: there is no engine, or no such network namespace.
    """
    command = EngineCommand.find(setup.engine.command, setup.engine.netns)
    choice = cores_of_dut(setup, command)
    return EngineTester(command, traffic.open_request(setup, max_frame_size, choice.dut_cores), choice=choice)


def cores_of_dut(setup: Setup, command: EngineCommand) -> CoreChoice:
    """As the configuration says; where it does not, as :func:`dutperf.tester.core_choice.look`
    finds them."""
    engine = setup.engine
    if engine.dut_cores:
        return core_choice.told(engine.dut_cores, engine.dut_netns, here=not engine.command)
    return core_choice.look(command.argv(), [side.port for side in setup.sides().values()])
