# SPDX-License-Identifier: Apache-2.0
"""The real engine on ports that need no network: joined in memory (``ring``), or capturing to a
file (``net_pcap``). No root, no namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.tester import TesterError
from fake_engines import engine_with_fake

OpenEngine = Callable[..., EngineTester]


@pytest.fixture(scope="session")
def command() -> EngineCommand:
    """The engine that was built."""
    try:
        return EngineCommand.find()
    except TesterError as error:
        pytest.skip(f"no engine: {error}")


def with_fake_nic(command: EngineCommand) -> EngineCommand:
    """The engine whose NIC is made up (engine/tests/fake_nic.cpp)."""
    return EngineCommand(str(engine_with_fake("nic", command)))


@pytest.fixture
def open_engine(command: EngineCommand) -> Iterator[OpenEngine]:
    """Opens engines by the parameters of ``open``, and ends them with the test. They use no huge
    pages: the machine may have none."""
    engines: list[EngineTester] = []

    def open_one(left: str | dict[str, Any], right: str | dict[str, Any], **parameters: Any) -> EngineTester:
        sides = {
            name: {"port": side} if isinstance(side, str) else side for name, side in (("left", left), ("right", right))
        }
        engines.append(EngineTester(command, sides | {"memory": "no_huge_pages"} | parameters))
        return engines[-1]

    yield open_one
    for engine in engines:
        engine.close()


@pytest.fixture
def open_capture(open_engine: OpenEngine, tmp_path: Path) -> Callable[..., tuple[EngineTester, dict[str, Path]]]:
    """An engine whose ports write what they send to files: the tester, and the file of each side."""

    def open_one(**parameters: Any) -> tuple[EngineTester, dict[str, Path]]:
        files = {side: tmp_path / f"{side}.pcap" for side in ("left", "right")}
        specs = {side: f"vdev:net_pcap_{side},tx_pcap={file}" for side, file in files.items()}
        macs = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}
        sides = {side: {"port": spec, "mac": macs[side]} for side, spec in specs.items()}
        return open_engine(sides["left"], sides["right"], **parameters), files

    return open_one
