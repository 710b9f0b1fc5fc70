# SPDX-License-Identifier: Apache-2.0
"""What is missing is named with the command that installs it, which works on this installation."""

from __future__ import annotations

import ast
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

import dutperf
from dutperf import installation
from dutperf.cli import examples
from dutperf.invocation import as_root

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package were Debian's."""
    monkeypatch.setattr(installation, "HERE", Path("/usr/lib/python3/dist-packages/dutperf"))


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if a wheel were installed in a virtual environment whose path has a space."""
    monkeypatch.setattr(installation, "HERE", tmp_path / "lib/python3.13/site-packages/dutperf")
    monkeypatch.setattr(sys, "executable", "/my venv/bin/python")


def test_the_source_tree_is_found() -> None:
    assert installation.source_tree() == ROOT


def test_in_a_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/t/.venv/bin/python")
    assert installation.engine() == f"make -C {ROOT} build"
    assert re.search("^build:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert installation.library("pyarrow", "parquet") == (
        f"/t/.venv/bin/python -m pip install --editable '{ROOT}[parquet]'"
    )


@pytest.mark.usefixtures("debian")
def test_of_debian_s_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program: "/usr/bin/apt-get")
    assert installation.source_tree() is None
    assert installation.engine() == "apt-get install ./dutperf-engine_*.deb"
    assert installation.library("matplotlib", "plots") == "apt-get install python3-matplotlib"
    assert installation.library("pyarrow", "parquet").startswith(
        "python3 -m venv --system-site-packages ~/dutperf-venv && ~/dutperf-venv/bin/pip install pyarrow, then "
    )


@pytest.mark.usefixtures("wheel")
def test_of_a_wheel() -> None:
    assert installation.engine().startswith("'/my venv/bin/python' -m pip install --force-reinstall build/wheel/")
    assert installation.library("matplotlib", "plots") == "'/my venv/bin/python' -m pip install 'dutperf[plots]'"


@pytest.mark.parametrize(("apt", "said"), [("/usr/bin/apt-get", "apt-get install a b"), (None, "Debian calls a b")])
def test_a_system_without_apt_is_not_told_to_use_it(
    apt: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program: apt)
    assert said in installation.package("a", "b")


def test_every_extra_that_is_named_has_the_library() -> None:
    calls = [
        node
        for path in Path(dutperf.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require"
    ]
    named = [ast.literal_eval(call.args[1]) for call in calls]
    assert {"plots", "parquet", "serve", "otg"} <= set(named) <= EXTRAS.keys()


def test_no_other_place_words_such_a_command_or_names_a_page() -> None:
    for path in Path(dutperf.__file__).parent.rglob("*.py"):
        if path.name != "installation.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert not re.search(r"(apt-get|apt|pip) install |make (setup|build)\b", node.value), path
                    assert "docs/" not in node.value or id(node) in docstrings, path


def test_a_page_is_named_as_the_source_tree_has_it() -> None:
    assert Path(installation.page("store")).read_text(encoding="utf-8") == (ROOT / "docs/store.md").read_text()


@pytest.mark.usefixtures("debian")
def test_a_page_is_named_as_the_package_has_it() -> None:
    assert "\nMore: /usr/share/doc/dutperf/labs.md" in examples.epilog("lab up")
    packaging = ROOT / "packaging" / "debian"
    assert "docs/*.md" in (packaging / "dutperf.docs").read_text().splitlines()
    assert "dh_compress --exclude=.md" in (packaging / "rules").read_text()


@pytest.mark.usefixtures("wheel")
def test_a_page_is_not_in_a_wheel() -> None:
    assert installation.page("store") == "docs/store.md of the source tree"


def test_as_root_is_the_same_command_with_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/dutperf", "trial", "--lab", "kernel-ipv4", "--webhook", "https://h/s"])
    assert as_root() == f"sudo {tmp_path}/.venv/bin/dutperf trial --lab kernel-ipv4 --webhook https://h/..."
    monkeypatch.setattr(sys, "argv", ["/usr/lib/python3/dist-packages/pytest/__main__.py"])
    assert as_root() == "run it as root"
