# SPDX-License-Identifier: Apache-2.0
"""The command line: exit status, what goes to which stream, and one sentence for what is wrong. The
engine is a fake process."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import dutperf, throughput, trial, write
from dutperf import __version__
from dutperf.cli import condition_options
from dutperf.cli.commands import doctor
from dutperf.cli.commands.trial import show_and_write
from dutperf.machine.doctor import Finding
from dutperf.model import FieldMode
from dutperf.procedures.throughput import Throughput
from dutperf.setup.conditions import Foreground, Rate
from dutperf.setup.configuration import ConfigError
from plans import Everything


def test_version_of_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "dutperf-engine"
    engine.write_text("#!/bin/sh\necho 'dutperf-engine 0.0.7 (DPDK 22.11.11, instructions: x86-64-v3)'\n")
    engine.chmod(0o755)
    monkeypatch.setenv("DUTPERF_ENGINE", str(engine))
    result = dutperf("--version")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [f"dutperf {__version__}", f"engine 0.0.7 (DPDK 22.11.11, instructions: x86-64-v3): {engine}"],
    )


def test_version_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTPERF_ENGINE", "/nowhere/dutperf-engine")
    result = dutperf("--version")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, f"dutperf {__version__}")
    assert result.stdout.splitlines()[1].startswith("no engine: DUTPERF_ENGINE: /nowhere/dutperf-engine")


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
    assert (
        report["forward"]["intended"],
        report["forward"]["sent"],
        report["forward"]["received"],
        report["forward"]["lost"],
    ) == (10, 10, 10, 0)
    assert "reverse" not in report
    assert (report["frame_size"], report["frame_size_ipv4"], report["passed"], report["causes"]) == (64, 64, True, [])
    assert (report["trial"]["forward"]["rate_fps"], report["dut"]["name"], report["environment"]["engine"]) == (
        1000,
        "fake",
        "fake",
    )
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
        "--tx-burst",
        "8",
        "--directions",
        "reverse",
        "--learning-rest",
        "0.5",
    ]
    planned = json.loads(trial(config, "--json", *chosen).stdout)["trial"]
    assert "forward" not in planned
    assert (planned["seed"], planned["burst"], planned["duration_ns"], planned["drain_ns"], planned["rest_ns"]) == (
        5,
        8,
        10_000_000,
        0,
        500_000_000,
    )
    assert (
        planned["reverse"]["foreground"]["size"],
        planned["reverse"]["networks"],
        planned["reverse"]["source_port"]["mode"],
    ) == (128, 16, "increasing")


def test_the_pattern_reaches_the_trial(config: Path) -> None:
    planned = json.loads(trial(config, "--json", "--pattern", "bursts:16", "--burst-rate", "20k").stdout)["trial"]
    assert planned["forward"]["pattern"] == {"kind": "bursts", "frames": 16, "within_fps": 20_000}
    planned = json.loads(trial(config, "--json", "--pattern", "poisson").stdout)["trial"]
    assert planned["reverse"]["pattern"] == {"kind": "poisson"}
    assert "pattern" not in json.loads(trial(config, "--json", "--pattern", "constant").stdout)["trial"]["forward"]


TOLERANCES = [("0", False), ("0.5", False), ("0.999", False)]


@pytest.mark.parametrize(("tolerance", "passed"), TOLERANCES)
def test_a_trial_that_lost_everything_does_not_pass(tolerance: str, passed: bool, tmp_path: Path) -> None:
    result = trial(write(tmp_path, "Deaf"), "--json", "--loss-tolerance", tolerance)
    assert (result.exit_code, json.loads(result.stdout)["passed"]) == (1, passed)


def test_a_trial_has_the_rates_of_its_pattern(config: Path) -> None:
    options = ("--pattern", "ramp:0-2k", "--duration", "0.5", "--drain", "0", "--directions", "forward")
    report = json.loads(dutperf("trial", "--config", str(config), "--json", *options).stdout)
    assert (report["trial"]["forward"]["rate_fps"], report["forward"]["sent"]) == (1000, 500)


def test_a_trial_is_shown_again_from_its_directory(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    at_once = trial(config, "--out", out)
    assert dutperf("show", out).stdout == at_once.stdout
    assert json.loads(dutperf("show", out, "--json").stdout) == json.loads((out / "trial.json").read_text())
    for command in ("report", "export", "plot"):
        assert f"{out} holds a single trial, not a run: dutperf show {out}" in dutperf(command, out).stderr
    (out / "trial.json").write_text('{"trial": 1}')
    unreadable = dutperf("show", out)
    assert (unreadable.exit_code, "this version cannot read it" in unreadable.stderr) == (2, True)


@pytest.mark.parametrize("command", ["throughput", "trial", "export", "plot"])
def test_an_empty_directory_is_not_the_current_one(command: str, tmp_path: Path) -> None:
    done = dutperf(command, *([tmp_path] if command in ("export", "plot") else ["--lab", "loopback"]), "--out", "")
    assert (done.exit_code, "is empty: give a directory" in done.stderr) == (2, True)


def test_a_trial_states_its_frame_timeout(config: Path) -> None:
    report = json.loads(trial(config, "--json", "--drain", "0.02", "--frame-timeout-ms", "20").stdout)
    assert (report["frame_timeout_ms"], report["trial"]["frame_timeout_ns"], report["trial"]["stamping"]) == (
        20,
        20_000_000,
        "every",
    )
    assert "a frame later than 20 ms counts as lost" in trial(
        config, "--drain", "0.02", "--frame-timeout-ms", "20"
    ).stdout.replace("\n", " ")


WRONG: list[tuple[str, list[str], str]] = [
    ("neither lab nor file", ["--rate", "1"], "give either --lab or --config"),
    ("both", ["--rate", "1", "--lab", "loopback", "--config", "CONFIG"], "not both"),
    ("no file", ["--rate", "1", "--config", "/nowhere.yaml"], "--config: cannot read /nowhere.yaml: No such file"),
    ("no lab", ["--rate", "1", "--lab", "no-such-lab"], "no-such-lab"),
    ("no rate", ["--config", "CONFIG"], "--rate: is missing: give the rate per direction"),
    (
        "two rates",
        ["--config", "CONFIG", "--rate", "1", "--pattern", "ramp:1k-2k"],
        "--rate: does not go with the pattern ramp:1k-2k, which has rates of its own",
    ),
    (
        "rates that do not change",
        ["--config", "CONFIG", "--pattern", "steps:1k"],
        "--pattern: 'steps:1k' needs 2 to 1,000 rates",
    ),
    (
        "rates of an unknown maximum",
        ["--config", "CONFIG", "--pattern", "ramp:1%-2%"],
        "--pattern: a rate in % needs the media's speed",
    ),
    ("rate that is none", ["--config", "CONFIG", "--rate", "fast"], "--rate: 'fast' is not a rate"),
    (
        "rate of an unknown maximum",
        ["--config", "CONFIG", "--rate", "10%"],
        "which virtual links do not report: add the line 'media_mbps: 1000' (Mbit/s of the links) to the configuration",
    ),
    ("size below any", ["--config", "CONFIG", "--rate", "1", "--frame-size", "63"], "--frame-size"),
    (
        "size that is none",
        ["--config", "CONFIG", "--rate", "1", "--frame-size", "big"],
        "--frame-size: 'big' is neither a frame size",
    ),
    ("size twice", ["--config", "CONFIG", "--rate", "1", "--frame-size", "64,64"], "--frame-size: the same size twice"),
    (
        "two sizes",
        ["--config", "CONFIG", "--rate", "1", "--frame-size", "64,128"],
        "--frame-size: a trial has one frame size",
    ),
    ("size above any", ["--config", "CONFIG", "--rate", "1", "--frame-size", "9217"], "--frame-size"),
    (
        "foreground",
        ["--config", "CONFIG", "--rate", "1", "--foreground", "2"],
        "--foreground: '2' is not of the form N:M",
    ),
    (
        "more than all",
        ["--config", "CONFIG", "--rate", "1", "--foreground", "2:3"],
        "--foreground: foreground n:m needs m <= n, not 2:3",
    ),
    (
        "background without IPv6",
        ["--config", "CONFIG", "--rate", "1", "--foreground", "10:9"],
        "left.ipv6: is missing: --foreground 10:9",
    ),
    (
        "duration",
        ["--config", "CONFIG", "--rate", "1", "--duration", "0"],
        "--duration: should be greater than or equal to 0.001",
    ),
    ("drain", ["--config", "CONFIG", "--rate", "1", "--drain", "-1"], "--drain: should be greater than or equal to 0"),
    (
        "networks",
        ["--config", "CONFIG", "--rate", "1", "--networks", "257"],
        "--networks: should be less than or equal to 256",
    ),
    (
        "burst",
        ["--config", "CONFIG", "--rate", "1", "--tx-burst", "0"],
        "--tx-burst: should be greater than or equal to 1",
    ),
    (
        "pattern",
        ["--config", "CONFIG", "--rate", "1", "--pattern", "odd"],
        "--pattern: should be constant, poisson or bursts:FRAMES, ramp:FROM-TO,",
    ),
    (
        "burst of one",
        ["--config", "CONFIG", "--rate", "1", "--pattern", "bursts:1"],
        "--pattern: a burst has 2 to 1,000,000 frames",
    ),
    (
        "help that there is not",
        ["--config", "CONFIG", "--rate", "1", "--offloads", "magic"],
        "--offloads: should be 'receive_timestamps'",
    ),
    ("no help", ["--config", "CONFIG", "--rate", "1", "--offloads", ""], "--offloads: should be 'receive_timestamps'"),
    (
        "no bursts",
        ["--config", "CONFIG", "--rate", "1", "--burst-rate", "9"],
        "--burst-rate: has no effect without bursts (bursts:32)",
    ),
    (
        "slow bursts",
        ["--config", "CONFIG", "--rate", "10", "--pattern", "bursts:2", "--burst-rate", "9"],
        "--burst-rate: 9 frames/s within a burst are less than the mean rate, 10 frames/s",
    ),
    (
        "burst rate of an unknown maximum",
        ["--config", "CONFIG", "--rate", "1", "--pattern", "bursts:2", "--burst-rate", "100%"],
        "--burst-rate: a rate in % needs the media's speed",
    ),
    (
        "tolerance",
        ["--config", "CONFIG", "--rate", "1", "--loss-tolerance", "1"],
        "--loss-tolerance: should be less than 1",
    ),
    (
        "frame timeout",
        ["--config", "CONFIG", "--rate", "1", "--frame-timeout-ms", "0"],
        "--frame-timeout-ms: should be greater than or equal to 0.001",
    ),
    (
        "late drain",
        ["--config", "CONFIG", "--rate", "1", "--frame-timeout-ms", "2001"],
        "--frame-timeout-ms: should be at most the receiving time after the last frame (--drain), 2000 ms",
    ),
    ("ports", ["--config", "CONFIG", "--rate", "1", "--ports", "odd"], "--ports"),
    (
        "lab option without lab",
        ["--config", "CONFIG", "--rate", "1", "--lab-option", "loss=0.1"],
        "--lab-option: has no effect with --config",
    ),
    (
        "lab option without value",
        ["--lab", "loopback", "--rate", "1", "--lab-option", "loss"],
        "--lab-option: 'loss' is not of the form KEY=VALUE",
    ),
]


@pytest.mark.parametrize(("arguments", "text"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_usage_is_one_sentence_and_status_2(arguments: list[str], text: str, config: Path) -> None:
    result = dutperf("trial", *(str(config) if argument == "CONFIG" else argument for argument in arguments))
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_help_that_the_ports_do_not_offer_is_refused_not_ignored(tmp_path: Path) -> None:
    config = write(tmp_path, "Unhelpful")
    result = trial(config, "--offloads", "receive_timestamps")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "dutperf: engine.offloads: the left port does not offer receive_timestamps\n"
    assert trial(config).exit_code == 0


def test_an_error_of_a_key_that_shows_late_names_the_file_and_the_line(tmp_path: Path) -> None:
    """Of the engine, or of the traffic; as one does that shows while the file is read."""
    config = write(tmp_path, "Unhelpful")
    setup = yaml.safe_load(config.read_text())
    setup["engine"]["offloads"] = ["receive_timestamps"]
    setup["left"]["varying_address"] = {"min": 0, "max": 65535, "mode": "random"}
    config.write_text(yaml.safe_dump(setup))
    lines = config.read_text().splitlines()
    offloads, left, varying = (
        next(number for number, line in enumerate(lines, start=1) if line.strip() == f"{key}:")
        for key in ("offloads", "left", "varying_address")
    )
    texts = {
        (): f"{config}, line {offloads}: engine.offloads: the left port does not offer receive_timestamps",
        ("--foreground", "10:9"): f"{config}, line {left}: left.ipv6: is missing: --foreground 10:9 sends native IPv6",
        (
            "--networks",
            "2",
        ): "--networks: several networks and addresses that vary (left.varying_address) exclude each other",
    }
    for arguments, text in texts.items():
        assert trial(config, *arguments).stderr.startswith(f"dutperf: {text}"), trial(config, *arguments).stderr
    for side in ("left", "right"):
        setup[side] |= {"port": side, "gateway4": setup[side]["ipv4"].replace(".2/24", ".1")}
    config.write_text(yaml.safe_dump(setup))
    varying += 1  # behind gateway4
    assert trial(config).stderr.startswith(f"dutperf: {config}, line {varying}: left.varying_address: the addresses")


ENGINES = [
    ("NoAnswer", 75, "dutperf: left.gateway4: 198.18.0.1 does not answer ARP\n"),
    ("Mute", 2, "dutperf: the engine did not start: the engine ended with status 1; its last output: no huge pages\n"),
]


@pytest.mark.parametrize(("behaviour", "status", "text"), ENGINES)
@pytest.mark.parametrize("command", ["trial", "throughput"])
def test_a_tester_that_cannot_work_is_one_sentence(
    command: str, behaviour: str, status: int, text: str, tmp_path: Path
) -> None:
    config = write(tmp_path, behaviour)
    result = trial(config) if command == "trial" else throughput(config, tmp_path / "out")
    assert (result.exit_code, result.stdout, result.stderr) == (status, "", text)
    assert not (tmp_path / "out").exists()


def test_the_doctor_s_findings_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [
        Finding("cores", "ok", "2 [cores]", None),
        Finding("huge pages", "missing", "none", "sysctl vm.nr_hugepages=512"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda _machine: findings)
    result = dutperf("doctor")
    assert result.exit_code == 0
    for text in ("2 [cores]", "missing", "sysctl vm.nr_hugepages=512"):
        assert text in result.stdout


def test_without_options_the_conditions_are_those_of_the_rfcs() -> None:
    assert condition_options.chosen(Throughput, {}) == (Throughput(),)


def test_options_become_conditions() -> None:
    given = {"frame_sizes": ["84,128", "1518"], "foreground": "10:9", "max_rate": "10%", "min_rate": "1k", "seed": None}
    [made] = condition_options.chosen(Throughput, given | {"ports": FieldMode.FIXED})
    rates = {"max_rate": Rate(value=10, unit="percent"), "min_rate": Rate(value=1000, unit="fps")}
    share = Foreground(n=10, m=9)
    assert made == Throughput(frame_sizes=(84, 128, 1518), foreground=share, ports=FieldMode.FIXED, **rates)


@pytest.mark.parametrize("option", ["max_rate", "min_rate", "initial_rate", "resolution", "step", "rates"])
def test_a_rate_that_is_none_names_its_option(option: str) -> None:
    with pytest.raises(ConfigError) as caught:
        condition_options.chosen(Everything, {option: "x"})
    assert caught.value.key == "--" + option.replace("_", "-")


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("give `rate`, or `throughput_from` with a directory", "give --rate, or --throughput-from with a directory"),
        ("`frame_sizes`, `duration_s`, `lab_options`", "--frame-size, --duration, --lab-option"),
        ("the command said: `rates up`, `left.ipv6`", "the command said: `rates up`, `left.ipv6`"),
        ("`nothing` of ours", "`nothing` of ours"),
    ],
)
def test_messages_name_options_in_place_of_parameters(text: str, spelled: str) -> None:
    assert condition_options.spelled(text) == spelled


def test_an_earlier_result_is_not_overwritten(config: Path, tmp_path: Path) -> None:
    assert trial(config, "--out", tmp_path / "out").exit_code == 0
    before = (tmp_path / "out" / "trial.json").read_bytes()
    again = trial(config, "--out", tmp_path / "out")
    assert (again.exit_code, again.stdout) == (2, ""), "nothing is measured"
    assert "holds the result of another trial (trial.json)" in again.stderr
    assert (tmp_path / "out" / "trial.json").read_bytes() == before


def test_a_result_that_cannot_be_written_is_shown(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = trial(config, "--out", tmp_path / "out", "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (4, "valid")
    assert "No space left on device" in done.stderr


def test_a_single_run_does_not_overwrite_a_suite(config: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("suite.json", "summary.json"):
        (tmp_path / "out" / name).write_text("{}")
        done = throughput(config, tmp_path / "out")
        assert (done.exit_code, f"holds the results of another run ({name})" in done.stderr) == (2, True)
        (tmp_path / "out" / name).unlink()
    assert not list((tmp_path / "out").iterdir())


def test_files_of_the_user_beside_the_results_stay(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = [f"{stem}.{suffix}" for stem in ("summary", "report", "progress", "journal") for suffix in ("tmp", "new")]
    for name in names:
        (out / name).write_text("mine")
    assert throughput(config, out).exit_code == 0
    assert [(out / name).read_text() for name in names] == ["mine"] * len(names)
    assert {path.name for path in out.iterdir()} - {"report.html"} == {*names, "journal.jsonl", "summary.json"}


def test_a_trial_that_cannot_be_shown_is_written(tmp_path: Path) -> None:
    def fails() -> None:
        raise UnicodeEncodeError("ascii", "µ", 0, 1, "no such character")

    with pytest.raises(UnicodeEncodeError):
        show_and_write({"passed": True}, tmp_path, False, fails)
    assert json.loads((tmp_path / "trial.json").read_text()) == {"passed": True}
