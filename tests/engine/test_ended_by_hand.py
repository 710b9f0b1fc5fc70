# SPDX-License-Identifier: Apache-2.0
"""Traffic that a program ends: what was sent until then counts, whatever its pattern. No two senders get to know of
the end at the same frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dutperf
from dutperf.model import TrialResult
from undisturbed import valid

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
