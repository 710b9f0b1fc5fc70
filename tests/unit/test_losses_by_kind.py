# SPDX-License-Identifier: Apache-2.0
"""Names of kinds of frames: not for the engine, but in its counts and in a search's evidence."""

from __future__ import annotations

from dutperf.engine.client import _with_names
from dutperf.model import Direction, DirectionCounts, KindCounts
from dutperf.results import points
from dutperf.setup import configuration
from dutperf.setup.conditions import SingleTrial
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import make_trial

SETUP = configuration.Setup.model_validate(
    {
        "left": {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"},
        "right": {"port": "ring", "version": 4, "ipv4": "198.19.0.2/24"},
        "streams": [{"name": "voice", "sizes": 128}, {"name": "web", "sizes": "imix:64=1,594=1", "share": 2}],
    }
)
TRIAL = make_trial(SETUP, SingleTrial(duration_s=1, drain_s=0, directions="forward"), 84, 900, 1)
NAMES = ["voice, 128 bytes", "web, 64 bytes", "web, 594 bytes"]


def counts(lost: tuple[int, ...]) -> DirectionCounts:
    made = SimulatedTester(SimulatedDut(capacity_fps=1_000_000)).run(TRIAL).forward
    assert made is not None
    kinds = tuple(KindCounts(sent=300, received=300 - one) for one in lost)
    changed = made.model_copy(update={"kinds": kinds, "received": 900 - sum(lost)})
    return _with_names(changed, TRIAL.streams()[Direction.FORWARD])


def test_the_engine_gets_no_names() -> None:
    assert TRIAL.forward is not None
    assert [frame.name for frame in TRIAL.forward.frames] == NAMES
    assert not any("name" in frame for frame in TRIAL.request()["forward"]["frames"])


def test_losses_of_each_kind() -> None:
    loss = points._loss(counts((0, 12, 3)), ())
    assert loss.kinds == dict(zip(NAMES, (0, 12, 3), strict=True))
    assert "12 of web, 64 bytes, 3 of web, 594 bytes" in loss.sentence()
    assert "voice" not in loss.sentence()


def test_a_single_kind_is_not_told_apart() -> None:
    one = counts((0, 12, 3))
    assert one.kinds is not None
    assert points._loss(one.model_copy(update={"kinds": one.kinds[:1]}), ()).kinds == {}
