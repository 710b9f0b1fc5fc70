# SPDX-License-Identifier: Apache-2.0
"""Latency, PDV and IPDV of simulated DUTs whose delays are known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from dutperf import journal, procedures
from dutperf.cli import condition_options
from dutperf.journal.events import event_of_json
from dutperf.model import LimitedBy, Stamping
from dutperf.procedures.latency import CARD_STAMPS
from dutperf.procedures.pdv import Pdv
from dutperf.results import points
from dutperf.results.summary import summarise
from dutperf.run import attempts, campaign
from dutperf.run.campaign import PlanError, Summary
from dutperf.run.earlier_runs import earlier_throughput
from dutperf.setup.conditions import Rate, Usual
from dutperf.setup.configuration import ConfigError
from dutperf.statistics.stopping import Auto, Stopped
from dutperf.tester.simulated import SimulatedDut, SimulatedLimits, SimulatedTester
from plans import Log, journal_lines, measure, narrowed, plan

RATE = Rate.parse("10k")


def delays(
    name: str, dut: SimulatedDut, out: Path, limits: SimulatedLimits | None = None, **conditions: Any
) -> tuple[SimulatedTester, Summary]:
    """A run at 10,000 frames/s, two trials of 5 s tagged from 1 s on, unless ``conditions`` say
    otherwise."""
    tester = SimulatedTester(dut, limits or SimulatedLimits())
    chosen = {"rate": RATE, "repetitions": 2, "tag_after_s": 1} | conditions
    return tester, measure(tester, plan(**chosen), out, name)


def test_latency_is_the_median_and_the_99_9th_percentile(tmp_path: Path) -> None:
    """1 ms for all and 1 s more for every 100th: the typical latency does not show it, the
    worst-case latency does."""
    tester, summary = delays("latency", SimulatedDut(delay_us=1000, slow_every=100, slow_us=1e6), tmp_path)
    [point] = summary.points
    for figures in (point.forward, point.reverse):
        assert figures["TL"].median == pytest.approx(1.0)
        assert figures["WCL"].median == pytest.approx(1001.0)
        assert len(figures["TL"].values) == 2
    assert {trial.stamping for trial in tester.trials} == {Stamping.TAGGED}
    assert {trial.tagged.count for trial in tester.trials if trial.tagged} == {
        40_000
    }  # of the 50,000 asked for, as many as are sent after the first second


def test_a_lost_tagged_frame_counts_as_the_largest_latency(tmp_path: Path) -> None:
    _, summary = delays("latency", SimulatedDut(delay_us=1000, loss_ratio=0.01), tmp_path)
    [point] = summary.points
    assert point.forward["TL"].median == pytest.approx(1.0)
    assert point.forward["WCL"].median == pytest.approx(4000)  # from the first tag to the end of the trial
    assert "lost" in point.message


@pytest.mark.parametrize("tags", [1, 500, 20_000])
def test_as_many_tags_as_asked_for(tmp_path: Path, tags: int) -> None:
    tester, _ = delays("latency", SimulatedDut(), tmp_path, tags=tags)
    assert {trial.tagged.count for trial in tester.trials if trial.tagged} == {tags}


def test_pdv_of_an_exponential_jitter(tmp_path: Path) -> None:
    """D99.9 of an exponential distribution is its mean times ln 1000."""
    _, summary = delays("pdv", SimulatedDut(delay_us=500, jitter_us=100), tmp_path, repetitions=20)
    [point] = summary.points
    assert point.forward["PDV"].median == pytest.approx(0.1 * log(1000), rel=0.05)
    assert point.forward["Dmin"].median == pytest.approx(0.5, rel=0.01)
    assert point.forward["median"].median == pytest.approx(0.5 + 0.1 * log(2), rel=0.02)


def test_a_lost_frame_counts_as_the_whole_trial_in_pdv(tmp_path: Path) -> None:
    _, summary = delays("pdv", SimulatedDut(delay_us=0, loss_ratio=0.01), tmp_path)
    assert summary.points[0].forward["D99.9"].median == pytest.approx(5000)


def test_ipdv_of_alternating_delays(tmp_path: Path) -> None:
    """Every second frame is 1 ms slower: the delay goes up and down by that."""
    _, summary = delays("ipdv", SimulatedDut(delay_us=500, slow_every=2, slow_us=1000), tmp_path)
    figures = summary.points[0].forward
    assert (figures["min"].median, figures["max"].median) == (pytest.approx(-1.0), pytest.approx(1.0))
    assert figures["min"].dispersion_percent is None


@pytest.mark.parametrize("name", ["latency", "pdv", "ipdv"])
def test_a_dut_that_forwards_nothing_has_no_figures(tmp_path: Path, name: str) -> None:
    tester, summary = delays(name, SimulatedDut(dies_after_trials=0), tmp_path)
    [point] = summary.points
    assert not point.has_number
    assert "forwards nothing" in point.message
    assert len(tester.trials) == 1


@pytest.mark.parametrize("name", ["latency", "pdv", "ipdv"])
def test_a_rate_beyond_the_tester_has_no_figures(tmp_path: Path, name: str) -> None:
    tester, summary = delays(name, SimulatedDut(), tmp_path, SimulatedLimits(send_fps=5000))
    assert len(tester.trials) == attempts.ATTEMPTS, "a second repetition would not bring the figures back"
    [point] = summary.points
    assert not point.has_number
    assert "ended early" not in point.message
    assert point.repetitions.stopped is Stopped.VOID
    assert point.limited_by is LimitedBy.TESTER
    assert point.limited_by_tester


def test_the_rate_of_each_frame_size_comes_from_an_earlier_run(tmp_path: Path) -> None:
    measure(SimulatedTester(SimulatedDut(capacity_fps=20_000)), plan(frame_sizes=(84, 128)), tmp_path / "found")
    found = earlier_throughput(tmp_path / "found", Usual())["throughput_from"]
    assert set(found) == {84, 128}
    tester, _ = delays("pdv", SimulatedDut(), tmp_path / "pdv", rate=None, throughput_from=found, frame_sizes=(84, 128))
    assert [trial.forward.rate_fps for trial in tester.trials if trial.forward] == [found[84]] * 2 + [found[128]] * 2


@pytest.mark.parametrize(
    ("conditions", "option"),
    [
        ({"rate": None}, "rate"),
        ({"throughput_from": {84: 1000}}, "rate"),
        ({"rate": None, "throughput_from": {128: 1000}}, "throughput_from"),
        ({"rate": Rate.parse("10%")}, "rate"),
        ({"tag_after_s": 5}, "tag_after_s"),
    ],
)
def test_what_cannot_be_measured_names_its_option(tmp_path: Path, conditions: dict[str, Any], option: str) -> None:
    with pytest.raises(PlanError) as caught:
        delays("latency", SimulatedDut(), tmp_path, **conditions)
    assert caught.value.option == option
    assert list(tmp_path.iterdir()) == []


def test_changes_of_delay_are_not_measured_where_neighbours_may_come_to_different_queues() -> None:
    several = replace(plan(rate=RATE), config={"engine": {"queues": 2}})
    with pytest.raises(PlanError, match="measure this with one queue") as caught:
        procedures.find("ipdv").make(several)
    assert caught.value.option == "queues"
    procedures.find("pdv").make(several)


OF_84 = {"frame_size": 84, "frame_size_ipv4": 64}
USUAL_MIX = {"foreground": "2:2", "networks": 1, "directions": "both"}
NO_THROUGHPUT = [
    pytest.param(None, "has no summary.json of a throughput run", id="no summary"),
    pytest.param("{", "has no summary.json of a throughput run", id="torn"),
    pytest.param(
        {"points": [{"case": {"frame_size": 84}}]},
        "has no summary.json of a throughput run",
        id="of another procedure",
    ),
    pytest.param(
        {"points": [{"case": OF_84, "throughput_fps": {"median": None}}], "conditions": USUAL_MIX},
        "found no throughput",
        id="without a number",
    ),
    pytest.param(
        {
            "points": [{"case": OF_84, "throughput_fps": {"median": 5}}],
            "conditions": USUAL_MIX | {"networks": 256},
        },
        "was measured with other traffic (networks 256)",
        id="other traffic",
    ),
    pytest.param(
        {
            "points": [{"case": OF_84, "throughput_fps": {"median": 5}}],
            "conditions": USUAL_MIX | {"pattern": "bursts:32", "burst_rate": {"value": 50, "unit": "percent"}},
        },
        "was measured with other traffic (pattern bursts:32, burst rate 50 %)",
        id="another pattern",
    ),
    pytest.param(
        {
            "points": [{"case": OF_84, "throughput_fps": {"median": 5}}],
            "conditions": USUAL_MIX
            | {
                "ports": "fixed",
                "frame": "vlan/ip/udp",
                "flows": 7,
                "direction_rates": "10:1",
                "modifiers": ["filters:25"],
            },
        },
        "was measured with other traffic (direction rates 10:1, frame vlan/ip/udp, flows 7, modifiers filters:25,"
        " ports fixed)",
        id="other frames",
    ),
]


@pytest.mark.parametrize(("content", "words"), NO_THROUGHPUT)
def test_a_directory_without_a_throughput_is_no_source_of_rates(tmp_path: Path, content: Any, words: str) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(PlanError, match=re.escape(words)) as caught:
        earlier_throughput(tmp_path, Usual())
    assert caught.value.option == "throughput_from"


def test_deviations_name_what_a_quick_run_leaves_out(tmp_path: Path) -> None:
    _, summary = delays("latency", SimulatedDut(), tmp_path, tags=100)
    said = [deviation.text for deviation in summary.deviations if "7.2" in deviation.clause]
    assert any("120 s" in text for text in said)
    assert any("100 tagged frames" in text for text in said)
    assert any("given rate" in text for text in said)


def figures_of_files(files: Sequence[str]) -> dict[str, float]:
    """PDV and what it is made of, in ms: each the median over the trials' files."""
    each = [np.sort(np.load(file, mmap_mode="r")["delay_ns"]) / 1e6 for file in files]
    at = {"Dmin": 0.0, "median": 0.5, "D99.9": 0.999, "Dmax": 1.0}
    found = {
        name: median(float(ordered[max(0, ceil(share * len(ordered)) - 1)]) for ordered in each)
        for name, share in at.items()
    }
    return found | {"PDV": median(float(ordered[ceil(0.999 * len(ordered)) - 1] - ordered[0]) for ordered in each)}


def test_every_delay_is_in_files_that_the_summary_names(tmp_path: Path) -> None:
    where = tmp_path / "delays"
    _, summary = delays("pdv", SimulatedDut(delay_us=500, jitter_us=100), tmp_path, repetitions=3, delays_to=str(where))
    [point] = summary.points
    assert [(files.repetition, files.unwritten, files.errors) for files in point.delays_files] == [
        (number, 0, ()) for number in (1, 2, 3)
    ]
    assert len(list((where / "pdv").iterdir())) == 6
    for direction in ("forward", "reverse"):
        found = figures_of_files([getattr(files, direction) for files in point.delays_files])
        for name, figures in getattr(point, direction).items():
            assert figures.median == pytest.approx(found[name], rel=0.001)
    assert "delays_to" in summary.conditions


def test_procedures_and_mixes_do_not_write_to_each_others_files(tmp_path: Path) -> None:
    runs = [("pdv", {}), ("ipdv", {}), ("pdv", {"networks": 256}), ("pdv", {"foreground": "10:9"})]
    named: set[str] = set()
    for number, (name, traffic) in enumerate(runs):
        _, summary = delays(
            name,
            SimulatedDut(),
            tmp_path / str(number),
            delays_to=str(tmp_path / "delays"),
            directions="forward",
            **traffic,
        )
        named |= {files.forward for files in summary.points[0].delays_files}
    assert len(named) == len(runs) * 2


def test_lost_frames_are_in_no_file(tmp_path: Path) -> None:
    where = tmp_path / "delays"
    _, summary = delays("ipdv", SimulatedDut(loss_ratio=0.01), tmp_path, delays_to=str(where), directions="forward")
    [point] = summary.points
    assert sum(len(np.load(files.forward)) for files in point.delays_files) + point.stamped_lost == 2 * 50_000
    assert point.stamped_lost > 0
    assert [files.reverse for files in point.delays_files] == [None, None]


def test_delays_that_are_not_in_the_file_are_said(tmp_path: Path) -> None:
    delays("ipdv", SimulatedDut(), tmp_path / "run", delays_to=str(tmp_path / "delays"))
    events = journal_lines(tmp_path / "run")
    results = [event["result"] for event in events if event["event"] == "result"]
    results[0]["forward"]["delays_file"] = {"written": 49_000, "unwritten": 1_000, "error": "No space left on device"}
    [point] = summarise([event_of_json(event) for event in events], procedures.find("ipdv")).points
    assert any(
        "1,000 delays are missing in the delay files (No space left on device)" in remark for remark in point.remarks()
    )


def test_a_run_that_goes_on_names_the_same_files(tmp_path: Path) -> None:
    _, whole = delays("pdv", SimulatedDut(), tmp_path / "run", repetitions=4, delays_to=str(tmp_path / "delays"))
    lines = (tmp_path / "run" / journal.JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / "run" / journal.JOURNAL).write_bytes(b"".join(lines[:-5]))
    with journal.ResumedJournal.open(tmp_path / "run") as recorded:
        what = narrowed(plan(**recorded.plan.conditions), "pdv")
        again = campaign.resume(SimulatedTester(SimulatedDut()), what, recorded, Log())
    assert again.points == whole.points


def test_a_directory_with_the_delays_of_another_run_is_refused(tmp_path: Path) -> None:
    assert condition_options.chosen(Pdv, {"delays_to": tmp_path})[0].delays_to == str(tmp_path)
    (tmp_path / "pdv").mkdir()
    (tmp_path / "pdv" / "trial-00001-forward.npy").touch()
    with pytest.raises(ConfigError, match="delays of another run") as caught:
        condition_options.chosen(Pdv, {"delays_to": tmp_path})
    assert "--delays-to" in str(caught.value)


@pytest.mark.parametrize(("stopped", "rule"), [("number", 7), ("narrow enough", Auto(minimum=6, maximum=8))])
def test_a_summary_says_how_many_repetitions_there_were_and_why_no_more(
    stopped: str, rule: Any, tmp_path: Path
) -> None:
    _, summary = delays("latency", SimulatedDut(delay_us=1000), tmp_path, repetitions=rule)
    [point] = summary.points
    finished = 7 if rule == 7 else 6
    assert (point.repetitions.finished, point.repetitions.stopped, point.headline) == (finished, stopped, "TL")
    reason = "" if rule == 7 else " (narrow enough)"
    within = "within forward 1.0000 to 1.0000 ms (95 % confidence), reverse 1.0000 to 1.0000 ms (95 % confidence)"
    assert next(iter(point.remarks())) == f": after {finished} repetitions{reason} the median TL lies {within}"


def test_a_summary_says_by_what_clock_frames_arrived(tmp_path: Path) -> None:
    delays("pdv", SimulatedDut(), tmp_path / "run")
    events = journal_lines(tmp_path / "run")
    for number, event in enumerate(event for event in events if event["event"] == "result"):
        for direction in ("forward", "reverse"):
            told = {"by_nic": 1_000, "by_poll": 5 * number, "impossible": 0, "uncertainty_us": 0.5 + number}
            event["result"][direction]["receive_timestamps"] = told
    [point] = summarise([event_of_json(event) for event in events], procedures.find("pdv")).points
    polled = "10 at the poll because the NIC did not stamp them"
    assert f": 4,000 delays end at the NIC's receive time stamps, {polled}" in point.remarks()


def test_a_summary_says_that_the_kernel_timed_the_delays(tmp_path: Path) -> None:
    _, summary = delays("latency", SimulatedDut(), tmp_path / "run", stamps="kernel")
    [point] = summary.points
    tagged = point.stamps.both
    assert tagged > 0
    remarks = list(point.remarks())
    assert f": {tagged:,} frames have time stamps of sending and receiving" in remarks
    assert ": clocks of the delays: CLOCK_REALTIME (kernel) at both ends" in remarks
    events = journal_lines(tmp_path / "run")
    for event in (event for event in events if event["event"] == "result"):
        event["result"]["forward"]["stamps"] |= {"no_receive": 2, "no_transmit": 1}
        event["result"]["forward"]["clocks"]["step_us"] = -0.2
    [point] = summarise([event_of_json(event) for event in events], procedures.find("latency")).points
    trials = len([event for event in events if event["event"] == "result"])
    assert (point.stamps.missing, point.clocks.step_us) == (3 * trials, -0.2)
    assert any(f"; {3 * trials:,} frames without one of them are not" in remark for remark in point.remarks())


def test_a_summary_says_why_the_loops_timed_the_delays(tmp_path: Path) -> None:
    delays("latency", SimulatedDut(), tmp_path / "run", stamps="auto")
    events = journal_lines(tmp_path / "run")
    for event in (event for event in events if event["event"] == "result"):
        event["result"]["loop_stamps_because"] = "the left port is none"
        event["result"]["forward"]["stamps"] = event["result"]["reverse"]["stamps"] = None
    [point] = summarise([event_of_json(event) for event in events], procedures.find("latency")).points
    assert ": delays are by the tester's loops: the left port is none" in point.remarks()


def test_a_summary_says_how_the_cards_clocks_were_compared(tmp_path: Path) -> None:
    _, summary = delays("latency", SimulatedDut(), tmp_path / "run", stamps="card", definition="rfc2544")
    [point] = summary.points
    assert any("frames have time stamps of sending and receiving" in remark for remark in point.remarks())
    compared = ": clocks of the delays: ptp0 (card) to ptp1 (card), ±0.500 µs; they were 1.000000 s apart"
    assert f"{compared}; they ran 2.0 ppm apart" in point.remarks()
    assert point.latency_is == CARD_STAMPS
    events = journal_lines(tmp_path / "run")
    results = [event["result"] for event in events if event["event"] == "result"]
    results[1]["reverse"]["clocks"]["error_us"] = 1.25
    [point] = summarise([event_of_json(event) for event in events], procedures.find("latency")).points
    assert point.clocks.error_us == 1.25
    one = point.clocks.model_copy(update={"receiving": point.clocks.sending, "error_us": 0.0, "drift_ppm": 0.0})
    assert one.sentence() == ": clocks of the delays: ptp0 (card) at both ends"


def test_a_summary_says_what_in_the_delays_may_not_be_the_duts(tmp_path: Path) -> None:
    delays("pdv", SimulatedDut(), tmp_path / "run", SimulatedLimits())
    events = journal_lines(tmp_path / "run")
    results = [event["result"] for event in events if event["event"] == "result"]
    results[0]["forward"]["stall_us"] = {"sender": 1.0, "receiver": 4066.0}
    results[1]["dut_core_taken"] = 0.93
    [point] = summarise([event_of_json(event) for event in events], procedures.find("pdv")).points
    assert (point.tester_stall_ms, point.dut_core_taken) == (pytest.approx(4.066), 0.93)
    assert any(
        "stalled for 4.066 ms at most, other processes took up to 93% of the core of the DUT" in remark
        for remark in point.remarks()
    )


@pytest.mark.parametrize(("name", "figure"), [("latency", "TL"), ("pdv", "PDV"), ("ipdv", "median")])
def test_repetitions_end_when_the_headline_figure_is_known(tmp_path: Path, name: str, figure: str) -> None:
    tester, summary = delays(
        name, SimulatedDut(delay_us=1000), tmp_path, repetitions=Auto(minimum=6, maximum=8), frame_sizes=(84, 128)
    )
    assert len(tester.trials) == 12
    for point in summary.points:
        assert point.finished == 6
        assert "ended early" not in point.message
        for figures in (point.forward, point.reverse):
            interval = figures[figure].median_interval
            assert interval.low <= figures[figure].median <= interval.high
            assert interval.confidence == 0.95


def test_repetitions_go_on_while_the_headline_figure_is_not_known(tmp_path: Path) -> None:
    """What a random loss adds to PDV's largest delays scatters; the typical latency of the same DUT
    is known at once."""
    dut = SimulatedDut(delay_us=500, jitter_us=400, loss_ratio=0.001)
    for name, finished in (("pdv", 8), ("latency", 6)):
        _, summary = delays(name, dut, tmp_path / name, repetitions=Auto(minimum=6, maximum=8, width_share=0.05))
        assert (name, summary.points[0].finished) == (name, finished)


def test_a_dut_that_dies_ends_repetitions_that_decide_for_themselves(tmp_path: Path) -> None:
    tester, summary = delays("pdv", SimulatedDut(dies_after_trials=5), tmp_path, repetitions=Auto(minimum=6, maximum=8))
    assert len(tester.trials) == 6
    assert "(6 of at most 8 repetitions; it ended early because the DUT forwards nothing)" in summary.points[0].message


@pytest.mark.parametrize(
    ("figure", "text"),
    [(0.00004, "0.0000"), (0.0291, "0.0291"), (-9.99994, "-9.9999"), (10.01234, "10.012"), (2000.0046, "2000.0")],
)
def test_times_in_tables_keep_their_digits(figure: float, text: str) -> None:
    assert points.measured(figure) == text
