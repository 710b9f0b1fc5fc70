# SPDX-License-Identifier: Apache-2.0
"""What other programs may rely on: the package's own functions measure as the commands do, and give
objects, rows and frames."""

from __future__ import annotations

import html
import inspect
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
import yaml
from typer.testing import CliRunner

import documented
import dutperf
from dutperf import cli, procedures
from dutperf.api import results
from dutperf.api.running import RunningTraffic, TrafficPart
from dutperf.journal import TrialEvent, of_kind
from dutperf.model import FRAME_SIZE
from dutperf.procedures.definition import Chapter
from dutperf.procedures.frame_loss import FrameLoss
from dutperf.report import export
from dutperf.results import tables
from dutperf.run import suite
from dutperf.run.suite import SuiteSummary
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.option import offered
from dutperf.statistics.stopping import Auto
from plans import DNS64, SWITCH
from recordings import capture, udp
from virtual import Labs

QUICK: dict[str, Any] = {"duration_s": 0.5, "drain_s": 0, "repetitions": 2}
SEARCH = {**QUICK, "resolution": "5%", "max_rate": "100k"}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return documented.measure(tmp_path_factory.mktemp("api") / "suite")


def test_what_is_public_is_there_typed_and_documented() -> None:
    for name in dutperf.__all__:
        public = getattr(dutperf, name)
        assert name == "__version__" or (inspect.getdoc(public) or "").strip(), name
        if inspect.isfunction(public):
            assert "return" in inspect.get_annotations(inspect.unwrap(public)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dutperf.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_package_alone_imports_nothing_heavy() -> None:
    code = (
        "import sys, dutperf, dutperf.siitperf.commands; print(*sorted({'pandas', 'polars', 'matplotlib', 'pyarrow'} &"
        " set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_a_measurement_gives_points_and_leaves_what_the_command_leaves(labs: Labs, tmp_path: Path) -> None:
    statuses: list[dutperf.Status] = []
    search = dutperf.Throughput(**SEARCH, frame_sizes=[84, 1518])
    result = dutperf.measure(search, tmp_path / "out", statuses.append, lab="refdut-siit", lab_options={"queue": 10})
    assert labs.asked == [("refdut-siit", {"queue": "10"})]
    assert (labs.up, result.is_complete, len(result.measured)) == (0, True, 1)
    points = result["throughput"].summary.points  # type: ignore[union-attr]
    assert [point.case[FRAME_SIZE] for point in points] == [84, 1518]
    assert all(35_000 < point.throughput_fps.median <= 40_200 for point in points)  # type: ignore[attr-defined]
    assert statuses[-1].trials_left == 0
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == result.summary.model_dump(mode="json")
    plan = json.loads((tmp_path / "out" / "journal.jsonl").read_text().splitlines()[0])
    assert plan["invocation"][:3] == ["dutperf.measure", "throughput", "frame_sizes=(84, 1518)"]
    assert CliRunner().invoke(cli.app, ["resume", str(tmp_path / "out")]).exit_code == 0
    assert result.write_report().read_text().lower().startswith("<!doctype html>")


@pytest.mark.usefixtures("labs")
def test_a_value_has_the_meaning_that_the_command_line_gives_it(tmp_path: Path) -> None:
    by_program = dutperf.measure(dutperf.Throughput(**SEARCH), tmp_path / "a", lab="refdut-siit")
    arguments = [
        "--lab",
        "refdut-siit",
        "--duration",
        "0.5",
        "--drain",
        "0",
        "--repetitions",
        "2",
        "--resolution",
        "5%",
        "--max-rate",
        "100k",
    ]
    by_command = CliRunner().invoke(cli.app, ["throughput", *arguments, "--out", str(tmp_path / "b"), "--json"])
    assert by_program.summary.model_dump(mode="json")["conditions"] == json.loads(by_command.stdout)["conditions"]
    assert (by_program.summary.model_dump(mode="json")["points"]) == json.loads(by_command.stdout)["points"]


@pytest.mark.usefixtures("labs")
def test_what_needs_the_throughput_measures_it_first_or_takes_what_was_found(tmp_path: Path) -> None:
    both = dutperf.measure(dutperf.Pdv(**QUICK), tmp_path / "both", lab="refdut-siit")
    assert [one.name for one in both.measured] == ["throughput", "pdv"]
    for number, found in enumerate((both, tmp_path / "both", None)):
        given = dutperf.Pdv(**QUICK, throughput_from={84: 20_000} if found is None else None)
        alone = dutperf.measure(given, tmp_path / f"alone{number}", lab="refdut-siit", throughput_from=found)
        assert [one.name for one in alone.measured] == ["pdv"]
    with pytest.raises(KeyError, match="no measurement is called ipdv; there are throughput, pdv"):
        both["ipdv"]
    with pytest.raises(dutperf.PlanError, match="no throughput of this traffic"):
        dutperf.measure(
            dutperf.Pdv(**QUICK, directions="forward"), tmp_path / "other", lab="refdut-siit", throughput_from=both
        )
    with pytest.raises(dutperf.ConfigError, match="throughput_from: only procedures at the throughput take one"):
        dutperf.measure(dutperf.Throughput(**SEARCH), lab="refdut-siit", throughput_from=both)


def test_several_measurements_and_trials_on_one_bench(labs: Labs, tmp_path: Path) -> None:
    setup = yaml.safe_load(yaml.safe_dump(documented.CONFIG))
    with dutperf.bench(config=setup) as bench:
        assert bench.setup.media_mbps == 100
        trials = [bench.trial("10%", dutperf.SingleTrial(duration_s=0.5, drain_s=0)) for _ in range(2)]
        loss = bench.measure(dutperf.FrameLoss(rates=["20k", 60_000], **QUICK), tmp_path / "loss")
        with pytest.raises(
            dutperf.ConfigError, match="frame_sizes: 9000 bytes are longer than max_frame_size=1518 of this bench"
        ):
            bench.trial(10, dutperf.SingleTrial(frame_sizes=(9000,)))
    assert [(one.trial, one.verdict) for one in trials] == [(1, dutperf.Verdict.VALID), (2, dutperf.Verdict.VALID)]
    assert [row["rates.loss_ratio.worst.median"] > 0 for row in loss.rows()] == [True, False]
    assert not labs.asked


@pytest.mark.usefixtures("labs")
def test_no_two_trials_of_a_bench_have_one_number(tmp_path: Path) -> None:
    """Else late frames of the first are received by the second."""
    quick = dutperf.SingleTrial(duration_s=0.5, drain_s=0)
    with dutperf.bench(config=yaml.safe_load(yaml.safe_dump(documented.CONFIG))) as bench:
        numbers = [bench.trial("10%", quick).trial]
        for name in ("first", "second"):
            loss = bench.measure(dutperf.FrameLoss(rates=["20k"], **QUICK), tmp_path / name)
            numbers += [event.trial.trial for one in loss for event in of_kind(one.events, TrialEvent)]
        numbers.append(bench.trial("10%", quick).trial)
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 3


@pytest.mark.usefixtures("labs")
def test_a_trial_by_itself(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(yaml.safe_dump(documented.CONFIG))
    result = dutperf.trial(60_000, dutperf.SingleTrial(duration_s=0.5, drain_s=0), config=tmp_path / "gateway.yaml")
    assert result.verdict is dutperf.Verdict.VALID
    assert {direction: counts.lost > 9_000 for direction, counts in result.directions().items()} == {
        "forward": True,
        "reverse": True,
    }


MISTAKES = [
    ({"procedure": "thruput"}, dutperf.ConfigError, "procedure: there is no 'thruput'; did you mean throughput?"),
    (
        {"lab": "refdut-siit", "duration": 5},
        dutperf.ConfigError,
        "duration: Throughput has no such condition; did you mean duration_s?",
    ),
    ({"lab": "refdut-siit", "tags": 5}, dutperf.ConfigError, "tags: Throughput has no such condition"),
    (
        {"lab": "refdut-siit", "duration_s": 0},
        dutperf.ConfigError,
        "duration_s: should be greater than or equal to 0.001",
    ),
    ({"lab": "refdut-siit", "max_rate": "fast"}, dutperf.ConfigError, "max_rate: 'fast' is not a rate"),
    (
        {"lab": "refdut-siit", "repetitions": "often"},
        dutperf.ConfigError,
        "repetitions: 'often' is neither a number nor auto",
    ),
    ({"lab": "refdut-siit", "frame_sizes": [64]}, dutperf.ConfigError, "frame_sizes: 64 bytes are impossible"),
    (
        {"lab": "refdut-siit", "goals": [0.1]},
        dutperf.PlanError,
        "goals: loss goals need `search` mlr; a binary search has one, `loss_tolerance`",
    ),
    (
        {"procedure": "back-to-back", "lab": "refdut-siit", "rate": "1k"},
        dutperf.PlanError,
        "max_rate: give the rate of the bursts",
    ),
    ({"config": "nothing.yaml", "lab_options": {"queue": 1}}, dutperf.ConfigError, "lab_options: has no effect with"),
    ({"lab": "refdut-siit", "lab_options": {"speed": 1}}, dutperf.LabError, "unknown option speed"),
    ({"lab": "refdut-siit", "config": "gateway.yaml"}, dutperf.ConfigError, "not both"),
    ({}, dutperf.ConfigError, "give either `lab` or `config`"),
    ({"config": "nothing.yaml"}, dutperf.ConfigError, "config: cannot read nothing.yaml"),
    ({"config": {"left": {}}}, dutperf.ConfigError, "the configuration"),
    ({"procedure": 5}, dutperf.ConfigError, "there is no 5"),
    ({"lab": ["refdut-siit"]}, dutperf.ConfigError, "lab: should be a name"),
    ({"lab": "refdut-siit", "lab_options": "queue=1"}, dutperf.ConfigError, "lab_options: should be a mapping"),
    (
        {"lab": "refdut-siit", "lab_options": {"queue": False}},
        dutperf.ConfigError,
        "lab_options: queue: should be a number or a text (it is False)",
    ),
    ({"lab": "refdut-siit", "lab_options": {"queue": [1]}}, dutperf.ConfigError, "lab_options: queue: should be a"),
    ({"config": "nothing\0.yaml"}, dutperf.ConfigError, "config: should be a path, which has no null characters"),
    ({"config": "n" * 5000}, dutperf.ConfigError, "config: cannot be used: File name too long (it is 'nnn"),
    (
        {"lab": "refdut-siit", "progress": "x"},
        dutperf.ConfigError,
        "progress: should be a function (it is 'x')",
    ),
    ({"lab": "refdut-siit", "duration_s": True}, dutperf.ConfigError, "duration_s: should be a number or a text, not"),
    ({"lab": "refdut-siit", "networks": [1, True]}, dutperf.ConfigError, "networks: should be a number or a text, not"),
    ({"lab": "refdut-siit", "networks": []}, dutperf.ConfigError, "networks: should be a valid integer"),
    (
        {"lab": "refdut-siit", "repetitions": 10**5000},
        dutperf.ConfigError,
        "repetitions: is a number beyond all limits",
    ),
    ({"lab": "refdut-siit", "max_rate": 0.5}, dutperf.ConfigError, "max_rate: '0.5' is not a whole number"),
    ({"lab": "refdut-siit", "max_rate": "10G"}, dutperf.ConfigError, "max_rate: '10G' is not a rate"),
    ({"lab": "refdut-siit", "frame_timeout_ms": 1e-7}, dutperf.ConfigError, "frame_timeout_ms: should be greater"),
]


@pytest.mark.parametrize(("given", "error", "words"), MISTAKES)
def test_mistakes_raise_one_sentence_and_leave_nothing(
    given: dict[str, Any], error: type[Exception], words: str, labs: Labs, tmp_path: Path
) -> None:
    procedure = given.pop("procedure", "throughput")
    source = {name: given.pop(name) for name in ("lab", "lab_options", "config", "progress") if name in given}
    with pytest.raises(error) as caught:
        dutperf.measure(dutperf.conditions_of(procedure)(**given), tmp_path / "out", **source)
    assert words in str(caught.value)
    assert "--" not in str(caught.value), "options are for the command line"
    assert not (tmp_path / "out").exists()
    assert not labs.up


def test_mistakes_of_a_trial(labs: Labs) -> None:
    with pytest.raises(dutperf.ConfigError, match="rate: 'x' is not a rate"):
        dutperf.trial("x", lab="refdut-siit")
    with pytest.raises(dutperf.ConfigError, match="rate: '99999999999' is above the limit of 1,000,000,000 frames/s"):
        dutperf.trial(99_999_999_999, lab="refdut-siit")
    with pytest.raises(dutperf.ConfigError, match="burst_rate: '2000M' is above the limit"):
        dutperf.trial(10, dutperf.SingleTrial(pattern="bursts:32", burst_rate="2000M"), lab="refdut-siit")
    with pytest.raises(dutperf.ConfigError, match="settle_s: SingleTrial has no such condition"):
        dutperf.trial(10, dutperf.SingleTrial(settle_s=1), lab="refdut-siit")
    with pytest.raises(dutperf.PlanError, match="one frame size"):
        dutperf.trial(10, dutperf.SingleTrial(frame_sizes=(84, 128)), lab="refdut-siit")
    assert not labs.asked


@pytest.mark.usefixtures("labs")
def test_mistakes_of_a_replay_name_the_parameter(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.pcap", [udp()] * 5)
    with dutperf.bench(config=yaml.safe_load(yaml.safe_dump(documented.CONFIG))) as bench:
        for given, text in (
            ((tmp_path / "none.pcap",), "file: .*none.pcap"),
            ((path, dutperf.SingleTrial()), r"conditions: should be those of a replay: dutperf.Replaying\(…\)"),
            ((path, dutperf.Replaying(directions="a->b")), "directions: a->b is no path"),
            ((path, dutperf.Replaying(loop=0)), "loop: 0 repeats the capture again and again"),
            ((5,), "file: "),
            ((path, dutperf.Replaying(capture="lost")), "capture: lost frames are known by their tags"),
            ((path, dutperf.Replaying(rate=5, speed="2")), "speed: goes without .rate., which"),
        ):
            with pytest.raises(dutperf.ConfigError, match=text):
                bench.replay(*given)


@pytest.mark.parametrize("read", [dutperf.open_result, dutperf.resume])
def test_what_is_no_path_is_a_mistake(read: Callable[[Any], object]) -> None:
    with pytest.raises(dutperf.ConfigError, match=r"directory: should be a path \(it is 5\)"):
        read(5)


WRONG = (
    "x",
    "",
    None,
    [],
    ["x"],
    {},
    {"a": 1},
    math.nan,
    math.inf,
    -1,
    0,
    10**30,
    1.5,
    True,
    b"x",
    object(),
    (),
    {1},
    int,
)
"""Values of which most parameters take none; those that one takes are no mistake."""


@pytest.mark.parametrize("value", WRONG, ids=lambda one: type(one).__name__)
def test_no_value_raises_other_errors_than_those_of_the_package(
    value: Any, labs: Labs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of no parameter of no function: an error of arithmetic says neither which one nor what is expected."""

    class Accepted(Exception):
        """The value came as far as the test setup."""

    def reach(*_values: object, **_named: object) -> None:
        raise Accepted

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dutperf.run.testbench.bench", reach)
    lab: dict[str, Any] = {"lab": "refdut-siit"}
    calls: list[Callable[[], Any]] = [
        *(
            lambda name=name: dutperf.bench(**(lab | {name: value})).__enter__()  # type: ignore[misc]
            for name in ("lab", "lab_options", "config", "max_frame_size")
        ),
        *(
            lambda name=name, one=one: dutperf.measure(  # type: ignore[misc]
                dutperf.conditions_of(name)(**{one.name: value}), "out", **lab
            )
            for name in dutperf.procedure_names()
            for one in offered(procedures.find(name).conditions)
        ),
        *(
            lambda one=one: dutperf.trial(None, SingleTrial(**{one.name: value}), **lab)  # type: ignore[misc]
            for one in offered(SingleTrial)
        ),
        lambda: dutperf.measure(value, "out", **lab),
        lambda: dutperf.measure(dutperf.Throughput(), value, **lab),
        lambda: dutperf.measure(dutperf.Throughput(), "out", value, **lab),
        lambda: dutperf.measure(dutperf.Pdv(), "out", throughput_from=value, **lab),
        lambda: dutperf.trial(10, value, **lab),
        lambda: dutperf.trial(value, **lab),
        lambda: dutperf.open_result(value),
        lambda: dutperf.resume(value),
        lambda: dutperf.resume("nothing", config=value),
        lambda: dutperf.resume("nothing", value),
    ]
    for call in calls:
        with pytest.raises((dutperf.DutperfError, Accepted)):
            call()
    assert not labs.up


@pytest.mark.parametrize("value", ["x", None, math.nan, -1, 0, 63, 9217, 1518.0, True, [1518], 10**30], ids=repr)
def test_the_longest_frame_of_a_bench_is_a_number_of_bytes(value: Any, labs: Labs) -> None:
    with (
        pytest.raises(dutperf.ConfigError, match=r"^max_frame_size: should be a whole number from 64 to 9,216 \(it is"),
        dutperf.bench(lab="refdut-siit", max_frame_size=value),
    ):
        pytest.fail("there is a bench")
    assert not labs.asked


@pytest.mark.parametrize(
    "value", ["x", None, math.nan, math.inf, -1, True, [1], 10**5000], ids=lambda one: str(type(one))
)
def test_traffic_waits_for_a_number_of_seconds(value: Any) -> None:
    with pytest.raises(dutperf.ConfigError, match=r"^seconds: should be a number of seconds from 0 to 86,400 \(it is"):
        RunningTraffic(None, lambda _part: None, TrafficPart(1, None, ())).wait(value)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("value", ["x", "", 5, ["forward"], "a->"], ids=repr)
def test_traffic_is_counted_of_a_direction(value: Any) -> None:
    with pytest.raises(dutperf.ConfigError, match=r"^direction: should be forward, reverse or a path"):
        RunningTraffic(None, lambda _part: None, TrafficPart(1, None, ())).counters(value)  # type: ignore[arg-type, return-value]


def test_conditions_as_a_program_gives_them() -> None:
    given = FrameLoss(max_rate="10%", rates=[1000, "2k"], repetitions="auto:min=7")
    assert given.max_rate == dutperf.Rate.parse("10%")
    assert given.rates == (dutperf.Rate.parse("1000"), dutperf.Rate.parse("2k"))
    assert given.repetitions == Auto(minimum=7)


def test_results_are_shown_as_their_tables(several: Path) -> None:
    """In a notebook: not the whole journal."""
    result = dutperf.open_result(several)
    assert [one.name for one in result] == list(documented.MEASURED)
    assert len(result) == len(documented.MEASURED)
    assert "throughput" in result
    assert "nonsense" not in result
    shown = result._repr_html_()
    assert shown.count("<table>") == len(result)
    for one in result:
        assert one.summary is not None
        assert html.escape(tables.results(one.summary).rows[0][-1]) in shown
    assert len(repr(result)) < 1000
    assert repr(result["throughput"]).startswith("<throughput: ")


def test_a_name_in_html_is_escaped(tmp_path: Path) -> None:
    one = dutperf.Measured("<b>", None, note="<script>")
    shown = dutperf.Results(tmp_path, SuiteSummary(measurements=()), (one,))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<script>" not in shown


@pytest.mark.parametrize("definition", procedures.every(), ids=lambda definition: definition.name)
def test_the_conditions_of_every_procedure_are_public(definition: Any) -> None:
    model = getattr(dutperf, procedures.model_of(definition.name))
    assert model is definition.conditions is dutperf.conditions_of(definition.name)
    assert procedures.of(model()) is definition
    assert model.__name__ in dir(dutperf)
    with pytest.raises(AttributeError):
        dutperf.Thruput  # type: ignore[attr-defined]  # noqa: B018


TYPED = """
import dutperf

made = dutperf.Throughput(max_rate="30k", frame_sizes=[64, 512], duration_s=5, foreground="2:1", repetitions="auto")
reveal_type(made.max_rate)
reveal_type(made.frame_sizes)
dutperf.measure(dutperf.Pdv(rate=1000), "out", throughput_from="earlier", lab="kernel-ipv4")
dutperf.Throughput(max_rate=[3])
dutperf.FrameLoss(duraton_s=5)
dutperf.measure("throughput")
"""
SAID = [
    (5, 'Revealed type is "dutperf.setup.rate.Rate | None"'),
    (6, 'Revealed type is "tuple[int, ...]"'),
    (8, 'Argument "max_rate" to "Throughput" has incompatible type'),
    (9, 'Unexpected keyword argument "duraton_s" for "FrameLoss"; did you mean "duration_s"?'),
    (10, 'Argument 1 to "measure" has incompatible type "str"; expected "Conditions"'),
]


def test_a_type_checker_knows_what_conditions_take_and_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "program.py"]
    package = Path(dutperf.__file__).parents[1]
    made = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(package)}, capture_output=True, text=True, check=False
    )
    said = [line for line in made.stdout.splitlines() if re.match(r"program.py:\d+: (error|note: Rev)", line)]
    assert [int(line.split(":")[1]) for line in said] == [line for line, _ in SAID], made.stdout
    assert all(words in line for line, (_, words) in zip(said, SAID, strict=True)), made.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("throughput", "did you mean dutperf.Throughput(…)?"),
        (dutperf.Throughput, "did you mean dutperf.Throughput(…)?"),
        (dutperf.SingleTrial(), "there are Throughput, FrameLoss"),
        (None, "there are Throughput, FrameLoss"),
    ],
)
def test_measure_takes_conditions_only(given: Any, words: str) -> None:
    with pytest.raises(dutperf.ConfigError, match="conditions: should be the conditions of a procedure") as caught:
        dutperf.measure(given, lab="refdut-siit")
    assert words in str(caught.value)


def test_one_base_class_for_all_that_goes_wrong() -> None:
    errors = [getattr(dutperf, name) for name in dutperf.__all__ if name.endswith("Error")]
    assert len(errors) == 7
    assert all(issubclass(error, dutperf.DutperfError) for error in errors)


def test_frames_have_the_rows_that_exports_have(several: Path) -> None:
    result = dutperf.open_result(several)
    for trials in (False, True):
        rows = result.rows(trials=trials)
        assert list(dict.fromkeys(row["measurement"] for row in rows)) == list(documented.MEASURED)
        table = result.to_arrow(trials=trials)
        assert isinstance(table, pyarrow.Table)
        pandas_frame, polars_frame = result.to_pandas(trials=trials), result.to_polars(trials=trials)
        assert isinstance(pandas_frame, pandas.DataFrame)
        assert isinstance(polars_frame, polars.DataFrame)
        assert list(pandas_frame.columns) == polars_frame.columns == list(rows[0])
        assert len(pandas_frame) == polars_frame.height == len(rows)
        size = [row["frame_size"] for row in rows]
        assert pandas_frame["frame_size"].tolist() == polars_frame["frame_size"].to_list() == size
    frame = result.to_polars().filter(polars.col("procedure") == "throughput")
    assert frame["throughput_fps.median"].to_list() == [
        row["throughput_fps.median"] for row in result["throughput"].records()
    ]


@pytest.mark.parametrize("definition", procedures.every(), ids=lambda definition: definition.name)
@pytest.mark.usefixtures("labs")
def test_every_procedure_has_typed_rows(definition: Any, tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "latency": {"tag_after_s": 0.1},
        "recovery": {"overload_s": 0.2},
        "reset": {"duration_s": 4, "reset_after_s": 0.5},
        "ramp": {"to_rate": "20k"},
        "burst-interval": {"bursts": "16"},
        "traffic": {"rate": "20k"},
    }
    usual = {
        "throughput_from": {84: 20_000},
        "max_rate": "100k",
        "duration_s": 0.5,
        "drain_s": 0,
        "repetitions": 2,
    } | more.get(definition.name, {})
    known = {one.name for one in offered(definition.conditions)}
    given = {name: value for name, value in usual.items() if name in known}
    source: dict[str, Any] = {"lab": "refdut-siit"}
    if definition.chapter in (Chapter.CONNECTIONS, Chapter.TABLES) or "preliminary_rate" in known:
        switch = {"learning_port", "sending_port"} & known
        setup = SWITCH if switch else DNS64 if "with_aaaa" in known else documented.CONFIG
        commands = {"clear_connections": "true", "clear_addresses": "true"}
        source = {"config": {**setup, "dut": {"commands": commands}}}
    result = dutperf.measure(definition.conditions(**given), tmp_path / "out", **source)
    table = export.arrow(result.rows())
    assert table.num_rows == len(result.rows()) > 0
    axis = "frame_size" if "frame_sizes" in known else "with_aaaa"
    assert {"measurement", "procedure", "dut", axis} <= set(table.column_names)


@pytest.mark.usefixtures("labs")
def test_a_killed_run_is_read_and_goes_on(tmp_path: Path) -> None:
    whole = dutperf.measure(dutperf.Throughput(**SEARCH), tmp_path / "out", lab="refdut-siit").rows()
    path = tmp_path / "out" / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:7]))
    cut = dutperf.open_result(tmp_path / "out")
    assert (cut.is_complete, len(cut.rows(trials=True))) == (False, 2)
    with pytest.raises(dutperf.JournalError, match="journal of another run"):
        dutperf.measure(dutperf.Throughput(**SEARCH), tmp_path / "out", lab="refdut-siit")
    statuses: list[dutperf.Status] = []
    assert dutperf.resume(tmp_path / "out", statuses.append).is_complete
    assert statuses
    assert dutperf.open_result(tmp_path / "out").rows()[0]["frame_size"] == whole[0]["frame_size"]
    with pytest.raises(dutperf.JournalError):
        dutperf.open_result(tmp_path)


@pytest.mark.usefixtures("labs")
def test_it_measures_in_a_thread_and_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    made: list[dutperf.Results] = []

    def measure() -> None:
        made.append(dutperf.measure(dutperf.Throughput(**SEARCH), tmp_path / "out", lab="refdut-siit"))

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()
    assert made[0].is_complete
    assert capfd.readouterr() == ("", "")
    assert {number: signal.getsignal(number) for number in handlers} == handlers


@pytest.mark.parametrize("text", ["", '{"event": "plan"}\n'], ids=["cut off", "of another version"])
@pytest.mark.usefixtures("labs")
def test_a_part_whose_journal_cannot_be_read_is_not_complete(text: str, tmp_path: Path) -> None:
    whole = dutperf.measure(dutperf.Pdv(**QUICK), tmp_path, lab="refdut-siit")
    assert (whole.is_complete, whole.can_be_resumed) == (True, False)
    (tmp_path / "pdv" / "journal.jsonl").write_text(text)
    cut = results.read(tmp_path)
    assert (cut.is_complete, cut.can_be_resumed) == (False, True)


def test_a_suite_that_is_not_begun_has_no_rows(tmp_path: Path) -> None:
    assert suite.SUITE not in [path.name for path in tmp_path.iterdir()]
    measured = dutperf.Measured("latency", None, note="not measured yet")
    assert (measured.records(), measured.records(of_trials=True)) == ([], [])
