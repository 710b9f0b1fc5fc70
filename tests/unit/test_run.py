# SPDX-License-Identifier: Apache-2.0
"""Plans: what they may say, and that the command does what they say. The engine is a fake process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import dutperf
from dutperf.cli import plan_file
from dutperf.procedures.latency import Latency
from dutperf.procedures.pdv import Pdv
from dutperf.setup.conditions import FRAME_SIZE_SERIES, Rate
from dutperf.setup.configuration import ConfigError
from fakes import fake_engine

QUICK = "duration: 0.01, drain: 0, repetitions: 2"


@pytest.fixture
def setup(tmp_path: Path) -> Path:
    sides = {"left": "198.18.0.2/24", "right": "198.19.0.2/24"}
    ports = {side: {"port": "null", "version": 4, "ipv4": address} for side, address in sides.items()}
    (tmp_path / "setup.yaml").write_text(
        yaml.safe_dump({"engine": {"command": [sys.executable, fake_engine.__file__, "Engine"]}, **ports})
    )
    return tmp_path


def plan(directory: Path, text: str) -> Path:
    path = directory / "plan.yaml"
    path.write_text(text)
    return path


WHOLE = f"""
config: setup.yaml
all: {{{QUICK}, frame-sizes: [64, 128], networks: [1, 256]}}
procedures:
  latency: {{duration: 0.2, tags: 10, tag-after: 0.1}}
  throughput: {{max-rate: 8k, initial-rate: 1000, resolution: 500}}
  frame-loss: {{rates: [1000, 3k], repetitions: 1}}
"""


def test_a_plan_becomes_conditions(setup: Path) -> None:
    planned = plan_file.load(plan(setup, WHOLE))
    assert planned.source.file == setup / "setup.yaml"
    assert [(definition.name, conditions.networks) for definition, conditions in planned.wanted] == [
        (name, networks) for name in ("latency", "throughput", "frame-loss") for networks in (1, 256)
    ]
    latency, throughput, loss = (planned.wanted[index][1] for index in (0, 2, 4))
    assert {one.frame_sizes for one in (latency, throughput, loss)} == {(64, 128)}
    assert (latency.duration_s, latency.drain_s, latency.repetitions, latency.tags, latency.tag_after_s) == (
        0.2,
        0,
        2,
        10,
        0.1,
    )
    assert (throughput.duration_s, throughput.max_rate, throughput.initial_rate) == (
        0.01,
        Rate.parse("8k"),
        Rate.parse("1000"),
    )
    assert (loss.rates, loss.repetitions) == ((Rate.parse("1000"), Rate.parse("3k")), 1)


def test_a_plan_says_how_many_queues(setup: Path) -> None:
    planned = plan_file.load(plan(setup, "config: setup.yaml\nqueues: 3\nprocedures: {throughput: }"))
    with planned.source.setup(1522) as made:
        assert made.engine.queues == 3
    with plan_file.load(plan(setup, "config: setup.yaml\nprocedures: {throughput: }")).source.setup(1522) as made:
        assert made.engine.queues == 1


def test_a_plan_says_what_offloads_are_used(setup: Path) -> None:
    planned = plan_file.load(
        plan(setup, "config: setup.yaml\noffloads: [receive_timestamps]\nprocedures: {throughput: }")
    )
    with planned.source.setup(1522) as made:
        assert made.engine.offloads == ("receive_timestamps",)


def test_a_boolean_needs_no_quotes(setup: Path) -> None:
    text = "lab: tayga-siit\nprocedures: {latency: {subtract-calibration: true}}"
    [(_, conditions)] = plan_file.load(plan(setup, text)).wanted
    assert isinstance(conditions, Latency)
    assert conditions.subtract_calibration
    with pytest.raises(ConfigError, match=r"latency\.tags: is true or false, as YAML reads yes, no, on and off"):
        plan_file.load(plan(setup, text.replace("subtract-calibration", "tags")))


def test_a_procedure_without_options_has_those_of_its_clause(setup: Path) -> None:
    planned = plan_file.load(
        plan(setup, "lab: tayga-siit\nlab-options: {max_frame_size: 1600}\nprocedures: {latency: , pdv: }")
    )
    assert (planned.source.lab, planned.source.lab_options) == ("tayga-siit", {"max_frame_size": "1600"})
    assert [conditions for _, conditions in planned.wanted] == [
        Latency(duration_s=120.0),
        Pdv(),
    ]


MIXES = [
    ("2:1", [(2, 1)]),
    ("[2:2, 10:9]", [(2, 2), (10, 9)]),
    ("rfc8219", [(2, 2), (10, 9), (2, 1), (10, 1)]),
    ("rfc5180", [(10, 9), (2, 1), (10, 1)]),
]


@pytest.mark.parametrize(("text", "mixes"), MIXES)
def test_mixes_of_native_traffic(text: str, mixes: list[tuple[int, int]], setup: Path) -> None:
    planned = plan_file.load(plan(setup, f"lab: tayga-siit\nall: {{foreground: {text}}}\nprocedures: {{throughput: }}"))
    assert [(conditions.foreground.n, conditions.foreground.m) for _, conditions in planned.wanted] == mixes


def test_what_stands_under_all_is_for_procedures_that_have_it(setup: Path) -> None:
    text = "lab: tayga-siit\nall: {duration: 2}\nprocedures: {back-to-back: {max-rate: 40k}, pdv: }"
    bursts, delays = plan_file.load(plan(setup, text)).wanted
    assert (bursts[0].name, "duration_s" in bursts[1].stated(), delays[1].duration_s) == ("back-to-back", False, 2)


def test_the_frame_sizes_of_a_standard(setup: Path) -> None:
    [(_, conditions)] = plan_file.load(
        plan(setup, "lab: tayga-siit\nprocedures: {throughput: {frame-sizes: rfc8219}}")
    ).wanted
    assert (conditions.series, conditions.sizes_are_given) == ("rfc8219", False)
    assert FRAME_SIZE_SERIES["rfc8219"] == (64, 128, 256, 512, 768, 1024, 1280, 1518)


WRONG = [
    ("- 1", "is not a mapping"),
    ("procedures: {throughput: }", "lab: give either lab or config"),
    ("lab: a\nconfig: b\nprocedures: {throughput: }", "line 1: lab: give either lab or config, not both"),
    ("lab: [a]\nprocedures: {throughput: }", "line 1: lab: is not a name"),
    ("config: a\nlab-options: {b: 1}\nprocedures: {throughput: }", "line 2: lab-options: has no effect with config"),
    ("lab: no\nprocedures: {pdv: }", "line 1: lab: is true or false, as YAML reads yes, no, on and off: give a number"),
    (
        "lab: a\nlab-options:\n  b: 1\n  jitter: no\nprocedures: {pdv: }",
        "line 4: lab-options.jitter: is true or false, as YAML reads yes, no, on and off: give a number, or put a text",
    ),
    ("lab: a\nlab-options: {b: [1]}\nprocedures: {pdv: }", "lab-options.b: should be a number or a text (it is [1])"),
    ("lab: a\nlab-options: {b: }\nprocedures: {pdv: }", "lab-options.b: should be a number or a text (it is None)"),
    ("lab: a\nprocedures: {pdv: {pattern: [no]}}", "procedures.pdv.pattern: is true or false, as YAML reads yes, no"),
    ("lab: a\nqueues: 0\nprocedures: {pdv: }", "line 2: queues: should be a number from 1 to 16"),
    ("lab: a\nqueues: many\nprocedures: {pdv: }", "line 2: queues: should be a number from 1 to 16"),
    ("lab: a\noffloads: receive_timestamps\nprocedures: {pdv: }", "line 2: offloads: is not a list of names"),
    ("lab: a\noffloads: [magic]\nprocedures: {pdv: }", "line 2: offloads: should be 'receive_timestamps'"),
    ("lab: a", "procedures: is missing"),
    ("lab: a\nprocedures: throughput", "line 2: procedures: is not a mapping"),
    ("lab: a\nprocedures:\n  thoughput:", "line 3: procedures.thoughput: unknown key; did you mean throughput?"),
    ("lab: a\nprocedures:\n  pdv: {tags: 5}", "line 3: procedures.pdv.tags: unknown key; did you mean stamps?"),
    ("lab: a\nall: {tagz: 5}\nprocedures: {latency: }", "line 2: all.tagz: unknown key; did you mean tags?"),
    ("lab: a\nall: {growth: 5%}\nprocedures: {latency: }", "line 2: all.growth: unknown key; there are"),
    (
        "lab: a\nall: {duration: 0}\nprocedures: {latency: }",
        "line 2: all.duration: should be greater than or equal to 0.001",
    ),
    (
        "lab: a\nall: {duration: 9}\nprocedures:\n  latency:\n    duration: long",
        "line 5: procedures.latency.duration: 'long' is not a number",
    ),
    ("lab: a\nall: {frame-sizes: [64.0]}\nprocedures:\n  latency:", "line 2: all.frame-sizes: '64.0' is neither"),
    ("lab: a\nprocedures:\n  latency: {frame-size: 0x4g}", "line 3: procedures.latency.frame-size: '0x4g' is neither"),
    ("all: {}\nconfig: nope.yaml\nprocedures: {throughput: }", "line 2: config: there is no "),
    ("lab: a\nprocedures:\n  latency: {rate: fast}", "line 3: procedures.latency.rate: 'fast' is not a rate"),
    ("lab: a\nprocedures:\n  latency: {rate: [1, 2]}", "line 3: procedures.latency.rate: takes one value, not a list"),
    (
        "lab: a\nprocedures:\n  latency: {rate: {a: 1}}",
        "line 3: procedures.latency.rate: should be a number, a text, or a list of them",
    ),
    ("lab: a\nprocedures:\n  latency: {from: nowhere}", "line 3: procedures.latency.from: "),
    (
        "lab: a\nprocedures:\n  latency: {frame-size: [64, 64]}",
        "line 3: procedures.latency.frame-size: the same size twice",
    ),
    (
        "lab: a\nprocedures:\n  latency: {frame-sizes: rfc1}",
        "'rfc1' is neither a frame size in bytes nor one of the series rfc2544",
    ),
    ("lab: a\nprocedures:\n  latency: {networks: [1, 1]}", "line 3: procedures.latency.networks: the same value twice"),
    (
        "lab: a\nprocedures:\n  latency: {networks: few}",
        "line 3: procedures.latency.networks: 'few' is not a number",
    ),
    (
        "lab: a\nprocedures:\n  latency: {foreground: [2:1, 4:2]}",
        "line 3: procedures.latency.foreground: the same value twice",
    ),
    ("lab: a\nlab: b", "line 2: lab: is given twice"),
    (
        "lab: a\nprocedures:\n  latency:\n    frame-size: 64\n    frame-sizes: rfc2544",
        "line 5: procedures.latency.frame-sizes: is another name of frame-size: give one of both",
    ),
    (
        "lab: a\nall:\n  frame-sizes: 128\n  frame-size: 64\nprocedures: {latency: }",
        "line 4: all.frame-size: is another name of frame-sizes: give one of both",
    ),
    ("lab: [", "is not valid YAML"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_a_plan_may_not_say_is_named_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_file.load(plan(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "plan.yaml"))
    assert words in str(caught.value)


def test_the_plan_in_the_documentation_is_one(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()
    planned = plan_file.load(plan(tmp_path, text.split("```yaml\n")[1].split("```")[0]))
    assert [definition.name for definition, _ in planned.wanted] == ["throughput", "latency", "pdv", "frame-loss"]
    assert {conditions.frame_sizes for _, conditions in planned.wanted} == {(84, 512, 1518)}


def test_a_plan_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    result = dutperf("run", tmp_path / "none.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (
        2,
        "",
        f"dutperf: cannot read {tmp_path / 'none.yaml'}: No such file or directory\n",
    )


RUNS = [f"{name}{mix}" for mix in ("", "-networks256") for name in ("throughput", "latency", "frame-loss")]


def test_a_plan_is_run_under_one_command(setup: Path) -> None:
    out = setup / "out"
    result = dutperf("run", plan(setup, WHOLE), "--out", out, "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary == json.loads((out / "summary.json").read_text())
    assert [part["name"] for part in summary["measurements"]] == RUNS
    assert all((out / name / "journal.jsonl").exists() for name in RUNS)
    assert [point["rate_fps"] for point in summary["measurements"][1]["summary"]["points"]] == [8000, 8000]
    assert "measurement 5 of 6: latency-networks256" in result.stderr


def timeless(told: Any) -> Any:
    for part in told["measurements"]:
        del part["summary"]["environment"]["started"]
    return told


def test_a_plan_that_was_cut_off_goes_on(setup: Path) -> None:
    out = setup / "out"
    expected = timeless(json.loads(dutperf("run", plan(setup, WHOLE), "--out", out, "--json").stdout))
    for name in RUNS[2:]:
        for path in (out / name).iterdir():
            path.unlink()
        (out / name).rmdir()
    journal = (out / RUNS[1] / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / RUNS[1] / "journal.jsonl").write_bytes(b"".join(journal[:5]))
    (setup / "setup.yaml").write_text((setup / "setup.yaml").read_text() + "\nmedia_mbps: 7\n")
    result = dutperf("resume", out, "--json")
    assert result.exit_code == 0, result.stderr
    assert timeless(json.loads(result.stdout)) == expected
    again = dutperf("resume", out)
    assert again.exit_code == 0
    assert "is complete" in again.stderr
    assert "frame-loss-networks256" in again.stdout


def test_latency_without_a_rate_measures_the_throughput_first(setup: Path) -> None:
    out = setup / "out"
    quick = ("--duration", "0.01", "--drain", "0", "--repetitions", "2", "--tag-after", "0", "--tags", "1")
    result = dutperf("latency", "--config", setup / "setup.yaml", *quick, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert (out / "throughput" / "summary.json").exists()
    assert "measurement 2 of 2: latency" in result.stderr
    assert "packet" not in result.stdout
    after = dutperf(
        "pdv", "--config", setup / "setup.yaml", *quick[:6], "--throughput-from", out, "--out", setup / "pdv", "--json"
    )
    assert after.exit_code == 0, after.stderr
    [point], [found] = (
        json.loads(after.stdout)["points"],
        json.loads((out / "throughput" / "summary.json").read_text())["points"],
    )
    assert point["rate_fps"] == found["throughput_fps"]["median"]


def test_several_mixes_of_one_procedure_are_a_suite(setup: Path) -> None:
    out = setup / "out"
    quick = ("--duration", "0.01", "--drain", "0", "--repetitions", "1")
    result = dutperf(
        "frame-loss", "--config", setup / "setup.yaml", *quick, "--rates", "1000", "--networks", "1,16", "--out", out
    )
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "frame-loss",
        "frame-loss-networks16",
        "suite.json",
        "summary.json",
    ]
