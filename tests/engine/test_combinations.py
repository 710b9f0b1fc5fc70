# SPDX-License-Identifier: Apache-2.0
"""Every two features of traffic at once, of which one is a card's: no card is at hand, but one that is made up
(engine/tests/fake_nic.cpp), which writes down each frame that leaves. The others are in
tests/integration/test_combinations.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dutperf import traffic
from dutperf.engine.client import EngineCommand
from dutperf.engine.factory import engine_on
from dutperf.model import DirectionCounts, Load, Stream, Trial, TrialResult
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import Setup
from dutperf.tester import phases
from dutperf.traffic import combinations
from dutperf.traffic.combinations import PAIRS, Feature
from fake_engines import frames_that_left
from traffic_features import OF_CARDS, chosen, refused, versions
from undisturbed import LOSS_IS_CERTAIN, valid

from .conftest import with_fake_nic

pytestmark = pytest.mark.alone
MBPS, RING, RATE_FPS, SIZE = 10, 256, 400, 128
FCS = 4
EACH_TIME = {
    frozenset(pair)
    for pair in (
        (combinations.FILL, combinations.CONNECTIONS),
        (combinations.FILL, combinations.ROUTING),
        (combinations.QUEUES, combinations.OTHER_STREAMS),
        (combinations.SEND_AT, combinations.MIX),
        (combinations.RATE_LIMIT, combinations.NETWORKS),
    )
}
"""The others are in ``make test-long``."""
CABLES = ("a->b", "b->c", "c->a")
"""Of three ports each receives what the one before it sends."""


def possible() -> Iterator[Any]:
    for pair in PAIRS:
        # a query asks a DUT, and no DUT has an address where ports are rings
        if OF_CARDS & set(pair) and combinations.MANAGEMENT not in pair and not refused(pair):
            marks = () if frozenset(pair) in EACH_TIME else pytest.mark.long
            yield pytest.param(pair, id=" & ".join(one.name for one in pair), marks=marks)


def config_of(left: int, right: int) -> dict[str, Any]:
    """Ports in one network."""
    ports: dict[str, Any] = {
        side: {
            "port": "ring",
            "receive_ring": RING,
            "ipv4": f"198.18.0.{number}/15",
            "ipv6": f"2001:2::{number}/48",
        }
        for number, side in enumerate(("left", "right", "third"), 2)
    }
    ports["left"]["version"], ports["right"]["version"], ports["third"]["version"] = left, right, right
    return {"engine": {"memory": "no_huge_pages"}, **ports}


def along_cables(setup: Setup) -> Setup:
    """The set-up with the paths that three ports have; a further one ends nowhere."""
    if setup.ports is None or len(setup.ports) == 2:
        return setup
    config = configuration.as_json(setup)
    config["paths"] = [*CABLES, *(path for path in config["paths"] if path == "a->c")]
    return configuration.parse(config, "test")


def trial_of(setup: Setup, conditions: dict[str, Any]) -> Trial:
    given = SingleTrial(**({"duration_s": 0.3, "drain_s": 0.5, "frame_sizes": (SIZE,)} | conditions))
    kind = traffic.of(setup, traffic.of(setup, given).sized())
    kind.check()
    return kind.trial(kind.cases()[0], Load.fps(RATE_FPS), 1)


def lengths_of(stream: Stream, counts: DirectionCounts) -> Counter[int]:
    """Of each length without FCS, how many frames were sent by the tester's counts."""
    sent: Counter[int] = Counter()
    if stream.frames:
        for frame, kind in zip(stream.frames, counts.kinds or (), strict=True):
            sent[frame.size - FCS] += kind.sent
    else:
        assert stream.foreground is not None
        sent[stream.foreground.size - FCS] += counts.foreground_sent
        if stream.background is not None:
            sent[stream.background.size - FCS] += counts.background_sent
    for kind, one in zip(stream.additional, counts.additional or (), strict=True):
        for number in range(one.sent):
            sent[len(kind.frames[number % len(kind.frames)]) // 2] += 1
    return sent


@pytest.mark.parametrize("pair", list(possible()))
def test_a_card_sends_each_frame_of_what_two_features_send_at_once(
    command: EngineCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pair: tuple[Feature, Feature]
) -> None:
    leaves = tmp_path / "leaves"
    monkeypatch.setenv("DUTPERF_ENGINE", with_fake_nic(command).program)
    monkeypatch.setenv("DUTPERF_FAKE_NIC", f"card media={MBPS} ring={RING} filters")
    monkeypatch.setenv("DUTPERF_FAKE_NIC_LEAVES", str(leaves))
    setup, conditions = chosen(config_of(*versions(*pair)), *pair)
    setup = along_cables(setup)
    trial = trial_of(setup, conditions)
    planned = (*trial.preliminary, trial)
    tries: list[TrialResult] = []
    with engine_on(setup, 1518) as tester:

        def run() -> TrialResult:
            tries.append(phases.run(tester, trial))
            return tries[-1]

        result = valid(run, LOSS_IS_CERTAIN)
    for phase in (*result.preliminary, result):
        for way, counts in phase.all_directions().items():
            assert counts.sent == counts.intended
            assert all(one.sent == one.intended for one in counts.additional or ())
            assert counts.corrupted == counts.duplicates == 0
            # the frames of a warm-up are still on their way when it ends, and a->c ends nowhere
            if str(way) != "a->c" and (phase is result or combinations.CONNECTIONS in pair):
                assert counts.received == counts.sent
                assert all(one.received == one.sent for one in counts.kinds or ())
    sent: Counter[int] = Counter()
    for one in tries:
        for phase, its in zip((*one.preliminary, one), planned, strict=True):
            for way, counts in phase.all_directions().items():
                sent += lengths_of(its.all_streams()[way], counts)
    left = Counter(frames_that_left(leaves)["length"].tolist())
    assert {length: left[length] for length in sent} == sent
