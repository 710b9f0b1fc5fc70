# SPDX-License-Identifier: Apache-2.0
"""Every two features of traffic at once, over a kernel bridge that a person made (four_ports.sh), whose own counters
agree to the frame. What a card alone can do is in tests/cards. Root only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dutperf import traffic
from dutperf.engine.factory import engine_on
from dutperf.model import DirectionCounts, Load, Stream, Trial, TrialResult
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from dutperf.tester import phases
from dutperf.traffic import combinations
from dutperf.traffic.combinations import PAIRS, Feature
from traffic_features import chosen, versions
from undisturbed import LOSS_IS_CERTAIN, valid

from .flows_of_a_bridge import CountingBridge, Look, received_of
from .test_described_frames import mac
from .test_paths import made

pytestmark = pytest.mark.root
RATE_FPS = 2000
OF_CARDS = {
    *(combinations.FILL, combinations.QUEUES, combinations.CHECKSUMS, combinations.SEND_AT),
    combinations.RATE_LIMIT,
}
EACH_TIME = {
    frozenset(pair)
    for pair in (
        (combinations.HEADERS, combinations.NATIVE),
        (combinations.MIX, combinations.NETWORKS),
        (combinations.FLOWS, combinations.ADDRESSES),
        (combinations.WARM_UP, combinations.CONNECTIONS),
        (combinations.NETWORKS, combinations.SHARED_PORT),
        (combinations.OTHER_STREAMS, combinations.CONNECTIONS),
    )
}
"""The others are in ``make test-long``."""
PORT_OF = {"left": "a", "right": "b"}


NEEDS_ROUTER = {combinations.MANAGEMENT, combinations.SHARED_PORT}
"""Queries go to an address of the DUT's, and so do all frames of a port that has one: test_paths.py has a router."""


def possible() -> Iterator[Any]:
    for pair in PAIRS:
        if set(pair) == NEEDS_ROUTER:
            continue
        needs_translator = len(set(versions(*pair))) > 1
        if not OF_CARDS & set(pair) and not refused(pair) and not needs_translator:
            marks = () if frozenset(pair) in EACH_TIME else pytest.mark.long
            yield pytest.param(pair, id=" & ".join(one.name for one in pair), marks=marks)


def refused(pair: tuple[Feature, Feature]) -> bool:
    """By the table, also for what having several paths from a port needs."""
    needed = {*pair, *({combinations.NAMED_PORTS} if combinations.SHARED_PORT in pair else ())}
    return any({one.feature, one.beside} <= needed for one in combinations.REFUSALS)


@pytest.fixture(scope="module")
def bridge() -> Iterator[str]:
    with made("bridge") as name:
        yield name


def config_of(name: str, left: int, right: int, *, asks_dut: bool) -> dict[str, Any]:
    """Addresses in one network. ``asks_dut``: the DUT has one too."""
    ports = {
        side: {"port": port, "ipv4": f"198.18.0.{number}/15", "ipv6": f"2001:2::{number}/48"}
        for number, (side, port) in enumerate((("left", "a"), ("right", "b"), ("third", "c")), 2)
    }
    ports["left"]["version"], ports["right"]["version"], ports["third"]["version"] = left, right, right
    if asks_dut:
        for side, other in (("left", "b"), ("right", "a")):
            gateway = f"gateway{ports[side]['version']}"
            ports[side] |= {"gateway_mac": mac(name, other), gateway: {4: "198.18.0.1", 6: "2001:2::1"}[left]}
    return {"engine": {"netns": name}, **ports}


def trial_of(setup: Setup, conditions: dict[str, Any]) -> Trial:
    given = SingleTrial(**({"duration_s": 0.3, "drain_s": 0.2} | conditions))
    kind = traffic.of(setup, traffic.of(setup, given).sized())
    kind.check()
    return kind.trial(kind.cases()[0], Load.fps(RATE_FPS), 1)


def queries(stream: Stream, counts: DirectionCounts) -> int:
    """Management queries, which the bridge forwards: it has no address. All other additional frames are for groups."""
    each = zip(stream.additional, counts.additional or (), strict=True)
    return sum(one.sent for kind, one in each if kind.name == "management")


def by_flow(trial: Trial) -> Trial:
    """The same with counts of each flow, where frames have any."""
    asked = {"by_flow": True} if any(stream.frames for stream in trial.all_streams().values()) else {}
    return trial.model_copy(update={"preliminary": tuple(by_flow(one) for one in trial.preliminary), **asked})


def in_order(flows: Counter[tuple[str, Look, int]]) -> dict[tuple[str, Look], list[int]]:
    """Frames of each flow that has any, as the bridge says them."""
    found: dict[tuple[str, Look], list[int]] = {}
    for (name, look, _), frames in sorted(flows.items(), key=lambda item: item[1]):
        if frames:
            found.setdefault((name, look), []).append(frames)
    return found


@pytest.mark.parametrize("pair", list(possible()))
def test_the_dut_forwards_each_flow_of_what_two_features_send_at_once(
    bridge: str, pair: tuple[Feature, Feature]
) -> None:
    config = config_of(bridge, *versions(*pair), asks_dut=combinations.MANAGEMENT in pair)
    setup, conditions = chosen(config, *pair)
    trial = trial_of(setup, conditions)
    trial = by_flow(trial) if combinations.FLOWS in pair else trial
    planned = (*trial.preliminary, trial)
    dut = CountingBridge(bridge)
    with engine_on(setup, 1518) as tester:

        def run() -> TrialResult:
            dut.begin(planned)
            return phases.run(tester, trial)

        result = valid(run, LOSS_IS_CERTAIN)
    sent: Counter[str] = Counter()
    looked: Counter[tuple[str, Look]] = Counter()
    flows: Counter[tuple[str, Look, int]] = Counter()
    for phase, trial in zip((*result.preliminary, result), planned, strict=True):
        for way, counts in phase.all_directions().items():
            assert counts.received == counts.sent
            assert all(one.received == one.sent for one in counts.kinds or ())
            assert counts.corrupted == counts.duplicates == 0
            name = "".join(PORT_OF.get(one, one) for one in way.ports)
            stream = trial.all_streams()[way]
            sent[name] += counts.sent + queries(stream, counts)
            for kind, (look, received) in enumerate(received_of(stream, counts)):
                looked[name, look] += received
                of_flows = counts.kinds[kind].flows if counts.kinds else None
                for flow, frames in enumerate(of_flows.received if of_flows else ()):
                    flows[name, look, flow] += frames
    assert dut.counted() == sent
    assert dut.looked() == +looked
    if flows:
        assert dut.flows() == in_order(flows)
