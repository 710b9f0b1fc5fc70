# SPDX-License-Identifier: Apache-2.0
"""What packages are made from: one version, one list of what is inside, targets that there are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import dutperf
from dutperf.machine import programs

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/tests.yaml").read_text())


def test_there_is_one_version() -> None:
    done = subprocess.run([ROOT / "scripts/version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == dutperf.__version__


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    notes = subprocess.run([ROOT / "scripts/release_notes"], capture_output=True, text=True, check=True).stdout
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert notes.strip()
    assert notes.strip() in changelog.partition(f"## {dutperf.__version__}")[2]
    assert "\n## " not in notes


def test_there_are_no_notes_of_a_version_that_never_was() -> None:
    done = subprocess.run([ROOT / "scripts/release_notes", "0.0.99"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "0.0.99" in done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "packaging/bundled").glob("*.txt")), ids=lambda path: path.stem)
def test_what_comes_inside_is_pinned_by_version_and_content(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w-]+==[\d.]+( --hash=sha256:[0-9a-f]{64})+", line), line


def test_the_workflow_runs_targets_that_there_are() -> None:
    lines = [step.get("run", "") for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    run = {word for line in lines for made in re.findall(r"^make ((?:[a-z0-9-]+ ?)+)", line) for word in made.split()}
    assert {"check", "test", "deb", "deb-test", "wheel"} <= run <= TARGETS


def test_a_program_is_looked_for_in_the_source_tree_then_the_package_then_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, variable = "some-program", "SOME_PROGRAM"
    package = tmp_path / "src" / "dutperf"
    monkeypatch.setattr(programs, "__file__", str(package / "machine" / "programs.py"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv(variable, raising=False)
    assert programs.find_program(name, variable) is None
    for place in (tmp_path / "bin", package / "engine" / "bin", tmp_path / "build" / "engine"):
        place.mkdir(parents=True)
        (place / name).touch(mode=0o755)
        assert programs.find_program(name, variable) == str(place / name)
    monkeypatch.setenv(variable, "/elsewhere")
    assert programs.find_program(name, variable) == "/elsewhere"
