# SPDX-License-Identifier: Apache-2.0
"""Several queues of a port: several senders and receivers of a direction are one, in what is sent
and in what is counted.

On few cores several roles share one, which changes nothing but the speed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.utils import RawPcapReader

from dutperf.model import DirectionCounts, FieldMode, Poisson, RateChange, Trial, Verdict
from dutperf.tester import TesterError

from .conftest import OpenEngine
from .streams import frame, stream, trial
from .test_ring import reversed_stream

SIGNATURE = bytes.fromhex("d75450")


def expect_all(counts: DirectionCounts, frames: int) -> None:
    """All were sent and received, once and undamaged."""
    assert counts.intended == counts.sent == counts.received == frames
    assert counts.foreground_sent == counts.foreground_received
    assert counts.background_sent == counts.background_received
    assert (counts.duplicates, counts.out_of_order, counts.stale, counts.corrupted, counts.late) == (0, 0, 0, 0, 0)
    assert (counts.losses, counts.tester_drops, counts.other_received) == (None, {}, {})


@pytest.mark.parametrize("queues", [1, 2, 3])
def test_senders_and_receivers_count_together(open_engine: OpenEngine, tmp_path: Path, queues: int) -> None:
    one = stream(6, 84, rate_fps=20_000, background=frame(6, 84), n=4, m=3)
    with open_engine("ring", "ring", queues=queues) as engine:
        environment = engine.environment()
        assert (environment["queues"], len(environment["roles"])) == (queues, 4 * queues)
        spreads = [warning for warning in environment["warnings"] if "in its own way" in warning]
        assert len(spreads) == (2 if queues > 1 else 0)
        files = {"forward": str(tmp_path / "forward.npy")}
        every = engine.run(
            trial(one, reversed_stream(one), stamping="every", delays_files=files, frame_timeout_ns=10**9)
        )
        tagged = engine.run(trial(one, None, stamping="tagged", tagged={"count": 77, "after_ns": 50_000_000}))
        changing = engine.run(
            trial(one.model_copy(update={"then": RateChange(rate_fps=10_000, after_ns=100_000_000)}), None)
        )
    for counts in every.directions().values():
        expect_all(counts, 4000)
        assert counts.stamped_sent == counts.stamped_received == 4000
        assert (counts.ipdv_us is not None) == (queues == 1)
        assert counts.arrivals is not None
        assert (
            0
            <= counts.arrivals.first_s
            <= counts.arrivals.longest_gap_from_s
            <= counts.arrivals.longest_gap_to_s
            <= counts.arrivals.last_s
        )
    delays = np.load(files["forward"])
    assert sorted(delays["sequence"]) == list(range(4000))
    assert tagged.forward is not None
    expect_all(tagged.forward, 4000)
    assert tagged.forward.stamped_sent == tagged.forward.stamped_received == 77
    assert changing.forward is not None
    expect_all(changing.forward, 2000 + 1000)


def test_what_never_comes_is_lost_in_every_share(open_engine: OpenEngine) -> None:
    with open_engine("null", "null", queues=3) as engine:
        result = engine.run(trial(stream()))
    assert result.forward is not None
    assert result.forward.lost == result.forward.sent == 400
    losses = result.forward.losses
    assert losses is not None
    assert (losses.first_s, losses.longest_run, sum(losses.bins)) == (0, 400, 400)


def test_a_trial_ends_when_the_last_sender_has_given_up(open_engine: OpenEngine) -> None:
    """A rate beyond reach: what was not sent is unsent, whoever should have; nothing of it is lost."""
    with open_engine("ring", "ring", queues=2) as engine:
        result = engine.run(trial(stream(rate_fps=1_000_000_000)))
    assert result.verdict is Verdict.INVALID
    assert "unsent" in {cause.code for cause in result.causes}
    assert result.forward is not None
    assert (result.forward.lost, result.forward.losses) == (0, None)
    assert result.forward.foreground_sent == result.forward.sent


def sent_by(open_engine: OpenEngine, directory: Path, queues: int, one: Trial, **opened: Any) -> list[bytes]:
    """The frames that so many senders send, by their number, without what each engine draws (the run) and
    the checksums over it; the bytes of time stamps, only whether they are there."""
    directory.mkdir()
    files = [directory / f"{queue}.pcap" for queue in range(queues)]
    left = {"port": "vdev:net_pcap_left" + "".join(f",tx_pcap={file}" for file in files), "mac": "02:00:00:00:00:01"}
    others = "".join(f",tx_pcap={directory / f'back{queue}.pcap'}" for queue in range(queues))
    with open_engine(
        left, {"port": "vdev:net_pcap_right" + others, "mac": "02:00:00:00:00:02"}, queues=queues, **opened
    ) as engine:
        result = engine.run(one)
    assert result.forward is not None
    assert result.forward.sent == result.forward.intended
    frames: dict[int, bytes] = {}
    for queue, file in enumerate(files):
        for data, _ in RawPcapReader(str(file)):
            tag = data.index(SIGNATURE)
            number = int.from_bytes(data[tag + 8 : tag + 13], "big")
            assert number % queues == queue
            assert number not in frames
            stamped = data[tag + 13 : tag + 18] != bytes(5)
            same = data[: tag - 2] + data[tag : tag + 3] + data[tag + 5 : tag + 13]
            frames[number] = same + (b"stamped" + data[tag + 18 :] if stamped else data[tag + 13 :])
    assert sorted(frames) == list(range(result.forward.sent))
    return [frames[number] for number in sorted(frames)]


STAMPING: dict[str, dict[str, object]] = {
    "none": {},
    "tagged": {"stamping": "tagged", "tagged": {"count": 100, "after_ns": 70_000_000}},
}
MEMBERS: dict[str, dict[str, object]] = {
    "random": {"mode": FieldMode.RANDOM, "networks": 256},
    "increasing-mixed": {"mode": FieldMode.INCREASING, "background": frame(6, 90), "n": 7, "m": 3},
    "decreasing-changing": {"mode": FieldMode.DECREASING, "then": RateChange(rate_fps=1000, after_ns=100_000_001)},
    "poisson": {"pattern": Poisson()},
}
QUICK = {("random", "tagged"), ("increasing-mixed", "none"), ("decreasing-changing", "tagged"), ("poisson", "none")}
"""Each once; the other combinations are long."""


@pytest.mark.parametrize(
    ("members", "stamping"),
    [
        pytest.param(
            MEMBERS[kind],
            STAMPING[stamps],
            id=f"{kind}-{stamps}",
            marks=[pytest.mark.long] * ((kind, stamps) not in QUICK),
        )
        for kind in MEMBERS
        for stamps in STAMPING
    ],
)
def test_the_frames_are_those_of_one_sender_to_the_byte(
    open_engine: OpenEngine, tmp_path: Path, members: dict[str, object], stamping: dict[str, object]
) -> None:
    one = stream(4, 84, rate_fps=5000, **members)
    expected = sent_by(open_engine, tmp_path / "1", 1, trial(one, **stamping))
    for queues, burst in ((2, 32), (3, 1)):
        assert sent_by(open_engine, tmp_path / str(queues), queues, trial(one, burst=burst, **stamping)) == expected


def test_a_driver_that_has_fewer_queues_says_how_many(open_engine: OpenEngine, tmp_path: Path) -> None:
    left = f"vdev:net_pcap_left,tx_pcap={tmp_path / 'left.pcap'}"
    with (
        open_engine(left, "null", queues=2) as engine,
        pytest.raises(TesterError, match=r"net_pcap of the left port offers 1 receive and 1 transmit") as caught,
    ):
        engine.environment()
    assert (caught.value.code, caught.value.field) == ("port_unavailable", "engine.queues")
