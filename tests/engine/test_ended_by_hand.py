# SPDX-License-Identifier: Apache-2.0
"""Traffic that a program ends: what was sent until then counts, whatever its pattern. No two senders get to know of
the end at the same frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dutperf
from dutperf.model import Capture, Direction, Trial, TrialResult, Verdict
from dutperf.tester.in_background import TrialInBackground
from plans import stream
from undisturbed import valid

from .conftest import OpenEngine

RING = """\
engine: {memory: no_huge_pages}
left: {port: ring, version: 4, ipv4: 198.18.0.2/24}
right: {port: ring, version: 4, ipv4: 198.19.0.2/24}
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[dutperf.Bench]:
    path = tmp_path / "ring.yaml"
    path.write_text(RING)
    with dutperf.bench(config=path) as made:
        yield made


@pytest.mark.parametrize("pattern", ["constant", "poisson", "bursts:32"])
def test_it_is_a_trial_of_what_was_sent(bench: dutperf.Bench, pattern: str) -> None:
    def ended() -> TrialResult:
        with bench.start("20k", dutperf.SingleTrial(direction_rates="3:1", pattern=pattern)) as traffic:
            traffic.wait(0.1)
        return traffic.results[-1]

    counts = valid(ended).directions().values()
    assert all(one.received == one.sent == one.intended > 0 for one in counts)


def test_streams_with_rates_of_their_own_may_change_too(bench: dutperf.Bench) -> None:
    with bench.start("1k", streams=[{"name": "call", "rate": 200}]) as traffic:
        traffic.wait(0.2)
        traffic.change(streams=[{"name": "web", "rate": "4Mbit/s", "sizes": 500, "directions": "reverse"}])
        traffic.wait(0.2)
    first, second = traffic.results
    assert list(first.other_streams or ()) == ["forward:call", "reverse:call"]
    assert list(second.other_streams or ()) == ["reverse:web"]
    for result in (first, second):
        assert all(one.sent > 0 for one in result.all_directions().values())


def test_a_trial_that_only_receives_ends_when_it_is_told(open_engine: OpenEngine, tmp_path: Path) -> None:
    """No sender notices; it receives for the drain, and its file is written."""
    listens = Capture(path=str(tmp_path / "arrived.pcapng"), first=10)
    trial = Trial(trial=1, duration_ns=3600 * 10**9, drain_ns=10**8, progress_ms=50, capture=listens)
    background = TrialInBackground(open_engine("ring", "ring"), trial)
    background.wait_until_sending()
    result = background.end()
    assert result.verdict is Verdict.VALID
    assert result.capture is not None
    assert result.capture.error is None
    assert Path(listens.path).exists()


def test_any_of_the_streams_that_were_opened_may_send(open_engine: OpenEngine) -> None:
    """The engine is not opened again for some of those that it knows: its ports are those of a server's clients."""
    names = [Direction(f"{way}:{name}") for way in ("forward", "reverse") for name in ("a", "b")]
    others = [{"name": name, "from": name.ports[0], "to": name.ports[1]} for name in names]
    engine = open_engine({"port": "ring"}, {"port": "ring"}, other_streams=others)
    process = engine._running()
    for chosen in ([names[0]], [names[1], names[3]], names):
        sends = {name: stream(4, 64, 1000) for name in chosen}
        trial = Trial(trial=1, duration_ns=10**8, drain_ns=10**7, other_streams=sends)
        result = valid(lambda trial=trial: engine.run(trial))  # type: ignore[misc]
        assert {name: one.received for name, one in result.all_directions().items()} == dict.fromkeys(chosen, 100)
        assert engine._running() is process
