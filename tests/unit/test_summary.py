# SPDX-License-Identifier: Apache-2.0
"""The summary: derived from the journal alone, with every deviation from the RFCs named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dutperf import journal, procedures
from dutperf.journal import JOURNAL, JournalError
from dutperf.journal.events import event_of_json
from dutperf.machine import host
from dutperf.model import FRAME_SIZE, FRAME_SIZE_IPV4, Case, LimitedBy, Load, Verdict, axes_as_json, to_json
from dutperf.procedures.throughput import PROCEDURE, ThroughputPoint
from dutperf.results import summary as report
from dutperf.results import tables
from dutperf.results.deviations import Deviation, deviations
from dutperf.results.summary import SUMMARY, Summary, write_summary
from dutperf.setup import configuration
from dutperf.setup.conditions import Conditions, Rate, Usual
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import Everything, counts, make_trial, measure, plan
from plans import trial as trial_of

Line = dict[str, Any]
"""Of a journal."""

RESTS = {"drain_s": 2, "learning_rest_s": 2, "settle_s": 5}
CONFORMING: dict[str, Any] = {
    "frame_sizes": (84, 128, 256, 512, 768, 1024, 1280, 1518),
    "duration_s": 60,
    **RESTS,
    "repetitions": 20,
}
ALWAYS = {"RFC 2544 section 12"}
"""Clauses that no run follows yet."""


def summarise(events: list[Line]) -> Summary:
    return report.summarise([event_of_json(event) for event in events], PROCEDURE)


def search(repetition: int, value: int | None, limited_by: str = "dut", **members: Any) -> Line:
    defaults = {
        "upper_bound": None if value is None else value + 10,
        "not_forwarding": False,
        "message": f"{limited_by} in {repetition}",
        "loads": [],
    }
    return {
        "event": "search",
        "case": {"frame_size": 84},
        "repetition": repetition,
        "unit": "frames/s",
        "lower_bound": value,
        "limited_by": limited_by,
        **defaults,
        **members,
    }


def result(repetition: int, rate_fps: int, verdict: Verdict = Verdict.VALID, lost: int = 0) -> Line:
    recorded = {
        "trial": 0,
        "verdict": verdict.value,
        "forward": to_json(counts(1000, 1000 - lost)),
        "reverse": to_json(counts(1000)),
    }
    where = {"case": {"frame_size": 84}, "repetition": repetition, "load": Load.fps(rate_fps).as_json()}
    return {"event": "result", **where, "attempt": 1, "trial": 0, "result": recorded}


def events(*measured: Line, repetitions: int = 3) -> list[Line]:
    case = Case({FRAME_SIZE: 84, FRAME_SIZE_IPV4: 64})
    cases = [{"case": case.as_json(), "first_trial": to_json(trial_of())}]
    conditions = to_json(Usual(repetitions=repetitions))
    begin = {
        "event": "plan",
        "time": "then",
        "format": journal.FORMAT,
        "dutperf": "0",
        "procedure": "throughput",
        "dut": {"name": "tayga"},
        "conditions": conditions,
    }
    return [
        begin | {"search": {"algorithm": "binary"}, "attempts": {}, "axes": axes_as_json(case), "cases": cases},
        *measured,
    ]


def test_a_real_run_has_all_that_the_summary_must_have(tmp_path: Path) -> None:
    summary = measure(
        SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(frame_sizes=(84, 1518), seed=5), tmp_path
    )
    written = json.loads((tmp_path / SUMMARY).read_text())
    assert written == summary.model_dump(mode="json")
    assert set(written) == {
        "procedure",
        "dut",
        "environment",
        "conditions",
        "deviations",
        "trials",
        "points",
        "remarks",
        "streams",
        "environment_changes",
    }
    assert (written["procedure"], written["dut"]) == ("throughput", {"name": "simulated"})
    assert set(written["environment"]) == {"started", "host", "tester"}
    conditions = written["conditions"]
    assert (
        conditions["duration_s"],
        conditions["seed"],
        conditions["repetitions"],
        conditions["foreground"],
        conditions["resolution"],
    ) == (5, 5, 3, "2:2", "0.5 %")
    assert (
        conditions["search"]["start"] == "a random place within a wide step around the result of the repetition before"
    )
    assert [point["case"] for point in written["points"]] == [
        {"frame_size": 84, "frame_size_ipv4": 64},
        {"frame_size": 1518, "frame_size_ipv4": 1498},
    ]
    for point in written["points"]:
        wire_bits = 8 * (point["case"]["frame_size"] + 20)
        assert point["wire_mbps"] == pytest.approx(point["throughput_fps"]["median"] * wire_bits / 1e6)
        assert set(point) == {
            *(
                "case",
                "pass_criterion",
                "throughput_fps",
                "wire_mbps",
                "limited_by",
                "message",
                "upper_bound",
                "inconsistent",
                "widest_fps",
                "repetitions",
                "goals",
                "trials",
            )
        }
        assert set(point["throughput_fps"]) == {
            "median",
            "median_interval",
            "p1",
            "p99",
            "dispersion_percent",
            "values",
        }
        assert point["repetitions"] == {"finished": 3, "stopped": "number"}
        assert (point["inconsistent"], point["goals"]) == ([], [])
        assert set(point["upper_bound"]) == {"load", "forward", "reverse"}
        assert set(point["upper_bound"]["forward"]) == {
            "lost",
            "loss_ratio",
            "dut_input_drops",
            "late",
            "when",
            "kinds",
            "where",
            "dut",
            "dut_unknown",
            "asked",
            "beside",
        }
        assert point["upper_bound"]["forward"]["lost"] > 0
        assert point["upper_bound"]["load"]["value"] > 54_321
        assert point["limited_by"] == "dut"


def timed(frames: int) -> Line:
    """The result of a trial in which a NIC was to send at given times, and took so many of them."""
    one = result(1, 1000)
    one["result"]["forward"]["send_at"] = {
        "timed": frames,
        "at_once": 1000 - frames,
        "impossible": 0,
        "uncertainty_us": 0.5,
    }
    return one


def test_help_of_hardware_that_did_nothing_is_told() -> None:
    asked: Line = {"event": "environment", "host": {}, "tester": {"offloads": ["send_at"]}}
    summary = summarise(events(asked, timed(0), timed(900), timed(0), search(1, 1000)))
    told = "forward: no effect of send_at: every frame left at once, in 2 of 3 trials"
    assert [(one.about, one.text) for one in summary.remarks] == [("idle_offloads", told)]
    assert (told, False) in tables.messages(summary)
    assert summarise(events(asked, timed(900), search(1, 1000))).remarks == ()
    assert summarise(events(result(1, 1000), search(1, 1000))).remarks == ()


def test_it_can_be_made_again_from_the_journal_alone(tmp_path: Path) -> None:
    summary = measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(), tmp_path / "run")
    (tmp_path / JOURNAL).write_bytes((tmp_path / "run" / JOURNAL).read_bytes())
    assert write_summary(tmp_path, PROCEDURE) == summary


def test_a_killed_run_at_any_byte_has_a_summary(tmp_path: Path) -> None:
    measure(SimulatedTester(SimulatedDut(capacity_fps=54_321)), plan(repetitions=2), tmp_path / "run")
    whole = (tmp_path / "run" / JOURNAL).read_bytes()
    plan_ends = whole.index(b"\n") + 1
    for end in range(plan_ends, len(whole), 997):
        (tmp_path / JOURNAL).write_bytes(whole[:end])
        [point] = write_summary(tmp_path, PROCEDURE).points
        finished = len(point.throughput_fps.values)
        assert (
            finished == 2
            or f"{finished} of 2 repetitions; the run ended early because it was killed or could not write"
            in point.message
        )


@pytest.mark.parametrize(
    ("limits", "decisive"),
    [
        (["dut", "dut", "dut"], "dut"),
        (["dut", "tester", "dut"], "tester"),
        (["tester", "setup", "dut"], "tester"),
        (["connections", "setup", "dut"], "setup"),
        (["media", "dut", "media"], "dut"),
        (["range", "dut", "range"], "dut"),
        (["media", "range", "media"], "range"),
        (["media", "media", "media"], "media"),
    ],
)
def test_the_most_serious_limit_of_the_repetitions(limits: list[str], decisive: str) -> None:
    values = ((number, 1000 if limit == "dut" else 900, limit) for number, limit in enumerate(limits, start=1))
    [point] = summarise(events(*(search(*value) for value in values))).points
    assert point.limited_by is LimitedBy(decisive)
    same = len(set(limits)) == 1
    assert point.message.startswith(
        "dut in 1" if limits == ["dut"] * 3 else decisive if same else "in 1 of 3 repetitions " + decisive
    )


@pytest.mark.parametrize(
    ("dut", "tester", "limit"),
    [
        ((50_000, 50_100), 50_000, "dut"),
        ((50_000, 50_100), 49_850, "dut"),  # 0.5 % below the failure
        ((50_000, 50_100), 49_849, "tester"),
        ((50_000, 50_400), 50_100, "dut"),
        ((50_000, 50_400), 49_999, "tester"),
        ((50_000, 50_100), 50_100, "tester"),  # what failed once passed: the DUT may do more
        ((50_000, 50_100), 50_200, "tester"),
        ((None, 10), None, "tester"),
        ((None, 10), 9, "tester"),
        ((50_000, None), 50_000, "tester"),
    ],
)
def test_where_the_dut_failed_just_above_in_another_repetition_it_is_the_limit(
    dut: tuple[int | None, int | None], tester: int | None, limit: str
) -> None:
    lower, upper = dut
    one = search(1, lower, upper_bound=upper)
    other = search(2, tester, "tester", upper_bound=50_300)
    [point] = summarise(events(one, other, search(3, lower, upper_bound=upper))).points
    assert point.limited_by is LimitedBy(limit)
    assert point.message == (
        "in 2 of 3 repetitions dut in 1" if limit == "dut" else "in 1 of 3 repetitions tester in 2"
    )
    beyond = search(3, 60_000, "tester")
    [point] = summarise(events(one, other, beyond)).points
    assert point.limited_by is LimitedBy.TESTER


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([100, 110, 90], (100, 90, 110, 20)),
        ([100, 110], (105, 100, 110, 10 / 105 * 100)),
        ([100, None, 110], (100, None, 110, None)),
        ([None, None, 110], (None, None, 110, None)),
    ],
)
def test_statistics(values: list[int | None], expected: tuple[float | None, ...]) -> None:
    [point] = summarise(
        events(*(search(number, value) for number, value in enumerate(values, start=1)), repetitions=len(values))
    ).points
    figures = point.throughput_fps
    assert (figures.median, figures.p1, figures.p99, figures.dispersion_percent) == expected
    assert list(figures.values) == values


@pytest.mark.parametrize(("above", "told"), [(99, False), (700, True)])
def test_a_throughput_that_is_small_against_the_resolution_says_so(above: int, told: bool) -> None:
    """The default resolution is a share of the maximum, which may be more than all that the DUT can do."""
    each = [search(number, 1000, upper_bound=1000 + above) for number in (1, 2)]
    [point] = summarise(events(*each, repetitions=2)).points
    assert isinstance(point, ThroughputPoint)
    text = f"up to {above} frames/s above it ({above / 10:.0f}%): a finer --resolution or a lower --max-rate"
    assert any(text in remark for remark in point.remarks()) is told


def test_a_dead_dut_has_values_but_no_throughput() -> None:
    silent = search(2, None, not_forwarding=True, upper_bound=10, message="the DUT forwards nothing")
    summary = summarise(
        events(search(1, 1000), silent, {"event": "end", "outcome": "ended", "message": "the DUT forwards nothing"})
    )
    [point] = summary.points
    assert point.throughput_fps.values == (1000, None)
    assert point.throughput_fps.median is None
    assert point.message.startswith("the DUT forwards nothing (2 of 3 repetitions")
    assert summary.without_number() == (point,)


def test_above_is_the_lowest_failure_right_above_a_value() -> None:
    searches = [search(1, 1000), search(2, 900), search(3, 800, "tester")]
    results = [
        *(result(1, rate, lost=5) for rate in (4000, 1010)),
        result(2, 700, lost=0),
        result(2, 910, Verdict.INVALID, lost=400),
        result(2, 910, lost=3),
        result(3, 810, Verdict.INVALID, lost=900),
    ]
    [point] = summarise(events(*results, *searches)).points
    assert point.upper_bound is not None
    assert point.upper_bound.load.value == 910
    assert point.upper_bound.forward is not None
    assert (point.upper_bound.forward.lost, point.upper_bound.forward.loss_ratio) == (3, 0.003)
    assert (point.trials.valid, point.trials.invalid, point.trials.aborted) == (4, 2, 0)


def test_what_was_not_measured_is_said() -> None:
    [point] = summarise(events()).points
    assert point.limited_by is None
    assert "not measured" in point.message
    assert point.throughput_fps.values == ()


@pytest.mark.parametrize("first", [[], [{"event": "end", "outcome": "error", "message": "?"}]])
def test_what_is_no_journal_of_ours(first: list[Line]) -> None:
    with pytest.raises(JournalError):
        summarise(first)


@pytest.mark.parametrize("change", [{"conditions": {"duration_s": "long"}}, {"cases": []}, {"cases": [{}]}])
def test_the_journal_of_another_version_is_refused_in_a_sentence(change: Line) -> None:
    plan, *others = events(search(1, 1000))
    assert summarise([plan | {"dutperf": "99.0"}, *others]).points
    with pytest.raises(JournalError, match=r"journal of dutperf 99\.0 cannot be read by"):
        summarise([plan | {"dutperf": "99.0"} | change, *others])


def deviated(
    conditions: Conditions,
    *,
    procedure: str = "throughput",
    repetitions: int = 20,
    media_fps: int | None = 1000,
    maximum_fps: int | None = 1000,
    ipv4_shorter_by: int = 20,
    **side: Any,
) -> tuple[Deviation, ...]:
    sides = {
        "left": {"port": "ring", "version": 4, "ipv4": "198.18.0.2/24"},
        "right": {"port": "ring", "version": 4, "ipv4": "198.19.0.2/24", **side},
    }
    setup = configuration.parse(sides, "test")
    limits = {"media_maximum_fps": media_fps, "maximum_fps": maximum_fps}
    first = to_json(make_trial(setup, conditions, conditions.frame_sizes[0], 1, 0))
    frames = [
        {"frame_size": size, "frame_size_ipv4": size - ipv4_shorter_by, "first_trial": first, **limits}
        for size in conditions.frame_sizes
    ]
    definition = procedures.find(procedure)
    own = definition.conditions.recorded(dict(conditions))
    return deviations(definition.rules, own, frames=frames, repetitions=repetitions)


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({}, None),
        ({"duration_s": 59.9}, "RFC 2544 section 24"),
        ({"loss_tolerance": 0.0001}, "RFC 2544 section 26.1"),
        ({"drain_s": 1.9}, "RFC 2544 section 23 (d)"),
        ({"learning_rest_s": 1.9}, "RFC 2544 section 23 (b)"),
        ({"learning_rest_s": 0}, "RFC 2544 section 23 (b)"),
        ({"settle_s": 4.9}, "RFC 2544 section 23 (e)"),
        ({"settle_s": 6}, None),
        ({"directions": "reverse"}, "RFC 8219 section 5.3, RFC 2544 section 14"),
        ({"pattern": "poisson"}, "RFC 2544 section 21"),
        ({"pattern": "bursts:64", "burst_rate": Rate.parse("20k")}, "RFC 2544 section 21"),
        ({"ports": "fixed"}, "RFC 4814 section 4.5"),
        ({"ports": "increasing"}, "RFC 4814 section 4.5"),
        ({"frame_sizes": (84,)}, "RFC 8219 section 5.1.1"),
        ({"frame_sizes": (*CONFORMING["frame_sizes"], 1000)}, "RFC 8219 section 5.1.1"),
        ({"frame_sizes": (*CONFORMING["frame_sizes"], 9216)}, None),
        ({"min_rate": Rate.parse("1000")}, None),
        ({"modifiers": ("filters:25",)}, None),
        ({"modifiers": ("filters:25", "routing-updates")}, "RFC 2544 section 11"),
        ({"modifiers": ("filters:25", "routing-updates", "broadcast")}, "RFC 2544 section 11"),
    ],
)
def test_deviations(change: dict[str, Any], clause: str | None) -> None:
    conditions = Everything(**{**CONFORMING, **change})
    found = {deviation.clause for deviation in deviated(conditions)}
    assert found - ALWAYS == ({clause} if clause else set())
    assert found >= ALWAYS


LAID_DOWN: list[tuple[dict[str, Any], str, str]] = [
    (
        {"source_port": {"mode": "increasing", "min": 1024, "max": 65535}},
        "RFC 4814 section 4.5",
        "increasing UDP ports instead of random ones",
    ),
    (
        {"destination_port": {"mode": "random", "min": 1, "max": 1000}},
        "RFC 4814 section 4.5",
        "random UDP ports over ranges other",
    ),
    ({"networks": 256}, "RFC 2544 section 12", "random destinations over 256 networks, not also"),
]


@pytest.mark.parametrize(("side", "clause", "words"), LAID_DOWN)
def test_what_the_configuration_lays_down_deviates_too(side: dict[str, Any], clause: str, words: str) -> None:
    said = {deviation.clause: deviation.text for deviation in deviated(Everything(**CONFORMING), **side)}
    assert words in said[clause]


@pytest.mark.parametrize("procedure", ["throughput", "frame-loss"])
def test_a_rule_of_one_procedure_is_not_applied_to_another(procedure: str) -> None:
    other = {"throughput": "RFC 2544 section 26.3", "frame-loss": "RFC 2544 section 26.1"}
    conditions = Everything(**{**CONFORMING, "loss_tolerance": 0.01, "duration_s": 1})
    found = {deviation.clause for deviation in deviated(conditions, procedure=procedure)}
    assert found - ALWAYS == {"RFC 2544 section 24", *other.values()} - {other[procedure]}


def test_deviations_of_repetitions_and_of_ipv4() -> None:
    conditions = Everything(**CONFORMING)
    few = {deviation.clause: deviation.text for deviation in deviated(conditions, repetitions=19)}
    assert few["RFC 8219 section 12"].startswith("19 repetitions")
    ipv4 = {deviation.clause: deviation.text for deviation in deviated(conditions, ipv4_shorter_by=0)}
    assert "not measured: 64" in ipv4["RFC 8219 section 5.1.1"]


def test_the_machine_is_described(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\n",
        "proc/meminfo": "MemTotal:       4096 kB\n",
        "proc/cmdline": "root=/dev/sda1 isolcpus=1 token=secret hugepages=4\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = host.environment(tmp_path)
    assert (machine["cpu"], machine["memory_kb"], machine["governor"], machine["clock_source"]) == (
        "Fast CPU @ 3 GHz",
        4096,
        "performance",
        None,
    )
    assert machine["kernel_options"] == ["isolcpus=1", "hugepages=4"]
