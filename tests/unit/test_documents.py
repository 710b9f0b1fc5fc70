# SPDX-License-Identifier: Apache-2.0
"""What stands in the documents is true: every command is understood, and run on a simulated tester
where that does not take long; every program runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap
from typer.testing import CliRunner

import documents
import dutperf
from command_syntax import arguments, parse
from documents import Block, blocks
from dutperf import api, lab
from dutperf.cli import app, plan_file
from dutperf.model import FieldMode
from dutperf.setup import configuration
from plans import DNS64

NOT_RUN = {
    r"dutperf throughput --config": "hours of trials of 60 s, also in virtual time",
    r"dutperf latency --config": "twenty trials of 120 s for each size",
    r"dutperf capture": "listens: tests/integration/test_capture.py",
    r"dutperf recovery": "needs a DUT that 11,000 frames/s overload: tests/integration/test_times.py",
    r"dutperf reset": "needs a DUT that can be reset: test_reset.py, tests/integration/test_times.py",
    r"dutperf lab (up|down)": "brings a lab up to stay: tests/integration/test_labs.py",
    r"dutperf doctor": "says what this machine has, and changes it with --fix: test_doctor.py",
    r"dutperf ports": "of this machine's cards, which are given away: test_machine.py",
    r"dutperf convert": "other testers' files: test_convert.py, test_otg_convert.py",
    r"dutperf compare": "of two results: test_compare.py",
    r"dutperf serve": "serves until it is stopped: test_web.py, tests/browser/test_serve.py",
    r"dutperf fleet": "for schedulers: test_jobs.py, tests/integration/test_fleet.py",
    r"dutperf resume": "after a run that was cut off: test_cli_resume.py",
}
"""Commands that are only parsed, with what they are given: how they begin, and why."""
OF_THE_SHELL = (
    r"apt install \./|podman run |cd |export PATH=|ln -s |\./|make |(sudo )?\.venv/bin/dutperf |\.venv/bin/python "
)
"""Other first words of a line."""
ELSEWHERE = {"CONTRIBUTING.md": "a procedure: test_procedures.py"}
"""Documents whose programs other tests run."""
SHELL = documents.all_blocks("sh")
YAML = [block for block in documents.all_blocks("yaml") if not re.search("^jobs:", block.text, re.MULTILINE)]
"""Without pipelines: test_ci_document.py."""
PYTHON = [
    document for document in documents.documents() if any(block.language == "python" for block in blocks(document))
]
SET_UP: dict[str, Any] = yaml.safe_load(next(block.text for block in YAML if block.document == "README.md"))


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory has a capture and the examples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(documents.ROOT / "examples")
    frame = Ether() / IP(src="198.18.0.2", dst="198.19.0.2") / UDP() / Raw(bytes(40))
    wrpcap(str(tmp_path / "capture.pcap"), [frame] * 3)


@pytest.fixture
def place(tmp_path: Path, capture: None) -> Path:  # noqa: ARG001
    """A directory with what the documents speak of: the configuration, a plan, a result, a capture."""
    (tmp_path / "gateway.yaml").write_text(yaml.safe_dump(SET_UP))
    (tmp_path / "flows.yaml").write_text(yaml.safe_dump({**SET_UP, "streams": [{"name": "call", "rate": 100}]}))
    (tmp_path / "dns64.yaml").write_text(yaml.safe_dump(DNS64))
    (tmp_path / "plan.yaml").write_text(
        "lab: tayga-siit\nall: {duration: 0.5, drain: 0, repetitions: 2}\nprocedures: {throughput: , pdv: }\n"
    )
    conditions: dict[str, Any] = {
        "frame_sizes": (84, 128, 1518),
        "duration_s": 0.5,
        "drain_s": 0,
        "repetitions": 2,
        "max_rate": "100k",
    }
    dutperf.measure(dutperf.Throughput(**conditions), "results/gateway", config="gateway.yaml")
    return tmp_path


def test_every_kind_of_block_is_known() -> None:
    assert {block.language for document in documents.documents() for block in blocks(document)} <= {
        "",
        "sh",
        "yaml",
        "python",
        "text",
    }
    assert SHELL
    assert YAML
    for block in documents.all_blocks(""):
        assert not re.search(r"^dutperf ", block.text, re.MULTILINE), f"{block} has commands: say sh"


def test_every_line_of_a_shell_is_known() -> None:
    made = set(re.findall(r"^([a-z0-9-]+):", (documents.ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in SHELL:
        for command in block.commands():
            assert re.match(rf"dutperf |{OF_THE_SHELL}", command), f"{block}: {command}"
            target = re.match(r"make ([a-z0-9-]+)", command)
            assert target is None or target[1] in made, f"{block}: {command}"


INSTALLING = [block for block in SHELL if block.text.startswith("apt install ")]


@pytest.mark.parametrize("block", INSTALLING, ids=str)
def test_what_is_installed_is_what_the_block_needs(block: Block) -> None:
    """Our own packages, and those of its labs that they do not recommend. That they can be installed is tested by
    ``make deb-test``."""
    control = (documents.ROOT / "packaging" / "debian" / "control.in").read_text()
    own = re.findall(r"^Package: ([a-z-]+)$", control, re.MULTILINE)
    [recommended] = re.findall(r"^Recommends:\n((?: .*,\n)+)", control, re.MULTILINE)
    _, _, *packages = block.commands()[0].split()
    labs = dict.fromkeys(re.findall(r"--lab ([a-z0-9-]+)", block.text))
    needed = {package for name in labs for package in lab._lab(name).programs.values()}
    needed -= set(re.findall(r"[a-z0-9-]+", recommended))
    assert sorted(packages) == sorted([*(f"./{name}_*.deb" for name in own), *needed])


def test_some_blocks_begin_with_what_is_to_be_installed() -> None:
    assert {block.document for block in INSTALLING} >= {"docs/dns64.md", "docs/transition.md"}


@pytest.mark.usefixtures("capture")
@pytest.mark.parametrize("document", documents.documents())
def test_commands_are_understood(document: str) -> None:
    in_blocks = [
        command.removeprefix(".venv/bin/")
        for block in blocks(document)
        if block.language == "sh"
        for command in block.commands()
    ]
    for command in (*in_blocks, *documents.sentences_commands(document)):
        if command.startswith("dutperf ") and not re.match(r"dutperf (NAME|PROCEDURE)\b", command):
            try:
                parse(completed(command))
            except AssertionError as error:
                assert "requires an argument" in str(error), error  # noqa: PT017  # a sentence may only name an option


def completed(command: str) -> str:
    """In a sentence a command may stand without what it needs."""
    lacking = {
        "overload": "throughput",
        "resume": "DIR",
        "show": "DIR",
        "report": "DIR",
        "plot": "DIR",
        "export": "DIR",
        "compare": "BASE OTHER",
        "replay": "FILE",
        "run": "PLAN.yaml",
    }
    words = arguments(command)
    if words and words[0] in lacking and not [word for word in words[1:] if not word.startswith("-")]:
        return f"{command} {lacking[words[0]]}"
    return command + (
        " up tayga-siit" if words == ["lab"] else " --rate 1k" if words[0] == "trial" and "--rate" not in words else ""
    )


@pytest.fixture(autouse=True)
def brief_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated tester counts all frames of a part before it is ended."""
    monkeypatch.setattr(api, "LONGEST_TRAFFIC_S", 5.0)


@pytest.mark.parametrize("block", SHELL, ids=str)
@pytest.mark.usefixtures("labs", "place")
def test_commands_run(block: Block) -> None:
    for command in block.commands():
        if command.startswith("dutperf ") and not any(re.match(known, command) for known in NOT_RUN):
            result = CliRunner().invoke(app, arguments(command))
            assert result.exit_code == 0, f"{block}: {command}: {result.stderr}"


def test_the_table_of_what_is_not_run_has_no_line_too_many() -> None:
    every = [command.removeprefix(".venv/bin/") for block in SHELL for command in block.commands()]
    for known in NOT_RUN:
        assert any(re.match(known, command) for command in every), known


@pytest.mark.parametrize("block", YAML, ids=str)
def test_yaml_is_a_plan_or_a_part_of_a_configuration(block: Block, tmp_path: Path) -> None:
    mapping = yaml.safe_load(block.text)
    if "procedures" in mapping:
        (tmp_path / "plan.yaml").write_text(block.text)
        assert plan_file.load(tmp_path / "plan.yaml").wanted
    else:
        own = "ports" in mapping or "addresses" in mapping.get("dns64", {})
        replaced = {"left", "right"} if own else set()
        configuration.parse({**{key: SET_UP[key] for key in SET_UP.keys() - replaced}, **mapping}, origin=str(block))


@pytest.mark.parametrize("document", [document for document in PYTHON if document not in ELSEWHERE])
@pytest.mark.usefixtures("labs")
def test_programs_run(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "trial-00003-forward.npy", np.zeros(3, dtype=[("delay_ns", "<i8")]))
    for block in blocks(document):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, document, "exec"), {"numpy": np})


def test_links_between_documents_lead_somewhere() -> None:
    made_from_the_code = documents.ROOT / "docs" / "commands.md"
    for document in documents.documents():
        text = (documents.ROOT / document).read_text(encoding="utf-8")
        for path in re.findall(r"\]\((?![a-z]+:|#)([^)#]+)", text):
            target = (documents.ROOT / document).parent.joinpath(path)
            assert target.exists() or target == made_from_the_code, f"{document}: {path}"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs Debian's git")
def test_the_site_is_built_without_a_warning_and_asks_no_network(tmp_path: Path) -> None:
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(documents.ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=documents.ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr.strip()) == (0, "")
    pages = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in (tmp_path / "site").rglob("*.html")
    }
    assert pages.keys() >= {"index.html", "commands.html", "labs.html", "api.html", "decisions/0003-validity.html"}
    for name, page in pages.items():
        assert not re.search(
            r'<(script|img|iframe)[^>]* src="https?:|<link rel="(stylesheet|preconnect|preload)[^>]*https?:', page
        ), name
    for option in ("--lab-option", "--subtract-calibration", "--dut-patience"):
        assert option in pages["commands.html"]
    assert "capacity_fps" in pages["labs.html"]
    assert "TimesPoint" in pages["api.html"]


def test_every_key_of_the_configuration_is_told() -> None:
    told = set(re.findall(r"`([a-z_0-9.]+)`", (documents.ROOT / "docs/configuration.md").read_text()))
    of_parts = {
        name
        for part in (configuration.EngineSettings, configuration.Side, configuration.DutCommands, configuration.Dut)
        for name in part.model_fields
    } - {"commands"}
    keys = of_parts | set(configuration.Setup.model_fields) - {"engine", "dut"}
    assert {key.rpartition(".")[2] for key in told} >= keys | set(FieldMode)
    assert {key.rpartition(".")[2] for key in told if "." in key} <= keys


def _words(text: str) -> int:
    """Without what is generated, and the bars of tables."""
    text = re.sub(r"<!-- generated.*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^\|?[ :|-]+\|[ :|-]*$", "", text, flags=re.MULTILINE)
    return len(text.replace("|", " ").split())


def test_the_documents_are_short() -> None:
    """What is added to a page takes the place of something else: users read less than they are given."""
    pages = [one for one in documents.documents() if one.startswith("docs/")]
    assert sum(_words((documents.ROOT / one).read_text(encoding="utf-8")) for one in pages) <= 32_000
    assert _words((documents.ROOT / "README.md").read_text(encoding="utf-8")) <= 1_200
    assert len((documents.ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 60
