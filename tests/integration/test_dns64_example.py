# SPDX-License-Identifier: Apache-2.0
"""The example that compares DNS64 servers, shortened. Root only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

EXAMPLE = Path(__file__).parents[2] / "examples" / "dns64" / "run.py"


def compared(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The example with these arguments."""
    asked = [sys.executable, EXAMPLE, *map(str, arguments)]
    return subprocess.run(asked, capture_output=True, text=True, timeout=400, check=False, env=os.environ | environment)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("unbound") is None, reason="needs Debian's unbound")
def test_each_server_has_a_row_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    short = ["--servers", "unbound", "--cached", "0,80", "--duration", "0.3", "--resolution", "50%"]
    more_than_there_are = len(os.sched_getaffinity(0)) + 1
    done = compared(*short, "--cores", f"1,{more_than_there_are}", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "dns64.md").read_text(encoding="utf-8")
    [head] = [line for line in text.splitlines() if line.startswith("| server")]
    assert [cell.strip() for cell in head.split("|")[2:5]] == ["cores", "0 %", "80 %"]
    [row] = [line for line in text.splitlines() if line.startswith("| unbound: Unbound 1.")]
    assert row.split("|")[2].strip() == "1"
    assert f"Not measured: {more_than_there_are} cores of the DUT." in text
    assert "queries/s: a self-test of the tester alone, which proves DNS64 servers of up to" in text
    assert "* deviates from RFC 8219 section 9.2: trials of 0.3 s, shorter than 60 s" in text
    assert "9.2.1" not in text
    assert (tmp_path / "dns64.svg").read_bytes().startswith(b"<?xml")
    for measured in ("self-test", "unbound-1"):
        assert (tmp_path / measured / "report.html").exists()


def test_a_server_that_there_is_not_is_named() -> None:
    done = compared("--servers", "unbound,nsd")
    assert done.returncode == 2
    assert "no server is called nsd; there are unbound, bind9, knot, pdns" in done.stderr


@pytest.mark.long
def test_a_server_whose_package_is_missing_is_left_out_in_words(tmp_path: Path) -> None:
    """Of the programs on the search path of labs, only those of the server are missing."""
    found = tmp_path / "bin"
    found.mkdir()
    for name in ("ip", "ethtool", "tc", "sysctl", "taskset", "nft", "sh"):
        if (program := shutil.which(name)) is not None:
            (found / name).symlink_to(program)
    short = ["--servers", "knot", "--cores", "1", "--cached", "0", "--duration", "0.2", "--resolution", "50%"]
    done = compared(*short, "--out", tmp_path / "out", PATH=str(found))
    assert done.returncode == 2
    assert "needs kresd, which is not installed: apt-get install knot-resolver" in done.stderr
    assert "apt-get install knot-resolver" in (tmp_path / "out" / "dns64.md").read_text(encoding="utf-8")
