# SPDX-License-Identifier: Apache-2.0
"""``dutperf resume``, and what ends a run before its time. The engine is a fake process."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import command_line
from command_line import QUICK, SEARCH, FakeLabs, dutperf, setup_of, throughput, trial
from dutperf import lab
from dutperf.engine.client import EngineTester


def test_an_interruption_ends_with_130_and_keeps_what_was_measured(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EngineTester, "run", interrupted)
    assert trial(config).exit_code == 130
    result = throughput(config, tmp_path / "out")
    assert result.exit_code == 130
    assert f"the run so far is in {tmp_path / 'out'}" in result.stderr
    assert (tmp_path / "out" / "summary.json").exists()


def cut_off(directory: Path, lines: int) -> bytes:
    """What is left of a run that was killed after so many lines of its journal, in the middle of
    the next."""
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
    config.write_text(config.read_text() + "\nmedia_mbps: 7\n")
    result = dutperf("resume", out, "--json")
    assert (result.exit_code, timeless(result.stdout)) == (0, expected)
    assert (out / "journal.jsonl").read_bytes().startswith(kept + b'{"event": "resumed"')
    assert json.loads((out / "summary.json").read_text()) == json.loads(result.stdout)


def test_commands_are_taken_from_the_configuration_not_from_the_journal(config: Path, tmp_path: Path) -> None:
    """A journal may come from anybody, and resume runs as root."""
    out, log = tmp_path / "out", tmp_path / "log"
    whole = yaml.safe_load(config.read_text())
    whole["dut"]["commands"] = {"set_up": f"echo secret-word >> {log}", "state": "echo up"}
    config.write_text(yaml.safe_dump(whole))
    dutperf("throughput", *SEARCH, "--config", config, "--out", out)
    assert "secret-word" not in (out / "journal.jsonl").read_text()
    cut_off(out, 9)
    moved = config.rename(tmp_path / "moved.yaml")
    refused = dutperf("resume", out)
    assert refused.exit_code == 2
    assert "journals do not keep its commands" in refused.stderr
    assert dutperf("resume", out, "--config", moved).exit_code == 0
    assert log.read_text().split() == ["secret-word", "secret-word"]
    cut_off(out, 9)
    del whole["dut"]["commands"]["set_up"]
    moved.write_text(yaml.safe_dump(whole))
    other = dutperf("resume", out, "--config", moved)
    assert other.exit_code == 2
    assert "has other commands for the DUT than the run had (set_up, state)" in other.stderr


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
    expected = timeless(
        dutperf("throughput", "--lab", "one", "--lab-option", "loss=0.1", *SEARCH, "--out", out, "--json").stdout
    )
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
    ("content", "words"),
    [
        (None, "holds no journal"),
        ("", "has no first line, the plan"),
        ('{"event": "plan", "format": 9}\n', "format 9"),
    ],
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
    assert "the run cannot be resumed: " in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("real_reports")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_disk_that_is_full_for_the_report_alone_is_said_and_the_results_stay(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The report can be made again, so the status is that of the measurement."""
    config, out = command_line.write(tmp_path, "Engine"), tmp_path / "out"
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if bytes(data[:15]).lower() == b"<!doctype html>":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    result = throughput(config, out, *(["--json"] if as_json else []))
    monkeypatch.undo()
    said = f"cannot write the report: cannot write {out / 'report.html'}: No space left on device"
    assert f"dutperf: {said}; try again with: dutperf report {out}\n" in result.stderr
    assert (result.exit_code, "report.html" in result.stdout) == (0, False)
    assert not (out / "report.html").exists()
    assert dutperf("report", out).exit_code == 0
    assert (out / "report.html").exists()


def test_a_full_disk_ends_with_status_4_takes_the_lab_down_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
    assert f"resume with: dutperf resume {out}" in result.stderr
    assert not labs.up
    monkeypatch.setattr(lab, "bring_up", labs.bring_up)
    assert dutperf("resume", out).exit_code == 0
    assert not labs.up
