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

import documents
from command_syntax import parse
from dutperf import procedures
from dutperf.cli import app, examples, help_screen, index, panels, reference
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
    assert made["PROCEDURES"].read_text() == made["procedures_and_options"](), "run make format"
    assert made["LABS"].read_text() == made["labs_and_options"](), "run make format"
    assert made["CONDITIONS"].read_text() == made["conditions_and_defaults"](), "run make format"
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


def test_the_list_of_commands_fits_on_eighty_lines_with_one_for_each() -> None:
    lines = help_of("")
    assert len(lines) <= 80
    for panel in {panel for panel, _ in index.COMMANDS.values()}:
        each = lines[lines.index(f"{panel}:") + 1 :]
        named = [name for name, (of, _) in index.COMMANDS.items() if of == panel]
        assert [line.split()[0] for line in each[: len(named)]] == named


def help_of(command: str, columns: int = 80) -> list[str]:
    """The lines of a command's help on a terminal."""
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": str(columns)})
    assert shown.exit_code == 0, shown.output
    return shown.stdout.splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example_in_one_line_and_the_page_of_the_documents(command: str) -> None:
    *_, example, page = help_of(command)
    assert example == f"Example: {examples.line(command)}"
    parse(examples.line(command))
    assert page == f"More: {examples.page(command)}"
    assert re.search(
        rf"\b{command.split()[0]}\b", (documents.ROOT / examples.page(command)).read_text(encoding="utf-8")
    )


def test_no_page_is_of_a_command_that_does_not_exist() -> None:
    assert examples.PAGES.keys() <= {command.split()[0] for command in COMMANDS}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_help_of_an_option_has_twelve_words_at_most(page: reference.Page) -> None:
    for one in (*page.of(help_screen.ARGUMENTS), *page.of(help_screen.OPTIONS)):
        if one.name != "--show-completion":  # Typer's own
            assert 1 <= len(one.help.split()) <= 12, f"{one.name}: {one.help}"


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_help_of_a_measurement_fits_on_three_screens(columns: int) -> None:
    lines = help_of("throughput", columns)
    assert len(lines) <= 3 * 50
    assert max(len(line) for line in lines[:-2]) <= columns  # the example is one line, to be copied
    first = lines[lines.index(f"{panels.FIRST}:") + 1 : lines.index(f"{panels.SETUP}:")]
    assert [line.split()[0].rstrip(",") for line in first if line.startswith("  -")] == [
        *("--lab", "--config", "--max-rate", "--frame-size", "--duration", "--out"),
    ]
    assert lines.index(f"{panels.SETUP}:") < 50


def test_help_has_defaults_and_the_reference_also_ranges_and_variables() -> None:
    said = " ".join(" ".join(help_of("throughput")).split())
    assert "[default: 60] --out" in said
    assert "[default: constant]" in said
    assert "DUTPERF_TESTBED" not in said
    [testbed] = [one for one in PAGES["dutperf throughput"].entries if one.name == "--testbed NAME"]
    assert testbed.complete.endswith("[env var: DUTPERF_TESTBED]")
    [port] = [one for one in PAGES["dutperf serve"].entries if one.name == "--port N"]
    assert port.complete.endswith("[default: 8219; 0<=x<=65535]")


@pytest.mark.parametrize("command", ["throughput", "frame-loss", "address-ageing", "trial", "replay FILE"])
def test_help_begins_with_what_a_newcomer_needs(command: str) -> None:
    lines = help_of(command.split()[0])
    titles = [line.removesuffix(":") for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert titles == [title for title in (help_screen.ARGUMENTS, *panels.ORDER) if title in titles]
    assert set(titles) >= {panels.FIRST, panels.SETUP, TRIAL, OUTPUT}
    options = [line.split()[0] for line in lines if line.startswith("  -")]
    assert options[:2] == ["--lab", "--config"]
    assert options[-1] == "--help"


def test_an_option_of_every_trial_is_about_the_same_in_every_command() -> None:
    of_each: dict[str, set[str]] = {}
    for one in all_offered(EveryTrial):
        of_each.setdefault(one.name, set()).add(one.option.panel)
    ambiguous = {name for name, found in of_each.items() if len(found - {""}) > 1}
    assert ambiguous <= set(panels.NEEDED_FIRST)  # which have a panel by their names
    assert {panel for found in of_each.values() for panel in found} <= {"", *panels.ORDER}


def test_every_command_is_listed_in_a_group() -> None:
    [page] = [page for page in PAGES.values() if page.words == ("dutperf",)]
    groups = [panel for panel, _ in groupby(entry.panel for entry in page.of(help_screen.COMMANDS))]
    assert groups == ["Measure", "Stateful", "Switches", "Traffic by hand", "Results", "Set-up and machine"]


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
        for entry in page.entries:
            assert entry.name in text
        assert (page.example or "") in text
    command = typer.main.get_command(app)
    for word in page.words[1:]:
        command = command.commands[word]  # type: ignore[attr-defined]
    declared = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert declared <= {
        name for entry in page.of(help_screen.OPTIONS) for name in re.findall(r"--[a-z0-9-]+", entry.name)
    }


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs Debian's groff")
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
