# SPDX-License-Identifier: Apache-2.0
"""The commands of procedures: what they write, what they say, and one sentence for what cannot be
measured. The engine is a fake process."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import QUICK, dutperf, frame_loss, throughput, trial, write
from dutperf import procedures
from dutperf.api import results
from dutperf.cli import options
from dutperf.cli.commands import measure
from dutperf.procedures.definition import Definition
from dutperf.setup.option import offered


def test_throughput_writes_what_it_says(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", "--json", "--frame-size", "64,128", "--frame-sizes", "256")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [point["case"]["frame_size"] for point in summary["points"]] == [64, 128, 256]
    assert all(
        point["throughput_fps"]["values"] == [8000, 8000] and point["limited_by"] == "range"
        for point in summary["points"]
    )
    plan = json.loads((tmp_path / "out" / "journal.jsonl").read_text().splitlines()[0])
    assert (plan["dut"], plan["config"]["left"]["port"]) == ({"name": "fake", "version": "1"}, "null")


def test_throughput_for_a_person(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out")
    first, believed, deviations, *_ = result.stdout.splitlines()
    assert first.startswith("8,000 frames/s per direction (64 bytes), limited by the search range; ")
    assert re.match(r"\d+ trials, none invalid, each frame left at most [0-9.,]+ µs late", believed)
    assert re.match(r"quick run: deviates from RFC 2544.* in \d+ points, see the report or --verbose$", deviations)
    assert "RFC 2544 section 24" not in result.stdout
    out = tmp_path / "out"
    commands = [f"dutperf show {out}", f"dutperf report {out}", "dutperf compare --help"]
    assert [line.strip() for line in result.stdout.splitlines()[-4:]] == ["next:", *commands]
    again = throughput(config, tmp_path / "again")
    (tmp_path / "later" / "summary.json").parent.mkdir()
    (tmp_path / "later" / "summary.json").write_text('{"procedure": "latency"}')
    assert again.stdout.splitlines()[-1].strip() == f"dutperf compare {out} {tmp_path / 'again'}"
    assert "trial 1: 1,000 frames/s: nothing lost" in result.stderr
    assert result.stderr.startswith("throughput: about ")


NO_NUMBER = [("Deaf", 1, "forwards nothing"), ("Drops", 3, "limited by the tester, not the DUT")]


@pytest.mark.parametrize(("behaviour", "status", "text"), NO_NUMBER)
def test_a_run_without_a_number_says_whose_fault_it_is(behaviour: str, status: int, text: str, tmp_path: Path) -> None:
    result = throughput(write(tmp_path, behaviour), tmp_path / "out")
    assert result.exit_code == status
    assert text in " ".join(result.stdout.split())


def test_throughput_does_not_write_over_another_run(config: Path, tmp_path: Path) -> None:
    throughput(config, tmp_path / "out")
    before = (tmp_path / "out" / "journal.jsonl").read_bytes()
    result = throughput(config, tmp_path / "out")
    assert result.exit_code == 2
    assert "holds the journal of another run" in result.stderr
    assert (tmp_path / "out" / "journal.jsonl").read_bytes() == before


def test_rates_that_contradict_each_other_are_named(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", "--min-rate", "9000")
    assert result.exit_code == 2
    assert result.stderr.startswith("dutperf: --m")
    assert not (tmp_path / "out").exists()


SERIES = [
    pytest.param([], [8000, 7200], id="a series by default ends with two rates without loss"),
    pytest.param(["--step", "5%"], [8000, 7600], id="finer steps"),
    pytest.param(["--step", "100"], [8000, 7900], id="steps in frames/s"),
]


@pytest.mark.parametrize(("arguments", "rates"), SERIES)
def test_frame_loss_writes_what_it_says(arguments: list[str], rates: list[int], config: Path, tmp_path: Path) -> None:
    result = frame_loss(config, tmp_path / "out", "--json", "--max-rate", "8000", *arguments)
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    [point] = summary["points"]
    assert [rate["load"]["value"] for rate in point["rates"]] == rates
    assert (summary["procedure"], summary["conditions"]["repetitions"], point["first_lossless_fps"]) == (
        "frame-loss",
        1,
        8000,
    )


def test_frame_loss_for_a_person(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = frame_loss(config, tmp_path / "out", "--rates", "1000, 3k", "--repetitions", "2", "--verbose")
    assert result.exit_code == 0
    for text in (
        "frame loss",
        "3,000",
        "1,000",
        "0.0000%",
        "64 bytes: no loss at 3,000 frames/s",
        "deviates from RFC 2544 section 26.3: the rates are a given list",
    ):
        assert text in result.stdout
    assert "repetition 2 of 2, trial 4: 1,000 frames/s: nothing lost" in result.stderr


FRAME_LOSS_WRONG = [
    ([], "--max-rate: give the rate to begin with"),
    (["--max-rate", "fast"], "--max-rate: 'fast' is not a rate"),
    (["--max-rate", "10k", "--step", "20%"], "--step: 20 % is wider than 10 %"),
    (["--rates", "10k,"], "--rates: '' is not a rate"),
    (["--rates", "10k,50%"], "--rates: a rate in % needs the media's speed"),
    (["--rates", "10k", "--max-rate", "20k"], "--max-rate: has no effect where the rates are listed"),
    (["--rates", "10k", "--step", "5%"], "--step: has no effect where the rates are listed"),
]


@pytest.mark.parametrize(("arguments", "text"), FRAME_LOSS_WRONG)
def test_frame_loss_names_what_is_wrong(arguments: list[str], text: str, config: Path, tmp_path: Path) -> None:
    result = frame_loss(config, tmp_path / "out", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"dutperf: {text}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("behaviour", "status", "text"), NO_NUMBER)
def test_frame_loss_without_a_figure_says_whose_fault_it_is(
    behaviour: str, status: int, text: str, tmp_path: Path
) -> None:
    result = frame_loss(write(tmp_path, behaviour), tmp_path / "out", "--rates", "1000")
    assert result.exit_code == status
    assert text in " ".join(result.stdout.split())


@pytest.mark.parametrize("definition", procedures.every(), ids=lambda definition: definition.name)
def test_every_procedure_is_a_command_with_the_options_that_it_names(definition: Definition) -> None:
    made = measure.command(definition)
    options_of = set(inspect.signature(made).parameters)
    assert options_of == {
        "lab",
        "lab_option",
        "config_file",
        "queues",
        "offloads",
        "out",
        "as_json",
        "verbose",
        *options.WATCHERS,
        *(one.name for one in offered(definition.conditions)),
    }
    assert dutperf(definition.name, "--help").exit_code == 0


def test_repetitions_that_decide_for_themselves_are_explained(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", "--repetitions", "auto:min=6,max=8")
    assert result.exit_code == 0
    assert "after 6 repetitions (narrow enough) the median lies within 8,000 to 8,000 (95 % confidence)" in " ".join(
        result.stdout.split()
    )


def test_frame_loss_needs_a_number_of_repetitions(config: Path, tmp_path: Path) -> None:
    result = frame_loss(config, tmp_path / "out", "--rates", "1000", "--repetitions", "auto")
    assert result.exit_code == 2
    assert "--repetitions: this procedure has no single figure for auto to look at; give a number" in " ".join(
        result.stderr.split()
    )
    assert not (tmp_path / "out").exists()


def test_the_latency_of_rfc_2544_is_a_mean_and_says_what_it_is(config: Path, tmp_path: Path) -> None:
    quick = ("--rate", "1000", "--repetitions", "2", "--definition", "rfc2544")
    result = dutperf("latency", "--config", config, *QUICK, *quick, "--out", tmp_path / "out")
    assert "mean" in result.stdout
    recorded = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (recorded["conditions"]["definition"], recorded["conditions"]["tags"]) == ("rfc2544", 1)
    assert recorded["conditions"]["tag_after_s"] == recorded["conditions"]["duration_s"] / 2
    assert "store-and-forward" in recorded["points"][0]["latency_is"]


def test_each_loss_goal_is_shown(config: Path, tmp_path: Path) -> None:
    mlr = (
        "--repetitions",
        "2",
        "--max-rate",
        "8000",
        "--resolution",
        "500",
        "--search",
        "mlr",
        "--goal",
        "0.005",
        "--goal",
        "0",
    )
    result = dutperf("throughput", "--config", config, *QUICK, *mlr, "--out", tmp_path / "out")
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    assert "64 bytes, at most 0 % lost: 8,000 frames/s, limited by range" in shown
    assert "64 bytes, at most 0.5 % lost: 8,000 frames/s, limited by range" in shown


SEARCHES = [
    (["--repetitions", "often"], "--repetitions: 'often' is neither a number nor auto"),
    (
        ["--repetitions", "auto:min=3"],
        "--repetitions: min=3 is too few: an interval of 95 % confidence needs 6 repetitions",
    ),
    (["--repetitions", "0"], "--repetitions: should be greater than or equal to 1"),
    (["--goal", "0.1"], "--goal: loss goals need --search mlr; a binary search has one, --loss-tolerance"),
    (["--goal", "1.5", "--search", "mlr"], "--goal: should be less than 1"),
    (["--goal", "0", "--goal", "0", "--search", "mlr"], "--goal: the same loss ratio twice"),
    (["--search", "mlr"], "--initial-rate: MLRsearch begins at the maximum rate"),
    (["--search", "guess"], "--search"),
    (["--exceed-ratio", "0.5"], "--exceed-ratio: needs --search mlr: in a binary search one trial decides"),
    (["--duration-sum", "21"], "--duration-sum: needs --search mlr"),
]


@pytest.mark.parametrize(("arguments", "text"), SEARCHES)
def test_searches_that_cannot_be_are_named(arguments: list[str], text: str, config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_command_line_that_is_not_text_is_readable(tmp_path: Path) -> None:
    config, out = write(tmp_path, "Engine"), os.fsencode(tmp_path) + b"/\xff"
    argv = [sys.executable, "-m", "dutperf", "frame-loss", "--config", str(config), *QUICK, "--repetitions", "1"]
    done = subprocess.run([*argv, "--rates", "1000", "--frame-size", "84", "--out", out], check=False, timeout=60)
    assert done.returncode == 0
    assert results.read(Path(os.fsdecode(out))).is_complete
    assert (Path(os.fsdecode(out)) / "report.html").exists()


@pytest.mark.parametrize(("sizes", "said"), [("1200,64", "frames of 1200 bytes need 1182"), ("1000,64", None)])
def test_a_port_with_a_short_mtu_is_named_with_the_size_that_was_asked_for(
    tmp_path: Path, sizes: str, said: str | None
) -> None:
    """Nobody asked for 1,518 bytes, the size for which ports are opened first."""
    done = frame_loss(write(tmp_path, "ShortMtu"), tmp_path / "run", "--rates", "1000", "--frame-size", sizes, "--json")
    too_long, short = json.loads(done.stdout)["points"]
    assert bool(short["rates"])
    assert bool(too_long["rates"]) is (said is None)
    if said is not None:
        assert f"(right.port: the MTU of r0 is 1000, {said})" in too_long["message"]


def test_where_no_size_fits_the_port_the_refusal_names_one_that_was_asked_for(tmp_path: Path) -> None:
    done = trial(write(tmp_path, "ShortMtu"), "--frame-size", "1200")
    assert done.exit_code == 2
    assert "right.port: the MTU of r0 is 1000, frames of 1200 bytes need 1182" in done.stderr


@pytest.mark.parametrize("option", ["--delays-to", "--throughput-from"])
def test_a_path_that_nobody_can_have_is_told_with_its_option(config: Path, option: str) -> None:
    result = dutperf("latency", "--config", config, option, "a" * 300)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"dutperf: {option}: cannot be used: File name too long")
