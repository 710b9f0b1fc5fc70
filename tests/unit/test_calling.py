# SPDX-License-Identifier: Apache-2.0
"""Commands in messages and help begin as the program was called, so that they can be copied."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dutperf.cli.calling import as_called

TEXT = "to end it: dutperf lab down x, or `dutperf throughput`; a fault of dutperf or another"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in a directory that the shell does not search."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dutperf"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return program


def test_in_a_source_tree_commands_have_its_path(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(program), "lab"])
    assert as_called(TEXT) == (
        f"to end it: {program} lab down x, or `{program} throughput`; a fault of dutperf or another"
    )


def test_what_the_shell_finds_has_its_name_alone(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(program), "lab"])
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin")
    assert as_called(TEXT) == TEXT


def test_another_program_says_dutperf(monkeypatch: pytest.MonkeyPatch) -> None:
    for called in ("", "/usr/bin/pytest", "siitperf-tp"):
        monkeypatch.setattr(sys, "argv", [called])
        assert as_called(TEXT) == TEXT


def test_help_and_messages_have_it(program: Path) -> None:
    program.write_text(f"#!{sys.executable}\nfrom dutperf.cli import main\nmain()\n")
    environment = os.environ | {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    for command, said in ((["lab", "list"], "lab show NAME"), (["lab", "down", "--help"], "lab down kernel-ipv4")):
        done = subprocess.run([program, *command], capture_output=True, text=True, env=environment, check=True)
        assert f": {program} {said}\n" in done.stdout + done.stderr
