# SPDX-License-Identifier: Apache-2.0
"""Configurations of the Open Traffic Generator API for tests, the frames of their flows, and a server whose tester is
simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.testclient import TestClient

import frame_bytes
from dutperf.model import Direction
from dutperf.otg import app, coverage, flows, links
from dutperf.otg.generator import Generator
from dutperf.otg.model import messages, of_members
from dutperf.otg.traffic import Streams
from dutperf.otg.trial_log import TrialLog
from dutperf.setup.configuration import EngineSettings, Setup
from dutperf.setup.ports import open_request
from dutperf.tester.simulated import SimulatedTester
from dutperf.web.access import Rules

TOKEN = "a-token-of-these-tests"
LOCATED = {"left": "af_packet:eth1", "right": "af_packet:eth2"}
PORTS = [{"name": "p1", "location": "left"}, {"name": "p2", "location": "right"}]
UDP = [{"ethernet": {"dst": {"value": "02:00:00:00:00:02"}}}, {"ipv4": {"dst": {"value": "198.19.0.2"}}}, {"udp": {}}]


def flow(**members: Any) -> dict[str, Any]:
    usual = {
        "name": "f1",
        "tx_rx": {"port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": UDP,
        "duration": {"fixed_packets": {"packets": 100}},
        "metrics": {"enable": True, "loss": True},
    }
    return usual | members


def configured(*each: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"ports": PORTS, "flows": list(each)} | members


def planned(*each: dict[str, Any], **members: Any) -> tuple[flows.Flow, ...]:
    configuration = of_members(configured(*each, **members), messages.Config)
    coverage.check(configuration)
    return flows.planned(configuration, links.planned(configuration, LOCATED))


def frames(packet: list[dict[str, Any]], count: int = 1, size: int = 128) -> list[bytes]:
    """The first frames of a flow, without FCS."""
    [made] = planned(flow(packet=packet, size={"fixed": size}))
    [frame] = made.stream.frames
    return [frame_bytes.written(frame, number) for number in range(count)]


class Opened(SimulatedTester):
    """One whose ports are open."""

    setup: Setup | None = None
    streams: Sequence[Direction] = ()

    def environment(self) -> dict[str, Any]:
        port = {"link_up": True, "link_mbps": 0, "dut_mac4": "02:00:00:00:00:aa"}
        return {"ports": dict.fromkeys(("p1", "p2"), port)}


def opening(kind: type[SimulatedTester], **members: Any) -> Any:
    """Opens such testers, which note what they were opened with."""

    def opened(setup: Setup, size: int, streams: Streams) -> Any:
        open_request(setup, size)
        assert all(one.stream for one in streams)
        return kind(**members)

    return opened


def serving(
    kind: type[SimulatedTester],
    log: TrialLog | None = None,
    located: Mapping[str, str] = LOCATED,
    **members: Any,
) -> Iterator[TestClient]:
    settings = EngineSettings(command=("env", "true"))  # instead of the program that takes links down
    generator = Generator(located, settings, opening(kind, **members), drain_s=0.0, log=log)
    made = app.make(generator, Rules(TOKEN, "127.0.0.1"))
    try:
        with TestClient(made, "http://127.0.0.1:8443") as one:
            yield one
    finally:
        generator.close()
