# SPDX-License-Identifier: Apache-2.0
"""The engine on a setup, the same for every command: its command line, its open request, and the
cores that it avoids."""

from __future__ import annotations

from dataclasses import replace

from dutperf.engine.client import EngineCommand, EngineTester, check_namespace
from dutperf.setup.configuration import Setup
from dutperf.setup.ports import open_request
from dutperf.watch import core_choice
from dutperf.watch.core_choice import CoreChoice


def engine_on(setup: Setup, max_frame_size: int) -> EngineTester:
    """The tester; ``max_frame_size`` in bytes incl. FCS. The DUT has to be up: its cores are detected
    now.

    Raises:
        TesterError: there is no engine, or no network namespace of the names of the tester's and the DUTs'.
    """
    if not setup.engine.command:  # else they are another machine's
        for netns in setup.engine.dut_netns or ():
            check_namespace(netns, "engine.dut_netns")
    command = EngineCommand.find(setup.engine.command, setup.engine.netns)
    choice = replace(cores_of_dut(setup, command), is_row=len(setup.duts()) > 1)
    return EngineTester(command, open_request(setup, max_frame_size, choice.dut_cores), choice=choice)


def cores_of_dut(setup: Setup, command: EngineCommand) -> CoreChoice:
    """The cores from the configuration; without them, from
    :func:`dutperf.watch.core_choice.detect`."""
    engine, ports = setup.engine, [side.port for side in setup.sides().values()]
    if not engine.dut_cores:
        return core_choice.detect(command.argv(), ports)
    here = not engine.command
    found = core_choice.behind(command.argv(), ports) if here and not engine.dut_netns else None
    return core_choice.configured(engine.dut_cores, engine.dut_netns or (), here=here, found=found)
