# SPDX-License-Identifier: Apache-2.0
"""Every two features of traffic at once, over a kernel bridge that a person made (four_ports.sh), whose own counters
agree to the frame. What a card alone can do is in tests/engine/test_combinations.py. Root only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dutperf import traffic
from dutperf.engine.factory import engine_on
from dutperf.model import Direction, DirectionCounts, Load, Stream, Trial, TrialResult
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from dutperf.tester import phases
from dutperf.traffic import combinations
from dutperf.traffic.combinations import PAIRS, Feature
from traffic_features import OF_CARDS, chosen, refused, versions
from undisturbed import LOSS_IS_CERTAIN, valid

from .flows_of_a_bridge import CountingBridge, Look, received_of
from .test_described_frames import mac
from .test_paths import made

pytestmark = pytest.mark.root
RATE_FPS = 2000
EACH_TIME = {
    frozenset(pair)
    for pair in (
        (combinations.HEADERS, combinations.NATIVE),
        (combinations.MIX, combinations.NETWORKS),
        (combinations.FLOWS, combinations.ADDRESSES),
        (combinations.WARM_UP, combinations.CONNECTIONS),
        (combinations.NETWORKS, combinations.SHARED_PORT),
        (combinations.OTHER_STREAMS, combinations.CONNECTIONS),
        (combinations.NAMED_PORTS, combinations.CONNECTIONS),
    )
}
"""The others are in ``make test-long``."""
PORT_OF = {"left": "a", "right": "b"}


NEED_ROUTER = ({combinations.MANAGEMENT, combinations.MORE_PORTS}, {combinations.MANAGEMENT, combinations.SHARED_PORT})
"""Queries go to an address of the DUT's, and so do all frames of a port that has one: test_paths.py has a router."""


def possible() -> Iterator[Any]:
    for pair in PAIRS:
        if set(pair) in NEED_ROUTER:
            continue
        needs_translator = len(set(versions(*pair))) > 1
        if not OF_CARDS & set(pair) and not refused(pair) and not needs_translator:
            marks = () if frozenset(pair) in EACH_TIME else pytest.mark.long
            yield pytest.param(pair, id=" & ".join(one.name for one in pair), marks=marks)


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


def name_of(way: Direction) -> str:
    """The ports of the bridge between which its frames go."""
    return "".join(PORT_OF.get(one, one) for one in way.ports)


def frames_of_flows(result: TrialResult, trial: Trial) -> dict[tuple[str, Look], list[int]]:
    """Of each kind with flows that the bridge can tell apart, how many frames of each arrived, in ascending order."""
    found: dict[tuple[str, Look], list[int]] = {}
    for way, counts in result.all_directions().items():
        for frame, kind in zip(trial.all_streams()[way].frames, counts.kinds or (), strict=True):
            look = Look.of(frame)
            if kind.flows is not None and frame.flows > 1 and look.has_udp:
                found.setdefault((name_of(way), look), []).extend(one for one in kind.flows.received if one)
    return {key: sorted(frames) for key, frames in found.items()}


@pytest.mark.parametrize("pair", list(possible()))
def test_the_dut_forwards_each_flow_of_what_two_features_send_at_once(
    bridge: str, pair: tuple[Feature, Feature]
) -> None:
    config = config_of(bridge, *versions(*pair), asks_dut=combinations.MANAGEMENT in pair)
    setup, conditions = chosen(config, *pair)
    trial = trial_of(setup, conditions)
    if combinations.FLOWS in pair:
        trial = trial.model_copy(update={"by_flow": True})
    planned = (*trial.preliminary, trial)
    dut = CountingBridge(bridge)
    with engine_on(setup, 1518) as tester:

        def run() -> TrialResult:
            dut.begin(planned)
            return phases.run(tester, trial)

        result = valid(run, LOSS_IS_CERTAIN)
    sent: Counter[str] = Counter()
    looked: Counter[tuple[str, Look]] = Counter()
    for phase, its in zip((*result.preliminary, result), planned, strict=True):
        for way, counts in phase.all_directions().items():
            assert counts.received == counts.sent
            assert all(one.received == one.sent for one in counts.kinds or ())
            assert counts.corrupted == counts.duplicates == 0
            name, stream = name_of(way), its.all_streams()[way]
            sent[name] += counts.sent + queries(stream, counts)
            for look, received in received_of(stream, counts):
                looked[name, look] += received
    assert dut.counted() == sent
    assert dut.looked() == +looked
    of_flows = {} if trial.preliminary else frames_of_flows(result, trial)
    # in a tunnel the bridge sees none
    has_flows = trial.by_flow and not trial.preliminary and combinations.TUNNEL not in pair
    assert bool(of_flows) == bool(has_flows)
    assert {key: frames for key, frames in dut.flows().items() if key in of_flows} == of_flows
