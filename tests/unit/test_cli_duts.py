# SPDX-License-Identifier: Apache-2.0
"""What commands do with a DUT: labs are built and taken down, its own commands are run. The engine
is a fake process."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from command_line import QUICK, FakeLabs, dutperf, setup_of, throughput, trial
from dutperf import lab


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


def with_failing(directory: Path, failing: str) -> Path:
    commands = {name: f"echo {name} >> {directory / 'log'}" for name in ("set_up", "tear_down")} | {
        failing: "echo no route; exit 1"
    }
    setup = setup_of("Engine")
    setup["dut"]["commands"] = commands
    path = directory / "dut.yaml"
    path.write_text(yaml.safe_dump(setup))
    return path


@pytest.mark.parametrize(
    ("failing", "run"),
    [("set_up", ["tear_down"]), ("state", ["set_up", "tear_down"]), ("tear_down", ["set_up"])],
)
def test_a_command_of_the_dut_that_fails_is_named(failing: str, run: list[str], tmp_path: Path) -> None:
    result = throughput(with_failing(tmp_path, failing), tmp_path / "out")
    assert result.exit_code == 2
    assert re.search(
        rf"dut\.yaml, line \d: dut\.commands\.{failing}: ended with status 1; last output: no route\n", result.stderr
    )
    assert (tmp_path / "log").read_text().split() == run
    assert ("8,000" in result.stdout) == (failing == "tear_down")


def test_what_was_measured_is_told_before_the_dut_is_torn_down(tmp_path: Path) -> None:
    config = with_failing(tmp_path, "tear_down")
    measured, tried = throughput(config, tmp_path / "out", "--json"), trial(config, "--json")
    assert (measured.exit_code, tried.exit_code) == (2, 2)
    assert json.loads(measured.stdout)["points"][0]["throughput_fps"]["values"] == [8000, 8000]
    assert json.loads(tried.stdout)["verdict"] == "valid"


LAB_RUNS = [("Engine", [], 0), ("NoAnswer", [], 75), ("Killed", [], 4), ("Engine", ["--foreground", "10:9"], 2)]


@pytest.mark.parametrize(("behaviour", "arguments", "status"), LAB_RUNS)
def test_a_lab_is_taken_down_however_the_trial_ends(
    behaviour: str, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    listed = dutperf("lab", "list").stdout
    assert "tayga-siit" in listed
    assert "capacity_fps" not in listed, "options are shown lab by lab"

    monkeypatch.setattr(lab, "up", lambda name, given: tmp_path / f"{name}-{given['k']}.yaml")
    result = dutperf("lab", "up", "one", "--lab-option", "k=v")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'one-v.yaml'}\n")
    assert f"measure it with --config {tmp_path / 'one-v.yaml'}; take it down with: " in result.stderr
    assert "already" not in result.stderr
    monkeypatch.setattr(lab, "down", lambda name: name == "one")
    assert (dutperf("lab", "down", "one").exit_code, dutperf("lab", "down", "two").exit_code) == (0, 1)


def test_a_lab_is_shown_with_its_options() -> None:
    shown = dutperf("lab", "show", "refdut-ipv4").stdout
    assert "capacity_fps" in shown
    unknown = dutperf("lab", "show", "refdut")
    assert unknown.exit_code == 2
    assert "did you mean refdut-" in unknown.stderr
