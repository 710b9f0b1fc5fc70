# SPDX-License-Identifier: Apache-2.0
"""Streams beside those of the paths, with rates, numbers and counts of their own, and streams that begin late
or end early. Requests and events as they are in the protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgReader, rdpcap

from dutperf.engine.client import EngineCommand
from dutperf.engine.process import EngineTimeout
from dutperf.frames import Stack, build
from dutperf.model import Poisson, Stream, Trial
from frame_rows import ENDPOINTS

from .conftest import with_fake_nic
from .protocol import MS, Engine, Json, Opening, Refused
from .streams import stream

TAG_AT = 42
"""In a frame with UDP directly over IPv4."""
MOST_PAGE_FAULTS = 50
"""Of all threads of the engine during a trial: some are none of the loops'."""


@pytest.fixture
def opened(command: EngineCommand) -> Iterator[Opening]:
    opening = Opening(command)
    yield opening
    opening.close()


def other(name: str, sender: str = "left", receiver: str = "right") -> Json:
    return {"name": name, "from": sender, "to": receiver}


def sent_as(one: Stream, **members: Any) -> Json:
    """A stream as it is in a request."""
    request = Trial(trial=1, duration_ns=MS, drain_ns=0, forward=one).request()
    sent: Json = request["forward"]
    return sent | members


def plain(rate_fps: int, **members: Any) -> Json:
    return sent_as(stream(rate_fps=rate_fps), **members)


def counts(of: Json) -> tuple[int, int, int]:
    return of["intended"], of["sent"], of["received"]


def is_clean(of: Json) -> bool:
    """Whether nothing came that is of another stream, or wrong."""
    keys = ("stale", "corrupted", "duplicates", "out_of_order")
    return not any(of[key] for key in keys) and not of["other_received"] and "misdelivered" not in of


DESCRIBED = Stream(rate_fps=700, frames=(build(Stack.parse("vlan(id=7)/ipv6/tcp"), 200, ENDPOINTS),))


def test_each_stream_has_a_rate_and_counts_of_its_own(opened: Opening) -> None:
    engine = opened([other("voice"), other("bulk"), other("late:1"), other("up>", "right", "left")])
    others = {
        "voice": sent_as(stream(rate_fps=1500, pattern=Poisson())),
        "bulk": sent_as(DESCRIBED),
        "late:1": plain(1000, begin_ns=50 * MS, sends_ns=100 * MS),
        "up>": plain(250),
    }
    events, result = engine.ask(
        "run",
        {
            "trial": 1,
            "seed": 1,
            "duration_ns": 200 * MS,
            "drain_ns": 20 * MS,
            "progress_ms": 20,
            "stamping": "every",
            "forward": plain(2000),
            "reverse": plain(500),
            "other_streams": others,
        },
    )
    assert {name: counts(one) for name, one in result["other_streams"].items()} == {
        "voice": (300, 300, 300),
        "bulk": (140, 140, 140),
        "late:1": (100, 100, 100),
        "up>": (50, 50, 50),
    }
    assert (counts(result["forward"]), counts(result["reverse"])) == ((400, 400, 400), (100, 100, 100))
    every = [result["forward"], result["reverse"], *result["other_streams"].values()]
    assert all(is_clean(one) for one in every)
    assert all(one["delay_us"]["frames"] == one["sent"] for one in every)
    # one port sends four of them
    assert result["forward"]["transmitted"] == result["other_streams"]["bulk"]["transmitted"]
    assert result["forward"]["transmitted"]["handed_over"] == 400 + 300 + 140 + 100
    late = result["other_streams"]["late:1"]
    assert 0.05 <= late["arrivals"]["first_s"] <= late["arrivals"]["last_s"]
    assert 0.149 <= late["send_time_s"] < 0.199
    assert set(events[0]["other_streams"]) == set(others)
    assert events[0]["other_streams"]["late:1"]["sent"] == 0
    assert "in_sum" not in result


def test_some_other_streams_alone(opened: Opening) -> None:
    """Frames of an earlier trial are of their stream; a path that does not send has no counts."""
    engine = opened([other("one"), other("other"), other("back", "right", "left")])
    for active in ({"one"}, {"other", "back"}, {"one", "other", "back"}):
        result = engine.run(other_streams={name: plain(500) for name in active})
        assert {name: counts(one) for name, one in result["other_streams"].items()} == dict.fromkeys(
            active, (100, 100, 100)
        )
        assert all(is_clean(one) for one in result["other_streams"].values())
        assert "forward" not in result
    assert "other_streams" not in engine.run(forward=plain(500))


def test_losses_are_of_their_stream_at_its_times(opened: Opening) -> None:
    engine = opened([other("bursts"), other("late")], left={"port": "null"}, right={"port": "null"})
    late = plain(1000, begin_ns=100 * MS, sends_ns=50 * MS)
    bursts = plain(1000, pattern={"kind": "bursts", "frames": 10}, begin_ns=20 * MS)
    losses = {
        name: one["losses"]
        for name, one in engine.run(forward=plain(500), other_streams={"bursts": bursts, "late": late})[
            "other_streams"
        ].items()
    }
    assert (losses["late"]["first_s"], losses["late"]["last_s"]) == pytest.approx((0.1, 0.149))
    assert (losses["bursts"]["first_s"], losses["bursts"]["last_s"]) == pytest.approx((0.02, 0.19))
    bins = losses["late"]["bins"]  # of 0.8 ms
    assert sum(bins) == 50
    assert [i for i, lost in enumerate(bins) if lost] == sorted({int(0.1 / 0.0008 + k / 0.8 + 1e-9) for k in range(50)})


def test_ports_with_names(opened: Opening) -> None:
    """Another stream may be of two ports that have no path, and its frames may come to another port."""
    ports = [{"name": name, "port": "ring", "ipv4": f"198.18.{at}.2"} for at, name in enumerate("abc")]
    paths = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]
    engine = opened(
        [other("x", "a", "b"), other("forward", "c", "a"), other("astray", "a", "c")], ports=ports, paths=paths
    )
    streams = {"x": plain(300), "forward": plain(400), "astray": plain(100)}
    result = engine.run(paths={"a->b": plain(500), "b->c": plain(600)}, other_streams=streams, stamping="every")
    assert {name: counts(one) for name, one in result["paths"].items()} == {
        "a->b": (100, 100, 100),
        "b->c": (120, 120, 120),
    }
    others = result["other_streams"]
    assert counts(others["x"]) == (60, 60, 60)
    assert counts(others["forward"]) == (80, 80, 80)
    assert counts(others["astray"]) == (20, 20, 0)
    assert others["astray"]["misdelivered"] == {"b": 20}
    assert all(one["other_received"] == {} for one in [*others.values(), *result["paths"].values()])
    # the sum is that of the paths
    assert result["in_sum"]["delay_us"]["frames"] == 220


def test_sixteen_other_streams_of_one_port(opened: Opening) -> None:
    """All of them, then one alone, faster than its port's ring is emptied at times."""
    names = [f"f{number}" for number in range(16)]
    engine = opened([other(name) for name in names])
    rates = {name: 200 + 10 * number for number, name in enumerate(names)}
    result = engine.run(forward=plain(1000), other_streams={name: plain(rate) for name, rate in rates.items()})
    assert {name: one["received"] for name, one in result["other_streams"].items()} == {
        name: rate // 5 for name, rate in rates.items()
    }
    assert result["forward"]["received"] == 200
    alone = engine.run(other_streams={"f15": plain(200_000)}, duration_ns=500 * MS)["other_streams"]["f15"]
    assert counts(alone) == (100_000, 100_000, 100_000)


def test_a_stream_has_a_file_of_its_delays(opened: Opening, tmp_path: Path) -> None:
    engine = opened([other("one")])
    engine.run(
        forward=plain(500),
        other_streams={"one": plain(1000)},
        stamping="every",
        delays_files={"one": str(tmp_path / "one.npy"), "forward": str(tmp_path / "forward.npy")},
    )
    assert len(numpy.load(tmp_path / "one.npy")) == 200
    assert len(numpy.load(tmp_path / "forward.npy")) == 100


def test_delays_are_of_the_parts_of_the_whole_sending_time(opened: Opening) -> None:
    engine = opened([other("late")])
    late = engine.run(
        other_streams={"late": plain(1000, begin_ns=80 * MS, sends_ns=40 * MS)}, stamping="every", delay_parts=10
    )["other_streams"]["late"]
    parts = [delays is not None for delays in late["delay_parts_us"]]
    assert parts == [4 <= part < 6 for part in range(10)]


def test_tagged_frames_are_those_of_the_trial_after_a_time(opened: Opening, tmp_path: Path) -> None:
    engine = opened([other("late")])
    late = engine.run(
        other_streams={"late": plain(1000, begin_ns=80 * MS)},
        stamping="tagged",
        tagged={"count": 10, "after_ns": 100 * MS},
        delays_files={"late": str(tmp_path / "late.npy")},
    )["other_streams"]["late"]
    assert (late["stamped_sent"], late["stamped_received"]) == (10, 10)
    assert min(numpy.load(tmp_path / "late.npy")["sequence"]) == 20


def test_additional_frames_and_changes_of_the_rate_count_from_the_beginning(opened: Opening) -> None:
    broadcast = "ff" * 6 + "00" * 6 + "0806" + "00" * 46
    additional = [
        {"name": "x", "frames": [broadcast], "every_ns": 10 * MS, "forwarded": [{"at": 0, "bytes": "ff" * 6}]}
    ]
    late = plain(1000, begin_ns=100 * MS, sends_ns=50 * MS, then={"rate_fps": 100, "after_ns": 20 * MS})
    one = opened([other("late")]).run(other_streams={"late": late | {"additional": additional}})["other_streams"][
        "late"
    ]
    assert counts(one) == (23, 23, 23)
    assert [(kind["intended"], kind["sent"], kind["received"]) for kind in one["additional"]] == [(5, 5, 5)]


def opening_frames(count: int) -> Json:
    """One connection in each frame of the Initiator, in a second or less."""
    ports = {"mode": "random", "min": 1024, "max": 65535}
    return plain(5 * count) | {"source_port": ports, "destination_port": {"mode": "fixed", "min": 7, "max": 7}}


def test_other_streams_beside_connections_belong_to_none(opened: Opening) -> None:
    """In both directions. The third path's number has the same lowest bit as forward's: the Responder learns
    nothing of its frames."""
    engine = opened([other("beside"), other("odd"), other("back", "right", "left")])
    count = 1000
    mixed = stream(rate_fps=1000, networks=2)
    others = {"beside": plain(2000), "odd": sent_as(DESCRIBED), "back": sent_as(mixed)}
    learned = {"learned": count, "remapped": 0, "lost": 0}
    expected = {"beside": (400, 400, 400), "odd": (140, 140, 140), "back": (200, 200, 200)}
    initiator = opening_frames(count)
    result = engine.run(forward=initiator, connections={"count": count, "use": "open"}, other_streams=others)
    assert result["connections"] == learned
    assert {name: counts(one) for name, one in result["other_streams"].items()} == expected
    assert counts(result["forward"]) == (count, count, count)
    replies = plain(1500) | {"destination_port": initiator["source_port"]}
    replies["source_port"] = {"mode": "fixed", "min": 7, "max": 7}
    result = engine.run(
        forward=initiator, reverse=replies, connections={"count": count, "use": "traffic"}, other_streams=others
    )
    assert result["connections"] == learned
    assert {name: counts(one) for name, one in result["other_streams"].items()} == expected
    assert counts(result["reverse"]) == (300, 300, 300)
    result = engine.run(reverse=replies, connections={"count": count, "use": "each"}, other_streams=others)
    assert {name: counts(one) for name, one in result["other_streams"].items()} == expected


def captured(opened: Opening, directory: Path, **members: Any) -> list[bytes]:
    """The frames that the left port sends, without the run's number, the checksum over it, and time stamps."""
    directory.mkdir()
    file = directory / "left.pcap"
    engine = opened(
        [other("one"), other("other")],
        left={"port": f"vdev:net_pcap_left,tx_pcap={file}", "mac": "02:00:00:00:00:01"},
        right={"port": f"vdev:net_pcap_right,tx_pcap={directory / 'right.pcap'}", "mac": "02:00:00:00:00:02"},
    )
    engine.run(trial=9, **members)
    engine.process.close()
    return [bytes(packet) for packet in rdpcap(str(file))]


def by_path(frames: list[bytes]) -> dict[int, list[bytes]]:
    """Frames of each path, without what differs from run to run."""
    paths: dict[int, list[bytes]] = {}
    for frame in frames:
        tag = frame[TAG_AT : TAG_AT + 18]
        path = 2 * (tag[7] - 1) + (tag[6] & 1)
        paths.setdefault(path, []).append(frame[: TAG_AT - 2] + tag[:3] + tag[5:13] + frame[TAG_AT + 18 :])
    return paths


def test_the_same_trial_has_the_same_frames(opened: Opening, tmp_path: Path) -> None:
    """Those of a path do not depend on streams beside it, and two streams with the same members differ."""
    others = {"one": plain(1000), "other": plain(1000, begin_ns=10 * MS)}
    first = by_path(captured(opened, tmp_path / "first", forward=plain(2000), other_streams=others))
    again = by_path(captured(opened, tmp_path / "again", forward=plain(2000), other_streams=others))
    alone = by_path(captured(opened, tmp_path / "alone", forward=plain(2000)))
    assert {path: len(frames) for path, frames in first.items()} == {0: 400, 2: 200, 3: 190}
    assert first == again
    assert alone == {0: first[0]}
    ports = [[(packet[UDP].sport, packet[UDP].dport) for packet in map(Ether, first[path][:50])] for path in (2, 3)]
    assert ports[0] != ports[1]
    assert all(IP in Ether(frame) for frame in first[2])


def test_lost_frames_are_captured_with_the_times_of_their_stream(opened: Opening, tmp_path: Path) -> None:
    engine = opened([other("late")], left={"port": "null"}, right={"port": "null"})
    file = tmp_path / "lost.pcapng"
    late = plain(1000, begin_ns=100 * MS, sends_ns=10 * MS)
    engine.run(forward=plain(100), other_streams={"late": late}, capture={"path": str(file), "lost": 100})
    assert b"lost: frame 0 of late" in file.read_bytes()
    with PcapNgReader(str(file)) as reader:
        times = [float(packet.time) for packet in reader]
    assert len(times) == 20 + 10
    assert sum(1 for time in times if 0.0999 <= time - times[0] < 0.1095) == 10 + 1


REFUSED: list[tuple[Json, str]] = [
    ({"other_streams": {"two": plain(1)}}, "params.other_streams.two"),
    ({"other_streams": {}}, "params.other_streams"),
    ({}, "params.forward"),
    ({"other_streams": {"one": plain(1) | {"rate_fps": 0}}}, "params.other_streams.one.rate_fps"),
    ({"other_streams": {"one": plain(1, begin_ns=200 * MS)}}, "params.other_streams.one.begin_ns"),
    (
        {"other_streams": {"one": plain(1, begin_ns=100 * MS, sends_ns=100 * MS + 1)}},
        "params.other_streams.one.sends_ns",
    ),
    (
        {"forward": plain(1, begin_ns=1), "pacing": {"kind": "fill", "destination": "02:00:00:00:00:99"}},
        "params.pacing",
    ),
    (
        {
            "forward": plain(1),
            "other_streams": {"one": plain(1)},
            "pacing": {"kind": "fill", "destination": "02:00:00:00:00:99"},
        },
        "params.pacing",
    ),
]


def test_what_does_not_go_with_other_streams_is_refused(opened: Opening) -> None:
    engine = opened([other("one")])
    for members, field in REFUSED:
        with pytest.raises(Refused) as error:
            engine.run(**members)
        assert error.value.args[0] == field
    assert "several begin at that of forward" in error.value.args[1]
    with pytest.raises(Refused, match="begin_ns"):
        engine.run(**REFUSED[-2][0])


def test_a_replay_without_tags_does_not_go_with_other_streams_of_its_ports(opened: Opening) -> None:
    engine = opened([other("beside"), other("back", "right", "left")])
    engine.ask("load", {"frames": [{"bytes": "02" * 12 + "88b5" + "00" * 50}]})
    replay = {"rate_fps": 1000, "replay": {"frames": 1}}
    with pytest.raises(Refused, match="the path forward shares its ports with others"):
        engine.run(forward=replay, other_streams={"beside": plain(100)})
    result = engine.run(forward=replay | {"begin_ns": 100 * MS}, other_streams={"back": plain(100)})
    assert counts(result["forward"]) == (100, 100, 100)
    assert result["forward"]["matched"]["in_order"] == 100


def test_other_streams_on_several_queues(opened: Opening) -> None:
    engine = opened([other("one")], queues=2)
    result = engine.run(forward=plain(1000), other_streams={"one": sent_as(stream(rate_fps=500), begin_ns=1)})
    assert (counts(result["forward"]), counts(result["other_streams"]["one"])) == ((200, 200, 200), (100, 100, 100))


def test_of_a_stream_with_fewer_frames_than_tags_all_are_tagged(opened: Opening) -> None:
    engine = opened([other("call"), other("early")])
    result = engine.run(
        forward=plain(5000),
        other_streams={"call": plain(100), "early": plain(1000, sends_ns=40 * MS)},
        stamping="tagged",
        tagged={"count": 50, "after_ns": 100 * MS},
    )
    stamped = {name: one["stamped_sent"] for name, one in result["other_streams"].items()}
    assert result["forward"]["stamped_sent"] == 50
    assert stamped == {"call": 10, "early": 0}
    assert result["other_streams"]["call"]["stamped_received"] == 10


def page_faults(pid: int) -> dict[str, int]:
    """Of each thread of the engine, without the one that prepares trials and looks after them."""
    threads = [task for task in Path(f"/proc/{pid}/task").iterdir() if task.name != str(pid)]
    return {task.name: int((task / "stat").read_text().rpartition(")")[2].split()[7]) for task in threads}


@pytest.mark.parametrize("flows", [2, 300])
def test_no_loop_waits_for_memory_while_it_sends(opened: Opening, flows: int) -> None:
    """The kernel gives a page when it is first written: before the trial, not when a frame is due."""
    names = [str(number) for number in range(1, flows)]
    engine = opened([other(name) for name in names])
    one = plain(120_000 // flows)
    engine.begin(
        "run",
        {
            "trial": 1,
            "rest_ns": 500 * MS,
            "duration_ns": 300 * MS,
            "drain_ns": 500 * MS,
            "progress_ms": 20,
            "stamping": "every",
            "forward": one,
            "other_streams": dict.fromkeys(names, one),
        },
    )
    readings = []
    while True:
        with suppress(EngineTimeout):
            result = engine.process.receive(0.02)
            if result["event"] != "progress":
                break
        readings.append((time.monotonic(), page_faults(engine.process.pid)))
    assert result["event"] == "result", result
    assert result["forward"]["received"] == 36_000 // flows
    before = next(faults for at_s, faults in reversed(readings) if at_s < result["began_s"])
    after = next(faults for _, faults in reversed(readings) if set(faults) == set(before))
    assert sum(after[thread] - before[thread] for thread in before) <= MOST_PAGE_FAULTS


def test_a_replay_without_tags_does_not_go_with_several_receiving_ports(opened: Opening) -> None:
    """Nothing tells which of them has which frame."""
    ports = [{"name": name, "port": "ring", "ipv4": f"198.18.{number}.2"} for number, name in enumerate("abc")]
    engine = opened([other("all", "a", "b") | {"also_to": ["c"]}], ports=ports, paths=[{"from": "b", "to": "c"}])
    engine.ask("load", {"frames": [{"bytes": "02" * 12 + "88b5" + "00" * 50}]})
    with pytest.raises(Refused, match="one receiving port only"):
        engine.run(other_streams={"all": {"rate_fps": 1000, "replay": {"frames": 1}}})


def to_several(opened: Opening) -> Engine:
    """Stream `all` may arrive at two ports, to the second of which path b->c leads as well."""
    ports = [{"name": name, "port": "ring", "ipv4": f"198.18.{number}.2"} for number, name in enumerate("abc")]
    return opened([other("all", "a", "b") | {"also_to": ["c"]}], ports=ports, paths=[{"from": "b", "to": "c"}])


def test_stamps_of_the_kernel_do_not_go_with_several_receiving_ports(opened: Opening) -> None:
    """The delays would be those of the frames that arrive at one of them."""
    engine, streams = to_several(opened), {"other_streams": {"all": plain(1000)}}
    with pytest.raises(Refused, match="may arrive at several"):
        engine.run(stamps="kernel", stamping="every", **streams)
    result = engine.run(stamps="auto", stamping="every", **streams)
    assert "may arrive at several" in result["loop_stamps_because"]


def test_of_several_receiving_ports_the_first_full_ring_counts(
    command: EngineCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_FAKE_NIC", "card")
    opening = Opening(with_fake_nic(command))
    try:
        result = to_several(opening).run(paths={"b->c": plain(50_000)}, other_streams={"all": plain(1000)})
    finally:
        opening.close()
    at_b_us, at_c_us = (1e6 * 4096 / rate_fps for rate_fps in (1000, 51_000))
    assert at_c_us < at_b_us / 10
    assert result["other_streams"]["all"]["receive_ring_us"] == pytest.approx(
        result["paths"]["b->c"]["receive_ring_us"]
    )
