# SPDX-License-Identifier: Apache-2.0
"""Results by stream: sums of a stream's kinds in the engine's counts, and what a run's journal says of
each stream in summary, tables, report and exports."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dutperf import procedures, traffic
from dutperf.api import results
from dutperf.cli import app
from dutperf.model import (
    Case,
    Delays,
    Direction,
    DirectionCounts,
    KindCounts,
    Load,
    Stamping,
    Stream,
    Tagged,
    Trial,
    TrialResult,
)
from dutperf.results import tables
from dutperf.results.streams import StreamResult
from dutperf.results.summary import Summary, summarise
from dutperf.setup import configuration
from dutperf.setup.conditions import Rate, SingleTrial
from dutperf.tester import ProgressCallback
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import make_trial, making, measure, plan

CONFIG: dict[str, Any] = {
    "left": {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"},
    "right": {"port": "ring", "version": 4, "ipv4": "198.19.0.2/24"},
    "streams": [
        {"name": "voice", "sizes": 128},
        {"name": "web", "sizes": "imix:64=1,594=1", "share": 2},
        {"name": "backup", "sizes": 1024, "directions": "reverse"},
    ],
}
SETUP = configuration.Setup.model_validate(CONFIG)
SHARES = {
    Direction.FORWARD: {"voice": 1 / 3, "web": 2 / 3},
    Direction.REVERSE: {"voice": 0.25, "web": 0.5, "backup": 0.25},
}
DELAY_US = {"voice": 1000.0, "web": 3000.0, "backup": 5000.0}


def made(load: Load, number: int = 0, **members: Any) -> Trial:
    conditions = SingleTrial(duration_s=5, drain_s=0)
    return make_trial(SETUP, conditions, 84, load.value, number).model_copy(update=members)


def sent_of_kinds(stream: Stream, sent: int) -> list[int]:
    order = list(islice(cycle(stream.order), sent))
    return [order.count(kind) for kind in range(len(stream.frames))]


@dataclass
class Told(SimulatedTester):
    """Counts kinds as the engine does. Frames of ``web`` are lost first, and each stream has a delay of
    its own, with twice that as the largest."""

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        told = {one.value: self._told(counts, trial.streams()[one]) for one, counts in result.directions().items()}
        return result.model_copy(update=told)

    def _told(self, counts: DirectionCounts, stream: Stream) -> DirectionCounts:
        sent = sent_of_kinds(stream, counts.sent)
        lost, left = [0] * len(sent), counts.lost
        for number in sorted(range(len(sent)), key=lambda kind: stream.frames[kind].stream != "web"):
            lost[number] = min(left, sent[number])
            left -= lost[number]
        kinds = tuple(
            KindCounts(name=frame.name, stream=frame.stream, sent=one, received=one - gone)
            for frame, one, gone in zip(stream.frames, sent, lost, strict=True)
        )
        delays = tuple(
            Delays(min=us / 2, p50=us, p99=us, p999=1.5 * us, max=2 * us)
            for us in (DELAY_US[name] for name in stream.streams)
        )
        return counts.model_copy(
            update={"kinds": kinds, "stream_delay_us": None if counts.delay_us is None else delays}
        )


def summary_of(procedure: str, out: Path, dut: SimulatedDut | None = None, **conditions: Any) -> Summary:
    planned = plan(**{"repetitions": 2} | conditions)

    def make_trial(_case: Case, load: Load, number: int) -> Trial:
        return made(load, number, **traffic.stamps(planned.conditions))

    tester = Told(dut or SimulatedDut(capacity_fps=9_000))
    return measure(tester, making(planned, make_trial), out, procedure)


def of(streams: Sequence[StreamResult], direction: Direction, name: str) -> list[StreamResult]:
    return [one for one in streams if one.direction is direction and one.stream == name]


def test_the_engine_gets_numbers_of_streams() -> None:
    """Also without stamps: the kinds of a stream have the same flows."""
    trial = made(Load.fps(900))
    assert trial.reverse is not None
    assert trial.reverse.streams == ("voice", "web", "backup")
    request = trial.request()
    assert (request["forward"]["streams"], request["reverse"]["streams"]) == ([0, 1, 1], [0, 1, 1, 2])
    assert not any("stream" in frame for frame in request["reverse"]["frames"])


def test_a_single_stream_is_none_of_several() -> None:
    setup = configuration.Setup.model_validate({**CONFIG, "streams": CONFIG["streams"][1:2]})
    trial = make_trial(setup, SingleTrial(duration_s=1, drain_s=0), 84, 900, 1)
    assert trial.forward is not None
    assert trial.forward.streams == ()
    assert len(trial.forward.frames) == 2
    request = trial.model_copy(update={"stamping": Stamping.TAGGED, "tagged": Tagged(count=9, after_ns=0)}).request()
    assert "streams" not in request["forward"]


def test_a_stream_is_the_sum_of_its_kinds() -> None:
    counts = Told(SimulatedDut(capacity_fps=700)).run(made(Load.fps(900))).directions()[Direction.FORWARD]
    assert counts.kinds is not None
    streams = counts.by_stream()
    assert {name: one.sent for name, one in streams.items()} == {"voice": 1500, "web": 3000}
    assert (streams["voice"].lost, streams["web"].lost) == (0, counts.lost)
    assert counts.lost > 900
    assert streams["web"].delay_us is None
    assert counts.model_copy(update={"kinds": counts.kinds[1:]}).by_stream() == {}


def test_a_search_tells_each_stream_at_its_bounds(tmp_path: Path) -> None:
    summary = summary_of("throughput", tmp_path, max_rate=Rate.parse("20k"))
    [point] = summary.points
    bounds = {*map(int, point.throughput_fps.values), point.upper_bound.load.value}
    assert {one.load.value for one in summary.streams} == bounds
    assert len(summary.streams) == 5 * len(bounds)
    for direction, shares in SHARES.items():
        for name, share in shares.items():
            for one in of(summary.streams, direction, name):
                offered = one.load.value * 5 * one.trials
                assert one.sent == pytest.approx(share * offered, abs=4 * one.trials)
                above = one.load.value == point.upper_bound.load.value
                assert (one.lost > 0) == (above and name == "web")
                assert one.lost == one.sent - one.received
                assert one.loss_ratio == one.lost / one.sent
                assert one.delay_ms == {}


def test_frame_loss_tells_each_stream_at_each_rate(tmp_path: Path) -> None:
    summary = summary_of("frame-loss", tmp_path, rates=(12_000, 10_000, 8_000), repetitions=1)
    web = of(summary.streams, Direction.FORWARD, "web")
    assert [one.load.value for one in web] == [12_000, 10_000, 8_000]
    assert [one.loss_ratio > 0 for one in web] == [True, True, False]
    assert all(one.lost == 0 for one in of(summary.streams, Direction.FORWARD, "voice"))


@pytest.mark.parametrize(
    ("procedure", "figures"),
    [
        ("latency", {"TL": 1.0, "WCL": 1.5}),
        ("pdv", {"PDV": 1.0, "Dmin": 0.5, "median": 1.0, "D99.9": 1.5, "Dmax": 2.0}),
        ("ipdv", {"min": 0.5, "median": 1.0, "p99.9": 1.5, "max": 2.0}),
    ],
)
def test_delays_of_each_stream_by_the_procedures_own_definition(
    procedure: str, figures: dict[str, float], tmp_path: Path
) -> None:
    summary = summary_of(procedure, tmp_path, SimulatedDut(), rate=Rate.parse("1k"), tag_after_s=1)
    assert [one.stream for one in summary.streams] == ["voice", "web", "voice", "web", "backup"]
    for one in summary.streams:
        assert one.trials == 2
        times = DELAY_US[one.stream] / DELAY_US["voice"]
        assert {name: figure.median for name, figure in one.delay_ms.items()} == pytest.approx(
            {name: times * value for name, value in figures.items()}
        )


def test_trials_that_are_not_valid_say_nothing(tmp_path: Path) -> None:
    """The tester drops frames itself: they are no loss of a stream."""
    tester = Told(SimulatedDut())
    tester.limits = replace(tester.limits, receive_fps=500)
    planned = plan(rates=(1_000,), repetitions=1)
    summary = measure(tester, making(planned, lambda _case, load, number: made(load, number)), tmp_path, "frame-loss")
    assert summary.streams == ()


def test_plain_traffic_has_no_streams(tmp_path: Path) -> None:
    summary = measure(SimulatedTester(SimulatedDut()), plan(rate=Rate.parse("1k"), tag_after_s=1), tmp_path, "latency")
    assert summary.streams == ()
    assert tables.by_stream(summary) is None
    assert tables.stream_records(summary) == []


def test_tables_report_and_exports(tmp_path: Path) -> None:
    summary = summary_of("latency", tmp_path, rate=Rate.parse("1k"), tag_after_s=1)
    table = tables.by_stream(summary)
    assert table is not None
    assert table.heads == (
        *(
            "frame size",
            "IPv4 size",
            "frames/s",
            "direction",
            "stream",
            "trials",
            "sent",
            "received",
            "lost",
            "loss ratio",
        ),
        *("TL, ms", "WCL, ms"),
    )
    [voice, web, *_] = table.rows
    assert voice[2:10] == ("1,000", "forward", "voice", "2", "3,334", "3,334", "0", "0.0000%")
    assert (web[4], web[6], web[-2:]) == ("web", "6,666", ("3.0000", "4.5000"))
    [measured] = results.read(tmp_path).measured
    records = measured.stream_records()
    assert {(one["direction"], one["stream"]) for one in records} == {
        (direction.value, name) for direction, shares in SHARES.items() for name in shares
    }
    assert records[1]["delay_ms.WCL.median"] == pytest.approx(4.5)
    assert records[1]["rate_fps"] == 1000
    page = results.write_report(tmp_path).read_text(encoding="utf-8")
    assert "by stream, valid trials" in page
    assert '<td class="word">voice</td>' in page
    done = CliRunner().invoke(app, ["export", str(tmp_path), "--streams"])
    assert done.exit_code == 0, done.output
    with (tmp_path / "export" / "latency-streams.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["stream"] for row in rows] == ["voice", "web", "voice", "web", "backup"]
    assert CliRunner().invoke(app, ["export", str(tmp_path), "--streams", "--format", "markdown"]).exit_code == 0
    assert "| web" in (tmp_path / "export" / "latency-streams.md").read_text(encoding="utf-8")


def test_an_export_by_stream_needs_streams(tmp_path: Path) -> None:
    measure(SimulatedTester(SimulatedDut()), plan(rate=Rate.parse("1k"), tag_after_s=1), tmp_path, "latency")
    done = CliRunner().invoke(app, ["export", str(tmp_path), "--streams"])
    assert done.exit_code != 0
    assert "no direction has several streams" in done.output


def test_results_follow_from_the_journal_alone(tmp_path: Path) -> None:
    summary = summary_of("latency", tmp_path, rate=Rate.parse("1k"), tag_after_s=1)
    [measured] = results.read(tmp_path).measured
    assert summarise(list(measured.events), procedures.find("latency")).streams == summary.streams
