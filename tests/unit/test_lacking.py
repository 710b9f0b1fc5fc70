# SPDX-License-Identifier: Apache-2.0
"""What the end of a test run says of tests that were skipped for want of packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lacking

AFTER = "skipped for want of packages; they run after:"
BUILDBOT = ".venv/bin/pip install --editable '.[fleet]'"


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ([], ""),
        (["Skipped: needs root for network namespaces", "others took up to 3 % of a core"], ""),
        (["Skipped: needs Debian's nsd"], f"1 test was {AFTER} apt-get install nsd"),
        (
            ["Skipped: needs Debian's unbound", "needs Debian's slurmd, munge", "needs Debian's unbound", "needs root"],
            f"3 tests were {AFTER} apt-get install munge slurmd unbound",
        ),
        (
            ["needs Python's '.[fleet]'", "needs Debian's nsd"],
            f"2 tests were {AFTER} apt-get install nsd && {BUILDBOT}",
        ),
    ],
)
def test_one_line_says_how_many_and_how_to_install_what_they_need(reasons: list[str], said: str) -> None:
    assert lacking.sentence(reasons) == said


def test_it_is_at_the_end_of_a_test_run() -> None:
    without_groff = {"PATH": str(Path(sys.executable).parent)}
    test = Path(__file__).with_name("test_cli_reference.py")
    arguments = ["-q", "-p", "no:cacheprovider", "--numprocesses", "1", str(test), "-k", "groff"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env=without_groff, capture_output=True, text=True, check=False
    )
    assert f"1 test was {AFTER} apt-get install groff\n" in done.stdout
