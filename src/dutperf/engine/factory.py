# SPDX-License-Identifier: Apache-2.0
"""The engine on a setup, the same for every command: its command line, its open request, and the
cores that it avoids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dutperf.engine.client import EngineCommand, EngineTester, check_namespace
from dutperf.errors import require
from dutperf.machine.cpu_sets import from_list
from dutperf.model import Direction
from dutperf.setup.configuration import Setup
from dutperf.setup.ports import open_request, other_streams
from dutperf.tester import TesterError
from dutperf.watch import core_choice
from dutperf.watch.core_choice import CoreChoice
from dutperf.watch.namespace_probe import CORES_ONLINE as ONLINE

if TYPE_CHECKING:
    from dutperf.otg_client.tester import OtgTester


def tester_on(setup: Setup, max_frame_size: int) -> EngineTester | OtgTester:
    """The tester of a setup: the engine, or the OTG server that the setup names, which may refuse frames itself. Raises
    TesterError: see :func:`engine_on`; or options of the engine beside a server. Raises MissingLibrary: for a
    server."""
    if setup.engine.otg is None:
        return engine_on(setup, max_frame_size)
    if setup.engine.queues > 1 or setup.engine.offloads:
        text = "queues and offloads are the engine's: leave them out, or engine.otg"
        raise TesterError(text, code="otg", field="engine.otg")
    require("requests", "otg", "engine.otg")
    from dutperf.otg_client.tester import OtgTester  # imported late: of an extra

    return OtgTester(setup)


def engine_on(
    setup: Setup, max_frame_size: int, streams: Mapping[Direction, Sequence[str]] | None = None
) -> EngineTester:
    """The tester; ``max_frame_size`` in bytes incl. FCS. The DUT has to be up: its cores are detected now. ``streams``:
    with rates of their own, beside those of the setup, each with the further ports at which its frames may arrive.
    Raises TesterError: the setup has an OTG server instead; there is no engine, no network namespace of the names of
    the tester's and the DUTs', or no such core."""
    if setup.engine.otg is not None:
        raise TesterError("this needs dutperf's own engine: leave engine.otg out", code="otg", field="engine.otg")
    if not setup.engine.command:  # else they are another machine's
        for netns in setup.engine.dut_netns or ():
            check_namespace(netns, "engine.dut_netns")
    command = EngineCommand.find(setup.engine.command, setup.engine.netns)
    choice = replace(cores_of_dut(setup, command), is_row=len(setup.duts()) > 1)
    request = open_request(setup, max_frame_size, choice.dut_cores)
    if further := other_streams(streams or (), streams):
        request["other_streams"] = [*request.get("other_streams", []), *further]
    return EngineTester(command, request, choice=choice)


def cores_of_dut(setup: Setup, command: EngineCommand) -> CoreChoice:
    """The cores from the configuration; without them, from
    :func:`dutperf.watch.core_choice.detect`."""
    engine, ports = setup.engine, [side.port for side in setup.sides().values()]
    if not engine.dut_cores:
        return core_choice.detect(command.argv(), ports)
    here = core_choice.is_here(command.argv())
    online = from_list(ONLINE.read_text()) if here else frozenset(engine.dut_cores)
    if missing := sorted(set(engine.dut_cores) - online):
        text = f"core {missing[0]} does not exist: this machine has {core_choice.named(online)}"
        raise TesterError(text, code="cores", field="engine.dut_cores")
    found = core_choice.behind(command.argv(), ports) if here and not engine.dut_netns else None
    return core_choice.configured(engine.dut_cores, engine.dut_netns or (), here=here, found=found)
