# SPDX-License-Identifier: Apache-2.0
"""The store of results and trends: what is in it is what the directories have, changes show, and the gate keeps to its
error rate."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulated_run
from command_line import dutperf
from dutperf.api import results
from dutperf.errors import StoreError
from dutperf.results.gate import Condition
from dutperf.results.statistics import Missing
from dutperf.setup.conditions import Rate
from dutperf.store import Entry, Kept, Store, trend
from dutperf.store.trend import Moment, Trend
from dutperf.tester.simulated import SimulatedDut, SimulatedTester
from plans import measure, plan


def run(out: Path, capacity_fps: float = 50_000, dut: SimulatedDut | None = None, **conditions: Any) -> Path:
    """A finished throughput run of a DUT, by default with this capacity."""
    usual = {"frame_sizes": (84,), "repetitions": 3, "max_rate": Rate.parse("100k"), "resolution": Rate.parse("100")}
    tester = SimulatedTester(dut or SimulatedDut(capacity_fps=capacity_fps))
    measure(tester, plan(**{**usual, **conditions}), out)
    return out


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.sqlite")


# --- the store ------------------------------------------------------------------------------------


def test_what_is_added_has_the_figures_of_its_directory(store: Store, tmp_path: Path) -> None:
    directory = run(tmp_path / "run")
    (entry,), unreadable = store.add(directory)
    assert not unreadable
    assert store.find() == [entry]
    assert (entry.directory, entry.procedure, entry.dut, entry.complete) == (
        str(directory.resolve()),
        "throughput",
        "simulated",
        True,
    )
    summary = json.loads((directory / "summary.json").read_text())
    [kept] = [one for one in store.figures(entry.id) if one.name == "throughput_fps"]
    expected = summary["points"][0]["throughput_fps"]
    assert (kept.median, list(kept.values)) == (expected["median"], expected["values"])
    assert kept.resolution == 100


def test_a_directory_may_be_added_again_and_moved(store: Store, tmp_path: Path) -> None:
    directory = run(tmp_path / "run")
    (before,), _ = store.add(directory)
    (again,), _ = store.add(directory)
    moved = shutil.move(directory, tmp_path / "elsewhere")
    (after,), _ = store.add(Path(moved))
    assert before == again
    assert before.id == after.id
    assert [one.directory for one in store.find()] == [str(tmp_path.resolve() / "elsewhere")]


def test_a_folder_of_runs_and_suites(store: Store, tmp_path: Path, suite_directory: Path) -> None:
    run(tmp_path / "results" / "a")
    run(tmp_path / "results" / "deeper" / "b", 30_000)
    shutil.copytree(suite_directory, tmp_path / "results" / "suite")
    added, _ = store.add(tmp_path / "results")
    names = {one.name for one in added if one.root.endswith("suite")}
    assert len(names) > 2
    assert len(added) == 2 + len(names)
    assert all((Path(one.directory) / "journal.jsonl").exists() for one in added)


def test_an_interrupted_run_becomes_complete(store: Store, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    part = tmp_path / "part"
    part.mkdir()
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (part / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) * 2 // 3]))
    (entry,), _ = store.add(part)
    assert not entry.complete
    (part / "journal.jsonl").write_bytes(b"".join(lines))
    (now,), _ = store.add(part)
    assert (now.id, now.complete, len(store.find())) == (entry.id, True, 1)


def test_measurements_are_found_by_what_they_are(store: Store, tmp_path: Path) -> None:
    store.add(run(tmp_path / "a"))
    name = "frame-loss"
    measure(SimulatedTester(), simulated_run.a_plan(name), tmp_path / "b", name)
    store.add(tmp_path / "b")
    assert {one.procedure for one in store.find()} == {"throughput", "frame-loss"}
    assert [one.procedure for one in store.find(procedure="frame-loss")] == ["frame-loss"]
    assert len(store.find(dut="SIMUL")) == 2
    assert store.find(dut="jool") == store.find(since="2999") == []
    series = store.find()[0].series
    assert [one.series for one in store.find(series=series[:6])] == [series]


def test_measurements_are_found_from_a_time_on(store: Store, tmp_path: Path) -> None:
    store.add(run(tmp_path / "a"))
    store._database.execute("UPDATE measurement SET started = '2026-11-30T19:05:00.000+00:00'")
    for since, number in (
        ("2026", 1),
        ("2026-11", 1),
        ("2026-12", 0),
        ("2026-11-30", 1),
        ("2026-11-30T19", 1),
        ("2026-11-30 19:06", 0),
        ("2026-11-30T20:05+01:00", 1),
        ("2026-11-30T20:06+01:00", 0),
        ("2026-11-30T19:05:00Z", 1),
    ):
        assert (store.count(since=since), len(store.find(since=since))) == (number, number), since
    for since in ("30.11.2026", "yesterday", "1 week", "2026-13", "2026-11-31", "", "0001-01-01T00:00+14:00"):
        with pytest.raises(StoreError, match=f"'{re.escape(since)}' is no time"):
            store.find(since=since)


def test_a_store_is_made_again_from_the_directories(store: Store, tmp_path: Path) -> None:
    kept, gone = run(tmp_path / "kept"), run(tmp_path / "gone")
    store.add(kept)
    store.add(gone)
    before = store.find()
    shutil.rmtree(gone)
    assert store.rebuild() == (1, [str(gone.resolve())], [])
    assert store.find() == [one for one in before if one.root == str(kept.resolve())]


def test_a_store_that_cannot_be_made_again_stays_as_it_was(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is killed in the middle: only the store knows the directories."""
    store.add(run(tmp_path / "a"))
    store.add(run(tmp_path / "b"))
    before = store.find()
    put = Store._put

    def full(self: Store, one: Any, path: Path, root: Path) -> Entry:
        if root.name == "b":
            raise sqlite3.OperationalError("database or disk is full")
        return put(self, one, path, root)

    monkeypatch.setattr(Store, "_put", full)
    with pytest.raises(StoreError, match="disk is full"):
        store.rebuild()
    assert Store(store.file).find() == before


@pytest.mark.parametrize("is_suite", [False, True])
def test_what_cannot_be_read_stays_in_the_store_and_is_no_success(is_suite: bool, store: Store, tmp_path: Path) -> None:
    """A journal of another format: only the store has its figures for this version."""
    journal = run(tmp_path / "a") / "journal.jsonl"
    store.add(tmp_path / "a")
    before = store.find()
    if is_suite:
        (tmp_path / "a" / "suite.json").write_text('{"format": 99}')
    else:
        journal.write_text(journal.read_text().replace('"format": 4', '"format": 9', 1))
    done = dutperf("store", "rebuild", "--store", store.file)
    assert (done.exit_code, "1 measurements" in done.stdout) == (2, True)
    assert f"{tmp_path.resolve()}/a cannot be read: " in done.stderr
    assert store.find() == before
    assert dutperf("store", "add", tmp_path / "a", "--store", store.file).exit_code == 2


def test_another_may_write_while_results_are_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "results" / "a")
    run(tmp_path / "results" / "b")
    read = results.read

    def meanwhile(directory: Path) -> Any:
        with sqlite3.connect(store.file, timeout=0) as other:
            other.execute("DELETE FROM figure WHERE name = 'none'")
        return read(directory)

    monkeypatch.setattr(results, "read", meanwhile)
    assert len(store.add(tmp_path / "results")[0]) == 2


def test_a_directory_that_may_not_be_read_is_named_and_the_others_are_added(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "results" / "good")
    (tmp_path / "results" / "secret").mkdir()
    exists = Path.exists

    def guarded(path: Path) -> bool:  # root may read everything
        if path.parent.name == "secret":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", guarded)
    added, unreadable = store.add(tmp_path / "results")
    assert len(added) == len(unreadable) == 1
    assert "secret cannot be read: [Errno 13] Permission denied" in unreadable[0]


def test_what_another_adds_while_a_store_is_made_again_stays(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(run(tmp_path / "a"))
    other, read, added = run(tmp_path / "b"), results.read, []

    def meanwhile(directory: Path) -> Any:
        if not added:
            added.append(other)
            with Store(store.file) as second:
                second.add(other)
        return read(directory)

    monkeypatch.setattr(results, "read", meanwhile)
    assert store.rebuild()[0] == 2
    assert len(store.find()) == 2


KILLED_WHILE_MADE = """
import os, signal, sqlite3, sys
from pathlib import Path
from dutperf.store import Store
connect = sqlite3.connect
def traced(*given, **more):
    database = connect(*given, **more)
    database.set_trace_callback(lambda text: "user_version =" in text and os.kill(os.getpid(), signal.SIGKILL))
    return database
sqlite3.connect = traced
Store(Path(sys.argv[1]))
"""


def test_a_store_whose_maker_was_killed_is_made_by_the_next(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_MADE, file], check=False)
    assert done.returncode == -signal.SIGKILL
    with Store(file) as store:
        assert store.find() == []


def test_a_journal_that_cannot_be_read_is_named_and_the_others_are_added(store: Store, tmp_path: Path) -> None:
    run(tmp_path / "results" / "good")
    (tmp_path / "results" / "bad").mkdir()
    (tmp_path / "results" / "bad" / "journal.jsonl").write_text("no journal\n")
    added, unreadable = store.add(tmp_path / "results")
    assert len(added) == len(unreadable) == 1
    assert "bad cannot be read" in unreadable[0]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be looked at as one" * 20)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        Store(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE something (x)")
    with pytest.raises(StoreError, match="is the database of another program"):
        Store(tmp_path / "other")
    with sqlite3.connect(tmp_path / "older") as older:
        older.execute("CREATE TABLE measurement (x)")
        older.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreError, match="no store of this version: remove it"):
        Store(tmp_path / "older")
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "none", create=False)
    with pytest.raises(StoreError, match="no results"):
        Store(tmp_path / "store").add(tmp_path / "empty")


def test_measurements_with_the_same_meaning_are_a_series(store: Store, tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{}, {}, {"seed": 9}, {"duration_s": 3}, {"frame_sizes": (128,)}]
    for number, (capacity, conditions) in enumerate(zip((50_000, 40_000, *[50_000] * 3), others, strict=True)):
        store.add(run(tmp_path / str(number), capacity, **conditions))
    series = {Path(one.directory).name: one.series for one in store.find()}
    assert series["0"] == series["1"] == series["2"], "what the DUT does, and the seed, are no conditions"
    assert len({series["0"], series["3"], series["4"]}) == 3


# --- trends ---------------------------------------------------------------------------------------


def moments(values: Sequence[float | None], resolution: float = 0.0) -> list[Moment]:
    def entry(number: int) -> Entry:
        names = ("directory", "root", "name", "procedure", "dut", "dut_version", "host", "cpu", "dutperf", "series")
        started = f"2026-01-01T00:00:{number:02}+00:00"
        return Entry(id=str(number), started=started, complete=True, conditions={}, **dict.fromkeys(names, "x"))

    return [
        Moment(entry(number), Kept("64", "", "throughput_fps", value, (value,), "dut", "", resolution))
        for number, value in enumerate(values)
    ]


def test_loads_at_shares_of_the_throughput_have_trends_however_high_it_is(store: Store, tmp_path: Path) -> None:
    for throughput_fps in (2_000, 1_900):
        chosen = plan(throughput_from={84: throughput_fps}, loads=(50,), repetitions=1, duration_s=1)
        measure(SimulatedTester(), chosen, tmp_path / str(throughput_fps), "load-latency")
    store.add(tmp_path)
    [found] = trend.trends(store, store.find(), "loads.delay_us.forward.p50")
    assert len(found.moments) == 2
    assert "50 % of the throughput" in found.where()


def trend_of(values: Sequence[float | None], resolution: float = 0.0) -> Trend:
    return Trend(("s", "64", "", "throughput_fps"), "throughput", "DUT", tuple(moments(values, resolution)))


@given(st.lists(st.floats(-1e9, 1e9), max_size=30))
def test_groups_have_every_measurement_once_and_in_order(values: list[float]) -> None:
    found = trend_of(values)
    assert [one.figure.median for group in found.groups for one in group.moments] == values
    for group in found.groups:
        own = [one.figure.median or 0.0 for one in group.moments]
        assert group.mean == pytest.approx(sum(own) / len(own), rel=1e-6, abs=1e-3)


def test_a_jump_is_a_change_point() -> None:
    random.seed(1)
    values = [random.gauss(1000, 3) for _ in range(12)] + [random.gauss(900, 3) for _ in range(8)]
    assert [len(group.moments) for group in trend_of(values).groups] == [12, 8]
    assert len(trend_of([1000.0] * 20).groups) == 1


FALLS = Condition.parse("throughput_fps < -3%")


def test_the_newest_are_judged_by_the_history_since_its_last_change() -> None:
    before = [500.0, 501, 499, 500, 502, 1000.0, 1001, 999, 1002, 998, 1000]
    assert trend.judge(trend_of([*before, 950, 951, 949]), FALLS, 3, 0.05).outcome == "failed"
    assert trend.judge(trend_of([*before, 980, 981, 979]), FALLS, 3, 0.05).outcome == "holds"
    assert trend.judge(trend_of([*before, 1100, 1101, 1099]), FALLS, 3, 0.05).outcome == "holds"
    rises = Condition.parse("throughput_fps > +3%")
    assert trend.judge(trend_of([*before, 1100, 1101, 1099]), rises, 3, 0.05).outcome == "failed"


def test_the_resolution_counts_in_the_dut_s_favour() -> None:
    before, now = [1000.0] * 8, [960.0, 961, 962]
    assert trend.judge(trend_of([*before, *now]), FALLS, 3, 0.05).outcome == "failed"
    assert trend.judge(trend_of([*before, *now], resolution=20), FALLS, 3, 0.05).outcome == "holds"


def test_newest_measurements_in_which_nothing_passed_are_worse_than_any() -> None:
    before = [1000.0] * 8
    assert trend.judge(trend_of([*before, None, None, None]), FALLS, 3, 0.05).outcome == "failed"
    assert trend.judge(trend_of([*before, 1000.0, 1000.0, None]), FALLS, 3, 0.05).outcome == "holds"
    rises = Condition.parse("throughput_fps > +3%")
    assert trend.judge(trend_of([*before, None, None, None]), rises, 3, 0.05).outcome == "holds"
    slower = [
        replace(one, figure=replace(one.figure, missing=Missing.HIGHEST)) for one in moments([*before, *[None] * 3])
    ]
    beyond = replace(trend_of(()), moments=tuple(slower))
    assert trend.judge(beyond, rises, 3, 0.05).outcome == "failed"
    assert trend.judge(beyond, FALLS, 3, 0.05).outcome == "holds"


@pytest.mark.parametrize("newest", [{"unusable": "limited by the tester"}, {"median": None, "values": ()}])
def test_newest_measurements_without_a_usable_value_are_not_judged(newest: dict[str, Any]) -> None:
    """... by older ones in their place."""
    *before, last = moments([1000.0] * 12)
    judged = trend.judge(
        replace(trend_of(()), moments=(*before, replace(last, figure=replace(last.figure, **newest)))), FALLS, 3, 0.05
    )
    assert (judged.outcome, "1 of the newest 3 measurements" in judged.text) == ("not judged", True)


def test_a_newest_measurement_without_the_figure_is_not_judged_by_older_ones(store: Store, tmp_path: Path) -> None:
    for number in range(9):
        store.add(run(tmp_path / str(number)))
    store._database.execute("DELETE FROM figure WHERE measurement = ?", [store.find()[-1].id])
    [found] = trend.trends(store, store.find(), "throughput_fps")
    [judged] = trend.check([found], [FALLS], 3, 0.05)
    assert (judged.outcome, "1 of the newest 3 measurements" in judged.text) == ("not judged", True)
    assert (len(found.moments), found.left_out) == (9, 1)


def test_loads_before_which_the_newest_series_ended_are_left_out(store: Store, tmp_path: Path) -> None:
    """A DUT that has become better loses nothing at fewer loads."""
    for number in range(9):
        tester = SimulatedTester(SimulatedDut(capacity_fps=50_000 if number < 6 else 90_000))
        chosen = plan(frame_sizes=(84,), repetitions=1, max_rate=Rate.parse("100k"), duration_s=1)
        measure(tester, chosen, tmp_path / str(number), "frame-loss")
    store.add(tmp_path)
    rises = Condition.parse("rates.loss_ratio.worst > +0.01")
    found = trend.trends(store, store.find(), rises.figure)
    judged = trend.check(found, [rises], 3, 0.05)
    assert len(found) > len(judged) > 0
    assert {one.outcome for one in judged} == {"holds"}
    assert all(one.left_out == 0 for one in found)
    ended = [one for one in found if one.has_ended(3)]
    assert {one.outcome for one in trend.check(ended, [rises], 3, 0.05)} == {"not judged"}
    store._database.execute("DELETE FROM figure WHERE measurement = ?", [store.find()[-1].id])
    again = trend.trends(store, store.find(), rises.figure)
    assert {one.outcome for one in trend.check(again, [rises], 3, 0.05)} == {"not judged"}


def test_a_dut_that_is_dead_fails_the_gate(tmp_path: Path) -> None:
    file = str(tmp_path / "store.sqlite")
    for number in range(13):
        run(tmp_path / "results" / str(number), dut=None if number < 10 else SimulatedDut(dies_after_trials=0))
    assert dutperf("store", "add", str(tmp_path / "results"), "--store", file).exit_code == 0
    asked = ("trend", "--store", file, "--figure", "throughput_fps", "--fail-if", "throughput_fps < -3%")
    assert dutperf(*asked, "--newest", "3").exit_code == 1


def test_too_short_a_history_is_not_judged() -> None:
    judged = trend.judge(trend_of([1000.0, 1000, 900, 900, 900]), FALLS, 3, 0.05)
    assert (judged.outcome, "3 new ones need 3" in judged.text) == ("not judged", True)
    judged = trend.judge(trend_of([1000.0] * 3), FALLS, 3, 0.05)
    assert judged.outcome == "not judged"
    judged = trend.judge(trend_of([1000.0] * 10 + [1.0]), FALLS, 1, 0.05)
    assert "1 new ones need 19" in judged.text


def test_the_gate_fails_by_chance_at_its_error_rate_at_most() -> None:
    """Where nothing changes; the limit is 0 %."""
    generator = random.Random(3)
    condition = Condition.parse("throughput_fps < -0%")
    failed = 0
    for _ in range(400):
        values = [generator.gauss(1000, 10) for _ in range(13)]
        failed += trend.judge(trend_of(values), condition, 3, 0.05).outcome == "failed"
    assert failed <= 400 * 0.05 + 3 * (400 * 0.05 * 0.95) ** 0.5


# --- commands -------------------------------------------------------------------------------------


def test_a_history_in_the_terminal_and_as_a_gate(tmp_path: Path) -> None:
    file = str(tmp_path / "store.sqlite")
    results = tmp_path / "results"
    for number in range(9):
        run(results / str(number), 50_000 if number < 6 else 40_000)
    assert "9 measurements" in dutperf("store", "add", str(results), "--store", file).stdout
    listed = json.loads(dutperf("store", "list", "--store", file, "--json").stdout)
    assert [Path(one["directory"]).name for one in listed] == [str(number) for number in range(9)]
    asked = ("trend", "--store", file, "--figure", "throughput_fps")
    shown = dutperf(*asked)
    assert (shown.exit_code, "-20.1" in shown.stdout) == (0, True), shown.output
    failed = dutperf(*asked, "--fail-if", "throughput_fps < -3%")
    assert (failed.exit_code, "failed" in failed.stdout) == (1, True)
    assert dutperf(*asked, "--fail-if", "throughput_fps < -30%").exit_code == 0
    junit = tmp_path / "gate.xml"
    dutperf(*asked, "--fail-if", "throughput_fps < -3%", "--junit", str(junit))
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    [case] = suite
    assert (case.get("name"), case[0].tag) == ("throughput_fps < -3%", "failure")
    assert dutperf(*asked, "--fail-if", "throughput_fps < -3%", "--newest", "1").exit_code == 3
    members = json.loads(dutperf(*asked, "--fail-if", "throughput_fps < -3%", "--json").stdout)
    assert [len(group["measurements"]) for group in members["trends"][0]["groups"]] == [6, 3]
    assert members["conditions"][0]["outcome"] == "failed"


def test_where_no_measurement_is_found_a_sentence_says_so(tmp_path: Path) -> None:
    asked = ("store", "list", "--store", str(tmp_path / "store.sqlite"))
    run(tmp_path / "results")
    assert dutperf("store", "add", str(tmp_path / "results"), *asked[2:]).exit_code == 0
    of_nobody = dutperf(*asked, "--dut", "nobody")
    assert (of_nobody.exit_code, of_nobody.stdout) == (0, "")
    assert "no measurement of the store is like that" in of_nobody.stderr
    assert json.loads(dutperf(*asked, "--dut", "nobody", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("list",), "there is no store"),
        (("add", "nowhere"), "there are no results in nowhere"),
    ],
)
def test_wrong_use_of_the_store(arguments: tuple[str, ...], text: str, tmp_path: Path) -> None:
    result = dutperf("store", *arguments, "--store", str(tmp_path / "none.sqlite"))
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


def test_wrong_use_of_trends(tmp_path: Path) -> None:
    file = str(tmp_path / "store.sqlite")
    dutperf("store", "add", str(run(tmp_path / "run")), "--store", file)
    for arguments, text in (
        (("--figure", "speed"), "none of these measurements has a figure speed"),
        (("--fail-if", "speed < -3%"), "there is no figure speed: there are"),
        (("--fail-if", "throughput_fps"), "is not a condition"),
        (("--dut", "nobody's"), "there are no such measurements"),
    ):
        result = dutperf("trend", "--store", file, *arguments)
        assert (result.exit_code, text in " ".join(result.stderr.split())) == (2, True), result.output
