# SPDX-License-Identifier: Apache-2.0
"""Examples, completion and manual pages: all from the commands themselves, and true of them."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from command_syntax import parse
from dutperf import procedures
from dutperf.cli import app, examples, panels, reference
from dutperf.journal import JOURNAL
from dutperf.otg.model import SPECIFICATION
from dutperf.run.suite import SUITE
from dutperf.setup.conditions import FRAME_SIZE_SERIES, EveryTrial
from dutperf.setup.option import OUTPUT, TRIAL, all_offered

PAGES = {" ".join(page.words): page for page in reference.pages()}
COMMANDS = sorted(name.removeprefix("dutperf ") for name in PAGES if name != "dutperf")


def test_every_command_has_an_example_and_every_example_a_command() -> None:
    assert sorted([*examples.EXAMPLES, *procedures.NAMES]) == COMMANDS


def test_the_generated_lists_have_every_command_and_procedure() -> None:
    made = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "command_index"))
    assert made["NAMES"].read_text() == made["names"](), "run make format"
    assert made["INDEX"].read_text() == made["index"](), "run make format"
    assert made["MODELS"].read_text() == made["models"](), "run make format"
    assert made["COMBINATIONS"].read_text() == made["combined"](), "run make format"
    assert made["FRAMES"].read_text() == made["headers_and_fields"](), "run make format"
    if f"snappi {SPECIFICATION}." in made["OTG"].read_text():  # another version has other fields that are refused
        assert made["OTG"].read_text() == made["covered"](), "run make format"


@pytest.mark.parametrize("command", [["--help"], ["lab", "list"]])
def test_what_needs_no_procedure_imports_none(command: list[str]) -> None:
    """A person waits for it, and for completion at every key."""
    code = (
        "import sys\nfrom dutperf.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name in ('numpy', 'dutperf.procedures', 'dutperf.setup.conditions')])"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example_that_the_command_line_understands(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "220", "TERMINAL_WIDTH": "220"})
    assert shown.exit_code == 0
    assert f"Example: {examples.line(command)}" in " ".join(shown.stdout.split())
    parse(examples.line(command))


@pytest.mark.parametrize("command", ["throughput", "frame-loss", "address-ageing", "trial", "replay FILE"])
def test_help_begins_with_what_a_newcomer_needs(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split()[:1], "--help"], env={"COLUMNS": "220", "TERMINAL_WIDTH": "220"})
    titles = re.findall(r"╭─ (.+?) ─", shown.stdout)
    assert titles == [title for title in ("Arguments", "Options", *panels.ORDER) if title in titles]
    assert set(titles) >= {panels.FIRST, panels.SETUP, TRIAL, OUTPUT}
    first = shown.stdout.partition(f" {panels.FIRST} ")[2].partition("╰")[0]
    assert re.findall(r"^│ (--[a-z-]+)", first, re.MULTILINE)[:2] == ["--lab", "--config"]
    assert "--drain" not in first


def test_an_option_of_every_trial_is_about_the_same_in_every_command() -> None:
    of_each: dict[str, set[str]] = {}
    for one in all_offered(EveryTrial):
        of_each.setdefault(one.name, set()).add(one.option.panel)
    ambiguous = {name for name, found in of_each.items() if len(found - {""}) > 1}
    assert ambiguous <= set(panels.MOST_USED)  # which have a panel by their names
    assert {panel for found in of_each.values() for panel in found} <= {"", *panels.ORDER}


def test_every_command_is_listed_in_a_group() -> None:
    [page] = [page for page in PAGES.values() if page.words == ("dutperf",)]
    groups = [panel for panel, _ in groupby(entry.panel for entry in page.commands)]
    assert len(groups) == len(set(groups)) == 6
    assert {entry.name: entry.panel for entry in page.commands}["ndp-capacity"].startswith("Switches")
    assert "Commands" not in groups


def test_a_command_that_does_not_exist_or_an_option_that_is_wrong_is_no_example() -> None:
    for wrong in (
        "dutperf measure --lab x",
        "dutperf trial --speed 5",
        "dutperf lab up",
        "dutperf trial --lab nolab --rate 5",
        "dutperf show a b",
    ):
        with pytest.raises(AssertionError):
            parse(wrong)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_reference_names_every_option(page: reference.Page) -> None:
    for text in (reference.markdown(page), reference.man(page).replace("\\-", "-")):
        for entry in (*page.options, *page.arguments, *page.commands):
            assert entry.name in text
        assert (page.example or "") in text
    command = typer.main.get_command(app)
    for word in page.words[1:]:
        command = command.commands[word]  # type: ignore[attr-defined]
    declared = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert declared <= {name for entry in page.options for name in re.findall(r"--[a-z0-9-]+", entry.name)}


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_manual_pages_are_understood_by_groff_without_a_warning(tmp_path: Path) -> None:
    written = reference.write_man(tmp_path)
    assert {path.name for path in written} >= {"dutperf.1", "dutperf-throughput.1", "dutperf-lab-up.1"}
    for path in written:
        shown = subprocess.run(
            ["groff", "-ww", "-man", "-Tutf8", "-Kutf8", "-P-cbou", str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stderr == ""
        assert "NAME" in shown.stdout
        assert "SYNOPSIS" in shown.stdout


def complete(line: str, directory: Path | None = None) -> set[str]:
    """What bash is offered at the end of ``line``."""
    words = line.split(" ")
    variables = {"_DUTPERF_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    environment = os.environ | variables | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    made = subprocess.run(
        [sys.executable, "-m", "dutperf"], env=environment, cwd=directory, capture_output=True, text=True, check=True
    )
    return set(made.stdout.split("\n")) - {""}


def test_the_shell_is_told_how_to_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1"
    )  # by the name given, not by the shell that runs the tests: make's has none
    for shell in ("bash", "zsh", "fish"):
        shown = CliRunner().invoke(app, ["--show-completion", shell], prog_name="dutperf")
        assert shown.exit_code == 0
        assert "_DUTPERF_COMPLETE" in shown.stdout


def test_commands_labs_and_their_options_are_completed() -> None:
    assert complete("dutperf t") == {
        "trial",
        "throughput",
        "traffic",
        "table-capacity",
        "teardown-rate",
        "trend",
        "testbeds",
    }
    assert complete("dutperf throughput --lab ke") == {
        *("kernel-ipv4", "kernel-ipv6", "kernel-vm", "kernel-vm-nat44"),
    }
    assert complete("dutperf trial --lab kernel-ipv4 --lab-option l") == {"limit_fps=", "loss="}
    assert complete("dutperf lab up tayga-siit --lab-option max") == {"max_frame_size="}
    assert complete("dutperf lab down tay") == {"tayga-siit", "tayga-nat64", "tayga-464xlat"}
    assert complete("dutperf selftest --only c") == {"calibration"}
    assert complete("dutperf latency --definition rfc2") == {"rfc2544"}
    assert complete("dutperf trial --frame-size rfc8219") == {
        name for name in FRAME_SIZE_SERIES if name.startswith("rfc8219")
    }


def test_directories_with_results_are_completed(tmp_path: Path) -> None:
    for name, file in (("results/one", JOURNAL), ("results/two", SUITE), ("alone", JOURNAL), ("others/x", "x.txt")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / file).write_text("")
    assert complete("dutperf show ", tmp_path) == {"results/one", "results/two", "alone"}
    assert complete("dutperf resume results/t", tmp_path) == {"results/two"}
    assert complete("dutperf pdv --lab loopback --throughput-from r", tmp_path) == {"results/one", "results/two"}
    assert complete(f"dutperf report {tmp_path}/al", tmp_path) == {f"{tmp_path}/alone"}
