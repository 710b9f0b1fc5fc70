# SPDX-License-Identifier: Apache-2.0
"""Three to sixteen ports in memory, each of which receives what the one before sends: what each path
counts, and what arrives where it should not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.utils import PcapNgReader

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.model import Capture, Direction, Poisson, Stream, Trial, TrialResult, Verdict
from dutperf.tester import TesterError
from dutperf.traffic.replayed import Replaying, recording_of, trial_of
from recordings import capture, udp

from .streams import stream

NAMES = "abcdefghijklmnop"


def ring_of(command: EngineCommand, ports: int, *more: tuple[str, str], **parameters: Any) -> EngineTester:
    """A path from each port to the next one, and some more."""
    names = NAMES[:ports]
    ends = [*zip(names, names[1:] + names[0], strict=True), *more]
    open_parameters = {
        "ports": [{"name": name, "port": "ring", "ipv4": f"198.18.{number}.2"} for number, name in enumerate(names)],
        "paths": [{"from": sender, "to": receiver} for sender, receiver in ends],
        "memory": "no_huge_pages",
    }
    return EngineTester(command, open_parameters | parameters)


def trial(streams: dict[str, Stream], **members: Any) -> Trial:
    return Trial(
        trial=1,
        duration_ns=200_000_000,
        drain_ns=50_000_000,
        seed=1,
        paths={Direction(path): one for path, one in streams.items()},
        **members,
    )


def ring_paths(ports: int) -> list[str]:
    return [f"{NAMES[one]}->{NAMES[(one + 1) % ports]}" for one in range(ports)]


@pytest.mark.parametrize(
    ("ports", "queues"),
    [(3, 1), (4, 2), (16, 1), *(pytest.param(*row, marks=pytest.mark.long) for row in ((3, 2), (4, 1), (16, 2)))],
)
def test_each_path_has_its_own_counts(command: EngineCommand, ports: int, queues: int) -> None:
    with ring_of(command, ports, queues=queues) as engine:
        streams = {path: stream(rate_fps=100 + 10 * number) for number, path in enumerate(ring_paths(ports))}
        result = engine.run(trial(streams, stamping="every"))
    counts = result.directions()
    assert list(counts) == list(streams)
    for number, one in enumerate(counts.values()):
        assert one.intended == one.sent == one.received == 20 + 2 * number
        assert one.transmitted is not None
        assert one.transmitted.handed_over == one.sent
        assert (one.stale, one.corrupted, one.duplicates, one.other_received) == (0, 0, 0, {})
        assert one.misdelivered is None
        assert one.delay_us is not None
    assert set(result.link_up.ports()) == set(NAMES[:ports])
    assert result.in_sum is not None
    together, each = result.in_sum.delay_us, [one.delay_us for one in counts.values() if one.delay_us is not None]
    assert (together.min, together.max) == (min(one.min for one in each), max(one.max for one in each))
    assert sum(count for _, count in together.buckets or ()) == sum(one.received for one in counts.values())
    assert min(one.p50 for one in each) <= together.p50 <= max(one.p50 for one in each)


def through(command: EngineCommand, streams: dict[str, Stream], *more: tuple[str, str], **members: Any) -> TrialResult:
    with ring_of(command, 4, *more) as engine:
        return engine.run(trial(streams, **members))


def test_frames_of_a_path_that_come_to_another_port_are_found_there(command: EngineCommand) -> None:
    streams = {path: stream(rate_fps=500) for path in ring_paths(4)} | {"a->c": stream(rate_fps=250)}
    result = through(command, streams, ("a", "c"), ("a", "d"))
    counts = result.directions()
    astray = counts.pop(Direction("a->c"))
    assert (astray.sent, astray.received, astray.lost, astray.misdelivered) == (50, 0, 50, {"b": 50})
    assert {one.received for one in counts.values()} == {100}
    assert not any(one.misdelivered or one.other_received for one in counts.values())
    # both paths from the port hand their frames to the same queue
    assert astray.transmitted is not None
    assert astray.transmitted == counts[Direction("a->b")].transmitted
    assert astray.transmitted.handed_over == astray.transmitted.counted == 150


def test_some_paths_alone(command: EngineCommand) -> None:
    with ring_of(command, 4) as engine:
        paths = ring_paths(4)
        for active in (paths[1:2], paths[2:], paths):
            result = engine.run(trial({path: stream(rate_fps=500) for path in active}))
            assert {path: one.received for path, one in result.directions().items()} == dict.fromkeys(active, 100)


def test_frames_of_an_earlier_trial_are_of_their_path(command: EngineCommand) -> None:
    """They wait in the ring while the next trial begins."""
    with ring_of(command, 3) as engine:
        streams = {path: stream(rate_fps=1000) for path in ring_paths(3)}
        assert engine.run(trial(streams)).verdict in (Verdict.VALID, Verdict.INVALID)
        again = engine.run(trial(streams).model_copy(update={"trial": 2}))
        assert {(one.received, one.stale) for one in again.directions().values()} == {(200, 0)}


def test_each_path_has_arrivals_of_its_own(command: EngineCommand) -> None:
    """The last path's, by the number of its generator, in the engine and in the package: the times of
    frames that are lost."""
    streams = {path: stream(rate_fps=500, pattern=Poisson()) for path in ring_paths(4)}
    streams |= {path: stream(rate_fps=500, pattern=Poisson()) for path in ("a->c", "b->d")}
    sent = trial(streams)
    with ring_of(command, 4, ("a", "c"), ("b", "d")) as engine:
        counts = engine.run(sent).directions()
    first = set()
    for path in ("a->c", "b->d"):
        losses, times = counts[Direction(path)].losses, sent.times(Direction(path))
        assert losses is not None
        assert losses.first_s == pytest.approx(times.due_ns(0) / 1e9, abs=2e-9)
        assert losses.last_s == pytest.approx(times.due_ns(99) / 1e9, abs=2e-9)
        first.add(losses.first_s)
    assert len(first) == 2


def test_a_capture_names_the_ports(command: EngineCommand, tmp_path: Path) -> None:
    file = tmp_path / "trial.pcapng"
    streams = {"a->b": stream(rate_fps=50), "a->c": stream(rate_fps=50)}
    result = through(
        command, streams, ("a", "c"), capture=Capture(path=str(file), first=0, damaged=0, unexpected=100, lost=100)
    )
    assert result.capture is not None
    assert (result.capture.written.unexpected, result.capture.written.lost) == (10, 10)
    with PcapNgReader(str(file)) as reader:
        assert len(list(reader)) == 20
    content = file.read_bytes()
    names = [content.index(b"\x02\x00\x01\x00" + name.encode()) for name in "abcd"]  # if_name, of one byte
    assert names == sorted(names)


def replayed(tmp_path: Path, path: str, *, tag: bool = False) -> Trial:
    """200 frames of a capture on one path."""
    packets = [udp(size) for size in (40, 700) * 100]
    conditions = Replaying(directions=path, rate=2000, drain_s=0.05, tag=tag)
    return trial_of(recording_of(capture(tmp_path / "replayed.pcap", packets), conditions), conditions, 1)


@pytest.mark.parametrize("tags", [False, True])
def test_a_replay_on_any_path(command: EngineCommand, tmp_path: Path, tags: bool) -> None:
    """Also on the fourth path, whose tags and fields say so."""
    with ring_of(command, 4, ("a", "c")) as engine:
        result = engine.run(replayed(tmp_path, "d->a", tag=tags))
    [(path, counts)] = result.directions().items()
    assert (path, counts.sent, counts.received) == ("d->a", 200, 200)
    assert (0 if counts.matched is None else counts.matched.sent) == (0 if tags else 200)


def test_a_replay_without_tags_needs_a_port_of_its_own(command: EngineCommand, tmp_path: Path) -> None:
    """Nothing tells its frames from those of another path into the port."""
    beside = stream(rate_fps=500)
    with ring_of(command, 4, ("a", "c")) as engine:
        untagged, tagged = (replayed(tmp_path, "b->c", tag=tags) for tags in (False, True))
        for path, refused in (("a->b", False), ("a->c", True)):
            both = untagged.model_copy(update={"paths": {**untagged.streams(), Direction(path): beside}})
            if not refused:
                assert {one.lost for one in engine.run(both).directions().values()} == {0}
                continue
            with pytest.raises(TesterError, match="need ports that no other path uses") as error:
                engine.run(both)
            assert error.value.field == "paths.b->c.replay"
        both = tagged.model_copy(update={"paths": {**tagged.streams(), Direction("a->c"): beside}})
        assert engine.run(both).directions()[Direction("b->c")].received == 200
