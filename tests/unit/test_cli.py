# SPDX-License-Identifier: Apache-2.0
"""The command line: exit status, what goes to which stream, and one sentence for what is wrong. The engine is a fake process."""

from __future__ import annotations

import errno
import inspect
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from rich.live import Live
from typer.testing import CliRunner, Result

from dutperf import __version__, lab, procedure
from dutperf.campaign import Status
from dutperf.cli import app, doctor, live, measure, options
from dutperf.conditions import Conditions, Rate
from dutperf.config import ConfigError
from dutperf.doctor import Finding
from dutperf.model import FieldMode
from dutperf.procedure.definition import Definition
from dutperf.tester import Progress
from dutperf.tester.engine import EngineTester
from fakes import fake_engine

QUICK = ("--duration", "0.01", "--drain", "0")
SEARCH = (*QUICK, "--repetitions", "2", "--max-rate", "8000", "--initial-rate", "1000", "--resolution", "500")


def setup_of(behaviour: str) -> dict[str, Any]:
    """A configuration whose engine behaves so (see tests/fakes/fake_engine.py)."""
    sides = {"left": "198.18.0.2/24", "right": "198.19.0.2/24"}
    ports = {side: {"port": "null", "version": 4, "ipv4": address} for side, address in sides.items()}
    return {"engine": {"command": [sys.executable, fake_engine.__file__, behaviour]}, **ports, "dut": {"name": "fake", "version": "1"}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write(tmp_path, "Engine")


def write(directory: Path, behaviour: str) -> Path:
    path = directory / f"{behaviour}.yaml"
    path.write_text(yaml.safe_dump(setup_of(behaviour)))
    return path


def dutperf(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def trial(config: Path, *arguments: str | Path) -> Result:
    return dutperf("trial", "--config", config, "--rate", "1000", *QUICK, *arguments)


def throughput(config: Path, out: Path, *arguments: str | Path) -> Result:
    return dutperf("throughput", "--config", config, *SEARCH, "--out", out, *arguments)


def frame_loss(config: Path, out: Path, *arguments: str | Path) -> Result:
    return dutperf("frame-loss", "--config", config, *QUICK, "--out", out, *arguments)


def test_version() -> None:
    result = dutperf("--version")
    assert (result.exit_code, result.stdout) == (0, f"dutperf {__version__}\n")


STATUS = [("Engine", 0, "valid"), ("Drops", 3, "invalid"), ("Killed", 4, "aborted")]


@pytest.mark.parametrize(("behaviour", "status", "verdict"), STATUS)
def test_the_exit_status_of_a_trial_is_its_verdict(behaviour: str, status: int, verdict: str, tmp_path: Path) -> None:
    config = write(tmp_path, behaviour)
    as_json, as_table = trial(config, "--json"), trial(config)
    assert (as_json.exit_code, as_table.exit_code) == (status, status)
    assert json.loads(as_json.stdout)["verdict"] == verdict
    assert f"{verdict}: " in as_table.stdout


def test_a_trial_as_json_is_the_only_thing_on_standard_output(config: Path) -> None:
    result = trial(config, "--json", "--directions", "forward")
    report = json.loads(result.stdout)
    assert (report["forward"]["intended"], report["forward"]["sent"], report["forward"]["received"], report["forward"]["lost"]) == (10, 10, 10, 0)
    assert "reverse" not in report
    assert (report["frame_size"], report["frame_size_ipv4"], report["passed"], report["causes"]) == (64, 64, True, [])
    assert (report["trial"]["forward"]["rate_fps"], report["dut"]["name"], report["environment"]["engine"]) == (1000, "fake", "fake")
    assert "1,000 frames/s" in result.stderr


def test_a_trial_as_a_table_names_the_tester_s_own_drops(tmp_path: Path) -> None:
    result = trial(write(tmp_path, "Drops"))
    assert "3 nic_missed" in result.stdout
    assert "the tester itself dropped" in result.stdout


def test_a_trial_leaves_its_result_where_it_is_told_to(config: Path, tmp_path: Path) -> None:
    result = trial(config, "--json", "--out", tmp_path / "a" / "b")
    assert json.loads((tmp_path / "a" / "b" / "trial.json").read_text()) == json.loads(result.stdout)


def test_options_reach_the_trial(config: Path) -> None:
    chosen = [
        "--frame-size",
        "128",
        "--ports",
        "increasing",
        "--networks",
        "16",
        "--seed",
        "5",
        "--burst",
        "8",
        "--directions",
        "reverse",
        "--learning-rest",
        "0.5",
    ]
    planned = json.loads(trial(config, "--json", *chosen).stdout)["trial"]
    assert "forward" not in planned
    assert (planned["seed"], planned["burst"], planned["duration_ns"], planned["drain_ns"], planned["rest_ns"]) == (5, 8, 10_000_000, 0, 500_000_000)
    assert (planned["reverse"]["foreground"]["size"], planned["reverse"]["networks"], planned["reverse"]["source_port"]["mode"]) == (128, 16, "increasing")


TOLERANCES = [("0", False), ("0.5", False), ("0.999", False)]


@pytest.mark.parametrize(("tolerance", "passed"), TOLERANCES)
def test_a_trial_that_lost_everything_does_not_pass(tolerance: str, passed: bool, tmp_path: Path) -> None:
    result = trial(write(tmp_path, "Deaf"), "--json", "--loss-tolerance", tolerance)
    assert (result.exit_code, json.loads(result.stdout)["passed"]) == (0, passed)


def test_a_trial_states_its_frame_timeout(config: Path) -> None:
    report = json.loads(trial(config, "--json", "--drain", "0.02", "--frame-timeout-ms", "20").stdout)
    assert (report["frame_timeout_ms"], report["trial"]["frame_timeout_ns"], report["trial"]["stamping"]) == (20, 20_000_000, "every")
    assert "a frame later than 20 ms counts as lost" in trial(config, "--drain", "0.02", "--frame-timeout-ms", "20").stdout.replace("\n", " ")


WRONG: list[tuple[str, list[str], str]] = [
    ("neither lab nor file", ["--rate", "1"], "give either --lab NAME or --config FILE"),
    ("both", ["--rate", "1", "--lab", "loopback", "--config", "CONFIG"], "not both"),
    ("no file", ["--rate", "1", "--config", "/nowhere.yaml"], "--config: cannot read /nowhere.yaml: No such file"),
    ("no lab", ["--rate", "1", "--lab", "no-such-lab"], "no-such-lab"),
    ("no rate", ["--config", "CONFIG"], "--rate"),
    ("rate that is none", ["--config", "CONFIG", "--rate", "fast"], "--rate: 'fast' is no rate"),
    ("rate of an unknown maximum", ["--config", "CONFIG", "--rate", "10%"], "--rate: a rate in % needs the media's speed: set media_mbps"),
    ("size below any", ["--config", "CONFIG", "--rate", "1", "--frame-size", "63"], "--frame-size"),
    ("size that is none", ["--config", "CONFIG", "--rate", "1", "--frame-size", "big"], "--frame-size: 'big' is no frame size"),
    ("size twice", ["--config", "CONFIG", "--rate", "1", "--frame-size", "64,64"], "--frame-size: the same size twice"),
    ("two sizes", ["--config", "CONFIG", "--rate", "1", "--frame-size", "64,128"], "--frame-size: a trial has one frame size"),
    ("size above any", ["--config", "CONFIG", "--rate", "1", "--frame-size", "9217"], "--frame-size"),
    ("foreground", ["--config", "CONFIG", "--rate", "1", "--foreground", "2"], "--foreground: '2' is not of the form N:M"),
    ("more than all", ["--config", "CONFIG", "--rate", "1", "--foreground", "2:3"], "--foreground: foreground n:m needs m <= n, not 2:3"),
    ("background without IPv6", ["--config", "CONFIG", "--rate", "1", "--foreground", "10:9"], "left.ipv6: is missing: --foreground 10:9"),
    ("duration", ["--config", "CONFIG", "--rate", "1", "--duration", "0"], "--duration: should be greater than or equal to 0.001"),
    ("drain", ["--config", "CONFIG", "--rate", "1", "--drain", "-1"], "--drain: should be greater than or equal to 0"),
    ("networks", ["--config", "CONFIG", "--rate", "1", "--networks", "257"], "--networks: should be less than or equal to 256"),
    ("burst", ["--config", "CONFIG", "--rate", "1", "--burst", "0"], "--burst: should be greater than or equal to 1"),
    ("tolerance", ["--config", "CONFIG", "--rate", "1", "--loss-tolerance", "1"], "--loss-tolerance: should be less than 1"),
    ("frame timeout", ["--config", "CONFIG", "--rate", "1", "--frame-timeout-ms", "0"], "--frame-timeout-ms: should be greater than 0"),
    (
        "late drain",
        ["--config", "CONFIG", "--rate", "1", "--frame-timeout-ms", "2001"],
        "--frame-timeout-ms: receiving ends 2000 ms after the last frame (drain)",
    ),
    ("ports", ["--config", "CONFIG", "--rate", "1", "--ports", "odd"], "--ports"),
    ("lab option without lab", ["--config", "CONFIG", "--rate", "1", "--lab-option", "loss=0.1"], "--lab-option: has no effect with --config"),
    ("lab option without value", ["--lab", "loopback", "--rate", "1", "--lab-option", "loss"], "--lab-option: 'loss' is not of the form KEY=VALUE"),
]


@pytest.mark.parametrize(("arguments", "text"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_usage_is_one_sentence_and_status_2(arguments: list[str], text: str, config: Path) -> None:
    result = dutperf("trial", *(str(config) if argument == "CONFIG" else argument for argument in arguments))
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


ENGINES = [
    ("NoAnswer", "dutperf: left.gateway4: 198.18.0.1 does not answer ARP\n"),
    ("Mute", "dutperf: the engine did not start: the engine ended with status 1; the last it said: no huge pages\n"),
]


@pytest.mark.parametrize(("behaviour", "text"), ENGINES)
@pytest.mark.parametrize("command", ["trial", "throughput"])
def test_a_tester_that_cannot_work_is_one_sentence_and_status_2(command: str, behaviour: str, text: str, tmp_path: Path) -> None:
    config = write(tmp_path, behaviour)
    result = trial(config) if command == "trial" else throughput(config, tmp_path / "out")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", text)
    assert not (tmp_path / "out").exists()


def test_throughput_writes_what_it_says(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", "--json", "--frame-size", "64,128", "--frame-size", "256")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [point["frame_size"] for point in summary["points"]] == [64, 128, 256]
    assert all(point["throughput_fps"]["values"] == [8000, 8000] and point["limited_by"] == "range" for point in summary["points"])
    plan = json.loads((tmp_path / "out" / "journal.jsonl").read_text().splitlines()[0])
    assert (plan["dut"], plan["config"]["left"]["port"]) == ({"name": "fake", "version": "1"}, "null")


def test_throughput_for_a_person(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out")
    assert "8,000" in result.stdout
    assert "RFC 2544 section 24" in result.stdout
    assert str(tmp_path / "out") in result.stdout
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
    assert [rate["rate_fps"] for rate in point["rates"]] == rates
    assert (summary["procedure"], summary["conditions"]["repetitions"], point["first_lossless_fps"]) == ("frame-loss", 1, 8000)


def test_frame_loss_for_a_person(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = frame_loss(config, tmp_path / "out", "--rates", "1000, 3k", "--repetitions", "2")
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
    (["--max-rate", "fast"], "--max-rate: 'fast' is no rate"),
    (["--max-rate", "10k", "--step", "20%"], "--step: 20 % is wider than 10 %"),
    (["--rates", "10k,"], "--rates: '' is no rate"),
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
def test_frame_loss_without_a_figure_says_whose_fault_it_is(behaviour: str, status: int, text: str, tmp_path: Path) -> None:
    result = frame_loss(write(tmp_path, behaviour), tmp_path / "out", "--rates", "1000")
    assert result.exit_code == status
    assert text in " ".join(result.stdout.split())


@pytest.mark.parametrize("definition", procedure.ALL, ids=lambda definition: definition.name)
def test_every_procedure_is_a_command_with_the_options_that_it_names(definition: Definition) -> None:
    made = measure.command(definition)
    options_of = set(inspect.signature(made).parameters)
    of_trials = set(options.EVERY_TRIAL) - set(definition.without)
    assert options_of == {"lab", "lab_option", "config_file", "out", "as_json", *of_trials, *definition.options}
    assert dutperf(definition.name, "--help").exit_code == 0


def test_an_interruption_ends_with_130_and_keeps_what_was_measured(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EngineTester, "run", interrupted)
    assert trial(config).exit_code == 130
    result = throughput(config, tmp_path / "out")
    assert result.exit_code == 130
    assert f"what was measured so far is in {tmp_path / 'out'}" in result.stderr
    assert (tmp_path / "out" / "summary.json").exists()


def cut_off(directory: Path, lines: int) -> bytes:
    """What is left of a run that was killed after so many lines of its journal, in the middle of the next."""
    whole = (directory / "journal.jsonl").read_bytes().splitlines(keepends=True)
    kept = b"".join(whole[:lines])
    (directory / "journal.jsonl").write_bytes(kept + whole[lines][:9])
    (directory / "summary.json").unlink(missing_ok=True)
    return kept


def timeless(summary: str | bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(summary)
    del told["environment"]["started"]
    return told


SERIES = ("frame-loss", *QUICK, "--max-rate", "1000", "--repetitions", "4")


@pytest.mark.parametrize("command", [("throughput", *SEARCH), SERIES])
def test_a_run_goes_on_with_the_set_up_in_its_journal(command: tuple[str, ...], config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expected = timeless(dutperf(*command, "--config", config, "--out", out, "--json").stdout)
    kept = cut_off(out, 7)
    config.write_text("changed: since")
    result = dutperf("resume", out, "--json")
    assert (result.exit_code, timeless(result.stdout)) == (0, expected)
    assert (out / "journal.jsonl").read_bytes().startswith(kept + b'{"event": "resumed"')
    assert json.loads((out / "summary.json").read_text()) == json.loads(result.stdout)


def test_a_complete_run_says_so_and_has_its_summary(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    throughput(config, out)
    journal = (out / "journal.jsonl").read_bytes()
    (out / "summary.json").unlink()
    result = dutperf("resume", out)
    assert result.exit_code == 0
    assert "is complete" in result.stderr
    assert "8,000" in result.stdout
    assert (out / "journal.jsonl").read_bytes() == journal
    assert (out / "summary.json").exists()


def test_a_lab_is_built_again_with_the_same_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labs, out = FakeLabs(setup_of("Engine")), tmp_path / "out"
    monkeypatch.setattr(lab, "bring_up", labs.bring_up)
    expected = timeless(dutperf("throughput", "--lab", "one", "--lab-option", "loss=0.1", *SEARCH, "--out", out, "--json").stdout)
    cut_off(out, 6)
    result = dutperf("resume", out, "--json")
    assert (result.exit_code, timeless(result.stdout)) == (0, expected)
    assert labs.asked == [("one", {"loss": "0.1"})] * 2
    assert not labs.up
    cut_off(out, 6)
    labs.mapping["dut"]["version"] = "2"
    result = dutperf("resume", out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the journal has other values of dut" in result.stderr
    assert not labs.up


@pytest.mark.parametrize(
    ("content", "words"), [(None, "holds no journal"), ("", "does not begin with a plan"), ('{"event": "plan", "format": 9}\n', "format 9")]
)
def test_what_cannot_go_on_is_one_sentence_and_status_2(content: str | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "journal.jsonl").write_text(content)
    result = dutperf("resume", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("change", [{"source": {}}, {"config": {}}, {"conditions": {"speed": 1}}])
def test_a_plan_that_lacks_what_is_needed_cannot_go_on(change: dict[str, Any], config: Path, tmp_path: Path) -> None:
    throughput(config, tmp_path / "out")
    journal = tmp_path / "out" / "journal.jsonl"
    first, *others = journal.read_text().splitlines(keepends=True)
    journal.write_text(json.dumps(json.loads(first) | change) + "\n" + "".join(others[:4]))
    result = dutperf("resume", tmp_path / "out")
    assert result.exit_code == 2
    assert "the run cannot go on: " in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_full_disk_ends_with_status_4_takes_the_lab_down_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labs, out = FakeLabs(setup_of("Engine")), tmp_path / "out"
    monkeypatch.setattr(lab, "bring_up", labs.bring_up)
    real, writes = os.write, []

    def write(descriptor: int, data: bytes) -> int:
        writes.append(data)
        if len(writes) > 8 and data.startswith(b'{"event"'):
            real(descriptor, data[:20])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    result = dutperf("throughput", "--lab", "one", *SEARCH, "--out", out)
    monkeypatch.undo()
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"dutperf: cannot write {out / 'journal.jsonl'}: No space left on device\n" in result.stderr
    assert f"go on with: dutperf resume {out}" in result.stderr
    assert not labs.up
    monkeypatch.setattr(lab, "bring_up", labs.bring_up)
    assert dutperf("resume", out).exit_code == 0
    assert not labs.up


def test_the_dut_is_set_up_asked_and_taken_down(tmp_path: Path) -> None:
    commands = {name: f"echo {name} | tee -a {tmp_path / 'log'}" for name in ("set_up", "state", "tear_down")}
    setup = setup_of("Engine")
    setup["dut"]["commands"] = commands
    (tmp_path / "dut.yaml").write_text(yaml.safe_dump(setup))
    result = throughput(tmp_path / "dut.yaml", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "log").read_text().split() == ["set_up", "state", "state", "state", "state", "tear_down"]
    summary = json.loads(result.stdout)
    assert summary["dut"] == {"name": "fake", "version": "1"}
    assert len({state["sha256"] for state in summary["environment"]["dut_states"]}) == 1


@pytest.mark.parametrize(("failing", "status", "run"), [("set_up", 2, ["tear_down"]), ("state", 2, ["set_up", "tear_down"]), ("tear_down", 2, ["set_up"])])
def test_a_command_of_the_dut_that_fails_is_named(failing: str, status: int, run: list[str], tmp_path: Path) -> None:
    commands = {name: f"echo {name} >> {tmp_path / 'log'}" for name in ("set_up", "tear_down")} | {failing: "echo no route; exit 1"}
    setup = setup_of("Engine")
    setup["dut"]["commands"] = commands
    (tmp_path / "dut.yaml").write_text(yaml.safe_dump(setup))
    result = throughput(tmp_path / "dut.yaml", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (status, "")
    assert f"dutperf: dut.commands.{failing}: ended with status 1; the last it said: no route\n" in result.stderr
    assert (tmp_path / "log").read_text().split() == run


def test_repetitions_that_decide_for_themselves_are_explained(config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", "--repetitions", "auto:min=6,max=8")
    assert result.exit_code == 0
    assert "after 6 repetitions (narrow enough) the median lies within 8,000 to 8,000 (95 % confidence)" in " ".join(result.stdout.split())


def test_frame_loss_needs_a_number_of_repetitions(config: Path, tmp_path: Path) -> None:
    result = frame_loss(config, tmp_path / "out", "--rates", "1000", "--repetitions", "auto")
    assert result.exit_code == 2
    assert "--repetitions: this procedure has no single figure for auto to look at; give a number" in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_the_latency_of_rfc_2544_is_a_mean_and_says_what_it_is(config: Path, tmp_path: Path) -> None:
    quick = ("--rate", "1000", "--tag-after", "0", "--repetitions", "2", "--definition", "rfc2544")
    result = dutperf("latency", "--config", config, *QUICK, *quick, "--out", tmp_path / "out")
    assert "mean" in result.stdout
    recorded = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (recorded["conditions"]["definition"], recorded["conditions"]["tags"]) == ("rfc2544", 1)
    assert "store-and-forward" in recorded["points"][0]["latency_is"]


def test_each_loss_goal_is_shown(config: Path, tmp_path: Path) -> None:
    mlr = ("--repetitions", "2", "--max-rate", "8000", "--resolution", "500", "--search", "mlr", "--goal", "0.005", "--goal", "0")
    result = dutperf("throughput", "--config", config, *QUICK, *mlr, "--out", tmp_path / "out")
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    assert "64 bytes, at most 0 % lost: 8,000 frames/s, limited by range" in shown
    assert "64 bytes, at most 0.5 % lost: 8,000 frames/s, limited by range" in shown


SEARCHES = [
    (["--repetitions", "often"], "--repetitions: 'often' is neither a number nor auto"),
    (["--repetitions", "auto:min=3"], "--repetitions: min=3 is too few: an interval of 95 % confidence needs 6 repetitions"),
    (["--repetitions", "0"], "--repetitions: should be greater than or equal to 1"),
    (["--goal", "0.1"], "--goal: loss goals need --search mlr"),
    (["--goal", "1.5", "--search", "mlr"], "--goal: should be less than 1"),
    (["--goal", "0", "--goal", "0", "--search", "mlr"], "--goal: the same loss ratio twice"),
    (["--search", "mlr"], "--initial-rate: MLRsearch begins at the maximum rate"),
    (["--search", "guess"], "--search"),
]


@pytest.mark.parametrize(("arguments", "text"), SEARCHES)
def test_searches_that_cannot_be_are_named(arguments: list[str], text: str, config: Path, tmp_path: Path) -> None:
    result = throughput(config, tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


class FakeLabs:
    """Stands in for labs: knows one, and whether it is up."""

    def __init__(self, mapping: dict[str, Any]) -> None:
        self.mapping = mapping
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.up = False

    @contextmanager
    def bring_up(self, name: str, lab_options: dict[str, str]) -> Iterator[dict[str, Any]]:
        self.asked.append((name, lab_options))
        self.up = True
        try:
            yield self.mapping
        finally:
            self.up = False


LAB_RUNS = [("Engine", [], 0), ("NoAnswer", [], 2), ("Killed", [], 4), ("Engine", ["--foreground", "10:9"], 2)]


@pytest.mark.parametrize(("behaviour", "arguments", "status"), LAB_RUNS)
def test_a_lab_is_taken_down_however_the_trial_ends(behaviour: str, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labs = FakeLabs(setup_of(behaviour))
    monkeypatch.setattr(lab, "bring_up", labs.bring_up)
    result = dutperf("trial", "--lab", "one", "--lab-option", "loss=0.1", "--rate", "1000", *QUICK, *arguments)
    assert result.exit_code == status
    assert labs.asked == [("one", {"loss": "0.1"})]
    assert not labs.up


def test_a_lab_gets_cables_for_the_frames_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    labs = FakeLabs(setup_of("Engine"))
    monkeypatch.setattr(lab, "bring_up", labs.bring_up)
    assert dutperf("trial", "--lab", "one", "--rate", "1000", *QUICK, "--frame-size", "9216").exit_code == 0
    assert labs.asked == [("one", {"max_frame_size": "9216"})]


def test_labs_are_listed_brought_up_and_taken_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "tayga-siit" in dutperf("lab", "list").stdout
    monkeypatch.setattr(lab, "up", lambda name, given: tmp_path / f"{name}-{given['k']}.yaml")
    result = dutperf("lab", "up", "one", "--lab-option", "k=v")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'one-v.yaml'}\n")
    monkeypatch.setattr(lab, "down", lambda name: name == "one")
    assert (dutperf("lab", "down", "one").exit_code, dutperf("lab", "down", "two").exit_code) == (0, 1)


def test_the_doctor_s_findings_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("cores", "ok", "2 [cores]", None), Finding("huge pages", "lack", "none", "sysctl vm.nr_hugepages=512")]
    monkeypatch.setattr(doctor, "examine", lambda: findings)
    result = dutperf("doctor")
    assert result.exit_code == 0
    for text in ("2 [cores]", "lack", "sysctl vm.nr_hugepages=512"):
        assert text in result.stdout


def test_without_options_the_conditions_are_those_of_the_rfcs() -> None:
    assert options.conditions(None, "2:2") == Conditions()


def test_options_become_conditions() -> None:
    made = options.conditions(["84,128", "1518"], "10:9", max_rate="10%", min_rate="1k", ports=FieldMode.FIXED, seed=None)
    rates = {"max_rate": Rate(value=10, unit="percent"), "min_rate": Rate(value=1000, unit="fps")}
    assert made == Conditions(frame_sizes=(84, 128, 1518), n=10, m=9, ports=FieldMode.FIXED, **rates)


@pytest.mark.parametrize("option", ["max_rate", "min_rate", "initial_rate", "resolution", "step", "rates"])
def test_a_rate_that_is_none_names_its_option(option: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options.conditions(None, "2:2", **{option: "x"})
    assert caught.value.key == "--" + option.replace("_", "-")


DURATIONS = [
    (0, "0.0 s"),
    (1.25, "1.2 s"),
    (59.6, "60 s"),
    (89, "89 s"),
    (90, "1 min 30 s"),
    (5399, "89 min 59 s"),
    (5400, "1 h 30 min"),
    (90_000, "25 h 0 min"),
]


@pytest.mark.parametrize(("seconds", "text"), DURATIONS)
def test_durations_for_a_person(seconds: float, text: str) -> None:
    assert live.duration(seconds) == text


def a_status(**members: Any) -> Status:
    given = {"procedure": "throughput", "frame_size": 84, "repetition": 2, "repetitions": 20, "trying_fps": 15_000, "lower_fps": 10_000, "upper_fps": None}
    return Status(**(given | {"trials_done": 3, "trials_left": 7, "remaining_s": 213.0} | members))


def test_the_live_line_shows_rate_bracket_what_is_left_and_the_running_trial() -> None:
    console = Console(width=200, file=io.StringIO(), force_terminal=True, color_system=None)
    with Live(console=console, auto_refresh=False) as shown:
        live.LiveObserver(shown).update(a_status(note="trial 2 was invalid", progress=Progress(elapsed_s=3.0, sent=45_000, received=44_999)))
        shown.refresh()
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]  # a dumb terminal has 80 columns, whatever is asked for
    line = "84 B, 2/20: trying 15,000 frames/s (passed 10,000, not -); 7 trials, 3 min 33 s left (3 s: sent 45,000, received 44,999)"
    assert line in text
    assert "trial 2 was invalid" in text
    assert "throughput: about 7 trials, 3 min 33 s" in text
